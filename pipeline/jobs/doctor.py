"""`bert-pipeline doctor`: checks whether this machine can run the jobs, and how fast."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

from bert_tf.base.errors import BertPipelineError
from bert_tf.base.gpus import unusable_gpu
from bert_tf.base.processor import describe_processor, is_bfloat16_excluded
from bert_tf.base.wording import gigabytes
from bert_tf.engines.registry import ENGINES
from bert_tf.training.memory import machine_memory
from pipeline.outputs.manifest import package_versions

_OPTIONAL = (
    *("faiss-cpu", "fastwarc", "mlflow-skinny", "nncf", "onnx", "onnxruntime", "openvino"),
    *("phonenumbers", "py3langid", "resiliparse", "sentencex", "trafilatura", "wandb"),
)
_MINIMUM_FREE_BYTES = 10**9


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of a check.

    Attributes:
        detail: the result, or why the check failed.
    """

    name: str
    passed: bool
    detail: str


def examine() -> Iterator[Finding]:
    """Run the checks, quick ones first; a check that raises is a failed finding.

    One that fails for the reason of an earlier one refers to it.
    """
    reasons: dict[str, str] = {}
    for name, check in CHECKS.items():
        try:
            yield Finding(name, True, check())
        except Exception as error:
            line = next(iter(str(error).splitlines()), "")
            kind = "" if isinstance(error, BertPipelineError) else f"{type(error).__name__}: "
            reason = f"{kind}{line}"
            known = reasons.setdefault(reason, name)
            yield Finding(name, False, reason if known == name else f"see {known}")


def _packages() -> str:
    versions = package_versions()
    missing = [
        name
        for name, version in versions.items()
        if version == "not installed" and name not in _OPTIONAL
    ]
    if missing:
        raise BertPipelineError(
            f"{', '.join(missing)} not installed; pip install {' '.join(missing)}"
        )
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _engines() -> str:
    """List the engines for exported models, in the order of preference of `score`."""
    lines = []
    for name, engine in ENGINES.items():
        if engine.is_installed():
            lines.append(name)
        else:
            lines.append(f"{name} not installed (pip install 'bert-pipeline[{name}]')")
    return ", ".join(lines)


def _temporary_space() -> str:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < _MINIMUM_FREE_BYTES:
        raise BertPipelineError(
            f"{folder} has {gigabytes(free)} GB free, at least {gigabytes(_MINIMUM_FREE_BYTES)} "
            "are required; set TMPDIR"
        )
    return f"{folder}, {gigabytes(free)} GB free"


def _memory() -> str:
    memory = machine_memory()
    return f"{gigabytes(memory.total)} GB, {gigabytes(memory.available)} GB available"


def _disk() -> str:
    usage = shutil.disk_usage(".")
    return f"{gigabytes(usage.free)} of {gigabytes(usage.total)} GB free in this folder"


def _devices() -> str:
    import tensorflow as tf

    unusable = unusable_gpu()
    if unusable is not None:
        raise BertPipelineError(unusable)
    return ", ".join(device.name for device in tf.config.list_logical_devices())


def _tokenizer() -> str:
    import tensorflow as tf

    from bert_tf.data.text.wordpiece import WordPieceTokenizer

    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "##s"]
    ids = WordPieceTokenizer(vocab, lowercase=True).tokenize(tf.constant(["Cafés"]))
    if ids.to_list() != [[5, 6]]:
        raise BertPipelineError(f"expected the tokens 5 6 of 'Cafés', got {ids.to_list()}")
    return "tensorflow_text splits 'Cafés' as it should"


def _presets() -> str:
    from bert_tf.base.libraries import import_keras_hub

    import_keras_hub()
    return "import-weights reads them, export --format keras-hub writes them"


def _beam() -> str:
    import apache_beam as beam
    from apache_beam.testing.util import assert_that, equal_to

    from bert_tf.base.console import Console
    from bert_tf.config.sections import RunnerConfig
    from pipeline.beam.runner import run_pipeline

    def build(pipeline: beam.Pipeline) -> None:
        total = pipeline | beam.Create([1, 2, 3]) | beam.CombineGlobally(sum)
        assert_that(total, equal_to([6]))

    start = time.monotonic()
    run_pipeline(RunnerConfig(), build, console=Console(), input_bytes=0)
    return f"a small pipeline ran in process in {time.monotonic() - start:.1f} s"


def _matrix_multiply() -> str:
    """Measure the peak that `mfu` of a run is relative to, by precision."""
    import tensorflow as tf

    from bert_tf.training.throughput import measure_matmul_peak

    policies = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
    if is_bfloat16_excluded():
        del policies["bfloat16"]
    strategy = tf.distribute.get_strategy()
    peaks = {name: measure_matmul_peak(policy, strategy) for name, policy in policies.items()}
    if None in peaks.values():
        return "not measured, because other processes use the cores"
    return ", ".join(f"{name} {peak / 1e9:,.0f} GFLOP/s" for name, peak in peaks.items() if peak)


def _java() -> str:
    """Return the first line of `java -version`, which it writes to stderr."""
    path = shutil.which("java")
    if path is None:
        return "not found; needed by no local job"
    version = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30).stderr
    return f"{path}, {next(iter(version.splitlines()), 'version not known')}"


# Checks by subject, the quick ones first; each returns its result, or raises an error.
CHECKS: dict[str, Callable[[], str]] = {
    "packages": _packages,
    "engines of score": _engines,
    "processor": describe_processor,
    "memory": _memory,
    "disk": _disk,
    "temporary space": _temporary_space,
    "java (Flink and Spark job servers only)": _java,
    "tensorflow devices": _devices,
    "tokenizer": _tokenizer,
    "presets of KerasHub": _presets,
    "beam": _beam,
    "matrix multiply": _matrix_multiply,
}
