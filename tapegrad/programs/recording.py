"""An instruction set as data: its ports, and one circuit for all that lies between them.

The function `instruction` is taken once, with wires for whatever it reads. What it asks for, and what it does
in the end, are outputs of one circuit; the words that ports have read are inputs. That is all there is to an
instruction set, and it says nothing of how much input and output there is room for. So a saved network has it
in its folder, and who opens the folder need not have the function.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits import UInt
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import GATES, Circuit
from tapegrad.circuits.replay import Replay
from tapegrad.circuits.types import IntType
from tapegrad.circuits.values import IntValue
from tapegrad.errors import SourceError
from tapegrad.programs.model import Effect, Instruction, Machine, Memory, Next, Read, Write, follow

BYTE = 8


class Port(NamedTuple):
    """A port that reads: of which memory ("" for the next byte of input), how many words, and how many bits
    its address has."""

    memory: str
    span: int
    address: int


@dataclass(frozen=True)
class Form:
    """What an instruction set has, and what its instruction reads and changes."""

    kind: str
    ram: int
    """Bytes."""
    word: int
    counter: int
    """Bits of `pc`."""
    traps: tuple[str, ...]
    first: tuple[int, ...]
    extra: Mapping[str, IntType | Memory]
    groups: tuple[tuple[Port, ...], ...] = ()
    """Ports that are read at once."""
    changed: tuple[str, ...] = ()
    """Registers."""
    writes: tuple[int, ...] = ()
    """For each port that writes, the number of the one that has read the words, at the same address."""
    takes: bool = False
    puts: bool = False

    @cached_property
    def ports(self) -> list[Port]:
        """All that read, in order."""
        return [port for group in self.groups for port in group]

    @cached_property
    def registers(self) -> dict[str, int]:
        """The registers that an instruction sees, with their bits."""
        own = {name: of.width for name, of in self.extra.items() if not isinstance(of, Memory)}
        return {"pc": self.counter, "trap": len(self.traps).bit_length(), **own}

    def width(self, port: Port) -> int:
        """How many bits a port gives."""
        if not port.memory:
            return BYTE + 1
        of = self.extra.get(port.memory)
        return port.span * (of.width if isinstance(of, Memory) else self.word)

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Inputs of the circuit: the bits of the registers that an instruction sees, and the words that are
        read. Outputs: the addresses of all ports, the registers that change, what each port that writes
        changes, whether a byte is taken, whether one is put out, and that."""
        read = [(f"read {number}", self.width(port)) for number, port in enumerate(self.ports)]
        asked = [(f"address {number}", port.address) for number, port in enumerate(self.ports)]
        changed = [(f"next {name}", self.registers[name]) for name in self.changed]
        flips = [(f"change {number}", self.width(self.ports[number])) for number in self.writes]
        ends = [("takes", 1)] * self.takes + [("puts", 1), ("byte", BYTE)] * self.puts
        inputs = [*self.registers.items(), *read]
        return _bits(inputs), _bits([*asked, *changed, *flips, *ends])

    def to_json(self) -> dict[str, Any]:
        """As JSON, without what a machine says by itself: its kind, and how much memory it has."""
        data = {name: value for name, value in asdict(self).items() if name not in ("kind", "ram")}
        extra = {
            name: [of.width, of.words] if isinstance(of, Memory) else of.width
            for name, of in self.extra.items()
        }
        groups = [[list(port) for port in group] for group in self.groups]
        lists = {name: list(data[name]) for name in ("traps", "first", "changed", "writes")}
        return data | lists | {"extra": extra, "groups": groups}

    @classmethod
    def of_json(cls, kind: str, ram: int, data: Mapping[str, Any]) -> "Form":
        """The form again."""
        extra: dict[str, IntType | Memory] = {
            str(name): Memory(*map(int, of)) if isinstance(of, list) else UInt(int(of))
            for name, of in data["extra"].items()
        }
        groups = tuple(
            tuple(Port(str(name), int(span), int(bits)) for name, span, bits in g) for g in data["groups"]
        )
        return cls(
            kind,
            ram,
            word=UInt(int(data["word"])).width,
            counter=UInt(int(data["counter"])).width,
            traps=tuple(map(str, data["traps"])),
            first=tuple(map(int, data["first"])),
            extra=extra,
            groups=groups,
            changed=tuple(map(str, data["changed"])),
            writes=tuple(map(int, data["writes"])),
            takes=bool(data["takes"]),
            puts=bool(data["puts"]),
        )


def _bits(words: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(f"{name}[{bit}]" for name, width in words for bit in range(width))


@dataclass(frozen=True, eq=False)
class Recording:
    """An instruction set with so much memory: its form, and its circuit."""

    form: Form
    circuit: Circuit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recording) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """The sum of everything."""
        total = sha256(repr(self.form).encode())
        for array in self.arrays().values():
            total.update(array.tobytes())
        return total.hexdigest()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The gates."""
        return {name: np.array(getattr(self.circuit, name)) for name in GATES}

    @classmethod
    def of_json(cls, kind: str, ram: int, data: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Recording":
        """The recording again, from its form and its gates."""
        form = Form.of_json(kind, ram, data)
        gates = {name: np.asarray(arrays[name], of) for name, of in GATES.items()}
        inputs, outputs = form.names()
        return cls(form, Circuit(inputs, outputs, **gates, name=kind))

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        """The instruction again: after each group of ports, the gates that are known then."""
        form, replay = self.form, Replay(self.circuit)
        replay.know(bit for name in form.registers for bit in registers[name].bits())
        asked: list[Read | Next] = []
        read: list[IntValue] = []
        done = 0

        def taken(width: int) -> IntValue:
            nonlocal done
            done += width
            return replay.word(done - width, width)

        for group in form.groups:
            asked += [
                Read(port.memory, taken(port.address), port.span) if port.memory else Next() for port in group
            ]
            found = yield tuple(asked[len(read) :])
            replay.know(bit for word in found for bit in word.bits())
            read += found
        new = {name: taken(form.registers[name]) for name in form.changed}
        writes = []
        for number in form.writes:
            port = asked[number]
            assert isinstance(port, Read)
            change = taken(form.width(form.ports[number]))
            writes.append(Write(port.memory, port.address, read[number], change, port.span))
        takes = taken(1).bits()[0] if form.takes else None
        return Effect(new, writes, takes, (taken(1).bits()[0], taken(BYTE)) if form.puts else None)


@lru_cache(maxsize=64)
def record(machine: Machine) -> Recording:
    """Takes an instruction once, with wires for all that it reads."""
    if isinstance(machine, Recorded):
        return machine.recording
    return _Recorder(machine).recording()


class _Recorder:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.build = machine, CircuitBuilder()
        self.memories = {name: of for name, of in machine.memories.items() if name not in ("input", "output")}
        self.groups: list[tuple[Port, ...]] = []
        self.asked: list[tuple[Wire, ...]] = []
        """The address of each port."""
        self.inputs = 0
        self.read: list[tuple[Wire, ...]] = []
        """The words that it has read."""

    def recording(self) -> Recording:
        machine, registers = self.machine, self.machine.own_registers
        typed = {name: self._inputs(of.width) for name, of in registers.items()}
        effect: Effect = follow(machine.instruction(typed), self._answered)
        changed, words = [], list[Sequence[Wire]](self.asked)
        for name, value in effect.registers.items():
            of = registers.get(name)
            if of is None or value.type.width != of.width:
                raise self._refused(
                    f"sets {name!r} to a number of {value.type.width} bits",
                    f"It may set {', '.join(f'{name} ({of.width} bits)' for name, of in registers.items())}.",
                )
            changed.append(name)
            words.append(value.wires(self.build))
        writes = [self._read_by(port) for port in effect.writes]
        words += [port.change.wires(self.build) for port in effect.writes]
        if effect.takes is not None:
            words.append(effect.takes.wires(self.build))
        if effect.puts is not None:
            emits, byte = effect.puts
            if byte.type.width != BYTE:
                raise self._refused(f"puts out {byte.type.width} bits", "Output is bytes.")
            words += [emits.wires(self.build), byte.wires(self.build)]
        form = replace(
            form_of(machine),
            groups=tuple(self.groups),
            changed=tuple(changed),
            writes=tuple(writes),
            takes=effect.takes is not None,
            puts=effect.puts is not None,
        )
        inputs, outputs = form.names()
        for name, wire in zip(outputs, (wire for word in words for wire in word), strict=True):
            self.build.output(name, wire)
        return Recording(form, replace(self.build.circuit(machine.kind), inputs=inputs))

    def _inputs(self, width: int) -> IntValue:
        self.inputs += width
        names = map(str, range(self.inputs - width, self.inputs))  # until it is known what they are
        return IntValue(UInt(width), [self.build.input(name) for name in names], self.build)

    def _answered(self, ports: tuple[Read | Next, ...]) -> tuple[IntValue, ...]:
        own, found = [], []
        for port in ports:
            if isinstance(port, Next):
                self.asked.append(())
                own.append(Port("", 1, 0))
                found.append(self._inputs(BYTE + 1))
                continue
            if port.memory not in self.memories:
                raise self._refused(
                    f"reads {port.memory!r}", f"Its memories are {', '.join(self.memories)}; input is Next()."
                )
            self.asked.append(tuple(port.address.wires(self.build)))
            own.append(Port(port.memory, port.span, len(self.asked[-1])))
            found.append(self._inputs(port.span * self.memories[port.memory].width))
        self.groups.append(tuple(own))
        self.read += [tuple(word.wires(self.build)) for word in found]
        return tuple(found)

    def _read_by(self, port: Write) -> int:
        """The number of the port that has read what is written."""
        address, old = tuple(port.address.wires(self.build)), tuple(port.old.wires(self.build))
        ports = [own for group in self.groups for own in group]
        for number, own in enumerate(ports):
            here = own.memory == port.memory and own.span == port.span and self.asked[number] == address
            if here and self.read[number] == old:
                if port.change.type.width != len(old):
                    raise self._refused(
                        f"changes {port.change.type.width} bits of {len(old)}", "Change as many."
                    )
                return number
        raise self._refused(
            f"writes {port.memory!r} where it has not read",
            "Read(memory, address) first; the Write has the same address, and what was read there as `old`.",
        )

    def _refused(self, what: str, advice: str) -> SourceError:
        return SourceError(f"the instruction set {self.machine.kind!r} {what}", advice=advice)


def form_of(machine: Machine) -> Form:
    """What an instruction set has; its instruction is not looked at."""
    return Form(
        kind=machine.kind,
        ram=machine.ram,
        word=machine.word,
        counter=machine.counter.width,
        traps=machine.traps,
        first=machine.first,
        extra=machine.extra,
    )


# The machine again


@dataclass(frozen=True)
class Recorded(Machine):
    """A machine of which there is the recording, and not the function."""

    recording: ClassVar[Recording]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ram != self.recording.form.ram:
            raise SourceError(
                f"the instruction set {self.kind!r} was recorded with {self.recording.form.ram:,} bytes"
            )

    @property
    def word(self) -> int:
        return self.recording.form.word

    @property
    def counter(self) -> IntType:
        return UInt(self.recording.form.counter)

    @property
    def first(self) -> tuple[int, ...]:
        return self.recording.form.first

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        return self.recording.instruction(registers)


@cache
def machine_of(recording: Recording) -> type[Machine]:
    """The class of the machines with this recording."""
    form = recording.form
    own = {"recording": recording, "kind": form.kind, "traps": form.traps, "extra": form.extra}
    return type(form.kind, (Recorded,), own)
