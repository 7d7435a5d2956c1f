"""BERT models as ONNX graphs from token ids to scores, built node by node.

The graph is the plain model in standard operations of one opset, so that runtimes can fuse it by
their own patterns. Names of nodes are numbered in the order in which they are added, so equal
models have equal files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bert_tf.base.errors import UsageError
from bert_tf.config.bert import BertConfig
from bert_tf.config.embedding_recipe import EmbeddingRecipe
from bert_tf.weights.graph_names import MASK, MOST_BYTES, POSITIONS, TYPE_IDS, WORD_IDS

OPSET = 20  # the first with Gelu
_IR_VERSION = 9  # of the same release, so that runtimes of that time can read the file
_MASKED_SCORE = -1e9  # added to scores of padding, whose probability is then 0
_LOWEST = float(np.finfo(np.float32).min)  # never the maximum over tokens
_LEAST_TOKENS = 1e-9  # avoids 0/0 for rows that are all padding
_LEAST_NORM = 1e-12  # avoids 0/0 for vectors that are 0

Tensors = Mapping[str, np.ndarray]


class _Output(NamedTuple):
    """An output of the graph: the node's output that it is, and the names or sizes of its axes."""

    node: str
    axes: list[str | int]


_Outputs = dict[str, _Output]


def onnx_model(
    architecture: str,
    config: BertConfig,
    tensors: Tensors,
    *,
    recipe: EmbeddingRecipe | None = None,
) -> onnx.ModelProto:
    """Build the graph of a model, with its weights.

    Inputs are `input_ids`, `attention_mask` and `token_type_ids`, int64 [batch, length], both axes
    free. Outputs are float32, by architecture:

    - `BertForSequenceClassification`: `logits` [batch, labels].
    - `BertForTokenClassification`: `logits` [batch, length, labels].
    - `BertForMultipleChoice`: `logits` [batch]; each choice is a sequence of the batch.
    - `BertForQuestionAnswering`: `start_logits`, `end_logits` [batch, length].
    - `BertForNextSentencePrediction`: `logits` [batch, 2].
    - `BertForMaskedLM`: `logits` [batch, predictions, vocab] at the additional input
      `masked_lm_positions`, int64 [batch, predictions].
    - others: `sequence_output` [batch, length, hidden]; with a pooler `pooled_output` [batch,
      hidden]; with a recipe `embedding` [batch, hidden].

    Args:
        architecture: HuggingFace's name of the class.
        config: shape of the encoder.
        tensors: float32 by HuggingFace's names.
        recipe: recipe of embeddings; None leaves out that output.

    Raises:
        UsageError: the architecture is unknown, or the weights do not fit into one ONNX file.
    """
    if architecture not in _HEADS:
        raise UsageError(
            f"no ONNX graph is known for {architecture}; known are {', '.join(_HEADS)}"
        )
    size = sum(value.nbytes for value in tensors.values())
    if size > MOST_BYTES:
        raise UsageError(
            f"the weights take {size:,} bytes; an ONNX file holds {MOST_BYTES:,} at most"
        )
    graph = _Graph(config, tensors, recipe)
    outputs = _HEADS[architecture](graph)
    return graph.model(architecture, outputs)


class _Graph:
    """Nodes and weights of a graph, in the order in which they are added.

    Methods add nodes, and take and return names of their outputs.

    Attributes:
        more_inputs: names of the axes of further int64 inputs, by the name of the input.
    """

    def __init__(self, config: BertConfig, tensors: Tensors, recipe: EmbeddingRecipe | None):
        self.config = config
        self.recipe = recipe
        self.tensors = tensors
        self.more_inputs: dict[str, list[str]] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}

    def add(self, operation: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list of names if there are several."""
        name = f"{operation}_{len(self._nodes)}"
        names = [name] if outputs == 1 else [f"{name}:{index}" for index in range(outputs)]
        self._nodes.append(helper.make_node(operation, inputs, names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, name: str, value: np.ndarray) -> str:
        """Add a constant under its own name, once."""
        if name not in self._weights:
            array = np.asarray(value, order="C")
            self._weights[name] = numpy_helper.from_array(array, name)
        return name

    def number(self, value: float) -> str:
        """Add a float32 scalar."""
        return self.weight(f"number {value!r}", np.array(value, np.float32))

    def axis(self, *values: int) -> str:
        """Add numbers or sizes of axes, int64 [values]."""
        return self.weight(f"axes {values}", np.array(values, np.int64))

    def dense(self, inputs: str, name: str, activation: str | None = None) -> str:
        """Add a linear layer, and an activation with a name of BERT configs."""
        kernel = self.weight(f"{name}.weight", self.tensors[f"{name}.weight"].T)
        bias = self.stored(f"{name}.bias")
        outputs = self.add("Add", self.add("MatMul", inputs, kernel), bias)
        return outputs if activation is None else self.activate(outputs, activation)

    def activate(self, inputs: str, name: str) -> str:
        match name:
            case "gelu":
                return self.add("Gelu", inputs)
            case "gelu_new" | "gelu_pytorch_tanh":
                return self.add("Gelu", inputs, approximate="tanh")
            case "relu":
                return self.add("Relu", inputs)
            case "tanh":
                return self.add("Tanh", inputs)
        raise ValueError(f"activation {name!r} is not known")

    def layer_norm(self, inputs: str, name: str) -> str:
        scale = self.stored(f"{name}.weight")
        shift = self.stored(f"{name}.bias")
        return self.add(
            "LayerNormalization", inputs, scale, shift, axis=-1, epsilon=self.config.layer_norm_eps
        )

    def stored(self, name: str) -> str:
        """Add a tensor of the model."""
        return self.weight(name, self.tensors[name])

    def table(self, name: str) -> str:
        """Add an embedding table of the model."""
        return self.stored(f"bert.embeddings.{name}.weight")

    def encode(self, *, first_only: bool = False) -> str:
        """Add the encoder; return the last layer's output, [batch, length, hidden].

        With `first_only`, the last layer computes queries, output projection and feed-forward
        network only for the first token; the output is [batch, 1, hidden].
        """
        words = self.add("Gather", self.table("word_embeddings"), WORD_IDS)
        types = self.add("Gather", self.table("token_type_embeddings"), TYPE_IDS)
        length = self.add("Shape", WORD_IDS, start=1, end=2)
        positions = self.add(
            "Slice", self.table("position_embeddings"), self.axis(0), length, self.axis(0)
        )
        summed = self.add("Add", self.add("Add", words, types), positions)
        hidden = self.layer_norm(summed, "bert.embeddings.LayerNorm")
        unseen = self.add("Sub", self.number(1.0), self.add("Cast", MASK, to=TensorProto.FLOAT))
        bias = self.add("Mul", unseen, self.number(_MASKED_SCORE))
        bias = self.add("Unsqueeze", bias, self.axis(1, 2))
        for index in range(self.config.num_hidden_layers):
            read = hidden
            if first_only and index == self.config.num_hidden_layers - 1:
                read = self.add("Slice", hidden, self.axis(0), self.axis(1), self.axis(1))
            hidden = self._block(read, hidden, bias, f"bert.encoder.layer.{index}")
        return hidden

    def _block(self, read: str, hidden: str, bias: str, prefix: str) -> str:
        """Add a layer; `read` are the tokens to compute, which attend to all of `hidden`."""
        attended = self.dense(
            self._attend(read, hidden, bias, prefix), f"{prefix}.attention.output.dense"
        )
        hidden = self.layer_norm(
            self.add("Add", read, attended), f"{prefix}.attention.output.LayerNorm"
        )
        inner = self.dense(hidden, f"{prefix}.intermediate.dense", self.config.hidden_act)
        transformed = self.dense(inner, f"{prefix}.output.dense")
        return self.layer_norm(self.add("Add", hidden, transformed), f"{prefix}.output.LayerNorm")

    def _attend(self, read: str, hidden: str, bias: str, prefix: str) -> str:
        """Add multi-head attention without its output projection, [batch, read, hidden]."""
        heads = self.config.num_attention_heads
        width = self.config.head_size
        split = self.axis(0, 0, heads, width)

        def part(inputs: str, name: str, order: tuple[int, ...]) -> str:
            projected = self.dense(inputs, f"{prefix}.attention.self.{name}")
            return self.add("Transpose", self.add("Reshape", projected, split), perm=order)

        query = part(read, "query", (0, 2, 1, 3))
        key = part(hidden, "key", (0, 2, 3, 1))
        value = part(hidden, "value", (0, 2, 1, 3))
        scores = self.add("MatMul", query, key)
        scores = self.add("Mul", scores, self.number(1.0 / math.sqrt(width)))
        probabilities = self.add("Softmax", self.add("Add", scores, bias), axis=-1)
        context = self.add("MatMul", probabilities, value)
        context = self.add("Transpose", context, perm=(0, 2, 1, 3))
        return self.add("Reshape", context, self.axis(0, 0, heads * width))

    def first(self, hidden: str) -> str:
        """Select the first token, [batch, hidden]."""
        return self.add("Gather", hidden, self.weight("first", np.array(0, np.int64)), axis=1)

    def pooled(self, hidden: str) -> str:
        """Add the pooler, [batch, hidden]."""
        return self.dense(self.first(hidden), "bert.pooler.dense", "tanh")

    def embedding(self, hidden: str, recipe: EmbeddingRecipe) -> str:
        """Add pooling and normalization of a recipe, [batch, hidden]."""
        if recipe.pooling == "cls":
            vectors = self.first(hidden)
        else:
            mask = self.add("Cast", MASK, to=TensorProto.FLOAT)
            mask = self.add("Unsqueeze", mask, self.axis(2))
            if recipe.pooling == "max":
                is_token = self.add("Greater", mask, self.number(0.0))
                seen = self.add("Where", is_token, hidden, self.number(_LOWEST))
                vectors = self.add("ReduceMax", seen, self.axis(1), keepdims=0)
            else:
                seen = self.add("Mul", hidden, mask)
                total = self.add("ReduceSum", seen, self.axis(1), keepdims=0)
                count = self.add("ReduceSum", mask, self.axis(1), keepdims=0)
                count = self.add("Max", count, self.number(_LEAST_TOKENS))
                vectors = self.add("Div", total, count)
        if not recipe.normalize:
            return vectors
        norm = self.add("ReduceL2", vectors, self.axis(1), keepdims=1)
        norm = self.add("Max", norm, self.number(_LEAST_NORM))
        return self.add("Div", vectors, norm)

    def model(self, architecture: str, outputs: _Outputs) -> onnx.ModelProto:
        """Return the complete model, with the outputs under their public names."""
        # Nodes are numbered; those that are outputs get their public names.
        public = {output.node: name for name, output in outputs.items()}
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [public.get(name, name) for name in names]
        inputs = {name: ["batch", "length"] for name in (WORD_IDS, MASK, TYPE_IDS)}
        inputs |= self.more_inputs
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self._nodes,
            architecture,
            [value(name, TensorProto.INT64, axes) for name, axes in inputs.items()],
            [value(name, TensorProto.FLOAT, output.axes) for name, output in outputs.items()],
            initializer=list(self._weights.values()),
        )
        return helper.make_model(
            graph,
            producer_name="bert-pipeline",
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )


def _labels_of_text(graph: _Graph) -> _Outputs:
    labels = len(graph.tensors["classifier.bias"])
    pooled = graph.pooled(graph.encode(first_only=True))
    return {"logits": _Output(graph.dense(pooled, "classifier"), ["batch", labels])}


def _labels_of_tokens(graph: _Graph) -> _Outputs:
    labels = len(graph.tensors["classifier.bias"])
    logits = graph.dense(graph.encode(), "classifier")
    return {"logits": _Output(logits, ["batch", "length", labels])}


def _next_sentence(graph: _Graph) -> _Outputs:
    pooled = graph.pooled(graph.encode(first_only=True))
    return {"logits": _Output(graph.dense(pooled, "cls.seq_relationship"), ["batch", 2])}


def _choice(graph: _Graph) -> _Outputs:
    score = graph.dense(graph.pooled(graph.encode(first_only=True)), "classifier")
    return {"logits": _Output(graph.add("Squeeze", score, graph.axis(1)), ["batch"])}


def _span(graph: _Graph) -> _Outputs:
    start, end = graph.add(
        "Split", graph.dense(graph.encode(), "qa_outputs"), axis=-1, num_outputs=2, outputs=2
    )
    axes: list[str | int] = ["batch", "length"]
    return {
        "start_logits": _Output(graph.add("Squeeze", start, graph.axis(2)), axes),
        "end_logits": _Output(graph.add("Squeeze", end, graph.axis(2)), axes),
    }


def _masked_tokens(graph: _Graph) -> _Outputs:
    graph.more_inputs[POSITIONS] = ["batch", "predictions"]
    prefix = "cls.predictions.transform"
    places = graph.add("Unsqueeze", POSITIONS, graph.axis(2))
    masked = graph.add("GatherND", graph.encode(), places, batch_dims=1)
    masked = graph.dense(masked, f"{prefix}.dense", graph.config.hidden_act)
    masked = graph.layer_norm(masked, f"{prefix}.LayerNorm")
    table = graph.add("Transpose", graph.table("word_embeddings"), perm=(1, 0))
    logits = graph.add(
        "Add", graph.add("MatMul", masked, table), graph.stored("cls.predictions.bias")
    )
    return {"logits": _Output(logits, ["batch", "predictions", graph.config.vocab_size])}


def _vectors(graph: _Graph) -> _Outputs:
    hidden = graph.encode()
    width = graph.config.hidden_size
    outputs: _Outputs = {"sequence_output": _Output(hidden, ["batch", "length", width])}
    if "bert.pooler.dense.weight" in graph.tensors:
        outputs["pooled_output"] = _Output(graph.pooled(hidden), ["batch", width])
    if graph.recipe is not None:
        outputs["embedding"] = _Output(graph.embedding(hidden, graph.recipe), ["batch", width])
    return outputs


_HEADS: dict[str, Callable[[_Graph], _Outputs]] = {
    "BertForSequenceClassification": _labels_of_text,
    "BertForTokenClassification": _labels_of_tokens,
    "BertForMultipleChoice": _choice,
    "BertForQuestionAnswering": _span,
    "BertForMaskedLM": _masked_tokens,
    "BertForNextSentencePrediction": _next_sentence,
    "BertModel": _vectors,
    "BertForPreTraining": _vectors,
}
