"""`score --keep-rejected`: the rows of the input in its order, and why some have no prediction."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from behavior.forks import run_forked
from constant_engine import CONSTANT

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines.registry import ENGINES
from pipeline.jobs import scoring
from pipeline.outputs.job_spec import RunOptions

TASK = {"task": "classification", "labels": ["fine"], "columns": {"text": "text", "label": "l"}}
ROWS = [(0, "a"), (1, ""), (2, "b"), (3, None), (4, "c, d")]
EMPTY, MISSING = "column 'text' is empty", "column 'text' is missing"
INPUTS = {
    "csv": 'id,text\n0,a\n1,\n2,b\n3," "\n4,"c, d"\nx\n5,"e" f\n6,g\n',
    "tsv": "id\ttext\n0\ta\n1\t\n2\tb\n3\t \n4\tc, d\nx\n5\te\tf\n6\tg\n",
    "jsonl": '{"id": 0, "text": "a"}\n{"id": 1, "text": ""}\n{"id": 2, "text": "b"}\n{"id": 3}\n'
    '{"id": 4, "text": "c, d"}\n{}\nno JSON\n{"id": 6, "text": "g"}\n',
}
REASONS = {
    "csv": {1: EMPTY, 3: EMPTY, 5: "too few cells", 6: "text after a closing quote"},
    "tsv": {1: EMPTY, 3: EMPTY, 5: "too few cells", 6: "too many cells"},
    "jsonl": {
        1: EMPTY,
        3: "column 'text' is missing",
        5: "column 'text' is missing",
        6: "not JSON",
    },
}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINES, CONSTANT.name, CONSTANT)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "constant.txt").write_text("fine 0.75")
    (folder / "task.json").write_text(json.dumps(TASK))
    return folder


def score(model, source, output, **values):
    values = {
        "model": str(model),
        "input": [str(source)],
        "output": str(output),
        "engine": "constant",
        "keep_rejected": True,
        "block_rows": 3,
        **values,
    }
    config = build_section(ScoreConfig, values)
    return scoring.run(config, RunnerConfig(), RunOptions(console=Console(io.StringIO())))


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("target", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("source", ["csv", "tsv", "jsonl"])
def test_as_many_rows_as_in_the_input_in_its_order(model, tmp_path, source, target):
    (tmp_path / f"in.{source}").write_text(INPUTS[source])
    output = tmp_path / f"out.{target}"
    manifest = score(model, tmp_path / f"in.{source}", output)
    rows = read(output)
    assert len(rows) == 8
    for place, row in enumerate(rows):
        reason = REASONS[source].get(place)
        if reason is None:
            assert (row["predicted_label"], row["rejected"] or None) == ("fine", None)
            assert float(row["predicted_score"]) == 0.75
        else:
            assert not row["predicted_label"] and row["predicted_score"] in (None, "")
            assert row["rejected"].startswith(reason)
    assert [str(rows[place]["id"]) for place in (0, 1, 2, 3, 4, 7)] == [*"01234", "6"]
    assert [rows[place]["text"] for place in (0, 2, 4, 7)] == ["a", "b", "c, d", "g"]
    counts = manifest["counts"]
    assert (counts["rows_in"], counts["rows_out"], counts["rows_rejected"]) == (8, 8, 4)
    assert len((tmp_path / f"{output.name}.rejects.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("target", ["parquet", "csv"])
def test_rows_of_parquet_keep_their_types(model, tmp_path, target):
    table = pa.table({"id": [row for row, _ in ROWS], "text": [text for _, text in ROWS]})
    pq.write_table(table, tmp_path / "in.parquet")
    score(model, tmp_path / "in.parquet", tmp_path / f"out.{target}")
    rows = read(tmp_path / f"out.{target}")
    assert [str(row["id"]) for row in rows] == [*"01234"]
    reasons = [row["rejected"] or None for row in rows]
    assert reasons == [None, EMPTY, None, EMPTY, None]
    if target == "parquet":
        assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]


def test_the_column_can_be_renamed_and_collides_like_others(model, tmp_path):
    (tmp_path / "in.csv").write_text("text,rejected\na,x\n,y\n")
    with pytest.raises(UsageError, match="--rename rejected=NAME"):
        score(model, tmp_path / "in.csv", tmp_path / "out.csv")
    score(model, tmp_path / "in.csv", tmp_path / "out.csv", rename=["rejected=why"])
    assert [row["why"] for row in read(tmp_path / "out.csv")] == ["", EMPTY]


def test_without_it_nothing_is_added(model, tmp_path):
    (tmp_path / "in.csv").write_text('text\na\n""\n')
    score(model, tmp_path / "in.csv", tmp_path / "out.csv", keep_rejected=False)
    assert read(tmp_path / "out.csv") == [
        {"text": "a", "predicted_label": "fine", "predicted_score": "0.75"}
    ]


# A job that is killed at any moment and run again writes what it would have written.
SCRIPT = Path(__file__).parents[1] / "killed_scoring.py"


@pytest.mark.slow
def test_no_kill_changes_the_outputs_or_scores_a_finished_block_again(tmp_path):
    done = run_forked(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr
    *killed, whole = map(json.loads, done.stdout.splitlines())
    assert not whole["killed"] and whole["predicted"] == []
    assert len(killed) > 10
    assert whole["left"]["scored.csv"].splitlines()[1:] == [
        f"{n},{text},fine,0.75" for n, text in enumerate("abc")
    ] + ["4,e,fine,0.75"]
    for report in killed:
        assert report["killed"]
        assert (report["code"], report["folders"]) == (0, []), done.stderr
        assert report["left"] == whole["left"]
        assert len(report["predicted"]) == 0 or (
            len(report["predicted"]) + sum(report["finished"]) == 4
        )
    assert {tuple(report["finished"]) for report in killed} >= {(), (3,), (3, 1)}
