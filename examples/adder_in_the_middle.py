"""A compiled adder as the middle layer of a network that is trained by PyTorch.

Every bit of two numbers is drawn as eight noisy values. The network sees these drawings and is told the bits
of the sum, nothing else. So its first layers must learn to read a drawing through the adder.

    with the adder     read -> compiled adder (frozen) -> scale
    without            read -> a trained recurrent layer (GRU) -> scale

Both are trained on numbers of 4 bits. Then they add longer ones: the adder is swapped for a longer one, and
the recurrent layer runs on for longer. The task and its noise were chosen on seeds 0, 1 and 2, so that
the network with the adder is always right; the seeds below are others.

python examples/adder_in_the_middle.py
"""

import torch
from torch import Tensor, nn

import tapegrad as tg

TRAINED, TESTED, SEEDS = 4, (4, 8, 16, 32), (3, 4, 5)
WIDTH, NOISE, STEPS, BATCH = 8, 0.2, 600, 64


def adder(bits: int) -> nn.Module:
    """A layer that takes the bits of two numbers, and gives those of their sum."""
    return tg.to_layer(tg.compile(f"adder{bits}", "relu"))


class WithAdder(nn.Module):
    """Reads, and adds by the compiled network."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        self.middle = adder(TRAINED)
        self.scale = nn.Linear(1, 1)
        nn.init.ones_(self.scale.weight)  # a bit that is 1 counts for 1, not against it

    def forward(self, drawings: Tensor) -> Tensor:
        bits = self.read(drawings).flatten(1)  # (batch, 2, n, 8) -> (batch, 2 n)
        if self.training:  # a chance of 0.8 for a 1 is a 1 four times in five: so both values are tried
            bits = bits + (torch.bernoulli(bits) - bits).detach()
        return self.scale(self.middle(bits)[..., None])[..., 0]

    def for_length(self, bits: int) -> None:
        self.middle = adder(bits)


class Without(nn.Module):
    """The same, with a recurrent layer that is trained in place of the adder."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        self.middle = nn.GRU(2, 32, batch_first=True)
        self.scale = nn.Linear(32, 1)

    def forward(self, drawings: Tensor) -> Tensor:
        columns = self.read(drawings)[..., 0].transpose(1, 2)  # lowest bits first
        carry = nn.functional.pad(columns, (0, 0, 0, 1))  # one more place, for the last carry
        return self.scale(self.middle(carry)[0])[..., 0]

    def for_length(self, bits: int) -> None:
        pass


def sums(count: int, bits: int, prototypes: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noisy drawings of pairs of numbers, and the bits of their sums."""
    numbers = torch.randint(0, 2, (count, 2, bits), generator=random)
    noise = NOISE * torch.randn(count, 2, bits, WIDTH, generator=random)
    carry, total = torch.zeros(count, dtype=torch.long), []
    for place in range(bits):
        column = numbers[:, 0, place] + numbers[:, 1, place] + carry
        total.append(column % 2)
        carry = column // 2
    return prototypes[numbers] + noise, torch.stack([*total, carry], 1)


def accuracy(net: WithAdder | Without, bits: int, prototypes: Tensor, random: torch.Generator) -> float:
    """The part of 1,000 sums of which every bit is right."""
    net.eval()
    net.for_length(bits)
    drawings, total = sums(1_000, bits, prototypes, random)
    with torch.no_grad():
        return float(((net(drawings) > 0) == total).all(1).float().mean())


def trained(
    kind: type[WithAdder] | type[Without], seed: int
) -> tuple[WithAdder | Without, Tensor, torch.Generator]:
    """A net trained by Adam on drawings of sums, with nothing said about the bits in between."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    prototypes = torch.randn(2, WIDTH, generator=random)
    net = kind()
    optimiser = torch.optim.Adam([own for own in net.parameters() if own.requires_grad], lr=0.01)
    for _ in range(STEPS):
        drawings, total = sums(BATCH, TRAINED, prototypes, random)
        loss = nn.functional.binary_cross_entropy_with_logits(net(drawings), total.float())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net, prototypes, random


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(f"right sums of 1,000, seeds {', '.join(map(str, SEEDS))}; trained on {TRAINED} bits")
    for kind in (WithAdder, Without):
        rows = []
        for seed in SEEDS:
            net, prototypes, random = trained(kind, seed)
            rows.append([accuracy(net, bits, prototypes, random) for bits in TESTED])
        for bits, column in zip(TESTED, zip(*rows, strict=True), strict=True):
            print(f"{kind.__name__:10} {bits:3} bits  " + "  ".join(f"{value:7.1%}" for value in column))
