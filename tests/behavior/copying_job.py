"""The smallest job, for tests of the frame around all jobs."""

import io
from pathlib import Path
from typing import ClassVar

from bert_tf.base.console import Console
from bert_tf.config.section import Section, build_section, option
from pipeline.beam.stored_path import path_of
from pipeline.outputs.job import run_job
from pipeline.outputs.job_spec import JobSpec, RunOptions
from pipeline.outputs.manifest import JOB_FILES


class CopyConfig(Section):
    section_name: ClassVar[str] = "copy"

    input: str = option("file to copy")
    output: str = option("copy to make")
    times: int = option("how often", 1)
    speed: int = option("does not change the output", 1, affects_output=False)


class Copying:
    """A job that copies a file, can be made to die, and counts its runs."""

    def __init__(self, folder: Path, *, directory: bool, can_resume: bool = False):
        self.input = folder / "input.txt"
        self.input.write_text("text\n")
        self.output = folder / "out"
        self.directory, self.can_resume = directory, can_resume
        self.temporary: Path | None = None
        self.said = io.StringIO()
        self.runs = 0
        self.found: list[str] = []
        self.dies = False
        self.meanwhile = lambda: None
        self.reads_inputs_first = False
        self.may_be_remote = False

    def move(self, location: str) -> None:
        """Names another output, of any storage."""
        self.output = path_of(location)

    @property
    def copy(self) -> Path:
        """The file that it makes."""
        return self.output / "copy.txt" if self.directory else self.output

    def run(self, *, overwrite=False, **changes):
        config = build_section(
            CopyConfig, {"input": str(self.input), "output": str(self.output), **changes}
        )
        spec = JobSpec(
            config=config,
            inputs={"input": [config.input]},
            is_folder=self.directory,
            can_resume=self.can_resume,
            temporary=self.temporary,
            may_be_remote=self.may_be_remote,
            reads_inputs_first=self.reads_inputs_first,
        )
        options = RunOptions(overwrite=overwrite, console=Console(self.said))
        return run_job(spec, options, lambda record: self.body(config, record))

    def body(self, config, record):
        self.runs += 1
        target = self.copy
        if self.directory:
            names = {path.name for path in self.output.iterdir()}
            self.found = sorted(names.difference(JOB_FILES))
        target.write_text(self.input.read_text() * config.times)
        self.meanwhile()
        if self.dies:
            raise RuntimeError
        record.counts["bytes"] = target.stat().st_size
        record.next_command = ["cat", str(target)]
