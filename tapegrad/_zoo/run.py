"""A zoo: pairs in the order of their candidates, worked on by processes or a Ray cluster, and the folder that
keeps them.

Whoever works on a candidate, and in which order, the pairs are the same, and those of a smaller zoo are the
first ones of a larger one with the same seed. The file of a net is in place before the line of its pair is
written, and that is on the disk before the next batch: a zoo that was killed goes on where it was.
"""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tapegrad._cluster import on_cluster, on_processes
from tapegrad._files import line_sum, only_writer, write_atomically, writing
from tapegrad.errors import FormatError, InputError, TapegradError

FORMAT = 1
BATCH = 8
"""Candidates of a job: about half a second of work."""
PLAN, PAIRS, NETS, SUMMARY = "zoo.json", "pairs.jsonl", "nets", "summary.json"
"""What is in the folder: seed and rules, a line for each pair, their nets, and the summary."""
PARTS = ("train", "validation", "test")
HUNDRED = 100


class Disagreed(TapegradError):
    """A net is not what its program is."""


@dataclass(frozen=True)
class Plan:
    """What a zoo consists of."""

    seed: int = 0
    split: tuple[int, ...] = (80, 10, 10)
    """Parts of a hundred for training, validation and test."""
    proved: int = 100
    """Of a hundred, how many are proved by the checker."""

    def __post_init__(self) -> None:
        if len(self.split) != len(PARTS) or min(self.split) < 0 or sum(self.split) != HUNDRED:
            raise InputError(
                f"{', '.join(map(str, self.split))} is no split",
                advice="Give three parts of a hundred, such as 80,10,10.",
            )

    def part(self, family: str) -> str:
        """The part that a family is in: the rest of its sum by 100 says so, whatever else is in the zoo."""
        rest, end = int(family, 16) % HUNDRED, 0
        for name, share in zip(PARTS, self.split, strict=True):
            end += share
            if rest < end:
                return name
        raise AssertionError(rest)


class Job(NamedTuple):
    """Consecutive candidates."""

    first: int
    seed: int
    proved: int


def work(job: Job) -> tuple[list[Any], float]:
    """Makes the candidates of a job; and how much of a processor's time that took."""
    from tapegrad._zoo.pairs import make  # brings JAX

    began = time.process_time()
    made = [
        make(job.seed, candidate, candidate % HUNDRED < job.proved)
        for candidate in range(job.first, job.first + BATCH)
    ]
    return made, time.process_time() - began


class Store:
    """The folder. What is there is compared with its sums; a line that was not written to its end is written
    again."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.families: set[str] = set()
        self.entries: list[dict[str, Any]] = []
        self.following = 0
        """The candidate after the last pair."""
        with writing(folder):
            self._open()

    def _open(self) -> None:
        identity = {"format": FORMAT, "tapegrad": metadata.version("tapegrad"), **asdict(self.plan)}
        identity = json.loads(json.dumps(identity))
        (self.folder / NETS).mkdir(parents=True, exist_ok=True)
        plan = self.folder / PLAN
        if plan.exists():
            self._same(plan, identity)
        elif any(own.name != NETS for own in self.folder.iterdir()):
            raise InputError(f"{self.folder} holds something else than a zoo", advice="Choose a new folder.")
        else:
            write_atomically(plan, (json.dumps(identity, indent=1) + "\n").encode())
        self.file = (self.folder / PAIRS).open("a+b")
        self.file.seek(0)
        *lines, rest = self.file.read().split(b"\n")
        for line in lines:
            self._known(line)
        if rest:
            self.file.truncate(self.file.tell() - len(rest))

    def _same(self, plan: Path, identity: Mapping[str, Any]) -> None:
        try:
            found = json.loads(plan.read_bytes())
        except ValueError as error:
            raise FormatError(f"{plan} cannot be read: {error}") from error
        for name, value in identity.items():
            there = found.get(name) if isinstance(found, dict) else None
            if there != value:
                raise InputError(
                    f"the zoo has {name} {json.dumps(there)}, and not {json.dumps(value)}",
                    where=str(plan),
                    advice="Give another folder, or the options of that zoo.",
                )

    def _known(self, line: bytes) -> None:
        """A pair that is there, if neither its line nor its net was altered."""
        number = len(self.entries)
        try:
            entry = json.loads(line)
            fits = entry["id"] == number and entry["line_sha256"] == line_sum(entry)
            net = (self.folder / entry["file"]).read_bytes()
            fits = fits and entry["net_sha256"] == hashlib.sha256(net).hexdigest()
            fits = fits and entry["file"] == file_of(number) and entry["candidate"] >= self.following
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(f"pair {number} cannot be read: {error}", where=str(self.folder)) from error
        if not fits:
            raise FormatError(
                f"pair {number} was altered", where=str(self.folder), advice="Make the zoo again, elsewhere."
            )
        self._note(entry)

    def _note(self, entry: dict[str, Any]) -> None:
        self.entries.append({name: entry[name] for name in SUMMED})
        self.families.add(entry["family"])
        self.following = entry["candidate"] + 1

    def add(self, batch: list[Any], most: int) -> None:
        """Notes the pairs of a batch, up to so many in all; random programs of a family that is there already
        are left out."""
        lines = []
        for made in batch:
            if len(self.entries) == most:
                break
            if made.wrong:
                self._append(lines)
                raise Disagreed(made.wrong, advice="This is a fault of ours; please report it.")
            if made.entry is None or (made.entry["family"] in self.families and not made.entry["ready"]):
                continue
            number = len(self.entries)
            entry = {
                "id": number,
                "split": self.plan.part(made.entry["family"]),
                "file": file_of(number),
                "candidate": made.candidate,
                **made.entry,
            }
            entry["line_sha256"] = line_sum(entry)
            write_atomically(self.folder / entry["file"], made.tensors)
            lines.append(json.dumps(entry, ensure_ascii=False))
            self._note(entry)
        self._append(lines)

    def _append(self, lines: list[str]) -> None:
        self.file.write("".join(line + "\n" for line in lines).encode())
        self.file.flush()
        os.fsync(self.file.fileno())


SUMMED = ("split", "causal", "layers", "heads", "parameters", "proved", "verified")
"""What the summary counts."""


def file_of(number: int) -> str:
    """The file of a net."""
    return f"{NETS}/{number:06}.safetensors"


Progress = Callable[[int], None]
"""Called with the pairs that there are."""


def run(
    plan: Plan,
    folder: Path,
    pairs: int,
    *,
    workers: int | None = None,
    ray: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The whole zoo, or what is left of it; gives the summary."""
    began, used = time.perf_counter(), 0.0
    with only_writer(folder):
        store = Store(folder, plan)
        there = len(store.entries)
        if there > pairs:
            raise InputError(
                f"the zoo has {there:,} pairs already", where=str(folder), advice="Ask for as many, or more."
            )
        jobs = (Job(first, plan.seed, plan.proved) for first in count(store.following, BATCH))
        if there < pairs:
            with closing(_in_order(jobs, store.following, workers, ray)) as batches:
                for batch, seconds in batches:
                    used += seconds
                    store.add(batch, pairs)
                    if progress is not None:
                        progress(len(store.entries))
                    if len(store.entries) == pairs:
                        break
        summary = _summary(plan, store, there, used, time.perf_counter() - began)
        write_atomically(folder / SUMMARY, (json.dumps(summary, indent=1) + "\n").encode())
    return summary


def _in_order(
    jobs: Iterator[Job], following: int, workers: int | None, ray: bool
) -> Generator[tuple[list[Any], float]]:
    """Results in the order of jobs, of which this is the first."""
    if workers is None:
        workers = os.cpu_count() or 1
    if ray:
        found = on_cluster(work, jobs)
    elif workers > 1:
        found = on_processes(work, jobs, workers)
    else:
        found = ((job, work(job)) for job in jobs)
    waiting: dict[int, Any] = {}
    with closing(found):  # the processes end with it
        for job, result in found:
            waiting[job.first] = result
            while following in waiting:
                yield waiting.pop(following)
                following += BATCH


def _summary(plan: Plan, store: Store, there: int, used: float, seconds: float) -> dict[str, Any]:
    """Counts; `processor_seconds` are those of all workers in this run."""
    entries, new = store.entries, len(store.entries) - there
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "tapegrad": metadata.version("tapegrad"),
        "format": FORMAT,
        **asdict(plan),
        "pairs": len(entries),
        "candidates": store.following,
        **{f"by_{name}": _counted(entries, name) for name in ("split", "causal", "layers", "heads")},
        "parameters": sum(own["parameters"] for own in entries),
        "proved_pairs": sum(own["proved"] is not None for own in entries),
        "verified_inputs": sum(own["verified"]["inputs"] for own in entries),
        "new_pairs": new,
        "processor_seconds": used,
        "processor_seconds_a_pair": used / new if new else None,
        "seconds": seconds,
    }


def _counted(entries: list[dict[str, Any]], name: str) -> dict[str, int]:
    counts = Counter(own[name] for own in entries)
    return {str(key).lower(): number for key, number in sorted(counts.items())}
