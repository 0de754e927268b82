"""Appendix C but for the search: table, head, input and new symbol against hidden vectors, step by step."""

import math

from tapegrad_papers.claims.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.claims.wei.decoder import Facts, decoded_runs
from tapegrad_papers.claims.wei.hidden import (
    attends_to_one,
    look_up_layer,
    looked_up_groups,
    mistakes,
    norm_checks,
    norm_ratios,
    one_norm,
    state_groups,
)
from tapegrad_papers.claims.wei.paper import PAPER


def _move(facts: Facts) -> dict[str, int]:
    return {"borrow": int(facts.move == -1), "carry": int(facts.move == 1)}


@PAPER.claim("Lemma C.1", "Two ReLU layers apply the machine's table")
def lemma_c_1(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong, total = mistakes(runs, lambda run: 1, lambda f: state_groups(f) | _move(f))
    times = sum(
        run.expected(pos1=i)[run.net.layout.group("pos1")].tolist()
        != run.inputs[i][run.net.layout.group("pos1")].tolist()
        for run in runs
        for i in range(len(run.inputs))
    )
    ratios = norm_ratios(
        lambda net: one_norm(*(net.layers[i].feed_forward for i in (0, 1))), lambda z, a, w: z * a + w
    )
    checks = {
        "st, sym2, pos1, pos2 and the move are (C.4) after every step, all else 0": wrong == 0 < total,
        "what step i starts from has pos1 = Bin(i): beta(i) was added, not beta(i - 1)": times == 0,
        **norm_checks(ratios, "|Z| |A| + w_pos"),
    }
    return holds_corrected(
        checks,
        stated="f(h) encodes z_i, u_i, Bin(i), Bin(l_(i-1)) and q_i; |theta|_1 = O(|Z| |A| + w_pos)",
        measured=f"{total - wrong} of {total} steps exact; 1-norm {min(ratios):.1f} to {max(ratios):.1f} "
        "times",
        correction="(C.3) prints pos1 = Bin(i) for o_i + beta(i + 1), which has Bin(i + 1); (C.4) is "
        "right: in "
        "step i, pos1 = Bin(i).",
        steps=total,
        wrong=wrong,
        norms=ratios,
    )


@PAPER.claim("Lemma C.2", "O(w_pos) ReLU layers move the head's position by one")
def lemma_c_2(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong, total = mistakes(
        runs, lambda run: run.first_search - 1, lambda f: state_groups(f) | {"pos3": f.place}
    )
    layers = [run.first_search - 2 for run in runs]
    bits = [run.net.layout.position_bits for run in runs]
    ratios = norm_ratios(
        lambda net: one_norm(*(layer.feed_forward for layer in net.layers[2 : net.layout.position_bits + 3])),
        lambda z, a, w: w * (z + a + w),
    )
    short = {T: math.ceil(math.log2(T)) for T in (2, 4, 8, 16, 32)}
    checks = {
        "pos3 = Bin(l_i) after every step, the rest as (C.5)": wrong == 0 < total,
        "w_pos + 1 layers": all(n == w + 1 for n, w in zip(layers, bits, strict=True)),
        "ceil(log2 T) bits, as printed, cannot hold T where T is a power of two": all(
            1 << w <= T for T, w in short.items()
        ),
        **norm_checks(ratios, "w_pos (|Z| + |A| + w_pos)"),
    }
    return holds_corrected(
        checks,
        stated="O(w_pos) layers give pos3 = Bin(l_i); |theta|_1 = O(w_pos (|Z| + |A| + w_pos))",
        measured=f"{total - wrong} of {total} steps exact in w_pos + 1 layers; 1-norm {max(ratios):.1f} "
        "times at most",
        correction="Bin(i) for 0 <= i <= T needs floor(log2 T) + 1 bits; the printed ceil(log2 T) is one "
        "short "
        "for powers of two. One more bit makes the tape two-way.",
        steps=total,
        wrong=wrong,
        norms=ratios,
    )


@PAPER.claim("Lemma C.7", "Encoder-decoder attention copies the input symbol at the head's position")
def lemma_c_7(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong, total = mistakes(runs, look_up_layer, looked_up_groups)
    inside = sum(f.given is not None for run in runs for f in run.facts)
    ratios = norm_ratios(lambda net: one_norm(net.layers[-3].encoder_attention), lambda z, a, w: a + w)
    checks = {
        "scr2 = 1(x_l) and scr4_2 = 1 inside the input, 0 outside, the rest as (C.15)": wrong == 0 < total,
        "both cases occur": 0 < inside < total,
        "exactly one token, or the null key, is attended to": attends_to_one(runs, "encoder"),
        **norm_checks(ratios, "|A| + w_pos"),
    }
    return holds(
        checks,
        stated="(C.15) by one encoder-decoder attention, |theta|_1 = O(|A| + w_pos)",
        measured=f"{total - wrong} of {total} steps exact, {inside} inside the input; 1-norm "
        f"{max(ratios):.1f} times",
        steps=total,
        wrong=wrong,
        inside=inside,
        norms=ratios,
    )


@PAPER.claim("Lemma C.8", "A constant number of ReLU layers chooses the symbol: written, given or blank")
def lemma_c_8(long: bool) -> Outcome:
    runs = decoded_runs(long)
    wrong, total = mistakes(
        runs, lambda run: -1, lambda f: {"st": f.state, "sym1": f.symbol, "pos2": f.place}
    )
    cases = {
        "written": sum(f.last_write > 0 for run in runs for f in run.facts),
        "given": sum(f.last_write == 0 and f.given is not None for run in runs for f in run.facts),
        "blank": sum(f.last_write == 0 and f.given is None for run in runs for f in run.facts),
    }
    ratios = norm_ratios(
        lambda net: one_norm(net.layers[-2].feed_forward, net.layers[-1].feed_forward),
        lambda z, a, w: z + a + w,
    )
    checks = {
        "(C.16): z_i, a_i, l_i after every step, all else 0": wrong == 0 < total,
        "all three cases occur": min(cases.values()) > 0,
        **norm_checks(ratios, "|Z| + |A| + w_pos"),
    }
    return holds(
        checks,
        stated="(C.16) by a constant number of ReLU layers, |theta|_1 = O(|Z| + |A| + w_pos)",
        measured=f"{total - wrong} of {total} steps exact; {cases}; two layers",
        steps=total,
        wrong=wrong,
        cases=cases,
        norms=ratios,
    )
