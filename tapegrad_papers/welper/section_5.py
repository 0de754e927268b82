"""Section 5, the network behind the main result: labels, switches, the gradient identity and the number of
layers."""

import jax
import jax.numpy as jnp
import numpy as np

from tapegrad._precision import in_double
from tapegrad.networks.backends.jax import function_of
from tapegrad.targets.descent import loss as switches
from tapegrad.targets.descent.layers import layers, network_layers
from tapegrad.targets.descent.loss import Weights
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended import Training
from tapegrad.targets.tape.net import TapeNet
from tapegrad_papers.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.welper import PAPER
from tapegrad_papers.welper.runs import (
    EXPECTED_LAYERS,
    PERPENDICULAR,
    Y,
    iterates,
    last_numbers,
    paper_layers,
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
    u, epsilon = np.array([[1.0, -2.0, 3.0]]), 0.5
    zero, labels = np.zeros((1, 3)), np.array([[0.5, 0.5, 0.5]])
    switch = function_of(lambda a, b: switches.label_switch(a, b, epsilon))

    read = unmoved = still = True
    random = np.random.default_rng(0)
    all_tie, ties = True, 0
    samples = [Y, *random.integers(-8, 8, (6 if long else 2, 2, 1)) / 2]
    for y in [y for y in samples if y.any()]:
        extended = last_numbers(y)
        net, before = extended.net, extended.start()
        first = net.gradient(before)
        all_tie &= not np.any(first.s)
        ties = first.s.size
        after = net.step(before)
        read &= np.array_equal(after.weights.z, y) and np.array_equal(first.z, -y)
        pairs = zip(before.weights[:3], after.weights[:3], strict=True)
        unmoved &= all(np.array_equal(a, b) for a, b in pairs)
        # The start is the first vertex, which any argmin over ties may take: so from another one as well.
        elsewhere = before.weights._replace(s=np.roll(before.weights.s, 5))
        unmoved &= np.array_equal(net.step(Descent(elsewhere, 0)).weights.s, elsewhere.s)
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
    net = extended.net
    assert isinstance(net, TapeNet)
    given = net.all_tapes(carry)[:, : net.read_only]
    loss = function_of(net.error.network.machine)(s, jnp.concatenate([given, T], axis=1), H)
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
    f, low, high = np.array([[4.0, 5.0]]), 1.0, 2.0
    switch = function_of(lambda a, b: switches.halt_switch(a, b, low, high))
    halted, running = (np.array([[0.0, np.sqrt(2 * size)]]) for size in (0.999 * low, 1.001 * high))
    extended = last_numbers()
    net, run = extended.net, iterates(extended)
    bounds = net.error.network.thresholds
    sizes = [2 * float(_f_tm(extended, c, c.weights.s, c.weights.T, c.weights.H)[0]) for c in run[1:]]
    least = min(sizes[:-1], default=0.0)
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
        "(29): |f_TM|^2 > 2 B_high before the halt": least > 2 * float(bounds.high),
        "(29): |f_TM|^2 < 2 B_low at the halt": sizes[-1] < 2 * float(bounds.low),
        "out = f_TM at every step before the halt": out_is_f_tm,
        "out = f_theta after it": np.array_equal(
            outputs[-1], extended.primary_output(extended.theta(run[-1]))
        ),
    }
    return holds(
        checks,
        stated="(27), (28) and |f_TM|^2 > 2 B_high for k < K, < 2 B_low for k = K",
        measured=f"{len(run) - 1} steps: |f_TM|^2 / 2 from {least / 2:,.0f} while running, "
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
        extended = last_numbers(y)
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


@PAPER.claim("Section 5.5", "The extended network has at most 12 layers beside the primary network")
def section_5_5(long: bool) -> Outcome:
    extended = last_numbers()
    weights, numbers = extended.start().weights, (1, 2)
    weights = weights._replace(T=np.zeros_like(weights.H))  # with the tape of the data
    network, shapes = extended.net.error.network, Weights(*map(np.shape, weights))
    one_at_a_time = len(network_layers(network.machine, shapes))
    perpendicular = len(layers(lambda z: switches.orthogonal(z, 0.5), numbers))
    loss = len(layers(network.machine, *shapes[:3]))
    label = len(layers(lambda u, z: switches.label_switch(u, z, 0.5), numbers, numbers))
    halt = len(layers(lambda f, u: switches.halt_switch(f, u, 1.0, 2.0), numbers, numbers))
    traced, _ = paper_layers(extended.net, weights)
    in_sequence = label - 1 + halt - 1 + 1 + PERPENDICULAR  # a switch's product is no layer in the sum
    checks = {
        "in the paper's units the network as traced has 11 in a row": traced == EXPECTED_LAYERS,
        "the paper's sum of all its parts, one after the other, is 12": in_sequence == 12,
        "with one non-linearity in each layer it has more": one_at_a_time > 12,
        "f_perp: five layers of two": perpendicular == 2 * PERPENDICULAR,
        "a switch: three, and a product": label == halt == 3 + 1,
        "the machine's loss: three, beside f_perp": loss == 3,
        "nothing else": one_at_a_time == perpendicular + 1 + halt + 1,
    }
    return holds_corrected(
        checks,
        stated="at most 12 layers: 3 for each switch, 1 for the product, 5 for f_perp",
        measured=f"traced: {traced} in the paper's units, one switch beside the rest; {one_at_a_time} with "
        f"one non-linearity in each layer, {perpendicular} of them in f_perp",
        correction=f"The sum 3 + 3 + 1 + 5 is {in_sequence}, so the corollaries' 'less than 12' needs one "
        "switch beside the rest. A layer here may hold several non-linearities: f_perp compares, selects, "
        "multiplies and divides.",
        paper_units=traced,
        nonlinear_depth=one_at_a_time,
    )
