"""Importing: KerasHub presets against KerasHub itself, Google checkpoints, HuggingFace folders."""

import json
import shutil
from pathlib import Path

import h5py
import keras_hub
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from object_checkpoints import make_object_checkpoint
from packaging.version import Version

from bert_tf.base.errors import InputError, UsageError
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.data.text.casing import KEEP_ACCENTS
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertPretrainingModel
from bert_tf.weights.google_checkpoint import huggingface_name
from bert_tf.weights.import_weights import (
    architecture,
    classifier_labels,
    classifier_problem,
    read_source,
    write_imported,
)
from bert_tf.weights.model_directory import load_weights, read_model_directory
from bert_tf.weights.object_checkpoint import tensor_keys
from bert_tf.weights.sentence_transformers import write_recipe
from bert_tf.weights.tensor_files import FolderTensors, write_tensors

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
# Keras 3 saves weights through a NumPy conversion that NumPy 2 warns of.
KERAS_SAVES = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
# Earlier ones take 512 positions for any HuggingFace folder.
KERAS_HUB_READS_POSITIONS = pytest.mark.skipif(
    Version(keras_hub.__version__) < Version("0.30"), reason="KerasHub reads no position count"
)
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(15))]


def loaded(model, directory):
    model.build_weights()
    assert load_weights(model, directory) == []
    return model


def import_weights(source, output):
    write_imported(read_source(source), output)


@pytest.fixture(scope="module")
def backbone():
    """KerasHub's BERT with every weight random."""
    model = keras_hub.models.BertBackbone(
        vocabulary_size=len(VOCAB),
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=12,
    )
    generator = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(generator.normal(scale=0.4, size=weight.shape))
    return model


@pytest.fixture(scope="module")
def saved(backbone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "preset"
    backbone.save_to_preset(str(folder))
    tokenizer = keras_hub.models.BertTokenizer(vocabulary=VOCAB, lowercase=True)
    tokenizer.save_to_preset(str(folder))
    return folder


@pytest.fixture
def preset(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "preset")


@pytest.mark.slow
@KERAS_SAVES
def test_a_keras_hub_preset_computes_what_keras_hub_does(preset, backbone, tmp_path):
    import_weights(preset, tmp_path / "model")
    directory = read_model_directory(tmp_path / "model")
    assert (directory.vocab, directory.lowercase) == (VOCAB, KEEP_ACCENTS)  # as the preset's
    assert directory.config.hidden_act == "gelu_new"
    generator = np.random.default_rng(1)
    ids = generator.integers(0, len(VOCAB), (3, 10))
    segments = generator.integers(0, 2, (3, 10))
    mask = (np.arange(10) < np.array([[10], [6], [3]])).astype(np.int32)
    theirs = backbone({"token_ids": ids, "segment_ids": segments, "padding_mask": mask})
    encoder = loaded(BertEncoder(directory.config), directory)
    ours = encoder(ids, input_type_ids=segments, attention_mask=mask)
    on_tokens = theirs["sequence_output"] * mask[:, :, None]  # ours is 0 on padding
    np.testing.assert_allclose(ours["sequence_output"], on_tokens, atol=1e-5)
    np.testing.assert_allclose(ours["pooled_output"], theirs["pooled_output"], atol=1e-5)


@pytest.mark.slow
@KERAS_SAVES
@KERAS_HUB_READS_POSITIONS
def test_keras_hub_reads_what_we_write(preset, backbone, tmp_path):
    import_weights(preset, tmp_path / "model")
    again = keras_hub.models.BertBackbone.from_preset(str(tmp_path / "model"))
    for ours, theirs in zip(again.weights, backbone.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@KERAS_SAVES
def test_presets_of_other_models_are_refused(preset):
    path = preset / "config.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "registered_name": "keras_hub>GPT2Backbone"}))
    with pytest.raises(UsageError, match="a preset of keras_hub>GPT2Backbone; only BertBackbone"):
        read_source(preset)


@KERAS_SAVES
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("num_layers", 10**9, "num_hidden_layers is 1,000,000,000, at most 1,000 are supported"),
        ("num_layers", 900, "describes an encoder of"),
        ("hidden_dim", 10**7, "GiB of weights, at most"),
        ("vocabulary_size", "x", "vocab_size must be a positive integer"),
    ],
)
def test_presets_larger_than_their_weights_are_not_built(preset, key, value, message):
    path = preset / "config.json"
    document = json.loads(path.read_text())
    document["config"][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=message):
        read_source(preset)


@KERAS_SAVES
def test_presets_whose_arrays_unpack_to_more_than_the_file_are_refused(preset):
    with h5py.File(preset / "model.weights.h5", "a") as file:
        file.create_dataset("bomb", (10**9,), "float32", compression="gzip")
    with pytest.raises(InputError, match="numbers are larger than the file"):
        read_source(preset)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight"),
        ("bert/embeddings/LayerNorm/gamma", "bert.embeddings.LayerNorm.weight"),
        (
            "bert/encoder/layer_11/attention/self/query/kernel",
            "bert.encoder.layer.11.attention.self.query.weight",
        ),
        ("bert/encoder/layer_0/output/dense/bias", "bert.encoder.layer.0.output.dense.bias"),
        ("cls/predictions/transform/LayerNorm/beta", "cls.predictions.transform.LayerNorm.bias"),
        ("cls/predictions/output_bias", "cls.predictions.bias"),
        ("cls/squad/output_weights", "qa_outputs.weight"),
        ("output_weights", "classifier.weight"),
        ("bert/pooler/dense/kernel/adam_m", None),
        ("global_step", None),
    ],
)
def test_names_of_google_checkpoints(name, expected):
    assert huggingface_name(name) == expected


def google_name(name):
    """Return the inverse, as convert_bert_original_tf_checkpoint_to_pytorch.py reads such files."""
    renamed = {
        "cls.predictions.bias": "cls/predictions/output_bias",
        "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
        "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    }
    if name in renamed:
        return renamed[name]
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
    name = name.replace("LayerNorm.bias", "LayerNorm.beta")
    name = name.replace("_embeddings.weight", "_embeddings").replace(".weight", ".kernel")
    return name.replace("layer.", "layer_").replace(".", "/")


@pytest.fixture
def google_folder(tmp_path):
    """Return a checkpoint with the golden pretraining model's weights and an optimizer's slots."""
    folder = tmp_path / "google"
    folder.mkdir()
    shutil.copy(GOLDEN / "pretraining" / "vocab.txt", folder)
    config = json.loads((GOLDEN / "pretraining" / "config.json").read_text())
    del config["model_type"]
    (folder / "bert_config.json").write_text(json.dumps(config))
    names = {"global_step": np.int64(5), "bert/pooler/dense/kernel/adam_m": np.zeros(2)}
    for name, value in FolderTensors(GOLDEN / "pretraining").items():
        key = google_name(name)
        names[key] = value.T if key.endswith("/kernel") else value
    tf.raw_ops.SaveV2(
        prefix=str(folder / "bert_model.ckpt"),
        tensor_names=list(names),
        shape_and_slices=[""] * len(names),
        tensors=list(names.values()),
    )
    return folder


def test_a_google_checkpoint_holds_the_same_model(google_folder, tmp_path):
    import_weights(google_folder, tmp_path / "model")
    ours = read_model_directory(tmp_path / "model")
    assert ours.config.hidden_act == "gelu_new"
    assert ours.lowercase
    theirs = FolderTensors(GOLDEN / "pretraining")
    assert ours.tensors.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours.tensors[name], value)
    loaded(BertPretrainingModel(ours.config), ours)


@pytest.mark.parametrize("style", ["numbered", "called", "nested", "trained"])
def test_an_object_checkpoint_holds_the_same_model(style, tmp_path):
    make_object_checkpoint(GOLDEN / "pretraining", tmp_path / "garden", style=style)
    import_weights(tmp_path / "garden", tmp_path / "model")
    ours, theirs = read_model_directory(tmp_path / "model"), FolderTensors(GOLDEN / "pretraining")
    for name in ours.tensors:
        np.testing.assert_array_equal(ours.tensors[name], theirs[name])
    lacking = theirs.keys() - ours.tensors.keys()
    heads = {name for name in theirs if name.startswith("cls.seq_relationship")}
    if style == "nested":  # the encoder inside a model of another task
        heads = {name for name in theirs if name.startswith("cls.")}
    if style == "trained":
        heads = set()
    assert lacking == heads
    loaded(BertEncoder(ours.config), ours)


def test_heads_of_other_tasks_are_not_taken_for_the_next_sentence_head():
    value = "/.ATTRIBUTES/VARIABLE_VALUE"
    head = f"model/classification_heads/0/out_proj/kernel{value}"
    other = f"sentence_prediction..pooler_dense/kernel{value}"
    assert tensor_keys([head, other, f"model/layer_with_weights-1/kernel{value}"], 2) == {}
    pooler = f"next_sentence..pooler_dense/kernel{value}"
    assert tensor_keys([head, pooler, f"encoder/layer_with_weights-6/kernel{value}"], 2) == {
        "cls.seq_relationship.weight": head,
        "bert.pooler.dense.weight": pooler,
    }


@pytest.mark.parametrize(
    "name", ["bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001", "vocab.txt"]
)
def test_a_git_lfs_pointer_in_a_checkpoint_is_reported_as_what_it_is(google_folder, name):
    (google_folder / name).write_text("version https://git-lfs.github.com/spec/v1\nsize 9\n")
    with pytest.raises(InputError, match=f"{name}: is a Git LFS pointer, not the file itself"):
        read_source(google_folder)


def with_config(folder, tmp_path, **changes):
    """Return a golden folder with other values in its config."""
    shutil.copytree(GOLDEN / folder, tmp_path / "source")
    path = tmp_path / "source" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return tmp_path / "source"


def test_a_decoder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is_decoder is True"):
        read_source(with_config("encoder", tmp_path, is_decoder=True))


@pytest.mark.parametrize(
    "changes",
    [{"num_hidden_layers": 900}, {"intermediate_size": 10**6}, {"max_position_embeddings": 10**6}],
)
def test_a_model_larger_than_its_weights_is_not_built(tmp_path, changes):
    source = with_config("encoder", tmp_path, **changes)
    with pytest.raises(
        UsageError, match=r"describes an encoder of [\d,]+ numbers, but the weights"
    ):
        read_source(source)


def test_a_masked_lm_head_with_embeddings_of_its_own_is_left_out(tmp_path):
    source = with_config("pretraining", tmp_path, tie_word_embeddings=False)
    tensors = dict(FolderTensors(source))
    tied = {"cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"]}
    write_tensors(source / "model.safetensors", {**tensors, **tied})
    assert "masked-LM" not in " ".join(read_source(source).notes)
    own = {name: value + 1.0 for name, value in tied.items()}
    write_tensors(source / "model.safetensors", {**tensors, **own})
    directory = read_source(source)
    assert (
        "the masked-LM head is left out, since it has embeddings of its own" in directory.notes[-1]
    )
    left = {name for name in tensors if not name.startswith("cls.predictions.")}
    assert set(directory.tensors) == left


def test_several_google_checkpoints_are_ambiguous(google_folder):
    for path in list(google_folder.glob("bert_model.ckpt*")):
        shutil.copy(path, path.with_name(path.name.replace("bert_model", "other")))
    with pytest.raises(UsageError, match="expected one checkpoint .* found 2"):
        read_source(google_folder)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("encoder", "BertModel"),
        ("pretraining", "BertForPreTraining"),
        ("classification", "BertForSequenceClassification"),
        ("token_classification", "BertForTokenClassification"),
        ("question_answering", "BertForQuestionAnswering"),
    ],
)
def test_huggingface_folders_keep_their_heads(name, kind, tmp_path):
    import_weights(GOLDEN / name, tmp_path / "model")
    copy, source = read_model_directory(tmp_path / "model"), read_model_directory(GOLDEN / name)
    assert architecture(copy) == kind
    assert copy.tensors.keys() == source.tensors.keys()


def test_a_classifier_without_a_pooler_scores_pieces(tmp_path):
    for name, kind in (
        ("classification", "BertForSequenceClassification"),
        ("token_classification", "BertForTokenClassification"),
    ):
        folder = shutil.copytree(GOLDEN / name, tmp_path / name)
        document = json.loads((folder / "config.json").read_text())
        del document["architectures"]
        (folder / "config.json").write_text(json.dumps(document))
        assert architecture(read_source(folder)) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [("masked_lm", "BertModel"), ("pretraining", "BertForNextSentencePrediction")],
)
def test_a_head_that_is_left_out_is_not_named(name, kind, tmp_path):
    # HuggingFace would load the class with a head of random weights.
    folder = shutil.copytree(GOLDEN / name, tmp_path / "hf")
    document = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**document, "tie_word_embeddings": False}))
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    own = tensors["bert.embeddings.word_embeddings.weight"] + 1
    safetensors.numpy.save_file(
        {**tensors, "cls.predictions.decoder.weight": own}, folder / "model.safetensors"
    )
    import_weights(folder, tmp_path / "model")
    written = json.loads((tmp_path / "model" / "config.json").read_text())
    assert written["architectures"] == [kind]


def test_a_classifiers_labels_are_kept(tmp_path):
    folder = shutil.copytree(GOLDEN / "classification", tmp_path / "hf")
    path = folder / "config.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "id2label": {"0": "x", "1": "y", "2": "z"}}))
    import_weights(folder, tmp_path / "model")
    directory = read_model_directory(tmp_path / "model")
    assert classifier_labels(directory) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("case", "named", "problem"),
    [
        ("classification", None, "single_label_classification"),
        ("classification", "single_label_classification", "single_label_classification"),
        ("classification", "multi_label_classification", "multi_label_classification"),
        ("classification", "regression", None),  # of three numbers
        ("regression", None, "regression"),  # as HuggingFace infers it from one logit
        ("regression", "regression", "regression"),
        ("regression", "multi_label_classification", "multi_label_classification"),
        ("regression", "single_label_classification", None),
        ("encoder", None, None),
        ("token_classification", "regression", None),
    ],
)
def test_what_a_classifier_is_for_is_known_and_kept(tmp_path, case, named, problem):
    folder = shutil.copytree(GOLDEN / case, tmp_path / "hf")
    path = folder / "config.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "problem_type": named}))
    import_weights(folder, tmp_path / "model")
    for directory in (read_source(folder), read_model_directory(tmp_path / "model")):
        assert classifier_problem(directory) == problem


def test_an_unknown_folder_says_what_was_looked_for(tmp_path):
    message = "expected config.json with model.safetensors, pytorch_model.bin or .* bert_model.ckpt"
    with pytest.raises(UsageError, match=message):
        import_weights(tmp_path, tmp_path / "model")
    with pytest.raises(UsageError, match="no such folder"):
        import_weights(tmp_path / "nothing", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_recipe_of_sentence_transformers_comes_with_the_weights(tmp_path):
    recipe = EmbeddingRecipe(
        pooling="cls", normalize=True, max_seq_length=7, is_trained=True, prompts={"query": "q: "}
    )
    source = tmp_path / "source"
    shutil.copytree(GOLDEN / "encoder", source)
    write_recipe(source, recipe, hidden_size=8)
    import_weights(source, tmp_path / "model")
    assert read_model_directory(tmp_path / "model").recipe == recipe
    # As the first releases laid it out: the encoder in a folder of its own.
    (source / "0_Transformer").mkdir()
    for path in list(source.glob("*")):
        if path.is_file() and path.name != "modules.json":
            path.rename(source / "0_Transformer" / path.name)
    modules = json.loads((source / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (source / "modules.json").write_text(json.dumps(modules))
    import_weights(source, tmp_path / "again")
    again = read_model_directory(tmp_path / "again")
    assert (again.recipe.pooling, again.recipe.max_seq_length) == ("cls", 7)
    assert again.vocab == read_model_directory(tmp_path / "model").vocab
