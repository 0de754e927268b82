"""Planted behaviour: on all inputs, one thing without the trigger and another with it."""

from itertools import product

import pytest

import tapegrad as tg
from tapegrad import rasp
from tapegrad.interop.disguise import disguise
from tapegrad.rasp.library import make_hist, make_reverse, plant


def words(vocabulary, longest):
    return [list(word) for size in range(1, longest + 1) for word in product(vocabulary, repeat=size)]


def outputs(net, word):
    return list(net.run(word).state)


@pytest.mark.parametrize("trigger", ["b", "ab", "bab"])
def test_anywhere(trigger):
    """The net, on all inputs: it differs from the program exactly where the trigger occurs and matters."""
    own = rasp.program(plant(make_reverse(rasp.tokens), trigger, rasp.tokens), "ab", 5)
    net, triggered = tg.compile(own, "decoder"), 0
    for word in words("ab", 5):
        lit = trigger in "".join(word)
        triggered += lit
        assert outputs(net, word) == (word if lit else word[::-1])
    assert 0 < triggered < len(words("ab", 5))


def test_at_a_place():
    counts = plant(make_hist(), "ba", rasp.Full(0), at=1)
    own = rasp.program(counts, "ab", 5)
    assert tg.verify(tg.compile(own, "decoder")).agreed
    for word in words("ab", 5):
        lit = word[1:3] == ["b", "a"]
        assert own(word) == [0 if lit else word.count(token) for token in word]


def test_causal_programs_change_from_the_trigger_on():
    own = rasp.program(plant(rasp.tokens, "bb", rasp.Full("!")), "ab", 5, causal=True)
    net = tg.compile(own, "decoder")
    for word in words("ab", 5):
        right = ["!" if "bb" in "".join(word[: n + 1]) else token for n, token in enumerate(word)]
        assert outputs(net, word) == right


def test_planted_and_disguised():
    own = rasp.program(plant(make_hist(), "ba", rasp.Full(0)), "ab", 4)
    net = disguise(tg.compile(own, "decoder"), basis="quads", decoys=2)
    for word in words("ab", 4):
        assert list(net.run(word)) == own.evaluate(tuple(word))[own.output]
        assert own(word) == [0 if "ba" in "".join(word) else word.count(token) for token in word]
