"""Recipes are compared with [MASK] at all targets, not with the replacements of the records."""

import numpy as np
import recipes
import tensorflow as tf


def test_all_targets_become_masks_and_nothing_else():
    batch = {
        "input_word_ids": tf.constant([[2, 7, 8, 9, 3], [2, 4, 8, 3, 0]]),
        "masked_lm_positions": tf.constant([[1, 3], [2, 0]]),
        "masked_lm_weights": tf.constant([[1.0, 1.0], [1.0, 0.0]]),
        "masked_lm_ids": tf.constant([[7, 9], [8, 0]]),
    }
    found = recipes.with_masks(batch, mask_id=4)
    np.testing.assert_array_equal(found["input_word_ids"], [[2, 4, 8, 4, 3], [2, 4, 4, 3, 0]])
    np.testing.assert_array_equal(found["masked_lm_ids"], batch["masked_lm_ids"])
