"""`init`: the configs that it writes are those that `finetune` takes."""

import io
import json

import numpy as np
import pytest
from behavior.small_models import write_encoder
from hypothesis import given
from hypothesis import strategies as st

from bert_tf.base.console import Console
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.resolve import Variants
from bert_tf.config.sections import FinetuneConfig
from bert_tf.tasks.registry import TASKS
from pipeline.proposal.finetuning import choose_length, draft_config, propose

WORDS = ["red", "blue", "good", "bad", "film", "paris", "schön", "##s"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
FINETUNE = Variants(
    common=FinetuneConfig,
    key="task",
    sections={name: task.options for name, task in TASKS.items()},
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    write_encoder(path / "m", vocab=VOCAB, seed=1, max_position_embeddings=256)
    return str(path / "m")


def csv_rows():
    rows = [
        f"{WORDS[n % 2]} film{' good' * (n % 5)},{'yes' if n % 2 else 'no'}\n" for n in range(60)
    ]
    return "review,verdict\n" + "".join(rows) + "too,many,cells\n"


def squad():
    context = "The film in Paris was good, the other one was bad."
    questions = [
        {
            "id": str(n),
            "question": f"where was film {n}",
            "answers": [{"text": "Paris", "answer_start": context.index("Paris")}],
        }
        for n in range(60)
    ]
    return json.dumps(
        {
            "version": "1.1",
            "data": [
                {
                    "paragraphs": [
                        {"context": context + str(n), "qas": [q]} for n, q in enumerate(questions)
                    ]
                }
            ],
        }
    )


FILES = {
    "classification": ("rows.csv", csv_rows()),
    "regression": (
        "rows.jsonl",
        "".join(
            json.dumps({"body": f"{'red ' * (n % 8)}film{' bad' * (n // 8)}", "score": n / 7})
            + "\n"
            for n in range(60)
        ),
    ),
    "qa": ("train.json", squad()),
    "tagging": ("train.conll", "".join(f"red O\nParis B-LOC\nfilm{n} O\n\n" for n in range(60))),
}


@pytest.mark.slow  # builds and runs a training step of each task
@pytest.mark.parametrize("task", FILES)
def test_a_config_is_one_that_finetune_takes(task, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, content = FILES[task]
    (tmp_path / name).write_text(content)
    shown = io.StringIO()
    monkeypatch.setattr("pipeline.proposal.finetuning._MEASURED_SECONDS", 0.0)
    proposal = propose(task, name, init=model, console=Console(shown))
    assert proposal["next"] == f"bert-pipeline finetune --config {proposal['config']}"
    config = FINETUNE.resolve(config_file=proposal["config"], flags={})
    assert (config.task, config.train, config.init) == (task, name, model)
    given = config.as_dict()
    assert {key: given[key] for key in proposal["settings"]} == dict(proposal["settings"])
    assert proposal["rows"] == 60 and proposal["rejected"] == (task == "classification")
    assert proposal["steps"] >= 60 and proposal["seconds"] > 0 < proposal["seconds_per_step"]
    assert proposal["tokens"]["median"] <= proposal["tokens"]["longest"] <= config.max_seq_length
    for word in ("60 usable", "tokens ", "time here", proposal["next"]):
        assert word in shown.getvalue()
    with pytest.raises(UsageError, match="exists; name another file"):
        propose(task, name, init=model, console=Console(shown))


@pytest.mark.slow  # builds and runs a training step
def test_what_is_given_stays_latin_1_is_guessed_and_labels_are_doubted(
    model, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'schön' * 2} film {n % 3},{'gut' if n % 2 else 'übel'}\n" for n in range(60))
    rows = rows.replace("gut", "Gut", 10)
    (tmp_path / "rows.csv").write_bytes(("a,b\n" + rows).encode("latin-1"))
    shown = io.StringIO()
    monkeypatch.setattr("pipeline.proposal.finetuning._MEASURED_SECONDS", 0.0)
    proposal = propose(
        "classification",
        "rows.csv",
        init=model,
        output="own.yaml",
        assignments=("finetune.epochs=2", "finetune.label_column=b", "finetune.min_ceiling=0"),
        console=Console(shown),
    )
    text = (tmp_path / "own.yaml").read_text()
    assert "  encoding: cp1252                  # a guess" in text
    assert "  epochs: 2.0\n" in text
    config = FINETUNE.resolve(config_file="own.yaml", flags={})
    assert (config.epochs, config.text_column, config.label_column) == (2, "a", "b")
    assert (
        "duplicates  57 rows with the texts of an earlier row; 3 texts with several"
        in shown.getvalue()
    )
    assert shown.getvalue().count("are different labels, though they differ only in spelling") == 1
    assert proposal["settings"]["encoding"] == "cp1252"
    assert "warning: rows.csv: accuracy can reach 0.50 at best: 30 of 60 rows" in shown.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("t.csv", "", InputError, r"^t\.csv: is empty"),
        ("t.csv", "id,text\n1,a film\n2,it is\n", UsageError, r"^t\.csv: no column looks like a l"),
        ("t.csv", "text,label\n", InputError, r"^t\.csv: has columns but no rows"),
        ("t.doc", "text", UsageError, r"^t\.doc: format unknown"),
        ("t.tsv", "no\tOk, I am\nno\tIn\nno\ta\n", UsageError, r"^t\.tsv: its first line lo"),
        ("none.csv", None, UsageError, r"^none\.csv: cannot be read"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_in_one_line(
    name, content, error, message, model, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message) as refused:
        propose("classification", name, init=model, console=Console(io.StringIO()))
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.glob("*.yaml"))


def test_columns_that_fit_as_well_are_named(tmp_path):
    rows = "".join(f"film {n},{'ab'[n % 2]},{'xy'[n % 2]}\n" for n in range(9))
    (tmp_path / "t.csv").write_text(f"review,tone,subject,_\n{rows}".replace("\n", ",\n"))
    shown = io.StringIO()
    draft = draft_config(
        "classification",
        str(tmp_path / "t.csv"),
        init="m",
        run="r",
        assignments=(),
        console=Console(shown),
    )
    assert draft.values["label_column"] == "tone"
    assert "  label_column 'tone' is a guess; also possible: 'subject'" in shown.getvalue()


@given(st.lists(st.integers(2, 600), min_size=1))
def test_a_length_covers_99_percent_of_the_rows_up_to_the_model_s(lengths):
    lengths = np.array(lengths)
    chosen = choose_length(lengths, in_windows=False, default=128, longest_of_model=512)
    assert 32 <= chosen <= 512
    assert chosen == 512 or np.mean(lengths <= chosen) >= 0.99
    assert chosen - 16 < max(lengths.max(), 32)


def test_windows_have_the_length_of_the_task():
    lengths = np.array([20, 500])
    assert choose_length(lengths, in_windows=True, default=384, longest_of_model=512) == 384
    assert choose_length(lengths, in_windows=True, default=384, longest_of_model=256) == 256
