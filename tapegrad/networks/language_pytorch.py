"""Language models as PyTorch modules: tokens to logits, with keys and values that can be kept."""

import torch
from torch import Tensor, nn

from tapegrad.networks.form import Affine
from tapegrad.networks.language import LanguageModel, Layer, LookBack, Positions
from tapegrad.networks.pytorch import linear

Past = list[list[tuple[Tensor, Tensor]]]
"""For each layer and head the keys and values of tokens that were read."""


class LanguageModule(nn.Module):
    """`module(tokens)` gives the logits after every token of a text. Texts can be read in parts: a list
    `past`, empty at first, is filled and read."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        embedding = torch.tensor(model.embedding.dense().weight)
        self.embedding = nn.Embedding.from_pretrained(embedding, freeze=False)
        self.positions = model.positions
        self.layers = nn.ModuleList(LayerModule(layer) for layer in model.layers)
        self.unembedding = _linear(model.unembedding)

    def forward(self, tokens: Tensor, past: Past | None = None) -> Tensor:
        past = [] if past is None else past
        read = past[0][0][0].shape[0] if past else 0
        if not past:
            past += [[] for _ in self.layers]
        table, hidden = self.positions, self.embedding(tokens)
        rows = position_rows(table, read + torch.arange(len(tokens), device=tokens.device))
        before, after = table.first, hidden.shape[1] - table.first - table.width
        hidden = hidden + nn.functional.pad(rows.to(hidden), (before, after))
        for layer, own in zip(self.layers, past, strict=True):
            hidden = layer(hidden, own)
        return self.unembedding(hidden)


def position_rows(table: Positions, positions: Tensor) -> Tensor:
    """Rows of the table of positions: see `Positions`."""
    own, slots = (positions - 1) // table.record, (positions - 1) % table.record
    before = (positions // table.record - 1).clamp_min(0)
    places = torch.arange(table.bits, device=positions.device)
    bits = [number[:, None] >> places & 1 for number in (own, before)]
    every = torch.arange(table.record, device=positions.device)
    rows = torch.cat([*bits, slots[:, None] == every], dim=1)
    return rows * (positions[:, None] > 0)


class LayerModule(nn.Module):
    """Heads side by side, then units that add to coordinates."""

    places: Tensor
    """The coordinates that are added to."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.purpose = layer.purpose
        self.heads = nn.ModuleList(LookBackModule(head) for head in layer.heads)
        self.units, self.sums = _linear(layer.units), _linear(layer.sums)
        self.register_buffer("places", torch.tensor(layer.to))

    def forward(self, hidden: Tensor, past: list[tuple[Tensor, Tensor]]) -> Tensor:
        heads = [head for head in self.heads if isinstance(head, LookBackModule)]
        for number, head in enumerate(heads):
            key, value = head.key(hidden), head.value(hidden)
            if number < len(past):
                key, value = (torch.cat(both) for both in zip(past[number], (key, value), strict=True))
                past[number] = key, value
            else:
                past.append((key, value))
        found = hidden
        for head, (keys, values) in zip(heads, past, strict=True):
            found = found.index_add(1, head.places, head(hidden, keys, values))
        return found.index_add(1, self.places, self.sums(torch.relu(self.units(found))))


class LookBackModule(nn.Module):
    """A head: softmax over all positions so far."""

    places: Tensor
    """The coordinates that are added to."""

    def __init__(self, head: LookBack) -> None:
        super().__init__()
        self.name = head.name
        self.query, self.key, self.value = (_linear(side) for side in (head.query, head.key, head.value))
        self.register_buffer("places", torch.tensor(head.to))

    def forward(self, hidden: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        scores = self.query(hidden) @ keys.T
        later = torch.ones_like(scores, dtype=torch.bool).triu(1 + len(keys) - len(hidden))
        return torch.softmax(scores.masked_fill(later, -torch.inf), dim=1) @ values


def _linear(own: Affine) -> nn.Linear:
    written = own.dense()
    return linear(torch.tensor(written.weight), torch.tensor(written.bias))
