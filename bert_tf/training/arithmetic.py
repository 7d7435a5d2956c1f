"""The arithmetic of a run's steps, decided when it starts and kept, and counts of its work."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.files import write_text_atomically
from bert_tf.base.gpus import unusable_gpu
from bert_tf.base.json_files import read_if_sound, sealed
from bert_tf.base.processor import CoreTimes, has_bfloat16, is_bfloat16_excluded
from bert_tf.config.sections.loop import LoopSection
from bert_tf.cpu.availability import is_available
from bert_tf.cpu.cores import divide_cores_among_parts, operations_at_once, row_shards
from bert_tf.layers.implementation import PLAIN, Implementation
from bert_tf.training.distribution import worker_count
from bert_tf.training.protocols import Batch
from bert_tf.xla import cudnn
from bert_tf.xla.forward import XlaForward

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
# Of GPUs, the least that have tensor cores for it, the most exact first.
_CAPABILITIES = {"bfloat16": (8, 0), "float16": (7, 0)}
_FUSED_ATTENTION_CAPABILITY = (8, 0)
ARITHMETIC_FILE = "arithmetic.json"
# Of the expected way's seconds: noise is to choose between no two ways that are equally fast.
_CLEARLY = 0.95
WORK_COUNTS = ("tokens", "examples", "squared_lengths", "predictions")
_SECONDS = 0.3
_SIZES = {"CPU": 1024, "GPU": 8192}
BUSY = 0.1  # fraction of the cores; while others take more, no peak can be measured


@dataclasses.dataclass(frozen=True)
class PrecisionPolicy:
    """Arithmetic of the layers; variables and the optimizer stay in float32.

    `use_xla` compiles the step; `use_kernels` has encoders use `bert_tf.cpu.forward`.
    """

    policy: str
    use_xla: bool
    use_kernels: bool = False

    def __str__(self) -> str:
        compiled = "with XLA" if self.use_xla else "without XLA"
        if self.use_kernels:
            compiled = "with fused kernels"
        return f"{self.policy.removeprefix('mixed_')}, {compiled}"

    @property
    def scale_loss(self) -> bool:
        return self.policy == "mixed_float16"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """Arithmetic of steps.

    Attributes:
        shards: parts of every batch, or micro-batch, that are computed side by side, see
            `bert_tf.cpu.cores`; they divide its rows. 1 with XLA or several replicas.
        cpu_kernels: whether processors may use `bert_tf.cpu`, with XLA for the optimizer.
        deterministic: see `make_deterministic`.
        gradient_sum: dtype in which replicas on GPUs exchange gradients.
        fuses_attention: whether cuDNN computes attention, where it has no dropout.
    """

    precision: PrecisionPolicy = PrecisionPolicy("float32", use_xla=False)
    shards: int = 1
    cpu_kernels: bool = True
    deterministic: bool = False
    gradient_sum: str = "float32"
    fuses_attention: bool = False

    @property
    def compiles_all(self) -> bool:
        """Whether XLA compiles all that it can, as on accelerators, not only the gradients."""
        return self.precision.use_xla and not self.cpu_kernels

    def form(self) -> Implementation:
        """Return the form in which models compute, except `bert_tf.cpu`'s in a training step."""
        if not self.compiles_all:
            return PLAIN
        return XlaForward(
            fuses_attention=self.fuses_attention, sorts_embedding_gradient=self.deterministic
        )

    def __str__(self) -> str:
        parts = f", batches in {self.shards} parts" if self.shards > 1 else ""
        attention = ", fused attention" if self.fuses_attention else ""
        return f"{self.precision}{attention}{parts}"


def choose_precision(
    precision: str,
    xla: str,
    *,
    strategy: tf.distribute.Strategy | None = None,
    console: Console,
    cpu_kernels: bool = True,
) -> PrecisionPolicy:
    """Resolves "auto" in the config, and reports the choice.

    "auto" precision is bfloat16 on TPUs, on GPUs of compute capability 8.0 and on processors with
    AVX-512 bf16 or AMX, float16 on GPUs of 7.0, else float32. "auto" XLA compiles on TPUs and GPUs.
    On processors oneDNN's products and fused kernels are faster.
    """
    device, fastest = _device(strategy)
    if precision == "auto":
        precision = fastest
    if device == "CPU" and precision != "float32" and is_bfloat16_excluded():
        raise UsageError(
            f"precision {precision}: TensorFlow would crash, since ONEDNN_MAX_CPU_ISA excludes it; "
            "unset the variable, or give precision=float32"
        )
    use_xla = device != "CPU" if xla == "auto" else xla == "on"
    use_kernels = cpu_kernels and device == "CPU" and precision != "float16" and not use_xla
    chosen = PrecisionPolicy(_POLICIES[precision], use_xla, use_kernels)
    console.info(f"{device}, {chosen}")
    return chosen


def inference_form() -> XlaForward:
    """Return the form of models that XLA compiles to be run forward only."""
    return XlaForward(fuses_attention=_why_gpus_cannot_fuse() is None)


def choose_attention(
    config: LoopSection,
    precision: PrecisionPolicy,
    *,
    attention_dropout: float,
    strategy: tf.distribute.Strategy | None = None,
) -> bool:
    """Tell whether cuDNN computes attention: where it can, unless the config decides.

    cuDNN's own dropout counts its draws in the process, so a resumed run would draw others.

    Args:
        attention_dropout: of the model that is trained.

    Raises:
        UsageError: the config asks for it where it cannot be had.
    """
    if config.attention == "plain":
        return False
    reason = _why_not_fused(precision, strategy)
    if config.attention == "fused":
        if attention_dropout:
            raise UsageError(
                f"attention: fused has no dropout, and attention_probs_dropout_prob is "
                f"{attention_dropout:g}; set that to 0, or attention to auto"
            )
        if reason is not None:
            raise UsageError(f"attention: fused: {reason}; set it to auto")
    return reason is None


def _why_not_fused(
    precision: PrecisionPolicy, strategy: tf.distribute.Strategy | None
) -> str | None:
    if not precision.use_xla:
        return "cuDNN's kernels are part of XLA's programs, and xla is off"
    if precision.policy == "float32":
        return "cuDNN's kernels need precision bfloat16 or float16"
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return "cuDNN's kernels need an NVIDIA GPU"
    return _why_gpus_cannot_fuse()


def _why_gpus_cannot_fuse() -> str | None:
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "cuDNN's kernels need an NVIDIA GPU, and TensorFlow has none"
    for gpu in gpus:
        details = tf.config.experimental.get_device_details(gpu)
        if details.get("compute_capability", (0, 0)) < _FUSED_ATTENTION_CAPABILITY:
            name = details.get("device_name", gpu.name)
            return f"cuDNN's kernels need compute capability 8.0, which {name} has not"
    return cudnn.why_unavailable()


def has_accelerator() -> bool:
    return any(tf.config.list_physical_devices(kind) for kind in ("GPU", "TPU"))


def keep_float32_exact() -> None:
    """Switch TensorFloat-32 off, whose products on GPUs keep 10 bits of the fraction."""
    tf.config.experimental.enable_tensor_float_32_execution(False)


def _device(strategy: tf.distribute.Strategy | None) -> tuple[str, str]:
    """Kind of device, and its fastest precision; does not start TensorFlow."""
    is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if is_tpu or tf.config.list_physical_devices("TPU"):
        return "TPU", "bfloat16"
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        own = details.get("compute_capability", (0, 0))
        fast = (name for name, capability in _CAPABILITIES.items() if own >= capability)
        return "GPU", next(fast, "float32")
    return "CPU", "bfloat16" if has_bfloat16() else "float32"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchRows:
    """Rows of a batch, in micro-batches; `is_filled_up`: with rows of weight 0, if need be."""

    batch: int
    micro_batches: int = 1
    is_filled_up: bool = False

    def shards(self) -> int:
        """Parts of each micro-batch; 1 if the rows cannot be divided."""
        shards = row_shards(self.batch // self.micro_batches)
        divisible = self.batch % (self.micro_batches * shards) == 0
        return shards if self.is_filled_up or divisible else 1


# Seconds of a step, computed in each of several ways.
StepTrial = Callable[[Sequence[Arithmetic]], list[float]]


def settle_arithmetic(
    config: LoopSection,
    rows: Sequence[BatchRows],
    *,
    strategy: tf.distribute.Strategy,
    console: Console,
    attention_dropout: float = 0.0,
    trial: StepTrial | None = None,
) -> Arithmetic:
    """Decides on the arithmetic of a run's steps, or reads it for a resumed run, and configures
    TensorFlow, which must not have run anything yet.

    `rows` are of the batches of every phase; none where the loss compares the rows of a batch.
    `attention_dropout` is the model's.
    `trial` times a step on processors where the config leaves precision and XLA open; without it
    the processor's instructions decide. Warns of a GPU that TensorFlow cannot use.
    """
    if (unusable := unusable_gpu()) is not None:
        console.warn(unusable)
    if config.deterministic:
        make_deterministic()
    is_kept = config.strategy == "default"
    kept = read_if_sound(Path(config.output) / ARITHMETIC_FILE) if is_kept else None
    if kept is not None:
        cpu_kernels = may_use_cpu_kernels(config, console)
        arithmetic = Arithmetic(
            precision=PrecisionPolicy(
                kept["policy"], kept["use_xla"], cpu_kernels and kept.get("use_kernels", False)
            ),
            shards=kept["shards"] if cpu_kernels else 1,
            cpu_kernels=cpu_kernels,
            fuses_attention=kept.get("fuses_attention", False),
        )
        console.info(f"keeping the arithmetic of this run: {arithmetic}")
    else:
        arithmetic = expected_arithmetic(
            config, rows, strategy=strategy, console=console, attention_dropout=attention_dropout
        )
        is_open = config.precision == config.xla == "auto"
        if trial is not None and is_kept and is_open and not has_accelerator():
            shards = _common_shards(rows) if arithmetic.cpu_kernels else 1
            arithmetic = _fastest(arithmetic, trial, shards=shards, console=console)
    if arithmetic.shards > 1:
        divide_cores_among_parts()
    return dataclasses.replace(
        arithmetic, deterministic=config.deterministic, gradient_sum=config.gradient_sum
    )


def expected_arithmetic(
    config: LoopSection,
    rows: Sequence[BatchRows],
    *,
    strategy: tf.distribute.Strategy | None = None,
    console: Console,
    attention_dropout: float = 0.0,
) -> Arithmetic:
    """Decides by the config and the device's instructions, without starting TensorFlow."""
    cpu_kernels = may_use_cpu_kernels(config, console)
    precision = choose_precision(
        config.precision, config.xla, strategy=strategy, console=console, cpu_kernels=cpu_kernels
    )
    is_divided = cpu_kernels and config.strategy == "default" and not precision.use_xla
    shards = _common_shards(rows) if is_divided else 1
    fuses_attention = choose_attention(
        config, precision, attention_dropout=attention_dropout, strategy=strategy
    )
    return Arithmetic(
        precision=precision,
        shards=shards,
        cpu_kernels=cpu_kernels,
        fuses_attention=fuses_attention,
    )


def _common_shards(rows: Sequence[BatchRows]) -> int:
    return min((phase.shards() for phase in rows), default=1)


def make_deterministic() -> None:
    """Has GPUs give the same bits in every run, before TensorFlow has run anything.

    Without the programs that XLA kept of other runs, since its cache ignores the setting.
    """
    tf.config.experimental.enable_op_determinism()
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    os.environ.pop("TF_XLA_FLAGS", None)


def keep_arithmetic(config: LoopSection, arithmetic: Arithmetic) -> None:
    """Writes the decision into the directory of a run on one device.

    Other instructions would change a resumed run's losses and, where rows are packed, its batches.
    """
    if config.strategy != "default":
        return
    path = Path(config.output) / ARITHMETIC_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {**dataclasses.asdict(arithmetic.precision), "shards": arithmetic.shards}
    if arithmetic.fuses_attention:
        document["fuses_attention"] = True
    write_text_atomically(path, sealed(document))


def may_use_cpu_kernels(config: LoopSection, console: Console) -> bool:
    """Whether a run may use `bert_tf.cpu`; warns once where it cannot be loaded."""
    return config.cpu_kernels == "auto" and not has_accelerator() and is_available(console.warn)


def candidate_ways(*, shards: int, cpu_kernels: bool = True) -> list[Arithmetic]:
    """Candidates of a trial on processors; those without XLA compute `shards` parts."""
    policies = ("float32",) if is_bfloat16_excluded() else ("mixed_bfloat16", "float32")
    return [
        Arithmetic(
            precision=PrecisionPolicy(policy, use_xla, use_kernels=cpu_kernels and not use_xla),
            shards=1 if use_xla else shards,
            cpu_kernels=cpu_kernels,
        )
        for policy in policies
        for use_xla in (False, True)
    ]


def _fastest(
    expected: Arithmetic, trial: StepTrial, *, shards: int, console: Console
) -> Arithmetic:
    ways = candidate_ways(shards=shards, cpu_kernels=expected.cpu_kernels)
    console.info("benchmarking the fastest way to compute a step")
    seconds = dict(zip(ways, trial(ways), strict=True))
    for way in ways:
        console.info(f"  {way}: {1000 * seconds[way]:,.0f} ms")
    fastest = min(ways, key=seconds.__getitem__)
    chosen = fastest if seconds[fastest] < _CLEARLY * seconds[expected] else expected
    console.info(f"chosen: {chosen}")
    return chosen


def count_work(batch: Batch) -> dict[str, tf.Tensor]:
    """Counts the arguments of `ModelFlops.flops` in a batch, padded or packed; float32 [] each.

    Sequences of 3 and 2 tokens, with 2 targets and 1, have 5 `tokens`, 2 `examples`, 9 + 4
    `squared_lengths` and 3 `predictions`, in two rows or in one.
    """
    mask = tf.cast(batch["input_mask"], tf.float32)
    lengths = tf.reduce_sum(mask, axis=-1)
    if "sequence_ids" in batch:
        examples = tf.cast(tf.reduce_max(batch["sequence_ids"], axis=-1), tf.float32)
        # 1 + 3 + 5 + … over the positions of a sequence is the square of its length.
        squares = mask * (2.0 * tf.cast(batch["position_ids"], tf.float32) + 1.0)
    else:
        examples = tf.cast(lengths > 0, tf.float32)
        squares = lengths**2
    targets = batch.get("masked_lm_weights", tf.zeros(0))
    return {
        "tokens": tf.reduce_sum(lengths),
        "examples": tf.reduce_sum(examples),
        "squared_lengths": tf.reduce_sum(squares),
        "predictions": tf.reduce_sum(tf.cast(targets > 0, tf.float32)),
    }


def measure_matmul_peak(policy: str, strategy: tf.distribute.Strategy) -> float | None:
    """Measures operations per second of large matrix products on all devices, in less than 1 s.

    Assumes that GPUs are alike, and that replicas on CPUs share one. None on TPUs, where single
    operations are no measure, and on busy processors.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return None
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    size = _SIZES[kind]
    dtype = {"mixed_bfloat16": tf.bfloat16, "mixed_float16": tf.float16}.get(policy, tf.float32)
    at_once = operations_at_once() if kind == "CPU" else 1
    matrices = [tf.fill([size, size], tf.cast(1.0 / size, dtype)) for _ in range(at_once)]

    # Without autograph, which looks at all modules and so loads those that wait for their use.
    @tf.function(autograph=False)
    def products(matrices: list[tf.Tensor]) -> tf.Tensor:
        return tf.stack([tf.reduce_max(matrix @ matrix) for matrix in matrices])

    products(matrices).numpy()  # traces, and wakes the device
    times = CoreTimes.read()
    start, best = time.monotonic(), float("inf")
    while time.monotonic() - start < _SECONDS:
        begin = time.monotonic()
        products(matrices).numpy()
        best = min(best, time.monotonic() - begin)
    if kind == "CPU" and times.taken_by_others() > BUSY:
        return None
    devices = strategy.num_replicas_in_sync if kind == "GPU" else worker_count(strategy)
    return devices * at_once * 2.0 * size**3 / best
