"""`try`: loads a model and serves its page until it is stopped."""

from __future__ import annotations

import signal

from bert_tf.base.console import Console
from bert_tf.base.errors import StoppedEarly
from pipeline.trying.model import opened_model
from pipeline.trying.page import TryPage
from pipeline.trying.server import PageServer, listen


def serve(model: str, *, port: int, console: Console) -> None:
    """Serves the page of a model.

    Args:
        model: see `opened_model`.
        port: to listen on, 0 for any free one; taken before the model is loaded.
        console: where the page's address is shown.

    Raises:
        StoppedEarly: Ctrl-C ended it.
        UsageError, InputError: as `opened_model` and `listen`.
    """
    with listen(port) as listening:
        console.info(f"{model}: loading the model")
        with (
            opened_model(model, console) as opened,
            PageServer(listening, TryPage(opened), console) as server,
        ):
            console.info(f"{model}: open {server.url} in a browser; Ctrl-C ends it")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                raise StoppedEarly(f"{model}: stopped", signal.SIGINT) from None
