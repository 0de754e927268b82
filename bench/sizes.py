"""Real sources on every target: `python -m bench.sizes [FILE ...] [--target NAME ...] [--json FILE]`.

Without files: circuits of the size and function of c432, c499 and c6288 of ISCAS-85, and machines with two
and three tapes. Every cell of the table is a process of its own that compiles the source, verifies the
network on random inputs (every state decoded and compared with the source's interpreter), saves, loads, runs
the loaded network once more and has the folder checked. Given are processor seconds and the most memory of
the process; a refusal is given in its own words with the seconds it took. With `--json` a cell that the file
has already is not measured again, so a run that was stopped goes on where it was.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SOURCES = ("interrupts9", "corrector32", "multiplier16", "bench/machines/equal.txt", "bench/machines/add.txt")
"""What is measured where no files are given; the machines have two and three tapes."""
TARGETS = ("relu", "transformer", "simplex", "tape", "emulator", "rcnn", "decoder")
SECONDS, GIGABYTES = 300, 4
"""Processor time and memory that a cell has."""
PATTERNS = 2
"""Random inputs on which a network of a circuit is verified."""
LETTERS = 12
"""Of a word on a tape."""
STEPS = 2_000_000
COMPARED = 50_000
"""In runs longer than this not every step is compared, but some."""


def cell(text: str, target: str) -> Iterator[dict[str, Any]]:
    """What is known after each stage of one cell."""
    from tapegrad._compile import compile_for
    from tapegrad._lockstep import looked_ahead
    from tapegrad._saved import check, load, save
    from tapegrad._sources import find, kind_of
    from tapegrad._verify import verify
    from tapegrad.errors import TapegradError

    began = time.process_time()

    def stage(name: str, **found: Any) -> dict[str, Any]:
        return {"stage": name, "seconds": time.process_time() - began, "peak": _peak(), **found}

    found = find(text)
    inputs = _inputs(found.source, found.inputs)
    yield stage("read", kind=kind_of(found.source).name)
    began = time.process_time()
    try:
        options: dict[str, Any] = {}
        if target == "simplex":
            options["inputs"] = [tuple(_as_list(word) for word in one) for one in inputs]
        compiled = compile_for(found.source, target, inputs[0], STEPS, **options)
    except TapegradError as refused:
        yield stage("refused", why=str(refused))
        return
    passes = [rewriting.name for rewriting in compiled.passes]
    yield stage("compile", passes=passes, parameters=compiled.net.parameters)
    began = time.process_time()
    ahead = looked_ahead(compiled, inputs[0], STEPS)
    every = 1
    if ahead is not None and ahead.steps > COMPARED:
        every = ahead.steps // compiled.net.looks(compiled.encode(compiled.source.start(*inputs[0])))
    report = verify(compiled, inputs, steps=STEPS, engine=None, every=every)
    yield stage("verify", inputs=len(inputs), every=every, **_seen(report))
    with TemporaryDirectory() as folder:
        began = time.process_time()
        save(compiled, Path(folder, "net"))
        yield stage("save", bytes=sum(file.stat().st_size for file in Path(folder, "net").iterdir()))
        began = time.process_time()
        loaded = load(Path(folder, "net"))
        carry = loaded.start(*inputs[0])
        run = loaded.resume(carry, steps=STEPS, engine=loaded.net.engine_for(carry, STEPS))
        yield stage("load and run", halted=run.halted)
        began = time.process_time()
        yield stage("check", verdict=check(Path(folder, "net")).verdict)


def _seen(report: Any) -> dict[str, Any]:
    names = ("agreed", "complete", "steps", "engine", "deviation")
    return {name: getattr(report, name) for name in names}


def _as_list(word: Any) -> Any:
    """An input that can be saved."""
    return word.tolist() if isinstance(word, np.ndarray) else word


def _inputs(source: Any, own: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Random rows for a circuit. For a machine the input that came with it; one that comes with blank tapes
    has random words on the first two, the same and different ones."""
    random = np.random.default_rng(0)
    if not own:
        return [(random.integers(0, 2, (1, len(source.inputs)), np.uint8),) for _ in range(PATTERNS)]
    if any(own[0].tapes):
        return [own]
    symbols = [symbol for symbol in source.alphabet if symbol != source.blank]
    words = ["".join(random.choice(symbols, LETTERS)) for _ in range(2)]
    return [(words[0], words[0]), (words[0], words[1])]


def _peak() -> int:
    """Bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(text: str, target: str) -> dict[str, Any]:
    """All stages of a cell by name, from a process of its own."""
    began = time.perf_counter()
    limits = {resource.RLIMIT_CPU: SECONDS, resource.RLIMIT_AS: 3 * GIGABYTES << 30}

    def limit() -> None:
        for what, most in limits.items():
            resource.setrlimit(what, (most, most + 5))

    done = subprocess.run(
        [sys.executable, "-m", "bench.sizes", "--cell", text, target],
        capture_output=True,
        text=True,
        cwd=HERE.parent,
        preexec_fn=limit,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )
    stages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {one.pop("stage"): one for one in stages}
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        found["failed"] = {"why": said[0], "seconds": time.perf_counter() - began}
    return found


def in_words(found: dict[str, Any]) -> str:
    """A cell of the table."""
    if "refused" in found:
        return f"refused in {found['refused']['seconds']:.1f} s: {found['refused']['why']}"
    stages = {name: found[name]["seconds"] for name in ("compile", "verify", "check") if name in found}
    if "failed" in found or len(stages) < 3:
        return (
            f"failed after {' '.join(f'{name} {taken:.1f}' for name, taken in stages.items()) or 'nothing'}"
        )
    peak = max(one.get("peak", 0) for one in found.values()) / 2**30
    verified = found["verify"]
    if not verified["agreed"] or not verified["complete"]:
        return "DISAGREED"
    steps, size = verified["steps"] // verified["inputs"], found["compile"]["parameters"]
    times = " + ".join(f"{taken:.1f}" for taken in stages.values())
    return f"{_short(size)}; {steps:,} step{'s' * (steps != 1)}; {times} s; {peak:.1f} GiB"


def _short(number: int) -> str:
    return f"{number / 1e6:.1f} M" if number >= 1_000_000 else f"{number:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", default=SOURCES)
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--cell", nargs=2, metavar=("SOURCE", "TARGET"), help="one cell, in this process")
    parser.add_argument("--json", type=Path, help="where to write everything that was measured")
    given = parser.parse_args()
    if given.cell:
        for one in cell(*given.cell):
            print(json.dumps(one), flush=True)
        return
    everything: dict[str, dict[str, Any]] = {}
    if given.json is not None and given.json.exists():
        everything = json.loads(given.json.read_text())
    targets = given.target or TARGETS
    names = {re.sub(r"\.\w+$", "", Path(source).name): source for source in given.sources}
    for name, source in names.items():
        cells = everything.setdefault(name, {})
        for target in targets:
            if target in cells:
                continue
            cells[target] = measured(source, target)
            print(f"{name} on {target}: {json.dumps(cells[target])}", file=sys.stderr, flush=True)
            if given.json:
                given.json.write_text(json.dumps(everything, indent=1))
    print(f"| target | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for target in targets:
        print(f"| {target} | {' | '.join(in_words(everything[name][target]) for name in names)} |")


if __name__ == "__main__":
    main()
