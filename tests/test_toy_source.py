"""A kind of source that the package has never heard of: one record, and everything works.

A counter counts down from a number to 0, a step at a time. It lowers to a Turing machine that erases a
unary number.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad import _sources as sources
from tapegrad.cli import app
from tapegrad.errors import BrokenNet, FormatError, InputError
from tapegrad.machines.model import RIGHT, Configuration, Rule, TuringMachine
from tapegrad.source import Format, Lowering, Ready, Rewriting, SourceKind


@dataclass(frozen=True)
class Counter:
    """Counts down, by ones."""

    name: str
    most: int

    def start(self, first: int) -> int:
        assert 0 <= first <= self.most
        return first

    def run(self, state: int) -> Iterator[int]:
        yield from range(state, -1, -1)


def lower(counter: Counter) -> Rewriting:
    """A tape of so many ones, which the head erases from the left."""
    rules = {("go", ("1",)): Rule(("_",), (RIGHT,), "go")}
    machine = TuringMachine(rules, "go", "_", name=counter.name)
    return Rewriting(
        "unary",
        counter,
        machine,
        encode=lambda first: machine.start("1" * first),
        decode=lambda state: len(state.tapes[0]) if isinstance(state, Configuration) else None,
    )


def parse(data: bytes) -> Counter:
    try:
        return Counter("typed", int(data.split()[1]))
    except (ValueError, IndexError):
        raise FormatError("a counter is written as `countdown NUMBER`") from None


COUNTER = SourceKind(
    name="counter",
    type=Counter,
    to_json=lambda counter: ({"name": counter.name, "most": counter.most}, {}),
    from_json=lambda data, arrays: Counter(data["name"], int(data["most"])),
    formats=(
        Format("countdown", "a counter", "countdown 7", lambda data: data.startswith(b"countdown"), parse),
    ),
    ready={"ready-counter": Ready("counts down from 5", lambda: Counter("ready", 5), lambda: (5,))},
    parse_input=lambda counter, texts: (int(texts[0]),),
    default_inputs=lambda counter, random, in_batches: (iter([(n,) for n in range(counter.most + 1)]), True),
    sample=lambda seed: Counter(f"random {seed}", 1 + seed % 5),
    describe=lambda counter: f"counts down from at most {counter.most}",
    state_json=lambda counter, state: {"left": state},
    state_text=lambda counter, state: f"{state} left",
    lowerings=(Lowering("turing machine", f"{__name__}:lower"),),
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(sources, "_kinds", dict(sources._kinds))
    tg.register(COUNTER)


def command(*words):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def test_kinds_are_listed_by_their_names():
    """A kind is loaded by the name that lowerings give it."""
    assert [kind.name for kind in sources.all_kinds()] == [*sources._PLACES, "counter"]
    with pytest.raises(InputError, match="already"):
        tg.register(replace(COUNTER, name="circuit"))


def test_read():
    assert tg.read("countdown 7") == Counter("typed", 7)
    assert tg.read("ready-counter") == Counter("ready", 5)
    with pytest.raises(FormatError, match="countdown NUMBER"):
        tg.read("countdown x")
    assert "counts down from at most 7" in command("show", "countdown 7")
    listed = json.loads(command("formats", "--json"))
    assert listed["ready"]["ready-counter"] == "counts down from 5"


@pytest.mark.parametrize("target", ["simplex", "tape", "transformer"])
def test_run(target):
    done = json.loads(command("run", "countdown 4", "--target", target, "--input", "3", "--json"))
    assert done["output"] == {"left": 0}
    assert done["verified"] is True
    assert done["checked"]["states"] == 4
    assert done["passes"][0] == "unary"


def test_show(tmp_path):
    page = tmp_path / "page.html"
    command("show", "countdown 4", "--target", "tape", "--input", "3", "-o", str(page))
    assert "counter" in page.read_text() or "typed" in page.read_text()
    assert tg.watch(tg.compile(Counter("c", 4), "tape", cells=16), 3).recording.agreed


def test_save_check_verify(tmp_path):
    folder = tmp_path / "net"
    command("compile", "countdown 3", "--target", "tape", "--set", "cells=16", "-o", str(folder))
    checked = CliRunner().invoke(app, ["check", str(folder)])  # the checker knows no such kind
    assert (checked.exit_code, "source not checked" in checked.output) == (4, True)
    loaded = tg.load(folder)
    assert loaded.source == Counter("typed", 3)
    report = tg.verify(loaded)
    assert report.agreed
    assert report.exhaustive
    assert report.states == 1 + 2 + 3 + 4
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"most": 3', '"most": "x"'))
    with pytest.raises(BrokenNet):
        tg.load(folder)


def test_a_wrong_lowering_is_noticed():
    net = tg.compile(Counter("c", 4), "tape", cells=16)
    wrong = next(rewriting for rewriting in net.passes if rewriting.name == "unary")
    object.__setattr__(wrong, "decode", lambda state: 1 + len(state.tapes[0]))
    assert not tg.verify(net, [(2,)]).agreed


def test_campaign():
    found = json.loads(
        command("campaign", "counter", "-t", "tape", "--count", "6", "--set", "cells=16", "--json")
    )
    assert found["rows"][0]["agreed"] == 6
    assert found["mismatches"] == 0


def test_sources_need_a_record():
    class Stray:
        name = "stray"

    with pytest.raises(tg.TapegradError, match="a Stray is not a source"):
        tg.compile(Stray(), "tape")  # type: ignore[arg-type]
    assert np.array_equal(list(Counter("c", 3).run(2)), [2, 1, 0])
