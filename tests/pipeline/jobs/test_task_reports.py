"""Starting from the model of a run that is not finished."""

import io

import numpy as np
import pytest

from bert_tf.base.console import Console
from bert_tf.training.run_files import write_checkpoint
from pipeline.jobs.task_reports import warn_of_unfinished_run
from pipeline.outputs.manifest import write_manifest


@pytest.fixture
def run(tmp_path):
    """Return a run directory that was stopped after 1,200 of 10,000 steps."""
    run = tmp_path / "run"
    (run / "best").mkdir(parents=True)
    (run / "config.yaml").write_text("train: {data: d, output: run, size: tiny}\n")
    for step in (600, 1200):
        write_checkpoint(
            run / "checkpoints" / f"step-{step:08d}",
            step=step,
            tensors={"model/0000": np.zeros(1, np.float32)},
            state={"total_steps": 10_000},
        )
    return run


def warning(init):
    stream = io.StringIO()
    warn_of_unfinished_run(str(init), Console(stream))
    return stream.getvalue()


@pytest.mark.parametrize("folder", [".", "best"])
def test_an_unfinished_run_is_named_with_its_steps(run, folder):
    assert warning(run / folder) == (
        f"warning: {run / folder}: its run is unfinished, at step 1,200 of 10,000; taking its best "
        "model so far (to finish it first, run its command again)\n"
    )


def test_a_damaged_checkpoint_does_not_count(run):
    (run / "checkpoints" / "step-00001200" / "state.json").write_text("{")
    assert ", at step 600 of 10,000;" in warning(run)


def test_a_run_without_a_checkpoint_is_unfinished_too(run):
    for name in ("step-00000600", "step-00001200"):
        (run / "checkpoints" / name / "state.json").unlink()
    assert "its run is unfinished; taking" in warning(run)


def test_finished_runs_and_folders_of_others_are_no_reason(run, tmp_path):
    write_manifest(run, {"command": "train"})
    assert warning(run) == ""
    other = tmp_path / "other"
    (other / "best").mkdir(parents=True)
    assert warning(other) == ""
    assert warning(other / "best") == ""
    assert warning(tmp_path / "model") == ""
