"""Noise-tolerant memory, the paper's Definition 7 and Lemmas 4 to 6, checked edge by edge.

The algebra of the weights is re-derived to 60 digits. The vertices that compute are those that write one
sample after the other, and the learner's circuit, unrolled over all samples that were written.
"""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.fields import array, number, text, whole
from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, require
from tapegrad_check.graph import Graph as Network
from tapegrad_check.sources import Learner
from tapegrad_check.targets.emulator_loss import cube_with, edges_of, require_emulation
from tapegrad_check.targets.exact_memory import FLAT_FROM
from tapegrad_check.targets.vertices import Computation, Graph

CLOSE = Decimal(10) ** -60
NOISY_ENTRIES = {"memory", "arithmetic", "noise", "seed", "weights"}
DEAD_ZONES = {"decimal": (-121, -9), "double": (-82, -9)}
"""Exponents of 2 and 3: up to this total input the activation is 0."""
NOISE = {"decimal": (-134, -11), "double": (-85, -9)}
"""The largest sum of the noise on a weight for which Lemma 4 holds, and what double precision bears."""


def check_noise_tolerant(
    config: dict[str, Any],
    arrays: Arrays,
    claims: dict[str, Any],
    learner: Learner | None,
    network: Network,
) -> Checked:
    """Every edge of every component and of the output, the vertices that compute, and their learner."""
    require(config.keys() == NOISY_ENTRIES, "the net has other entries than one with noise-tolerant memory")
    require(arrays.keys() == NOISY_ARRAYS.keys(), "the net has other arrays than one with such a memory")
    for name, (dtype, dimensions) in NOISY_ARRAYS.items():
        array(arrays, name, dtype, (None,) * dimensions)
    edges, given = edges_of(network, 1)  # the random bit, no guess
    bits, samples = given - 1, len(arrays["written"])
    require(samples >= 1, "the net memorises nothing")
    graph, is_weight = _weights(config, arrays | edges, bits)
    with localcontext(prec=80):
        dead = float(Decimal(2) ** DEAD_ZONES["double"][0] * Decimal(3) ** DEAD_ZONES["double"][1])
        rate = float(_rate())
    require_emulation(network, "float64", cube_with(dead), rate, {})
    noisy = _noise(config, claims, samples)
    first = graph.given + 5 * np.arange(2 * bits * samples)
    path = graph.last - 4 - samples - 6 * len(first)
    begin = graph.given + 5 * len(first)
    require(begin <= path, "the network lacks vertices")
    _noisy_components(graph, is_weight, first, path)
    computing = np.concatenate(
        [
            np.arange(begin, path),
            (path + 6 * np.arange(len(first))[:, None] + np.arange(2)).ravel(),
            np.arange(graph.last - 4, graph.last - 1),
        ]
    )
    margin = graph.flat_margin(computing, FLAT_FROM)
    require(margin >= 0.5, "a vertex that computes is not flat")
    statements = [
        "the network is (output - label)^2 of these vertices, in doubles, and SGD trains every weight",
        f"each of {len(computing):,} vertices that compute is flat on all Boolean inputs, by {margin:g}",
        f"all {len(first):,} components have the weights of Definition 7",
        "controls close a component before it is written and after; writing doubles its weights (Lemma 4)",
        *noisy,
    ]
    nodes = graph.nodes()
    inputs, written, labels = (nodes.variables(n) for n in (bits, len(first), len(first)))
    known = {1 + i: bit for i, bit in enumerate(inputs)}
    for place, one, label in zip(first.tolist(), written, labels, strict=True):
        known |= {place + 3: one, place + 4: label}
    compute = Computation(graph, nodes, known)
    compute.run(computing.tolist())
    _writing(graph, compute, path, inputs, written, samples)
    if learner is not None:
        same = learner.bits + 1 == bits and len(learner.first) == arrays["memories"].shape[1]
        require(same, "the learner has other inputs or another memory")
        require(arrays["first"].tolist() == list(learner.first), "the first memory is not the learner's")
        _unrolled(graph, compute, arrays, learner, (inputs, written, labels))
        statements.append(
            f"memories and answers, after each of {samples:,} samples and at the end, are the functions of "
            "the learner's circuit, unrolled; the first memory is the learner's"
        )
    return Checked(statements, OWN_TABLE) if noisy else Checked(statements)


NOISY_ARRAYS = {
    "weights": (np.float64, 1),
    "kinds": (np.int32, 1),
    "written": (np.int32, 1),
    "memories": (np.int32, 2),
    "answers": (np.int32, 2),
    "first": (np.uint8, 1),
}


def _weights(config: dict[str, Any], arrays: Arrays, bits: int) -> tuple[Graph, dict[str, NDArray[np.bool_]]]:
    """The graph, and for every weight of Definition 7 which edges have it, to 60 digits."""
    table = [Decimal(text(weight, "a weight")) for weight in config["weights"]]
    kinds = arrays["kinds"]
    require(all(weight.is_finite() for weight in table), "a weight is not finite")
    require(((kinds >= 0) & (kinds < len(table))).all(), "an edge has a weight that is not in the list")
    weights = np.array(table, np.float64)[kinds]
    require(np.array_equal(weights, arrays["weights"]), "the weights are not those of the list")
    graph = Graph.of(arrays, 1 + bits, weights)
    with localcontext(prec=80):
        two, three, root = Decimal(2), Decimal(3), Decimal(3).sqrt()
        path = [1 / (4 * root**t) for t in range(5)]
        before, after = -(two**-81) * three**-9, -(two**-41) * three**-9
        low, high = two**-21 / (3 * root), two**-15 / (3 * root)
        _algebra(path, before, after)
        wanted = {f"path {t}": weight for t, weight in enumerate(path)} | {
            "read": Decimal(128),
            "tell": 4 / (high - low),
            "level": -2 * (high + low) / (high - low),
            "before": before,
            "after": after,
            "hold": two ** (two / 3) / 4,  # less 1e-87 for each bit, which 60 digits do not show
            "answer": Decimal("0.49"),
            "half": Decimal("0.5"),
            "one": Decimal(1),
        }
        return graph, {
            name: np.array([abs(weight / ideal - 1) < CLOSE for weight in table])[kinds]
            for name, ideal in wanted.items()
        }


def _noise(config: dict[str, Any], claims: dict[str, Any], samples: int) -> list[str]:
    """The claims, and the settings of the noise; a sentence if there is more of it than the proof allows."""
    arithmetic = config["arithmetic"]
    require(isinstance(arithmetic, str) and arithmetic in DEAD_ZONES, "the arithmetic is unknown")
    require(claims.keys() == {"memory", "samples", "flat_margin", "dead_zone"}, "the claims are others")
    counted = claims["samples"] == samples and claims["flat_margin"] == 0.5
    require(counted, "the certificate is for another number of samples")
    with localcontext(prec=80):
        dead, most = (
            Decimal(2) ** two * Decimal(3) ** three
            for two, three in (DEAD_ZONES[arithmetic], NOISE[arithmetic])
        )
        claimed = Decimal(text(claims["dead_zone"], "the dead zone"))
        require(abs(claimed / dead - 1) < CLOSE, "the dead zone is another")
        whole(config["seed"], "the seed")
        noise = Decimal(number(config["noise"], "the noise"))
        require(noise >= 0, "the noise is negative")
        return (
            [] if noise <= most else [f"there is more noise than Lemma 4 allows, {noise:.3g} over all steps"]
        )


def _noisy_components(
    graph: Graph, is_weight: dict[str, NDArray[np.bool_]], first: NDArray[Any], path: int
) -> None:
    """v_1, v_2, v_r and the two vertices that read them; then controls, v_3 and v_4; then the output."""
    sources = graph.sources

    def expect(vertices: NDArray[Any], *edges: tuple[Any, str]) -> None:
        found = graph.edges(vertices, len(edges))
        for place, (source, name) in enumerate(edges):
            require((sources[found[:, place]] == source).all(), f"{name}: an edge comes from elsewhere")
            require(is_weight[name].take(found[:, place]).all(), f"{name}: an edge has another weight")

    v1, v2, vr = first, first + 1, first + 2
    expect(v1, (0, "path 0"))
    expect(v2, (v1, "path 1"))
    expect(vr, (v1, "read"))
    expect(first + 3, (v2, "tell"), (0, "level"))
    expect(first + 4, (vr, "tell"), (0, "level"))
    rest = path + 6 * np.arange(len(first))
    expect(rest + 2, (rest + 1, "half"), (0, "one"))
    expect(rest + 3, (first + 3, "half"), (0, "one"))
    expect(rest + 4, (v2, "path 2"))
    expect(rest + 5, (rest + 4, "path 3"), (rest + 2, "before"), (rest + 3, "after"))
    holds = np.arange(path + 6 * len(first), graph.last - 4)
    moments = sources[graph.edges(holds, 2)[:, 0]]
    expect(holds, (moments, "half"), (0, "one"))
    expect(np.array([graph.last - 1]), (graph.last - 4, "half"), (graph.last - 2, "half"))
    shares = [*((vertex, "path 4") for vertex in (rest + 5).tolist()), *((h, "hold") for h in holds.tolist())]
    expect(np.array([graph.last]), *shares, (graph.last - 1, "answer"))


def _row(literals: list[int], sample: int, samples: int) -> list[int]:
    """What belongs to one sample: for each of its bits the component of 0, then that of 1."""
    each = len(literals) // samples
    return literals[sample * each : (sample + 1) * each]


def _folded_or(nodes: Nodes, literals: list[int]) -> int:
    found = literals[0]
    for literal in literals[1:]:
        found = nodes.or_(found, literal)
    return found


def _writing(
    graph: Graph, compute: Computation, path: int, inputs: list[int], written: list[int], samples: int
) -> None:
    """At each step the next sample is written: the component of each bit's value, and no other."""
    nodes = compute.nodes
    full = [_folded_or(nodes, _row(written, t, samples)) for t in range(samples)]
    now = [full[t] ^ 1 if t == 0 else nodes.and_(full[t] ^ 1, full[t - 1]) for t in range(samples)]
    holds = np.arange(path + 6 * len(written), graph.last - 4)
    seen = [compute[moment] for moment in graph.sources[graph.edges(holds, 2)[:, 0]].tolist()]
    wanted = list(now)
    for k, own in enumerate(written):
        t, i, value = k // (2 * len(inputs)), k // 2 % len(inputs), k % 2
        writes = nodes.and_(now[t], inputs[i] if value else inputs[i] ^ 1)
        seen += [compute[path + 6 * k], compute[path + 6 * k + 1]]
        wanted += [writes, nodes.or_(own, writes) ^ 1]
    nodes.require_same(seen, wanted, "samples are not written one after the other")


def _unrolled(
    graph: Graph,
    compute: Computation,
    arrays: Arrays,
    learner: Learner,
    variables: tuple[list[int], list[int], list[int]],
) -> None:
    """The learner on all samples memorised, each learned from, and then on the present one."""
    inputs, written, labels = variables
    nodes, circuit, samples = compute.nodes, learner.circuit, len(arrays["written"])
    require((samples + 1) * len(circuit.kinds) <= graph.last, "the network lacks vertices")
    require(arrays["memories"].shape[0] == samples + 1, "there are other memories than one for each sample")
    require(arrays["answers"].shape == (samples + 1, 2), "there are other answers than one for each sample")
    memory = [TRUE if bit else FALSE for bit in learner.first]
    wanted: list[int] = []
    full = [_folded_or(nodes, _row(written, t, samples)) for t in range(samples)]
    for t in range(samples):
        stored, told = _row(written, t, samples), _row(labels, t, samples)
        label = nodes.or_(nodes.and_(stored[0], told[0]), nodes.and_(stored[1], told[1]))
        said, finished, *new = nodes.outputs(circuit, [*memory, *stored[1::2], label ^ 1])
        wanted += [*memory, said, finished]
        wrong = nodes.xor(said, label)
        flips = [nodes.xor(old, after) for old, after in zip(memory, new, strict=True)]
        memory = [nodes.xor(bit, nodes.and_(wrong, flip)) for bit, flip in zip(memory, flips, strict=True)]
    said, finished, *_ = nodes.outputs(circuit, [*memory, *inputs, FALSE])
    wanted += [*memory, said, finished]
    says_1 = nodes.and_(full[-1], said)
    wanted += [*full, says_1, nodes.or_(says_1, full[-1] ^ 1)]
    rows = np.concatenate([arrays["memories"], arrays["answers"]], axis=1)
    places = [*rows.ravel().tolist(), *arrays["written"].tolist(), graph.last - 4, graph.last - 2]
    seen = [compute[place] for place in places]
    nodes.require_same(seen, wanted, "the net does not compute what the learner does")


def _rate() -> Decimal:
    """2^(716/3) 3^24."""
    return Decimal(2) ** (Decimal(716) / 3) * Decimal(3) ** 24


def _algebra(path: list[Decimal], before: Decimal, after: Decimal) -> None:
    """What v_4 gets, open, is -2 times the first control's weight; after doubling, of the second's. The rate
    2^(716/3) 3^24 adds to each weight once its size at output 1/2 and label 1."""
    for factor, control in ((1, before), (2, after)):
        value = Decimal(1)
        for weight in path[:3]:
            value = (factor * weight * value) ** 3
        require(abs(factor * path[3] * value / (-2 * control) - 1) < CLOSE, "a control does not close")
    with localcontext(prec=80):
        rate = _rate()
        slope = 3 * Decimal(2) ** (Decimal(-2) / 3)  # of the cube at its value 1/2; the loss has slope -1
        values = [Decimal(1)]
        for weight in path[:4]:
            values.append((weight * values[-1]) ** 3)
        for t in range(5):
            change = rate * slope * path[4] * values[4] * Decimal(3) ** (4 - t) / path[t]
            require(abs(change / path[t] - 1) < CLOSE, "writing does not double a weight")
