"""The cases of `make_reference.py`: their sizes, inputs, models and compared outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

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
        "masked_lm",
        "classification",
        "regression",
        "multi_label",
        "multiple_choice",
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
    """Return a model of HuggingFace's class `kind` with every weight random."""
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


def run_masked_lm(model: torch.nn.Module, inputs: dict, generator: np.random.Generator) -> dict:
    """Logits at the masked positions; the loss is HuggingFace's own."""
    mask = inputs["input_mask"]
    positions = np.stack(
        [np.sort(generator.choice(length, 3, replace=False)) for length in mask.sum(axis=1)]
    )
    rows = np.arange(len(mask))[:, None]
    targets = generator.integers(len(SPECIALS), model.config.vocab_size, positions.shape)
    labels = np.full(mask.shape, -100, np.int64)
    labels[rows, positions] = targets
    outputs = model(**as_torch(inputs), labels=torch.tensor(labels))
    return {
        "input/masked_lm_positions": positions.astype(np.int32),
        "input/masked_lm_ids": targets.astype(np.int32),
        "output/logits": outputs.logits[torch.tensor(rows), torch.tensor(positions)],
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


def run_regressor(model: torch.nn.Module, inputs: dict, generator: np.random.Generator) -> dict:
    """Return the number; the loss is HuggingFace's own."""
    labels = generator.normal(size=len(inputs["input_mask"])).astype(np.float32)
    outputs = model(**as_torch(inputs), labels=torch.tensor(labels))
    return {"input/labels": labels, "output/logits": outputs.logits, "loss": outputs.loss}


def run_multi_label_classifier(
    model: torch.nn.Module, inputs: dict, generator: np.random.Generator
) -> dict:
    """Logits; the loss is HuggingFace's own, of any number of labels per row."""
    labels = generator.integers(0, 2, (len(inputs["input_mask"]), model.config.num_labels))
    outputs = model(**as_torch(inputs), labels=torch.tensor(labels).float())
    return {
        "input/labels": labels.astype(np.int32),
        "output/logits": outputs.logits,
        "loss": outputs.loss,
    }


def run_multiple_choice(
    model: torch.nn.Module, inputs: dict, generator: np.random.Generator
) -> dict:
    """Logits of the choices; the loss is HuggingFace's own. Rows of the batch are choices."""
    batch, length = inputs["input_mask"].shape
    rows = 2 if batch % 2 == 0 else 1
    right = generator.integers(0, batch // rows, rows)
    choices = {name: values.reshape(rows, -1, length) for name, values in as_torch(inputs).items()}
    outputs = model(**choices, labels=torch.tensor(right))
    return {
        "input/right_choice": right.astype(np.int32),
        "output/logits": outputs.logits,
        "loss": outputs.loss,
    }


def run_token_classifier(
    model: torch.nn.Module, inputs: dict, generator: np.random.Generator
) -> dict:
    """Logits of every token; the loss is HuggingFace's own, the mean over all but padding."""
    mask = inputs["input_mask"]
    labels = np.where(mask == 1, generator.integers(0, model.config.num_labels, mask.shape), -100)
    outputs = model(**as_torch(inputs), labels=torch.tensor(labels))
    return {
        "input/labels": np.maximum(labels, 0).astype(np.int32),
        "output/logits": outputs.logits,
        "loss": outputs.loss,
    }


def run_answerer(model: torch.nn.Module, inputs: dict, generator: np.random.Generator) -> dict:
    """Start and end logits; the loss is HuggingFace's, but padding does not compete."""
    starts = generator.integers(0, inputs["input_mask"].sum(axis=1))
    ends = generator.integers(starts, inputs["input_mask"].sum(axis=1))
    outputs = model(**as_torch(inputs))
    is_padding = torch.tensor(inputs["input_mask"]) == 0
    losses = [
        torch.nn.functional.cross_entropy(
            logits.masked_fill(is_padding, torch.finfo(torch.float32).min), torch.tensor(targets)
        )
        for logits, targets in ((outputs.start_logits, starts), (outputs.end_logits, ends))
    ]
    return {
        "input/starts": starts.astype(np.int32),
        "input/ends": ends.astype(np.int32),
        "output/start_logits": outputs.start_logits,
        "output/end_logits": outputs.end_logits,
        "loss": sum(losses) / 2,
    }


def as_torch(inputs: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Return the inputs under HuggingFace's names."""
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
    "masked_lm": (transformers.BertForMaskedLM, run_masked_lm, {}),
    "classification": (
        transformers.BertForSequenceClassification,
        run_classifier,
        {"num_labels": 3},
    ),
    "regression": (
        transformers.BertForSequenceClassification,
        run_regressor,
        {"num_labels": 1, "problem_type": "regression"},
    ),
    "multi_label": (
        transformers.BertForSequenceClassification,
        run_multi_label_classifier,
        {"num_labels": 4, "problem_type": "multi_label_classification"},
    ),
    "multiple_choice": (transformers.BertForMultipleChoice, run_multiple_choice, {}),
    "token_classification": (
        transformers.BertForTokenClassification,
        run_token_classifier,
        {"num_labels": 5},
    ),
    "question_answering": (transformers.BertForQuestionAnswering, run_answerer, {}),
}
