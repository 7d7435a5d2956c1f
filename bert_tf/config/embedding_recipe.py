"""How the vector of a text is made of a model's token vectors."""

from __future__ import annotations

import dataclasses

RAW_CLS = (
    "[CLS] vectors of a BERT that was not trained for similarity are no sentence embeddings: equal "
    "meanings do not lie close together; take the mean, or a model trained for similarity."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddingRecipe:
    """Pooling, normalization and length of a model's text vectors.

    Attributes:
        pooling: `mean` of all tokens of a text, [CLS] and [SEP] included (Reimers and Gurevych
            2019, section 3), `cls`, the vector of [CLS], or `max`, the greatest value of each
            dimension.
        normalize: whether vectors are divided by their Euclidean norm.
        max_seq_length: tokens kept of a text, [CLS] and [SEP] included.
        is_trained: whether the model was trained with this recipe, as its folder says.
    """

    pooling: str = "mean"
    normalize: bool = False
    max_seq_length: int
    is_trained: bool = False

    @property
    def is_raw_cls(self) -> bool:
        """Whether the vectors are those of [CLS] in a model that was not trained to have them."""
        return self.pooling == "cls" and not self.is_trained

    def changed(
        self,
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        max_seq_length: int | None = None,
    ) -> EmbeddingRecipe:
        """The recipe with the values that are not None in place of its own."""
        return EmbeddingRecipe(
            pooling=self.pooling if pooling is None else pooling,
            normalize=self.normalize if normalize is None else normalize,
            max_seq_length=self.max_seq_length if max_seq_length is None else max_seq_length,
            is_trained=self.is_trained and pooling in (None, self.pooling),
        )
