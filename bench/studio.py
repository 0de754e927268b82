"""How soon the studio answers: `python -m bench.studio`. With `--all`, every ready source on every target, in
one warm worker: how long it took, and whether it was refused or failed; names after it choose sources."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from tapegrad._sources import ready_names
from tapegrad.show.gallery import BEGIN
from tapegrad.show.studio import Worker
from tapegrad.targets import all_targets

SECONDS = 120.0
"""After which a worker hangs."""


def request(source: str, target: str, input: str = "", options: str = "") -> bytes:
    """As the page sends it."""
    return json.dumps({"source": source, "target": target, "input": input, "options": options}).encode()


def answered(worker: Worker, asked: bytes) -> tuple[dict[str, Any] | None, float]:
    """The answer, None from a worker that hangs or has failed, and how many seconds it took."""
    begin = time.perf_counter()
    worker.ask(asked)
    while (content := worker.answer()) is None and time.perf_counter() - begin < SECONDS:
        time.sleep(0.002)
    return json.loads(content) if content else None, time.perf_counter() - begin


def started() -> float:
    """Seconds from the command to the page."""
    begin = time.perf_counter()
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
        return time.perf_counter() - begin
    finally:
        studio.terminate()
        studio.wait()


def speed(folder: str) -> None:
    """Start, and each idea of the gallery for the first and for the second time."""
    print(f"start, until the page is there: {started():.2f} s")
    worker = Worker(folder)
    try:
        _, seconds = answered(worker, request("1RB1LB_1LA1RZ", "tape"))
        print(f"a worker from nothing to its first answer: {seconds:.2f} s\n")
        print("| run | first | again |\n|---|---:|---:|")
        for entry in BEGIN:
            asked = request(entry.source, entry.target, entry.input, entry.options)
            first, again = (answered(worker, asked)[1] for _ in range(2))
            print(f"| {entry.title} (`{entry.target}`) | {first:.2f} s | {again:.2f} s |", flush=True)
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
        speed(own)
