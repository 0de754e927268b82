"""The fast engine of the transformer: bit for bit the reference engine, or a refusal."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import Refused
from tapegrad.machines import Configuration
from tapegrad.machines.compiled import run
from tapegrad.machines.library import ready
from tapegrad.machines.sampler import random_machine
from tapegrad.networks.form import Affine
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.gates import read_gates
from tapegrad_papers.wei.watched import WatchedDecoder
from tests.networks.written import with_blocks, with_decoder, with_map

# The size of the other quick tests, so that they share compiled code.
STEPS = 24
WORD = "1220112"


def compiled(seed: int, **options) -> tuple[TransformerNet, Configuration]:
    """The net of a random machine, and a start on a word."""
    machine = random_machine(seed, states=4, symbols=3, stay=True)
    net = tg.compile(machine, "transformer", form="paper", **{"steps": STEPS, **options}).net
    assert isinstance(net, TransformerNet)
    return net, machine.start([machine.alphabet[int(c)] for c in WORD])


def assert_engines_agree(net: TransformerNet, start: Configuration) -> None:
    slow, quick = net.start(start), net.start(start)
    for _ in range(STEPS):
        slow, quick = net.advance(slow, 1), net.advance(quick, 1, "fast")
        assert np.array_equal(slow.output, quick.output)
        assert net.decode(slow) == net.decode(quick)


@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.sampled(5)
def test_outputs_equal_reference_bit_for_bit(seed: int, attention: str) -> None:
    assert_engines_agree(*compiled(seed, attention=attention))


@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
def test_words_longer_than_an_entry(attention: str) -> None:
    """A symbol of 70 is a word of 70 bits, in two parts of a table, for what is written and for the input."""
    machine = random_machine(5, states=6, symbols=70, halt=0)
    net = tg.compile(machine, "transformer", form="paper", steps=STEPS, attention=attention).net
    assert isinstance(net, TransformerNet)
    assert_engines_agree(
        net, machine.start([machine.alphabet[own] for own in (65, 1, 62, 63, 64, 69, 0, 66)])
    )


@pytest.mark.parametrize("seed", [7, pytest.param(4, marks=pytest.mark.slow)])
def test_outputs_equal_the_plain_decoder_while_the_index_grows(seed: int) -> None:
    net, start = compiled(seed, steps=300)
    carry = net.start(start)
    decoder = WatchedDecoder(net.decoder, carry.tokens)
    while not net.done(carry) and carry.steps <= 300:
        decoder.step()
        carry = net.advance(carry, 1, "fast")
        assert np.array_equal(decoder.output, carry.output)
    assert carry.steps == 301


@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
def test_long_runs_beside_the_interpreter(attention: str) -> None:
    machine = ready("busy-beaver-5x2")
    net = tg.compile(machine, "transformer", form="paper", steps=1 << 17, attention=attention).net
    carry, expected = net.start(machine.start()), machine.start()
    carry = net.advance(carry, 1, "fast")
    for _ in range(5):
        carry = net.advance(carry, 20_011, "fast")
        expected = run(machine, expected, 20_011).final
        assert net.decode(carry) == expected


def with_feed_forward(net: TransformerNet, layer: int, row: int, weights: dict[int, float], bias: float):
    """The same net but for one row of one layer."""
    own = net.layers[layer].feed_forward[0].map.dense()
    W_1, b_1 = np.array(own.weight), np.array(own.bias)
    W_1[row], b_1[row] = 0, bias
    for column, weight in weights.items():
        W_1[row, column] = weight
    return with_map(net, layer, Affine.of(W_1, b_1))


def searching(net: TransformerNet, bit: int) -> int:
    """The layer that finds this bit of the last write."""
    return next(
        n for n, layer in enumerate(net.layers) if layer.purpose.startswith(f"bit {bit} of the search")
    )


@pytest.mark.parametrize("found", [0, 1])
@pytest.mark.parametrize("bit", range(4))
def test_searches_that_miss_the_last_write_are_refused(bit: int, found: int) -> None:
    """A layer that always finds the same bit asks for steps that are not the newest, or for none at all."""
    net, start = compiled(0)
    net = with_feed_forward(net, searching(net, bit), net.layout.at("scr3", bit), {}, found)
    with pytest.raises(Refused, match="as compiled"):
        net.advance(net.start(start), 1, "fast")


def leaves_the_step_number(net: TransformerNet) -> TransformerNet:
    time = net.layout.at("pos1", 0)
    for layer in (len(net.layers) - 2, len(net.layers) - 1):
        net = with_feed_forward(net, layer, time, {time: 1}, 0)
    return net


def moves_the_place_asked_about(net: TransformerNet) -> TransformerNet:
    return with_feed_forward(net, searching(net, 2), net.layout.at("pos3", 0), {}, 1)


def forgets_a_bit_found(net: TransformerNet) -> TransformerNet:
    return with_feed_forward(net, searching(net, 1), net.layout.at("scr3", 3), {}, 1)


def has_a_weight_of_a_half(net: TransformerNet) -> TransformerNet:
    return with_feed_forward(net, 2, net.layout.at("carry"), {net.layout.at("carry"): 0.5}, 0)


def adds_to_what_is_there(net: TransformerNet) -> TransformerNet:
    before_the_search = searching(net, net.layout.time_bits - 1) - 2
    return with_feed_forward(net, before_the_search, net.layout.at("found"), {}, 1)


def asks_in_another_order(net: TransformerNet) -> TransformerNet:
    low, high = searching(net, 0), searching(net, 1)
    one, other = (net.layers[layer].self_attention for layer in (low, high))
    return with_blocks(net, {low: {"self_attention": other}, high: {"self_attention": one}})


def copies_the_mean_of_all_writes(net: TransformerNet) -> TransformerNet:
    """The layer that copies asks as the one does that asks whether there is any write."""
    (any_write, *_, copying) = (n for n, layer in enumerate(net.layers) if layer.self_attention is not None)
    asking, own = net.layers[any_write].self_attention, net.layers[copying].self_attention
    assert asking is not None
    assert own is not None
    return with_blocks(net, {copying: {"self_attention": dataclasses.replace(asking, value=own.value)}})


def has_an_infinite_weight_on_nothing(net: TransformerNet) -> TransformerNet:
    carry = net.layout.at("carry")
    return with_feed_forward(net, 0, carry, {net.layout.at("given"): np.inf}, 0)


def weighs_the_null_key_otherwise(net: TransformerNet) -> TransformerNet:
    layer = searching(net, 0)
    attention = net.layers[layer].self_attention
    assert attention is not None
    other = dataclasses.replace(attention, null_key=attention.null_key - 1)
    return with_blocks(net, {layer: {"self_attention": other}})


@pytest.mark.parametrize(
    "change",
    [
        leaves_the_step_number,
        moves_the_place_asked_about,
        forgets_a_bit_found,
        has_a_weight_of_a_half,
        adds_to_what_is_there,
        asks_in_another_order,
        copies_the_mean_of_all_writes,
        has_an_infinite_weight_on_nothing,
        weighs_the_null_key_otherwise,
    ],
)
def test_changed_weights_are_refused(change: Callable[[TransformerNet], TransformerNet]) -> None:
    net, start = compiled(0)
    net.advance(net.start(start), 1, "fast")
    changed = change(net)
    with pytest.raises(Refused, match="as compiled"):
        changed.advance(changed.start(start), 1, "fast")


def test_softmax_that_is_not_sharp_enough_is_refused() -> None:
    net, start = compiled(0, attention="softmax")
    blurred = with_decoder(net, dataclasses.replace(net.decoder, temperature=net.temperature * 0.99))
    with pytest.raises(Refused, match="do not absorb"):
        blurred.advance(blurred.start(start), 1, "fast")


def test_softmax_values_that_add_up_are_refused() -> None:
    net, start = compiled(0, attention="softmax")
    given, found = net.layout.at("given"), net.layout.at("scr2", net.layout.symbols[0])
    layer = len(net.layers) - 3
    summed = with_feed_forward(net, layer, given, {given: 1, found: 1}, 0)
    with pytest.raises(Refused, match="do not absorb"):
        summed.advance(summed.start(start), 1, "fast")


def test_the_correction_in_thirds_is_refused() -> None:
    net, start = compiled(0, correction="thirds")
    with pytest.raises(Refused, match="exactly"):
        net.advance(net.start(start), 1, "fast")


def test_too_many_places_for_the_index_are_refused() -> None:
    machine = ready("busy-beaver-3x2")
    net = tg.compile(machine, "transformer", form="paper", steps=1 << 27).net
    with pytest.raises(Refused, match="29 bits"):
        net.advance(net.start(machine.start()), 1, "fast")


def test_searches_through_fewer_bits_than_steps_have_are_refused() -> None:
    """Steps up to 15 have four bits. With five, the fifth would not be looked for."""
    net, _ = compiled(0, steps=15)
    read_gates(net.decoder, 16, 0.0)
    with pytest.raises(Refused, match="as compiled"):
        read_gates(net.decoder, 17, 0.0)
