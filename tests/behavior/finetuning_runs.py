"""A small model and a few rows to fine-tune it on, some of which are rejected."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from behavior.small_models import write_encoder

from bert_tf.base.console import Advance, Console
from bert_tf.config.sections import FinetuneConfig
from bert_tf.tasks.registry import finetune_config
from pipeline.outputs.job_spec import RunOptions

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "red", "blue"]
ROWS = "text,label\n" + "".join(
    f"{color} {word} film,{word}\n" for color in ("red", "blue", "film") for word in ("good", "bad")
)


# Dropout is compiled once more for each run.
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


class CrashingConsole(Console):
    """Fails like a power cut once the loop has made six updates."""

    def progress(self, advance: Advance) -> None:
        if advance.text.startswith("step 6/"):
            raise MemoryError


def write_inputs(place: Path) -> Path:
    """Write a model directory `init`, `train.csv` with two bad rows, `eval.jsonl` with one."""
    write_encoder(place / "init", vocab=VOCAB, seed=5, initializer_range=0.1)
    (place / "train.csv").write_text(ROWS + "too,many,cells\n,good\n")
    (place / "eval.jsonl").write_text(
        '{"text": "red film", "label": "bad"}\n{"text": "good", "label": "good"}\nbroken\n'
    )
    return place


def make_config(place: Path, output: str, **values: Any) -> FinetuneConfig:
    """Return the config of ten steps on the inputs of `write_inputs`."""
    return finetune_config(
        {
            "task": "classification",
            "train": str(place / "train.csv"),
            "eval": str(place / "eval.jsonl"),
            "init": str(place / "init"),
            "output": str(place / output),
            "precision": "float32",
            "epochs": 5,
            "batch_size": 4,
            "max_seq_length": 16,
            "learning_rate": 1e-3,
            "log_every": 1,
            "checkpoint_every": 4,
            "checkpoint_minutes": 0,
            **values,
        },
    )


def quietly() -> RunOptions:
    return RunOptions(console=Console(io.StringIO()))


def check_rejects(place: Path, output: Path, said: str) -> None:
    """Check that 2 of 8 training rows are rejected, and 1 of 3 evaluation rows.

    Args:
        place: of the inputs.
        output: of the run.
        said: output of the console.
    """
    assert len((output / "rejects.jsonl").read_text().splitlines()) == 3
    train = place / "train.csv"
    evaluation = place / "eval.jsonl"
    assert f"warning: {train}: 2 of 8 rows rejected\n" in said
    assert f"  1  column 'text' is empty, first at {train}:9\n" in said
    assert f"warning: {evaluation}: 1 of 3 rows rejected\n" in said
