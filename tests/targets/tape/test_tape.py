"""The target `tape`: every iterate against the interpreter, both engines, the loss bounds, the errors."""

from itertools import islice
from typing import cast

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad._compile import compile, estimate
from tapegrad._precision import in_double
from tapegrad._verify import verify
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.tables import triple_states
from tapegrad.machines.library import busy_beaver
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.networks.backends.jax import function_of
from tapegrad.targets import target_named
from tapegrad.targets.descent.layers import network_layers
from tapegrad.targets.tape.build import choose
from tapegrad.targets.tape.net import TapeNet, build
from tapegrad.targets.tape.target import paper_width
from tests.targets.tape.random_machines import random_machine, random_start

CELLS, STEPS = 128, 40


def agree(found, expected, tolerance=0.0):
    return all(
        np.allclose(a, b, rtol=0, atol=tolerance) for a, b in zip(found, expected, strict=True) if np.size(a)
    )


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10_000), tapes=st.sampled_from([1, 3]))
def test_every_iterate_decodes_to_the_machines_configuration(seed, tapes):
    machine = random_machine(seed, tapes)
    tripled = triple_states(machine)
    net = build(cast(TuringMachine, tripled.after), CELLS)
    first = tripled.encode(random_start(seed + 1, machine))
    carry = quick = net.start(first)
    c, b = net.constants.c, net.constants.b
    assert net.decode(carry) is None
    for expected in islice(tripled.after.run(first), STEPS):
        assert not net.done(carry)
        carry, quick = net.step(carry), net.advance(quick, 1, "fast")
        assert net.decode(carry) == expected
        assert agree(carry.weights, quick.weights)  # bit for bit
        assert net.deviation(carry) == 0
        if not net.done(carry):
            assert agree(net.gradient(carry), net.fast_gradient(carry))
            assert net.fast_loss(carry) == pytest.approx(net.loss(carry), rel=1e-12)
            assert c <= net.loss(carry) - 1 / 2 <= c + 8 * b**2 * tapes + 3 * tapes  # (23), and |y|^2 / 2
    state = net.decode(carry)
    assert state is not None
    assert net.done(carry) == (cast(TuringMachine, tripled.after).step(state) is None)


@pytest.mark.parametrize(
    ("size", "steps", "engine"),
    [("3x2", 21, "reference"), ("4x2", 107, "reference"), ("4x2", 107, "fast"), ("2x3", 38, "fast")],
)
def test_busy_beavers_take_one_gradient_step_more_than_steps(size, steps, engine):
    compiled = compile(busy_beaver(size), "tape", cells=64)
    run = compiled.run(engine=engine)
    assert run.halted
    assert run.steps == steps + 1
    assert verify(compiled, [()], engine=engine).agreed


def test_stay_moves_and_more_symbols_come_through_the_passes():
    """A machine over three symbols whose head stays at times."""
    rules = {
        ("mark", ("a",)): Rule(("b",), (0,), "turn"),
        ("turn", ("b",)): Rule(("b",), (1,), "mark"),
        ("mark", ("_",)): Rule(("b",), (-1,), "back"),
        ("back", ("b",)): Rule(("a",), (-1,), "back"),
    }
    compiled = compile(TuringMachine(rules, "mark"), "tape", cells=64)
    assert [rewriting.name for rewriting in compiled.passes] == [
        "binary tracks",
        "stay-free",
        "states tripled",
    ]
    report = verify(compiled, [("aaa",), ("",)])
    assert report.agreed
    assert report.complete


def test_two_heads_that_part_company():
    rules = {
        ("go", ("1", "0")): Rule(("1", "1"), (1, 0), "go"),
        ("go", ("0", "0")): Rule(("0", "1"), (0, -1), "end"),
    }
    machine = TuringMachine(rules, "go", blank="0")
    assert verify(compile(machine, "tape", cells=64), [("111", "")]).agreed


def test_a_head_that_leaves_its_tape_is_reported_with_its_place():
    runaway = TuringMachine({("a", ("0",)): Rule(("1",), (1,), "a")}, "a", blank="0")
    compiled = compile(runaway, "tape", cells=32)
    for engine in ("reference", "fast"):
        with pytest.raises(Refused, match=r"tape 1 leaves.*step 17.*from cell 15.*-16 to 15.*more cells"):
            compiled.run(engine=engine)


def test_a_start_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="cell 16 of tape 1"):
        compile(busy_beaver("3x2"), "tape", cells=32).start("1" * 20)
    with pytest.raises(Refused, match="cells"):
        compile(busy_beaver("3x2"), "tape", cells=1)


def test_a_machine_that_is_not_ready_is_refused_by_the_builder():
    with pytest.raises(Refused, match="lead to each other"):
        build(random_machine(0, 1))
    stays = TuringMachine({("a", ("0",)): Rule(("1",), (0,), "b")}, "a", blank="0")
    with pytest.raises(Refused, match="stay_free"):
        build(stays)
    three = TuringMachine({("a", ("0",)): Rule(("2",), (1,), "b")}, "a", blank="0", alphabet=("0", "1"))
    with pytest.raises(Refused, match="binary_tracks"):
        build(three)


@pytest.mark.parametrize("tapes", range(1, 9))
def test_constants_satisfy_18_and_the_gap_of_23(tapes):
    for final_loss in (0.5, 12345.6):
        k = choose(tapes, final_loss)
        assert k.b**3 >= (k.b**3 + tapes * k.b) / 2
        assert k.b**3 / 2 - tapes * k.b >= 2 * tapes * k.b**2
        assert k.c > k.b**3
        assert k.halted_at_most < k.low < k.high < k.c
        assert final_loss < k.low


def test_a_final_loss_beyond_double_precision_is_refused():
    with pytest.raises(Refused, match="double precision"):
        choose(1, 1e17)


def test_sizes_beside_corollary_23():
    compiled = compile(busy_beaver("4x2"), "tape", cells=64)
    machine = compiled.net
    assert isinstance(machine, TapeNet)
    vertices = 2 * 3 * 5
    assert len(machine.graph.down) == vertices
    loss, weights = machine.error.network.machine, compiled.start().weights
    counted = network_layers(loss, machine.shapes)
    assert counted[0] == _relus(loss, weights) + 4 * 64 + 2 + 2  # S(s) H and T H; squares of z
    trained = sum(np.size(array) for array in compiled.start().weights)
    assert trained == paper_width(vertices, 1, 64) + 2
    known = estimate(busy_beaver("4x2"), "tape", cells=64)
    assert (known.depth, known.width) == (len(counted), max(counted)) == (16, counted[0])
    assert known.parameters == machine.parameters
    assert known.bytes == 8 * trained + sum(array.nbytes for array in machine.all_arrays().values())


@in_double
def _relus(loss, weights):
    """How many numbers go through a ReLU when the loss is evaluated, counted in JAX's trace of it."""
    traced = jax.make_jaxpr(function_of(loss))(weights.s, weights.T, weights.H)
    relus = [equation for equation in traced.eqns if equation.primitive.name == "custom_jvp_call"]
    return sum(int(np.prod(relu.outvars[0].aval.shape)) for relu in relus)


def test_every_unit_is_explained_and_others_are_refused():
    net = compile(busy_beaver("3x2"), "tape", cells=8).net
    assert all(net.explain(unit) for unit in net.units())
    for unit in ("s/999", "T/0/77", "w/1", "", "T/x/y", "z/9"):
        with pytest.raises(InputError, match="no unit"):
            net.explain(unit)


def test_an_empty_table_halts_at_once():
    machine = TuringMachine({}, "a", blank="0")
    run = compile(machine, "tape", cells=8).run()
    assert run.halted
    assert run.steps == 1


def test_the_target_is_registered_with_examples_that_agree():
    target = target_named("tape")
    for example in target.examples():
        assert verify(compile(example.source, "tape", **example.options), [example.inputs]).agreed


def test_too_many_edges_are_refused_before_they_are_built():
    wide = TuringMachine(
        {("a", ("0",) * 24): Rule(("0",) * 24, (1,) * 24, "b")}, "a", blank="0", alphabet=("0", "1")
    )
    with pytest.raises(Refused, match="edges"):
        build(wide)
