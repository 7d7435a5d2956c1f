"""Environment and profiles of all tests.

The variables are set before anything imports TensorFlow, Keras or Beam, as the command line does.
"""

import functools
import gc
import importlib
import multiprocessing
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import bert_tf
import pipeline
from bert_tf.base.processor import is_bfloat16_excluded
from bert_tf.training.memory import releasing_graphs

# `behavior`, the checks that tests share; after everything else, since the folders here have the
# names of the packages.
sys.path.append(str(Path(__file__).parent))
pytest.register_assert_rewrite(
    "behavior.layers", "behavior.pages", "behavior.readers", "behavior.tasks"
)

from behavior.beam_construction import keep_what_beam_looks_up  # noqa: E402
from behavior.compiled_once import compile_once  # noqa: E402
from behavior.forks import serve_forks  # noqa: E402
from forked_tests import ForkedTests, number_of_workers  # noqa: E402

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# LLVM optimizes what XLA has made of a step for as long as XLA takes to make it.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

# How fast the machine is, and what an earlier run found, decide nothing in any profile. Nor
# does the environment: with CI set, hypothesis's own default is not to draw at random.
_ANYWHERE = settings(
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("repeatable", _ANYWHERE, derandomize=True, max_examples=60)
settings.register_profile("quick", _ANYWHERE, derandomize=True, max_examples=20)
settings.register_profile("fuzz", _ANYWHERE, derandomize=False, max_examples=500)
settings.load_profile("repeatable")


_COMPILES = pytest.StashKey[multiprocessing.Process]()

OPTIONAL_PACKAGES = {"onnx", "onnxruntime", "openvino"}


NO_BFLOAT16 = "ONEDNN_MAX_CPU_ISA excludes bfloat16"
NO_OPENVINO = "OpenVINO crashes where ONEDNN_MAX_CPU_ISA excludes bfloat16"
# Files that take longest run first, in this order, so that no worker is left alone with one.
# The first one compiles in a fork what commands of the others would compile by themselves.
LONG_FILES = (
    "test_pretraining_examples_curated",
    "test_token_ids",
    "test_loop_replicas",
    "test_whole_chain",
    "test_saved_model_alone",
    "test_processors",
    "test_small_inputs",
    "test_docs",
    "test_pretraining_workers",
    "test_pretraining_examples",
    "test_pretraining_examples_interrupted",
    "test_step_xla",
    "test_forward_encode",
    "test_finetuning",
    "test_finetuning_choices",
    "test_finetuning_series",
    "test_pretraining_resumed",
    "test_step_kernels",
    "test_distribution",
    "test_forward_kernels",
    "test_embedder",
    "test_task",
    "test_task_commands",
    "test_distillation",
    "test_embedding",
    "test_scoring",
    "test_loop",
    "test_notebook",
    "test_glue",
    "test_step_trial",
    "test_text",
    "test_campaigns",
    "test_patterns",
    "test_server_serving",
)


def leave_out_long_tests(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests marked `long`, but for those that `-m` or the command line names.

    An `-m` in pytest's own settings would be replaced by any other.
    """
    if re.search(r"\blong\b", config.option.markexpr):
        return
    named = {argument.rpartition("::")[2] for argument in config.args if "::" in argument}
    left_out = [item for item in items if item.get_closest_marker("long")]
    left_out = [item for item in left_out if item.name not in named]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order long files, leave out long tests, and skip tests that ONEDNN_MAX_CPU_ISA excludes."""
    leave_out_long_tests(config, items)
    rank = {name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
    if is_bfloat16_excluded():  # TensorFlow aborts on its products
        for item in items:
            if "float16" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=NO_BFLOAT16))
            elif "openvino]" in item.nodeid:  # its parameter, not a name
                item.add_marker(pytest.mark.skip(reason=NO_OPENVINO))


def skip_low_precision_products() -> None:
    """Have tests end as skipped where TensorFlow or OpenVINO would end the process."""
    from tensorflow.python.ops import gen_linalg_ops, gen_math_ops

    def skipping(product):
        @functools.wraps(product)
        def checked(*arguments, **options):
            first = (*arguments, *options.values())[0]
            first = first[0] if isinstance(first, (list, tuple)) else first
            if getattr(first, "dtype", None) in ("bfloat16", "float16"):
                pytest.skip(NO_BFLOAT16)
            return product(*arguments, **options)

        return checked

    for module, names in (
        (gen_math_ops, ("mat_mul", "batch_mat_mul", "batch_mat_mul_v2", "batch_mat_mul_v3")),
        (gen_linalg_ops, ("einsum",)),
    ):
        for name in names:
            setattr(module, name, skipping(getattr(module, name)))
    if openvino := sys.modules.get("openvino"):
        openvino.Core.compile_model = lambda *_, **__: pytest.skip(NO_OPENVINO)


def prepare_children() -> None:
    """Do once the preparations that nearly every process of tests needs."""
    from numba.core.registry import cpu_target

    from bert_tf.data.text.normalizer import normalizer_model

    normalizer_model(lowercase=True)
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    load_kernels()


def load_kernels() -> None:
    """Load kernels from Numba's cache; without one, compile them for half a minute."""
    from bert_tf.cpu import adamw
    from bert_tf.cpu.kernels import elements, heads, softmax, sum_norm

    for kind in (np.float32, np.uint16):  # uint16 for bfloat16
        elements.gelu_entry(kind, True)
        elements.gelu_gradient_entry(kind)
        for parts in (1, 3):
            heads.heads_entry(kind, parts)
            heads.heads_gradient_entry(kind, parts)
        for entry in (sum_norm.sum_norm_entry, softmax.softmax_entry, adamw.squared_norm_entry):
            entry(kind)
        for entry in (sum_norm.sum_norm_gradient_entry, softmax.softmax_gradient_entry):
            entry(kind)
    elements.keep_elements_entry()
    adamw.adamw_entry(np.float32, False)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Import all code for test processes, and leaves it out of collections.

    Hypothesis tries constants of the modules that are imported, which would depend on the tests
    that a process happened to get before. The garbage collector took half a second to walk the
    modules, each time that a test had `bert-pipeline` fail.
    """
    if session.config.option.workers:
        for package in (bert_tf, pipeline):
            for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                try:
                    importlib.import_module(module.name)
                except ModuleNotFoundError as error:  # of an extra that is not installed
                    assert error.name in OPTIONAL_PACKAGES
        session.config.stash[_COMPILES].join()
        prepare_children()
    if is_bfloat16_excluded():
        skip_low_precision_products()
    if "apache_beam" in sys.modules:
        keep_what_beam_looks_up()
    if throughput := sys.modules.get("bert_tf.training.throughput"):
        throughput._PEAK_SECONDS = 0.01  # in which runs measure the peak of this machine
    gc.collect()
    gc.freeze()
    session.config.add_cleanup(serve_forks())


@pytest.fixture(scope="module", autouse=True)
def graphs_released() -> Iterator[None]:
    """Releases graphs with the file that traced them, or they fill memory and collections."""
    with releasing_graphs():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", metavar="N", help="run tests in N processes, or `auto`")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.workers:
        workers = number_of_workers(config.option.workers)
        config.pluginmanager.register(ForkedTests(workers), "forked-tests")
        config.add_cleanup(compile_once())
        # On another core than the collection, which takes about as long.
        config.stash[_COMPILES] = multiprocessing.Process(target=load_kernels)
        config.stash[_COMPILES].start()
