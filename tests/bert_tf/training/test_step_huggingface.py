"""Training steps against those of HuggingFace's Trainer on the same weights and rows."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.config.section import build_section
from bert_tf.config.sections.pretraining import TrainConfig
from bert_tf.tasks.base.task import FinetuningLoss
from bert_tf.tasks.base.task_data import ROW_WEIGHTS
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.optimizers import make_optimizer
from bert_tf.training.step import TrainingStep
from bert_tf.weights.model_directory import load_all_weights, read_model_directory

GOLDEN = Path(__file__).parents[2] / "golden"
ROWS = 4


@pytest.mark.parametrize(
    ("use_kernels", "shards"), [(False, 1), pytest.param(True, 2, marks=pytest.mark.slow)]
)
def test_losses_and_gradient_norms_are_those_of_the_trainer(use_kernels, shards):
    """tests/parity/training_steps.py has written them."""
    expected = np.load(GOLDEN / "training_steps.npz")
    directory = read_model_directory(GOLDEN / "models" / "classification")
    config = dataclasses.replace(
        directory.config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    task = ClassificationTask.from_weights(directory)
    model = task.build_model(config, policy="float32")
    model.build_weights()
    load_all_weights(model, directory)
    section = build_section(
        TrainConfig, {"data": "-", "output": "-", "size": "tiny", "weight_decay": 0.1}
    )
    optimizer = make_optimizer(section, num_hidden_layers=config.num_hidden_layers)
    optimizer.build(model.trainable_variables)
    step = TrainingStep(
        model=model,
        loss=FinetuningLoss(task),
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=Arithmetic(
            precision=PrecisionPolicy("float32", use_xla=False, use_kernels=use_kernels),
            shards=shards,
        ),
    )
    rows = {
        "input_word_ids": expected["input_ids"],
        "input_mask": expected["attention_mask"],
        "input_type_ids": expected["token_type_ids"],
        "label": expected["labels"],
        ROW_WEIGHTS: np.ones(len(expected["labels"]), np.float32),
    }
    found = step.run(
        iter(tf.data.Dataset.from_tensor_slices(rows).batch(ROWS)),
        first_step=0,
        learning_rates=expected["learning_rates"],
    )
    np.testing.assert_allclose(found["loss"], expected["losses"], rtol=2e-5)
    np.testing.assert_allclose(found["gradient_norm"], expected["gradient_norms"], rtol=2e-4)
