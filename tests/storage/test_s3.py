"""Outputs on S3: a server of its protocol on this machine, Beam's file system, whole commands."""

import json
import os

import pytest
from behavior.remote_outputs import local_files
from behavior.stored_vectors import check_same_outputs, jobs_by_output, make_outputs

from bert_tf.base.console import Console
from bert_tf.base.files import remove, replacing_file
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig, ScoreConfig, VocabConfig
from pipeline.beam.storage import use_storage_options
from pipeline.beam.stored_path import path_of
from pipeline.jobs import pretraining_examples, scoring, vocabulary
from pipeline.outputs.job_spec import RunOptions

pytestmark = pytest.mark.slow  # starts a server, and runs whole jobs

MADE_WHEN = {"manifest.json", "config.yaml"}


def stored_files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")}


def content(files):
    return {name: files[name] for name in files.keys() - MADE_WHEN}


def runner(options, **values):
    return build_section(RunnerConfig, {"options": options, **values})


def preprocess_values(corpus, output):
    return {
        "input": [str(corpus / "corpus.jsonl")],
        "vocab": str(corpus / "vocab.txt"),
        "output": str(output),
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "dupe_factor": 2,
        "eval_fraction": 0.1,
        "num_shards": 3,
    }


def preprocess(corpus, output, runner, **values):
    config = build_section(PreprocessConfig, {**preprocess_values(corpus, output), **values})
    return pretraining_examples.run(config, runner, RunOptions(console=Console()))


def test_files_are_written_read_replaced_and_removed(folder):
    (folder / "a" / "b").write_text("text")
    (folder / "empty").write_bytes(b"")
    large = os.urandom(1 << 20) * 40
    with (folder / "large").open("wb") as stream:
        for begin in range(0, len(large), 300_000):
            stream.write(large[begin : begin + 300_000])
    assert stored_files(folder) == {"a/b": b"text", "empty": b"", "large": large}
    assert (folder / "large").read_range(30_000_000, 100) == large[30_000_000:30_000_100]
    assert (folder / "large").stat().st_size == len(large)
    with replacing_file(folder / "large") as aside:
        aside.write_bytes(b"small")
    assert (folder / "large").read_bytes() == b"small"
    assert sorted(path.name for path in folder.iterdir()) == ["a", "empty", "large"]
    with pytest.raises(FileNotFoundError):
        (folder / "none").read_bytes()
    with pytest.raises(OSError, match="The specified bucket does not exist: 's3://none/a'"):
        path_of("s3://none/a").write_text("text")
    remove(folder)
    assert not folder.exists() and stored_files(folder) == {}


@pytest.mark.parametrize("workers", [1, 2])
def test_records_are_those_of_a_local_run(corpus, folder, options, tmp_path, workers):
    values = {"duplicates": "exact", "masking": "dynamic"}
    preprocess(corpus, tmp_path / "data", runner([]), **values)
    preprocess(corpus, folder, runner(options, workers=workers), **values)
    assert content(stored_files(folder)) == content(local_files(tmp_path / "data"))
    assert preprocess(corpus, folder, runner(options), **values)["already_done"]


def test_a_vocabulary_is_that_of_a_local_run(corpus, folder, options, tmp_path):
    made = []
    for output in (tmp_path / "local" / "vocab.txt", folder / "vocab.txt"):
        values = {"input": [str(corpus / "corpus.jsonl")], "vocab_size": 50, "output": str(output)}
        config = build_section(VocabConfig, values)
        vocabulary.run(config, runner(options), RunOptions(console=Console()))
        made.append(output.read_bytes())
    assert made[0] == made[1]
    assert stored_files(folder).keys() == local_files(tmp_path / "local").keys()


def test_scores_are_those_of_a_local_run(folder, options, tmp_path, monkeypatch):
    from constant_engine import CONSTANT

    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", {CONSTANT.name: CONSTANT})
    monkeypatch.setattr("bert_tf.config.registries.REGISTRIES.engines", {CONSTANT.name: CONSTANT})
    model = tmp_path / "model"
    model.mkdir()
    columns = {"text": "body", "text_pair": None, "label": "label"}
    task = {"task": "classification", "labels": ["a", "b"], "columns": columns}
    (model / "task.json").write_text(json.dumps({**task, "max_seq_length": 16}))
    (model / "constant.txt").write_text("fine 0.75")
    table = "n,body\n" + "".join(f"{n},text {n}\n" for n in range(100))
    (folder / "in" / "rows.csv").write_text(table)
    made = []
    for output in (tmp_path / "scored.csv.gz", folder / "scored.csv.gz"):
        values = {"model": str(model), "engine": "constant", "block_rows": 30}
        inputs = [str(folder / "in" / "*.csv")]
        config = build_section(ScoreConfig, {**values, "input": inputs, "output": str(output)})
        scoring.run(config, runner(options), RunOptions(console=Console()))
        made.append(output.read_bytes())
    assert made[0] == made[1]


def test_the_bytes_are_those_of_local_outputs(folder, options, tmp_path):
    names = jobs_by_output(tmp_path)
    make_outputs(tmp_path, names)

    def forget_options():
        use_storage_options([])

    use_storage_options(options)
    make_outputs(folder, names, before_each=forget_options, options=options)
    use_storage_options(options)
    check_same_outputs(folder, tmp_path)
