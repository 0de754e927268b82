"""Networks are called with the user's own values, and give them back; sources are what the user has: a
function, a name, a file, `file.py:function`, a saved net."""

import json
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._sources import find
from tapegrad.circuits import CircuitBuilder
from tapegrad.errors import FormatError, InputError, Refused
from tests.test_cli import tapegrad

FILE = """
from tapegrad import Array, Int, MachineBuilder, UInt, largest, where

def clamped(a: UInt(8), b: UInt(8)):
    return where(a + b < a, 255, a + b)

def described(values: Array(Int(8), 3)):
    return {"top": largest(values), "first": -values[0]}

def untyped(a):
    return a

number = 7
"""


def clamped(a: tg.UInt(8), b: tg.UInt(8)):  # type: ignore[valid-type]
    return tg.where(a + b < a, 255, a + b)


@pytest.fixture(scope="module")
def net() -> tg.Compiled:
    return tg.compile(clamped, "relu")


def test_functions_take_and_give_their_own_values(net: tg.Compiled) -> None:
    assert net(200, 100) == 255
    assert net(b=4, a=3) == net(3, b=4) == 7
    batch = net(np.array([1, 2, 250]), 10)
    assert isinstance(batch, np.ndarray)
    assert batch.tolist() == [11, 12, 255]
    assert net(np.array([[1] * 8 + [0] * 8])).tolist() == [255]  # a matrix of bits, as circuits take it


class Foreign:
    """An array as other packages have them, such as a tensor of PyTorch's."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return np.array([1, 2, 250])


@pytest.mark.parametrize("many", [[1, 2, 250], (1, 2, 250), Foreign(), np.array([1, 2, 250], np.uint8)])
def test_a_batch_is_any_row_of_numbers(net: tg.Compiled, many: Any) -> None:
    assert net(many, 10).tolist() == net(b=[10, 10, 10], a=many).tolist() == [11, 12, 255]
    assert tg.compile("adder8", "relu")(many, 10).tolist() == [11, 12, 260]


def test_results_are_as_the_function_has_them() -> None:
    def function(v: tg.Array(tg.Int(4), 2), c: tg.Bit):  # type: ignore[valid-type]
        return {"swapped": tg.array([v[1], v[0]]), "both": (-v[0], ~c)}

    own = tg.compile(function, "relu")
    assert own([3, -8], 0) == {"swapped": [-8, 3], "both": (-3, True)}
    many = own(np.array([[3, -8], [0, 1]]), np.array([0, 1]))
    assert many["swapped"].tolist() == [[-8, 3], [1, 0]]
    assert [part.tolist() for part in many["both"]] == [[-3, 0], [True, False]]


@pytest.mark.parametrize(
    ("given", "named", "says"),
    [
        ((300, 1), {}, "300 does not fit UInt\\(8\\)"),
        ((1,), {}, "no value for b"),
        ((1, 2, 3), {}, r"3 inputs were given instead of 2. clamped takes a: UInt\(8\), b: UInt\(8\)"),
        ((1,), {"c": 2}, "no input 'c'"),
        ((1, 2), {"a": 2}, "'a' was given twice"),
        ((1.5, 2), {}, "no integer"),
        ((np.array([1, 2]), np.array([1, 2, 3])), {}, "batches of 2 and 3"),
        ((1, 300), {}, r"300 does not fit .*\(argument 'b'\)"),
        ((np.array([[1, 2], [3, 4]]), 1), {}, r"shape \(2, 2\) has too many axes \(input 'a'\)"),
        (([[1, 2], [3]], 1), {}, r"\(input 'a'\)"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    net: tg.Compiled, given: tuple[Any, ...], named: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        net(*given, **named)


def test_circuits_take_numbers_for_their_words() -> None:
    adder = tg.compile("adder4", "relu")
    assert adder(3, 5) == adder(b=5, a=3) == adder([1, 1, 0, 0, 1, 0, 1, 0]) == 8
    assert adder(np.arange(4), 1).tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match="16 does not fit 4 bits"):
        adder(16, 1)
    with pytest.raises(InputError, match="not a whole number"):
        adder("3", 1)
    divider = tg.compile(tg.trace(lambda a: {"q": a // 3, "r": a % 3}, tg.UInt(4)).circuit, "relu")
    assert divider(11) == {"q": 3, "r": 2}


FORMS = {
    "relu": {},
    "relu, paper": {"form": "paper"},
    "transformer": {},
    "transformer, softmax": {"attention": "softmax"},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("types", "given"),
    [
        ((tg.UInt(8), tg.UInt(8)), ([1, 2, 250, 0], [255, 3, 6, 0])),
        ((tg.UInt(16), tg.Int(5)), ([1, 2, 65_535, 7], [-16, 15, -1, 0])),
        ((tg.Bit, tg.UInt(70)), ([1, 0, 1, 1], [1 << 69, 3, 0, (1 << 70) - 1])),
    ],
)
def test_a_batch_is_its_rows_one_by_one(form: str, types: Any, given: Any) -> None:
    """In one pass where the net allows it; compared with Python's numbers, and with calls of a row each."""
    target = form.partition(",")[0]

    def swapped(a: Any, b: Any) -> Any:
        return b, a

    called = tg.compile(tg.trace(swapped, *types), target, **FORMS[form])
    there, back = called(*given)
    assert (back.tolist(), there.tolist()) == given
    rows = [called(*row) for row in zip(*given, strict=True)]
    assert [(b, a) for a, b in rows] == list(zip(*given, strict=True))
    empty = called(*[np.array([], int)] * 2)
    assert [own.dtype for own in empty] == [there.dtype, back.dtype]
    assert [own.tolist() for own in empty] == [[], []]


@pytest.mark.parametrize(
    "names",
    [
        ("a[0]", "b[0]", "a[1]", "b[1]", "a[2]", "b[2]", "b[3]"),
        ("a[0]", "b[3]", "a[1]", "b[0]", "c", "a[2]"),
    ],
)
def test_bits_of_a_word_may_stand_anywhere(names: tuple[str, ...]) -> None:
    """Columns that are not one after the other, and words that lack a bit."""
    build = CircuitBuilder()
    wires = {name: build.input(name) for name in names}
    for name in reversed(names):
        build.output(name, wires[name])
    called = tg.compile(build.circuit("shuffled"), "relu")
    given = {"a": [5, 6], "b": [9, 8]} | ({"c": [1, 0]} if "c" in names else {})
    assert {name: own.tolist() for name, own in called(**given).items()} == given


def test_a_large_batch_of_a_transformer_is_taken_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    called = tg.compile(clamped, "transformer")
    monkeypatch.setattr("tapegrad._compile.ROWS_AT_ONCE", 7)
    a, b = np.random.default_rng(0).integers(0, 256, (2, 40))
    assert called(a, b).tolist() == np.minimum(a + b, 255).tolist()


def test_machines_give_their_verdict_or_their_tape() -> None:
    palindrome = tg.compile("palindrome", "tape", cells=20)
    assert palindrome("abba") is True
    assert palindrome("abb") is False
    assert tg.compile("increment", "tape", cells=20)("1011") == "1100"
    with pytest.raises(InputError, match="no names"):
        palindrome(word="abba")


def test_a_machine_that_goes_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_STEPS_OF_A_CALL", "STEPS_WITHOUT_AN_END"):
        monkeypatch.setattr(f"tapegrad._compile.{name}", 20)
    with pytest.raises(Refused, match="does not end within 20 steps"):
        tg.compile("1RA1LA_1RA1LA", "tape", cells=50)("")


def test_programs_give_what_they_print() -> None:
    hello = tg.compile("subleq-hello", "emulator", steps=200, output=16)
    assert hello() == "Hi\n"
    with pytest.raises(Refused, match=r"of 3 bytes .* 2 were kept.* output=4"):
        tg.compile("subleq-hello", "emulator", steps=200, output=2)()


def test_watch_takes_what_a_call_takes() -> None:
    for source in ("adder4", clamped):
        shown = str(tg.watch(tg.compile(source, "relu"), 3, 5).recording.to_json())
        assert "'8'" in shown
    with pytest.raises(InputError, match="8 inputs, but 1 bits"):
        tg.watch(tg.compile("adder4", "relu"), 3)


@pytest.mark.parametrize("given", [["a", "b"], 5, [104, 105]])
def test_the_input_of_a_program_is_a_text(given: Any) -> None:
    """`bytes(5)` is five zeros."""
    echo = tg.compile("subleq-echo", "transformer")
    assert echo(b"hi") == echo("hi") == "hi"
    with pytest.raises(InputError, match="is a text or bytes, and this is the"):
        echo(given)


def test_what_is_no_source() -> None:
    with pytest.raises(InputError, match="a Python function with types"):
        tg.compile(3, "relu")  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="Did you mean 'increment'"):
        tg.compile("incremnt", "tape")
    with pytest.raises(tg.TapegradError, match="no type"):
        tg.compile(lambda a: a, "relu")


api: Any = tg
"""Without its types: nobody who mixes calls up looks at them."""
COMPILE_FIRST = r'Compile it first, as in tg\.{0}\(tg\.compile\(clamped, "relu"\)'


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: api.verify(f), COMPILE_FIRST.format("verify")),
        (lambda f: api.watch(f), COMPILE_FIRST.format("watch")),
        (lambda f: api.save(f, "own.net"), COMPILE_FIRST.format("save")),
        (lambda f: api.compile("relu", f), r'source comes first.* Write tg\.compile\(clamped, "relu"\)'),
        (lambda f: api.estimate("relu", "adder2"), r'Write tg\.estimate\("adder2", "relu"\)'),
        (lambda f: api.compile(f), r'there is no target.* as in tg\.compile\(clamped, "relu"\)'),
        (lambda f: api.compile(f, f), r"the function clamped is no target"),
        (lambda f: api.estimate("adder2"), r'there is no target.* as in tg\.estimate\("adder2", "relu"\)'),
        (lambda f: api.read({"a": 1}), r"this is the dict {'a': 1}. Give a string, as in tg\.read\("),
        (lambda f: api.read(f), r"this is the function clamped.*tg\.compile\("),
        (lambda f: api.load(f), r'this is the function clamped. Write tg\.save\(net, "my.net"\)'),
        (lambda f: api.check(3), r"this is the int 3"),
        (lambda f: api.trace(3), r"this is the int 3"),
        (
            lambda f: api.verify(api.compile(f, "relu"), [3]),
            r"this is the int 3.*tg\.verify\(net, \[\(3, 5\)",
        ),
        (lambda f: api.verify(api.compile(f, "relu"), 3), r"this is the int 3"),
    ],
)
def test_calls_that_are_mixed_up_say_what_to_write(call: Any, says: str) -> None:
    with pytest.raises(tg.TapegradError, match=says):
        call(clamped)


def test_one_target_is_listed_by_its_name() -> None:
    assert said("targets", "tape").startswith("tape  gradient descent")
    assert "relu" not in said("targets", "tape")
    assert [own["name"] for own in json.loads(said("targets", "relu", "--json"))] == ["relu"]
    assert "Did you mean 'tape'" in said("targets", "taep", code=2)


def test_extras_are_quoted_for_the_shell() -> None:
    """zsh takes brackets for a pattern and finds no file that fits."""
    root = Path(tg.__file__).parents[1]
    texts = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.*y*")]
    texts += [path for package in root.glob("tapegrad*") for path in package.rglob("*.py")]
    assert len(texts) > 500
    unquoted = re.compile(r"pip install [\w.-]*\[")
    assert [path.name for path in texts if unquoted.search(path.read_text())] == []


# Python files.


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_functions_of_a_python_file(folder: Path) -> None:
    assert tg.compile("mine.py:clamped", "relu")(250, 10) == 255
    assert find("mine.py:described").origin == "mine.py"
    assert tg.compile(str(folder / "mine.py:described"), "relu")([1, 5, -2]) == {"top": 5, "first": -1}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("mine.py", "mine.py:clamped. It defines clamped, described, untyped"),
        ("mine.py:", "name the function"),
        ("mine.py:nothing", "defines no 'nothing'"),
        ("mine.py:number", "an int is not a source"),
        ("mine.py:untyped", "'a' has no type"),
        ("none.py:f", "no file 'none.py'"),
        ("broken.py:f", "SyntaxError.*line 2"),
        ("raising.py:f", "ZeroDivisionError.*line 3"),
        ("leaving.py:f", "SystemExit"),
    ],
)
def test_files_that_do_not_do(folder: Path, source: str, says: str) -> None:
    (folder / "broken.py").write_text("x = 1\ny = = 2\n")
    (folder / "raising.py").write_text("def g():\n    return 0\nx = 1 / g()\n")
    (folder / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(tg.TapegradError, match=says):
        tg.compile(source, "relu")


def said(*words: str, code: int = 0) -> str:
    """What a command prints, if it ends with this exit code."""
    done = tapegrad(*words)
    assert done.returncode == code, done
    return done.stderr if code else done.stdout


def test_run_takes_functions_and_saved_nets(folder: Path) -> None:
    for arguments in (
        ["mine.py:clamped", "200", "100", "--target", "relu"],
        ["mine.py:clamped", "--target", "relu", "--input", "200", "100"],
        ["mine.py:clamped", "--target", "relu", "--input", "200 100"],
        ["mine.py:clamped", "--target", "relu", "--input", "b=100", "--input", "200"],
    ):
        assert json.loads(said("run", *arguments, "--json"))["output"] == 255
    assert said("compile", "mine.py:clamped", "--target", "relu", "-o", "saved.net")
    found = json.loads(said("run", "saved.net", "7", "8", "--json"))
    assert found["output"] == 15
    assert found["verified"] is True
    assert "Leave out --target" in said("run", "saved.net", "7", "8", "-t", "relu", code=2)
    assert "Choose one" in said("run", "increment", code=2)
    assert "no list" in said("run", "mine.py:described", "[1,", "-t", "relu", code=2)
    assert "not a whole number" in said("run", "mine.py:described", "1,x,3", "-t", "relu", code=2)


@pytest.mark.parametrize("target", ["tape", "simplex", "relu", "emulator", "transformer"])
def test_a_net_of_open_size_takes_inputs_that_do_not_fit(target: str) -> None:
    net = tg.compile("increment", target)
    assert net("1011") == "1100"
    assert net("1" * 12) == "1" + "0" * 12


def test_a_size_that_was_given_stays() -> None:
    net = tg.compile("increment", "tape", cells=8)
    with pytest.raises(tg.TapegradError, match="cell"):
        net("1" * 12)


def test_a_net_that_ends_before_its_source_gives_no_unfinished_answer(tmp_path: Path) -> None:
    tg.save(tg.compile("increment", "relu", steps=12, cells=17), tmp_path / "increment.net")
    net = tg.load(tmp_path / "increment.net")
    assert net("1011") == "1100"
    with pytest.raises(Refused, match="does not end within"):
        net("1" * 8)
    assert not net.run("1" * 8).halted
    done = tapegrad("run", str(tmp_path / "increment.net"), "--input", "1" * 8)
    assert done.returncode == 3
    assert "step limit" in done.stdout


def test_run_takes_what_a_call_takes_and_says_its_value() -> None:
    def add(a: tg.UInt(4), b: tg.UInt(4)):  # type: ignore[valid-type]
        return a + b

    net = tg.compile(add, "relu")
    assert net.run(3, b=4).value == 7
    assert tg.compile("palindrome", "tape").run("abba", steps=3).value is None


def test_rasp_programs_and_clocks_are_called() -> None:
    reverse = tg.compile("rasp-reverse", "decoder")
    assert reverse("a b c") == reverse("a", "b", "c") == reverse(["a", "b", "c"]) == ("c", "b", "a")
    counter = tg.compile("counter8", "transformer")
    assert counter(enable=[1, 1, 0, 1], clear=0)["count"] == 2


def test_what_cannot_be_called_says_what_to_do() -> None:
    with pytest.raises(tg.TapegradError, match=r"net\.fit"):
        tg.compile("learn-dictator8", "emulator")(1)
    with pytest.raises(tg.TapegradError, match="'1011'"):
        tg.compile("increment", "tape")(1011)
    with pytest.raises(tg.TapegradError, match="Did you mean 'relu'"):
        tg.compile("adder2", "rleu")


TURMITE = "{{{1,'E',1},{1,'',1}},{{1,'W',0},{1,'S',1}}}"
ANT = "{{{1,2,0},{0,8,0}}}"


@pytest.mark.parametrize("target", ["relu", "emulator", "rcnn"])
def test_a_machine_on_a_grid_needs_no_options(target: str) -> None:
    done = tapegrad("run", TURMITE, "-t", target, "--json")
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert said["verified"]
    assert said["chosen"] == ({} if target == "rcnn" else {"steps": 3, "cells": 3})
    assert tapegrad("estimate", TURMITE, "-t", target).returncode == 0


def test_a_walk_that_never_ends_has_room_on_a_grid() -> None:
    """Langton's ant, and a machine that walks along a line; by plain steps, this far."""
    machine = find(ANT).source
    *states, last = islice(machine.run(machine.start()), 1_001)
    assert max(abs(place) for state in states for place in state.head) <= 16
    found = tapegrad("run", ANT, "-t", "rcnn", "--steps", "1000", "--json")
    assert found.returncode == 3
    said = json.loads(found.stdout)
    assert said["chosen"] == {}
    assert tuple(said["output"]["head"]) == last.head
    assert tapegrad("run", ANT, "-t", "relu", "--steps", "5").returncode == 3
    line = json.loads(tapegrad("run", "1RB0RA_1RA1RB", "-t", "rcnn", "--steps", "40", "--json").stdout)
    assert line["chosen"] == {"margin": 40}
    assert line["verified"]


def test_a_source_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "flip.txt").write_text("0 0 1 r 0\n0 1 0 r 0\n0 _ _ * halt\n")
    (tmp_path / "named.blif").write_text(".model own\n.inputs a\n.outputs b\n.names a b\n0 1\n.end\n")
    assert find(str(tmp_path / "flip.txt")).source.name == "flip"
    assert find(str(tmp_path / "named.blif")).source.name == "own"


def test_classifiers_without_scikit_learn_say_which_extra_brings_it() -> None:
    without = "import sys; sys.modules['sklearn'] = None; import tapegrad.sklearn"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, timeout=100)
    assert "pip install 'tapegrad[sklearn]'" in done.stderr.splitlines()[-1]
