"""Target `decoder`: a language model whose greedy decoding is the run of a machine."""

from tapegrad.targets.decoder.net import DecoderNet, Generation
from tapegrad.targets.decoder.target import TARGET

__all__ = ["TARGET", "DecoderNet", "Generation"]
