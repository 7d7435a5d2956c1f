"""A trial decides among engines where a job is large enough to pay for it."""

from __future__ import annotations

import dataclasses
import io
import sys
from types import SimpleNamespace

import pytest
from constant_engine import CONSTANT, ConstantEngine

from bert_tf.base.checksums import write_sums
from bert_tf.base.console import Console
from bert_tf.base.errors import InputError
from bert_tf.config.sections import RunnerConfig, ScoreConfig
from bert_tf.engines import registry
from pipeline.jobs import scoring
from pipeline.jobs.scoring import choose_engine, describe_candidates, engine_candidates
from pipeline.scoring.columns import ScoringColumns
from pipeline.scoring.plan import ScoringPlan
from pipeline.scoring.tables import list_tables

LOCAL = RunnerConfig()
ROWS = 64


class Clock:
    """Shows a time that only this test advances."""

    def __init__(self):
        self.seconds = 0.0

    def perf_counter(self):
        """See `time.perf_counter`; each look at it takes a millisecond."""
        self.seconds += 0.001
        return self.seconds


class SlowEngine(ConstantEngine):
    """Takes its time."""

    def __init__(self, folder, clock):
        super().__init__(folder)
        self._clock = clock

    def predict(self, columns, **options):
        """See `Engine.predict`."""
        self._clock.seconds += 0.1
        return super().predict(columns, **options)


@pytest.fixture
def config(monkeypatch, tmp_path) -> ScoreConfig:
    """Return the config of a model that two engines run, the preferred one being slow."""
    clock = Clock()
    monkeypatch.setattr("bert_tf.engines.choice.time", clock)
    slow = SimpleNamespace(load=lambda folder, **_: SlowEngine(folder, clock))
    monkeypatch.setitem(sys.modules, "slow_engine", slow)
    fast = dataclasses.replace(CONSTANT, takes_token_ids=True)
    entries = {
        "slow": dataclasses.replace(fast, name="slow", module="slow_engine"),
        "constant": fast,
    }
    monkeypatch.setattr("bert_tf.engines.registry.ENGINES", entries)
    monkeypatch.setattr(scoring, "_TRIAL_ROWS", ROWS)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "constant.txt").write_text("fine 0.75")
    write_sums(tmp_path / "model", ["constant.txt"])
    return ScoreConfig(model=str(tmp_path / "model"), input=("a.csv",), output="b.csv")


@pytest.fixture
def choose(config, tmp_path):
    """Return a function: the engine it chooses for a table of so many rows, and its output."""

    def run(candidates, rows):
        (tmp_path / "a.csv").write_text("text\n" + "".join(f"row {n}\n" for n in range(rows)))
        tables, _ = list_tables((str(tmp_path / "a.csv"),), str(tmp_path / "b.csv"))
        plan = ScoringPlan(
            model="model",
            engine=CONSTANT,
            columns=ScoringColumns(sources={"text": "text"}, fields=()),
            tables=tuple(tables),
            is_folder=False,
            parts=tmp_path / "parts",
            block_rows=config.block_rows,
            limit=0,
            batch_tokens=64,
        )
        log = io.StringIO()
        plan = dataclasses.replace(plan, model=config.model)
        return choose_engine(candidates, plan, LOCAL, Console(log)).name, log.getvalue()

    return run


def test_the_fastest_in_a_trial_is_taken(config, choose):
    candidates = engine_candidates(config, {}, LOCAL)
    assert describe_candidates(candidates) == (
        "slow, or the fastest of slow, constant in a trial if the first block has 64 rows"
    )
    name, shown = choose(candidates, ROWS)
    assert name == "constant"
    assert "engines tried: slow " in shown
    assert shown.count(" rows/s") == 2


def test_few_rows_are_not_worth_a_trial(config, choose):
    assert choose(engine_candidates(config, {}, LOCAL), ROWS - 1) == ("slow", "")


@pytest.mark.parametrize(
    ("values", "runner"),
    [
        ({"limit": ROWS - 1}, LOCAL),
        ({"block_rows": ROWS - 1}, LOCAL),
        ({}, RunnerConfig(runner="flink")),
    ],
    ids=["limit", "blocks", "runner"],
)
def test_no_trial_is_announced_where_none_can_take_place(config, values, runner):
    candidates = engine_candidates(dataclasses.replace(config, **values), {}, runner)
    assert describe_candidates(candidates) == "slow"


def test_on_other_machines_what_is_certain_there_is_taken(config, monkeypatch):
    extra = dataclasses.replace(registry.ENGINES["slow"], is_extra=True)
    monkeypatch.setitem(registry.ENGINES, "slow", extra)
    elsewhere = RunnerConfig(runner="flink")
    (chosen,) = engine_candidates(config, {}, elsewhere)
    assert chosen.name == "constant"
    (asked,) = engine_candidates(dataclasses.replace(config, engine="slow"), {}, elsewhere)
    assert asked.name == "slow"
    saved = {"engine": "slow", "precision": "float32"}
    (kept,) = engine_candidates(config, saved, elsewhere)
    assert kept.name == "slow"


def test_an_earlier_run_s_engine_is_taken_again_if_the_config_allows_it(config):
    saved = {"engine": "constant", "precision": "float32"}
    (kept,) = engine_candidates(config, saved, LOCAL)
    assert kept.name == "constant"
    (asked,) = engine_candidates(dataclasses.replace(config, engine="slow"), saved, LOCAL)
    assert asked.name == "slow"


def test_a_damaged_model_is_refused_before_it_is_tried(config, choose, tmp_path):
    (tmp_path / "model" / "constant.txt").write_text("fine 0.74")
    with pytest.raises(InputError, match=r"constant\.txt: has changed since it was written"):
        choose(engine_candidates(config, {}, LOCAL), ROWS)
