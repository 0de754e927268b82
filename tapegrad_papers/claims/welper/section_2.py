"""Section 2: the main result and what it costs."""

import numpy as np

from tapegrad.compile import compile
from tapegrad.machines.library.ready import busy_beaver
from tapegrad.targets.descent.loss import deepest, widest
from tapegrad.targets.extended.examples import CORNERS, EXAMPLES
from tapegrad.targets.simplex import target as simplex_target
from tapegrad.targets.simplex.build import all_configurations
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape import target as tape_size
from tapegrad.targets.tape.build import build_graph
from tapegrad.targets.tape.constants import choose
from tapegrad_papers.claims.ledger import Outcome, holds_corrected
from tapegrad_papers.claims.welper.instances import CELLS, X, Y, copying, first_numbers, iterates
from tapegrad_papers.claims.welper.paper import PAPER
from tapegrad_papers.claims.welper.tracing import random_tape_machines, tape_machine, trace_tape


def _rosenblatt() -> np.ndarray:
    """Three epochs of the perceptron rule on OR, in plain Python."""
    w = np.zeros(3)
    for _ in range(3):
        for (a, b), label in zip(CORNERS, [0, 1, 1, 1], strict=True):
            sample = np.array([a, b, 1])
            w = w + (label - int(w @ sample >= 0)) * sample
    return w


@PAPER.claim("Proposition 2.1", "Training the extended network ends with f_TM(x,y)(x), in k_t + 1 steps")
def proposition_2_1(long: bool) -> Outcome:
    extended = first_numbers()
    net, run = extended.net, iterates(extended)
    last = run[-1]
    theta = np.array([X[0, 0], X[0, 1], X[1, 0]])
    machine_steps = 1 + 12  # one step onto the data, one for each bit
    losses = [net.loss(carry) for carry in run]
    slope = net.gradient(run[1]).s
    s, vertex = np.asarray(run[1].weights.s), np.eye(len(slope))[int(np.argmin(slope))]
    as_printed = s - (vertex - s)
    residual = net.stop
    checks = {
        "theta is what the machine computes": np.array_equal(extended.theta(last), theta),
        "the forward pass is w . x + b": np.array_equal(
            extended.forward(last), (X @ theta[:2] + theta[2])[:, None]
        ),
        "machine steps + 1 gradient steps": last.steps == machine_steps + 1,
        "the loss passes B_stop at the last step only": losses[-1] <= net.stop < min(losses[1:-1]),
        "(3) with its printed sign leaves the simplex": as_printed.min() < 0,
        "|f - y| <= B_stop does not give loss <= B_stop": residual**2 / 2 > net.stop,
    }
    values = {"deviation": net.deviation(last)}
    if long:
        learned = EXAMPLES["perceptron"].run()
        checks["the perceptron rule, by gradient descent"] = np.array_equal(learned.theta, _rosenblatt())
        values["perceptron_steps"] = learned.steps
        searched = EXAMPLES["xor"].run()
        checks["exhaustive search on XOR, by gradient descent"] = searched.loss == 0
        values["xor_steps"] = searched.steps
    return holds_corrected(
        checks,
        stated="F(x, (s_K, t_K)) = f_TM(x,y)(x) after k_t + 1 steps",
        measured=f"{last.steps} steps for {machine_steps} of the machine, outputs equal bit for bit",
        correction="(3) is s + [argmin - s]; the printed minus sign gives 2 s - argmin, outside the simplex. "
        "B_stop must bound 1/2 |f - y|^2, not |f - y|. There must be nm >= 2 label numbers, for f_perp.",
        steps=last.steps,
        machine_steps=machine_steps,
        printed_update_minimum=float(as_printed.min()),
        **values,
    )


@PAPER.claim(
    "Corollary 2.2", "With all configurations as vertices the loss never rises; fewer than 12 layers"
)
def corollary_2_2(long: bool) -> Outcome:
    machine = copying(3)
    word = "0110"
    net = compile(machine, "simplex", inputs=[[word]]).net
    assert isinstance(net, SimplexNet)
    losses = [0.5]  # 1/2 |y|^2: before the first step the network puts out 0
    carry = net.step(net.start(machine.start(word)))
    first = net.loss(carry)
    while not net.done(carry):
        losses.append(net.loss(carry))
        carry = net.step(carry)
    losses.append(net.loss(carry))
    vertices, tapes, cells = net.vertices.cells.shape
    edges = int((net.vertices.successor != np.arange(vertices)).sum())
    counted = simplex_target.layers(vertices, edges, label_numbers=2)
    bound = all_configurations(machine, cells)
    every_pair = bound + bound * (bound - 1) // 2
    checks = {
        "the machine has 2 symbols and d >= 2 tapes": len(machine.alphabet) == 2 and tapes >= 2,
        "from step 1 on the loss falls strictly": bool(np.all(np.diff(losses[1:]) < 0)),
        "as printed, it rises at step 1": first > losses[0],
        "the run is the machine's": carry.steps == sum(1 for _ in machine.run(machine.start(word))),
        "fewer than 12 layers, in the paper's own units": deepest(counted) < 12,
        "narrower than the bound": widest(counted) < bound + 2 * 2,
        "(13) as printed, with a unit for each pair, is wider than the bound": every_pair > bound,
    }
    return holds_corrected(
        checks,
        stated="loss non-increasing; < 12 layers; width < |Q| 2^(d tau) tau^d + O(nm)",
        measured=f"loss {losses[0]:g} -> {losses[1]:g}, then falling to {losses[-1]:g}; "
        f"{deepest(counted)} layers; width {widest(counted)} against {bound:,}",
        correction="The loss is non-increasing from step 1 on; the first step, which reads the labels, adds "
        "l_TM > 0 to 1/2 |y|^2. The width needs B taken out of (13) and only configurations that occur: "
        f"with a unit for every pair of all configurations it would be {every_pair:,}.",
        layers=deepest(counted),
        width=widest(counted),
        bound=bound,
        losses=losses,
    )


@PAPER.claim("Corollary 2.3", "With tapes as weights the size is linear in |Q| and tau")
def corollary_2_3(long: bool) -> Outcome:
    checks, rows = {}, []
    instances = [(tape_machine(copying(3)), 2), *((m, 2) for m, _ in random_tape_machines(2, 2))]
    instances += [(tape_machine(busy_beaver("3x2")), 1)]
    for machine, tapes in instances:
        graph = build_graph(machine, choose(tapes, 0.5))
        vertices, edges = len(graph.down), len(graph.edge_from)
        counted = tape_size.layers(vertices, edges, tapes, CELLS, label_numbers=2)
        trained = vertices + 2 * tapes * CELLS
        rows.append(
            {
                "machine": machine.name,
                "states": len(machine.states),
                "trained": trained,
                "printed": 2**tapes * len(machine.states) + 2 * tapes * CELLS,
                "widest": widest(counted),
                "corrected": 2**tapes * len(machine.states) * (1 + 3 * 2**tapes)
                + 4 * tapes * CELLS
                + 2 * tapes
                + 3,
                "layers": deepest(counted),
            }
        )
    beaver = tape_machine(busy_beaver("3x2"))
    losses = trace_tape(beaver, beaver.start()).losses
    checks = {
        "as many weights as the bound says, |Q| after tripling": all(
            r["trained"] == r["printed"] for r in rows
        ),
        "fewer than 12 layers, in the paper's own units": all(r["layers"] < 12 for r in rows),
        "as printed, the widest layer is wider": all(r["widest"] > r["printed"] + 8 for r in rows),
        "corrected, it is not": all(r["widest"] <= r["corrected"] for r in rows),
        "the loss is not monotone": max(np.diff(losses)) > 0 > min(np.diff(losses)),
    }
    first = rows[0]
    return holds_corrected(
        checks,
        stated="< 12 layers of width < 2^d |Q| + 2 d tau + O(nm)",
        measured=f"{first['layers']} layers; for |Q| = {first['states']}, d = 2, tau = {CELLS}: "
        f"{first['trained']} weights, widest layer {first['widest']}, printed bound {first['printed']}",
        correction="The bound counts the weights s, T, H, with |Q| tripled by (20). The layer of ReLUs has "
        "one for every vertex and three for every edge of l_S, and 2^d edges leave each vertex: its width is "
        "up to (1 + 3 2^d) 2^d |Q| + 4 d tau + O(nm), still linear in |Q| and tau.",
        instances=rows,
        labels=Y.size,
    )
