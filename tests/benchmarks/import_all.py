"""Imports the scripts of a folder one after the other, each as a process of its own would.

Prints a line of JSON: the scripts that cannot be imported here, with the module that is missing.
"""

import importlib
import json
import os
import sys
from pathlib import Path


def main() -> None:
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    environment = dict(os.environ)
    missing = {}
    for script in sorted(folder.glob("*.py")):
        try:
            importlib.import_module(script.stem)
        except ModuleNotFoundError as error:
            missing[script.name] = error.name
        os.environ.clear()
        os.environ.update(environment)
    sys.stdout.write(json.dumps(missing) + "\n")


main()
