"""From a net of target `transformer` to the decoder-only network of the same machine."""

from tapegrad.compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.decoder.coordinates import Coordinates
from tapegrad.interop.decoder.vocabulary import Vocabulary
from tapegrad.interop.extras import net_of
from tapegrad.nets.net import Net
from tapegrad.nets.transformer.net import TransformerNet


def decoder_of(compiled: Compiled | Net, context: int) -> Coordinates:
    """The vocabulary and the residual stream for the net's table, which a saved net has too."""
    net = net_of(compiled)
    if not isinstance(net, TransformerNet):
        raise Refused(
            f"only nets of target 'transformer' become transformers, and this one is of {net.target!r}"
        )
    words = Vocabulary(net.layout.states, net.layout.symbols, net.blank, net.start_state, net.rules)
    return Coordinates(words, context)
