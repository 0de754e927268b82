"""What an adversary does to a saved net: one table of moves, most of which leave a net that looks as good.

Every move changes what is on the bench and says where, or None if there is nothing that it could change. Two
or three in a row make changes that fit together: a row and its readers, a number and the claim about it.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import NETWORK
from tests.check.adversary_rows import Graph, Layer, Row, Rows, opened
from tests.check.forging import Again, Arrays, Saved

POWERS = (1, 2, 24, 25, 30, 40, 52, 53, 54, 60, 64, 100, 120, 126, 127, 200, 1000)
"""Of two, by which units are rescaled: where rounding begins to matter in either precision, and beyond."""
FLOATS = (0.0, -0.0, 5e-324, 2.0**-149, 2.0**-60, 0.5, 1.0, 2.0**24, 3.4028234e38, 2.0**200, 1.7e308,
          math.inf, math.nan, -1.0)  # fmt: skip
INTEGERS = (0, 1, 2, 3, 5, 64, 10**6, 10**7, 1 << 24, 10**9, 1 << 31, 1 << 62, 10**400, -1, -(1 << 62))
TEXTS = (
    "",
    "0",
    "1",
    "1e999999",
    "9" * 5000,
    "1/3",
    "practical",
    "exact",
    "hardmax",
    "softmax",
    "none",
    "float32",
)
WALKS = 64
"""Inputs on which vertices are compared."""
FEW = 4
"""On so many of them two vertices may differ that are nearly the same."""


@dataclass
class Bench:
    """A net to be altered, and what the adversary has at hand."""

    saved: Saved
    others: Sequence[Saved]
    """Genuine nets: of another source, of the same source by another way, of other targets."""
    dice: Random
    renew: Callable[[Saved], None]
    """Gives a net the config and the claims that its own loader would write."""
    refusal: str = ""
    """What the checker said of it before."""
    touched: list[tuple[Any, Any]] = field(default_factory=list)
    """What holds a place that was altered, and what that was before."""

    def number(self, old: Any) -> Any:
        """Another number than an old one: at an extreme, rescaled, or a little different."""
        whole = isinstance(old, int)
        scaled = [old * 2**k for k in (1, 2, self.dice.choice(POWERS[:-1]))] if abs(old) < 1 << 900 else []
        scaled += (
            [old / 2 ** self.dice.choice(POWERS[:-1])]
            if not whole and abs(old) < 1e300
            else [old // 2 if whole else 0.0]
        )
        near = [old + 1, old - 1, -old] if whole else [old * (1 + 1e-9), -old, old + 1]
        extremes = INTEGERS if whole else FLOATS
        ways = [
            extremes,
            scaled,
            near,
            [float(old) if whole and abs(old) < 1e300 else 1, str(old), None, True],
        ]
        return self.dice.choice(list(self.dice.choices(ways, (8, 4, 3, 1))[0]))

    def power(self) -> float:
        """A power of two, up or down, that a float has."""
        by = self.dice.randrange(1, 31) if self.dice.random() < 0.5 else self.dice.choice(POWERS[:-2])
        return 2.0 ** (self.dice.choice((1, -1)) * by)

    # JSON

    def named(self) -> list[tuple[Any, Any]]:
        """Numbers and flags of the net and of the claims whose name has a word of the refusal; all claims, if
        it is about them and names none."""
        words, claims = _words(self.refusal), list(_leaves(self.saved.claims))
        places = [*_leaves(self.saved.config.get("net", {})), *claims]
        found = [(own, key) for own, key in places if words & _words(str(key))]
        found = found or (claims if words & {"clai", "cert"} else [])
        return [(own, key) for own, key in found if isinstance(own[key], int | float)]

    def trees(self) -> dict[str, Any]:
        """Everything that is JSON."""
        json = {name: own for name, own in self.saved.beside.items() if not name.endswith(".safetensors")}
        return {"config": self.saved.config, "claims": self.saved.claims, **json}

    def place(self, wanted: Callable[[Any], bool]) -> tuple[Any, Any, str] | None:
        """Somewhere in the JSON: what holds it, its key, words for where. Every branch is as likely as its
        neighbours, however large it is, and the net and the claims are the likeliest."""
        for _ in range(40):
            name = self.dice.choices(list(trees := self.trees()), [3, 2, *(2 for _ in list(trees)[2:])])[0]
            holder: Any = trees
            key: Any = name
            where = name
            if name == "config" and self.dice.random() < 0.6 and "net" in self.saved.config:
                holder, key, where = trees[name], "net", "config/net"
            while (inner := holder[key]) and isinstance(inner, dict | list):
                if holder is not trees and self.dice.random() < 0.1:
                    break
                holder = inner
                key = (
                    self.dice.choice(list(inner))
                    if isinstance(inner, dict)
                    else self.dice.randrange(len(inner))
                )
                where = f"{where}/{key}"
            if holder is not trees and wanted(holder[key]):
                self.touched.append((holder, deepcopy(holder)))
                return holder, key, where
        return None

    def twins(self) -> None:
        """What was the same as something that was altered becomes the same again."""
        for holder, before in self.touched:
            for own in [*_parts(self.trees())] if holder != before else ():
                if own is not holder and own == before:
                    own.clear()
                    (own.update if isinstance(own, dict) else own.extend)(deepcopy(holder))

    # Arrays

    def group(self) -> Arrays:
        """The arrays of one file."""
        files = [own for name, own in self.saved.beside.items() if name.endswith(".safetensors")]
        return self.dice.choice([self.saved.arrays, *files])

    def array(self, wanted: Callable[[NDArray[Any]], bool]) -> tuple[Arrays, str] | None:
        """One that fits; those of the net itself are likelier than those of its source."""
        arrays = self.group()
        fits = [name for name, own in arrays.items() if wanted(own)]
        chances = [0.3 if name.startswith(("source.", "lowered.", "pass")) else 1.0 for name in fits]
        return (arrays, self.dice.choices(fits, chances)[0]) if fits else None

    def rows(self, wanted: Callable[[Rows], Any]) -> tuple[Arrays, Rows, Any] | None:
        """Arrays that are rows, with one of their parts."""
        net = self.saved.config.get("net", {})
        files = [
            self.saved.arrays,
            *(own for n, own in self.saved.beside.items() if n.endswith(".safetensors")),
        ]
        found = [(arrays, own) for arrays in files for own in opened(arrays, net) if wanted(own)]
        if not found:
            return None
        arrays, own = self.dice.choice(found)
        parts = wanted(own)
        read = [part for part in parts if isinstance(part, Layer) and part.readers]
        parts = read if read and self.dice.random() < 0.6 else parts
        sizes = [len(part[0]) if self.dice.random() < 0.7 else 1 for part in parts]
        return arrays, own, self.dice.choices(parts, sizes)[0]


def _words(text: str) -> set[str]:
    """How they begin."""
    return {word[:4] for word in re.findall("[a-z0-9]+", text.lower())}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Config and claims


def a_number(bench: Bench) -> str | None:
    """At an extreme, rescaled, or off by one."""
    if (found := bench.place(_is_number)) is None:
        return None
    holder, key, where = found
    holder[key] = bench.number(holder[key])
    return where


def a_number_everywhere(bench: Bench) -> str | None:
    """And all numbers that were the same, or had its name: what is claimed of it, what it was made of."""
    if (found := bench.place(_is_number)) is None:
        return None
    holder, key, where = found
    old, new, arrays_too = holder[key], bench.number(holder[key]), bench.dice.random() < 0.3
    for inner, at in _leaves({"net": bench.saved.config.get("net", {}), "claims": bench.saved.claims}):
        if type(inner[at]) is type(old) and (inner[at] == old or at == key):
            inner[at] = new
    if arrays_too and _is_number(new):
        bench.saved.arrays = {n: _exchanged(own, old, new) for n, own in bench.saved.arrays.items()}
    return where


def _leaves(data: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(data, dict | list):
        return
    for key, part in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(part, dict | list):
            yield from _leaves(part)
        else:
            yield data, key


def what_was_refused(bench: Bench) -> str | None:
    """A number or flag whose name has a word of the refusal: for a claim that is not met, another claim."""
    if not (named := bench.named()):
        return None
    holder, key = bench.dice.choice(named)
    old = holder[key]
    new = (
        not old
        if isinstance(old, bool)
        else bench.dice.choice([bench.number(old), 0 * old, old // 2 if type(old) is int else old / 2, 5])
    )
    for inner, at in named:
        if at == key and (inner is holder or bench.dice.random() < 0.7):
            inner[at] = new
    return f"{key} = {new}"


def a_text_or_flag(bench: Bench) -> str | None:
    """Another text, one from elsewhere in the file, nothing; a flag turned."""
    if (found := bench.place(lambda own: isinstance(own, str | bool | None))) is None:
        return None
    holder, key, where = found
    old = holder[key]
    texts = [own[at] for own, at in _leaves(bench.trees()) if isinstance(own[at], str)]
    others = [
        f"{old}'",
        f"{old}"[:-1],
        f"{old}".upper(),
        *TEXTS,
        7,
        None,
        [old],
        *bench.dice.sample(texts, min(9, len(texts))),
    ]
    holder[key] = (
        not old if isinstance(old, bool) and bench.dice.random() < 0.7 else bench.dice.choice(others)
    )
    return where


def a_list(bench: Bench) -> str | None:
    """Turned round, shorter, longer, in another order; an element there twice, one of them altered; or a part
    of any kind that has nothing in it."""
    if (found := bench.place(lambda own: isinstance(own, list | dict) and bool(own))) is None:
        return None
    holder, key, where = found
    if isinstance(holder[key], dict):
        holder[key] = bench.dice.choice([{}, [], None, 0, ""])
        return where
    own, i = list(holder[key]), bench.dice.randrange(len(holder[key]))
    again = deepcopy(own[i])
    if isinstance(again, list) and again:
        at = bench.dice.randrange(len(again))
        again[at] = deepcopy(bench.dice.choice(own)[at % len(again)] if bench.dice.random() < 0.5 else own[0])
    swapped = [*own[1:2], *own[:1], *own[2:]]
    ways = [
        own[::-1],
        own[:-1],
        [*own, own[-1]],
        swapped,
        [*own, again],
        [again, *own],
        [*own[:i], again, *own[i + 1 :]],
        [],
        {},
    ]
    holder[key] = bench.dice.choice(ways)
    return where


def a_field_less(bench: Bench) -> str | None:
    if (found := bench.place(lambda own: True)) is None:
        return None
    holder, key, where = found
    del holder[key]
    return where


def a_field_of_another(bench: Bench) -> str | None:
    """What has its name in another net, or elsewhere in this one; or something with any name, or none."""
    ours, theirs = (
        bench.trees(),
        Bench(bench.dice.choice([*bench.others, bench.saved]), (), bench.dice, bench.renew),
    )
    if bench.dice.random() < 0.5:
        names = list(bench.saved.config)
        names = names if bench.dice.random() < 0.5 else [name for own in _dicts(ours) for name in own]
        name = bench.dice.choice(names)
        into = bench.dice.choice([own for own in _dicts(ours) if name in own])
        others = [own[name] for own in _dicts(theirs.trees()) if name in own and own[name] != into[name]]
        if others:
            into[name] = deepcopy(bench.dice.choice(others))
        return f"{name} of another" if others else None
    source, place = theirs.place(lambda own: True), bench.place(lambda own: True)
    if source is None or place is None:
        return None
    key = source[1] if isinstance(place[0], dict) else place[1]
    place[0][key] = deepcopy(source[0][source[1]])
    return f"{source[2]} of another at {place[2]}"


def _parts(data: Any) -> Iterator[Any]:
    if isinstance(data, dict | list):
        yield data
        for part in data.values() if isinstance(data, dict) else data:
            yield from _parts(part)


def _dicts(data: Any) -> Iterator[dict[str, Any]]:
    return (own for own in _parts(data) if isinstance(own, dict))


def a_key_twice(bench: Bench) -> str | None:
    """Of two, people read the first; a reader may take either."""
    place = bench.place(lambda own: True)
    if place is None or not isinstance(place[0], dict):
        return None
    holder, key, where = place
    old = dict(holder)
    holder.clear()
    for name, own in old.items():
        if name == key:
            theirs = [one[key] for other in bench.others for one in _dicts(other.config) if key in one]
            holder[Again(key)] = deepcopy(bench.dice.choice([*theirs, None, {}, 0]))
        holder[name] = own
    return where


def parts_of_another(bench: Bench) -> str | None:
    """Whole parts: the source, the net, the passes, the options, with their arrays or without."""
    kinds = (
        (("net",), (None,)), (("source",), ("source.",)), (("source", "lowered"), ("source.", "lowered.")),
        (("lowered",), ("lowered.",)), (("net", "lowered", "passes"), ("lowered.", "pass.", None)),
        (("options",), ()), (("passes", "defaults"), ("pass.",)), (("net",), ()), ((), (None,)),
        (("source",), ()),
    )  # fmt: skip
    keys, prefixes = bench.dice.choice(kinds)
    ours, theirs = bench.saved, bench.dice.choice(bench.others)
    for key in keys:
        ours.config.pop(key, None)
        if key in theirs.config:
            ours.config[key] = deepcopy(theirs.config[key])

    def moved(name: str) -> bool:
        beside = name.startswith(("source.", "lowered.", "pass."))
        return any(not beside if own is None else name.startswith(own) for own in prefixes)

    ours.arrays = {n: own for n, own in ours.arrays.items() if not moved(n)}
    ours.arrays |= {n: own for n, own in theirs.arrays.items() if moved(n)}
    if "net" in keys and bench.dice.random() < 0.5:
        ours.claims = deepcopy(theirs.claims)
    if None in prefixes and NETWORK in ours.beside and NETWORK in theirs.beside:
        ours.beside[NETWORK] = deepcopy(theirs.beside[NETWORK])
    return f"{', '.join(keys) or 'nothing'} and arrays {prefixes}"


def renewed(bench: Bench) -> str | None:
    """Config and claims as the loader would write them for these arrays and this config."""
    before = deepcopy((bench.saved.config, bench.saved.claims))
    try:
        bench.renew(bench.saved)
    except Exception:  # what cannot be loaded has nothing to claim
        bench.saved.config, bench.saved.claims = before
        return None
    return "config and claims"


# Arrays


def _put(bench: Bench, arrays: Arrays, name: str, array: NDArray[Any]) -> str:
    arrays[name] = array
    return name


def an_entry(bench: Bench) -> str | None:
    """At an extreme, rescaled, off by a hair or by one; or one that stands elsewhere in the array."""
    if (found := bench.array(lambda own: own.size > 0)) is None:
        return None
    arrays, name = found
    array = arrays[name].copy()
    flat, i = array.reshape(-1), bench.dice.randrange(array.size)
    old = flat[i].item()
    near = np.nextafter(flat[i], flat.dtype.type(np.inf)) if flat.dtype.kind == "f" else flat[i]
    others = [near, flat[bench.dice.randrange(len(flat))], bench.number(old) if _is_number(old) else not old]
    new = bench.dice.choice(others)
    with np.errstate(all="ignore"):
        try:
            flat[i] = np.clip(new, *_limits(array)) if flat.dtype.kind in "iu" else new
        except (TypeError, ValueError, OverflowError):
            return None
    return f"{_put(bench, arrays, name, array)}[{i}] = {flat[i]}"


def _limits(array: NDArray[Any]) -> tuple[int, int]:
    limits = np.iinfo(array.dtype)
    return int(limits.min), int(limits.max)


def a_value(bench: Bench) -> str | None:
    """Wherever it stands, in one array or in all, with either sign; what is equal in JSON goes with it."""
    if (found := bench.array(lambda own: own.dtype.kind == "f" and bool(own.any()))) is None:
        return None
    arrays, name = found
    old = abs(float(bench.dice.choice(arrays[name][arrays[name] != 0].tolist())))
    new = old * bench.power() if bench.dice.random() < 0.7 else bench.number(old)
    if not isinstance(new, float):
        return None
    for one in list(arrays) if bench.dice.random() < 0.5 else [name]:
        arrays[one] = _exchanged(arrays[one], old, new)
    for inner, at in _leaves({"net": bench.saved.config.get("net", {}), "claims": bench.saved.claims}):
        if isinstance(inner[at], float) and inner[at] == old:
            inner[at] = new
    return f"{name}: {old:g} made {new:g}"


def _exchanged(array: NDArray[Any], old: Any, new: Any) -> NDArray[Any]:
    if array.dtype.kind != "f" or not _is_number(old):
        return array
    with np.errstate(all="ignore"):
        return np.where(np.abs(array) == abs(old), np.sign(array) * new, array).astype(array.dtype)


def a_whole_array(bench: Bench) -> str | None:
    """Of another type, shape, order, sign or size; missing, renamed, doubled; that of another net."""
    if (found := bench.array(lambda own: True)) is None:
        return None
    arrays, name = found
    a = arrays[name]
    theirs = [other.arrays[name] for other in bench.others if name in other.arrays]
    others = {"f4": np.float64, "f8": np.float32, "i8": np.int32, "u1": np.int32}
    size = a.dtype.type(bench.power()) if a.dtype.kind == "f" else 2
    ways: list[Callable[[], NDArray[Any] | None]] = [
        lambda: a.astype(others.get(a.dtype.str[1:], np.int64)), lambda: a.astype(np.float64),
        lambda: a.astype(bool), lambda: a[::-1], lambda: np.roll(a, 1), lambda: -a, lambda: a[:-1],
        lambda: (a * size).astype(a.dtype),
        lambda: np.concatenate([a, a[-1:]]), lambda: a[:0], lambda: a.reshape(1, *a.shape), lambda: None,
        lambda: bench.dice.choice(theirs), lambda: bench.dice.choice(list(arrays.values())),
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        try:
            new = bench.dice.choice(ways)()
        except (TypeError, ValueError, IndexError, OverflowError):
            return None
    if new is None:
        del arrays[name]
    if new is None and bench.dice.random() < 0.5:
        arrays[f"{name}_"] = a
    return f"{name} is missing" if new is None else _put(bench, arrays, name, new)


def the_order(bench: Bench) -> str | None:
    """Two entries exchanged, or all in another order: in one array, in all that begin like it, or in all of
    this length."""
    if (found := bench.array(lambda own: own.ndim > 0 and len(own) > 1)) is None:
        return None
    arrays, name = found
    order = np.arange(len(arrays[name]))
    i, j = bench.dice.randrange(len(order)), bench.dice.randrange(len(order))
    order[[i, j]] = order[[j, i]]
    if bench.dice.random() < 0.3:
        order = order[::-1]
    alike = bench.dice.choice((name, re.split("[._]", name)[0], ""))
    for one in [
        n for n, own in arrays.items() if own.ndim and len(own) == len(order) and n.startswith(alike)
    ]:
        arrays[one] = arrays[one][order]
    return f"{name}: {i} and {j}, in all that begin with {alike!r}"


# Rows and their readers


def _on_rows(alter: Callable[[Bench, Layer], str | None]) -> Callable[[Bench], str | None]:
    def move(bench: Bench) -> str | None:
        found = bench.rows(lambda own: [layer for layer in own.layers if layer.rows])
        if found is None:
            return None
        arrays, own, layer = found
        try:
            where = alter(bench, layer)
            arrays |= own.write() if where else {}
        except (OverflowError, ValueError, IndexError):  # a number that the array cannot hold
            return None
        return f"{type(own).__name__} {where}" if where else None

    return move


def _a_row(bench: Bench, layer: Layer) -> Row | None:
    rows = [row for row in (*layer.rows, *layer.readers) if row.entries]
    return bench.dice.choice(rows) if rows else None


def _rescaled(bench: Bench, layer: Layer) -> str:
    """A row by a power of two, or all of its shape, and the readers by the inverse; half the time one with a
    number of the config, which then goes with it."""
    config = [(own, at) for own, at in _leaves(bench.saved.config.get("net", {})) if type(own[at]) is float]
    shapes = [[abs(entry[1]) for entry in row.entries] for row in layer.rows]
    named = [own[at] for own, at in config if any(own[at] in shape for shape in shapes)]
    some = range(len(shapes))
    if named and bench.dice.random() < 0.5:
        size = bench.dice.choice(named)
        some = [i for i, shape in enumerate(shapes) if size in shape]
    first, by = bench.dice.choice(some), bench.power()
    taken = {i for i in some if shapes[i] == shapes[first]} if bench.dice.random() < 0.5 else {first}
    for row in (layer.rows[i] for i in taken):
        row.bias = None if row.bias is None else row.bias * by
        for entry in row.entries:
            entry[1] *= by
    for own, at in config:
        own[at] *= by if own[at] in shapes[first] else 1
    for row in layer.readers:
        for entry in row.entries:
            entry[1] /= by if entry[0] - layer.base in taken else 1
    return f"{len(taken)} rows by {by:g}"


def _steeper(bench: Bench, layer: Layer) -> str | None:
    """A unit that was off without a bit is off by more: `relu(x + y - 1)` as `relu(K x + y - K)`."""
    row = bench.dice.choice(layer.rows)
    if not row.entries or row.bias is None:
        return None
    entry, by = (
        bench.dice.choice(row.entries),
        bench.dice.choice((1, -1)) * 2.0 ** bench.dice.choice(POWERS[:-2]),
    )
    whole = isinstance(entry[1], int)
    entry[1] += int(by) if whole else by
    if bench.dice.random() < 0.9:
        row.bias -= int(by) if whole else by
    return f"{by:g} more of {entry[0]}, less of the bias"


def _split(bench: Bench, layer: Layer) -> str | None:
    """An entry in two or three: parts of it, one there twice with another value, or a pair that cancels."""
    if (row := _a_row(bench, layer)) is None:
        return None
    entry, dice = bench.dice.choice(row.entries), bench.dice
    value = entry[1]
    by = dice.choice((1, -1)) * dice.choice((bench.power(), bench.power(), 2 * abs(value), 1.0))
    by = int(by) if isinstance(value, int) else by
    ways = {
        "halves": [value / 2, value / 2], "a part, the rest": [by, value - by],
        "the rest, a part": [value - by, by],
        "twice": [value, value], "another, and it": [by, value], "it, and another": [value, by],
        "a pair around it": [by, value, -by], "a pair behind it": [value, by, -by],
        "a pair before it": [by, -by, value],
        "its negative twice": [-value, value, value],
    }  # fmt: skip
    kind = dice.choice(list(ways))
    column = entry[0] if dice.random() < 0.8 else dice.randrange(layer.width)
    parts = [[entry[0] if own == value else column, own, *entry[2:]] for own in ways[kind]]
    at = row.entries.index(entry)
    row.entries[at : at + 1] = parts
    if dice.random() < 0.3:
        row.entries.sort(key=lambda one: one[0])
    return f"{kind}: {value:g} of {entry[0]}, {by:g}"


def _reordered(bench: Bench, layer: Layer) -> str | None:
    if (row := _a_row(bench, layer)) is None:
        return None
    bench.dice.shuffle(row.entries)
    return "entries of a row in another order"


def _elsewhere(bench: Bench, layer: Layer) -> str | None:
    """One entry reads another column, or all entries that read a row read another one."""
    if bench.dice.random() < 0.5 or not layer.readers:
        if (row := _a_row(bench, layer)) is None:
            return None
        entry = bench.dice.choice(row.entries)
        old, entry[0] = entry[0], bench.dice.randrange(layer.width)
        return f"{entry[0]} in place of {old}"
    i, j = (layer.base + bench.dice.randrange(len(layer.rows)) for _ in range(2))
    for row in layer.readers:
        for entry in row.entries:
            entry[0] = j if entry[0] == i else entry[0]
    return f"{j} in place of {i} everywhere"


def _a_row_like_another(bench: Bench, layer: Layer) -> str | None:
    """Two rows exchanged, with their readers or without; or one there twice; or of another bias."""
    i, j = (bench.dice.randrange(len(layer.rows)) for _ in range(2))
    one, two, kind = layer.rows[i], layer.rows[j], bench.dice.randrange(4)
    if kind == 0:
        one.entries[:], one.bias = two.copy().entries, two.bias
        return f"row {i} is row {j}"
    if kind == 1 and one.bias is not None:
        one.bias = bench.dice.choice([two.bias, one.bias + 2.0**-24, bench.number(float(one.bias))])
        return f"bias of row {i}: {one.bias}" if _is_number(one.bias) else None
    one.entries, two.entries, one.bias, two.bias = two.entries, one.entries, two.bias, one.bias
    if kind == 2:
        for row in layer.readers:
            for entry in row.entries:
                turned = {layer.base + i: j, layer.base + j: i}
                entry[0] = layer.base + turned[entry[0]] if entry[0] in turned else entry[0]
    return f"rows {i} and {j} exchanged"


def _cloned(bench: Bench, layer: Layer) -> str | None:
    """New rows like an old one, that readers add and take away again."""
    if not layer.grows or not (readers := [row for row in layer.readers if row.entries]):
        return None
    by, row, first = abs(bench.power()), bench.dice.choice(layer.rows), len(layer.rows)
    layer.rows.extend([row.copy(), row.copy()])
    reader = bench.dice.choice(readers)
    at = bench.dice.randrange(len(reader.entries) + 1)
    reader.entries.insert(at, [layer.base + first, by])
    reader.entries.insert(bench.dice.choice([at + 1, len(reader.entries)]), [layer.base + first + 1, -by])
    return f"two rows more, {by:g} times"


def a_head(bench: Bench) -> str | None:
    """A row of the query rescaled, and that of the key by the inverse; or rows whose products cancel."""
    found = bench.rows(lambda own: own.heads)
    if found is None:
        return None
    arrays, own, (query, key) = found
    by, i, j = bench.power(), bench.dice.randrange(len(query)), bench.dice.randrange(len(key))
    grows = all(type(row.bias) is float for row in (*query, *key))
    if bench.dice.random() < 0.5 or not grows or not i < len(key):
        for row, times in ((query[i], by), (key[i % len(key)], 1 / by)):
            row.entries[:] = [[column, value * times] for column, value in row.entries]
            row.bias = row.bias * times if row.bias is not None else None
        where = f"row {i} by {by:g}"
    else:
        at = bench.dice.choice([0, max(0, len(query) - 1), len(query)])
        by = abs(by)
        for sign in (1, -1):
            asks, answers = query[i].copy(), key[j].copy()
            asks.entries[:] = [[column, sign * by * value] for column, value in asks.entries]
            asks.bias *= sign * by
            query.insert(at, asks)
            key.insert(at, answers)
            i, j = (place + (place >= at) for place in (i, j))
        where = f"two rows more, {by:g} times"
    arrays |= own.write()
    return f"head: {where}"


def another_vertex(bench: Bench) -> str | None:
    """Of a network of vertices: all that reads one reads another, which has the same sign on all inputs that
    were tried and another size, or another sign on a few of them."""
    found = bench.rows(lambda own: own.layers if isinstance(own, Graph) else [])
    if found is None:
        return None
    arrays, own = found[0], cast(Graph, found[1])
    signs, sizes = _values(bench, arrays, own)
    apart = (signs[:, None, :] != signs[None, :, :]).sum(axis=2)
    below = np.arange(len(signs))[None, :] < np.arange(len(signs))[:, None]
    read = np.unique(arrays["sources"])
    same = (
        (apart == 0)
        & below
        & (sizes[:, None] != sizes[None, :])
        & np.isin(np.arange(len(signs)), read)[:, None]
    )
    nearly = (apart > 0) & (apart <= FEW) & below & (np.arange(len(signs)) >= own.given)[:, None]
    pairs = np.argwhere(same if same.any() and bench.dice.random() < 0.8 else nearly | same)
    if not len(pairs):
        return None
    old, new = pairs[bench.dice.randrange(len(pairs))].tolist()
    readers = [entry for row in own.rows for entry in row.entries if entry[0] == old]
    for entry in readers:
        entry[0] = new
    arrays |= own.write()
    if bench.saved.config["net"].get("finished") == old and bench.dice.random() < 0.5:
        bench.saved.config["net"]["finished"] = new
    return f"vertex {new} for {old}"


def _values(bench: Bench, arrays: Arrays, own: Graph) -> tuple[NDArray[Any], NDArray[Any]]:
    """The sign of every vertex on random inputs and memories, and its size."""
    random = np.random.default_rng(bench.dice.randrange(1 << 30))
    weights = arrays["weights"] if "weights" in arrays else arrays["signs"] * _sizes(bench, arrays)
    turned = np.ones((len(weights), WALKS))
    if "cells" in arrays:
        turned[arrays["cells"]] = random.choice([-1.0, 1.0], (len(arrays["cells"]), WALKS))
    values = np.zeros((own.given + len(own.rows), WALKS))
    values[: own.given] = random.choice([-1.0, 1.0], (own.given, WALKS))
    values[0] = 1
    offsets, sources = arrays["offsets"].tolist(), arrays["sources"]
    for row, (first, end) in enumerate(pairwise(offsets)):
        terms = weights[first:end, None] * turned[first:end] * values[sources[first:end]]
        values[own.given + row] = np.clip(terms.sum(axis=0), -2, 2)
    return np.sign(values), np.abs(values).max(axis=1)


def _sizes(bench: Bench, arrays: Arrays) -> NDArray[Any]:
    """Of weights that are given by numbers of sizes: what is no plain number counts as 1."""
    listed = bench.saved.config["net"]["sizes"]
    plain = np.array([_fraction(r) if {a, b, c} == {"0"} else 1.0 for r, a, b, c in listed])
    return plain[np.clip(arrays["kinds"], 0, len(plain) - 1)]


def _fraction(text: str) -> float:
    over, _, under = text.partition("/")
    return int(over) / int(under or 1)


MOVES: dict[str, tuple[int, Callable[[Bench], str | None]]] = {
    "rows rescaled": (5, _on_rows(_rescaled)),
    "a unit made steeper": (4, _on_rows(_steeper)),
    "an entry split or doubled": (6, _on_rows(_split)),
    "entries reordered": (1, _on_rows(_reordered)),
    "read elsewhere": (2, _on_rows(_elsewhere)),
    "a row like another": (2, _on_rows(_a_row_like_another)),
    "rows that cancel": (2, _on_rows(_cloned)),
    "a head": (3, a_head),
    "another vertex": (3, another_vertex),
    "an entry": (3, an_entry),
    "a value wherever it stands": (3, a_value),
    "a whole array": (2, a_whole_array),
    "the order": (2, the_order),
    "a number": (4, a_number),
    "a number and its claims": (4, a_number_everywhere),
    "a text or a flag": (2, a_text_or_flag),
    "a list or a part": (2, a_list),
    "a field less": (1, a_field_less),
    "a field of another": (3, a_field_of_another),
    "a key twice": (1, a_key_twice),
    "parts of another net": (2, parts_of_another),
    "what was refused": (3, what_was_refused),
    "renewed": (3, renewed),
}
"""How often each is taken, and the move."""
