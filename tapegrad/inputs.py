"""Inputs as people type them, turned into what a source starts from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError
from tapegrad.learners.model import Learner
from tapegrad.lowering.rewriting import Source
from tapegrad.machines.grid import GridMachine
from tapegrad.machines.model import TuringMachine
from tapegrad.show.text import BUS


def inputs_for(source: Source, texts: Sequence[str] | None, own: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The arguments of `source.start`: as typed, else the source's own; a machine may start on a blank tape,
    nothing else may."""
    if texts is not None:
        return parse_inputs(source, texts)
    if not own and isinstance(source, Circuit):
        raise InputError(
            f"the circuit {source.name!r} needs an input",
            advice="Write its bits in order, as in 0110, or name=number for each input.",
        )
    if not own and isinstance(source, Learner):
        raise InputError(
            f"the learner {source.name!r} needs samples",
            advice="Write them as bits:label, or give a file of such lines.",
        )
    return own


def parse_inputs(source: Source, texts: Sequence[str]) -> tuple[Any, ...]:
    """The arguments of `source.start`.

    A machine takes one word for each tape; a space stands for a blank, unless it is a symbol; where symbols
    have several characters, spaces separate them. A grid machine takes rows separated by `/`. A circuit takes
    its bits in order (`0110`), or `name=number` for each input or bus. A learner takes samples,
    `bits:label`, or a file of lines of that form.
    """
    if isinstance(source, TuringMachine):
        return tuple(_word(text, source.alphabet, source.blank) for text in texts)
    if isinstance(source, GridMachine):
        rows = [row for text in texts for row in text.split("/")]
        return ([_word(row, source.alphabet, source.blank) for row in rows],)
    if isinstance(source, Circuit):
        return (_bits(source, texts),)
    if isinstance(source, Learner):
        return _samples(source, texts)
    raise InputError(f"{source.name!r} takes no input on the command line")


def _word(text: str, alphabet: Sequence[str], blank: str) -> list[str]:
    if any(len(symbol) > 1 for symbol in alphabet):
        return text.split()
    return [blank if letter == " " and " " not in alphabet else letter for letter in text]


def _samples(learner: Learner, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    lines: list[str] = []
    for text in texts:
        path = Path(text)
        lines += path.read_text().split() if ":" not in text and path.is_file() else text.split()
    rows, labels = [], []
    for number, line in enumerate(lines, 1):
        bits, _, label = line.partition(":")
        if len(bits) != learner.inputs or set(bits + label) - {"0", "1"} or len(label) != 1:
            raise InputError(
                f"{line[:80]!r} is not a sample of {learner.inputs} bits and a label",
                where=f"sample {number}",
                advice="Write, say, 0110:1, or give a file of such lines.",
            )
        rows.append([int(bit) for bit in bits])
        labels.append(int(label))
    return np.array(rows, np.uint8).reshape(-1, learner.inputs), np.array(labels, np.uint8)


def _bits(circuit: Circuit, texts: Sequence[str]) -> np.ndarray:
    if any("=" in text for text in texts):
        return _named(circuit, texts)
    digits = "".join(texts).replace("_", "").replace(" ", "")
    if set(digits) - {"0", "1"}:
        raise InputError(
            f"{''.join(texts)!r} is not a row of bits",
            advice="Write the bits in order, as in 0110, or name=number for each input.",
        )
    if len(digits) != len(circuit.inputs):
        raise InputError(
            f"{len(digits)} bits were given for the {len(circuit.inputs)} inputs of {circuit.name!r}",
            advice=f"Its inputs are {', '.join(_widths(circuit.inputs))}.",
        )
    return np.array([[int(digit) for digit in digits]], np.uint8).reshape(1, -1)


def _widths(names: Sequence[str]) -> dict[str, int]:
    """Every input or bus with the number of its bits."""
    widths: dict[str, int] = {}
    for name in names:
        bus = BUS.fullmatch(name)
        key = bus[1] if bus else name
        widths[key] = max(widths.get(key, 0), int(bus[2]) + 1 if bus else 1)
    return widths


def _named(circuit: Circuit, texts: Sequence[str]) -> np.ndarray:
    widths = _widths(circuit.inputs)
    values: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        name = name.strip()
        if name not in widths:
            raise InputError(f"there is no input {name!r}", advice=f"The inputs are {', '.join(widths)}.")
        try:
            values[name] = int(number, 0)
        except ValueError:
            raise InputError(f"{number!r} is not a number", where=f"input {text!r}") from None
        if not -(1 << widths[name] - 1) <= values[name] < 1 << widths[name]:
            raise InputError(f"{values[name]} does not fit {widths[name]} bits", where=f"input {name!r}")
    if missing := widths.keys() - values.keys():
        raise InputError(f"no value for {', '.join(sorted(missing))}", advice="Give every input.")
    row = []
    for name in circuit.inputs:
        bus = BUS.fullmatch(name)
        row.append(values[bus[1]] >> int(bus[2]) & 1 if bus else values[name] & 1)
    return np.array([row], np.uint8)
