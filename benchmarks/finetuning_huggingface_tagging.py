"""HuggingFace's side of benchmarks/finetuning.py for tagging, as its example `run_ner.py`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from seqeval.metrics import f1_score
from transformers import (
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    Trainer,
)

_IGNORED = -100  # the label of tokens that no loss is computed for


class Tagging:
    """CoNLL columns, words first and tags last; a word is labeled at its first token."""

    def __init__(self, settings: dict[str, Any], tokenizer: Any):
        self._settings, self._tokenizer = settings, tokenizer
        sentences = read_sentences(settings["train"])[: settings["rows"] or None]
        self.tags = sorted({tag for _, tags in sentences for tag in tags})
        self._eval_sentences = read_sentences(settings["eval"])
        self.train = self._features(sentences)
        self.eval = self._features(self._eval_sentences)
        self.collator = DataCollatorForTokenClassification(tokenizer)
        self.model = AutoModelForTokenClassification.from_pretrained(
            settings["init"], num_labels=len(self.tags)
        )

    def evaluate(self, trainer: Trainer) -> dict[str, Any]:
        """F1 of entities by seqeval; words that were cut off count as outside of any."""
        found = trainer.predict(self.eval)
        predicted = []
        for (_, tags), logits, labels in zip(
            self._eval_sentences, found.predictions, found.label_ids, strict=True
        ):
            read = [self.tags[number] for number in logits[labels != _IGNORED].argmax(-1)]
            predicted.append(read + ["O"] * (len(tags) - len(read)))
        return {"metric": float(f1_score([tags for _, tags in self._eval_sentences], predicted))}

    def _features(self, sentences: list[tuple[list[str], list[str]]]) -> list[dict[str, Any]]:
        encoded = self._tokenizer(
            [words for words, _ in sentences],
            is_split_into_words=True,
            truncation=True,
            max_length=self._settings["max_seq_length"],
        )
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        features = []
        for index, (_, tags) in enumerate(sentences):
            words = encoded.word_ids(index)
            before = [None, *words[:-1]]
            labels = [
                _IGNORED if word is None or word == last else numbers.get(tags[word], _IGNORED)
                for word, last in zip(words, before, strict=True)
            ]
            features.append(
                {**{name: values[index] for name, values in encoded.items()}, "labels": labels}
            )
        return features


def read_sentences(path: str) -> list[tuple[list[str], list[str]]]:
    """Words and tags of each sentence."""
    sentences = []
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    for is_blank, group in itertools.groupby(lines, lambda line: not line.strip()):
        if not is_blank:
            columns = [line.split("\t") if "\t" in line else line.split() for line in group]
            sentences.append(([cells[0] for cells in columns], [cells[-1] for cells in columns]))
    return sentences
