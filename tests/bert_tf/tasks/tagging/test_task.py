"""Tagging from files to entities: learned, served and measured."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from behavior.tasks import check_exported_predictions, check_task

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import EvaluateConfig
from bert_tf.engines.registry import usable_engines
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.tagging.task import TaggingTask
from bert_tf.weights.model_directory import read_model_directory
from pipeline.cli.main import main

GOLDEN = Path(__file__).parents[3] / "golden" / "models"

SENTENCES = [
    "Paris/B-loc is/O the/O capital/O of/O France/B-loc ./O",
    "where/O is/O Lima/B-loc ,/O Peru/B-loc ?/O",
    "Lima/B-loc Lima/I-loc was/O not/O the/O film/B-work of/I-work China/I-work ./O",
    "what/O a/O very/O very/O very/O very/O very/O very/O very/O very/O good/O film/B-work",
]


def pairs(sentence):
    return [tuple(word.rsplit("/", 1)) for word in sentence.split()]


def write_conll(path, sentences=SENTENCES):
    lines = ["".join(f"{word}\t{tag}\n" for word, tag in pairs(line)) for line in sentences]
    path.write_text("\n".join(lines))
    return str(path)


def write_tokens(path, sentences=SENTENCES):
    with path.open("w") as stream:
        for sentence in sentences:
            words, tags = zip(*pairs(sentence), strict=True)
            stream.write(json.dumps({"tokens": words, "tags": tags}) + "\n")
    return str(path)


def write_entities(path):
    rows = [
        ("Paris is the capital of France.", [(0, 5, "loc"), (24, 30, "loc")]),
        ('where is "Lima\\",\tPeru?', [(10, 22, "loc")]),
        ("the film of China " + "was very " * 12, [(4, 17, "work")]),
        ("good", []),
    ]
    with path.open("w") as stream:
        for text, spans in rows:
            entities = [dict(zip(("start", "end", "label"), span, strict=True)) for span in spans]
            stream.write(json.dumps({"text": text, "entities": entities}) + "\n")
    return str(path)


WRITERS = {"conll": write_conll, "tokens": write_tokens, "entities": write_entities}


@pytest.fixture
def learned(small_config, tmp_path, quiet_console):
    """Make a task and its rows from a file."""

    def make(path, **options):
        config = small_config(
            task="tagging", train=path, max_seq_length=8, window_stride=2, **options
        )
        return TaggingTask.from_training(config, quiet_console)

    return make


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "scheme"),
    [  # rows of conll and tokens are alike
        *(("conll", "auto"), ("tokens", "bio"), ("conll", "plain")),
        *(("entities", scheme) for scheme in ("auto", "bilou", "plain")),
    ],
)
def test_task(learned, tokenizer, tmp_path, form, scheme):
    ending = ".conll" if form == "conll" else ".jsonl"
    path = WRITERS[form](tmp_path / f"rows{ending}")
    check_task(*learned(path, scheme=scheme), tokenizer)


def test_the_loss_is_that_of_huggingface(learned, tmp_path):
    """Its mean over the tokens that have a label, on logits that it computed."""
    expected = np.load(GOLDEN / "token_classification" / "expected.npz")
    task, _ = learned(write_conll(tmp_path / "rows.conll"))
    mask = expected["input/input_mask"].astype(np.float32)
    batch = {"tag": tf.constant(expected["input/labels"]), "tag_weights": tf.constant(mask)}
    outputs = {"logits": tf.constant(expected["output/logits"])}
    loss = task.loss_parts(outputs, batch).losses["loss"] / task.weights(batch)["loss"]
    np.testing.assert_allclose(loss, expected["loss"], rtol=1e-5)


def test_what_is_glued_to_a_word_learns_that_it_goes_on(learned, pieces, tmp_path):
    task, source = learned(
        write_conll(tmp_path / "a.conll", ["Adas/B-per in/O don't/B-per Lon-don/O"])
    )
    data = task.encode(source, pieces, training=True)
    batch = data.batch(np.arange(len(data.rows)), length=8, pad_id=0)
    assert task.labels == ("O", "B-per", "I-per")
    tokens = [
        (pieces.vocab[word], int(tag), weight)
        for words, tags, weights in zip(
            *(batch[name] for name in ("input_word_ids", "tag", "tag_weights")), strict=True
        )
        for word, tag, weight in zip(words, tags, weights, strict=True)
        if weight
    ]
    goes_on = [("don", 1, 1), ("'", 2, 1), ("t", 2, 1)]
    tenth = pytest.approx(0.1)  # parts of a word outside
    outside = [("lon", 0, 1), ("[UNK]", 0, tenth), ("don", 0, tenth)]
    assert tokens == [("ada", 1, 1), ("in", 0, 1), *goes_on, *outside]


def test_labels_are_those_of_the_training_rows(learned, tmp_path):
    plain, _ = learned(write_conll(tmp_path / "a.conll", ["a/VB b/NN c/NN"]))
    assert (plain.scheme, plain.labels) == ("plain", ("NN", "VB"))
    first, _ = learned(write_conll(tmp_path / "b.conll", ["a/PER b/O c/LOC"]))
    assert (first.scheme, first.labels) == ("plain", ("O", "LOC", "PER"))
    whole, _ = learned(write_conll(tmp_path / "c.conll", ["a/U-x b/O"]))
    assert (whole.scheme, whole.labels) == ("bilou", ("O", "B-x", "I-x", "L-x", "U-x"))
    with pytest.raises(InputError, match=r"c.conll: 'O' is the tag of every word; tagging needs"):
        learned(write_conll(tmp_path / "c.conll", ["a/O b/O"]))


def test_rows_of_an_unknown_type_are_rejected_and_the_others_described(
    learned, tmp_path, quiet_console
):
    task, source = learned(write_conll(tmp_path / "a.conll"))
    rows = ["Lima/B-loc is/O", "Peru/B-god is/O", "China/I-loc is/O"]
    read = task.read(write_conll(tmp_path / "b.conll", rows), quiet_console)
    assert len(read) == 2 and len(read.rejects) == 1
    assert list(task.describe({"training": source, "evaluation": read})) == [
        "  tags: bio, 5 labels; entities by label:",
        "  label    training  evaluation",
        "  loc             5           2",
        "  work            2           0",
    ]


def test_doubtful_labels_are_named(small_config, tmp_path):
    def warnings(sentences):
        path = write_conll(tmp_path / "a.conll", sentences)
        log = io.StringIO()
        TaggingTask.from_training(small_config(task="tagging", train=path), Console(log))
        return log.getvalue()

    case = warnings(["a/B-Loc b/O", "c/B-loc d/I-loc e/B-loc"])
    assert "'Loc' (1 entity, line 1) and 'loc' (2 entities, first at line 4) are diff" in case
    assert "'Loc' (1 entity, line 1) is the only entity of its label" in case
    words = " ".join(f"{number}/w{number}" for number in range(101))
    assert "a.conll: 101 labels of 101 words; is it the right column?" in warnings([words])


def test_rows_are_held_out_with_their_rarest_label(learned, tmp_path):
    sentences = ["a/B-loc b/B-x", "c/B-loc", "d/O", "a/B-loc b/B-x"]
    task, source = learned(write_conll(tmp_path / "a.conll", sentences))
    groups = task.groups(source)
    assert groups.keys == ["a b", "c", "d", "a b"]
    assert groups.classes == ["x", "loc", "", "x"]
    kept, held_out = source.split(np.array([False, True, True, False]))
    assert kept.texts == ["a b", "a b"] and held_out.texts == ["c", "d"]
    assert kept.tags == ["B-loc", "B-x"] * 2 and held_out.tags == ["B-loc", "O"]
    assert held_out.mark_lines == [4, 6] and held_out.offsets.tolist() == [0, 1, 2]


def test_evaluation_may_name_other_columns(learned, tmp_path, quiet_console):
    task, _ = learned(write_conll(tmp_path / "a.conll"))
    path = tmp_path / "b.jsonl"
    path.write_text('{"words": ["Lima"], "ner": ["B-loc"]}\n')
    values = {"model": "m", "data": str(path), "output": "x"}
    config = build_section(
        EvaluateConfig, {**values, "tokens_column": "words", "tag_column": "ner"}
    )
    assert task.with_columns(config).read(str(path), quiet_console).tags == ["B-loc"]
    wrong = build_section(EvaluateConfig, {**values, "answer_column": "words"})
    with pytest.raises(UsageError, match="--answer-column does not apply to m: .* tokens and tag"):
        task.with_columns(wrong)


def test_token_classifiers_of_other_libraries_are_taggers(tmp_path):
    """The labels are those of their config.json, in its order."""
    source = tmp_path / "source"
    shutil.copytree(GOLDEN / "token_classification", source)
    config = json.loads((source / "config.json").read_text())
    names = ["B-per", "I-per", "O", "B-loc", "I-loc"]
    config["id2label"] = {str(number): name for number, name in enumerate(names)}
    (source / "config.json").write_text(json.dumps(config))
    task = TaggingTask.from_weights(read_model_directory(source))
    assert task is not None and (task.scheme, task.labels) == ("bio", tuple(names))
    assert task_from_settings(json.loads(json.dumps(task.settings())), "m") == task
    assert TaggingTask.from_weights(read_model_directory(GOLDEN / "classification")) is None


@pytest.mark.slow  # trains to the end
def test_a_few_sentences_are_learned_by_heart_and_scored(small_model, tmp_path):
    """A file goes through training and export to scored rows; both evaluations are alike."""
    train = write_conll(tmp_path / "train.conll")
    run, model = str(tmp_path / "run"), str(tmp_path / "model")
    run_command(
        f"finetune tagging --train {train} --eval {train} --init {small_model} --output {run} "
        "--epochs 40 --batch-size 8 --learning-rate 3e-3 --max-seq-length 16 --window-stride 4 "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run_command(f"export --run {run} --output {model}")
    measured = []
    for name in (run, model):
        output = tmp_path / f"measured-{Path(name).name}"
        run_command(f"evaluate --model {name} --data {train} --output {output}")
        metrics = json.loads((output / "metrics.json").read_text())
        metrics.pop("loss", None)
        lines = (output / "predictions.jsonl").read_text().splitlines()
        measured.append((metrics, [json.loads(line) for line in lines]))
    check_exported_predictions(tmp_path / "measured-run", tmp_path / "measured-model")
    assert measured[0][0] == measured[1][0]
    assert measured[0][0]["f1"] == measured[0][0]["accuracy"] == 1.0
    for row in measured[1][1]:
        found = row["predicted_entities"]
        assert row["entities"] == [
            {name: entity[name] for name in ("start", "end", "label")} for entity in found
        ]

    new = tmp_path / "new.csv"
    new.write_text('id,text\n1,"Paris is the capital of France."\n2,good\n')
    run_command(f"score --model {model} --input {new} --output {tmp_path / 'scored.csv'}")
    with (tmp_path / "scored.csv").open() as stream:
        first, second = (json.loads(row["predicted_entities"]) for row in csv.DictReader(stream))
    assert [(item["label"], item["text"], item["start"], item["end"]) for item in first] == [
        ("loc", "Paris", 0, 5),
        ("loc", "France", 24, 30),
    ]
    assert all(0.5 < item["score"] <= 1.0 for item in first)
    assert second == []
    assert "# Tagger of words\n" in (tmp_path / "model" / "README.md").read_text()
    for engine in usable_engines("auto", model):
        check_scored_words(tmp_path, model, measured[0][1], engine.name)


def check_scored_words(folder, model, measured, engine):
    """`score` takes the files of `finetune`, and predicts as `evaluate` has measured."""
    sources = [Path(write_conll(folder / "new.conll")), Path(write_tokens(folder / "new.jsonl"))]
    output = folder / f"words-{engine}"
    run_command(
        f"score --model {model} --input {sources[0]} --input {sources[1]} --output {output} "
        f"--engine {engine} --precision float32"
    )
    scored = (output / "new.conll").read_text()
    assert scored == "".join(
        f"{line}\t{line.split()[1]}\n" if line else "\n"  # every word was learned by heart
        for line in sources[0].read_text().splitlines()
    )
    rows = [json.loads(line) for line in (output / "new.jsonl").read_text().splitlines()]
    assert [row["predicted_token_tags"] for row in rows] == [row["tags"] for row in rows]
    for row, expected in zip(rows, measured, strict=True):
        assert row["predicted_entities"] == [
            {**entity, "score": pytest.approx(entity["score"], abs=1e-5)}
            for entity in expected["predicted_entities"]
        ]


def run_command(line):
    with pytest.raises(SystemExit) as exited:
        main(line.split())
    assert exited.value.code == 0
