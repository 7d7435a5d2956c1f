"""Libraries that only fit some versions of TensorFlow; errors name the version to install."""

from __future__ import annotations

import importlib
import re
from importlib import metadata
from types import ModuleType

from bert_tf.base.errors import UsageError

# Keep in step with pyproject.toml.
KERAS_HUB_VERSIONS = "keras-hub>=0.21,<0.33"
_LONGEST_REASON = 120  # characters; names of symbols are long
_FOLDERS = re.compile(r"/\S+/")  # before the name of a shared library


def import_tensorflow_text() -> ModuleType:
    """Import tensorflow_text, whose C++ code only fits TensorFlow of the same minor version.

    Others fail with an undefined symbol, or crash when they are used.

    Raises:
        UsageError: it does not fit, or cannot be imported.
    """
    import tensorflow as tf

    minor = ".".join(tf.__version__.split(".")[:2])
    cure = f"pip install --upgrade 'tensorflow-text=={minor}.*'"
    version = _version("tensorflow-text")
    if version is not None and not version.startswith(f"{minor}."):
        raise UsageError(
            f"tensorflow-text {version} does not fit TensorFlow {tf.__version__}: their minor "
            f"versions must be equal; {cure}"
        )
    return _import("tensorflow_text", f"tensorflow-text {version or ''}", cure)


def import_keras_hub() -> ModuleType:
    """Import KerasHub, which only presets need.

    Raises:
        UsageError: this version cannot be imported beside this TensorFlow.
    """
    import_tensorflow_text()  # KerasHub imports it, too
    name = f"KerasHub {_version('keras-hub') or ''}"
    return _import("keras_hub", name, f"presets need: pip install --upgrade '{KERAS_HUB_VERSIONS}'")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # or built from source under another name
        return None


def _import(module: str, name: str, cure: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:  # TensorFlow raises its own kinds for a library it cannot load
        import tensorflow as tf

        line = next(iter(str(error).splitlines()), "")
        reason = f"{type(error).__name__}: {_FOLDERS.sub('', line)}"[:_LONGEST_REASON]
        raise UsageError(
            f"{name.strip()} cannot be imported beside TensorFlow {tf.__version__} ({reason}); "
            f"{cure}"
        ) from error
