"""An adversary: forges saved nets that look right, and judges what the checker believes by running it.

    python -m tests.check.adversary --target transformer --count 1000 --seed 7
    python -m tests.check.adversary --case "emulator of a guess" --keep harmful

Many forgeries begin with one that the checker refused, and go on from there; those that got far are taken
more often. Where the refusal names a claim, or another number, other values for it are tried at once. So the
second of two changes that fit together is looked for where the first one failed. Everything follows from the
seed.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tapegrad.networks.saving import from_json
from tapegrad.targets import target_named
from tapegrad_check.folder import NETWORK, OF_NETWORK
from tests.check.adversary_cases import CASES, TARGETS
from tests.check.adversary_judge import Judge, Outcome, quiet
from tests.check.adversary_moves import MOVES, Bench
from tests.check.forging import Saved, bounded

MOST_MOVES, FEW = 8, 2
"""On the way to one forgery; and so few that it may be worth while to make it fit at once."""
MOST_SECONDS = 5
"""That a move may take: some ask the loader, which believes what sizes it is told."""
KEPT, ALIKE = 400, 8
"""Reasons that are remembered, and forgeries that were refused for each."""
FITS, FOLLOWED = ("what was refused", "renewed", "a number and its claims"), 6
"""Moves that may make a refused change fit, and how often they are tried at once, at most."""


@dataclass
class Forgery:
    """A forged net, the moves that led to it, and what became of it."""

    saved: Saved = field(repr=False)
    moves: tuple[str, ...] = ()
    depth: int = 0
    """How many things the checker asked before it refused."""
    outcome: Outcome | None = None
    tries: int = 0

    def __str__(self) -> str:
        assert self.outcome is not None
        found = re.sub(r"\s+", " ", str(self.outcome.finding))
        found = found if len(found) < 400 else f"{found[:150]} ... {found[-240:]}"
        return f"{self.outcome.end} at try {self.tries}: {'; '.join(self.moves)}: {found}"


@dataclass
class Asked:
    """Counts what the checker requires of a folder."""

    count: int = 0

    def __enter__(self) -> "Asked":
        self.before: list[tuple[Any, Any]] = []
        for module in [own for name, own in sys.modules.items() if name.startswith("tapegrad_check")]:
            if (require := getattr(module, "require", None)) is not None:
                self.before.append((module, require))
                module.require = self._counting(require)  # type: ignore[attr-defined]
        return self

    def _counting(self, require: Any) -> Any:
        def counted(*arguments: Any, **named: Any) -> None:
            self.count += 1
            require(*arguments, **named)

        return counted

    def __exit__(self, *_: object) -> None:
        for module, require in self.before:
            module.require = require


def renew(saved: Saved) -> None:
    """Config and claims as the loader writes them."""
    own, network = {name: saved.arrays[name] for name in saved.own()}, None
    if NETWORK in saved.beside:
        named = {name for name in own if name.startswith(OF_NETWORK)}
        network = from_json(
            saved.beside[NETWORK], {name.removeprefix(OF_NETWORK): own[name] for name in named}
        )
        own = {name: array for name, array in own.items() if name not in named}
    with quiet():
        net = target_named(saved.config["target"]).loaded(saved.config["net"], own, network)
        config, claims = net.config(), net.certificate()
    saved.config["net"], saved.claims = config, claims


class Adversary:
    """Forges the nets of one case."""

    def __init__(self, name: str, folder: Path, seed: int = 0, without: Sequence[str] = ()) -> None:
        self.moves = {move: own for move, own in MOVES.items() if move not in without}
        self.name, self.folder, self.dice = name, folder, Random(f"{name} {seed}")
        self.genuine, *self.others = CASES[name].make(folder)
        self.judge = Judge(CASES[name].kind, folder / "0")
        self.known: dict[str, list[Forgery]] = {}
        self.waiting: list[Forgery] = []
        self.ends: Counter[str] = Counter()
        self.kinds: Counter[tuple[str, str]] = Counter()
        """Moves, each with the end that a forgery came to which it led to."""

    def forgeries(self, count: int) -> Iterator[Forgery]:
        """So many of them, each checked and judged."""
        with Asked() as asked:
            while self.ends.total() < count:
                forgery = self._forged()
                try:
                    if forgery is not None:
                        forgery.saved.write(self.folder / "forged")
                except (ValueError, TypeError, OverflowError, RecursionError):  # no file could hold it
                    continue
                if forgery is None:
                    continue
                asked.count = 0
                forgery.outcome = self.judge.outcome(self.folder / "forged")
                self.ends[forgery.outcome.end] += 1
                kinds = {move.partition(":")[0] for move in forgery.moves}
                self.kinds.update((kind, forgery.outcome.end) for kind in kinds)
                forgery.depth, forgery.tries = asked.count, self.ends.total()
                self._remember(forgery)
                yield forgery

    def _forged(self) -> Forgery | None:
        """What fits what was refused last; or some moves from the genuine net on, or from a forgery that was
        refused before."""
        if self.waiting:
            return self._moved(self.waiting.pop(), 1, FITS)
        start = Forgery(self.genuine)
        if self.known and self.dice.random() < 0.3:
            few = [self.dice.choice(list(self.known.values())) for _ in range(2)]
            start = self.dice.choice(max(few, key=lambda own: own[0].depth))
        return self._moved(
            start, self.dice.choice((1, 1, 1, 2, 2, 3) if start.moves else (1, 1, 1, 1, 2)), self.moves
        )

    def _moved(self, start: Forgery, count: int, among: Iterable[str]) -> Forgery | None:
        """So many moves from there on; None if nothing came of them."""
        saved, moves, refusal = start.saved.copy(), start.moves, start.outcome.said if start.outcome else ""
        names = [name for name in among if name in self.moves]
        for _ in range(count):
            name = self.dice.choices(names, [self.moves[name][0] for name in names])[0]
            try:
                with bounded("a move", MOST_SECONDS), np.errstate(all="ignore"):
                    bench = Bench(saved, self.others, self.dice, renew, refusal)
                    where = self.moves[name][1](bench)
                    if self.dice.random() < 0.5:
                        bench.twins()
            except (
                KeyError,
                TypeError,
                ValueError,
                IndexError,
                OverflowError,
                AttributeError,
                AssertionError,
            ):
                return None  # an earlier move has left nothing that this one could take
            if where is not None:
                moves = (*moves, f"{name}: {where}"[:160])
        return Forgery(saved, moves) if len(start.moves) < len(moves) <= MOST_MOVES else None

    def _remember(self, forgery: Forgery) -> None:
        """For each reason a few that came from different kinds of moves, with the fewest of them first."""
        assert forgery.outcome is not None
        if forgery.outcome.finding is not None or len(self.known) >= KEPT:
            return
        if forgery.outcome.end == "refused" and len(forgery.moves) <= FEW and self._is_about_numbers(forgery):
            self.waiting += [forgery] * self.dice.randrange(FOLLOWED)
        reason = re.sub(r"[0-9][0-9.e+-]*|'[^']*'|\(/[^)]*\)", "#", forgery.outcome.said)[:200]
        alike = self.known.setdefault(reason, [])
        kinds = {frozenset(move.partition(":")[0] for move in own.moves): own for own in alike}
        own = frozenset(move.partition(":")[0] for move in forgery.moves)
        if own in kinds and (len(kinds[own].moves) < len(forgery.moves) or self.dice.random() < 0.5):
            return
        alike[:] = sorted((kinds | {own: forgery}).values(), key=lambda one: len(one.moves))[:ALIKE]

    def _is_about_numbers(self, forgery: Forgery) -> bool:
        """Whether the refusal names a number, and the last move was none that tries other numbers."""
        assert forgery.outcome is not None
        return forgery.moves[-1].partition(":")[0] not in FITS and bool(
            Bench(forgery.saved, (), self.dice, renew, forgery.outcome.said).named()
        )


def hunted(
    name: str, count: int, seed: int = 0, without: Sequence[str] = ()
) -> tuple[Adversary, list[Forgery]]:
    """So many forgeries of a case: who made them, and those in which something was found."""
    with tempfile.TemporaryDirectory() as folder:
        adversary = Adversary(name, Path(folder), seed, without)
        return adversary, [own for own in adversary.forgeries(count) if own.outcome and own.outcome.finding]


def main() -> int:
    """Prints a table of cases and ends, and one of kinds; exit code 1 if anything was found."""
    parser = argparse.ArgumentParser(description="Forges saved nets and judges those that are believed.")
    parser.add_argument(
        "--target", action="append", choices=TARGETS, metavar="TARGET", help=", ".join(TARGETS)
    )
    parser.add_argument("--case", action="append", choices=CASES, metavar="CASE", help="; ".join(CASES))
    parser.add_argument("--count", type=int, default=1000, help="of each target, or case (default 1,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", action="append", default=[], choices=MOVES, metavar="MOVE")
    parser.add_argument("--keep", type=Path, help="where folders go in which something was found")
    options = parser.parse_args()
    targets = options.target or ([] if options.case else list(TARGETS))
    counts = {
        name: -(-options.count // len(TARGETS[target])) for target in targets for name in TARGETS[target]
    }
    counts |= dict.fromkeys(options.case or (), options.count)
    print("| net | forgeries | refused | said to be less | harmless | not judged | found | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    wrong = 0
    kinds: dict[str, Counter[str]] = {kind: Counter() for kind in MOVES}
    for name, count in counts.items():
        began = time.perf_counter()
        adversary, found = hunted(name, count, options.seed, options.without)
        wrong += len(found)
        for (kind, end), times in adversary.kinds.items():
            kinds[kind][end] += times
        for forgery in found:
            print(f"{name}: {forgery}", file=sys.stderr, flush=True)
            if options.keep:
                forgery.saved.write(options.keep / f"{name}-{options.seed}-{forgery.tries}")
        print(f"{_row(name, adversary.ends)} {time.perf_counter() - began:.0f} |", flush=True)
    print("\n| kind of change | forgeries | refused | said to be less | harmless | not judged | found |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind, ends in sorted(kinds.items(), key=lambda own: -own[1].total()):
        print(_row(kind, ends))
    return 1 if wrong else 0


def _row(name: str, ends: Counter[str]) -> str:
    refused, harmless = ends["refused"] + ends["unloadable"], ends["unchanged"] + ends["harmless"]
    found = ends["harmful"] + ends["slow"] + ends["crash"]
    parts = ends.total(), refused, ends["said to be less"], harmless, ends["not judged"], found
    return f"| {name} | {' | '.join(f'{part:,}' for part in parts)} |"


if __name__ == "__main__":
    raise SystemExit(main())
