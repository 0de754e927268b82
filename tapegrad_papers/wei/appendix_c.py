"""Theorem 4.1 and appendix C: a Turing machine as a transformer, its hidden vectors compared step by step
with what the lemmas say of them, and how its size grows with log T."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from tapegrad.machines.library import ready
from tapegrad.networks.heads import Block
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.exactness import one_norm
from tapegrad_papers.ledger import Outcome, holds, holds_corrected, holds_in_part
from tapegrad_papers.wei import PAPER
from tapegrad_papers.wei.chains import transformer_chain
from tapegrad_papers.wei.hidden import (
    DecodedRun,
    Facts,
    attends_to_one,
    decoded_runs,
    gap_checks,
    look_up_layer,
    looked_up_groups,
    mistakes,
    norm_checks,
    norm_ratios,
    state_groups,
    transformer,
)
from tapegrad_papers.wei.margins import MarginConstants, margin_constants
from tapegrad_papers.wei.samples import EPSILON, rademacher_bound, transformer_parameters, transformer_sizes


@dataclass(frozen=True)
class Compared:
    """Hidden vectors after one layer, compared at every step of every run, and the 1-norm of the modules that
    make them over the lemma's expression."""

    runs: list[DecodedRun]
    wrong: int
    total: int
    norms: list[float]

    @property
    def exact(self) -> bool:
        return self.wrong == 0 < self.total

    @property
    def said(self) -> str:
        return f"{self.total - self.wrong} of {self.total} steps exact"

    @property
    def values(self) -> dict[str, Any]:
        return {"steps": self.total, "wrong": self.wrong, "norms": self.norms}

    def steps(self, where: Callable[[Facts], bool]) -> int:
        """How many steps there are of a kind."""
        return sum(where(facts) for run in self.runs for facts in run.facts)


def _compared(
    long: bool,
    layer: Callable[[DecodedRun], int],
    groups: Callable[[Facts], dict[str, Any]],
    norm: Callable[[TransformerNet], float],
    expression: Callable[[int, int, int], float],
) -> Compared:
    """`expression` is in |Z|, |A| and w_pos."""
    runs = decoded_runs(long)
    return Compared(runs, *mistakes(runs, layer, groups), norm_ratios(norm, expression))


@PAPER.claim("Theorem 4.1", "Transformers run machines for T steps with size and samples poly(k, |A|, log T)")
def theorem_4_1(long: bool) -> Outcome:
    machine = ready("palindrome")
    net = transformer(machine, 64)
    right = words = 0
    for letters in [w for n in range(7 if long else 5) for w in product("ab", repeat=n)]:
        carry = net.advance(net.start(machine.start("".join(letters))), 65, "fast")
        verdict = net.prediction(carry)
        right += verdict == (1 if letters == letters[::-1] else -1)
        words += 1
    starts = [net.start(machine.start(word)).output for word in ("a", "b")]
    rows = transformer_sizes(ready("increment"), range(4, 17, 1 if long else 4))
    layers = [row.layers_over_log for row in rows]
    norms = [row.norm_over_expression for row in rows]
    margins = [(row.exponent, row.margin) for row in rows if row.margin is not None]
    power = -np.polyfit(np.log([e for e, _ in margins]), np.log([m for _, m in margins]), 1)[0]
    samples = [row.samples for row in rows if row.samples is not None]
    sample_power = np.polyfit(np.log([e for e, _ in margins]), np.log(samples), 1)[0]
    built, row = transformer(ready("increment"), rows[1].steps), rows[1]
    margin, enough = row.margin, row.samples
    assert margin is not None
    assert enough is not None
    written = [np.asarray(leaf) for layer in built.layers for leaf in _weights(layer)]
    alpha = sum(float(np.abs(part).sum()) for part in (*written, built.h_0, built.E, built.theta_cls))
    constants = margin_constants(transformer_chain(built))
    terms = _terms_of_d_5(constants)
    p = transformer_parameters(row.width, row.layers, len(ready("increment").alphabet))
    back = 4 * rademacher_bound(enough, alpha, min(terms), p) + 2 * math.sqrt(math.log(200) / enough)
    checks = {
        "the verdict is right on every word": right == words,
        "d = 2 log2 T + 10": all(row.layers == 2 * row.exponent + 10 for row in rows),
        "w is k |A| + O(log T): 4 log2 T and a constant more": len(
            {row.width - row.width_expression - 3 * row.exponent for row in rows}
        )
        == 1,
        "alpha / ((k |A| + log T) log T) does not grow": all(b <= a for a, b in pairwise(norms)),
        "alpha is the sum of all entries of a net that is written out": math.isclose(
            row.norm, alpha, rel_tol=1e-9
        ),
        "gamma is the least of the nine terms of (D.5), written out once more": math.isclose(
            margin, min(terms)
        ),
        "with these the samples make Lemma 2.3 give epsilon": math.isclose(back, EPSILON, rel_tol=1e-6),
        "the proved margin falls like a power of log T between 0.2 and 0.5": 0.2 < power < 0.5,
        "the samples grow like a power of log T between 2.5 and 3.5": 2.5 < sample_power < 3.5,
        "while T grows by a factor of at least 256": rows[-1].steps >= 256 * rows[0].steps,
        "o_0 cannot depend on the input: h_0 is the same for all": np.array_equal(starts[0], starts[1]),
    }
    return holds_in_part(
        checks,
        stated="d ~ log T, alpha = poly(k, |A|, log T), samples poly(k, |A|, log T) O~(log(w d) / epsilon^2)",
        measured=f"{words} words right; T from {rows[0].steps} to {rows[-1].steps:,}: d / log2 T from "
        f"{layers[0]:.2f} to "
        f"{layers[-1]:.2f}, margin like (log T)^-{power:.2f}, samples like (log T)^{sample_power:.2f}",
        part="At the sizes that were run; the unnamed constants and the limit are not shown. "
        "Palindromes decided exactly; layers, norms, the margin of Theorem D.6 and the samples of "
        "Lemma 2.3 as T grows. A correction: the paper lets o_0 encode the first symbol, but h_0 is a "
        "constant; one more decoder step, step 0, reads it. `tapegrad bench margins` learns a machine by the "
        "margin "
        "loss, with a stand-in for the transformer.",
        words=words,
        rows=[row.to_json() for row in rows],
        margin_power=float(power),
        sample_power=float(sample_power),
    )


def _weights(layer: Block) -> list[np.ndarray]:
    """Every matrix of a layer, written out, and every bias, null key and null value."""
    maps = [dense.map for dense in layer.expanded().feed_forward]
    maps += [side for a in layer.attentions() for side in (a.query, a.key, a.value)]
    nulls = [null for a in layer.attentions() for null in (a.null_key, a.null_value)]
    parts = [part for own in maps for part in (own.dense().weight, own.dense().bias)]
    return [np.asarray(part) for part in (*parts, *nulls)]


def _terms_of_d_5(k: MarginConstants) -> tuple[float, ...]:
    """(D.5) from left to right."""
    reach = k.kappa_xi * k.lambda_
    return (
        *(k.lambda_ / k.mu_0, k.sigma_zeta / k.mu_0, k.sigma_theta, k.sigma_xi),
        *(0.5 / k.kappa_theta, 0.5 * k.sigma_zeta / (k.kappa_theta * k.lambda_)),
        *(0.5 * k.sigma_h / reach, 0.25 * k.sigma_zeta / (reach * k.mu), 0.25 / (k.mu * k.kappa_xi)),
    )


@PAPER.claim("Lemma C.1", "Two ReLU layers apply the machine's table")
def lemma_c_1(long: bool) -> Outcome:
    found = _compared(
        long,
        lambda run: 1,
        lambda f: state_groups(f) | {"borrow": int(f.move == -1), "carry": int(f.move == 1)},
        lambda net: one_norm(*(net.layers[i].feed_forward[0] for i in (0, 1))),
        lambda z, a, w: z * a + w,
    )
    times = sum(
        run.expected(pos1=i)[run.net.layout.group("pos1")].tolist()
        != run.inputs[i][run.net.layout.group("pos1")].tolist()
        for run in found.runs
        for i in range(len(run.inputs))
    )
    checks = {
        "st, sym2, pos1, pos2 and the move are (C.4) after every step, all else 0": found.exact,
        "what step i starts from has pos1 = Bin(i): beta(i) was added, not beta(i - 1)": times == 0,
        **norm_checks(found.norms, "|Z| |A| + w_pos"),
    }
    return holds_corrected(
        checks,
        stated="f(h) encodes z_i, u_i, Bin(i), Bin(l_(i-1)) and q_i; |theta|_1 = O(|Z| |A| + w_pos)",
        measured=f"{found.said}; 1-norm {min(found.norms):.1f} to {max(found.norms):.1f} times",
        correction="(C.3) prints pos1 = Bin(i) for o_i + beta(i + 1), which has Bin(i + 1); (C.4) is right: "
        "in step i, pos1 = Bin(i).",
        **found.values,
    )


@PAPER.claim("Lemma C.2", "O(w_pos) ReLU layers move the head's position by one")
def lemma_c_2(long: bool) -> Outcome:
    found = _compared(
        long,
        lambda run: run.first_search - 1,
        lambda f: state_groups(f) | {"pos3": f.place},
        lambda net: one_norm(
            *(layer.feed_forward[0] for layer in net.layers[2 : net.layout.position_bits + 3])
        ),
        lambda z, a, w: w * (z + a + w),
    )
    short = {T: math.ceil(math.log2(T)) for T in (2, 4, 8, 16, 32)}
    checks = {
        "pos3 = Bin(l_i) after every step, the rest as (C.5)": found.exact,
        "w_pos + 1 layers": all(
            run.first_search - 2 == run.net.layout.position_bits + 1 for run in found.runs
        ),
        "ceil(log2 T) bits, as printed, cannot hold T where T is a power of two": all(
            1 << w <= T for T, w in short.items()
        ),
        **norm_checks(found.norms, "w_pos (|Z| + |A| + w_pos)"),
    }
    return holds_corrected(
        checks,
        stated="O(w_pos) layers give pos3 = Bin(l_i); |theta|_1 = O(w_pos (|Z| + |A| + w_pos))",
        measured=f"{found.said} in w_pos + 1 layers; 1-norm {max(found.norms):.1f} times at most",
        correction="Bin(i) for 0 <= i <= T needs floor(log2 T) + 1 bits; the printed ceil(log2 T) is one "
        "short for powers of two. One more bit makes the tape two-way.",
        **found.values,
    )


@PAPER.claim("Lemma C.3", "O(w_pos) attentions find the last step that wrote at the new cell")
def lemma_c_3(long: bool) -> Outcome:
    found = _compared(
        long,
        look_up_layer,
        looked_up_groups,
        lambda net: sum(
            one_norm(layer.self_attention, *layer.feed_forward)
            for layer in net.layers
            if layer.self_attention
        ),
        lambda z, a, w: w * (z + a + w),
    )
    revisits = found.steps(lambda f: f.last_write > 0)
    several = sum(
        sum(g.place_before == f.place for g in run.facts[: f.step]) > 1
        for run in found.runs
        for f in run.facts
    )
    layouts = [run.net.layout for run in found.runs]
    checks = {
        "(C.6) after every step": found.exact,
        "cells are revisited": revisits > 0,
        "some of them after several writes, so that the last one matters": several > 0,
        "at most 2 w_pos + 2 attention layers": all(
            layout.time_bits + 2 <= 2 * layout.position_bits + 2 for layout in layouts
        ),
        **norm_checks(found.norms, "w_pos (|Z| + |A| + w_pos)"),
    }
    return holds(
        checks,
        stated="(C.6) by O(w_pos) attention and linear layers, |theta|_1 = O(w_pos (|Z| + |A| + w_pos))",
        measured=f"{found.said}, {revisits} revisits, {several} after several writes",
        revisits=revisits,
        **found.values,
    )


@PAPER.claim("Claim C.4", "One attention finds out whether the cell was written before")
def claim_c_4(long: bool) -> Outcome:
    found = _compared(
        long,
        lambda run: run.first_search,
        lambda f: state_groups(f) | {"pos3": f.place, "found": int(f.last_write > 0)},
        lambda net: one_norm(net.layers[net.layout.position_bits + 3].self_attention),
        lambda z, a, w: w,
    )
    checks = {
        "scr4 = 1(i' > 0) after every step, the rest unchanged": found.exact,
        "both cases occur": 0 < found.steps(lambda f: f.last_write > 0) < found.total,
        **gap_checks(found.runs, 0),
        **norm_checks(found.norms, "w_pos"),
    }
    return holds(
        checks,
        stated="scr4_1 = 1(i' > 0) by one self-attention, |theta|_1 = O(w_pos)",
        measured=f"{found.said}; 1-norm {max(found.norms):.1f} w_pos at most",
        **found.values,
    )


@PAPER.claim("Claim C.5", "Each further attention finds one more bit of the last write's time")
def claim_c_5(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong = total = 0
    for run in runs:
        bits = run.net.layout.time_bits
        for found in range(1, bits + 1):
            below = bits - found

            def groups(f: Facts, below: int = below) -> dict[str, Any]:
                known = f.last_write >> below << below
                return state_groups(f) | {"pos3": f.place, "found": int(f.last_write > 0), "scr3": known}

            more, steps = mistakes([run], lambda r, n=found: r.first_search + n, groups)
            wrong, total = wrong + more, total + steps
    longest = max(run.net.layout.time_bits for run in runs)
    ratios = norm_ratios(
        lambda net: max(
            one_norm(layer.self_attention, *layer.feed_forward)
            for layer in net.layers[net.layout.position_bits + 4 :][: net.layout.time_bits]
        ),
        lambda z, a, w: z + a + w,
    )
    case_2 = [
        (i, t, j)
        for i, j in product(range(1, 2**longest), range(longest))
        for t in range(1, i + 1)
        if (i >> (longest - 1 - j) & 1, t >> (longest - 1 - j) & 1) == (0, 1)
    ]
    same_top = [(i, t, j) for i, t, j in case_2 if i >> (longest - j) == t >> (longest - j)]
    checks = {
        "after j layers scr3 holds the j top bits of i', at every step and every j": wrong == 0 < total,
        "bit j + 1 of i' being 0, some t <= i' have a 1 there, but none that agrees with i' above": 0
        == len(same_top)
        < len(case_2),
        **gap_checks(runs, 1, longest),
        **norm_checks(ratios, "|Z| + |A| + w_pos"),
    }
    return holds(
        checks,
        stated="scr3 = Bin_(j+1)(i') if i' > 0, one attention and one ReLU layer for each bit",
        measured=f"{total - wrong} of {total} hidden vectors exact; 1-norm {max(ratios):.1f} times at most",
        note="In the proof, the query's time bits for i' = 0 are -1, not 0; the case still comes out. So "
        "does case 2: for t <= i' bit j + 1 may be 1, but then a bit above it differs.",
        vectors=total,
        wrong=wrong,
        norms=ratios,
    )


@PAPER.claim("Claim C.6", "The last attention copies the symbol that was written then")
def claim_c_6(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong = total = 0
    for run in runs:
        group = run.net.layout.group("scr1", "scr3")
        for facts, vector in run.after(look_up_layer(run)):
            wrong += not np.array_equal(vector[group], run.expected(scr1=facts.last_written)[group])
            total += 1
    ratios = norm_ratios(
        lambda net: one_norm(net.layers[-3].self_attention, *net.layers[-3].feed_forward),
        lambda z, a, w: z + a + w,
    )
    found = Compared(runs, wrong, total, ratios)
    copied = found.steps(lambda f: f.last_written is not None)
    checks = {
        "scr1 = 1(u_i') if i' > 0 and 0 otherwise; scr3 is cleared": found.exact,
        "symbols were copied": copied > 0,
        "exactly one place is attended to": attends_to_one(runs, "decoder"),
        **norm_checks(ratios, "|Z| + |A| + w_pos"),
    }
    return holds(
        checks,
        stated="scr1 = 1(u_i') if i' > 0 else 0, |theta|_1 = O(|Z| + |A| + w_pos)",
        measured=f"{found.said}, {copied} copies; 1-norm {max(ratios):.1f} times at most",
        **found.values,
    )


@PAPER.claim("Lemma C.7", "Encoder-decoder attention copies the input symbol at the head's position")
def lemma_c_7(long: bool) -> Outcome:
    found = _compared(
        long,
        look_up_layer,
        looked_up_groups,
        lambda net: one_norm(net.layers[-3].encoder_attention),
        lambda z, a, w: a + w,
    )
    inside = found.steps(lambda f: f.given is not None)
    checks = {
        "scr2 = 1(x_l) and scr4_2 = 1 inside the input, 0 outside, the rest as (C.15)": found.exact,
        "both cases occur": 0 < inside < found.total,
        "exactly one token, or the null key, is attended to": attends_to_one(found.runs, "encoder"),
        **norm_checks(found.norms, "|A| + w_pos"),
    }
    return holds(
        checks,
        stated="(C.15) by one encoder-decoder attention, |theta|_1 = O(|A| + w_pos)",
        measured=f"{found.said}, {inside} inside the input; 1-norm {max(found.norms):.1f} times",
        inside=inside,
        **found.values,
    )


@PAPER.claim("Lemma C.8", "A constant number of ReLU layers chooses the symbol: written, given or blank")
def lemma_c_8(long: bool) -> Outcome:
    found = _compared(
        long,
        lambda run: -1,
        lambda f: {"st": f.state, "sym1": f.symbol, "pos2": f.place},
        lambda net: one_norm(*net.layers[-2].feed_forward, *net.layers[-1].feed_forward),
        lambda z, a, w: z + a + w,
    )
    cases = {
        "written": found.steps(lambda f: f.last_write > 0),
        "given": found.steps(lambda f: f.last_write == 0 and f.given is not None),
        "blank": found.steps(lambda f: f.last_write == 0 and f.given is None),
    }
    checks = {
        "(C.16): z_i, a_i, l_i after every step, all else 0": found.exact,
        "all three cases occur": min(cases.values()) > 0,
        **norm_checks(found.norms, "|Z| + |A| + w_pos"),
    }
    return holds(
        checks,
        stated="(C.16) by a constant number of ReLU layers, |theta|_1 = O(|Z| + |A| + w_pos)",
        measured=f"{found.said}; {cases}; two layers",
        cases=cases,
        **found.values,
    )
