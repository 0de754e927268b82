"""Target `decoder`: machines as language models, by both engines, in files, on the command line, proved."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.attention.language import scales_for
from tapegrad.attention.tokens import Interpreter
from tapegrad.cli import app
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.library import READY, ready
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.networks.network import Network
from tapegrad.networks.texts import network_of
from tapegrad.targets.decoder import DecoderNet
from tapegrad.targets.decoder.net import words_of
from tapegrad.targets.net import SHORT_RUN
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE, Checked, CheckError
from tapegrad_check.sources import model_of
from tapegrad_check.targets import decoder as checker
from tests.check.texts import read_back


def net_of(machine: TuringMachine, **options: int) -> DecoderNet:
    net = tg.compile(machine, "decoder", **options).net
    assert isinstance(net, DecoderNet)
    return net


@pytest.mark.parametrize("tapes", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_random_machines(tapes):
    for seed in range(4):
        machine = random_machine(seed, tapes=tapes, symbols=1 + seed % 4, states=2 + seed % 3)
        compiled = tg.compile(machine, "decoder", tokens=2000)
        for engine in DecoderNet.engines:
            report = tg.verify(compiled, steps=12, engine=engine)
            assert report.agreed, (seed, report)
            assert report.deviation == 0


@pytest.mark.parametrize("name", [name for name in READY if isinstance(ready(name), TuringMachine)])
@pytest.mark.sampled(4)
def test_ready_machines_are_exact_and_proved(name, tmp_path):
    compiled = tg.compile(ready(name), "decoder", tokens=20_000)
    report = tg.verify(compiled, steps=20)
    assert report.agreed, report
    assert tg.verify(compiled, steps=400, engine="fast").agreed
    tg.save(compiled, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == COMPUTES_SOURCE
    assert tg.verify(tg.load(tmp_path / "net"), steps=40, engine="fast").agreed


def test_both_engines_write_the_interpreters_text():
    net = net_of(ready("busy-beaver-4x2"), tokens=40_000)
    # More records than the last digit of their number counts: both rounds of the search matter.
    assert len(net.parts.layers) == 3
    first = ready("busy-beaver-4x2").start()
    texts = []
    for engine in DecoderNet.engines:
        carry = net.advance(net.start(first), 200, engine)
        assert net.done(carry)
        assert carry.steps > 1 << scales_for(net.words.program, net.tokens).digits[-1]
        texts.append(carry.tokens)
    prompt = net.words.prompt(first, net.tokens)
    assert texts[0] == texts[1] == [*prompt, *Interpreter(net.words.program).run(prompt)]


def test_a_hundred_thousand_tokens_in_leaps(tmp_path):
    compiled = tg.compile(ready("busy-beaver-2x4"), "decoder", tokens=100_000)
    report = tg.verify(compiled, [()], steps=16_000, engine="fast", every=1000)
    assert report.agreed
    assert report.steps == 16_000
    tg.save(compiled, tmp_path / "net")
    checked = tg.check(tmp_path / "net")
    assert checked.verdict == COMPUTES_SOURCE
    assert any("the horizon is 100,000 tokens" in statement for statement in checked.statements)


def test_nothing_is_done_beyond_the_horizon():
    compiled = tg.compile(ready("busy-beaver-4x2"), "decoder", tokens=200)
    for engine in DecoderNet.engines:
        with pytest.raises(Refused, match="not halted within 200 tokens"):
            compiled.run(engine=engine)
    enough = tg.compile(ready("busy-beaver-4x2"), "decoder", tokens=1 + 5 * 109)
    assert enough.run(engine="fast").steps == 107
    with pytest.raises(Refused, match="not halted"):
        tg.compile(ready("busy-beaver-4x2"), "decoder", tokens=5 * 109).run(engine="fast")
    for tokens in (0, 1, 1 << 24):
        with pytest.raises(Refused, match="horizon"):
            tg.compile(ready("increment"), "decoder", tokens=tokens)


def test_a_machine_that_halts_at_once_and_one_without_rules():
    for machine in (TuringMachine({}, "a"), TuringMachine({("b", ("_",)): Rule(("_",), (1,), "a")}, "a")):
        for engine in DecoderNet.engines:
            run = tg.compile(machine, "decoder", tokens=50).run(engine=engine)
            assert run.halted
            assert run.steps == 0
            assert run.state == machine.start()


def test_engines_do_not_mix():
    net = net_of(ready("increment"), tokens=500)
    carry = net.advance(net.start(ready("increment").start("11")), 1)
    with pytest.raises(InputError, match="another engine"):
        net.advance(carry, 1, "fast")
    with pytest.raises(InputError, match="no engine"):
        net.advance(carry, 1, "gpu")


def test_other_first_states_are_refused():
    net = net_of(ready("increment"))
    with pytest.raises(InputError, match="starts in state"):
        net.start(Configuration("halt", ({},), (0,)))


def test_on_the_command_line(tmp_path):
    result = CliRunner().invoke(app, ["run", "palindrome", "--target", "decoder", "--input", "abba"])
    assert result.exit_code == 0, result.output
    assert "accept" in result.output
    result = CliRunner().invoke(
        app, ["explain", "palindrome", "head 1.0", "--target", "decoder", "--set", "tokens=500"]
    )
    assert "last write to tape 0" in result.output, result.output


def test_every_unit_is_explained_and_no_other():
    net = net_of(ready("increment"), tokens=500)
    layers = len(net.parts.layers)
    for unit in net.units():
        assert net.explain(unit).startswith(f"{unit}: ")
    first, last = net.parts.positions.first, net.parts.positions.first + net.parts.positions.width
    assert net._set_by(first - 1) == "a bit of the token's embedding"
    assert net._set_by(first).startswith("position embedding")
    assert net._set_by(last - 1).startswith("position embedding")
    assert not net._set_by(last).startswith("position embedding")
    assert net._set_by(net.names.index("record[0]")).endswith("of the number of this record")
    assert net._set_by(net.names.index("slot[0]")).endswith("the slot of this token")
    end = f"head 0.{len(net.parts.layers[0].heads)}"
    heads = (f"head {layers}.0", "head 0", "head 0.0.0", "heads 0.0", end, "head 0.٠")
    for unit in (*heads, f"units {layers}", "units 0.0", "units", "token nothing", "word <begin>"):
        with pytest.raises(InputError, match="no unit"):
            net.explain(unit)


def test_machines_without_tapes_are_not_loaded():
    net = net_of(ready("increment"), tokens=500)
    data = net.config()["machine"]
    assert words_of(data).record == net.words.record
    with pytest.raises(BrokenNet, match="no tapes"):
        words_of(data | {"kind": "something"})


def test_a_run_that_is_over_stays_as_it_is():
    net, machine = net_of(ready("increment"), tokens=500), ready("increment")
    carry = net.start(machine.start("1"))
    while not net.done(carry):
        carry = net.advance(carry, 1)
    assert net.advance(carry, 5) is carry
    assert net.advance(net.start(machine.start("1")), 0).steps == 0


def test_text_is_a_record_a_line():
    net = net_of(ready("increment"), tokens=500)
    text = net.text(net.start(ready("increment").start("1")))
    assert text.splitlines()[:3] == ["<begin>", "0 0 sees:_ cell:1", "0 0 sees:_ <start>"]
    assert text.splitlines()[3].startswith("0 0 sees:1 write:1,move:R")


def test_only_weights_are_counted(monkeypatch):
    net = net_of(ready("increment"), tokens=500)
    floats = [array for array in net.network.arrays.values() if array.dtype == np.float32]
    assert 0 < net.parameters == sum(int((array != 0).sum()) for array in floats)
    assert net.short_run == min(SHORT_RUN, 1 + (1 << 28) // (net.parameters * net.words.record))
    weights = (1 << 28) // (7 * net.words.record)
    monkeypatch.setattr(DecoderNet, "parameters", weights)
    assert net.short_run == 8


def test_how_far_logits_are_from_the_number_of_their_signs():
    """In a genuine net hardly; with signs of 1.25 by a quarter of them."""
    machine = ready("increment")
    net = net_of(machine, tokens=500)
    assert net.deviation(net.advance(net.start(machine.start("11")), 3)) < 1e-3
    arrays = {name: array.copy() for name, array in net.network.arrays.items()}
    arrays["unembedding.values"] *= np.float32(1.25)
    shifted = DecoderNet.from_saved(net.config(), {}, replace(net.network, arrays=arrays))
    signs = (arrays["unembedding.values"] != 0).sum() / len(net.words.program.tokens)
    assert shifted.deviation(shifted.start(machine.start("11"))) == pytest.approx(signs / 4, rel=1e-3)


def test_heads_are_described_by_names_of_groups():
    net = net_of(ready("increment"), tokens=500)
    assert net.explain("head 1.0") == (
        "head 1.0: last write to tape 0: asks with tape 0 digit 0: digit, tape 0 digit 1: digit; answers "
        "tape 0 digit 0: digit, begin, tape 0 digit 1: digit, on 0, record; copies write 0"
    )


def of_parts(**changes: Any) -> Callable[[DecoderNet], Network]:
    """The network with other parts."""
    return lambda net: network_of(net.parts._replace(**changes), "decoder", net.names, words(net))


def words(net: DecoderNet) -> list[str]:
    return [token.word for token in net.words.program.tokens]


def placed(**changes: int) -> Callable[[DecoderNet], Network]:
    return lambda net: of_parts(positions=replace(net.positions, **changes))(net)


def named(**columns: Any) -> Callable[[DecoderNet], Network]:
    """With these names of columns alone."""
    return lambda net: replace(net.network, columns=columns)


BAD: dict[str, Callable[[DecoderNet], Network]] = {
    "no words": lambda net: named(embedding=net.names)(net),
    "other words": lambda net: named(embedding=net.names, unembedding=net.names[: len(words(net))])(net),
    "no coordinates": lambda net: named(unembedding=tuple(words(net)))(net),
    "records of other sizes": lambda net: placed(record=net.positions.record - 1)(net),
    "other bits": lambda net: placed(bits=net.positions.bits - 1)(net),
    "one layer": lambda net: of_parts(layers=net.parts.layers[:1])(net),
    "a machine with other tokens": lambda net: net_of(ready("busy-beaver-4x2"), tokens=500).network,
    "no graph": lambda net: None,  # type: ignore[dict-item,return-value]
}


@pytest.mark.parametrize("what", BAD)
def test_layers_of_another_machine_are_not_loaded(what):
    net = net_of(ready("increment"), tokens=500)
    config = json.loads(json.dumps(net.config()))
    assert DecoderNet.from_saved(config, {}, net.network).parameters == net.parameters
    with pytest.raises(BrokenNet):
        DecoderNet.from_saved(config, {}, BAD[what](net))


def test_another_horizon_is_not_loaded():
    net = net_of(ready("increment"), tokens=500)
    with pytest.raises(BrokenNet):
        DecoderNet.from_saved(net.config() | {"tokens": 500 * 64}, {}, net.network)


def test_where_coordinates_come_from():
    """Bits of the embedding, places, what heads bring, what units set."""
    net = net_of(ready("increment"), tokens=500)
    names = net.names
    said = {name: net._set_by(place) for place, name in enumerate(names)}
    raw = next(name for name in names if name.startswith("raw "))
    assert said[raw].startswith("layer_0.head_0 copies digit[0] from the place it finds")
    assert said[raw.removeprefix("raw ")].startswith("layer_0.sums makes it ")
    assert said["next[0]"].startswith(f"layer_{len(net.parts.layers) - 1}.sums makes it ")
    assert said["before[0]"] == (
        "position embedding: a bit of the number of the last record that is complete at the next token"
    )


def test_room_up_to_the_horizon():
    machine = ready("increment")
    net = net_of(machine, tokens=500)
    first = machine.start("11")
    prompt = len(net.words.prompt(first, 500))
    assert net.room(first) == (500 - prompt) // net.words.record - 1
    carry = net.begin(first, "fast")
    assert len(carry.tokens) == prompt + net.words.record
    assert (carry.steps, carry.engine, carry.prompt) == (0, None, prompt)


# Weights that were changed


def checked(net: DecoderNet, source: Any, network: Network) -> Checked:
    """What the checker says of a net with this network."""
    return checker.check(net.config(), {}, net.certificate(), source, read_back(network))


def changed(net: DecoderNet, name: str, place: int, value: float) -> Network:
    arrays = dict(net.network.arrays)
    arrays[name] = arrays[name].copy()
    arrays[name].flat[place] = value
    return replace(net.network, arrays=arrays)


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_the_checker_refuses_every_weight_that_is_changed_and_fast_refuses_it_or_does_the_same(count):
    machine = ready("increment")
    net = net_of(machine, tokens=50_000)
    data = net.config()["machine"]["source"]
    random = np.random.default_rng(0)
    refused = 0
    weights = [
        name for name in net.network.arrays if name.endswith((".values", ".bias", ".columns", ".table"))
    ]
    assert len(weights) > 18
    for name in weights:
        array = net.network.arrays[name]
        for place in random.permutation(array.size)[:count].tolist():
            value = float(array.flat[place] + 1)
            if name.endswith("columns"):
                value %= net.parts.width
            network = changed(net, name, place, value)
            try:
                other = DecoderNet.from_saved(net.config(), {}, network)
            except BrokenNet:
                with pytest.raises(CheckError):
                    read_back(network)
                continue
            with pytest.raises(CheckError):
                checker.check(
                    net.config(), {}, net.certificate(), model_of(data, {}), read_back(other.network)
                )
            begun = net.start(machine.start("1"))
            try:
                fast = other.advance(begun, 4, "fast").tokens
            except Refused:
                refused += 1
                continue
            begun = net.start(machine.start("1"))
            assert other.advance(begun, 4).tokens == fast, (name, place)
    assert refused > 6 * count


@pytest.mark.parametrize("change", ["state", "write", "moves", "missing", "more"])
def test_other_rules_are_noticed(change):
    machine = ready("increment")
    rules = dict(machine.rules)
    key, rule = next((key, rule) for key, rule in rules.items() if rule.moves == (1,))
    other = {
        "state": replace(rule, state=next(state for state in machine.states if state != rule.state)),
        "write": replace(rule, write=tuple(a for a in machine.alphabet if (a,) != rule.write)[:1]),
        "moves": replace(rule, moves=(-1,)),
    }
    if change == "missing":
        del rules[key]
    else:
        rules[key] = other.get(change, rule)
    if change == "more":
        states = {q for q, _ in rules}
        rules[next((q, (a,)) for q in machine.states if q not in states for a in machine.alphabet)] = rule
        machine = replace(machine, accept=frozenset(), reject=frozenset())
    wrong = net_of(replace(machine, rules=rules), tokens=500)
    net = net_of(machine, tokens=500)
    source = model_of(net.config()["machine"]["source"], {})
    with pytest.raises(CheckError):
        checked(net, source, wrong.network)
    with pytest.raises(CheckError, match="not the source"):
        checker.check(wrong.config(), {}, wrong.certificate(), source, read_back(wrong.network))


def test_a_longer_horizon_is_not_believed():
    net = net_of(ready("increment"), tokens=500)
    source = model_of(net.config()["machine"]["source"], {})
    for tokens in (501, 5000, 1 << 40):
        config, claims = net.config() | {"tokens": tokens}, net.certificate() | {"tokens": tokens}
        with pytest.raises(CheckError):
            checker.check(config, {}, claims, source, read_back(net.network))
    assert checked(net, source, net.network).verdict == COMPUTES_SOURCE


def test_tables_too_large_to_compare_are_not_said_to_be_proved(monkeypatch):
    net = net_of(ready("increment"), tokens=500)
    monkeypatch.setattr(checker, "MOST_WORK", 10)
    source = model_of(net.config()["machine"]["source"], {})
    assert checked(net, source, net.network).verdict == OWN_TABLE


def test_too_many_rules_are_refused(monkeypatch):
    monkeypatch.setattr("tapegrad.targets.decoder.target.MOST_RULES", 3)
    with pytest.raises(Refused, match="rules"):
        tg.compile(ready("palindrome"), "decoder")
