"""Changes of a model's size: positions, vocabulary entries, layers."""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.data.text.host_wordpiece import longest_match
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS, read_vocab
from bert_tf.data.text.vocabulary_files import without_unused_end
from bert_tf.weights.model_directory import ModelDirectory
from bert_tf.weights.tensor_files import WORD_EMBEDDINGS

_POSITIONS = "bert.embeddings.position_embeddings.weight"
_MASKED_LM_BIAS = "cls.predictions.bias"
_LAYER = re.compile(r"(?P<before>bert\.encoder\.layer\.)(?P<number>\d+)(?P<after>\..+)")


def with_positions(directory: ModelDirectory, positions: int) -> ModelDirectory:
    """Return the model with a longer table of positions.

    The old rows are spread evenly over the new table, with the first and last at its ends, and rows
    between them are interpolated linearly. The model then needs some training on long sequences.

    Args:
        directory: the model.
        positions: rows of the new table.

    Raises:
        UsageError: the model has more positions.
    """
    old = directory.config.max_position_embeddings
    if positions < old:
        raise UsageError(
            f"--max-position-embeddings {positions}: {directory.path} has positions for {old} "
            "tokens; give more, or leave it out"
        )
    table = directory.tensors[_POSITIONS]
    places = np.linspace(0.0, old - 1.0, positions)
    before = np.floor(places).astype(int)
    after = np.minimum(before + 1, old - 1)
    fraction = (places - before).astype(np.float32)[:, None]
    longer = (1.0 - fraction) * table[before] + fraction * table[after]
    return dataclasses.replace(
        directory,
        config=dataclasses.replace(directory.config, max_position_embeddings=positions),
        tensors={**directory.tensors, _POSITIONS: longer},
    )


def with_layers(directory: ModelDirectory, layers: Sequence[int]) -> ModelDirectory:
    """Return the model with only some layers, to start a student from (Sanh et al. 2019, section
    3).

    Args:
        directory: the model.
        layers: numbers from 0, in ascending order.

    Raises:
        UsageError: the model lacks a layer.
    """
    number = directory.config.num_hidden_layers
    if layers[-1] >= number:
        raise UsageError(
            f"--layers: {directory.path} has the layers 0 to {number - 1}, but no {layers[-1]}"
        )
    new_number = {layer: number for number, layer in enumerate(layers)}
    names: dict[str, str] = {}  # names in the source by new names
    for name in directory.tensors:
        match = _LAYER.fullmatch(name)
        if match is None:
            names[name] = name
            continue
        layer = int(match["number"])
        if layer in new_number:
            names[f"{match['before']}{new_number[layer]}{match['after']}"] = name
    return dataclasses.replace(
        directory,
        config=dataclasses.replace(directory.config, num_hidden_layers=len(layers)),
        tensors={name: directory.tensors[before] for name, before in names.items()},
    )


def with_vocab(directory: ModelDirectory, path: str | Path) -> ModelDirectory:
    """Return the model with the extended vocabulary of a file.

    A new entry starts as the mean of the old entries that WordPiece splits it into. One that cannot
    be split starts from the normal distribution of a fresh model, seeded by the entry itself. Its
    bias in the masked-LM head is 0.

    Args:
        directory: the model.
        path: a `vocab.txt` that begins with the entries of the model, in order. It may leave out
            entries of unused rows at their end.

    Raises:
        UsageError: the file is not a vocabulary, or gives an old entry another id.
    """
    vocab = read_vocab(path)
    old = directory.vocab
    if vocab[: len(old)] != old:
        old = without_unused_end(old)
    for number, piece in enumerate(old):
        if vocab[number : number + 1] != [piece]:
            got = repr(vocab[number]) if number < len(vocab) else "the end of the file"
            raise UsageError(
                f"{path}:{number + 1}: expected {piece!r} as in {directory.path}, got {got}; the "
                f"vocabulary must begin with the model's {len(old)} pieces and add new ones after"
            )
    ids = {piece: number for number, piece in enumerate(old)}
    table = directory.tensors[WORD_EMBEDDINGS][: len(old)]
    rows = [
        _new_row(piece, ids, table, directory.config.initializer_range)
        for piece in vocab[len(old) :]
    ]
    changed = {WORD_EMBEDDINGS: np.concatenate([table, np.reshape(rows, (-1, table.shape[1]))])}
    if _MASKED_LM_BIAS in directory.tensors:
        bias = directory.tensors[_MASKED_LM_BIAS][: len(old)]
        changed[_MASKED_LM_BIAS] = np.pad(bias, (0, len(rows)))
    return dataclasses.replace(
        directory,
        config=dataclasses.replace(directory.config, vocab_size=len(vocab)),
        vocab=vocab,
        tensors={**directory.tensors, **changed},
    )


def _new_row(
    piece: str, ids: dict[str, int], table: np.ndarray, initializer_range: float
) -> np.ndarray:
    """Return the first embedding of a new entry, float32 [hidden]."""
    parts = longest_match(piece, ids, longest=len(piece))
    if parts:
        return table[parts].mean(axis=0)
    generator = np.random.default_rng(zlib.crc32(piece.encode("utf-8")))
    return initializer_range * generator.standard_normal((table.shape[1],), np.float32)


class VocabularySubset:
    """Some entries of a vocabulary, renumbered in the same order.

    Fine-tuning on a task with few different tokens needs only their embeddings, which saves memory
    and time. The others are put back when the model is written.

    Args:
        directory: the whole model.
        ids: int arrays of any shape with the ids to keep; special tokens are always kept.

    Attributes:
        directory: the model with only these entries.
    """

    def __init__(self, directory: ModelDirectory, ids: Iterable[np.ndarray]):
        words = directory.tensors.get(WORD_EMBEDDINGS)
        is_kept = np.zeros(len(directory.vocab), np.bool_)
        is_kept[[directory.vocab.index(token) for token in SPECIAL_TOKENS]] = True
        for used in ids:
            is_kept[used] = True
        if words is None or len(words) != len(is_kept):
            # Damaged tensors are left as they are; loading rejects them with a better message.
            is_kept[:] = True
            tensors = directory.tensors
        else:
            self._others = words[~is_kept]
            unchanged = cast(MutableMapping[str, np.ndarray], directory.tensors)
            tensors = ChainMap({WORD_EMBEDDINGS: words[is_kept]}, unchanged)
        self._is_kept = is_kept
        self._numbers = np.cumsum(is_kept, dtype=np.int32) - 1
        kept = np.flatnonzero(is_kept)
        self.directory = dataclasses.replace(
            directory,
            config=dataclasses.replace(directory.config, vocab_size=len(kept)),
            vocab=[directory.vocab[index] for index in kept],
            tensors=tensors,
        )

    def numbers(self, ids: npt.ArrayLike) -> np.ndarray:
        """Translate ids of the whole vocabulary to ids of the subset, int32 of the same shape."""
        return self._numbers[np.asarray(ids)]

    def whole(
        self, config: BertConfig, tensors: Mapping[str, np.ndarray]
    ) -> tuple[BertConfig, dict[str, np.ndarray]]:
        """Put a trained subset back into the whole vocabulary.

        Args:
            config: config of the subset's model.
            tensors: float32 by HuggingFace's names.

        Returns:
            Config and tensors of the whole model.
        """
        trained = tensors[WORD_EMBEDDINGS]
        words = np.empty((len(self._is_kept), trained.shape[1]), np.float32)
        words[self._is_kept] = trained
        words[~self._is_kept] = self._others
        config = dataclasses.replace(config, vocab_size=len(words))
        return config, {**tensors, WORD_EMBEDDINGS: words}
