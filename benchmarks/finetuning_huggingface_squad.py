"""HuggingFace's side of benchmarks/finetuning.py for questions, as its example `run_qa.py`."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoModelForQuestionAnswering, DataCollatorWithPadding, Trainer

_DOC_STRIDE, _N_BEST, _LONGEST_ANSWER = 128, 20, 30


class QuestionAnswering:
    """SQuAD's JSON; windows of long contexts, spans chosen over the windows of a question."""

    def __init__(self, settings: dict[str, Any], tokenizer: Any):
        self._settings, self._tokenizer = settings, tokenizer
        self._questions = read_questions(settings["eval"])
        self.train = self._features(read_questions(settings["train"])[: settings["rows"] or None])
        self._windows = self._encode(self._questions)
        names = ("input_ids", "attention_mask", "token_type_ids")
        self.eval = [
            {name: self._windows[name][index] for name in names}
            for index in range(len(self._windows["input_ids"]))
        ]
        self.collator = DataCollatorWithPadding(tokenizer)
        self.model = AutoModelForQuestionAnswering.from_pretrained(settings["init"])

    def evaluate(self, trainer: Trainer) -> dict[str, Any]:
        """Of each question its best span and the null odds."""
        starts, ends = trainer.predict(self.eval).predictions[:2]
        windows = collections.defaultdict(list)
        for window, question in enumerate(self._windows["overflow_to_sample_mapping"]):
            windows[question].append(window)
        answers = {}
        for number, question in enumerate(self._questions):
            spans, null = [(-np.inf, "")], np.inf
            for window in windows[number]:
                start, end = starts[window], ends[window]
                null = min(null, float(start[0] + end[0]))
                spans += self._spans(window, start, end, question["context"])
            score, text = max(spans)
            answers[question["id"]] = (text, null - score if text else 1e9)
        return {"answers": answers}

    def _spans(
        self, window: int, start: np.ndarray, end: np.ndarray, context: str
    ) -> list[tuple[float, str]]:
        """Scores and texts of the most probable spans of a window."""
        places = self._windows["offset_mapping"][window]
        is_context = np.array([part == 1 for part in self._windows.sequence_ids(window)])
        first, last = (np.argsort(-logits[: len(places)])[:_N_BEST] for logits in (start, end))
        return [
            (float(start[i] + end[j]), context[places[i][0] : places[j][1]])
            for i in first
            for j in last
            if is_context[i] and is_context[j] and i <= j < i + _LONGEST_ANSWER
        ]

    def _encode(self, questions: list[dict[str, Any]]) -> Any:
        return self._tokenizer(
            [question["question"].lstrip() for question in questions],
            [question["context"] for question in questions],
            truncation="only_second",
            max_length=self._settings["max_seq_length"],
            stride=_DOC_STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )

    def _features(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        encoded = self._encode(questions)
        features = []
        for window, number in enumerate(encoded["overflow_to_sample_mapping"]):
            start, end = self._places(encoded, window, questions[number])
            names = ("input_ids", "attention_mask", "token_type_ids")
            feature = {name: encoded[name][window] for name in names}
            features.append({**feature, "start_positions": start, "end_positions": end})
        return features

    @staticmethod
    def _places(encoded: Any, window: int, question: dict[str, Any]) -> tuple[int, int]:
        """Return the tokens of the answer in a window, [CLS] where it is not there."""
        if question["answer"] is None:
            return 0, 0
        first = question["answer_start"]
        last = first + len(question["answer"])
        places, parts = encoded["offset_mapping"][window], encoded.sequence_ids(window)
        tokens = [index for index, part in enumerate(parts) if part == 1]
        if not tokens or places[tokens[0]][0] > first or places[tokens[-1]][1] < last:
            return 0, 0
        start = max(index for index in tokens if places[index][0] <= first)
        end = min(index for index in tokens if places[index][1] >= last)
        return start, end


def read_questions(path: str) -> list[dict[str, Any]]:
    """Questions with their context and first answer."""
    questions = []
    for article in json.loads(Path(path).read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                answers = [] if asked.get("is_impossible") else asked["answers"]
                questions.append(
                    {
                        "id": asked["id"],
                        "question": asked["question"],
                        "context": paragraph["context"],
                        "answer": answers[0]["text"] if answers else None,
                        "answer_start": answers[0]["answer_start"] if answers else None,
                    }
                )
    return questions
