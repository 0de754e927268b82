"""A Turing machine as a decoder-only transformer: vocabulary, weights and what they mean, as plain arrays."""

from tapegrad.interop.decoder.coordinates import HEADS, MEANING, Coordinates, Head
from tapegrad.interop.decoder.machine import decoder_of
from tapegrad.interop.decoder.sharpness import largest_context
from tapegrad.interop.decoder.vocabulary import BEGIN, HALT, Token, Vocabulary
from tapegrad.interop.decoder.weights import SETTINGS, sizes, weights

__all__ = [
    "BEGIN",
    "HALT",
    "HEADS",
    "MEANING",
    "SETTINGS",
    "Coordinates",
    "Head",
    "Token",
    "Vocabulary",
    "decoder_of",
    "largest_context",
    "sizes",
    "weights",
]
