"""A small pretraining model and its batches, packed or not, for attention of other kinds."""

import keras
import numpy as np
import tensorflow as tf

from bert_tf.config.bert import BertConfig
from bert_tf.models.heads import BertPretrainingModel

CONFIG = BertConfig(
    vocab_size=40,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=32,
    initializer_range=0.3,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
ROWS = 3
LENGTH = 12
PREDICTIONS = 4


def batch_of(*, is_packed):
    random = np.random.default_rng(1)
    lengths = np.array([LENGTH, 5, 9])
    mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int32)
    batch = {
        "input_word_ids": random.integers(1, CONFIG.vocab_size, (ROWS, LENGTH)).astype(np.int32),
        "input_type_ids": random.integers(0, 2, (ROWS, LENGTH)).astype(np.int32),
        "input_mask": mask,
        "masked_lm_positions": random.integers(0, 5, (ROWS, PREDICTIONS)).astype(np.int32),
        "masked_lm_ids": random.integers(0, CONFIG.vocab_size, (ROWS, PREDICTIONS)).astype("int32"),
        "masked_lm_weights": np.ones((ROWS, PREDICTIONS), np.float32),
        "next_sentence_labels": np.array([0, 1, 0], np.int32),
    }
    if is_packed:
        starts = np.array([[0, 4], [0, 2], [0, 6]], np.int32)
        second = np.arange(LENGTH) >= starts[:, 1:]
        batch |= {
            "sequence_ids": np.where(mask == 1, 1 + second, 0).astype(np.int32),
            "position_ids": (np.arange(LENGTH) - second * starts[:, 1:]).astype(np.int32),
            "cls_positions": starts,
            "next_sentence_labels": np.array([[0, 1], [1, 0], [0, 0]], np.int32),
            "next_sentence_weights": np.ones((ROWS, 2), np.float32),
        }
    return {name: tf.constant(values) for name, values in batch.items()}


def pretraining_model(policy="float32"):
    keras.utils.set_random_seed(1)
    model = BertPretrainingModel(CONFIG, dtype=policy)
    model.build_weights()
    return model
