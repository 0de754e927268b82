"""Machine to learner: the configuration is the memory, and each sample is a step."""

import numpy as np

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.errors import Refused
from tapegrad.learners.model import CircuitLearner, LearnerState
from tapegrad.lowering.configuration_wires import ConfigurationWires, window_of
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.model import Configuration, TuringMachine


def machine_learner(machine: TuringMachine, steps: int, cells: int) -> Rewriting:
    """The learner whose memory is a configuration on a window of `cells` cells, and whose way to learn from a
    sample is to take one step. The samples are empty, and their labels 1; every guess is wrong, so every
    sample is learned from. Once the machine has halted the learner has finished, its memory stays as it is,
    and it answers whether the machine accepts; that last configuration decodes after the last sample.
    """
    code = ConfigurationWires(machine, window_of(machine, cells))
    build = CircuitBuilder()
    wires = code.inputs(build)
    build.input("random")
    guess = build.input("guess")
    accepting = [wires.states[state] for state in sorted(machine.accept)]
    accepted = build.constant(False)
    for flag in accepting:
        accepted = build.or_(accepted, flag)
    running = code.running(build, wires)
    build.output("answer", build.where(running, guess, accepted))
    build.output("finished", build.not_(running))
    code.outputs(build, code.step(build, wires))
    learner = CircuitLearner(build.circuit(f"{machine.name} as a learner"), inputs=0)

    def encode(configuration: Configuration) -> LearnerState:
        samples = learner.start(np.zeros((steps, 0), np.uint8), np.ones(steps, np.uint8), guessing=False)
        memory = tuple(code.row(configuration)[0].astype(int).tolist())
        return LearnerState(memory, 0, None, samples.samples)

    def decode(state: LearnerState) -> Configuration | None:
        configuration = code.decode(np.array([state.memory], bool))
        assert isinstance(configuration, Configuration)
        halted, last = machine.step(configuration) is None, state.position == steps
        if last and not halted:
            raise Refused(
                f"the machine has not halted after {steps} samples", advice="Lower it with more steps."
            )
        return configuration if last or not halted else None

    return Rewriting("configuration as memory", machine, learner, encode, decode)
