"""How to write a branch on a traced value without branching: the user's own line, rewritten.

Python asks a value for its truth in `if`, `while`, `and`, `or`, `not`, chains of comparisons, `in`, `min`,
`max`, `sorted`, `any` and `all`, and for its number where it is the index of an ordinary list. What asked is
found from the position of the instruction in the user's file, and only that part of the line is changed.
"""

import ast
import linecache
from types import FrameType

from tapegrad.errors import calling_frame

IN_GENERAL = (
    "Use `where(condition, a, b)` instead, & | ~ instead of and, or, not, and `smallest`, `largest`, `sort`."
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


def rewritten_branch() -> str:
    """What to write instead of the line that branches, or advice in general where that is not found."""
    return _advice(IN_GENERAL)


def rewritten_lookup(otherwise: str = LOOKUP) -> str:
    """The same for a line that looks a traced value up in a list, bytes or an array of NumPy's."""
    return _advice(otherwise)


def _advice(otherwise: str) -> str:
    frame = calling_frame()
    said = _rewritten(frame) if frame is not None else None
    return said if said and len(said) <= LONGEST + len(LOOP) else otherwise


def _rewritten(frame: FrameType) -> str | None:
    """The sentence with the line as it can be written, or on how to loop."""
    text = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    place = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if not text or len(text) > LARGEST_FILE:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for statements in _blocks(tree):
        for number, statement in enumerate(statements):
            following = statements[number + 1] if number + 1 < len(statements) else None
            if isinstance(statement, ast.While) and _asks(statement, place):
                return LOOP.format(test=ast.unparse(statement.test))
            if line := _statement(statement, following, place):
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


def _statement(statement: ast.stmt, following: ast.stmt | None, place: tuple[int | None, ...]) -> str | None:
    if isinstance(statement, ast.If) and _asks(statement, place):
        return _chosen(statement, following)
    if not any(_branches(node, place) for node in ast.walk(statement)):
        return None
    if isinstance(statement, ast.If | ast.While):
        return ast.unparse(_Rewriting(place).visit(statement.test))
    simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr)
    return ast.unparse(_Rewriting(place).visit(statement)) if simple else None


def _at(node: ast.AST, place: tuple[int | None, ...]) -> bool:
    own = (getattr(node, name, None) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"))
    return tuple(own) == tuple(place)


def _asks(node: ast.If | ast.While | ast.IfExp, place: tuple[int | None, ...]) -> bool:
    """Whether the jump of this node is here: it has the place of a comparison, else that of the whole."""
    return _at(node.test, place) or _at(node, place)


def _branches(node: ast.AST, place: tuple[int | None, ...]) -> bool:
    """Whether it is this node that asks for a truth."""
    if isinstance(node, ast.IfExp):
        return _asks(node, place)
    if isinstance(node, ast.BoolOp):
        return _at(node, place) or any(_at(value, place) for value in node.values)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) and _at(node, place)
    if isinstance(node, ast.Compare):
        return (len(node.ops) > 1 or isinstance(node.ops[0], ast.In)) and _at(node, place)
    if isinstance(node, ast.Subscript):
        return _at(node, place)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
    return called and _at(node, place)


class _Rewriting(ast.NodeTransformer):
    """Changes the part that branches, and what it is made of."""

    def __init__(self, place: tuple[int | None, ...]) -> None:
        self.place = place

    def visit(self, node: ast.AST) -> ast.AST:
        found = _branches(node, self.place)
        node = super().generic_visit(node)
        return _without_branch(node) if found else node


def _without_branch(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.IfExp):
        return _call("where", node.test, node.body, node.orelse)
    if isinstance(node, ast.BoolOp):
        return _joined(ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr(), node.values)
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(ast.Invert(), node.operand)
    if isinstance(node, ast.Compare):
        if isinstance(node.ops[0], ast.In) and len(node.ops) == 1:
            equal = ast.Compare(_call("array", node.comparators[0]), [ast.Eq()], [node.left])
            return _call("any_of", equal)
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        return _joined(ast.BitAnd(), [ast.Compare(a, [op], [b]) for a, op, b in pairs])
    if isinstance(node, ast.Subscript):
        return ast.Subscript(_call("array", node.value), node.slice, node.ctx)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    values = node.args[0] if len(node.args) == 1 else ast.List(node.args, ast.Load())
    return _call(FUNCTIONS[node.func.id], values)


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
