"""The common keys of `train` and `finetune`."""

from __future__ import annotations

import dataclasses

from bert_tf.config.bert import BertConfig
from bert_tf.config.registries import REGISTRIES, TENSORBOARD
from bert_tf.config.section import Section, option

STRATEGIES = ("default", "mirrored", "multi-worker", "tpu")
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
SCHEDULES = ("linear", "constant", "cosine", "polynomial", "trapezoidal")
OPTIMIZERS = ("adamw", "lamb")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopSection(Section):
    output: str = option("run directory to write", writes="folder")
    strategy: str = option("tf.distribute strategy", default="default", choices=STRATEGIES)
    tpu_address: str | None = option("name or address of the TPU", default=None)
    precision: str = option(
        "numeric precision of the layers (auto: the fastest on this machine)",
        default="auto",
        choices=PRECISIONS,
        advanced=True,
    )
    xla: str = option(
        "compile the training step with XLA (auto: on TPUs, on GPUs with fixed shapes, on CPUs "
        "if a benchmark finds it faster)",
        default="auto",
        choices=("auto", "on", "off"),
        advanced=True,
    )
    cpu_kernels: str = option(
        "compiled kernels for training on CPUs (auto: if they load; off: plain TensorFlow, 5 to "
        "29% slower)",
        default="auto",
        choices=("auto", "off"),
        advanced=True,
        affects_output=False,
    )
    seed: int = option(
        "random seed of initial weights, data order and dropout; any integer", default=1
    )
    optimizer: str = option(
        "optimizer; use lamb for batches of thousands of sequences",
        default="adamw",
        choices=OPTIMIZERS,
        advanced=True,
    )
    weight_decay: float = option(
        "decoupled weight decay, except for LayerNorm and biases",
        default=0.01,
        minimum=0.0,
        advanced=True,
    )
    adam_beta_1: float = option(
        "beta 1 of AdamW and LAMB", default=0.9, minimum=0.0, below=1.0, advanced=True
    )
    adam_beta_2: float = option(
        "beta 2 of AdamW and LAMB", default=0.999, minimum=0.0, below=1.0, advanced=True
    )
    adam_epsilon: float = option(
        "epsilon of AdamW and LAMB", default=1e-6, minimum=1e-30, advanced=True
    )
    adam_bias_correction: bool = option(
        "bias correction of AdamW and LAMB, which the original BERT omits",
        default=True,
        advanced=True,
    )
    hidden_dropout_prob: float | None = option(
        "dropout rate of the hidden states (default: the model's)",
        default=None,
        minimum=0.0,
        below=1.0,
        advanced=True,
    )
    attention_probs_dropout_prob: float | None = option(
        "dropout rate of the attention probabilities (default: the model's)",
        default=None,
        minimum=0.0,
        below=1.0,
        advanced=True,
    )
    layer_decay: float = option(
        "layer-wise learning-rate decay: the rate of each layer is that of the layer above "
        "times this factor (1: no decay)",
        default=1.0,
        minimum=0.01,
        maximum=1.0,
        advanced=True,
    )
    ema_decay: float = option(
        "decay of an exponential moving average of the weights, which is evaluated and saved in "
        "best/ (0: off)",
        default=0.0,
        minimum=0.0,
        maximum=0.999999,
        advanced=True,
    )
    early_stop_evals: int = option(
        "stop after this many evaluations without improvement (0: never)",
        default=0,
        minimum=0,
        advanced=True,
    )
    gradient_clip_norm: float = option(
        "maximum global norm of the gradients (0: no clipping)",
        default=1.0,
        minimum=0.0,
        advanced=True,
    )
    schedule: str = option(
        "learning-rate schedule after warm-up",
        default="linear",
        choices=SCHEDULES,
        advanced=True,
    )
    cooldown_proportion: float = option(
        "fraction of the steps for the final linear decay to 0 of the trapezoidal schedule",
        default=0.1,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    log_every: int = option(
        "steps between lines in metrics.jsonl",
        default=10,
        minimum=1,
        advanced=True,
        affects_output=False,
    )
    report_to: tuple[str, ...] = option(
        "experiment tracker to log metrics to: tensorboard (files in the run directory), mlflow "
        "(server of MLFLOW_TRACKING_URI), wandb (needs WANDB_MODE=online to upload); repeatable",
        default=(TENSORBOARD,),
        choices=REGISTRIES.trackers,
        affects_output=False,
    )
    checkpoint_minutes: float = option(
        "minutes between checkpoints (0: only those of checkpoint_every)",
        default=5.0,
        minimum=0.0,
        advanced=True,
        affects_output=False,
    )
    checkpoint_every: int = option(
        "steps between checkpoints (0: only those of checkpoint_minutes)",
        default=0,
        minimum=0,
        advanced=True,
        affects_output=False,
    )
    keep_checkpoints: int = option(
        "number of latest checkpoints to keep",
        default=3,
        minimum=2,
        advanced=True,
        affects_output=False,
    )

    def check_installed(self) -> None:
        for name in self.report_to:
            REGISTRIES.trackers[name].check_installed()

    def with_dropout(self, model: BertConfig) -> BertConfig:
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return model.replace(**given)
