"""The results of a search in a SQLite file, as they come: a shard is in it completely or not at all."""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import FormatError, InputError
from tapegrad.search.tree import NONE

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
