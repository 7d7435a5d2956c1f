"""The section of `summarize`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.section import option
from bert_tf.config.sections.data import SENTENCE_SPLITTERS, check_splitter_installed
from bert_tf.config.sections.embedding import TextVectorsSection

DEFAULT_SENTENCES = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizeConfig(TextVectorsSection):
    """Adds an extractive summary to every row of tables."""

    section_name: ClassVar[str] = "summarize"

    model: str = option(
        "model that makes the sentences' vectors: model directory, run, HuggingFace folder or "
        "exported model",
        reads="model",
    )
    input: tuple[str, ...] = option(
        "rows with a document: a path or a quoted glob; repeatable", reads="tables"
    )
    output: str = option("file, whose extension sets the format, or directory to write")
    sentences: int | None = option(
        f"sentences of a summary, at most (default: {DEFAULT_SENTENCES}, unless ratio is given)",
        default=None,
        minimum=1,
    )
    ratio: float | None = option(
        "fraction of a document's sentences, rounded up, in place of a number",
        default=None,
        above=0.0,
        maximum=1.0,
    )
    mmr_lambda: float = option(
        "maximal marginal relevance: 1 takes the sentences most similar to the document, lower "
        "values sentences that differ from those already chosen",
        default=0.7,
        minimum=0.0,
        maximum=1.0,
    )
    sentence_splitter: str = option(
        "sentence splitter of paragraphs: rules (any language), sentencex (Wikimedia's library, "
        "for sentence_language), none (one sentence per line)",
        default="rules",
        choices=SENTENCE_SPLITTERS,
    )
    sentence_language: str = option("language code of the text, for sentencex", default="en")
    limit: int = option(
        "summarize only the first rows of each input (0: all)", default=0, minimum=0
    )

    def check_installed(self) -> None:
        """Checks the library of the sentence splitter."""
        check_splitter_installed(self.sentence_splitter)

    def faults(self) -> list[str]:
        """Rejects two lengths of a summary."""
        faults = super().faults()
        if self.sentences is not None and self.ratio is not None:
            faults.append("ratio: sentences is given as well; give one of them")
        return faults
