"""Bad texts: each gets one paragraph that says what is wrong, where, and what to do."""

import pytest
import yaml

from tapegrad.errors import FormatError, TapegradError
from tapegrad.machines.formats import FORMATS, read, yaml_tree
from tapegrad.machines.formats.loaded import MAX_BYTES, MAX_LINE

YAML = "blank: 0\nstart state: a\ntable:\n  a:\n    0: {write: 1, R: b}\n  b:\n"
HEADERS = "init: a\naccept: z\n"

CASES = [
    # bbchallenge: cut off, undefined state, unknown entry, writing a symbol there is no column for
    ("1RB1LC_1RC1RB_1RD0", "row of state C is 4", "line 1, column 15"),
    ("1RB1L", "row of state A is 5", "line 1, column 1"),
    ("1RB1LD_1LA1RZ", "enters state D, which has no row", "line 1, column 4"),
    ("1RB1LB_1XA1RZ", "'1XA' is no entry", "line 1, column 8"),
    ("1RB2LB_1LA1RZ", "writes symbol 2", "line 1, column 4"),
    ("1RB1LB_1LA1RZ\n1RB1LB_1LA1RZ\n", "lists several machines", ""),
    ("1RZ" + "_1RZ" * 26, "27 rows", "line 1"),
    # turingmachine.io
    (YAML.replace("R: b", "R: c"), "state 'c' is not in the table", "line 5, column 22"),
    (YAML.replace("start state: a", "start state: x"), "state 'x' is not in the table", "line 2, column 14"),
    (YAML.replace("blank: 0\n", ""), "key 'blank' is missing", "line 1"),
    (YAML.replace("blank: 0", "blank: ab"), "one character, and 'ab' is 2", "line 1, column 8"),
    (YAML + "    [1, 0]: L\n    1: R\n", "a second rule for state 'b' and symbol '1'", "line 8, column 5"),
    (YAML + "  b:\n", "key 'b' occurs twice", "line 7, column 3"),
    (YAML.replace("{write: 1, R: b}", "{L, R: b}"), "one of L and R", "line 5, column 8"),
    (YAML.replace("{write: 1, R: b}", "{write: 1}"), "one of L and R", "line 5, column 8"),
    (YAML.replace("{write: 1, R: b}", "{write: 12, R: b}"), "'12' is 2", "line 5, column 16"),
    (YAML.replace("{write: 1, R: b}", "jump"), "'jump' is no instruction", "line 5, column 8"),
    (YAML.replace("{write: 1, R: b}", ""), "instruction is missing", "line 5"),
    (YAML.replace("{write: 1, R: b}", "{write: 1, R: b"), "not YAML", "line"),
    (YAML.replace("{write: 1, R: b}", "&x {R: b}"), "anchors and aliases", "line 5"),
    (YAML.replace("{write: 1, R: b}", "*x"), "anchors and aliases", "line 5, column 8"),
    (YAML.replace("{write: 1, R: b}", "!!python/object:os.system {R: b}"), "tags", "line 5"),
    (YAML.replace("{write: 1, R: b}", "[" * 100 + "]" * 100), "nested too deeply", "line 5"),
    (YAML + "---\n" + YAML, "second YAML document", "line 7"),
    (YAML.replace("table:", "table: 5\nother:"), "the table is a mapping", "line 3"),
    (
        "name: x\nsource code: |\n    blank: 0\n    start state: a\n    table: {a: {0: {R: b}}}",
        "'b'",
        "line 5, column 24",
    ),
    ("source code: 5\n", "mapping", "line 1"),
    # morphett: arity, direction, symbol, duplicate, no start
    ("0 1 1 r 0\n0 _ 1 halt", "5 columns, and this one has 4", "line 2, column 1"),
    ("0 1 1 r 0\n0 _ 1 r halt now", "5 columns, and this one has 6", "line 2"),
    ("0 1 1 r 0\n0 _ 1 x halt", "'x' is no direction", "line 2, column 7"),
    ("0 1 1 r 0\n0 __ 1 r halt", "'__' is 2", "line 2, column 3"),
    (
        "0 1 1 r 0\n  0 1 0 r 0",
        "a second rule for state '0' and symbol '1'; the first is in line 1",
        "line 2, column 3",
    ),
    ("1 1 1 r 1", "no rule for state 0", ""),
    # multi-tape: arity, truncation, moves, headers
    (HEADERS + "a,0,1\nz,0,1,>,>\na,0\nz,0,>", "2 parts where a state and 2 symbol", "line 5, column 1"),
    (HEADERS + "a,0,1\nz,0,1,>", "4 parts where a state, 2 symbol", "line 4, column 1"),
    (HEADERS + "a,0\nz,0,R", "'R' is no move", "line 4, column 5"),
    (HEADERS + "a,0\nz,0,>\na,1\n", "rule that begins in line 5 has no second line", "line 6"),
    (HEADERS + "a,0\nz,0,>\na,0\nz,0,<", "a second rule for 'a,0'; the first is in line 3", "line 5"),
    (HEADERS + "a,00\nz,0,>", "'00' is 2", "line 3, column 3"),
    (HEADERS + "z,0\nz,0,>\na,0\nz,0,>", "'z' accepts, so it halts", "line 3"),
    (HEADERS + HEADERS, "a second init: header", "line 3"),
    (HEADERS, "start state 'a' has no rules", "init:"),
    ("init: a\na,0\na,0,>", "header accept: is missing", ""),
    # golly: shape, range, forks, mixtures, truncation
    ("{{{1,'E',1},{1,'W',1}},{{1,'W',0},{1,'',1}}", "the end of the text where ',' or '}'", "line 1"),
    ("{{{1,'E',1},{1,'W',1}},\n{{1,'W',0}}}", "state 1 has 1 colours, and state 0 has 2", "line 2"),
    ("{{{1,'E',1},{1,'W',0}}}", "no state 1", "line 1, column 4"),
    ("{{{7,'E',0},{1,'W',0}}}", "no colour 7", "line 1, column 4"),
    ("{{{1,3,0},{1,1,0}}}", "'3' is no move", "line 1, column 6"),
    ("{{{1,',3',0},{1,1,0}}}", "is no move", "line 1, column 6"),
    ("{{{1,2,0},{1,'N',0}}}", "mixes absolute moves with turns", ""),
    ("{{{1,2},{1,2,0}}}", "found '}' where ',' belongs", "line 1, column 7"),
    ("{{{1,1,0},{1,1,0}}} x", "'x' where the end of the text", "line 1"),
    ("{{{{1,1,0}}}}", "where a number belongs", "line 1, column 4"),
    # nothing at all
    ("", "the text is empty", ""),
    ("  \n \n", "the text is empty", ""),
    ("Dear reader, this is a letter.", "none of the machine formats", ""),
    ("1RB\0", "binary", "byte 4"),
]


@pytest.mark.parametrize(("text", "what", "where"), CASES)
def test_bad_texts(text, what, where):
    with pytest.raises(FormatError) as caught:
        read(text)
    assert what in caught.value.what
    assert caught.value.where.startswith(where)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what", "where"), [case for case in CASES if case[0].startswith("blank: 0")]
)
def test_bad_yaml_without_the_parser_in_c(monkeypatch, text, what, where):
    monkeypatch.setattr(yaml_tree, "_LOADER", yaml.SafeLoader)
    test_bad_texts(text, what, where)


def test_bytes_that_are_no_utf8():
    with pytest.raises(FormatError, match="0xff is not UTF-8") as caught:
        read(b"0 1 1 r 0\n0 \xff 1 r 0")
    assert caught.value.where == "line 2, byte 3"


def test_unknown_format():
    with pytest.raises(FormatError, match="no machine format 'brainfuck'"):
        read("1RB", format="brainfuck")


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_huge_texts_are_refused_at_once(format):
    for filling in (b" ", b"{", b"0 1 1 r 0\n", b"[", b"- "):
        data = format.example.encode() + filling * (MAX_BYTES // len(filling) + 1)
        with pytest.raises(FormatError, match="bytes long"):
            format.read(data)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("filling", ["{", "[", "a: {", "[[", "- ", "'", '"', "a,", "_", "? ", "!", "%"])
def test_long_and_nested_texts_end_in_an_error(format, filling):
    for data in (filling * 50_000, format.example + "\n" + filling * 50_000):
        with pytest.raises(TapegradError):
            format.read(data.encode())


def test_long_lines_are_refused():
    with pytest.raises(FormatError, match="a line of"):
        read("0 1 1 r 0\n" + "0 " * MAX_LINE)


def test_wildcards_cannot_explode():
    symbols = [chr(code) for code in range(0x4E00, 0x4E00 + 1000)]
    rules = [f"{number} {symbol} * r *" for number, symbol in enumerate(symbols)]
    with pytest.raises(FormatError, match="more than 100,000 rules"):
        read("\n".join([*rules, "* * * r halt"]))


def test_list_keys_cannot_explode():
    symbols = ",".join(f'"{chr(code)}"' for code in range(0x4E00, 0x4E00 + 5000))
    rows = "\n".join(f"  s{number}: {{? [{symbols}] : L}}" for number in range(25))
    with pytest.raises(FormatError, match="more than 100,000 rules"):
        read(f"blank: 0\nstart state: s0\ntable:\n{rows}\n")
