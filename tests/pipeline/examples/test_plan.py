"""The cut of the work: fixed numbers for a size, stable under small changes of the input."""

import numpy as np
import pytest

from bert_tf.config.section import build_section
from bert_tf.config.sections.data import PreprocessConfig
from pipeline.corpus.files import FileInfo
from pipeline.examples.plan import ExamplesPlan, plan_examples


def config_of(**values) -> PreprocessConfig:
    return build_section(
        PreprocessConfig, {"input": ["a.txt"], "vocab": "v", "output": "o", **values}
    )


@pytest.mark.parametrize(("megabytes", "pools", "shards"), [(3, 1, 1), (100, 4, 32), (0, 1, 1)])
def test_plan_rows(megabytes, pools, shards):
    plan = plan_examples(config_of(), [FileInfo("a.txt", int(megabytes * 1e6))])
    assert (plan.pools, plan.train_shards) == (pools, shards)


def test_cutting_the_files_otherwise_changes_nothing():
    whole = plan_examples(config_of(), [FileInfo("a.txt", 100_000_000)])
    cut = plan_examples(config_of(), [FileInfo("a.txt", 60_000_000), FileInfo("b.txt", 40_000_001)])
    assert whole == cut


def test_compressed_files_count_as_their_text():
    plain = plan_examples(config_of(), [FileInfo("a.txt", 300_000_000)])
    assert plan_examples(config_of(), [FileInfo("a.txt.gz", 100_000_000)]) == plain


def test_asked_for_shards_and_no_evaluation():
    plan = plan_examples(config_of(num_shards=7, eval_fraction=0), [FileInfo("a.txt", 1_000_000)])
    assert (plan.train_shards, plan.eval_shards) == (7, 0)
    assert (plan.shards("train"), plan.shards("eval")) == (7, 0)


@pytest.mark.parametrize("pools", [1, 3, 256, 257, 1024, 65_536])
def test_every_pool_lies_in_one_bucket_and_buckets_are_few(pools):
    plan = ExamplesPlan(pools=pools, train_shards=1, eval_shards=1)
    buckets = plan.buckets_of_pools(np.arange(pools))
    assert (np.diff(buckets) >= 0).all() and buckets[0] == 0
    assert buckets[-1] < plan.buckets <= 256
    assert np.bincount(buckets).max() <= 256
