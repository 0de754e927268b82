"""A headless Chromium for tests, driven through the DevTools protocol with the standard library alone."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--window-size=1280,1000",
)


def installed() -> str | None:
    """The path of the browser, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chrome:
    """One browser with one page."""

    def __init__(self) -> None:
        program = installed()
        assert program is not None
        self._folder = tempfile.mkdtemp(prefix="tapegrad-chrome-")
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._socket = _WebSocket(self._page_address())
        self._count = 0
        self.problems: list[str] = []
        """What the browser complained about: exceptions, refused requests, breaches of the policy."""
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait(20)
        shutil.rmtree(self._folder, ignore_errors=True)

    def open(self, address: str) -> None:
        """Goes to an address and waits until it is there."""
        self.call("Page.navigate", url=address)
        here = json.dumps(address.split("#")[0])
        self.wait(f"document.readyState === 'complete' && location.href.split('#')[0] === {here}")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.receive())
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(json.dumps(message["params"]))
            if message.get("id") == self._count:
                assert "error" not in message, message
                return message["result"]

    def value(self, expression: str) -> Any:
        """What an expression gives in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 60) -> None:
        """Until an expression holds in the page."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < end, f"never became true: {expression}"
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        """One key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def hover(self, selector: str) -> None:
        """The mouse over the first element that the selector finds."""
        x, y = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def _page_address(self) -> str:
        chosen = Path(self._folder, "DevToolsActivePort")
        for _ in range(600):
            if chosen.is_file() and chosen.read_text().strip():
                port = chosen.read_text().split()[0]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [page for page in json.load(answer) if page["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            time.sleep(0.05)
        raise TimeoutError("the browser did not start")


class _WebSocket:
    """As much of RFC 6455 as a client of the protocol needs: unfragmented text out, text in."""

    def __init__(self, address: str) -> None:
        host, _, path = address.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self._connection = socket.create_connection((name, int(port)), timeout=60)
        self._stream = self._connection.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        asked = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        asked += f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        self._connection.sendall(asked.encode())
        assert b"101" in self._stream.readline()
        while self._stream.readline().strip():
            pass

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        length = len(data)
        size = bytes([0x80 | length]) if length < 126 else b"\xff" + struct.pack(">Q", length)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self._connection.sendall(b"\x81" + size + mask + masked)

    def receive(self) -> str:
        parts = []
        while True:
            first, second = self._stream.read(2)
            length = second & 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self._stream.read(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self._stream.read(8))
            parts.append(self._stream.read(length))
            if first & 0x80:
                return b"".join(parts).decode()

    def close(self) -> None:
        self._stream.close()
        self._connection.close()
