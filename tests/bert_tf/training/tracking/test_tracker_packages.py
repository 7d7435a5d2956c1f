"""MLflow and Weights & Biases as they are installed; `make test` does not need them."""

import json
import struct

import pytest

from bert_tf.training.metrics_log import MetricsLog

SETTINGS = {"steps": 40, "data": "data", "init": None, "phases": [{"steps": 40}]}


def line(step, split="train", loss=1.0):
    return {"step": step, "split": split, "time": 0.5 * step, "loss": loss}


def report(tracker, folder, lines, is_finished=True, **keep_until):
    warnings = []
    log = MetricsLog(
        folder,
        keep_until=keep_until,
        warn=warnings.append,
        trackers=[tracker],
        name="runs/first",
        settings=SETTINGS,
    )
    for each in lines:
        log.write(each)
    log.close(is_finished=is_finished)
    assert not warnings


def report_resumed_run(tracker, folder):
    """Killed after step 30, and resumed from step 20 with another loss after that."""
    report(tracker, folder, [line(10), line(20), line(20, "eval"), line(30)], is_finished=False)
    report(tracker, folder, [line(30, loss=2.0), line(40, loss=2.0)], train=20, eval=20)


@pytest.mark.filterwarnings("default")
def test_mlflow_has_one_run_with_every_step_once(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    report_resumed_run("mlflow", tmp_path)
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "tracking" / "mlruns").as_uri())
    experiment = client.get_experiment_by_name("bert-pipeline")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("runs/first", "FINISHED")
    assert run.data.params == {"steps": "40", "data": "data", "phases": '[{"steps": 40}]'}
    history = client.get_metric_history(run.info.run_id, "train/loss")
    assert [(each.step, each.value) for each in history] == [(10, 1), (20, 1), (30, 1), (40, 2)]
    assert [each.step for each in client.get_metric_history(run.info.run_id, "eval/loss")] == [20]


@pytest.mark.filterwarnings("default")
def test_wandb_has_one_run_with_every_step_once(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    report_resumed_run("wandb", tmp_path)
    state = json.loads((tmp_path / "tracking" / "wandb.json").read_text())
    assert state["steps"] == {"train": 40, "eval": 20}
    files = sorted((tmp_path / "tracking" / "wandb").glob(f"offline-run-*-{state['id']}/*.wandb"))
    assert [steps_in(file) for file in files] == [
        [("train", 10), ("train", 20), ("eval", 20), ("train", 30)],
        [("train", 40)],
    ]


def steps_in(path):
    """Split and step of each row of a file that `wandb sync` uploads."""
    from wandb.proto.wandb_internal_pb2 import Record

    rows = []
    for data in log_records(path.read_bytes()):
        items = Record.FromString(data).history.item
        values = {item.key or "/".join(item.nested_key): item.value_json for item in items}
        rows += [
            (split, int(values[f"{split}/step"]))
            for split in ("train", "eval")
            if f"{split}/step" in values
        ]
    return rows


def log_records(log, block=32_768):
    """Return records of LevelDB's log format; the package writes seven bytes of its own before."""
    start, parts = 7, []
    while start + 7 <= len(log):
        if block - start % block < 7:
            start += block - start % block
        _, size, kind = struct.unpack("<IHB", log[start : start + 7])
        parts.append(log[start + 7 : start + 7 + size])
        if kind in (1, 4):  # whole, or the last part
            yield b"".join(parts)
            parts = []
        start += 7 + size
