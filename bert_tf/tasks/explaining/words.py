"""Places of the words of a row's texts in its sequences.

A task packs texts into sequences in its own way: pairs, windows, a sequence per choice. To find
each token, the row is packed a second time with a tokenizer that returns the number of a token in
place of its id. This works because packing only depends on the counts of tokens.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.config.bert_file import read_task
from bert_tf.data.text.host_wordpiece import HostTokenizer, TokenizedTexts, Tokens
from bert_tf.data.text.vocab_file import CONTINUATION
from bert_tf.tasks.base.declaration import imported
from bert_tf.tasks.base.explained import PlacedRow, Word
from bert_tf.tasks.base.host_task import HostTask
from bert_tf.tasks.registry import declared_task

WEIGHTS = "model.safetensors"
_SPECIALS = ("[CLS]", "[SEP]", "[MASK]")


class NumberingTokenizer:
    """A `Tokenizer` whose ids are numbers of tokens, the same token never twice.

    Attributes:
        vocab: vocabulary entry of each token, by its number.
        owners: number in `texts` of each token's text; -1 for special tokens.
        begins, ends: first character of each token in its text, and the one after its last.
        texts: all texts, in the order in which they were tokenized.
    """

    cls_id = _SPECIALS.index("[CLS]")
    sep_id = _SPECIALS.index("[SEP]")
    mask_id = _SPECIALS.index("[MASK]")

    def __init__(self, tokenizer: HostTokenizer):
        self._tokenizer = tokenizer
        self.vocab: list[str] = list(_SPECIALS)
        self.owners: list[int] = [-1] * len(_SPECIALS)
        self.begins: list[int] = [0] * len(_SPECIALS)
        self.ends: list[int] = [0] * len(_SPECIALS)
        self.texts: list[str] = []

    def tokenize_texts(self, texts: Sequence[str]) -> Tokens:
        tokenized = self.tokenize_with_characters(texts)
        return Tokens(tokenized.ids, tokenized.offsets)

    def tokenize_with_characters(self, texts: Sequence[str]) -> TokenizedTexts:
        tokenized = self._tokenizer.tokenize_with_characters(texts)
        first = len(self.vocab)
        owners = np.repeat(np.arange(len(texts)) + len(self.texts), tokenized.lengths)
        self.texts += texts
        self.vocab += [self._tokenizer.vocab[number] for number in tokenized.ids.tolist()]
        self.owners += owners.tolist()
        self.begins += tokenized.first_characters.tolist()
        self.ends += tokenized.last_characters.tolist()
        ids = np.arange(first, len(self.vocab), dtype=np.int32)
        return dataclasses.replace(tokenized, ids=ids)


def place_words(host: HostTask, tokenizer: HostTokenizer, row: Mapping[str, Any]) -> PlacedRow:
    """Pack a row into sequences, and locate its words in them.

    Args:
        host: the task.
        tokenizer: tokenizer of the model.
        row: a text, or a list of texts, by input.
    """
    columns = {name: [value] for name, value in row.items()}
    rows = host.encode(tokenizer, columns)
    numbering = NumberingTokenizer(tokenizer)
    numbers = host.encode(numbering, columns).sequences.ids
    named = _names_of(row, numbering.texts)
    words: list[Word] = []
    word_of_number = np.full(len(numbering.vocab), -1, np.int64)
    for number in range(len(_SPECIALS), len(numbering.vocab)):
        owner = numbering.owners[number]
        end = numbering.ends[number]
        continues = numbering.vocab[number].startswith(CONTINUATION)
        if continues and numbering.owners[number - 1] == owner:
            words[-1] = words[-1]._replace(
                text=numbering.texts[owner][words[-1].begin : end], end=end
            )
        else:
            begin = numbering.begins[number]
            words.append(Word(*named[owner], numbering.texts[owner][begin:end], begin, end))
        word_of_number[number] = len(words) - 1
    return PlacedRow(rows=rows, words=words, word_of=word_of_number[numbers])


def _names_of(row: Mapping[str, Any], texts: Sequence[str]) -> list[tuple[str, int | None]]:
    """Return input and item of each tokenized text; equal texts are matched by their order."""
    waiting: dict[str, list[tuple[str, int | None]]] = defaultdict(list)
    for name, value in row.items():
        if isinstance(value, str):
            waiting[value].append((name, None))
        else:
            for item, text in enumerate(value):
                waiting[text].append((name, item))
    named = []
    for text in texts:
        names = waiting[text]
        # The last name stays, for a task that tokenizes a text several times.
        named.append(names.pop(0) if len(names) > 1 else names[0])
    return named


def check_explainable(folder: str | Path) -> None:
    """Raise UsageError for a model whose task is not explained, or that has no weights."""
    declared = declared_task(read_task(folder), str(folder))
    host = None if declared.host is None else imported(declared.host)
    if host is None or host.targets is HostTask.targets:
        raise UsageError(
            f"--explain does not apply to {folder}: predictions of {declared.name} are not "
            "explained"
        )
    if not (Path(folder) / WEIGHTS).is_file():
        raise UsageError(
            f"--explain: {folder} has no {WEIGHTS}, whose gradients it needs; export the model "
            "again, without --layout serving"
        )
