"""Requests of the studio, carried out in a process of their own: JSON in, a recording or an error out.

`python -m tapegrad.show.studio_job` warms up, then reads requests from standard input. With `--python` it
also runs Python code that a request consists of: whoever starts it so wants that. The studio kills it
when the time for one is up or the page is closed. When the studio ends, so does standard input, and it ends.
"""

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tapegrad._files import no_files
from tapegrad._kept import keep_compiled, kept_in
from tapegrad._python import last_defined
from tapegrad._sources import Found, as_source, find_text, parse_options
from tapegrad.errors import FormatError, InputError, Refused, TapegradError
from tapegrad.show.gallery import BEGIN, Entry
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
    except RecursionError:
        return {"error": "This goes round in circles, or is nested too deeply."}
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
        found = _from_python(source) if is_python(source) else find_text(source)
        compiled, inputs = compiled_source(found, target, texts, settings, MOST_STEPS)
    return {
        "recording": record(
            compiled, *inputs, steps=MOST_STEPS, frames=MOST_FRAMES, seconds=SECONDS_TO_RECORD
        ).to_json()
    }


PYTHON_OPTION = "--python"
_PYTHON = re.compile(r"^def \w+\(", re.MULTILINE)


def is_python(source: str) -> bool:
    """Whether a text looks like Python: a line begins as the definition of a function does."""
    return _PYTHON.search(source) is not None


def _from_python(source: str) -> Found:
    """Runs the text, if this process was started for that, and traces the last function in it."""
    if PYTHON_OPTION not in sys.argv[1:]:
        raise Refused(
            "this is Python, and the studio would have to run it on this machine",
            advice="If that is what you want, start it as `tapegrad studio --python`.",
        )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder, "typed.py")
        path.write_text(source, encoding="utf-8")
        function = last_defined(path)
        try:
            return Found(as_source(function), "Python")
        except TapegradError:
            raise
        except Exception as error:  # the author's own, while the function is traced
            calls = traceback.extract_tb(error.__traceback__)
            lines = [call.lineno for call in calls if Path(call.filename).name == path.name]
            where = f"line {lines[-1]}" if lines else ""
            raise InputError(f"the function fails: {type(error).__name__}: {error}", where=where) from error


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


EVERYDAY = ("tape", "relu", "transformer", "decoder", "simplex", "rcnn", "emulator")
FILL_OPTION = "--fill"


def warm_up() -> Iterator[bytes]:
    """Runs that are made while nobody asks, so that those to come find what they need imported and compiled:
    first the one that the page opens with, then one for each idea, and a small one on each target."""
    yield from (entry.request() for entry in BEGIN)
    yield from (Entry("", "", "increment", target, "1").request() for target in EVERYDAY)


def idle_runs() -> Iterator[bytes]:
    """What to do while nobody asks. To compile takes seconds, in which someone may ask after all: where there
    is no compiled code yet, another process sees to it, which writes it where this one finds it."""
    first, *others = warm_up()
    yield first
    mark = _mark()
    if mark is None or mark.exists():
        yield from others
    else:
        command = [sys.executable, "-P", "-m", "tapegrad.show.studio_job", FILL_OPTION]
        nowhere = subprocess.DEVNULL
        _filling.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere))


_filling: list[subprocess.Popen[bytes]] = []
"""The process that compiles. Its standard input ends with this one, and so does it."""


def _fill() -> None:
    """Makes all those runs, behind everything else that wants the processor, and leaves a mark."""
    if hasattr(os, "nice"):
        os.nice(19)
    for asked in warm_up():
        answer(asked)
    if (mark := _mark()) is not None:
        mark.write_text("Everything that the studio warms up with is compiled.\n", encoding="utf-8")


def _mark() -> Path | None:
    """The file that says so, for these sources; None where compiled code is not kept."""
    from tapegrad._jit_cache import sources_stamp  # which loads numba

    folder = kept_in()
    return None if folder is None else folder / f"warm-{sources_stamp()[:16]}"


def _requests() -> "queue.SimpleQueue[bytes]":
    """Lines of standard input, as they come. It stays open as long as the studio wants answers."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    typed = os.fdopen(os.dup(0), "rb")

    def read() -> None:
        while line := typed.readline():
            lines.put(line)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return lines


if __name__ == "__main__":
    keep_compiled()
    _limit_memory()
    requests = _requests()
    if FILL_OPTION in sys.argv[1:]:
        _fill()
        sys.exit()
    # Requests and answers have streams of their own: what a typed function prints or reads is none of them.
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    idle = idle_runs()
    while True:
        while requests.empty() and (small := next(idle, None)):
            answer(small)
        answers.write(json.dumps(answer(requests.get()), allow_nan=False) + "\n")
        answers.flush()
