"""`to_onnx`: a compiled net whose step is a forward pass as an ONNX model (extra `onnx`)."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tapegrad._compile import Compiled
from tapegrad.errors import Refused
from tapegrad.interop.exporting import net_of
from tapegrad.networks.form import Dense
from tapegrad.networks.language_onnx import add_language_model
from tapegrad.networks.onnx import LARGEST, GraphWriter
from tapegrad.targets.decoder import sequences
from tapegrad.targets.decoder.net import DecoderNet
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.relu import CompactNet, ReluNet
from tapegrad.targets.transformer.memory_net import ADVICE, NO_FORM, MemoryNet
from tapegrad.targets.transformer.net import TransformerNet


def to_onnx(compiled: Compiled | Net) -> onnx.ModelProto:
    """The net as a checked ONNX model, straight from its arrays: the whole pass of `relu`, one decoder step
    of `transformer`, one application of the filter of `rcnn`, more tokens of a text of `decoder`."""
    net = net_of(compiled)
    if sum(array.nbytes for array in net.arrays().values()) > LARGEST:
        raise Refused("the net has more parameters than an ONNX file in one piece can hold (2 GiB)")
    match net:
        case ReluNet() | CompactNet():
            return relu_model(net)
        case TransformerNet():
            return transformer_model(net)
        case RcnnNet():
            return rcnn_model(net)
        case MemoryNet():
            raise Refused(NO_FORM.format("ONNX"), advice=ADVICE)
        case sequences.SequenceNet():
            raise Refused(sequences.NO_FORM.format("ONNX"), advice=sequences.ADVICE)
        case DecoderNet():
            return decoder_model(net)
    raise Refused(
        f"target {net.target!r} runs while it is trained, and an ONNX model is not trained",
        advice="Use to=torch, or one of the targets relu, transformer, decoder and rcnn.",
    )


def relu_model(net: ReluNet | CompactNet) -> onnx.ModelProto:
    """`bits` (patterns, inputs) as 0.0 and 1.0 to `outputs` (patterns, outputs) near -1 and +1. Every layer
    reads the one before it: a compact net has identities in place of its skip connections."""
    graph = GraphWriter()
    bits = graph.input("bits", net.dtype, ["patterns", len(net.input_names)])
    outputs = graph.stack(net.stack if isinstance(net, ReluNet) else net.stack(), bits)
    graph.output("outputs", outputs, net.dtype, ["patterns", len(net.output_names)])
    return graph.model("relu", _names(net))


def _names(net: ReluNet | CompactNet) -> dict[str, str]:
    return {"inputs": json.dumps(net.input_names), "outputs": json.dumps(net.output_names)}


def to_plain_onnx(compiled: Compiled | Net) -> onnx.ModelProto:
    """A net of target `relu` in the operators that every verifier of networks knows, on one pattern."""
    net = net_of(compiled)
    if not isinstance(net, ReluNet):
        raise Refused(
            f"target {net.target!r} is no chain of ReLU layers",
            advice="Use target relu, or to=onnx, which has other operators too.",
        )
    return plain_model(relu_layers(net), _names(net))


def relu_layers(net: ReluNet) -> list[Dense]:
    """The layers of the net, one by one; the last is linear."""
    last = net.stack.layers - 1
    layers = (net.stack.layer(number) for number in range(net.stack.layers))
    return [Dense(own, "relu" if number < last else "linear") for number, own in enumerate(layers)]


def plain_model(layers: Sequence[Dense], notes: Mapping[str, str]) -> onnx.ModelProto:
    """ReLU layers as MatMul, Add and Relu and nothing else, shapes fixed: `bits` (1, inputs) to `outputs`
    (1, outputs). Matrices are written out, and those that are equal stored once."""
    graph = GraphWriter(
        shared=True, advice="A smaller net, or a narrower and deeper one, has smaller layers."
    )
    first, last = layers[0].map, layers[-1].map
    bits = graph.input("bits", first.bias.dtype, [1, first.width])
    graph.chain(layers, bits, "layer")
    graph.result("outputs", last.bias.dtype, [1, len(last)])
    return graph.model("relu", notes)


def transformer_model(net: TransformerNet) -> onnx.ModelProto:
    """One decoder step, with the keys and values so far going in and out. A model with a loop inside would
    hide what is worth seeing; a step is small, and a loop around it is four lines in any language:

        output, keys, values = first_output, no rows, no rows
        for step in 0, 1, ...:
            output, halted, keys, values = model(output, bits of step, tokens, keys, values)
            stop if halted

    The caches of all layers stand side by side in two matrices, a row for each step of the past.
    """
    graph, decoder, width, dtype = GraphWriter(), net.decoder, net.layout.width, np.float32
    heads = [block.self_attention for block in decoder.blocks if block.self_attention is not None]
    columns = np.cumsum([0, *(len(head.key) for head in heads)]).tolist()
    sizes = {"keys": columns[-1], "values": len(heads) * width}
    output = graph.input("output", dtype, [width])
    bits = graph.input("time", dtype, [len(decoder.time)])
    tokens = graph.input("tokens", dtype, ["cells", width])
    old = {name: graph.input(f"past_{name}", dtype, ["past", size]) for name, size in sizes.items()}
    spread = np.zeros((len(decoder.time), width), dtype)
    spread[np.arange(len(spread)), list(decoder.time)] = 1
    h = graph.add("Add", output, graph.add("MatMul", bits, graph.constant(spread, "time_to_width")))
    first_axis, second_axis = graph.whole(0), graph.whole(1)
    new: dict[str, list[str]] = {"keys": [], "values": []}
    for number, block in enumerate(decoder.blocks):
        name = f"layer_{number}"
        if (own := block.self_attention) is not None:
            place, seen = len(new["keys"]), []
            ends = [columns[place : place + 2], [place * width, (place + 1) * width]]
            for kind, side, (first, last) in zip(sizes, (own.key, own.value), ends, strict=True):
                row = graph.add("Unsqueeze", graph.affine(side, h, f"{name}.dec.{kind}"), first_axis)
                new[kind].append(row)
                past = graph.add("Slice", old[kind], graph.whole(first), graph.whole(last), second_axis)
                seen.append(graph.add("Concat", past, row, axis=0))
            keys, values = seen
            h = graph.attend(own, h, keys, values, decoder.temperature, f"{name}.dec")
        if (encoder := block.encoder_attention) is not None:
            keys, values = (
                graph.affine(side, tokens, f"{name}.enc.{kind}")
                for kind, side in zip(sizes, (encoder.key, encoder.value), strict=True)
            )
            h = graph.attend(encoder, h, keys, values, decoder.temperature, f"{name}.enc")
        h = graph.chain(block.feed_forward, h, name)
    graph.output("next_output", h, dtype, [width])
    halting = graph.chain(decoder.halting, h, "halting")
    graph.output("halted", graph.add("Greater", halting, graph.constant(np.array(0.5, dtype))), np.bool_, [1])
    for name, size in sizes.items():
        row = graph.add("Concat", *new[name], axis=1)
        together = graph.add("Concat", old[name], row, axis=0)
        graph.output(name, together, dtype, ["past and now", size])
    notes = {
        "first_output": json.dumps(net.h_0.tolist()),
        "coordinates": json.dumps(net.layout.names),
        "steps": str(net.layout.steps),
    }
    return graph.model("transformer", notes)


def rcnn_model(net: RcnnNet) -> onnx.ModelProto:
    """`grid` (channels, rows, columns) to `next_grid`, one step of the machine later."""
    graph, built = GraphWriter(), net.filter
    shape = [built.channels, "rows", "columns"]
    after = graph.convolve(built.convolution, graph.input("grid", built.dtype, shape))
    graph.output("next_grid", after, built.dtype, shape)
    return graph.model("rcnn", {"encoding": net.encoding.name})


def decoder_model(net: DecoderNet) -> onnx.ModelProto:
    """Tokens to logits, with the keys and values so far going in and out: a prompt at once, then a token at a
    time. The greatest logit of the last row is the next token."""
    graph = GraphWriter()
    add_language_model(graph, net.model)
    notes = {
        "words": json.dumps([token.word for token in net.words.program.tokens]),
        "coordinates": json.dumps(net.stream.names),
        "tokens": str(net.tokens),
    }
    return graph.model("decoder", notes)
