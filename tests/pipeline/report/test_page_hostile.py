"""No text becomes an element or attribute of a page, wherever it comes from.

Pages with hostile texts have the elements and attributes of those with harmless ones, as lxml reads
them.
"""

import dataclasses
import json

import lxml.html
import numpy as np
import pytest
from behavior.pages import check_page

from bert_tf.base.errors import InputError
from bert_tf.data.tables.tables import Table
from bert_tf.tasks.classification.task import ClassificationTask
from pipeline.outputs.manifest import describe_files, write_manifest
from pipeline.report.document import html_document
from pipeline.report.page import artifact_page, evaluation_page
from pipeline.report.runs import read_runs
from pipeline.report.runs_page import runs_page

# Closes attributes, elements, comments and scripts; no slash, so that it can be a file's name.
EVIL = "\"'>]]>--><img src=x onerror=alert(1)><script>alert(2)<!--&lt;&#0;\u202e|```"
HARMLESS = "x" * len(EVIL)


def structure(html):
    check_page(html)
    read = lxml.html.document_fromstring(html)
    return [(each.tag, sorted(each.attrib)) for each in read.iter() if each.tag != "meta"]


@pytest.mark.parametrize("command", ["train", "finetune", "evaluate", "unknown"])
def test_artifacts(tmp_path, command):
    def page(text):
        folder = tmp_path / text
        folder.mkdir()
        lines = [{"step": step, "split": "eval", text: 0.5} for step in (1, 2)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
        (folder / "predictions.jsonl").write_text(json.dumps({text: text}) + "\n")
        manifest = {
            "command": command,
            "config": {"size": text, "input": [text, text], text: {text: text}},
            "inputs": [{"key": text, "path": text, "bytes": 1, "sha256": text}],
            "counts": {"rows_in": 1, text: {text: 1}},
            "metrics": {"best": {"step": 1, text: 0.5}},
            "timings": {text: 1.0},
            "versions": {text: text},
            "notes": [text],
            "outputs": [],
        }
        write_manifest(folder, manifest)
        return artifact_page(str(folder), samples=3)

    assert structure(page(EVIL)) == structure(page(HARMLESS))


def test_runs_beside_each_other(tmp_path):
    def page(text):
        for name in (f"a{text}", f"b{text}"):
            folder = tmp_path / name
            folder.mkdir()
            lines = [{"step": step, "split": "eval", text: 0.5, "loss": 1.0} for step in (1, 2)]
            (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
            config = {"task": text, "seed": name, text: name}
            write_manifest(folder, {"command": "finetune", "config": config, "notes": [text]})
        return runs_page(read_runs([str(tmp_path / f"{each}{text}") for each in "ab"]))

    assert structure(page(EVIL)) == structure(page(HARMLESS))


def test_evaluations():
    def page(text):
        labels = (text, f"{text}2")
        task = ClassificationTask(
            labels=labels,
            text_column=text,
            text_pair_column=None,
            label_column=f"{text}l",
            max_seq_length=16,
        )
        columns = {text: [text, "b"], f"{text}l": labels}
        table = Table(source=text, columns=columns, lines=[2, 3], rejects=[])
        predicted = task.predictions(np.array([[0, 1], [1, 0]], np.float32))
        results = dataclasses.replace(task.measure(table, predicted), predicted=predicted)
        return evaluation_page(task, table, results, model=text, facts=[text], chosen_by=text)

    assert structure(page(EVIL)) == structure(page(HARMLESS))


@pytest.mark.parametrize(
    "element",
    [
        '<meta http-equiv="refresh" content="0;url=https://example.com">',
        '<a href="https://example.com">more</a>',
        "<script>alert(1)</script>",
        "<IMG src=x onerror=alert(1)>",
        "<style>* { display: none }</style>",
        "<!--",
    ],
)
def test_a_report_of_another_tool_in_a_run_is_refused(tmp_path, element):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "split": "eval", "loss": 1.0}\n')
    (tmp_path / "report.html").write_text(html_document("T", f"<p>{element}</p>", command="c"))
    outputs = describe_files(tmp_path, {})
    write_manifest(tmp_path, {"command": "finetune", "config": {}, "outputs": outputs})
    with pytest.raises(InputError, match=r"report\.html: holds <.*, which no report has"):
        runs_page(read_runs([str(tmp_path)]))
