"""Run by test_loop_replicas.py in its own process, since devices are configured once a process.

    python replicas.py mirrored RUNS TASK...      two logical processors, or REPLICAS of them
    python replicas.py multi-worker RUNS TASK...  one of two workers, named by TF_CONFIG

Trains tasks one after the other, each with run directory RUNS/TASK: `adamw` and `lamb` are the
regression task with these optimizers, `packed` and `packed-xla` pretraining on packed rows,
`packed-gpus` and `packed-gpus-bfloat16` as on GPUs, the latter with gradients summed so. Prints
a JSON object: `chief`, and by task what `trained_numbers` gives.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import tensorflow as tf

sys.path.append(str(Path(__file__).parents[1]))


_PACKED = {
    "packed": {"accumulation_steps": 2},
    "packed-xla": {"use_xla": True},
    "packed-gpus": {"as_on_gpus": True, "ema_decay": 0.9},
    "packed-gpus-bfloat16": {"as_on_gpus": True, "gradient_sum": "bfloat16"},
}


def regression_numbers(loop, strategy):
    """Trains; the last train line, an evaluation, and the norm of a kernel's average."""
    from behavior.regression_task import Numbers, SquaredError

    from bert_tf.training.evaluation import Evaluation

    evaluation = Evaluation(
        model=loop.training_step.model,
        loss=SquaredError(),
        strategy=strategy,
        make_dataset=lambda: Numbers().batches(100).take(3),
    )
    names = ("step", "loss", "gradient_norm", "absolute_error")
    result = loop.run()
    return {
        "train": {name: result.train[name] for name in names},
        "eval": evaluation.run(),
        "average": {"kernel": float(tf.norm(loop.variables["average/0000"]))},
    }


def rows_read(strategy, batches=5, batch_rows=8):
    """Return the numbers of the rows that each replica of this process reads, by step."""
    from bert_tf.training.distribution import distributed_iterator

    def dataset():
        rows = tf.range(batches * batch_rows)
        numbers = tf.data.Dataset.from_tensor_slices({"row": rows})
        return numbers.batch(batch_rows, drop_remainder=True)

    steps = []
    for batch in distributed_iterator(strategy, dataset):
        replicas = strategy.experimental_local_results(batch["row"])
        steps.append([rows.numpy().tolist() for rows in replicas])
    return steps


def trained_numbers(task, strategy, run_directory):
    """Return a regression's `regression_numbers`.

    Of pretraining, how often a step was traced and which step was resumed from.
    """
    if task == "rows":
        return rows_read(strategy)

    from behavior.packed_task import make_packed_loop
    from behavior.regression_task import make_loop

    if not task.startswith("packed"):
        loop = make_loop(
            strategy,
            accumulation_steps=2,
            run_directory=run_directory,
            optimizer=task,
            ema_decay=0.9,
        )
        return regression_numbers(loop, strategy)
    with tempfile.TemporaryDirectory() as folder:
        loop = make_packed_loop(
            Path(folder),
            strategy,
            run_directory=run_directory,
            **_PACKED[task],
        )
        resumed_from = loop.run().resumed_from
    return {"traces": loop.training_step.trace_counts(), "resumed_from": resumed_from}


def main(name, runs, *tasks):
    replicas = int(os.environ.get("REPLICAS", "2"))
    if name == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * replicas,
        )
    from bert_tf.base.console import Console
    from bert_tf.training.distribution import WorkerSync, is_chief, make_strategy

    strategy = make_strategy(name, None, Console())
    assert strategy.num_replicas_in_sync == replicas
    numbers = {task: trained_numbers(task, strategy, Path(runs, task)) for task in tasks}
    # What workers measure by themselves differs; the chief has measured a third.
    own = {"measure": 1 / 3 if is_chief(strategy) else 0.75}
    numbers["agreed"], _ = WorkerSync(strategy).of_chief(own, {})
    sys.stdout.write("\n" + json.dumps({"chief": is_chief(strategy), **numbers}))


if __name__ == "__main__":
    main(*sys.argv[1:])
