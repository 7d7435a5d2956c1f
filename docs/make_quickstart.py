"""Writes into README.md what its commands print and make, by running the notebook of the examples.

python docs/make_quickstart.py
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"
NOTEBOOK = README.parent / "examples" / "quickstart.ipynb"
_BLOCK = re.compile(r"(?<=<!-- docs/make_quickstart.py -->\n```\n).*?(?=```\n)", re.DOTALL)
# The table of labels, the chosen recipe, what is measured after some epochs, and what is made.
_SHOWN = re.compile(
    r"  label +training|  \w+ +\d+ +\d+$|\d+ training rows|step (15|30|60|300), eval"
    r"|  complaints/best "
)


def written() -> str:
    """The block as README.md has it."""
    found = _BLOCK.search(README.read_text(encoding="utf-8"))
    assert found is not None
    return found[0]


def run_notebook() -> dict[str, Any]:
    """Runs the cells of the notebook in the working directory; returns its names."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
    return names


def printed() -> tuple[str, dict[str, Any]]:
    """The block as the commands make it now, and the names of the notebook that runs them."""
    stream = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stderr(stream),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        names = run_notebook()
        rows = Path("scored.csv").read_text(encoding="utf-8").splitlines()[:3]
    shown = [line for line in stream.getvalue().splitlines() if _SHOWN.match(line)]
    return "\n".join([*shown, "", "$ head -3 scored.csv", *rows, ""]), names


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(_BLOCK.sub(lambda _: printed()[0], text), encoding="utf-8")
