"""`to_torch`: a compiled net as an `nn.Module`."""

from typing import Any

from tapegrad.compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.exporting import net_of
from tapegrad.interop.pytorch.rcnn import RcnnModule, filter_module
from tapegrad.interop.pytorch.relu import ReluModule
from tapegrad.interop.pytorch.training import DescentModule, EmulatorModule
from tapegrad.interop.pytorch.transformer import TransformerModule
from tapegrad.targets.emulator.net import EmulatorNet
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.relu.net import ReluNet
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.transformer.net import TransformerNet


def to_torch(compiled: Compiled | Net | Rcnn) -> Any:
    """The net as an `nn.Module`, from its arrays alone. Forward targets (`relu`, `transformer`, the filter of
    `rcnn`) give the net's outputs; training targets (`tape`, `simplex`, `emulator`, a grid learner's network)
    take the net's steps under PyTorch's automatic differentiation and its optimisers."""
    net = compiled if isinstance(compiled, Rcnn) else net_of(compiled)
    match net:
        case ReluNet():
            return ReluModule(net)
        case TransformerNet():
            return TransformerModule(net)
        case TapeNet() | SimplexNet():
            return DescentModule(net)
        case EmulatorNet():
            return EmulatorModule(net)
        case RcnnNet():
            return filter_module(net.filter)
        case Rcnn():
            return RcnnModule(net)
    raise Refused(f"target {net.target!r} has no form in PyTorch")
