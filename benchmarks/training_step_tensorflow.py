"""The TensorFlow sides of benchmarks/training_step.py.

    python benchmarks/training_step_tensorflow.py SIDE SETTINGS

SIDE is `ours` for the step as `bert-pipeline train` runs it, `keras-hub` or `keras-hub-xla` for
KerasHub's BertMaskedLM under `fit`, without and with XLA, or `matmul` for the matrix
multiplications of only a forward pass. For the protocol see side.py.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.cli.startup import keep_freed_memory

if TYPE_CHECKING:
    from bert_tf.pretraining.step_trial import StepShape

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

Turn = Callable[[], dict[str, float]]


def shape_of(settings: dict) -> StepShape:
    from bert_tf.pretraining.step_trial import StepShape

    return StepShape(
        rows=settings["batch_size"],
        length=settings["length"],
        predictions=settings["predictions"],
    )


def our_steps(settings: dict) -> tuple[Callable[[int], None], float]:
    """Run steps of `TrainingStep`, with the arithmetic that `train` chooses by the processor.

    Returns:
        What runs some steps, and the operations of one by `ModelFlops`, in 1e9.
    """
    import tensorflow as tf

    from bert_tf.base.console import Console
    from bert_tf.config.bert import BertConfig
    from bert_tf.cpu.cores import divide_cores_among_parts, row_shards
    from bert_tf.models.model_flops import ModelFlops
    from bert_tf.pretraining.step_trial import steps_of
    from bert_tf.training.arithmetic import Arithmetic, choose_precision

    precision = choose_precision(
        settings["precision"],
        settings["xla"],
        strategy=tf.distribute.get_strategy(),
        console=Console(),
    )
    shards = 1 if precision.use_xla else row_shards(settings["batch_size"])
    if shards > 1:
        divide_cores_among_parts()
    config = BertConfig(
        vocab_size=settings["vocab_size"],
        hidden_size=settings["width"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["width"] // 64,
        intermediate_size=4 * settings["width"],
        hidden_act="gelu_new",
        hidden_dropout_prob=settings["dropout"],
        attention_probs_dropout_prob=settings["dropout"],
    )
    run = steps_of(config, Arithmetic(precision=precision, shards=shards), shape_of(settings))
    flops = ModelFlops.of_encoder(config).flops(
        tokens=settings["length"],
        examples=1,
        squared_lengths=settings["length"] ** 2,
        predictions=settings["predictions"],
    )
    return run, settings["batch_size"] * float(flops) / 1e9


def keras_hub_steps(settings: dict, *, xla: bool) -> Callable[[int], None]:
    """Run steps of Keras' `fit`; KerasHub's model has no next-sentence loss."""
    import keras
    import keras_hub
    import tensorflow as tf

    from bert_tf.pretraining.step_trial import full_batch

    policies = {"bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=settings["vocab_size"],
        num_layers=settings["layers"],
        num_heads=settings["width"] // 64,
        hidden_dim=settings["width"],
        intermediate_dim=4 * settings["width"],
        dropout=settings["dropout"],
        dtype=policies.get(settings["precision"], "float32"),
    )
    model = keras_hub.models.BertMaskedLM(backbone)
    model.compile(
        optimizer=keras.optimizers.AdamW(1e-4, weight_decay=0.01, epsilon=1e-6),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[],
        jit_compile=xla,
    )
    batch = full_batch(shape_of(settings), settings["vocab_size"])
    inputs = {
        "token_ids": batch["input_word_ids"],
        "segment_ids": batch["input_type_ids"],
        "padding_mask": batch["input_mask"],
        "mask_positions": batch["masked_lm_positions"],
    }
    batches = tf.data.Dataset.from_tensors((inputs, batch["masked_lm_ids"])).repeat().prefetch(2)

    def run(steps: int) -> None:
        model.fit(batches, steps_per_epoch=steps, epochs=1, verbose=0, shuffle=False)

    return run


def matmul_turn(settings: dict) -> dict[str, float]:
    """GFLOP/s of the matrix multiplications that a forward pass spends its time on."""
    import tensorflow as tf

    width, tokens = settings["width"], settings["batch_size"] * settings["length"]
    masked = settings["batch_size"] * settings["predictions"]
    shapes = [(tokens, width, 3 * width), (tokens, width, width)]
    shapes += [(tokens, width, 4 * width), (tokens, 4 * width, width)]
    shapes = shapes * settings["layers"] + [(masked, width, settings["vocab_size"])]
    dtype = tf.bfloat16 if settings["precision"] == "bfloat16" else tf.float32
    factors = {
        shape: (tf.ones(shape[:2], dtype), tf.ones(shape[1:], dtype)) for shape in set(shapes)
    }
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        for shape in shapes:
            tf.matmul(*factors[shape])
        seconds = time.perf_counter() - start
        best = max(best, sum(2 * a * b * c for a, b, c in shapes) / seconds / 1e9)
    return {"gigaflops": best}


def make_turn(side: str, settings: dict) -> Turn:
    """Return the function that a side runs when it is its turn."""
    if side == "matmul":
        return lambda: matmul_turn(settings)
    work: dict[str, float] = {}
    if side == "ours":
        run, work["giga_operations"] = our_steps(settings)
    else:
        run = keras_hub_steps(settings, xla=side == "keras-hub-xla")
    run(1)
    run(settings["steps"])

    def turn() -> dict[str, float]:
        run(settings["steps"])  # not counted: waiting may have cost a process its memory
        wall, processor = time.perf_counter(), time.process_time()
        run(settings["steps"])
        return {
            "seconds": (time.perf_counter() - wall) / settings["steps"],
            "processor_seconds": (time.process_time() - processor) / settings["steps"],
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            **work,
        }

    return turn


def main() -> None:
    side, settings = sys.argv[1], json.loads(sys.argv[2])
    if side == "ours":
        keep_freed_memory()
    turn = make_turn(side, settings)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(turn()), flush=True)


if __name__ == "__main__":
    main()
