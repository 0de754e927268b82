"""What `compile(machine, "decoder")` takes, costs and shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.attention.language import LONGEST, scales_for
from tapegrad.attention.tape_tokens import TapeTokens
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.machines.room import look_ahead
from tapegrad.targets.decoder.net import DecoderNet
from tapegrad.targets.target import Estimate, Example, Option, Target

USUAL_TOKENS = 16_384
MOST_RULES = 1 << 16
"""Each takes a unit, and most of them a token."""


def build(source: TuringMachine, **options: int) -> DecoderNet:
    """The net, if single precision can carry it."""
    return DecoderNet.build(_words(source, options["tokens"]), options["tokens"])


def estimate(source: TuringMachine, **options: int) -> Estimate:
    """What the net will cost."""
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


def fitted(source: TuringMachine, state: Configuration, steps: int) -> Mapping[str, Any]:
    """Tokens for the whole run, where the usual number is too few."""
    ahead = look_ahead(source, state, steps)
    if ahead is None:
        return {}
    tokens = USUAL_TOKENS
    while tokens < LONGEST and not _holds(source, state, ahead.steps, tokens):
        tokens *= 2
    return {} if tokens == USUAL_TOKENS else {"tokens": tokens}


def _holds(machine: TuringMachine, state: Configuration, steps: int, tokens: int) -> bool:
    """Whether the input and so many steps fit a text of this length."""
    cells = sum(len(tape) for tape in state.tapes)
    return TapeTokens.for_tokens(machine, tokens).records(tokens) > cells + steps + 2


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
    net=DecoderNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options={"tokens": Option(USUAL_TOKENS, "the horizon: most tokens of prompt and run together")},
    fitted=fitted,
)
