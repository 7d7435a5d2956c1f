"""The line on rows: rows of earlier runs count as done, and not for the speed."""

from collections import Counter

import numpy as np

from bert_tf.base.console import Console
from pipeline.beam.progress import Progress, ProgressWatch
from pipeline.scoring.blocks import cut_table, read_block
from pipeline.scoring.parts import write_part
from pipeline.scoring.running import RowsLine
from pipeline.scoring.transforms import EngineHandler, _is_left


def test_rows_done_speed_padding_and_time_left():
    line = RowsLine(label="scoring", tables=2)
    done: Counter[int] = Counter()
    assert line(done, 1.0) is None
    done += {Progress.TABLES: 1, Progress.TABLE_ROWS: 3000, Progress.EARLIER_ROWS: 1000}
    assert line(done, 2.0).text == "scoring: 1,000 rows"
    done += {Progress.ROWS: 256}
    assert line(done, 10.0).text == "scoring: 1,256 rows"
    done += {Progress.ROWS: 144, Progress.TABLES: 1, Progress.TABLE_ROWS: 2000}
    assert line(done, 12.0).text == "scoring: 1,400 of 5,000 rows, 72.0 rows/s, 0:00:50 left"
    done += {Progress.TOKENS: 90, Progress.PADDED_TOKENS: 100, Progress.ROWS: 3600}
    assert line(done, 14.0).text == "scoring: 5,000 of 5,000 rows, 936.0 rows/s, 10% padding"
    assert line(done, 14.0).fraction == 1.0


def test_a_worker_may_do_a_bundle_twice():
    line = RowsLine(label="scoring", tables=1)
    done = Counter({Progress.TABLES: 1, Progress.TABLE_ROWS: 2, Progress.ROWS: 3})
    assert line(done, 1.0).text == "scoring: 3 of 3 rows"


class FakeEngine:
    """Does two rows at a time, of two tokens each in a batch of three."""

    def predict(self, columns, *, batch_tokens, on_rows, on_tokens):
        rows = len(columns["text"])
        for _ in range(0, rows, 2):
            on_rows(min(2, rows))
            on_tokens(4, 6)
        return {
            "predicted_label": np.full(rows, "x", object),
            "predicted_score": np.full(rows, 0.5, np.float32),
        }


def test_workers_report_every_row_once(tmp_path, make_plan):
    """Also within a block, of rejected rows, and of blocks that are finished already."""
    (tmp_path / "in.csv").write_text("text\na\nb\nc,d\ne\nf\n")
    plan = make_plan("in.csv", output="out.csv")
    handler = EngineHandler(plan, threads=None)
    for expected in ({"ROWS": 5, "TOKENS": 8, "PADDED_TOKENS": 12}, {"EARLIER_ROWS": 5}):
        with ProgressWatch(Console(), lambda *_: None) as watch:
            for reference in cut_table(plan.tables[0], plan):
                if _is_left(reference, plan):
                    for scored in handler.run_inference(
                        [read_block(reference, plan)], FakeEngine()
                    ):
                        write_part(scored, plan)
            watch.line()
            found = {Progress(kind).name: amount for kind, amount in watch._done.items()}
        assert found == {"TABLES": 1, "TABLE_ROWS": 5, **expected}
