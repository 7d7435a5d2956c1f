"""The common keys of `train` and `finetune`."""

from __future__ import annotations

from typing import Annotated

from bert_tf.base.wording import Rates
from bert_tf.config.bert import BertConfig
from bert_tf.config.registries import REGISTRIES, TENSORBOARD
from bert_tf.config.section import (
    Fraction,
    FractionBelowOne,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    Section,
    advanced,
    option,
    optional,
)
from bert_tf.config.values import Bounds


class LoopSection(Section):
    """Keys of all jobs that train a model."""

    output: str = option("run directory to write", writes="folder")
    strategy: str = option(
        "tf.distribute strategy", choices=("default", "mirrored", "multi-worker", "tpu")
    )
    tpu_address: str | None = optional("name or address of the TPU")
    precision: str = advanced(
        "numeric precision of the layers (auto: the fastest on this machine)",
        choices=("auto", "float32", "bfloat16", "float16"),
    )
    xla: str = advanced(
        "compile the training step with XLA (auto: on TPUs and GPUs, on CPUs if a benchmark finds "
        "it faster)",
        choices=("auto", "on", "off"),
    )
    cpu_kernels: str = advanced(
        "compiled kernels for training on CPUs (auto: if they load; off: plain TensorFlow, 5 to "
        "29% slower)",
        choices=("auto", "off"),
        affects_output=False,
    )
    attention: str = advanced(
        "attention on NVIDIA GPUs: cuDNN's fused kernels, which need 16 bits, XLA and "
        "attention_probs_dropout_prob 0, or plain operations (auto: fused where it can be)",
        choices=("auto", "plain", "fused"),
    )
    deterministic: bool = advanced(
        "the same bits in every run on the same GPUs, more slowly (CPUs always give them)", False
    )
    gradient_sum: str = advanced(
        "dtype in which several GPUs exchange gradients; bfloat16 halves the messages",
        choices=("float32", "bfloat16"),
    )
    seed: int = option("random seed of initial weights, data order and dropout; any integer", 1)
    optimizer: str = advanced(
        "optimizer; use lamb for batches of thousands of sequences, stableadamw where the loss "
        "jumps (Wortsman et al. 2023)",
        choices=("adamw", "lamb", "stableadamw"),
    )
    weight_decay: NonNegativeFloat = advanced(
        "decoupled weight decay, except for LayerNorm and biases", 0.01
    )
    adam_beta_1: FractionBelowOne = advanced("beta 1 of AdamW and LAMB", 0.9)
    adam_beta_2: FractionBelowOne = advanced("beta 2 of AdamW and LAMB", 0.999)
    adam_epsilon: Annotated[float, Bounds(minimum=1e-30)] = advanced(
        "epsilon of AdamW and LAMB", 1e-6
    )
    adam_bias_correction: bool = advanced(
        "bias correction of AdamW and LAMB, which the original BERT omits", True
    )
    hidden_dropout_prob: FractionBelowOne | None = advanced(
        "dropout rate of the hidden states (default: the model's)", None
    )
    attention_probs_dropout_prob: FractionBelowOne | None = advanced(
        "dropout rate of the attention probabilities (default: the model's)", None
    )
    layer_decay: Annotated[float, Bounds(0.01, 1.0)] = advanced(
        "layer-wise learning-rate decay: the rate of each layer is that of the layer above "
        "times this factor (1: no decay)",
        1.0,
    )
    ema_decay: Annotated[float, Bounds(0.0, 0.999999)] = advanced(
        "decay of an exponential moving average of the weights, which is evaluated and saved in "
        "best/ (0: off)",
        0.0,
    )
    early_stop_evals: NonNegativeInt = advanced(
        "stop after this many evaluations without improvement (0: never)", 0
    )
    gradient_clip_norm: NonNegativeFloat = advanced(
        "maximum global norm of the gradients (0: no clipping)", 1.0
    )
    schedule: str = advanced(
        "learning-rate schedule after warmup",
        choices=("linear", "constant", "cosine", "polynomial", "trapezoidal"),
    )
    cooldown_proportion: Fraction = advanced(
        "fraction of the steps for the final linear decay to 0 of the trapezoidal schedule", 0.1
    )
    log_every: PositiveInt = advanced(
        "steps between lines in metrics.jsonl", 10, affects_output=False
    )
    report_to: tuple[str, ...] = option(
        "experiment tracker to log metrics to: tensorboard (files in the run directory), mlflow "
        "(server of MLFLOW_TRACKING_URI), wandb (needs WANDB_MODE=online to upload); repeatable",
        (TENSORBOARD,),
        choices=REGISTRIES.trackers,
        affects_output=False,
    )
    price_per_hour: NonNegativeFloat = option(
        "price of an hour of this machine, in any currency: costs are shown beside times (0: not)",
        0.0,
        affects_output=False,
    )
    watts: NonNegativeFloat = option(
        "electric power of this machine in watts: kWh are shown beside times (0: not)",
        0.0,
        affects_output=False,
    )
    checkpoint_minutes: NonNegativeFloat = advanced(
        "minutes between checkpoints (0: only use checkpoint_every)", 5.0, affects_output=False
    )
    checkpoint_every: NonNegativeInt = advanced(
        "steps between checkpoints (0: only use checkpoint_minutes)", 0, affects_output=False
    )
    keep_checkpoints: Annotated[int, Bounds(minimum=2)] = advanced(
        "number of latest checkpoints to keep", 3, affects_output=False
    )

    @property
    def rates(self) -> Rates:
        """Price and power of the machine."""
        return Rates(self.price_per_hour, self.watts)

    def check_installed(self) -> None:
        for name in self.report_to:
            REGISTRIES.trackers[name].check_installed()

    def with_dropout(self, model: BertConfig) -> BertConfig:
        """Return the model with the dropout rates that were given."""
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        rates = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return model.replace(**rates)
