"""The choice of batch size, learning rate, epochs and early stop by the number of rows."""

from __future__ import annotations

import dataclasses
import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.config.bert import SIZES, sized_config
from bert_tf.config.section import former_defaults
from bert_tf.tasks.registry import TASKS, finetune_config
from bert_tf.tasks.running.recipe import FEW_ROWS, choose_recipe, with_recipe

BASE = sized_config("base", 100)
PATHS = {"train": "t.csv", "init": "m", "output": "o"}
FORMER = {"epochs": 3.0, "batch_size": 32, "learning_rate": 5e-5, "early_stop_loss": 0.0}


def recipe_of(rows, *, model=BASE, length=128, per_row=1.0, given=(), **more):
    return choose_recipe(
        model,
        max_seq_length=length,
        rows=rows,
        sequences_per_row=per_row,
        chosen_by_user=dict(given),
        **more,
    )


def resolved(rows, *, evaluated=True, unlabeled=None, windows=1, task="classification", **values):
    """Return the config of a fine-tuning on so many rows, with all its values, and its output."""
    shown = io.StringIO()
    counts = SimpleNamespace(
        train=SimpleNamespace(source=range(rows), rows=range(windows * (rows + (unlabeled or 0)))),
        unlabeled=None if unlabeled is None else range(unlabeled),
        evaluation=object() if evaluated else None,
    )
    config = finetune_config({"task": task, **PATHS, **values})
    model = sized_config("small", 100)
    config = with_recipe(config, model, counts, max_seq_length=128, console=Console(shown))
    return config, shown.getvalue()


def values_of(config):
    return {key: getattr(config, key) for key in FORMER}


@pytest.mark.parametrize("rows", [10, 240, 2_490, 67_349, 400_000])
def test_few_rows_get_more_epochs_and_smaller_batches(rows):
    recipe = recipe_of(rows)
    assert recipe.batch_size == (16 if rows < 4000 else 32)
    assert recipe.steps >= min(300, 20 * -(-rows // 16)) or recipe.epochs == 20
    assert recipe.epochs == 3 or recipe.steps < 300 + -(-rows // recipe.batch_size)


@given(rows=st.integers(1, 3_999), batch_size=st.integers(1, 512))
def test_a_given_batch_size_leaves_as_many_steps(rows, batch_size):
    recipe = recipe_of(rows, given={"batch_size": batch_size})
    assert recipe.batch_size == batch_size
    assert recipe.steps >= 300 or recipe.epochs == 20


def test_wider_models_learn_at_lower_rates():
    rates = [recipe_of(100, model=sized_config(size, 100)).learning_rate for size in SIZES]
    assert rates == sorted(rates, reverse=True)
    assert 2e-5 <= rates[4] <= 5e-5  # base: Devlin et al. 2019, appendix A.3


def test_the_fixed_defaults_make_as_many_steps_from_the_border_on():
    epochs, batch_size = FORMER["epochs"], FORMER["batch_size"]
    assert epochs * (FEW_ROWS // batch_size) >= 300


@pytest.mark.parametrize("task", TASKS)
def test_every_task_chooses_what_is_not_given(task):
    assert former_defaults(TASKS[task].options) == FORMER
    config, shown = resolved(240, task=task)
    assert values_of(config) == {
        "epochs": 20,
        "batch_size": 16,
        "learning_rate": 1e-4,
        "early_stop_loss": 2.0,
    }
    assert shown == (
        "240 training rows: 20 epochs of 15 steps, batch 16, learning rate 0.0001: about 300 "
        "steps, as small files need\n"
    )


@pytest.mark.parametrize("rows", [FEW_ROWS, 100_000])
def test_large_files_train_as_before(rows):
    config, shown = resolved(rows)
    assert values_of(config) == FORMER
    assert "the defaults from 4,000 rows on" in shown
    assert values_of(resolved(FEW_ROWS - 1)[0]) != FORMER
    assert values_of(resolved(10, unlabeled=rows)[0]) == FORMER, "rows without labels count"


@given(
    rows=st.integers(1, 10_000),
    values=st.fixed_dictionaries(
        {},
        optional={
            "epochs": st.sampled_from([0.5, 3.0]),
            "batch_size": st.sampled_from([8, 32]),
            "learning_rate": st.just(3e-5),
            "early_stop_loss": st.sampled_from([0.0, 3.0]),
            "early_stop_evals": st.sampled_from([0, 2]),
        },
    ),
)
def test_what_is_given_is_kept_and_all_has_a_value(rows, values):
    config, shown = resolved(rows, **values)
    given = {key: value for key, value in values.items() if key in FORMER}
    assert values_of(config).items() >= given.items()
    assert None not in values_of(config).values()
    assert config.recipe == (config.epochs, config.batch_size, config.learning_rate)
    if {"epochs", "batch_size", "learning_rate"} <= values.keys():
        assert shown == ""
    else:
        named = [key for key in given if key != "early_stop_loss"]
        assert shown.count("(given)") == len(named)
    again = with_recipe(config, BASE, None, max_seq_length=128, console=Console(io.StringIO()))
    assert again == config, "a config with all values is not chosen again"


@pytest.mark.parametrize(
    ("values", "factor"),
    [
        ({}, 2.0),
        ({"epochs": 20.0}, 0.0),
        ({"early_stop_evals": 3}, 0.0),
        ({"early_stop_loss": 0.0}, 0.0),
        ({"early_stop_loss": 3.0, "epochs": 20.0}, 3.0),
        ({"evaluated": False, "eval_fraction": 0.0}, 0.0),
    ],
)
def test_chosen_epochs_end_when_the_loss_doubles_unless_a_key_says_when(values, factor):
    assert resolved(240, **values)[0].early_stop_loss == factor


def test_a_batch_has_a_row_for_each_micro_batch():
    assert resolved(240, gradient_accumulation_steps=24)[0].batch_size == 24
    assert resolved(FEW_ROWS, gradient_accumulation_steps=48)[0].batch_size == 48


def test_a_config_without_values_trains_nothing():
    config = finetune_config({"task": "classification", **PATHS, "epochs": 3})
    with pytest.raises(ValueError, match="not chosen"):
        _ = config.recipe
    assert dataclasses.replace(config, batch_size=8, learning_rate=1e-4).recipe == (3.0, 8, 1e-4)


@pytest.mark.parametrize(
    ("rows", "windows", "reason"),
    [
        (20, 1, "40 steps, the most epochs for so few rows"),
        (3_900, 1, "732 steps, in the batches of files below 4,000 rows"),
        (100, 30, "564 steps, in the batches of files below 4,000 rows"),
    ],
)
def test_the_reason_fits_the_number_of_steps(rows, windows, reason):
    assert reason in resolved(rows, windows=windows)[1]
