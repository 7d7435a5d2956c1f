"""Serves the page only to browsers on this machine.

Uses `http.server`: one form for one person needs no framework, and less code listens on a port.
Security: the server listens only on 127.0.0.1, checks the Host header against DNS rebinding, takes
only forms of its own page, and limits the bytes it reads and the time it waits for them.
"""

from __future__ import annotations

import errno
import signal
import socket
import sys
import threading
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qsl

from bert_tf.base.console import Console
from bert_tf.base.errors import StoppedEarly, UsageError
from pipeline.trying.model import opened_model
from pipeline.trying.page import TryPage

LOOPBACK = "127.0.0.1"
MOST_BYTES = 1 << 20  # of a form: several inputs of the most characters, each percent-encoded
_MOST_DRAINED = 1 << 25  # bytes of a refused form that are read before the answer
_MOST_DIGITS = 18  # of the length of a form
_MOST_FIELDS = 64  # of a form
_CHUNK = 1 << 16  # bytes
_SECONDS = 30.0  # until more of a request has to arrive
_MOST_SECONDS = 120.0  # until all of a request has to arrive
_FORM = "application/x-www-form-urlencoded"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def listen(port: int) -> socket.socket:
    """Listen on the loopback address.

    Args:
        port: 0 for any free one.

    Returns:
        The socket.

    Raises:
        UsageError: the port is taken, or may not be used.
    """
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        cure = "give another with --port, or --port 0 for any that is free"
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} of {LOOPBACK} is in use; {cure}") from None
        raise UsageError(f"port {port} of {LOOPBACK}: {error.strerror}; {cure}") from None


class PageServer(ThreadingHTTPServer):
    """Answers until `shutdown`; reports errors, but no texts, on the console.

    Attributes:
        page: that it serves.
        console: for errors.
        hosts: the accepted values of the header `Host`.
    """

    def __init__(self, listening: socket.socket, page: TryPage, console: Console):
        super().__init__(listening.getsockname(), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.page = page
        self.console = console
        port = listening.getsockname()[1]
        suffix = "" if port == HTTP_PORT else f":{port}"  # as browsers write it
        self.hosts = [LOOPBACK + suffix, "localhost" + suffix]

    @property
    def url(self) -> str:
        """Return the address to open in a browser."""
        return f"http://{self.hosts[0]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error in one line, unless the browser closed the connection."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            self.console.warn(f"a request failed: {_one_line(error)}")


class _Refused(Exception):
    """A request that is refused, with the status and a line for the user."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection.

    Reading has two limits: the time between parts of a request (`timeout`), and the time for all of
    it, since a client may send a byte at a time.
    """

    timeout = _SECONDS
    server_version = "bert-pipeline"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self._limit = threading.Timer(_MOST_SECONDS, self._stop_reading)
        self._limit.daemon = True
        self._limit.start()

    def finish(self) -> None:
        self._limit.cancel()
        super().finish()

    def _stop_reading(self) -> None:
        """End a request that arrives a little at a time; the answer can still be sent."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    @property
    def _served(self) -> PageServer:
        return cast("PageServer", self.server)

    def _respond(self) -> None:
        """Answer GET, HEAD and POST with the page, or with a line on the fault."""
        length = self.headers.get("Content-Length", "")
        is_length = length.isascii() and length.isdecimal() and len(length) <= _MOST_DIGITS
        self._unread = int(length) if is_length else 0
        try:
            self._check_sender()
        except _Refused as refused:
            status, line = refused.args
            self._send(status, f"{line}\n", "text/plain")
            return
        page = self._served.page
        typed: dict[str, str] = {}
        try:
            if self.command == "POST":
                typed = self._typed(has_length=is_length)
                html, is_predicted = page.answered(typed)
                status = HTTPStatus.OK if is_predicted else HTTPStatus.BAD_REQUEST
            else:
                html = page.blank()
                status = HTTPStatus.OK
        except _Refused as refused:
            status, line = refused.args
            html = page.refused(line)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            line = f"the model failed on this: {_one_line(error)}"
            self._served.console.warn(line)
            html = page.refused(line, typed)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
        self._send(status, html, "text/html")

    do_GET = _respond
    do_HEAD = _respond
    do_POST = _respond

    def _check_sender(self) -> None:
        """Refuse requests that other pages may have sent from the user's browser.

        The header `Host` shows another host's name that resolves to this machine (DNS rebinding);
        `Origin` shows a form of another page.
        """
        hosts = self._served.hosts
        named = [host.lower() for host in self.headers.get_all("Host", [])]
        if len(named) != 1 or named[0] not in hosts:
            raise _Refused(
                HTTPStatus.FORBIDDEN,
                f"this page is only served as {self._served.url}; open that (a tunnel must have "
                "the same port on both sides)",
            )
        if self.path.partition("?")[0] != "/":
            raise _Refused(HTTPStatus.NOT_FOUND, f"the only page is {self._served.url}")
        origin = self.headers.get("Origin")
        is_foreign = origin is not None and origin not in [f"http://{host}" for host in hosts]
        if self.command == "POST" and is_foreign:
            raise _Refused(HTTPStatus.FORBIDDEN, "forms of other pages are rejected")

    def _typed(self, *, has_length: bool) -> dict[str, str]:
        """Read the form, and return its fields by name."""
        if self.headers.get_content_type() != _FORM:
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected a form ({_FORM})")
        if not has_length:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "the form has no valid Content-Length")
        if self._unread > MOST_BYTES:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the form has {self._unread:,} bytes, more than the limit of {MOST_BYTES:,}; "
                "bert-pipeline score takes longer texts in files",
            )
        body = self.rfile.read(self._unread)
        is_whole = len(body) == self._unread
        self._unread = 0
        if not is_whole:
            raise _Refused(HTTPStatus.BAD_REQUEST, "the form arrived incomplete; send it again")
        try:
            fields = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_MOST_FIELDS,
            )
        except ValueError:
            raise _Refused(
                HTTPStatus.BAD_REQUEST,
                "the form cannot be read; expected a few fields of percent-encoded UTF-8",
            ) from None
        return {name: value.replace("\r\n", "\n") for name, value in fields}

    def _drain(self) -> None:
        """Read the rest of the form: many browsers show no answer before they have sent all."""
        left = min(self._unread, _MOST_DRAINED)
        while left > 0:
            chunk = self.rfile.read(min(left, _CHUNK))
            if not chunk:
                return
            left -= len(chunk)

    def _send(self, status: HTTPStatus, text: str, content_type: str) -> None:
        self._drain()
        body = text.encode("utf-8")
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{content_type}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: neither requests nor typed texts."""


def _one_line(error: BaseException | None) -> str:
    """Return the kind of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    first_line = lines[0] if lines else ""
    return f"{type(error).__name__}: {first_line}".rstrip(": ")


def serve(model: str, *, port: int, console: Console) -> None:
    """Serve the page of a model until Ctrl-C.

    The port is taken before the model is loaded, so that a taken port costs no time.

    Args:
        model: path of an export, a run or a model directory.
        port: on the loopback address.
        console: receives the address.

    Raises:
        StoppedEarly: at Ctrl-C.
        UsageError: the port is taken, or there is no model.
        InputError: the model is damaged.
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
