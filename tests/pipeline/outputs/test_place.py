"""Files of others are not replaced: beside a job's output, inside it and behind links."""

import io
import os
import re
from pathlib import Path

import pytest

from bert_tf.base.checksums import write_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.engines.registry import exported_model
from pipeline.outputs import filling as outputs
from pipeline.outputs.manifest import duplicates_path, read_manifest, rejects_path

SIDES = [
    "out.manifest.json",
    "out.rejects.jsonl",
    "out.duplicates.jsonl",
    ".out.config.yaml",
    ".out.seconds",
]


@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("content", ["mine", '{"mine": 1}', ""])
def test_a_foreign_file_beside_the_output_is_replaced_only_when_asked(
    make_job, tmp_path, name, content
):
    job = make_job(directory=False)
    foreign = tmp_path / name
    foreign.write_text(content)
    with pytest.raises(UsageError, match=rf"{re.escape(name)}: exists but was not made by this co"):
        job.run()
    assert foreign.read_text() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["input.txt", name])
    assert job.run(overwrite=True)["counts"] == {"bytes": 5}


@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_where_a_file_is_needed_stays(make_job, tmp_path, name, overwrite):
    job = make_job(directory=False)
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis").touch()
    with pytest.raises(UsageError, match="is a folder where --output"):
        job.run(overwrite=overwrite)
    assert (tmp_path / name / "thesis").exists()


@pytest.mark.parametrize("name", [*SIDES, ".out.work", ".out.work/part"])
def test_what_is_written_beside_the_output_is_no_input(make_job, tmp_path, name):
    job = make_job(directory=False)
    job.temporary = tmp_path / ".out.work"
    job.input = tmp_path / name
    job.input.parent.mkdir(exist_ok=True)
    job.input.write_text("text\n")
    with pytest.raises(
        UsageError, match="--output .*out: would also replace .*is or contains the in"
    ):
        job.run(overwrite=True)
    assert job.input.read_text() == "text\n"
    assert not job.output.exists()


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("is_finished", [False, True])
def test_a_foreign_folder_stays_where_intermediate_data_would_be(
    make_job, tmp_path, is_link, is_finished
):
    job = make_job(directory=False)
    job.temporary = tmp_path / ".out.work"
    if is_finished:
        job.run()
    real = tmp_path / ("elsewhere" if is_link else ".out.work")
    real.mkdir()
    (real / "thesis").touch()
    if is_link:
        job.temporary.symlink_to(real)
    if is_finished:
        assert job.run()["already_done"]
    with pytest.raises(
        UsageError, match=r"\.out\.work: --output .* needs this path for temporary files"
    ):
        job.run(overwrite=True)
    assert (real / "thesis").exists()
    assert job.temporary.exists()


def test_what_an_interrupted_job_left_beside_its_output_is_its_own(make_job, tmp_path):
    job = make_job(directory=False)
    job.temporary = tmp_path / ".out.work"
    body = job.body

    def dies(config, record):
        rejects_path(job.output).write_text("{}\n")
        duplicates_path(job.output).write_text("{}\n")
        job.temporary.mkdir()
        raise RuntimeError

    job.body = dies
    with pytest.raises(RuntimeError):
        job.run()
    job.body = body
    assert job.run()["counts"] == {"bytes": 5}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("input.txt", "out", "out.duplicates.jsonl", "out.manifest.json", "out.rejects.jsonl"),
    ]


def test_intermediate_data_alone_is_known_again(make_job, tmp_path):
    job = make_job(directory=False)
    job.temporary = tmp_path / ".out.work"
    body = job.body

    def dies(config, record):
        job.temporary.mkdir()
        raise RuntimeError

    job.body = dies
    with pytest.raises(RuntimeError):
        job.run()
    job.body = body
    assert not job.run(times=2)["already_done"]
    assert not job.temporary.exists()


def test_what_killed_processes_left_aside_goes(make_job, tmp_path):
    job = make_job(directory=False)
    for name in (".out.17.partial", ".out.rejects.jsonl.17-0123abcd.partial", ".other.17.partial"):
        (tmp_path / name).touch()
    job.run()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(".other.17.partial", "input.txt", "out", "out.manifest.json"),
    ]


def test_what_killed_processes_left_aside_in_a_folder_goes(make_job, tmp_path):
    job = make_job(directory=True, can_resume=True)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    job.dies = False
    (job.output / "inner").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (job.output / "link").symlink_to(tmp_path / "elsewhere")
    left = [job.output / ".copy.txt.17.partial", job.output / "inner" / ".a.17-0123abcd.partial"]
    for path in (*left, tmp_path / "elsewhere" / ".a.17.partial"):
        path.touch()
    job.run()
    assert not any(path.exists() for path in left)
    assert (tmp_path / "elsewhere" / ".a.17.partial").exists()


def test_overwriting_removes_links_and_nothing_that_they_lead_to(make_job, tmp_path):
    job = make_job(directory=True)
    job.run()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis").touch()
    (job.output / "inner").mkdir()
    for link in (job.output / "a-link", job.output / "inner" / "link"):
        link.symlink_to(tmp_path / "elsewhere")
    (job.output / "dangling").symlink_to(tmp_path / "nowhere")
    assert job.run(overwrite=True, times=2)["counts"] == {"bytes": 10}
    assert (tmp_path / "elsewhere" / "thesis").exists()
    assert job.found == []


def test_nothing_is_removed_where_not_all_can_be(make_job, monkeypatch):
    """Root may remove everything, so the answer for a folder is played."""
    job = make_job(directory=True)
    job.run()
    closed = job.output / "inner" / "closed"
    closed.mkdir(parents=True)
    monkeypatch.setattr(outputs.os, "access", lambda path, mode: Path(path) != closed)
    with pytest.raises(UsageError, match="closed: cannot be removed .* nothing was removed"):
        job.run(overwrite=True, times=2)
    assert read_manifest(job.output) is not None
    assert (job.output / "copy.txt").exists()


def test_a_saved_model_without_our_checksums_is_named(tmp_path):
    lines = io.StringIO()
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    assert exported_model(str(tmp_path), Console(lines)) == str(tmp_path)
    assert lines.getvalue().startswith(f"warning: {tmp_path}: saved_model.pb has no checksum of")
    write_sums(tmp_path, ["saved_model.pb"])
    lines.truncate(0)
    exported_model(str(tmp_path), Console(lines))
    assert lines.getvalue() == ""


def test_an_unfinished_folder_is_not_finished_from_other_inputs(make_job):
    job = make_job(directory=True, can_resume=True)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    job.dies = False
    job.input.write_text("other")
    with pytest.raises(UsageError, match="its inputs have changed since"):
        job.run()
    job.input.write_text("text\n")
    job.input = job.input.rename(job.input.with_name("renamed.txt"))
    job.run()
    assert job.found == ["copy.txt"]


def test_inputs_and_outputs_are_the_same_by_any_name(job, tmp_path, monkeypatch):
    job.run()
    monkeypatch.chdir(tmp_path)
    assert job.run(input=str(job.input.rename("renamed.txt")), output="out")["already_done"]


@pytest.fixture(params=["file", "directory"])
def job(make_job, request):
    return make_job(directory=request.param == "directory")


def test_a_finished_output_that_cannot_be_written_is_finished_all_the_same(job, monkeypatch):
    job.run()
    real = os.open

    def read_only(path, flags, *rest, **keys):
        if flags & (os.O_CREAT | os.O_RDWR | os.O_WRONLY):
            raise OSError(30, "Read-only file system", str(path))
        return real(path, flags, *rest, **keys)

    def unlink(path, missing_ok=False):
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(Path, "unlink", unlink)
    assert job.run()["already_done"]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_fingerprints_of_an_unfinished_run_are_refused(make_job, damage):
    job = make_job(directory=True, can_resume=True)
    job.dies = True
    with pytest.raises(RuntimeError):
        job.run()
    file = job.output / ".inputs.json"
    whole = file.read_text()
    digest = re.search(r'"sha256": "(.)', whole)
    assert digest is not None
    file.write_text(
        {
            "cut": whole[:-9],
            "changed": whole.replace(
                digest[0], digest[0][:-1] + ("0" if digest[1] != "0" else "1")
            ),
            "empty": "",
        }[damage]
    )
    job.dies = False
    with pytest.raises(
        InputError, match=r"\.inputs\.json: damaged \(.*delete this file if the inp"
    ):
        job.run()
    file.unlink()
    assert job.run()["counts"] == {"bytes": 5}
