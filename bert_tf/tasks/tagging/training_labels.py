"""The labels of training rows: which there are, how often, and which look wrong."""

from __future__ import annotations

from collections.abc import Iterator

from bert_tf.base.errors import InputError
from bert_tf.base.wording import quantity
from bert_tf.tasks.base.labels import LabelRows, suspicious_labels
from bert_tf.tasks.tagging.options import PLAIN
from bert_tf.tasks.tagging.rows.gold_tags import gold_labels
from bert_tf.tasks.tagging.rows.tagged_texts import TaggedTexts
from bert_tf.tasks.tagging.schemes import OUTSIDE, kinds_of_tags, scheme_tags

_MANY_LABELS, _MOST_LABELS_PER_ENTITY = 100, 0.05  # more of both are reason to doubt the column


def learned_labels(texts: TaggedTexts, scheme: str) -> tuple[str, ...]:
    """O first, then every tag of the types that occur, sorted.

    Raises:
        InputError: there is a single tag.
    """
    is_tagged = texts.has_words
    kinds = kinds_of_tags(texts.tags, scheme) if is_tagged else tuple(dict.fromkeys(texts.tags))
    tags = sorted(scheme_tags(kinds, scheme))
    needs_outside = scheme != PLAIN or not is_tagged or OUTSIDE in texts.tags
    labels = (*((OUTSIDE,) if needs_outside else ()), *tags)
    if len(labels) < 2:
        raise InputError(
            f"{texts.source}: {labels[0]!r} is the tag of every word; tagging needs at least two "
            "tags; name another column by --tag-column"
        )
    return labels


def label_rows(texts: TaggedTexts, scheme: str) -> LabelRows:
    """The type of each entity, or without a scheme the tag of each word, with its line."""
    gold = gold_labels(texts, scheme)
    return LabelRows(texts.source, gold.labels, gold.lines, noun=_noun(scheme))


def label_doubts(rows: LabelRows, scheme: str) -> Iterator[str]:
    """Lines on what is likely a mistake: a wrong column, or as of `suspicious_labels`."""
    count = rows.counts.total()
    if len(rows.counts) <= max(_MANY_LABELS, _MOST_LABELS_PER_ENTITY * count):
        yield from suspicious_labels(rows)
    else:
        yield (
            f"{rows.source}: {len(rows.counts):,} labels of {quantity(count, _noun(scheme))}; "
            "is it the right column?"
        )


def _noun(scheme: str) -> str:
    return "word" if scheme == PLAIN else "entity"
