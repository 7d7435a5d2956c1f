"""The frame around jobs: finished, unfinished, foreign and changed outputs."""

import dataclasses
import io
import os
from pathlib import Path
from typing import ClassVar

import pytest

from bert_tf.config.console import Console
from bert_tf.config.errors import InputError, UsageError
from bert_tf.config.section import Section, build_section, option
from pipeline.artifacts import manifest_path, read_manifest, rejects_path, write_manifest
from pipeline.jobs import job as job_module
from pipeline.jobs.job import RunOptions, run_job


@dataclasses.dataclass(frozen=True, kw_only=True)
class CopyConfig(Section):
    section_name: ClassVar[str] = "copy"

    input: str = option("file to copy")
    output: str = option("copy to make")
    times: int = option("how often", default=1)
    speed: int = option("does not change the output", default=1)


class Copying:
    """A job that copies a file, can be told to die, and counts its runs."""

    def __init__(self, folder: Path, *, directory: bool, can_resume: bool = False):
        self.input = folder / "input.txt"
        self.input.write_text("text\n")
        self.output = folder / "out"
        self.directory, self.can_resume = directory, can_resume
        self.runs = 0
        self.found: list[str] = []
        self.dies = False

    def run(self, *, overwrite=False, **changes):
        config = build_section(
            CopyConfig, {"input": str(self.input), "output": str(self.output), **changes}
        )
        return run_job(
            "copy",
            config,
            RunOptions(overwrite=overwrite, console=Console(io.StringIO())),
            output=config.output,
            output_is_directory=self.directory,
            inputs=[config.input],
            body=lambda record: self.body(config, record),
            ignored_keys=("speed",),
            can_resume=self.can_resume,
        )

    def body(self, config, record):
        self.runs += 1
        target = self.output
        if self.directory:
            self.found = sorted(path.name for path in self.output.iterdir())
            target = self.output / "copy.txt"
        target.write_text(self.input.read_text() * config.times)
        if self.dies:
            raise RuntimeError
        record.counts["bytes"] = target.stat().st_size
        record.next_command = ["cat", str(target)]


@pytest.fixture(params=["file", "directory"])
def job(tmp_path, request):
    return Copying(tmp_path, directory=request.param == "directory")


def test_a_manifest_says_what_was_made_from_what(job):
    manifest = job.run()
    assert manifest["counts"] == {"bytes": 5}
    assert manifest["inputs"][0]["path"] == str(job.input)
    assert manifest["next"].startswith("cat ")
    assert manifest["versions"]["tensorflow"] != "not installed"
    assert manifest["peak_memory_bytes"] > 1e6
    assert read_manifest(job.output)["config"]["times"] == 1


def test_a_finished_job_is_not_done_again(job):
    job.run()
    assert job.run()["already_done"]
    assert job.run(speed=2)["already_done"]
    assert job.runs == 1


def test_another_config_is_refused_and_named(job):
    job.run()
    with pytest.raises(UsageError, match="times: 1 then, 2 now.*--overwrite"):
        job.run(times=2)
    assert job.run(times=2, overwrite=True)["counts"] == {"bytes": 10}


def test_an_output_on_other_storage_is_refused(job, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="gs://bucket/out: outputs are written to this machine's"):
        job.run(output="gs://bucket/out")
    assert job.runs == 0
    assert list(tmp_path.iterdir()) == [job.input]


def test_changed_input_is_refused(job):
    job.run()
    job.input.write_text("other")
    with pytest.raises(UsageError, match="the content of the inputs has changed"):
        job.run()


@pytest.mark.parametrize("can_resume", [True, False])
def test_an_interrupted_folder_is_resumed_or_cleared(tmp_path, can_resume):
    job = Copying(tmp_path, directory=True, can_resume=can_resume)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    assert read_manifest(job.output) is None
    with pytest.raises(UsageError, match="unfinished run of another config"):
        job.run(times=2)
    job.dies = False
    job.run(speed=3)
    assert job.found == (["config.yaml", "copy.txt"] if can_resume else ["config.yaml"])


def test_a_folder_where_nothing_was_made_yet_takes_another_config(tmp_path):
    job = Copying(tmp_path, directory=True)
    job.output.mkdir()
    (job.output / "config.yaml").write_text("copy:\n  times: 9\n  output: x\n")
    assert job.run()["counts"] == {"bytes": 5}


def test_a_missing_input_is_named(job):
    job.input.unlink()
    with pytest.raises(UsageError, match="input.txt: no such file or folder"):
        job.run()


def test_foreign_files_are_never_replaced(tmp_path):
    job = Copying(tmp_path, directory=True)
    job.output.mkdir()
    (job.output / "thesis.txt").write_text("ten years of work")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="holds files that bert-pipeline did not make"):
            job.run(overwrite=overwrite)
    assert (job.output / "thesis.txt").exists()


@pytest.mark.parametrize("content", ["a: 1\nb: 2\n", "train: 7\n", "defaults: [a\n", "\xff"])
def test_a_config_of_another_tool_does_not_make_a_folder_ours(tmp_path, content):
    job = Copying(tmp_path, directory=True)
    job.output.mkdir()
    (job.output / "config.yaml").write_text(content, encoding="latin-1")
    with pytest.raises(UsageError, match="holds files that bert-pipeline did not make"):
        job.run()
    (job.output / "thesis.txt").write_text("ten years of work")
    with pytest.raises(UsageError, match="holds files that bert-pipeline did not make"):
        job.run(overwrite=True)
    assert (job.output / "thesis.txt").exists()
    assert (job.output / "config.yaml").read_text(encoding="latin-1") == content


@pytest.mark.parametrize("place", [".", ".."])
def test_an_output_never_takes_the_place_of_an_input(tmp_path, place):
    job = Copying(tmp_path, directory=True)
    job.run()
    job.input = job.output / "copy.txt"
    with pytest.raises(UsageError, match="--output .*: is or holds the input .*copy.txt"):
        job.run(overwrite=True, output=str(job.input / place))
    assert job.input.exists()


def test_an_output_lies_in_no_input_but_records(tmp_path):
    job = Copying(tmp_path, directory=True)
    source = tmp_path / "source"
    source.mkdir()
    values = {"input": str(source), "output": str(source / "out")}
    job.output = source / "out"
    job.input = job.output / "config.yaml"
    with pytest.raises(UsageError, match="lies in the input .*source, whose content it would chan"):
        job.run(**values)
    write_manifest(source, {"command": "preprocess"})
    assert not job.run(**values)["already_done"]


def test_names_that_no_manifest_can_hold_are_refused(job):
    with pytest.raises(UsageError, match=r"'.*caf\\udce9': this name is not UTF-8; rename it"):
        job.run(output=str(job.output.parent / os.fsdecode(b"caf\xe9")))
    assert job.runs == 0


def test_a_foreign_file_is_replaced_only_when_asked(tmp_path):
    job = Copying(tmp_path, directory=False)
    job.output.write_text("mine")
    with pytest.raises(UsageError, match="was not made by this command"):
        job.run()
    assert job.run(overwrite=True)["counts"] == {"bytes": 5}


def fail(*_):
    raise RuntimeError


def test_a_file_that_only_lacks_its_manifest_is_finished_by_the_same_command(tmp_path, monkeypatch):
    job = Copying(tmp_path, directory=False)
    with monkeypatch.context() as patch:
        patch.setattr(job_module, "write_manifest", fail)
        with pytest.raises(RuntimeError):
            job.run()
    with pytest.raises(UsageError, match="unfinished run of another config"):
        job.run(times=2)
    assert job.run()["counts"] == {"bytes": 5}
    assert {path.name for path in tmp_path.iterdir()} == {"input.txt", "out", "out.manifest.json"}


def test_a_job_that_fails_behind_its_file_is_finished_by_the_same_command(tmp_path):
    job = Copying(tmp_path, directory=False)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    job.dies = False
    assert job.run()["counts"] == {"bytes": 5}


def test_a_manifest_vouches_for_no_other_file_than_its_own(tmp_path):
    job = Copying(tmp_path, directory=False)
    job.run()
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run(times=2, overwrite=True)
    with pytest.raises(UsageError, match="unfinished run of another config"):
        job.run()
    job.dies = False
    assert job.run(times=2)["counts"] == {"bytes": 10}


def test_a_job_that_fails_before_it_replaces_a_file_leaves_all_as_it_was(tmp_path):
    job = Copying(tmp_path, directory=False)
    manifest = job.run()
    job.body = fail
    with pytest.raises(RuntimeError):
        job.run(times=2, overwrite=True)
    assert read_manifest(job.output) | {"already_done": False} == manifest
    assert job.run()["already_done"]


def test_a_manifest_goes_with_the_rejects_it_counts(tmp_path):
    job = Copying(tmp_path, directory=False)
    job.run()

    def body(config, record):
        rejects_path(job.output).write_text("{}\n")
        raise RuntimeError

    job.body = body
    with pytest.raises(RuntimeError):
        job.run(overwrite=True)
    assert read_manifest(job.output) is None


def test_a_damaged_manifest_is_overwritten(job):
    job.run()
    manifest_path(job.output).write_text("{")
    with pytest.raises(InputError, match="damaged manifest .*make the output again with --overwr"):
        job.run()
    assert not job.run(overwrite=True)["already_done"]


def test_an_output_of_the_wrong_kind_is_refused(tmp_path):
    folder, file = Copying(tmp_path, directory=True), Copying(tmp_path, directory=False)
    folder.output.write_text("")
    with pytest.raises(UsageError, match="is a file; name a folder"):
        folder.run()
    file.output.unlink()
    file.output.mkdir()
    with pytest.raises(UsageError, match="is a folder; name a file"):
        file.run(overwrite=True)


def test_a_failed_job_leaves_nothing_beside_its_file(tmp_path):
    job = Copying(tmp_path, directory=False)
    job.body = fail
    with pytest.raises(RuntimeError):
        job.run()
    assert [path.name for path in tmp_path.iterdir()] == ["input.txt"]
