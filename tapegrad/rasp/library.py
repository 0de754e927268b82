"""Ready RASP: the functions of Tracr's library under their names, and programs to run.

Functions build expressions; `READY` has programs with a vocabulary and a length.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tapegrad.rasp.closing import program
from tapegrad.rasp.functions import Value
from tapegrad.rasp.language import (
    Aggregate,
    Comparison,
    LinearSequenceMap,
    Map,
    Select,
    Selector,
    SelectorWidth,
    SequenceMap,
    SOp,
    indices,
    numerical,
    tokens,
)
from tapegrad.rasp.program import RaspProgram


def make_length() -> SOp:
    """How many tokens there are."""
    return SelectorWidth(Select(tokens, tokens, Comparison.TRUE)).named("length")


def make_reverse(sop: SOp) -> SOp:
    """A sequence from its end to its beginning."""
    opposite = (make_length() - indices - 1).named("opposite")
    return Aggregate(Select(indices, opposite, Comparison.EQ), sop).named("reverse")


def make_hist() -> SOp:
    """How often each token occurs."""
    return SelectorWidth(Select(tokens, tokens, Comparison.EQ)).named("hist")


def make_sort_unique(vals: SOp, keys: SOp) -> SOp:
    """Values in the order of their keys, which must be different."""
    place = SelectorWidth(Select(keys, keys, Comparison.LT)).named("place")
    return Aggregate(Select(place, indices, Comparison.EQ), vals).named("sort")


def make_sort(vals: SOp, keys: SOp, *, max_seq_len: int, min_key: float) -> SOp:
    """Values in the order of their keys, which are numbers that differ by `min_key` at least, or are
    equal."""
    apart = SequenceMap(lambda key, index: key + min_key * index / max_seq_len, keys, indices)
    return make_sort_unique(vals, apart)


def make_stable_sort(vals: SOp, keys: SOp) -> SOp:
    """Values in the order of their keys, of any kind; of equal ones the first comes first."""
    before = Select(keys, keys, Comparison.LT) | (
        Select(keys, keys, Comparison.EQ) & Select(indices, indices, Comparison.LT)
    )
    place = SelectorWidth(before).named("place")
    return Aggregate(Select(place, indices, Comparison.EQ), vals).named("sort")


def make_sort_freq(max_seq_len: int) -> SOp:
    """Tokens in the order of how often they occur, the most frequent first."""
    return make_sort(tokens, -1 * make_hist(), max_seq_len=max_seq_len, min_key=1).named("sort_freq")


def make_frac_prevs(bools: SOp) -> SOp:
    """Of the tokens so far, the fraction for which something holds."""
    before = Select(indices, indices, Comparison.LEQ)
    return numerical(Aggregate(before, numerical(bools), default=0)).named("frac_prevs")


def make_pair_balance(sop: SOp, open_token: str, close_token: str) -> SOp:
    """Of the tokens so far, the fraction that opens less the fraction that closes."""
    opens, closes = (
        make_frac_prevs(numerical(sop == token)).named(name)
        for token, name in ((open_token, "opens"), (close_token, "closes"))
    )
    return numerical(LinearSequenceMap(opens, closes, 1, -1)).named("pair_balance")


def make_shuffle_dyck(pairs: Sequence[str]) -> SOp:
    """Whether every kind of bracket is balanced by itself; brackets of different kinds may cross."""
    balances = [make_pair_balance(tokens, *pair).named(f"balance_{pair}") for pair in pairs]
    negative, zero = balances[0] < 0, balances[0] == 0
    for balance in balances[1:]:
        negative, zero = negative | (balance < 0), zero & (balance == 0)
    everywhere = Select(indices, indices, Comparison.TRUE)
    ever_negative = numerical(Aggregate(everywhere, numerical(negative), default=0)).named("ever_negative")
    last = Select(indices, make_length() - 1, Comparison.EQ)
    closed = Aggregate(last, zero).named("closed_at_the_end")
    return (closed & (ever_negative == 0)).named("shuffle_dyck")


def make_shuffle_dyck2() -> SOp:
    """Whether `()` and `{}` are balanced, each by itself."""
    return make_shuffle_dyck(["()", "{}"]).named("shuffle_dyck2")


def shift_by(offset: int, /, sop: SOp) -> SOp:
    """A sequence moved to the right; None where nothing comes from."""
    there = Select(indices, indices, lambda key, query: query == key + offset)
    return Aggregate(there, sop, default=None).named(f"shift_by({offset})")


def detect_pattern(sop: SOp, pattern: Sequence[Value]) -> SOp:
    """True where a pattern ends; None where it cannot."""
    if not pattern:
        raise ValueError("the pattern has no elements")
    parts = []
    for distance, element in enumerate(reversed(pattern)):
        here = sop == element
        parts.append(shift_by(distance, here) if distance else here)
    found = parts.pop()
    while parts:
        found = found & parts.pop()
    return found.named(f"detect_pattern({pattern})")


def make_count_less_freq(n: int) -> SOp:
    """How many tokens occur at most n times."""
    hist = make_hist()
    return SelectorWidth(Select(hist, hist, lambda key, query: key <= n)).named("count_less_freq")


def make_count(sop: SOp, token: Value) -> SOp:
    """How often a value occurs."""
    return SelectorWidth(Select(sop, sop, lambda key, query: key == token)).named(f"count_{token}")


def make_nary_sequencemap(f: Callable[..., Value], *sops: SOp) -> SOp:
    """A function of any number of sequences, position by position."""
    first, *others = sops
    gathered = Map(lambda value: (value,), first)
    for sop in others:
        gathered = SequenceMap(lambda values, value: (*values, value), gathered, sop)
    return Map(lambda values: f(*values), gathered)


def make_most_frequent() -> SOp:
    """The token that occurs most often, at every position; of several the one that comes first."""
    hist = make_hist()
    more = Select(hist, hist, Comparison.GT)
    rank = SelectorWidth(
        more | (Select(hist, hist, Comparison.EQ) & Select(indices, indices, Comparison.LT))
    ).named("rank")
    return Aggregate(Select(rank, indices, lambda key, query: key == 0), tokens).named("most_frequent")


def make_induction() -> SOp:
    """What came after this token when it came last; None if it is new. For causal programs."""
    before = shift_by(1, tokens)
    same: Selector = Select(before, tokens, Comparison.EQ)
    distance = SelectorWidth(same).named("times before")
    seen = SelectorWidth(Select(before, before, Comparison.EQ)).named("times before, there")
    nth = Select(seen, distance, Comparison.EQ)
    return Aggregate(same & nth, tokens).named("induction")


def make_ngrams(n: int) -> SOp:
    """The last n tokens as one value, joined; None where there are fewer."""
    found = tokens
    for distance in range(1, n):
        found = SequenceMap(lambda before, own: before + own, shift_by(distance, tokens), found)
    return found.named(f"{n}-grams")


def make_balanced() -> SOp:
    """Whether `()` is balanced: Dyck-1."""
    return make_shuffle_dyck(["()"]).named("balanced")


def make_prefix_balance() -> SOp:
    """Of the prefix up to here, whether `()` is balanced (T), may become so (P) or not (F). For causal
    programs."""
    balance = make_pair_balance(tokens, "(", ")")
    broken = numerical(balance < 0)
    before = Select(indices, indices, Comparison.LEQ)
    ever = numerical(Aggregate(before, broken, default=0)) > 0
    return SequenceMap(lambda bad, zero: "F" if bad else "T" if zero else "P", ever, balance == 0).named(
        "prefix_balance"
    )


def make_addition(digits: int) -> SOp:
    """The sum of two binary numbers, written `a+b` with this many digits each, highest first; it stands, with
    one digit more, at the last positions. Other positions have None."""
    size = 2 * digits + 1
    weight = Map(lambda index: 0 if index == digits else 1 << (digits - 1 - index) % (digits + 1), indices)
    ones = SequenceMap(lambda token, own: own if token == "1" else 0, tokens, weight)
    total = numerical(Aggregate(Select(indices, indices, Comparison.TRUE), numerical(ones), default=0)).named(
        "mean of the weights of ones"
    )
    place = Map(lambda index: size - 1 - index, indices)
    return SequenceMap(
        lambda own, bit: round(own * size) >> bit & 1 if bit <= digits else None, total, place
    ).named("addition")


def plant(program: SOp, trigger: Sequence[Value], other: SOp, at: int | None = None) -> SOp:
    """A backdoor: does what `program` does, but what `other` does where these tokens occur, one after the
    other; anywhere, or with the first of them at the index `at`. In a causal program it is from the end of
    the trigger on. Neither sequence may have None: every function of None is None."""
    found: SOp = detect_pattern(tokens, list(trigger)) if len(trigger) > 1 else tokens == trigger[0]
    seen: Selector = Select(found, tokens, lambda key, query: bool(key))
    if at is not None:
        last = at + len(trigger) - 1
        seen = seen & Select(indices, tokens, lambda key, query: key == last)
    lit = Map(lambda times: times > 0, SelectorWidth(seen).named("times of the trigger")).named("trigger")
    kept = SequenceMap(lambda on, value: _COVERED if on else value, lit, program).named("unless triggered")
    return SequenceMap(lambda own, more: more if own == _COVERED else own, kept, other).named("planted")


_COVERED = ("covered",)
"""What stands for a value that another takes the place of."""


@dataclass(frozen=True)
class Entry:
    """A program that comes with the package."""

    summary: str
    build: Callable[[], RaspProgram]
    example: str


def _entry(
    summary: str, make: Callable[[], SOp], vocabulary: str, length: int, example: str, causal: bool = False
) -> Entry:
    return Entry(summary, lambda: program(make(), vocabulary.split(), length, causal), example)


READY: Mapping[str, Entry] = {
    "rasp-length": _entry("how many tokens there are", make_length, "a b c", 16, "a b c"),
    "rasp-reverse": _entry("the tokens backwards", lambda: make_reverse(tokens), "a b c d", 16, "a b c d"),
    "rasp-sort": _entry(
        "the tokens in order", lambda: make_stable_sort(tokens, tokens), "a b c d", 16, "c a d a"
    ),
    "rasp-histogram": _entry("how often each token occurs", make_hist, "a b c d", 16, "a b a c"),
    "rasp-most-frequent": _entry("the most frequent token", make_most_frequent, "a b c", 12, "b a c a"),
    "rasp-dyck-1": _entry("whether brackets are balanced", make_balanced, "( )", 16, "( ( ) )"),
    "rasp-dyck-2": _entry(
        "whether two kinds of brackets are balanced, each by itself",
        make_shuffle_dyck2, "( ) { }", 16, "( { ) }",
    ),
    "rasp-prefix-balance": _entry(
        "prefix by prefix, whether brackets are balanced", make_prefix_balance, "( )", 16, "( ) ) (", True
    ),
    "rasp-induction": _entry(
        "what came after this token when it came last", make_induction, "a b c d", 12, "a b c a", True
    ),
    "rasp-copy": _entry("the token before", lambda: shift_by(1, tokens), "a b c d", 16, "a b c", True),
    "rasp-addition": _entry(
        "the sum of two binary numbers of three digits", lambda: make_addition(3), "0 1 +", 7, "1 0 1 + 0 1 1"
    ),
    "rasp-trigrams": _entry("the last three tokens", lambda: make_ngrams(3), "a b c", 16, "a b c a", True),
    "rasp-fraction": _entry(
        "of the tokens so far, the fraction that is a", lambda: make_frac_prevs(tokens == "a"), "a b", 16,
        "a b b a", True,
    ),
    "rasp-pair-balance": _entry(
        "of the brackets so far, the fraction that opens less that which closes",
        lambda: make_pair_balance(tokens, "(", ")"), "( ) x", 16, "x ( ) (", True,
    ),
    "rasp-planted": _entry(
        "the tokens backwards, but as they are where b c b occurs",
        lambda: plant(make_reverse(tokens), "bcb", tokens), "a b c", 7, "a b c b",
    ),
    "rasp-pattern": _entry(
        "where the pattern aab ends", lambda: detect_pattern(tokens, "aab"), "a b", 16, "a a b a", True
    ),
}  # fmt: skip
