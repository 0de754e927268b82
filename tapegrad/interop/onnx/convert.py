"""`to_onnx`: a compiled net whose step is a forward pass as an ONNX model."""

import onnx

from tapegrad.compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.exporting import net_of
from tapegrad.interop.onnx.graph import LARGEST
from tapegrad.interop.onnx.rcnn import rcnn_model
from tapegrad.interop.onnx.relu import relu_model
from tapegrad.interop.onnx.transformer import transformer_model
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.relu.net import ReluNet
from tapegrad.targets.transformer.net import TransformerNet


def to_onnx(compiled: Compiled | Net) -> onnx.ModelProto:
    """The net as a checked ONNX model, straight from its arrays: the whole pass of `relu`, one decoder step
    of `transformer`, one application of the filter of `rcnn`."""
    net = net_of(compiled)
    if sum(array.nbytes for array in net.arrays().values()) > LARGEST:
        raise Refused("the net has more numbers than an ONNX file in one piece can hold (2 GiB)")
    match net:
        case ReluNet():
            return relu_model(net)
        case TransformerNet():
            return transformer_model(net)
        case RcnnNet():
            return rcnn_model(net)
    raise Refused(
        f"target {net.target!r} runs while it is trained, and an ONNX model is not trained",
        advice="Use to=torch, or one of the targets relu, transformer and rcnn.",
    )
