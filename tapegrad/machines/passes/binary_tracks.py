"""Any alphabet to two symbols: each tape becomes several binary tapes whose heads move together."""

from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.model import Configuration, Rule, TuringMachine


def binary_tracks(machine: TuringMachine) -> Rewriting:
    """Writes the number of each symbol in binary across parallel tapes.

    Guarantee: one step for each step. With w = max(1, ceil(log2 |alphabet|)) the new machine has w tapes
    for each old one, symbols "0" and "1", the same states; tapes i w, ..., i w + w - 1 hold tape i, most
    significant bit first, and their heads are always at the same cell. The blank is number 0: all "0".
    """
    width = max(1, (len(machine.alphabet) - 1).bit_length())
    codes = {symbol: tuple(f"{number:0{width}b}") for number, symbol in enumerate(machine.alphabet)}
    symbols = {code: symbol for symbol, code in codes.items()}

    def spread(read: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(bit for symbol in read for bit in codes[symbol])

    after = TuringMachine(
        rules={
            (state, spread(read)): Rule(
                spread(rule.write), tuple(move for move in rule.moves for _ in range(width)), rule.state
            )
            for (state, read), rule in machine.rules.items()
        },
        start_state=machine.start_state,
        blank="0",
        accept=machine.accept,
        reject=machine.reject,
        name=f"{machine.name} on binary tracks",
        alphabet=("0", "1"),
        states=machine.states,
        tapes=machine.tapes * width,
    )

    def encode(state: Configuration) -> Configuration:
        tracks = tuple(
            {cell: "1" for cell, symbol in tape.items() if codes[symbol][bit] == "1"}
            for tape in state.tapes
            for bit in range(width)
        )
        return Configuration(state.state, tracks, tuple(head for head in state.heads for _ in range(width)))

    def decode(state: Configuration) -> Configuration:
        groups = [state.tapes[first : first + width] for first in range(0, len(state.tapes), width)]
        tapes = tuple(
            {
                cell: symbols[tuple(track.get(cell, "0") for track in tracks)]
                for cell in sorted(set().union(*tracks))
            }
            for tracks in groups
        )
        return Configuration(state.state, tapes, state.heads[::width])

    return Rewriting("binary tracks", machine, after, encode, decode)
