"""Programs as for a GPU, of the functions that commands run: cuDNN's calls, and no scores.

XLA's program before it is optimized is the same on every machine, so no GPU is needed.
"""

import collections
import math
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from behavior.packed_batches import CONFIG, LENGTH, PREDICTIONS, ROWS, batch_of, pretraining_model

from bert_tf.base.arrays import offsets_of
from bert_tf.base.console import Console
from bert_tf.data.rows.encoded_rows import Batching, EncodedRows
from bert_tf.engines.cuda import compiled_forward
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.pretraining.step_trial import training_step_of
from bert_tf.serving.signatures import IDS_INPUTS
from bert_tf.tasks.base.task import FinetuningLoss
from bert_tf.tasks.base.task_data import ROW_WEIGHTS, TaskData
from bert_tf.tasks.registry import task_from_settings
from bert_tf.tasks.running.batches import Evaluator
from bert_tf.training import arithmetic
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.evaluation import Evaluation
from bert_tf.training.optimizers import AdamW
from bert_tf.training.step import TrainingStep
from bert_tf.xla.step_programs import STEPS_PER_PROGRAM

pytestmark = pytest.mark.slow  # traces models, half a second or more each
LAYERS = CONFIG.num_hidden_layers
POLICY = "mixed_bfloat16"
TASKS = {
    "classification": {
        "task": "classification",
        "labels": ["no", "yes"],
        "columns": {"text": "text", "text_pair": None, "label": "label"},
        "max_seq_length": 32,
    },
    "qa": {
        "task": "qa",
        "columns": {
            "question": "question",
            "context": "context",
            "answer": "answer",
            "answer_start": "answer_start",
        },
        **dict.fromkeys(("max_seq_length", "doc_stride", "max_query_length"), 64),
        "max_answer_length": 9,
        "n_best_size": 5,
        "null_score_diff_threshold": 0.5,
        "may_be_unanswerable": True,
    },
}


def as_on_gpu(*, is_fused=True):
    return Arithmetic(
        precision=PrecisionPolicy(POLICY, use_xla=True),
        cpu_kernels=False,
        fuses_attention=is_fused,
    )


@pytest.fixture
def on_gpu(monkeypatch):
    """Have evaluation and scoring take their form on a GPU."""
    monkeypatch.setattr(arithmetic, "_why_gpus_cannot_fuse", lambda: None)


def program_of(function, *arguments):
    return function.experimental_get_compiler_ir(*arguments)(stage="hlo")


def calls_in(program):
    return collections.Counter(re.findall(r'custom_call_target="__cudnn\$(\w+)"', program))


def score_tensors(program, *, rows=ROWS, length=LENGTH):
    """Shapes in a program that are as large as the scores of all heads, however they are named."""
    shapes = {
        tuple(int(size) for size in sizes.split(","))
        for sizes in re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", program)
    }
    least = rows * CONFIG.num_attention_heads * length**2
    return {
        shape
        for shape in shapes
        if math.prod(shape) >= least and (shape.count(length) > 1 or length**2 in shape)
    }


def assert_fused(program, *, has_bias=False, is_trained=True, **sizes):
    name = "fmhaScaleBiasSoftmax" if has_bias else "fmhaSoftmax"
    expected = {name: LAYERS}
    if is_trained:
        expected[f"{name}Backward"] = LAYERS
    assert calls_in(program) == expected, "one per layer"
    assert not score_tensors(program, **sizes)


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_pretraining_step_is_fused(is_packed):
    step = training_step_of(CONFIG, as_on_gpu())
    batch = batch_of(is_packed=is_packed)
    program = program_of(step.compiled, batch, tf.constant(0), tf.constant(1e-4), 1)
    assert_fused(program, has_bias=is_packed)


def test_a_program_of_several_steps_has_the_calls_once_in_its_loop():
    step = training_step_of(CONFIG, as_on_gpu())
    stacked = {
        name: tf.stack([values] * STEPS_PER_PROGRAM)
        for name, values in batch_of(is_packed=False).items()
    }
    rates = tf.zeros(STEPS_PER_PROGRAM)
    number = tf.constant(STEPS_PER_PROGRAM)
    program = program_of(step._programs._program, stacked, number, tf.constant(0), rates, 1)
    assert_fused(program)


def test_the_plain_form_has_scores_and_no_calls():
    step = training_step_of(CONFIG, as_on_gpu(is_fused=False))
    batch = batch_of(is_packed=False)
    program = program_of(step.compiled, batch, tf.constant(0), tf.constant(1e-4), 1)
    assert not calls_in(program)
    assert (ROWS, CONFIG.num_attention_heads, LENGTH, LENGTH) in score_tensors(program)


def task_model(settings):
    keras.utils.set_random_seed(1)
    task = task_from_settings(settings, "a test")
    model = task.build_model(CONFIG, policy=POLICY)
    model.build_weights()
    return task, model


def labeled_batch(name):
    batch = {key: batch_of(is_packed=False)[key] for key in IDS_INPUTS}
    targets = {
        "classification": {"label": tf.constant([0, 1, 0])},
        "qa": {
            "start_position": tf.constant([1, 2, 3]),
            "end_position": tf.constant([1, 3, 4]),
        },
    }
    return batch | targets[name] | {ROW_WEIGHTS: tf.ones(ROWS)}


@pytest.mark.parametrize("name", TASKS)
def test_a_fine_tuning_step_is_fused(name):
    """The last layer of a classifier has one query per row, that of answers has all."""
    task, model = task_model(TASKS[name])
    optimizer = AdamW(beta_1=0.9, beta_2=0.999, epsilon=1e-6, weight_decay=0.01)
    optimizer.build(model.trainable_variables)
    step = TrainingStep(
        model=model,
        loss=FinetuningLoss(task),
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=as_on_gpu(),
    )
    batch = labeled_batch(name)
    assert_fused(program_of(step.compiled, batch, tf.constant(0), tf.constant(1e-4), 1))


@pytest.mark.parametrize("is_packed", [False, True])
def test_an_evaluation_of_pretraining_is_fused(is_packed):
    batch = batch_of(is_packed=is_packed)
    evaluation = Evaluation(
        model=pretraining_model(POLICY),
        loss=PretrainingLoss(),
        strategy=tf.distribute.get_strategy(),
        make_dataset=lambda: tf.data.Dataset.from_tensors(batch),
        arithmetic=as_on_gpu(),
    )
    program = program_of(evaluation._compiled_sums, batch)
    assert_fused(program, has_bias=is_packed, is_trained=False)


def test_an_evaluation_of_a_task_is_fused(on_gpu):
    """The evaluator makes the batches, padded to 32 tokens."""
    task, model = task_model(TASKS["classification"])
    lengths = np.array([12, 5, 9, 30])
    rows = EncodedRows(
        ids=np.full(lengths.sum(), 5, np.int32),
        offsets=offsets_of(lengths),
        second_starts=lengths.astype(np.int32),
    )
    data = TaskData(
        source=lengths,
        rows=rows,
        targets={"label": np.array([0, 1, 0, 1], np.int32)},
        weights=np.ones(len(lengths), np.float32),
    )
    batching = Batching(pad_id=0, batch_tokens=128, max_seq_length=32, has_few_shapes=True)
    forward = Evaluator(task, model, data, batching, Console(quiet=True))._forward
    (chosen,) = forward._batches
    batch = {name: tf.constant(values) for name, values in forward._batch(chosen).items()}
    padded, length = batch["input_mask"].shape
    assert length == 32
    program = program_of(forward._compute, batch)
    assert_fused(program, is_trained=False, rows=padded, length=length)


@pytest.mark.parametrize("name", TASKS)
def test_scoring_is_fused(on_gpu, name):
    task, model = task_model(TASKS[name])
    batch = {key: batch_of(is_packed=False)[key] for key in IDS_INPUTS}
    assert_fused(program_of(compiled_forward(task, model), batch), is_trained=False)


def test_without_a_gpu_evaluation_and_scoring_are_plain():
    task, model = task_model(TASKS["classification"])
    batch = {key: batch_of(is_packed=False)[key] for key in IDS_INPUTS}
    assert not calls_in(program_of(compiled_forward(task, model), batch))


def test_queries_of_the_last_layer_are_even_with_a_bias():
    """cuDNN has no gradients for odd numbers with a bias; predictions and starts are 6 here."""
    step = training_step_of(CONFIG, as_on_gpu())
    batch = batch_of(is_packed=True)
    for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
        batch[name] = batch[name][:, 1:]
    program = program_of(step.compiled, batch, tf.constant(0), tf.constant(1e-4), 1)
    rows_and_keys = rf"bf16\[{ROWS},1,(\d+),{LENGTH}\]"
    queries = {
        int(count)
        for call in re.findall(r".*fmhaScaleBias.*", program)
        for count in re.findall(rows_and_keys, call)
    }
    assert queries == {LENGTH, PREDICTIONS + 2}
