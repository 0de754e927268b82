"""One request of the studio, carried out in a process of its own: JSON in, a recording or an error out.

`python -m tapegrad.show.studio_job` reads the request, one line, from standard input. The studio kills it
when its time is up or the page is closed. When the studio itself ends, so does standard input, and it ends.
"""

import json
import os
import sys
import threading
from typing import Any

from tapegrad._files import no_files
from tapegrad._sources import find_text, parse_options
from tapegrad.errors import FormatError, TapegradError
from tapegrad.show.recorder import EXAMPLE, MOST_STEPS, compiled_example, compiled_source, record

MOST_FRAMES = 300
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
    return {"recording": record(compiled, *inputs, steps=MOST_STEPS, frames=MOST_FRAMES).to_json()}


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


def _end_with_the_studio() -> None:
    """Standard input stays open as long as the studio wants an answer."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    _limit_memory()
    asked = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_the_studio, daemon=True).start()
    sys.stdout.write(json.dumps(answer(asked), allow_nan=False))
    sys.stdout.flush()
    os._exit(0)  # the thread still reads
