"""How large the net is: counted from the network as built, beside the paper's bound."""

from tapegrad.targets.descent.layers import Layer, extra_layers


def layers(vertices: int, edges: int, tapes: int, cells: int, label_numbers: int) -> list[Layer]:
    """Corollary 2.3 counts the weights, 2^d |Q| + 2 d tau + O(nm). The widest layer is larger: every vertex
    has the ReLU of its corner, every edge the three of `directed`, and from each vertex lead 2^d edges."""
    cells_in_all = tapes * cells
    return extra_layers(
        [
            Layer(1, "ReLUs of vertices and edges", vertices + 3 * edges),
            Layer(1, "symbols to write and symbols of the vertex", 2 * tapes),
            Layer(1, "S(s) H and products T H", 4 * cells_in_all),
            Layer(2, "l_S, symbols under the heads and at their next places", 1 + 2 * tapes),
            Layer(2, "squares of S(s) H - H", cells_in_all),
            Layer(3, "squares of the symbols to write and to read", 2 * tapes),
            Layer(4, "outer sum of (21)", 1),
        ],
        label_numbers,
    )


def paper_width(vertices: int, tapes: int, cells: int) -> int:
    """Corollary 2.3 without its O(nm); `vertices` is 2^d |Q|, tripling included."""
    return vertices + 2 * tapes * cells
