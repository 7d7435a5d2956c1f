"""Layers that are not trained stay as they were, and the optimizer knows nothing of them."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_tf.base.errors import UsageError
from bert_tf.tasks.running.finetuning import finetune

pytestmark = pytest.mark.slow  # trains

ROWS = "text,label\n" + "the good film,good\na bad film,bad\n" * 8


@pytest.fixture
def run(small_config, tmp_path, quiet_console):
    train = tmp_path / "train.csv"
    train.write_text(ROWS)

    def run(layers):
        output = tmp_path / f"run-{layers}"
        config = small_config(
            task="classification",
            train=str(train),
            eval=str(train),
            output=str(output),
            epochs=2,
            freeze_layers=layers,
        )
        finetune(config, quiet_console)
        return output

    return run


def checkpoint_bytes(output):
    files = (output / "checkpoints").rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file())


def test_frozen_layers_are_as_they_were(run, small_model):
    frozen, trained = run(1), run(0)
    before = load_file(small_model / "model.safetensors")
    after, whole = (load_file(run / "best" / "model.safetensors") for run in (frozen, trained))
    for name, values in before.items():
        key = name if name in after else f"bert.{name}"
        is_frozen = "embeddings" in name or "layer.0." in name
        assert np.array_equal(after[key], values) == is_frozen, name
        if "LayerNorm" in name:
            assert not np.array_equal(whole[key], values), name
    assert checkpoint_bytes(frozen) < 0.6 * checkpoint_bytes(trained)


def test_no_more_layers_than_there_are(run):
    with pytest.raises(UsageError, match=r"--freeze-layers 2: .* has only 1 layer$"):
        run(2)
