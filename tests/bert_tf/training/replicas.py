"""Run by test_replicas.py in its own process, since devices are configured once a process.

    python replicas.py mirrored adamw            two logical processors
    python replicas.py multi-worker adamw [RUN]  one of two workers, named by TF_CONFIG

Prints a JSON object: the last train line, the eval line, and the norm of a kernel's average.
"""

import json
import sys
from pathlib import Path

import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parent))


def main(name: str, optimizer: str, run_directory: str | None) -> None:
    if name == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * 2,
        )
    from regression_task import Numbers, SquaredError, make_loop

    from bert_tf.config.console import Console
    from bert_tf.training.evaluation import Evaluation
    from bert_tf.training.strategy import is_chief, make_strategy

    strategy = make_strategy(name, None, Console())
    assert strategy.num_replicas_in_sync == 2
    directory = Path(run_directory) if run_directory else None
    loop = make_loop(
        strategy,
        accumulation_steps=2,
        run_directory=directory,
        optimizer=optimizer,
        ema_decay=0.9,
    )
    evaluation = Evaluation(
        model=loop._compiled._model,
        loss=SquaredError(),
        strategy=strategy,
        make_dataset=lambda: Numbers().batches(100).take(3),
    )
    result = loop.run()
    names = ("step", "loss", "gradient_norm", "absolute_error")
    sys.stdout.write(
        json.dumps(
            {
                "chief": is_chief(strategy),
                "train": {name: result.train[name] for name in names},
                "eval": evaluation.run(),
                "average": {"kernel": float(tf.norm(loop._variables["average/0000"]))},
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
