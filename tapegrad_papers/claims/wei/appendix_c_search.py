"""Lemma C.3 and its claims: attention searches for the last step that wrote at the head's cell."""

from typing import Any

import numpy as np

from tapegrad_papers.claims.ledger import Outcome, holds
from tapegrad_papers.claims.wei.decoder import Facts, decoded_runs
from tapegrad_papers.claims.wei.hidden import (
    attends_to_one,
    gap_checks,
    look_up_layer,
    looked_up_groups,
    mistakes,
    norm_checks,
    norm_ratios,
    one_norm,
    state_groups,
)
from tapegrad_papers.claims.wei.paper import PAPER


@PAPER.claim("Lemma C.3", "O(w_pos) attentions find the last step that wrote at the new cell")
def lemma_c_3(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong, total = mistakes(runs, look_up_layer, looked_up_groups)
    revisits = sum(f.last_write > 0 for run in runs for f in run.facts)
    several = sum(
        sum(g.place_before == f.place for g in run.facts[: f.step]) > 1 for run in runs for f in run.facts
    )
    layers = {run.net.layout.steps: run.net.layout.time_bits + 2 for run in runs}
    ratios = norm_ratios(
        lambda net: sum(
            one_norm(layer.self_attention, layer.feed_forward) for layer in net.layers if layer.self_attention
        ),
        lambda z, a, w: w * (z + a + w),
    )
    checks = {
        "(C.6) after every step": wrong == 0 < total,
        "cells are revisited": revisits > 0,
        "some of them after several writes, so that the last one matters": several > 0,
        "at most 2 w_pos + 2 attention layers": all(
            n <= 2 * run.net.layout.position_bits + 2 for run, n in zip(runs, layers.values(), strict=False)
        ),
        **norm_checks(ratios, "w_pos (|Z| + |A| + w_pos)"),
    }
    return holds(
        checks,
        stated="(C.6) by O(w_pos) attention and linear layers, |theta|_1 = O(w_pos (|Z| + |A| + w_pos))",
        measured=f"{total - wrong} of {total} steps exact, {revisits} revisits, {several} after several "
        "writes",
        steps=total,
        wrong=wrong,
        revisits=revisits,
        norms=ratios,
    )


@PAPER.claim("Claim C.4", "One attention finds out whether the cell was written before")
def claim_c_4(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong, total = mistakes(
        runs,
        lambda run: run.first_search,
        lambda f: state_groups(f) | {"pos3": f.place, "found": int(f.last_write > 0)},
    )
    both = {f.last_write > 0 for run in runs for f in run.facts}
    ratios = norm_ratios(
        lambda net: one_norm(net.layers[net.layout.position_bits + 3].self_attention), lambda z, a, w: w
    )
    checks = {
        "scr4 = 1(i' > 0) after every step, the rest unchanged": wrong == 0 < total,
        "both cases occur": both == {True, False},
        **gap_checks(runs, 0),
        **norm_checks(ratios, "w_pos"),
    }
    return holds(
        checks,
        stated="scr4_1 = 1(i' > 0) by one self-attention, |theta|_1 = O(w_pos)",
        measured=f"{total - wrong} of {total} steps exact; 1-norm {max(ratios):.1f} w_pos at most",
        steps=total,
        wrong=wrong,
        norms=ratios,
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
            one_norm(layer.self_attention, layer.feed_forward)
            for layer in net.layers[net.layout.position_bits + 4 :][: net.layout.time_bits]
        ),
        lambda z, a, w: z + a + w,
    )
    checks = {
        "after j layers scr3 holds the j top bits of i', at every step and every j": wrong == 0 < total,
        **gap_checks(runs, 1, longest),
        **norm_checks(ratios, "|Z| + |A| + w_pos"),
    }
    return holds(
        checks,
        stated="scr3 = Bin_(j+1)(i') if i' > 0, one attention and one ReLU layer for each bit",
        measured=f"{total - wrong} of {total} hidden vectors exact; 1-norm {max(ratios):.1f} times at most",
        note="In the proof, the query's time bits for i' = 0 are -1, not 0; the case still comes out.",
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
        for facts, found in run.after(look_up_layer(run)):
            wrong += not np.array_equal(found[group], run.expected(scr1=facts.last_written)[group])
            total += 1
    ratios = norm_ratios(
        lambda net: one_norm(net.layers[-3].self_attention, net.layers[-3].feed_forward),
        lambda z, a, w: z + a + w,
    )
    copied = sum(f.last_written is not None for run in runs for f in run.facts)
    checks = {
        "scr1 = 1(u_i') if i' > 0 and 0 otherwise; scr3 is cleared": wrong == 0 < total,
        "symbols were copied": copied > 0,
        "exactly one place is attended to": attends_to_one(runs, "decoder"),
        **norm_checks(ratios, "|Z| + |A| + w_pos"),
    }
    return holds(
        checks,
        stated="scr1 = 1(u_i') if i' > 0 else 0, |theta|_1 = O(|Z| + |A| + w_pos)",
        measured=f"{total - wrong} of {total} steps exact, {copied} copies; 1-norm {max(ratios):.1f} times "
        "at most",
        steps=total,
        wrong=wrong,
        norms=ratios,
    )
