"""How soon the studio answers: `python -m bench.studio`; with `--fresh`, as the first time after an install,
when nothing is compiled yet. With `--all`, every ready source on every target, in one warm worker: how long
it took, and whether it was refused or failed; names after it choose sources."""

import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tapegrad._sources import ready_names
from tapegrad.show.gallery import BEGIN, Entry
from tapegrad.show.studio import Worker
from tapegrad.targets import all_targets

SECONDS = 120.0
"""After which a worker hangs."""


def request(source: str, target: str) -> bytes:
    """As the page sends it."""
    return Entry("", "", source, target).request()


def answered(worker: Worker, asked: bytes) -> tuple[dict[str, Any] | None, float]:
    """The answer, None from a worker that hangs or has failed, and how many seconds it took."""
    begin = time.perf_counter()
    worker.ask(asked)
    while (content := worker.answer()) is None and time.perf_counter() - begin < SECONDS:
        time.sleep(0.002)
    return json.loads(content) if content else None, time.perf_counter() - begin


def started() -> tuple[float, float, float]:
    """Seconds from the command to the page, to its first result, and of processor time until then."""
    begin, before = time.perf_counter(), _children()
    command = [Path(sys.executable).parent / "tapegrad", "studio"]
    studio = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    try:
        assert studio.stdout is not None
        select.select([studio.stdout], [], [], SECONDS)
        url = studio.stdout.readline().split()[1]
        with urllib.request.urlopen(url) as page:
            page.read()
        there = time.perf_counter() - begin
        host, token = url.split("/?token=")
        asked = urllib.request.Request(f"{host}/run?token={token}", BEGIN[0].request(), {"Origin": host})
        with urllib.request.urlopen(asked) as answer:
            assert json.loads(answer.read())["recording"]["agreed"]
        shown = time.perf_counter() - begin
    finally:
        studio.send_signal(signal.SIGINT)
        studio.wait()
    return there, shown, _children() - before


def _children() -> float:
    """Processor time of processes that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def _spent(worker: Worker) -> float:
    """Processor time of a worker so far, where the system tells it."""
    try:
        fields = Path(f"/proc/{worker.process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def speed(folder: str) -> None:
    """Start, and each idea of the gallery for the first and for the second time."""
    there, shown, spent = started()
    load = os.getloadavg()[0]
    print(f"start, until the page is there: {there:.2f} s, with its first result: {shown:.2f} s")
    print(f"({spent:.2f} s of processor time up to its end, load {load:.1f} on {os.cpu_count()} cores)")
    worker = Worker(folder)
    try:
        print("\n| run | first | again | processor time, first | again |\n|---|---:|---:|---:|---:|")
        answered(worker, BEGIN[0].request())
        for entry in BEGIN:
            before = _spent(worker)
            first = answered(worker, entry.request())[1]
            between = _spent(worker)
            again = answered(worker, entry.request())[1]
            spent = f"{between - before:.2f} s | {_spent(worker) - between:.2f} s"
            print(
                f"| {entry.title} (`{entry.target}`) | {first:.2f} s | {again:.2f} s | {spent} |", flush=True
            )
    finally:
        worker.end()


def everything(folder: str, names: list[str]) -> int:
    """A line for each pair; how many of them failed or hung."""
    worker, failed = Worker(folder), 0
    for name in names or ready_names():
        for target in all_targets():
            answer, seconds = answered(worker, request(name, target.name))
            said = (
                "HANGS OR FAILS"
                if answer is None
                else "refused: " + answer["error"][:150]
                if "error" in answer
                else ""
            )
            if answer is not None and "recording" in answer:
                made = answer["recording"]
                flat = len({frame["curve"] for frame in made["frames"]} - {None}) < 2
                said = f"{made['steps']:,} steps, {len(made['frames'])} frames" + ", flat curve" * flat
                said += "" if made["agreed"] else ", DISAGREES"
                said += "" if any(panel["kind"] == "drawing" for panel in made["panels"]) else ", no drawing"
            if answer is None or "DISAGREES" in said:
                failed += 1
                worker.end()
                worker = Worker(folder)
            print(f"{seconds:6.1f} s  {name} on {target.name}: {said}", flush=True)
    worker.end()
    return failed


if __name__ == "__main__":
    arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as own:
        if arguments[:1] == ["--all"]:
            sys.exit(everything(own, arguments[1:]) > 0)
        if arguments[:1] == ["--fresh"]:
            os.environ |= {"XDG_CACHE_HOME": own, "NUMBA_CACHE_DIR": own}
        speed(own)
