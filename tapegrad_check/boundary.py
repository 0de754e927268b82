"""The boundary between a program and its shell: streams, signals, exit codes, and what is said of errors.

An exit code has one meaning. In particular 1 says that something was compared and does not agree, so whatever
else goes wrong has to end here, where it gets a code of its own and one paragraph instead of a traceback.
"""

import contextlib
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import IO, Protocol

from tapegrad_check.signals import Terminated, stopped_by_signals

INTERNAL_ERROR, NO_ROOM, INTERRUPTED, TERMINATED = 70, 71, 130, 143
"""A fault of ours, and something that the system does not have, by the codes of sysexits.h; Ctrl-C and
SIGTERM, by the codes of shells."""

TRACEBACK = "TAPEGRAD_TRACEBACK"
"""The environment variable that asks for tracebacks."""

REPORT = f"Please report it; to see the traceback, set {TRACEBACK}=1 or give --traceback."
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
EMPTIER = "Make room on the disk, or write to another place."
SMALLER = (
    "Try something smaller (fewer steps, cells, samples, or inputs at a time; `tapegrad estimate` tells the "
    "size of a network before it is built), or let the process have more memory."
)


class Mendable(Protocol):
    """An error that the user can mend, in the parts that scripts read."""

    what: str
    where: str
    advice: str


def printable(text: str, keep: str = "") -> str:
    """Text that is safe to show: a character that steers a terminal, or that has no glyph, is written as its
    escape, as in `\\x1b`."""
    if text.isprintable():
        return text
    shown = (c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
    return "".join(shown)


def complain(error: Mendable, *, as_json: bool = False) -> None:
    """Says in a paragraph what was wrong, and to a script also in JSON."""
    if as_json:
        print_json({"error": error.what, "where": error.where, "advice": error.advice})
    _say(str(error), "error: ")
    _show_traceback()


def print_json(data: object) -> None:
    """One JSON value on standard output, in ASCII where the terminal or its encoding needs that."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "ascii")
        plain = printable(text, keep="\n") == text
    except UnicodeEncodeError:
        plain = False
    with silent_when_closed():
        print(text if plain else json.dumps(data, indent=2), flush=True)


@contextlib.contextmanager
def silent_when_closed() -> Iterator[None]:
    """Who reads the output may stop reading, as `head` does: the rest is then written to nowhere, and the
    program goes on to its exit code."""
    try:
        yield
    except BrokenPipeError:
        silence(sys.stdout)


def silence(stream: IO[str]) -> None:
    """The stream goes nowhere from here on, also what Python writes to it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def guarded(program: Callable[[], int], *, as_json: bool = False) -> int:
    """Runs a program and gives its exit code, whatever happens in it."""
    _prepare_streams()
    try:
        with stopped_by_signals():
            code = program()
            with silent_when_closed():
                sys.stdout.flush()
            return code
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # for which libraries have a code of their own
            return 0
        return left.code if isinstance(left.code, int) else 0 if left.code is None else INTERNAL_ERROR
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except Terminated:
        _say("terminated")
        return TERMINATED
    except Exception as error:  # RecursionError is among them
        if lacks_memory(error):
            return _unforeseen(NO_ROOM, "not enough memory" + _details(error), SMALLER, as_json)
        if isinstance(error, OSError) and error.errno in FULL:
            return _unforeseen(NO_ROOM, f"what is written has no room: {error.strerror}", EMPTIER, as_json)
        told = " ".join("".join(traceback.format_exception_only(error)).split())
        return _unforeseen(INTERNAL_ERROR, f"internal error: {told}", REPORT, as_json)
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # Python would complain about it once more
            silence(sys.stdout)


def lacks_memory(error: BaseException) -> bool:
    """Whether an error says that the system has no more memory: Python's and NumPy's, the system's, XLA's."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and str(error).startswith("RESOURCE_EXHAUSTED")
    )


def _details(error: Exception) -> str:
    """Which module of ours ran out of it, and what was asked for, in the words of who asked."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [name for name in frames if name.startswith("tapegrad") and name != __name__]
    told = " ".join(str(error).removeprefix("RESOURCE_EXHAUSTED:").split())
    return (f" in {ours[-1]}" if ours else "") + (f": {told}" if told else "")


def _unforeseen(code: int, what: str, advice: str, as_json: bool) -> int:
    if as_json:
        with contextlib.suppress(OSError):  # there may be no room for that either
            print_json({"error": what, "where": "", "advice": advice})
    _say(f"{what.removesuffix('.')}. {advice}")
    _show_traceback()
    return code


def _show_traceback() -> None:
    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        traceback.print_exc()


def _say(text: str, label: str = "") -> None:
    """A paragraph on standard error, if anyone can read it."""
    if label and sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        label = f"\x1b[1;31m{label}\x1b[0m"
    with contextlib.suppress(OSError):
        print(label + printable(text, keep="\n\t"), file=sys.stderr, flush=True)


def _prepare_streams() -> None:
    """A closed stream goes nowhere; a character that a stream's encoding lacks is written as its escape."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open until the program ends
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
