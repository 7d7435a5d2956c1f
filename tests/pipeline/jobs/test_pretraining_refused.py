"""Data and models that the train job refuses, with what is wrong with them."""

import json

import pytest
from pretraining_runs import LENGTH, RECORDS, VOCAB, encoded, train, write_data

from bert_tf.base.errors import InputError, UsageError

pytestmark = pytest.mark.slow  # trains, and compiles the step each time


def test_sides_that_do_not_fit_are_named(data, model_config, tmp_path):
    wrong = tmp_path / "config.json"
    wrong.write_text(json.dumps({**json.loads(model_config.read_text()), "vocab_size": 31}))
    with pytest.raises(UsageError, match="config.json: vocab_size is 31, .* of 30 entries"):
        train(data, tmp_path / "run", model_config=wrong)
    with pytest.raises(UsageError, match="--batch-size 4 cannot be divided .* use 6"):
        train(data, tmp_path / "run", model_config=model_config, gradient_accumulation_steps=3)
    with pytest.raises(UsageError, match="--data .*: is a file; give a folder made by "):
        train(wrong, tmp_path / "run", model_config=model_config)
    with pytest.raises(UsageError, match="--data .*: no such folder"):
        train(tmp_path / "nothing", tmp_path / "run", model_config=model_config)
    other = write_data(tmp_path / "other")
    (other / "vocab.txt").write_text("\n".join([*VOCAB[:-1], "another"]) + "\n")
    with pytest.raises(UsageError, match="not the vocabulary that the records in"):
        train(other, tmp_path / "run", model_config=model_config)


def damage(path, records, *, is_flipped):
    """Flips a bit of the last record, or puts records of another length behind all others."""
    content = bytearray(path.read_bytes())
    content[-20] ^= is_flipped
    path.write_bytes(bytes(content) + (b"" if is_flipped else encoded(records, LENGTH + 1)))


@pytest.mark.parametrize("is_flipped", [True, False])
@pytest.mark.parametrize("shard", ["eval-0", "train-0"])
def test_the_shard_and_record_that_cannot_be_read_are_named(
    shard, is_flipped, model_config, tmp_path
):
    data = write_data(tmp_path / "data")
    damage(data / shard, RECORDS, is_flipped=is_flipped)
    expected = (
        f"{RECORDS - 1} is damaged" if is_flipped else f"{RECORDS} does not match the manifest"
    )
    keys = {"model_config": model_config, "batch_size": 1, "packing": "off", "steps": 24}
    with pytest.raises(InputError, match=f"{shard}: record {expected}"):
        train(data, tmp_path / "run", **keys)
