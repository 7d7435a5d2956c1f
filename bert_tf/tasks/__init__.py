"""Tasks to fine-tune for: a folder each, and the base they share."""

PRETRAINED_TASKS = {
    "fill-mask": "bert_tf.tasks.fill_mask.declaration:FILL_MASK",
    "likelihood": "bert_tf.tasks.likelihood.declaration:LIKELIHOOD",
    "next-sentence": "bert_tf.tasks.next_sentence.declaration:NEXT_SENTENCE",
}
"""`module:declaration` of tasks without fine-tuning; `registry.py` imports them when used."""
