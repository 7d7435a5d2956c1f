"""The recipe by which the vector of a text is made from a model's token vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

QUERY = "query"
DOCUMENT = "document"
_KINDS = {QUERY: (QUERY,), DOCUMENT: (DOCUMENT, "passage", "corpus")}
RAW_CLS = (
    "[CLS] vectors of a BERT that was not trained for similarity are not sentence embeddings: "
    "texts with the same meaning are not close to each other; use the mean, or a model trained for "
    "similarity."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddingRecipe:
    """The way in which a folder of sentence-transformers makes the vectors of texts.

    Attributes:
        pooling: `mean` of all tokens, [CLS] and [SEP] included (Reimers and Gurevych 2019, section
            3), `cls`, or `max` of each dimension.
        normalize: whether vectors are divided by their Euclidean norm.
        max_seq_length: most tokens of a text, [CLS] and [SEP] included.
        is_trained: whether the folder says that the model was trained with this recipe.
        lowercase_texts: whether texts are lower-cased before tokenization, with accents kept.
        prompts: beginnings to put before a text, by the kind of text.
        default_prompt: key of the prompt for texts of no kind; None for none.
        similarity: `cosine`, `dot` or another one of the library.
    """

    pooling: str = "mean"
    normalize: bool = False
    max_seq_length: int
    is_trained: bool = False
    lowercase_texts: bool = False
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default_prompt: str | None = None
    similarity: str = "cosine"

    def __str__(self) -> str:
        parts = [
            f"{self.pooling} of the tokens",
            "normalized" if self.normalize else "not normalized",
            f"at most {self.max_seq_length} tokens",
        ]
        if self.lowercase_texts:
            parts.append("texts lower-cased")
        if any(self.prompts.values()):
            parts.append("prompts")
        return "; ".join(parts)

    @property
    def changes_texts(self) -> bool:
        """Whether texts are changed before tokenization."""
        return self.lowercase_texts or any(self.prompts.values())

    def prompt(self, name: str | None = None) -> str:
        """Return a prompt by name; the default prompt for None, "" for an unknown name."""
        if name is None:
            name = self.default_prompt or ""
        return self.prompts.get(name, "")

    def prompt_name(self, kind: str) -> str:
        """Return the key of the prompt for QUERY or DOCUMENT; "" without one."""
        return next((name for name in _KINDS[kind] if name in self.prompts), "")

    @property
    def is_raw_cls(self) -> bool:
        """Whether vectors are those of [CLS], from a model that was not trained for that."""
        return self.pooling == "cls" and not self.is_trained

    def changed(
        self,
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        max_seq_length: int | None = None,
    ) -> EmbeddingRecipe:
        """Return the recipe with the values that are not None."""
        values = {"pooling": pooling, "normalize": normalize, "max_seq_length": max_seq_length}
        changes: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
        # The weights were trained for one pooling; with another, the recipe is a new one.
        is_trained = self.is_trained and pooling in (None, self.pooling)
        return dataclasses.replace(self, **changes, is_trained=is_trained)


def prepared_texts(texts: Sequence[str], *, prompt: str, lowercase: bool) -> list[str]:
    """Prepend a prompt, and lower-case letter by letter like HuggingFace's normalizer."""
    prepared = [prompt + text for text in texts] if prompt else list(texts)
    return [text.replace("Σ", "σ").lower() for text in prepared] if lowercase else prepared
