"""The files of a run on other storage whenever the process that publishes it is killed."""

import hashlib
import io
import json
from contextlib import suppress
from pathlib import Path

import pytest
from behavior.remote_outputs import SCHEMES, forget_process, local_files, stored_files
from memory_storage import FAULTS, FILES

from bert_tf.base.checksums import write_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from pipeline.beam.stored_path import path_of
from pipeline.outputs.stored_run import StoredRun

pytestmark = pytest.mark.usefixtures("files")


def held():
    """Nobody has taken the run over."""


def open_run(scheme, folder, check_held=held):
    return StoredRun(
        path_of(f"{scheme}://bucket/run"),
        folder,
        console=Console(io.StringIO()),
        check_held=check_held,
    )


def write_step(run: Path, step: int, *, keep: int = 2) -> None:
    """Write the files of a run after a step, with checkpoints as this test checks them."""
    for folder in ("best", "tensorboard/train", f"checkpoints/step-{step:08d}"):
        (run / folder).mkdir(parents=True, exist_ok=True)
    (run / "metrics.jsonl").write_text("".join(f"{n}\n" for n in range(step + 1)))
    (run / "tensorboard" / "train" / f"events.{step}").write_text(f"{step}")
    for name in ("config.json", "model.safetensors"):
        (run / "best" / name).write_text(f"{name} {step}")
    write_sums(run / "best", ["config.json", "model.safetensors"])
    checkpoint = run / "checkpoints" / f"step-{step:08d}"
    (checkpoint / "state.safetensors").write_text(f"tensors {step}")
    digest = hashlib.sha256(f"tensors {step}".encode()).hexdigest()
    (checkpoint / "state.json").write_text(json.dumps({"tensors_sha256": digest}))
    old = run / "checkpoints" / f"step-{step - keep:08d}"
    if old.is_dir():
        for file in old.iterdir():
            file.unlink()
        old.rmdir()


def newest_step(run: Path) -> int:
    """Return the newest step of the checkpoints, all of which are whole."""
    steps = [0]
    for folder in run.glob("checkpoints/*"):
        state = json.loads((folder / "state.json").read_text())
        tensors = (folder / "state.safetensors").read_bytes()
        assert state["tensors_sha256"] == hashlib.sha256(tensors).hexdigest()
        steps.append(int(folder.name.removeprefix("step-")))
    return max(steps)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_published_is_what_is_fetched(scheme, tmp_path):
    run = open_run(scheme, tmp_path / "here")
    run.fetch()
    for step in range(1, 5):
        write_step(tmp_path / "here", step)
        (tmp_path / "here" / ".being-written.partial").write_text("not yet")
        run.publish()
    (tmp_path / "here" / ".being-written.partial").unlink()
    assert stored_files(f"{scheme}://bucket/run") == local_files(tmp_path / "here")
    FILES[f"{scheme}://bucket/run/config.yaml"] = b"of the job"
    forget_process()
    open_run(scheme, tmp_path / "there").fetch()
    assert local_files(tmp_path / "there") == local_files(tmp_path / "here")
    open_run(scheme, tmp_path / "worker", None).fetch()
    assert {path.name for path in (tmp_path / "worker").iterdir()} == {"checkpoints", "best"}
    assert newest_step(tmp_path / "worker") == 4


def test_only_what_has_changed_is_written_again(tmp_path):
    run = open_run("memory", tmp_path / "here")
    run.fetch()
    write_step(tmp_path / "here", 1)
    run.publish()
    closed = FAULTS.counts["close"]
    run.publish()
    assert FAULTS.counts["close"] == closed
    (tmp_path / "here" / "metrics.jsonl").write_text("more lines\n" * 9)
    run.publish()
    assert FAULTS.counts["close"] == closed + 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["close", "copy", "delete"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_checkpoint_is_there_whole_or_not_at_all(scheme, kind, tmp_path, monkeypatch):
    """Wherever publishing the fourth step fails, the third can be resumed from."""
    monkeypatch.setattr("pipeline.beam.stored_path._AT_ONCE", 1)  # the same order each time
    place, count = f"{scheme}://bucket/run", 0
    while True:
        FILES.clear()
        forget_process()
        here = tmp_path / f"{count}"
        run = open_run(scheme, here)
        run.fetch()
        for step in (1, 2, 3):
            write_step(here, step)
            run.publish()
        write_step(here, 4)
        count += 1
        FAULTS.reset()
        FAULTS.fails = (kind, count)
        try:
            run.publish()
        except OSError as error:
            assert place in str(error)
        else:
            break
        forget_process()
        there = tmp_path / f"{count}-resumed"
        resumed = open_run(scheme, there)
        resumed.fetch()
        newest = newest_step(there)
        assert newest in (3, 4)
        if scheme == "memory":  # HDFS does not replace files
            assert len((there / "metrics.jsonl").read_text().split()) > newest
        if (there / "best").exists():
            assert len({file.read_text().split()[-1] for file in there.glob("best/[cm]*")}) == 1
        write_step(there, 4)
        resumed.publish()
        assert newest_step(there) == 4
        stored = stored_files(place)
        assert {name: stored[name] for name in local_files(there)} == local_files(there)
    assert count > 3


@pytest.mark.parametrize("kind", ["close", "delete"])
def test_what_failed_is_published_by_the_next_call(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.beam.stored_path._AT_ONCE", 1)
    place, run = "memory://bucket/run", open_run("memory", tmp_path)
    run.fetch()
    for step in range(1, 7):
        write_step(tmp_path, step)
        FAULTS.reset()
        FAULTS.fails = (kind, step)
        with suppress(OSError):
            run.publish()
    FAULTS.reset()
    run.publish()
    stored = stored_files(place)
    # Files written aside cannot be removed either while deleting fails.
    assert {name: stored[name] for name in stored if not name.endswith(".partial")} == local_files(
        tmp_path
    )


def test_a_run_that_is_taken_over_during_uploads_gets_no_checkpoint(tmp_path):
    checks = iter([None, UsageError("another process started writing to it")])

    def lost_meanwhile():
        if (error := next(checks)) is not None:
            raise error

    write_step(tmp_path, 1)
    with pytest.raises(UsageError, match="another process"):
        open_run("memory", tmp_path, lost_meanwhile).publish()
    stored = stored_files("memory://bucket/run")
    assert "metrics.jsonl" in stored
    assert "checkpoints/step-00000001/state.json" not in stored


def test_a_run_that_another_process_has_taken_over_is_left_alone(tmp_path):
    def lost():
        raise UsageError("another process started writing to it")

    write_step(tmp_path, 1)
    with pytest.raises(UsageError, match="another process"):
        open_run("memory", tmp_path, lost).publish()
    open_run("memory", tmp_path, None).publish()
    assert stored_files("memory://bucket/run") == {}
