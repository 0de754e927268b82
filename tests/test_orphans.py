"""Commands that start others leave none behind, however they end: by Ctrl-C, SIGTERM, or killed outright."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LONG = {
    "source": "1RB1LA_1LA1RB",
    "target": "tape",
    "input": "",
    "options": "cells=100000",
    "steps": "10000000",
}
"""A machine that never halts."""
IN_THE_BACKGROUND = """trap '' INT; exec "$@" """
"""As a script's shell starts what runs in the background: Ctrl-C is set to be ignored, and is to be heard."""


def of_session(session: int) -> list[int]:
    """Processes of a session that have not ended, by what the kernel says."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, own, *_ = entry.read_text().rpartition(")")[2].split()
            if int(own) == session and state != "Z":
                found.append(int(entry.parent.name))
    return found


def soon(holds: Callable[[], bool], seconds: float = 120) -> bool:
    """Whether it comes to hold."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        if holds():
            return True
        time.sleep(0.1)
    return False


@contextmanager
def started(*words: str, stderr: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """A command in a session of its own, of which nothing is left in the end."""
    program = [sys.executable, "-uc", "from tapegrad_command import main; main()", *words]
    process = subprocess.Popen(
        ["sh", "-c", IN_THE_BACKGROUND, "sh", *program],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for left in of_session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        process.wait()


def ends_alone(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """After the signal, which goes to this one process, its session is empty."""
    process.send_signal(number)
    assert soon(lambda: process.poll() is not None)
    assert soon(lambda: not of_session(process.pid)), f"left behind: {of_session(process.pid)}"


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_the_studio_takes_its_job_with_it(number: signal.Signals) -> None:
    with started("studio") as process:
        assert process.stdout is not None
        found = re.search(r"http://(\S+?)/?\?token=(\S+)", process.stdout.readline())
        assert found is not None
        page = http.client.HTTPConnection(found[1])  # as long as it is open, its job runs
        page.request("POST", f"/run?token={found[2]}", json.dumps(LONG), {"Origin": f"http://{found[1]}"})
        assert soon(lambda: len(of_session(process.pid)) == 2)
        time.sleep(2)
        assert len(of_session(process.pid)) == 2
        ends_alone(process, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_workers_of_a_campaign_end_with_it(number: signal.Signals) -> None:
    with started("campaign", "--target", "relu", "--programs", "100000", "--workers", "2") as process:
        assert soon(lambda: process.poll() is not None or len(of_session(process.pid)) >= 3)
        time.sleep(2)
        assert len(of_session(process.pid)) >= 3
        ends_alone(process, number)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_ctrl_c_at_a_terminal_is_one_line(processes: int, tmp_path: Path) -> None:
    """A terminal sends it to all processes of a command: workers that start, and that work, say nothing."""
    words = (
        "campaign",
        "--target",
        "relu",
        "--programs",
        "100000",
        "--workers",
        "3",
        "-o",
        str(tmp_path / "kept"),
    )
    with started(*words, stderr=subprocess.PIPE) as process:
        assert soon(lambda: process.poll() is not None or len(of_session(process.pid)) >= processes)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said == f"interrupted; the same command goes on from {tmp_path / 'kept'}\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_search_ends_at_once(number: signal.Signals, tmp_path: Path) -> None:
    """Its workers are threads, each in the middle of a shard."""
    file = tmp_path / "search.sqlite"
    with started(
        "search", "any-minus", "--states", "3", "--writes", "--no-train", "--file", str(file)
    ) as process:
        assert soon(file.exists)
        ends_alone(process, number)
