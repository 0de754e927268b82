"""Mutation tests: small faults are planted in the code that everything trusts, and the tests must notice.

    python -m tests.mutants                            # every module of the table, a sample of its mutants
    python -m tests.mutants --module _lockstep --all   # every mutant of one module
    python -m tests.mutants --survivors                # what the last run's tests did not notice

A mutant differs from the code in one place: a guard is gone, a comparison is one off, a number is doubled, a
term or a condition is dropped. It is killed if one of the tests that belong to its module fails, or takes far
longer than they do on the code as it is. Each runs in a process of its own, forked from one that has loaded
the libraries; the mutant is put in place of its module when it is imported, and no file is changed. Results
are appended to a file, so that a run which was stopped goes on where it was.

Some mutants do the same as the code (an array made longer than needed, say). `tests/equivalent_mutants.txt`
lists them, each with the reason.
"""

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
PRELOADED = ("jax", "equinox", "numba", "numpy", "safetensors.numpy", "hypothesis", "yaml")
"""Libraries, loaded once before the processes of mutants part from this one."""

CHECK = ["tests/check"]
TRUSTED: dict[str, list[str]] = {
    "tapegrad_check.circuits": CHECK,
    "tapegrad_check.emulator": CHECK,
    "tapegrad_check.folder": [*CHECK, "tests/test_saved.py"],
    "tapegrad_check.machines": CHECK,
    "tapegrad_check.passes": CHECK,
    "tapegrad_check.rcnn": CHECK,
    "tapegrad_check.relu": [*CHECK, "tests/targets/test_relu_proof.py"],
    "tapegrad_check.simplex": CHECK,
    "tapegrad_check.sources": CHECK,
    "tapegrad_check.tape": CHECK,
    "tapegrad_check.transformer": CHECK,
    "tapegrad._lockstep": ["tests/test_lockstep.py", "tests/test_compile_and_verify.py"],
    "tapegrad._verify": ["tests/test_lockstep.py", "tests/test_compile_and_verify.py"],
    "tapegrad.machines.model": ["tests/machines"],
    "tapegrad.machines.compiled": ["tests/machines"],
    "tapegrad.circuits.model": ["tests/circuits"],
    "tapegrad.circuits.evaluator": ["tests/circuits"],
    "tapegrad.targets.relu.exactness": ["tests/targets/test_relu.py", "tests/targets/test_relu_proof.py"],
    "tapegrad.targets.transformer.exactness": ["tests/targets/test_transformer.py"],
    "tapegrad.targets.rcnn.exactness": ["tests/targets/rcnn"],
    "tapegrad.targets.emulator.constants": ["tests/targets/emulator"],
}
"""Modules, and the tests that belong to each."""

LESS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
"""Each comparison, and one that differs from it on the border or everywhere."""


@dataclass(frozen=True)
class Mutant:
    """One change in one module."""

    module: str
    function: str
    before: str
    after: str
    number: int
    """Among the changes of the module, in the order in which `changes` finds them."""

    @property
    def key(self) -> str:
        """What names it as long as the line it changes stays the same."""
        return f"{self.module} | {self.function} | {self.before} => {self.after}"


@dataclass(frozen=True)
class Change:
    """One place of a module, and what is put there."""

    path: "list[Step]"
    before: ast.AST
    after: ast.AST

    def carried_out(self, tree: ast.Module) -> ast.Module:
        """The module with it; the tree is used up."""
        holder, name, index = _holder(tree, self.path)
        if index is None:
            setattr(holder, name, self.after)
        else:
            getattr(holder, name)[index] = self.after
        return ast.fix_missing_locations(tree)


def changes(tree: ast.Module) -> Iterator[Change]:
    """Every mutant of a module. Docstrings, annotations and messages are left alone: no test should depend
    on them."""
    for path, node in _nodes(tree):
        for other in _others(node):
            yield Change(path, node, other)


Step = tuple[str, int | None]
"""From a node to a child: the field, and the place where the field is a list."""


def _nodes(tree: ast.Module) -> Iterator[tuple[list[Step], ast.AST]]:
    waiting: list[tuple[list[Step], ast.AST]] = [([], tree)]
    while waiting:
        path, node = waiting.pop()
        if path:
            yield path, node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params") or _is_message(node, name):
                continue
            if isinstance(value, ast.AST):
                waiting.append(([*path, (name, None)], value))
            elif isinstance(value, list):
                children = [(index, child) for index, child in enumerate(value) if isinstance(child, ast.AST)]
                waiting += [([*path, (name, index)], child) for index, child in children]


def _is_message(node: ast.AST, name: str) -> bool:
    """Whether this is what an error says, or a docstring."""
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _holder(tree: ast.AST, path: list[Step]) -> tuple[ast.AST, str, int | None]:
    for name, index in path[:-1]:
        value = getattr(tree, name)
        tree = value if index is None else value[index]
    return tree, *path[-1]


def _function(tree: ast.AST, path: list[Step]) -> str:
    names = []
    for name, index in path:
        value = getattr(tree, name)
        tree = value if index is None else value[index]
        if isinstance(tree, ast.FunctionDef | ast.ClassDef):
            names.append(tree.name)
    return ".".join(names)


def _line(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:120]


def _others(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name.endswith("require"):
            yield ast.Pass()
        case ast.If(body=[ast.Raise()]):
            yield ast.If(ast.Constant(False), node.body, node.orelse)
        case ast.Compare(ops=[operator, *_]) if type(operator) in LESS:
            yield ast.Compare(node.left, [LESS[type(operator)](), *node.ops[1:]], node.comparators)
        case ast.BoolOp(values=values):
            for left_out in range(len(values)):
                kept = [value for place, value in enumerate(values) if place != left_out]
                yield kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Mod() | ast.Pow()):
            yield node.left
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(2 * number or 1)


def source_of(module: str) -> str:
    """The code of a module, without importing it."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text()


def mutants_of(module: str) -> list[Mutant]:
    """All of a module, those with equal descriptions counted once."""
    found: dict[str, Mutant] = {}
    tree = ast.parse(source_of(module))
    for number, change in enumerate(changes(tree)):
        function = _function(tree, change.path)
        mutant = Mutant(module, function, _line(change.before), _line(change.after), number)
        found.setdefault(mutant.key, mutant)
    return list(found.values())


class _InPlace(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant where its module is asked for."""

    def __init__(self, mutant: Mutant) -> None:
        self.module = mutant.module
        tree = ast.parse(source_of(mutant.module))
        change = next(islice(changes(tree), mutant.number, None))
        self.tree = change.carried_out(tree)

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        place = ROOT.joinpath(*fullname.split(".")).with_suffix(".py")
        return importlib.util.spec_from_file_location(fullname, place, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, f"<mutant of {self.module}>", "exec"), module.__dict__)


def _tests_pass(tests: list[str], mutant: Mutant | None, seconds: float) -> bool:
    """Whether the tests pass in time, in a process of their own."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        code = 1
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            if mutant is not None:
                sys.meta_path.insert(0, _InPlace(mutant))
                if "njit" in source_of(mutant.module):  # no compiled code from before, and none for others
                    os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()
            options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
            code = int(pytest.main([*options, *tests]))
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def equivalent() -> dict[str, str]:
    """Mutants that do the same as the code, with the reason for each."""
    lines = EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
    pairs = [line.rsplit(" # ", 1) for line in lines if " # " in line and not line.startswith("#")]
    return {key.strip(): reason.strip() for key, reason in pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description="Plants faults and counts those that the tests notice.")
    parser.add_argument("--module", action="append", help="a part of a module's name; may be repeated")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each module (default 40)")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--survivors", action="store_true", help="print those that earlier runs left alive")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench/out/mutants.jsonl")
    options = parser.parse_args()
    args_of = options.module
    modules = [name for name in TRUSTED if not args_of or any(part in name for part in args_of)]
    results = _results(options.output)
    if not options.survivors:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        for library in PRELOADED:
            importlib.import_module(library)
        for module in modules:
            _run(module, results, options)
    _print(modules, results, options.survivors)
    return 0


def _results(place: Path) -> dict[str, bool]:
    lines = place.read_text().splitlines() if place.exists() else []
    return {entry["mutant"]: entry["killed"] for entry in map(json.loads, lines)}


def _run(module: str, results: dict[str, bool], options: argparse.Namespace) -> None:
    """The mutants of a module that have no result yet."""
    mutants = mutants_of(module)
    if not options.all:
        mutants = random.Random(f"{options.seed} {module}").sample(mutants, min(options.sample, len(mutants)))
    same = equivalent()
    mutants = [mutant for mutant in mutants if mutant.key not in results and mutant.key not in same]
    if not mutants:
        return
    began = time.monotonic()
    if not _tests_pass(TRUSTED[module], None, 600):
        raise SystemExit(f"the tests of {module} do not pass on the code as it is")
    seconds = 10 + 4 * options.workers * (time.monotonic() - began)
    with ThreadPoolExecutor(options.workers) as pool, open(options.output, "a") as file:
        passed = pool.map(lambda mutant: _tests_pass(TRUSTED[module], mutant, seconds), mutants)
        for mutant, alive in zip(mutants, passed, strict=True):
            results[mutant.key] = not alive
            file.write(json.dumps({"mutant": mutant.key, "killed": not alive}) + "\n")
            file.flush()
            print(f"{'survived' if alive else 'killed  '}  {mutant.key}", flush=True)


def _print(modules: list[str], results: dict[str, bool], survivors: bool) -> None:
    same = equivalent()
    print("\n| module | mutants | killed | equivalent | score |\n|---|---:|---:|---:|---:|")
    total, all_killed = 0, 0
    for module in modules:
        own = {key: killed for key, killed in results.items() if key.startswith(f"{module} | ")}
        counted = {key: killed for key, killed in own.items() if key not in same}
        listed = sum(key.startswith(f"{module} | ") for key in same)
        killed = sum(counted.values())
        total, all_killed = total + len(counted), all_killed + killed
        if counted:
            print(f"| `{module}` | {len(counted)} | {killed} | {listed} | {killed / len(counted):.0%} |")
        if survivors:
            print("".join(f"    {key}\n" for key, dead in counted.items() if not dead), end="")
    if total:
        print(f"| all | {total} | {all_killed} | {len(same)} | {all_killed / total:.0%} |")


if __name__ == "__main__":
    raise SystemExit(main())
