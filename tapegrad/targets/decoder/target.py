"""What `compile(machine, "decoder")` takes, costs and shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapegrad.attention.language import LONGEST, scales_for
from tapegrad.attention.prompts import digits_for
from tapegrad.attention.rv32_tokens import Rv32Tokens
from tapegrad.attention.subleq_tokens import SubleqTokens
from tapegrad.attention.tape_tokens import TapeTokens
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.machines.room import look_ahead
from tapegrad.networks.network import Network
from tapegrad.programs.library import READY
from tapegrad.programs.model import Program, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad.rasp.program import RaspProgram
from tapegrad.source import State
from tapegrad.targets.decoder.net import DecoderNet, Words
from tapegrad.targets.decoder.sequences import KIND, SequenceNet
from tapegrad.targets.target import Estimate, Example, Option, Target

USUAL_TOKENS = 16_384
ENDLESS = 1 << 18
"""Tokens for a program that does not end within any horizon."""
MOST_COUNTED = 4
"""Digits that count bytes of input, of which there may be 65,535 then."""
MOST_RULES = 1 << 16
"""Each takes a unit, and most of them a token."""


def build(source: TuringMachine | Program | RaspProgram, **options: int) -> DecoderNet | SequenceNet:
    """The net, if single precision can carry it."""
    if isinstance(source, RaspProgram):
        return SequenceNet.build(source)
    return DecoderNet.build(_words(source, options["tokens"]), options["tokens"])


def load(
    config: Mapping[str, Any], arrays: Mapping[str, Any], network: Network | None = None
) -> DecoderNet | SequenceNet:
    """A saved net, of a machine, of a program or of a RASP program."""
    net = SequenceNet if config["machine"]["kind"] == KIND else DecoderNet
    return net.from_saved(config, arrays, network)


def estimate(source: TuringMachine | Program | RaspProgram, **options: int) -> Estimate:
    """What the net will cost."""
    if isinstance(source, RaspProgram):
        return SequenceNet.estimate(source)
    return DecoderNet.estimate(_words(source, options["tokens"]), options["tokens"])


def _words(source: TuringMachine | Program, tokens: int) -> Words:
    if not isinstance(tokens, int) or tokens < 2:
        raise Refused(f"a horizon of {tokens} tokens holds no run", advice="Ask for more.")
    if isinstance(source, Program):
        return _program_words(source, tokens)
    return _machine_words(source, tokens)


def _program_words(program: Program, tokens: int) -> Words:
    """Of the machine; the program itself is told in the prompt."""
    # No prompt has more bytes of input than tokens.
    words = _words_of(program, min(MOST_COUNTED, digits_for(tokens + 1)))
    scales_for(words.program, tokens)
    return words


def _words_of(program: Program, counted: int) -> SubleqTokens | Rv32Tokens:
    """With so many digits that count the input."""
    if isinstance(program.machine, Subleq):
        return SubleqTokens(program.machine, counted)
    if isinstance(program.machine, RV32):
        return Rv32Tokens(program.machine, counted)
    raise Refused(
        f"programs for {program.machine.kind!r} do not become language models",
        advice="Use the target transformer.",
    )


def _machine_words(machine: TuringMachine, tokens: int) -> Words:
    if len(machine.rules) > MOST_RULES:
        raise Refused(
            f"the machine {machine.name!r} has {len(machine.rules):,} rules, and each takes a unit",
            advice=f"At most {MOST_RULES:,} are built; use a smaller machine or the target tape.",
        )
    words = TapeTokens.for_tokens(machine, tokens)
    scales_for(words.program, tokens)
    return words


def fitted(source: TuringMachine | Program | RaspProgram, state: State, steps: int) -> Mapping[str, Any]:
    """Tokens for the whole run: for a machine where the usual number is too few, for a program the next power
    of two."""
    if isinstance(source, RaspProgram):
        return {}
    if isinstance(source, Program):
        return _for_program(source, state, steps)
    return _for_machine(source, state, steps)


def _for_machine(machine: TuringMachine, state: Configuration, steps: int) -> Mapping[str, Any]:
    ahead = look_ahead(machine, state, steps)
    if ahead is None:
        return {}
    tokens, records = USUAL_TOKENS, sum(len(tape) for tape in state.tapes) + ahead.steps + 2
    while tokens < LONGEST and TapeTokens.for_tokens(machine, tokens).records(tokens) <= records:
        tokens *= 2
    return {} if tokens == USUAL_TOKENS else {"tokens": min(tokens, LONGEST)}


def _for_program(program: Program, state: ProgramState, steps: int) -> Mapping[str, Any]:
    words = _words_of(program, MOST_COUNTED)
    begun = needed = len(words.prompt(state, LONGEST)) + words.record
    for number, now in enumerate(program.run(state)):
        if number > steps:
            break
        needed += words.record * words.records(now)
        if needed > LONGEST:
            needed = begun + ENDLESS
            break
    return {"tokens": min(LONGEST, 1 << (needed - 1).bit_length())}


def examples() -> Sequence[Example]:
    """A word accepted, a number incremented, and a program."""
    hello = READY["subleq-hello"]
    return [
        Example(ready("palindrome"), ("abba",), {"tokens": 500}),
        Example(ready("increment"), ("1011",), {"tokens": 500}),
        Example(hello.build(), (hello.example,), {"tokens": 1000}),
    ]


TARGET = Target(
    name="decoder",
    summary="a language model whose greedy decoding is the run; the prompt is the input",
    paper="after Wei, Chen, Ma, section 4",
    takes=TuringMachine,
    also_takes=(Program, RaspProgram),
    net=DecoderNet,
    loads=load,
    build=build,
    estimate=estimate,
    examples=examples,
    options={"tokens": Option(USUAL_TOKENS, "the horizon: most tokens of prompt and run together")},
    fitted=fitted,
)
