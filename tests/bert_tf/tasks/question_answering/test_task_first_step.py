"""The loss before the first step is that of HuggingFace's run_qa.py, from the same questions."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.text.wordpiece import WordPieceTokenizer
from bert_tf.tasks.question_answering.task import QuestionAnsweringTask
from bert_tf.tasks.registry import finetune_config
from bert_tf.weights.model_directory import load_all_weights, read_model_directory

GOLDEN = Path(__file__).parents[3] / "golden"
EXPECTED = json.loads((GOLDEN / "question_answering_steps.json").read_text())


@pytest.mark.parametrize("name", ["answerable", "unanswerable"])
def test_windows_targets_and_loss_are_those_of_run_qa(name, tmp_path, quiet_console):
    expected = EXPECTED["cases"][name]
    features = expected["features"]
    (tmp_path / "train.json").write_text(json.dumps(expected["squad"]))
    directory = read_model_directory(GOLDEN / "models" / "question_answering")
    config = finetune_config(
        {
            "task": "qa",
            "train": str(tmp_path / "train.json"),
            "init": str(directory.path),
            "output": str(tmp_path / "run"),
            "max_query_length": 8,
            **{key: EXPECTED[key] for key in ("max_seq_length", "doc_stride")},
        }
    )
    task, source = QuestionAnsweringTask.from_training(config, quiet_console)
    assert task.may_be_unanswerable == (name == "unanswerable")
    tokenizer = WordPieceTokenizer(directory.vocab, lowercase=True)
    data = task.encode(source, tokenizer, training=True)
    rows = np.arange(len(data.rows))
    batch = data.batch(rows, length=task.max_seq_length, pad_id=tokenizer.pad_id)
    np.testing.assert_array_equal(batch["input_word_ids"], features["input_ids"])
    np.testing.assert_array_equal(batch["input_type_ids"], features["token_type_ids"])
    np.testing.assert_array_equal(batch["input_mask"], features["attention_mask"])
    np.testing.assert_array_equal(batch["start_position"], features["start_positions"])
    np.testing.assert_array_equal(batch["end_position"], features["end_positions"])
    assert len(rows) > len(source)

    model = task.build_model(directory.config, policy="float32")
    model.build_weights()
    load_all_weights(model, directory)
    tensors = {key: tf.constant(values) for key, values in batch.items()}
    outputs = task.outputs(model, tensors, training=False, dropout_key=None)
    loss = task.loss_parts(outputs, tensors).losses["loss"] / task.weights(tensors)["loss"]
    assert float(loss) == pytest.approx(expected["loss"], abs=1e-5)
