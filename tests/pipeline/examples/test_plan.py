"""The cut of the work: fixed numbers for a size, stable under small changes of the input."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.config.section import build_section
from bert_tf.config.sections.data import PreprocessConfig
from pipeline.beam.files import FileInfo
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


@pytest.mark.parametrize(
    ("megabytes", "passes", "parts"),
    [
        (3, 10, 1),
        (32, 10, 5),
        (100, 10, 3),
        (400, 10, 1),
        (32, 1, 1),
        (10_000, 40, 4),
        (1, 1000, 100),
    ],
)
def test_a_pool_is_the_work_of_several_workers(megabytes, passes, parts):
    file = FileInfo("a.txt", megabytes * 1_000_000)
    plan = plan_examples(config_of(dupe_factor=passes), [file])
    assert plan.parts == parts


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_every_pass_is_made_by_one_part(passes, parts):
    plan = ExamplesPlan(pools=1, train_shards=1, eval_shards=1, parts=min(parts, passes))
    made = [plan.passes_of_part(part, passes) for part in range(plan.parts)]
    assert [number for each in made for number in each] == list(range(passes))
    assert max(map(len, made)) - min(map(len, made)) <= 1


@pytest.mark.parametrize(
    ("gigabytes", "pools", "shards", "shards_of_run"),
    [
        (4, 128, 2048, 1),
        (16, 512, 8192, 1),
        (1000, 32_768, 524_288, 1024),
        (8000, 262_144, 2**22, 4096),
    ],
)
def test_many_pools_and_shards_meet_in_groups(gigabytes, pools, shards, shards_of_run):
    plan = plan_examples(config_of(), [FileInfo("a.txt", gigabytes * 10**9)])
    assert (plan.pools, plan.train_shards) == (pools, shards)
    assert plan.shards_of_run == shards_of_run
    assert plan.pools * plan.train_shards / shards_of_run < 2**30


def test_asked_for_shards_and_no_evaluation():
    plan = plan_examples(config_of(num_shards=7, eval_fraction=0), [FileInfo("a.txt", 1_000_000)])
    assert (plan.train_shards, plan.eval_shards) == (7, 0)
    assert (plan.shards("train"), plan.shards("eval")) == (7, 0)


@given(st.integers(1, 2**18))
@example(256)
@example(512)
@example(4096)
@example(256**2)
@example(2**18)
def test_both_levels_are_dealt_to_as_many_groups(pools):
    plan = ExamplesPlan(pools=pools, train_shards=1, eval_shards=1)
    buckets = plan.buckets_of_pools(np.arange(pools))
    assert (np.diff(buckets) >= 0).all() and buckets[0] == 0
    pools_in_bucket = np.bincount(buckets, minlength=plan.buckets)
    assert len(pools_in_bucket) == plan.buckets <= 512
    if pools <= 256:
        assert (pools_in_bucket == 1).all()
    else:
        assert plan.buckets / 4 < pools_in_bucket.max() <= plan.buckets
        assert pools_in_bucket[: buckets[-1]].min() == pools_in_bucket.max()


@pytest.mark.parametrize("pools", [512, 4096, 16_384])
def test_powers_of_two_fill_all_buckets_alike(pools):
    plan = ExamplesPlan(pools=pools, train_shards=1, eval_shards=1)
    sizes = np.bincount(plan.buckets_of_pools(np.arange(pools)), minlength=plan.buckets)
    assert set(sizes) == {pools // plan.buckets}
    assert plan.buckets >= sizes[0]
