"""How the steps of a run are computed: precision, compiler, kernels, and parts of a batch.

The choice is made once, when a run starts, and kept in `arithmetic.json`, so that a run that
resumes on another machine computes the same numbers.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.errors import UsageError
from bert_tf.base.gpus import unusable_gpu
from bert_tf.base.json_files import read_if_sound, write_sealed
from bert_tf.base.processor import has_bfloat16, is_bfloat16_excluded
from bert_tf.config.bert import BertConfig
from bert_tf.config.sections.loop import LoopSection
from bert_tf.cpu.availability import is_available
from bert_tf.cpu.cores import divide_cores_among_parts, row_shards
from bert_tf.layers.implementation import PLAIN, Implementation
from bert_tf.xla import cudnn
from bert_tf.xla.forward import XlaForward

ARITHMETIC_FILE = "arithmetic.json"

# The Keras dtype policy of each precision of the config.
_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
# The lowest compute capability of GPUs with tensor cores for a dtype. bfloat16 comes first, since
# it needs no loss scaling.
_CAPABILITIES = {"bfloat16": (8, 0), "float16": (7, 0)}
_FUSED_ATTENTION_CAPABILITY = (8, 0)  # cuDNN's flash attention needs Ampere's tensor cores
# Another way than the expected one is only chosen if it takes less than this fraction of its time.
# Otherwise noise would decide between ways that are equally fast, and runs would differ.
_CLEARLY_FASTER = 0.95


@dataclasses.dataclass(frozen=True)
class PrecisionPolicy:
    """Dtype and compiler of a step; variables and the optimizer's moments always stay in float32.

    Attributes:
        policy: Keras dtype policy of the layers: "float32", "mixed_bfloat16" or "mixed_float16".
        use_xla: whether XLA compiles the step.
        use_kernels: whether encoders run `bert_tf.cpu.forward`; excludes `use_xla`.
    """

    policy: str
    use_xla: bool
    use_kernels: bool = False

    def __str__(self) -> str:
        if self.use_kernels:
            compiled = "with fused kernels"
        elif self.use_xla:
            compiled = "with XLA"
        else:
            compiled = "without XLA"
        return f"{self.policy.removeprefix('mixed_')}, {compiled}"

    @property
    def scale_loss(self) -> bool:
        """Whether the loss is scaled up to keep gradients from underflowing, as float16 needs."""
        return self.policy == "mixed_float16"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """Everything about the computation of steps that changes their numbers.

    Attributes:
        shards: parts of every batch, or micro-batch, that are computed side by side, see
            `bert_tf.cpu.cores`; they divide its rows. 1 with XLA or several replicas.
        cpu_kernels: whether CPUs may use `bert_tf.cpu`. With XLA this only affects the optimizer.
        deterministic: whether GPUs give the same bits in every run, see `make_deterministic`.
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
    """Resolve "auto" in the config, and report the choice.

    "auto" precision is bfloat16 on TPUs, on GPUs of compute capability 8.0 and on processors with
    AVX-512 bf16 or AMX; float16 on GPUs of compute capability 7.0; else float32. "auto" XLA
    compiles on TPUs and GPUs. On CPUs, oneDNN's matrix products and fused kernels are faster than
    XLA.

    Args:
        precision: "auto", "float32", "bfloat16" or "float16".
        xla: "auto", "on" or "off".
        strategy: strategy of the run; None stands for one on this machine's devices.
        console: receives the choice.
        cpu_kernels: whether the run may use `bert_tf.cpu`.

    Raises:
        UsageError: the precision would crash TensorFlow, because ONEDNN_MAX_CPU_ISA excludes the
            instructions that it needs.
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
    model: BertConfig | None = None,
    strategy: tf.distribute.Strategy | None = None,
    console: Console,
) -> bool:
    """Tell whether cuDNN computes attention: where it can, unless the config decides.

    cuDNN's own dropout counts its draws in the process, so a resumed run would draw others.

    Args:
        model: the model that is trained, for its dropout and the size of its heads; None for one
            that cuDNN has kernels for.
        console: receives a line if a GPU computes attention in the plain form.

    Raises:
        UsageError: the config asks for it where it cannot be had.
    """
    if config.attention == "plain":
        return False
    dropout = 0.0 if model is None else model.attention_probs_dropout_prob
    reason = _why_not_fused(precision, strategy, model)
    if config.attention == "fused":
        if dropout:
            raise UsageError(
                f"attention: fused has no dropout, and attention_probs_dropout_prob is "
                f"{dropout:g}; set that to 0, or attention to auto"
            )
        if reason is not None:
            raise UsageError(f"attention: fused: {reason}; set it to auto")
    if reason is not None and _has_gpu():
        console.info(f"attention is not fused: {reason}")
    elif reason is None and dropout:
        console.info(
            "attention is fused only in evaluations, as training has dropout of attention; "
            "attention_probs_dropout_prob=0 fuses it there, too"
        )
    return reason is None


def _why_not_fused(
    precision: PrecisionPolicy, strategy: tf.distribute.Strategy | None, model: BertConfig | None
) -> str | None:
    if not precision.use_xla:
        return "cuDNN's kernels are part of XLA's programs, and xla is off"
    if precision.policy == "float32":
        return "cuDNN's kernels need precision bfloat16 or float16"
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return "cuDNN's kernels need an NVIDIA GPU"
    if model is not None and not cudnn.has_kernel(model.head_size):
        return (
            f"cuDNN's kernels need heads of a multiple of {cudnn.HEAD_SIZE_MULTIPLE} up to "
            f"{cudnn.MOST_HEAD_SIZE}, and those of the model have {model.head_size}"
        )
    return _why_gpus_cannot_fuse()


def _can_still_fuse(console: Console) -> bool:
    """Tell whether a resumed run can fuse attention here; warn if not, as bits will differ."""
    reason = _why_gpus_cannot_fuse()
    if reason is not None:
        console.warn(f"this run fused attention, and continues without: {reason}")
    return reason is None


def _why_gpus_cannot_fuse() -> str | None:
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return "cuDNN's kernels need an NVIDIA GPU, and TensorFlow has none"
    for gpu in gpus:
        details = tf.config.experimental.get_device_details(gpu)
        if details.get("compute_capability", (0, 0)) < _FUSED_ATTENTION_CAPABILITY:
            name = details.get("device_name", gpu.name)
            return f"cuDNN's kernels need compute capability 8.0, which {name} does not have"
    return cudnn.why_unavailable()


def _has_gpu() -> bool:
    return bool(tf.config.list_physical_devices("GPU"))


def has_accelerator() -> bool:
    """Return whether TensorFlow sees a GPU or a TPU."""
    return any(tf.config.list_physical_devices(kind) for kind in ("GPU", "TPU"))


def keep_float32_exact() -> None:
    """Switch TensorFloat-32 off, whose products on GPUs keep 10 bits of the fraction."""
    tf.config.experimental.enable_tensor_float_32_execution(False)


def _device(strategy: tf.distribute.Strategy | None) -> tuple[str, str]:
    """Return the kind of device and its fastest precision, without starting TensorFlow."""
    is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if is_tpu or tf.config.list_physical_devices("TPU"):
        return "TPU", "bfloat16"
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        own = details.get("compute_capability", (0, 0))
        for precision, capability in _CAPABILITIES.items():
            if own >= capability:
                return "GPU", precision
        return "GPU", "float32"
    return "CPU", "bfloat16" if has_bfloat16() else "float32"


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchRows:
    """Number of rows of a batch, which decides into how many parts it can be divided.

    Attributes:
        batch: rows of a batch.
        micro_batches: equal parts of the batch that are computed one after the other.
        is_filled_up: whether rows of weight 0 may be added, so that any number of parts is
            possible.
    """

    batch: int
    micro_batches: int = 1
    is_filled_up: bool = False

    def shards(self) -> int:
        """Return the number of parts of each micro-batch; 1 if its rows cannot be divided."""
        shards = row_shards(self.batch // self.micro_batches)
        divisible = self.batch % (self.micro_batches * shards) == 0
        return shards if self.is_filled_up or divisible else 1


# Measures the seconds of a step for each of several candidates; returns them in the same order.
StepTrial = Callable[[Sequence[Arithmetic]], list[float]]


def settle_arithmetic(
    config: LoopSection,
    rows: Sequence[BatchRows],
    *,
    strategy: tf.distribute.Strategy,
    console: Console,
    model: BertConfig | None = None,
    trial: StepTrial | None = None,
) -> Arithmetic:
    """Decide on the arithmetic of a run, or read it for a resumed run, and configure TensorFlow.

    Call it before TensorFlow has run anything, because determinism and the number of threads cannot
    be changed later. Warns of a GPU that TensorFlow cannot use.

    Args:
        config: config of the run.
        rows: the rows of a batch in every phase; empty if the loss compares the rows of a batch,
            which then must not be divided.
        strategy: strategy of the run; only runs on one device keep their arithmetic.
        console: receives the decision.
        model: the model that is trained, see `choose_attention`.
        trial: measures a step for each candidate, if the config leaves precision and XLA to "auto"
            on a CPU. None decides by the processor's instructions instead.
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
            fuses_attention=kept.get("fuses_attention", False) and _can_still_fuse(console),
        )
        console.info(f"keeping the arithmetic of this run: {arithmetic}")
    else:
        arithmetic = expected_arithmetic(
            config, rows, strategy=strategy, console=console, model=model
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
    model: BertConfig | None = None,
) -> Arithmetic:
    """Decide only by the config and the instructions of the device, without starting TensorFlow.

    Arguments are those of `settle_arithmetic`.
    """
    cpu_kernels = may_use_cpu_kernels(config, console)
    precision = choose_precision(
        config.precision, config.xla, strategy=strategy, console=console, cpu_kernels=cpu_kernels
    )
    is_divided = cpu_kernels and config.strategy == "default" and not precision.use_xla
    shards = _common_shards(rows) if is_divided else 1
    fuses_attention = choose_attention(
        config, precision, model=model, strategy=strategy, console=console
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
    """Make GPUs give the same bits in every run. Call it before TensorFlow has run anything.

    Also removes TF_XLA_FLAGS from the environment, since the cache of compiled programs that it
    configures ignores this setting and would return programs of other runs.
    """
    tf.config.experimental.enable_op_determinism()
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    os.environ.pop("TF_XLA_FLAGS", None)


def keep_arithmetic(config: LoopSection, arithmetic: Arithmetic) -> None:
    """Write the decision into the directory of a run on one device.

    A run that resumes on a processor with other instructions would otherwise compute other losses
    and, if rows are packed, other batches.
    """
    if config.strategy != "default":
        return
    path = Path(config.output) / ARITHMETIC_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {**dataclasses.asdict(arithmetic.precision), "shards": arithmetic.shards}
    if arithmetic.fuses_attention:
        document["fuses_attention"] = True
    write_sealed(path, document)


def may_use_cpu_kernels(config: LoopSection, console: Console) -> bool:
    """Return whether a run may use `bert_tf.cpu`; warn once if it cannot be loaded."""
    return config.cpu_kernels == "auto" and not has_accelerator() and is_available(console.warn)


def candidate_ways(*, shards: int, cpu_kernels: bool = True) -> list[Arithmetic]:
    """Return the candidates of a trial on CPUs: each precision, with and without XLA.

    Args:
        shards: parts of a batch in the candidates without XLA.
        cpu_kernels: whether candidates without XLA use `bert_tf.cpu`.
    """
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
    """Return the fastest candidate of a trial, or the expected one if none is clearly faster."""
    ways = candidate_ways(shards=shards, cpu_kernels=expected.cpu_kernels)
    console.info("benchmarking the fastest way to compute a step")
    seconds = dict(zip(ways, trial(ways), strict=True))
    for way in ways:
        console.info(f"  {way}: {1000 * seconds[way]:,.0f} ms")
    fastest = min(ways, key=seconds.__getitem__)
    is_clear = seconds[fastest] < _CLEARLY_FASTER * seconds[expected]
    chosen = fastest if is_clear else expected
    console.info(f"chosen: {chosen}")
    return chosen
