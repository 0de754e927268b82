"""The kinds of source, and finding a source: by a ready name, in a file, or in a text of any format."""

import gc
import inspect
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._files import content_of
from tapegrad._python import defined_in, named_in_python
from tapegrad.errors import BrokenNet, FormatError, InputError, Refused, TapegradError, described
from tapegrad.source import Arrays, Format, Lowering, Source, SourceKind, imported
from tapegrad_check.folder import once

_PLACES = {
    "turing machine": "tapegrad.machines.kind:TURING_MACHINE",
    "grid machine": "tapegrad.machines.kind:GRID_MACHINE",
    "circuit": "tapegrad.circuits.kind:CIRCUIT",
    "layered circuit": "tapegrad.circuits.kind:LAYERED_CIRCUIT",
    "function": "tapegrad.circuits.kind:FUNCTION",
    "sequential circuit": "tapegrad.circuits.clocked.kind:SEQUENTIAL",
    "learner": "tapegrad.learners.kind:LEARNER",
    "program": "tapegrad.programs.kind:PROGRAM",
    "rasp program": "tapegrad.rasp.kind:RASP",
}
"""One line for each kind of source, by its name, in the order in which their formats are tried."""

_kinds: dict[str, SourceKind] = {}
"""Those that were needed so far, and those that were registered."""


def all_kinds() -> Iterator[SourceKind]:
    """Every kind of source, loaded when its turn comes."""
    return map(_kind_named, [*_PLACES, *(name for name in _kinds if name not in _PLACES)])


def register(kind: SourceKind | type) -> None:
    """Adds a kind of source for this process, or an instruction set: a subclass of `Machine`."""
    if isinstance(kind, type):
        imported("tapegrad.programs.instruction_sets:register")(kind)
        return
    if kind.name in {*_PLACES, *_kinds}:
        raise InputError(f"there is a kind of source {kind.name!r} already")
    _kinds[kind.name] = kind


def _kind_named(name: str) -> SourceKind:
    if name not in _kinds:
        _kinds[name] = imported(_PLACES[name])
    return _kinds[name]


def kind_of(source: Source | type) -> SourceKind:
    """The record of a source's kind."""
    wanted = source if isinstance(source, type) else type(source)
    for kind in all_kinds():
        if issubclass(wanted, kind.type):
            return kind
    raise _no_source(wanted)


def _no_source(of: type) -> InputError:
    names = ", ".join(kind.name for kind in all_kinds())
    article = "an" if of.__name__[0] in "aeiou" else "a"
    return InputError(
        f"{article} {of.__name__} is not a source",
        advice=f"Kinds of source: {names}; also a Python function with types, a name, or a file.",
    )


def ways(source: Source, *wanted: type) -> Iterator[list[Lowering]]:
    """Every chain of lowerings from a source to a kind of one of these types, the shortest first; none passes
    through a kind twice."""
    start, goals = kind_of(source).name, [kind_of(own).name for own in wanted]
    waiting: deque[tuple[str, list[Lowering]]] = deque([(start, [])])
    while waiting:
        name, chain = waiting.popleft()
        if name in goals:
            yield chain
            continue
        passed = {start, *(lowering.after for lowering in chain)}
        for lowering in _kind_named(name).lowerings:
            if lowering.after not in passed:
                waiting.append((lowering.after, [*chain, lowering]))


def route(source: Source, *wanted: type, names: Iterable[str] = ()) -> list[Lowering]:
    """The shortest chain of lowerings from a source to a kind of one of these types that has most of the
    options of these names: whoever asks for `tapes` wants to go by way of a machine."""
    asked = set(names)

    def missed(chain: list[Lowering]) -> int:
        return len(asked - {name for lowering in chain for name in lowering.options})

    chains = ways(source, *wanted)
    found = min(chains, key=missed, default=None) if asked else next(chains, None)
    if found is None:
        goals = " or ".join(kind_of(own).name for own in wanted)
        raise Refused(f"no lowering leads from a {kind_of(source).name} to a {goals}")
    return found


@dataclass(frozen=True)
class Found:
    """A source, where it came from, and the input that came with it: the arguments of `source.start`."""

    source: Source
    origin: str
    inputs: tuple[Any, ...] = ()


def all_formats() -> tuple[Format, ...]:
    """Every format that can be read."""
    return tuple(known for kind in all_kinds() for known in kind.formats)


def ready_names() -> dict[str, str]:
    """Every ready source with a line on what it does."""
    return {name: entry.summary for kind in all_kinds() for name, entry in kind.ready.items()}


def find(text: str) -> Found:
    """A ready name, else what a Python file defines (`file.py:name`, which runs the file), else an existing
    file, else the text itself in one of the formats."""
    if any(text in kind.ready for kind in all_kinds()):
        return find_text(text)
    if (named := named_in_python(text)) is not None:
        return Found(as_source(defined_in(*named)), str(named[0]))
    content = content_of(text)
    if content is not None:
        found = _parsed(content, str(Path(text)), Path(text).parent)
        return _called(found, Path(text).stem or text) if found.source.name in _UNNAMED else found
    if "\n" not in text and (os.sep in text or Path(text).suffix in _ENDINGS):
        if os.path.isdir(text):  # which no length of a name makes fail
            raise _folder(text)
        raise InputError(f"there is no file {text!r}")
    try:
        return find_text(text)
    except FormatError:
        if os.path.isdir(text):
            raise _folder(text) from None
        raise


def _folder(text: str) -> InputError:
    return InputError(
        f"{text!r} is a folder",
        advice="Give a file; `run`, `verify` and `check` also take the folder of a saved net.",
    )


def find_text(text: str) -> Found:
    """A ready name, else the text itself in one of the formats: never a file."""
    for kind in all_kinds():
        if text in kind.ready:
            ready = kind.ready[text]
            return Found(ready.build(), f"ready {kind.name.split()[-1]}", ready.example())
    try:
        return _parsed(text.encode("utf-8", "surrogateescape"), "text")
    except UnicodeEncodeError as error:
        raise FormatError(f"the text has a character that is none, {text[error.start]!a}") from error


def read(text: str | os.PathLike[str]) -> Source:
    """The source alone: of a ready name, a file, or a text in any format."""
    if not isinstance(text, str | os.PathLike):
        raise InputError(
            f"a name, a file or a text is read, and this is {described(text)}",
            advice='Give a string, as in tg.read("increment"). A Python function with types is compiled as '
            'it is: tg.compile(function, "relu").',
        )
    return find(os.fspath(text)).source


def as_source(given: Any) -> Source:
    """A source as it is; a name, file or text as what `read` finds; a Python function whose parameters have
    types (`def f(a: UInt(8))`) traced."""
    if isinstance(given, Found):
        return given.source
    if isinstance(given, str | os.PathLike):
        return read(given)
    if inspect.isroutine(given) or isinstance(given, partial):
        return imported("tapegrad.circuits.tracer:trace")(given)
    if any(isinstance(given, kind.type) for kind in all_kinds()):
        return given
    raise _no_source(type(given))


def example_of(given: Any, source: Source) -> tuple[Any, ...]:
    """The input that comes with a source: in its text or file, or by its name among the ready ones."""
    if isinstance(given, Found):
        return given.inputs
    if isinstance(given, str | os.PathLike):
        return find(os.fspath(given)).inputs
    ready = kind_of(source).ready
    return ready[source.name].example() if source.name in ready else ()


def _called(found: Found, name: str) -> Found:
    """With a name for its source; that of a circuit with a clock is the name of its logic."""
    from tapegrad.circuits.clocked.model import SequentialCircuit  # brings all types of values

    source: Any = found.source
    if isinstance(source, SequentialCircuit):
        return replace(found, source=replace(source, logic=replace(source.logic, name=name)))
    return replace(found, source=replace(source, name=name))


_UNNAMED = {"machine", "turmite", "circuit", "program", "program.c"}
"""What readers call a source whose text has no name in it; then it has that of its file."""
_ENDINGS = {
    ".txt", ".yaml", ".yml", ".aag", ".aig", ".blif", ".bench", ".tm", ".c", ".s", ".S", ".elf", ".rasp",
    ".v", ".sv",
}  # fmt: skip

_MEANT = {
    ".c": "A C program has a function `main`, as in int main(void) { return 0; }.",
    ".v": "Verilog has a module, from `module` to `endmodule`.",
    ".sv": "Verilog has a module, from `module` to `endmodule`.",
    ".rasp": "A RASP program begins with a line `rasp NAME`.",
    ".blif": "BLIF begins with `.model` or `.inputs`.",
}
"""What a file with this ending needs, for its format to be recognised."""


@contextmanager
def _without_collecting() -> Iterator[None]:
    """A reader makes a million small things and drops none: looking for garbage among them takes a third of
    its time."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()


def _parsed(data: bytes, origin: str, folder: Path | None = None) -> Found:
    if data.startswith(_WRITTEN):
        return Found(_from_written(data), f"{origin}, saved source")
    for kind in all_kinds():
        for known in kind.formats:
            if known.detect(data):
                options = {"folder": folder} if known.names_files else {}
                with _without_collecting():
                    source, inputs = kind.found(known.read(data, **options))
                return Found(source, f"{origin}, {known.name}", inputs)
    raise _unknown(data, origin)


def _unknown(data: bytes, origin: str) -> FormatError:
    """What is said of a text that is in no format; a file is at least there."""
    text = data[:60].decode(errors="replace")
    listed = ", ".join(known.name for known in all_formats())
    advice = f"Formats: {listed}. `tapegrad formats` shows an example of each and the ready names."
    if origin != "text":
        what = f"{origin} is empty" if not data.strip() else f"the text of {origin} is in no known format"
        return FormatError(what, advice=_MEANT.get(Path(origin).suffix, advice))
    near = get_close_matches(text, ready_names(), 1)
    return FormatError(
        f"{text!r} is neither a ready name, nor a file, nor a text in a known format",
        advice=(f"Did you mean {near[0]!r}? " if near else "") + advice,
    )


def parse_inputs(source: Source, texts: Sequence[str]) -> tuple[Any, ...]:
    """The arguments of `source.start`, from what was typed."""
    return kind_of(source).parse_input(source, texts)


def inputs_for(source: Source, texts: Sequence[str] | None, own: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The arguments of `source.start`: as typed, else the source's own; a machine may start on a blank tape,
    nothing else may."""
    kind = kind_of(source)
    if texts is not None:
        return kind.parse_input(source, texts)
    if not own and kind.input_needed:
        advice = kind.input_needed + kind.input_example(source)
        raise InputError(f"the {kind.name} {source.name!r} needs an input", advice=advice)
    return own


def source_to_json(source: Source) -> tuple[dict[str, Any], Arrays]:
    """The source as JSON, with the arrays that go beside it."""
    kind = kind_of(source)
    data, arrays = kind.to_json(source)
    return {"kind": kind.name, **data}, arrays


def source_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Source:
    """The source again; anything that does not fit is refused."""
    try:
        return _kind_named(data["kind"]).from_json(data, arrays)
    except TapegradError as error:
        raise BrokenNet(f"the saved source contradicts itself: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise BrokenNet(f"the saved source cannot be read: {type(error).__name__} {error}") from error


_WRITTEN = b'{"tapegrad source":'
_NUMBERS = ("bool", "uint8", "int8", "int32", "int64", "float32", "float64")


def written(source: Source) -> bytes:
    """A source of any kind as a text that `find` reads: its JSON form, arrays included."""
    data, arrays = source_to_json(source)
    lists = {name: [str(array.dtype), array.tolist()] for name, array in arrays.items()}
    return json.dumps({"tapegrad source": data, "arrays": lists}).encode() + b"\n"


def _from_written(data: bytes) -> Source:
    try:
        found = json.loads(data, object_pairs_hook=once)
        lists = dict(found["arrays"]).items()
        kinds = {name: np.dtype(kind) for name, (kind, _) in lists if kind in _NUMBERS}
        arrays = {name: np.array(values, kinds[name]) for name, (_, values) in lists}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise FormatError(f"the saved source cannot be read: {type(error).__name__} {error}") from error
    return source_from_json(found["tapegrad source"], arrays)


def parse_options(texts: Sequence[str] | None) -> dict[str, Any]:
    """Options of a target or a lowering from `name=value` pairs; numbers and true/false are recognised."""
    options: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{text!r} is not of the form name=value", advice="Write, say, --set steps=20.")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0") and text.isdigit() and text != "0":
        return text  # a word on a tape: as a number it would lose its first symbols
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
