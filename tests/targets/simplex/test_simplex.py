"""The target `simplex`: falling loss, unit steps and line search, the paper's loss (13), the errors."""

from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad._compile import compile, estimate
from tapegrad._precision import in_double
from tapegrad._verify import verify
from tapegrad.errors import InputError, Refused
from tapegrad.machines.library import busy_beaver, ready
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.networks.backends.numpy import applied
from tapegrad.targets import target_named
from tapegrad.targets.descent.loss import corner, edge
from tapegrad.targets.simplex.build import steps_left
from tapegrad.targets.simplex.net import SimplexNet

FOUR = busy_beaver("4x2")
COUNTDOWN = TuringMachine(
    {
        ("right", ("1",)): Rule(("1",), (1,), "right"),
        ("right", ("_",)): Rule(("_",), (-1,), "erase"),
        ("erase", ("1",)): Rule(("_",), (0,), "right"),
    },
    "right",
    name="erase a word",
)


@pytest.mark.parametrize("line_search", [False, True])
def test_the_loss_falls_at_every_step(line_search):
    compiled = compile(FOUR, "simplex", inputs=[[]], line_search=line_search)
    net = compiled.net
    assert isinstance(net, SimplexNet)
    carry, losses = net.step(compiled.start()), []
    while not net.done(carry):
        losses.append(net.loss(carry))
        carry = net.step(carry)
    losses.append(net.loss(carry))
    assert carry.steps == 107 + 1
    assert np.all(np.diff(losses) < 0)
    assert np.allclose(np.diff(losses[:-1]), -3 * net.levels.unit)


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("line_search", [False, True])
def test_every_iterate_is_the_machines_configuration(engine, line_search):
    words = [("1" * n,) for n in range(4)]
    compiled = compile(COUNTDOWN, "simplex", inputs=words, line_search=line_search)
    report = verify(compiled, words, engine=engine)
    assert report.agreed
    assert report.complete
    assert report.deviation == 0


@settings(deadline=None, max_examples=4)
@given(seed=st.integers(0, 10_000), tapes=st.integers(1, 2), symbols=st.integers(2, 3))
def test_random_machines_by_the_fast_engine(seed, tapes, symbols):
    machine = random_machine(seed, states=3, symbols=symbols, tapes=tapes, halt=0.3)
    words = tuple(["1101"] * tapes)
    if sum(1 for _ in islice(machine.run(machine.start(*words)), 302)) == 302:
        with pytest.raises(Refused, match="does not halt within 300 steps"):
            compile(machine, "simplex", inputs=[words], steps=300)
        return
    compiled = compile(machine, "simplex", inputs=[words], steps=300)
    report = verify(compiled, [words], engine="fast")
    assert report.agreed
    assert report.complete


def test_reference_and_fast_gradients_agree_at_every_vertex():
    compiled = compile(FOUR, "simplex", inputs=[[]])
    net = compiled.net
    assert isinstance(net, SimplexNet)
    carry = net.step(compiled.start())
    while not net.done(carry):
        assert np.allclose(net.gradient(carry).s, net.fast_gradient(carry).s, rtol=1e-14, atol=0)
        carry = net.step(carry)


@in_double
def test_the_loss_equals_13_on_every_corner():
    """With all pairs written out, B for those that no step joins: equal on the corners S_v, where descent
    happens; the values at vertices and middles are the weights, (11)."""
    net = compile(COUNTDOWN, "simplex", inputs=[["11"]]).net
    assert isinstance(net, SimplexNet)
    loss, count = net.machine, len(net.vertices.state)
    outside = float(net.levels.outside)
    joined = {
        frozenset((int(v), int(w))): float(weight)
        for v, w, weight in zip(loss.edge_from, loss.edge_to, loss.edge_weight, strict=True)
    }
    pairs = list(combinations(range(count), 2))
    first, second = np.array(pairs).T
    pair_weight = np.array([joined.get(frozenset(pair), outside) for pair in pairs])

    def written_out(x):
        corners = applied(lambda x_v: corner(x_v, 1 / 2), x)
        return loss.vertex_weight @ corners + pair_weight @ applied(edge, x[first], x[second])

    def alone(s):
        return loss(s, None, None)

    random = np.random.default_rng(0)
    for v in range(count):
        ends = np.array(
            [np.eye(count)[v], *(np.eye(count)[[v, w]].mean(axis=0) for w in range(count) if w != v)]
        )
        for share in [*np.eye(count)[:3], *random.dirichlet(np.ones(count), 3)]:
            x = share @ ends
            assert float(applied(alone, x)) == pytest.approx(float(written_out(x)), rel=1e-13)
        assert float(applied(alone, ends[0])) == loss.vertex_weight[v]


def test_only_reachable_configurations_have_vertices():
    compiled = compile(FOUR, "simplex", inputs=[[]])
    known = estimate(FOUR, "simplex", inputs=[[]])
    assert len(compiled.net.arrays()["state"]) == 108
    assert known.parameters == compiled.net.parameters
    weights = 8 * len(compiled.net.arrays()["state"]) + 16  # s and z, in double precision
    assert known.bytes == weights + sum(array.nbytes for array in compiled.net.all_arrays().values())
    assert "the bound of Corollary 2.2" in known.notes[0]


def test_words_up_to_a_length_share_their_vertices():
    compiled = compile(COUNTDOWN, "simplex", longest=5)
    report = verify(compiled, [("11111",), ("111",), ("",)], engine="fast")
    assert report.agreed
    assert compile(COUNTDOWN, "simplex", inputs="111,1").run("111", engine="fast").halted


def test_steps_left_against_walking():
    successor = np.array([1, 2, 2, 0, 3, 5])
    assert steps_left(successor).tolist() == [2, 1, 0, 3, 4, 0]


def test_bad_input():
    forever = TuringMachine({("a", ("0",)): Rule(("1",), (1,), "a")}, "a", blank="0", alphabet=("0", "1"))
    with pytest.raises(Refused, match="does not halt within 50 steps"):
        compile(forever, "simplex", inputs=[[]], steps=50)
    with pytest.raises(Refused, match=r"halts on none"):
        compile(TuringMachine({("a", ("0",)): Rule(("0",), (1,), "a")}, "a", blank="0"), "simplex", steps=50)
    with pytest.raises(InputError, match="no vertex for this input"):
        compile(COUNTDOWN, "simplex", inputs=[["11"]]).start("1111")
    with pytest.raises(Refused, match="longest"):
        compile(COUNTDOWN, "simplex", longest=-1)


def test_a_simplex_that_would_be_too_large_says_so_and_names_tape(monkeypatch):
    monkeypatch.setattr("tapegrad.targets.simplex.build.MOST_VERTICES", 50)
    with pytest.raises(Refused, match=r"vertices and more.*10\^\d.*`tape`"):
        compile(FOUR, "simplex", inputs=[[]])


def test_every_unit_is_explained():
    net = compile(COUNTDOWN, "simplex", inputs=[["1"]]).net
    assert all(net.explain(unit) for unit in net.units())
    for unit in ("s/999", "T/0/0", "", "s/-1"):
        with pytest.raises(InputError, match="no unit"):
            net.explain(unit)


def test_the_examples_agree():
    for example in target_named("simplex").examples():
        assert verify(compile(example.source, "simplex", **example.options), [example.inputs]).agreed


def test_a_default_net_is_verified_on_the_inputs_it_was_built_for() -> None:
    report = verify(compile(ready("increment"), "simplex"), engine="fast")
    assert report.agreed
    assert report.inputs == 1 + 2 + 4 + 8
    few = compile(ready("increment"), "simplex", inputs="1011,11")
    assert verify(few, engine="fast").inputs == 2
    partial = random_machine(0)  # runs on for some of the words, which have no vertex
    assert verify(compile(partial, "simplex"), engine="fast").agreed


def test_a_simplex_of_long_tapes_is_refused_before_the_run_ends(monkeypatch):
    monkeypatch.setattr("tapegrad.targets.simplex.build.MOST_CELLS", 2_000)
    with pytest.raises(Refused, match=r"would need 16 vertices and more, each with \d+ cells"):
        compile(COUNTDOWN, "simplex", inputs=[["1" * 127]])
