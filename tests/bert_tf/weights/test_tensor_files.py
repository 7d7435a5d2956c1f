"""Weight files: shards, half precision, old names, arrays of TensorFlow."""

import json
import re
import shutil
from pathlib import Path

import h5py
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert_tf.base.errors import InputError, UsageError
from bert_tf.weights.tensor_files import FolderTensors, write_tensors
from bert_tf.weights.tensor_names import canonical_name

GOLDEN = Path(__file__).parents[2] / "golden" / "models"


@pytest.mark.parametrize("kind", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.int8])
def test_numbers_of_8_bits_are_named(tmp_path, kind):
    path = tmp_path / "model.safetensors"
    numbers = np.ones(4, kind)
    names = {"float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "int8": "I8"}
    header = {
        "bert.pooler.dense.weight": {
            "dtype": names[numbers.dtype.name],
            "shape": [4],
            "data_offsets": [0, 4],
        }
    }
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + numbers.tobytes())
    with pytest.raises(
        UsageError, match=r"bert\.pooler\.dense\.weight has the type (F8_E\dM\d|I8), "
    ):
        FolderTensors(tmp_path)


def test_the_bias_of_a_masked_lm_head_may_be_stored_as_its_twin(tmp_path):
    """transformers ties both, and writes one or the other."""
    own, twin = "cls.predictions.bias", "cls.predictions.decoder.bias"
    values = np.arange(4, dtype=np.float32)
    write_tensors(tmp_path / "model.safetensors", {twin: values})
    np.testing.assert_array_equal(FolderTensors(tmp_path)[own], values)
    write_tensors(tmp_path / "model.safetensors", {twin: values + 1, own: values})
    np.testing.assert_array_equal(FolderTensors(tmp_path)[own], values)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        (
            "bert.encoder.layer.3.output.LayerNorm.beta",
            "bert.encoder.layer.3.output.LayerNorm.bias",
        ),
        ("pooler.dense.weight", "bert.pooler.dense.weight"),
        ("bert.pooler.dense.weight", "bert.pooler.dense.weight"),
        ("classifier.bias", "classifier.bias"),
        ("module.bert.pooler.dense.bias", "bert.pooler.dense.bias"),
        ("module.model.classifier.bias", "classifier.bias"),
        ("_orig_mod.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        ("cls.predictions.transform.LayerNorm.gamma", "cls.predictions.transform.LayerNorm.weight"),
    ],
)
def test_old_and_unprefixed_names_become_present_ones(name, expected):
    assert canonical_name(name) == expected


def test_shards_are_read_as_one_file(tmp_path):
    whole = FolderTensors(GOLDEN / "encoder")
    names = sorted(whole)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in shards.items():
        write_tensors(tmp_path / file, {name: whole[name] for name in part})
    weight_map = {name: file for file, part in shards.items() for name in part}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    sharded = FolderTensors(tmp_path)
    assert sharded.keys() == whole.keys()
    for name in names:
        np.testing.assert_array_equal(sharded[name], whole[name])
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(UsageError, match=r"names files that are missing: b\.safetensors"):
        FolderTensors(tmp_path)


def test_shards_of_pytorch_are_read_as_one_file(tmp_path):
    whole = FolderTensors(GOLDEN / "old_folder")
    shutil.copy(GOLDEN / "old_folder" / "pytorch_model.bin", tmp_path / "a.bin")
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(whole, "a.bin")}))
    assert {name: value.tobytes() for name, value in FolderTensors(tmp_path).items()} == {
        name: value.tobytes() for name, value in whole.items()
    }


def tensorflow_path(name, model="tf_bert_for_pre_training"):
    """Return the path of a tensor in tf_model.h5 of transformers 4."""
    *scope, last = name.split(".")
    path = re.sub(r"layer/(\d+)", r"layer_._\1", "/".join(scope))
    if path.endswith("LayerNorm"):
        last = {"weight": "gamma", "bias": "beta"}[last]
    elif path.endswith(("position_embeddings", "token_type_embeddings")):
        last = "embeddings"
    elif last == "weight" and not path.endswith("word_embeddings"):
        last = "kernel"
    head = {"cls/pred": "mlm___", "cls/seq_": "nsp___"}.get(path[:8], "")
    layer = f"{head}{path.partition('/')[0]}"
    return f"{layer}/{model}/{head}{path}/{last}:0"


@pytest.mark.parametrize("kind", ["pretraining", "classification", "question_answering"])
def test_weights_of_tensorflow_are_the_same(tmp_path, kind):
    whole = FolderTensors(GOLDEN / kind)
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        for name, value in whole.items():
            path = tensorflow_path(name)
            file[path] = value.T if path.endswith("kernel:0") else value
        file["top_level_model_weights/iterations:0"] = 3.0
    read = FolderTensors(tmp_path)
    assert read.keys() == whole.keys()
    assert read.count_numbers() == whole.count_numbers()
    for name, value in whole.items():
        np.testing.assert_array_equal(read[name], value)


def test_arrays_of_tensorflow_that_are_no_weights_of_bert_are_not_measured(tmp_path):
    weight = "bert/tf_bert_model/bert/pooler/dense/bias:0"
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file[weight] = np.ones(3, np.float32)
        file["null:0"] = h5py.Empty("float32")
        file["bert/tf_bert_model/bert/pooler/dense/kernel:0"] = h5py.Empty("float32")
        file.create_dataset("large:0", (10**9,), "float32", compression="gzip")
    assert dict(FolderTensors(tmp_path)).keys() == {"bert.pooler.dense.bias"}
    with h5py.File(tmp_path / "tf_model.h5", "a") as file:
        del file[weight]
        file.create_dataset(weight, (10**9,), "float32", compression="gzip")
    with pytest.raises(InputError, match="numbers are larger than the file"):
        FolderTensors(tmp_path)


@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_arrays_of_tensorflow_that_lie_in_another_file_are_refused(tmp_path, kind):
    (tmp_path / "secret").write_bytes(bytes(range(40)))
    place = "bert/tf_bert_model/bert/pooler/dense/bias:0"
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        if kind == "external":
            of_file = [(str(tmp_path / "secret"), 0, 40)]
            file.create_dataset(place, (10,), "float32", external=of_file)
        else:
            layout = h5py.VirtualLayout((10,), "float32")
            layout[:] = h5py.VirtualSource(str(tmp_path / "secret"), "x", shape=(10,))
            file.create_virtual_dataset(place, layout)
    with pytest.raises(InputError, match=f"the numbers of {place} are in another file"):
        FolderTensors(tmp_path)


@pytest.mark.parametrize("name", ["../outside.safetensors", "/tmp/outside.safetensors"])
def test_an_index_names_files_of_its_folder_only(tmp_path, name):
    write_tensors(tmp_path / "outside.safetensors", {"a": np.ones(1, np.float32)})
    folder = tmp_path / "model"
    folder.mkdir()
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(UsageError, match=r"names files that are missing: outside\.safetensors"):
        FolderTensors(folder)


def test_a_file_of_tensorflow_that_is_damaged_says_what_to_take(tmp_path):
    (tmp_path / "tf_model.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(InputError, match=r"tf_model\.h5: damaged .*; take model\.safetensors"):
        FolderTensors(tmp_path)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_other_precisions_become_float32_and_whole_numbers_are_left_out(tmp_path, dtype):
    tensors = {"pooler.dense.bias": np.array([1.5, -2.0], dtype), "position_ids": np.arange(3)}
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    read = FolderTensors(tmp_path)
    assert list(read) == ["bert.pooler.dense.bias"]
    assert read["bert.pooler.dense.bias"].dtype == np.float32
    np.testing.assert_array_equal(read["bert.pooler.dense.bias"], [1.5, -2.0])


def test_transposed_views_are_written_as_they_read(tmp_path):
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_tensors(tmp_path / "model.safetensors", {"pooler.dense.weight": value.T})
    np.testing.assert_array_equal(FolderTensors(tmp_path)["bert.pooler.dense.weight"], value.T)


def test_written_files_can_be_read_by_others_of_the_machine(tmp_path):
    write_tensors(tmp_path / "model.safetensors", {"x": np.zeros(2, np.float32)})
    (tmp_path / "usual").touch()
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "tf_model.h5"],
)
def test_a_git_lfs_pointer_is_reported_as_what_it_is(tmp_path, name):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(InputError, match=f"{name}: is a Git LFS pointer, not the file itself"):
        FolderTensors(tmp_path)


def test_safetensors_are_preferred_to_pickles(tmp_path):
    shutil.copytree(GOLDEN / "encoder", tmp_path / "both")
    (tmp_path / "both" / "pytorch_model.bin").write_bytes(b"not even opened")
    assert "bert.pooler.dense.bias" in FolderTensors(tmp_path / "both")
