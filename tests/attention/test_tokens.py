"""Token programs: machines told in words, the interpreter beside the machine, the weights beside both."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from tapegrad.attention import language
from tapegrad.attention.analysis import softmax_error
from tapegrad.attention.language import (
    LARGEST,
    MEAN,
    MOST_COMPARED,
    MOST_TERMS,
    ROUNDING,
    STRAY,
    build,
    scales_for,
    temperature_for,
    weighed,
)
from tapegrad.attention.tape_tokens import BASE, TapeTokens
from tapegrad.attention.tokens import BEGIN, END, Case, Interpreter, Recall, Token
from tapegrad.errors import InputError, Refused, SourceError
from tapegrad.machines.library import ready
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.networks.form import Dense
from tapegrad.networks.numpy import affine, chain
from tapegrad.networks.texts import Parts, Reading, Records, parts_of


def told(words: TapeTokens, first: Configuration, records: int) -> tuple[list[int], list[int]]:
    """Prompt, and what the interpreter of tokens adds to it."""
    prompt = words.prompt(first, 10_000)
    return prompt, list(islice(Interpreter(words.program).run(prompt), records * words.record))


def random_text(words: TapeTokens, random: np.random.Generator, records: int) -> list[int]:
    """Tokens of the right kind in every slot, otherwise at random; few addresses, so that many are equal."""
    symbols = range(words.SYMBOLS, words.SYMBOLS + len(words.machine.alphabet))
    digits = [words.DIGITS, words.DIGITS + 1, words.CARRY, words.BORROW]
    lasts = [words.START, *words.given.values(), *words.outcomes.values()]
    text = [BEGIN]
    for _ in range(records):
        for slot in words.program.slots[:-1]:
            text.append(int(random.choice(symbols if slot.endswith("symbol") else digits)))
        text.append(int(random.choice(lasts)))
    return text


@pytest.mark.parametrize("tapes", [1, 2, 3])
def test_what_is_told_is_the_run(tapes):
    for seed in range(8):
        machine = random_machine(seed, tapes=tapes, symbols=1 + seed % 4, states=1 + seed % 5)
        words = TapeTokens.for_tokens(machine, 10_000)
        letters = machine.alphabet
        random = np.random.default_rng(seed)
        tapes_ = tuple(
            {int(c): letters[-1] for c in random.integers(-20, 20, 5) if letters[-1] != machine.blank}
            for _ in range(tapes)
        )
        first = Configuration(machine.start_state, tapes_, tuple(random.integers(-3, 4, tapes).tolist()))
        _, tokens = told(words, first, 25)
        story = words.follow(first)
        for number, state in enumerate(islice(machine.run(first), 25)):
            record = tokens[number * words.record : (number + 1) * words.record]
            story.read(record)
            assert story.configuration() == state
            seen = [record[words.symbol_slot(tape)] - words.SYMBOLS for tape in range(tapes)]
            assert [letters[symbol] for symbol in seen] == list(machine.read(state))
            assert (record[-1] == END) == (machine.step(state) is None)


def test_digits_carry_all_the_way_and_back():
    rules = {("go", (s,)): Rule((s,), (1,), "go") for s in "_1"}
    machine = TuringMachine(rules, "go", alphabet=("_", "1"))
    words = TapeTokens(machine, 3)
    back = replace(machine, rules={("go", (s,)): Rule((s,), (-1,), "go") for s in "_1"})
    for own, sign in ((words, 1), (TapeTokens(back, 3), -1)):
        _, tokens = told(own, machine.start(""), 270)
        found = [own.distances(tokens[i : i + own.record]) for i in range(0, len(tokens), own.record)]
        assert found == [(sign * step,) for step in range(270)]


@pytest.mark.parametrize("tapes", [1, 2])
@pytest.mark.parametrize("tokens", [700, 40_000])
def test_weights_give_the_same_token_after_every_text(tapes, tokens):
    random = np.random.default_rng(tokens)
    for seed in range(3):
        machine = random_machine(seed, tapes=tapes, symbols=2 + seed, states=3)
        words = TapeTokens.for_tokens(machine, tokens)
        network = build(words.program, tokens)
        assert len(parts_of(network).layers) == 1 + len(scales_for(words.program, tokens).digits)
        text = random_text(words, random, 30)
        reading, interpreter = Reading(network), Interpreter(words.program)
        digits = (len(words.program.tokens) - 1).bit_length()
        for token in text:
            logits = reading.feed([token])
            assert logits.argmax() == interpreter.feed([token])
            first, second = np.sort(logits)[[-1, -2]]
            assert first == digits
            assert first - second >= 2


def test_many_tokens_at_once_are_read_as_one_by_one():
    words = TapeTokens.for_tokens(ready("palindrome"), 1000)
    network = build(words.program, 1000)
    text = random_text(words, np.random.default_rng(0), 120)
    at_once, singly = Reading(network), Reading(network)
    for token in text[:-1]:
        singly.feed([token])
    assert np.array_equal(at_once.feed(text), singly.feed(text[-1:]))


class Shifted:
    """A model in the form of stock ones: what is read is off by the mean that a layer norm finds."""

    def __init__(self, model: Parts, shift: float) -> None:
        self.model, self.shift = model, shift

    def logits(self, text: list[int], random: np.random.Generator) -> np.ndarray:
        model = self.model
        hidden = np.asarray(model.embedding.dense().weight)[text] + model.table(len(text))
        later = np.arange(len(text)) > np.arange(len(text))[:, None]

        def read() -> np.ndarray:
            return (hidden + self.shift * random.choice([-1, 1], (len(text), 1))).astype(np.float32).T

        for layer in model.layers:
            seen, added = read(), np.zeros_like(hidden)
            for head in layer.heads:
                query, key, value = (affine(side, seen) for side in (head.query, head.key, head.value))
                scores = np.where(later, -np.inf, query.T @ key)
                weights = np.exp(scores - scores.max(1, keepdims=True))
                added[:, np.asarray(head.to)] = weights @ value.T / weights.sum(1, keepdims=True)
            hidden = (hidden + added).astype(np.float32)
            fed = chain((Dense(layer.units, "relu"), Dense(layer.sums, "linear")), read()).T
            hidden[:, np.asarray(layer.to)] += fed
        return affine(model.unembedding, read()).T


def test_means_that_layer_norms_find_do_not_matter():
    words = TapeTokens.for_tokens(ready("palindrome"), 200_000)
    model = parts_of(build(words.program, 200_000))
    random = np.random.default_rng(5)
    text = random_text(words, random, 60)
    exact = Shifted(model, 0).logits(text, random)
    found = Shifted(model, MEAN).logits(text, random)
    assert np.array_equal(found.argmax(1), exact.argmax(1))
    first, second = np.sort(found, axis=1)[:, [-1, -2]].T
    assert (first - second > 1.9).all()
    assert not np.array_equal(Shifted(model, 1 / 4).logits(text, random).argmax(1), exact.argmax(1)), (
        "a shift that is too large must show"
    )


def test_scales():
    words = TapeTokens.for_tokens(ready("palindrome"), 500)
    for tokens in (10, 100, 1000, 10_000, 100_000, 1_000_000, 1 << 23):
        own = TapeTokens.for_tokens(ready("palindrome"), tokens)
        scales = scales_for(own.program, tokens)
        assert tokens // own.record < 1 << scales.time
        compared = len(own.program.recalls[0].compared)
        for number, digit in enumerate(scales.digits):
            assert (compared + sum(scales.digits[:number]) + 1) << digit <= LARGEST
        beta = temperature_for(tokens)
        assert softmax_error(tokens, beta / 2) <= STRAY < softmax_error(tokens, beta / 4)
        assert own.holds(tokens)
        assert own.digits == 1 or not TapeTokens(own.machine, own.digits - 1).holds(tokens)
    # Signs that are off by twice the mean, and the rounding of sums: see `tapegrad.attention.language`.
    assert 4 * LARGEST * MEAN + MOST_COMPARED * LARGEST * 2.0**-24 < 1 / 4
    assert scales_for(words.program, 2).time == 1
    for tokens in (1, (1 << 23) + 1):
        with pytest.raises(Refused, match="horizon"):
            scales_for(words.program, tokens)


def test_bits_of_slots():
    assert [language.slot_bits(slots) for slots in (1, 2, 4, 5, 8, 9)] == [2, 2, 2, 3, 3, 4]


def test_heads_compare_fewer_bits_than_a_bound(monkeypatch):
    program = TapeTokens.for_tokens(ready("palindrome"), 500).program
    compared = max(len(head.compared) for head in program.recalls)
    bits = compared + scales_for(program, 500).time
    monkeypatch.setattr(language, "MOST_COMPARED", bits + 1)
    scales_for(program, 500)
    monkeypatch.setattr(language, "MOST_COMPARED", bits)
    with pytest.raises(Refused, match="scores that are too large"):
        scales_for(program, 500)
    monkeypatch.setattr(language, "MOST_COMPARED", bits + 1)
    monkeypatch.setattr(language, "MOST_TERMS", len(program.slots))
    scales_for(program, 500)
    monkeypatch.setattr(language, "MOST_TERMS", len(program.slots) - 1)
    with pytest.raises(Refused, match="scores that are too large"):
        scales_for(program, 500)


def test_records_are_numbered_with_as_few_bits_as_there_can_be():
    program = TapeTokens.for_tokens(ready("palindrome"), 1000).program
    record = len(program.slots)
    for tokens, records, bits in ((64 * record - 1, 64, 6), (64 * record, 65, 7), (record - 1, 1, 1)):
        scales = scales_for(program, tokens)
        assert (scales.steps, scales.time) == (records, bits)


def test_what_is_compared_counts_for_as_much_as_it_is_unsure():
    """A pair of bits is off by 4 means; a sign of half of 32 slots by 32 / 16 = 2, one of all but one by 2
    more."""
    bits = tuple((f"a[{n}]", f"b[{n}]") for n in range(5))
    assert weighed(Recall("r", bits, ()), 32) == 5
    assert weighed(Recall("r", ((frozenset(range(16)), frozenset(range(16))),), ()), 32) == 1
    assert weighed(Recall("r", ((frozenset(range(31)), frozenset(range(1))),), ()), 32) == 2
    assert weighed(Recall("r", (*bits, (frozenset(range(31)), frozenset(range(1)))), ()), 32) == 7


def test_so_many_terms_are_off_by_little():
    """With what is copied, less than the rounding bears; twice as many would be off by more than is said."""
    assert MOST_TERMS * MEAN == 1 / 256
    assert ROUNDING.low > MOST_TERMS * MEAN + MOST_COMPARED * STRAY


def test_a_case_of_too_many_terms_or_recalled_bits(monkeypatch):
    program = TapeTokens.for_tokens(ready("palindrome"), 1000).program
    most = max(len(case.slots) + len(case.holds) for case in program.cases)
    monkeypatch.setattr(language, "MOST_TERMS", max(most, len(program.slots)))
    build(program, 1000)
    wide = Case(tuple(range(len(program.slots))), program.cases[0].holds, 2)
    with pytest.raises(Refused, match="looks at too many tokens"):
        build(replace(program, cases=(*program.cases, wide)), 1000)
    (head,) = program.recalls[:1]
    there = program.features[0].bits[0]
    recalled = replace(head, copies=tuple((there, f"new[{n}]") for n in range(9)))
    for count in (8, 9):
        case = Case((0,), {f"new[{n}]": 1 for n in range(count)}, 2)
        if count == 8:
            replace(program, recalls=(recalled,), cases=(case,))
        else:
            with pytest.raises(SourceError, match="recalls too many bits"):
                replace(program, recalls=(recalled,), cases=(case,))
    # So many that are off by `STRAY`, and `MOST_TERMS` by `MEAN`, leave the cut of a unit untouched.
    monkeypatch.undo()
    assert ROUNDING.low > 8 * STRAY + language.MOST_TERMS * MEAN


def test_rounding_is_exact_for_every_float_near_a_bit():
    near = np.linspace(-3 / 8, 3 / 8, 100_001).astype(np.float32)
    low, high, gain = (np.float32(own) for own in (ROUNDING.low, ROUNDING.high, ROUNDING.gain))
    for bit in (0, 1):
        z = np.float32(bit) + near
        assert set((gain * np.maximum(z - low, 0) - gain * np.maximum(z - high, 0)).tolist()) == {bit}


def test_positions():
    rows = Records(3, 2, 0).rows(np.arange(8))
    numbers = [(row[:2] @ [1, 2], row[2:4] @ [1, 2], np.flatnonzero(row[4:]).tolist()) for row in rows]
    assert numbers == [
        (0, 0, []), (0, 0, [0]), (0, 0, [1]), (0, 0, [2]), (1, 0, [0]), (1, 0, [1]), (1, 1, [2]), (2, 1, [0]),
    ]  # fmt: skip


def test_words_can_be_told_apart():
    rules = {("a b", ("x,y",)): Rule(("|",), (1,), ""), ("", ("%",)): Rule(("<halt>",), (0,), "ä\u00a0")}
    machine = TuringMachine(rules, "a b", blank="%", alphabet=("%", "", " "))
    program = TapeTokens(machine, 2).program
    words = [token.word for token in program.tokens]
    assert all(word.split() == [word] for word in words)
    assert len(set(words)) == len(words)
    assert [word for word in words if "<" in word] == ["<halt>", "<begin>", "<start>"]
    with pytest.raises(SourceError, match="not different"):
        replace(program, tokens=(*program.tokens, Token("0", frozenset())))
    with pytest.raises(SourceError, match="not known there"):
        replace(program, features=program.features[1:])


def test_prompts_that_do_not_fit():
    machine = ready("increment")
    words = TapeTokens.for_tokens(machine, 100)
    with pytest.raises(InputError, match="starts in state"):
        words.prompt(Configuration("carry", ({},), (0,)), 100)
    with pytest.raises(InputError, match="no symbol"):
        words.prompt(Configuration(machine.start_state, ({0: "2"},), (0,)), 100)
    reach = words.records(100)
    assert 2 * reach < BASE**words.digits
    words.prompt(Configuration(machine.start_state, ({reach: "1"},), (0,)), 100)
    with pytest.raises(Refused, match="further"):
        words.prompt(Configuration(machine.start_state, ({reach + 1: "1"},), (0,)), 100)
    with pytest.raises(Refused, match="horizon of 100"):
        words.prompt(machine.start("1" * (reach - 1)), 100)
