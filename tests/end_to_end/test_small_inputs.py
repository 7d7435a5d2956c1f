"""Commands with next to nothing: one document, one text, ten entries, batches larger than the data.

`test_whole_chain` runs every command on ordinary data.
"""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from run_commands import OWN, run_commands

from bert_tf.base.processor import is_bfloat16_excluded

pytestmark = pytest.mark.slow  # trains, exports and scores

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##a", "##b"]
FEW = ["a b,x", "c a,y"] * 4
# ONEDNN_MAX_CPU_ISA may exclude products of 16 bits.
PRECISION = "float32" if is_bfloat16_excluded() else "float16"
NOTHING = "\u200b\u0007"  # cleaning leaves none of it
# How each ends, and the beginning of its error.
COMMANDS = {
    "preprocess --input one.txt --vocab vocab.txt --output data --max-seq-length 16": "",
    "preprocess --input empty.txt --vocab vocab.txt --output none": "empty.txt: no usable document",
    "train --data data --output run --size tiny --steps 2 --batch-size 64": "",
    "train --data data --output wild --size tiny --steps 20 --batch-size 8 --learning-rate 1.0 "
    "--set train.warmup_steps=0": "",
    "finetune classification --train few.csv --init run --output labels --epochs 1 "
    f"--batch-size 64 --max-seq-length 512 --set finetune.precision={PRECISION}": "",
    "finetune classification --train none.csv --init run --output a": "none.csv: has columns but",
    "finetune classification --train one.csv --init run --output b": "one.csv: column 'label' hol",
    "finetune regression --train number.csv --init run --output c": "number.csv: column 'label' h",
    "finetune qa --train one.json --init run --output answers --epochs 1 --eval-fraction 0 "
    "--max-seq-length 96": "",
    "export --run labels --output model": "",
    "score --model model --input texts.csv --output scored.csv --engine tensorflow": "",
    "score --model model --input none.csv --output d.csv": "none.csv: has columns but no rows",
    "embed --model labels --input texts.csv --output vectors.parquet": "",
    "embed --model labels --input none.csv --output e.parquet": "none.csv: has columns but no rows",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n")
    (folder / "one.txt").write_text("a b c ab. c b a.\nb a c. a a b.\n")
    (folder / "empty.txt").write_text("")
    question = {"id": "1", "question": "a", "answers": [{"text": "b", "answer_start": 2}]}
    paragraph = {"context": "a b c", "qas": [question]}
    squad = {"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph]}]}
    (folder / "one.json").write_text(json.dumps(squad))
    tables = {"few": FEW, "none": [], "one": ["a b,x"], "number": ["a b,1.5"]}
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    texts = [NOTHING, "a", "a " * 510, "b " * 511]
    (folder / "texts.csv").write_text("\n".join(["text", *texts]) + "\n")
    reports, lines = run_commands(folder, [*COMMANDS])
    return folder, reports, lines


def test_each_ends_well_or_with_a_line(ran):
    _, reports, lines = ran
    for report, said, expected in zip(reports, lines, COMMANDS.values(), strict=True):
        errors = [line for line in said if line.startswith("error: ")]
        assert report["code"] == (1 if expected else 0), said
        assert [line[: len("error: " + expected)] for line in errors] == (
            [f"error: {expected}"] if expected else []
        )
        assert [line for line in said if not line.startswith((OWN, "error: "))] == []


def test_numbers_are_finite_and_long_texts_are_cut(ran):
    folder, _, lines = ran
    rows = list(csv.DictReader((folder / "scored.csv").read_text().splitlines()))
    assert len(rows) == 4
    assert all(0 <= float(row["predicted_score"]) <= 1 for row in rows)
    vectors = pq.read_table(folder / "vectors.parquet")["embedding"].to_numpy()
    assert np.isfinite(np.stack(vectors)).all()
    said = next(said for command, said in zip(COMMANDS, lines, strict=True) if "scored" in command)
    assert any("1 of 4 rows (25.0%) are too long for the model and lose 1 token" in x for x in said)


def test_a_rate_that_diverges_has_a_hint(ran):
    _, _, lines = ran
    (said,) = (said for command, said in zip(COMMANDS, lines, strict=True) if "wild" in command)
    assert any(
        "of training is above that of guessing (ln 10 = 2.30): it diverged" in x for x in said
    )
