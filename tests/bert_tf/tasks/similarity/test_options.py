"""Options that go together, and their defaults."""

import pytest

from bert_tf.base.errors import ConfigError
from bert_tf.tasks.registry import finetune_config


def config(**values):
    paths = {"train": "t.csv", "init": "bert", "output": "run"}
    return finetune_config({"task": "similarity", **paths, **values})


def test_columns_and_metrics_follow_from_the_loss():
    pairs = config()
    assert pairs.text_columns == ("anchor", "positive")
    assert pairs.negative_columns == ()
    assert pairs.selection_metric == "mrr@10"
    assert config(negative_column=("n1", "n2")).selection_metric == "triplet_accuracy"
    triplets = config(loss="triplet")
    assert triplets.negative_columns == ("negative",)
    assert triplets.selection_metric == "triplet_accuracy"
    scored = config(loss="cosent", text_pair_column="other", best_metric="pearson")
    assert scored.text_columns == ("text", "other")
    assert scored.selection_metric == "pearson"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"loss": "cosent", "negative_column": ("n",)}, "negative_column: does not apply to loss"),
        ({"loss": "triplet", "negative_column": ("n", "m")}, "takes one negative of each row"),
        ({"loss": "triplet", "scale": 10.0}, "scale: does not apply to loss triplet"),
        ({"triplet_margin": 1.0}, "triplet_margin: .*it is for triplet"),
        ({"label_column": "s"}, "label_column: .*it is for cosent"),
        ({"best_metric": "spearman"}, "not measured on such rows; choose one of mrr@10"),
        ({"batch_size": 1}, "batch_size: .*compares each row with all others of its batch"),
        ({"gradient_accumulation_steps": 2}, "which the parts of a batch would not be; use 1"),
        ({"loss": "cosent", "strategy": "mirrored"}, "each replica would see a part"),
        ({"max_seq_length": 2}, "use at least 3"),
        ({"loss": "contrastive"}, "contrastive"),
    ],
)
def test_what_does_not_go_together_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        config(**values)


def test_triplets_are_independent_of_their_batch():
    made = config(loss="triplet", batch_size=4, gradient_accumulation_steps=2, strategy="mirrored")
    assert (made.gradient_accumulation_steps, made.strategy) == (2, "mirrored")
