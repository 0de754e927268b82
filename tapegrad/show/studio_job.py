"""Requests of the studio, carried out in a process of their own: JSON in, a recording or an error out.

`python -m tapegrad.show.studio_job` warms up, then reads requests from standard input. The studio kills it
when the time for one is up or the page is closed. When the studio ends, so does standard input, and it ends.
"""

import json
import os
import queue
import sys
import threading
from typing import Any

from tapegrad._files import no_files
from tapegrad._sources import find_text, parse_options
from tapegrad.errors import FormatError, TapegradError
from tapegrad.show.recorder import EXAMPLE, MOST_STEPS, compiled_example, compiled_source, record

MOST_FRAMES = 300
SECONDS_TO_RECORD = 20.0
"""Of a run that takes longer the page shows the beginning."""
MOST_MEMORY = 16 << 30
"""Address space of the process, in bytes; most of it is what numerical libraries reserve and never use."""

FIELDS = ("source", "target", "input", "options")


def answer(asked: bytes) -> dict[str, Any]:
    """The recording as JSON, or the error in words."""
    try:
        with no_files():
            return _recorded(_parsed(asked))
    except TapegradError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"This needs more than {MOST_MEMORY >> 30} GiB of memory. Try something smaller."}


def _recorded(request: Any) -> dict[str, Any]:
    if not isinstance(request, dict) or any(not isinstance(request.get(f), str) for f in FIELDS):
        raise FormatError(f"a request has the texts {', '.join(FIELDS)}")
    source, target = request["source"].strip(), request["target"]
    if source == EXAMPLE:
        compiled, inputs = compiled_example(target)
    else:
        settings = parse_options(request["options"].split())
        texts = _texts(request["input"])
        compiled, inputs = compiled_source(find_text(source), target, texts, settings, MOST_STEPS)
    return {
        "recording": record(
            compiled, *inputs, steps=MOST_STEPS, frames=MOST_FRAMES, seconds=SECONDS_TO_RECORD
        ).to_json()
    }


def _parsed(asked: bytes) -> Any:
    try:
        return json.loads(asked)
    except (ValueError, RecursionError) as error:
        raise FormatError("the request is not JSON") from error


def _texts(typed: str) -> list[str] | None:
    """A line for each tape; nothing typed means the source's own input. Named inputs may share a line."""
    if not typed.strip():
        return None
    return typed.split() if "=" in typed else typed.splitlines()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = MOST_MEMORY if most == resource.RLIM_INFINITY else min(MOST_MEMORY, most)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


WARM_UP = {"source": "1RB1LB_1LA1RZ", "target": "tape", "input": "", "options": ""}
"""A small run, made before anyone asks: what it imports and compiles is what most runs need."""


def _requests() -> "queue.SimpleQueue[bytes]":
    """Lines of standard input, as they come. It stays open as long as the studio wants answers."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while line := sys.stdin.buffer.readline():
            lines.put(line)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return lines


if __name__ == "__main__":
    _limit_memory()
    requests = _requests()
    answer(json.dumps(WARM_UP).encode())
    while True:
        sys.stdout.write(json.dumps(answer(requests.get()), allow_nan=False) + "\n")
        sys.stdout.flush()
