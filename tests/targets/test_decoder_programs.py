"""SUBLEQ programs on target `decoder`: engines, files, the checker, forged weights, the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad._sources import source_to_json
from tapegrad.attention.subleq_tokens import SubleqTokens
from tapegrad.cli import app
from tapegrad.commands.output import UNFINISHED
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.texts import Reading
from tapegrad.programs.library import READY, random_subleq
from tapegrad.programs.model import ProgramState
from tapegrad.programs.subleq import Subleq
from tapegrad.targets.decoder import DecoderNet
from tapegrad.targets.decoder.fast import Fast, read_tables
from tapegrad_check.folder import COMPUTES_SOURCE, CheckError
from tapegrad_check.sources import model_of
from tapegrad_check.targets import decoder as checker
from tests.check.texts import read_back


def net_of(name: str, **options: int) -> DecoderNet:
    net = tg.compile(READY[name].build(), "decoder", **options).net
    assert isinstance(net, DecoderNet)
    return net


def test_ready_programs_are_exact_and_proved(tmp_path):
    compiled = tg.compile(READY["subleq-echo"].build(), "decoder", tokens=2000)
    assert tg.verify(compiled, [(b"Hi",)], steps=4).agreed
    report = tg.verify(compiled, [(b"Hi",), (b"",), (b"\xff\x00abc",)], steps=60, engine="fast")
    assert report.agreed, report
    tg.save(compiled, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == COMPUTES_SOURCE
    again = tg.load(tmp_path / "net")
    found = again.run(b"Hi", engine="fast").state
    assert isinstance(found, ProgramState)
    assert found.output == b"Hi"


@pytest.mark.parametrize(("words", "width"), [(16, 8), (100, 16), (300, 32), (2, 8)])
@pytest.mark.sampled(3)
def test_machines_of_all_sizes_are_proved(words, width):
    machine = Subleq(words * width // 8, width=width)
    for tokens, counted in ((600, 3), (100_000, 4)):
        net = DecoderNet.build(SubleqTokens(machine, counted), tokens)
        checked = checker.check(net.config(), {}, net.certificate(), None, read_back(net.network))
        assert checked.verdict == COMPUTES_SOURCE  # of every program on this machine
        assert any(f"the horizon is {tokens:,} tokens" in statement for statement in checked.statements)


def test_one_net_runs_every_program_of_its_machine():
    programs = [random_subleq(seed) for seed in range(6)]
    net = DecoderNet.build(SubleqTokens(Subleq(16, width=8), 3), 3000)
    for program in programs:
        first = program.start(b"ab")
        states = [state for state, _ in zip(program.run(first), range(20), strict=False)]
        carry = net.start(first)
        for state in states:
            assert net.decode(carry) == state
            if not state.trap:
                carry = net.advance(carry, 1, "fast")


def test_a_net_for_another_machine_is_not_this_source(tmp_path):
    compiled = tg.compile(READY["subleq-echo"].build(), "decoder", tokens=600)
    tg.save(compiled, tmp_path / "net")
    config = json.loads((tmp_path / "net" / "config.json").read_text())
    assert config["net"]["machine"] == {"kind": "subleq", "ram": 16, "width": 8, "counted": 3}
    other = net_of("subleq-hello", tokens=600)
    source = tg.load(tmp_path / "net").source

    data, arrays = source_to_json(source)
    model = model_of(data, arrays)
    own = compiled.net
    assert (
        checker.check(own.config(), {}, own.certificate(), model, read_back(own.network)).verdict
        == COMPUTES_SOURCE
    )
    with pytest.raises(CheckError, match="not that of the source"):
        checker.check(other.config(), {}, other.certificate(), model, read_back(other.network))
    with pytest.raises(CheckError):
        checker.check(own.config(), {}, own.certificate(), model, read_back(other.network))
    claims = own.certificate()
    for name in claims:
        with pytest.raises(CheckError, match="claims"):
            checker.check(own.config(), {}, claims | {name: 3}, model, read_back(own.network))


@pytest.mark.parametrize("count", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_the_checker_refuses_every_weight_that_is_changed_and_fast_refuses_it_or_does_the_same(count):
    net = net_of("subleq-echo", tokens=20_000)
    assert len(net.parts.layers) == 3
    first = READY["subleq-echo"].build().start(b"H")
    prompt = net.words.prompt(first, net.tokens)
    last = len(prompt) + net.words.record
    random = np.random.default_rng(0)
    refused = 0
    kinds = (".values", ".bias", ".columns", ".table", ".to", ".index")
    for name in [name for name in net.network.arrays if name.endswith(kinds)]:
        array = net.network.arrays[name]
        for place in random.permutation(array.size)[:count].tolist():
            arrays = {**net.network.arrays, name: array.copy()}
            arrays[name].flat[place] += 1
            if name.endswith("columns"):
                arrays[name][place] %= net.parts.width
            network = replace(net.network, arrays=arrays)
            with pytest.raises(CheckError):
                checker.check(net.config(), {}, net.certificate(), None, read_back(network))
            try:
                other = DecoderNet.from_saved(net.config(), {}, network)
                text = Fast(read_tables(other.network, other.tokens)).advance(prompt, last)
            except (BrokenNet, Refused):
                refused += 1
                continue
            reading = Reading(other.network)
            reading.feed(prompt[:-1])
            for at in range(len(prompt), len(text)):
                assert reading.feed([text[at - 1]]).argmax() == text[at], (name, place)
    assert refused > 6 * count


@pytest.mark.parametrize(
    "slot", ["kind", "pc 1", "pc+1 0", "a 0", "from", "x 0", "z 1", "out", "jump", "next 0", "outcome"]
)
def test_a_case_that_is_left_out_or_added_is_noticed(slot):
    """Not a weight, but a whole unit: the net is consistent, and wrong in one slot."""
    words = SubleqTokens(Subleq(16, width=8), 3)
    own = (words.slots.index(slot) - 1) % words.record
    program = words.program
    number = next(n for n, case in enumerate(program.cases) if own in case.slots)
    case = program.cases[number]
    fewer = tuple(place for place in case.slots if place != own)
    wrong = replace(program, cases=tuple(
        replace(other, slots=fewer) if n == number else other for n, other in enumerate(program.cases)
        if n != number or fewer
    ))  # fmt: skip
    words.__dict__["program"] = wrong
    net = DecoderNet.build(words, 600)
    with pytest.raises(CheckError):
        checker.check(net.config(), {}, net.certificate(), None, read_back(net.network))


def test_a_head_that_looks_elsewhere_is_noticed():
    words = SubleqTokens(Subleq(16, width=8), 3)
    program = words.program
    gathers = [
        g
        for g in program.gathers
        if g.name in ("this 0", "write 0", "kind of the record", "block 0", "last 0")
    ]
    for gather in gathers:
        own = next(iter(gather.slots))
        other = replace(gather, slots={**gather.slots, own: max(0, gather.slots[own] - 1) or 2})
        words.__dict__["program"] = replace(
            program, gathers=tuple(other if g.name == gather.name else g for g in program.gathers)
        )
        net = DecoderNet.build(words, 600)
        with pytest.raises(CheckError):
            checker.check(net.config(), {}, net.certificate(), None, read_back(net.network))


@pytest.mark.slow
def test_of_risc_v_the_source_is_proved(tmp_path):
    compiled = tg.compile(tg.read("rv32-fibonacci"), "decoder", tokens=3000)
    tg.save(compiled, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == COMPUTES_SOURCE


def test_on_the_command_line():
    result = CliRunner().invoke(
        app, ["run", "subleq-hello", "--target", "decoder", "--engine", "fast", "--set", "tokens=2000"]
    )
    assert result.exit_code == 0, result.output
    assert "prints      Hi" in result.output
    result = CliRunner().invoke(
        app, ["explain", "subleq-hello", "token put:H", "--target", "decoder", "--set", "tokens=500"]
    )
    assert "number 328" in result.output, result.output


def test_a_run_without_end_stops_where_the_net_has_no_more_room(tmp_path):
    """As on other targets; a saved net is asked for more than it was compiled for, and says so."""
    (tmp_path / "endless").write_text("subleq 8 4\n0 0 0 0")
    line = ["run", str(tmp_path / "endless"), "--target", "decoder", "--set", "tokens=300"]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == UNFINISHED, result.output
    assert "stopped at the step limit" in result.output
    assert "agreed at every one of" in result.output
    program = tg.read(str(tmp_path / "endless"))
    compiled = tg.compile(program, "decoder", tokens=300)
    room = compiled.net.room(program.start()) or 0
    assert room == compiled.run(steps=room, engine="fast").steps
    with pytest.raises(Refused, match="horizon of this net"):
        compiled.run(steps=room + 1, engine="fast")


@pytest.mark.slow
def test_a_program_without_end_gets_a_horizon_that_is_soon_reached(tmp_path):
    (tmp_path / "endless.s").write_text("loop: j loop")
    result = CliRunner().invoke(app, ["run", str(tmp_path / "endless.s"), "--target", "decoder"])
    assert result.exit_code == UNFINISHED, result.output
    assert "tokens      524,288" in result.output


def test_either_engine_reads_the_prompt(monkeypatch):
    net, first = net_of("subleq-echo", tokens=1000), READY["subleq-echo"].build().start(b"Hi")
    told = net.start(first).tokens
    assert net.begin(first, "reference").tokens == told
    monkeypatch.setattr("tapegrad.targets.decoder.net.Reading", None)  # which takes seconds for a long prompt
    assert net.begin(first, "fast").tokens == told
    with pytest.raises(InputError, match="no engine"):
        net.begin(first, "other")


def test_inputs_that_do_not_fit():
    net = net_of("subleq-echo", tokens=400)
    with pytest.raises(Refused, match="horizon of 400"):
        net.start(READY["subleq-echo"].build().start(b"x" * 150))
    words = SubleqTokens(Subleq(16, width=8), 1)
    with pytest.raises(Refused, match="counts up to 15"):
        words.prompt(READY["subleq-echo"].build().start(b"x" * 16), 10_000)
