"""Hidden vectors of the transformer against what the lemmas say of them, and the 1-norms of its modules."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.machines.library import ready
from tapegrad.machines.library.ready import busy_beaver
from tapegrad.targets.transformer import TransformerNet
from tapegrad_papers.claims.wei.decoder import DecodedRun, Facts, transformer

LARGEST_CONSTANT = 16.0
"""No O(...) of the lemmas hides a larger constant in these nets: an attention spends 6 on each of up to
2 w_pos compared bits, 2 w_pos on its null key, and a ReLU layer 1 on every coordinate that it passes on."""


def mistakes(
    runs: Sequence[DecodedRun], layer: Callable[[DecodedRun], int], groups: Callable[[Facts], dict[str, Any]]
):
    """How many hidden vectors after a layer differ from what they should be, and how many there are."""
    wrong = total = 0
    for run in runs:
        for facts, found in run.after(layer(run)):
            wrong += not np.array_equal(found, run.expected(**groups(facts)))
            total += 1
    return wrong, total


def norm_ratios(
    norm: Callable[[TransformerNet], float], expression: Callable[[int, int, int], float]
) -> list[float]:
    """Norm over the lemma's expression in |Z|, |A| and w_pos, for two machines and T = 2^4, 2^8 and 2^16."""
    found = []
    for machine in (ready("increment"), busy_beaver("4x2")):
        for steps in (1 << 4, 1 << 8, 1 << 16):
            net = transformer(machine, steps)
            sizes = len(machine.states), len(machine.alphabet), net.layout.position_bits
            found.append(norm(net) / expression(*sizes))
    return found


def norm_checks(ratios: list[float], expression: str) -> dict[str, bool]:
    return {
        f"1-norm at most {LARGEST_CONSTANT:g} times {expression}, up to T = 65536": max(ratios)
        <= LARGEST_CONSTANT
    }


def state_groups(facts: Facts) -> dict[str, Any]:
    """(C.5) without the new position."""
    common = {"st": facts.state, "sym2": facts.written}
    return common | {"pos1": facts.step, "pos2": facts.place_before}


def look_up_layer(run: DecodedRun) -> int:
    return run.first_search + run.net.layout.time_bits + 1


def looked_up_groups(f: Facts) -> dict[str, Any]:
    """(C.15): what the last write and the input say."""
    own = {"pos3": f.place, "found": int(f.last_write > 0), "given": int(f.given is not None)}
    return state_groups(f) | own | {"scr1": f.last_written, "scr2": f.given}


def attends_to_one(runs: Sequence[DecodedRun], kind: str) -> bool:
    """Whether the attention of this kind in the look-up layer attends to one place, or to the null key."""
    return all(
        (look.scores == look.scores.max()).sum() == 1
        for run in runs
        for seen in run.looked[1:]
        for look in seen
        if look.block == look_up_layer(run) and look.kind == kind
    )


def gap_checks(runs: Sequence[DecodedRun], first: int, last: int | None = None) -> dict[str, bool]:
    """The best score leads by 1, and only equal values tie, in the search's layers first..last."""
    leads, ties = [], True
    for run in runs:
        wanted = range(run.first_search + first, run.first_search + (first if last is None else last) + 1)
        for seen in run.looked:
            for look in (look for look in seen if look.block in wanted and look.kind == "self"):
                best = look.scores == look.scores.max()
                if not best.all():
                    leads.append(float(look.scores.max() - look.scores[~best].max()))
                ties &= len(np.unique(look.values[best], axis=0)) == 1
    return {"the best score leads by at least 1": min(leads) >= 1, "only equal values tie": ties}
