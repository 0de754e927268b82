"""Fresh names for new states and symbols, and a bound on the number of new rules."""

from collections.abc import Hashable, Iterable

from tapegrad.errors import Refused

MOST_RULES = 2_000_000
"""A table with more entries than this fills gigabytes as Python objects; no target could carry it."""


class Names:
    """Gives every key a name of its own: the wished one, or with a number where that is taken. The names
    depend on nothing but the order of the requests, so the same machine comes out every time."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._names: dict[Hashable, str] = {}
        self._count: dict[str, int] = {}

    def __call__(self, key: Hashable, wish: str) -> str:
        """The name of `key`; `wish` counts only when the key is new."""
        if key not in self._names:
            name = wish
            while name in self._taken:
                self._count[wish] = self._count.get(wish, 1) + 1
                name = f"{wish}.{self._count[wish]}"
            self._taken.add(name)
            self._names[key] = name
        return self._names[key]


def refuse_if_huge(rules: int, what: str, advice: str) -> None:
    """Stops before a table is built that nothing could use."""
    if rules > MOST_RULES:
        raise Refused(f"{what} would need {rules:,} rules; the limit is {MOST_RULES:,}", advice=advice)
