"""Passes from machines to machines, each done anew in the checker's own words.

What a pass gives has to come out the same to the name, since a net is loaded with the names that it was saved
with; so new states and symbols are named here as the file format has it. A pass never gives more rules than
the lowered machine has in the end, which bounds everything here by the size of the file.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import product

from tapegrad_check.folder import require
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import GridMachine, GridRule, Machine, Model, Rule

LEFT, STAY, RIGHT = -1, 0, 1

Rules = dict[tuple[str, tuple[str, ...]], Rule]


def with_rules(machine: Machine, rules: Rules) -> Machine:
    """The machine with these rules. The states and symbols that it has already come first, then others in the
    order in which rules name them: this is how machines are saved."""
    states = dict.fromkeys([machine.start, *machine.states])
    alphabet = dict.fromkeys([machine.blank, *machine.alphabet])
    for (state, read), rule in rules.items():
        states.update(dict.fromkeys((state, rule.state)))
        alphabet.update(dict.fromkeys((*read, *rule.write)))
    states.update(dict.fromkeys(sorted((*machine.accept, *machine.reject))))
    return replace(machine, states=tuple(states), alphabet=tuple(alphabet), rules=rules)


def most_rules(step: Step) -> int:
    """How many rules the largest machine has that is saved as the result of a pass; without one, the largest
    array says how many there can be at most."""
    config = step.folder.config
    results = [
        config.get("lowered"),
        *(one.get("after") for one in config["passes"] if isinstance(one, dict)),
    ]
    tables = [one.get("rules") for one in results if isinstance(one, dict)]
    counts = [len(table) for table in tables if isinstance(table, list)]
    return max(counts or [array.size for array in step.folder.arrays.values()], default=0)


class _Fresh:
    """Names that nothing has yet: the one wished for, or with the first number that makes it new."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken, self.names, self.numbers = set(taken), dict[Hashable, str](), dict[str, int]()

    def __call__(self, thing: Hashable, wish: str) -> str:
        if thing not in self.names:
            name = wish
            while name in self.taken:
                self.numbers[wish] = self.numbers.get(wish, 1) + 1
                name = f"{wish}.{self.numbers[wish]}"
            self.taken.add(name)
            self.names[thing] = name
        return self.names[thing]


def _a_machine(before: Model) -> Machine:
    require(isinstance(before, Machine), "a pass that takes machines was given something else")
    assert isinstance(before, Machine)
    return before


def binary_tracks(before: Model, step: Step) -> Model:
    """Tape i becomes w tapes, which hold the bits of the numbers of its symbols, highest first. All of them
    move as it did, so they show at any time what it shows."""
    machine = _a_machine(before)
    width = max(1, (len(machine.alphabet) - 1).bit_length())
    code = {symbol: tuple(format(n, f"0{width}b")) for n, symbol in enumerate(machine.alphabet)}

    def bits(symbols: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(bit for symbol in symbols for bit in code[symbol])

    rules = {
        (state, bits(read)): Rule(
            bits(rule.write), tuple(move for move in rule.moves for _ in range(width)), rule.state
        )
        for (state, read), rule in machine.rules.items()
    }
    step.statements.append(f"the tracks of {width} bits hold the numbers of the symbols of each tape")
    binary = replace(machine, blank="0", alphabet=("0", "1"), tapes=width * machine.tapes)
    return with_rules(binary, rules)


def stay_free(before: Model, step: Step) -> Model:
    """A step in which heads stay becomes two: away, and back. If all heads stay together the way back is
    over whatever lies there, which a state of its own copies; else cell i lies at 2 i, heads that move do so
    twice, and between lies a blank on every tape."""
    machine = _a_machine(before)
    staying = [rule for rule in machine.rules.values() if STAY in rule.moves]
    if not staying:
        return machine
    fresh, rules = _Fresh(machine.states), Rules({})
    if any(any(rule.moves) for rule in staying):
        blanks = (machine.blank,) * machine.tapes
        for case, rule in machine.rules.items():
            on = tuple(move or LEFT for move in rule.moves)
            half = fresh((rule.state, on), f"{rule.state} after {''.join('<.>'[move + 1] for move in on)}")
            rules[case] = Rule(rule.write, tuple(move or RIGHT for move in rule.moves), half)
            rules[half, blanks] = Rule(blanks, on, rule.state)
        step.statements.append("every step is two, on tapes of which every second cell stays blank")
    else:
        back: dict[str, str] = {}
        for case, rule in machine.rules.items():
            if STAY not in rule.moves:
                rules[case] = rule
                continue
            if rule.state not in back:
                back[rule.state] = fresh(rule.state, f"{rule.state} after a step back")
            rules[case] = Rule(rule.write, (RIGHT,) * machine.tapes, back[rule.state])
        returning = len(back) * len(machine.alphabet) ** machine.tapes
        require(len(rules) + returning <= most_rules(step), "the stay-free machine lacks rules")
        for state, half in back.items():
            for read in product(machine.alphabet, repeat=machine.tapes):
                rules[half, read] = Rule(read, (LEFT,) * machine.tapes, state)
        step.statements.append("a step in which all heads stay is a step to the right and one back")
    return with_rules(machine, rules)


def states_tripled(before: Model, step: Step) -> Model:
    """Every state with a digit that counts the steps modulo 3."""
    machine = _a_machine(before)
    rules = {
        (f"{state}.{digit}", read): Rule(rule.write, rule.moves, f"{rule.state}.{(digit + 1) % 3}")
        for (state, read), rule in machine.rules.items()
        for digit in range(3)
    }

    def tripled(states: Iterable[str]) -> tuple[str, ...]:
        return tuple(f"{state}.{digit}" for state in states for digit in range(3))

    names = tripled(machine.states)
    require(len(set(names)) == len(names), "two tripled states have the same name")
    step.statements.append("states count the steps modulo 3, and do what they did before")
    ends = {
        "accept": tuple(sorted(tripled(machine.accept))),
        "reject": tuple(sorted(tripled(machine.reject))),
    }
    return with_rules(replace(machine, start=f"{machine.start}.0", states=names, **ends), rules)


def line_to_grid(before: Model, step: Step) -> Model:
    """The only tape is row 0 of the grid."""
    machine = _a_machine(before)
    require(machine.tapes == 1, "a machine on the grid has one head")
    direction = {LEFT: "left", STAY: "stay", RIGHT: "right"}
    rules = {
        (state, read[0]): GridRule(rule.write[0], direction[rule.moves[0]], rule.state)
        for (state, read), rule in machine.rules.items()
    }
    step.statements.append("the tape is a row of the grid, which the machine never leaves")
    return GridMachine(machine.start, machine.blank, machine.alphabet, machine.states, rules, machine.name)


# k tapes side by side on one: cell i of tape j at k i + j, the symbol under each head marked.
#
# A state is a name of the old machine, at home left of all marks, or one of
#     ("read", q, seen, j)       going right at a cell of tape j; the marked symbols seen so far, or None
#     ("update", q, todo, j)     going left; for each tape the symbol to write and the move, None when done
#     ("put", q, todo, j, move)  where the mark of tape j, carried by `move`, has to be set
#     ("walk", move, n, then)    n moves over any cells, then the next state

_Todo = tuple[tuple[str, int] | None, ...]
_Action = tuple[str, int, "_Sweeping"]
_Sweeping = Hashable


def one_tape(before: Model, step: Step) -> Model:
    """Sweeps right to collect the symbols under the heads, applies the rule, sweeps left to write and to move
    the marks, and goes home. All that can be reached from the start is looked at, so no case is forgotten."""
    machine = _a_machine(before)
    if machine.tapes == 1:
        return machine
    mark = _Fresh(machine.alphabet)
    marked = {symbol: mark(symbol, f"{symbol}^") for symbol in machine.alphabet}
    sweeps = _Sweeps(machine, marked)
    rules, most = Rules({}), most_rules(step)
    waiting: list[_Sweeping] = [machine.start]
    known = set(waiting)
    for state in waiting:  # grows meanwhile
        for symbol in (*marked, *marked.values()):
            action = sweeps.action(state, symbol)
            if action is None:
                continue
            write, move, then = action
            rules[sweeps.name(state), (symbol,)] = Rule((write,), (move,), sweeps.name(then))
            require(len(rules) <= most, "the machine on one tape lacks rules")
            if then not in known:
                known.add(then)
                waiting.append(then)
    step.statements.append(
        f"a step on {machine.tapes} tapes is a sweep over the one tape, for each of its rules"
    )
    alphabet = (*machine.alphabet, *marked.values())
    return with_rules(replace(machine, tapes=1, states=(machine.start,), alphabet=alphabet), rules)


class _Sweeps:
    def __init__(self, machine: Machine, marked: Mapping[str, str]) -> None:
        self.machine, self.k, self.marked = machine, machine.tapes, marked
        self.plain = {mark: symbol for symbol, mark in marked.items()}
        self.working = {state for state, _ in machine.rules}
        self.fresh = _Fresh(machine.states)

    def name(self, state: _Sweeping) -> str:
        match state:
            case str():
                return state
            case ("read", q, seen, j):
                return self.fresh(state, f"{q} read {','.join(s or '?' for s in seen)} at {j}")
            case ("update", q, todo, j):
                return self.fresh(state, f"{q} update {_words(todo)} at {j}")
            case ("put", q, todo, j, _):
                return self.fresh(state, f"{q} put {j} update {_words(todo)}")
            case ("walk", move, n, then):
                side = "left" if move == LEFT else "right"
                return self.fresh(state, f"{side} {n} then {self.name(then)}")
        raise AssertionError(state)

    def action(self, state: _Sweeping, symbol: str) -> _Action | None:
        """None where the old machine halts, and for a mark that cannot be there."""
        match state:
            case ("read", q, seen, j):
                return self.read(q, seen, j, symbol)
            case ("update", q, todo, j):
                return self.update(q, todo, j, symbol)
            case ("put", q, todo, j, move):
                return self.put(q, todo, j, move, symbol)
            case ("walk", move, n, then):
                return symbol, *_walk(move, n, then)
            case str() if state in self.working:
                return self.read(state, (None,) * self.k, 0, symbol)
        return None

    def read(self, q: str, seen: tuple[str | None, ...], j: int, symbol: str) -> _Action | None:
        if symbol in self.plain:
            if seen[j] is not None:
                return None
            seen = (*seen[:j], self.plain[symbol], *seen[j + 1 :])
            if None not in seen:
                rule = self.machine.rules.get((q, seen))  # type: ignore[arg-type]
                if rule is None:
                    return None
                return self.update(rule.state, tuple(zip(rule.write, rule.moves, strict=True)), j, symbol)
        return symbol, RIGHT, ("read", q, seen, (j + 1) % self.k)

    def update(self, q: str, todo: _Todo, j: int, symbol: str) -> _Action:
        before, own = (j - 1) % self.k, todo[j]
        if own is None or symbol not in self.plain:
            return symbol, LEFT, ("update", q, todo, before)
        write, move = own
        rest = (*todo[:j], None, *todo[j + 1 :])
        if move != STAY:
            return write, *_walk(move, self.k, ("put", q, rest, j, move))
        if any(rest):
            return self.marked[write], LEFT, ("update", q, rest, before)
        return self.marked[write], *_walk(LEFT, self.k + j, q)

    def put(self, q: str, todo: _Todo, j: int, move: int, symbol: str) -> _Action | None:
        if symbol in self.plain:
            return None
        mark = self.marked[symbol]
        if any(todo):  # the next cell of the sweep is the one left of where the mark was
            onwards = ("update", q, todo, (j - 1) % self.k)
            back = (LEFT, self.k + 1) if move == RIGHT else (RIGHT, self.k - 1)
            return mark, *_walk(*back, onwards)
        return mark, *_walk(LEFT, 2 * self.k + j if move == RIGHT else j or self.k, q)


def _walk(move: int, n: int, then: _Sweeping) -> tuple[int, _Sweeping]:
    return move, then if n == 1 else ("walk", move, n - 1, then)


def _words(todo: _Todo) -> str:
    return ",".join("-" if one is None else f"{one[0]}{'<=>'[one[1] + 1]}" for one in todo)


def _on_grid(before: Model, step: Step) -> Model:
    return line_to_grid(one_tape(before, step), step)


PASSES: dict[str, Callable[[Model, Step], Model]] = {
    "binary tracks": binary_tracks,
    "stay-free": stay_free,
    "states tripled": states_tripled,
    "one tape": one_tape,
    "line to grid": line_to_grid,
    "one tape, line to grid": _on_grid,
}
