"""Hostile files: sound ones of every format and saved nets, damaged at random. Each is read, or refused with
one paragraph; nothing else may happen, and nothing may take long.

    python -m tests.hostile --files 10000
"""

import argparse
import contextlib
import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tapegrad._compile import compile
from tapegrad._saved import load, save
from tapegrad._sources import all_kinds, read
from tapegrad._verify import verify
from tapegrad.errors import TapegradError
from tapegrad_check import CheckError, check
from tapegrad_check.folder import CERTIFICATE, CONFIG, MODEL
from tests.programs.test_elf import elf

PIECES = [
    *(bytes([code]) for code in b"{}[]()'\"\\,:;|>&*!%@`#?-_~ \t\n\r0129aZ/=.$"),
    *(b"---", b"...", b"//", b"\\\n", b"\r\n", b"\xff", b"\0", b"\x1b[2J", b"\xef\xbb\xbf", b"\x80" * 6),
    *("é".encode(), "\u2028".encode(), "\U0001f600".encode(), b"null", b"NaN", b"1e999999", b"-1", b"9" * 40),
    *(
        b"aag",
        b"aig",
        b".names",
        b".inputs",
        b".latch",
        b".end",
        b"INPUT(",
        b"&a ",
        b"*a ",
        b"<<: ",
        b"!!str ",
    ),
]
SLOW = 2.0
"""Seconds that no small file may take."""


NETS: dict[str, tuple[str, dict[str, object]]] = {
    "relu": ("adder2", {}),
    "transformer": ("1RB1LB_1LA1RZ", {"steps": 8}),
    "simplex": ("1RB1LB_1LA1RZ", {"inputs": [[]]}),
    "tape": ("1RB1LB_1LA1RZ", {"cells": 16}),
    "emulator": ("learn-parity2", {}),
    "rcnn": ("1RB1LB_1LA1RZ", {"margin": 4}),
}
"""For each target a source and options."""


class Row(NamedTuple):
    """What became of the files of one reader."""

    reader: str
    files: int
    accepted: int
    refused: int
    wrong: int
    """Exceptions that are no refusal, refusals of more than one paragraph, and files that took long."""
    slowest: float

    def joined(self, other: "Row") -> "Row":
        """What became of the files of both."""
        files, accepted, refused, wrong = (a + b for a, b in zip(self[1:5], other[1:5], strict=True))
        return Row(self.reader, files, accepted, refused, wrong, max(self.slowest, other.slowest))


def damaged(data: bytes, dice: random.Random) -> bytes:
    """One to four changes: bytes cut out, doubled, put in, overwritten, or lines in another order."""
    for _ in range(dice.randint(1, 4)):
        start = dice.randint(0, len(data))
        end = min(start + dice.choice([0, 1, 2, 12, 100]), len(data))
        change = dice.randrange(8)
        if change == 0:
            lines = data.split(b"\n")
            dice.shuffle(lines)
            data = b"\n".join(lines)
            continue
        piece = b"" if change == 1 else data[start:end] * 2 if change == 2 else dice.choice(PIECES)
        if change == 3:
            piece, end = dice.randbytes(1), min(start + 1, len(data))
        data = data[:start] if change == 4 else data[:start] + piece + data[end:]
    return data


def tried(reader: str, sound: list[bytes], use: Callable[[bytes], object], files: int, seed: int = 0) -> Row:
    """Damaged files through one reader; the sound ones first, which it must read (and its engine compile)."""
    for data in sound:
        use(data)
    dice, accepted, refused, wrong, slowest = random.Random(seed), 0, 0, 0, 0.0
    for _ in range(files):
        data = damaged(dice.choice(sound), dice)
        began = time.process_time()
        try:
            use(data)
            accepted += 1
        except (TapegradError, CheckError) as error:
            refused += 1
            wrong += "\n" in str(error)
        except Exception as error:
            wrong += 1
            print(f"{reader}: {type(error).__name__}: {error}; the file was {data!r}")
        taken = time.process_time() - began
        if taken > SLOW:  # once: a file may be the first for which something is compiled
            began = time.process_time()
            with contextlib.suppress(Exception):
                use(data)
            taken = time.process_time() - began
        wrong += taken > SLOW
        slowest = max(slowest, taken)
    return Row(reader, files, accepted, refused, wrong, slowest)


def readers(folder: Path) -> Iterator[tuple[str, list[bytes], Callable[[bytes], object]]]:
    """Every format that needs no compiler, and every file of a saved net, with sound data for it."""
    for kind in all_kinds():
        for known in kind.formats:
            if known.name not in ("C", "verilog"):
                yield known.name, [elf() if known.name == "ELF" else known.example.encode()], known.read
    for target, (name, options) in NETS.items():
        place = folder / target
        save(compile(read(name), target, **options), place)
        for file in (CONFIG, MODEL, CERTIFICATE):
            sound = (place / file).read_bytes()
            for what, use in (("check", check), ("load and run", _load_and_run)):
                yield f"{what}: {file}", [sound], _in_folder(place, file, use)


def _load_and_run(folder: Path) -> object:
    """By the fast engine, which looks up what stands at the numbers in the file."""
    return verify(load(folder), steps=20, engine="fast")


def _in_folder(place: Path, file: str, use: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Reads the folder with other data in the place of one file, the sums in the certificate renewed."""

    def read_folder(data: bytes) -> object:
        forged = place.with_name("forged")
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(forged)
        shutil.copytree(place, forged)
        (forged / file).write_bytes(data)
        if file != CERTIFICATE:
            certificate = json.loads((forged / CERTIFICATE).read_text())
            certificate["sha256"][file] = hashlib.sha256(data).hexdigest()
            (forged / CERTIFICATE).write_text(json.dumps(certificate))
        return use(forged)

    return read_folder


def main() -> int:
    """Prints a table; exit code 1 if something was wrong."""
    parser = argparse.ArgumentParser(description="Damages sound files and reads them.")
    parser.add_argument("--files", type=int, default=1000, help="files of each reader (default 1,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, sound, use in readers(Path(place)):
            row = tried(name, sound, use, options.files, options.seed)
            rows[name] = row.joined(rows[name]) if name in rows else row
            print(f"{len(rows)}: {name}", file=sys.stderr)
    if options.json:
        print(json.dumps([row._asdict() for row in rows.values()], indent=1))
    else:
        print("| reader | files | read | refused | anything else | slowest, ms |")
        print("|---|---:|---:|---:|---:|---:|")
        for row in rows.values():
            counts = " | ".join(f"{count:,}" for count in row[1:5])
            print(f"| {row.reader} | {counts} | {1000 * row.slowest:.0f} |")
    return 1 if any(row.wrong for row in rows.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
