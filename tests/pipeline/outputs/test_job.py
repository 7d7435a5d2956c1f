"""The frame around jobs: finished, unfinished, foreign and changed outputs."""

import io
import json
import os
from pathlib import Path

import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from pipeline.outputs import job as job_module
from pipeline.outputs.inputs import JobInputs
from pipeline.outputs.job import JobRecord
from pipeline.outputs.job_folder import JobFolder
from pipeline.outputs.manifest import manifest_path, read_manifest, rejects_path, write_manifest


@pytest.fixture(params=["file", "directory"])
def job(make_job, request):
    return make_job(directory=request.param == "directory")


def test_a_manifest_says_what_was_made_from_what(job):
    manifest = job.run()
    assert manifest["counts"] == {"bytes": 5}
    assert manifest["inputs"][0]["path"] == str(job.input)
    assert manifest["next"].startswith("cat ")
    assert manifest["versions"]["tensorflow"] != "not installed"
    assert manifest["peak_memory_bytes"] > 1e6
    assert read_manifest(job.output)["config"]["times"] == 1


def test_counts_of_different_things_are_not_added_up():
    file = {"rows_in": 9, "rows_out": 8, "rows_rejected": 1, "sequences": 30, "tokens": 4000}
    counts = {"rows_in": 9, "rejected": {"empty": 1, "long": 2}, "train": file, "steps": 0}
    assert job_module._shown_counts({**counts, "examples": {"train": 5, "eval": 2}}) == [
        ("rows in", "9"),
        ("rejected", "3"),
        ("train rows", "8"),
        ("examples", "7"),
    ]


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


def test_a_key_that_an_older_manifest_lacks_counts_as_its_default(job):
    manifest = job.run()
    config = {key: value for key, value in manifest["config"].items() if key != "times"}
    assert config != manifest["config"]
    write_manifest(job.output, {**read_manifest(job.output), "config": config})
    assert job.run()["already_done"]
    with pytest.raises(UsageError, match="times: 1 then, 2 now"):
        job.run(times=2)
    assert job.runs == 1


def test_an_output_on_other_storage_is_refused(job, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="gs://bucket/out: this command writes to this machine's"):
        job.run(output="gs://bucket/out")
    assert job.runs == 0
    assert list(tmp_path.iterdir()) == [job.input]


def test_the_output_of_another_command_is_named_without_its_config(job):
    job.run()
    manifest = read_manifest(job.output)
    write_manifest(job.output, {**manifest, "command": "train"})
    with pytest.raises(UsageError, match=r"made by bert-pipeline train; choose another --output "):
        job.run()


def test_changed_input_is_refused(job):
    job.run()
    job.input.write_text("other")
    with pytest.raises(UsageError, match="the content of the inputs has changed"):
        job.run()


@pytest.mark.parametrize("is_changed", [True, False])
def test_an_input_that_is_not_what_its_manifest_says_is_warned_about(
    make_job, tmp_path, is_changed
):
    first, second = make_job(directory=False), make_job(directory=False)
    first.output = tmp_path / "made.txt"
    first.run()
    if is_changed:
        first.output.write_text("changed\n")
    second.input, second.output = first.output, tmp_path / "copy.txt"
    second.run()
    warning = "made.txt: has changed since bert-pipeline made it, as made.txt.manifest.json shows"
    assert (warning in second.said.getvalue()) == is_changed


@pytest.mark.parametrize("can_resume", [True, False])
def test_an_interrupted_folder_is_resumed_or_cleared(make_job, can_resume):
    job = make_job(directory=True, can_resume=can_resume)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    assert read_manifest(job.output) is None
    with pytest.raises(UsageError, match="unfinished run with another config"):
        job.run(times=2)
    job.dies = False
    manifest = job.run(speed=3)
    assert job.found == (["copy.txt"] if can_resume else [])
    assert list(manifest["timings"]) == (["last_part", "total"] if can_resume else ["total"])
    assert not (job.output / ".seconds").exists()


@pytest.mark.parametrize("name", ["no", "010", "null", "1_000", "été\x85#: x"])
def test_an_unfinished_run_is_known_again_by_what_its_config_file_says(make_job, tmp_path, name):
    job = make_job(directory=True, can_resume=True)
    job.input = tmp_path / name
    job.input.write_text("text\n")
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run(times=3)
    with pytest.raises(UsageError, match="unfinished run with another config"):
        job.run(times=2)
    job.dies = False
    job.run(times=3)
    assert job.found == ["copy.txt"]


@pytest.mark.parametrize("times", ["{a: b}", "[1]", "x", "'3x'"])
def test_a_config_file_with_a_wrong_value_is_of_another_config(make_job, times):
    job = make_job(directory=True, can_resume=True)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run(times=3)
    marker = job.output / "config.yaml"
    marker.write_text(marker.read_text().replace("times: 3", f"times: {times}"))
    with pytest.raises(UsageError, match="unfinished run with another config"):
        job.run(times=3)


def test_a_key_that_an_older_config_file_lacks_counts_as_its_default(make_job):
    job = make_job(directory=True, can_resume=True)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    marker = job.output / "config.yaml"
    older = marker.read_text().replace("  times: 1\n", "")
    assert older != marker.read_text()
    marker.write_text(older)
    with pytest.raises(UsageError, match="unfinished run with another config"):
        job.run(times=2)
    job.dies = False
    job.run()
    assert job.found == ["copy.txt"]


def test_a_folder_where_nothing_was_made_yet_takes_another_config(make_job):
    job = make_job(directory=True)
    job.output.mkdir()
    (job.output / "config.yaml").write_text("copy:\n  times: 9\n  output: x\n")
    assert job.run()["counts"] == {"bytes": 5}


def test_a_missing_input_is_named(job):
    job.input.unlink()
    with pytest.raises(UsageError, match="input.txt: no such file or folder"):
        job.run()


def test_foreign_files_are_never_replaced(make_job):
    job = make_job(directory=True)
    job.output.mkdir()
    (job.output / "thesis.txt").write_text("ten years of work")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="contains files that bert-pipeline did not make"):
            job.run(overwrite=overwrite)
    assert (job.output / "thesis.txt").exists()


@pytest.mark.parametrize(
    "content", ["a: 1\nb: 2\n", "train: 7\n", "defaults: [a\n", "\xff", "[" * 20_000]
)
def test_a_config_of_another_tool_does_not_make_a_folder_ours(make_job, content):
    job = make_job(directory=True)
    job.output.mkdir()
    (job.output / "config.yaml").write_text(content, encoding="latin-1")
    with pytest.raises(UsageError, match="contains files that bert-pipeline did not make"):
        job.run()
    (job.output / "thesis.txt").write_text("ten years of work")
    with pytest.raises(UsageError, match="contains files that bert-pipeline did not make"):
        job.run(overwrite=True)
    assert (job.output / "thesis.txt").exists()
    assert (job.output / "config.yaml").read_text(encoding="latin-1") == content


@pytest.mark.parametrize("place", [".", ".."])
def test_an_output_never_takes_the_place_of_an_input(make_job, place):
    job = make_job(directory=True)
    job.run()
    job.input = job.output / "copy.txt"
    with pytest.raises(UsageError, match="--output .*: is or contains the input .*copy.txt"):
        job.run(overwrite=True, output=str(job.input / place))
    assert job.input.exists()


def test_an_output_lies_in_no_input_but_records(tmp_path, make_job):
    job = make_job(directory=True)
    source = tmp_path / "source"
    source.mkdir()
    values = {"input": str(source), "output": str(source / "out")}
    job.output = source / "out"
    job.input = job.output / "config.yaml"
    with pytest.raises(UsageError, match="is inside the input .*source, which it would chan"):
        job.run(**values)
    write_manifest(source, {"command": "preprocess"})
    assert not job.run(**values)["already_done"]


def test_names_that_no_manifest_can_hold_are_refused(job):
    with pytest.raises(UsageError, match=r"'.*caf\\udce9': this name is not UTF-8; rename it"):
        job.run(output=str(job.output.parent / os.fsdecode(b"caf\xe9")))
    assert job.runs == 0


def test_a_foreign_file_is_replaced_only_when_asked(make_job):
    job = make_job(directory=False)
    job.output.write_text("mine")
    with pytest.raises(UsageError, match="was not made by this command"):
        job.run()
    assert job.run(overwrite=True)["counts"] == {"bytes": 5}


def fail(*_):
    raise RuntimeError


def test_a_file_that_only_lacks_its_manifest_is_finished_by_the_same_command(
    tmp_path, make_job, monkeypatch
):
    job = make_job(directory=False)
    with monkeypatch.context() as patch:
        patch.setattr(job_module, "write_manifest", fail)
        with pytest.raises(RuntimeError):
            job.run()
    with pytest.raises(UsageError, match="unfinished run with another config"):
        job.run(times=2)
    assert job.run()["counts"] == {"bytes": 5}
    assert {path.name for path in tmp_path.iterdir()} == {"input.txt", "out", "out.manifest.json"}


def test_a_job_that_fails_behind_its_file_is_finished_by_the_same_command(make_job):
    job = make_job(directory=False)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    job.dies = False
    assert job.run()["counts"] == {"bytes": 5}


def test_a_manifest_vouches_for_no_other_file_than_its_own(make_job):
    job = make_job(directory=False)
    job.run()
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run(times=2, overwrite=True)
    with pytest.raises(UsageError, match="unfinished run with another config"):
        job.run()
    job.dies = False
    assert job.run(times=2)["counts"] == {"bytes": 10}


def test_a_job_that_fails_before_it_replaces_a_file_leaves_all_as_it_was(make_job):
    job = make_job(directory=False)
    manifest = job.run()
    job.body = fail
    with pytest.raises(RuntimeError):
        job.run(times=2, overwrite=True)
    assert read_manifest(job.output) | {"already_done": False} == manifest
    assert job.run()["already_done"]


def test_a_manifest_goes_with_the_rejects_it_counts(make_job):
    job = make_job(directory=False)
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


def test_an_output_of_the_wrong_kind_is_refused(make_job):
    folder, file = make_job(directory=True), make_job(directory=False)
    folder.output.write_text("")
    with pytest.raises(UsageError, match="is a file; give a folder"):
        folder.run()
    file.output.unlink()
    file.output.mkdir()
    with pytest.raises(UsageError, match="is a folder; name a file"):
        file.run(overwrite=True)


def test_a_failed_job_leaves_nothing_beside_its_file(tmp_path, make_job):
    job = make_job(directory=False)
    job.body = fail
    with pytest.raises(RuntimeError):
        job.run()
    assert [path.name for path in tmp_path.iterdir()] == ["input.txt"]


CHANGES = {
    "changed": lambda path: path.write_text("other\n"),
    "cut short": lambda path: os.truncate(path, 2),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_input_that_changes_meanwhile_is_an_error(job, change):
    job.meanwhile = lambda: change(job.input)
    with pytest.raises(InputError, match=r"input.txt: has changed or is gone since the job began"):
        job.run()
    assert read_manifest(job.output) is None
    assert job.directory or not job.output.exists()

    job.input.write_text("text\n")
    job.meanwhile = lambda: None
    job.run()
    assert job.copy.read_text() == "text\n"


def test_an_input_with_a_new_time_and_the_same_content_is_the_same(job):
    job.meanwhile = lambda: os.utime(job.input, (0, 0))
    assert job.run()["counts"]


def test_a_job_that_has_read_its_inputs_before_only_warns(job):
    job.reads_inputs_first = True
    job.meanwhile = lambda: job.input.write_text("other\n")
    (note,) = job.run()["notes"]
    assert note == f"{job.input}: has changed or is gone since the job began"
    assert note in job.said.getvalue()


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (None, "train --data data --output RUN --size tiny"),
        ({"steps": 5}, "train --config run.yaml --data data --output RUN --size tiny"),
        ({"data": "data", "output": "run", "size": "small"}, "train --config run.yaml"),
        ({"data": "other", "size": "small"}, "train --config run.yaml --data data --output RUN"),
    ],
)
def test_the_next_command_keeps_the_config_file(tmp_path, monkeypatch, section, expected):
    monkeypatch.chdir(tmp_path)
    document = {"preprocess": {"input": ["a.txt"]}, **({"train": section} if section else {})}
    Path("run.yaml").write_text(json.dumps(document))
    record = JobRecord(
        Console(io.StringIO()),
        {},
        lambda: None,
        JobFolder.at("data"),
        JobInputs({}, {}),
        config_file="run.yaml",
    )
    record.suggest("train", data="data", output="RUN", size="tiny")
    assert " ".join(record.next_command) == f"bert-pipeline {expected}"
