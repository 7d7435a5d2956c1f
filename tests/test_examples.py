"""The notebook of the examples runs as it stands."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = {}
    for cell in cells:
        exec(compile(cell, "quickstart.ipynb", "exec"), names)
    assert names["manifest"]["metrics"]["best"]["accuracy"] > 0.8
    first, second = names["model"].predict(["My card was charged twice.", "The router is dead."])
    assert (first["predicted_label"], second["predicted_label"]) == ("billing", "hardware")
