"""How each format counts steps, in its two ways of halting: by a rule, and for want of one."""

import pytest

from tapegrad.machines.compiled import run
from tapegrad.machines.formats import read

TURMITE = "{{{1,'E',1},{1,'W',1}},{{1,'W',0},{1,'',1}}}"
YAML = "{blank: 0, start state: a, table: {a: {0: {R: b}}, b: {1: L}, h: }}"
MORPHETT = "0 _ 1 r b\nb _ 1 r %s\nc 1 1 r c"
MULTITAPE = "init: a\naccept: yes\na,_\n%s,1,>\nb,1\nb,1,-"

CASES = [
    # text, rules applied, what the format's own simulator prints
    ("1RB1LB_1LA1RZ", 6, 6),  # published: 6, the step into Z included
    ("1RB1LB_1LA---", 5, 6),  # the same machine with its halting entry undefined: still 6 there
    ("1RB1LB_1LA1RH", 6, 6),
    ("1RB---_------", 1, 2),  # a row of nothing but undefined entries
    (YAML, 1, 1),  # b reads 0 and has no entry
    (YAML.replace("R: b", "R: h"), 1, 1),
    (MORPHETT % "halt", 2, 2),
    (MORPHETT % "halt-reject", 2, 2),
    (MORPHETT % "c", 2, 3),  # c reads a blank and has no rule: the simulator steps into "halt"
    (MORPHETT % "error", 2, 3),  # and so it does from a state without rules
    (MULTITAPE % "b", 1, 1),
    (MULTITAPE % "yes", 1, 1),
    (TURMITE, 6, 6),  # published: 6
]


@pytest.mark.parametrize(("text", "rules", "printed"), CASES)
def test_counted_steps(text, rules, printed):
    loaded = read(text)
    result = run(loaded.machine, loaded.start())
    assert result.halted
    assert result.steps == rules
    assert loaded.counted_steps(result.steps, result.final) == printed


def test_the_undefined_entry_of_the_champion_counts():
    loaded = read("1RB1LC_1RC1RB_1RD0LE_1LA1LD_---0LA")
    result = run(loaded.machine, loaded.start())
    assert result.steps == 47_176_869
    assert loaded.counted_steps(result.steps, result.final) == 47_176_870


def test_a_run_that_was_cut_off_counts_no_more_than_it_took():
    loaded = read("1RB1LB_1LA---")
    result = run(loaded.machine, loaded.start(), 3)
    assert loaded.counted_steps(result.steps, result.final) == 3
