"""Stretches become Arrow strings, as far as their offsets reach."""

import numpy as np
import pytest

from bert_tf.base.errors import ConfigError, InputError
from bert_tf.config.section import build_section
from bert_tf.config.sections import VocabConfig
from pipeline.corpus.raw_block import gather


def test_stretches_are_copied_in_order():
    data = np.frombuffer("aé b".encode(), np.uint8)
    starts, stops = np.array([4, 0, 1, 1]), np.array([5, 1, 3, 1])
    assert gather(data, starts, stops).to_pylist() == ["b", "a", "é", ""]


def test_more_than_the_offsets_can_hold_is_refused():
    data = np.zeros(1 << 20, np.uint8)
    times = (1 << 11) + 1
    with pytest.raises(InputError, match=r"a block has 2,148,532,224 bytes of text, at most 2,147"):
        gather(data, np.zeros(times, np.int64), np.full(times, len(data)))


def test_blocks_are_smaller_than_that():
    values = {"input": ("x",), "output": "y"}
    largest = build_section(VocabConfig, {**values, "block_megabytes": 1024})
    assert largest.block_megabytes * 1e6 < 2**30
    with pytest.raises(ConfigError, match=r"block_megabytes: expected a number from 0.01 to 1024"):
        build_section(VocabConfig, {**values, "block_megabytes": 3000})
