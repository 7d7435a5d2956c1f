import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.bert import sized_config
from bert_tf.config.section import build_section
from bert_tf.config.sections import TrainConfig
from bert_tf.tasks.registry import finetune_config

SHORT, LONG = {"data": "short", "fraction": 0.9}, {"data": "long", "fraction": 0.1, "batch_size": 8}


def train(**keys):
    return build_section(TrainConfig, {"output": "run", "size": "tiny", **keys})


def fault(**keys):
    with pytest.raises(ConfigError) as error:
        train(**keys)
    return "; ".join(error.value.faults)


def test_fractions_become_steps_that_add_up():
    config = train(phases=[SHORT, LONG], steps=1001)
    assert config.phase_steps() == (901, 100)
    assert config.total_steps == 1001
    assert (config.phases[0].batch_size, config.phases[1].batch_size) == (None, 8)
    assert train(data="data", steps=7).phase_steps() == (7,)


def test_rounded_fractions_lose_no_step():
    thirds = [{"data": name, "fraction": 0.3333333} for name in ("a", "b", "c")]
    config = train(phases=thirds, steps=10_000_000)
    assert config.total_steps == 10_000_000
    assert max(config.phase_steps()) - min(config.phase_steps()) <= 1


def test_phases_with_steps_need_no_total():
    phases = [{"data": "a", "steps": 30}, {"data": "b", "steps": 10, "learning_rate": 1e-3}]
    assert train(phases=phases).total_steps == 40
    assert train(phases=phases, steps=40).phase_steps() == (30, 10)
    for steps in (50, 10_000):
        assert f"steps: is {steps}, but the steps of the phases add up to 40" in fault(
            phases=phases, steps=steps
        )
    assert train(phases=[SHORT, LONG]).phase_steps() == (9000, 1000)


def test_phases_survive_as_plain_values():
    config = train(phases=[SHORT, LONG])
    plain = config.as_dict()
    assert plain["phases"][1]["data"] == "long"
    assert build_section(TrainConfig, plain) == config


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {},
            "--data is missing: directory of TFRecords made by preprocess (or set train.phases)",
        ),
        ({"data": "x", "phases": [SHORT, LONG]}, "data: every phase has its own data"),
        ({"phases": [SHORT]}, "the fractions add up to 0.9; they must add up to 1"),
        ({"phases": [SHORT, {"data": "b", "steps": 3}]}, "give all of them steps or all of them"),
        ({"phases": [SHORT, {"data": "b"}]}, "item 2: phases.steps: give either steps or fraction"),
        ({"phases": [{"fraction": 1.0}]}, "item 1: phases.data: is missing"),
        ({"phases": [{**SHORT, "bach_size": 4}]}, "did you mean 'phases.batch_size'?"),
        ({"phases": ["short"]}, "item 1: expected key: value pairs, got 'short'"),
        ({"phases": [SHORT, LONG], "steps": 3}, "one of them has no step; the steps are (3, 0)"),
        (
            {"phases": [SHORT, LONG], "max_minutes": 5},
            "max_minutes: does not apply to a run with phases",
        ),
        (
            {"phases": [SHORT, {**LONG, "learning_rate": 1e-4}], "steps": 100, "warmup_steps": 95},
            "warmup_steps: is 95, but its learning-rate schedule only has 90 steps",
        ),
        (
            {"phases": [SHORT, LONG], "early_stop_evals": 5},
            "early_stop_evals: does not apply to a run with phases",
        ),
    ],
)
def test_faults_of_phases_say_what_to_do(keys, message):
    assert message in fault(**keys)


def test_stopping_early_needs_rows_to_evaluate_on():
    keys = {"task": "qa", "train": "t", "init": "m", "output": "o", "early_stop_evals": 2}
    assert finetune_config(keys).early_stop_evals == 2  # on rows that are held out
    keys["eval_fraction"] = 0
    with pytest.raises(ConfigError, match="early_stop_evals: needs rows to evaluate on"):
        finetune_config(keys)
    assert finetune_config({**keys, "eval": "e"}).early_stop_evals == 2


def test_a_warm_up_fits_its_schedule():
    assert "warmup_steps: is 11, but its learning-rate schedule only has 10 steps" in fault(
        data="d", steps=10, warmup_steps=11
    )
    assert train(data="d", steps=10, warmup_steps=10).warmup_steps == 10
    own = [{"data": "a", "steps": 3, "learning_rate": 1e-3}, {"data": "b", "steps": 3}]
    assert train(phases=own, warmup_steps=5).warmup_steps == 5, "no schedule uses it"


def test_a_batch_of_finetuning_has_a_row_for_each_part():
    keys = {"task": "qa", "train": "t", "init": "m", "output": "o", "batch_size": 4}
    with pytest.raises(
        ConfigError, match="gradient_accumulation_steps: is 8, more than the 4 rows"
    ):
        finetune_config({**keys, "gradient_accumulation_steps": 8})


def test_dropout_is_the_models_unless_it_is_set():
    model = sized_config("tiny", 100, hidden_dropout_prob=0.3)
    changed = train(data="d", attention_probs_dropout_prob=0.0).with_dropout(model)
    assert changed == model.replace(attention_probs_dropout_prob=0.0)


def test_the_metric_of_the_best_model_is_one_of_the_task():
    keys = {"task": "qa", "train": "t", "init": "m", "output": "o", "eval": "e"}
    assert finetune_config(keys).selection_metric == "f1"
    for metric in ("exact_match", "loss"):
        assert finetune_config({**keys, "best_metric": metric}).best_metric == metric
    with pytest.raises(
        ConfigError, match="'accuracy' is not a metric of qa; choose one of f1, exact_match, loss"
    ):
        finetune_config({**keys, "best_metric": "accuracy"})
    with pytest.raises(ConfigError, match="best_metric: needs rows to evaluate on; give --eval"):
        finetune_config({**keys, "eval": None, "eval_fraction": 0, "best_metric": "f1"})


SERIES = {"task": "qa", "train": "t", "init": "m", "output": "o", "eval": "e", "seed": 4}


def test_the_runs_of_a_series():
    config = finetune_config({**SERIES, "seeds": 2, "grid": "learning_rate=3e-5,1e-4 batch_size=8"})
    assert [(settings, run.seed, run.learning_rate) for settings, run in config.runs()] == [
        ({"learning_rate": rate, "batch_size": 8}, seed, rate)
        for rate in (3e-5, 1e-4)
        for seed in (4, 5)
    ]
    single = finetune_config({**SERIES, "learning_rate": 3e-5, "batch_size": 8})
    assert config.runs()[0][1] == single
    assert config.is_series and not single.is_series


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"seeds": 2, "eval": None, "eval_fraction": 0}, "seeds: comparing runs needs rows"),
        (
            {"grid": "batch_size=2,8", "eval": None, "eval_fraction": 0},
            "grid: comparing runs needs rows",
        ),
        (
            {"seeds": 2, "strategy": "multi-worker"},
            "seeds: a series of runs is trained by a single",
        ),
        ({"grid": "seed=1,2"}, "grid: seed cannot vary"),
        (
            {"grid": "lr=1e-4,2e-4"},
            "grid: finetune.lr: unknown key; did you mean 'finetune.learning_rate'?",
        ),
        (
            {"grid": "xyzzy=1,2"},
            "grid: finetune.xyzzy: unknown key; bert-pipeline finetune --help-all lists the keys",
        ),
        ({"grid": "epoch=1,2"}, "grid: finetune.epoch: unknown key; did you mean"),
        ({"grid": "batch_size=0"}, "grid: finetune.batch_size: expected a number from 1 to"),
        ({"grid": "n_best_size"}, "grid: expected published or key=value"),
        (
            {"grid": "batch_size=2,8", "gradient_accumulation_steps": 4},
            "gradient_accumulation_steps: is 4, more than the 2 rows",
        ),
    ],
)
def test_a_series_that_is_impossible(keys, message):
    with pytest.raises(ConfigError, match=message):
        finetune_config({**SERIES, **keys})
