"""What `compile(machine, "transformer")` takes, costs and shows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from tapegrad.attention.analysis import LONGEST
from tapegrad.attention.clocked import ClockPorts
from tapegrad.attention.sources import Ports, ProgramPorts, TapePorts
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.errors import Refused
from tapegrad.lowering.one_tape import one_tape
from tapegrad.lowering.program_learner import suiting
from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.machines.room import look_ahead
from tapegrad.networks.network import Network
from tapegrad.programs.library import READY
from tapegrad.programs.model import Program
from tapegrad.source import Rewriting, State
from tapegrad.targets.net import Net
from tapegrad.targets.target import Estimate, Example, Option, Target
from tapegrad.targets.transformer.build import CORRECTIONS, Layout
from tapegrad.targets.transformer.memory_net import MemoryNet
from tapegrad.targets.transformer.net import TransformerNet

Taken = TuringMachine | Program | SequentialCircuit
"""What is built without a lowering."""
USUAL_STEPS = 4096
FORMS = ("practical", "paper")
QUARTERS = "quarters"
LARGEST = 4 << 30
"""Nets of the paper's layers of more bytes than this are refused."""
MOST_RULES = 1 << 16
"""Of a machine in the practical form."""


def build(source: Taken, **options: Any) -> Net:
    """The net, if it fits."""
    steps, attention = options["steps"], options["attention"]
    if (ports := ports_for(source, **options)) is not None:
        return MemoryNet.build(ports, source.name, steps, attention)
    assert isinstance(source, TuringMachine)
    cost = estimate_machine(source, steps)
    if cost.bytes > LARGEST:
        raise Refused(
            f"the net would need {cost.bytes / 2**30:.1f} GiB: width {cost.width:,}, {cost.depth} layers",
            advice="The width grows with states x symbols; choose form=practical, or use target tape.",
        )
    return TransformerNet.build(source, steps, attention, options["correction"] or QUARTERS)


def ports_for(source: Taken, **options: Any) -> Ports | None:
    """The source as a machine with memories, of which the practical net is made, by heads that look words up
    and by gates. None for the paper's layers."""
    form, steps, correction = options["form"], options["steps"], options["correction"]
    form = form or ("practical" if correction is None else "paper")
    if form == "paper" and not isinstance(source, TuringMachine):
        raise Refused(
            "the paper has a construction for Turing machines alone",
            advice="Leave out `form` and `correction`.",
        )
    if form == "practical" and correction is not None:
        raise Refused(
            "the practical form rounds with quarters, which are exact",
            advice="Leave out `correction`, or choose form=paper.",
        )
    if isinstance(source, SequentialCircuit):
        return ClockPorts(source, _cycles(source, steps))
    if isinstance(source, Program):
        return ProgramPorts(source.with_room(input=options["input"], output=options["output"]).machine)
    if form == "paper":
        return None
    if len(source.rules) > MOST_RULES:
        raise Refused(
            f"the machine {source.name!r} has {len(source.rules):,} rules, and each takes gates of its own",
            advice=f"At most {MOST_RULES:,} are built; use a smaller machine or the target tape.",
        )
    return TapePorts(source, steps)


def _cycles(source: SequentialCircuit, steps: int) -> int:
    if not isinstance(steps, int) or not 1 <= steps <= LONGEST:
        raise Refused(
            f"{steps!r} cycles of {source.name!r} cannot be run", advice=f"Ask for 1 to {LONGEST:,}."
        )
    return steps


def estimate(source: Taken, **options: Any) -> Estimate:
    """What the net will cost."""
    steps = options["steps"]
    if (ports := ports_for(source, **options)) is not None:
        return MemoryNet.estimate(ports, source.name, steps)
    assert isinstance(source, TuringMachine)
    cost = estimate_machine(source, steps)
    if cost.bytes > LARGEST or source.tapes > 1:
        return cost
    built = TransformerNet.build(source, steps, "hardmax", options["correction"] or QUARTERS)
    return replace(cost, bytes=built.counts.bytes)


def estimate_machine(machine: TuringMachine, steps: int) -> Estimate:
    """The paper's layers for one tape, counted from the layout: see `build.build_layers`. Their matrices are
    counted as written out, which a net does not do."""
    layout = Layout.of(machine, steps)
    w, pos, time = layout.width, layout.position_bits, layout.time_bits
    layers = pos + time + 7
    searching = [pos + 1, *(pos + known + 2 for known in range(time)), pos + time + 1]
    rows = [*searching, pos + 1]
    parameters = layers * (w * w + w) + sum(2 * r * (w + 1) + w * w + 2 * w + r for r in rows)
    parameters += 3 * w + w * len(layout.symbols)
    return Estimate(
        width=w,
        depth=layers,
        trainable=0,
        fixed=parameters,
        parameters=parameters,
        bytes=4 * parameters,
        steps=steps + 1,
        precision="float32",
        notes=(
            f"{layers} = w_pos + w_time + 7 layers with w_pos = {pos}, w_time = {time}",
            f"positions are shifted by T = {steps}, so that the tape is two-way: one more bit",
        ),
    )


def passes(source: Taken, **options: Any) -> Sequence[Rewriting]:
    """The paper's layers are for one tape; several are put on one for them."""
    if ports_for(source, **options) is not None or not isinstance(source, TuringMachine):
        return []
    return [] if source.tapes == 1 else [one_tape(source)]


def fitted(source: Taken, state: State, steps: int) -> Mapping[str, Any]:
    """As many steps as the run takes, or as are asked for, where the usual number is too few; for a program
    also room for its input and output."""
    if isinstance(source, SequentialCircuit):
        return {"steps": max(1, len(state.trace))}
    if not isinstance(source, Program):
        ahead = look_ahead(source, state, min(steps, LONGEST))
        return {} if ahead is None or ahead.steps <= USUAL_STEPS else {"steps": ahead.steps}
    suits = suiting(source, state, steps)
    return suits | {"steps": min(suits["steps"], LONGEST)}


def load(
    config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: Network | None = None
) -> Net:
    """The net of a machine on one tape, or of one with memories."""
    kind = MemoryNet if config.get("form") == "memory" else TransformerNet
    return kind.from_saved(config, arrays, network)


def examples() -> Sequence[Example]:
    """A word accepted, a number incremented, and a program on a machine with memory."""
    hello = READY["subleq-hello"]
    return [
        Example(ready("palindrome"), ("abba",), {"form": "paper", "steps": 64}),
        Example(ready("increment"), ("1011",), {"steps": 32, "attention": "softmax"}),
        Example(hello.build(), (hello.example,), {"steps": 32, "input": 1, "output": 4}),
    ]


TARGET = Target(
    name="transformer",
    summary="a decoder step is a step of the machine; attention finds the last write to a cell",
    paper="Wei, Chen, Ma, section 4",
    takes=TuringMachine,
    also_takes=(Program, SequentialCircuit),
    net=TransformerNet,
    build=build,
    estimate=estimate,
    examples=examples,
    options={
        "steps": Option(USUAL_STEPS, "T, the most steps of the machine"),
        "attention": Option(
            "hardmax", "hardmax, or softmax at a derived temperature", ("hardmax", "softmax")
        ),
        "form": Option(
            None,
            "practical: heads that look words up, and gates; or paper: its layers, for one tape, which are "
            "taken where an option of their own is given",
            (None, *FORMS),
        ),
        "correction": Option(
            None,
            f"paper: {QUARTERS} (exact in binary) or thirds (the paper's); {QUARTERS} if not given",
            (None, *CORRECTIONS),
        ),
        "input": Option(64, "bytes of input that a program has room for"),
        "output": Option(64, "bytes of output of a program that are kept, the last ones; a power of two"),
    },
    passes=passes,
    fitted=fitted,
    loads=load,
)
