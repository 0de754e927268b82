"""A forger's workshop: saved nets altered in every way we can think of, with all sums renewed.

`forgeries` gives each kind of forgery by name, `mutants` changes one field at a time, and `outcome` says what
became of a forged folder. It must be refused, or not be said to compute its source, or do no harm: the loaded
net does what the loaded source does.
"""

import hashlib
import json
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as tensors_to_bytes

from tapegrad._compile import Compiled
from tapegrad._saved import load
from tapegrad._sources import source_to_json
from tapegrad._verify import verify
from tapegrad.errors import TapegradError
from tapegrad_check import CheckError, check
from tapegrad_check.folder import BESIDE_THE_NET, CERTIFICATE, CONFIG, MODEL, OWN_TABLE

SECONDS = 20
"""Of the processor: no small folder, however forged, may keep the checker or the loader busy for longer. By
the clock it may take any time, where there is other work."""

MEMORY = 1 << 30
"""Bytes that it may ask for, used or not."""

Arrays = dict[str, NDArray[Any]]


@dataclass
class Saved:
    """A saved net in memory, free to be altered."""

    config: dict[str, Any]
    arrays: Arrays
    claims: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> "Saved":
        """The net in a folder."""
        certificate = json.loads((path / CERTIFICATE).read_text())
        arrays = dict(sorted(parse_tensors((path / MODEL).read_bytes()).items()))  # they come in any order
        return cls(json.loads((path / CONFIG).read_text()), arrays, certificate["claims"])

    def copy(self) -> "Saved":
        """Another one, to be altered."""
        return Saved(deepcopy(self.config), dict(self.arrays), deepcopy(self.claims))

    def with_arrays(self, arrays: Arrays) -> "Saved":
        """The same with other arrays; the rest is shared, and must not be altered."""
        return Saved(self.config, arrays, self.claims)

    def write(self, path: Path) -> None:
        """The folder, its sums renewed."""
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        model = tensors_to_bytes({name: np.ascontiguousarray(a) for name, a in self.arrays.items()})
        described = json.dumps(self.config).encode()
        sums = {CONFIG: hashlib.sha256(described).hexdigest(), MODEL: hashlib.sha256(model).hexdigest()}
        certificate = {
            "version": self.config.get("version"),
            "target": self.config.get("target"),
            "claims": self.claims,
            "sha256": sums,
        }
        (path / CONFIG).write_bytes(described)
        (path / MODEL).write_bytes(model)
        (path / CERTIFICATE).write_text(json.dumps(certificate))

    def own(self) -> list[str]:
        """The names of the net's own arrays."""
        return [name for name in self.arrays if not name.startswith(BESIDE_THE_NET)]


@dataclass
class Forgery:
    """A kind of forgery, where it was applied, and the result."""

    kind: str
    where: str
    saved: Saved = field(repr=False)

    def __str__(self) -> str:
        return f"{self.kind} at {self.where}"


# Kinds of forgery. Those on one array take it and give another, or None where they do not apply.

FLOATS = (np.float32, np.float64)


def _at(array: NDArray[Any], place: int, value: Any) -> NDArray[Any]:
    altered = array.copy()
    with np.errstate(all="ignore"):
        altered.reshape(-1)[place] = value
    return altered


def _floats(alter: Callable[[NDArray[Any], int], NDArray[Any]]) -> Callable[..., NDArray[Any] | None]:
    return lambda array, place: alter(array, place) if array.dtype in FLOATS else None


def _numbers(alter: Callable[[NDArray[Any], int], NDArray[Any]]) -> Callable[..., NDArray[Any] | None]:
    return lambda array, place: alter(array, place) if array.dtype != bool else None


def _other_type(array: NDArray[Any]) -> NDArray[Any]:
    others = {"f4": np.float64, "f8": np.float32, "i8": np.int32, "u1": np.int32}
    return array.astype(others.get(array.dtype.str[1:], np.int64))


def _limits(array: NDArray[Any]) -> tuple[Any, Any]:
    if array.dtype == bool:
        return False, True
    limits = np.finfo(array.dtype) if array.dtype in FLOATS else np.iinfo(array.dtype)
    return limits.min, limits.max


def _hair(array: NDArray[Any], place: int) -> NDArray[Any]:
    return _at(array, place, np.nextafter(array.reshape(-1)[place], np.inf))


def _swapped(array: NDArray[Any], place: int) -> NDArray[Any]:
    flat = array.reshape(-1)
    different = np.flatnonzero(flat != flat[place])
    if not len(different):
        return array
    altered = flat.copy()
    altered[[place, different[0]]] = flat[[different[0], place]]
    return altered.reshape(array.shape)


def _in_float(array: NDArray[Any], place: int) -> NDArray[Any]:
    return array.astype(np.float64 if array.dtype != np.float64 else np.int64)


ON_ARRAYS: dict[str, Callable[[NDArray[Any], int], NDArray[Any] | None]] = {
    "an entry re-signed": lambda a, i: _at(a, i, -a.reshape(-1)[i]) if a.dtype.kind in "if" else None,
    "all re-signed": lambda a, i: -a if a.dtype.kind in "if" else None,
    "two entries swapped": _swapped,
    "turned round": lambda a, i: a[::-1],
    "rolled": lambda a, i: np.roll(a, 1),
    "retyped": lambda a, i: _other_type(a),
    "made float or int": _in_float,
    "made boolean": lambda a, i: a.astype(bool),
    "all doubled": _numbers(lambda a, i: a * a.dtype.type(2)),
    "scaled out of range": _floats(lambda a, i: a * a.dtype.type(2.0**60)),
    "an entry enlarged by a hair": _floats(lambda a, i: _at(a, i, np.nextafter(a.reshape(-1)[i], np.inf))),
    "an entry doubled": _numbers(lambda a, i: _at(a, i, 2 * a.reshape(-1)[i])),
    "an entry raised by one": _numbers(lambda a, i: _at(a, i, a.reshape(-1)[i] + a.dtype.type(1))),
    "an entry set to 0": lambda a, i: _at(a, i, 0),
    "an entry set to the largest": lambda a, i: _at(a, i, _limits(a)[1]),
    "an entry set to the smallest": lambda a, i: _at(a, i, _limits(a)[0]),
    "an entry subnormal": _floats(lambda a, i: _at(a, i, np.finfo(a.dtype).smallest_subnormal)),
    "an entry minus zero": _floats(lambda a, i: _at(a, i, -0.0)),
    "an entry NaN": _floats(lambda a, i: _at(a, i, np.nan)),
    "an entry infinite": _floats(lambda a, i: _at(a, i, np.inf)),
    "truncated": lambda a, i: a[:-1],
    "lengthened": lambda a, i: np.concatenate([a, a[-1:]]),
    "emptied": lambda a, i: a[:0],
    "of another shape": lambda a, i: a.reshape(1, *a.shape),
}


def forgeries(genuine: Saved, other: Saved, seed: int = 0, places: int = 1) -> Iterator[Forgery]:
    """Every kind of forgery; those on arrays at some places of each. `other` is a genuine net of the same
    target and another source, if possible of the same shape."""
    for kind, keys, prefixes in (
        ("net of another source", ("net",), None),
        ("source of another net", ("source",), ("source.",)),
        ("source and lowered source of another net", ("source", "lowered"), ("source.", "lowered.")),
        ("lowered source of another net", ("lowered",), ("lowered.",)),
        ("net and lowered source of another net", ("net", "lowered", "passes"), ("lowered.", "pass.", None)),
        ("options of another net", ("options",), ()),
        ("passes of another net", ("passes", "defaults"), ("pass.",)),
        ("names of another net", ("net",), ()),
        ("arrays of another net", (), None),
    ):
        yield Forgery(kind, ", ".join(keys) or "arrays", _spliced(genuine, other, keys, prefixes))
    random = np.random.default_rng(seed)
    for name, array in genuine.arrays.items():
        for kind, alter in ON_ARRAYS.items():
            for place in random.permutation(array.size)[:places].tolist():
                with np.errstate(all="ignore"):
                    altered = alter(array, place)
                if altered is not None and not _identical(altered, array):
                    forged = genuine.with_arrays({**genuine.arrays, name: altered})
                    yield Forgery(kind, f"{name}[{place}]", forged)
        yield from _missing(genuine, name)
    for where, names in _lists_of_names(genuine.config):
        yield from _renamed(genuine, where, names)


def _spliced(a: Saved, b: Saved, keys: tuple[str, ...], prefixes: tuple[Any, ...] | None) -> Saved:
    """`a`, with these parts of the config and these arrays of `b`; None stands for the net's own arrays."""
    forged = a.copy()
    for key in keys:
        forged.config.pop(key, None)
        if key in b.config:
            forged.config[key] = deepcopy(b.config[key])

    def moved(name: str) -> bool:
        own = not name.startswith(BESIDE_THE_NET)
        wanted = (None,) if prefixes is None else prefixes
        return any(own if prefix is None else name.startswith(prefix) for prefix in wanted)

    forged.arrays = {name: array for name, array in a.arrays.items() if not moved(name)}
    forged.arrays |= {name: array for name, array in b.arrays.items() if moved(name)}
    if "net" in keys:
        forged.claims = deepcopy(b.claims)
    return forged


def _identical(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _missing(genuine: Saved, name: str) -> Iterator[Forgery]:
    others = {other: array for other, array in genuine.arrays.items() if other != name}
    yield Forgery("an array missing", name, genuine.with_arrays(others))
    renamed = {**others, f"{name}_": genuine.arrays[name]}
    yield Forgery("an array renamed", name, genuine.with_arrays(renamed))


def _lists_of_names(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], list[str]]]:
    if isinstance(data, dict):
        for key, part in data.items():
            yield from _lists_of_names(part, (*path, key))
    elif isinstance(data, list) and len(data) > 1 and all(isinstance(one, str) for one in data):
        yield path, data


def _renamed(genuine: Saved, where: tuple[Any, ...], names: list[str]) -> Iterator[Forgery]:
    for kind, others in (
        ("names turned round", names[::-1]),
        ("two names swapped", [names[1], names[0], *names[2:]]),
        ("a name changed", [f"{names[0]}'", *names[1:]]),
        ("a name twice", [names[1], *names[1:]]),
        ("a name left out", names[:-1]),
    ):
        yield Forgery(kind, "/".join(map(str, where)), _with(genuine, where, others))


def mutants(genuine: Saved) -> Iterator[Forgery]:
    """One field of config or claims at a time, each in several ways."""
    for part in ("config", "claims"):
        for where in _paths(getattr(genuine, part)):
            value = _get(getattr(genuine, part), where)
            for number, altered in enumerate(_altered(value)):
                forged = _with(genuine, where, altered, part)
                yield Forgery(f"mutant {number}", f"{part}/" + "/".join(map(str, where)), forged)
            without = _free(genuine, where, part)
            del _get(getattr(without, part), where[:-1])[where[-1]]
            yield Forgery("a field missing", f"{part}/" + "/".join(map(str, where)), without)


def large_claims(genuine: Saved) -> Iterator[Forgery]:
    """Every number of the config, one of each list: a million, ten million, a thousand million; digits of
    texts as well, which may have exponents."""
    seen = set()
    for where in _paths(genuine.config):
        value = _get(genuine.config, where)
        field_ = tuple("*" if isinstance(key, int) else key for key in where)
        number = type(value) is int
        if field_ not in seen and (number or (isinstance(value, str) and value[:1].isdigit())):
            seen.add(field_)
            for claim in (10**6, 10**7, 10**9) if number else ("1e999999", "9" * 5_000):
                yield Forgery("a large claim", "/".join(map(str, where)), _with(genuine, where, claim))


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, part in items:
        yield from _paths(part, (*path, key))


def _altered(value: Any) -> list[Any]:
    """Other values for a field, some of them hostile."""
    if isinstance(value, bool):
        return [not value, int(value), None]
    if isinstance(value, int):
        return [value + 1, value - 1, -value - 1, 0, 10**9, -(10**9), 10**400, float(value), str(value), None]
    if isinstance(value, float):
        return [2 * value, value / 2, -value, value * (1 + 1e-9), 0.0, 1e308, 5e-324, 10**400, str(value)]
    if isinstance(value, str):
        return [f"{value}'", "", "1e999999", "practical", value.upper(), 7, None, [value]]
    if isinstance(value, list):
        return [value[:-1], value[::-1], [*value, *value[-1:]], [], {}, None, "x"]
    if isinstance(value, dict):
        return [{}, [], None, {**value, "extra": 1}]
    return [1, "x", [], {}]


def _get(data: Any, where: tuple[Any, ...]) -> Any:
    for key in where:
        data = data[key]
    return data


def _with(genuine: Saved, where: tuple[Any, ...], value: Any, part: str = "config") -> Saved:
    forged = _free(genuine, where, part)
    _get(getattr(forged, part), where[:-1])[where[-1]] = value
    return forged


def _free(genuine: Saved, where: tuple[Any, ...], part: str) -> Saved:
    """A net that may be altered at one place. All else is shared, for a large net has a great many places,
    and a copy of everything for each would take hours."""
    own = copy(getattr(genuine, part))
    forged = replace(genuine, arrays=dict(genuine.arrays), **{part: own})
    for key in where[:-1]:
        own[key] = copy(own[key])
        own = own[key]
    return forged


# What becomes of a forgery.


class TooSlow(Exception):
    """The checker or the loader took longer than a small folder may take."""


def _ring(number: int, frame: Any) -> None:
    raise TooSlow


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """AssertionError if it takes more of the processor, or of memory, than a small folder may take."""
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, _ring)
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    except TooSlow:
        raise AssertionError(f"{what} takes more than {SECONDS} seconds of the processor") from None
    except MemoryError:
        raise AssertionError(f"{what} takes more than {MEMORY >> 20} MiB") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGPROF, before)


def outcome(forgery: Forgery, folder: Path, genuine: Compiled, most_steps: int = 2_000) -> str:
    """In one word what became of it; AssertionError if the checker believes it and it does harm."""
    forgery.saved.write(folder)
    with bounded(str(forgery)):
        try:
            report = check(folder)
        except CheckError:
            return "refused"
        if report.verdict == OWN_TABLE:
            return "disowned"
        try:
            loaded = load(folder)
        except TapegradError:
            return "unloadable"
    if _same(loaded, genuine):
        return "unchanged"
    try:
        agreed = verify(loaded, steps=most_steps).agreed
    except TapegradError:
        return "refused when it is run"
    assert agreed, f"{forgery} is believed and does harm"
    return "verified"


def _same(a: Compiled, b: Compiled) -> bool:
    """Whether two compiled nets are the same, source and all."""
    own = [(c.net.config(), c.net.arrays(), *source_to_json(c.source)) for c in (a, b)]
    plain = [(config, source) for config, _, source, _ in own]
    arrays = [net | {f"source.{name}": array for name, array in source.items()} for _, net, _, source in own]
    return (
        plain[0] == plain[1]
        and arrays[0].keys() == arrays[1].keys()
        and all(_identical(arrays[0][name], arrays[1][name]) for name in arrays[0])
    )
