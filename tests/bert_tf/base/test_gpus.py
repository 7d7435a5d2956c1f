"""GPUs as the driver lists them, and why TensorFlow does not use one."""

import platform

import pytest

from bert_tf.base.gpus import Gpu, fault_of, nvidia_gpus

BUILD = {
    "is_cuda_build": True,
    "cuda_version": "12.5.1",
    "cudnn_version": "9",
    "cuda_compute_capabilities": ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"],
}
H100 = Gpu(name="NVIDIA H100", memory=80 << 30, capability=(9, 0), driver="550.54.15")


@pytest.fixture(autouse=True)
def visible(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def fault(gpu=H100, *, build=BUILD, seen=0, missing=()):
    return fault_of(
        [gpu], build, version="2.21.0", seen=seen, can_load=lambda name: name not in missing
    )


def test_gpus_are_those_that_nvidia_smi_lists(tmp_path):
    said = "NVIDIA H100, 81920, 9.0, 550.54.15\nTesla K80, [N/A], [N/A], 470.1\n"
    assert nvidia_gpus(tmp_path, lambda: said) == [H100, Gpu(name="Tesla K80", driver="470.1")]
    # An older driver does not know the query.
    assert nvidia_gpus(tmp_path, lambda: 'Field "compute_cap" is not a valid field\n') == []


def test_without_nvidia_smi_the_kernel_or_a_container_shows_them(tmp_path):
    assert nvidia_gpus(tmp_path, str) == []
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / "dev" / name).touch()
    assert nvidia_gpus(tmp_path, str) == [Gpu(), Gpu()]
    folder = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text("Model: \t\t NVIDIA A100\nIRQ: 1\n")
    assert nvidia_gpus(tmp_path, str) == [Gpu(name="NVIDIA A100")]


def test_a_gpu_that_is_used_has_no_fault():
    assert fault(seen=1) is None
    assert fault(Gpu(), seen=1) is None, "of unknown capability"
    assert fault(Gpu(capability=(10, 0)), seen=1) is None, "compiled from PTX"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"build": {"is_cuda_build": False}},
            "this TensorFlow is built without CUDA; pip install 'tensorflow[and-cuda]==2.21.0'",
        ),
        ({"missing": ("libcuda.so.1", "libcudnn.so.9")}, "libcuda.so.1 is missing; install NVIDIA"),
        (
            {"missing": ("libcudart.so.12", "libcudnn.so.9")},
            "libcudart.so.12, libcudnn.so.9 cannot be loaded; pip install 'tensorflow[and-cuda]==",
        ),
        ({}, "CUDA 12.5.1 does not start on driver 550.54.15; install a newer driver"),
        ({"gpu": Gpu(capability=(5, 2)), "seen": 1}, "capability 5.2 is below 6.0, the least of"),
        (
            {"gpu": Gpu(capability=(12, 0)), "seen": 1},
            "capability 12.0 is newer than 9.0, the last that TensorFlow 2.21.0 is built for",
        ),
    ],
)
def test_a_fault_names_gpu_cause_and_cure_in_a_line(arguments, expected):
    said = fault(**arguments)
    assert said.startswith(f"{arguments.get('gpu', H100).name} is not used: ")
    assert expected in said
    assert "\n" not in said


def test_a_hidden_gpu_and_a_machine_without_wheels_with_cuda(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "no TensorFlow wheel with CUDA for aarch64" in fault(build={"is_cuda_build": False})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert "CUDA_VISIBLE_DEVICES='-1' hides it; unset the variable" in fault()
