"""A dry run tells the plan, and writes nothing."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from pipeline.scoring import running as module
from pipeline.scoring.running import preview


@pytest.fixture
def first_rows(monkeypatch):
    monkeypatch.setattr(module, "_FIRST_ROWS", 5)


def test_columns_rows_and_rejects_are_told_and_nothing_is_written(tmp_path, make_plan, first_rows):
    (tmp_path / "a.csv").write_text(
        "id,text\n" + "".join(f"{n},row {n}\n" for n in range(100, 900))
    )
    (tmp_path / "b.jsonl").write_text('{"text": "x"}\n{"text": ""}\n')
    pq.write_table(pa.table({"text": ["x"] * 77}), tmp_path / "c.parquet")
    plan = make_plan("*.*", output="out", block_rows=8192)
    before = sorted(tmp_path.rglob("*"))
    log = io.StringIO()
    found = preview(plan, Console(log), engine="tensorflow")
    assert sorted(tmp_path.rglob("*")) == before
    rows = {table["source"].rpartition("/")[2]: table["rows"] for table in found["tables"]}
    assert rows == {"a.csv": pytest.approx(800, rel=0.02), "b.jsonl": 2, "c.parquet": 77}
    assert found["counts"] == {
        "rows_in": 5 + 2 + 5,
        "rejected": {"column 'text' is empty": 1},
    }
    text = log.getvalue()
    assert "engine: tensorflow\n" in text
    assert "  reads: text from 'text'\n  adds: predicted_label, predicted_score\n" in text
    assert "rows: 2; of the first 2 rejected: 1\n" in text
    assert text.endswith("dry run of 3 tables: nothing was written\n")


def test_a_limit_and_a_compressed_file(tmp_path, make_plan, first_rows):
    import gzip

    (tmp_path / "a.csv").write_text("text\n" + "x\n" * 500)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"text\n" + b"x\n" * 500))
    plan = make_plan("*.*", output="out", block_rows=8192, limit=7)
    found = preview(plan, Console(io.StringIO()), engine="tensorflow")
    assert [table["rows"] for table in found["tables"]] == [7, None]


def test_first_rows_that_are_all_rejected(tmp_path, make_plan, first_rows):
    (tmp_path / "a.csv").write_text("id,text\n" + "1,\n" * 9 + "2,x\n")
    plan = make_plan("a.csv", output="out", block_rows=8192)
    found = preview(plan, Console(io.StringIO()), engine="tensorflow")
    assert found["tables"][0]["rows"] is None
    assert found["counts"]["rejected"] == {"column 'text' is empty": 5}


def test_what_would_end_the_job_is_told(tmp_path, make_plan):
    (tmp_path / "a.csv").write_text("text,predicted_label\nx,y\n")
    plan = make_plan("a.csv", output="out.csv")
    with pytest.raises(UsageError, match="--rename predicted_label=NAME"):
        preview(plan, Console(io.StringIO()), engine="tensorflow")
