"""Pretraining recipes at equal minutes: held-out loss, and SST-2 and RTE after fine-tuning.

    python benchmarks/recipes.py --results recipes.jsonl --glue GLUE --minutes 60 --seeds 3
        --recipe configs/train/one-hour.yaml DATA
        --recipe configs/train/one-hour-bert.yaml DATA_BERT

DATA is what `bert-pipeline preprocess` makes with the recipe's own `preprocess` section; all need
one vocabulary and eval shards. Each recipe and seed is pretrained by `bert-pipeline train` for the
minutes and fine-tuned by `benchmarks/glue.py`. The masked-LM loss is measured on the eval
records of every recipe, since each makes its own. Runs follow one another, seed by seed: the
machine should have no other work. A finished one is a line of the results and is not done again;
an interrupted one resumes. Prints the mean and the standard deviation over the seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf.base.processor import describe_processor
from bert_tf.data.records.dataset_info import PretrainingData
from bert_tf.data.records.pretraining_inputs import evaluation_batches
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.pretraining.loss import PretrainingLoss
from bert_tf.training.evaluation import Evaluation
from bert_tf.weights.model_directory import load_weights, read_model_directory
from pipeline.outputs.manifest import read_manifest

TASKS = ("SST-2", "RTE")
_EVAL_BATCH = 32


def bert_pipeline(*arguments: str) -> None:
    """Runs a command; a job that is finished does nothing."""
    subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments, "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def pretrain(options: argparse.Namespace, recipe: str, data: str, seed: int, run: Path) -> None:
    """One run of a recipe."""
    settings = {"max_minutes": options.minutes, "early_stop_evals": 0}
    if options.size:
        settings["size"] = options.size
    assignments = [f"--set=train.{key}={value}" for key, value in settings.items()]
    bert_pipeline(
        *("train", "--config", recipe, "--data", data, "--output", str(run)),
        *("--seed", str(seed), *assignments),
    )


def held_out_loss(run: Path, data: PretrainingData, examples: int) -> float:
    """The masked-LM loss of a run's best model on eval records, nats per masked token."""
    directory = read_model_directory(run)
    model = BertPretrainingModel(directory.config)
    model.build_weights()
    load_weights(model, directory)
    evaluation = Evaluation(
        model=model,
        loss=PretrainingLoss("none"),
        strategy=tf.distribute.get_strategy(),
        make_dataset=lambda: evaluation_batches(
            data.paths("eval"), data, batch_size=_EVAL_BATCH, limit=examples
        ),
    )
    return evaluation.run()["mlm_loss"]


def glue_scores(options: argparse.Namespace, run: Path, seed: int) -> dict[str, float]:
    """Accuracy of SST-2 and RTE in percent, fine-tuned with one seed."""
    settings = f"{options.epochs:g}-{options.learning_rate:g}-{options.max_train_rows}"
    output = run.with_name(f"{run.name}-glue-{settings}")
    tasks = [word for task in TASKS for word in ("--task", task)]
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
    return {task: results[task]["accuracy"][0] for task in TASKS}


def measured(options: argparse.Namespace, datasets: dict[str, PretrainingData]) -> Iterator[Any]:
    """The results of all recipes and seeds, those that are there already first."""
    path = Path(options.results)
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    names = ("minutes", "size", "epochs", "learning_rate", "max_train_rows")
    conditions = {name: getattr(options, name) for name in names}
    for seed in range(1, options.seeds + 1):
        for recipe, data in options.recipe:
            name = Path(recipe).stem
            key = {"recipe": name, "seed": seed, **conditions}
            found = next((line for line in done if key.items() <= line.items()), None)
            if found is None:
                size = options.size or "own"
                run = path.with_suffix("") / f"{name}-{size}-{options.minutes:g}-{seed}"
                pretrain(options, recipe, data, seed, run)
                manifest = read_manifest(run)
                assert manifest is not None
                losses = {
                    f"loss on {other}": held_out_loss(run, records, options.eval_examples)
                    for other, records in datasets.items()
                }
                measures = {"steps": manifest["counts"]["steps"], **losses}
                found = {**key, "measures": measures | glue_scores(options, run, seed)}
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
            yield found


def read_datasets(recipes: list[list[str]]) -> dict[str, PretrainingData]:
    """The records of each recipe, by its name."""
    datasets = {
        Path(recipe).stem: PretrainingData.from_manifest(data, read_manifest(data))
        for recipe, data in recipes
    }
    if len({data.vocab_sha256 for data in datasets.values()}) > 1:
        sys.exit("error: the records have different vocabularies; preprocess all with one")
    return datasets


def show(recipe: str, lines: list[Any]) -> None:
    """A row: mean and standard deviation of each measure."""
    cells = []
    for name in lines[0]["measures"]:
        values = [line["measures"][name] for line in lines]
        spread = f" ± {statistics.stdev(values):.4g}" if len(values) > 1 else ""
        cells.append(f"{name} {statistics.mean(values):.5g}{spread}")
    print(f"{recipe} ({len(lines)} seeds): {', '.join(cells)}", flush=True)


def main() -> None:
    """Trains, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--recipe", nargs=2, action="append", required=True, metavar=("YAML", "DATA")
    )
    parser.add_argument("--glue", required=True, help="folder with SST-2 and RTE")
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
    for name in datasets:
        show(name, [line for line in lines if line["recipe"] == name])


if __name__ == "__main__":
    main()
