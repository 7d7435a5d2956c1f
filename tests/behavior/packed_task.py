"""Pretraining on packed rows in small: records of uneven length and a BERT that is soon traced."""

from __future__ import annotations

import io
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.config.bert import BertConfig
from bert_tf.data.records.dataset_info import PretrainingData, encode_records
from bert_tf.data.records.pretraining_inputs import PretrainingInputs
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.models.model_flops import ModelFlops
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
from bert_tf.training.loop import Evaluate, TrainingLoop
from bert_tf.training.metrics_log import read_metrics
from bert_tf.training.optimizers import AdamW
from bert_tf.training.timeline import LoopSettings, PhaseSettings

LENGTH = 24
PREDICTIONS = 4
VOCAB = 40
RECORDS = 90
BLOCK_RECORDS = 40
BATCH_SIZE = 14
ROW_MULTIPLE = 4
STEPS = 10


def make_records() -> bytes:
    """Return a record of 3 to 24 tokens, most of them short, with 1 to 4 targets."""
    random = np.random.default_rng(0)
    lengths = np.minimum(random.integers(3, LENGTH, (RECORDS, 2)).min(axis=1), LENGTH)
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int32)
    targets = np.minimum(random.integers(1, PREDICTIONS + 1, RECORDS), lengths)
    positions = [random.permutation(length) for length in lengths]
    features = {
        "input_word_ids": random.integers(5, VOCAB, mask.shape).astype(np.int32) * mask,
        "input_mask": mask,
        "input_type_ids": (np.arange(LENGTH) > lengths[:, None] // 2).astype(np.int32) * mask,
        "masked_lm_positions": np.stack([np.resize(p, PREDICTIONS) for p in positions]).astype(
            np.int32
        ),
        "masked_lm_ids": random.integers(5, VOCAB, (RECORDS, PREDICTIONS)).astype(np.int32),
        "masked_lm_weights": (np.arange(PREDICTIONS) < targets[:, None]).astype(np.float32),
        "next_sentence_labels": random.integers(0, 2, (RECORDS, 1)).astype(np.int32),
    }
    return encode_records(features)[0].tobytes()


def make_inputs(
    folder: Path,
    packing: str = "on",
    *,
    batch_size: int = BATCH_SIZE,
    row_multiple: int = ROW_MULTIPLE,
) -> PretrainingInputs:
    """Batches over one shard, which is written into `folder`."""
    shard = folder / "train.tfrecord"
    shard.write_bytes(make_records())
    data = PretrainingData(
        directory=str(folder),
        max_seq_length=LENGTH,
        max_predictions_per_seq=PREDICTIONS,
        vocab_size=VOCAB,
        vocab_sha256="0",
        lowercase=True,
        train_shards=(shard.name,),
    )
    return PretrainingInputs(
        [str(shard)],
        data,
        batch_size=batch_size,
        seed=1,
        block_records=BLOCK_RECORDS,
        packing=packing,
        row_multiple=row_multiple,
    )


def make_packed_loop(
    folder: Path,
    strategy: tf.distribute.Strategy | None = None,
    *,
    run_directory: Path | None = None,
    dropout: float = 0.0,
    use_xla: bool = False,
    as_on_gpus: bool = False,
    gradient_sum: str = "float32",
    packing: str = "on",
    evaluate: Evaluate | None = None,
    **settings,
) -> TrainingLoop:
    """Return the loop on packed rows, in float32; the same initial weights every time."""
    strategy = strategy or tf.distribute.get_strategy()
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
        initializer_range=0.2,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = BertPretrainingModel(config, dtype="float32")
        model.build_weights()
        optimizer = AdamW(beta_1=0.9, beta_2=0.999, epsilon=1e-6, weight_decay=0.01)
    phase = PhaseSettings(
        steps=settings.pop("steps", STEPS),
        warmup_steps=2,
        peak_learning_rate=1e-3,
        accumulation_steps=settings.pop("accumulation_steps", 1),
        work=ModelFlops.of_encoder(config),
    )
    values = {"log_every": 1, "checkpoint_minutes": 0.0, "steps_per_call": 3, **settings}
    return TrainingLoop(
        model=model,
        loss=PretrainingLoss(),
        optimizer=optimizer,
        inputs=make_inputs(folder, packing),
        strategy=strategy,
        settings=LoopSettings(phases=(phase,), **values),
        run_directory=run_directory,
        arithmetic=Arithmetic(
            precision=PrecisionPolicy("float32", use_xla or as_on_gpus),
            cpu_kernels=not as_on_gpus,
            deterministic=as_on_gpus,
            gradient_sum=gradient_sum,
        ),
        console=Console(io.StringIO()),
        evaluate=evaluate,
    )


def assert_same_losses(run_directory: Path, expected: Path, tolerance: float = 1e-5) -> None:
    """Every step's losses, accuracies and gradient norms agree, relatively."""
    ours, theirs = (read_metrics(path / "metrics.jsonl") for path in (run_directory, expected))
    assert len(ours) == len(theirs) == STEPS
    names = (
        "step",
        "loss",
        "mlm_loss",
        "nsp_loss",
        "mlm_accuracy",
        "nsp_accuracy",
        "gradient_norm",
    )
    for our_line, their_line in zip(ours, theirs, strict=True):
        for name in names:
            assert our_line[name] == pytest.approx(their_line[name], rel=tolerance), (
                name,
                their_line["step"],
            )
