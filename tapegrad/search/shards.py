"""A search cut into shards that can be worked on anywhere, in any order, and the file that keeps results."""

import errno
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._cluster import on_cluster
from tapegrad.errors import FormatError, InputError, Refused
from tapegrad.search.tree import GO_ON, NONE, Problems, explore, sample

# The results of a search in a SQLite file, as they come: a shard is in it completely or not at all.


VERSION = 2
OURS = int.from_bytes(b"tape")
"""Marks the files of searches among the databases of this world."""


class ShardResult(NamedTuple):
    """What one shard came to: candidates complete, pruned, discarded; the best tables, their errors."""

    counts: tuple[int, int, int]
    tables: NDArray[np.int64]
    errors: NDArray[np.int64]


class Store:
    """A file of finished shards. Opened again with the same search it goes on where it was; with another
    search, or another version, it is refused. Two searches may share a file: a shard that both have
    worked on is noted once."""

    def __init__(self, path: str | os.PathLike[str] | None, search: Mapping[str, Any]) -> None:
        self.path = str(path) if path is not None else ":memory:"
        with self._errors_explained():
            self.database = sqlite3.connect(self.path)
            self._require_ours()
            self.database.execute("CREATE TABLE IF NOT EXISTS search (description TEXT NOT NULL)")
            self.database.execute(
                "CREATE TABLE IF NOT EXISTS shard (number INTEGER PRIMARY KEY, complete INTEGER, "
                "pruned INTEGER, discarded INTEGER, best TEXT)"
            )
            self._claim({"version": VERSION, **search})

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, AttributeError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path)) from error
            raise FormatError(
                f"{self.path} cannot be used as the file of a search: {error}",
                advice="Give a new file, or one of a search, that can be written to.",
            ) from error

    def _require_ours(self) -> None:
        (mark,) = self.database.execute("PRAGMA application_id").fetchone()
        (tables,) = self.database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if tables and mark != OURS:
            raise ValueError("it is a database of something else")
        self.database.execute(f"PRAGMA application_id = {OURS}")

    def _claim(self, search: Mapping[str, Any]) -> None:
        with self.database:
            found = self.database.execute("SELECT description FROM search").fetchall()
            if not found:
                self.database.execute("INSERT INTO search VALUES (?)", (json.dumps(search, sort_keys=True),))
                return
        known = json.loads(found[0][0])
        for key in sorted({*known, *search}, key=lambda key: (key == "problems", key)):
            if known.get(key) != search.get(key):
                raise InputError(
                    f"the file belongs to another search: {key} is {known.get(key)!r} there, "
                    f"{search.get(key)!r} here",
                    where=self.path,
                    advice="Give another file, or the options of the search it belongs to.",
                )

    def finished(self) -> set[int]:
        """Numbers of the shards that are done."""
        with self._errors_explained():
            return {int(number) for (number,) in self.database.execute("SELECT number FROM shard")}

    def add(self, number: int, result: ShardResult) -> None:
        """Notes a finished shard, in one transaction."""
        real = [i for i in range(len(result.errors)) if result.errors[i] < NONE]
        best = [[int(result.errors[i]), result.tables[i].tolist()] for i in real]
        with self._errors_explained(), self.database:
            self.database.execute(
                "INSERT OR IGNORE INTO shard VALUES (?, ?, ?, ?, ?)",
                (number, *map(int, result.counts), json.dumps(best)),
            )

    def counts(self) -> tuple[int, int, int]:
        """Candidates complete, pruned and discarded so far."""
        sums = "SELECT COALESCE(SUM(complete), 0), COALESCE(SUM(pruned), 0), COALESCE(SUM(discarded), 0)"
        with self._errors_explained():
            complete, pruned, discarded = self.database.execute(f"{sums} FROM shard").fetchone()
        return complete, pruned, discarded

    def best(self, most: int) -> list[tuple[int, NDArray[np.int64]]]:
        """The tables with the fewest errors, in order of errors, then of shards."""
        with self._errors_explained():
            rows = self.database.execute("SELECT best FROM shard ORDER BY number").fetchall()
            tables = [(errors, np.array(table)) for (text,) in rows for errors, table in json.loads(text)]
        return sorted(tables, key=lambda pair: pair[0])[:most]

    def close(self) -> None:
        self.database.close()


KEPT = 8
"""Tables that a shard hands back."""
MOST_SHARDS = 1 << 16
LARGEST_SHARD = 20_000_000
"""Candidates of a shard on average, at most: some seconds of work, which a killed search loses."""
MOST_CANDIDATES = 10**11
SAMPLES = 1 << 14
"""Candidates in a shard of a random search."""


@dataclass(frozen=True)
class Shard:
    """The candidates that begin with these choices; or, in a random search, so many of this seed."""

    number: int
    prefix: tuple[int, ...] = ()
    seed: int | None = None
    count: int = 0


class Quest(NamedTuple):
    """What the candidates of every shard are tried on: the family's code, the problems, and the errors that
    are allowed."""

    code: NDArray[np.int64]
    problems: Problems
    allowed: int


def expected_candidates(quest: Quest, draws: int = 20_000) -> float:
    """About how many candidates the tree has: an estimate without bias, by Knuth's method."""
    *_, weights = sample(*quest, 0, draws, 1, GO_ON)
    return float(weights.mean())


def enumeration(quest: Quest) -> list[Shard]:
    """The tree of candidates, cut near its root into shards that do not take long."""
    expected = expected_candidates(quest)
    if expected > MOST_CANDIDATES:
        raise Refused(
            f"the family has about {expected:.2g} candidates, too many to try them all",
            advice="Take fewer states, mirrored machines, or a number of random candidates.",
        )
    depth = 2
    choices, lengths = branches(quest, (), depth, MOST_SHARDS)
    while expected > LARGEST_SHARD * len(lengths):
        depth += 1
        choices, lengths = branches(quest, (), depth, MOST_SHARDS)
    return [Shard(i, tuple(choices[i, : lengths[i]].tolist())) for i in range(len(lengths))]


def branches(
    quest: Quest, prefix: tuple[int, ...], depth: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The branches below some first choices, cut `depth` choices below the root: the choices of each, and
    how many they are."""
    first = np.array(prefix, dtype=np.int64)
    *_, found = explore(*quest, first, depth, 0, GO_ON)
    if found > most:
        raise Refused(
            f"cut after {depth} choices the search has {found:,} branches", advice="Take fewer states."
        )
    _, kept, lengths, _ = explore(*quest, first, depth, found, GO_ON)
    return kept[:, :, 0], lengths


def random_search(count: int, seed: int) -> list[Shard]:
    """`count` random candidates."""
    sizes = [min(SAMPLES, count - first) for first in range(0, count, SAMPLES)]
    return [Shard(i, seed=(seed * 1_000_003 + i) % (1 << 32), count=size) for i, size in enumerate(sizes)]


def work(shard: Shard, quest: Quest, stop: NDArray[np.int8] = GO_ON) -> ShardResult:
    """All candidates of a shard; or nothing of use, if it was stopped."""
    if shard.seed is not None:
        counts, tables, errors, _ = sample(*quest, shard.seed, shard.count, KEPT, stop)
    else:
        counts, tables, errors, _ = explore(*quest, np.array(shard.prefix, dtype=np.int64), 0, KEPT, stop)
    return ShardResult((int(counts[0]), int(counts[1]), int(counts[2])), tables, errors)


def on_threads(shards: list[Shard], quest: Quest, workers: int | None) -> Iterator[tuple[int, ShardResult]]:
    """Shards as they are finished, on all cores; compiled code lets other threads run. Whoever stops asking
    for more stops the threads too, wherever they are."""
    stop = np.zeros(1, np.int8)
    # Ctrl-C may come between any two lines. A queue is then as it was or has one entry more; futures, of
    # which the usual pool has one for every shard, may be left locked, and its threads wait for them forever.
    left: SimpleQueue[Shard] = SimpleQueue()
    found: SimpleQueue[tuple[int, ShardResult] | Exception] = SimpleQueue()

    def serve() -> None:
        try:
            while not stop[0]:
                shard = left.get_nowait()
                found.put((shard.number, work(shard, quest, stop)))
        except Empty:
            return
        except Exception as error:  # whoever asks for results gets it
            found.put(error)

    threads = [Thread(target=serve) for _ in range(workers or os.cpu_count() or 1)]
    try:
        for shard in shards:
            left.put(shard)
        for thread in threads:
            thread.start()
        for _ in shards:
            result = found.get()
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        stop[0] = 1
        for thread in threads:
            if thread.ident is not None:  # it was started
                thread.join()


def on_ray(shards: list[Shard], quest: Quest) -> Iterator[tuple[int, ShardResult]]:
    """Shards as they are finished, on a Ray cluster."""
    return ((shard.number, result) for shard, result in on_cluster(_work, shards, quest))


def _work(shard: Shard, quest: Quest) -> ShardResult:
    """`work`, with grids of its own: Ray's are for reading only, and a machine may write."""
    grids = quest.problems.grids.copy()
    return work(shard, quest._replace(problems=quest.problems._replace(grids=grids)))
