"""Definition 7, Lemmas 4 to 6, Remark 13: the network that tolerates noise, read off its graph and run."""

from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from itertools import product

import numpy as np

from tapegrad._compile import compile
from tapegrad._verify import verify
from tapegrad.learners import Learner, majority, parity
from tapegrad.targets.emulator.constants import DIGITS, NOISE, RATE, power
from tapegrad.targets.emulator.graph import Computation, Graph, GraphBuilder
from tapegrad.targets.emulator.paper_nets import NoisyNet
from tapegrad_papers.abbe_sandon import PAPER, components
from tapegrad_papers.abbe_sandon.memory import random_and_or_not
from tapegrad_papers.ledger import Outcome, holds, holds_corrected, holds_in_part

HALVES = Decimal("-1.5")


def _same(a: Decimal, b: Decimal) -> bool:
    return abs(a / b - 1) < Decimal(10) ** (10 - DIGITS)


def _noisy(learner: Learner, samples: int, arithmetic: str = "decimal") -> NoisyNet:
    return NoisyNet.of(learner, samples, arithmetic)


@PAPER.claim("Definition 7", "The memory component M', written once")
def definition_7(long: bool) -> Outcome:
    """On the arrays of a compiled network, as for Definition 6."""
    samples = 4 if long else 2
    net = _noisy(majority(2, 3), samples)
    graph, weights, found = net.graph, net.weights, components.paths(net.graph, 5, 4)
    three = Decimal(3)
    along = read = controls = closes = v2_right = vr_right = True
    with localcontext(prec=DIGITS):
        path = [three ** (Decimal(-t) / 2) / 4 for t in range(5)]
        wanted = [-(Decimal(2) ** -41) * three**-9, -(Decimal(2) ** -81) * three**-9]
        for one in found:
            along &= one.vertices[0] == 0 and all(
                _same(weights[e], w) for e, w in zip(one.edges, path, strict=True)
            )
            readers = [
                edge
                for v, edge in components.children(graph, one.vertices[1]).items()
                if v != one.vertices[2]
            ]
            read &= [weights[edge] for edge in readers] == [128]
            by_size = sorted(weights[edge] for edge in one.controls.values())
            controls &= len(by_size) == 2 and all(map(_same, by_size, wanted))
            for factor, exponent, control in (
                (1, -24, by_size[-1]),
                (2, -12, by_size[0]),
                (-2, -12, by_size[0]),
            ):
                own = [factor * weights[edge] for edge in one.edges]
                v2 = (own[1] * own[0] ** 3) ** 3
                v2_right &= _same(v2, power(exponent, HALVES))
                closes &= _same(own[3] * (own[2] * v2) ** 3, -2 * control)
                at_reader = weights[readers[0]] * own[0] ** 3
                vr_right &= abs(at_reader) >= Decimal("1.5") and (at_reader > 0) == (factor > 0)
    count = 2 * (net.inputs + 1) * samples
    vertices = [{*one.vertices, *one.controls} for one in found]
    checks = {
        "a component for each sample, bit and value": len(found) == count,
        "with v_0 the constant, v_5 the output and v_r each has 9 vertices, and no other edges": all(
            len(own) + 2 == 9 for own in vertices
        ),
        "edges (v_t, v_(t+1)) have the weights 3^(-t/2)/4": along,
        "an edge of weight 128 leads from v_1 to v_r": read,
        "controls have the weights -2^-81 3^-9 and -2^-41 3^-9": controls,
        "v_2 gives 2^-24 3^(-3/2), and 2^-12 3^(-3/2) with all weights times 2 or -2": v2_right,
        "a control of 2 closes v_4, the first before that and the second after": closes,
        "v_r is 2 with the sign of v_1": vr_right,
    }
    return holds(
        checks,
        stated="9 vertices; v_2 gives about 2^-24 3^(-3/2), or 2^-12 3^(-3/2) once written",
        measured=f"{len(found)} components in a compiled graph of {graph.vertices:,} vertices",
    )


@PAPER.claim("Lemma 4", "Noisy SGD writes the component once, within the stated ranges")
def lemma_4(long: bool) -> Outcome:
    """Every component of a network, at every step before, at and after its t_0, with noise of the lemma's own
    size, its signs random, on every weight at every step."""
    samples, bits = 6 if long else 4, 1
    labels, xs = [0, 1, 1, 0, 1, 0][:samples], [1, 0, 1, 1, 0, 1][:samples]
    net = _noisy(majority(bits, 3), samples)
    graph, weights = net.graph, list(net.weights)
    found = [one for one in components.paths(graph, 5, 4) if len(one.controls) == 2]
    starts = {"before": 0, "at": 0, "after": 0}
    hypotheses = v2_ranges = vr_right = contributions = distortions = True
    changed = len(weights)
    with localcontext(prec=DIGITS):
        epsilon, epsilon_2 = power(-134, -11), power(-123, -11)
        low, high = power(-242, -29) - power(-201, -27), power(-242, -29) + power(-201, -27)
        primary = [Decimal(0)] * len(weights)
        controls = [_controls(one, weights) for one in found]
        writers = [_reader(graph, one) for one in found]
        written: dict[int, tuple[int, int]] = {}
        for t in range(samples + 1):
            row = np.array([1, 2 * xs[t % samples] - 1, 1], np.int8)
            label = 2 * labels[t % samples] - 1
            after, values = net._trained(weights, row, label)
            off = abs(values[-1] - Decimal("0.5"))
            hypotheses &= t == samples or off <= epsilon_2
            for k, one in enumerate(found):
                before, later = (values[control] for control in controls[k])
                if before == later == 0:
                    hypotheses &= k not in written
                    written[k] = (t, label)
                t0, y0 = written.get(k, (samples + 1, 0))
                when = "before" if t < t0 else "at" if t == t0 else "after"
                starts[when] += 1
                hypotheses &= (before, later) == {"before": (2, 0), "at": (0, 0), "after": (0, 2)}[when]
                hypotheses &= all(abs(values[v]) == 2 for v in writers[k])
                powers = (-13, -11) if when == "after" else (-25, -23)
                v2 = values[one.vertices[2]]
                v2_ranges &= power(powers[0], HALVES) <= v2 <= power(powers[1], HALVES)
                vr_right &= values[writers[k][0]] == (-2 if when == "after" and y0 < 0 else 2)
                share = weights[one.edges[4]] * values[one.vertices[4]]
                contributions &= low <= share <= high if when == "at" else share == 0
                factor = {1: 2, -1: -2, 0: 1}[y0 if when == "after" else 0]
                distortions &= all(
                    abs(weights[e] - factor * net.weights[e] - primary[e]) <= 1080 * epsilon + 6 * epsilon_2
                    for e in one.edges
                )
            if t == samples:
                break
            signs = np.random.default_rng(t).choice([-1, 1], len(weights)).tolist()
            noise = [sign * epsilon / samples for sign in signs]
            changed = min(changed, sum(w + n != w for w, n in zip(after, noise, strict=True)))
            weights = [w + n for w, n in zip(after, noise, strict=True)]
            primary = [p + n for p, n in zip(primary, noise, strict=True)]
    checks = {
        "the lemma's conditions hold: controls, output within epsilon' of 1/2, flatness beyond": hypotheses,
        "all components are seen, before t_0, at t_0 and after": len(found) == 2 * (bits + 1) * samples
        and min(starts.values()) > samples,
        "v_2 within [2^-25, 2^-23] 3^(-3/2) up to t_0, and [2^-13, 2^-11] 3^(-3/2) from then on": v2_ranges,
        "v_r is -2 after t_0 if the label was -1, and 2 otherwise": vr_right,
        "the edge (v_4, v_5) gives 2^-242 3^-29 +- 2^-201 3^-27 at t_0, and 0 at other steps": contributions,
        "secondary distortions stay below 1080 epsilon + 6 epsilon'": distortions,
        "the noise changes every weight at every step, but for those that are at 10^84 by then": changed
        >= len(weights) - samples,
    }
    outside = len(components.parents(graph, graph.vertices - 1)) - 1
    return holds(
        checks,
        printed={"no edges lead from outside to M' but to v_c and v_c', in this net": outside == 0},
        stated="with noise of 2^-134 3^-11 in all on each edge: as intended, within the ranges given",
        measured=f"{len(found)} components: {starts['before']} times before t_0, {starts['at']} at it, "
        f"{starts['after']} after; noise {epsilon / samples:.1e} on each of {len(weights):,} weights at "
        f"every step changes {changed:,} of them; {outside} edges lead from elsewhere to v_5",
        note="v_5 may get edges from outside, too: with one M' alone the output is 0 but at t_0, and "
        "condition 2, an output of 1/2 at every step, is never met.",
        noise=float(epsilon),
        changed=changed,
    )


def _controls(one: components.Path, weights: Sequence[Decimal]) -> list[int]:
    """v_c and v_c', by the sizes of their weights: v_c's is the smaller."""
    return sorted(one.controls, key=lambda v: abs(weights[one.controls[v]]))


def _reader(graph: Graph, one: components.Path) -> list[int]:
    """v_r, and the vertices beyond that read v_r and v_2."""
    beyond = [v for v in components.children(graph, one.vertices[1]) if v != one.vertices[2]]
    tells = [*components.children(graph, beyond[0]), *components.children(graph, one.vertices[2])]
    return [beyond[0], *(v for v in tells if v != one.vertices[3])]


NOISE_OF_LEMMA_5 = 1 / 12


@PAPER.claim("Lemma 5", "The computation component tolerates noise of 1/12 on every edge")
def lemma_5(long: bool) -> Outcome:
    """Every vertex that computes in a compiled network, for all values of what it reads and all signs of the
    noise; by kind of gate, the least total input."""
    net = _noisy(parity(3 if long else 2), 2)
    found = least_inputs(net, NOISE_OF_LEMMA_5)
    louder = least_inputs(net, 2 * NOISE_OF_LEMMA_5)
    low, high = 0.2, 0.7
    reads = [4 / (high - low) * y - 2 * (high + low) / (high - low) for y in (low - 0.1, low, high, high + 1)]
    circuit = random_and_or_not(1, 3, 12, 2)
    builder = GraphBuilder(4)
    compute = Computation(builder, 1)
    compute.circuit(circuit, [compute.copy(1 + i) for i in range(3)])
    vertices = builder.vertices - 4
    checks = {
        "with noise 1/12 of any sign, no total input of a vertex that computes is below 3/2": min(
            found.values()
        )
        >= 1.5,
        "that is nearly all that an AND or OR can bear: with 1/6 it is": min(louder.values()) < 1.5,
        "gates of two and of three operands are among them": {3, 4} <= {edges for edges, _ in found},
        "the vertex of an input is at most -2 below y0 and at least 2 above y1": max(reads[:2]) <= -2 + 1e-9
        and min(reads[2:]) >= 2 - 1e-9,
        "12 gates AND, OR, NOT on 3 inputs take 12 + 3 vertices, not 12": vertices == circuit.size + 3,
    }
    shown = ", ".join(
        f"{edges} edges, from {total:g}: {least:.3f}" for (edges, total), least in found.items()
    )
    return holds_corrected(
        checks,
        stated="at most b new vertices; derivatives 0 and outputs right if the noise on an edge is below "
        "1/12 in sum",
        measured=f"least total input by number of edges and by that without noise: {shown}; flat from 1.5",
        correction="The proof adds a vertex for each input besides one for each gate: at most b + m new "
        "vertices. A vertex with four edges and least total input 2, such as the second one of an XOR, would "
        f"be left with {2 - 7 * NOISE_OF_LEMMA_5:.3f} < 3/2, for noise takes up to 1/6 for each edge; so "
        "its weights are doubled here.",
        least=min(found.values()),
    )


def least_inputs(net: NoisyNet, noise: float) -> dict[tuple[int, float], float]:
    """By number of edges and least total input without noise: the least with it, over all vertices that
    compute, all values that they can read, and all signs."""
    graph, weights = net.graph, np.array(net.weights, np.float64)
    inner: set[int] = {graph.vertices - 1, *components.parents(graph, graph.vertices - 1)}
    readers: set[int] = set()
    for one in components.paths(graph, 5, 4):
        vr, *tells = _reader(graph, one)
        inner |= {*one.vertices[1:], *one.controls, vr}
        readers |= set(tells)
    found: dict[tuple[int, float], float] = {}
    for vertex in range(graph.inputs, graph.vertices):
        if vertex in inner or vertex in readers:
            continue
        own = components.parents(graph, vertex)
        sizes = {v: 1.0 if v < graph.inputs else 2.0 for v in own}
        plain, disturbed = np.inf, np.inf
        for values in _readings(graph, weights, list(own)):
            total = abs(sum(weights[e] * values[v] for v, e in own.items()))
            plain = min(plain, total)
            disturbed = min(disturbed, total - noise * sum(sizes.values()))
        key = (len(own), float(plain))
        found[key] = min(found.get(key, np.inf), float(disturbed))
    return dict(sorted(found.items()))


def _readings(graph: Graph, weights: np.ndarray, vertices: list[int]) -> Iterator[dict[int, float]]:
    """All values that these vertices can have together; one that reads only others of them follows them."""
    others = {0, *vertices}
    follows = [
        v
        for v in vertices
        if v >= graph.inputs and len(vertices) > 2 and set(components.parents(graph, v)) < others - {v}
    ]
    free = [v for v in vertices if v and v not in follows]
    for signs in product((-1.0, 1.0), repeat=len(free)):
        values = {0: 1.0} | {
            v: sign * (1 if v < graph.inputs else 2) for v, sign in zip(free, signs, strict=True)
        }
        for v in sorted(follows):
            total = sum(weights[e] * values[s] for s, e in components.parents(graph, v).items())
            values[v] = 2.0 * np.sign(total)
        yield values


CASE = ([[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0]], [1, 1, 0, 0, 1, 1])


@PAPER.claim("Lemma 6", "A net that memorises t samples by noisy SGD and computes any function of them")
def lemma_6(long: bool) -> Outcome:
    noise, bits, samples = float(NOISE["decimal"]), 2, 3
    compiled = compile(
        parity(bits), "emulator", form="noise-tolerant", samples=samples, arithmetic="decimal", noise=noise
    )
    report = verify(compiled, [(*CASE, 1, False)])
    carry = compiled.start(*CASE, 1, False)
    off_half, off_answer = 0.0, 0.0
    for t, y in enumerate(CASE[1]):
        carry = compiled.net.step(carry)
        if t < samples:
            off_half = max(off_half, abs(carry.output - 0.5))
        else:
            off_answer = max(off_answer, abs(carry.output - (2 * y - 1)))
    with localcontext(prec=DIGITS):
        from_n = 2**67 * 3**6
        enough = Decimal(1) / Decimal(from_n) ** 2 <= power(-134, -11)
        limit = (power(-123, -12) - 2 * power(-134, -11)) * power(201, 27)
    checks = {
        "memory and answers are the learner's after every step": report.agreed,
        "the output is 1/2 while it memorises": off_half < 1e-12,
        "then within 1/2 of the answer: 1 - (49/50)^3": off_answer < 0.5
        and abs(off_answer - (1 - 0.98**3)) < 1e-9,
        "noise of 1/(n^2 t) is within Lemma 4 from n = 2^67 3^6 on, as printed": enough,
        "the printed 2^-201 3^-27 n + 2 epsilon <= epsilon'/3 ends at some n below 2^79 3^15": Decimal(from_n)
        < limit
        < power(79, 15),
    }
    return holds_in_part(
        checks,
        stated="output within 1/2 of 2h - 1 with noise of 1/(n^2 t) on every weight, for large n",
        measured=f"parity of {bits} bits from {samples} samples, noise {noise:.1e}: output off by "
        f"{off_answer:.3f}; as printed the argument covers {from_n:.1e} < n < {limit:.1e}",
        part=f"Small n with Lemma 4's own noise, since 1/n^2 falls below it only from n = {from_n:.1e} on. "
        "For still larger n the contributions of n components must be bounded by the actual "
        "noise, 1/n^2, not by 2^-201 3^-27 each.",
        off=off_answer,
    )


@PAPER.claim("Remark 13", "No weight ever exceeds the constant 2^242 3^25")
def remark_13(long: bool) -> Outcome:
    compiled = compile(parity(2), "emulator", form="noise-tolerant", samples=3, arithmetic="decimal")
    carry, largest = compiled.start(*CASE, 1, False), Decimal(0)
    first = max(abs(w) for w in carry.weights)
    with localcontext(prec=DIGITS):
        for _ in CASE[1]:
            carry = compiled.net.step(carry)
            largest = max(largest, *(abs(w) for w in carry.weights))
        bound = power(242, 25)
        change = 24 * RATE
        checks = {
            "24 gamma < 2^242 3^25": change < bound,
            "the largest weight of the run is below it": largest < bound,
            "and far above all weights at the start: the edges of the output controls do move": largest
            > 1000 * first,
            "by at most 24 gamma": largest <= change + 1,
        }
    return holds(
        checks,
        stated="none of the edge weights goes above 2^242 3^25",
        measured=f"largest weight {largest:.2e}, 24 gamma = {change:.2e}, bound {bound:.2e}",
        largest=float(largest),
    )
