"""The covers of BLIF: a function as a list of cubes, for which it is 1 (on-set) or 0 (off-set)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from tapegrad.circuits.builder import Wire
from tapegrad.circuits.formats.netlist import Gates
from tapegrad.circuits.formats.tables import MOST_INPUTS, Plan, plan_of, variable
from tapegrad.circuits.model import Gate


@dataclass(frozen=True)
class Cover:
    """Cubes of `0`, `1` and `-` (either), one place for each operand; `value` is the function's value on
    every pattern in one of them, and it has the other value everywhere else."""

    operands: int
    cubes: tuple[str, ...] = ()
    value: bool = True

    def __call__(self, pattern: Sequence[int]) -> bool:
        """The value for one pattern of bits."""
        inside = any(
            all(place in ("-", str(int(bit))) for place, bit in zip(cube, pattern, strict=True))
            for cube in self.cubes
        )
        return inside == self.value

    def add(self, gates: Gates, operands: Sequence[Wire]) -> Wire:
        """The gates that compute it: a single one where it is the function of a gate, few by its truth table
        where it has up to six operands and is not as short already, else ANDs of the literals of each cube,
        ORed."""
        kind = self.single_gate
        if kind is not None:
            if not operands or kind in (Gate.FALSE, Gate.TRUE):
                return gates.constant(kind is Gate.TRUE)
            return gates.negated(operands[0]) if kind is Gate.NOT else gates.build.gate(kind, *operands)
        if self.plan is not None:
            return gates.planned(self.plan, operands)
        cubes = [self._cube(gates, operands, cube) for cube in self.cubes]
        inside = gates.tree(Gate.OR, cubes, shared=True)
        return inside if self.value else gates.negated(inside)

    @cached_property
    def plan(self) -> Plan | bool | None:
        """The gates of its truth table, where they are fewer than those of its cubes."""
        if self.operands > MOST_INPUTS:
            return None
        written = sum(self.operands - cube.count("-") for cube in self.cubes) - 1
        plan = plan_of(self.operands, self.table)
        return plan if isinstance(plan, bool) or len(plan.steps) < written else None

    @cached_property
    def table(self) -> int:
        """The truth table of a few operands; bit p is the value where operand i has bit i of p."""
        every = (1 << (1 << self.operands)) - 1
        inside = 0
        for cube in self.cubes:
            rows = every
            for place, own in enumerate(cube):
                if own != "-":
                    rows &= variable(self.operands, place) ^ (0 if own == "1" else every)
            inside |= rows
        return inside if self.value else inside ^ every

    @cached_property
    def single_gate(self) -> Gate | None:
        """The gate with this truth table, if there is one: its bit 2 a + b is the value for a, b."""
        if not self.cubes:
            return Gate.FALSE if self.value else Gate.TRUE
        if self.operands > 2:
            return None
        patterns = product((0, 1), repeat=2)
        table = sum(self(pattern[: self.operands]) << place for place, pattern in enumerate(patterns))
        kind = next((gate for gate in Gate if gate == table), None)
        # Of two operands, an identity or a negation reads the first and ignores the second: not one gate.
        return kind if kind is not None and kind.arity in (0, self.operands) else None

    @staticmethod
    def _cube(gates: Gates, operands: Sequence[Wire], cube: str) -> Wire:
        literals = [
            wire if place == "1" else gates.negated(wire)
            for wire, place in zip(operands, cube, strict=True)
            if place != "-"
        ]
        return gates.tree(Gate.AND, literals, shared=True) if literals else gates.constant(True)
