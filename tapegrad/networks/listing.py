"""A network as text: `print(net.network)`."""

from collections.abc import Iterator

from tapegrad.networks.checking import Shape, check
from tapegrad.networks.network import Network, Node

WIDEST = 100
"""Columns of a line before what it is for."""


def listing(network: Network) -> str:
    """One line for each input, state, node and output."""
    found = [f"network {network.name}"]
    bodies = {node.name: node.body for node in network.nodes}
    for name, line in lines(network):
        found.append(line)
        if (body := bodies.get(name)) is not None:
            found += [f"    {own}" for own in listing(body).splitlines()]
    found += [f"  output {name} = {value}" for name, value in network.outputs.items()]
    if (rule := network.training) is not None:
        found += [f"  train {name} {update}, by {rule.loss}" for name, update in rule.updates.items()]
        if rule.stop is not None:
            found.append(f"  until {rule.loss} <= {rule.stop:g}")
    return "\n".join(found)


def lines(network: Network) -> Iterator[tuple[str, str]]:
    """Every input, state and node with its line."""
    shapes = check(network)
    for name, port in network.inputs.items():
        yield name, _line("input", name, Shape(port.shape, port.dtype), "", port.about)
    for name, own in network.state.items():
        shape = Shape(own.port.shape, own.port.dtype)
        yield name, _line("state", name, shape, f"then {own.next}", own.port.about)
    for node in network.nodes:
        settings = [f"{name}={value}" for name, value in node.settings.items()]
        called = f"= {node.operation}({', '.join((*node.reads, *settings))}){_size(network, node)}"
        yield node.name, _line("", node.name, shapes[node.name], called, node.about)


def _line(kind: str, name: str, shape: Shape, made: str, about: str) -> str:
    said = f"  {kind + ' ' if kind else ''}{name}: {_shape(shape)} {made}".rstrip()
    return f"{said:{WIDEST}}# {about}" if about else said


def _shape(shape: Shape) -> str:
    return f"{shape.dtype}[{', '.join(map(str, shape.sizes))}]"


def _size(network: Network, node: Node) -> str:
    """How large a map is."""
    if node.operation == "affine":
        return f"  {len(network.array(node, 'values')):,} entries"
    if node.operation == "layers":
        counts = (len(network.array(node, part)) for part in ("bounds", "biases", "values"))
        layers, units, entries = counts
        return f"  {layers - 1:,} layers, {units:,} rows, {entries:,} entries"
    if node.operation == "constant" and (value := network.array(node, "value")).size == 1:
        return f"  {value.item():g}"
    if node.operation == "units":
        starts, columns = (len(network.array(node, part)) for part in ("starts", "columns"))
        return f"  {starts - 1:,} units, {columns:,} entries"
    return ""
