"""Tasks to fine-tune for: a folder each, and the base they share."""

PRETRAINED_TASKS = {"fill-mask": "bert_tf.tasks.fill_mask.declaration:FILL_MASK"}
"""`module:declaration` of tasks without fine-tuning; `registry.py` imports them when used."""
