"""Machines in TransformerLens: token by token beside the interpreter, and heads that do what is written."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad
from tapegrad.errors import InputError, Refused
from tapegrad.interop import decoder
from tapegrad.interop.decoder import BEGIN, HALT, Token, Vocabulary, rules_of
from tapegrad.machines.library import READY, ready
from tapegrad.machines.model import Configuration, Rule, TuringMachine

torch = pytest.importorskip("torch")
pytest.importorskip("transformer_lens", exc_type=ImportError)

from tapegrad.interop.lens import to_transformer_lens  # noqa: E402


def random_machine(seed: int) -> TuringMachine:
    """Two to four states, two or three symbols, stay moves, some entries missing."""
    random = np.random.default_rng(seed)
    states = [f"q{i}" for i in range(random.integers(2, 5))]
    symbols = ["_", "0", "1"][: random.integers(2, 4)]
    rules = {}
    for state in states:
        for symbol in symbols:
            if random.random() < 0.9:
                write, new = str(random.choice(symbols)), str(random.choice(states))
                rules[state, (symbol,)] = Rule((write,), (int(random.integers(-1, 2)),), new)
    return TuringMachine(rules, "q0", states=tuple(states), alphabet=tuple(symbols), tapes=1)


def true_tokens(vocabulary: Vocabulary, machine: TuringMachine, first: Configuration, room: int) -> list[int]:
    """The run as tokens, from the interpreter: what the network must predict after its prompt."""
    found, current = [], first
    for after in islice(machine.run(first), 1, room + 1):
        rule = machine.rules[current.state, machine.read(current)]
        found.append(vocabulary.number[Token(after.state, rule.write[0], rule.moves[0])])
        current = after
    return [*found, HALT] if len(found) < room else found


def predicted(lens, machine, first):
    """What the network predicts after every prefix of the true run, in one pass, and what is true. Causal
    attention makes this the same as greedy decoding if, and only if, all agree."""
    prompt = lens.prompt(first)
    room = lens.coordinates.context - prompt.shape[1]
    wanted = true_tokens(lens.vocabulary, machine, first, room)
    tokens = torch.cat([prompt, torch.tensor([wanted[:-1]], dtype=torch.int64)], 1)
    with torch.inference_mode():
        logits, cache = lens.model.run_with_cache(tokens)
    found = logits[0, prompt.shape[1] - 1 :]
    # The right token has logit 3, every other at most 2: exactly, not nearly.
    assert found.max(-1).values.unique().tolist() == [3.0]
    assert set(found.unique().tolist()) <= {0.0, 1.0, 2.0, 3.0}
    return found.argmax(-1).tolist(), wanted, tokens, cache


@pytest.mark.parametrize("name", [name for name in READY if name != "universal"])
def test_ready_machines_token_by_token(name):
    machine = ready(name)
    compiled = tapegrad.compile(machine, "transformer", steps=8)
    lowered = compiled.lowered
    assert isinstance(lowered, TuringMachine)
    lens = to_transformer_lens(compiled, context=160)
    first = compiled.encode(machine.start(*READY[name].example))
    found, wanted, _, _ = predicted(lens, lowered, first)
    assert found == wanted


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.text("01", max_size=6), st.integers(-3, 8))
def test_random_machines_inputs_and_heads(seed, word, head):
    machine = random_machine(seed)
    word = [a for a in word if a in machine.alphabet]
    first = Configuration("q0", machine.start(word).tapes, (head,))
    lens = to_transformer_lens(tapegrad.compile(machine, "transformer", steps=8), context=64)
    found, wanted, _, _ = predicted(lens, machine, first)
    assert found == wanted


def test_greedy_decoding_is_the_run():
    machine = ready("increment")
    lens = to_transformer_lens(tapegrad.compile(machine, "transformer", steps=8), context=32)
    first = machine.start("1011")
    found = lens.generate(first)
    assert found[-1] == HALT
    assert list(lens.vocabulary.configurations(first, found)) == list(machine.run(first))
    prompt = lens.prompt(first)
    theirs: Any = lens.model.generate(
        prompt,
        max_new_tokens=20,
        eos_token_id=HALT,
        do_sample=False,
        use_past_kv_cache=False,
        verbose=False,
        return_type="tokens",
    )
    assert theirs[0, prompt.shape[1] :].tolist() == found


def test_the_documented_heads_do_what_is_written():
    """The busy beaver with four states: cells, writes and reads recomputed from the tokens."""
    machine = ready("busy-beaver-4x2")
    lens = to_transformer_lens(tapegrad.compile(machine, "transformer", steps=8), context=128)
    _, _, tokens, cache = predicted(lens, machine, machine.start())
    here, cell, last_write, cells = lens.coordinates, 0, {}, []
    for p, number in enumerate(tokens[0].tolist()):
        token = lens.vocabulary.tokens[number]
        assert (token is None) == (p == 0)
        wrote = cell
        if token is not None:
            last_write[cell] = p
            cell += token.move
        cells.append(cell)
        place = float(cache["resid_mid", 0][0, p, here.at("place")])
        assert abs(place - cell) <= decoder.count_error(here.context)
        for head, wanted in enumerate((cell, -cell, wrote, -wrote)):
            pattern = cache["pattern", 1][0, head, p]
            assert pattern.nonzero().ravel().tolist() == [max(wanted, 0)]
            assert pattern.max() == 1
        found = cache["pattern", 2][0, 0, p].nonzero().ravel().tolist()
        assert found == [last_write.get(cell, BEGIN)]
    assert min(cells) < 0 < max(cells)
    assert {(h.block, h.head) for h in lens.heads} == {(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)}
    idle = {(block, head) for block in range(3) for head in range(4)} - {
        (h.block, h.head) for h in lens.heads
    }
    assert all(not lens.model.blocks[block].attn.W_O[head].any() for block, head in idle)
    assert lens.explain(here.at("place")).startswith("place: block 0")


def test_the_table_comes_from_the_matrices():
    """With the table that the net remembers forgotten, its matrices still say the same."""
    for seed in range(20):
        net: Any = tapegrad.compile(random_machine(seed), "transformer", steps=8).net
        assert set(rules_of(replace(net, rules=()))) == set(net.rules)


def test_what_cannot_be_exact_is_refused():
    compiled = tapegrad.compile(ready("increment"), "transformer", steps=8)
    largest = decoder.largest_context()
    assert decoder.pointing_gap(largest) >= 0.5 > decoder.pointing_gap(largest + 1)
    assert float(np.exp(np.float32(-decoder.UNDERFLOW - 1))) == 0
    with pytest.raises(Refused, match="too long"):
        to_transformer_lens(compiled, context=largest + 1)
    with pytest.raises(InputError, match="context of 8"):
        to_transformer_lens(compiled, context=8).prompt(compiled.source.start("1" * 9))
    with pytest.raises(Refused, match="transformer"):
        to_transformer_lens(tapegrad.compile(ready("increment"), "tape", cells=32))


@pytest.mark.slow
def test_the_longest_context():
    """The busy beaver with five states for as many steps as the longest context holds, and the universal
    machine's first ones."""
    for name, example in (("busy-beaver-5x2", ()), ("universal", READY["universal"].example)):
        compiled = tapegrad.compile(ready(name), "transformer", steps=8)
        lens = to_transformer_lens(compiled, context=decoder.largest_context())
        first = compiled.encode(compiled.source.start(*example))
        found, wanted, _, _ = predicted(lens, compiled.lowered, first)
        assert found == wanted
        assert len(wanted) > 300
