"""Where Beam jobs run, and how storage is reached."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import Section, option

MAX_LOCAL_WORKERS = 512


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerConfig(Section):
    """The Beam runner of a data or scoring job and the options passed on to it."""

    section_name: ClassVar[str] = "runner"

    runner: str = option(
        "Beam runner",
        default="local",
        choices=("local", "prism", "flink", "spark", "dataflow"),
    )
    workers: int = option(
        "worker processes of the local runner (0: from the input size; 1 for score); "
        "parallelism on flink, workers on dataflow",
        default=0,
        minimum=0,
        maximum=10_000,
    )
    options: tuple[str, ...] = option(
        "Beam pipeline options, as on the command line of Beam (--flink_master=host:8081)",
        default=(),
        advanced=True,
    )

    def faults(self) -> list[str]:
        if self.runner not in ("local", "prism") or self.workers <= MAX_LOCAL_WORKERS:
            return []
        return [
            f"workers: is {self.workers}, all of them processes of this machine; use at most "
            f"{MAX_LOCAL_WORKERS}, or 0 for as many as pay off"
        ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StorageConfig(Section):
    """How a job without a runner reaches `s3://`, `gs://`, `hdfs://` and `azfs://`."""

    section_name: ClassVar[str] = "storage"

    options: tuple[str, ...] = option(
        "options of Beam's file systems, as on the command line of Beam "
        "(--s3_region_name=eu-west-1, --hdfs_host=namenode)",
        default=(),
        advanced=True,
    )
