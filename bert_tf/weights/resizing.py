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
_LAYER = re.compile(r"(bert\.encoder\.layer\.)(\d+)(\..+)")


def with_positions(directory: ModelDirectory, positions: int) -> ModelDirectory:
    """Stretch the position table, which then needs some training on long sequences.

    The old rows are spread evenly over the new table, the first and the last staying at its ends,
    and rows between them are interpolated linearly. Raises UsageError for fewer positions.
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
    """Keep only some layers, as a start for a student (Sanh et al. 2019, section 3).

    Layers count from 0, in ascending order. Raises UsageError if the model lacks one.
    """
    number = directory.config.num_hidden_layers
    if layers[-1] >= number:
        raise UsageError(
            f"--layers: {directory.path} has the layers 0 to {number - 1}, but no {layers[-1]}"
        )
    place = {layer: number for number, layer in enumerate(layers)}
    names: dict[str, str] = {}  # of the source, by new name
    for name in directory.tensors:
        found = _LAYER.fullmatch(name)
        if found is None:
            names[name] = name
        elif (layer := int(found[2])) in place:
            names[f"{found[1]}{place[layer]}{found[3]}"] = name
    return dataclasses.replace(
        directory,
        config=dataclasses.replace(directory.config, num_hidden_layers=len(layers)),
        tensors={name: directory.tensors[before] for name, before in names.items()},
    )


def with_vocab(directory: ModelDirectory, path: str | Path) -> ModelDirectory:
    """Extend the vocabulary to that of a file, which begins with the model's pieces in order.

    A new piece starts as the mean of the old pieces that WordPiece splits it into; one that it
    cannot split, from the normal distribution of a fresh model, drawn by the piece alone. Its bias
    in the masked-LM head is 0. The file may omit names of unused rows at the end. Raises UsageError
    for another file, or if an old piece has another id there.
    """
    vocab, old = read_vocab(path), directory.vocab
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
    parts = longest_match(piece, ids, longest=len(piece))
    if parts:
        return table[parts].mean(axis=0)
    generator = np.random.default_rng(zlib.crc32(piece.encode("utf-8")))
    return initializer_range * generator.standard_normal((table.shape[1],), np.float32)


class VocabularySubset:
    """Some entries of a vocabulary, `ids` and the special tokens, renumbered in the same order.

    `directory` is the model with only these entries.
    """

    def __init__(self, directory: ModelDirectory, ids: Iterable[np.ndarray]):
        words = directory.tensors.get(WORD_EMBEDDINGS)
        is_kept = np.zeros(len(directory.vocab), np.bool_)
        is_kept[[directory.vocab.index(token) for token in SPECIAL_TOKENS]] = True
        for used in ids:
            is_kept[used] = True
        if words is None or len(words) != len(is_kept):
            # Left as they are; loading rejects them.
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
        """Translate ids of the whole vocabulary to ids of the subset, int32."""
        return self._numbers[np.asarray(ids)]

    def whole(
        self, config: BertConfig, tensors: Mapping[str, np.ndarray]
    ) -> tuple[BertConfig, dict[str, np.ndarray]]:
        """Put a trained subset, float32, back into the whole vocabulary."""
        trained = tensors[WORD_EMBEDDINGS]
        words = np.empty((len(self._is_kept), trained.shape[1]), np.float32)
        words[self._is_kept] = trained
        words[~self._is_kept] = self._others
        config = dataclasses.replace(config, vocab_size=len(words))
        return config, {**tensors, WORD_EMBEDDINGS: words}
