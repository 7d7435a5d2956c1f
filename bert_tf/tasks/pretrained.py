"""Tasks of pretrained models without fine-tuning, by name; those to fine-tune: `registry.py`."""

from __future__ import annotations

PRETRAINED_TASKS = {"fill-mask": "bert_tf.tasks.fill_mask.declaration:FILL_MASK"}
"""`module:declaration` of each; `bert_tf.tasks.registry` imports them when they are used."""
