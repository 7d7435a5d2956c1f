"""PyTorch files without PyTorch: tensors of any shape and strides, and pickles that do harm."""

import io
import pickle
import sys
import tracemalloc
import types
import unittest.mock
import zipfile
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from bert_tf.base.errors import InputError, UsageError
from bert_tf.weights import pytorch_file, pytorch_pickle
from bert_tf.weights.pytorch_file import PyTorchFile
from bert_tf.weights.pytorch_pickle import ForeignNameError, PickleError, read_pickle
from bert_tf.weights.tensor_files import FolderTensors

GOLDEN = Path(__file__).parents[2] / "golden" / "models"
PLAIN_KINDS = (bool, int, float, str, np.dtype)
KNOWN_FUNCTIONS = tuple(pytorch_pickle._CALLABLES.values())


def parts_of(value):
    """Yield the parts of a value that are no containers; containers may hold themselves."""
    waiting, seen = [value], set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, (tuple, list, dict)):
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            waiting += [*part, *part.values()] if isinstance(part, dict) else part


class TorchPickler(pickle._Pickler):
    """Writes a `Storage` as `torch.save` does, and stand-ins under PyTorch's names."""

    def persistent_id(self, value):
        if isinstance(value, StoredFloats):
            return ("storage", FloatStorage, "0", "cpu", value.count)
        return None


class StoredFloats:
    """A storage of so many numbers."""

    def __init__(self, count):
        self.count = count


class FloatStorage:
    """Stands for `torch.FloatStorage`."""


def rebuild_tensor(*_):
    """Stands for `torch._utils._rebuild_tensor_v2`."""


class SavedTensor:
    """A tensor of any shape and strides."""

    def __init__(self, shape, strides, count):
        self.arguments = (StoredFloats(count), 0, shape, strides, False, {})

    def __reduce__(self):
        return rebuild_tensor, self.arguments


FloatStorage.__module__, FloatStorage.__qualname__ = "torch", "FloatStorage"
rebuild_tensor.__module__, rebuild_tensor.__qualname__ = "torch._utils", "_rebuild_tensor_v2"


def saved(path, shape, *, strides, numbers=3, compression=zipfile.ZIP_STORED, protocol=2):
    """Return a file of one tensor, `weight`, over the numbers 0, 1, 2, …"""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage, utils._rebuild_tensor_v2 = FloatStorage, rebuild_tensor
    torch._utils = utils
    described = io.BytesIO()
    with unittest.mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        TorchPickler(described, protocol).dump({"weight": SavedTensor(shape, strides, numbers)})
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("archive/data.pkl", described.getvalue())
        archive.writestr("archive/data/0", np.arange(numbers, dtype=np.float32).tobytes())
    return path


class TestPyTorchFile:
    path = GOLDEN / "old_folder" / "pytorch_model.bin"

    def repacked(self, tmp_path, **replaced):
        """Return the golden file with members replaced by other bytes, or removed by None."""
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
        with pytest.raises(UsageError, match="could run arbitrary code; convert it with PyTorch"):
            PyTorchFile(path)
        assert not (tmp_path / "touched").exists()

    def test_whole_models_are_refused(self, tmp_path):
        with pytest.raises(UsageError, match="holds no state dict"):
            PyTorchFile(self.repacked(tmp_path, data_pkl=pickle.dumps([1])))

    @pytest.mark.parametrize("key", ["model_state_dict", "model", "ema"])
    def test_a_checkpoint_around_the_weights_is_named(self, tmp_path, key, monkeypatch):
        tensors = PyTorchFile(self.path)._tensors
        state = {"epoch": 3, key: dict(tensors), "lr": 1e-5}
        monkeypatch.setattr(pytorch_file, "read_pickle", lambda content: state)
        message = rf"a checkpoint with 'epoch', '{key}', 'lr'; its tensors are in '{key}'; save"
        with pytest.raises(UsageError, match=message):
            PyTorchFile(self.path)

    def test_files_before_pytorch_1_6_are_refused(self, tmp_path):
        (tmp_path / "x.bin").write_bytes(b"\x80\x02 something else")
        with pytest.raises(UsageError, match="not a zip archive, so saved by PyTorch before 1.6"):
            PyTorchFile(tmp_path / "x.bin")

    def test_missing_or_short_numbers_are_found_when_read(self, tmp_path):
        with zipfile.ZipFile(self.path) as archive:
            storage = next(n for n in archive.namelist() if n.endswith("data/0"))
            half = archive.read(storage)[:-4]
        name = next(iter(PyTorchFile(self.path).shapes))
        with pytest.raises(InputError, match="does not fit the .* numbers that are stored"):
            PyTorchFile(self.repacked(tmp_path, **{"0": half})).read(name)
        with pytest.raises(InputError, match=f"no item named .* at {name}"):
            PyTorchFile(self.repacked(tmp_path, **{"0": None})).read(name)

    @pytest.mark.parametrize(
        ("attack", "message"),
        [
            (b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b".", "opcode"),  # BINBYTES8
            (b"\x80\x04\x8d" + (1 << 40).to_bytes(8, "little") + b".", "opcode"),  # BINUNICODE8
            (b"\x80\x02\x8b" + b"\xff\xff\xff\x7f.", "opcode"),  # LONG4
            (b"\x80\x02X\xff\xff\xff\xff.", "cut short"),  # BINUNICODE of 4 GiB
            (b"}" * (5 << 20) + b".", "expected at most 4,194,304"),
        ],
    )
    def test_a_few_bytes_take_little_memory(self, tmp_path, attack, message):
        tracemalloc.start()
        try:
            with pytest.raises(InputError, match=message):
                PyTorchFile(self.repacked(tmp_path, data_pkl=attack))
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()

    def test_a_distant_memo_entry_takes_no_room_for_those_before_it(self, tmp_path):
        tracemalloc.start()
        try:
            attack = b"\x80\x02}r\xff\xff\xff\x7f."  # LONG_BINPUT 2 ** 31 - 1
            assert PyTorchFile(self.repacked(tmp_path, data_pkl=attack)).shapes == {}
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()

    def test_nested_tuples_are_no_keys_whose_hash_takes_for_ever(self, tmp_path):
        nested = b")q\x00" + b"".join(b"h%c\x89\x86q%c" % (i, i + 1) for i in range(60))
        doubled = b")q\x00" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(60))
        for key in (nested, doubled):
            attack = b"\x80\x02}(" + key + b"0" * 60 + b"h\x3cK\x01u."
            with pytest.raises(InputError, match="damaged PyTorch file"):
                PyTorchFile(self.repacked(tmp_path, data_pkl=attack))

    @pytest.mark.parametrize("shape", [(10**9,), (10**6, 10**6), (0, 10**18), (2**70,)])
    def test_a_tensor_has_no_more_numbers_than_its_storage(self, tmp_path, shape):
        with pytest.raises(InputError, match=r"more than 4 times the file|does not fit"):
            PyTorchFile(saved(tmp_path / "x.bin", shape, strides=(0,) * len(shape))).read("weight")

    def test_a_small_tensor_is_not_spread_by_strides_of_zero(self, tmp_path):
        path = saved(tmp_path / "x.bin", (100,), strides=(0,), numbers=1)
        with pytest.raises(InputError, match=r"weight .its shape \[100\] does not fit the 1 "):
            PyTorchFile(path).read("weight")

    def test_axes_of_length_1_may_have_any_stride(self, tmp_path):
        path = saved(tmp_path / "x.bin", (1, 3), strides=(1 << 62, 1))
        np.testing.assert_array_equal(PyTorchFile(path).read("weight"), [[0.0, 1.0, 2.0]])

    def test_compressed_members_are_refused_whatever_they_unpack_to(self, tmp_path):
        path = saved(tmp_path / "x.bin", (3,), strides=(1,), numbers=10**6, compression=8)
        with pytest.raises(InputError, match="is compressed or encrypted inside"):
            PyTorchFile(path)

    def test_protocol_4_is_read(self, tmp_path):
        path = saved(tmp_path / "x.bin", (3,), strides=(1,), protocol=4)
        np.testing.assert_array_equal(PyTorchFile(path).read("weight"), [0.0, 1.0, 2.0])

    def test_a_damaged_archive_is_an_input_error(self, tmp_path):
        content = bytearray(self.path.read_bytes())
        content[content.index(b"PK\x01\x02") + 3] ^= 1
        (tmp_path / "x.bin").write_bytes(content)
        with pytest.raises(InputError, match="damaged PyTorch file"):
            PyTorchFile(tmp_path / "x.bin")

    @hypothesis.given(hypothesis.strategies.data())
    def test_no_pickle_gives_anything_but_tensors_or_a_reported_fault(self, data):
        with zipfile.ZipFile(self.path) as archive:
            content = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
        mangled = bytearray(content[: data.draw(hypothesis.strategies.integers(0, len(content)))])
        for _ in range(data.draw(hypothesis.strategies.integers(0, 5))):
            if mangled:
                place = data.draw(hypothesis.strategies.integers(0, len(mangled) - 1))
                mangled[place] = data.draw(hypothesis.strategies.integers(0, 255))
        try:
            value = read_pickle(bytes(mangled) + b".")
        except (PickleError, ForeignNameError):
            return
        for part in parts_of(value):
            assert part is None or isinstance(part, PLAIN_KINDS) or part in KNOWN_FUNCTIONS

    def test_a_cut_description_is_an_input_error(self, tmp_path):
        with zipfile.ZipFile(self.path) as archive:
            described = next(n for n in archive.namelist() if n.endswith("data.pkl"))
            half = archive.read(described)[:-20]
        with pytest.raises(InputError, match="damaged PyTorch file"):
            PyTorchFile(self.repacked(tmp_path, data_pkl=half))
