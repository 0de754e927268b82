"""A program in a process of its own, with a limit on the processor's time and on memory, for it and for all
that it starts.

Limits are enforced from outside, by what the kernel says of every process of its session: some programs do
not heed SIGTERM, or their own limits. Time is that of the processor, so that a busy machine does not change a
score; one that waits for nothing is stopped too, after a few times as long on the clock.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tapegrad.errors import Refused

WAITING = 5
"""Times the limit on processor time that a program may take on the clock."""
PAUSE = 0.05
"""Seconds between two looks at a program."""
LEASH = "import os, signal, sys; sys.stdin.read(); os.killpg(int(sys.argv[1]), signal.SIGKILL)"
"""A small process beside a program: its input ends when this process does, even killed outright, and then it
ends the program, which nobody watches any more."""
TAIL = 4000
"""Characters that are kept of what it prints."""


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    code: int | None
    """Its exit code, negative for a signal; None where it was stopped at a limit."""
    stopped: str
    """"time" or "memory" where it was."""
    seconds: float
    """Of the processor."""
    memory: int
    """The most bytes in memory that were seen."""
    printed: str
    """The end of what it printed."""


def run_limited(
    command: Sequence[str], *, seconds: float, memory: int, environment: Mapping[str, str] | None = None
) -> Ended:
    """Runs a command to its end or to a limit."""
    if not os.path.isdir("/proc/self"):
        raise Refused("limits on other programs need a system with /proc", advice="Use Linux.")
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=None if environment is None else {**os.environ, **environment},
        )
        leash = subprocess.Popen(
            [sys.executable, "-ISc", LEASH, str(process.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        used, most, stopped, began = 0.0, 0, "", time.monotonic()
        try:
            while process.poll() is None:
                now, held = _usage(process.pid)
                used, most = max(used, now), max(most, held)
                if held > memory:
                    stopped = "memory"
                elif used > seconds or time.monotonic() - began > WAITING * seconds:
                    stopped = "time"
                if stopped:
                    break
                time.sleep(PAUSE)
        finally:
            leash.kill()
            leash.communicate()
            _end(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL))
        printed = output.read().decode(errors="replace")
    return Ended(None if stopped else process.returncode, stopped, used, most, printed)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program and all that it has started: its session has the number of its process. What it starts
    while the others are being ended is ended in the next round."""
    while running := _running(process.pid):
        for number in running:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
    process.wait()


def _running(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    return [number for number, fields in _session(leader) if fields[0] not in "ZX"]


def _usage(leader: int) -> tuple[float, int]:
    """Processor time and memory of all processes of a session; time of those that ended is with their
    parents."""
    ticks, pages = 0, 0
    for _, fields in _session(leader):
        ticks += sum(map(int, fields[11:15]))
        pages += int(fields[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


def _session(leader: int) -> Iterator[tuple[int, list[str]]]:
    """Each process of a session: its number, and its fields after the name: state, parent, group, session,
    and so on."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == leader:
            yield int(entry.name), fields
