"""Where Beam jobs run, and how storage is reached."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, ClassVar

from bert_tf.config.section import Bounds, Section, advanced, option

MAX_LOCAL_WORKERS = 512


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerConfig(Section):
    """The Beam runner of a data or scoring job and the options passed on to it."""

    section_name: ClassVar[str] = "runner"

    runner: str = option(
        "Beam runner", "local", choices=("local", "prism", "flink", "spark", "dataflow")
    )
    workers: Annotated[int, Bounds(0, 10_000)] = option(
        "worker processes of the local runner (0: from the input size; 1 for score); "
        "parallelism on flink, workers on dataflow",
        0,
    )
    options: tuple[str, ...] = advanced(
        "Beam pipeline options, as on the command line of Beam (--flink_master=host:8081)", ()
    )

    def faults(self) -> Iterator[str]:
        if self.runner in ("local", "prism") and self.workers > MAX_LOCAL_WORKERS:
            yield (
                f"workers: is {self.workers}, but all are processes of this machine; use at most "
                f"{MAX_LOCAL_WORKERS}, or 0 to choose by the input size"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class StorageConfig(Section):
    """How a job without a runner reaches `s3://`, `gs://`, `hdfs://` and `azfs://`."""

    section_name: ClassVar[str] = "storage"

    options: tuple[str, ...] = advanced(
        "options of Beam's file systems, as on the command line of Beam "
        "(--s3_region_name=eu-west-1, --hdfs_host=namenode)",
        (),
    )
