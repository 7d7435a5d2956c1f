"""A job on a Flink cluster, by Flink's REST API.

Beam's job server answers a request to cancel as if it had been done, while the cluster continues
the job; the cluster itself has to be asked.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from typing import Any

MASTER = "--flink_master"
_SECONDS = 10.0
_ENDED = ("FINISHED", "CANCELED", "FAILED")


class FlinkJob:
    """All jobs of one name on a cluster.

    Args:
        master: `host:port` of the job manager's REST API, or a URL.
        name: given to the job as Beam's option `--job_name`.
    """

    def __init__(self, master: str, name: str):
        self._url = (master if "://" in master else f"http://{master}").rstrip("/")
        self._name = name

    def cancel(self) -> None:
        """Asks the cluster to cancel what runs.

        Raises:
            OSError: the cluster does not answer.
        """
        for job in self._running():
            self._request(f"/jobs/{job}?mode=cancel", method="PATCH")

    def is_running(self) -> bool:
        """Whether the cluster has not ended it.

        Raises:
            OSError: the cluster does not answer.
        """
        return bool(self._running())

    def _running(self) -> list[str]:
        jobs = json.loads(self._request("/jobs/overview"))["jobs"]
        return [
            job["jid"] for job in jobs if job["name"] == self._name and job["state"] not in _ENDED
        ]

    def _request(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(self._url + path, method=method)
        with urllib.request.urlopen(request, timeout=_SECONDS) as response:
            return response.read()


def flink_job(options: Sequence[str], name: str) -> FlinkJob | None:
    """The job that a runner's options submit to a cluster; None where no cluster is named.

    Args:
        options: Beam's.
        name: of the job.
    """
    masters = [value for key, _, value in (o.partition("=") for o in options) if key == MASTER]
    is_cluster = bool(masters) and not masters[-1].startswith("[")  # not [local] nor [auto]
    return FlinkJob(masters[-1], name) if is_cluster else None
