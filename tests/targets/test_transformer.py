"""Target `transformer`: outputs against the plain interpreter, fast against reference, and refusals."""

import dataclasses
import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import InputError, Refused
from tapegrad.machines import Configuration, MachineBuilder, Rule, TuringMachine
from tapegrad.machines.library import ready
from tapegrad.machines.sampler import random_machine
from tapegrad.networks.form import Affine
from tapegrad.targets.net import Net
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.exactness import parameter_norm
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_papers.wei.watched import WatchedDecoder
from tests.check import altering
from tests.check.altering import net_of
from tests.check.of_heads import of_the_paper
from tests.networks.written import with_decoder, with_map

# One size for all quick tests, so that they share compiled code.
STEPS = 24


def random_net(seed: int, **options) -> tg.Compiled:
    machine = random_machine(seed, states=4, symbols=3, stay=True)
    return tg.compile(machine, "transformer", form="paper", **{"steps": STEPS, **options})


@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
@pytest.mark.parametrize("correction", ["quarters", "thirds"])
@pytest.mark.sampled(2)
def test_random_machines_agree_at_every_step(attention: str, correction: str) -> None:
    for seed in range(4):
        net = random_net(seed, attention=attention, correction=correction)
        words = [(), (list("12" * 3),), (list("2112212"),)]
        symbols = net.source.alphabet  # type: ignore[attr-defined]
        inputs = [tuple([symbols[int(c)] for c in word] for word in one) for one in words]
        report = tg.verify(net, inputs, steps=STEPS)
        assert report.agreed, report
        assert report.deviation <= (0 if correction == "quarters" else 32 * 2**-24)


def test_advancing_many_steps_equals_advancing_one_by_one() -> None:
    machine = ready("busy-beaver-4x2")
    net = tg.compile(machine, "transformer", form="paper", steps=107).net
    at_once = net.advance(net.start(machine.start()), 1000)
    *_, last = machine.run(machine.start())
    assert at_once.steps == 108
    assert net.decode(at_once) == last


def test_the_head_may_start_anywhere_and_the_tape_may_hold_blanks() -> None:
    machine = random_machine(3, states=4, symbols=3)
    letter = machine.alphabet[1]
    first = Configuration(machine.start_state, ({-3: letter, 2: letter},), (-2,))
    net = tg.compile(machine, "transformer", form="paper", steps=STEPS)
    assert tg.verify(net, [(first,)], steps=STEPS).agreed


def test_theta_cls_tells_accept_from_reject() -> None:
    machine = ready("palindrome")
    net = tg.compile(machine, "transformer", form="paper", steps=64)
    for word, verdict in (("abba", 1), ("abb", -1)):
        run = net.run(word)
        assert run.halted
        assert net.net.prediction(run.carry) == verdict  # type: ignore[attr-defined]


def test_several_tapes_are_put_on_one() -> None:
    build = MachineBuilder("two tapes", symbols="ab", tapes=2)
    first, second = build.tapes
    with build.while_(first.reads("a", "b")):
        for symbol in first.each("a", "b"):
            second.write(symbol)
            first.move("right")
            second.move("right")
    build.halt()
    net = tg.compile(build.machine(), "transformer", form="paper", steps=400)
    assert [rewriting.name for rewriting in net.passes]
    assert tg.verify(net, [("ab",)], steps=401).agreed


def test_layers_and_norm_grow_with_the_logarithm_of_the_steps() -> None:
    machine = ready("increment")
    nets = [tg.compile(machine, "transformer", form="paper", steps=1 << e).net for e in (4, 8, 16)]
    for net, exponent in zip(nets, (4, 8, 16), strict=True):
        assert isinstance(net, TransformerNet)
        assert len(net.layers) == (exponent + 2) + (exponent + 1) + 7
    norms = [sum(map(parameter_norm, net.layers)) for net in nets]  # type: ignore[attr-defined]
    assert norms[2] < norms[1] * (18 / 10) ** 2 * 2


def test_estimate_equals_the_net() -> None:
    machine = ready("addition")
    cost = tg.estimate(machine, "transformer", form="paper", steps=100)
    net = tg.compile(machine, "transformer", form="paper", steps=100).net
    assert isinstance(net, TransformerNet)
    assert (cost.width, cost.depth) == (net.layout.width, len(net.layers))
    assert cost.parameters == net.parameters


@pytest.mark.slow
def test_softmax_without_its_temperature_goes_wrong() -> None:
    """The derived temperature is needed: at a tenth of it the attention blurs and a step fails."""
    machine = ready("busy-beaver-4x2")
    net = tg.compile(machine, "transformer", form="paper", steps=107, attention="softmax")
    assert tg.verify(net, [()]).agreed
    own = net.net
    assert isinstance(own, TransformerNet)
    blunt = dataclasses.replace(own.decoder, temperature=own.temperature / 10)
    blurred = with_decoder(own, blunt)
    assert not tg.verify(dataclasses.replace(net, net=blurred), [()]).agreed


def test_temperature_follows_from_the_gap() -> None:
    claims = tg.compile(
        ready("increment"), "transformer", form="paper", steps=100, attention="softmax"
    ).net.certificate()
    assert math.isclose(claims["temperature"], math.log(2 * 102 / 0.25))
    assert claims["softmax_error"] + claims["rounding_error"] <= 0.25


def test_explanations_are_words_and_formulas() -> None:
    net = tg.compile(ready("increment"), "transformer", form="paper", steps=16).net
    assert net.explain("layer 4: carry").endswith("carry = relu(pos2[2] + carry - 1)")
    assert "search for the last write" in net.explain("layer 11")
    assert "Claim C.4" in net.explain("found")
    assert all(net.explain(unit) for unit in net.units())
    with pytest.raises(InputError, match="no unit"):
        net.explain("layer 99")


def test_a_net_that_runs_out_of_steps_says_so() -> None:
    net = tg.compile(ready("busy-beaver-4x2"), "transformer", form="paper", steps=50)
    with pytest.raises(Refused, match="not halted after 50 steps"):
        net.run(steps=1000)


def test_an_input_longer_than_the_steps_is_refused() -> None:
    net = tg.compile(ready("palindrome"), "transformer", form="paper", steps=STEPS)
    with pytest.raises(InputError, match="25 cells"):
        net.run("a" * 25)


def perturbed(net: TransformerNet, layer: int, row: str, column: str, by: float) -> TransformerNet:
    own = net.layers[layer].feed_forward[0].map.dense()
    W_1 = np.array(own.weight)
    W_1[net.layout.names.index(row), net.layout.names.index(column)] += by
    changed = Affine.of(W_1, np.asarray(own.bias))
    return with_map(net, layer, changed)


def of_the_paper_net(net: Net) -> altering.Net:
    """What a checker is given that does not know the source."""
    assert isinstance(net, TransformerNet)
    return altering.Net(*of_the_paper(net), net.certificate(), None, form="paper")


def test_small_noise_is_corrected_and_large_noise_is_noticed() -> None:
    compiled = tg.compile(ready("increment"), "transformer", form="paper", steps=STEPS)
    net = compiled.net
    assert isinstance(net, TransformerNet)
    small = dataclasses.replace(compiled, net=perturbed(net, 2, "carry", "carry", 0.2))
    large = dataclasses.replace(compiled, net=perturbed(net, 2, "carry", "carry", -1.0))
    assert tg.verify(small, [("1011",)]).agreed
    assert not tg.verify(large, [("1011",)]).agreed
    with pytest.raises(CheckError, match="layer 2 does not compute carry"):
        of_the_paper_net(small.net).verdict("transformer")


@pytest.mark.parametrize(
    ("array", "place"),
    [
        ("layer.1.ff.W_1", (0, -1)),
        ("layer.10.dec.K_0", (-1,)),
        ("h_0", (0,)),
        ("theta_halt", (-1,)),
        ("theta_cls", (0,)),
    ],
)
def test_the_checker_notices_a_changed_weight(array: str, place: tuple[int, ...]) -> None:
    source = ready("increment")
    net = net_of(source, "transformer", {"form": "paper", "steps": 16})
    assert net.verdict("transformer") == COMPUTES_SOURCE
    net.add(array, place, 1)
    with pytest.raises(CheckError):
        net.verdict("transformer")


def test_awkward_names_keep_coordinates_apart() -> None:
    rules = {("a,b", ("c",)): Rule(("c",), (1,), "a"), ("a", ("b,c",)): Rule(("c",), (1,), "a,b")}
    machine = TuringMachine(rules, "a", blank="b,c")
    compiled = tg.compile(machine, "transformer", form="paper", steps=8)
    assert (
        net_of(machine, "transformer", {"form": "paper", "steps": 8}).verdict("transformer")
        == COMPUTES_SOURCE
    )
    assert tg.verify(compiled, [(), (["c", "c"],)]).agreed


def test_saved_net_runs_without_the_source(tmp_path) -> None:
    compiled = tg.compile(ready("palindrome"), "transformer", form="paper", steps=64)
    tg.save(compiled, tmp_path / "net")
    loaded = tg.load(tmp_path / "net")
    assert tg.verify(loaded, [("abba",)]).agreed
    assert tg.check(tmp_path / "net").verdict == COMPUTES_SOURCE


@pytest.mark.parametrize("attention", ["hardmax", "softmax"])
def test_attention_finds_the_last_write(attention: str) -> None:
    """The plain decoder attends where the machine's own run says that the cell was written last."""
    machine = ready("busy-beaver-3x2")
    net = tg.compile(machine, "transformer", form="paper", steps=STEPS, attention=attention).net
    assert isinstance(net, TransformerNet)
    heads = [configuration.heads[0] for configuration in machine.run(machine.start())]
    carry = net.start(machine.start())
    decoder = WatchedDecoder(net.decoder, carry.tokens)
    for step in range(len(heads)):
        *_, copying = (look.weights for look in decoder.step().looks if look.kind == "self")
        writes = [t for t in range(1, step + 1) if heads[t - 1] == heads[step]]
        assert copying.argmax() == (1 + writes[-1] if writes else 0)
        assert copying.max() > 0.85
        carry = net.advance(carry, 1)
        assert np.allclose(decoder.output, carry.output, atol=1e-6)
