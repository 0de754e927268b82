"""What each format means: small texts of our own, run by the plain interpreter."""

import pytest
import yaml

from tapegrad.machines import GridMachine, Rule, TuringMachine
from tapegrad.machines.formats import FORMATS, Loaded, detect, read, yaml_tree


def tape_machine(loaded: Loaded) -> TuringMachine:
    assert isinstance(loaded.machine, TuringMachine)
    return loaded.machine


def last(loaded: Loaded, *words: str):
    machine = tape_machine(loaded)
    *_, final = machine.run(loaded.start(*words))
    return final


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_examples_are_detected_as_their_own_format_alone(format):
    example = format.example.encode()
    assert [other.name for other in FORMATS if other.detect(example)] == [format.name]
    assert read(example).format == format.name
    assert read(example) == read(format.example, format=format.name)


def test_bbchallenge():
    machine = tape_machine(read("1RB---_0LA1RZ Halt 3 1"))
    assert machine.rules == {
        ("A", ("0",)): Rule(("1",), (1,), "B"),
        ("B", ("0",)): Rule(("0",), (-1,), "A"),
        ("B", ("1",)): Rule(("1",), (1,), "Z"),
    }
    assert (machine.blank, machine.start_state, machine.states) == ("0", "A", ("A", "B", "Z"))


YAML = """
input: 0110
blank: ' '
start state: look
synonyms:
  give up: {R: no}
table:
  look:
    [0, '1']: R
    x: give up
    ' ': {write: y, L: back}
  back: {[0,1]: L, ' ': {R: yes}}
  yes:
  no: ~
accept: [yes]
"""


def test_turingmachine_io():
    loaded = read(YAML)
    machine = tape_machine(loaded)
    assert loaded.input == ("0110",)  # not the octal number 72
    assert machine.rules["look", ("1",)] == Rule(("1",), (1,), "look")
    assert machine.rules["look", ("x",)] == Rule(("x",), (1,), "no")
    assert machine.accept == {"yes"}
    final = last(loaded)
    assert (final.state, final.heads, final.tapes[0][4]) == ("yes", (0,), "y")
    assert last(loaded, "01x1").state == "no"


def test_turingmachine_io_wrapped_in_source_code():
    wrapped = "name: wrapped one\nsource code: |\n" + "\n".join("    " + line for line in YAML.split("\n"))
    assert tape_machine(read(wrapped)).rules == tape_machine(read(YAML)).rules
    assert tape_machine(read(wrapped)).name == "wrapped one"


def test_turingmachine_io_without_the_parser_in_c(monkeypatch):
    expected = read(YAML)
    monkeypatch.setattr(yaml_tree, "_LOADER", yaml.SafeLoader)
    assert read(YAML) == expected


def test_halting_states_called_accept_and_reject_are_what_they_say():
    loaded = read("{blank: 0, start state: a, table: {a: {0: {R: accept}}, accept: , reject: }}")
    assert (tape_machine(loaded).accept, tape_machine(loaded).reject) == ({"accept"}, {"reject"})


def test_morphett_wildcards_go_from_the_special_to_the_general():
    text = """
    0 a 1 r 0    ; state and symbol
    0 * 2 r 0    ; state
    * b 3 r *    ; symbol: but state 0 has its own wildcard
    * * 4 r halt
    0 c * r s ! ; a breakpoint, and no change of symbol
    """
    rules = tape_machine(read(text)).rules
    assert rules["0", ("a",)] == Rule(("1",), (1,), "0")
    assert rules["0", ("b",)] == Rule(("2",), (1,), "0")
    assert rules["0", ("c",)] == Rule(("c",), (1,), "s")
    assert rules["s", ("b",)] == Rule(("3",), (1,), "s")
    assert rules["s", ("a",)] == Rule(("4",), (1,), "halt")
    assert ("halt", ("a",)) not in rules


def test_morphett_input_with_a_mark_for_the_head():
    loaded = read("0 1 x r 0\n0 _ _ * halt-accept ; $INITIAL_TAPE: 11 *11")
    assert (loaded.input, loaded.head) == (("11_11",), 3)
    final = last(loaded)
    assert (final.state, final.tapes[0]) == ("halt-accept", {0: "1", 1: "1", 3: "x", 4: "x"})
    assert tape_machine(loaded).accept == {"halt-accept"}


def test_morphett_wildcards_match_symbols_that_only_inputs_hold():
    text = "0 _ _ * halt\n0 * z r 0"
    assert last(read(text, symbols="äö"), "äöä").tapes[0] == {0: "z", 1: "z", 2: "z"}


def test_a_space_in_an_input_is_a_blank():
    loaded = read("0 1 1 r 0\n0 _ x r halt")
    assert last(loaded, "1 1").tapes[0] == {0: "1", 1: "x", 2: "1"}


MULTITAPE = """
// copies the first tape to the second
name: copier
init: copy
accept: done, never

copy,0,_        // a pair of lines is a rule
copy,0,0,>,>
copy, 1, _
copy, 1, 1, >, >
copy,_,_
done,_,_,<,-
copy,2,_
lost,2,_,-,-
"""


def test_multitape():
    loaded = read(MULTITAPE)
    machine = tape_machine(loaded)
    assert (machine.tapes, machine.name, machine.blank) == (2, "copier", "_")
    assert (machine.accept, machine.reject) == ({"done", "never"}, {"lost"})
    final = last(loaded, "0110")
    assert (final.state, final.heads) == ("done", (3, 4))
    assert final.tapes[0] == final.tapes[1] == {0: "0", 1: "1", 2: "1", 3: "0"}
    assert last(loaded, "02").state == "lost"


def test_golly_absolute_moves_on_the_grid():
    machine = read("{{{1,'N',1}, {0,'S',0}},\n {{1,\"W\",0}, {1,'',1}}}").machine
    assert isinstance(machine, GridMachine)
    assert (machine.rules["0", "0"].move, machine.rules["1", "0"].move) == ("up", "left")
    assert machine.rules["1", "1"].state == "halt"


def test_golly_turns_are_folded_into_the_state():
    """Langton's ant: right on white, left on black, flipping the cell; 4 steps make a square."""
    machine = read("{{{1,2,0},{0,8,0}}}").machine
    assert isinstance(machine, GridMachine)
    assert set(machine.states) == {"0N", "0E", "0S", "0W"}
    heads = []
    for configuration, _ in zip(machine.run(machine.start()), range(11_000), strict=False):
        heads.append(configuration.head)
    assert heads[:5] == [(0, 0), (0, 1), (1, 1), (1, 0), (0, 0)]
    # The ant's well-known highway: every 104 steps it has moved by two cells each way.
    (row, column), (later_row, later_column) = heads[-105], heads[-1]
    assert (abs(later_row - row), abs(later_column - column)) == (2, 2)


def test_golly_turns_on_a_line_make_a_tape_machine():
    machine = tape_machine(read("{{{1,4,1},{1,0,0}},{{1,1,0},{0,1,1}}}"))
    assert machine.start_state == "0E"
    assert set(machine.states) <= {"0E", "0W", "1E", "1W", "halt"}
    assert machine.rules["0E", ("0",)] == Rule(("1",), (-1,), "1W")


def test_detection_goes_by_content():
    assert detect("no machine at all") is None
    assert detect(b"\xff\xfe\x00") is None
    assert (found := detect(MULTITAPE)) is not None
    assert found.name == "multi-tape"
