"""Small sources, in pairs of nearly the same shape."""

from tapegrad.machines.model import Rule, TuringMachine

BB2, OTHER = "1RB1LB_1LA1RZ", "1RB1LB_1LA0RZ"
COUNTER = """\
.model counter
.inputs up
.outputs odd full
.latch n0 odd 1
.latch n1 high 2
.names up odd n0
10 1
01 1
.names up odd high n1
0-1 1
-01 1
110 1
.names odd high up full
111 1
.end
"""
SHIFTER = COUNTER.replace("0-1 1\n-01 1\n110 1\n", "-1- 1\n").replace("odd 1", "odd 0")
"""Circuits with two latches, one of which is left open: they count, or shift."""


def two_tapes(write: str) -> TuringMachine:
    """Writes on one tape while the head of the other stays: needs one tape for some targets, no stay for
    others."""
    rules = {
        ("a", ("0", "0")): Rule((write, "1"), (1, 0), "b"),
        ("b", ("0", "1")): Rule(("0", "0"), (0, -1), "a"),
    }
    return TuringMachine(rules, "a", blank="0", alphabet=("0", "1"), accept=frozenset({"c"}))


COUNTING, ECHO = "subleq 8 9\n7 6 3  6 6 -1  5 1 2", "subleq 8 8\n-1 6 3  6 -1 0  0 0"
"""Programs: one counts down, one copies its input. Instructions have three words each."""
PROCESSOR, OTHER_PROCESSOR = (
    f".equ __ram, {ram}\nli a0, 6\nmul a0, a0, a0\nli a7, 93\necall" for ram in (32, 48)
)

SORT = """rasp sort
vocabulary a b
length 3
before = select(tokens, tokens, <) or select(tokens, tokens, ==) and select(indices, indices, <)
output = aggregate(select(width(before), indices, ==), tokens)
"""
MEANS = """rasp means
vocabulary ( )
length 3
causal
balance = mean(select(indices, indices, <=), (tokens == "(") - (tokens == ")"), 0)
negative = balance < 0
output = map(negative, balance == 0, {(false, false): 1, (false, true): 2, (true, false): 3, (true, true): 4})
"""
COUNT = """rasp count
vocabulary a b
length 3
output = width(select(tokens, tokens, ==)) + indices
"""
