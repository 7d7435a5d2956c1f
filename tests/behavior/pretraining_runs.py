"""Pretraining runs of seconds, on records small enough to learn by heart."""

import io
import json

import numpy as np

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import StorageConfig, TrainConfig
from bert_tf.data.records.dataset_info import encode_records
from bert_tf.data.text.vocab_file import vocab_fingerprint
from bert_tf.training.metrics_log import read_metrics
from pipeline.jobs import pretraining
from pipeline.outputs.job_spec import RunOptions
from pipeline.outputs.manifest import write_manifest

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{n}" for n in range(25))]
LENGTH = 12
PREDICTIONS = 2
RECORDS = 8
BATCH = 4


def make_features(seed, count):
    """Rows `[CLS] a … [SEP] b … [SEP]`; the type of the second segment tells its label."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(5, len(VOCAB), (count, LENGTH)).astype(np.int32)
    ids[:, 0] = 2
    ids[:, 5] = 3
    ids[:, 9] = 3
    mask = np.broadcast_to(np.arange(LENGTH, dtype=np.int32) < 10, ids.shape).astype(np.int32)
    positions = np.tile(np.array([2, 7], np.int32), (count, 1))
    masked = np.take_along_axis(ids, positions, axis=1)
    np.put_along_axis(ids, positions, 4, axis=1)
    return {
        "input_word_ids": ids * mask,
        "input_mask": mask,
        "input_type_ids": np.where(np.arange(LENGTH) > 5, mask, 0).astype(np.int32),
        "masked_lm_positions": positions,
        "masked_lm_ids": masked,
        "masked_lm_weights": np.ones((count, PREDICTIONS), np.float32),
        "next_sentence_labels": generator.integers(0, 2, (count, 1)).astype(np.int32),
    }


def encoded(count, length):
    """Framed records, padded to a length."""
    features = make_features(1, count)
    for name in ("input_word_ids", "input_mask", "input_type_ids"):
        features[name] = np.pad(features[name], [(0, 0), (0, length - LENGTH)])
    return encode_records(features)[0].tobytes()


def write_data(folder, *, eval_records=RECORDS, length=LENGTH, vocab=VOCAB):
    folder.mkdir()
    (folder / "train-0").write_bytes(encoded(RECORDS, length))
    if eval_records:
        (folder / "eval-0").write_bytes(encoded(eval_records, length))
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n")
    records = {
        "max_seq_length": length,
        "max_predictions_per_seq": PREDICTIONS,
        "feature_names": "reference",
        "compression": "none",
        "vocab_size": len(vocab),
        "vocab_sha256": vocab_fingerprint(vocab),
        "lowercase": True,
        "train_shards": ["train-0"],
        "eval_shards": ["eval-0"] if eval_records else [],
    }
    write_manifest(folder, {"command": "preprocess", "records": records})
    return folder


def write_model_config(folder):
    """Return a `config.json` of one layer."""
    path = folder / "config.json"
    path.write_text(
        json.dumps(
            {
                "vocab_size": len(VOCAB),
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "max_position_embeddings": 2 * LENGTH,
                "initializer_range": 0.1,
            }
        )
    )
    return path


def train(data, output, *, resume=False, **keys):
    values = {
        "data": str(data) if data else None,
        "output": str(output),
        "xla": "off",
        "precision": "float32",
        "batch_size": BATCH,
        "steps": 12,
        "log_every": 1,
        "eval_every": 6,
        "checkpoint_minutes": 0.0,
        **{
            name: str(value) if name == "model_config" and value else value
            for name, value in keys.items()
        },
    }
    console = Console(io.StringIO())
    manifest = pretraining.run(
        build_section(TrainConfig, values),
        StorageConfig(),
        RunOptions(console=console, resume=resume),
    )
    return manifest, console.stream.getvalue()


def losses(run):
    return [
        {name: line[name] for name in ("step", "loss", "mlm_loss", "nsp_loss")}
        for line in read_metrics(run / "metrics.jsonl")
        if line["split"] == "train"
    ]
