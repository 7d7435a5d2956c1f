"""Runs of MLflow, on a server or in files of the run directory.

MLflow reads its own variables MLFLOW_*. A store does not allow removing logged steps, so steps
after the checkpoint that a run resumes from stay there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from bert_tf.training.tracking.tracker import TrackedRun, named_by_split

_EXPERIMENT = "bert-pipeline"
_PARAMS_PER_CALL = 100  # the most that a server accepts
# A server that cannot be reached is tried again with later lines. MLflow's own retries would take
# minutes.
_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


class MlflowRun:
    """A `Tracker`: metrics as `train/loss` and `eval/loss`, the config as parameters.

    Continues the MLflow run of the same directory if the server is the same, else creates one.
    """

    def __init__(self, run: TrackedRun):
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        server = os.environ.get("MLFLOW_TRACKING_URI")
        if not server:  # releases since 3.17 refuse stores of files unless this is set
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        import mlflow  # reads the environment when it is imported

        store = (run.folder / "mlruns").absolute().as_uri()
        self._client = mlflow.MlflowClient(tracking_uri=server or store)
        self._metric = mlflow.entities.Metric
        state = run.read_state("mlflow")
        # The address itself may contain a password.
        place = hashlib.sha256(server.encode()).hexdigest() if server else None
        if "run_id" in state and state["server_sha256"] == place:
            self._id = state["run_id"]
            self._client.update_run(self._id, status="RUNNING")
        else:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _EXPERIMENT)
            known = self._client.get_experiment_by_name(name)
            experiment = known.experiment_id if known else self._client.create_experiment(name)
            self._id = self._client.create_run(experiment, run_name=run.name).info.run_id
            run.write_state("mlflow", {"run_id": self._id, "server_sha256": place})
        data = self._client.get_run(self._id).data
        self._names = list(data.metrics)
        params = [
            mlflow.entities.Param(name, value if isinstance(value, str) else json.dumps(value))
            for name, value in run.settings.items()
            if value is not None and name not in data.params
        ]
        for start in range(0, len(params), _PARAMS_PER_CALL):
            self._client.log_batch(self._id, params=params[start : start + _PARAMS_PER_CALL])

    def newest_steps(self) -> Mapping[str, int]:
        newest: dict[str, int] = {}
        for name in self._names:
            split = name.partition("/")[0]
            for metric in self._client.get_metric_history(self._id, name):
                newest[split] = max(newest.get(split, -1), metric.step)
        return newest

    def write(self, line: Mapping[str, Any], seconds: float) -> None:
        self._client.log_batch(
            self._id,
            metrics=[
                self._metric(name, float(value), round(seconds * 1000), line["step"])
                for name, value in named_by_split(line).items()
            ],
        )

    def close(self, *, is_finished: bool) -> None:
        self._client.set_terminated(self._id, "FINISHED" if is_finished else "KILLED")


# The name that the registry of trackers looks for in each module.
open_tracker = MlflowRun
