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
import contextlib
import gc
import hashlib
import importlib.abc
import importlib.util
import json
import math
import os
import random
import resource
import select
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from itertools import accumulate, islice
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

import pytest

from tests.trusted import TRUSTED

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
PRELOADED = ("jax", "equinox", "numba", "numpy", "safetensors.numpy", "hypothesis", "yaml")
"""Libraries that tests load when they run."""
OURS = ("tapegrad", "tapegrad_check", "tapegrad_command", "tapegrad_papers", "tests")
PATIENCE = 15.0
"""Seconds of tests that a mutant may cost, unless told otherwise. Where more tests call its function, the
longest are left out."""

PLAIN_SECONDS = 10
"""Of one test, where functions that numba would compile are plain Python. Those that take longer are left
out."""

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
    time: int
    """Among the changes of the function that read the same: 1 for the first."""
    number: int
    """Among the changes of the module, in the order in which `changes` finds them."""
    owner: str
    """The outermost function around it, with its class; empty where there is none, or where the change is in
    what is worked out when the function is defined."""
    first_line: int
    """Of that function."""
    readers: tuple[str, ...]
    """Where there is none, or it is called when the module is loaded, the functions of the module that read
    what is set then; and its names, with a colon before, for tests that read them themselves."""

    @property
    def key(self) -> str:
        """What names it as long as the line it changes stays the same."""
        again = f" ({self.time})" if self.time > 1 else ""
        return f"{self.module} | {self.function} | {self.before} => {self.after}{again}"


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
    """Whether this is what an error says, a docstring, or a `zip` that checks itself."""
    if isinstance(node, ast.keyword) and node.arg in ("strict", "where", "advice"):
        return True
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


def _owner(tree: ast.AST, path: list[Step]) -> tuple[str, int]:
    names = []
    for place, (name, index) in enumerate(path):
        value = getattr(tree, name)
        tree = value if index is None else value[index]
        if isinstance(tree, ast.ClassDef):
            names.append(tree.name)
        elif isinstance(tree, ast.FunctionDef):
            first = min([tree.lineno, *(decorator.lineno for decorator in tree.decorator_list)])
            return (".".join([*names, tree.name]), first) if path[place + 1][0] == "body" else ("", 0)
    return "", 0


def _readers(tree: ast.Module, statements: Iterable[ast.stmt]) -> tuple[str, ...]:
    """The functions that read what these statements set, and its names."""
    names = [node for own in statements for node in ast.walk(own) if isinstance(node, ast.Name)]
    set_here = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    found = []
    for holder in tree.body:
        inner = holder.body if isinstance(holder, ast.ClassDef) else [holder]
        prefix = f"{holder.name}." if isinstance(holder, ast.ClassDef) else ""
        for function in inner:
            if isinstance(function, ast.FunctionDef):
                read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
                found += [prefix + function.name] if read & set_here else []
    return (*found, *(f":{name}" for name in sorted(set_here)))


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


def place_of(module: str) -> Path:
    """The file of a module; of a package, the one that is loaded for it."""
    place = ROOT.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def source_of(module: str) -> str:
    """The code of a module, without importing it."""
    return place_of(module).read_text()


def mutants_of(module: str) -> list[Mutant]:
    """All of a module."""
    found: list[Mutant] = []
    times: Counter[tuple[str, str, str]] = Counter()
    tree = ast.parse(source_of(module))
    at_once = called_at_once(tree)
    top = [own for own in tree.body if not isinstance(own, ast.FunctionDef | ast.ClassDef) and _calls(own)]
    for number, change in enumerate(changes(tree)):
        function, owner = _function(tree, change.path), _owner(tree, change.path)
        read = function, _line(change.before), _line(change.after)
        times[read] += 1
        readers: tuple[str, ...] = ()
        if not owner[0]:
            readers = _readers(tree, [tree.body[change.path[0][1] or 0]])
        elif owner[0].partition(".")[0] in at_once:
            readers = _readers(tree, top)
        found.append(Mutant(module, *read, times[read], number, *owner, readers))
    return found


class _InPlace(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant where its module is asked for."""

    def __init__(self, module: str, code: CodeType) -> None:
        self.module, self.code = module, code

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname != self.module:
            return None
        place = place_of(fullname)
        inner = [str(place.parent)] if place.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, place, loader=self, submodule_search_locations=inner
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def plant(mutant: Mutant) -> None:
    """Puts the mutant in place of the code: in its function if that is loaded and plain, or else in its
    module, which is then loaded anew with everything else of ours."""
    tree = ast.parse(source_of(mutant.module))
    change = next(islice(changes(tree), mutant.number, None))
    code = compile(change.carried_out(tree), str(place_of(mutant.module)), "exec")
    old, new = _loaded(mutant), _inside(code, mutant.owner)
    plain = compiles(mutant.module)
    later = not plain and mutant.owner.partition(".")[0] not in called_at_once(tree)
    if later and old is not None and new is not None and old.__code__.co_freevars == new.co_freevars:
        old.__code__ = new
        return
    _unload(plain=plain)
    sys.meta_path.insert(0, _InPlace(mutant.module, code))


def _calls(statement: ast.AST) -> set[str]:
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return {own.id for own in calls if isinstance(own, ast.Name)}


def called_at_once(tree: ast.Module) -> set[str]:
    """The functions that are called when a module is loaded, and those that they call: what they made then is
    there by now."""
    functions = {own.name: own for own in tree.body if isinstance(own, ast.FunctionDef | ast.ClassDef)}

    def called(statements: Iterable[ast.AST]) -> set[str]:
        return {name for own in statements for name in _calls(own)} & functions.keys()

    found: set[str] = set()
    waiting = called(own for own in tree.body if own not in functions.values())
    while waiting:
        found |= waiting
        waiting = called(functions[name] for name in waiting) - found
    return found


def compiles(module: str) -> bool:
    """Whether numba compiles functions of a module. Mutants of these are tried as plain Python: they need not
    be compiled anew each time, and it can be seen which tests call them."""
    return "njit" in source_of(module)


def _unload(*, plain: bool) -> None:
    """Everything of ours will be loaded anew; with `plain`, numba compiles none of it."""
    if plain:
        importlib.import_module("numba").config.DISABLE_JIT = 1
    kept = ("tests", "tests.conftest", "tests.shapes", __name__)
    for name in list(sys.modules):
        if name.partition(".")[0] in OURS and name not in kept:
            del sys.modules[name]


def _loaded(mutant: Mutant) -> FunctionType | None:
    """The function in which it is, where that can be changed in place."""
    found: object = sys.modules.get(mutant.module)
    for name in mutant.owner.split("."):
        found = vars(found).get(name) if hasattr(found, "__dict__") else None
    layers = ("fget", "__func__", "func", "__wrapped__")
    while not isinstance(found, FunctionType) or found.__code__.co_filename != str(place_of(mutant.module)):
        found = next((getattr(found, name) for name in layers if getattr(found, name, None)), None)
        if found is None:
            return None
    return found if found.__code__.co_firstlineno == mutant.first_line else None


def _inside(code: CodeType, owner: str) -> CodeType | None:
    parts = [part for part in code.co_consts if isinstance(part, CodeType)]
    below = (part if part.co_qualname == owner else _inside(part, owner) for part in parts)
    return next((part for part in below if part is not None), None)


class _Watch:
    """A plugin of pytest: which of our functions each test calls; or, without `traces`, how long it takes."""

    def __init__(self, plain: bool, traces: bool) -> None:
        self.traces = traces
        self.files = {str(place_of(module)): module for module in TRUSTED}
        self.plain = plain
        """Whether tests may take too long, because numba compiles nothing."""
        self.tests: dict[str, tuple[float, list[str]]] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        called: set[CodeType] = set()

        def note(frame: FrameType, event: str, argument: object) -> None:
            called.add(frame.f_code)

        began = time.process_time()
        if self.traces:
            sys.settrace(note)
        if self.plain:
            signal.signal(signal.SIGPROF, _too_long)
            signal.setitimer(signal.ITIMER_PROF, PLAIN_SECONDS)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
            ours = {(self.files.get(code.co_filename), code.co_qualname) for code in called}
            names = {f"{module}:{name.partition('.<')[0]}" for module, name in ours if module}
            if isinstance(item, pytest.Function):
                names |= {f":{name}" for name in item.function.__code__.co_names if name.isupper()}
            self.tests[item.nodeid] = time.process_time() - began, sorted(names)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("too long in plain Python")


class _Chosen:
    """A plugin of pytest: runs these tests in this order, and tells which failed."""

    def __init__(self, tests: list[str] | None, said: int) -> None:
        self.order, self.said = None if tests is None else {test: n for n, test in enumerate(tests)}, said

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order is not None:
            order = self.order
            items[:] = sorted((i for i in items if i.nodeid in order), key=lambda item: order[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self.said, report.nodeid.encode())


def _pytest(files: list[str], plugin: object, *, stop: bool = True) -> int:
    options = [
        *(["-x"] if stop else []),
        "-q",
        "-m",
        "not slow or sampled",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    return int(pytest.main([*options, *files], plugins=[plugin]))


_FORKING = threading.Lock()
"""Libraries prepare for a fork, and some refuse a second one meanwhile."""


def _in_a_child(work: Callable[[int], int], seconds: float) -> tuple[int | None, str]:
    """The exit code of some work in a process of its own, None if it takes too much time of the processor, or
    far too long; and what it said."""
    hears, says = os.pipe()
    with _FORKING:
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            code = work(says)
        finally:
            os._exit(code)
    os.close(says)
    end, status = time.monotonic() + 20 * seconds, None
    said = b""
    while status is None and time.monotonic() < end:
        if select.select([hears], [], [], 0.02)[0]:
            said += os.read(hears, 1 << 20)
        done, found = os.waitpid(child, os.WNOHANG)
        status = found if done else None
    if status is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):  # what it started itself
        os.killpg(child, signal.SIGKILL)
    with open(hears, "rb") as rest:
        said += rest.read()
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code, said.decode()


def killer(mutant: Mutant, tests: list[str], seconds: float) -> str | None:
    """The test that notices a mutant, if one does."""

    def work(says: int) -> int:
        plant(mutant)
        return _pytest(sorted({test.partition("::")[0] for test in tests}), _Chosen(tests, says))

    code, said = _in_a_child(work, seconds)
    return None if code == 0 else said or ("too slow" if code is None else "nothing can be collected")


Reach = dict[str, tuple[float, list[str]]]
"""Tests: how long each takes, and which of our functions it calls."""


def reach(files: list[str], known: Path, *, plain: bool = False, workers: int = 1) -> Reach:
    """What the tests in these files do; found out once for each version of a file and of the table. With
    `plain`, numba compiles nothing."""
    table = repr((sorted(TRUSTED), plain)).encode()
    entries = json.loads(known.read_text()) if known.exists() else {}
    names = {f"{file} in plain Python" if plain else file: file for file in files}
    digests = {
        name: hashlib.sha256((ROOT / file).read_bytes() + table).hexdigest() for name, file in names.items()
    }
    new = [name for name in names if entries.get(name, {}).get("digest") != digests[name]]
    with ThreadPoolExecutor(workers) as pool:
        watched = {pool.submit(_watched, names[name], plain): name for name in new}
        for done in as_completed(watched):
            name = watched[done]
            entries[name] = {"digest": digests[name], "tests": done.result()}
            known.write_text(json.dumps(entries))
    return {test: found for name in names for test, found in entries[name]["tests"].items()}


def _watched(file: str, plain: bool) -> Reach:
    """Tests that do not pass on the code as it is notice nothing, and are left out: in plain Python, or where
    a library is missing. What they call and how long they take is seen one after the other: some take several
    times as long while they are traced."""
    found: list[Reach] = []
    for traces in (True, False):

        def work(says: int, traces: bool = traces) -> int:
            if plain:
                _unload(plain=True)
            watch = _Watch(plain, traces)
            _pytest([file], watch, stop=False)
            with open(says, "w", closefd=False) as pipe:
                json.dump([watch.tests, sorted(watch.failed)], pipe)
            return 0

        code, said = _in_a_child(work, 600)
        if code != 0:
            raise SystemExit(f"the tests in {file} cannot be run on the code as it is")
        tests, failed = json.loads(said)
        found.append({test: own for test, own in tests.items() if test not in failed})
        for test in () if plain else failed:
            print(f"{test} does not pass on the code as it is, and is left out", file=sys.stderr, flush=True)
    called, timed = found
    return {test: (timed[test][0], called[test][1]) for test in called if test in timed}


def chosen(mutant: Mutant, tests: Reach, patience: float = PATIENCE) -> list[str]:
    """The quickest of the tests that call the function of a mutant, or one that reads what it sets; and, in
    the time that is left, of those that call anything in its module: what a function makes is kept for other
    tests, which are then not seen to call it. File by file; where no test is seen to call anything there, of
    all."""
    of = (mutant.owner or mutant.function, *mutant.readers)
    names = {name if name.startswith(":") else f"{mutant.module}:{name}" for name in of}

    def in_module(called: str) -> bool:
        return called.startswith(f"{mutant.module}:")

    quickest = sorted(tests, key=lambda test: tests[test][0])
    own = [test for test in quickest if not names.isdisjoint(tests[test][1])]
    others = [test for test in quickest if test not in own and any(map(in_module, tests[test][1]))]
    if not own:
        own, others = others or quickest, []
    fit = _within(own, tests, patience)
    left = patience - sum(tests[test][0] for test in fit)
    found = [*(fit or own[:1]), *_within(others, tests, left)]
    files: dict[str, float] = defaultdict(float)
    for test in found:
        files[test.partition("::")[0]] += tests[test][0]
    return sorted(found, key=lambda test: (files[test.partition("::")[0]], test.partition("::")[0]))


def _within(own: list[str], tests: Reach, patience: float) -> list[str]:
    """The first of these, as many as take no longer together."""
    spent = accumulate(tests[test][0] for test in own)
    return [test for test, so_far in zip(own, spent, strict=True) if so_far < patience]


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
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds of tests for each mutant")
    parser.add_argument("--again", action="store_true", help="only those that earlier runs left alive")
    parser.add_argument("--survivors", action="store_true", help="print those that earlier runs left alive")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench/out/mutants.jsonl")
    options = parser.parse_args()
    modules = [name for name in TRUSTED if not options.module or any(_asks(name, options.module))]
    results = _results(options.output)
    if not options.survivors:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        preload(modules)
        _run(modules, results, options)
    _print(modules, results, options.survivors)
    return 0


def _asks(module: str, parts: list[str]) -> Iterator[bool]:
    """Whether each of these is the module's name, or a part of it that is no module's name."""
    return (part == module or (part in module and part not in TRUSTED) for part in parts)


def preload(modules: list[str]) -> None:
    """Loads what the processes of mutants need, once before they part from this one."""
    sys.path.insert(0, str(ROOT))
    importlib.import_module("tests.conftest")
    for library in PRELOADED:
        importlib.import_module(library)
    for file in sorted({file for module in modules for file in _files(TRUSTED[module])}):
        importlib.import_module(file.removesuffix(".py").replace("/", "."))
    for module in modules:
        importlib.import_module(module)
    gc.freeze()


def _results(place: Path) -> dict[str, bool]:
    lines = place.read_text().splitlines() if place.exists() else []
    return {entry["mutant"]: entry["killed"] for entry in map(json.loads, lines)}


def _run(modules: list[str], results: dict[str, bool], options: argparse.Namespace) -> None:
    """The mutants of all modules that have no result yet, or those that were left alive. The first of each
    module come first, so that a run which is stopped has tried about as many of each."""
    mutants = [found for module in modules for found in enumerate(_wanted(module, results, options))]
    mutants.sort(key=lambda found: found[0])
    known, tests = options.output.with_name("reach.json"), {}
    for plain in (False, True):
        own = [m for m in dict.fromkeys(mutant.module for _, mutant in mutants) if compiles(m) == plain]
        files = sorted({file for module in own for file in _files(TRUSTED[module])})
        found = reach(files, known, plain=plain, workers=options.workers)
        for module in own:
            tests[module] = {
                test: entry
                for test, entry in found.items()
                if test.partition("::")[0] in _files(TRUSTED[module])
            }

    def tried(mutant: Mutant) -> str | None:
        seen = tests[mutant.module]
        own = chosen(mutant, seen, options.patience)
        return killer(mutant, own, 10 + 4 * sum(seen[test][0] for test in own))

    with ThreadPoolExecutor(options.workers) as pool, open(options.output, "a") as file:
        running = {pool.submit(tried, mutant): mutant for _, mutant in mutants}
        for done in as_completed(running):
            mutant, by = running[done], done.result()
            results[mutant.key] = by is not None
            file.write(json.dumps({"mutant": mutant.key, "killed": by is not None, "by": by}) + "\n")
            file.flush()
            print(f"{mutant.key}\n    {by or 'SURVIVED'}", flush=True)


def _wanted(module: str, results: dict[str, bool], options: argparse.Namespace) -> list[Mutant]:
    mutants = mutants_of(module)
    if not options.all:
        random.Random(f"{options.seed} {module}").shuffle(mutants)
        mutants = mutants[: options.sample]  # a larger sample holds a smaller one
    same, result = equivalent(), False if options.again else None
    return [mutant for mutant in mutants if results.get(mutant.key) is result and mutant.key not in same]


def _files(places: list[str]) -> list[str]:
    found = [
        [ROOT / place] if place.endswith(".py") else (ROOT / place).glob("test_*.py") for place in places
    ]
    return sorted(str(file.relative_to(ROOT)) for files in found for file in files)


def _print(modules: list[str], results: dict[str, bool], survivors: bool) -> None:
    """The table of the documentation. What was found of lines that have changed since does not count."""
    same = equivalent()
    totals = [0, 0, 0, 0]
    print("\n| module | mutants | tried | equivalent | killed | score |\n|---|---:|---:|---:|---:|---:|")
    for module in modules:
        keys = {mutant.key for mutant in mutants_of(module)}
        counted = {key: results[key] for key in keys if key in results and key not in same}
        row = [len(keys), len(counted), len(keys & same.keys()), sum(counted.values())]
        if counted:
            totals = [total + more for total, more in zip(totals, row, strict=True)]
            print(_row(f"`{module}`", row))
        if survivors:
            print("".join(f"    {key}\n" for key, dead in sorted(counted.items()) if not dead), end="")
    if totals[1]:
        print(_row("all", totals))


def _row(name: str, numbers: list[int]) -> str:
    every, tried, same, killed = numbers
    return f"| {name} | {every:,} | {tried:,} | {same:,} | {killed:,} | {killed / tried:.0%} |"


if __name__ == "__main__":
    raise SystemExit(main())
