"""A small run to export, rows to score, and configs of `score` for them."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

from behavior.small_models import write_classifier

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import ScoreConfig
from pipeline.outputs.job_spec import RunOptions

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "red", "blue"]
TASK = {
    "task": "classification",
    "labels": ["good", "bad"],
    "columns": {"text": "body", "text_pair": None, "label": "label"},
    "max_seq_length": 16,
}


@dataclasses.dataclass
class Log:
    """Options whose console is kept."""

    stream: io.StringIO = dataclasses.field(default_factory=io.StringIO)

    def options(self, **values: Any) -> RunOptions:
        return RunOptions(console=Console(self.stream), **values)


def write_run(place: Path) -> Path:
    """Write a fine-tuned model as `finetune` leaves it, RUN/best; return the run."""
    write_classifier(place / "best", vocab=VOCAB, task=TASK, seed=7, initializer_range=0.5)
    (place / "config.yaml").write_text("finetune: {task: classification, output: run}\n")
    return place


def config_of(model: Path, *inputs: Path, output: Path, **values: Any) -> ScoreConfig:
    """Return the config that scores tables with a model in blocks of two rows."""
    values = {
        "model": str(model),
        "input": [str(path) for path in inputs],
        "output": str(output),
        "engine": "tensorflow",  # whatever else is installed
        "precision": "float32",  # whatever the processor has
        "block_rows": 2,
        **values,
    }
    return build_section(ScoreConfig, values)


def write_rows(path: Path) -> list[str]:
    """Write a table of five texts; return the texts."""
    texts = ["good film", "bad", "red blue red", "film film", "blue good bad"]
    path.write_text("n,body\n" + "".join(f"{n},{text}\n" for n, text in enumerate(texts)))
    return texts


def fail(*_: Any, **__: Any) -> None:
    """Stand for a function that a crash interrupts."""
    raise RuntimeError
