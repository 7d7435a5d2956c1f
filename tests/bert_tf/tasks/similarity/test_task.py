"""Sentence embeddings from rows to a model that embeds, searches and scores."""

import io
import itertools
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from behavior.tasks import check_exported_predictions, check_task

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.tasks.base.review import review_rows
from bert_tf.tasks.similarity.task import SimilarityTask
from bert_tf.weights.sentence_transformers import read_recipe, write_recipe

COLORS = ["red", "blue", "green"]
CITIES = ["paris", "lima", "shanghai"]
FORMS = {
    "pairs": {},
    "several negatives": {"negative_column": ("negative", "other")},
    "triplets": {"loss": "triplet"},
    "cosine triplets": {"loss": "triplet", "triplet_distance": "cosine", "triplet_margin": 0.5},
    "scored pairs": {"loss": "cosent"},
}


def rows_of(kinds):
    """Texts of a kind match, whatever else they say; other kinds do not."""
    for number, (first, second) in enumerate(itertools.permutations(kinds, 2)):
        film, city = ("film", "city") if number % 2 else ("city", "film")
        yield {
            "anchor": f"the {film} is {first}",
            "positive": f"it was {first} ." if number else f"{first} ?",
            "negative": f"it was {second} .",
            "other": f"a {city} of {second}",
            "text": f"the {film} is {first}",
            "text_pair": f"a {city} of {second if number % 3 else first}",
            "score": str(0.5 * (number % 3)),
        }


@pytest.fixture
def write(tmp_path):
    def write_rows(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write_rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "pooling"), [*((form, "mean") for form in FORMS), ("pairs", "max")]
)
def test_it_does_what_every_task_does(small_config, write, tokenizer, form, pooling):
    path = write("train.jsonl", [*rows_of(COLORS), *rows_of(CITIES)])
    config = small_config(
        task="similarity", train=path, max_seq_length=12, pooling=pooling, **FORMS[form]
    )
    task, source = SimilarityTask.from_training(config, Console(io.StringIO()))
    measured = check_task(task, source, tokenizer, metrics=config.own_metrics)
    assert len(measured.predictions) == 12
    assert all(-1 <= row["predicted_similarity"] <= 1 for row in measured.predictions)


def test_it_starts_with_the_vectors_of_the_initial_model(
    small_config, small_model, write, tmp_path
):
    path = write("train.jsonl", rows_of(COLORS))
    folder = tmp_path / "init"
    folder.mkdir()
    recipe = EmbeddingRecipe(pooling="cls", normalize=True, max_seq_length=9)
    write_recipe(folder, recipe, hidden_size=48)
    task, _ = SimilarityTask.from_training(
        small_config(task="similarity", train=path, init=str(folder)), Console(io.StringIO())
    )
    assert (task.pooling, task.normalize, task.max_seq_length) == ("cls", True, 64)
    task, _ = SimilarityTask.from_training(
        small_config(task="similarity", train=path), Console(io.StringIO())
    )
    assert (task.pooling, task.normalize) == ("mean", False)


def test_scores_are_numbers(small_config, write):
    rows = [*rows_of(COLORS), {"text": "a", "text_pair": "b", "score": "much"}]
    config = small_config(task="similarity", loss="cosent", train=write("t.jsonl", rows))
    _, source = SimilarityTask.from_training(config, Console(io.StringIO()))
    assert [str(row) for row in source.rejects] == [
        f"{config.train}:7: label is not a finite number ('much')"
    ]
    config = small_config(task="similarity", loss="cosent", train=write("t.jsonl", rows[-1:]))
    with pytest.raises(InputError, match="not a finite number.*column 'score' is read"):
        SimilarityTask.from_training(config, Console(io.StringIO()))


def test_rows_with_the_same_anchor_are_held_out_together(small_config, write):
    rows = [*rows_of(COLORS), *rows_of(COLORS)]
    config = small_config(task="similarity", train=write("t.jsonl", rows))
    task, source = SimilarityTask.from_training(config, Console(io.StringIO()))
    keys = task.groups(source).keys
    assert keys == [row["anchor"] for row in rows]


@pytest.mark.parametrize("name", ["label", "is_duplicate", "score", "relatedness_score"])
def test_pairs_that_are_labeled_as_no_matches_are_refused(small_config, write, name):
    """Otherwise those with 0 would be learned as matches."""

    def read(labels, **values):
        rows = [{"anchor": "a", "positive": "b", name: label} for label in labels]
        path = write("train.jsonl", rows)
        config = small_config(task="similarity", train=path, max_seq_length=12, **values)
        stream = io.StringIO()
        task, table = SimilarityTask.from_training(config, Console(stream))
        review_rows(task, table, Console(stream))
        return "".join(line for line in stream.getvalue().splitlines() if "anchor: " not in line)

    for labels in ([0, 1], [True, False], ["1.0", "0.0"]):
        with pytest.raises(
            UsageError, match=f"{name!r} is not used: .*--loss cosent .*--label-col"
        ):
            read(labels)
    assert "the loss takes every row as a match; --loss cosent learns" in read([0.5, 3])
    assert read([1, 1]) == ""
    truths = {"text_column": "anchor", "text_pair_column": "positive", "label_column": name}
    assert read(["True", "no"], loss="cosent", **truths) == ""
    cosent = {"text_column": "anchor", "text_pair_column": "positive", "label_column": name}
    assert read([0, 1], loss="cosent", **cosent) == ""


def check_measures(folder, best):
    """An exported model is measured like its run, and its run like the best model in training."""
    of_run, of_model = (
        json.loads((folder / name / "metrics.json").read_text())
        for name in ("measured", "measured-export")
    )
    assert of_run.pop("ceiling") == of_model.pop("ceiling")
    errors = of_run.pop("standard_errors")
    assert errors == pytest.approx(of_model.pop("standard_errors"), rel=1e-4)
    assert of_run == pytest.approx(of_model, rel=1e-4)
    assert of_run["loss"] == pytest.approx(best["loss"], rel=1e-4)


def check_vectors(folder, texts):
    """A run, its exports and the signature of the SavedModel give the same vectors."""
    vectors = [
        pq.read_table(folder / f"{name}.parquet")["embedding"].to_pylist()
        for name in ("run", "model", "library")
    ]
    np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-6)
    np.testing.assert_allclose(vectors[2], vectors[0], atol=1e-6)
    served = tf.saved_model.load(str(folder / "model")).signatures["embed"]
    found = served(text=tf.constant(texts))["embedding"]
    np.testing.assert_allclose(found, vectors[0], atol=1e-5)


@pytest.mark.slow  # fine-tunes, exports, embeds, searches and scores
def test_from_training_rows_to_vectors_and_scored_pairs(
    write, small_model, tmp_path, run_command, capsys
):
    write("train.jsonl", [*rows_of(COLORS), *rows_of(CITIES)] * 4)
    write("dev.jsonl", [*rows_of(COLORS), *rows_of(CITIES)])
    texts = ["the film is red", "paris ?"]
    write("texts.jsonl", [{"anchor": text} for text in texts])
    write(
        "new.jsonl", [{"anchor": "it is red", "positive": "red ."}, {"anchor": "", "positive": "a"}]
    )
    run_command(
        f"finetune similarity --train train.jsonl --eval dev.jsonl --init {small_model} "
        "--negative-column negative --output run --max-seq-length 16 --pooling cls --epochs 6 "
        "--batch-size 8 --learning-rate 3e-3 "
        "--set finetune.precision=float32 --set finetune.checkpoint_minutes=0"
    )
    run_command("evaluate --model run --data dev.jsonl --output measured")
    run_command("export --run run --output model")
    run_command("evaluate --model model --data dev.jsonl --output measured-export")
    check_exported_predictions(tmp_path / "measured", tmp_path / "measured-export")
    run_command("score --model model --input new.jsonl --output scored.jsonl")
    run_command("export --run run --format sentence-transformers --output library")
    capsys.readouterr()
    for model in ("run", "model", "library"):
        run_command(
            f"embed --model {model} --input texts.jsonl --output {model}.parquet "
            "--text-column anchor"
        )
        assert "not sentence embeddings" not in capsys.readouterr().err
    run_command("search --queries texts.jsonl --corpus run.parquet --model run --output s.jsonl")

    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    best = manifest["metrics"]["best"]
    assert best["triplet_accuracy"] > 0.8 and best["mrr@10"] > 0.5
    recipe = EmbeddingRecipe(pooling="cls", max_seq_length=16, is_trained=True)
    for folder in ("run/best", "model", "library"):
        assert read_recipe(tmp_path / folder, max_positions=64) == recipe
        assert "modules.json" in (tmp_path / folder / "SHA256SUMS").read_text()
    check_measures(tmp_path, best)
    check_vectors(tmp_path, texts)
    (scored,) = map(json.loads, (tmp_path / "scored.jsonl").read_text().splitlines())
    assert scored.keys() == {"anchor", "positive", "predicted_similarity"}
    (reject,) = (tmp_path / "scored.jsonl.rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["reason"] == "column 'anchor' is empty"
    nearest = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert {row["corpus_row"] for row in nearest if row["rank"] == 1} == {0, 1}
    card = (tmp_path / "model" / "README.md").read_text()
    assert "\n---\n\n# Sentence embedding model\n" in card
    assert "\npipeline_tag: sentence-similarity\n" in card
    assert "[CLS] vectors of a BERT" not in card
