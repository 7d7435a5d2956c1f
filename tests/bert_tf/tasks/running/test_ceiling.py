"""The best result that rows allow: perfect on clean rows, lower by a known count on others."""

import functools
import io
import itertools
import json

import pytest
from behavior.ceilings import (
    CONTEXT,
    LETTERS,
    measured_ceiling,
    question,
    texts_with_labels,
    tokenizer,
)

from bert_tf.base.console import Console
from bert_tf.tasks.question_answering.question_files import QuestionColumns
from bert_tf.tasks.registry import TASKS, finetune_config, task_class
from bert_tf.tasks.running.ceiling import measure_ceiling


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ceilings")


@pytest.fixture(scope="module")
def ceiling_of(folder):
    """Return a function that measures the ceiling of a task on rows."""
    return functools.partial(measured_ceiling, folder)


LABELED = [(f"{one} {other}", one) for one in "abcd" for other in "efgh"]
PAIRS = [(one, other, one + other) for one in "abcd" for other in "efgh"]
NUMBERED = [(text, number / 4) for number, (text, _) in enumerate(LABELED)]
TAGGED = [
    (["a", "b", "c", "."], ["B-X", "I-X", "O", "O"]),
    (["d", "e", "f"], ["O", "B-Y", "O"]),
    (["the", "g", "h", "?"], ["O", "B-X", "B-Y", "O"]),
]
TAGGED_LISTS = [{"tokens": words, "tags": tags} for words, tags in TAGGED]


def conll(rows, separator=" "):
    return "".join(
        "".join(f"{word}{separator}{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"
        for words, tags in rows
    )


def squad(questions):
    entries = [
        {
            "id": str(number),
            "question": row["question"],
            "answers": [{"text": row["answer"], "answer_start": row["answer_start"]}]
            if row["answer"]
            else [],
            "is_impossible": not row["answer"],
        }
        for number, row in enumerate(questions)
    ]
    paragraphs = [{"context": CONTEXT, "qas": entries}]
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})


ANSWERED = [question(number, answer) for number, answer in enumerate(["b", "c d", "i", "e f g"])]
UNANSWERED = [*ANSWERED, question(5, None), question(6, None)]
CHOICES = [
    {"context": one, "choices": ["e", "f", "g"], "label": number % 3}
    for number, one in enumerate(LETTERS)
]
SCORED = [{"text": a, "text_pair": b, "score": ord(a) + ord(b)} for a, b, _ in PAIRS]
CLEAN = {
    "classification csv": (
        "classification",
        "text,label\n" + "".join(f"{text},{label}\n" for text, label in LABELED),
        {"name": "rows.csv"},
    ),
    "classification tsv": (
        "classification",
        "text\tlabel\n" + "".join(f'{text}\t"{label}"\n' for text, label in LABELED),
        {"name": "rows.tsv"},
    ),
    "classification jsonl": ("classification", texts_with_labels(LABELED), {}),
    "calibrated": (
        "classification",
        texts_with_labels(LABELED),
        {"calibration": "temperature"},
    ),
    "classification windows": (
        "classification",
        [{"text": f"{text} c d e f g {text}", "label": label} for text, label in LABELED],
        {"max_seq_length": 6, "long_texts": "windows"},
    ),
    "classification pairs": (
        "classification",
        [{"text": a, "text_pair": b, "label": label} for a, b, label in PAIRS],
        {"text_pair_column": "text_pair"},
    ),
    "multilabel text": (
        "multilabel",
        texts_with_labels([("a", "x,y"), ("b", "y"), ("c", ""), ("d", "x")]),
        {},
    ),
    "multilabel lists": (
        "multilabel",
        texts_with_labels([("a", ["x", "y, z"]), ("b", ['"y"']), ("c", []), ("d", ["x"])]),
        {"thresholds": "per-label"},
    ),
    "multilabel columns": (
        "multilabel",
        "text,x,y\na,1,0\nb,0,1\nc,1,1\nd,0,0\n",
        {"name": "rows.csv", "label_column": ("x", "y")},
    ),
    "regression": ("regression", texts_with_labels(NUMBERED, label="number"), {}),
    "regression far from 0": (
        "regression",
        texts_with_labels([(text, 1000 + 4 * n) for text, n in NUMBERED], label="number"),
        {},
    ),
    "tagging conll": ("tagging", conll(TAGGED), {"name": "rows.conll"}),
    "tagging iobes": (
        "tagging",
        conll([(["a", "b", "c"], ["B-X", "E-X", "O"]), (["d", "e"], ["O", "S-Y"])]),
        {"name": "rows.conll"},
    ),
    "tagging plain": (
        "tagging",
        conll([(["a", "b"], ["DET", "NOUN"]), (["c"], ["VERB"])]),
        {"name": "rows.conll"},
    ),
    "tagging lists": (
        "tagging",
        TAGGED_LISTS,
        {},
    ),
    "tagging windows": (
        "tagging",
        [{"tokens": words * 5, "tags": tags * 5} for words, tags in TAGGED],
        {"max_seq_length": 7, "window_stride": 2},
    ),
    "tagging spans": (
        "tagging",
        [
            {"text": "a b c.", "entities": [{"start": 0, "end": 3, "label": "X"}]},
            {"text": "d e", "entities": [[2, 3, "Y"]]},
        ],
        {},
    ),
    "tagging words without a token": (
        "tagging",
        [
            {"tokens": ["b", "\u200b", "c", "\u00ad"], "tags": ["B-X", "I-X", "I-X", "O"]},
            *TAGGED_LISTS,
        ],
        {},
    ),
    "tagging rows of words": (
        "tagging",
        "sentence,tokens,tags\n1,a,B-X\n1,b,I-X\n1,c,O\n2,d,O\n2,e,B-Y\n3,f,O\n3,g,O\n",
        {"name": "rows.csv", "sentence_column": "sentence"},
    ),
    "qa squad": ("qa", squad(ANSWERED), {"name": "rows.json"}),
    "qa squad 2": ("qa", squad(UNANSWERED), {"name": "rows.json"}),
    "qa table": ("qa", ANSWERED, {}),
    "qa windows": (
        "qa",
        [question(n, answer, f"{CONTEXT} j k l m n o p q") for n, answer in enumerate("behkq")],
        {"max_seq_length": 20, "doc_stride": 4},
    ),
    "choices": ("multiple-choice", CHOICES, {}),
    "choices by text": (
        "multiple-choice",
        [{**row, "label": row["choices"][row["label"]]} for row in CHOICES],
        {"label_form": "text"},
    ),
    "choices of different counts": (
        "multiple-choice",
        [{**row, "choices": row["choices"][: row["label"] + 2]} for row in CHOICES],
        {},
    ),
    "scored pairs": ("similarity", SCORED, {}),
    "matches": (
        "similarity",
        [{"anchor": a, "positive": f"{a} {b}"} for a, b, _ in PAIRS],
        {"loss": "multiple-negatives-ranking"},
    ),
    "triplets": (
        "similarity",
        [{"anchor": a, "positive": f"{a} {b}", "negative": f"{b} {a}"} for a, b, _ in PAIRS],
        {"loss": "triplet"},
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_rows_of_every_format_have_no_ceiling(name, ceiling_of):
    task, rows, values = CLEAN[name]
    found = ceiling_of(task, rows, **values)
    assert found.value == pytest.approx(found.perfect)
    assert found.is_perfect and not found.causes


def test_every_task_has_a_ceiling():
    assert {task for task, _, _ in CLEAN.values()} == TASKS.keys()
    for name in TASKS:
        metrics = task_class(name).ceiling_metrics
        assert metrics[0] in TASKS[name].options.metrics


# Each way to damage rows: task, rows, options, the metric at best, the first cause.
LONG = "a b c d e f g"
DAMAGED = {
    "two labels of one text": (
        "classification",
        texts_with_labels([*LABELED, *[("a e", "b")] * 4]),
        {},
        19 / 20,
        "1 of 20 rows has the texts of other rows, but another label",
    ),
    "texts that are cut": (
        "classification",
        texts_with_labels([(f"{LONG} {end}", "xy"[n % 2]) for n, end in enumerate("abcd" * 2)]),
        {"max_seq_length": 8},
        1 / 2,
        "4 of 8 rows read like rows with another label, once cut by --max-seq-length",
    ),
    "texts of another language": (
        "classification",
        texts_with_labels([("чай", "x"), ("сок", "y"), ("суп", "z"), ("a", "x")]),
        {},
        2 / 4,
        "2 of 4 rows hold no word that the vocabulary knows",
    ),
    "a word that is not known": (
        "classification",
        texts_with_labels([("a чай", "x"), ("a сок", "y"), ("b", "x")]),
        {},
        2 / 3,
        "1 of 3 rows differs from rows with another label only in words that the vocabulary lacks",
    ),
    "case": (
        "classification",
        texts_with_labels([("A b", "x"), ("a b", "y"), ("a  B", "x"), ("b", "x")]),
        {},
        3 / 4,
        "1 of 4 rows differs from rows with another label only in details that the tokenizer drops",
    ),
    "pairs cut": (
        "classification",
        [{"text": LONG, "text_pair": f"{LONG} {end}", "label": end} for end in "abcd"],
        {"text_pair_column": "text_pair", "max_seq_length": 8},
        1 / 4,
        "3 of 4 rows read like rows with another label, once cut by --max-seq-length",
    ),
    "two sets of labels": (
        "multilabel",
        texts_with_labels([("a", ["x"]), ("a", ["x"]), ("a", ["y"]), ("b", ["y"])]),
        {"thresholds": "0.5"},
        3 / 4,
        "1 of 4 rows has the texts of other rows, but another label",
    ),
    "two numbers": (
        "regression",
        texts_with_labels([("a", 0), ("a", 2), ("b", 0), ("b", 2)], label="number"),
        {},
        0.0,
        "4 of 4 rows have the texts of other rows, but another label",
    ),
    "two taggings of one sentence": (
        "tagging",
        conll([*TAGGED, (TAGGED[1][0], ["B-Y", "O", "O"])]),
        {"name": "rows.conll"},
        2 * 4 / (5 + 5),
        "1 of 4 rows has the texts of other rows, but another label",
    ),
    "entities inside of words": (
        "tagging",
        [
            {"text": "red c", "entities": [{"start": 1, "end": 3, "label": "X"}]},
            {"text": "b d", "entities": [{"start": 0, "end": 1, "label": "X"}]},
            {"text": "b d c", "entities": [[2, 3, "X"], [4, 5, "X"]]},
        ],
        {},
        3 / 4,
        "1 of 4 entities is not made of whole words; correct the entities' starts and ends",
    ),
    "answers that are too long": (
        "qa",
        [question(n, " ".join("bcdefghi"[: n + 1])) for n in range(8)],
        {"max_answer_length": 6},
        100 * 6 / 8,
        "2 of 8 answers are longer than --max-answer-length 6; raise --max-answer-length to 8",
    ),
    "answers that no window holds": (
        "qa",
        [question(n, "m n o p q" if n % 2 else "b", " ".join(LETTERS)) for n in range(8)],
        {"max_seq_length": 19, "doc_stride": 12},
        50.0,
        "4 of 8 answers are not whole in any window of --max-seq-length 19 and --doc-stride 12",
    ),
    "answers inside of a token": (
        "qa",
        [
            question(0, "ed", "c red b"),
            question(1, "r", "c red b"),
            question(2, "red", "c red b"),
            question(3, "b", "c red b"),
        ],
        {},
        50.0,
        "2 of 4 answers are not made of whole tokens",
    ),
    "one question with two answers": (
        "qa",
        [*ANSWERED, question(0, "d")],
        {},
        100 * 4 / 5,
        "1 of 5 rows has the texts of other rows, but another label",
    ),
    "questions that are cut": (
        "qa",
        [question(0, answer, text=f"{LONG} {answer} ?") for answer in "bcde"],
        {"max_query_length": 6, "max_seq_length": 32},
        25.0,
        "3 of 4 rows read like rows with another label, once cut by --max-query-length",
    ),
    "choices that look alike": (
        "multiple-choice",
        [
            {"context": c, "choices": ["A", "a", "b"], "label": n % 3}
            for n, c in enumerate("abcdef")
        ],
        {},
        4 / 6,
        "2 of 6 rows have choices that differ only in details that the tokenizer drops",
    ),
    "choices that are cut": (
        "multiple-choice",
        [
            {"context": c, "choices": [f"{LONG} a", f"{LONG} b"], "label": n % 2}
            for n, c in enumerate("abcdef")
        ],
        {"max_seq_length": 9},
        3 / 6,
        "3 of 6 rows have choices that read alike, once cut by --max-seq-length 9",
    ),
    "a row with two right choices": (
        "multiple-choice",
        [*CHOICES, {"context": "b", "choices": ["f", "g", "e"], "label": 0}],
        {},
        16 / 17,
        "1 of 17 rows has the texts of other rows, but another label",
    ),
    "pairs of one text with a low score": (
        "similarity",
        [*SCORED, *({"text": a, "text_pair": a, "score": 0} for a in "abcd")],
        {},
        None,
        "4 of 20 rows have two texts that read alike, but not the highest score",
    ),
    "two scores of a pair": (
        "similarity",
        [*SCORED, {"text": "e", "text_pair": "a", "score": 0}],
        {},
        None,
        "2 of 17 rows",
    ),
    "positives that look alike": (
        "similarity",
        [
            {"anchor": a, "positive": ["Red", "red"][n] if n < 2 else f"b {a}"}
            for n, a in enumerate(LETTERS)
        ],
        {"loss": "multiple-negatives-ranking"},
        15 / 16,
        "2 of 16 rows have a positive that reads like another candidate",
    ),
    "anchors that are candidates": (
        "similarity",
        [{"anchor": a, "positive": b} for a, b in itertools.pairwise(LETTERS)],
        {"loss": "multiple-negatives-ranking"},
        8 / 15,
        "14 of 15 rows have an anchor that is also a candidate, and nearest to itself",
    ),
    "negatives that are positives": (
        "similarity",
        [
            {"anchor": a, "positive": f"{a} b", "negative": f"{a} B" if n < 4 else "c"}
            for n, a in enumerate(LETTERS)
        ],
        {"loss": "triplet"},
        12 / 16,
        "4 of 16 rows have a negative that reads like its positive",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_lowers_the_ceiling_and_is_named_with_its_count(name, ceiling_of):
    task, rows, values, best, cause = DAMAGED[name]
    found = ceiling_of(task, rows, **values)
    if best is not None:
        assert found.value == pytest.approx(best)
    assert found.fraction < 1
    assert f"at best: {cause}" in found.sentence()


def test_evaluation_rows_need_no_positions_of_answers(ceiling_of, folder):
    """Answers are searched for; those that the context lacks are a cause."""
    rows = [*ANSWERED, {**question(4, "e"), "answer": "z", "answer_start": None}]
    ceiling_of("qa", ANSWERED)
    task = task_class("qa").of_options(
        finetune_config(
            {"task": "qa", "train": "t", "init": "i", "output": "o", "max_seq_length": 90}
        ),
        columns=QuestionColumns(
            question="question", context="context", answer="answer", answer_start="answer_start"
        ),
        null_score_diff_threshold=0.0,
        may_be_unanswerable=False,
    )
    path = folder / "no-starts.jsonl"
    path.write_text("".join(json.dumps({**row, "answer_start": None}) + "\n" for row in rows))
    source = task.read(str(path), Console(io.StringIO()))
    data = task.encode(source, tokenizer(), training=False)
    found = measure_ceiling(task, data, tokenizer(), fits=False)
    assert found.value == pytest.approx(80.0)
    assert "1 of 5 answers is not in the context" in found.sentence()
