"""SIGTERM and Ctrl-C end a command with one line, the second one at once."""

import io
import os
import re
import signal
import subprocess
import sys

import apache_beam as beam
import pytest

from bert_tf.base.console import Console
from bert_tf.config.sections import RunnerConfig
from pipeline.beam.runner import run_pipeline
from pipeline.cli.startup import Terminated, raising_on_signals

TRAIN = ["train", "--data", "d", "--output", "r", "--size", "tiny"]


@pytest.mark.parametrize(
    ("arguments", "module", "code", "message"),
    [
        (TRAIN, "pretraining", 143, "stopped by SIGTERM; run the same command again to resume"),
        (
            ["vocab", "--input", "i", "--output", "v", "--lowercase"],
            "vocabulary",
            143,
            "stopped by SIGTERM; run the same command again to resume",
        ),
    ],
)
def test_a_termination_is_one_line(run, arguments, module, code, message):
    before = signal.getsignal(signal.SIGTERM)
    got, out, err, _ = run(arguments, lambda: os.kill(os.getpid(), signal.SIGTERM), module)
    assert (got, out) == (code, "")
    assert re.fullmatch(message + "\n", err)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow  # starts a process that loads Beam
def test_a_second_termination_ends_the_process_at_once():
    program = """
import os, signal
from pipeline.cli.startup import Terminated, raising_on_signals
with raising_on_signals():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except Terminated:
        os.kill(os.getpid(), signal.SIGTERM)
        print("still there")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, b"", b"")


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_during_a_step_of_beam_is_still_one(number, kind):
    def build(pipeline):
        _ = pipeline | beam.Create([1]) | beam.Map(lambda _: os.kill(os.getpid(), number))

    with pytest.raises(kind), raising_on_signals():
        run_pipeline(RunnerConfig(), build, console=Console(io.StringIO()), input_bytes=0)


@pytest.mark.slow  # starts a process that loads TensorFlow
def test_a_second_termination_ends_training_at_once():
    program = """
import os, signal
from bert_tf.training.loop import on_stop_signal
from pipeline.cli.startup import raising_on_signals
with raising_on_signals(), on_stop_signal(print):
    os.kill(os.getpid(), signal.SIGTERM)
    print("saving", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    print("still there")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"15\nsaving\n")
