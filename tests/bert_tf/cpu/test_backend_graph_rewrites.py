"""Graphs run as traced inside the block, and are rewritten as before after it."""

import pytest
import tensorflow as tf

from bert_tf.cpu.backend import without_graph_rewrites


def rewrites_are_off() -> bool:
    return bool(tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False))


def test_rewrites_are_off_inside_alone():
    with without_graph_rewrites():
        assert rewrites_are_off()
    assert not rewrites_are_off()


def test_an_error_inside_leaves_them_as_they_were():
    with pytest.raises(ValueError, match="step"), without_graph_rewrites():
        raise ValueError("step")
    assert not rewrites_are_off()


def test_gpus_keep_their_rewrites(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    with without_graph_rewrites():
        assert not rewrites_are_off()
