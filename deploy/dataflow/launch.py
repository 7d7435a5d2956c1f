"""What Dataflow's launcher runs: the parameters of the flex template as `bert-pipeline preprocess`.

The launcher adds Beam's options, among them --template_location, so the command ends when it has
written the job's graph there, and the launcher submits that. The manifest is still to be written:
see deploy/README.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

import yaml

# Left out: what `runner: dataflow` stands for.
_RUNNER = "--runner="


def read_config(arguments: list[str]) -> dict[str, dict[str, object]]:
    """The config of `preprocess` that the parameters of the template and Beam's options make.

    Args:
        arguments: `--NAME=VALUE`, as the launcher passes them.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("input", "vocab", "output"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--settings", default="{}")
    given, options = parser.parse_known_args(arguments)
    settings = yaml.safe_load(given.settings)
    if settings is None:  # a parameter left empty
        settings = {}
    if not isinstance(settings, dict):
        parser.error(f"--settings={given.settings}: expected a YAML mapping, such as {{seed: 2}}")
    return {
        "preprocess": {
            **settings,
            "input": [given.input],
            "vocab": given.vocab,
            "output": given.output,
        },
        "runner": {
            "runner": "dataflow",
            "options": [
                *(option for option in options if not option.startswith(_RUNNER)),
                "--sdk_location=container",
            ],
        },
    }


def launch(arguments: list[str]) -> None:
    """Runs the command, and exits with its code."""
    from pipeline.cli.main import main

    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(read_config(arguments), file)
        file.flush()
        main(["preprocess", "--config", file.name])


if __name__ == "__main__":
    launch(sys.argv[1:])
