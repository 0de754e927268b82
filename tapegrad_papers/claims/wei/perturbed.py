"""A corrected ReLU network in plain NumPy with noise on any of its layers: the g_i and h_i of (D.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.backends.numpy import chain
from tapegrad.networks.form import Dense, Matrix
from tapegrad_papers.theory.blocks import Chain
from tapegrad_papers.theory.relu_chain import relu_chain
from tapegrad_papers.wei.section_3 import adder, compiled_relu, dense, every_pattern

Matrices = list[NDArray[np.float64]]


@dataclass(frozen=True)
class CorrectedNetwork:
    """f_1, zeta_1, f_2, ..., f_d, each a list of matrices and biases, and what appendix D says of it."""

    functions: list[Matrices]
    corrections: list[Matrices]
    chain: Chain
    inputs: NDArray[np.float64]

    def run(self, theta: list[Matrices], xi: list[Matrices]) -> tuple[Matrices, Matrices]:
        """The values before each correction, and after it; the last value is the output."""
        before, after, values = [], [], self.inputs
        for number, layers in enumerate(theta):
            last = number == len(theta) - 1
            values = apply(layers, values, linear=last)
            before.append(values)
            if not last:
                values = apply(xi[number], values)
                after.append(values)
        return before, after


def apply(layers: Matrices, values: NDArray[np.float64], linear: bool = False) -> NDArray[np.float64]:
    """W, b, W, b, ... with a ReLU after each, or none."""
    maps = [Matrix(W, b) for W, b in zip(layers[::2], layers[1::2], strict=True)]
    return chain(tuple(Dense(own, "linear" if linear else "relu") for own in maps), values.T).T


def corrected_adder(bits: int) -> CorrectedNetwork:
    """An adder with the paper's corrections, on all its inputs."""
    net = compiled_relu(adder(bits))[1]
    layers = [dense(net, number) for number in range(net.depth + 1)]
    pairs = [[part for layer in layers[i : i + 2] for part in layer] for i in range(0, net.depth, 2)]
    functions = [*pairs[::2], list(layers[-1])]
    return CorrectedNetwork(functions, pairs[1::2], relu_chain(net), every_pattern(2 * bits).astype(float))


def noisy(matrices: Matrices, size: float, random: np.random.Generator, spread: bool) -> Matrices:
    """The matrices with noise of this 2-norm: spread over all entries, or on one of them."""
    lengths = [part.size for part in matrices]
    noise = np.zeros(sum(lengths))
    if spread:
        noise[:] = random.normal(size=len(noise))
    else:
        noise[random.integers(len(noise))] = random.choice([-1.0, 1.0])
    noise *= size / np.linalg.norm(noise)
    pieces = np.split(noise, np.cumsum(lengths)[:-1])
    return [part + piece.reshape(part.shape) for part, piece in zip(matrices, pieces, strict=True)]
