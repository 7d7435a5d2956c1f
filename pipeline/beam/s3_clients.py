"""One client of S3 for all calls of a process.

Beam's file system makes a client for each call, and boto3 takes 0.2 s of processor time for that:
it reads the description of the service again. Clients of boto3 are made for many threads, and renew
their credentials themselves.
"""

from __future__ import annotations

import functools
import threading
from types import SimpleNamespace
from typing import Any

_LOCK = threading.Lock()


@functools.cache
def keep_s3_clients() -> None:
    """Lets Beam get the client again that it has made with the same options; a no-op without S3."""
    try:
        import boto3
        from apache_beam.io.aws.clients.s3 import boto3_client
    except ImportError:
        return
    clients: dict[tuple[tuple[str, Any], ...], Any] = {}

    def client(**options: Any) -> Any:
        key = tuple(sorted(options.items()))
        with _LOCK:
            if key not in clients:
                clients[key] = boto3.session.Session().client(**options)
            return clients[key]

    session = SimpleNamespace(client=client)
    boto3_client.boto3 = SimpleNamespace(session=SimpleNamespace(Session=lambda: session))
