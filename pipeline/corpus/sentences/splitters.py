"""How paragraphs are split into sentences: by our rules, or a library's for one language."""

from __future__ import annotations

import dataclasses
import re
from typing import Protocol

import numpy as np

from bert_tf.base.errors import UsageError
from bert_tf.config.sections.data import check_splitter_installed
from pipeline.corpus.sentences.rules import split_sentences

_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*", re.IGNORECASE)
# sentencex ends sentences here whatever surrounds it: two paragraphs are never one sentence.
_BETWEEN_PARAGRAPHS = "\n\n"
_BATCH_PARAGRAPHS = 1000


class SentenceSplitter(Protocol):
    """Finds sentences; small and picklable, it is sent to the workers."""

    def split(
        self, data: np.ndarray, starts: np.ndarray, stops: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Splits the paragraphs `data[starts[p] : stops[p]]`.

        Returns:
            Starts and stops of the sentences in `data`, int64 [sentences] each, without white space
            at their ends; and how many each paragraph has, int64 [paragraphs].
        """


def make_splitter(name: str, language: str) -> SentenceSplitter | None:
    """The splitter of a name of `CorpusSection.sentence_splitter`; None for `none`.

    Raises:
        UsageError: its library is not installed, or the language is no language code.
    """
    if name == "none":
        return None
    if name == "rules":
        return RulesSplitter()
    check_splitter_installed(name)
    if not _LANGUAGE_CODE.fullmatch(language):
        raise UsageError(
            f"sentence_language {language!r}: expected a language code such as en, de or zh"
        )
    return SentencexSplitter(language.lower())


@dataclasses.dataclass(frozen=True)
class RulesSplitter:
    """Our rules for all languages at once (see `split_sentences`)."""

    def split(
        self, data: np.ndarray, starts: np.ndarray, stops: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Splits paragraphs in one compiled pass."""
        return split_sentences(data, starts, stops)


@dataclasses.dataclass(frozen=True)
class SentencexSplitter:
    """Wikimedia's `sentencex`, which has terminators and abbreviations by language.

    Attributes:
        language: a code that it knows; for others it falls back on a related one or on English.
    """

    language: str

    def split(
        self, data: np.ndarray, starts: np.ndarray, stops: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Splits some paragraphs per call."""
        from sentencex import segment

        sentence_starts: list[int] = []
        sentence_stops: list[int] = []
        counts = np.zeros(len(starts), np.int64)
        for first in range(0, len(starts), _BATCH_PARAGRAPHS):
            begins = starts[first : first + _BATCH_PARAGRAPHS].tolist()
            ends = stops[first : first + _BATCH_PARAGRAPHS].tolist()
            text = _BETWEEN_PARAGRAPHS.join(
                data[begin:end].tobytes().decode("utf-8")
                for begin, end in zip(begins, ends, strict=True)
            )
            paragraph, position = 0, begins[0]
            # Joined again, the segments are the text; but of the breaks between paragraphs, also
            # segments, one every 10,000 characters is missing (seen in 1.0.32).
            for part in segment(self.language, text):
                if part == _BETWEEN_PARAGRAPHS:
                    continue
                if position == ends[paragraph]:
                    paragraph += 1
                    position = begins[paragraph]
                raw = part.encode("utf-8")
                sentence = part.strip().encode("utf-8")
                if sentence:
                    start = position + raw.index(sentence)
                    sentence_starts.append(start)
                    sentence_stops.append(start + len(sentence))
                    counts[first + paragraph] += 1
                position += len(raw)
            assert position == ends[-1], "sentencex changed the text"
        return np.array(sentence_starts, np.int64), np.array(sentence_stops, np.int64), counts
