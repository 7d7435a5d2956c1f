"""Choose the most likely one of several choices for a context, inside one graph."""

from __future__ import annotations

from typing import Any, ClassVar

import tensorflow as tf

from bert_tf.data.text.vocab_file import SPECIALS_OF_PAIR
from bert_tf.data.text.wordpiece import WordPieceTokenizer, longest_first_lengths
from bert_tf.serving.row_batches import BatchRows, TensorRanges, rows_of_ranges
from bert_tf.serving.signatures import FAR_BELOW
from bert_tf.serving.text_module import TextModule


def choice_logits(
    model: Any, batch: dict[str, tf.Tensor], *, training: bool, dropout_key: tf.Tensor | None
) -> dict[str, tf.Tensor]:
    """Return `logits`, float32 [rows, choices], `FAR_BELOW` for choices that a row does not have.

    Args:
        model: a built `BertMultipleChoice`.
        batch: int32 [rows, choices, length] by input name.
        training: whether dropout is applied.
        dropout_key: int32 [2]; None for no dropout.
    """
    logits = model(batch, training=training, dropout_key=dropout_key)
    is_choice = tf.reduce_any(batch["input_mask"] > 0, axis=-1)
    return {"logits": tf.where(is_choice, logits, FAR_BELOW)}


class ChoiceModule(TextModule):
    """Chooses one of `choices` by `context`, and `question` if rows have one.

    `choices` is string [n, choices], padded with empty texts. Outputs: `predicted_choice` int32
    [n], from 0, or -1 for a row without choices; `predicted_text` string [n]; `predicted_score`
    float32 [n], its probability among the row's choices; `probabilities` float32 [n, choices], 0
    for an empty text.

    Args:
        model: built `BertMultipleChoice` with its weights, float32.
        tokenizer: its tokenizer.
        has_question: whether rows have a question.
        max_seq_length: tokens of a context with a choice.
    """

    input_names: ClassVar[tuple[str, ...]] = ("context", "question", "choices")
    list_inputs: ClassVar[tuple[str, ...]] = ("choices",)
    ids_rank: ClassVar[int] = 3

    def __init__(
        self, model: Any, tokenizer: WordPieceTokenizer, *, has_question: bool, max_seq_length: int
    ):
        super().__init__(model, tokenizer, max_seq_length)
        self._has_question = has_question

    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.input_names if self._has_question or name != "question")

    def predict(self, texts: dict[str, tf.Tensor], batch_tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        choices = texts["choices"]
        places = tf.where(choices != "")
        scores = tf.tensor_scatter_nd_update(
            tf.fill(tf.shape(choices), FAR_BELOW),
            places,
            self._scores(texts, places, batch_tokens),
        )
        is_there = choices != ""
        has_choices = tf.reduce_any(is_there, axis=1)
        likely = tf.nn.softmax(scores, axis=-1)
        probabilities = tf.where(is_there, likely, tf.zeros_like(likely))
        chosen = tf.argmax(probabilities, axis=-1, output_type=tf.int32)
        return {
            "predicted_choice": tf.where(has_choices, chosen, -tf.ones_like(chosen)),
            "predicted_text": tf.gather(choices, chosen, batch_dims=1),
            "predicted_score": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
        }

    def head_outputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return choice_logits(self.model, batch, training=False, dropout_key=None)

    def _scores(
        self, texts: dict[str, tf.Tensor], places: tf.Tensor, batch_tokens: tf.Tensor
    ) -> tf.Tensor:
        """Return logits, float32 [sequences], of the choices at `places`, int64 [sequences, 2]."""
        rows = choice_rows(self.tokenizer, texts, places, max_seq_length=self.max_seq_length)
        (scores,) = self.over_rows(
            lambda batch, _: (self.model(batch, training=False),),
            rows,
            batch_tokens,
            tf.TensorSpec([], tf.float32),
        )
        return scores


def choice_rows(
    tokenizer: WordPieceTokenizer,
    texts: dict[str, tf.Tensor],
    places: tf.Tensor,
    *,
    max_seq_length: int,
) -> BatchRows:
    """Make rows `[CLS] context [SEP] question choice [SEP]` of the choices at some places.

    The tokens of a question followed by those of a choice are the tokens of both texts joined by a
    blank, because no token reaches over a blank.

    Args:
        tokenizer: tokenizer of the model.
        texts: `context` and perhaps `question`, string [n], and `choices`, string [n, choices].
        places: int64 [rows, 2], row and number of each choice.
        max_seq_length: tokens of a row, special tokens included.
    """
    owners = places[:, 0]
    choices = tokenizer.tokenize(tf.gather_nd(texts["choices"], places))
    parts = [_token_ranges(choices, tf.range(tf.size(owners, tf.int64)))]
    if "question" in texts:
        parts.insert(0, _token_ranges(tokenizer.tokenize(texts["question"]), owners))
    context = _token_ranges(tokenizer.tokenize(texts["context"]), owners)
    of_context, left = longest_first_lengths(
        context.lengths,
        tf.add_n([part.lengths for part in parts]),
        capacity=max_seq_length - SPECIALS_OF_PAIR,
    )
    second = []
    for part in parts:
        kept = tf.minimum(part.lengths, left)
        second.append(part._replace(lengths=kept))
        left -= kept
    return rows_of_ranges(
        [context._replace(lengths=of_context)],
        second,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )


def _token_ranges(tokens: tf.RaggedTensor, rows: tf.Tensor) -> TensorRanges:
    """Return the tokens of some rows, int64 [n], as ranges."""
    return TensorRanges(
        tokens.flat_values,
        starts=tf.gather(tokens.row_starts(), rows),
        lengths=tf.cast(tf.gather(tokens.row_lengths(), rows), tf.int32),
    )
