"""Weight files: shards, half precision, old names, PyTorch files without PyTorch."""

import json
import pickle
import shutil
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert_tf.config.errors import InputError, UsageError
from bert_tf.weights.pytorch_file import PyTorchFile
from bert_tf.weights.tensor_files import FolderTensors, write_tensors
from bert_tf.weights.tensor_names import canonical_name

GOLDEN = Path(__file__).parents[2] / "golden" / "models"


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


class TestPyTorchFile:
    path = GOLDEN / "old_folder" / "pytorch_model.bin"

    def repacked(self, tmp_path, **replaced):
        """The golden file with members replaced by other bytes, or removed by None."""
        with (
            zipfile.ZipFile(self.path) as source,
            zipfile.ZipFile(tmp_path / "x.bin", "w") as out,
        ):
            for name in source.namelist():
                last = Path(name).name.replace(".", "_")
                content = replaced.get(last, source.read(name))
                if content is not None:
                    out.writestr(name, content)
        return tmp_path / "x.bin"

    def test_equals_the_same_model_saved_as_safetensors(self):
        old, new = FolderTensors(GOLDEN / "old_folder"), FolderTensors(GOLDEN / "encoder")
        assert old.keys() == new.keys()
        for name in new:
            np.testing.assert_array_equal(old[name], new[name])

    def test_code_in_a_pickle_does_not_run(self, tmp_path):
        class Attack:
            def __reduce__(self):
                return Path.touch, (tmp_path / "touched",)

        path = self.repacked(tmp_path, data_pkl=pickle.dumps({"weight": Attack()}))
        with pytest.raises(UsageError, match="could run foreign code; convert it with PyTorch"):
            PyTorchFile(path)
        assert not (tmp_path / "touched").exists()

    def test_whole_models_are_refused(self, tmp_path):
        with pytest.raises(UsageError, match="holds no state dict"):
            PyTorchFile(self.repacked(tmp_path, data_pkl=pickle.dumps([1])))

    def test_files_before_pytorch_1_6_are_refused(self, tmp_path):
        (tmp_path / "x.bin").write_bytes(b"\x80\x02 something else")
        with pytest.raises(UsageError, match="not a zip archive, so saved by PyTorch before 1.6"):
            PyTorchFile(tmp_path / "x.bin")

    def test_missing_or_short_numbers_are_found_when_read(self, tmp_path):
        with zipfile.ZipFile(self.path) as archive:
            storage = next(n for n in archive.namelist() if n.endswith("data/0"))
            half = archive.read(storage)[:-4]
        name = PyTorchFile(self.path).names[0]
        with pytest.raises(InputError, match="fewer numbers than its shape"):
            PyTorchFile(self.repacked(tmp_path, **{"0": half})).read(name)
        with pytest.raises(InputError, match=f"damaged at {name}"):
            PyTorchFile(self.repacked(tmp_path, **{"0": None})).read(name)

    def test_a_cut_description_is_an_input_error(self, tmp_path):
        with zipfile.ZipFile(self.path) as archive:
            described = next(n for n in archive.namelist() if n.endswith("data.pkl"))
            half = archive.read(described)[:-20]
        with pytest.raises(InputError, match="damaged PyTorch file"):
            PyTorchFile(self.repacked(tmp_path, data_pkl=half))


def test_safetensors_are_preferred_to_pickles(tmp_path):
    shutil.copytree(GOLDEN / "encoder", tmp_path / "both")
    (tmp_path / "both" / "pytorch_model.bin").write_bytes(b"not even opened")
    assert "bert.pooler.dense.bias" in FolderTensors(tmp_path / "both")
