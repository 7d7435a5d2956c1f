"""Pools: the order of documents, the split, random next choices, and the records of a pool."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.base.arrays import offsets_of
from bert_tf.config.section import build_section
from bert_tf.config.sections.data import PreprocessConfig
from bert_tf.data.examples.flat_documents import FlatDocuments
from bert_tf.data.records.parsing import feature_spec
from pipeline.examples.pool import NO_OTHER_DOCUMENT, ExampleMaker, Pool, sort_pool
from pipeline.examples.tokenized import TokenizedDocuments

LEFT_OUT = f"chunks_left_out/{NO_OTHER_DOCUMENT}"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(200))]


def documents_of(hashes: list[int], sentences: int = 6, tokens: int = 9) -> TokenizedDocuments:
    """Return a document a hash; its tokens follow from its hash."""
    count = len(hashes) * sentences
    ids = np.repeat(np.array(hashes, np.int64) % 200 + 5, sentences * tokens).astype(np.int32)
    return TokenizedDocuments(
        FlatDocuments(
            ids,
            offsets_of(np.full(count, tokens)),
            offsets_of(np.full(len(hashes), sentences)),
        ),
        np.array(hashes, np.uint64),
    )


def config_of(**values) -> PreprocessConfig:
    values = {
        "input": ["a.txt"], "vocab": "v", "output": "o", "max_seq_length": 32,
        "max_predictions_per_seq": 5, "dupe_factor": 3, **values,
    }  # fmt: skip
    return build_section(PreprocessConfig, values)


def sort(documents, *, eval_fraction=0.3, seed=1, is_only_pool=False) -> Pool:
    return sort_pool(documents, seed=seed, eval_fraction=eval_fraction, is_only_pool=is_only_pool)


def all_bytes(pool: Pool, config: PreprocessConfig) -> dict:
    runs, _ = ExampleMaker(config, VOCAB).make_runs(pool, train_shards=3, eval_shards=2)
    return {(run.split, run.shard): b"".join(bytes(part) for part in run.parts()) for run in runs}


def test_any_order_of_documents_makes_the_same_runs():
    hashes = [*range(100, 140), 107, 107, 133]
    shuffled = np.random.default_rng(0).permutation(hashes).tolist()
    config = config_of()
    runs = all_bytes(sort(documents_of(hashes)), config)
    assert runs == all_bytes(sort(documents_of(shuffled)), config)
    assert runs != all_bytes(sort(documents_of(hashes), seed=2), config)
    assert {split for split, _ in runs} == {"train", "eval"}


def test_copies_are_alike_in_split_but_not_in_their_examples():
    pool = sort(documents_of([7] * 50))
    assert pool.num_train in (0, 50)
    assert len(np.unique(pool.keys)) == 50
    assert (pool.choices.count() == 0).all()


def test_random_next_stays_in_the_split_unless_evaluation_is_alone():
    pool = sort(documents_of(list(range(60))))
    train = np.arange(60) < pool.num_train
    assert 0 < pool.num_train < 58
    assert (pool.choices.low[train] == 0).all()
    assert (pool.choices.high[train] == pool.num_train).all()
    assert (pool.choices.low[~train] == pool.num_train).all()
    assert (pool.choices.high[~train] == 60).all()
    lonely = sort(documents_of(list(range(60))), eval_fraction=0.001, is_only_pool=True)
    assert lonely.num_train == 59
    assert lonely.choices.count().tolist() == [58] * 59 + [59]


@pytest.mark.parametrize(
    ("texts", "eval_fraction", "is_only_pool", "evals"),
    [(40, 1e-9, True, 1), (40, 1e-9, False, 0), (40, 0.0, True, 0), (9, 1e-9, True, 0)],
)
def test_a_small_corpus_spares_one_text_for_evaluation(texts, eval_fraction, is_only_pool, evals):
    pool = sort(
        documents_of(list(range(texts))), eval_fraction=eval_fraction, is_only_pool=is_only_pool
    )
    assert len(pool.documents) - pool.num_train == evals


def test_the_split_takes_about_its_share():
    pool = sort(documents_of(list(range(4000)), sentences=1), eval_fraction=0.1)
    assert abs(1 - pool.num_train / 4000 - 0.1) < 0.015


def test_examples_are_dealt_evenly_and_counted():
    pool = sort(documents_of(list(range(300))), eval_fraction=0.2)
    runs, counts = ExampleMaker(config_of(), VOCAB).make_runs(pool, train_shards=4, eval_shards=1)
    sizes = {(run.split, run.shard): len(run.ranks) for run in runs}
    train = np.array([sizes["train", shard] for shard in range(4)])
    assert counts["examples/train"] == train.sum()
    assert counts["examples/eval"] == sizes["eval", 0]
    assert abs(train / train.mean() - 1).max() < 0.15
    assert counts["documents/train"] + counts["documents/eval"] == 300
    assert counts[LEFT_OUT] == 0
    assert all((np.diff(run.ranks.astype(object)) > 0).all() for run in runs)
    assert sum(len(offsets) - 1 for _, offsets in runs[0].records) == len(runs[0].ranks)


def test_runs_are_cut_where_they_get_too_long(monkeypatch):
    pool = sort(documents_of(list(range(300))))
    maker = ExampleMaker(config_of(), VOCAB)
    (whole,), _ = maker.make_runs(pool, train_shards=1, eval_shards=0)
    monkeypatch.setattr("pipeline.examples.pool._MAX_RECORDS_PER_RUN", 100)
    runs, _ = maker.make_runs(pool, train_shards=1, eval_shards=0)
    assert len(runs) == -(-len(whole.ranks) // 100)
    assert max(len(run.ranks) for run in runs) == 100
    assert np.concatenate([run.ranks for run in runs]).tolist() == whole.ranks.tolist()
    data = [bytes(data) for run in runs for data, _ in run.records]
    assert b"".join(data) == b"".join(bytes(data) for data, _ in whole.records)


@pytest.mark.parametrize("pair_task", ["nsp", "sop", "none"])
def test_passes_made_apart_are_those_made_together(pair_task):
    pool = sort(documents_of(list(range(200))))
    maker = ExampleMaker(config_of(pair_task=pair_task), VOCAB)

    def records(*parts: range | None) -> tuple[dict[int, bytes], int]:
        found, examples = {}, 0
        for passes in parts:
            runs, counts = maker.make_runs(pool, train_shards=3, eval_shards=1, passes=passes)
            examples += counts["examples/train"] + counts["examples/eval"]
            for run in runs:
                for data, offsets in run.records:
                    framed = [bytes(data[a:b]) for a, b in itertools.pairwise(offsets)]
                    found |= dict(zip(run.ranks.tolist(), framed, strict=True))
        return found, examples

    whole, examples = records(None)
    assert len(whole) == examples
    assert records(range(1), range(1, 3)) == (whole, examples)


@pytest.mark.parametrize("pair_task", ["nsp", "none"])
def test_tokens_in_records_and_targets_are_counted(pair_task):
    """Against the records themselves: every token of the pool has an id of its own."""
    source = documents_of(list(range(8)), sentences=5, tokens=9)
    tokens = source.documents.tokens
    documents = dataclasses.replace(
        source.documents, tokens=np.arange(5, 5 + len(tokens), dtype=np.int32)
    )
    vocab = [*VOCAB[:5], *(f"w{i}" for i in range(len(tokens)))]
    config = config_of(pair_task=pair_task, max_seq_length=16, dupe_factor=2, short_seq_prob=0)
    pool = sort(dataclasses.replace(source, documents=documents), eval_fraction=0.0)
    maker = ExampleMaker(config, vocab)
    parts = [
        maker.make_runs(pool, train_shards=1, eval_shards=0, passes=range(number, number + 1))
        for number in range(2)
    ]
    found = set()
    masked = 0
    length = 0
    for (run,), _ in parts:
        for data, offsets in run.records:
            records = [bytes(data[a + 12 : b - 4]) for a, b in itertools.pairwise(offsets)]
            rows = tf.io.parse_example(records, feature_spec(16, 5, "reference"))
            weights = rows["masked_lm_weights"].numpy() > 0
            positions = rows["masked_lm_positions"].numpy()
            ids = rows["input_ids"].numpy()
            for row in range(len(ids)):  # what the masks hide
                ids[row, positions[row][weights[row]]] = rows["masked_lm_ids"][row][weights[row]]
            found |= set(ids.ravel().tolist()) - set(range(5))
            masked += int(weights.sum())
            length += int(rows["input_mask"].numpy().sum())
    counts = [counts for _, counts in parts]
    assert [each["tokens_reached"] for each in counts] == [len(found), 0]
    assert sum(each["masked"] for each in counts) == masked
    assert sum(each["row_tokens"] for each in counts) == length
    assert (len(found) == len(tokens)) == (pair_task == "none")


def test_documents_of_one_sentence_alone_make_nothing():
    pool = sort(documents_of([1], sentences=1), eval_fraction=0.0)
    runs, counts = ExampleMaker(config_of(), VOCAB).make_runs(pool, train_shards=1, eval_shards=0)
    assert runs == [] and counts[LEFT_OUT] == 3
    counted = {name: number for name, number in counts.items() if number}
    assert counted == {LEFT_OUT: 3, "documents/train": 1, "documents_of_one_sentence": 1}
