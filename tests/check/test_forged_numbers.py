"""Nets that compute their source in exact numbers, and something else in the format that they run in.

Each is forged from a genuine net, its sums and claims renewed: it must do something else when it is run, or
the forgery proves nothing, and the checker must refuse it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._saved import load, save
from tapegrad._sources import read
from tapegrad.errors import BrokenNet, Refused
from tapegrad.interop.disguise import disguise
from tapegrad.interop.disguised import load_disguised, save_disguised
from tapegrad.rasp.library import READY
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE, NETWORK
from tapegrad_check.rasp.tables import WORD
from tests.check.adversary_rows import Steps
from tests.check.altering import Maps
from tests.check.forging import Saved, bounded
from tests.check.small_sources import BB2, COUNT, COUNTER, ECHO
from tests.check.texts import saved_text


class Forge:
    """A genuine net in a folder, to be altered."""

    def __init__(self, source: Any, target: str, folder: Path, **options: Any) -> None:
        save(tg.compile(read(source) if isinstance(source, str) else source, target, **options), folder)
        assert check(folder).verdict == COMPUTES_SOURCE
        self.folder, self.saved = folder, Saved.of(folder)

    def does_something_else(self, *inputs: Any) -> bool:
        """Whether the net, as it stands, does something else than its source."""
        self.saved.write(self.folder)
        return not tg.verify(load(self.folder), [*inputs], engine="reference").agreed

    def is_refused(self, said: str) -> None:
        """By the checker, for this reason, though it does harm."""
        self.saved.write(self.folder)
        with pytest.raises(CheckError, match=said):
            check(self.folder)

    def is_refused_by_fast(self, given: Any) -> None:
        """The engine, which agreed with the source where the network does not."""
        with pytest.raises(Refused, match="Weights were changed; run the reference engine"):
            tg.verify(load(self.folder), [(given,)], engine="fast")


def first_harmful(net: Forge, forged: Iterable[Saved], *inputs: Any) -> None:
    """Leaves the first forgery there that does harm."""
    for net.saved in forged:
        if net.does_something_else(*inputs):
            return
    raise AssertionError("nothing does harm")


def test_a_gate_that_single_precision_loses(tmp_path: Path) -> None:
    """relu(x + y - 1) as relu(2^25 x + y - 2^25), which is 0 for all bits; both engines."""
    net = Forge("subleq-echo", "transformer", tmp_path / "net", steps=60, input=4, output=4)
    genuine = net.saved.copy()
    ands = [
        (level, place)
        for level, rows in enumerate(Steps(genuine.arrays).units)
        for place, row in enumerate(rows)
        if ([value for _, value in row.entries], row.bias) == ([1.0, 1.0], -1.0)
    ]
    assert len(ands) == 203

    def forged() -> Iterator[Saved]:
        for level, place in ands:
            saved, own = genuine.copy(), Steps(genuine.arrays)
            row = own.units[level][place]
            row.entries[0][1], row.bias = 2.0**25, -(2.0**25)
            saved.arrays = own.write()
            yield saved

    first_harmful(net, forged(), (b"hi",))
    net.is_refused("a gate is rounded")
    net.is_refused_by_fast(b"hi")


def last_units(genuine: Saved, change: Callable[[list[int], list[float], float], Any]) -> Iterator[Saved]:
    """Forgeries of single units of the last layer."""
    net = saved_text(genuine)
    for place, row in enumerate(Maps.of(net, "units")[-1][1]):
        forged, units = replace(net, arrays=dict(net.arrays)), Maps.of(net, "units")
        if (other := change(*row)) is not None:
            units[-1][1][place] = other
            units.write(forged, "units")
            yield forged.into(genuine)


def test_a_choice_that_single_precision_loses(tmp_path: Path) -> None:
    """A unit is 1/2 where its slot and its bits are so. With 2^23 - 1/2 for the slot the half gets lost."""
    net = Forge("increment", "decoder", tmp_path / "net", tokens=200)

    def change(columns: list[int], values: list[float], bias: float) -> Any:
        large = 2.0**23 - 0.5
        return (columns, [large, *values[1:]], bias - large + 1) if 1.0 in values[1:] else None

    first_harmful(net, last_units(net.saved, change), ("11",))
    net.is_refused("a unit is rounded")
    net.is_refused_by_fast("11")


def test_two_entries_for_one_column(tmp_path: Path) -> None:
    """The net adds them up; the checker kept the last."""
    net = Forge("increment", "decoder", tmp_path / "net", tokens=200)

    def change(columns: list[int], values: list[float], bias: float) -> Any:
        more = [column for column, value in zip(columns[1:], values[1:], strict=True) if value > 0]
        return ([*more[:1], *columns], [-1.0, *values], bias) if more else None

    first_harmful(net, last_units(net.saved, change), ("11",))
    net.is_refused("two entries at one place")
    net.is_refused_by_fast("11")


def test_units_of_rasp_whose_sum_single_precision_loses(tmp_path: Path) -> None:
    """x + 2^24 - 2^24, unit by unit exact, is 0 where x is 1."""
    net = Forge(COUNT, "decoder", tmp_path / "net")
    text = saved_text(net.saved)
    units, sums = (Maps.of(text, name) for name in ("units", "sums"))
    large = len(units[1][1])
    units[1][1].extend([([WORD], [2.0**24], 0.0)] * 2)
    columns, values, bias = sums[1][1][0]
    sums[1][1][0] = [*columns, large, large + 1], [*values, 1.0, -1.0], bias
    sums[1] = large + 2, sums[1][1]
    units.write(text, "units")
    sums.write(text, "sums")
    net.saved = text.into(net.saved)
    assert net.does_something_else(("aab",), ("bba",))
    net.is_refused("a sum of units is rounded")


def test_scores_of_rasp_that_single_precision_loses(tmp_path: Path) -> None:
    """A score of 256 is lost beside 2^33, which is taken away again."""
    net = Forge(COUNT, "decoder", tmp_path / "net")
    text = saved_text(net.saved)
    for side, own in (("query", (2.0**33, -(2.0**33))), ("key", (1.0, 1.0))):
        maps = Maps.of(text, side)
        rows = maps[0][1]
        rows.insert(0, ([WORD], [own[0]], 0.0))
        rows.insert(len(rows) - 1, ([WORD], [own[1]], 0.0))
        maps.write(text, side)
    net.saved = text.into(net.saved)
    assert net.does_something_else(("aab",))
    net.is_refused("scores are rounded")


def test_a_temperature_at_which_softmax_overflows(tmp_path: Path) -> None:
    """2^200 is infinite in single precision, and no number times 0."""
    net = Forge(
        "subleq-echo", "transformer", tmp_path / "net", steps=60, input=4, output=4, attention="softmax"
    )
    for node in net.saved.beside[NETWORK]["nodes"]:
        if node["operation"] == "softmax":
            node["settings"]["temperature"] = 2.0**200
    net.saved.claims["temperature"] = 2.0**200
    net.saved.claims["softmax_error"] = 2.0**-23
    with np.errstate(over="ignore"):
        assert net.does_something_else((b"hi",))
    net.is_refused("softmax overflows")


def test_sums_of_a_filter_that_double_precision_loses(tmp_path: Path) -> None:
    """What V4 makes of a unit, 2^50 times, is added in V5 first and taken away last."""
    net = Forge(BB2, "rcnn", tmp_path / "net", margin=4, form="paper")
    genuine = net.saved.arrays
    before = len(genuine["network.filter.3.bias"])

    def forged() -> Iterator[Saved]:
        for unit in np.unique(genuine["network.filter.3.columns"]).tolist():
            saved = net.saved.copy()
            for name, first in (("rows", [0, 1]), ("columns", [unit, unit]), ("values", [2.0**50, 2.0**50])):
                own = genuine[f"network.filter.3.{name}"] + (2 if name == "rows" else 0)
                saved.arrays[f"network.filter.3.{name}"] = np.concatenate([np.array(first, own.dtype), own])
            columns, values = genuine["network.filter.4.columns"], genuine["network.filter.4.values"]
            saved.arrays |= {
                "network.filter.3.bias": np.zeros(before + 2),
                "network.filter.4.rows": np.zeros(len(columns) + 2, np.int64),
                "network.filter.4.columns": np.concatenate([[0], columns + 2, [1]]),
                "network.filter.4.values": np.concatenate([[1.0], values, [-1.0]]),
            }
            yield saved

    first_harmful(net, forged(), ())
    net.is_refused("a sum of units is rounded")


@pytest.mark.parametrize("count", [10**9, 10**400, 3, 5, 0, -4, 4.0, [4], "4", None])
def test_digits_that_the_number_of_a_step_has_not(tmp_path: Path, count: Any) -> None:
    """They are computed as shifts: a billion would ask for more memory than there is."""
    net = Forge(read(COUNTER), "transformer", tmp_path / "net", steps=12)
    (node,) = (node for node in net.saved.beside[NETWORK]["nodes"] if node["operation"] == "digits")
    assert node["settings"] == {"count": 4}
    node["settings"]["count"] = count
    net.is_refused("count|columns|whole number")
    with pytest.raises(BrokenNet):
        load(net.folder)


@pytest.mark.parametrize("count", [7, 12, 10**9])
@pytest.mark.parametrize("entry", ["counted", "digits"])
def test_a_record_of_too_many_digits(tmp_path: Path, entry: str, count: int) -> None:
    """The slots of a record were named before anything was compared: a billion asked for all memory, and
    blocks that bytes of 48 bits lie in had no numbers."""
    net = Forge(ECHO if entry == "counted" else BB2, "decoder", tmp_path / "net", tokens=400)
    net.saved.config["net"]["machine"][entry] = count
    net.is_refused("digits")
    with pytest.raises(BrokenNet, match=f"a record cannot have {count:,} digits"):
        load(net.folder)


@pytest.mark.parametrize("of", ["clock", "program"])
@pytest.mark.parametrize("entry", ["address", "width"])
@pytest.mark.parametrize("bits", [10**9, 10**30])
def test_a_memory_of_more_bits_than_tokens_have(tmp_path: Path, of: str, entry: str, bits: int) -> None:
    """The bits of an address and of a word were named before anything was compared, which asked for all
    memory."""
    source, options = (read(COUNTER), {}) if of == "clock" else (ECHO, {"input": 1, "output": 2})
    net = Forge(source, "transformer", tmp_path / "net", steps=12, **options)
    net.saved.config["net"]["banks"][-1][entry] = bits
    net.is_refused("bank")
    with bounded("load"), pytest.raises(BrokenNet, match="more bits than its tokens"):
        load(net.folder)


LARGEST = 2.0**127
BEYOND: dict[str, dict[str, dict[tuple[int, ...], float]]] = {
    "a score": {"attn.W_K": {(0, 0, 0): LARGEST}},
    "a value that goes nowhere": {"attn.W_V": {(0, 0, 1): LARGEST, (0, 3, 1): LARGEST}},
    "a unit that goes nowhere": {
        "mlp.W_in": {(0, 1): LARGEST, (3, 1): LARGEST},
        "mlp.W_out": {(1, column): 0.0 for column in range(14)},
    },
}


@pytest.mark.parametrize("what", BEYOND)
def test_decoys_that_overflow(tmp_path: Path, what: str) -> None:
    """What a decoy adds was bounded, and its scores, and what nothing reads, were not: infinity times 0 is no
    number, and all that is added to it is none."""
    program = replace(READY["rasp-histogram"].build(), length=3)
    save_disguised(disguise(tg.compile(program, "decoder"), basis="quads", decoys=1), tmp_path / "net")
    saved = Saved.of(tmp_path / "net")
    assert saved.beside["answer_key.json"]["decoys"] == {"heads": ["a0.h0"], "units": ["m0.1"]}
    for name, entries in BEYOND[what].items():
        forged = saved.arrays[f"blocks.0.{name}"].copy()
        for place, value in entries.items():
            forged[place] = value
        saved.arrays[f"blocks.0.{name}"] = forged
    saved.write(tmp_path / "net")
    with np.errstate(all="ignore"):
        logits = load_disguised(tmp_path / "net").logits(["a", "b"])
    assert not np.isfinite(logits).all()
    with pytest.raises(CheckError, match="may overflow"):
        check(tmp_path / "net")
