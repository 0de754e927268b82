"""The studio: the player on loopback, with a gallery and an editor for a machine, circuit or program.

Whoever knows the address with its token may use it, from this machine and from its own page alone: the token
keeps out other users and programs, the checks of Host and Origin keep out other web pages (also those
that reach 127.0.0.1 under a name of their own). Requests are carried out, one at a time, in a process that
stays warm, and that is killed and replaced when the time for one is up. It runs no code that it is given,
unless the studio was started for that (`python`): then a Python function that is typed is run as its author
wrote it, with all that its author may do.
"""

import contextlib
import html
import json
import queue
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tapegrad.errors import InputError
from tapegrad.show.gallery import gallery
from tapegrad.show.page import assembled, asset, embedded, filled
from tapegrad.show.recorder import SECONDS
from tapegrad.targets import target_names

LOOPBACK = "127.0.0.1"
LARGEST_REQUEST = 1 << 18
"""Bytes of a request's body."""
LARGEST_READ = 1 << 22
"""Bytes that are read of a request that is too large."""
LARGEST_ANSWER = 1 << 26


class Studio(ThreadingHTTPServer):
    """The server. `url` is where it answers, token included; `folder` is the only place it writes to."""

    daemon_threads = True
    request_queue_size = 256  # connections that may wait while others are taken

    def __init__(self, port: int = 0, seconds: float = SECONDS, python: bool = False) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="tapegrad-studio-")
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise InputError(
                f"port {port} cannot be used: {error.strerror}", advice="Leave out --port to get a free one."
            ) from error
        self.seconds = seconds
        self.token = secrets.token_urlsafe(24)
        self.folder = self._temporary.name
        self.python = python
        self.worker = Worker(self.folder, python)
        self.one_at_a_time = threading.Lock()
        self.page = _page(python)

    @property
    def hosts(self) -> tuple[str, str]:
        """The names by which a browser on this machine may call the server."""
        return f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://{self.hosts[0]}/?token={self.token}"

    def server_close(self) -> None:
        """Frees the port and removes the folder."""
        super().server_close()
        if hasattr(self, "worker"):  # not where the port could not be had
            self.worker.end()
        self._temporary.cleanup()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that was closed before its answer came is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def carry_out(self, request: bytes, asker: socket.socket) -> tuple[HTTPStatus, dict[str, Any]]:
        """The worker's answer to one request. The worker is ended when its time is up or nobody waits for the
        answer any more, and a new one begins to warm up."""
        worker, end = self.worker, time.monotonic() + self.seconds
        worker.ask(request)
        while (content := worker.answer()) is None:
            if time.monotonic() > end:
                self.renew()
                said = f"This took longer than {self.seconds:g} seconds and was stopped."
                return HTTPStatus.GATEWAY_TIMEOUT, {"error": f"{said} Try something smaller."}
            if _is_gone(asker):
                self.renew()
                raise ConnectionAbortedError("the page was closed")
            time.sleep(0.01)
        if len(content) > LARGEST_ANSWER:
            return HTTPStatus.UNPROCESSABLE_ENTITY, {"error": "The recording is too large to be shown."}
        try:
            answer = json.loads(content)
        except ValueError:
            self.renew()
            said = "The request could not be carried out: its process failed, perhaps for want of memory."
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": said}
        return HTTPStatus.UNPROCESSABLE_ENTITY if "error" in answer else HTTPStatus.OK, answer

    def renew(self) -> None:
        """Another worker in place of one that hangs, or has failed."""
        self.worker.end()
        self.worker = Worker(self.folder, self.python)


class Worker:
    """A process that carries out requests, one after the other. As soon as it starts it imports and compiles
    what most of them need, so that it is warm when someone asks. It reads no files that a request names, and
    writes to its folder only, besides the compiled code that all commands keep; what a Python function does
    that it was allowed to run is not its own doing."""

    def __init__(self, folder: str, python: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tapegrad.show.studio_job", *(["--python"] if python else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    @property
    def process_id(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(self, request: bytes) -> None:
        """Hands over a request; one that has failed will answer with nothing."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(request.replace(b"\n", b" ") + b"\n")
            self._process.stdin.flush()

    def answer(self) -> bytes | None:
        """The answer, once it is there; of a process that has failed, an empty one."""
        try:
            return self._answers.get_nowait()
        except queue.Empty:
            return None

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline(LARGEST_ANSWER + 2):
            self._answers.put(line)
        self._answers.put(b"")


def _is_gone(asker: socket.socket) -> bool:
    """Whether whoever asked has closed the connection."""
    readable, _, _ = select.select([asker], [], [], 0)
    return bool(readable) and not asker.recv(1, socket.MSG_PEEK)


class _Handler(BaseHTTPRequestHandler):
    server: Studio  # type: ignore[assignment]
    timeout = 30
    server_version, sys_version = "tapegrad", ""

    def do_GET(self) -> None:
        if self._allowed() and self._at("/"):
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page.encode())

    def do_POST(self) -> None:
        if not (self._allowed() and self._at("/run")):
            return
        body = self._body()
        if body is None:
            return
        if not self.server.one_at_a_time.acquire(blocking=False):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "Another run is under way: wait for it.")
            return
        try:
            status, answer = self.server.carry_out(body, self.connection)
        finally:
            self.server.one_at_a_time.release()
        self._send_json(status, answer)

    def _allowed(self) -> bool:
        """Host and Origin are this server's, and the token is right."""
        origins = [f"http://{host}" for host in self.server.hosts]
        origin = self.headers.get("Origin")
        token = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        if self.headers.get("Host") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "Wrong host.")
        elif origin not in origins and not (origin is None and self.command == "GET"):
            self._refuse(HTTPStatus.FORBIDDEN, "Wrong origin.")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(
                HTTPStatus.FORBIDDEN, "Open the address that `tapegrad studio` printed, with its token."
            )
        else:
            return True
        return False

    def _at(self, path: str) -> bool:
        if urlsplit(self.path).path == path:
            return True
        self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")
        return False

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "The request does not say how long it is.")
        elif len(length) > 12 or int(length) > LARGEST_REQUEST:
            # A browser hears the answer only once it has been listened to; more than this it is not.
            self.rfile.read(min(int(length[:12]), LARGEST_READ))
            self._refuse(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {LARGEST_REQUEST >> 10} KiB can be pasted."
            )
        else:
            return self.rfile.read(int(length))
        return None

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True
        self._send_json(status, {"error": why})

    def _send_json(self, status: HTTPStatus, data: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(data).encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the address, which has the token in it, belongs in no log."""


WHAT = "A machine, circuit, program or RASP program in any format, or a ready name"
NO_PYTHON = f"{WHAT}. (For a Python function start `tapegrad studio --python`: it would run your code.)"
PYTHON = f"{WHAT}, or a Python function with types. What you write in Python is run on this machine."


def _page(python: bool) -> str:
    """The player with the form on top."""
    entries = gallery(python)
    groups: dict[str, list[str]] = {}
    for number, entry in enumerate(entries):
        groups.setdefault(entry.group, []).append(_option(str(number), entry.title))
    form = filled(
        asset("studio.html"),
        gallery="".join(
            f'<optgroup label="{html.escape(group)}">{"".join(own)}</optgroup>'
            for group, own in groups.items()
        ),
        targets="".join(_option(name, name) for name in target_names()),
        what=html.escape(PYTHON if python else NO_PYTHON),
        entries=embedded([vars(entry) for entry in entries]),
    )
    return assembled(title="studio", studio=form, scripts=("studio.js",))


def _option(value: str, text: str) -> str:
    return f'<option value="{html.escape(value)}">{html.escape(text)}</option>'
