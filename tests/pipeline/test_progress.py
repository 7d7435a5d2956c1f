"""What workers tell is shown, and nothing is left behind."""

import io
import os
import time
from pathlib import Path

import pytest

from bert_tf.config.console import Console
from pipeline import progress
from pipeline.examples.progress import ExamplesConsole
from pipeline.progress import ProgressWatch, tell_progress


def test_the_sum_is_shown_while_it_runs(monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    stream = io.StringIO()
    with ProgressWatch(Console(stream, log_seconds=0)):
        path = Path(os.environ["BERT_PIPELINE_PROGRESS_FILE"])
        tell_progress(1_500_000)
        tell_progress(2_000_000)
        limit = time.monotonic() + 10
        while "read 3.5 MB of text, 0 s" not in stream.getvalue() and time.monotonic() < limit:
            time.sleep(0.01)
    assert "read 3.5 MB of text" in stream.getvalue()
    assert not path.exists()
    tell_progress(1)  # nobody watches: nothing happens
    assert not path.exists()


def test_the_last_line_of_preprocess_has_all_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    log = io.StringIO()
    console = ExamplesConsole(Console(log, log_seconds=1e9), tmp_path, tmp_path, shards=2)
    with ProgressWatch(console):
        tell_progress(1_500)
        limit = time.monotonic() + 10
        while not log.getvalue() and time.monotonic() < limit:
            time.sleep(0.01)
        tell_progress(2_500)
        for shard in range(2):
            (tmp_path / f"train-{shard:05d}-of-00002.tfrecord").touch()
    first, last = log.getvalue().splitlines()
    assert first == "read 1.5 kB of text, 0 s; 0 of 2 shards finished"
    assert last == "read 4.0 kB of text, 0 s; 2 of 2 shards finished"


def test_a_failed_pipeline_is_not_said_to_be_at_its_end(tmp_path):
    log = io.StringIO()
    console = Console(log, log_seconds=1e9)
    console.progress("read 0.0 MB of text")
    with pytest.raises(ValueError, match="odd"), ProgressWatch(console):
        tell_progress(1_500)
        raise ValueError("odd")
    assert log.getvalue() == "read 0.0 MB of text\n"
