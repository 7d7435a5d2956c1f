"""The sections of `train` and `finetune`."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.config.bert import SIZES
from bert_tf.config.section import Section, option
from bert_tf.config.sections.data import MASKINGS, RANDOM_TOKENS

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
        "compile the step with XLA (auto: where it was measured to help); dropout's random numbers "
        "are always compiled",
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
    ema_decay: float = option(
        "decay of a moving average of the weights that is evaluated and kept in best/ "
        "(0: the weights themselves)",
        default=0.0,
        minimum=0.0,
        maximum=0.999999,
        advanced=True,
    )
    early_stop_evals: int = option(
        "end after so many evaluations without a better one than that of best/ (0: never)",
        default=0,
        minimum=0,
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
class TrainingPhase(Section):
    """A stretch of a pretraining run on data of its own; an item of `train.phases`."""

    section_name: ClassVar[str] = "phases"

    data: str | None = option("directory of TFRecords made by preprocess", default=None)
    steps: int = option("updates of the phase", default=0, minimum=0)
    share: float = option(
        "share of train.steps instead of steps", default=0.0, minimum=0.0, maximum=1.0
    )
    batch_size: int | None = option("default: train.batch_size", default=None, minimum=1)
    gradient_accumulation_steps: int | None = option(
        "default: train.gradient_accumulation_steps", default=None, minimum=1
    )
    learning_rate: float | None = option(
        "peak rate of a warm-up and decay that start anew with the phase "
        "(default: the schedule goes on)",
        default=None,
        minimum=0.0,
    )
    warmup_proportion: float = option(
        "share of the steps that a learning_rate of the phase's own is warmed up for",
        default=0.1,
        minimum=0.0,
        maximum=1.0,
    )

    def faults(self) -> list[str]:
        """Refuses a phase without data or of no length."""
        faults = [] if self.data else ["data: is missing: directory of TFRecords"]
        if bool(self.steps) == bool(self.share):
            faults.append("steps: give either steps or share, above 0")
        return faults


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig(LoopSection):
    """Pretrains BERT on TFRecords with masked-LM and next-sentence losses."""

    section_name: ClassVar[str] = "train"

    data: str | None = option("directory of TFRecords made by preprocess", alternative="phases")
    phases: tuple[TrainingPhase, ...] = option(
        "several data sets one after the other in place of data: a list of mappings with the keys "
        + ", ".join(field.name for field in dataclasses.fields(TrainingPhase)),
        default=(),
        advanced=True,
    )
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
    masking: str = option(
        "what is masked together in unmasked records (preprocess.masking=dynamic): pieces (words "
        "with whole_word_mask), n-grams or spans of words",
        default="token",
        choices=MASKINGS,
        advanced=True,
    )
    masked_lm_prob: float = option(
        "share of pieces that are masked in unmasked records",
        default=0.15,
        minimum=0.0,
        maximum=1.0,
        advanced=True,
    )
    whole_word_mask: bool = option(
        "mask all pieces of a word together in unmasked records", default=False, advanced=True
    )
    max_ngram_size: int = option(
        "words of the longest n-gram of masking=ngram", default=3, minimum=1, advanced=True
    )
    random_tokens: str = option(
        "how pieces that replace masked ones of unmasked records are drawn: all alike, or as often "
        "as the corpus has them",
        default="uniform",
        choices=RANDOM_TOKENS,
        advanced=True,
    )
    packing: str = option(
        "put several short sequences into one row, batch_size of them an update on average "
        "(auto: where that saves a sixth of the rows or more)",
        default="auto",
        choices=("auto", "on", "off"),
        advanced=True,
    )
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
        """Refuses a run whose model or data are named twice or not at all."""
        faults = []
        named = [name for name in ("size", "model_config", "init") if getattr(self, name)]
        if len(named) != 1:
            got = " and ".join("--" + name.replace("_", "-") for name in named) or "none of them"
            faults.append(f"size: give exactly one of --size, --model-config and --init; got {got}")
        return faults + (_phase_faults(self) if self.phases else [])

    def phase_steps(self) -> tuple[int, ...]:
        """Updates of every phase; of a run without phases one number."""
        if not self.phases:
            return (self.steps,)
        if not self.phases[0].share:
            return tuple(phase.steps for phase in self.phases)
        shares = [phase.share for phase in self.phases]
        ends = [round(self.steps * sum(shares[: index + 1])) for index in range(len(shares))]
        return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))

    @property
    def total_steps(self) -> int:
        """Updates in all."""
        return sum(self.phase_steps())


def _phase_faults(config: TrainConfig) -> list[str]:
    faults = []
    if config.data:
        faults.append("data: every phase has data of its own; leave --data out")
    if config.early_stop_evals:
        faults.append("early_stop_evals: a run with phases goes through all of them; set it to 0")
    if config.max_minutes:
        faults.append("max_minutes: a run with phases ends by its steps; set it to 0")
    by_share = [bool(phase.share) for phase in config.phases]
    if len(set(by_share)) > 1:
        faults.append("phases: give all of them steps or all of them a share")
    elif by_share[0] and abs(sum(phase.share for phase in config.phases) - 1.0) > 1e-6:
        total = sum(phase.share for phase in config.phases)
        faults.append(f"phases: the shares add up to {total:g}; they must add up to 1")
    elif min(config.phase_steps()) < 1:
        faults.append(f"phases: one of them has no step; the steps are {config.phase_steps()}")
    elif config.steps not in (config.total_steps, TrainConfig.steps):
        faults.append(
            f"steps: is {config.steps}, but the steps of the phases add up to "
            f"{config.total_steps}; leave it out"
        )
    return faults


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

    def faults(self) -> list[str]:
        """Refuses to stop by evaluations that there are none of, and rows too short for texts."""
        faults = []
        if self.early_stop_evals and self.eval is None:
            faults.append("early_stop_evals: needs rows to evaluate on; give --eval or set it to 0")
        least = 3 if self.text_pair_column is None else 5
        if self.task == "classification" and self.sequence_length < least:
            faults.append(
                f"max_seq_length: {self.max_seq_length} leaves no piece of a text beside [CLS] and "
                f"[SEP]; use at least {least}"
            )
        return faults

    @property
    def sequence_length(self) -> int:
        """Pieces in a sequence, with the task's default filled in."""
        return self.max_seq_length or (384 if self.task == "qa" else 128)
