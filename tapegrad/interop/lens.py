"""Machines in TransformerLens (extra `transformer-lens`): a HookedTransformer, its vocabulary, its heads."""

import warnings
from dataclasses import asdict, dataclass

import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig, TransformerLensKeyValueCache

from tapegrad._compile import Compiled
from tapegrad.errors import InputError
from tapegrad.interop.decoder import (
    HALT,
    HEADS,
    MEANING,
    SETTINGS,
    Coordinates,
    Head,
    Vocabulary,
    decoder_of,
    largest_context,
    sizes,
    weights,
)
from tapegrad.machines.model import Configuration
from tapegrad.targets.net import Net


@dataclass(frozen=True)
class Lens:
    """A HookedTransformer that runs a machine: `model` is the network, the rest says what it means."""

    model: HookedTransformer
    coordinates: Coordinates
    heads: tuple[Head, ...] = HEADS

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens."""
        return self.coordinates.vocabulary

    def prompt(self, first: Configuration) -> torch.Tensor:
        """A first configuration, `machine.start(...)`, as a batch of one prompt."""
        numbers = self.vocabulary.prompt(first)
        if len(numbers) >= self.coordinates.context:
            raise InputError(
                f"the input takes {len(numbers)} tokens of a context of {self.coordinates.context}",
                advice=f"Export with a larger context, at most {largest_context()}.",
            )
        return torch.tensor([numbers])

    @torch.inference_mode()
    def generate(self, first: Configuration) -> list[int]:
        """The tokens that greedy decoding adds to the prompt, up to HALT or the end of the context. (The
        model's own `generate` gives the same with `use_past_kv_cache=False`; with a cache, and without a
        tokenizer, TransformerLens 3.9 numbers positions wrongly.)"""
        given = self.prompt(first)
        room = self.coordinates.context - given.shape[1]
        cache = TransformerLensKeyValueCache.init_cache(self.model.cfg, "cpu", 1)
        found: list[int] = []
        while len(found) < room and (not found or found[-1] != HALT):
            logits = self.model(given, past_kv_cache=cache, attention_mask=torch.ones_like(given))
            given = logits[:, -1].argmax(-1, keepdim=True)
            found.append(int(given))
        return found

    def explain(self, coordinate: int) -> str:
        """A coordinate of the residual stream in words."""
        name = self.coordinates.names[coordinate]
        return f"{name}: {MEANING[name.partition('[')[0]]}"


def to_transformer_lens(compiled: Compiled | Net, context: int = 256) -> Lens:
    """The machine of a `transformer` net as a decoder-only HookedTransformer; `context` is the most tokens,
    input and steps together."""
    here = decoder_of(compiled, context)
    arrays = weights(here)
    config = HookedTransformerConfig(
        **asdict(sizes(here)), **SETTINGS, init_weights=False, device="cpu", dtype=torch.float32
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the class is gone in TransformerLens 4
        model = HookedTransformer(config)
    state = model.state_dict() | {name: torch.tensor(array) for name, array in arrays.items()}
    model.load_state_dict(state)
    model.eval()
    return Lens(model, here)
