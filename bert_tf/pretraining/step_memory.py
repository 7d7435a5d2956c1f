"""How much memory a step of pretraining takes, by formula.

Of each kind of tensor the formula knows how many numbers there are; the bytes that each of them
takes at the peak of a step, copies and gradients on the way included, are measured
(`benchmarks/step_memory.py`).
"""

from __future__ import annotations

import dataclasses

from bert_tf.base.wording import gigabytes
from bert_tf.config.bert import BertConfig
from bert_tf.pretraining.step_trial import StepShape
from bert_tf.training.devices.precision import PrecisionPolicy

_FLOAT = 4  # bytes of a weight and of each number that the optimizer keeps for it
_MOMENTS = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class _PeakBytes:
    """Bytes at the peak of a step.

    Attributes:
        libraries: TensorFlow, this program, and what compiling leaves.
        gradient: for each weight.
        accumulated: for each weight more where gradients of micro-batches are added up.
        block: for each number of a block's output, all blocks but the last.
        ends: for each number of a hidden state, for embeddings and the last block together.
        block_dropout: of both of these, for dropout.
        score: for each of attention's scores, all blocks but the last.
        score_dropout: of that, for dropout.
        logit: for each score of an entry of the vocabulary.
    """

    libraries: float
    gradient: float
    accumulated: float
    block: float
    ends: float
    block_dropout: float
    score: float
    score_dropout: float
    logit: float


# Least squares over the peaks of 44 processes (docs/training.md), and of 34 for those with kernels,
# rounded.
_COMPILED = _PeakBytes(
    libraries=1.09e9, gradient=5, accumulated=20, block=94, ends=21, block_dropout=5,
    score=14, score_dropout=10, logit=13,
)  # fmt: skip
_FLOAT32 = _PeakBytes(
    libraries=0.89e9, gradient=17, accumulated=18, block=82, ends=37, block_dropout=10,
    score=9, score_dropout=4, logit=9.5,
)  # fmt: skip
_SIXTEEN_BIT = _PeakBytes(
    libraries=0.92e9, gradient=15, accumulated=14, block=40, ends=38, block_dropout=10,
    score=9, score_dropout=4, logit=10.5,
)  # fmt: skip
_FLOAT32_KERNELS = _PeakBytes(
    libraries=0.91e9, gradient=12, accumulated=17, block=71, ends=0, block_dropout=6,
    score=17, score_dropout=1, logit=17,
)  # fmt: skip
_SIXTEEN_BIT_KERNELS = _PeakBytes(
    libraries=0.93e9, gradient=16, accumulated=15, block=29, ends=0, block_dropout=5,
    score=10, score_dropout=1, logit=19,
)  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepMemory:
    """Bytes at the peak of a step.

    Attributes:
        libraries: of the process before it trains, on processors.
        weights: of the model.
        optimizer: moments, and the average of the weights if there is one.
        gradients: of the weights.
        activations: what the backward pass reads of the forward pass, the logits aside.
        logits: of masked tokens.
    """

    libraries: float
    weights: float
    optimizer: float
    gradients: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        """All of it."""
        return sum(dataclasses.astuple(self))

    def __str__(self) -> str:
        parts = ", ".join(
            f"{field.name} {gigabytes(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name)
        )
        return f"about {gigabytes(self.total)} GB ({parts})"


def step_memory(
    model: BertConfig,
    shape: StepShape,
    precision: PrecisionPolicy,
    *,
    micro_batches: int = 1,
    replicas: int = 1,
    local_replicas: int = 1,
    has_average: bool = False,
    is_accelerator: bool = False,
) -> StepMemory:
    """The memory of a step.

    Args:
        model: its shape; its dropout counts.
        shape: of the whole batch.
        precision: of the layers, and whether XLA compiles the step or layers use kernels. XLA on
            processors computes 16-bit numbers in float32.
        micro_batches: that the batch is computed in, one after the other.
        replicas: that compute a part of the batch each.
        local_replicas: of them, those that share the memory.
        has_average: whether an average of the weights is kept.
        is_accelerator: whether that is the memory of a GPU, not the one that libraries take.
    """
    is_wide = precision.policy == "float32"
    compiled = precision.use_xla and (is_wide or not is_accelerator)
    if precision.use_kernels:
        peak = _FLOAT32_KERNELS if is_wide else _SIXTEEN_BIT_KERNELS
    else:
        peak = _COMPILED if compiled else _FLOAT32 if is_wide else _SIXTEEN_BIT
    rows = shape.rows * local_replicas / (replicas * micro_batches)
    weights = local_replicas * parameter_count(model)
    blocks = model.num_hidden_layers - 1
    states = rows * shape.length * model.hidden_size
    scores = rows * model.num_attention_heads * shape.length**2 * blocks
    block = peak.block - (0 if model.hidden_dropout_prob else peak.block_dropout)
    ends = peak.ends - (0 if model.hidden_dropout_prob else peak.block_dropout)
    score = peak.score - (0 if model.attention_probs_dropout_prob else peak.score_dropout)
    return StepMemory(
        libraries=0 if is_accelerator else peak.libraries,
        weights=_FLOAT * weights,
        optimizer=_FLOAT * (_MOMENTS + has_average) * weights,
        gradients=(peak.gradient + (micro_batches > 1) * peak.accumulated) * weights,
        activations=(blocks * block + ends) * states + score * scores,
        logits=peak.logit * rows * shape.predictions * model.vocab_size,
    )


def parameter_count(model: BertConfig) -> int:
    """Weights of the encoder, its pooler and the heads of pretraining."""
    hidden = model.hidden_size
    dense = hidden * hidden + hidden
    masked_lm = dense + 2 * hidden + model.vocab_size
    return model.encoder_parameters + dense + masked_lm + 2 * hidden + 2
