"""Measures the house: files, lines, tests per line of code, and how many files a run passes through.

    python docs/figures/house.py             # the table of docs/architecture.md, for this tree
    python docs/figures/house.py --files     # and the files on each walk

A file is on the way of a walk if one of its functions is called between the first call of the walk and its
last, imports included. With `PYTHONPATH=OTHER_TREE` it measures that tree instead.
"""

import contextlib
import inspect
import io
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from types import CodeType, FrameType

PACKAGES = ("tapegrad", "tapegrad_check", "tapegrad_papers")
CLASSIFIERS = ("tapegrad.sklearn", "tapegrad.nets.emulator.estimator")
"""Where `EmulatedClassifier` is: in this tree, and before the code was reorganised."""


def run_a_machine() -> None:
    """`tapegrad run palindrome --target tape --input abba`."""
    from tapegrad.cli import main

    sys.argv = ["tapegrad", "run", "palindrome", "--target", "tape", "--input", "abba"]
    with contextlib.suppress(SystemExit):
        main()


def prove_a_function() -> None:
    """A Python function to `relu`: trace, compile, save, check."""
    import tapegrad as tg

    def clamped_sum(a, b):
        return tg.where(a + b < a, 255, a + b)

    tg.save(tg.compile(tg.trace(clamped_sum, tg.UInt(8), tg.UInt(8)).circuit, "relu"), "clamp.net")
    assert tg.check("clamp.net").statements


def train_a_learner() -> None:
    """A learner on `emulator`: fit, predict."""
    import numpy as np

    from tapegrad.learners import parity

    for place in CLASSIFIERS:
        with contextlib.suppress(ModuleNotFoundError):
            found = import_module(place).EmulatedClassifier
            break
    else:
        raise SystemExit(f"EmulatedClassifier is in none of {CLASSIFIERS}")
    x = np.random.default_rng(0).integers(0, 2, (60, 6))
    y = x[:, 1] ^ x[:, 4]
    assert (found(parity).fit(x, y).predict(x) == y).all()


WALKS: dict[str, Callable[[], None]] = {
    walk.__name__: walk for walk in (run_a_machine, prove_a_function, train_a_learner)
}


def root() -> Path:
    """The folder of the tree that `import tapegrad` finds."""
    import tapegrad

    return Path(tapegrad.__file__).parents[1]


def called(walk: Callable[[], None]) -> list[str]:
    """The package files in which a function was called during a walk."""
    seen: set[CodeType] = set()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    # The bodies of modules and classes are no functions; only those have fast local variables.
    files = {Path(code.co_filename) for code in seen if code.co_flags & inspect.CO_OPTIMIZED}
    inside = [file.relative_to(root()) for file in files if file.is_relative_to(root())]
    return sorted(str(file) for file in inside if file.parts[0] in PACKAGES)


def lines_of(folder: Path) -> list[int]:
    """The number of lines of each Python file under a folder."""
    return [len(file.read_text().splitlines()) for file in folder.rglob("*.py")]


def rows(tree: Path) -> list[tuple[str, str]]:
    """What is measured of a tree without running anything."""
    sizes = {name: lines_of(tree / name) for name in PACKAGES if (tree / name).is_dir()}
    everything = [size for package in sizes.values() for size in package]
    tests = sum(lines_of(tree / "tests"))
    found = [(f"`{name}`: files, lines", f"{len(size):,}, {sum(size):,}") for name, size in sizes.items()]
    return [
        *found,
        ("all packages: files, lines", f"{len(everything):,}, {sum(everything):,}"),
        ("lines of a file, median", f"{median(everything):g}"),
        ("lines of tests per line of code", f"{tests / sum(everything):.2f}"),
    ]


def main() -> None:
    """Prints the table; each walk in a process and a folder of its own."""
    if sys.argv[1:2] == ["--walk"]:
        files = called(WALKS[sys.argv[2]])
        print(json.dumps(files))
        return
    print("| measured | value |\n|---|---:|")
    for name, value in rows(root()):
        print(f"| {name} | {value} |")
    for name, walk in WALKS.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(Path(__file__).resolve()), "--walk", name]
            done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        files = json.loads(done.stdout.splitlines()[-1])
        what = (inspect.getdoc(walk) or "").rstrip(".")
        print(f"| files on the way: {what} | {len(files)} |")
        if "--files" in sys.argv:
            print("\n".join(f"    {file}" for file in files))


if __name__ == "__main__":
    main()
