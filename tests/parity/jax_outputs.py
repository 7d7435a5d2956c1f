"""Computes the outputs of our models on Keras' JAX backend, for test_jax.py to compare with.

    PYTHONPATH=.:tests/parity python tests/parity/jax_outputs.py REFERENCE OUTPUT

REFERENCE is a folder of make_reference.py. OUTPUT gets a file a case with the outputs of one
compiled call (`output/…`), the gradients of the sum of their squares (`gradient/…` by path in the
model), what training mode says, and the weights written out again. Needs jax, keras, safetensors.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np
from jax import numpy as jnp
from parity_models import MODELS

from bert_tf.base.errors import UsageError
from bert_tf.models.encoder import BertEncoder
from bert_tf.models.heads import BertPretrainingModel, BertQuestionAnswerer
from bert_tf.weights.model_directory import (
    load_weights,
    read_model_directory,
    write_model_directory,
)


def call_arguments(model: keras.Model, inputs: dict[str, np.ndarray]) -> tuple[tuple, dict]:
    """How a model is called: the encoder by its own names, models with heads by a dictionary."""
    if not isinstance(model, BertEncoder):
        return (inputs,), {}
    return (inputs["input_word_ids"],), {
        "input_type_ids": inputs["input_type_ids"],
        "attention_mask": inputs["input_mask"],
        "output_hidden_states": True,
    }


def named_outputs(model: keras.Model, outputs: object) -> dict[str, jax.Array]:
    """Outputs by the names of make_reference.py."""
    if isinstance(model, BertEncoder):
        hidden_states = jnp.stack(outputs["hidden_states"])
        return {"hidden_states": hidden_states, "pooled_output": outputs["pooled_output"]}
    if isinstance(model, BertPretrainingModel):
        return outputs
    if isinstance(model, BertQuestionAnswerer):
        return dict(zip(("start_logits", "end_logits"), outputs, strict=True))
    return {"logits": outputs}


def outputs_and_gradients(
    model: keras.Model, inputs: dict[str, np.ndarray]
) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
    """One compiled forward and backward pass."""
    frozen = [variable.value for variable in model.non_trainable_variables]

    def loss(weights: list[jax.Array], inputs: dict[str, jax.Array]) -> tuple[jax.Array, dict]:
        positional, named = call_arguments(model, inputs)
        outputs, _ = model.stateless_call(weights, frozen, *positional, **named)
        outputs = named_outputs(model, outputs)
        return sum(jnp.sum(value**2) for value in outputs.values()), outputs

    weights = [variable.value for variable in model.trainable_variables]
    compiled = jax.jit(jax.value_and_grad(loss, has_aux=True))
    (_, outputs), gradients = compiled(weights, inputs)
    paths = [variable.path.partition("/")[2] for variable in model.trainable_variables]
    return outputs, dict(zip(paths, gradients, strict=True))


def refusal(model: keras.Model, inputs: dict[str, np.ndarray]) -> str:
    """Return the message of training mode, where dropout is on."""
    positional, named = call_arguments(model, inputs)
    try:
        model(*positional, **named, training=True)
    except UsageError as error:
        return str(error)
    return ""


def write_case(name: str, folder: Path, output: Path) -> None:
    """Load a case's model, run it and write its outputs."""
    directory = read_model_directory(folder)
    model = MODELS[name](directory.config)
    model.build_weights()
    fresh = load_weights(model, directory)
    if fresh:
        raise SystemExit(f"{name}: weights were not loaded: {fresh}")
    expected = np.load(folder / "expected.npz")
    inputs = {
        key.removeprefix("input/"): expected[key]
        for key in expected.files
        if key.startswith(("input/input_", "input/masked_lm_positions"))
    }
    outputs, gradients = outputs_and_gradients(model, inputs)
    written = output / f"{name}-model"
    write_model_directory(written, model, vocab=directory.vocab, lowercase=True, task=None)
    values = {
        **{f"output/{key}": value for key, value in outputs.items()},
        **{f"gradient/{key}": value for key, value in gradients.items()},
        "refusal": np.array(refusal(model, inputs)),
    }
    np.savez(output / f"{name}.npz", **{key: np.asarray(value) for key, value in values.items()})


def main() -> None:
    reference, output = Path(sys.argv[1]), Path(sys.argv[2])
    for name in MODELS:
        write_case(name, reference / name, output)


if __name__ == "__main__":
    main()
