"""The job `score` with its output on other storage: the same bytes, resumed, whole or not."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from behavior.remote_outputs import FAULTY, SCHEMES, forget_process, local_files, stored_files
from constant_engine import CONSTANT, ConstantEngine
from memory_storage import FAULTS, FILES

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from pipeline.jobs import scoring
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import read_manifest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("files")]  # run whole jobs

TASK = {
    "task": "classification",
    "labels": ["fine", "bad"],
    "columns": {"text": "body", "text_pair": None, "label": "label"},
    "max_seq_length": 16,
}
TEXTS = ["good film", "bad", "red, blue", "film\nfilm", "", "blue"]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", {CONSTANT.name: CONSTANT})
    monkeypatch.setattr("bert_tf.config.registries.REGISTRIES.engines", {CONSTANT.name: CONSTANT})
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "task.json").write_text(json.dumps(TASK))
    (folder / "constant.txt").write_text("fine 0.75")
    return folder


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    rows = [{"n": n, "body": text} for n, text in enumerate(TEXTS)]
    (folder / "a.csv").write_text("n,body\n" + "".join(f'{n},"{t}"\n' for n, t in enumerate(TEXTS)))
    lines = [*map(json.dumps, rows), "{broken"]
    (folder / "b.jsonl").write_text("".join(f"{line}\n" for line in lines))
    pq.write_table(pa.Table.from_pylist(rows), folder / "c.parquet")
    return folder


def run(model, inputs, output, **values):
    said = io.StringIO()
    values = {
        "model": str(model),
        "input": [str(inputs)],
        "output": output,
        "engine": "constant",
        "block_rows": 2,
        **values,
    }
    manifest = scoring.run(
        build_section(ScoreConfig, values), RunnerConfig(), RunOptions(console=Console(said))
    )
    return manifest, said.getvalue()


def content(files):
    """Return all files but those that tell when and where they were made."""
    kept = files.keys() - {"manifest.json", "config.yaml"}
    return {name: files[name] for name in kept}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_bytes_of_a_folder_are_those_of_a_local_one(model, tables, tmp_path, scheme):
    run(model, tables / "*", str(tmp_path / "out"))
    manifest, _ = run(model, tables / "*", f"{scheme}://bucket/out")
    made = stored_files(f"{scheme}://bucket/out")
    assert content(made) == content(local_files(tmp_path / "out"))
    assert made.keys() == local_files(tmp_path / "out").keys()
    assert manifest["counts"]["rejected"] == {"column 'body' is empty": 3, "not JSON": 1}
    forget_process()
    assert run(model, tables / "*", f"{scheme}://bucket/out")[0]["already_done"]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "b.jsonl", "c.parquet"])
def test_the_bytes_of_a_file_are_those_of_a_local_one(model, tables, tmp_path, name):
    source = tables / name.removesuffix(".gz")
    FILES["memory://bucket/in/" + source.name] = source.read_bytes()
    run(model, source, str(tmp_path / "out" / name))
    run(model, f"memory://bucket/in/{source.name}", f"memory://bucket/out/{name}")
    made = stored_files("memory://bucket/out")
    sides = ("manifest.json", "rejects.jsonl", "report.html")
    assert made.keys() == {name, *(f"{name}.{side}" for side in sides)}
    assert made[name] == (tmp_path / "out" / name).read_bytes()
    with pytest.raises(
        UsageError, match=f"would replace the input memory://bucket/in/{source.name}"
    ):
        run(model, f"memory://bucket/in/{source.name}", "memory://bucket/in")


@pytest.mark.parametrize("fault", FAULTY, ids=lambda fault: fault[0])
def test_what_fails_is_taken_up_again(model, tables, tmp_path, fault):
    output = "memory://bucket/out/scored.csv"
    run(model, tables / "a.csv", str(tmp_path / "out" / "scored.csv"))
    expected = (tmp_path / "out" / "scored.csv").read_bytes()
    FAULTS.fails = fault
    with pytest.raises(Exception, match="fails on purpose"):
        run(model, tables / "a.csv", output)
    assert read_manifest(output) is None and output not in FILES
    forget_process()
    run(model, tables / "a.csv", output)
    assert FILES[output] == expected and read_manifest(output) is not None
    assert not [name for name in FILES if ".parts" in name]


def test_finished_blocks_are_not_scored_again(model, tables, monkeypatch):
    output = "memory://bucket/out/scored.csv"
    predict = ConstantEngine.predict
    texts = []

    def predict_some(self, columns, **values):
        texts.extend(columns["text"])
        if len(texts) == 5:
            raise RuntimeError("the last block fails")
        return predict(self, columns, **values)

    monkeypatch.setattr(ConstantEngine, "predict", predict_some)
    with pytest.raises(Exception, match="the last block fails"):
        run(model, tables / "a.csv", output)
    forget_process()
    texts.clear()
    _, said = run(model, tables / "a.csv", output)
    assert texts == ["blue"]
    assert "resuming with the finished blocks of an earlier run" in said


def test_unknown_storage_is_refused_before_anything_is_read(model, tables):
    with pytest.raises(UsageError, match="no file system for ftp://"):
        run(model, tables / "a.csv", "ftp://host/scored.csv")
