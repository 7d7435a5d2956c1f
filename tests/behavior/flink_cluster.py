"""A real Flink on this machine's loopback: a job manager and task managers as processes."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SCRIPT = ROOT / "deploy/flink/cluster.sh"
_REST = "http://127.0.0.1:8081"


class FlinkCluster:
    """Started with two task managers of two slots each; a context manager.

    Args:
        folder: for its configuration and logs.
        jars: folder with `lib` and `bin` of Flink.
        job_server: jar of Beam's job server.
    """

    def __init__(self, folder: Path, jars: str, job_server: str):
        self._folder = folder
        self._environment = {**os.environ, "FLINK_JARS": jars, "FLINK_RUN": str(folder / "run")}
        self._job_server = job_server

    def __enter__(self):
        self.call("start", "2")
        self._wait_for_task_managers(2)
        return self

    def __exit__(self, *failure):
        self.call("stop")

    def call(self, *arguments: str) -> None:
        """Run `cluster.sh`."""
        subprocess.run([_SCRIPT, *arguments], env=self._environment, check=True, timeout=120)

    def replace_task_manager(self, lost: str, new: str) -> None:
        """Kills one as a crash would, and starts another one."""
        self.call("kill", lost)
        self.call("add", new)

    def options(self, *, first_in_path: Path | None = None) -> list[str]:
        """Return the command line's options to run there, with worker processes of task managers.

        Args:
            first_in_path: a folder that the workers find packages in first.
        """
        worker = self._folder / ("worker" if first_in_path is None else "other-worker")
        path = os.pathsep.join(str(folder) for folder in (first_in_path, ROOT) if folder)
        worker.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{path}" MALLOC_ARENA_MAX=2\n'
            f'exec "{sys.executable}" -m pipeline.beam.worker_process "$@"\n'
        )
        worker.chmod(0o755)
        options = [
            "--flink_master=127.0.0.1:8081",
            f"--flink_job_server_jar={self._job_server}",
            "--parallelism=2",
            "--environment_type=PROCESS",
            f"--environment_config={json.dumps({'command': str(worker)})}",
        ]
        return ["--runner=flink", f"--set=runner.options={json.dumps(options)}"]

    def states(self) -> list[str]:
        """Return the states of all jobs."""
        return [job["status"] for job in self._get("/jobs")["jobs"]]

    def _wait_for_task_managers(self, number: int) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if self._get("/overview")["taskmanagers"] == number:
                    return
            except OSError:
                pass
            time.sleep(1)
        raise TimeoutError(f"the cluster did not start; see {self._folder}/run/log")

    def _get(self, path: str) -> dict:
        with urllib.request.urlopen(_REST + path, timeout=10) as response:
            return json.load(response)
