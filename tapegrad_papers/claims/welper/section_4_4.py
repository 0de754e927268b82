"""Section 4.4: tapes and heads as weights, and the conditions under which descent reads and writes them."""

from collections.abc import Iterator

import equinox as eqx
import numpy as np

from tapegrad.errors import Refused
from tapegrad.lowering.tables import triple_states
from tapegrad.machines.library.ready import busy_beaver
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.targets.tape import constants as tape_constants
from tapegrad.targets.tape.build import build_graph, has_two_cycle
from tapegrad.targets.tape.constants import Constants
from tapegrad.targets.tape.loss import TapeLoss
from tapegrad_papers.claims.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.claims.welper.paper import PAPER
from tapegrad_papers.claims.welper.tracing import random_tape_machines, tape_machine, trace_tape


def _instances(long: bool) -> Iterator[tuple[TuringMachine, Configuration]]:
    beaver = tape_machine(busy_beaver("3x2"))
    yield beaver, beaver.start()
    for tapes in (1, 2, 3, 4) if long else (1, 2):
        yield from random_tape_machines(8 if long else 3, tapes)


def _conditions_18(b: float, d: int) -> tuple[bool, bool, bool]:
    return b**3 >= (b**3 + d * b) / 2, b**3 / 2 - d * b >= 2 * d * b**2, b**2 > b


def _with_b(tapes: int, b: float) -> Constants:
    """Constants with another b, for the loss alone, where c and the thresholds do not matter."""
    return Constants(tapes, b, c=0, low=0, high=0, exact=False)  # type: ignore[arg-type]


@PAPER.claim("Condition (18)", "How large b must be for the control state to outweigh the tape symbols")
def condition_18(long: bool) -> Outcome:
    chosen = {d: tape_constants.choose(d, 0.5).b for d in range(1, 9)}
    smallest = {d: next(b for b in range(1, 200) if all(_conditions_18(b, d))) for d in (1, 2)}
    wrong, steps = {smallest[2]: 0, 1: 0, 1 / 8: 0}, 0
    for machine, start in random_tape_machines(6, 2):
        traces = {b: trace_tape(machine, start, _with_b(2, b)) for b in wrong}
        for b, trace in traces.items():
            wrong[b] += trace.steps - trace.agreed
        steps += traces[1].steps
    gap = {d: b**3 - 8 * b**2 * d - 3 * d for d, b in chosen.items()}
    checks = {
        "the chosen b satisfies all three lines for 1 to 8 tapes": all(
            all(_conditions_18(b, d)) for d, b in chosen.items()
        ),
        "and leaves a gap between halted and running, b^3 > 8 b^2 d + 3 d": min(gap.values()) > 0,
        "the smallest b that (18) allows traces every step": wrong[smallest[2]] == 0 < steps,
        "b = 1/8 does not: there keeping a symbol outweighs reading the next": wrong[1 / 8] > 0,
    }
    return holds(
        checks,
        stated="b^3 >= (b^3 + d b)/2, b^3/2 - d b >= 2 d b^2, b^2 > b",
        measured=f"b = {list(chosen.values())} for 1 to 8 tapes; smallest b for two tapes: {smallest[2]}, "
        f"wrong steps of {steps}: {wrong}",
        note="The proof uses (b^3 - d b)/2 >= 2 d b^2, which is weaker. (18) is sufficient, not necessary: "
        "b = 1 violates it and still traces. That a halted state costs less than any other needs "
        "b^3 > 8 b^2 d + 3 d besides.",
        chosen=chosen,
        smallest=smallest,
        wrong_steps=wrong,
        steps=steps,
    )


def _is_refused(machine: TuringMachine) -> bool:
    """Where (v, w) and (w, v) are both edges, (19) asks for w_vw and for w_wv / 2 at the same point."""
    try:
        build_graph(machine, tape_constants.choose(machine.tapes, 0.5))
    except Refused:
        return has_two_cycle(machine)
    return False


@PAPER.claim("Condition (20)", "No two vertices lead to each other once every state is tripled")
def condition_20(long: bool) -> Outcome:
    before = after = longer = tried = 0
    edges_free = same = True
    machine = busy_beaver("3x2")
    for seed in range(40 if long else 12):
        machine = random_machine(seed, states=3, tapes=1 + seed % 2, stay=False)
        rewriting = triple_states(machine)
        tripled = rewriting.after
        assert isinstance(tripled, TuringMachine)
        before += has_two_cycle(machine)
        after += has_two_cycle(tripled)
        graph = build_graph(tripled, tape_constants.choose(tripled.tapes, 0.5))
        pairs = set(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True))
        edges_free &= not any((w, v) in pairs for v, w in pairs)
        longer += len(tripled.states) == 3 * len(machine.states)
        one, other = machine.start("101"), tripled.start("101")
        for _ in range(20):
            one, other = machine.step(one), tripled.step(other)
            same &= (one is None) == (other is None)
            if one is None or other is None:
                break
            same &= rewriting.decode(other) == one
        tried += 1
    checks = {
        "most random machines violate (20)": before > tried // 2,
        "no tripled machine does": after == 0,
        "nor does any pair of edges of the built graph": edges_free,
        "tripled machines compute the same, step for step": same,
        "the price is three times the states": longer == tried,
        "without (20), the loss is refused": _is_refused(machine),
    }
    return holds(
        checks,
        stated="never both (v, w) and (w, v) in E, after tripling the states",
        measured=f"{before} of {tried} machines violate it before tripling, {after} after",
        note="|Q| in Corollary 2.3 is therefore three times the machine's own. The formula for the new table "
        "means delta_1(q, t) where it prints delta(q, t).",
        violating_before=before,
        violating_after=after,
        machines=tried,
    )


def _printed_first_term(loss: TapeLoss) -> TapeLoss:
    """(21) as printed: the first least-squares term aims at the symbol under the head."""
    return eqx.tree_at(lambda part: part.written, loss, loss.down)


def _printed_shift(loss: TapeLoss) -> TapeLoss:
    """S as printed: [S(e) H]_i = h_{i + delta_3}, which moves the indicator the other way."""
    return eqx.tree_at(lambda part: (part.right, part.left), loss, (loss.left, loss.right))


@PAPER.claim("Proposition 4.3", "Descent on the loss (21) runs the machine, tapes and heads being weights")
def proposition_4_3(long: bool) -> Outcome:
    agreed = steps = halted = 0
    for machine, start in _instances(long):
        trace = trace_tape(machine, start)
        agreed, steps, halted = agreed + trace.agreed, steps + trace.steps, halted + trace.halted
    beaver = tape_machine(busy_beaver("3x2"))
    no_write = trace_tape(beaver, beaver.start(), loss=_printed_first_term)
    backwards = trace_tape(beaver, beaver.start(), loss=_printed_shift)
    checks = {
        "state, symbols, tapes and heads agree after every step": agreed == steps > 0,
        "some of the machines halt within the run": halted > 0,
        "with T_down in the first term, as printed, nothing is written": not no_write.exact,
        "with S as printed, heads go the wrong way": not backwards.exact,
    }
    return holds_corrected(
        checks,
        stated="x_k = e_{v_k}, T_k, H_k satisfy the updates (22)",
        measured=f"{agreed} of {steps} steps exact; as printed: {no_write.agreed} and {backwards.agreed} of "
        f"{no_write.steps}",
        correction="The first least-squares term of (21) aims at the symbol to write, T_next x; the last has "
        "no diag; [S(e) H]_i = H_(i - delta_3). Heads must move at every step: the next cell is read before "
        "the write lands.",
        steps=steps,
        agreed=agreed,
        agreed_with_printed_first_term=no_write.agreed,
        agreed_with_printed_shift=backwards.agreed,
    )


@PAPER.claim(
    "Bound (23)", "The loss stays in a narrow band while the machine runs and drops by b^3 at the halt"
)
def bound_23(long: bool) -> Outcome:
    running = ending = True
    highest = lowest = 0.0
    halts = 0
    for machine, start in _instances(long):
        constants = tape_constants.choose(machine.tapes, 0.5)
        b, c, d = constants.b, constants.c, machine.tapes
        band = 8 * b**2 * d + 3 * d
        trace = trace_tape(machine, start)
        losses = np.array(trace.losses)
        if trace.halted:
            ending &= bool(losses[-1] <= c + band - b**3)
            lowest = min(lowest, float((losses[-1] - c) / b**3))
            losses = losses[:-1]
            halts += 1
        running &= bool((losses >= c).all() and (losses <= c + band).all())
        highest = max(highest, float(((losses - c) / band).max(initial=0)))
    checks = {
        "c <= loss <= c + 8 b^2 d + 3 d while the machine runs": running,
        "loss <= c + 8 b^2 d + 3 d - b^3 where it has halted": ending,
        "some machines halted": halts > 0,
        "the upper bound is nearly reached": highest > 0.8,
    }
    return holds(
        checks,
        stated="c <= loss <= c + 8 b^2 d + 3 d for k < K; b^3 less at k = K (gamma = 1)",
        measured=f"running: up to {highest:.3f} of the band; halted: c {lowest:+.3f} b^3",
        highest_share_of_band=highest,
        halted_minus_c_over_b3=lowest,
        halts=halts,
    )
