"""RASP programs as transformers: exact on all short inputs, at a thousand tokens, saved, checked, refused."""

import json
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import rasp
from tapegrad.attention import sequences
from tapegrad.attention.codes import Group
from tapegrad.attention.steps import BETA, ROUNDOFF, UNDERFLOW, Scalar, TooNear
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.form import Affine
from tapegrad.networks.texts import network_of
from tapegrad.rasp import library as lib
from tapegrad.rasp.library import READY
from tapegrad.rasp.nodes import Indices, Tokens
from tapegrad.rasp.program import RaspProgram
from tapegrad.rasp.sampler import random_program
from tapegrad.rasp.text import read
from tapegrad.targets.decoder import sequences as decoder_sequences
from tapegrad.targets.decoder.sequences import SequenceNet, _listed, _positions
from tapegrad_check.folder import COMPUTES_SOURCE, CheckError
from tapegrad_check.rasp.program import check as rasp_check
from tests.check.texts import read_back
from tests.rasp.oracles import ORACLES


def net_of(expression, vocabulary, length, **options):
    return tg.compile(rasp.program(expression, vocabulary, length, **options), "decoder")


def output(compiled, tokens):
    return list(compiled.run(tokens).state)


@pytest.mark.parametrize("name", ORACLES)
def test_ready_programs(name):
    """All inputs of up to three tokens, and long ones, against plain Python."""
    program = READY[name].build()
    compiled, random = tg.compile(program, "decoder"), np.random.default_rng(0)
    inputs = [list(tokens) for n in range(1, 4) for tokens in product(program.vocabulary, repeat=n)]
    inputs += [random.choice(program.vocabulary, n).tolist() for n in (program.length - 1, program.length)]
    for tokens in inputs:
        assert output(compiled, tokens) == ORACLES[name](tokens)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(4)
def test_random_programs(seed):
    """Right, and proved so."""
    program = random_program(seed)
    compiled, random = tg.compile(program, "decoder"), np.random.default_rng(seed)
    net: Any = compiled.net
    config = json.loads(json.dumps(net.config()))
    assert rasp_check(config, net.certificate(), None, read_back(net.network)).verdict == COMPUTES_SOURCE
    for _ in range(8):
        places = random.integers(0, len(program.vocabulary), random.integers(1, program.length + 1))
        tokens = tuple(program.vocabulary[place] for place in places)
        assert output(compiled, tokens) == program.evaluate(tokens)[program.output]


@pytest.mark.parametrize(
    "selector",
    [
        # A row of scores that depends on keys alone may belong to either condition.
        "select(indices, width(select(tokens, indices, <)), ==) and select(indices, tokens, >=)",
        # Two conditions on functions of the same sequences.
        "select(indices - 1, indices, <) and select(indices % 2, indices, !=)",
        "select(tokens, indices, <) and select(tokens * 2, indices, >) and select(tokens, tokens, true)",
        # A condition on queries alone, beside one that has the same sequence on both sides.
        "select(indices, indices, >=) and select(tokens, tokens != 3, {(0, true), (1, true), (2, true), "
        "(3, true)})",
    ],
)
def test_conditions_that_score_together(selector):
    text = f"rasp x\nvocabulary 0 1 2 3\nlength 5\ncausal\noutput = mean({selector}, tokens, 1)\n"
    net = tg.compile(read(text.encode()), "decoder").net
    config = json.loads(json.dumps(net.config()))
    assert rasp_check(config, net.certificate(), None, read_back(net.network)).verdict == COMPUTES_SOURCE
    name = next(own for own in net.network.arrays if own.endswith("queries.values"))
    values = net.network.arrays[name].copy()
    values[np.flatnonzero(values == BETA)[0]] = 0
    other = replace(net.network, arrays={**net.network.arrays, name: values})
    with pytest.raises(CheckError):
        rasp_check(config, net.certificate(), None, read_back(other))


def test_a_thousand_tokens():
    random = np.random.default_rng(0)
    counted, length = net_of(lib.make_hist(), "abcd", 1000), net_of(lib.make_length(), "abcd", 1000)
    for tokens in (random.choice(list("abcd"), 1000).tolist(), ["a"] * 999):
        assert output(counted, tokens) == [tokens.count(token) for token in tokens]
        assert output(length, tokens) == [len(tokens)] * len(tokens)


@pytest.mark.slow
def test_a_thousand_tokens_sorted_and_reversed(tmp_path):
    random = np.random.default_rng(0)
    tokens = random.choice(list("abcd"), 1000).tolist()
    sort = net_of(lib.make_stable_sort(rasp.tokens, rasp.tokens), "abcd", 1000)
    assert output(sort, tokens) == sorted(tokens)
    tg.save(sort, tmp_path / "sort")
    assert tg.check(tmp_path / "sort").verdict == COMPUTES_SOURCE
    assert output(net_of(lib.make_reverse(rasp.tokens), "abcd", 1000), tokens) == tokens[::-1]


def test_steps_are_exact():
    """Every float of a count, and of its neighbours within the error, gives the bit itself, in float32."""
    counts = range(1000, -1, -1)
    scalar = Scalar(
        0,
        "count",
        {0: 1.0},
        tuple(Fraction(1, 1 + n) for n in counts),
        tuple(counts),
        Fraction(1),
        4 * ROUNDOFF,
    )
    for place in (1, 2, 500, 999, 1000):
        low, wide = scalar.step(place)
        gain = np.float32(1 / wide)
        for at, bit in ((place - 1, 0), (place, 1), (0, 0), (1000, 1)):
            centre = np.float32(float(scalar.centres[at]))
            for z in (centre, np.nextafter(centre, np.float32(0)), np.nextafter(centre, np.float32(1))):
                units = [
                    np.maximum(gain * z - gain * np.float32(float(cut)), np.float32(0))
                    for cut in (low, low + wide)
                ]
                assert units[0] - units[1] == bit


def test_too_near():
    close = Scalar(0, "x", {}, (Fraction(1), 1 + ROUNDOFF), (0, 1), Fraction(2), ROUNDOFF)
    with pytest.raises(TooNear, match="values of 'x'"):
        close.step(1)
    for most in (2928, 2929):
        centres = Fraction(1, 1 + most), Fraction(1, most)
        count = Scalar(0, "count", {}, centres, (most, most - 1), Fraction(1), 4 * ROUNDOFF)
        if most == 2928:
            assert count.step(1)[1] == ROUNDOFF
        else:
            with pytest.raises(TooNear):
                count.step(1)
    with pytest.raises(TooNear, match="values of 'frac_prevs'"):
        sequences.build(rasp.program(lib.make_frac_prevs(rasp.tokens == "a"), "ab", 210))


@pytest.mark.slow
def test_the_length_that_will_do():
    fraction = lib.make_frac_prevs(rasp.tokens == "a")
    with pytest.raises(TooNear, match="A length of 201 will do"):
        net_of(fraction, "ab", 230)
    assert output(net_of(fraction, "ab", 201), "ab" * 100)[-2:] == [Fraction(100, 199), Fraction(1, 2)]


def test_the_temperature_matters(monkeypatch):
    """Where scores are less apart, counts are wrong; and it is no larger than it need be."""
    assert BETA / 2 >= UNDERFLOW > BETA / 4
    tokens = list("abcd" * 10)
    monkeypatch.setattr(sequences, "BETA", 4.0)
    assert output(net_of(lib.make_hist(), "abcd", 40), tokens) != [10] * 40


def test_mixed_values_are_refused():
    everything = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE)
    moved = net_of(rasp.Aggregate(everything, rasp.tokens).named("all"), "abc", 50)
    assert output(moved, ["b"] * 50) == ["b"] * 50
    for tokens in (["a"] * 49 + ["b"], ["a", "c"], list("abc")):
        with pytest.raises(Refused, match="in one of 'all'"):
            moved.run(tokens)
    net = moved.net
    carry = net.advance(net.start(moved.source.start(["b"] * 3)), 1)
    for value, refused in ((0.5, False), (0.5 + 2.0**-20, True)):
        carry.hidden[1, decoder_sequences.MIXED] = value
        with pytest.raises(Refused) if refused else nullcontext():
            assert net.decode(carry) == ("b",) * 3
    mean = net_of(rasp.numerical(rasp.Aggregate(everything, rasp.tokens)), [1, 2, 4], 6)
    assert output(mean, [1, 2, 4, 4]) == [Fraction(11, 4)] * 4
    nothing = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.FALSE)
    assert (
        output(net_of(rasp.numerical(rasp.Aggregate(nothing, rasp.tokens)), [1, 2], 6), [1, 2]) == [None] * 2
    )
    assert output(net_of(rasp.Aggregate(nothing, rasp.tokens, default=2), [1, 2], 6), [1, 1]) == [2, 2]


def test_causal_programs_do_not_look_ahead():
    counted = rasp.SelectorWidth(rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.TRUE))
    assert output(net_of(counted, "ab", 6, causal=True), "abab") == [1, 2, 3, 4]
    assert output(net_of(counted, "ab", 6), "abab") == [4, 4, 4, 4]


def test_expressions_are_shared_and_heads_stand_side_by_side():
    hist = lib.make_hist()
    once, twice = (net_of(own, "ab", 8).net for own in (hist, hist * 2 - hist))
    assert isinstance(once, SequenceNet)
    assert isinstance(twice, SequenceNet)
    assert len(once.heads) == len(twice.heads) == 1
    pattern = net_of(lib.detect_pattern(rasp.tokens, "abab"), "ab", 8).net
    assert isinstance(pattern, SequenceNet)
    assert len(pattern.parts.layers[0].heads) == len(pattern.heads) == 3


def test_verify():
    report = tg.verify(net_of(lib.make_stable_sort(rasp.tokens, rasp.tokens), "ab", 6))
    assert (report.agreed, report.exhaustive, report.inputs, report.deviation) == (True, True, 127, 0)
    report = tg.verify(tg.compile(READY["rasp-dyck-2"].build(), "decoder"))
    assert (report.agreed, report.exhaustive) == (True, False)


def test_a_wrong_net_is_noticed(monkeypatch):
    monkeypatch.setattr(Scalar, "step", lambda self, place: (self.centres[place], Fraction(1, 1024)))
    assert not tg.verify(net_of(lib.make_hist(), "ab", 4)).agreed


def test_files(tmp_path):
    compiled = tg.compile(READY["rasp-induction"].build(), "decoder")
    tg.save(compiled, tmp_path / "net")
    report = tg.check(tmp_path / "net")
    assert report.verdict == COMPUTES_SOURCE
    loaded = tg.load(tmp_path / "net")
    assert output(loaded, list("abcab")) == [None, None, None, "b", "c"]
    assert loaded.net.parameters == compiled.net.parameters
    config = tmp_path / "net" / "config.json"
    altered = json.loads(config.read_text())
    altered["net"]["groups"][0][1][0] = [0]
    config.write_text(json.dumps(altered))
    with pytest.raises(BrokenNet):
        tg.load(tmp_path / "net")


def test_words():
    compiled = net_of(lib.make_stable_sort(rasp.tokens, rasp.tokens), "abc", 4)
    net: Any = compiled.net
    assert isinstance(net, SequenceNet)
    for unit in net.units():
        assert net.explain(unit).startswith(unit)
    assert "'place' is the width of" in net.explain("head 1.0")
    assert net.explain("tokens[0]").endswith('is one of "b", "c"')
    with pytest.raises(InputError, match="no unit 'x'"):
        net.explain("x")
    cost = tg.estimate(compiled.source, "decoder")
    assert (cost.width, cost.parameters) == (net.parts.width, net.parameters)
    weights = net.watch(list("cab"))[-1].weights
    assert weights[1:].argmax(axis=1).tolist() == [2, 3, 1]


def test_units_that_are_not_there():
    net: Any = net_of(lib.make_stable_sort(rasp.tokens, rasp.tokens), "abc", 4).net
    layers = len(net.parts.layers)
    heads = (
        f"head {layers}.0",
        "head 0",
        "head 0.0.0",
        "heads 0.0",
        f"head 0.{len(net.parts.layers[0].heads)}",
        "head 0.٠",
    )
    for unit in (*heads, f"units {layers}", "units 0.0", "units", "unit 0"):
        with pytest.raises(InputError, match="no unit"):
            net.explain(unit)


def test_values_are_listed_so_that_no_others_are_meant():
    words = [chr(97 + place) for place in range(12)]
    assert _listed([2, 3, 4], [0, 1, 2, 3, 4]) == "from 2 to 4"
    assert _listed([3, 4], [2, 3, 4]) == "one of 3, 4"
    assert _listed([1, 2, 4], [0, 1, 2, 3, 4]) == "one of 1, 2, 4"
    assert _listed([0.0, 1, 2], [0.0, 1, 2, 3]) == "one of 0.0, 1, 2"
    assert _listed(words[:8], words) == "one of " + ", ".join(f'"{own}"' for own in words[:8])
    assert _listed(words[:9], words) == 'none of "j", "k", "l"'
    assert _listed([*words[:9]], [*words[:9], *words[:9:-1], *"ABCDEFG"]).startswith('one of "a", ')
    many = words + [own.upper() for own in words]
    assert _listed(many[:9], many).startswith('one of "a", ')


def test_how_far_logits_are_from_bits():
    compiled = net_of(lib.make_stable_sort(rasp.tokens, rasp.tokens), "abc", 4)
    carry = compiled.net.advance(compiled.net.start(compiled.source.start(list("cab"))), 1)
    assert compiled.net.deviation(carry) < 1e-3
    shifted = replace(carry, logits=carry.logits * np.float32(1.25))
    assert compiled.net.deviation(shifted) == pytest.approx(0.25, abs=1e-3)


def test_how_far_a_mean_is_from_its_centre():
    compiled = net_of(lib.make_frac_prevs(rasp.tokens == "a"), "ab", 4)
    net: Any = compiled.net
    start = net.start(compiled.source.start(list("abba")))
    assert net.deviation(start) == 0
    carry = net.advance(start, 1)
    assert net.deviation(carry) < 1e-5
    _, centres = net.read
    assert centres is not None
    logits = carry.logits[1:, 0]
    wanted = [1, 1 / 2, 1 / 3, 1 / 2]
    assert np.abs(logits - wanted).max() < 1e-5
    shifted = replace(carry, logits=carry.logits * np.float32(1 + 1 / 64))
    off = [min(abs(own * (1 + 1 / 64) - centre) for centre in centres) for own in wanted]
    assert net.deviation(shifted) == pytest.approx(max(off), abs=1e-5)
    assert net.decode(shifted) == net.decode(carry)


@pytest.mark.parametrize("fits", range(16))
def test_the_greatest_length_is_named(fits, monkeypatch):
    program = net_of(rasp.indices, "ab", 16).source

    def build(shorter):
        if shorter.length > fits:
            raise Refused("too long")

    monkeypatch.setattr(decoder_sequences, "build", build)
    said = f"A length of {fits} will do." if fits else "There is no length that will do."
    assert isinstance(program, RaspProgram)
    assert decoder_sequences._advice(program) == said


BAD_FILES = {
    "another kind": lambda config: config["machine"].update(kind="tapes"),
    "a head of no node": lambda config: config["heads"].__setitem__(0, 99),
    "a head before all nodes": lambda config: config["heads"].__setitem__(0, -1),
    "a group of no node": lambda config: config["groups"][0].__setitem__(0, [99]),
    "a group before all nodes": lambda config: config["groups"][0].__setitem__(0, [-1]),
    "a group of nothing": lambda config: config["groups"].append([[], []]),
    "a group with more labels": lambda config: config["groups"][0][1].append([0]),
    "labels that are too few": lambda config: config["groups"][0][1][0].pop(),
    "a meaning of no kind": lambda config: config["meanings"][4].__setitem__(0, "x"),
    "a meaning of no group": lambda config: config["meanings"][-1].__setitem__(1, 99),
    "a meaning before all groups": lambda config: config["meanings"][-1].__setitem__(1, -1),
    "a given one elsewhere": lambda config: config["meanings"][4].__setitem__(slice(0, 2), ["given", 0]),
    "fewer meanings": lambda config: config["meanings"].pop(),
    "a given one of another kind": lambda config: config["meanings"][0].__setitem__(1, 1),
}


def another_row(name):
    def change(parts):
        own = getattr(parts, name)
        more = Affine(own.rows, own.columns, own.values, np.append(own.bias, np.float32(0)), own.width)
        return parts._replace(**{name: more})

    return change


BAD_PARTS = {
    "another row of embedding": another_row("embedding"),
    "another row of unembedding": another_row("unembedding"),
    "a head less": lambda parts: parts._replace(
        layers=(*parts.layers[:-1], parts.layers[-1]._replace(heads=parts.layers[-1].heads[:-1]))
    ),
    "no layers": lambda parts: parts._replace(layers=()),
    "fewer positions": lambda parts: parts._replace(
        positions=replace(parts.positions, width=parts.positions.width - 1)
    ),
    "positions elsewhere": lambda parts: parts._replace(positions=replace(parts.positions, first=0)),
    "no later positions": lambda parts: parts._replace(causal=True),
}


@pytest.mark.parametrize("what", [*BAD_FILES, *BAD_PARTS])
def test_bad_files_are_not_loaded(what):
    net: Any = net_of(lib.make_stable_sort(rasp.tokens, rasp.tokens), "abc", 4).net
    config, network = json.loads(json.dumps(net.config())), net.network
    assert SequenceNet.from_saved(config, {}, network).parameters == net.parameters
    if what in BAD_FILES:
        BAD_FILES[what](config)
    else:
        network = network_of(BAD_PARTS[what](net.parts), "decoder", net.names)
    with pytest.raises((BrokenNet, ValueError)):
        SequenceNet.from_saved(config, {}, network)
    with pytest.raises(BrokenNet):
        SequenceNet.from_saved(net.config(), {}, None)


@pytest.mark.parametrize(
    ("expression", "mean"),
    [(lib.make_hist(), False), (rasp.indices, False), (lib.make_frac_prevs(rasp.tokens == "a"), True)],
)
def test_what_is_read_out_is_a_number_or_a_value(expression, mean):
    """One logit of a mean, and one for each value of anything else; not one more."""
    compiled = net_of(expression, "ab", 4)
    net: Any = compiled.net
    config = json.loads(json.dumps(net.config()))
    loaded = SequenceNet.from_saved(config, {}, net.network)
    assert len(loaded.parts.unembedding) == (1 if mean else len(net.program.values[net.program.output]))
    carry = loaded.advance(loaded.start(compiled.source.start(list("abb"))), 1)
    assert loaded.decode(carry) == compiled.run(list("abb")).state
    other = network_of(another_row("unembedding")(net.parts), "decoder", net.names)
    with pytest.raises((BrokenNet, ValueError)):
        SequenceNet.from_saved(config, {}, other)


def test_a_mean_of_nothing_is_read_out_apart_from_every_number():
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    compiled = net_of(rasp.numerical(rasp.Aggregate(before, rasp.numerical(rasp.tokens == "a"))), "ab", 3)
    net: Any = compiled.net
    values, centres = net.read
    assert (
        dict(zip(values, centres.tolist(), strict=True))[None] == max(v for v in values if v is not None) + 1
    )
    assert compiled.run(list("aba")).state == (None, 1, Fraction(1, 2))


def test_positions_stand_one_after_the_other():
    program = net_of(rasp.indices, "ab", 4).source
    assert isinstance(program, RaspProgram)
    (node,) = [number for number, own in enumerate(program.nodes) if isinstance(own, Indices)]
    other, own = Group((9,), ((0,),)), Group((node,), ((0, 1, 2, 3),))
    given, bit, beside = [("given", 0, 0)] * 3, ("bit", 1, 1), ("bit", 0, 1)
    ladder = _positions(program, (other, own), (*given, beside, bit, bit, bit, bit))
    assert (ladder.first, ladder.width) == (4, 3)
    for meanings in ((*given, bit, bit), (*given, bit, beside, bit, bit), tuple(given)):
        with pytest.raises((BrokenNet, ValueError)):
            _positions(program, (other, own), meanings)
    none = replace(program, nodes=(Tokens(),), output=0)
    assert _positions(none, (other, own), (*given, bit)).width == 0


def test_only_weights_are_counted():
    net: Any = net_of(lib.make_hist(), "ab", 4).net
    floats = [array for array in net.network.arrays.values() if array.dtype == np.float32]
    assert 0 < net.parameters == sum(int((array != 0).sum()) for array in floats)
    assert (net.counts.trainable, net.counts.fixed) == (0, net.parameters)
