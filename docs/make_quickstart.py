"""Writes into README.md what the commands of its quickstart print and make, by running them.

python docs/make_quickstart.py
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from importlib import resources
from pathlib import Path

from bert_tf.base.console import Console
from pipeline.api import export, finetune, score
from pipeline.demo.plan import find_weights

README = Path(__file__).parents[1] / "README.md"
_BLOCK = re.compile(r"(?<=<!-- docs/make_quickstart.py -->\n```\n).*?(?=```\n)", re.DOTALL)
# The table of labels, what is measured after each epoch, and what is made.
_SHOWN = re.compile(r"  label +training|  \w+ +\d+ +\d+$|step \d+, eval|  complaints/best ")
_FILES = {"train.csv": "train", "dev.csv": "test", "new.csv": "new"}


def written() -> str:
    """The block as README.md has it."""
    found = _BLOCK.search(README.read_text(encoding="utf-8"))
    assert found is not None
    return found[0]


def printed() -> str:
    """The block as the commands make it now."""
    stream = io.StringIO()
    data = resources.files("pipeline.demo") / "data"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, part in _FILES.items():
            Path(name).write_bytes((data / f"complaints-{part}.csv").read_bytes())
        finetune(
            "classification",
            train="train.csv",
            eval="dev.csv",
            init=find_weights(None),
            output="complaints",
            console=Console(stream, log_seconds=1e9),
        )
        quiet = Console(io.StringIO())
        export(run="complaints", output="complaints-model", console=quiet)
        score(model="complaints-model", input=["new.csv"], output="scored.csv", console=quiet)
        rows = Path("scored.csv").read_text(encoding="utf-8").splitlines()[:3]
    shown = [line for line in stream.getvalue().splitlines() if _SHOWN.match(line)]
    return "\n".join([*shown, "", "$ head -3 scored.csv", *rows, ""])


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(_BLOCK.sub(lambda _: printed(), text), encoding="utf-8")
