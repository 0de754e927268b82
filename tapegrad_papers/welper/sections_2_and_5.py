"""Section 2, the main result and what it costs, and section 5, the network behind it: labels, switches, the
gradient identity and the number of layers."""

import jax
import jax.numpy as jnp
import numpy as np

from tapegrad._compile import compile
from tapegrad._precision import in_double
from tapegrad.errors import BrokenNet
from tapegrad.machines.library import busy_beaver
from tapegrad.targets.descent import loss as switches
from tapegrad.targets.descent.loss import deepest, widest
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended import Extended, Training
from tapegrad.targets.extended.examples import CORNERS, EXAMPLES
from tapegrad.targets.simplex import target as simplex_target
from tapegrad.targets.simplex.build import all_configurations
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape import target as tape_size
from tapegrad.targets.tape.build import build_graph, choose
from tapegrad.targets.tape.net import TapeNet
from tapegrad_papers.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.welper import PAPER
from tapegrad_papers.welper.runs import (
    EXTENDED_CELLS,
    X,
    Y,
    copying,
    data_sets,
    first_numbers,
    iterates,
    nonlinear_depth,
    random_tape_machines,
    tape_machine,
    trace_tape,
)


def _rosenblatt() -> np.ndarray:
    """Three epochs of the perceptron rule on OR, in plain Python."""
    w = np.zeros(3)
    for _ in range(3):
        for (a, b), label in zip(CORNERS, [0, 1, 1, 1], strict=True):
            sample = np.array([a, b, 1])
            w = w + (label - int(w @ sample >= 0)) * sample
    return w


def _copies(network: Extended, x: np.ndarray, y: np.ndarray, machine_steps: int) -> bool:
    """Whether training on these data gives their first three numbers, and a network with these weights."""
    try:
        trained = network.train(x, y, engine="reference")
    except BrokenNet:  # training ended where the machine does not
        return False
    theta = np.array([x[0, 0], x[0, 1], x[1, 0]])
    outputs = network.predict(trained, -x)
    return (
        np.array_equal(trained.theta, theta)
        and trained.steps == machine_steps + 1
        and np.array_equal(outputs, (-x @ theta[:2] + theta[2])[:, None])
    )


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
    sets = list(data_sets())
    for number, (x, y) in enumerate(sets, 1):
        copied = _copies(extended.extended, x, y, machine_steps)
        checks[f"the same network on data set {number}: theta, steps, and outputs for other inputs"] = copied
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
        measured=f"{last.steps} steps for {machine_steps} of the machine, outputs equal bit for bit, on each "
        f"of {len(sets)} data sets by one network",
        correction="(3) is s + [argmin - s]; the printed minus sign gives 2 s - argmin, outside the simplex. "
        "B_stop must bound 1/2 |f - y|^2, not |f - y|. There must be nm >= 2 label entries, for f_perp.",
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
        counted = tape_size.layers(vertices, edges, tapes, EXTENDED_CELLS, label_numbers=2)
        trained = vertices + 2 * tapes * EXTENDED_CELLS
        rows.append(
            {
                "machine": machine.name,
                "states": len(machine.states),
                "trained": trained,
                "printed": 2**tapes * len(machine.states) + 2 * tapes * EXTENDED_CELLS,
                "widest": widest(counted),
                "corrected": 2**tapes * len(machine.states) * (1 + 3 * 2**tapes)
                + 4 * tapes * EXTENDED_CELLS
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
        measured=f"{first['layers']} layers; for |Q| = {first['states']}, d = 2, tau = {EXTENDED_CELLS}: "
        f"{first['trained']} weights, widest layer {first['widest']}, printed bound {first['printed']}",
        correction="The bound counts the weights s, T, H, with |Q| tripled by (20). The layer of ReLUs has "
        "one for every vertex and three for every edge of l_S, and 2^d edges leave each vertex: its width is "
        "up to (1 + 3 2^d) 2^d |Q| + 4 d tau + O(nm), still linear in |Q| and tau.",
        instances=rows,
        labels=Y.size,
    )


def _jacobians_are(function, at, in_first: float, in_second: float) -> bool:
    """Whether the Jacobians in both arguments are these multiples of the identity, exactly."""
    size = at[0].size
    found = jax.jacobian(function, argnums=(0, 1))(*at)
    wanted = (in_first * np.eye(size), in_second * np.eye(size))
    return all(
        np.array_equal(np.asarray(f).reshape(size, size), w) for f, w in zip(found, wanted, strict=True)
    )


@PAPER.claim("Section 5.2", "The first gradient step copies the labels into z and moves nothing else")
@in_double
def section_5_2(long: bool) -> Outcome:
    u, epsilon = np.array([1.0, -2.0, 3.0]), 0.5
    zero, labels = np.zeros(3), np.array([0.5, 0.5, 0.5])

    def switch(a, b):
        return switches.label_switch(a, b, epsilon)

    read = unmoved = still = True
    random = np.random.default_rng(0)
    all_tie, ties = True, 0
    samples = [Y, *random.integers(-8, 8, (6 if long else 2, 2, 1)) / 2]
    for y in [y for y in samples if y.any()]:
        extended = first_numbers(y)
        net, before = extended.net, extended.start()
        first = net.gradient(before)
        all_tie &= not np.any(first.s)
        ties = first.s.size
        after = net.step(before)
        read &= np.array_equal(after.weights.z, y) and np.array_equal(first.z, -y)
        pairs = zip(before.weights[:3], after.weights[:3], strict=True)
        unmoved &= all(np.array_equal(a, b) for a, b in pairs)
        for carry in (after, net.advance(after, 5)):
            still &= np.array_equal(carry.weights.z, y) and not np.any(net.gradient(carry).z)
    checks = {
        "s_init(u, 0) = 0, gradients 0 in u and I in z": np.array_equal(switch(u, zero), zero)
        and _jacobians_are(switch, (u, zero), 0, 1),
        "s_init(u, z) = u, gradients I and 0, for |z|^2 >= epsilon": np.array_equal(switch(u, labels), u)
        and _jacobians_are(switch, (u, labels), 1, 0),
        "the gradient in z is -y, and after one step z = y exactly": read,
        "s, T and H have not moved": unmoved,
        "z stays, and its gradient is 0, in later steps": still,
        "in the first step every vertex of the simplex ties": all_tie and ties > 1,
    }
    return holds_corrected(
        checks,
        stated="z_0 = 0, z_1 = y, and s_1 = s_0, T_1 = T_0, H_1 = H_0",
        measured=f"z = y bit for bit; {ties} vertices tie in the first step",
        correction="In the first step the gradient in s is 0, so argmin is all of S: s_1 = s_0 needs the "
        "rule that a point stays where no vertex is strictly better. z has the shape n x m of the labels.",
        ties=ties,
    )


def _f_tm(extended: Training, carry: Descent, s, T, H):
    """The machine's branch of the network, written out here: sqrt(2 l_TM) f_perp(z)."""
    network = extended.net.error.network
    given = extended.net.all_tapes(carry)[:, : extended.net.read_only]
    loss = network.machine(s, jnp.concatenate([given, T], axis=1), H)
    y = extended.y.ravel()
    axis = np.array([-y[1], y[0]]) / np.linalg.norm(
        y
    )  # in the plane there are two unit vectors orthogonal to y
    return loss, jnp.sqrt(2 * loss) * axis


@PAPER.claim(
    "Section 5.3", "The switch s_net passes f_TM while the machine runs and f_theta once it has halted"
)
@in_double
def section_5_3(long: bool) -> Outcome:
    f, low, high = np.array([4.0, 5.0]), 1.0, 2.0

    def switch(a, b):
        return switches.halt_switch(a, b, low, high)

    halted, running = np.array([0.0, np.sqrt(2 * 0.999 * low)]), np.array([0.0, np.sqrt(2 * 1.001 * high)])
    extended = first_numbers()
    net, run = extended.net, iterates(extended)
    bounds = net.error.network.thresholds
    sizes = [2 * float(_f_tm(extended, c, c.weights.s, c.weights.T, c.weights.H)[0]) for c in run[1:]]
    outputs = [extended.forward(carry) for carry in run]
    out_is_f_tm = all(
        np.isclose(np.sum(out**2), size, rtol=1e-12)
        for out, size in zip(outputs[1:-1], sizes[:-1], strict=True)
    )
    checks = {
        "(27): s_net = f, gradients I and 0, for |u|^2 < 2 B_low": np.array_equal(switch(f, halted), f)
        and _jacobians_are(switch, (f, halted), 1, 0),
        "(28): s_net = u, gradients 0 and I, for |u|^2 > 2 B_high": np.array_equal(
            switch(f, running), running
        )
        and _jacobians_are(switch, (f, running), 0, 1),
        "(29): |f_TM|^2 > 2 B_high before the halt": min(sizes[:-1]) > 2 * float(bounds.high),
        "(29): |f_TM|^2 < 2 B_low at the halt": sizes[-1] < 2 * float(bounds.low),
        "out = f_TM at every step before the halt": out_is_f_tm,
        "out = f_theta after it": np.array_equal(
            outputs[-1], extended.primary_output(extended.theta(run[-1]))
        ),
    }
    return holds(
        checks,
        stated="(27), (28) and |f_TM|^2 > 2 B_high for k < K, < 2 B_low for k = K",
        measured=f"{len(run) - 1} steps: |f_TM|^2 / 2 from {min(sizes[:-1]) / 2:,.0f} while running, "
        f"{sizes[-1] / 2:,.0f} at the halt; B_low {float(bounds.low):,.0f}, B_high {float(bounds.high):,.0f}",
        sizes=sizes,
        low=float(bounds.low),
        high=float(bounds.high),
    )


@PAPER.claim("Section 5.4", "The gradient of the squared error is the gradient of the machine's loss")
@in_double
def section_5_4(long: bool) -> Outcome:
    worst = worst_33 = 0.0
    compared = 0
    for y in (Y, np.array([[3.0], [-2.5]])):
        extended = first_numbers(y)
        net = extended.net
        for carry in iterates(extended)[1 : None if long else 8]:
            if net.done(carry):
                continue
            s, T, H, _ = carry.weights
            alone = jax.grad(lambda *w, e=extended, c=carry: _f_tm(e, c, *w)[0], argnums=(0, 1, 2))(s, T, H)
            whole = net.gradient(carry)
            for mine, theirs in zip((whole.s, whole.T, whole.H), alone, strict=True):
                scale = max(1.0, float(np.abs(theirs).max()))
                worst = max(worst, float(np.abs(mine - np.asarray(theirs)).max()) / scale)
            loss, f_tm = _f_tm(extended, carry, s, T, H)
            worst_33 = max(worst_33, abs(float(f_tm @ f_tm) / (2 * float(loss)) - 1))
            total = float(loss) + float(np.sum(y**2)) / 2
            worst_33 = max(worst_33, abs(net.loss(carry) / total - 1))
            compared += 1
    checks = {
        "gradients in s, T and H agree through square root, f_perp and both switches": worst < 1e-12,
        "(33): |f_TM|^2 = 2 l_TM, and the loss is l_TM + 1/2 |y|^2": worst_33 < 1e-12,
        "at several steps": compared >= 10,
    }
    return holds(
        checks,
        stated="(out - y)^T grad f_TM = grad l_TM for s, T, H; |f_TM|^2 = 2 l_TM",
        measured=f"{compared} iterates: relative difference {worst:.1g}; (33) {worst_33:.1g}",
        gradient_difference=worst,
        identity_33=worst_33,
        iterates=compared,
    )


PERPENDICULAR = 5
"""Layers of f_perp, in appendix C."""


@PAPER.claim("Section 5.5", "The extended network has at most 12 layers beside the primary network")
@in_double
def section_5_5(long: bool) -> Outcome:
    extended = first_numbers()
    net = extended.net
    graph = net.graph
    counted = tape_size.layers(len(graph.down), len(graph.edge_from), net.tapes, net.cells, Y.size)
    alone = compile(copying(4), "tape", cells=16)  # the same network around an empty primary
    assert isinstance(alone.net, TapeNet)
    network, x = alone.net.error.network, alone.net.error.x
    weights, numbers = alone.start("01011").weights, np.array([[1.0, 0.5]])
    one_at_a_time = nonlinear_depth(lambda weights: network(x, weights), weights)
    perpendicular = nonlinear_depth(lambda z: switches.orthogonal(z, 0.5), numbers)
    loss = nonlinear_depth(network.machine, *weights[:3])
    label = nonlinear_depth(lambda u, z: switches.label_switch(u, z, 0.5), numbers, numbers)
    halt = nonlinear_depth(lambda f, u: switches.halt_switch(f, u, 1.0, 2.0), numbers, numbers)
    # Only f_perp has more than one non-linearity in a layer of the paper's: two in each of its five.
    traced = one_at_a_time - perpendicular + PERPENDICULAR
    checks = {
        "in the paper's units the network as traced has at most 12 in a row": traced <= 12,
        "as many as its list of layers has": traced == deepest(counted),
        "with one non-linearity in each layer it has more": one_at_a_time > 12,
        "f_perp: five layers of two": perpendicular == 2 * PERPENDICULAR,
        "a switch: three, and a product": label == halt == 3 + 1,
        "the machine's loss is no deeper than f_perp": loss <= PERPENDICULAR,
        "nothing else": one_at_a_time == perpendicular + 1 + halt + 1,
    }
    return holds_corrected(
        checks,
        stated="at most 12 layers: 3 for each switch, 1 for the product, 5 for f_perp",
        measured=f"traced: {traced} in the paper's units, one switch beside the rest; {one_at_a_time} with "
        f"one non-linearity in each layer, {perpendicular} of them in f_perp",
        correction="The sum 3 + 3 + 1 + 5 is 12, so the corollaries' 'less than 12' needs one switch beside "
        "the rest. A layer here may hold several non-linearities: f_perp compares, selects, multiplies and "
        "divides.",
        paper_units=traced,
        nonlinear_depth=one_at_a_time,
    )
