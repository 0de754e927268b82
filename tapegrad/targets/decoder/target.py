"""What `compile(machine, "decoder")` takes, costs and shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.attention.language import scales_for
from tapegrad.attention.tape_tokens import TapeTokens
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.rasp.program import RaspProgram
from tapegrad.targets.decoder.net import DecoderNet
from tapegrad.targets.decoder.sequences import KIND, SequenceNet
from tapegrad.targets.target import Estimate, Example, Option, Target

MOST_RULES = 1 << 16
"""Each takes a unit, and most of them a token."""


def build(source: TuringMachine | RaspProgram, **options: int) -> DecoderNet | SequenceNet:
    """The net, if single precision can carry it."""
    if isinstance(source, RaspProgram):
        return SequenceNet.build(source)
    return DecoderNet.build(_words(source, options["tokens"]), options["tokens"])


def load(config: Mapping[str, Any], arrays: Mapping[str, Any]) -> DecoderNet | SequenceNet:
    """A saved net, of a machine or of a RASP program."""
    net = SequenceNet if config["machine"]["kind"] == KIND else DecoderNet
    return net.from_saved(config, arrays)


def estimate(source: TuringMachine | RaspProgram, **options: int) -> Estimate:
    """What the net will cost."""
    if isinstance(source, RaspProgram):
        return SequenceNet.estimate(source)
    return DecoderNet.estimate(_words(source, options["tokens"]), options["tokens"])


def _words(machine: TuringMachine, tokens: int) -> TapeTokens:
    if not isinstance(tokens, int) or tokens < 2:
        raise Refused(f"a horizon of {tokens} tokens holds no run", advice="Ask for more.")
    if len(machine.rules) > MOST_RULES:
        raise Refused(
            f"the machine {machine.name!r} has {len(machine.rules):,} rules, and each takes a unit",
            advice=f"At most {MOST_RULES:,} are built; use a smaller machine or the target tape.",
        )
    words = TapeTokens.for_tokens(machine, tokens)
    scales_for(words.program, tokens)
    return words


def examples() -> Sequence[Example]:
    """A word accepted, and a number incremented."""
    return [
        Example(ready("palindrome"), ("abba",), {"tokens": 500}),
        Example(ready("increment"), ("1011",), {"tokens": 500}),
    ]


TARGET = Target(
    name="decoder",
    summary="a language model whose greedy decoding is the run; the prompt is the input",
    paper="after Wei, Chen, Ma, section 4",
    takes=TuringMachine,
    also_takes=(RaspProgram,),
    net=DecoderNet,
    loads=load,
    build=build,
    estimate=estimate,
    examples=examples,
    options={"tokens": Option(16_384, "the horizon: most tokens of prompt and run together")},
)
