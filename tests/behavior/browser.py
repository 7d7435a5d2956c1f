"""A real browser without a window, for tests of pages; they are skipped where there is none.

It is spoken to by Chromium's DevTools protocol over a pipe, messages of JSON that end with a zero
byte, so that nothing has to be installed but the browser.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from behavior.timing import wait_until

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_SECONDS = 600.0  # guards against hanging only
_ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--remote-debugging-pipe", "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
# A browser takes its pipes as descriptors 3 and 4, which may be in use by now.
_WITH_PIPES = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for place, pipe in enumerate(pipes):
    os.dup2(pipe, 3 + place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of a browser.

    Args:
        to_browser, from_browser: descriptors of the pipes.
    """

    def __init__(self, to_browser: int, from_browser: int):
        self._to, self._from = to_browser, from_browser
        self._begun = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events meanwhile are kept in `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def open(self, url: str) -> None:
        """Open an address and wait until the page is there."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for_load()

    def wait_for_load(self) -> None:
        """Wait until a page that was asked for is there."""
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def wait_until(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true."""
        wait_until(lambda: self.value(expression), f"{expression} is true")

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript in the page.

        The page's own policy does not hold.
        """
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key: `Tab`, `Enter`, ` `."""
        text = {"Enter": "\r", "Tab": "\t"}.get(key, key)
        codes = {"Enter": 13, "Tab": 9, " ": 32}
        common = {"key": key, "windowsVirtualKeyCode": codes[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Types a text where the cursor is."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Clicks in the middle of an element."""
        box = self.value(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind, x=box[0], y=box[1], button="left", clickCount=1,
            )  # fmt: skip

    def show_as(self, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Set the size of the window and the color scheme that the user prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> None:
        """Write a screenshot as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self) -> list[str]:
        """Return the browser's log of the page: refused requests, faults of scripts."""
        return [
            event["params"]["entry"]["text"]
            for event in self.events
            if event.get("method") == "Log.entryAdded"
        ]

    def requested(self) -> list[str]:
        """Return the addresses that the page has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def _next(self) -> dict[str, Any]:
        limit = time.monotonic() + _SECONDS
        while b"\0" not in self._begun:
            left = max(limit - time.monotonic(), 0)
            assert select.select([self._from], [], [], left)[0], "the browser does not answer"
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the browser has ended"
            self._begun += chunk
        message, _, self._begun = self._begun.partition(b"\0")
        return json.loads(message)


@contextlib.contextmanager
def opened_browser(folder: Path) -> Iterator[Browser]:
    """Yield a browser that ends with the block.

    Args:
        folder: for its profile.
    """
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is installed")
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-S", "-c", _WITH_PIPES, str(to_browser), str(from_browser)),
            *(program, *_ARGUMENTS, f"--user-data-dir={folder / 'profile'}", "about:blank"),
        ],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
