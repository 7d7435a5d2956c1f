"""Questions with windows of their contexts, targets, and answers from logits, in NumPy.

For training data, for evaluation and for engines without TensorFlow.
Unlike google-research/bert `run_squad.py` (`write_predictions`), all spans up to the maximal length
compete, and a span seen in several windows counts with its best score there.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.base.arrays import flat_ranges, offsets_of
from bert_tf.base.errors import UsageError
from bert_tf.data.rows.encoded_rows import EncodedRows
from bert_tf.data.rows.windows import (
    Windows,
    answer_tokens,
    cut_windows,
    window_rows,
    window_targets,
)
from bert_tf.data.text.host_wordpiece import TokenizedTexts, Tokenizer
from bert_tf.serving.signatures import (
    NO_SPAN_ODDS,
    PROBABILITY_DIGITS,
    SENTENCE_END,
    AnswerLengths,
    AnswerRules,
)
from bert_tf.tasks.base.declaration import ServedTaskDeclaration
from bert_tf.tasks.base.host_task import HostRows, HostTask
from bert_tf.tasks.question_answering.options import QUESTION_ANSWERING

if TYPE_CHECKING:
    from bert_tf.tasks.question_answering.rows import Questions

_LEAST_ROOM = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionRows:
    """Questions over contexts, ready for a model."""

    rows: EncodedRows  # one per window
    windows: Windows
    question_lengths: np.ndarray  # int64 [questions], tokens of each question
    texts: Sequence[str]  # each context once
    contexts: TokenizedTexts  # tokens of these, with their characters
    context_index: np.ndarray  # int64 [questions], the context of each question

    @property
    def context_begins(self) -> np.ndarray:
        """Where in its row each window's part of the context begins, int64 [windows]."""
        return self.question_lengths[self.windows.question] + 2


def encode_questions(
    tokenizer: Tokenizer,
    questions: Sequence[str],
    contexts: Sequence[str],
    context_index: np.ndarray,
    lengths: AnswerLengths,
) -> QuestionRows:
    """Tokenize questions and contexts, each once, and cuts the contexts into windows."""
    whole = tokenizer.tokenize_with_characters(questions)
    asked = _first_tokens(whole, lengths.max_query_length)
    read = tokenizer.tokenize_with_characters(contexts)
    context_index = np.asarray(context_index, np.int64)
    capacities = lengths.max_seq_length - 3 - asked.lengths
    windows = cut_windows(read.lengths[context_index], capacities, stride=lengths.doc_stride)
    rows = window_rows(
        windows,
        asked,
        read,
        context_index,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )
    lost_tokens = np.zeros(len(rows), np.int64)
    first_windows = np.searchsorted(windows.question, np.arange(len(asked.lengths)))
    lost_tokens[first_windows] = whole.lengths - asked.lengths
    return QuestionRows(
        rows=dataclasses.replace(rows, lost_tokens=lost_tokens),
        windows=windows,
        question_lengths=asked.lengths,
        texts=contexts,
        contexts=read,
        context_index=context_index,
    )


def check_question_lengths(max_seq_length: int, max_query_length: int) -> None:
    """Reject rows that leave less than eight tokens for the context beside a long question."""
    least = max_query_length + 3 + _LEAST_ROOM
    if max_seq_length < least:
        raise UsageError(
            f"max_seq_length {max_seq_length} leaves no room for a context beside a question of "
            f"max_query_length {max_query_length}; use at least {least} or shorter questions"
        )


def _first_tokens(tokens: TokenizedTexts, most: int) -> TokenizedTexts:
    lengths = np.minimum(tokens.lengths, most)
    kept = flat_ranges(tokens.offsets[:-1], lengths)
    return TokenizedTexts(
        ids=tokens.ids[kept],
        offsets=offsets_of(lengths),
        first_characters=tokens.first_characters[kept],
        last_characters=tokens.last_characters[kept],
    )


def question_targets(
    source: Questions, encoded: QuestionRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the tokens of the first answer of each question.

    Returns their start and end in each row, int32 [windows], [CLS] if a window does not hold them;
    and bool [questions], whether the tokens, or their absence, are known; never in files without
    positions.
    """
    firsts, lasts = answer_tokens(
        encoded.contexts, encoded.context_index, *_answer_characters(source)
    )
    has_answer = np.array([bool(listed) for listed in source.answers])
    is_located = ~has_answer | (firsts >= 0)
    if has_answer.any() and not is_located[has_answer].any():
        is_located[:] = False
    starts, ends = window_targets(encoded.windows, encoded.question_lengths, firsts, lasts)
    return starts, ends, is_located


def located_questions(source: Questions, is_located: np.ndarray) -> Questions:
    has_token = is_located | np.array([not listed for listed in source.answers])
    return source.rejecting(
        {
            row: (
                "answer has no tokens",
                f"question {source.ids[row]!r}: {source.answers[row][0].text!r}",
            )
            for row in np.flatnonzero(~has_token).tolist()
        }
    )


def _answer_characters(source: Questions) -> tuple[np.ndarray, np.ndarray]:
    """Position of the first answer of each question; 0 and 0 if there is none, or elsewhere."""
    places = np.zeros((2, len(source)), np.int64)
    for index, (listed, context) in enumerate(
        zip(source.answers, source.context_index, strict=True)
    ):
        if listed:
            text, start = listed[0]
            if start >= 0 and source.contexts[context].startswith(text, start):
                places[:, index] = start, start + len(text)
    starts, ends = places
    return starts, ends


_SENTENCE_END = re.compile(SENTENCE_END)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanCandidates:
    """Scored spans of contexts, the best first within a question."""

    question: np.ndarray  # int64 [n], ascending
    first: np.ndarray  # int64 [n], token of the context
    last: np.ndarray  # inclusive
    score: np.ndarray  # float32 [n], start logit plus end logit


def window_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    context_begins: np.ndarray,
    context_lengths: np.ndarray,
    *,
    max_answer_length: int,
    n_best: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the best spans of each window, from logits float32 [windows, length].

    The context's part in each row is int [windows]. Returns first, last (int64, counted within that
    part) and score (float32), each [windows, n_best]; minus infinity marks a missing span.
    """
    rows, length = start_logits.shape
    places = np.arange(length)
    inside = (places >= context_begins[:, None]) & (
        places < (context_begins + context_lengths)[:, None]
    )
    starts = np.where(inside, start_logits, -np.inf).astype(np.float32)
    ends = np.where(inside, end_logits, -np.inf).astype(np.float32)
    longest = min(max_answer_length, length)
    spare = max(0, -(-n_best // length) - longest)
    scores = np.full((rows, longest + spare, length), -np.inf, np.float32)
    for extra in range(longest):
        scores[:, extra, : length - extra] = starts[:, : length - extra] + ends[:, extra:]
    flat = scores.reshape(rows, scores.shape[1] * length)
    best = np.argpartition(-flat, n_best - 1, axis=1)[:, :n_best]
    added, first = np.divmod(best, length)
    first = first - context_begins[:, None]
    return first, first + added, np.take_along_axis(flat, best, axis=1)


def question_spans(
    windows: Windows, first: np.ndarray, last: np.ndarray, score: np.ndarray, *, n_best: int
) -> SpanCandidates:
    """Ranks the different spans of each question, from those of `window_spans`, [windows, n]."""
    there = np.isfinite(score)
    question = np.broadcast_to(windows.question[:, None], score.shape)[there]
    first = (first + windows.start[:, None])[there]
    last = (last + windows.start[:, None])[there]
    score = score[there]
    order = np.lexsort((-score, last, first, question))
    question, first, last, score = (a[order] for a in (question, first, last, score))
    repeated = np.zeros(len(question), bool)
    repeated[1:] = (
        (question[1:] == question[:-1]) & (first[1:] == first[:-1]) & (last[1:] == last[:-1])
    )
    question, first, last, score = (a[~repeated] for a in (question, first, last, score))
    order = np.lexsort((last, first, -score, question))
    question, first, last, score = (a[order] for a in (question, first, last, score))
    rank = np.arange(len(question)) - np.searchsorted(question, question, side="left")
    kept = rank < n_best
    return SpanCandidates(
        question=question[kept], first=first[kept], last=last[kept], score=score[kept]
    )


def null_scores(windows: Windows, cls_scores: np.ndarray, num_questions: int) -> np.ndarray:
    """Score of no answer: the least start plus end logit of [CLS] over a question's windows."""
    lowest = np.full(num_questions, np.inf)
    np.minimum.at(lowest, windows.question, cls_scores)
    return lowest


def runs_over_sentence_end(text: str) -> bool:
    """Whether one sentence ends and another begins: in `1873. It lies`, not in `St. Louis.`."""
    return _SENTENCE_END.search(text) is not None


def choose_answers(
    candidates: SpanCandidates,
    null: np.ndarray,
    contexts: Sequence[str],
    tokens: TokenizedTexts,
    context_index: np.ndarray,
    rules: AnswerRules,
) -> dict[str, Any]:
    """Pick a span for each question, or none; the outputs are those of `QuestionAnswerer`.

    The span is the best one, or one within a sentence that is almost as good (`AnswerRules`). There
    is no answer if the model may leave questions unanswered and the null odds exceed the threshold,
    or if a context has no span at all. The ranking is by score, except that the picked span is the
    first of the spans; no answer is part of it if it competes.
    """
    number = len(null)
    question, score = candidates.question, candidates.score.astype(np.float64)
    begins = tokens.offsets[context_index[question]]
    starts = tokens.first_characters[begins + candidates.first]
    ends = tokens.last_characters[begins + candidates.last]
    texts = [
        contexts[context][start:end]
        for context, start, end in zip(context_index[question], starts, ends, strict=True)
    ]

    has_span = np.zeros(number, bool)
    has_span[question] = True
    picked = np.searchsorted(question, np.arange(number), side="left")
    best = np.full(number, -np.inf)
    best[has_span] = score[picked[has_span]]
    if rules.sentence_margin:
        is_near = score >= best[question] - rules.sentence_margin
        _prefer_within_sentence(picked, texts, question, is_near)
    odds = np.where(has_span, null - best, NO_SPAN_ODDS)
    answered = has_span & ~(rules.may_be_unanswerable & (odds > rules.null_threshold))

    # All that competes: the spans, then no answer.
    competes = np.flatnonzero(~has_span | rules.may_be_unanswerable)
    question = np.concatenate([question, competes])
    score = np.concatenate([score, null[competes]])
    starts = np.concatenate([starts, np.full(len(competes), -1)])
    ends = np.concatenate([ends, np.full(len(competes), -1)])
    texts += [""] * len(competes)
    probability = _probabilities(question, score, number)

    is_picked = np.zeros(len(question), bool)
    is_picked[picked[has_span]] = True
    rank = np.where(is_picked, best[question], score)
    order = np.lexsort((~is_picked, -rank, question))
    nbest: list[list[dict[str, Any]]] = [[] for _ in range(number)]
    for index in order.tolist():
        nbest[question[index]].append(
            _candidate(texts[index], int(starts[index]), int(ends[index]), probability[index])
        )
    chosen = picked.copy()
    nothing = np.full(number, len(question))
    nothing[competes] = np.arange(len(question) - len(competes), len(question))
    chosen[~answered] = nothing[~answered]
    return {
        "predicted_answer": [texts[index] for index in chosen],
        "predicted_start": starts[chosen].astype(np.int32),
        "predicted_end": ends[chosen].astype(np.int32),
        "predicted_score": probability[chosen],
        "predicted_null_odds": odds,
        "predicted_nbest": nbest,
    }


def _candidate(text: str, start: int, end: int, probability: float) -> dict[str, Any]:
    return {
        "text": text,
        "start": start if start >= 0 else None,
        "end": end if start >= 0 else None,
        "probability": round(float(probability), PROBABILITY_DIGITS),
    }


def _prefer_within_sentence(
    picked: np.ndarray, texts: list[str], question: np.ndarray, is_near: np.ndarray
) -> None:
    """Set `picked`, in place, to each question's first near span within a sentence, if any."""
    near = np.flatnonzero(is_near)
    within = near[[not runs_over_sentence_end(texts[index]) for index in near]]
    found, first = np.unique(question[within], return_index=True)
    picked[found] = within[first]


def _probabilities(question: np.ndarray, score: np.ndarray, number: int) -> np.ndarray:
    peak = np.full(number, -np.inf)
    np.maximum.at(peak, question, score)
    odds = np.exp(score - peak[question])
    total = np.zeros(number)
    np.add.at(total, question, odds)
    return odds / total[question]


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringHost(HostTask, AnswerLengths):
    """See `QuestionAnsweringTask` for the fields."""

    declaration: ClassVar[ServedTaskDeclaration] = QUESTION_ANSWERING

    may_be_unanswerable: bool
    null_score_diff_threshold: float
    sentence_margin: float = 0.0

    @property
    def rules(self) -> AnswerRules:
        return AnswerRules(
            may_be_unanswerable=self.may_be_unanswerable,
            null_threshold=self.null_score_diff_threshold,
            sentence_margin=self.sentence_margin,
        )

    def encode(self, tokenizer: Tokenizer, columns: Mapping[str, Sequence[Any]]) -> HostRows:
        numbers: dict[str, int] = {}  # a context of several questions is tokenized once
        index = [numbers.setdefault(text, len(numbers)) for text in columns["context"]]
        questions = encode_questions(
            tokenizer, columns["question"], list(numbers), np.array(index, np.int64), self
        )
        return HostRows(sequences=questions.rows, details=questions)

    def reduce(
        self, rows: HostRows, chosen: np.ndarray, outputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The best spans of each window (`window_spans`), and the score of [CLS] as `cls`."""
        start, end = outputs["start_logits"], outputs["end_logits"]
        first, last, score = window_spans(
            start,
            end,
            rows.details.context_begins[chosen],
            rows.details.windows.length[chosen],
            max_answer_length=self.max_answer_length,
            n_best=self.n_best_size,
        )
        return {"first": first, "last": last, "score": score, "cls": start[:, 0] + end[:, 0]}

    def predict(
        self, rows: HostRows, columns: Mapping[str, Sequence[Any]], reduced: dict[str, np.ndarray]
    ) -> dict[str, Any]:
        encoded: QuestionRows = rows.details
        windows = encoded.windows
        candidates = question_spans(
            windows, reduced["first"], reduced["last"], reduced["score"], n_best=self.n_best_size
        )
        null = null_scores(windows, reduced["cls"], len(encoded.context_index))
        return choose_answers(
            candidates, null, encoded.texts, encoded.contexts, encoded.context_index, self.rules
        )
