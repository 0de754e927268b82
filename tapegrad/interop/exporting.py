"""Every form that a net, a circuit, a machine or a program can leave in, as the bytes of its files."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tapegrad._compile import Compiled
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.tracer import Traced
from tapegrad.errors import InputError, Refused, described
from tapegrad.learners import Learner
from tapegrad.machines.model import GridMachine, TuringMachine
from tapegrad.source import Source, imported

if TYPE_CHECKING:
    from onnx import ModelProto

    from tapegrad.programs import Program
    from tapegrad.targets.net import Net

EXTRAS = {"pytorch": "torch", "onnx": "onnx"}
"""For each part of `tapegrad.interop` that `part` imports, the extra that it needs."""


def part(name: str) -> ModuleType:
    """`tapegrad.interop.<name>`; refused, with advice, where its tool is not installed."""
    try:
        return import_module(f"tapegrad.interop.{name}")
    except ImportError as error:
        raise Refused(
            f"this export needs a package that is not installed: {error}",
            advice=f"Try: pip install 'tapegrad[{EXTRAS[name]}]'.",
        ) from error


def to_torch(compiled: "Compiled | Net", *, trainable: bool = False) -> Any:
    """The network as a PyTorch `nn.Module`, made from its arrays alone (extra `torch`). Of targets that run
    forward it is one pass or one step, with frozen weights unless they are to be `trainable`; training
    targets take steps under PyTorch's automatic differentiation."""
    return part("pytorch").to_torch(compiled, trainable=trainable)


def to_layer(compiled: Compiled, *, gradient: str | None = None, trainable: bool = False) -> Any:
    """The network as a layer of a PyTorch model (extra `torch`), on any device, frozen unless its weights are
    to be `trainable`. Of a circuit or a function: (..., inputs) to (..., outputs), numbers above 1/2 being
    taken for 1. Of a net that takes steps: `outputs, state = layer(state)`, from `layer.start(*inputs)`; of
    one that is trained the outputs are its loss."""
    return _layer(compiled, gradient, trainable, part("pytorch"), "TorchLayer", "TorchStep")


def to_equinox(compiled: Compiled, *, gradient: str | None = None, trainable: bool = False) -> Any:
    """The network as a layer of an Equinox model: see `to_layer`."""
    return _layer(compiled, gradient, trainable, part("layers"), "EquinoxLayer", "EquinoxStep")


def _layer(
    compiled: Compiled,
    gradient: str | None,
    trainable: bool,
    made_by: ModuleType,
    of_bits: str,
    of_steps: str,
) -> Any:
    """A layer by one of two classes of a module."""
    from tapegrad.interop import layers  # brings JAX

    if (network := layers.bits_to_bits(compiled)) is not None:
        gradient = layers.gradient_of_bits(gradient)
        return getattr(made_by, of_bits)(network, gradient=gradient, trainable=trainable)
    layers.check_own_gradient(compiled, gradient)
    return getattr(made_by, of_steps)(compiled, trainable=trainable)


def to_onnx(compiled: "Compiled | Net") -> "ModelProto":
    """The network as an ONNX model (extra `onnx`); of targets that are trained the loss."""
    return part("onnx").to_onnx(compiled)


def net_of(compiled: "Compiled | Net") -> "Net":
    """The net itself, of a compiled one too."""
    if not isinstance(compiled, Compiled) and not hasattr(compiled, "arrays"):
        raise InputError(
            f"a network is exported, and this is {described(compiled)}",
            advice='Compile it first, as in tg.compile(source, "relu").',
        )
    return compiled.net if isinstance(compiled, Compiled) else compiled


Files = bytes | dict[str, bytes]
"""One file, or a folder of files by name."""

MODEL, CONFIG = "model.safetensors", "config.json"
HUGGINGFACE, FAMILY = "huggingface", "gpt2"
"""The form that comes in families, and the one that is meant where none is named."""
MOVED = {
    "transformers": f"Use --to {HUGGINGFACE}: transformers opens that folder.",
    "gpt2": f"Use --to {HUGGINGFACE} --family gpt2.",
    "llama": f"Use --to {HUGGINGFACE} --family llama.",
    "pytorch": "Use --to torch.",
    "transformer-lens": f"Use --target decoder --to {HUGGINGFACE}: TransformerLens opens that folder.",
}
"""Forms of earlier versions, and other names for those that there are: what is in their place."""


@dataclass(frozen=True)
class Subject:
    """What is exported: a source, and the net compiled from it where there is one."""

    source: Source
    compiled: Compiled | None = None

    @property
    def net(self) -> Compiled:
        """The net; refused where only a source was given."""
        if self.compiled is None:
            raise InputError("this form is for networks", advice="Give a target, as in --target relu.")
        return self.compiled

    @property
    def circuit(self) -> Circuit | SequentialCircuit:
        """The circuit: of a ReLU network from its decoder, else the source itself."""
        if self.compiled is not None and self.compiled.target.name == "relu":
            from tapegrad.interop.decompile import decompile  # brings JAX

            return decompile(self.compiled, self.source.name)
        found = self.source.circuit if isinstance(self.source, Learner | Traced) else self.source
        if not isinstance(found, Circuit | SequentialCircuit):
            raise Refused(
                f"{self.source.name!r} is no circuit", advice="Export its `relu` net: that is a circuit."
            )
        return found

    @property
    def machine(self) -> TuringMachine | GridMachine:
        """The source, if it is a machine."""
        if not isinstance(self.source, TuringMachine | GridMachine):
            raise Refused(f"{self.source.name!r} is no machine")
        return self.source

    @property
    def program(self) -> "Program":
        """The source, if it is a program."""
        from tapegrad.programs import Program  # brings assembler, compiler and a reader of ELF

        if not isinstance(self.source, Program):
            raise Refused(f"{self.source.name!r} is no program", advice="Give a C file, or RISC-V assembler.")
        return self.source


def _to_torch(subject: Subject, family: str | None) -> Files:
    """The module's state, and a description. `relu` is written as `nn.Linear`s, the channels of `rcnn` as
    `nn.Conv2d`s, so that both load without this package."""
    module = to_torch(subject.net)  # first, as it says which extra is missing
    from safetensors.torch import save

    net = subject.net.net
    module = part("pytorch").plain_layers(net) or module
    config = {
        "target": net.target,
        "weights": asdict(net.counts),
        "module": str(module).splitlines(),
        "net": net.config(),
    }
    state = {name: tensor.detach().contiguous() for name, tensor in module.state_dict().items()}
    return {MODEL: save(state), CONFIG: _json(config)}


def _to_onnx(subject: Subject, family: str | None) -> Files:
    return to_onnx(subject.net).SerializeToString()


def _to_plain_onnx(subject: Subject, family: str | None) -> Files:
    return part("onnx").to_plain_onnx(subject.net).SerializeToString()


def _to_huggingface(subject: Subject, family: str | None) -> Files:
    """A stock checkpoint, its tokenizer and its model card."""
    from tapegrad.interop import sequences  # brings JAX
    from tapegrad.interop.huggingface import files
    from tapegrad.targets.decoder.sequences import SequenceNet

    if isinstance(subject.net.net, SequenceNet):
        return sequences.files(subject.net, family)
    return files(subject.net, family or FAMILY)


def _circuit_as(name: str, subject: Subject, family: str | None) -> Files:
    return _written("circuits", name, subject.circuit)


def _machine_as(name: str, subject: Subject, family: str | None) -> Files:
    return _written("machines", name, subject.machine)


def _to_elf(subject: Subject, family: str | None) -> Files:
    from tapegrad.programs.executable import write_elf

    return write_elf(subject.program)


def _written(of: str, name: str, source: Any) -> bytes:
    known = next(known for known in imported(f"tapegrad.{of}.formats:FORMATS") if known.name == name)
    assert known.write is not None
    text = known.write(source)
    return text.encode() if isinstance(text, str) else text


FORMS: dict[str, Callable[[Subject, str | None], Files]] = {
    "torch": _to_torch,
    "onnx": _to_onnx,
    "onnx-plain": _to_plain_onnx,
    HUGGINGFACE: _to_huggingface,
    "aiger": partial(_circuit_as, "aiger-ascii"),
    "aiger-binary": partial(_circuit_as, "aiger-binary"),
    "blif": partial(_circuit_as, "blif"),
    "bbchallenge": partial(_machine_as, "bbchallenge"),
    "yaml": partial(_machine_as, "turingmachine.io"),
    "elf": _to_elf,
}
"""Name of a form, as the command line takes it."""
EXECUTABLES = {"elf"}
"""Forms whose file is to be run as it is."""


def check_form(form: str) -> None:
    """Refuses a form that there is not."""
    if form not in FORMS:
        advice = MOVED.get(form, f"Choose one of {', '.join(FORMS)}.")
        raise InputError(f"there is no form {form!r}", advice=advice)


def exported(subject: Subject, form: str, family: str | None = None) -> Files:
    """The files of this form; `family` is the class of a checkpoint."""
    check_form(form)
    if family is not None and form != HUGGINGFACE:
        raise InputError(f"the form {form!r} has no families", advice=f"Use --to {HUGGINGFACE}.")
    return FORMS[form](subject, family)


def _json(data: dict[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
