"""The reports of workers are shown, and nothing is left behind."""

import io
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from behavior.timing import wait_until

from bert_tf.base.console import Advance, Console
from pipeline.beam import progress
from pipeline.beam.progress import Progress, ProgressWatch, report_progress, text_line
from pipeline.examples.transforms import examples_line


def test_the_sum_is_shown_while_it_runs(monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    stream = io.StringIO()
    with ProgressWatch(Console(stream, log_seconds=0)):
        path = Path(os.environ["BERT_PIPELINE_PROGRESS_FILE"])
        report_progress(Progress.TEXT_BYTES, 1_500_000)
        report_progress(Progress.TEXT_BYTES, 2_000_000)
        wait_until(lambda: "read 3.5 MB of text, " in stream.getvalue(), "the sum is shown")
    assert not path.exists()
    report_progress(Progress.TEXT_BYTES, 1)  # nobody watches: nothing happens
    assert not path.exists()


def test_the_last_line_of_preprocess_has_all_shards(monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    log = io.StringIO()
    console = Console(log, log_seconds=1e9)
    with ProgressWatch(console, examples_line(earlier=1, shards=3)):
        report_progress(Progress.TEXT_BYTES, 1_500)
        wait_until(log.getvalue, "the first line is shown")
        report_progress(Progress.TEXT_BYTES, 2_500)
        report_progress(Progress.SPILLED_BYTES, 7_000_000)
        for _ in range(2):
            report_progress(Progress.SHARDS, 1)
    first, last = re.sub(r"\d+ s\b", "0 s", log.getvalue()).splitlines()
    assert first == "read 1.5 kB of text, 0 s; 1 of 3 shards finished"
    assert last == "read 4.0 kB of text, 0 s; 7 MB of tokens and records, 3 of 3 shards finished"


def test_the_fraction_is_that_of_the_splits_until_all_are_read():
    """After that, documents are still sorted and counted, and nobody knows for how long."""
    done = Counter({Progress.SPLITS: 8})
    assert text_line(done, 1.0) is None
    done += {Progress.TEXT_BYTES: 1000, Progress.SPLITS_READ: 2}
    assert text_line(done, 1.0).fraction == 0.25
    done += {Progress.SPLITS_READ: 6}
    assert text_line(done, 1.0).fraction is None
    line = examples_line(earlier=0, shards=4)
    assert line(done, 1.0).fraction is None
    assert line(done + Counter({Progress.SHARDS: 3}), 1.0).fraction == 0.75


def test_watching_reads_only_what_is_new(monkeypatch):
    """However much has been reported; also where a record is half written when it is read."""
    monkeypatch.setattr(progress, "_SECONDS", 1e9)
    with ProgressWatch(Console(io.StringIO())) as watch:
        path = Path(os.environ["BERT_PIPELINE_PROGRESS_FILE"])
        for _ in range(1_000):
            report_progress(Progress.TEXT_BYTES, 1_000)
        assert watch.line().text.startswith("read 1.0 MB of text")
        position = watch._reports.tell()
        assert position == path.stat().st_size
        report_progress(Progress.TEXT_BYTES, 1_000_000)
        record = path.read_bytes()[position:]
        os.truncate(path, position + 4)
        assert watch.line().text.startswith("read 1.0 MB of text")
        with path.open("ab") as stream:
            stream.write(record[4:])
        assert watch.line().text.startswith("read 2.0 MB of text")


def test_a_failed_pipeline_is_not_reported_to_be_at_its_end(tmp_path):
    log = io.StringIO()
    console = Console(log, log_seconds=1e9)
    console.progress(Advance("read 0.0 MB of text"))
    with pytest.raises(ValueError, match="odd"), ProgressWatch(console):
        report_progress(Progress.TEXT_BYTES, 1_500)
        raise ValueError("odd")
    assert log.getvalue() == "read 0.0 MB of text\n"
