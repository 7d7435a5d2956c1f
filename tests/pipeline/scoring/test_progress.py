"""The progress line counts finished and running blocks by their files."""

import json

from pipeline.scoring.progress import ProgressWatcher


def test_rows_done_total_and_speed(tmp_path, make_plan):
    (tmp_path / "in.csv").write_text("text\nx\n")
    plan = make_plan("in.csv", output="out.csv")
    watcher = ProgressWatcher(plan)
    assert watcher.line(0.0) is None
    plan.progress_file(0, 1).write_text("256")
    assert watcher.line(10.0) == "scoring: 256 rows"
    plan.done_file(0, 0).write_text(json.dumps({"rows_out": 1000, "rejected": {"empty": 24}}))
    plan.table_file(0).write_text(json.dumps({"rows_in": 5000}))
    assert watcher.line(12.0) == "scoring: 1,280 of 5,000 rows, 512.0 rows/s"
