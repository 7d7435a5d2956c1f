"""Which arithmetic and which compiler a run uses."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from bert_tf.base.console import Console
from bert_tf.base.processor import has_bfloat16

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
_BFLOAT16_CAPABILITY = (8, 0)


@dataclasses.dataclass(frozen=True)
class PrecisionPolicy:
    """How the step is computed.

    Attributes:
        policy: Keras dtype policy; variables and the optimizer stay in float32.
        use_xla: whether the step is compiled by XLA.
        use_kernels: whether its layers use those of `bert_tf.cpu.kernels`.
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
        """Whether gradients need loss scaling, which only float16 does."""
        return self.policy == "mixed_float16"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """How steps are computed.

    Attributes:
        precision: of the layers, and whether XLA compiles the step or layers use kernels.
        shards: parts of every batch, or micro-batch, that are computed side by side, see
            `bert_tf.cpu.cores`; they divide its rows. 1 with XLA or several replicas.
    """

    precision: PrecisionPolicy = PrecisionPolicy("float32", use_xla=False)
    shards: int = 1

    def __str__(self) -> str:
        parts = f", batches in {self.shards} parts" if self.shards > 1 else ""
        return f"{self.precision}{parts}"


def choose_precision(
    precision: str,
    xla: str,
    *,
    static_shapes: bool,
    strategy: tf.distribute.Strategy,
    console: Console,
) -> PrecisionPolicy:
    """Resolves what the config leaves to "auto", and reports the choice.

    "auto" precision is bfloat16 on TPUs, on GPUs of compute capability 8.0 and on processors with
    AVX-512 bf16 or AMX, else float32. "auto" XLA compiles on TPUs, and on GPUs where shapes are
    static. On processors oneDNN's products and fused kernels are faster.

    Args:
        precision: "auto", "float32", "bfloat16" or "float16".
        xla: "auto", "on" or "off".
        static_shapes: whether all batches have one shape; each new one costs a compilation.
        strategy: of the run.
        console: where the choice is reported.
    """
    device, is_fast = _device(strategy)
    if precision == "auto":
        precision = "bfloat16" if is_fast else "float32"
    use_xla = xla == "on"
    if xla == "auto":
        use_xla = device == "TPU" or (device == "GPU" and static_shapes)
    use_kernels = device == "CPU" and precision != "float16" and not use_xla
    chosen = PrecisionPolicy(_POLICIES[precision], use_xla, use_kernels)
    console.info(f"{device}, {chosen}")
    return chosen


def has_accelerator() -> bool:
    """Whether TensorFlow sees a GPU or a TPU."""
    return any(tf.config.list_physical_devices(kind) for kind in ("GPU", "TPU"))


def _device(strategy: tf.distribute.Strategy) -> tuple[str, bool]:
    """The kind of device and whether it is fast in bfloat16; TensorFlow does not start for that."""
    is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if is_tpu or tf.config.list_physical_devices("TPU"):
        return "TPU", True
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        return "GPU", details.get("compute_capability", (0, 0)) >= _BFLOAT16_CAPABILITY
    return "CPU", has_bfloat16()
