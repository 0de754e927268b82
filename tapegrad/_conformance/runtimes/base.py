"""What runtimes have in common: networks in a number format, by backends whose arrays look like NumPy's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.formats import INT8, Form
from tapegrad._conformance.training import Training, names_of
from tapegrad.networks.network import OPERATIONS, Backend, Node

Program = Callable[[Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]]
"""From inputs to the layers that are wanted."""


class Unsupported(Exception):
    """A runtime has no such operation, format or level; it says why."""


class Patches(NamedTuple):
    """The squares around all cells of a grid, of which a convolution makes what an affine node asks for."""

    grid: Any
    node: Node


class Runtime(Backend[Any]):
    """A backend that is given a network in a format. What it lacks is refused."""

    form: Form

    def __getattr__(self, name: str) -> Any:
        if name in OPERATIONS:
            raise Unsupported(f"this runtime has no {name!r} here")
        raise AttributeError(name)

    def wanted(self, given: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
        """The values that are wanted."""
        kept = set(wanted)
        return [value for node, value in self.values(given) if node.name in kept]

    def patches(self, node: Node, x: Any) -> Any:
        if node.list("cells") == tuple(range(9)) and not node.number("padding"):
            return Patches(x, node)
        plain = getattr(super(), "patches", None)  # of the backend beside this class
        if plain is None:
            raise Unsupported("this runtime has no patches here but those of a convolution with zeros around")
        return plain(node, x)

    def kernel(self, node: Node, channels: int) -> NDArray[Any]:
        """The map of an affine node that reads patches: outputs, channels, rows, columns."""
        return self.form.matrix(node, 9 * channels).T.reshape(-1, channels, 3, 3)


class ArrayRuntime(Runtime):
    """Maps, written out or by what each unit reads, by operations that all array libraries have. They differ
    in `product_of(x, y)`, of bytes in 32 bits, `convolved(x, kernel)`, with zeros around and the channels
    last, and `as_type(x, name)`, between types of whole numbers."""

    def sums(self, x: Any) -> Any:
        """Over the last axis."""
        return x.sum(-1)

    def kept(self, name: str, make: Callable[[], NDArray[Any]]) -> Any:
        """An array of the library's own, made once."""
        if name not in self._made:
            self._made[name] = self.constant_of(make())
        return self._made[name]

    def affine(self, node: Node, x: Any) -> Any:
        form, name, bytewise = self.form, node.name, self.form.format == INT8
        if isinstance(x, Patches):
            kernel = self.kept(f"{name} kernel", lambda: self.kernel(node, x.grid.shape[-1]))
            z = self.convolved(x.grid, kernel)
        elif form.written:
            z = self.product_of(x, self.kept(f"{name} matrix", lambda: form.matrix(node, x.shape[-1])))
        else:
            read = x[..., self.kept(f"{name} reads", lambda: form.gathers(node)[0])]
            z = self.sums((self.as_type(read, "int32") if bytewise else read) * self._weights(node))
        z = z + self.part(node, "bias")
        return self.as_type(z, INT8) if bytewise else z

    def _weights(self, node: Node) -> Any:
        """What the columns that each row reads are multiplied by."""
        trained = self._given.get(node.arrays["values"])
        if trained is None:
            return self.kept(f"{node.name} weights", lambda: self.form.read_weights(node))
        entries, there = (
            self.kept(f"{node.name} {part}", lambda part=part: self.form.gathers(node)[part])
            for part in (1, 2)
        )
        return trained[entries] * there

    def product(self, node: Node, x: Any, y: Any) -> Any:
        return self.product_of(x, y.T if node.settings["turned"] else y)


def program_of(
    own: ArrayRuntime,
    wanted: Sequence[str],
    given: Callable[[NDArray[Any]], Any] = np.asarray,
    to_numpy: Callable[[Any], NDArray[Any]] = np.asarray,
    compiled: Callable[[Any], Any] = lambda run: run,
) -> Program:
    """The network, ready to run on arrays that are brought to the library and back."""
    run = compiled(lambda inputs: own.wanted(inputs, wanted))

    def program(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        found = run({key: given(array) for key, array in inputs.items()})
        return dict(zip(wanted, map(to_numpy, found), strict=True))

    return program


def trained(
    training: Training,
    step: Callable[[dict[str, Any], Any, Any], tuple[list[Any], dict[str, Any]]],
    given: Callable[[NDArray[Any]], Any] = np.asarray,
    to_numpy: Callable[[Any], NDArray[Any]] = np.asarray,
) -> dict[str, NDArray[Any]]:
    """All steps, by a function that takes one: from weights, input and label to the values of the levels and
    the new weights."""
    found, weights = list[Any](), {name: given(array) for name, array in training.weights.items()}
    for row, label in zip(training.rows, training.labels, strict=True):
        values, weights = step(weights, given(row[None]), given(label))
        found += map(to_numpy, [*values, *(weights[name] for name in training.weights)])
    return dict(zip(names_of(training.form.network, len(training.rows)), found, strict=True))
