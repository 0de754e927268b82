"""From a net of target `transformer` to the decoder-only network of the same machine."""

from tapegrad.compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.decoder.coordinates import Coordinates
from tapegrad.interop.decoder.vocabulary import Rules, Vocabulary
from tapegrad.interop.extras import net_of
from tapegrad.targets.net import Net
from tapegrad.targets.transformer.net import TransformerNet


def decoder_of(compiled: Compiled | Net, context: int) -> Coordinates:
    """The vocabulary and the residual stream for the machine that the net's matrices hold."""
    net = net_of(compiled)
    if not isinstance(net, TransformerNet):
        raise Refused(
            f"only nets of target 'transformer' become transformers, and this one is of {net.target!r}"
        )
    words = Vocabulary(net.layout.states, net.layout.symbols, net.blank, net.start_state, rules_of(net))
    return Coordinates(words, context)


def rules_of(net: TransformerNet) -> Rules:
    """The machine's table, read off the matrix that applies it (Lemma C.1) and off `theta_halt`: a column for
    each pair of state and symbol, with ones in the rows of what follows."""
    layout, table = net.layout, net.layers[1].feed_forward.W_1
    found = []
    for state in layout.states:
        for symbol in layout.symbols:
            pair = layout.at("pair", state, symbol)
            if not net.theta_halt[pair]:
                new = layout.states[int(table[layout.group("st"), pair].argmax())]
                write = layout.symbols[int(table[layout.group("sym2"), pair].argmax())]
                move = int(table[layout.at("carry"), pair] - table[layout.at("borrow"), pair])
                found.append((state, symbol, new, write, move))
    return tuple(found)
