"""Whether ours and HuggingFace's Trainer learn alike: losses of every step on the same batches.

    python benchmarks/finetuning_same_batches.py DATA --init FOLDER --torch-python PATH \
        [--sets WNUT-17 RTE] [--seed 1] [--dropout-seeds 3] [--head-scales 1]

The Trainer runs as in finetuning.py and keeps its batches, learning rates and the weights of its
new head; ours then trains from the same weights on these batches, with dropout of other seeds. Both
compute in bfloat16. What differs is dropout: the mean difference of losses over all steps is 0 but
for chance, and the metrics after training are close. Other `--head-scales` than 1 multiply the
weights that the head starts with, to show their effect. For tasks that put one label on a text or a
token.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from finetuning_data import DataSet, data_sets

from bert_tf.base.arrays import offsets_of
from bert_tf.base.processor import describe_processor
from pipeline.cli.startup import keep_freed_memory

if TYPE_CHECKING:
    import tensorflow as tf

_NAMES = {
    "input_ids": "input_word_ids",
    "attention_mask": "input_mask",
    "token_type_ids": "input_type_ids",
    "labels": "labels",
}
_IGNORED = -100
_SHARDS = 2
_EVALUATED_ROWS = 32


class LabelLoss:
    """Mean cross-entropy of the labels that are not ignored, as HuggingFace's models have it."""

    def weights(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return the number of labels."""
        import tensorflow as tf

        return {"loss": tf.reduce_sum(tf.cast(batch["labels"] != _IGNORED, tf.float32))}

    def __call__(self, model: Any, batch: Any, *, training: bool, dropout_key: Any) -> Any:
        import tensorflow as tf

        from bert_tf.tasks.base.task import cross_entropy
        from bert_tf.training.protocols import LossParts

        logits = model(batch, training=training, dropout_key=dropout_key)
        labels = batch["labels"]
        losses = cross_entropy(logits, tf.maximum(labels, 0))
        counted = tf.cast(labels != _IGNORED, tf.float32)
        return LossParts(losses={"loss": tf.reduce_sum(losses * counted)})


def recorded(data: DataSet, init: str, seed: int, python: str, folder: Path) -> Any:
    """Return the inputs and results of a run of the Trainer."""
    path = folder / "records.npz"
    settings = dataclasses.asdict(data)
    settings |= {"init": init, "seed": seed, "precision": "bfloat16", "record": str(path)}
    settings["answer"] = str(folder / "answer.json")
    script = Path(__file__).with_name("finetuning_huggingface.py")
    subprocess.run([python, str(script), json.dumps(settings)], check=True, capture_output=True)
    return np.load(path)


def batches_of(records: Any) -> Iterator[dict[str, np.ndarray]]:
    """Yield the batches, with rows that have no label where parts would differ in rows."""
    for step in range(len(records["losses"])):
        batch = {ours: records[f"batch/{step}/{name}"] for name, ours in _NAMES.items()}
        missing = -len(batch["labels"]) % _SHARDS
        if missing:
            for name, values in batch.items():
                added = values[:missing].copy()
                added[:] = _IGNORED if name == "labels" else added
                batch[name] = np.concatenate([values, added])
        yield batch


def our_run(
    data: DataSet, init: str, records: Any, *, dropout_seed: int, head_scale: float
) -> tuple[np.ndarray, float]:
    """Return the loss of each step of ours, float [steps], and the metric after them."""
    import tensorflow as tf

    from bert_tf.config.section import build_section
    from bert_tf.config.sections.pretraining import TrainConfig
    from bert_tf.models.heads import BertClassifier, BertTokenClassifier
    from bert_tf.training.arithmetic import Arithmetic, PrecisionPolicy
    from bert_tf.training.optimizers import make_optimizer
    from bert_tf.training.step import TrainingStep
    from bert_tf.weights.model_directory import load_weights, read_model_directory

    directory = read_model_directory(init)
    kind = BertTokenClassifier if data.task == "tagging" else BertClassifier
    model = kind(directory.config, len(records["head/classifier.bias"]), dtype="mixed_bfloat16")
    model.build_weights()
    load_weights(model, directory)
    model.classifier.kernel.assign(head_scale * records["head/classifier.weight"].T)
    model.classifier.bias.assign(records["head/classifier.bias"])
    section = build_section(TrainConfig, {"data": "-", "output": "-", "size": "tiny"})
    optimizer = make_optimizer(section, num_hidden_layers=directory.config.num_hidden_layers)
    optimizer.build(model.trainable_variables)
    step = TrainingStep(
        model=model,
        loss=LabelLoss(),
        optimizer=optimizer,
        strategy=tf.distribute.get_strategy(),
        arithmetic=Arithmetic(
            precision=PrecisionPolicy("mixed_bfloat16", use_xla=False, use_kernels=True),
            shards=_SHARDS,
        ),
        seed=dropout_seed,
    )
    signature = {
        name: tf.TensorSpec([None] * values.ndim, tf.int32)
        for name, values in next(batches_of(records)).items()
    }
    batches = tf.data.Dataset.from_generator(
        lambda: batches_of(records), output_signature=signature
    )
    rates = records["learning_rates"]
    losses = step.run(iter(batches), first_step=0, learning_rates=rates)["loss"]
    return losses, data.scale * metric_of(model, records)


def metric_of(model: Any, records: Any) -> float:
    """Accuracy of labels, or F1 of entities."""
    from bert_tf.data.rows.encoded_rows import EncodedRows
    from bert_tf.tasks.tagging.metrics import TaggingScores
    from bert_tf.tasks.tagging.words import TaggedWords, TextWords

    lengths, labels = records["eval/lengths"], records["eval/labels"]
    offsets = offsets_of(lengths)
    second_tokens = np.add.reduceat(records["eval/token_type_ids"], offsets[:-1])
    rows = EncodedRows(
        ids=records["eval/input_ids"], offsets=offsets, second_starts=lengths - second_tokens
    )
    predicted = []
    for begin in range(0, len(rows), _EVALUATED_ROWS):
        chosen = np.arange(begin, min(begin + _EVALUATED_ROWS, len(rows)))
        batch = rows.padded(chosen, length=lengths[chosen].max(), pad_id=0)
        best = np.asarray(model(batch), np.float32).argmax(-1)
        predicted.append(best if best.ndim == 1 else best[batch["input_mask"] > 0])
    found = np.concatenate(predicted)
    if not len(records["tags"]):
        return float((found == labels).mean())
    is_word = labels != _IGNORED
    places = np.flatnonzero(is_word)
    words = TextWords(
        offsets=offsets_of(np.add.reduceat(is_word, offsets[:-1])), starts=places, ends=places + 1
    )
    gold, tags = (
        TaggedWords.gold(words, records["tags"][numbers[is_word]].tolist())
        for numbers in (labels, found)
    )
    return TaggingScores(gold, tags, "bio").metrics()["f1"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("--init", required=True, help="HuggingFace folder of a BERT")
    parser.add_argument("--torch-python", required=True, help="with torch and transformers")
    parser.add_argument("--sets", nargs="+", default=["WNUT-17", "RTE"])
    parser.add_argument("--seed", type=int, default=1, help="of the Trainer")
    parser.add_argument("--dropout-seeds", type=int, default=3, help="how many runs of ours")
    parser.add_argument("--head-scales", type=float, nargs="+", default=[1.0])
    options = parser.parse_args()
    keep_freed_memory()

    from bert_tf.cpu.cores import divide_cores_among_parts

    divide_cores_among_parts()
    print(f"processor: {describe_processor()}")
    for name in options.sets:
        data = data_sets(options.data)[name]
        with tempfile.TemporaryDirectory() as folder:
            records = recorded(data, options.init, options.seed, options.torch_python, Path(folder))
            theirs = records["losses"]
            metric = data.scale * json.loads((Path(folder) / "answer.json").read_text())["metric"]
            print(f"{name}, {len(theirs)} steps: the Trainer's {data.metric} {metric:.1f}")
            seeds = range(1, options.dropout_seeds + 1)
            for scale, seed in itertools.product(options.head_scales, seeds):
                losses, metric = our_run(
                    data, options.init, records, dropout_seed=seed, head_scale=scale
                )
                difference = losses - theirs
                error = difference.std(ddof=1) / len(difference) ** 0.5
                print(
                    f"  head times {scale:g}, dropout seed {seed}: {data.metric} {metric:.1f}, "
                    f"mean loss {losses.mean():.4f}, the Trainer's {theirs.mean():.4f}, difference "
                    f"{difference.mean():+.4f} ± {error:.4f} (standard error)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
