"""What the right side of the page shows: one file for each target, found by the target's name.

`tapegrad/show/views/<target>.py` defines `VIEW`, a class made from the net and its first carry. A target
without such a file is shown by its decoded state alone.
"""

from importlib import import_module
from importlib.util import find_spec

from tapegrad._compile import Compiled
from tapegrad.show.views.decoded import DecodedView, NetView
from tapegrad.targets import Carry


def net_view(compiled: Compiled, carry: Carry) -> NetView:
    """The view of the net's target, for one run."""
    module = f"{__name__}.{compiled.target.name}"
    if find_spec(module) is None:
        return DecodedView(compiled)
    return import_module(module).VIEW(compiled.net, carry)


__all__ = ["NetView", "net_view"]
