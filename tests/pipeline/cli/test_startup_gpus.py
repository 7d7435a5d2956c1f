"""Commands without a model leave GPUs alone; the others do not take all of their memory."""

import pytest

from bert_tf.base.gpus import Gpu
from bert_tf.config.sections import RunnerConfig
from pipeline.beam.runner import pipeline_options
from pipeline.cli import startup


@pytest.fixture
def environment(monkeypatch, tmp_path):
    values = {"XDG_CACHE_HOME": str(tmp_path)}
    monkeypatch.setattr(startup.os, "environ", values)
    return values


def test_commands_without_a_model_see_no_gpu(environment):
    startup.share_gpus(runs_models=False)
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"


def test_memory_grows_and_compiled_programs_are_kept_for_a_gpu(environment, monkeypatch, tmp_path):
    monkeypatch.setattr(startup, "nvidia_gpus", list)
    startup.share_gpus(runs_models=True)
    assert environment["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert not {"TF_XLA_FLAGS", "XLA_FLAGS"} & environment.keys()
    found = []
    for name in ("A100", "H100"):
        monkeypatch.setattr(startup, "nvidia_gpus", lambda name=name: [Gpu(name=name)])
        startup.share_gpus(runs_models=True)
        found.append(environment.pop("TF_XLA_FLAGS"))
    assert found[0] != found[1]
    assert found[0].startswith(f"--tf_xla_persistent_cache_directory={tmp_path}/bert-pipeline/xla/")
    environment["TF_XLA_FLAGS"] = "mine"
    startup.share_gpus(runs_models=True)
    assert environment["TF_XLA_FLAGS"] == "mine"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, "--xla_gpu_enable_triton_gemm=false"),
        ({"XLA_FLAGS": "--xla_dump_to=here"}, "--xla_dump_to=here"),
    ],
)
def test_products_are_left_to_cublas_unless_the_user_has_flags(
    environment, monkeypatch, own, expected
):
    monkeypatch.setattr(startup, "nvidia_gpus", lambda: [Gpu(name="H100")])
    environment.update(own)
    startup.share_gpus(runs_models=True)
    assert environment["XLA_FLAGS"] == expected


def test_workers_see_a_gpu_only_to_run_models():
    command = {
        takes_gpu: pipeline_options(RunnerConfig(workers=2), input_bytes=0, takes_gpu=takes_gpu)[
            0
        ]._default_environment.command_string
        for takes_gpu in (False, True)
    }
    assert command[False] == "CUDA_VISIBLE_DEVICES=-1 " + command[True]
