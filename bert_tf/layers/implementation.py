"""The door between the plain layers and faster forms of the same functions.

The layers of this folder are the definition of the model. Some devices run other forms of the same
functions faster: `bert_tf.cpu` has kernels for processors, `bert_tf.xla` has operations that XLA
makes good programs of. Whoever traces a graph chooses the form:

    with computing_by(XlaForward()):
        outputs = model(batch)

Models ask `implementation()` and know nothing else about devices and compilers. A form reads the
variables of the plain layers, so weights, checkpoints and exports never depend on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from bert_tf.layers.activation import activation, fusible_activation
from bert_tf.layers.cross_entropy import cross_entropy

if TYPE_CHECKING:
    from bert_tf.layers.encoder_inputs import EncoderInputs
    from bert_tf.layers.masked_lm_head import MaskedLMHead


class Implementation:
    """The plain form: each method calls the layers. A faster form overrides some.

    An override computes the same function, up to rounding, with the same gradients.
    """

    def encode(self, encoder: Any, inputs: EncoderInputs) -> dict[str, Any]:
        """Compute `BertEncoder.call`."""
        return encoder.encode(inputs)

    def activate(self, name: str | None, products: Any, bias: Any) -> Any:
        """Apply an activation to products, float [rows, width], plus bias, float [width]."""
        return activation(name, products, bias)

    def masked_lm_logits(self, head: MaskedLMHead, hidden: Any, word_embeddings: Any) -> Any:
        """Compute `MaskedLMHead.call`.

        Returns:
            float32 [batch, predictions, entries]. A form may add entries after the vocabulary, as
            long as they are so improbable that neither losses nor the order of entries change.
        """
        return head(hidden, word_embeddings)

    def cross_entropy(self, logits: Any, labels: Any) -> tuple[Any, Any]:
        """Compute `bert_tf.layers.cross_entropy.cross_entropy`."""
        return cross_entropy(logits, labels)


class ForwardOnly(Implementation):
    """Layers for TensorFlow graphs that run on processors and have no gradients.

    Grappler fuses the products of such a graph with those after them; see `fusible_activation`.
    """

    def activate(self, name: str | None, products: Any, bias: Any) -> Any:
        return fusible_activation(name, products, bias)


PLAIN = Implementation()
FORWARD_ONLY = ForwardOnly()
_CURRENT: ContextVar[Implementation] = ContextVar("implementation", default=PLAIN)


def implementation() -> Implementation:
    """Return the form that models compute by in this context."""
    return _CURRENT.get()


@contextlib.contextmanager
def computing_by(chosen: Implementation) -> Iterator[None]:
    """Let models compute by another form inside the block.

    A context belongs to a thread: enter it inside a function that `strategy.run` calls, not around
    the call.
    """
    token = _CURRENT.set(chosen)
    try:
        yield
    finally:
        _CURRENT.reset(token)
