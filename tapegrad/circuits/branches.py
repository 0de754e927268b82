"""How to write a branch on a traced value without branching: the user's own line, rewritten.

Python asks a value for its truth in `if`, `while`, `and`, `or`, `not`, chains of comparisons, `in`, `min`,
`max`, `sorted`, `any` and `all`, and for its number where it is the index of an ordinary list. What asked is
found from the position of the instruction in the user's file, and only that part of the line is changed.

Of bits `and` is `&`. Of numbers it is not: `4 and 3` is 3, and `4 & 3` is 0. So `&`, `|` and `~` are told
where all that they join are bits for sure: comparisons, and names that hold bits where the function stands.
"""

import ast
import linecache
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tapegrad.circuits.scalars import Bit, IntType
from tapegrad.errors import calling_frame

IN_GENERAL = (
    "Use `where(condition, a, b)` instead; for bits & | ~ instead of and, or, not, for numbers "
    "`where(a != 0, b, a)` for a and b, `where(a != 0, a, b)` for a or b, a == 0 for not a; and `smallest`, "
    "`largest`, `sort`."
)
LOOKUP = (
    "Use `where(condition, a, b)` to choose, `array(table)[x]` to look x up in a table; a loop takes a fixed "
    "number of rounds, as in `for i in range(8)`."
)
LOOP = (
    "Loop a fixed number of times instead, as often as it can be needed, as in `for i in range(8):`, and let "
    "every value that changes be `where({test}, new, old)`."
)
LARGEST_FILE = 1 << 20
"""Characters; in larger files nothing is looked for."""
FUNCTIONS = {"min": "smallest", "max": "largest", "sorted": "sort", "any": "any_of", "all": "all_of"}
LONGEST = 200
"""Characters of a line that is shown."""


def rewritten_branch(value: Any) -> str:
    """What to write instead of the line that asks a traced value for its truth, or advice in general where
    that is not found."""
    return _advice(IN_GENERAL, value)


def rewritten_lookup(otherwise: str = LOOKUP) -> str:
    """The same for a line that looks a traced value up in a list, bytes or an array of NumPy's."""
    return _advice(otherwise)


def _advice(otherwise: str, asked: Any = None) -> str:
    frame = calling_frame()
    said = _rewritten(frame, asked) if frame is not None else None
    return said if said and len(said) <= LONGEST + len(LOOP) else otherwise


def _rewritten(frame: FrameType, asked: Any) -> str | None:
    """The sentence with the line as it can be written, or on how to loop."""
    text = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    place = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if not text or len(text) > LARGEST_FILE:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    rewriting = _Rewriting(place, frame, asked)
    for statements in _blocks(tree):
        for number, statement in enumerate(statements):
            following = statements[number + 1] if number + 1 < len(statements) else None
            if isinstance(statement, ast.While) and _asks(statement, place):
                return LOOP.format(test=ast.unparse(statement.test))
            if line := _statement(statement, following, rewriting):
                return f"Write `{line}` instead."
    return None


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    """Every list of statements, inner ones first: what is found there is closest to the branch."""
    found = [
        block
        for node in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, name, None), list)
    ]
    return found[::-1]


def _statement(statement: ast.stmt, following: ast.stmt | None, rewriting: "_Rewriting") -> str | None:
    place = rewriting.place
    if isinstance(statement, ast.If) and _asks(statement, place):
        return _chosen(statement, following)
    if not any(_branches(node, place) for node in ast.walk(statement)):
        return None
    rewriting.tests = {id(node) for node in _tested(statement)}
    if isinstance(statement, ast.If | ast.While):
        return ast.unparse(rewriting.visit(statement.test))
    simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr)
    return ast.unparse(rewriting.visit(statement)) if simple else None


def _tested(statement: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement of which nothing counts but whether they are true."""
    waiting = list(ast.walk(statement))
    tests = [node.test for node in waiting if isinstance(node, ast.If | ast.While | ast.IfExp)]
    tests += [
        node.operand for node in waiting if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ]
    calls = [node for node in waiting if isinstance(node, ast.Call) and node.args]
    tests += [node.args[0] for node in calls if ast.unparse(node.func).rpartition(".")[2] == "where"]
    while tests:
        yield (node := tests.pop())
        tests += node.values if isinstance(node, ast.BoolOp) else []


def _at(node: ast.AST, place: tuple[int | None, ...]) -> bool:
    own = (getattr(node, name, None) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"))
    return tuple(own) == tuple(place)


def _asks(node: ast.If | ast.While | ast.IfExp, place: tuple[int | None, ...]) -> bool:
    """Whether the jump of this node is here: it has the place of a comparison, or of what is negated, else
    that of the whole."""
    test = node.test
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and not _at(test, place):
        test = test.operand
    return _at(test, place) or _at(node, place)


def _branches(node: ast.AST, place: tuple[int | None, ...]) -> bool:
    """Whether it is this node that asks for a truth."""
    if isinstance(node, ast.IfExp):
        return _asks(node, place)
    if isinstance(node, ast.BoolOp):
        return _at(node, place) or any(_at(value, place) for value in node.values)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) and _at(node, place)
    if isinstance(node, ast.Compare):
        return (len(node.ops) > 1 or isinstance(node.ops[0], ast.In | ast.NotIn)) and _at(node, place)
    if isinstance(node, ast.Subscript):
        return _at(node, place)
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    return isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and _at(node, place)


class _Rewriting(ast.NodeTransformer):
    """Changes the part that branches, and what it is made of. `asked` is the value that was asked for its
    truth."""

    def __init__(self, place: tuple[int | None, ...], frame: FrameType, asked: Any) -> None:
        self.place, self.frame, self.asked = place, frame, asked
        self.tests: set[int] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        found, tested = _branches(node, self.place), id(node) in self.tests
        bits = self._bits(node) if found else []
        node = super().generic_visit(node)
        return _without_branch(node, bits, tested) if found else node

    def _bits(self, node: ast.AST) -> list[bool]:
        """Of each operand, or of the items of the list that is given, whether it is a bit for sure."""
        if isinstance(node, ast.BoolOp):  # which of them was asked cannot be told
            return [self._is_bit(own) for own in node.values]
        return [getattr(self.asked, "type", None) == Bit]

    def _is_bit(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Constant) and isinstance(node.value, bool)):
            return True
        if isinstance(node, ast.BoolOp):
            return all(map(self._is_bit, node.values))
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) or (
                isinstance(node.op, ast.Invert) and self._is_bit(node.operand)
            )
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
            return self._is_bit(node.left) and self._is_bit(node.right)
        if isinstance(node, ast.Name):
            value = self._value(node)
            return isinstance(value, bool) or getattr(value, "type", None) == Bit
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
            return isinstance(getattr(self._value(node.value), "type", None), IntType)
        return False

    def _value(self, node: ast.AST) -> Any:
        """What a name stands for, where the function is."""
        name = node.id if isinstance(node, ast.Name) else ""
        return self.frame.f_locals.get(name, self.frame.f_globals.get(name))


def _without_branch(node: ast.AST, bits: list[bool], tested: bool) -> ast.AST:
    if isinstance(node, ast.IfExp):
        return _call("where", node.test, node.body, node.orelse)
    if isinstance(node, ast.BoolOp):
        conditions = [_condition(own, bit) for own, bit in zip(node.values, bits, strict=True)]
        if tested or all(bits):
            return _joined(ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr(), conditions)
        *others, found = node.values
        for condition, own in zip(conditions[-2::-1], others[::-1], strict=True):
            sides = (found, own) if isinstance(node.op, ast.And) else (own, found)
            found = _call("where", condition, *sides)
        return found
    if isinstance(node, ast.UnaryOp):
        zero = ast.Compare(node.operand, [ast.Eq()], [ast.Constant(0)])
        return ast.UnaryOp(ast.Invert(), node.operand) if bits[0] else zero
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], ast.In | ast.NotIn) and len(node.ops) == 1:
            equal = ast.Compare(_call("array", node.comparators[0]), [ast.Eq()], [node.left])
            found = _call("any_of", equal)
            return found if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Invert(), found)
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        return _joined(ast.BitAnd(), [ast.Compare(a, [op], [b]) for a, op, b in pairs])
    if isinstance(node, ast.Subscript):
        return ast.Subscript(_call("array", node.value), node.slice, node.ctx)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    alone = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
    values = node.args[0] if alone else ast.List(node.args, ast.Load())
    if node.func.id in ("any", "all") and not bits[0]:
        item = ast.Name("x", ast.Load())
        each = ast.comprehension(ast.Name("x", ast.Store()), values, [], 0)
        values = ast.GeneratorExp(_condition(item, bit=False), [each])
    return _call(FUNCTIONS[node.func.id], values)


def _condition(node: ast.expr, bit: bool) -> ast.expr:
    return node if bit else ast.Compare(node, [ast.NotEq()], [ast.Constant(0)])


def _joined(op: ast.operator, values: list[ast.expr]) -> ast.expr:
    first, *others = values
    for other in others:
        first = ast.BinOp(first, op, other)
    return first


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _chosen(statement: ast.If, following: ast.stmt | None) -> str | None:
    """`if` with one assignment or result on each side, as one statement."""
    one = statement.body[0] if len(statement.body) == 1 else None
    other = statement.orelse[0] if len(statement.orelse) == 1 else None
    if isinstance(one, ast.Return):
        other = other if statement.orelse else following
        if one.value and isinstance(other, ast.Return) and other.value:
            return ast.unparse(ast.Return(_call("where", statement.test, one.value, other.value)))
    if isinstance(one, ast.AugAssign) and not statement.orelse:
        value = ast.parse(ast.unparse(one.target), mode="eval").body
        one = ast.Assign([one.target], ast.BinOp(value, one.op, one.value))
    if isinstance(one, ast.Assign) and len(one.targets) == 1:
        (target,) = one.targets
        if not statement.orelse:
            value = ast.parse(ast.unparse(target), mode="eval").body
        elif isinstance(other, ast.Assign) and ast.unparse(other.targets[0]) == ast.unparse(target):
            value = other.value
        else:
            return None
        chosen = ast.Assign([target], _call("where", statement.test, one.value, value))
        return ast.unparse(ast.fix_missing_locations(chosen))
    return None
