"""Libraries that do not fit TensorFlow end in a line that names the version to install."""

import os
import subprocess
import sys
from importlib import metadata

import pytest
import tensorflow as tf

from bert_tf.base import libraries
from bert_tf.base.errors import UsageError

MINOR = ".".join(tf.__version__.split(".")[:2])
ENDED = "ended: "
# Each in a fork that has only imported TensorFlow, so that none meets what another one tried.
COMMANDS_IN_TURN = f"""
import os
import sys

import tensorflow

from pipeline.cli.main import main

for command in sys.argv[1:]:
    child = os.fork()
    if not child:
        main(command.split())
        sys.exit()
    _, status = os.waitpid(child, 0)
    print(f"{ENDED}{{command}}: {{os.waitstatus_to_exitcode(status)}}", flush=True)
"""


@pytest.fixture
def versions(monkeypatch):
    """Versions that packages claim to have."""
    claimed = {}
    real = metadata.version
    monkeypatch.setattr(
        libraries.metadata, "version", lambda name: claimed[name] if name in claimed else real(name)
    )
    return claimed


@pytest.fixture
def broken(monkeypatch):
    """Have the import of a module fail."""

    def break_import(module, error):
        def load(name):
            if name == module:
                raise error
            return sys.modules[name]

        monkeypatch.setattr(libraries.importlib, "import_module", load)

    return break_import


def message_of(call):
    with pytest.raises(UsageError) as raised:
        call()
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_what_fits_is_imported():
    assert libraries.import_tensorflow_text().__name__ == "tensorflow_text"
    assert libraries.import_keras_hub().__name__ == "keras_hub"


@pytest.mark.parametrize("version", ["2.3.0", "3.0.0", f"{MINOR}0.1"])
def test_another_minor_version_is_told_before_its_code_is_loaded(versions, broken, version):
    versions["tensorflow-text"] = version
    broken("tensorflow_text", AssertionError("loaded"))
    assert message_of(libraries.import_tensorflow_text) == (
        f"tensorflow-text {version} does not fit TensorFlow {tf.__version__}: their minor versions "
        f"must be equal; pip install --upgrade 'tensorflow-text=={MINOR}.*'"
    )


def test_an_undefined_symbol_is_a_line(versions, broken):
    versions["tensorflow-text"] = f"{MINOR}.0"
    library = "/usr/lib/python3/site-packages/tensorflow_text/python/metrics/_text_similarity.so"
    broken("tensorflow_text", tf.errors.NotFoundError(None, None, f"{library}: undefined symbol"))
    message = message_of(libraries.import_tensorflow_text)
    assert message.startswith(f"tensorflow-text {MINOR}.0 cannot be imported beside TensorFlow")
    assert "(NotFoundError: _text_similarity.so: undefined symbol)" in message
    assert message.endswith(f"pip install --upgrade 'tensorflow-text=={MINOR}.*'")


def test_a_keras_hub_that_cannot_be_imported_is_a_line(versions, broken):
    versions["keras-hub"] = "9.9"
    broken("keras_hub", ImportError("cannot import name 'x'\nfrom keras"))
    message = message_of(libraries.import_keras_hub)
    assert message.startswith("KerasHub 9.9 cannot be imported beside TensorFlow")
    assert message.endswith(f"presets need: pip install --upgrade '{libraries.KERAS_HUB_VERSIONS}'")


@pytest.mark.slow
def test_commands_and_doctor_say_it_without_a_traceback(tmp_path):
    """A package stands in for tensorflow_text and fails as 2.21.0 does."""
    package = tmp_path / "tensorflow_text"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import tensorflow as tf\n"
        "raise tf.errors.NotFoundError(None, None, 'undefined symbol: _ZN')\n"
    )
    (tmp_path / "a.txt").write_text("The lamp was on.\n")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n")
    commands = {
        "preprocess --input a.txt --vocab vocab.txt --output data": 2,
        "doctor": 1,
    }
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS_IN_TURN, *commands],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    shown = done.stdout.split(ENDED)
    assert len(shown) == len(commands) + 1
    for said, (command, code) in zip(shown, commands.items(), strict=False):
        assert f"{ENDED}{command}: {code}\n" in done.stdout, done.stdout
        assert "Traceback" not in said
        assert "cannot be imported beside TensorFlow" in said
        assert f"pip install --upgrade 'tensorflow-text=={MINOR}.*'" in said
