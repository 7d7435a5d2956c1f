"""Every task that a pretrained model does without fine-tuning, by its name on the command line.

Those to fine-tune for are in `registry.py`.
"""

from __future__ import annotations

PRETRAINED_TASKS = {"fill-mask": "bert_tf.tasks.fill_mask.declaration:FILL_MASK"}
"""`module:declaration` of each; `bert_tf.tasks.registry` imports them when they are used."""
