"""`init pretrain`: the config that it writes is one that all three commands take."""

import base64
import gzip
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, InputError, UsageError
from bert_tf.config.resolve import resolve
from bert_tf.config.sections import PreprocessConfig, TrainConfig, VocabConfig
from pipeline.beam.files import FileInfo
from pipeline.cli.first_steps import init
from pipeline.corpus.readers.formats import look_at_text
from pipeline.proposal import pretraining
from pipeline.proposal.corpus_facts import look_at_corpus
from pipeline.proposal.pretraining import _look, propose_pretraining

WORDS = [f"{a}{b}{c}" for a in "bdfgkl" for b in "aeiou" for c in ("m", "n", "r", "st")]


def write_corpus(path, documents, *, copies=0, sentences=4, seed=1):
    drawn = np.random.default_rng(seed)
    texts = [
        "\n".join(" ".join(drawn.choice(WORDS, 8)) + "." for _ in range(sentences))
        for _ in range(documents)
    ]
    path.write_bytes(gzip.compress(("\n\n".join(texts + texts[:copies]) + "\n").encode()))


@pytest.mark.slow  # builds and runs a training step
def test_the_config_is_one_that_three_commands_take(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "news.txt.gz", 300, copies=3)
    monkeypatch.setattr("pipeline.proposal.pretraining._MEASURED_SECONDS", 0.0)
    shown = io.StringIO()
    proposal = propose_pretraining(
        "news.txt.gz",
        assignments=("vocab.lowercase=false", "train.batch_size=4"),
        console=Console(shown),
    )
    assert proposal["next"] == [
        f"bert-pipeline {name} --config news-pretrain.yaml"
        for name in ("vocab", "preprocess", "train")
    ]
    vocab = resolve(VocabConfig, config_file=proposal["config"])
    records = resolve(PreprocessConfig, config_file=proposal["config"])
    train = resolve(TrainConfig, config_file=proposal["config"])
    assert vocab.output == records.vocab and records.output == train.data
    assert (vocab.lowercase, records.lowercase, train.batch_size) == (False, False, 4)
    assert vocab.duplicates == records.duplicates == "near" or records.duplicates == "exact"
    assert vocab.vocab_size == 4_000 and train.size == "tiny" and records.masking == "dynamic"
    for name, section in (("vocab", vocab), ("preprocess", records), ("train", train)):
        values = section.as_dict()
        for key, value in proposal["settings"][name].items():
            assert values[key] == (list(value) if isinstance(value, tuple) else value)
    assert proposal["words"] == 303 * 4 * 8 and proposal["documents"] == 303
    assert proposal["is_whole"] and proposal["duplicates"] == 3
    assert proposal["tokens"] >= proposal["words"]
    assert proposal["seconds"] > proposal["seconds_per_step"] > 0
    for line in (
        "3 documents equal",
        "too few to pretrain from scratch",
        "Latin 100.0%",
        "time here",
        "read as     text: a sentence per line, blank lines between documents",
        "first sentences: '",
    ):
        assert line in shown.getvalue()
    with pytest.raises(UsageError, match="exists; name another file"):
        propose_pretraining("news.txt.gz", console=Console(shown))


@pytest.mark.slow
def test_amounts_of_a_sample_are_scaled_to_the_corpus(tmp_path, monkeypatch):
    """Files that are not read count by their sizes, compressed as well as those that are."""
    monkeypatch.setattr("pipeline.proposal.corpus_facts._SAMPLE_BYTES", 100_000)
    files = []
    for number in range(4):
        path = tmp_path / f"{number}.txt.gz"
        write_corpus(path, 3_000, seed=number)
        files.append(FileInfo(str(path), path.stat().st_size))
    config = PreprocessConfig(input=(str(tmp_path / "*.gz"),), vocab="v", output="o")
    facts = look_at_corpus(config, files, look_at_text(config, files).layouts)
    assert not facts.sample.is_whole and facts.scale > 5 and facts.about == "about "
    assert facts.words == pytest.approx(4 * 3_000 * 4 * 8, rel=0.05)
    assert facts.documents == pytest.approx(4 * 3_000, rel=0.05)


def test_what_was_read_is_judged(tmp_path):
    path = tmp_path / "a.jsonl"
    blob = base64.b64encode(b"a text that nobody decoded, of some length" * 9).decode()
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ["A text.", blob] * 9))
    shown = io.StringIO()
    given = {"input": (str(path),), "vocab": "v", "output": "o"}
    _look([FileInfo(str(path), path.stat().st_size)], given, Console(shown))
    assert "first sentences: 'A text.'" in shown.getvalue()
    assert "base64 or hexadecimal digits" in shown.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "assignments", "error", "message"),
    [
        ("none.txt", None, (), UsageError, "none.txt"),
        ("a.txt", " \n", (), InputError, "a.txt: is empty"),
        ("a.jsonl", '{"body": "x"}\n', (), UsageError, "text"),
        ("a.txt", "text\n", ("finetune.epochs=1",), ConfigError, "init pretrain sets keys of"),
        ("a.txt", "text\n", ("train.width=8",), ConfigError, "width"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(
    name, content, assignments, error, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        propose_pretraining(name, assignments=assignments, console=Console(io.StringIO()))
    assert not list(tmp_path.glob("*.yaml"))


def test_a_folder_is_read_by_the_glob_of_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus" / "deep").mkdir(parents=True)
    (tmp_path / "corpus" / "deep" / "a.txt").write_text("A text.\n")
    read = []
    monkeypatch.setattr(pretraining, "match_files", lambda patterns: read.append(patterns) or [])
    monkeypatch.setattr(pretraining, "_look", lambda *given: read.append(given[1]) or 1 / 0)
    for source in ("corpus", "corpus/", str(tmp_path / "corpus")):
        said = io.StringIO()
        with pytest.raises(ZeroDivisionError):
            propose_pretraining(source, console=Console(said))
        (patterns, given) = read[-2:]
        assert patterns == (f"{source.rstrip('/')}/**.txt",)
        assert given["input"] == patterns
        assert f"{source}: is a folder; reading" in said.getvalue()


def test_weights_are_for_tasks_alone(tmp_path):
    (tmp_path / "a.txt").write_text("A text.\n")
    given = ["--from", str(tmp_path / "a.txt"), "--init", str(tmp_path)]
    ran = CliRunner().invoke(init, ["pretrain", *given])
    assert isinstance(ran.exception, UsageError) and "train --init" in str(ran.exception)
