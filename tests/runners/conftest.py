"""A model to score with, small and untrained."""

from __future__ import annotations

from pathlib import Path

import pytest
from behavior.small_models import write_classifier

from bert_tf.base.console import Console
from bert_tf.config.section import build_section
from bert_tf.config.sections import ExportConfig
from pipeline.jobs import exporting
from pipeline.outputs.job_spec import RunOptions

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "red", "blue"]
TASK = {
    "task": "classification",
    "labels": ["good", "bad"],
    "columns": {"text": "text", "text_pair": None, "label": "label"},
    "max_seq_length": 16,
}


@pytest.fixture(scope="session")
def exported_model(tmp_path_factory) -> Path:
    """Return a classifier as `export` writes it."""
    folder = tmp_path_factory.mktemp("exported")
    write_classifier(folder / "run/best", vocab=VOCAB, task=TASK, seed=7, initializer_range=0.5)
    (folder / "run/checkpoints").mkdir()
    values = {"run": str(folder / "run"), "output": str(folder / "model")}
    exporting.run(build_section(ExportConfig, values), RunOptions(console=Console()))
    return folder / "model"


@pytest.fixture(scope="session")
def scored_table(tmp_path_factory) -> Path:
    """Return a table of 300 rows, two of them without a text."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    texts = [" ".join((VOCAB[5 + n % 5], VOCAB[5 + n // 5 % 5], "film")) for n in range(298)]
    texts[100:100], texts[200:200] = [""], [""]
    path.write_text("n,text\n" + "".join(f"{n},{text}\n" for n, text in enumerate(texts)))
    return path
