"""`RunInference` with an exported model in a pipeline of one's own."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import constant_engine
import numpy as np
import pytest
from apache_beam.ml.inference.base import KeyedModelHandler, RunInference
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from behavior.exported_models import LIKELIHOOD, VOCAB
from constant_engine import CONSTANT

from bert_tf.base.errors import UsageError
from bert_tf.engines.predictor import row_checker
from bert_tf.engines.registry import ENGINES
from bert_tf.engines.token_ids import TokenIdsEngine
from pipeline.scoring.model_handler import TextModelHandler, row_characters

EXAMPLE = Path(__file__).parents[3] / "examples" / "beam_inference.py"
TASK = {"task": "classification", "labels": ["fine"], "columns": {"text": "body", "label": "l"}}
FINE = {"predicted_label": "fine", "predicted_score": 0.75}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINES, CONSTANT.name, CONSTANT)
    (tmp_path / "constant.txt").write_text("fine 0.75")
    (tmp_path / "task.json").write_text(json.dumps(TASK))
    return tmp_path


@pytest.mark.slow
def test_every_row_has_its_predictions_and_the_model_is_loaded_once(model, monkeypatch):
    loaded = []
    load = constant_engine.load
    monkeypatch.setattr(
        constant_engine, "load", lambda *given, **keys: loaded.append(given) or load(*given, **keys)
    )
    rows = [*(f"text {n}" for n in range(500)), {"body": "b", "n": 1}]
    with beam.Pipeline(FnApiRunner()) as pipeline:
        found = (
            pipeline
            | beam.Create(rows)
            | RunInference(TextModelHandler(model, max_batch_size=100))
            | beam.Map(lambda result: (str(result.example), result.inference))
        )
        assert_that(found, equal_to([(str(row), FINE) for row in rows]))
    assert len(loaded) == 1


@pytest.mark.parametrize("is_keyed", [False, True])
def test_only_the_row_that_cannot_be_predicted_fails(model, is_keyed):
    rows = ["river", None, *(f"text {n}" for n in range(50)), {"n": 1}, "late"]
    handler = TextModelHandler(model)
    elements = rows
    if is_keyed:
        handler, elements = KeyedModelHandler(handler), list(enumerate(rows))
    with beam.Pipeline(FnApiRunner()) as pipeline:
        found, failed = (
            pipeline | beam.Create(elements) | RunInference(handler).with_exception_handling()
        )
        texts = found | beam.Map(lambda each: (each[1] if is_keyed else each).example)
        bad = failed.failed_inferences | beam.FlatMap(lambda each: map(str, each[0]))
        assert_that(texts, equal_to([row for row in rows if isinstance(row, str)]), label="good")
        unusable = [
            str(each) for each, row in zip(elements, rows, strict=True) if not isinstance(row, str)
        ]
        assert_that(bad, equal_to(unusable), label="bad")


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """A model of likelihoods that finds all tokens equally likely, of sequences of 12 tokens."""
    (tmp_path / "task.json").write_text(json.dumps(LIKELIHOOD))
    (tmp_path / "vocab.txt").write_text("".join(f"{entry}\n" for entry in VOCAB))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))

    def run(inputs):
        return {"logits": np.zeros((len(inputs["input_mask"]), 1, len(VOCAB)), np.float32)}

    def load_model(self):
        return replace(row_checker(tmp_path), engine=TokenIdsEngine(tmp_path, run))

    monkeypatch.setattr(TextModelHandler, "load_model", load_model)
    return tmp_path


def test_only_a_text_of_too_many_tokens_or_none_fails(judge):
    good = [{"text": f"a {letter}", "other": "b"} for letter in "abcdefgh"]
    bad = [{"text": "the river " * 20, "other": "b"}, {"text": "a", "other": " "}]
    rows = [*good[:5], *bad, *good[5:]]
    with beam.Pipeline(FnApiRunner()) as pipeline:
        found, failed = (
            pipeline
            | beam.Create(rows)
            | RunInference(TextModelHandler(judge)).with_exception_handling()
        )
        texts = found | beam.Map(lambda each: each.example["text"])
        reasons = failed.failed_inferences | beam.Map(
            lambda each: (len(each[0]), str(each[1][1]).partition(": ")[2].rstrip("')"))
        )
        assert_that(texts, equal_to([row["text"] for row in good]), label="good")
        too_long = "text is longer than the model reads: by 30 tokens"
        assert_that(reasons, equal_to([(1, too_long), (1, "text has no token")]), label="bad")


def test_keys_stay_with_their_rows(model):
    with beam.Pipeline(FnApiRunner()) as pipeline:
        found = (
            pipeline
            | beam.Create([(n, f"text {n}") for n in range(5)])
            | RunInference(KeyedModelHandler(TextModelHandler(model)))
            | beam.MapTuple(lambda key, result: (key, result.example, result.inference))
        )
        assert_that(found, equal_to([(n, f"text {n}", FINE) for n in range(5)]))


def test_rows_that_wait_only_for_a_time_are_batched_by_length(model):
    handler = TextModelHandler(model, max_batch_duration_secs=1)
    assert handler.batch_elements_kwargs()["length_fn"] is row_characters
    assert "length_fn" not in TextModelHandler(model).batch_elements_kwargs()
    assert row_characters("abc") == row_characters({"a": "ab", "n": 7, "b": "c"}) == 3


@pytest.mark.parametrize("row", [None, float("nan"), b"a"])
def test_a_row_that_is_no_text_is_named(model, row):
    handler = TextModelHandler(model)
    assert handler.get_num_bytes(["x", row]) == 1
    with pytest.raises(UsageError, match=r"rows\[1\]: is neither a text nor a mapping"):
        list(handler.run_inference(["x", row], handler.load_model()))


@pytest.mark.slow
def test_the_example_scores_lines(model, tmp_path):
    """`examples/beam_inference.py`, as it stands."""
    (tmp_path / "texts.txt").write_text("One.\n\nTwo.\n")
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    paths = {"model": model, "input": tmp_path / "texts.txt", "output": tmp_path / "scored"}
    example.main([*(f"--{name}={path}" for name, path in paths.items()), "--runner=FnApiRunner"])
    lines = [line for path in tmp_path.glob("scored*") for line in path.read_text().splitlines()]
    found = sorted(map(json.loads, lines), key=lambda row: row["text"])
    assert found == [{"text": text, **FINE} for text in ("One.", "Two.")]
