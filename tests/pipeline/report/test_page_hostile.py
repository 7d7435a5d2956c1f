"""No text becomes an element or attribute of a page, wherever it comes from.

Pages with hostile texts have the kinds of elements that those with harmless ones have, as lxml and
a browser read them, and a browser runs and asks for nothing. (How many, depends on the text: the
page of a corpus counts words and warns of tags.)
"""

import dataclasses
import json
import types

import lxml.html
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from behavior.pages import check_page

from bert_tf.base.errors import InputError
from bert_tf.config.sections import PreprocessConfig
from bert_tf.data.tables.file_rows import Table
from bert_tf.data.tables.places import Place
from bert_tf.tasks.base.prediction_rows import TaskReport, TaskResults
from bert_tf.tasks.classification.task import ClassificationTask
from bert_tf.tasks.registry import page_function
from pipeline.outputs.manifest import describe_files, write_manifest
from pipeline.report.corpus.page import corpus_at
from pipeline.report.document import html_document
from pipeline.report.page import artifact_page, corpus_page, evaluation_page
from pipeline.report.runs import plots_style, read_runs
from pipeline.report.runs_page import runs_page
from pipeline.report.texts_page import text_html
from pipeline.report.texts_reading import Guess, Prediction, Reading

# Closes attributes, elements, comments and scripts; no slash, so that it can be a file's name.
EVIL = "\"'>]]>--><img src=x onerror=alert(1)><script>alert(2)<!--&lt;&#0;\u202e|```"
HARMLESS = EVIL.translate(str.maketrans("<>\"'&", "()!!+"))  # of the same words


def artifact(folder, text, *, command):
    folder = folder / text
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


def runs(parent, text):
    for name in (f"a{text}", f"b{text}"):
        folder = parent / name
        folder.mkdir()
        lines = [{"step": step, "split": "eval", text: 0.5, "loss": 1.0} for step in (1, 2)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
        config = {"task": text, "seed": name, text: name}
        write_manifest(folder, {"command": "finetune", "config": config, "notes": [text]})
    return runs_page(read_runs([str(parent / f"{each}{text}") for each in "ab"]))


def evaluation(folder, text):
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


def corpus(folder, text):
    """Return the page of a corpus of equal documents that a rule drops, named so."""
    place = folder / text
    place.mkdir()
    (place / f"{text}.txt").write_text(f"It rains. {text}\nAll is dry.\n\n" * 3)
    (place / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n")
    reading = PreprocessConfig(input=(str(place / f"{text}.txt"),), curation=("gopher",))
    return corpus_page(corpus_at(reading, vocab=str(place / "vocab.txt")), text, samples=3)


def vocabulary(folder, text):
    """Return the page of a vocabulary with an entry, a corpus and a manifest of this text."""
    (folder / f"{text}.txt").write_text(f"It rains. {text} the rain and the wind.\n\n" * 60)
    path = folder / f"v{text}"
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    path.write_text("".join(f"{each}\n" for each in (*special, "the", text)))
    size = (folder / f"{text}.txt").stat().st_size
    given = {"key": "input", "path": str(folder / f"{text}.txt"), "bytes": size, "sha256": text}
    write_manifest(path, {"command": "vocab", "config": {}, "inputs": [given], "notes": [text]})
    return artifact_page(str(path), samples=3)


def model(folder, text):
    place = folder / text
    place.mkdir()
    config = {"model_type": "bert", "num_hidden_layers": 1, text: text}
    (place / "config.json").write_text(json.dumps(config))
    task = {"task": text, "labels": [text, "b"], "columns": {text: text}, text: text}
    (place / "task.json").write_text(json.dumps(task))
    write_manifest(place, {"command": "export", "config": {}, "format": text, "notes": [text]})
    return artifact_page(str(place), samples=3)


def vectors(folder, text):
    path = folder / f"{text}.parquet"
    cells = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float32)), 2)
    pq.write_table(pa.table({text: [text, "a", "b"], "embedding": cells}), path)
    manifest = {
        "command": "embed", "config": {}, "columns": {"text": text}, "embedding": {"pooling": text},
        "outputs": describe_files(path, {}),
    }  # fmt: skip
    write_manifest(path, manifest)
    return artifact_page(str(path), samples=3)


def entities(folder, text):
    """Return the page of a tagger, whose texts are marked."""
    source = types.SimpleNamespace(
        texts=[text, text], all_places=[Place(1), Place(2, 0, text)], source=text, rejects=[]
    )
    spans = [{"start": start, "end": start + 8, "label": text} for start in (0, 20)]
    results = TaskResults(
        metrics={"f1": 0.5},
        predictions=[{"entities": spans, "predicted_entities": spans[:1]}] * 2,
        report=TaskReport(details={"labels": {}}),
    )
    return html_document(
        text, page_function("tagging")(None, source, {}, results), command="evaluate"
    )


def texts(folder, text):
    tokens = ["[CLS]", text, text, "[SEP]"]
    read = Reading(
        tokens=tokens,
        is_cut=False,
        attention=np.full((1, 1, 4, 4), 0.25, np.float32),
        neighbors={1: [(text, 0.5)]},
        guesses=[Guess(position=2, candidates=[(text, 0.5)], probability=0.5)],
        predictions=[Prediction(name=text, value=text, probability=0.5)],
    )
    content = text_html([text, text], [(0, text, read), (1, text, read)])
    return html_document(text, content, command="report", sheets=("texts",), style=plots_style(2))


_PAGES = (runs, evaluation, corpus, texts, vocabulary, model, vectors, entities)
PAGES = {
    **{
        name: lambda folder, text, name=name: artifact(folder, text, command=name)
        for name in ("train", "finetune", "evaluate", "unknown")
    },
    **{page.__name__: page for page in _PAGES},
}


@pytest.fixture(params=PAGES)
def pages(request, tmp_path):
    return [PAGES[request.param](tmp_path, text) for text in (EVIL, HARMLESS)]


def kinds(html):
    """Return the elements with the names of their attributes."""
    check_page(html)
    read = lxml.html.document_fromstring(html)
    return {(each.tag, *sorted(each.attrib)) for each in read.iter()}


def test_pages_have_the_elements_of_harmless_ones(pages):
    evil, harmless = map(kinds, pages)
    assert evil == harmless


@pytest.mark.slow  # starts a browser
def test_pages_are_so_in_a_browser_which_runs_and_asks_for_nothing(browser, pages, tmp_path):
    found = []
    for number, html in enumerate(pages):
        file = tmp_path / f"{number}.html"
        file.write_text(html)
        browser.open(file.as_uri())
        elements = browser.value(
            "[...document.all].map(each => [each.tagName, ...each.getAttributeNames().sort()])"
        )
        found.append(set(map(tuple, elements)))
        assert browser.requested() == [file.as_uri()]
        assert browser.complaints() == []
    assert found[0] == found[1] and len(found[0]) > 5


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
