"""Every key of every section refuses numbers that mean nothing."""

import dataclasses

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.config.section import build_section, field_type
from bert_tf.config.sections import SECTIONS
from bert_tf.config.sections.pretraining import TrainingPhase
from bert_tf.tasks.registry import TASKS

ANY_NUMBER = {
    "train.seed",
    "finetune.seed",
    "label_errors.seed",
    "preprocess.seed",
    "finetune.null_score_diff_threshold",
    "embed.layers",
    "search.layers",
    "summarize.layers",
}
NUMBERS = [
    (section, field.name)
    for section in (*SECTIONS.values(), *(task.options for task in TASKS.values()), TrainingPhase)
    for field in dataclasses.fields(section)
    if field_type(section, field.name).kind in (int, float)
]
REFUSED = [
    ("train.adam_beta_1", 1),
    ("finetune.adam_beta_2", 1),
    ("train.adam_epsilon", 0),
    ("train.adam_epsilon", 1e-50),
    ("train.hidden_dropout_prob", 1),
    ("finetune.attention_probs_dropout_prob", 1),
    ("train.learning_rate", 0),
    ("train.learning_rate", 5),
    ("finetune.learning_rate", 0),
    ("phases.learning_rate", 0),
    ("finetune.epochs", 0),
    ("train.steps", 0),
    ("train.ema_decay", 1),
    ("train.layer_decay", 0),
    ("train.log_every", 0),
    ("train.masked_lm_prob", 0),
    ("preprocess.masked_lm_prob", 0),
    ("preprocess.max_seq_length", 1e9),
    ("preprocess.dupe_factor", 1e9),
    ("preprocess.num_shards", 1e9),
    ("train.batch_size", 1e9),
    ("finetune.eval_batch_size", 0),
    ("finetune.doc_stride", 0),
    ("finetune.n_best_size", 1e9),
    ("evaluate.batch_tokens", 0),
    ("score.batch_tokens", 1e9),
    ("import_weights.max_position_embeddings", 1e9),
    ("runner.workers", 1e9),
]


def faults(section, name, value):
    required = {
        field.name: (field.metadata["choices"] or ["x"])[0]
        for field in dataclasses.fields(section)
        if field.metadata["required"]
    }
    with pytest.raises(ConfigError) as refused:
        build_section(section, {**required, name: value})
    return refused.value.faults


@pytest.mark.parametrize(("section", "name"), NUMBERS)
def test_a_number_is_finite_and_has_a_lower_bound(section, name):
    key = f"{section.section_name}.{name}"
    [default] = [field.default for field in dataclasses.fields(section) if field.name == name]
    for value in ("nan", "inf", "-inf", True, "", []):
        if value in ("", []) and default == ():
            continue  # no numbers, as by default
        if value != "" or not field_type(section, name).optional:
            assert any(key in fault for fault in faults(section, name, value)), value
    if key not in ANY_NUMBER:
        [fault] = faults(section, name, -1)
        assert fault.startswith(f"{key}: expected a number ")


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_a_number_that_no_run_can_use_is_refused(key, value):
    section_name, _, name = key.partition(".")
    section = next(
        section
        for section, field in NUMBERS
        if (section.section_name, field) == (section_name, name)
    )
    [fault] = faults(section, name, value)
    assert fault.startswith(f"{key}: expected a number ")


def test_local_workers_are_processes_of_this_machine():
    runner = SECTIONS["runner"]
    assert "workers: is 600, but they are local" in faults(runner, "workers", 600)[0]
    assert build_section(runner, {"runner": "dataflow", "workers": 600}).workers == 600
