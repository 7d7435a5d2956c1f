"""Model directories: read as they were written, or refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.base.checksums import SUMS
from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import (
    BertClassifier,
    BertPretrainingModel,
    BertQuestionAnswerer,
    BertTokenClassifier,
)
from bert_tf.weights import model_directory
from bert_tf.weights.model_directory import (
    load_weights,
    read_model_directory,
    write_model_directory,
)
from bert_tf.weights.sentence_transformers import write_recipe
from bert_tf.weights.tensor_names import model_bindings

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "Ä"]
CONFIG = BertConfig(
    vocab_size=len(VOCAB),
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=10,
)


def built(model):
    model.build_weights()
    return model


def write(path, model, *, task=None, lowercase=False):
    write_model_directory(path, built(model), vocab=VOCAB, lowercase=lowercase, task=task)
    return path


def values(model):
    return [binding.variable.numpy() for binding in model_bindings(model)]


@pytest.mark.parametrize(
    "make",
    [
        BertEncoder,
        BertPretrainingModel,
        BertQuestionAnswerer,
        lambda config: BertClassifier(config, 3),
        lambda config: BertTokenClassifier(config, 3),
    ],
)
def test_a_written_model_is_read_back(tmp_path, make):
    model = make(CONFIG)
    task = {"task": "x", "labels": ["no", "yes", "süß"]}
    directory = read_model_directory(write(tmp_path / "m", model, task=task))
    assert (directory.config, directory.vocab, directory.lowercase) == (CONFIG, VOCAB, False)
    assert directory.task == task
    copy = built(make(CONFIG))
    assert load_weights(copy, directory) == []
    for ours, theirs in zip(values(copy), values(model), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("make", "architecture"),
    [
        (BertClassifier, "BertForSequenceClassification"),
        (BertTokenClassifier, "BertForTokenClassification"),
    ],
)
def test_labels_reach_huggingfaces_config(tmp_path, make, architecture):
    path = write(tmp_path / "m", make(CONFIG, 2), task={"labels": ["bad", "good"]})
    document = json.loads((path / "config.json").read_text())
    assert document["id2label"] == {"0": "bad", "1": "good"}
    assert document["architectures"] == [architecture]


def test_a_run_directory_means_its_best_model(tmp_path):
    write(tmp_path / "run" / "best", BertEncoder(CONFIG), lowercase=True)
    directory = read_model_directory(tmp_path / "run")
    assert directory.path == tmp_path / "run" / "best"
    assert directory.lowercase


def test_an_existing_model_is_replaced_whole_and_a_job_folder_is_filled(tmp_path):
    write(tmp_path / "m", BertEncoder(CONFIG), task={"task": "old"})
    write(tmp_path / "m", BertEncoder(CONFIG))
    assert not (tmp_path / "m" / "task.json").exists()
    (tmp_path / "m" / "config.yaml").write_text("import_weights: {}\n")
    write(tmp_path / "m", BertEncoder(CONFIG), task={"task": "new"})
    assert (tmp_path / "m" / "config.yaml").is_file()
    assert read_model_directory(tmp_path / "m").task == {"task": "new"}
    assert not list(tmp_path.rglob("*.partial"))


def test_heads_that_are_missing_or_of_other_size_stay_fresh(tmp_path):
    directory = read_model_directory(write(tmp_path / "m", BertClassifier(CONFIG, 3)))
    for model in (BertQuestionAnswerer(CONFIG), BertClassifier(CONFIG, 2)):
        built(model)
        before = [weight.numpy() for weight in model.trainable_weights[-2:]]
        fresh = load_weights(model, directory)
        assert fresh == [weight.path for weight in model.trainable_weights[-2:]]
        for weight, value in zip(model.trainable_weights[-2:], before, strict=True):
            np.testing.assert_array_equal(weight.numpy(), value)


def test_a_folder_without_a_pooler_leaves_it_fresh(tmp_path):
    directory = read_model_directory(write(tmp_path / "m", BertQuestionAnswerer(CONFIG)))
    fresh = load_weights(built(BertEncoder(CONFIG)), directory)
    assert [path.split("/", 1)[1] for path in fresh] == ["pooler/kernel", "pooler/bias"]


@pytest.fixture
def folder(tmp_path):
    """Return a copy of a folder that HuggingFace wrote."""
    return Path(shutil.copytree(GOLDEN / "encoder", tmp_path / "hf"))


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_missing_encoder_weights_are_refused(folder):
    edit_config(folder, num_hidden_layers=3)
    directory = read_model_directory(folder)
    message = r"weights are missing: bert\.encoder\.layer\.2\.\S+, \S+, \S+ and 13 more"
    with pytest.raises(UsageError, match=message):
        load_weights(built(BertEncoder(directory.config)), directory)


@pytest.mark.parametrize("prefix", ["net.", "student.bert_model."])
def test_encoder_weights_of_other_names_are_named(folder, prefix):
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    renamed = {f"{prefix}{name}": value for name, value in tensors.items()}
    safetensors.numpy.save_file(renamed, folder / "model.safetensors")
    directory = read_model_directory(folder)
    message = rf"missing: bert.* and 3[0-9] more; found {prefix}\S*embeddings\.word_embeddings\S+ "
    with pytest.raises(UsageError, match=message + rf"and others .* begin with '{prefix}"):
        load_weights(built(BertEncoder(directory.config)), directory)


@pytest.mark.parametrize("changes", [{"truncate_dim": 4}, {}])
def test_notes_of_a_recipe_are_notes_of_the_folder(folder, changes):
    write_recipe(folder, EmbeddingRecipe(max_seq_length=12), hidden_size=8)
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    assert any("truncate_dim" in note for note in read_model_directory(folder).notes) == bool(
        changes
    )


def test_weights_of_another_shape_are_refused(folder):
    edit_config(folder, max_position_embeddings=99)
    directory = read_model_directory(folder)
    message = r"position_embeddings.weight has shape \[24, 8\], .* asks for \[99, 8\]"
    with pytest.raises(UsageError, match=message):
        load_weights(built(BertEncoder(directory.config)), directory)


def test_a_vocabulary_of_another_model_is_refused(folder, tmp_path):
    with (folder / "vocab.txt").open("a") as stream:
        stream.write("more\n")
    with pytest.raises(UsageError, match="vocabulary has 41 entries, but vocab_size .* is 40"):
        read_model_directory(folder)
    model = built(BertEncoder(CONFIG))
    with pytest.raises(UsageError, match="vocabulary has 7 entries, but .* vocab_size is 8"):
        write_model_directory(tmp_path / "m", model, vocab=VOCAB[:7], lowercase=True, task=None)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        ("config.json", "no BERT model; found attention.npz, .*, expected config.json with"),
        ("vocab.txt", "no vocabulary; looked for vocab.txt and tokenizer.json"),
        ("model.safetensors", "no BERT model; found .*, expected config.json with model.safet"),
    ],
)
def test_a_missing_file_is_named(folder, removed, message):
    (folder / removed).unlink()
    with pytest.raises(UsageError, match=message):
        read_model_directory(folder)


def test_folders_that_are_no_model_say_what_they_are(tmp_path):
    with pytest.raises(UsageError, match="no such model directory"):
        read_model_directory(tmp_path / "nothing")
    (tmp_path / "config.yaml").write_text("train: {}\n")
    with pytest.raises(UsageError, match="the run has not saved a model yet"):
        read_model_directory(tmp_path)


def test_a_folder_of_models_names_them(folder, tmp_path):
    around = tmp_path / "around"
    shutil.copytree(folder, around / "model")
    shutil.copytree(folder, around / "run" / "best")
    (around / "data").mkdir()
    with pytest.raises(UsageError, match=rf"holds some: give one of {around}/model, {around}/run$"):
        read_model_directory(around)


def test_damaged_files_are_input_errors(folder):
    (folder / "task.json").write_text("[1]")
    with pytest.raises(InputError, match=r"task\.json: damaged; expected a JSON object"):
        read_model_directory(folder)
    (folder / "task.json").unlink()
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match=r"model\.safetensors: damaged"):
        read_model_directory(folder)


def test_no_flipped_bit_goes_unnoticed(tmp_path):
    """A flip in the name of a file in `SHA256SUMS` itself leaves that file unchecked."""
    path = write(tmp_path / "m", BertClassifier(CONFIG, 2), task={"labels": ["no", "yes"]})
    generator = np.random.default_rng(1)
    for file in sorted(path.iterdir()):
        content = file.read_bytes()
        for bit in generator.choice(8 * len(content), 40, replace=False):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            file.write_bytes(flipped)
            if file.name == SUMS and file_names(flipped) != file_names(content):
                continue
            with pytest.raises(
                InputError, match="has changed since it was written|SHA256SUMS:.*: damaged"
            ):
                read_model_directory(path)
        file.write_bytes(content)
    assert read_model_directory(path).task == {"labels": ["no", "yes"]}


def file_names(sums):
    return [line[66:] for line in bytes(sums).split(b"\n")]


def test_an_edited_file_is_refused_until_nothing_vouches_for_it(tmp_path):
    path = write(tmp_path / "m", BertClassifier(CONFIG, 2), task={"labels": ["no", "yes"]})
    (path / "task.json").write_text('{"labels": ["nay", "yea"]}')
    with pytest.raises(
        InputError, match=r"task\.json: has changed since it was written .* or delete"
    ):
        read_model_directory(path)
    (path / SUMS).unlink()
    assert read_model_directory(path).task == {"labels": ["nay", "yea"]}


def test_nothing_vouches_for_a_folder_that_could_not_be_filled(tmp_path, monkeypatch):
    path = write(tmp_path / "m", BertEncoder(CONFIG))
    (path / "config.yaml").write_text("import_weights: {}\n")
    monkeypatch.setattr(model_directory, "write_tensors", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(path, BertEncoder(CONFIG))
    assert not (path / SUMS).exists()


class Rater(BertClassifier):
    """A model that only a task's folder knows, with one of the heads."""


def test_a_model_of_a_tasks_own_is_written_as_the_class_that_it_extends(tmp_path):
    rater = Rater(CONFIG, 1)
    path = write(tmp_path / "m", rater)
    document = json.loads((path / "config.json").read_text())
    assert document["architectures"] == ["BertForSequenceClassification"]
    again = built(Rater(CONFIG, 1))
    assert load_weights(again, read_model_directory(path)) == []
    for one, other in zip(values(rater), values(again), strict=True):
        np.testing.assert_array_equal(one, other)
