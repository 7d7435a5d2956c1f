"""Pretraining recipes at equal minutes: held-out loss, BLiMP, and GLUE after fine-tuning.

    python benchmarks/recipes.py --results recipes.jsonl --minutes 60 --seeds 3
        --recipe configs/train/modern.yaml DATA
        --recipe configs/train/one-hour-bert.yaml DATA_BERT
        [--glue GLUE] [--blimp BLiMP.zip --sample 100] [--peer-python PATH]

DATA is the output of `bert-pipeline preprocess` with the recipe's `preprocess` section; all need
one vocabulary and eval shards. Each recipe and seed is pretrained by `bert-pipeline train` for the
minutes. A recipe with a masking schedule needs its number of steps in advance: it follows from the
speed at the end of a trial of 200 steps. The masked-LM loss is measured on the eval records of
every recipe, since each makes its own, as they are (80% [MASK], 10% random, 10% kept) and with
[MASK] only. The minutes that training took are among the measures: other work on the machine
makes steps that were planned take longer. `--blimp` measures minimal pairs (`blimp.py`), `--glue`
fine-tunes for SST-2 and RTE (`glue.py`). With `--peer-python`, an environment with torch,
transformers and accelerate, HuggingFace's Trainer learns the texts of the first recipe like
`run_mlm.py` (`recipes_huggingface.py`) for the same minutes; they must be unmasked (`masking:
dynamic`).

Runs follow one another, seed by seed: the machine should have no other work while the first seed
runs. The other seeds make as many steps as the first one did, so that their results do not depend
on the load. A finished run is a line of the results and is not done again; an interrupted one
resumes. Prints the mean and the standard deviation over the seeds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import blimp
import ngrams
import numpy as np
import tensorflow as tf

from bert_tf.base.processor import describe_processor
from bert_tf.config.bert import sized_config
from bert_tf.config.resolve import read_yaml_sections
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.pretraining_inputs import evaluation_batches
from bert_tf.data.text.vocab_file import read_vocab
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.training.evaluation import Evaluation
from bert_tf.weights.model_directory import load_weights, read_model_directory
from pipeline.outputs.manifest import read_manifest

_EVAL_BATCH = 32
_TRIAL_STEPS = 200  # the last ten of which are timed, long after the first ones have compiled
PEER = "run_mlm (HuggingFace)"
_PEER_WARMUP = 0.05  # of the steps, as in the recipes


def bert_pipeline(*arguments: str) -> None:
    """Run a command; a job that is finished does nothing."""
    subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments, "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def pretrain(
    options: argparse.Namespace, recipe: str, data: str, seed: int, run: Path, steps: int
) -> dict[str, float]:
    """Train one run of a recipe; return its steps and minutes.

    Args:
        options: of the command line.
        recipe: YAML file.
        data: folder of records.
        seed: seed of the run.
        run: folder of the run.
        steps: steps to make; 0 for as many as the minutes allow.
    """
    settings: dict[str, Any] = {"early_stop_evals": 0}
    settings |= dict(entry.split("=", 1) for entry in options.settings)
    if options.size:
        settings["size"] = options.size
    if steps:
        return train(recipe, data, seed, run, {**settings, "max_minutes": 0, "steps": steps})
    values = read_yaml_sections(recipe)["train"] | settings
    schedule = values.get("masking_schedule")
    if not schedule:
        return train(recipe, data, seed, run, {**settings, "max_minutes": options.minutes})
    begun = run / "config.yaml"
    if begun.exists():
        steps = read_yaml_sections(str(begun))["train"]["steps"]
        return train(recipe, data, seed, run, {**settings, "steps": steps})
    trial = run.with_name(f"{run.name}-trial")
    # The number of targets, which the time of a step depends on, is that of the largest fraction.
    timed = {"masking_schedule": "[]", "masked_lm_prob": max(schedule), "steps": _TRIAL_STEPS}
    train(recipe, data, seed, trial, {**settings, **timed})
    examples_per_second = finished(trial)["metrics"]["train"]["examples_per_second"]
    speed = examples_per_second / int(values["batch_size"])
    shutil.rmtree(trial)
    steps = round(speed * 60 * options.minutes)
    return train(recipe, data, seed, run, {**settings, "steps": steps})


def train(
    recipe: str, data: str, seed: int, run: Path, settings: dict[str, Any]
) -> dict[str, float]:
    """Run `bert-pipeline train`; return steps and minutes."""
    assignments = [f"--set=train.{key}={value}" for key, value in settings.items()]
    bert_pipeline(
        *("train", "--config", recipe, "--data", data, "--output", str(run)),
        *("--seed", str(seed), *assignments),
    )
    manifest = finished(run)
    return {
        "steps": manifest["counts"]["steps"],
        "minutes of training": manifest["training_seconds"] / 60,
    }


def finished(run: Path) -> dict[str, Any]:
    """Return the manifest of a finished run."""
    manifest = read_manifest(run)
    if manifest is None:
        sys.exit(f"error: {run}: has no manifest")
    return manifest


def pretrain_peer(
    options: argparse.Namespace, seed: int, run: Path, steps: int
) -> dict[str, float]:
    """Train HuggingFace's model on the texts of the first recipe; return steps and minutes.

    Args:
        options: of the command line.
        seed: seed of the run.
        run: folder of the run.
        steps: steps to make; 0 for as many as the minutes allow.
    """
    recipe, folder = options.recipe[0]
    data = PretrainingData.from_manifest(folder, read_manifest(folder))
    values = read_yaml_sections(recipe)["train"]
    vocab = Path(folder) / "vocab.txt"
    count = len(read_vocab(vocab))
    settings = {
        "config": sized_config(options.size or values["size"], count).as_dict(),
        "minutes": options.minutes,
        "steps": steps,
        "learning_rate": options.peer_learning_rate,
        "batch_size": int(values["batch_size"]),
        "warmup_proportion": _PEER_WARMUP,
        "vocab": str(vocab),
        "lowercase": bool(data.lowercase),
        "seed": seed,
    }
    run.mkdir(parents=True, exist_ok=True)
    texts = run / "texts.npz"
    np.savez(texts, ids=ngrams.unmasked_ids(data))
    script = Path(__file__).with_name("recipes_huggingface.py")
    command = [options.peer_python, str(script), str(texts), json.dumps(settings), str(run)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    texts.unlink()
    result = json.loads(done.stdout.splitlines()[-1])
    return {"steps": result["steps"], "minutes of training": result["seconds"] / 60}


def held_out_loss(run: Path, data: PretrainingData, examples: int, *, is_mask_only: bool) -> float:
    """Return the masked-LM loss of a run's best model on eval records, nats per masked token.

    Args:
        run: the run.
        data: description of the records.
        examples: records to read.
        is_mask_only: whether all targets are [MASK], also those that the records replaced by a
            random token or kept.
    """
    directory = read_model_directory(run)
    model = BertPretrainingModel(directory.config)
    model.build_weights()
    load_weights(model, directory)
    mask_id = directory.vocab.index("[MASK]")

    def batches() -> tf.data.Dataset:
        found = evaluation_batches(data, batch_size=_EVAL_BATCH, limit=examples)
        return found.map(lambda batch: with_masks(batch, mask_id)) if is_mask_only else found

    evaluation = Evaluation(
        model=model,
        loss=PretrainingLoss("none"),
        strategy=tf.distribute.get_strategy(),
        make_dataset=batches,
    )
    return evaluation.run()["mlm_loss"]


def with_masks(batch: dict[str, tf.Tensor], mask_id: int) -> dict[str, tf.Tensor]:
    """Return a batch with [MASK] at all of its targets."""
    ids = batch["input_word_ids"]
    is_target = tf.where(batch["masked_lm_weights"] > 0)
    places = tf.gather_nd(tf.cast(batch["masked_lm_positions"], tf.int64), is_target)
    at = tf.stack([is_target[:, 0], places], axis=1)
    masks = tf.fill(tf.shape(places), tf.constant(mask_id, ids.dtype))
    return {**batch, "input_word_ids": tf.tensor_scatter_nd_update(ids, at, masks)}


def glue_scores(options: argparse.Namespace, run: Path, seed: int) -> dict[str, float]:
    """Return the accuracy of SST-2 and RTE in percent, fine-tuned with one seed."""
    settings = f"{options.epochs:g}-{options.learning_rate:g}-{options.max_train_rows}"
    output = run.with_name(f"{run.name}-glue-{settings}")
    tasks = [word for task in options.tasks for word in ("--task", task)]
    script = Path(__file__).with_name("glue.py")
    subprocess.run(
        [
            *(sys.executable, str(script), "--init", str(run), "--data", options.glue),
            *("--output", str(output), "--seeds", "1", "--seed", str(seed), *tasks),
            *("--epochs", str(options.epochs), "--learning-rate", str(options.learning_rate)),
            *("--max-train-rows", str(options.max_train_rows)),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    return {task: results[task]["accuracy"][0] for task in options.tasks}


def measured(options: argparse.Namespace, datasets: dict[str, PretrainingData]) -> Iterator[Any]:
    """Yield the results of all recipes and seeds; those in the file are not measured again."""
    path = Path(options.results)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    names = ("minutes", "size", "epochs", "learning_rate", "max_train_rows", "sample")
    conditions = {name: getattr(options, name) for name in names}
    recipes = [(Path(recipe).stem, recipe, data) for recipe, data in options.recipe]
    if options.peer_python:
        recipes.append((PEER, "", ""))
    first_steps: dict[str, int] = {}
    for seed in range(1, options.seeds + 1):
        for name, recipe, data in recipes:
            key = {"recipe": name, "seed": seed, **conditions}
            found = next((line for line in done if key.items() <= line.items()), None)
            if found is None:
                size = options.size or "own"
                folder = f"{name.split()[0]}-{size}-{options.minutes:g}-{seed}"
                run = path.with_suffix("") / folder
                steps = first_steps.get(name, 0)
                if name == PEER:
                    training = pretrain_peer(options, seed, run, steps)
                else:
                    training = pretrain(options, recipe, data, seed, run, steps)
                measures = {**training, **measures_of(options, run, datasets, seed)}
                found = {**key, "measures": measures}
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
            first_steps.setdefault(name, found["measures"]["steps"])
            yield found


def measures_of(
    options: argparse.Namespace, run: Path, datasets: dict[str, PretrainingData], seed: int
) -> dict[str, float]:
    """Return all measures of a finished run."""
    found = {}
    for other, records in datasets.items():
        for kind, is_mask_only in (("", False), (" ([MASK] only)", True)):
            found[f"loss on {other}{kind}"] = held_out_loss(
                run, records, options.eval_examples, is_mask_only=is_mask_only
            )
    if options.blimp:
        pairs = blimp.read_pairs(Path(options.blimp), options.sample)
        accuracy, error = blimp.accuracy(blimp.judged(str(run), pairs))
        found |= {"BLiMP": accuracy, "BLiMP standard error": error}
    if options.glue:
        found |= glue_scores(options, run, seed)
    return found


def read_datasets(recipes: list[list[str]]) -> dict[str, PretrainingData]:
    """Return the records of each recipe, by its name."""
    datasets = {
        Path(recipe).stem: PretrainingData.from_manifest(data, read_manifest(data))
        for recipe, data in recipes
    }
    if len({data.vocab_sha256 for data in datasets.values()}) > 1:
        sys.exit("error: the records have different vocabularies; preprocess all with one")
    return datasets


def show(recipe: str, lines: list[Any]) -> None:
    """Print a row: mean and standard deviation of each measure."""
    cells = []
    for name in lines[0]["measures"]:
        values = [line["measures"][name] for line in lines]
        spread = f" ± {statistics.stdev(values):.4g}" if len(values) > 1 else ""
        cells.append(f"{name} {statistics.mean(values):.5g}{spread}")
    print(f"{recipe} ({len(lines)} seeds): {', '.join(cells)}", flush=True)


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--recipe", nargs=2, action="append", required=True, metavar=("YAML", "DATA")
    )
    parser.add_argument("--glue", help="folder with SST-2 and RTE")
    parser.add_argument("--tasks", nargs="+", default=["SST-2", "RTE"], help="of GLUE")
    parser.add_argument("--blimp", help="folder or zip of BLiMP")
    parser.add_argument("--sample", type=int, default=100, help="pairs of each file of BLiMP")
    parser.add_argument("--peer-python", help="Python with torch, transformers and accelerate")
    parser.add_argument(
        "--peer-learning-rate", type=float, default=1e-3, help="1e-3 for tiny, 5e-4 for mini"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="key of `train` for all recipes; repeatable",
    )
    parser.add_argument("--results", required=True, help="JSON lines; runs go to a folder beside")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", help="of all models, instead of the recipes'")
    parser.add_argument("--epochs", type=float, default=3.0, help="of fine-tuning")
    parser.add_argument(
        "--learning-rate", type=float, default=1e-4, help="of fine-tuning; 3e-4 for tiny models"
    )
    parser.add_argument("--max-train-rows", type=int, default=0, help="of fine-tuning; 0 for all")
    parser.add_argument("--eval-examples", type=int, default=2000)
    options = parser.parse_args()
    datasets = read_datasets(options.recipe)
    print(f"processor: {describe_processor()}; {options.minutes:g} minutes", flush=True)
    lines = list(measured(options, datasets))
    for name in dict.fromkeys(line["recipe"] for line in lines):
        show(name, [line for line in lines if line["recipe"] == name])


if __name__ == "__main__":
    main()
