"""Engines and precisions, the likely fastest first."""

import dataclasses
import json

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.base.gpus import Gpu
from bert_tf.engines import choice
from bert_tf.engines.choice import (
    ChosenEngine,
    measured_speeds,
    possible_engines,
    trial_candidates,
)
from bert_tf.engines.probes import ProbesDifferError
from bert_tf.engines.registry import EngineEntry

PRECISE = EngineEntry(
    name="precise", module="json", packages=("json",), model_file="m", takes_token_ids=True
)
BOTH = EngineEntry(
    name="both",
    module="json",
    packages=("json",),
    model_file="m",
    precisions=("float32", "bfloat16"),
    takes_token_ids=True,
)
EXTRA = dataclasses.replace(BOTH, name="extra", is_extra=True)
TEXTS = EngineEntry(name="texts", module="json", packages=("json",), model_file="m")


def names(engines: list[ChosenEngine]) -> list[str]:
    return [chosen.name for chosen in engines]


@pytest.fixture
def model(monkeypatch, tmp_path):
    entries = {entry.name: entry for entry in (PRECISE, BOTH, TEXTS)}
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", entries)
    (tmp_path / "m").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("has_bfloat16", "precision", "expected"),
    [
        (True, "auto", ["both bfloat16", "precise", "both float32", "texts"]),
        (False, "auto", ["precise", "both float32", "texts"]),
        (True, "float32", ["precise", "both float32", "texts"]),
        (False, "bfloat16", ["both bfloat16"]),
    ],
)
def test_bfloat16_comes_first_where_the_processor_has_it(
    model, monkeypatch, has_bfloat16, precision, expected
):
    monkeypatch.setattr(choice, "has_bfloat16", lambda: has_bfloat16)
    assert names(possible_engines("auto", precision, model)) == expected


def test_what_is_compared_is_computed_in_float32_unless_asked_otherwise(model, monkeypatch):
    monkeypatch.setattr(choice, "has_bfloat16", lambda: True)
    task = {"task": "likelihood", "columns": {"text": "text", "text_pair": None}}
    (model / "task.json").write_text(json.dumps(task))
    assert names(possible_engines("auto", "auto", model)) == ["precise", "both float32", "texts"]
    assert names(possible_engines("auto", "bfloat16", model)) == ["both bfloat16"]


def test_int8_is_first_where_the_model_was_exported_with_it(model, monkeypatch):
    entry = dataclasses.replace(BOTH, precisions=("float32", "int8"), int8_file="m8")
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", {"both": entry})
    monkeypatch.setattr(choice, "has_bfloat16", lambda: True)
    assert names(possible_engines("auto", "auto", model)) == ["both float32"]
    with pytest.raises(UsageError, match="has no graph of 8-bit integers for both; make one"):
        possible_engines("auto", "int8", model)
    (model / "m8").touch()
    assert entry.reads("m8")
    assert names(possible_engines("auto", "auto", model)) == ["both int8", "both float32"]
    assert names(possible_engines("auto", "float32", model)) == ["both float32"]


def test_on_other_machines_float32_and_what_is_no_extra_come_first(model, monkeypatch):
    """They may have neither this processor nor the packages of this machine."""
    entries = {entry.name: entry for entry in (EXTRA, TEXTS)}
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", entries)
    monkeypatch.setattr(choice, "has_bfloat16", lambda: True)

    def possible(engine, precision):
        return names(possible_engines(engine, precision, model, is_elsewhere=True))

    assert possible("auto", "auto") == ["texts", "extra float32", "extra bfloat16"]
    assert possible("extra", "auto") == ["extra float32", "extra bfloat16"]
    assert possible("auto", "bfloat16") == ["extra bfloat16"]


def test_a_precision_that_an_engine_lacks_is_refused(model):
    with pytest.raises(UsageError, match="not with precise, which supports float32; take that"):
        possible_engines("precise", "bfloat16", model)


def test_a_trial_is_among_the_best_precisions_of_engines_that_take_token_ids(model, monkeypatch):
    monkeypatch.setattr(choice, "has_bfloat16", lambda: True)
    possible = possible_engines("auto", "auto", model)
    assert names(trial_candidates(possible)) == ["both bfloat16", "precise"]
    texts = possible_engines("texts", "auto", model)
    assert names(trial_candidates(texts)) == ["texts"]


@pytest.mark.parametrize(
    ("capability", "first"), [((9, 0), "cuda bfloat16"), ((7, 5), "cuda float16")]
)
def test_a_gpu_is_taken_alone_in_16_bits(model, monkeypatch, capability, first):
    of_gpus = dataclasses.replace(
        BOTH, name="cuda", precisions=("float32", "bfloat16", "float16"), is_of_gpus=True
    )
    entries = {entry.name: entry for entry in (BOTH, TEXTS, of_gpus)}
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", entries)
    monkeypatch.setattr(choice, "nvidia_gpus", lambda: [Gpu(capability=capability)])
    monkeypatch.setattr(choice, "has_bfloat16", lambda: True)
    assert names(possible_engines("auto", "auto", model)) == [first, "cuda float32"]
    assert names(possible_engines("auto", "float32", model)) == ["cuda float32"]
    assert names(possible_engines("both", "auto", model))[0] == "both bfloat16"


class Loader:
    """Stands in for an engine that is as the export was, or is not."""

    def __init__(self, *, differs: bool):
        self.differs = differs

    def load(self, folder, *, threads):
        if self.differs:
            raise ProbesDifferError(f"{folder}: differs")
        return self

    def predict(self, columns, *, batch_tokens=0):
        return {}


def test_an_engine_with_other_scores_is_not_chosen_and_none_is_an_error(caplog):
    columns = {"text": ["a"] * 4}
    engines = [Loader(differs=True), Loader(differs=False), Loader(differs=True)]
    first, second, third = measured_speeds(engines, "model", columns, batch_tokens=64)
    assert first == third == 0 < second
    assert caplog.text.count("model: differs") == 2
    with pytest.raises(UsageError, match="model: differs"):
        measured_speeds(engines[::2], "model", columns, batch_tokens=64)
