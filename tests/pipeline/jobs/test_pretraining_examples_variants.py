"""Every kind of masks, pairs and records: from text to a trained step, and in `inspect`."""

import io
import json
import random

import pytest
import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import ConfigError, UsageError
from bert_tf.config.section import build_section
from bert_tf.config.sections import PreprocessConfig, RunnerConfig, StorageConfig, TrainConfig
from bert_tf.data.records.parsing import feature_spec
from bert_tf.data.text.vocab_file import SPECIAL_TOKENS
from bert_tf.training.metrics_log import read_metrics
from pipeline.examples import plan, steps
from pipeline.jobs import pretraining, pretraining_examples
from pipeline.outputs.job_spec import RunOptions
from pipeline.report.records import record_lines, summarize_records

pytestmark = pytest.mark.slow  # trains on every kind of records

WORDS = [f"{first}{second}" for first in "bcdfghjklm" for second in "aeiou"]
VOCAB = [*SPECIAL_TOKENS, *WORDS, "##s", "."]
LENGTH, PREDICTIONS = 32, 5
MODEL = {
    "vocab_size": len(VOCAB),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": LENGTH,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 documents of 3 to 10 short sentences, and the vocabulary beside them."""
    folder = tmp_path_factory.mktemp("corpus")
    source = random.Random(0)
    texts = [
        "\n".join(
            " ".join(source.choices(WORDS, k=source.randint(2, 9))) + "s ."
            for _ in range(source.randint(3, 10))
        )
        for _ in range(40)
    ]
    (folder / "corpus.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    return folder


def preprocess(corpus, output, **values):
    values = {
        "input": [str(corpus / "corpus.txt")],
        "vocab": str(corpus / "vocab.txt"),
        "output": str(output),
        "max_seq_length": LENGTH,
        "max_predictions_per_seq": PREDICTIONS,
        "dupe_factor": 2,
        "eval_fraction": 0.2,
        "num_shards": 2,
        **values,
    }
    config = build_section(PreprocessConfig, values)
    options = RunOptions(console=Console(io.StringIO()))
    return pretraining_examples.run(config, build_section(RunnerConfig, {}), options)


def train(data, output, **values):
    output.parent.mkdir(exist_ok=True)
    model_config = output.parent / "model.json"
    model_config.write_text(json.dumps(MODEL))
    values = {
        "data": str(data),
        "output": str(output),
        "model_config": str(model_config),
        "steps": 2,
        "batch_size": 4,
        "xla": "off",
        "precision": "float32",
        "log_every": 1,
        **values,
    }
    config, said = build_section(TrainConfig, values), io.StringIO()
    manifest = pretraining.run(config, StorageConfig(), RunOptions(console=Console(said)))
    return manifest, said.getvalue()


def eval_bytes(folder):
    return [path.read_bytes() for path in sorted(folder.glob("eval-*"))]


@pytest.mark.parametrize(
    ("keys", "train_keys", "losses", "said"),
    [
        (
            {"masking": "span", "pair_task": "sop", "random_tokens": "unigram"},
            {},
            {"mlm_loss", "sop_loss"},
            "with swapped segments",
        ),
        (
            {"masking": "dynamic", "pair_task": "none", "compression": "gzip"},
            {"masking": "ngram", "masked_lm_prob": 0.3, "random_tokens": "unigram"},
            {"mlm_loss"},
            "tokens per record, unmasked",
        ),
        (
            {"masking": "dynamic", "feature_names": "model-garden"},
            {"whole_word_mask": True, "packing": "on"},
            {"mlm_loss", "nsp_loss"},
            "with a random second segment",
        ),
        (
            {"masking": "ngram", "pair_task": "none", "masked_lm_prob": 0.5},
            {"packing": "off"},
            {"mlm_loss"},
            "% padding",
        ),
    ],
)
def test_a_variant_is_made_shown_and_trained_on(corpus, tmp_path, keys, train_keys, losses, said):
    data = tmp_path / "data"
    manifest = preprocess(corpus, data, **keys)
    pair_task = keys.get("pair_task", "nsp")
    assert manifest["records"]["pair_task"] == pair_task
    assert manifest["records"]["masking"] == keys["masking"]
    assert ("swapped" in manifest["counts"]) == (pair_task == "sop")
    assert ("random_next" in manifest["counts"]) == (pair_task == "nsp")
    lines = record_lines(summarize_records(data, samples=2))
    assert said in lines[1] and "example 1:" in "\n".join(lines)
    assert ("second:" in "\n".join(lines)) == (pair_task != "none")
    run = tmp_path / "runs" / "run"
    trained, said_by_train = train(data, run, **train_keys)
    assert any("are masked, not 50.0%" in note for note in manifest["notes"]) == (
        keys.get("masked_lm_prob") == 0.5
    )
    assert all(f"warning: {data}: {note}\n" in said_by_train for note in manifest["notes"])
    made = [line for line in read_metrics(run / "metrics.jsonl") if line["split"] == "train"]
    for line in (*made, trained["metrics"]["eval"]):
        assert {name for name in line if name.endswith("_loss")} == losses
        assert {name for name in line if name.endswith("_accuracy")} == {
            name.replace("loss", "accuracy") for name in losses
        }


def test_evaluation_records_are_the_same_however_training_is_masked(corpus, tmp_path):
    plain = {"pair_task": "sop", "dupe_factor": 1}
    preprocess(corpus, tmp_path / "token", **plain)
    expected = eval_bytes(tmp_path / "token")
    for name, keys in {
        "span": {"masking": "span", "masked_lm_prob": 0.4, "random_tokens": "unigram"},
        "dynamic": {"masking": "dynamic"},
    }.items():
        preprocess(corpus, tmp_path / name, **plain, **keys)
        assert eval_bytes(tmp_path / name) == expected
    [content, *_] = expected
    assert content
    records = list(
        tf.data.TFRecordDataset(
            [str(path) for path in (tmp_path / "dynamic").glob("eval-*")]
        ).as_numpy_iterator()
    )
    parsed = tf.io.parse_example(records, feature_spec(LENGTH, PREDICTIONS))
    lengths = tf.reduce_sum(parsed["input_mask"], axis=1).numpy()
    targets = tf.reduce_sum(parsed["masked_lm_weights"], axis=1).numpy()
    assert targets.tolist() == [min(PREDICTIONS, max(1, round(n * 0.15))) for n in lengths.tolist()]


def test_the_cut_of_the_corpus_changes_neither_unmasked_records_nor_counts(corpus, tmp_path):
    keys = {"masking": "dynamic", "pair_task": "none"}
    preprocess(corpus, tmp_path / "whole", **keys)
    preprocess(corpus, tmp_path / "cut", block_megabytes=0.01, **keys)
    names = ["piece_counts.txt", *(f"train-0000{n}-of-00002.tfrecord" for n in range(2))]
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    counts = [int(line) for line in (tmp_path / "whole" / names[0]).read_text().split()]
    text = (corpus / "corpus.txt").read_text()
    assert counts[VOCAB.index(".")] == counts[VOCAB.index("##s")] == text.count("s .")
    preprocess(corpus, tmp_path / "masked", masking="token", pair_task="none", dupe_factor=1)
    sizes = {
        name: sum(path.stat().st_size for path in (tmp_path / name).glob("train-*"))
        for name in ("whole", "masked")
    }
    assert sizes["whole"] < 0.6 * sizes["masked"]


@pytest.mark.parametrize("pair_task", ["nsp", "none"])
def test_neither_tasks_nor_groups_of_shards_change_a_byte(corpus, tmp_path, monkeypatch, pair_task):
    keys = {"dupe_factor": 4, "num_shards": 5, "eval_fraction": 0.3, "pair_task": pair_task}
    whole = preprocess(corpus, tmp_path / "whole", **keys)
    monkeypatch.setattr(plan, "_MOST_PASSES_OF_TASK", 1)
    monkeypatch.setattr(plan, "_MOST_RUNS", 0)
    monkeypatch.setattr(steps, "_RUN_BYTES", 1)
    cut = preprocess(corpus, tmp_path / "cut", **keys)
    assert cut["counts"] == whole["counts"]
    names = {path.name for path in (tmp_path / "whole").glob("*.tfrecord")}
    assert len(names) == 5 + 4
    for name in names:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_masks_are_asked_for_where_they_are_made(corpus, tmp_path):
    with pytest.raises(ConfigError, match="masked_lm_prob: records of masking=dynamic are masked"):
        preprocess(corpus, tmp_path / "data", masking="dynamic", masked_lm_prob=0.3)
    preprocess(corpus, tmp_path / "data")
    with pytest.raises(UsageError, match="train.masking: the records in .* are masked already"):
        train(tmp_path / "data", tmp_path / "run", masking="span")
