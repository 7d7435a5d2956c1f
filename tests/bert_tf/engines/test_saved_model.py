"""The engine of SavedModels, and the inputs it refuses; tests of export check its values."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from behavior.engines import check_engine
from behavior.forks import printed_in_forks, run_forked
from behavior.rounding import assert_same_but_for_rounding
from behavior.small_models import write_model
from behavior.toy_regression import REGRESSION, RegressionTask

from bert_tf.base.errors import InputError, UsageError
from bert_tf.base.processor import has_bfloat16
from bert_tf.engines import registry, saved_model
from bert_tf.engines.registry import ENGINES
from bert_tf.engines.saved_model import _TO_BFLOAT16, SavedModelEngine, _rewriting
from bert_tf.export.loading import load_trained_model
from bert_tf.export.saved_model import write_saved_model
from bert_tf.tasks.registry import TASKS
from bert_tf.weights.model_directory import read_model_directory

VOCAB = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "a",
    "it",
    "is",
    "was",
    "film",
    "city",
    "good",
    "bad",
    "very",
    "red",
    "and",
]
# Of the model below: summands of its products, and its operations; see `behavior.rounding`.
ROUNDINGS = {"float32": 64, "bfloat16": 16}


def assert_same_rows(found, expected, *, precision, exact):
    """Assert that rows are those of the same precision in other batches.

    Args:
        found: float32 [rows].
        expected: float32 [rows], of the same precision.
        precision: float32 or bfloat16.
        exact: float32 [rows], computed in float32.
    """
    scale = np.abs(expected).max()
    assert expected.std() > 0.1 * scale, "no row would be missed"
    roundings = ROUNDINGS[precision]
    assert_same_but_for_rounding(found, expected, roundings=roundings, dtype=precision)
    if precision == "bfloat16":
        # Roundings explain more than the whole effect of bfloat16. But products add up in float32,
        # so that other batches round most rows to the same bfloat16, and rows in float32 show.
        rounded = np.abs(found - exact)
        assert rounded.max() > 1e-5 * scale
        assert np.abs(found - expected).mean() < rounded.mean() / 4


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return a SavedModel of a small model with random weights, for pairs of texts."""
    task = RegressionTask(
        text_column="text",
        text_pair_column="pair",
        label_column="label",
        max_seq_length=16,
        target_scale=1.0,
    )
    path = tmp_path_factory.mktemp("regression") / "model"
    sizes = {"hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": 16}
    write_model(path, task, vocab=VOCAB, seed=1, **sizes)
    with pytest.MonkeyPatch.context() as patches:
        patches.setitem(TASKS, REGRESSION.name, REGRESSION)
        write_saved_model(load_trained_model(read_model_directory(path)), path)
    return path


@pytest.mark.slow  # exports a model
def test_engine(exported):
    diverged = SavedModelEngine(exported)
    for weight in diverged._batched.variables:
        weight.assign(np.full(weight.shape, np.nan, np.float32))
    columns = {
        "body": ["the film was good", "", "bad", "a city of red and blue " * 9, "Straße 東京"],
        "reply": ["it is", "", "the city", "very good", ""],
    }
    engine = SavedModelEngine(exported)
    check_engine(engine, columns, diverged=diverged)
    tokens = []
    engine.predict(columns, batch_tokens=32, on_tokens=lambda *counts: tokens.append(counts))
    # [CLS] a [SEP] b [SEP], cut to 16 tokens and padded to an even length. Of the rows by bytes
    # every second makes a call: 16, 6 and 3 tokens in batches of two rows and one; 9 and 6 in one.
    assert tokens == [(16 + 6 + 3, 2 * 16 + 4), (9 + 6, 2 * 10)]


@pytest.mark.slow  # exports a model
@pytest.mark.skipif(not has_bfloat16(), reason="TensorFlow has no such products here")
def test_bfloat16_is_of_one_engine_and_not_of_the_process(exported):
    columns = {"body": ["the film was good", "bad", "it is"], "reply": ["a city", "", "red"]}

    def predict(precision):
        engine = ENGINES["tensorflow"].load(exported, precision=precision)
        return engine.predict(columns)["predicted_value"]

    before, rounded, after = map(predict, ("float32", "bfloat16", "float32"))
    np.testing.assert_array_equal(before, after)
    difference = np.abs(rounded - before).max() / np.abs(before).max()
    assert 1e-5 < difference < 0.05
    assert not tf.config.optimizer.get_experimental_options()[_TO_BFLOAT16]


def test_a_rewriting_ends_with_the_outermost_call():
    with _rewriting():
        with _rewriting():
            pass
        assert tf.config.optimizer.get_experimental_options()[_TO_BFLOAT16]
    assert not tf.config.optimizer.get_experimental_options()[_TO_BFLOAT16]


@pytest.mark.slow  # exports a model
@pytest.mark.parametrize(
    "precision",
    [
        "float32",
        pytest.param("bfloat16", marks=pytest.mark.skipif(not has_bfloat16(), reason="none")),
    ],
)
def test_calls_side_by_side_give_the_rows_of_calls_in_turn(exported, precision):
    words = VOCAB[5:]
    columns = {
        "body": [" ".join(words[: 1 + row % 11]) for row in range(600)],
        "reply": [f"{words[row % 7]} {words[row % 12]}" for row in range(600)],
    }
    found, counts = {}, {}
    for calls_at_once in (1, 2):
        tokens = counts[calls_at_once] = []
        rows = []
        engine = SavedModelEngine(exported, precision=precision, calls_at_once=calls_at_once)
        found[calls_at_once] = engine.predict(
            columns, on_rows=rows.append, on_tokens=lambda *each, to=tokens: to.append(each)
        )["predicted_value"]
        assert sum(rows) == 600
    exact = SavedModelEngine(exported).predict(columns)["predicted_value"]
    assert_same_rows(found[2], found[1], precision=precision, exact=exact)
    assert sum(count for count, _ in counts[1]) == sum(count for count, _ in counts[2])
    assert not tf.config.optimizer.get_experimental_options().get(_TO_BFLOAT16)


@pytest.mark.slow  # starts processes
def test_the_threads_of_a_process_are_divided_among_calls(exported):
    settled = {None: (0, 0, 1), 1: (1, 1, 1), 6: (3, 2, 2)}
    programs = [
        "import tensorflow as tf\n"
        "from pathlib import Path\n"
        "from bert_tf.engines.saved_model import load\n"
        f"engine = load(Path({str(exported)!r}), threads={threads}, precision='float32')\n"
        "read = tf.config.threading\n"
        "print((read.get_intra_op_parallelism_threads(), "
        "read.get_inter_op_parallelism_threads(), engine.calls_at_once))\n"
        for threads in settled
    ]
    assert printed_in_forks(*programs) == [str(numbers) for numbers in settled.values()]


@pytest.mark.slow  # exports a model, starts a process that loads TensorFlow
@pytest.mark.skipif(not has_bfloat16(), reason="none")
def test_weights_laid_out_once_give_the_same_values(exported, tmp_path):
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from pathlib import Path\n"
        "from bert_tf.engines.registry import declare_frozen_weights\n"
        "from bert_tf.engines.saved_model import load\n"
        "declare_frozen_weights()\n"
        "engine = load(Path(sys.argv[1]), threads=2, precision='bfloat16')\n"
        "columns = np.load(sys.argv[2])\n"
        "texts = {name: columns[name].tolist() for name in columns}\n"
        "for rows in (3, None):  # the first batch has another shape than those that follow\n"
        "    first = {name: column[:rows] for name, column in texts.items()}\n"
        "    np.save(sys.argv[3], engine.predict(first)['predicted_value'])\n"
    )
    words = VOCAB[5:]
    columns = {
        "body": [" ".join(words[: 1 + row % 11]) for row in range(300)],
        "reply": [words[row % 7] for row in range(300)],
    }
    np.savez(tmp_path / "columns.npz", **columns)
    files = tmp_path / "columns.npz", tmp_path / "found.npy"
    done = run_forked(code, exported, *files)
    assert done.returncode == 0, done.stderr
    expected, exact = (
        ENGINES["tensorflow"].load(exported, precision=precision).predict(columns)
        for precision in ("bfloat16", "float32")
    )
    assert_same_rows(
        np.load(files[1]),
        expected["predicted_value"],
        precision="bfloat16",
        exact=exact["predicted_value"],
    )


def test_a_damaged_saved_model_is_named(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"no protobuf")
    with pytest.raises(InputError, match="the SavedModel cannot be loaded"):
        SavedModelEngine(tmp_path)


def test_a_folder_without_a_saved_model_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"it has no .*saved_model\.pb"):
        ENGINES["tensorflow"].load(tmp_path)


# Processes that declare frozen weights set TensorFlow's variable for them, and no others do.
NAME = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"


@pytest.mark.parametrize("given", [None, "false"])
@pytest.mark.parametrize("is_declared", [True, False])
def test_the_setting_is_that_of_the_process(monkeypatch, given, is_declared):
    environment = {} if given is None else {NAME: given}
    monkeypatch.setattr(registry.os, "environ", environment)
    if is_declared:
        registry.declare_frozen_weights()
    saved_model.lay_out_weights_once()
    assert environment.get(NAME) == (given or ("true" if is_declared else None))


@pytest.mark.parametrize(
    ("arguments", "is_declared"),
    [("['score', '--help']", True), ("['finetune', '--help']", False), ("['--version']", False)],
)
def test_processes_of_score_declare_it(arguments, is_declared):
    code = (
        "import os, sys\n"
        "from pipeline.cli import main\n"
        "main._run = lambda given: print('BERT_PIPELINE_FROZEN_WEIGHTS' in os.environ)\n"
        f"sys.argv[1:] = {arguments}\n"
        "main.main()\n"
    )
    environment = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == str(is_declared)
