"""The units of emulating networks in words, for each kind of memory."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tapegrad.targets.emulator.net import PracticalNet
    from tapegrad.targets.emulator.paper_nets import ExactNet, NoisyNet


def practical_units(net: "PracticalNet") -> dict[str, str]:
    """Every unit of a practical network by name."""
    table = {}
    w0 = net.constants.w0
    cells = len(net.cells)
    for cell in range(cells):
        table[f"cell {cell}"] = (
            f"the weight of edge {net.cells[cell]}, from the constant: +{w0:.3g} while bit "
            f"{net.names[cell]!r} of the learner's memory is 0, -{w0:.3g} while it is 1 (section 4.1: the "
            f"sign of an edge is a bit; 4.3: a tiny weight with a large one behind it)"
        )
    for number, name in enumerate(net.names[cells:]):
        table[f"input {name}"] = f"input vertex {1 + number}, -1 or 1: {name!r} of the learner's circuit"
    begin, end = net.computation
    for vertex in range(begin + net.inputs + 2, end):
        table[f"gate {vertex}"] = (
            f"vertex {vertex} of the computation component: a gate of the learner's circuit, -2 or 2, its "
            f"total input at least 4 in size, so that its derivative is 0 (Lemma 1)"
        )
    for cell in range(cells):
        first = end + 6 * cell
        name = net.names[cell]
        for control, (what, said) in enumerate(
            (("set", 1), ("cleared", 1), ("set", 0), ("cleared", 0)),
        ):
            table[f"control {cell}.{control}"] = (
                f"vertex {first + control}: on if bit {name!r} is to be {what}, should the answer {said} "
                f"be wrong"
            )
        table[f"gate + {cell}"] = f"vertex {first + 4}: opened to flip bit {name!r} along a positive path"
        table[f"gate - {cell}"] = f"vertex {first + 5}: opened to flip bit {name!r} along a negative path"
    table["output"] = "the last vertex: -1 or 1, the learner's answer, or its guess while it learns"
    return table


def exact_units(net: "ExactNet") -> dict[str, str]:
    """Every unit of an exact network by name."""
    s = float(net.constants.s)
    table = {
        f"cell {i}": f"edge {cell}, (v_0, v_1) of a component M_s (Definition 6): positive while bit "
        f"{net.names[i]!r} is 0, negative while it is 1; s = {s:.6g}"
        for i, cell in enumerate(net.cells)
    }
    count = next(iter(net.copies.values()))
    table["spare"] = (
        f"the last component: {count} copies that flip at every step, so that the output is 1 or -1"
    )
    table["output"] = "v_6: 1 or -1, the learner's answer, or its guess while it learns"
    return table


def noisy_units(net: "NoisyNet") -> dict[str, str]:
    """Every unit of a noise-tolerant network by name."""
    table = {
        f"sample {t}": f"vertex {vertex}: whether sample {t} is memorised (Lemma 6); its bits are in the "
        f"components M' of Definition 7, one for each bit and value"
        for t, vertex in enumerate(net.written)
    }
    table["output"] = "v_5: 1/2 while samples are memorised, then 49^3/50^3 of the answer"
    return table
