"""Layers as PyTorch modules. Dense layers take rows: a tensor of shape (..., width)."""

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from tapegrad.networks.form import (
    Activation,
    Affine,
    Attention,
    Block,
    Convolution,
    Correction,
    Decoder,
    Dense,
    Matrix,
    Recurrence,
    Stack,
)
from tapegrad.networks.skips import Slots, Units


class AffineModule(nn.Module):
    """`x A^T + b` by the entries of A."""

    rows: Tensor
    columns: Tensor

    def __init__(self, own: Affine) -> None:
        super().__init__()
        self.register_buffer("rows", _tensor(own.rows))
        self.register_buffer("columns", _tensor(own.columns))
        self.values, self.bias = nn.Parameter(_tensor(own.values)), nn.Parameter(_tensor(own.bias))

    def forward(self, x: Tensor) -> Tensor:
        start = self.bias.expand(*x.shape[:-1], -1)
        return start.index_add(-1, self.rows, self.values * x[..., self.columns])


class FanIn(nn.Module):
    """`x W^T + b` where every row of W has the same few entries: row u reads `x[inputs[u]]`. What a
    `nn.Linear` does with a matrix of zeros, in the space of the entries; `dense()` writes that one out."""

    inputs: Tensor

    def __init__(self, inputs: Tensor, weight: Tensor, bias: Tensor, width: int) -> None:
        super().__init__()
        self.register_buffer("inputs", inputs)
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        if self.width == 0:  # rows of constants name place 0, which an empty layer does not have
            x = nn.functional.pad(x, (0, 1))
        return (x[:, self.inputs] * self.weight).sum(-1) + self.bias

    def dense(self) -> nn.Linear:
        """The same layer as PyTorch writes it."""
        rows = len(self.bias)
        weight = torch.zeros(rows, self.width, dtype=self.bias.dtype)
        if self.width:
            number = torch.arange(rows)[:, None].expand_as(self.inputs)
            # Added, not set: both inputs of a row may be the same.
            weight.index_put_((number, self.inputs), self.weight.detach(), accumulate=True)
        return linear(weight, self.bias.detach())

    def sparse(self) -> Tensor:
        """The weights as they are now, as a sparse matrix without zeros. Both inputs of a row may be the
        same, and are then one entry."""
        rows = len(self.bias)
        number = torch.arange(rows, device=self.inputs.device)[:, None].expand_as(self.inputs)
        used = self.weight.detach() != 0
        places = torch.stack([number[used], self.inputs[used]])
        size = (rows, max(1, self.width))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
            made = torch.sparse_coo_tensor(places, self.weight.detach()[used], size, check_invariants=False)
            return made.to_sparse_csr()

    def extra_repr(self) -> str:
        return f"{self.width} -> {len(self.bias)}"


class _Kept:
    """Sparse matrices, made when they are first needed and again when the weights are others. A copy of the
    module starts without."""

    def __init__(self) -> None:
        self._of: object = None
        self._matrices: list[Tensor] = []

    def __reduce__(self) -> tuple[type["_Kept"], tuple[()]]:
        return _Kept, ()

    def matrices(self, weights: Sequence[Tensor], make: Callable[[], list[Tensor]]) -> list[Tensor]:
        now = [(own._version, own.data_ptr()) for own in weights]
        if self._of != now:
            self._of, self._matrices = now, make()
        return self._matrices


class CorrectionModule(nn.Module):
    """A ReLU, and the correction after it."""

    def __init__(self, own: Correction) -> None:
        super().__init__()
        self.own = own

    def forward(self, z: Tensor) -> Tensor:
        numbers = (self.own.low, self.own.high, self.own.gain)
        low, high, gain = (torch.tensor(number, dtype=z.dtype) for number in numbers)
        z = torch.relu(z)
        return torch.relu(gain * torch.relu(z - low) - gain * torch.relu(z - high))


class AttentionModule(nn.Module):
    """`h + mean of the values with the best scores`, or by their softmax; with a null key and value."""

    def __init__(self, attention: Attention, temperature: float | None) -> None:
        super().__init__()
        self.query, self.key, self.value = (
            map_module(own) for own in (attention.query, attention.key, attention.value)
        )
        self.null_key = nn.Parameter(_tensor(attention.null_key))
        self.null_value = nn.Parameter(_tensor(attention.null_value))
        self.temperature = temperature

    def forward(self, h: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        scores = torch.cat([self.null_key[None], keys]) @ self.query(h)
        if self.temperature is None:
            best = (scores == scores.max()).to(h.dtype)
            weights = best / best.sum()
        else:
            weights = torch.softmax(self.temperature * scores, 0)
        return h + weights @ torch.cat([self.null_value[None], values])


class BlockModule(nn.Module):
    """Attention to the past, attention to the tokens, dense layers."""

    def __init__(self, block: Block, temperature: float | None) -> None:
        super().__init__()
        self.purpose = block.purpose
        own, encoder = block.self_attention, block.encoder_attention
        self.self_attention = None if own is None else AttentionModule(own, temperature)
        self.encoder_attention = None if encoder is None else AttentionModule(encoder, temperature)
        self.feed_forward = chain(block.feed_forward)

    def forward(self, h: Tensor, past: list[tuple[Tensor, Tensor]], tokens: Tensor) -> Tensor:
        """One step; `past` holds key and value of earlier steps, and gets those of this one."""
        if (own := self.self_attention) is not None:
            past.append((own.key(h), own.value(h)))
            keys, values = (torch.stack(column) for column in zip(*past, strict=True))
            h = own(h, keys, values)
        if (encoder := self.encoder_attention) is not None:
            h = encoder(h, encoder.key(tokens), encoder.value(tokens))
        return self.feed_forward(h)


class DecoderModule(nn.Module):
    """`module(tokens, steps)` gives the outputs of all steps as rows, up to the halt."""

    def __init__(self, decoder: Decoder, steps: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(BlockModule(block, decoder.temperature) for block in decoder.blocks)
        self.start = nn.Parameter(_tensor(decoder.start))
        self.halting = chain(decoder.halting)
        self.time, self.steps = list(decoder.time), steps

    def forward(self, tokens: Tensor, steps: int | None = None) -> Tensor:
        most = self.steps if steps is None else min(steps, self.steps)
        past: list[list[tuple[Tensor, Tensor]]] = [[] for _ in self.blocks]
        h, outputs = self.start, []
        for step in range(most + 1):
            time = torch.zeros_like(h)
            time[self.time] = (step >> torch.arange(len(self.time)) & 1).to(h)
            h = h + time
            for block, own in zip(self.blocks, past, strict=True):
                h = block(h, own, tokens)
            outputs.append(h)
            if self.halting(h)[0] > 0.5:
                break
        return torch.stack(outputs)


class ConvolutionModule(nn.Module):
    """Dense layers on the 3x3 patch of every cell, cut out. Takes and gives grids (channels, rows,
    columns)."""

    def __init__(self, convolution: Convolution) -> None:
        super().__init__()
        self.layers, self.padding = chain(convolution.layers), convolution.padding
        self.corners = convolution.corners()

    def forward(self, grid: Tensor) -> Tensor:
        rows, columns = grid.shape[1:]
        padded = nn.functional.pad(grid, (1, 1, 1, 1), value=self.padding)
        shifts = [padded[:, r : r + rows, c : c + columns] for r, c in self.corners]
        patches = torch.stack(shifts, 1).reshape(-1, rows * columns).T
        return self.layers(patches).T.reshape(-1, rows, columns)


def convolution(own: Convolution) -> nn.Module:
    """PyTorch's own convolutions where the value outside is 0 and the maps are written out."""
    maps = [layer.map for layer in own.layers if isinstance(layer.map, Matrix)]
    if own.padding != 0 or len(maps) < len(own.layers) or len(own.cells) < 9:
        return ConvolutionModule(own)
    parts: list[nn.Module] = []
    for layer, written in zip(own.layers, maps, strict=True):
        size, channels = (1, written.width) if parts else (3, own.channels)
        bias = bool(np.asarray(written.bias).any())
        made = nn.Conv2d(channels, len(written), size, padding=size // 2, bias=bias)
        with torch.no_grad():
            made.weight.copy_(_tensor(written.weight).reshape(made.weight.shape))
            if made.bias is not None:
                made.bias.copy_(_tensor(written.bias))
        parts += [made, *_activation(layer.activation)]
    return nn.Sequential(*parts)


class RecurrenceModule(nn.Module):
    """`module(z)` is the output for one input; `memory` is the one parameter that is trained."""

    around: Tensor

    def __init__(self, own: Recurrence, memory: Float[np.ndarray, "rows columns"]) -> None:
        super().__init__()
        self.memory = nn.Parameter(_tensor(memory))
        self.direct = map_module(own.direct).requires_grad_(False)
        self.units = chain(own.units).requires_grad_(False)
        self.filter = convolution(own.convolution).requires_grad_(False)
        self.head = chain(own.head).requires_grad_(False)
        self.register_buffer("around", _tensor(own.around))
        self.own = own

    def forward(self, z: Tensor) -> Tensor:
        products = (self.memory * z)[..., None]
        cells = self.direct(products)
        if len(self.units):
            cells = cells + self.units(products)
        top, bottom, left, right = self.own.frame
        edges = (left, right, top, bottom)
        inside = nn.functional.pad(torch.ones_like(self.memory, dtype=torch.bool), edges)
        around = self.around[:, None, None]
        grid = torch.where(inside, nn.functional.pad(cells.permute(2, 0, 1), edges), around)
        for _ in range(self.own.layers):
            grid = self.filter(grid)
        return self.head(self.own.main(grid).permute(1, 2, 0)).sum()


class StackModule(nn.Sequential):
    """Layers of units with few inputs, a ReLU between any two. Takes and gives rows of values. Each layer is
    the product with a sparse matrix (CSR), which PyTorch does not differentiate by its entries; with
    `differentiable` what the units read is gathered instead."""

    def __init__(self, stack: Stack, *, differentiable: bool = False) -> None:
        super().__init__()
        self.differentiable, self._kept = differentiable, _Kept()
        for layer in range(stack.layers):
            own = slice(int(stack.bounds[layer]), int(stack.bounds[layer + 1]))
            inputs, weights, biases = (_tensor(a[own]) for a in (stack.inputs, stack.weights, stack.biases))
            self.append(FanIn(inputs.long(), weights, biases, stack.size(layer - 1)))
            self.append(nn.ReLU())
        del self[-1]  # the last layer is linear

    def forward(self, input: Tensor) -> Tensor:
        if self.differentiable:
            return super().forward(input)
        layers = [part for part in self if isinstance(part, FanIn)]
        matrices = self._kept.matrices(
            [own.weight for own in layers], lambda: [own.sparse() for own in layers]
        )
        with torch.no_grad():
            values = input.T if layers[0].width else input.new_zeros(1, len(input))
            for number, (own, matrix) in enumerate(zip(layers, matrices, strict=True)):
                if number:
                    values = values.relu_() if len(values) else values.new_zeros(1, len(input))
                values = (matrix @ values).add_(own.bias[:, None])
            return values.T

    def dense(self) -> nn.Sequential:
        """The same network made of `nn.Linear` and `nn.ReLU` alone, for nets that are not too wide."""
        return nn.Sequential(*(part.dense() if isinstance(part, FanIn) else nn.ReLU() for part in self))


class SkipsModule(nn.Module):
    """Units with skip connections. Takes and gives rows of values; inside, a running state with a row for
    each slot. A layer is the product of a sparse matrix (CSR) with the state. PyTorch does not differentiate
    by the entries of such a matrix, so with `differentiable` the same sums are taken entry by entry."""

    reads: Tensor
    rows: Tensor
    into: Tensor
    out: Tensor
    starts: Tensor
    weights: Tensor
    biases: Tensor
    out_weights: Tensor
    out_biases: Tensor

    def __init__(self, units: Units, slots: Slots, dtype: np.dtype, *, differentiable: bool) -> None:
        super().__init__()
        self.differentiable, self._kept = differentiable, _Kept()
        self.inputs, self.slots = units.inputs, max(1, slots.total)
        starts = units.starts
        self.layers = [
            (begin, end, int(starts[begin]), int(starts[end]))
            for begin, end in pairwise(units.bounds.tolist())
        ]
        layer_begin = np.repeat(units.bounds[:-1], np.diff(units.bounds))
        unit = np.repeat(np.arange(len(units.biases)), units.counts)
        self.register_buffer("starts", _tensor(starts))
        self.register_buffer("reads", _tensor(slots.of_place[units.places].astype(np.int64)))
        self.register_buffer("rows", _tensor(unit - layer_begin[unit]))
        self.register_buffer("into", _tensor(slots.of_place[units.inputs :].astype(np.int64)))
        used = units.out_weights != 0
        out = np.zeros(len(used), np.int64)
        out[used] = slots.of_place[units.out_places[used]]
        self.register_buffer("out", _tensor(out))
        for name in ("weights", "biases", "out_weights", "out_biases"):
            setattr(self, name, nn.Parameter(_tensor(getattr(units, name).astype(dtype))))

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(self.slots, len(x))
        state[: self.inputs] = x.T
        matrices = [None] * len(self.layers) if self.differentiable else self._sparse()
        with torch.set_grad_enabled(self.differentiable and torch.is_grad_enabled()):
            for (begin, end, first, last), matrix in zip(self.layers, matrices, strict=True):
                if matrix is None:
                    terms = self.weights[first:last, None] * state[self.reads[first:last]]
                    sums = terms.new_zeros(end - begin, len(x)).index_add(0, self.rows[first:last], terms)
                else:
                    sums = matrix @ state
                values = torch.relu(sums + self.biases[begin:end, None])
                state = state.index_copy(0, self.into[begin:end], values) if matrix is None else state
                if matrix is not None:
                    state[self.into[begin:end]] = values
            return (self.out_weights[:, None] * state[self.out] + self.out_biases[:, None]).T

    def _sparse(self) -> list[Tensor]:
        return self._kept.matrices([self.weights], self._matrices)

    def _matrices(self) -> list[Tensor]:
        """A sparse matrix for each layer, from the weights as they are now."""
        weights = self.weights.detach()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
            return [
                torch.sparse_csr_tensor(
                    self.starts[begin : end + 1] - first,
                    self.reads[first:last],
                    weights[first:last],
                    (end - begin, self.slots),
                    check_invariants=False,  # the net's places were checked when it was made
                )
                for begin, end, first, last in self.layers
            ]


def map_module(own: Affine | Matrix) -> nn.Module:
    """An affine map, in the storage that it comes in."""
    if isinstance(own, Affine):
        return AffineModule(own)
    return linear(_tensor(own.weight), _tensor(own.bias))


def chain(layers: tuple[Dense, ...]) -> nn.Sequential:
    """Layers one after the other."""
    parts = [[map_module(layer.map), *_activation(layer.activation)] for layer in layers]
    return nn.Sequential(*(module for part in parts for module in part))


def _activation(activation: Activation) -> list[nn.Module]:
    if isinstance(activation, Correction):
        return [CorrectionModule(activation)]
    return [nn.ReLU()] if activation == "relu" else []


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A `nn.Linear` with these parameters."""
    rows, width = weight.shape
    made = nn.Linear(width, rows, dtype=weight.dtype, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        made.weight.copy_(weight)
        made.bias.copy_(bias)
    return made


def _tensor(array: object) -> Tensor:
    return torch.tensor(np.asarray(array))
