"""The progress line counts finished and running blocks by their files."""

import io
import json
import time
from pathlib import Path

from bert_tf.base.console import Console
from pipeline.scoring import progress
from pipeline.scoring.progress import ProgressWatcher, showing_progress


def test_rows_done_total_and_speed(tmp_path, make_plan):
    (tmp_path / "in.csv").write_text("text\nx\n")
    plan = make_plan("in.csv", output="out.csv")
    watcher = ProgressWatcher(plan)
    assert watcher.line(0.0) is None
    plan.files(0, 1).progress.write_text("256")
    assert watcher.line(10.0) == "scoring: 256 rows"
    plan.files(0, 0).done.write_text(json.dumps({"rows_out": 1000, "rejected": {"empty": 24}}))
    plan.summary_file(0).write_text(json.dumps({"rows_in": 5000}))
    assert watcher.line(12.0) == "scoring: 1,280 of 5,000 rows, 512.0 rows/s"


def test_the_last_line_has_all_rows(tmp_path, make_plan, monkeypatch):
    monkeypatch.setattr(progress, "_SECONDS", 0.01)
    (tmp_path / "in.csv").write_text("text\nx\n")
    plan = make_plan("in.csv", output="out.csv")
    log = io.StringIO()
    with showing_progress(plan, Console(log, log_seconds=1e9)):
        plan.files(0, 0).progress.write_text("1")
        limit = time.monotonic() + 10
        while not log.getvalue() and time.monotonic() < limit:
            time.sleep(0.01)
        plan.files(0, 0).progress.unlink()
        plan.files(0, 0).done.write_text(json.dumps({"rows_out": 1, "rejected": {"empty": 1}}))
        plan.summary_file(0).write_text(json.dumps({"rows_in": 2}))
    first, last = log.getvalue().splitlines()
    assert first == "scoring: 1 row"
    assert last.startswith("scoring: 2 of 2 rows, ")


def test_a_file_is_read_once(tmp_path, make_plan, monkeypatch):
    (tmp_path / "in.csv").write_text("text\nx\n")
    plan = make_plan("in.csv", output="out.csv")
    watcher = ProgressWatcher(plan)
    for block in range(50):
        plan.files(0, block).part.write_text("")
        plan.files(0, block).done.write_text(json.dumps({"rows_out": 10, "rejected": {}}))
    assert watcher.line(0.0) == "scoring: 500 rows"
    plan.files(0, 50).done.write_text(json.dumps({"rows_out": 10, "rejected": {}}))
    plan.files(0, 51).progress.write_text("3")
    read = []
    real = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda path, *rest, **keys: read.append(path) or real(path, *rest, **keys),
    )
    assert watcher.line(0.5).startswith("scoring: 513 rows")
    assert sorted(read) == sorted([plan.files(0, 50).done, plan.files(0, 51).progress])


def test_a_folder_that_is_gone_is_left_to_the_workers_to_report(make_plan):
    plan = make_plan(output="out.csv")
    plan.parts.rmdir()
    assert ProgressWatcher(plan).line(0.0) is None


def test_a_block_that_is_finished_and_still_has_its_progress_counts_once(make_plan, tmp_path):
    (tmp_path / "a.csv").write_text("text\none\ntwo\n")
    plan = make_plan("a.csv", output="out.csv")
    plan.files(0, 0).done.write_text(json.dumps({"rows_out": 2, "rejected": {}}))
    plan.files(0, 0).progress.write_text("2")
    assert ProgressWatcher(plan).line(0.0) == "scoring: 2 rows"
