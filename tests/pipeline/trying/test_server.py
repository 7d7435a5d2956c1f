"""The answers of a page's server to browsers and to others."""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
from urllib.parse import urlencode

import pytest
from behavior.pages import check_page
from behavior.timing import wait_until

from bert_tf.base.errors import UsageError
from pipeline.trying.server import LOOPBACK, MOST_BYTES, listen

TOPICS = {
    "task": "classification",
    "labels": ["fun", "news"],
    "columns": {"text": "body", "text_pair": None, "label": "label"},
}
TOPIC = {"predicted_label": "news", "predicted_score": 0.75, "probabilities": [0.25, 0.75]}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
GOOD = urlencode({"text": "a text"})


def request(server, method="GET", path="/", body=None, headers=(), host=None):
    """Send a request, and give its status, its text and its headers.

    Args:
        headers: name and value of each.
        host: values of the header `Host`; by default the server's address.
    """
    connection = http.client.HTTPConnection(*server.server_address)
    try:
        connection.putrequest(method, path, skip_host=True)
        for value in [server.hosts[0]] if host is None else host:
            connection.putheader("Host", value)
        for name, value in dict(headers).items():
            connection.putheader(name, value)
        data = body.encode("latin-1") if isinstance(body, str) else body
        if data is not None and "Content-Length" not in dict(headers):
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        response = connection.getresponse()
        return response.status, response.read().decode(), dict(response.getheaders())
    finally:
        connection.close()


@pytest.fixture
def model(tried_model):
    return tried_model(TOPICS, TOPIC)


@pytest.fixture
def server(model, served):
    with served(model) as server:
        yield server


def test_it_listens_on_the_loopback_address_alone(server):
    assert server.server_address[0] == LOOPBACK
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}/"


def test_the_page_is_an_empty_form(server):
    status, html, headers = request(server)
    assert status == 200
    check_page(html)
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert "Python" not in headers["Server"]
    assert request(server, "HEAD")[:2] == (200, "")


def test_a_form_is_answered_with_predictions(server, model):
    body = urlencode({"text": 'it is <b>"Łódź"</b>\r\n& 😂'})
    origin = {"Origin": server.url.rstrip("/")}
    status, html, _ = request(server, "POST", body=body, headers={**FORM, **origin})
    assert status == 200
    assert model.predictor.engine.given == [{"text": ['it is <b>"Łódź"</b>\n& 😂']}]
    read = check_page(html)
    assert {"label", "news", "0.7500"} <= set(read.text)
    assert '\nit is <b>"Łódź"</b>\n& 😂' in read.text and "<b>" not in html
    assert server.console.stream.getvalue() == "", "what is typed is not logged"


def test_the_name_of_this_machine_will_do(server):
    name = server.hosts[1]
    assert name.startswith("localhost:")
    headers = {**FORM, "Origin": f"http://{name}"}
    assert request(server, host=[name.upper()])[0] == 200
    assert request(server, "POST", body=GOOD, headers=headers, host=[name])[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        [],
        [""],
        ["evil.example"],
        ["evil.example:{port}"],
        ["127.0.0.1"],
        ["127.0.0.1:1"],
        ["127.0.0.1:{port}.evil.example"],
        ["127.0.0.1:{port}", "127.0.0.1:{port}"],
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_requests_by_another_name_are_refused(server, model, method, host):
    names = [name.format(port=server.server_address[1]) for name in host]
    body = GOOD if method == "POST" else None
    status, text, headers = request(server, method, body=body, headers=FORM, host=names)
    assert status == 403
    assert headers["Content-Type"].startswith("text/plain")
    assert text.startswith(f"this page is only served as {server.url};") and text.count("\n") == 1
    assert model.predictor.engine.given == []


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_forms_of_other_pages_are_refused(server, model, origin):
    headers = {**FORM, "Origin": origin}
    status, text, _ = request(server, "POST", body=GOOD, headers=headers)
    assert (status, text) == (403, "forms of other pages are rejected\n")
    assert model.predictor.engine.given == []


@pytest.mark.parametrize("path", ["/favicon.ico", "/../etc/passwd", "http://evil.example/"])
def test_there_is_one_page(server, path):
    assert request(server, path=path)[:2] == (404, f"the only page is {server.url}\n")
    assert request(server, path="/?text=a")[0] == 200


@pytest.mark.parametrize(
    ("body", "headers", "status", "line"),
    [
        (urlencode({"text": " "}), FORM, 400, "text is empty; type a text"),
        ("", FORM, 400, "text is empty; type a text"),
        (
            urlencode({"text": "x" * 20_001}),
            FORM,
            400,
            "text has 20,001 characters, more than the limit of 20,000",
        ),
        ("text=%ff", FORM, 400, "the form cannot be read"),
        ("text=\xe9", FORM, 400, "the form cannot be read"),
        ("a=b&" * 65, FORM, 400, "the form cannot be read"),
        ('{"text": "a"}', {"Content-Type": "application/json"}, 415, "expected a form ("),
        (GOOD, {}, 415, "expected a form ("),
        (GOOD, {**FORM, "Content-Length": "x"}, 411, "the form has no valid Content-Length"),
        (
            "text=" + "x" * MOST_BYTES,
            FORM,
            413,
            "the form has 1,048,581 bytes, more than the limit of 1,048,576",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_read_is_one_line_on_the_page(server, model, body, headers, status, line):
    found, html, _ = request(server, "POST", body=body, headers=headers)
    assert found == status
    read = check_page(html)
    assert sum(piece.startswith(line) for piece in read.text) == 1
    assert model.predictor.engine.given == []


def test_a_form_that_does_not_arrive_whole_is_not_read(server, model):
    with socket.create_connection(server.server_address) as connection:
        lines = [
            "POST / HTTP/1.0",
            f"Host: {server.hosts[0]}",
            f"Content-Type: {FORM['Content-Type']}",
            f"Content-Length: {len(GOOD) + 1}",
        ]
        connection.sendall("\r\n".join([*lines, "", GOOD]).encode())
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()
    assert answer.startswith("HTTP/1.0 400 ")
    assert "the form arrived incomplete; send it again" in answer
    assert model.predictor.engine.given == []


def test_a_form_that_trickles_in_is_given_up(server, model, monkeypatch):
    """Each byte is in time, all of them are not."""
    monkeypatch.setattr("pipeline.trying.server._MOST_SECONDS", 0.3)
    with socket.create_connection(server.server_address) as connection:
        head = f"POST / HTTP/1.0\r\nHost: {server.hosts[0]}\r\nContent-Length: 999\r\n"
        connection.sendall(f"{head}Content-Type: {FORM['Content-Type']}\r\n\r\n".encode())

        def is_answered():
            with contextlib.suppress(OSError):
                connection.send(b"a")
            return select.select([connection], [], [], 0.05)[0]

        wait_until(is_answered, "an answer to a form that trickles in")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.0 400 ")
    assert model.predictor.engine.given == []


def test_a_failing_model_is_one_line_and_the_server_goes_on(tried_model, served):
    model = tried_model(TOPICS, RuntimeError("out of <memory>\nsecond line"))
    with served(model) as server:
        status, html, _ = request(server, "POST", body=GOOD, headers=FORM)
        line = "the model failed on this: RuntimeError: out of <memory>"
        assert status == 500
        assert line in check_page(html).text
        assert "Traceback" not in html and "\na text</textarea>" in html
        assert server.console.stream.getvalue() == f"warning: {line}\n"
        assert request(server)[0] == 200


def test_a_port_that_is_taken_is_named():
    with listen(0) as taken:
        port = taken.getsockname()[1]
        message = f"^port {port} of 127.0.0.1 is in use; give another with --port"
        with pytest.raises(UsageError, match=message):
            listen(port)
