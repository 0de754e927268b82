"""Is a transformer of gates and heads this Turing machine? Its tables, for all that a step can meet.

A step begins with one rule chosen, the symbols that it reads, and positions of the heads. What it makes of
them does not depend on anything else but what its heads find. So for every rule, and for everything that can
be read on the tapes, all gates are evaluated at once, a bit of a large integer for each case, and compared
with what the rule says. Positions are too many for that: for every rule, the new ones are computed as
decision diagrams over the bits of the old ones, and these are the same for the same functions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from tapegrad_check.fields import whole
from tapegrad_check.folder import OWN_TABLE, Checked, require
from tapegrad_check.formulas.diagrams import Diagrams
from tapegrad_check.sources import Machine, Model, digest, model_of

if TYPE_CHECKING:
    from tapegrad_check.targets.attention import Walk

KIND = "tapes"
Tables = Mapping[int, tuple[list[int], int]]
"""What every gate reads, and its table."""
MOST_NODES = 1 << 20
"""Of the diagrams of a position."""
MOST_CASES = 1 << 22
MOST_WORK = 1 << 24
"""Cases times gates, in 64ths: more would take minutes."""


def check(
    config: dict[str, Any],
    net: "Walk",
    groups: dict[str, list[int]],
    ends: list[int],
    steps: int,
    source: Model | None,
) -> Checked:
    """What holds of the net as a Turing machine."""
    data = config["machine"]
    require(data.keys() == {"kind", "steps", "source"}, "the machine has other entries")
    require(whole(data["steps"], "the steps of the machine") == steps, "the machine is for other steps")
    machine = model_of(data["source"], {})
    require(isinstance(machine, Machine), "the machine of the net has no tapes")
    assert isinstance(machine, Machine)
    require(source is None or digest(machine) == digest(source), "the machine is not the source")
    tapes = _Tapes(machine, steps, net, groups, config["banks"])
    require(sorted(ends) == tapes.group("trap"), "the end is not where no rule applies")
    tapes.check_heads()
    if tapes.cases > MOST_CASES or tapes.cases * len(net.tables) >> 6 > MOST_WORK:
        return Checked([f"the table was not compared: there are {tapes.cases:,} cases"], OWN_TABLE)
    tapes.check_rules()
    tapes.check_moves()
    return Checked(
        [
            f"for all of {len(machine.rules):,} rules and all that can lie under the heads, a step enters "
            "the state, writes the symbols and chooses the next rule, or the end, that the source says",
            f"heads are read and written where they are, and move as the rule says, for all of "
            f"{1 << tapes.address:,} positions",
        ]
    )


class _Tapes:
    """A machine with the coordinates of its net."""

    def __init__(
        self, machine: Machine, steps: int, net: "Walk", groups: dict[str, list[int]], banks: Any
    ) -> None:
        self.machine, self.net = machine, net
        self.symbols = [symbol for symbol in machine.alphabet if symbol != machine.blank]
        self.rules = list(machine.rules.items())
        self.numbers = {key: number for number, (key, _) in enumerate(self.rules)}
        self.address, self.width = (2 * steps).bit_length(), max(1, len(self.symbols))
        self.groups = groups
        sizes = {"state": len(machine.states), "rule": max(1, len(self.rules)), "trap": 1}
        for tape in range(machine.tapes):
            sizes |= {f"symbol {tape}": self.width, f"head {tape}": self.address}
            sizes |= {f"tape {tape} write on": 1, f"tape {tape} write at": self.address}
            sizes |= {f"tape {tape} write": self.width}
        for group, size in sizes.items():
            require(len(self.group(group)) == size, f"{group} has another size")
        carried = sorted(place for group in sizes for place in self.groups[group])
        require(carried == sorted(net.next), "something else is handed on than the machine needs")
        wanted = [
            {
                "memory": f"tape {tape}", "side": None, "number": tape, "words": 1 << self.address,
                "width": self.width, "address": self.address, "written": True,
            }
            for tape in range(machine.tapes)
        ]  # fmt: skip
        require(banks == wanted, "the banks are not the tapes")

    def group(self, name: str) -> list[int]:
        """The coordinates of a variable."""
        return self.groups.get(name, [])

    def check_heads(self) -> None:
        """On each tape, one head for what was written where the head of the machine is now, and one for what
        was given there. Tokens have the number of the tape, the position and the symbol."""
        bank = max(1, (self.machine.tapes - 1).bit_length())
        self.found: list[tuple[int, list[int], list[int]]] = []
        looks = {}
        for look in self.net.looks:
            key = look.own_steps, frozenset(look.compared)
            require(key not in looks and len(look.found) == 1, "two heads look for the same")
            looks[key] = look
        require(len(looks) == 2 * self.machine.tapes, "there are more heads than two for each tape")
        for tape in range(self.machine.tapes):
            asks = [self.net.next[place] for place in self.group(f"head {tape}")]
            on, at, word = (self.group(f"tape {tape} write{part}") for part in (" on", " at", ""))
            here = [((ask, 0), (answer, 0)) for ask, answer in zip(asks, at, strict=True)]
            there = [((ask, 0), (bank + bit, 0)) for bit, ask in enumerate(asks)]
            number = [((None, tape >> bit & 1), (bit, 0)) for bit in range(bank)]
            written = looks.get((True, frozenset([*here, ((None, 1), (on[0], 0))])))
            given = looks.get((False, frozenset([*there, *number])))
            require(written and given, f"no head looks where head {tape} is")
            assert written is not None
            assert given is not None
            symbols = range(bank + self.address, bank + self.address + self.width)
            self.found.append(
                (written.found[0], _ordered(written.copies, word), _ordered(given.copies, list(symbols)))
            )

    @property
    def cases(self) -> int:
        """Rules, times what can lie under the heads."""
        return len(self.rules) * (len(self.symbols) + 1) ** self.machine.tapes

    def read(self, tape: int) -> dict[int, int]:
        """Coordinates that say that a symbol is read on a tape, and the number of the symbol: of what the two
        heads there find, that which was written, or else that which was given. All that depends on nothing
        else is computed for everything that they can find."""
        letters = range(len(self.symbols) + 1)  # 0 is the blank
        finds = [(1, a, b) for a in letters for b in letters] + [(0, 0, b) for b in letters]
        found, written, given = self.found[tape]
        values = {found: _packed([find[0] for find in finds])}
        for which, bits in ((1, written), (2, given)):
            for letter, place in enumerate(bits, 1):
                values[place] = _packed([find[which] == letter for find in finds])
        for place, (inputs, _) in self.net.tables.items():
            if inputs and all(own in values for own in inputs):
                _evaluated(self.net.tables, place, values, (1 << len(finds)) - 1)
        patterns = {}
        for letter in range(1, self.width + 1):
            patterns[_packed([(a if on else b) == letter for on, a, b in finds])] = letter
        return {place: patterns[value] for place, value in values.items() if value in patterns}

    def check_rules(self) -> None:
        """State, writes, symbols, the next rule and the end, in all cases: rule after rule, and for each what
        can be read."""
        tapes = range(self.machine.tapes)
        seen = list(product(range(len(self.symbols) + 1), repeat=len(tapes)))
        block, count = len(seen), len(self.rules) * len(seen)
        of_rule = [((1 << block) - 1) << number * block for number in range(len(self.rules))]
        repeated = sum(1 << number * block for number in range(len(self.rules)))
        values = dict(zip(self.group("rule"), of_rule or [0], strict=True))
        before = [[self._letter(symbol) for symbol in key[1]] for key, _ in self.rules]
        for tape in tapes:
            for place, letter in self.read(tape).items():
                values[place] = repeated * _packed([letters[tape] == letter for letters in seen])
            for letter, place in enumerate(self.group(f"symbol {tape}"), 1):
                reading = [number for number, was in enumerate(before) if was[tape] == letter]
                values[place] = sum(of_rule[number] for number in reading)
        expected: dict[tuple[str, int], int] = {}
        for number, letters in enumerate(seen):
            for rule in range(len(self.rules)):
                for holds in self._after(rule, before[rule], letters):
                    expected[holds] = expected.get(holds, 0) | 1 << rule * block + number
        every = (1 << count) - 1
        groups = ["state", "rule", "trap"]
        for tape in tapes:
            groups += [f"symbol {tape}", f"tape {tape} write", f"tape {tape} write on"]
        for group in groups:
            for number, place in enumerate(self.group(group)):
                found = _evaluated(self.net.tables, self.net.next[place], values, every)
                require(found == expected.get((group, number), 0), f"{group} is not what the source says")
        for tape in tapes:
            at = [self.net.next[place] for place in self.group(f"tape {tape} write at")]
            require(at == self.group(f"head {tape}"), "a write goes elsewhere")

    def _letter(self, symbol: str) -> int:
        return 0 if symbol == self.machine.blank else 1 + self.symbols.index(symbol)

    def _after(self, number: int, before: list[int], read: tuple[int, ...]) -> Iterator[tuple[str, int]]:
        """Which bits are 1 after a rule, where it wrote over these symbols and then those were read."""
        machine, (_, rule) = self.machine, self.rules[number]
        yield "state", machine.states.index(rule.state)
        under = []
        for tape, (symbol, move) in enumerate(zip(rule.write, rule.moves, strict=True)):
            write = self._letter(symbol)
            under.append(read[tape] if move else write)
            if write:
                yield f"tape {tape} write", write - 1
            if write != before[tape]:
                yield f"tape {tape} write on", 0
            if under[tape]:
                yield f"symbol {tape}", under[tape] - 1
        names = tuple(machine.blank if letter == 0 else self.symbols[letter - 1] for letter in under)
        following = self.numbers.get((rule.state, names))
        yield ("trap", 0) if following is None else ("rule", following)

    def check_moves(self) -> None:
        """For every rule, each head's new position is the old one plus its move, whatever that is. What the
        rule has to say about it is what gates with positions read from gates without: few things, and the
        same for many rules."""
        rules = dict(
            zip(self.group("rule"), (1 << number for number in range(len(self.rules))), strict=False)
        )
        every = (1 << len(self.rules)) - 1
        for tape in range(self.machine.tapes):
            old = self.group(f"head {tape}")
            said = self._beside(old)
            for place in said:
                _evaluated(self.net.tables, place, rules, every)
            distinct = {
                (tuple(rules[place] >> number & 1 for place in said), rule.moves[tape])
                for number, (_, rule) in enumerate(self.rules)
            }
            for bits, move in distinct:
                diagrams = Diagrams(MOST_NODES)
                values = dict(zip(said, bits, strict=True))
                values |= {place: diagrams.variable(bit) for bit, place in enumerate(old)}
                # To add 1 carries it while bits are 1, to take 1 away while they are 0.
                carry = int(move != 0)
                for place in old:
                    found = _diagram(diagrams, self.net.tables, self.net.next[place], values)
                    x = values[place]
                    require(found == diagrams.xor(x, carry), f"head {tape} goes elsewhere")
                    carry = diagrams.and_(x ^ (move != 1), carry)

    def _beside(self, old: list[int]) -> list[int]:
        """What gates that depend on these coordinates read besides, on the way to their next values."""
        depends = set(old)
        for place, (inputs, _) in self.net.tables.items():  # in the order in which they are computed
            if depends.intersection(inputs):
                depends.add(place)
        waiting, beside = [self.net.next[place] for place in old], {}
        seen = set(waiting)
        while waiting:
            place = waiting.pop()
            if place not in depends:
                beside[place] = None
            elif place not in old:
                new = [own for own in self.net.tables[place][0] if own not in seen]
                seen.update(new)
                waiting += new
        return list(beside)


def _ordered(copies: Mapping[int, int], sources: Sequence[int]) -> list[int]:
    """The coordinates that take these, in their order."""
    places = {source: place for place, source in copies.items()}
    require(len(places) == len(copies) and places.keys() == set(sources), "a head copies other bits")
    return [places[source] for source in sources]


def _packed(flags: Sequence[Any]) -> int:
    """Truth values as the bits of an integer, the first the lowest."""
    return int("".join("1" if flag else "0" for flag in reversed(flags)) or "0", 2)


def _followed(
    tables: Tables, root: int, values: dict[int, int], gate: Callable[[int, list[int]], int], complaint: str
) -> int:
    """The value of a coordinate, gate by gate, each from its table and the values of its inputs. What it
    depends on must be among the values, or be a gate."""
    waiting = [root]
    while waiting:
        place = waiting[-1]
        if place in values:
            waiting.pop()
            continue
        require(place in tables, complaint)
        inputs, table = tables[place]
        missing = [own for own in inputs if own not in values]
        if missing:
            waiting += missing
        else:
            values[place] = gate(table, [values[own] for own in inputs])
            waiting.pop()
    return values[root]


def _evaluated(tables: Tables, root: int, values: dict[int, int], every: int) -> int:
    """A coordinate in all cases at once."""

    def gate(table: int, inputs: list[int]) -> int:
        total = 0
        for row in range(1 << len(inputs)):
            if table >> row & 1:
                term = every
                for slot, own in enumerate(inputs):
                    term &= own if row >> slot & 1 else every ^ own
                total |= term
        return total

    return _followed(tables, root, values, gate, "a gate depends on something that the machine does not know")


def _diagram(diagrams: Diagrams, tables: Tables, root: int, values: dict[int, int]) -> int:
    """A coordinate as a decision diagram."""

    def gate(table: int, inputs: list[int]) -> int:
        if not inputs:
            return table
        *rest, last = inputs
        half = 1 << len(rest)
        low, high = gate(table & (1 << half) - 1, rest), gate(table >> half, rest)
        return diagrams.xor(low, diagrams.and_(last, diagrams.xor(low, high)))

    complaint = "a position depends on more than the rule and where the head was"
    return _followed(tables, root, values, gate, complaint)
