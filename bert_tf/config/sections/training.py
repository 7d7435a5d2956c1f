"""The sections of `train` and `finetune`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.bert import SIZES
from bert_tf.config.section import Section, option

STRATEGIES = ("default", "mirrored", "multi-worker", "tpu")
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
SCHEDULES = ("linear", "constant", "cosine", "polynomial", "trapezoidal")
OPTIMIZERS = ("adamw", "lamb")
TASKS = ("classification", "qa")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopSection(Section):
    """The keys that every training run has."""

    output: str = option("run directory to write")
    strategy: str = option("tf.distribute strategy", default="default", choices=STRATEGIES)
    tpu_address: str | None = option("name or address of the TPU", default=None)
    precision: str = option(
        "arithmetic of the layers (auto: the fastest this machine has)",
        default="auto",
        choices=PRECISIONS,
        advanced=True,
    )
    xla: str = option(
        "compile the step with XLA (auto: where it was measured to help)",
        default="auto",
        choices=("auto", "on", "off"),
        advanced=True,
    )
    seed: int = option("seed of initial weights, order and dropout", default=1)
    optimizer: str = option(
        "lamb suits batches of thousands of sequences",
        default="adamw",
        choices=OPTIMIZERS,
        advanced=True,
    )
    weight_decay: float = option(
        "decoupled weight decay, none on LayerNorm and bias",
        default=0.01,
        minimum=0.0,
        advanced=True,
    )
    adam_beta_1: float = option(
        "beta 1 of AdamW and LAMB", default=0.9, minimum=0.0, maximum=1.0, advanced=True
    )
    adam_beta_2: float = option(
        "beta 2 of AdamW and LAMB", default=0.999, minimum=0.0, maximum=1.0, advanced=True
    )
    adam_epsilon: float = option(
        "epsilon of AdamW and LAMB", default=1e-6, minimum=0.0, advanced=True
    )
    adam_bias_correction: bool = option(
        "bias correction of AdamW and LAMB, which the original BERT left out",
        default=True,
        advanced=True,
    )
    layer_decay: float = option(
        "factor on the learning rate from each layer to the one below: 1 at the head, smallest at "
        "the embeddings (1: the same rate everywhere)",
        default=1.0,
        minimum=0.01,
        maximum=1.0,
        advanced=True,
    )
    gradient_clip_norm: float = option(
        "global norm that gradients are clipped to (0: no clipping)",
        default=1.0,
        minimum=0.0,
        advanced=True,
    )
    gradient_accumulation_steps: int = option(
        "parts that a batch is computed in, one after the other, to save memory",
        default=1,
        minimum=1,
        advanced=True,
    )
    schedule: str = option(
        "decay of the learning rate after warm-up",
        default="linear",
        choices=SCHEDULES,
        advanced=True,
    )
    cooldown_proportion: float = option(
        "share of the steps of the trapezoidal schedule's linear decay to 0, at the end",
        default=0.1,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    log_every: int = option(
        "steps between lines of metrics.jsonl", default=10, minimum=1, advanced=True
    )
    checkpoint_minutes: float = option(
        "minutes between checkpoints (0: only those of checkpoint_every)",
        default=5.0,
        minimum=0.0,
        advanced=True,
    )
    checkpoint_every: int = option(
        "steps between checkpoints (0: only those of checkpoint_minutes)",
        default=0,
        minimum=0,
        advanced=True,
    )
    keep_checkpoints: int = option("newest checkpoints kept", default=3, minimum=2, advanced=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig(LoopSection):
    """Pretrains BERT on TFRecords with masked-LM and next-sentence losses."""

    section_name: ClassVar[str] = "train"

    data: str = option("directory of TFRecords made by preprocess")
    size: str | None = option("model size", default=None, choices=tuple(SIZES))
    model_config: str | None = option(
        "config.json of HuggingFace or Google instead of a size", default=None
    )
    init: str | None = option("model directory to continue from", default=None)
    steps: int = option("updates in all", default=10_000, minimum=1)
    max_minutes: float = option(
        "stop after this much training time, learning-rate decay included (0: no limit)",
        default=0.0,
        minimum=0.0,
        advanced=True,
    )
    batch_size: int = option("sequences an update, over all replicas", default=32, minimum=1)
    learning_rate: float = option("peak learning rate", default=1e-4, minimum=0.0)
    warmup_steps: int = option("steps of linear warm-up", default=0, minimum=0)
    warmup_proportion: float = option(
        "share of the steps spent on warm-up when warmup_steps is 0",
        default=0.1,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    eval_every: int = option(
        "steps between evaluations on the eval shards", default=1000, minimum=1, advanced=True
    )
    eval_examples: int = option(
        "eval examples used each time (0: all)", default=2000, minimum=0, advanced=True
    )
    steps_per_call: int = option(
        "steps run inside one call of the compiled function (0: chosen by the loop)",
        default=0,
        minimum=0,
        advanced=True,
    )

    def faults(self) -> list[str]:
        """Refuses a run whose model is named twice or not at all."""
        named = [name for name in ("size", "model_config", "init") if getattr(self, name)]
        if len(named) == 1:
            return []
        got = " and ".join("--" + name.replace("_", "-") for name in named) or "none of them"
        return [f"size: give exactly one of --size, --model-config and --init; got {got}"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneConfig(LoopSection):
    """Fine-tunes a model for a task on labelled rows."""

    section_name: ClassVar[str] = "finetune"

    task: str = option("what is learnt", choices=TASKS)
    train: str = option("training rows: CSV, TSV or JSONL; SQuAD JSON for qa")
    eval: str | None = option("rows to evaluate on, in the same format", default=None)
    init: str = option("model directory, run directory or HuggingFace folder to start from")
    text_column: str = option("column of the text", default="text")
    text_pair_column: str | None = option("column of the second text", default=None)
    label_column: str = option("column of the label", default="label")
    question_column: str = option("column of the question", default="question")
    context_column: str = option("column of the context", default="context")
    answer_column: str = option("column of the answer's text", default="answer")
    answer_start_column: str = option(
        "column of the character where the answer starts in the context",
        default="answer_start",
    )
    max_train_rows: int = option(
        "use only the first rows (0: all)", default=0, minimum=0, advanced=True
    )
    max_seq_length: int = option(
        "pieces in a sequence, with [CLS] and [SEP] (0: 128, and 384 for qa)",
        default=0,
        minimum=0,
    )
    doc_stride: int = option("pieces between windows of a long context", default=128, minimum=1)
    max_query_length: int = option("pieces kept of a question", default=64, minimum=1)
    max_answer_length: int = option("pieces in an answer", default=30, minimum=1)
    n_best_size: int = option(
        "candidate spans kept a question", default=20, minimum=1, advanced=True
    )
    null_score_diff_threshold: float = option(
        "answer nothing where the null score exceeds the best span's by more than this",
        default=0.0,
        advanced=True,
    )
    epochs: float = option("passes over the training rows", default=3.0, minimum=0.0)
    batch_size: int = option("rows an update, over all replicas", default=32, minimum=1)
    eval_batch_size: int = option("rows a batch in evaluation", default=64, minimum=1)
    learning_rate: float = option("peak learning rate", default=5e-5, minimum=0.0)
    warmup_proportion: float = option(
        "share of the steps spent on warm-up", default=0.1, minimum=0.0, maximum=1.0
    )
    hidden_dropout_prob: float | None = option(
        "dropout of the hidden states (default: the model's)",
        default=None,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    attention_probs_dropout_prob: float | None = option(
        "dropout of the attention probabilities (default: the model's)",
        default=None,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )

    @property
    def sequence_length(self) -> int:
        """Pieces in a sequence, with the task's default filled in."""
        return self.max_seq_length or (384 if self.task == "qa" else 128)
