"""Networks in PyTorch: a module for any network, whose parameters are the network's weights.

Nothing in it is sparse storage or control flow over values, so that it can be exported, traced, compiled,
differentiated, mapped over batches, copied and moved like any other module. Rows that read few columns gather
what they read; the maps of others are written out. Where layers are just run, `embedding_bag` adds up what
their rows read, as a product with a sparse matrix would, in a half to a quarter of the time; other formats
have no such operation, or have it as a loop. Weights are those of entries: what is no entry of a map stays 0
when a module is trained.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, linear, pad

from tapegrad.networks.backends.numpy import corners
from tapegrad.networks.checking import check
from tapegrad.networks.network import WEIGHTS, Backend, Network, Node
from tapegrad.networks.tiles import Levels, levels_of

PLACES = ("rows", "columns", "bounds", "starts")
"""Parts of maps that are prepared when the module is made."""
MOST_READ = 16
"""Columns that a row gathers at most; maps with rows that read more are written out."""
SMALL = 1 << 14
"""Entries of a matrix that is written out in any case."""


class Layer(NamedTuple):
    """A layer of a node `layers`: its rows, where among what is gathered its own begins, how many columns
    each row reads, whether all rows have a ReLU (1), none has one (0), or some do (-1), and the entries."""

    first: int
    last: int
    begin: int
    fan_in: int
    relu: int
    entries: slice


class NetworkModule(nn.Module):
    """`module(*inputs, *state)` gives the outputs and then the next state as a tuple, each in the order of
    the network; of a network with one output and no state it gives that output. Without the state it takes
    the first step. `steps` takes many."""

    def __init__(self, network: Network, *, trainable: bool = False) -> None:
        super().__init__()
        self.network, self.shapes = network, check(network)
        self.layers: dict[str, list[Layer]] = {}
        self.levels: dict[str, Levels] = {}
        self.bodies = nn.ModuleDict()
        for node in network.nodes:
            if node.body is not None:
                self.bodies[_body(node)] = NetworkModule(node.body, trainable=trainable)
            if node.operation == "affine":
                self._prepare_affine(node)
            if node.operation == "layers":
                self._prepare_layers(node)
            if node.operation == "put":
                self._prepare_put(node)
            if node.operation == "units":
                self._prepare_units(node)
            for part, name in node.arrays.items():
                if (
                    part not in PLACES
                    and node.operation not in ("put", "units")
                    and not hasattr(self, _flat(name))
                ):
                    self._keep(name, trainable if part in WEIGHTS else None)
        for own in network.state.values():
            self._keep(own.first, None)

    def _keep(self, name: str, trainable: bool | None) -> None:
        """An array as a parameter, trainable or not, or as a buffer."""
        array = np.asarray(self.network.arrays[name])
        own = torch.tensor(array, dtype=torch.int64 if array.dtype.kind == "i" else None)
        if trainable is None:
            self.register_buffer(_flat(name), own, persistent=False)
        else:
            self.register_parameter(_flat(name), nn.Parameter(own, requires_grad=trainable))

    def _index(self, name: str, array: NDArray[np.integer]) -> None:
        self.register_buffer(_flat(name), torch.tensor(array, dtype=torch.int64), persistent=False)

    def _prepare_put(self, node: Node) -> None:
        """For each column the one that is put there, or one of zeros behind all; where several are put to one
        column, they are added up by a matrix."""
        to = self.network.array(node, "to")
        width = self.shapes[node.name].width
        assert isinstance(width, int)
        places = np.full(width, len(to))
        places[to] = np.arange(len(to))
        if len(np.unique(to)) == len(to):
            self._index(f"{node.name}.places", places)
        else:
            spread = np.zeros((len(to), width), np.float32)
            spread[np.arange(len(to)), to] = 1
            self.register_buffer(_flat(f"{node.name}.spread"), torch.tensor(spread), persistent=False)

    def _prepare_affine(self, node: Node) -> None:
        rows, columns, bias = (self.network.array(node, part) for part in ("rows", "columns", "bias"))
        width = int(columns.max(initial=0)) + 1
        counts = np.bincount(rows, minlength=len(bias))
        fan_in = int(counts.max(initial=0))
        if fan_in > MOST_READ or len(bias) * width <= SMALL:
            self._index(f"{node.name}.places", np.stack([rows, columns]))
            return
        reads, entries = np.zeros((len(bias), fan_in), np.int64), np.full((len(bias), fan_in), len(rows))
        which = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        reads[rows, which], entries[rows, which] = columns, np.arange(len(rows))
        self._index(f"{node.name}.reads", reads)
        self._index(f"{node.name}.entries", entries)

    def _prepare_layers(self, node: Node) -> None:
        bounds, starts, columns, rectified = (
            self.network.array(node, part) for part in ("bounds", "starts", "columns", "relu")
        )
        layers, every, offsets, begin = [], [], [], 0
        counts = np.diff(starts)
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            fan_in = int(counts[first:last].max(initial=0))
            which = np.arange(fan_in)[:, None]
            own = np.where(which < counts[first:last], starts[first:last] + which, len(columns))
            every.append(own.reshape(-1))
            offsets.append(starts[first : last + 1] - starts[first])
            cut = rectified[first:last] == 1
            relu = 1 if cut.all() else 0 if not cut.any() else -1
            layers.append(Layer(first, last, begin, fan_in, relu, slice(*starts[[first, last]].tolist())))
            begin += own.size
        entries = np.concatenate([np.zeros(0, np.int64), *every])
        self.layers[node.name] = layers
        self._index(f"{node.name}.entries", entries)
        self._index(f"{node.name}.reads", np.append(columns, 0)[entries])
        self._index(f"{node.name}.sources", columns)
        self._index(f"{node.name}.offsets", np.concatenate([np.zeros(0, np.int64), *offsets]))

    def _prepare_units(self, node: Node) -> None:
        starts, columns = self.network.array(node, "starts"), self.network.array(node, "columns")
        given = self.shapes[node.reads[0]].width
        assert isinstance(given, int)
        levels = self.levels[node.name] = levels_of(starts, columns, given)
        parts = {"entries": levels.entries, "reads": columns[levels.entries], "ends": levels.ends}
        for name, own in (parts | {"to": levels.columns}).items():
            self._index(f"{node.name}.{name}", own)

    def first_state(self) -> tuple[Tensor, ...]:
        """The state before the first step."""
        return tuple(getattr(self, _flat(own.first)) for own in self.network.state.values())

    def forward(self, *given: Tensor) -> Tensor | tuple[Tensor, ...]:
        names = [*self.network.inputs, *self.network.state]
        missing = len(names) - len(given)
        first = self.first_state()
        if missing == len(first) and missing:  # none given: the first step
            given = (*given, *first)
        outputs, state = Torch(self).run(dict(zip(names, given, strict=True)))
        made = (*outputs.values(), *state.values())
        return made[0] if len(made) == 1 else made

    def steps(self, steps: int, **given: Tensor) -> Iterator[dict[str, Tensor]]:
        """The outputs of step after step, from these inputs and, where it is given, this state; up to the
        first whose output `halted` is 1."""
        network = self.network
        values = dict(zip(network.state, self.first_state(), strict=True)) | given
        for _ in range(steps):
            outputs, state = Torch(self).run(values)
            yield outputs
            if "halted" in outputs and bool((outputs["halted"] > 0.5).all()):
                return
            values |= state

    def extra_repr(self) -> str:
        return f"{self.network.name}: {', '.join(self.network.inputs)} to {', '.join(self.network.outputs)}"


Sums = Callable[[int, Layer, Tensor, Tensor], Tensor]
"""From the number of a layer, the layer, all slots and the biases to what its rows add up."""


def _is_just_run() -> bool:
    """Whether nobody looks on to write down, map or transform what is computed."""
    return not (
        torch.jit.is_tracing()
        or torch.compiler.is_compiling()
        or torch.onnx.is_in_onnx_export()
        or torch._C._are_functorch_transforms_active()
    )


class Torch(Backend[Tensor]):
    """Values are tensors; arrays are those of a module."""

    def __init__(self, module: NetworkModule) -> None:
        super().__init__(module.network)
        self.module = module

    def part(self, node: Node, part: str) -> Tensor:
        return getattr(self.module, _flat(node.arrays[part]))

    def prepared(self, node: Node, part: str) -> Tensor | None:
        """What the module keeps for a node beside its arrays."""
        return getattr(self.module, _flat(f"{node.name}.{part}"), None)

    def _kept(self, node: Node, *parts: str) -> tuple[Tensor, ...]:
        return tuple(getattr(self.module, _flat(f"{node.name}.{part}")) for part in parts)

    def affine(self, node: Node, x: Tensor) -> Tensor:
        values, bias = self.part(node, "values"), self.part(node, "bias")
        places = self.prepared(node, "places")
        if places is not None:
            weight = values.new_zeros(len(bias), x.shape[-1])
            return linear(x, weight.index_put((places[0], places[1]), values, accumulate=True), bias)
        reads, entries = self._kept(node, "reads", "entries")
        return (x[..., reads] * pad(values, (0, 1))[entries]).sum(-1) + bias

    def layers(self, node: Node, x: Tensor) -> Tensor:
        biases, to, rectified = (self.part(node, part) for part in ("biases", "to", "relu"))
        sums_of = self._bags(node) if _is_just_run() else self._gathered(node)
        room = node.whole("slots") - x.shape[-1]
        slots = pad(x.reshape(-1, x.shape[-1]) if x.ndim > 1 else x[None], (0, room)).T
        # In place where nothing is differentiated: a copy of all slots takes longer than the layer.
        apart = torch.is_grad_enabled() or torch.jit.is_tracing()
        for number, layer in enumerate(self.module.layers[node.name]):
            rows, size = slice(layer.first, layer.last), layer.last - layer.first
            sums = sums_of(number, layer, slots, biases[rows, None])
            if layer.relu:
                cut = torch.relu(sums)
                sums = cut if layer.relu > 0 else torch.where(rectified[rows, None] == 1, cut, sums)
            sums = sums.expand(size, slots.shape[1])
            slots = (slots.index_copy if apart else slots.index_copy_)(0, to[rows], sums)
        found = slots[self.part(node, "out")].T
        return found.reshape(*x.shape[:-1], found.shape[-1])

    def _bags(self, node: Node) -> Sums:
        """What rows add up, one sum of what each reads."""
        values, (sources, offsets) = self.part(node, "values"), self._kept(node, "sources", "offsets")

        def sums(number: int, layer: Layer, slots: Tensor, biases: Tensor) -> Tensor:
            if layer.entries.start == layer.entries.stop:
                return biases
            own = offsets[layer.first + number : layer.last + number + 1]
            made = embedding_bag(
                sources[layer.entries],
                slots,
                own,
                mode="sum",
                per_sample_weights=values[layer.entries],
                include_last_offset=True,
            )
            return made + biases

        return sums

    def _gathered(self, node: Node) -> Sums:
        """The same entry by entry: the first of every row, the second, and so on."""
        reads, entries = self._kept(node, "reads", "entries")
        weights = pad(self.part(node, "values"), (0, 1))[entries]

        def sums(number: int, layer: Layer, slots: Tensor, total: Tensor) -> Tensor:
            size = layer.last - layer.first
            for entry in range(layer.fan_in):
                own = slice(layer.begin + entry * size, layer.begin + (entry + 1) * size)
                total = torch.addcmul(total, slots.index_select(0, reads[own]), weights[own, None])
            return total

        return sums

    def relu(self, node: Node, x: Tensor) -> Tensor:
        return torch.relu(x)

    def clip(self, node: Node, x: Tensor) -> Tensor:
        return x.clamp(node.number("low"), node.number("high"))

    def sqrt(self, node: Node, x: Tensor) -> Tensor:
        return torch.sqrt(x)

    def detach(self, node: Node, x: Tensor) -> Tensor:
        return x.detach()

    def add(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def multiply(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        return x * y

    def divide(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        return x / y

    def greater(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        return (x > y).to(x.dtype)

    def total(self, node: Node, x: Tensor) -> Tensor:
        return x.sum(dim=tuple(range(-node.whole("axes"), 0)))

    def take(self, node: Node, x: Tensor) -> Tensor:
        return x[..., self.part(node, "index")]

    def put(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        spread = self.prepared(node, "spread")
        if spread is not None:
            return x + y @ spread.to(y.dtype)
        (places,) = self._kept(node, "places")
        return x + pad(y, (0, 1))[..., places].to(x.dtype)

    def join(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        axis = node.whole("axis")
        own = max(2, -axis)  # axes in front are batches
        if x.ndim < y.ndim:
            x = x.expand(*y.shape[: y.ndim - own], *x.shape[-own:])
        if y.ndim < x.ndim:
            y = y.expand(*x.shape[: x.ndim - own], *y.shape[-own:])
        return torch.cat([x, y], axis)

    def product(self, node: Node, x: Tensor, y: Tensor) -> Tensor:
        return x @ (y.transpose(-1, -2) if node.settings["turned"] else y)

    def later(self, node: Node, x: Tensor) -> Tensor:
        rows, places = x.shape[-2:]
        later = torch.ones(rows, places, dtype=torch.bool, device=x.device).triu(1 + places - rows)
        return x.masked_fill(later, -torch.inf)

    def hardmax(self, node: Node, x: Tensor) -> Tensor:
        best = (x == x.amax(-1, keepdim=True)).to(x.dtype)
        return best / best.sum(-1, keepdim=True)

    def softmax(self, node: Node, x: Tensor) -> Tensor:
        return torch.softmax(x * node.number("temperature"), -1)

    def embed(self, node: Node, n: Tensor) -> Tensor:
        return nn.functional.embedding(n, self.part(node, "table"))

    def places(self, node: Node, n: Tensor, past: Tensor) -> Tensor:
        return past.shape[-2] + torch.arange(n.shape[-1], device=n.device)

    def digits(self, node: Node, n: Tensor) -> Tensor:
        powers = 2 ** torch.arange(node.whole("count"), device=n.device)
        shifted = torch.div(n.clamp_min(0)[..., None], powers, rounding_mode="floor")
        return self._number(torch.remainder(shifted, 2))

    def quotient(self, node: Node, n: Tensor) -> Tensor:
        return torch.div(n, node.whole("by"), rounding_mode="floor")

    def remainder(self, node: Node, n: Tensor) -> Tensor:
        return torch.remainder(n, node.whole("by"))

    def onehot(self, node: Node, n: Tensor) -> Tensor:
        return self._number(n[..., None] == torch.arange(node.whole("count"), device=n.device))

    def ladder(self, node: Node, n: Tensor) -> Tensor:
        return self._number(torch.arange(node.whole("count"), device=n.device) < n[..., None])

    def patches(self, node: Node, x: Tensor) -> Tensor:
        rows, columns, channels = x.shape
        padded = pad(x, (0, 0, 1, 1, 1, 1), value=node.number("padding"))
        shifts = [padded[r : r + rows, c : c + columns] for r, c in corners(node)]
        return torch.stack(shifts, -1).reshape(rows, columns, channels * len(shifts))

    def transpose(self, node: Node, x: Tensor) -> Tensor:
        return x.permute(node.list("order"))

    def reshape(self, node: Node, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[: x.ndim - node.whole("axes")], *node.list("sizes"))

    def units(self, node: Node, x: Tensor, w: Tensor) -> Tensor:
        body, levels = self.module.bodies[_body(node)], self.module.levels[node.name]
        entries, reads, ends, columns = (
            getattr(self.module, _flat(f"{node.name}.{part}")) for part in ("entries", "reads", "ends", "to")
        )
        made = pad(x, (0, len(columns)))
        pairs = zip(pairwise(levels.units_to), pairwise(levels.entries_to), strict=True)
        for (first, last), (begin, end) in pairs:
            terms = w[..., entries[begin:end]] * made[..., reads[begin:end]]
            sums = terms.new_zeros(*terms.shape[:-1], last - first).index_add(-1, ends[begin:end], terms)
            made = made.index_copy(-1, columns[first:last], body(sums))
        return made

    def repeat(self, node: Node, x: Tensor) -> Tensor:
        body = self.module.bodies[_body(node)]
        for _ in range(node.whole("count")):
            x = body(x)  # of a network with one state and no outputs that state
        return x

    def _number(self, x: Tensor) -> Tensor:
        """In the precision that the module has been brought to."""
        return x.to(next(self.module.parameters()).dtype)


def _flat(name: str) -> str:
    """The name of a parameter, which has no dots."""
    return name.replace(".", "_")


def _body(node: Node) -> str:
    """The name of the module of a node's body."""
    return f"body_{_flat(node.name)}"
