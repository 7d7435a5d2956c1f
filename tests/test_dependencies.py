"""What is relied on in other packages that they may change without notice, and the caps on them.

After an upgrade the first failure here names what broke; then mend the file it names, raise the cap
in pyproject.toml, and let `make lock` resolve the versions anew.
"""

import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import keras
import keras_hub
import pytest
import tensorflow as tf
from packaging.requirements import Requirement
from packaging.version import Version

from bert_tf.base.libraries import KERAS_HUB_VERSIONS
from bert_tf.training.optimizers import StepOptimizer

ROOT = Path(__file__).parents[1]
CAPPED = ("keras", "keras-hub", "numba")
# Names of keras.optimizers.Optimizer that bert_tf/training/optimizers.py overrides or calls,
# and the parameters it counts on.
OPTIMIZER_NAMES = {
    "_distributed_tf_update_step": ["self", "distribution", "grads_and_vars", "learning_rate"],
    "_all_reduce_sum_gradients": ["self", "grads_and_vars"],
    "_get_variable_index": ["self", "variable"],
}
# Names of a block of KerasHub's BERT that bert_tf/weights/keras_hub_preset.py reads.
BLOCK_NAMES = (
    "_self_attention_layer",
    "_self_attention_layer_norm",
    "_feedforward_intermediate_dense",
    "_feedforward_output_dense",
    "_feedforward_layer_norm",
)
ATTENTION_NAMES = ("query_dense", "key_dense", "value_dense", "output_dense")
LAYERS = {
    "token_embedding": "embeddings",
    "position_embedding": "position_embeddings",
    "segment_embedding": "embeddings",
    "embeddings_layer_norm": "gamma",
    "transformer_layer_0": "variables",
    "pooled_dense": "kernel",
}


def requirements():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = map(Requirement, project["dependencies"])
    return {requirement.name: requirement.specifier for requirement in found}


def locked():
    pins = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return dict(pins)


def test_the_lock_satisfies_every_requirement():
    pins = locked()
    unmet = {
        name: f"{pins.get(name)} is locked, pyproject.toml wants {specifier}"
        for name, specifier in requirements().items()
        if name not in pins or pins[name] not in specifier
    }
    assert unmet == {}, "run `make lock`"


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-weights.lock", "deploy/requirements-gpu.lock"]
)
def test_every_locked_package_has_a_version_and_hashes(lock):
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip())
    packages = [entry for entry in entries if not entry.startswith("#")]
    pinned = re.compile(r"[\w.-]+(\[[\w,-]+\])?==\S+|[\w.-]+ @ https://\S+")
    assert packages
    assert [entry for entry in packages if not pinned.match(entry)] == []
    assert [entry for entry in packages if "--hash=sha256:" not in entry] == []


def test_no_dependency_but_a_tool_has_a_license_that_spreads():
    """`docs/licenses.md`, which `python docs/make_licenses.py` writes, is checked in test_docs."""
    page = (ROOT / "docs" / "licenses.md").read_text()
    rows = dict(re.findall(r"^\| ([\w.-]+) \| (.+) \|$", page, re.MULTILINE))
    only = {name for name in rows if "GPL" in rows[name] and " OR " not in rows[name]}
    assert len(rows) > 100 and only <= {"codespell"}


@pytest.mark.parametrize("name", CAPPED)
def test_packages_with_private_names_in_use_are_capped(name):
    operators = {part.operator for part in requirements()[name]}
    assert "<" in operators, f"{name} is not capped, but names it may change are used"


@pytest.mark.parametrize("name", OPTIMIZER_NAMES)
def test_keras_has_the_names_that_the_optimizer_overrides(name):
    found = getattr(keras.optimizers.Optimizer, name, None)
    what = f"Keras {version('keras')}: Optimizer.{name} (bert_tf/training/optimizers.py)"
    assert found is not None, f"{what} is gone"
    assert list(inspect.signature(found).parameters) == OPTIMIZER_NAMES[name], f"{what} has changed"


def test_numba_asks_locators_of_its_cache_for_stamps():
    from numba.core import caching

    what = f"Numba {version('numba')}: numba.core.caching (bert_tf/base/compiled.py)"
    for locator in getattr(caching.CacheImpl, "_locator_classes", []):
        assert hasattr(locator, "from_function"), f"{what} makes locators in another way"
        assert hasattr(locator, "get_source_stamp"), f"{what} has no stamps"
    assert caching.CacheImpl._locator_classes, f"{what} has no list of locators"


class Recording(StepOptimizer):
    """Notes which of the overridden methods Keras calls."""

    def __init__(self):
        super().__init__(name="recording", beta_1=0.9, beta_2=0.9, epsilon=1e-6, weight_decay=0.0)
        self.called = set()

    def _distributed_tf_update_step(self, *arguments):
        self.called.add("_distributed_tf_update_step")
        return super()._distributed_tf_update_step(*arguments)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        self.called.add("_all_reduce_sum_gradients")
        return super()._all_reduce_sum_gradients(grads_and_vars)

    def update_variable(self, variable, index, gradient, scalars):
        self.called.add("update_variable")


def test_keras_calls_what_the_optimizer_overrides():
    optimizer = Recording()
    variable = keras.Variable([1.0, 2.0])
    optimizer.build([variable])
    optimizer.prepare_step(tf.constant(1.0), tf.constant(0.1))
    optimizer.apply([tf.ones(2)])
    missing = {
        "_distributed_tf_update_step", "_all_reduce_sum_gradients", "update_variable"
    } - optimizer.called  # fmt: skip
    assert not missing, (
        f"Keras {version('keras')} no longer calls Optimizer.{', '.join(sorted(missing))}, so "
        "bert_tf/training/optimizers.py updates nothing as it means to"
    )


@pytest.fixture(scope="module")
def backbone():
    return keras_hub.models.BertBackbone(
        vocabulary_size=8, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4,
        max_sequence_length=4,
    )  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_keras_hub_has_the_layers_that_presets_are_read_from(backbone, name):
    what = f"KerasHub {version('keras-hub')}: BertBackbone's layer {name}"
    where = "(bert_tf/weights/keras_hub_preset.py)"
    assert name in {layer.name for layer in backbone.layers}, f"{what} is gone {where}"
    assert hasattr(backbone.get_layer(name), LAYERS[name]), f"{what} has no {LAYERS[name]} {where}"


@pytest.mark.parametrize("name", BLOCK_NAMES)
def test_keras_hub_has_the_names_that_presets_are_read_from(backbone, name):
    what = f"KerasHub {version('keras-hub')}: TransformerEncoder.{name}"
    where = "(bert_tf/weights/keras_hub_preset.py)"
    part = getattr(backbone.get_layer("transformer_layer_0"), name, None)
    assert part is not None, f"{what} is gone {where}"
    if name == "_self_attention_layer":
        lost = [dense for dense in ATTENTION_NAMES if not hasattr(part, dense)]
        assert not lost, f"{what} has no {', '.join(lost)} {where}"


def test_the_versions_of_keras_hub_in_messages_are_those_installed():
    asked = Requirement(KERAS_HUB_VERSIONS)
    assert asked.specifier == requirements()["keras-hub"]


def test_make_parity_runs_the_oldest_and_the_newest_keras_hub():
    makefile = (ROOT / "Makefile").read_text()
    (versions,) = re.findall(r"^KERAS_HUB_VERSIONS := (.*)$", makefile, re.MULTILINE)
    oldest, newest = versions.split()
    (lowest,) = (part for part in requirements()["keras-hub"] if part.operator == ">=")
    assert Version(oldest) == Version(lowest.version)
    assert newest == locked()["keras-hub"]  # which `make lock` raises as far as allowed


def test_a_version_of_tensorflow_text_that_does_not_import_is_excluded():
    assert "2.21.0" not in requirements()["tensorflow-text"]
    assert "2.21.1" in requirements()["tensorflow-text"]


def test_xla_modules_can_be_put_into_compiled_functions():
    """bert_tf/xla/cudnn.py calls cuDNN's attention so; the module is not public."""
    from tensorflow.compiler.tf2xla.python import xla

    names = {"version", "module", "Tout", "Sout", "platforms", "disabled_checks"}
    assert names <= set(inspect.signature(xla.call_module).parameters)
    assert callable(xla.optimization_barrier), "bert_tf/xla/barrier.py does without, at a cost"
