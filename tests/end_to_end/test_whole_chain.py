"""From raw text to scored rows through the command line, once, and the promises to a user."""

import csv
import hashlib
import json
import random
from pathlib import Path

import pytest
from run_commands import OWN, run_commands

from bert_tf.base.checksums import CARD, SUMS, file_sha256
from pipeline.outputs.manifest import manifest_path, side_paths

pytestmark = pytest.mark.slow  # runs every command, training included

# Words of either kind alone make up the texts of a label.
WORDS = {
    label: [first + second for first in letters for second in "aeiou"]
    for label, letters in (("river", "bcdfg"), ("street", "klmnp"))
}
COMMANDS = """\
vocab --input corpus.txt --output vocab.txt --vocab-size 80
preprocess --input corpus.txt --vocab vocab.txt --output data --max-seq-length 32
preprocess --input corpus.txt --vocab vocab.txt --output data2 --max-seq-length 32 --workers 2
train --data data --output run --size tiny --steps 2 --batch-size 4
finetune classification --train rows.csv --eval dev.csv --init run --output labels --epochs 3 \
--max-seq-length 16 --batch-size 8 --learning-rate 0.001
finetune qa --train qa.json --init run --output answers --epochs 1 --max-seq-length 96 \
--eval-fraction 0
label-errors classification --train dev.csv --init run --output doubted --folds 2 --epochs 1 \
--max-seq-length 16
evaluate --model labels --data dev.csv --output measures
export --run labels --output model
score --model model --input new.csv --output scored.csv
import-weights model --output imported
embed --model labels --input dev.csv --output vectors.parquet
search --queries new.csv --corpus vectors.parquet --model labels --top-k 1 --output nearest.csv
summarize --model labels --input dev.csv --sentences 1 --output summaries.jsonl
"""
OUTPUTS = {
    "vocab.txt": "vocab",
    "data": "preprocess",
    "data2": "preprocess",
    "run": "train",
    "labels": "finetune",
    "answers": "finetune",
    "doubted": "label-errors",
    "measures": "evaluate",
    "model": "export",
    "scored.csv": "score",
    "imported": "import-weights",
    "vectors.parquet": "embed",
    "nearest.csv": "search",
    "summaries.jsonl": "summarize",
}


def write_inputs(folder: Path) -> None:
    """A corpus, labeled rows, questions, and rows to score."""
    source = random.Random(0)

    def words(label: str, count: int) -> str:
        return " ".join(source.choices(WORDS[label], k=count))

    documents = ["\n".join(words(label, 8) + " ." for _ in range(8)) for label in [*WORDS] * 30]
    (folder / "corpus.txt").write_text("\n\n".join(documents))
    for name, per_label in (("rows.csv", 40), ("dev.csv", 8)):
        rows = [f"{words(label, 6)},{label}" for label in [*WORDS] * per_label]
        (folder / name).write_text("\n".join(["text,label", *rows]) + "\n")
    paragraphs = []
    for number in range(8):
        context = words("river", 12)
        answer = context.split()[3]
        question = {
            "id": str(number),
            "question": "ba be bi",
            "answers": [{"text": answer, "answer_start": context.index(answer)}],
        }
        paragraphs.append({"context": context, "qas": [question]})
    squad = {"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}
    (folder / "qa.json").write_text(json.dumps(squad))
    # The id's last part is the label that the text has.
    with (folder / "new.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["id", "text", "source"])
        for number in range(60):
            label = source.choice([*WORDS])
            table.writerow([f"{number}-{label}", words(label, source.randint(1, 9)), 'a, "b"'])


class Chain:
    """All commands, run once, then again, then the commands that look at their outputs."""

    def __init__(self, folder: Path):
        write_inputs(folder)
        commands = COMMANDS.splitlines()
        inspections = [f"inspect {output}" for output in OUTPUTS]
        self.folder = folder
        self.reports, self.stderr = run_commands(
            folder, [*commands, *commands, *inspections, "doctor"]
        )
        self.again = slice(len(commands), 2 * len(commands))
        self.inspections = slice(2 * len(commands), -1)

    def manifest(self, output: str) -> dict:
        return json.loads(manifest_path(self.folder / output).read_text())


@pytest.fixture(scope="module")
def chain(tmp_path_factory) -> Chain:
    return Chain(tmp_path_factory.mktemp("chain"))


def test_every_command_ends_well_and_writes_our_own_lines_alone(chain):
    assert {each["command"]: each["code"] for each in chain.reports if each["code"] != 0} == {}
    lines = [line for lines in chain.stderr for line in lines]
    assert [line for line in lines if not line.startswith(OWN)] == []
    assert len(lines) > 60


def test_no_command_asks_for_another_host(chain):
    """Where the system allows it, no host can be reached, libraries in C++ included."""
    assert {each["command"]: each["asked"] for each in chain.reports if each["asked"]} == {}


def made_sha256(chain: Chain, producer: str, path: str) -> str:
    """Return the hash of the files that a reader of `path` finds in or of a finished output."""
    made = {file["path"]: file["sha256"] for file in chain.manifest(producer)["outputs"]}
    if producer in ("data", "data2"):  # records are known by their manifest
        return file_sha256(chain.folder / path / "manifest.json")
    if path == producer and path in made:
        return made[path]
    prefix = "" if path == producer else f"{Path(path).relative_to(producer)}/"
    digest = hashlib.sha256()
    for name in sorted(made, key=Path):
        inside = name.removeprefix(prefix)
        if name.startswith(prefix) and inside not in (SUMS, CARD):
            digest.update(f"{inside}\0{made[name]}\n".encode())
    return digest.hexdigest()


def test_the_inputs_of_a_command_are_the_outputs_of_those_before_it(chain):
    links = set()
    for output in OUTPUTS:
        for given in chain.manifest(output)["inputs"]:
            path, producer = given["path"], Path(given["path"]).parts[0]
            if producer in OUTPUTS:
                assert given["sha256"] == made_sha256(chain, producer, path), (output, path)
                links.add((output, path))
            else:
                assert given["sha256"] == file_sha256(chain.folder / path)
    assert links == {
        ("data", "vocab.txt"),
        ("data2", "vocab.txt"),
        ("run", "data"),
        ("labels", "run/best"),
        ("answers", "run/best"),
        ("doubted", "run/best"),
        ("measures", "labels/best"),
        ("model", "labels/best"),
        ("scored.csv", "model"),
        ("imported", "model"),
        ("vectors.parquet", "labels/best"),
        ("nearest.csv", "labels/best"),
        ("nearest.csv", "vectors.parquet"),
        ("summaries.jsonl", "labels/best"),
    }


def test_the_files_of_an_output_are_those_that_its_manifest_lists(chain):
    for output, command in OUTPUTS.items():
        manifest, place = chain.manifest(output), chain.folder / output
        assert manifest["command"] == command
        assert manifest["outputs"], output
        for made in manifest["outputs"]:
            path = (place if place.is_dir() else place.parent) / made["path"]
            assert file_sha256(path) == made["sha256"], path


def test_any_number_of_workers_makes_the_same_records(chain):
    assert chain.manifest("data")["outputs"] == chain.manifest("data2")["outputs"]


def test_every_row_comes_back_in_order_with_its_own_columns_and_its_label(chain):
    given, scored = (
        list(csv.reader((chain.folder / name).read_text().splitlines(keepends=True)))
        for name in ("new.csv", "scored.csv")
    )
    assert scored[0] == [*given[0], "predicted_label", "predicted_score"]
    assert [row[: len(given[0])] for row in scored] == given
    right = sum(row[0].partition("-")[2] == row[3] for row in scored[1:])
    assert right > 0.9 * len(scored[1:])
    assert all(0.5 <= float(row[4]) <= 1 for row in scored[1:])
    assert chain.manifest("measures")["metrics"]["accuracy"] > 0.9


def test_the_nearest_row_of_a_text_mostly_has_its_label(chain):
    corpus, found = (
        list(csv.DictReader((chain.folder / name).read_text().splitlines()))
        for name in ("dev.csv", "nearest.csv")
    )
    rows = csv.DictReader((chain.folder / "new.csv").read_text().splitlines())
    ids = [row["id"] for row in rows]
    assert [int(row["query_row"]) for row in found] == [*range(len(ids))]
    assert [corpus[int(row["corpus_row"])]["text"] for row in found] == [
        row["text"] for row in found
    ]
    labels = [corpus[int(row["corpus_row"])]["label"] for row in found]
    right = sum(name.partition("-")[2] == label for name, label in zip(ids, labels, strict=True))
    assert right > 0.9 * len(ids)


def test_the_same_commands_again_do_nothing(chain):
    reports, stderr = chain.reports[chain.again], chain.stderr[chain.again]
    for output, lines in zip(OUTPUTS, stderr, strict=True):
        assert lines == [
            f"{OWN}{output} is finished already and its config is the same; nothing to do"
        ]
        place = chain.folder / output
        files = [place, *side_paths(place)] if place.is_file() else [*place.rglob("*")]
        last = max(file.stat().st_mtime for file in files if file.is_file() and is_kept(file))
        assert last < reports[0]["started"], output


def is_kept(file: Path) -> bool:
    """Not a mark of the process that has the output in hand."""
    return not file.name.startswith(".") and file.exists()


def test_every_artifact_can_be_inspected(chain):
    reports = chain.reports[chain.inspections]
    for (output, command), report in zip(OUTPUTS.items(), reports, strict=True):
        first, *more = report["stdout"].splitlines()
        assert first.startswith(f"{output}: ")
        assert first.endswith(f", made by bert-pipeline {command}")
        assert len(more) > 10, report["stdout"]
