"""A network as text: `print(net.network)`."""

from collections.abc import Iterator

import numpy as np

from tapegrad.networks.checking import Shape, check
from tapegrad.networks.form import formula
from tapegrad.networks.network import Network, Node

WIDEST = 100
"""Columns of a line before what it is for."""


def listing(network: Network) -> str:
    """One line for each input, state, node and output."""
    shapes = check(network)
    lines = [f"network {network.name}"]
    for name, port in network.inputs.items():
        lines.append(_line("input", name, Shape(port.shape, port.dtype), "", port.about))
    for name, own in network.state.items():
        shape = Shape(own.port.shape, own.port.dtype)
        lines.append(_line("state", name, shape, f"then {own.next}", own.port.about))
    for node in network.nodes:
        settings = [f"{name}={value}" for name, value in node.settings.items()]
        called = f"{node.operation}({', '.join((*node.reads, *settings))})"
        lines.append(_line("", node.name, shapes[node.name], f"= {called}{_size(network, node)}", node.about))
        if node.body is not None:
            lines += [f"    {line}" for line in listing(node.body).splitlines()]
    lines += [f"  output {name} = {value}" for name, value in network.outputs.items()]
    if (rule := network.training) is not None:
        lines += [f"  train {name} {update}, by {rule.loss}" for name, update in rule.updates.items()]
        if rule.stop is not None:
            lines.append(f"  until {rule.loss} <= {rule.stop:g}")
    return "\n".join(lines)


def rows(network: Network, name: str) -> Iterator[str]:
    """What each row of an affine node or of layers computes, as a formula of the columns that it reads."""
    node = next((own for own in network.nodes if own.name == name), None)
    if node is None or node.operation not in ("affine", "layers"):
        return
    names = network.columns.get(node.reads[0], ())
    columns, values = (network.array(node, part).tolist() for part in ("columns", "values"))
    if node.operation == "affine":
        bias = network.array(node, "bias")
        starts = np.searchsorted(network.array(node, "rows"), np.arange(len(bias) + 1)).tolist()
        for row, own in enumerate(bias.tolist()):
            part = slice(starts[row], starts[row + 1])
            yield formula(_terms(names, columns[part], values[part]), own)
        return
    starts, to, relu = (network.array(node, part).tolist() for part in ("starts", "to", "relu"))
    for row, own in enumerate(network.array(node, "biases").tolist()):
        part = slice(starts[row], starts[row + 1])
        made = formula(_terms(names, columns[part], values[part]), own)
        yield f"{_name(names, to[row])} = {f'relu({made})' if relu[row] else made}"


def _terms(names: tuple[str, ...], columns: list[int], values: list[float]) -> list[tuple[str, float]]:
    return [(_name(names, column), value) for column, value in zip(columns, values, strict=True)]


def _name(names: tuple[str, ...], column: int) -> str:
    return names[column] if column < len(names) else f"x[{column}]"


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
