"""Target `transformer`: a Turing machine as an encoder-decoder transformer (Wei, Chen, Ma, section 4)."""

from tapegrad.targets.transformer.net import Decoding, TransformerNet
from tapegrad.targets.transformer.target import TARGET

__all__ = ["TARGET", "Decoding", "TransformerNet"]
