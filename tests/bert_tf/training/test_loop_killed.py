"""A run that was killed with SIGKILL ends as one that was not, to the last bit."""

import signal
from pathlib import Path

import pytest
from behavior.forks import Fork
from behavior.killed_run import make_loop
from behavior.packed_task import STEPS

from bert_tf.training.metrics_log import read_metrics
from bert_tf.training.run_files import read_checkpoint

pytestmark = pytest.mark.slow  # trains in a process that is killed

SCRIPT = Path(__file__).parents[2] / "behavior" / "killed_run.py"


@pytest.fixture
def killed(tmp_path):
    """Yield a process that trains until it kills itself."""
    process = Fork(SCRIPT, tmp_path)
    yield process
    process.kill()


def lines_without_times(folder):
    clock = ("time", "examples_per_second", "tokens_per_second")
    lines = read_metrics(folder / "run" / "metrics.jsonl")
    return [{name: line[name] for name in line if name not in clock} for line in lines]


def last_values(folder):
    """Return the bytes of every variable of model, optimizer and averages."""
    last = read_checkpoint(folder / "run" / "checkpoints" / f"step-{STEPS:08d}")
    return {name: tensor.tobytes() for name, tensor in last.tensors.items()}


def test_a_run_killed_while_a_checkpoint_is_written_resumes_exactly(
    killed, tmp_path, tmp_path_factory
):
    uninterrupted = tmp_path_factory.mktemp("uninterrupted")
    make_loop(uninterrupted).run()
    _, errors = killed.communicate(timeout=900)
    assert killed.returncode == -signal.SIGKILL, errors[-3000:]
    checkpoints = tmp_path / "run" / "checkpoints"
    whole, torn = sorted(path.name for path in checkpoints.iterdir())[::-1]
    assert (whole, torn[:15]) == ("step-00000004", ".step-00000008.")
    assert lines_without_times(tmp_path)[-1]["step"] == 6, "two lines are to be written again"

    assert make_loop(tmp_path).run().resumed_from == 4

    assert lines_without_times(tmp_path) == lines_without_times(uninterrupted)
    assert last_values(tmp_path) == last_values(uninterrupted)
    assert sorted(path.name for path in checkpoints.iterdir()) == [
        f"step-{step:08d}" for step in (4, 8, STEPS)
    ]
