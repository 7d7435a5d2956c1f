"""What workers tell is shown, and nothing is left behind."""

import io
import os
import time
from pathlib import Path

from bert_tf.config.console import Console
from pipeline import progress
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
