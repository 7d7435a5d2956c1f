import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import ImportWeightsConfig
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.weights.import_weights import read_source, write_imported
from bert_tf.weights.model_directory import load_weights, read_model_directory
from bert_tf.weights.resizing import with_layers, with_positions, with_vocab

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
WORDS = "bert.embeddings.word_embeddings.weight"
POSITIONS = "bert.embeddings.position_embeddings.weight"


@pytest.fixture(scope="module")
def source():
    return read_source(GOLDEN / "pretraining")


def written(directory, folder):
    """Return the result of `import-weights`, loaded into a model."""
    write_imported(directory, folder)
    read = read_model_directory(folder)
    model = BertPretrainingModel(read.config)
    model.build_weights()
    assert load_weights(model, read) == []
    return read


@pytest.mark.parametrize("positions", [32, 33, 50])
def test_positions_are_interpolated_between_the_old_ends(source, positions, tmp_path):
    old = source.tensors[POSITIONS]
    longer = written(with_positions(source, len(old) + positions), tmp_path / "model")
    new = longer.tensors[POSITIONS]
    places = np.linspace(0, len(old) - 1, len(old) + positions)
    expected = np.stack([np.interp(places, np.arange(len(old)), row) for row in old.T], axis=1)
    np.testing.assert_allclose(new, expected, atol=1e-6)
    np.testing.assert_array_equal(new[[0, -1]], old[[0, -1]])
    assert longer.config.max_position_embeddings == len(old) + positions


def test_a_student_takes_some_layers(source, tmp_path):
    """And all the rest; every layer keeps its values under its new number."""
    last = source.config.num_hidden_layers - 1
    assert last >= 1
    taken = written(with_layers(source, [last]), tmp_path / "model")
    assert taken.config.num_hidden_layers == 1
    for name, values in taken.tensors.items():
        before = name.replace("encoder.layer.0.", f"encoder.layer.{last}.")
        np.testing.assert_array_equal(values, source.tensors[before], err_msg=name)
    assert sum("encoder.layer" in name for name in taken.tensors) == 16
    with pytest.raises(UsageError, match=f"--layers: .* has the layers 0 to {last}, but no 99$"):
        with_layers(source, [0, 99])


@pytest.mark.parametrize(
    ("layers", "fault"),
    [
        ("0,,2", "expected numbers"),
        ("-1", "expected numbers"),
        ("2,1", "must be in ascending order"),
        ("1,1", "as"),
    ],
)
def test_layers_are_ascending_numbers(layers, fault):
    with pytest.raises(ConfigError, match=f"layers: .*{fault}"):
        build_section(ImportWeightsConfig, {"source": "a", "output": "b", "layers": layers})


def test_as_many_positions_change_nothing_and_fewer_are_refused(source):
    old = source.tensors[POSITIONS]
    np.testing.assert_array_equal(with_positions(source, len(old)).tensors[POSITIONS], old)
    with pytest.raises(UsageError, match=f"{len(old) - 1}: .* has positions for {len(old)} tokens"):
        with_positions(source, len(old) - 1)


def vocab_file(path, pieces):
    path.write_text("\n".join([*pieces, ""]))
    return path


def test_new_pieces_are_the_mean_of_what_they_were_split_into(source, tmp_path):
    """A word of two old pieces, and one that no old piece begins."""
    source = dataclasses.replace(source, vocab=[*source.vocab[:-1], "##x"])
    parts = [source.vocab.index("w7"), len(source.vocab) - 1]
    path = vocab_file(tmp_path / "vocab.txt", [*source.vocab, "w7x", "\u4e00\u4e01"])
    larger = written(with_vocab(source, path), tmp_path / "model")
    table, old = larger.tensors[WORDS], source.tensors[WORDS]
    np.testing.assert_array_equal(table[:-2], old)
    np.testing.assert_allclose(table[-2], old[parts].mean(axis=0), rtol=1e-6)
    assert 0.2 < table[-1].std() / source.config.initializer_range < 3.0
    bias = larger.tensors["cls.predictions.bias"]
    np.testing.assert_array_equal(bias[-2:], [0.0, 0.0])
    np.testing.assert_array_equal(bias[:-2], source.tensors["cls.predictions.bias"])


def test_a_vocabulary_that_moves_old_pieces_is_refused(source, tmp_path):
    moved = vocab_file(tmp_path / "moved.txt", [*source.vocab[:-2], source.vocab[-1], "new"])
    line = len(source.vocab) - 1
    with pytest.raises(UsageError, match=rf"moved.txt:{line}: expected {source.vocab[-2]!r}"):
        with_vocab(source, moved)
    short = vocab_file(tmp_path / "short.txt", source.vocab[:-1])
    with pytest.raises(UsageError, match="got the end of the file; the vocabulary must begin"):
        with_vocab(source, short)


def test_unused_rows_at_the_end_give_way_to_new_pieces(source, tmp_path):
    size = source.config.vocab_size
    padded = dataclasses.replace(
        source,
        vocab=[*source.vocab[: size - 2], "[unused0]", "[unused1]"],
    )
    path = vocab_file(tmp_path / "vocab.txt", [*padded.vocab[:-2], "new"])
    smaller = with_vocab(padded, path)
    assert smaller.config.vocab_size == len(smaller.vocab) == size - 1
    words = smaller.tensors["bert.embeddings.word_embeddings.weight"]
    old = source.tensors["bert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(words[:-1], old[:-2])
    assert len(smaller.tensors["cls.predictions.bias"]) == size - 1
    kept = vocab_file(tmp_path / "kept.txt", [*padded.vocab, "new"])
    assert with_vocab(padded, kept).config.vocab_size == size + 1
