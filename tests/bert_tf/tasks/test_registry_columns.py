"""Columns of published files, mostly of GLUE and SQuAD, and the roles that tasks give them."""

import pytest

from bert_tf.base.errors import UsageError
from bert_tf.data.tables.sketches import TableSketch, sketch_columns
from bert_tf.tasks.registry import TASKS, likely_columns

TEXT = "The rain in Spain stays in the plain, number {}."
CELLS = {
    "text": TEXT.format,
    "other": lambda n: f"Another sentence of the row {n}, which is somewhat longer.",
    "label": lambda n: "ab"[n % 2],
    "score": lambda n: n % 6 / 2,
    "id": str,
    "tags": lambda n: ["a|b", "a", "b|c", "c"][n % 4],
    "bit": lambda n: str(n % 2),
    "short": lambda n: ["yes", "no", "yes no no", "no yes no", "yes yes no", "no no yes"][n % 6],
    "blanks": lambda n: ["x", "y", "x y", "y x", "z"][n % 5],
    "repr": lambda n: ["['x']", "['x', 'y']", "[]"][n % 3],
    "list": lambda n: ["x", "y"],
    "structs": lambda n: [{"text": "rain", "answer_start": 4}],
    "named": lambda n: {"text": ["x", "y"], "label": ["A", "B"]},
    "letter": lambda n: "AB"[n % 2],
    "words": lambda n: f"anna {n} went to oslo",
    "word tags": lambda n: "B-PER O O O B-LOC",
    "arrays": lambda n: ["{a,b}", "{c}", "{}"][n % 3],
    "angles": lambda n: ["<a><b>", "<c>", "<b>"][n % 3],
    "entities": lambda n: [{"start": 0, "end": 3, "label": "X"}],
}


def table(columns, **given):
    rows = [{name: CELLS[kind](n) for name, kind in columns.items()} for n in range(20)]
    return TableSketch(path="t.csv", columns=sketch_columns(list(columns), rows), chosen=given)


@pytest.mark.parametrize(
    ("task", "columns", "expected"),
    [
        (
            "classification",
            {"id": "id", "text": "text", "label": "label"},
            {"text_column": "text", "label_column": "label"},
        ),
        (
            "classification",  # MRPC
            {"Quality": "label", "#1 ID": "id", "#1 String": "text", "#2 String": "other"},
            {
                "text_column": "#1 String",
                "text_pair_column": "#2 String",
                "label_column": "Quality",
            },
        ),
        (
            "classification",
            {"urteil": "label", "betreff": "text", "rezension": "other"},
            {"text_column": "rezension", "label_column": "urteil"},
        ),
        (
            "qa",  # SQuAD of `datasets`
            {"id": "id", "question": "text", "context": "other", "answers": "structs"},
            {
                "question_column": "question",
                "context_column": "context",
                "answer_column": "answers",
            },
        ),
        (
            "multiple-choice",  # ARC
            {"id": "id", "question": "text", "choices": "named", "answerKey": "letter"},
            {
                "context_column": "question",
                "choices_column": ["choices"],
                "label_column": "answerKey",
            },
        ),
        (
            "multiple-choice",  # MMLU, Kaggle's exams
            {
                "id": "id",
                "prompt": "text",
                "A": "other",
                "B": "text",
                "C": "other",
                "answer": "letter",
            },
            {
                "context_column": "prompt",
                "choices_column": ["A", "B", "C"],
                "label_column": "answer",
            },
        ),
        (
            "multiple-choice",  # PIQA
            {"goal": "text", "sol 1": "other", "sol 2": "other", "label": "bit"},
            {
                "context_column": "goal",
                "choices_column": ["sol 1", "sol 2"],
                "label_column": "label",
            },
        ),
        (
            "multiple-choice",  # SciQ
            {
                "question": "text",
                "distractor1": "label",
                "distractor2": "tags",
                "correct_answer": "id",
            },
            {
                "context_column": "question",
                "choices_column": ["correct_answer", "distractor1", "distractor2"],
                "label_column": "correct_answer",
            },
        ),
        (
            "multiple-choice",  # RACE
            {"article": "other", "question": "text", "options": "list", "answer": "letter"},
            {
                "context_column": "article",
                "question_column": "question",
                "choices_column": ["options"],
                "label_column": "answer",
            },
        ),
        (
            "classification",  # BoolQ
            {"question": "text", "passage": "other", "answer": "bit"},
            {
                "text_column": "question",
                "text_pair_column": "passage",
                "label_column": "answer",
            },
        ),
        (
            "tagging",  # lists under names of texts and labels
            {"text": "list", "labels": "list"},
            {"tokens_column": "text", "tag_column": "labels"},
        ),
        (
            "tagging",  # Kaggle's grouped sentences
            {"Sentence #": "id", "Sentence": "words", "Tag": "word tags"},
            {"tokens_column": "Sentence", "tag_column": "Tag"},
        ),
        (
            "multilabel",
            {"text": "text", "tags": "arrays"},
            {"text_column": "text", "label_column": "tags"},
        ),
        (
            "multilabel",
            {"text": "text", "tags": "angles"},
            {"text_column": "text", "label_column": "tags"},
        ),
        (
            "regression",  # STS-B
            {"index": "id", "sentence1": "text", "sentence2": "other", "score": "score"},
            {"text_column": "sentence1", "text_pair_column": "sentence2", "label_column": "score"},
        ),
        (
            "multilabel",
            {"text": "text", "genres": "tags"},
            {"text_column": "text", "label_column": "genres", "label_separator": "|"},
        ),
        (
            "multilabel",
            {"text": "text", "labels": "list"},
            {"text_column": "text", "label_column": "labels"},
        ),
        (
            "multilabel",
            {"text": "text", "labels": "repr"},
            {"text_column": "text", "label_column": "labels"},
        ),
        (
            "multilabel",
            {"is_train": "bit", "comment_text": "text", "toxic": "bit", "insult": "bit"},
            {"text_column": "comment_text", "label_column": ["toxic", "insult"]},
        ),
        (
            "multilabel",  # few words, again and again
            {"text": "short", "booking": "bit", "travel": "bit"},
            {"text_column": "text", "label_column": ["booking", "travel"]},
        ),
        (
            "multilabel",
            {"text": "text", "tags": "blanks", "old": "bit", "new": "bit"},
            {"text_column": "text", "label_column": ["old", "new"]},
        ),
        (
            "multilabel",
            {"utterance": "short", "marks": "blanks"},
            {"text_column": "utterance", "label_column": "marks", "label_separator": " "},
        ),
        (
            "qa",
            {"question": "text", "context": "other", "answer": "label", "answer_start": "id"},
            {
                "question_column": "question",
                "context_column": "context",
                "answer_column": "answer",
                "answer_start_column": "answer_start",
            },
        ),
        (
            "tagging",
            {"tokens": "list", "ner_tags": "list"},
            {"tokens_column": "tokens", "tag_column": "ner_tags"},
        ),
        (
            "tagging",
            {"text": "text", "spans": "entities"},
            {"text_column": "text", "entities_column": "spans"},
        ),
        (
            "tagging",  # a word per row
            {"Sentence #": "id", "Word": "label", "Tag": "tags"},
            {"tokens_column": "Word", "tag_column": "Tag"},
        ),
        (
            "tagging",  # doccano
            {"id": "id", "text": "text", "label": "entities"},
            {"text_column": "text", "entities_column": "label"},
        ),
        (
            "multiple-choice",  # SWAG
            {
                "sent1": "text",
                "sent2": "other",
                "ending0": "text",
                "ending1": "text",
                "label": "label",
            },
            {
                "context_column": "sent1",
                "question_column": "sent2",
                "choices_column": ["ending0", "ending1"],
                "label_column": "label",
            },
        ),
        (
            "similarity",
            {"anchor": "text", "positive": "other", "negative": "text"},
            {
                "loss": "multiple-negatives-ranking",
                "text_column": "anchor",
                "text_pair_column": "positive",
                "negative_column": ["negative"],
            },
        ),
        (
            "similarity",
            {"sentence1": "text", "sentence2": "other", "score": "score"},
            {
                "loss": "cosent",
                "text_column": "sentence1",
                "text_pair_column": "sentence2",
                "label_column": "score",
            },
        ),
    ],
)
def test_columns_of_published_files(task, columns, expected):
    assert likely_columns(task, table(columns)) == expected


def test_a_given_column_is_not_searched_for():
    columns = {"text": "text", "label": "label", "topic": "label"}
    found = likely_columns("classification", table(columns, label_column="topic"))
    assert found == {"text_column": "text", "label_column": "topic"}


@pytest.mark.parametrize("task", TASKS)
def test_a_table_without_what_the_task_needs_is_refused_in_a_line(task):
    with pytest.raises(UsageError, match=r"^t\.csv: no column looks like .*COLUMN"):
        likely_columns(task, table({"id": "id"}))


def test_an_export_of_label_studio_names_the_form_to_export():
    with pytest.raises(UsageError, match="of Label Studio's formats export JSON-MIN"):
        likely_columns("classification", table({"id": "id", "data": "list", "annotations": "list"}))


def test_classes_of_inference_are_no_scores():
    columns = {"premise": "text", "hypothesis": "other", "label": "bit"}
    with pytest.raises(UsageError, match="labels of premises and hypotheses are classes"):
        likely_columns("similarity", table(columns))
    assert likely_columns("similarity", table(columns, label_column="label"))["loss"] == "cosent"


def test_rows_of_prodigy_have_their_labels_in_accept():
    columns = {"text": "text", "options": "list", "accept": "repr"}
    assert likely_columns("multilabel", table(columns))["label_column"] == "accept"
    columns |= {"_input_hash": "id", "answer": "label"}
    with pytest.raises(
        UsageError, match="lists of labels, as in 'options', need fine-tuning for any"
    ):
        likely_columns("classification", table(columns))
