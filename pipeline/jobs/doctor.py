"""What `bert-pipeline doctor` looks at: can this machine run the jobs, and how fast is it."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
from collections.abc import Callable

from bert_tf.base.errors import BertPipelineError
from bert_tf.base.processor import describe_processor
from pipeline.outputs.manifest import package_versions

_OPTIONAL = ("faiss-cpu", "nncf", "onnx", "onnxruntime", "openvino", "sentencex")
_MATMUL_SIZE = 1024
_MATMUL_REPEATS = 8
_MINIMUM_FREE_BYTES = 2**30


@dataclasses.dataclass(frozen=True)
class Finding:
    """One check: its name, whether it passed, what was seen or what to do."""

    name: str
    passed: bool
    detail: str


def examine() -> list[Finding]:
    """Runs every check; a check that raises is a finding that failed, not the end."""
    checks: list[tuple[str, Callable[[], str]]] = [
        ("packages", _packages),
        ("processor", describe_processor),
        ("temporary space", _temporary_space),
        ("tensorflow devices", _devices),
        ("tokenizer", _tokenizer),
        ("beam", _beam),
        ("matrix multiply", _matrix_multiply),
        ("java (Flink and Spark job servers only)", _java),
    ]
    findings = []
    for name, check in checks:
        try:
            findings.append(Finding(name, True, check()))
        except Exception as error:
            lines = str(error).splitlines() or [""]
            findings.append(Finding(name, False, f"{type(error).__name__}: {lines[0]}"))
    return findings


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


def _temporary_space() -> str:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if free < _MINIMUM_FREE_BYTES:
        raise BertPipelineError(
            f"{folder} has {free / 2**20:.0f} MiB free, at least 1024 are required; set TMPDIR"
        )
    return f"{folder}, {free / 2**30:.0f} GiB free"


def _devices() -> str:
    import tensorflow as tf

    return ", ".join(device.name for device in tf.config.list_logical_devices())


def _tokenizer() -> str:
    import tensorflow as tf

    from bert_tf.data.text.wordpiece import WordPieceTokenizer

    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "##s"]
    ids = WordPieceTokenizer(vocab, lowercase=True).tokenize(tf.constant(["Cafés"]))
    if ids.to_list() != [[5, 6]]:
        raise BertPipelineError(f"expected the tokens 5 6 of 'Cafés', got {ids.to_list()}")
    return "tensorflow_text splits 'Cafés' as it should"


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
    import tensorflow as tf

    matrix = tf.random.stateless_normal([_MATMUL_SIZE, _MATMUL_SIZE], seed=[0, 0])
    rates = {}
    for name, dtype in (("float32", tf.float32), ("bfloat16", tf.bfloat16)):
        operand = tf.cast(matrix, dtype)
        tf.linalg.matmul(operand, operand)
        start = time.monotonic()
        for _ in range(_MATMUL_REPEATS):
            product = tf.linalg.matmul(operand, operand)
        product.numpy()
        rates[name] = 2 * _MATMUL_SIZE**3 * _MATMUL_REPEATS / (time.monotonic() - start) / 1e9
    return ", ".join(f"{name} {rate:.0f} GFLOP/s" for name, rate in rates.items())


def _java() -> str:
    return shutil.which("java") or "not found; needed by no local job"
