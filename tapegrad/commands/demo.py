"""`tapegrad demo`: a machine and a circuit through every target, a program where that goes, in one table."""

from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import entry_points
from itertools import chain
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tapegrad._compile import Compiled, compile, compile_for
from tapegrad._sources import find, kind_of, parse_inputs, route
from tapegrad._verify import verify
from tapegrad.commands.output import DISAGREED, AsJson, console, errors, print_json
from tapegrad.targets import Example, Target, all_targets

ATTACHED = "tapegrad.demo"
"""The entry point group of further demonstrations: functions that return rows of a value beside a rival's."""
SIZES = {"steps": 24, "cells": 24}
"""For lowerings that must know how long and how wide a run is."""
RUN_PROGRAMS = ("emulator",)
"""Targets that run RISC-V in a second or two."""


def demo(as_json: AsJson = False) -> None:
    """Take a small machine and a small circuit through every target, run and verify each, print one table."""
    if not as_json:
        console.print(
            "One machine, one circuit and an example of its own for each kind of network: compile, run,\n"
            "compare every step with the source. On two cores this takes about a minute the first time,\n"
            "when code is compiled, and 20 seconds after that.\n"
        )
    rows = []
    for target in all_targets():
        for example in _examples(target):
            with errors.status(f"{target.name}: {example.source.name}"):
                compiled = _compiled(example, target)
                report = verify(compiled, [example.inputs], steps=example.steps, engine=None)
            rows.append(
                {
                    "target": target.name,
                    "source": example.source.name,
                    "passes": [rewriting.name for rewriting in compiled.passes],
                    "weights": asdict(compiled.counts),
                    "steps": report.steps,
                    "states": report.states,
                    "inputs": report.inputs,
                    "max_deviation": report.deviation,
                    "verified": report.agreed and report.complete,
                    "seconds": report.seconds,
                }
            )
    attached: dict[str, list[dict[str, Any]]] = {}
    for entry in entry_points(group=ATTACHED):
        with errors.status(entry.name):
            attached[entry.name] = entry.load()()
    if as_json:
        print_json({"runs": rows, **attached})
    else:
        console.print(_table(rows))
        console.print("Every step of every run was decoded and compared with the source's own interpreter.\n")
        for row in chain.from_iterable(attached.values()):
            console.print(
                f"{row['what']}: {row['value']:.4g}%; {row['rival']}: {row['rival_value']:.4g}%", markup=False
            )
        console.print("\nNext: tapegrad run palindrome --target tape --input abba")
    if not all(row["verified"] for row in rows):
        raise typer.Exit(DISAGREED)


def _examples(target: Target) -> Iterator[Example]:
    """The machine and the circuit that go through all targets, then an example of the target's own."""
    for name, texts in (("increment", ["1011"]), ("adder2", ["a=2", "b=3"])):
        source = find(name).source
        inputs = parse_inputs(source, texts)
        needed = {
            name
            for way in route(source, *target.kinds)
            for name, option in way.options.items()
            if option.default is ...
        }
        options: dict[str, Any] = {name: SIZES[name] for name in needed}
        if target.built_for_inputs:
            options["inputs"] = [inputs]
        yield Example(source, inputs, options)
    yield target.examples()[0]
    if target.name in RUN_PROGRAMS:
        program = find("rv32-fibonacci")
        yield Example(program.source, program.inputs)


def _compiled(example: Example, target: Target) -> Compiled:
    """With options that suit the input, for a program, which has to know how long it will run."""
    if kind_of(example.source).fitted is not None:
        return compile_for(example.source, target.name, example.inputs, example.steps)
    return compile(example.source, target.name, **example.options)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="tapegrad: algorithms compiled into networks", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("target", "source"):
        table.add_column(heading, no_wrap=True)
    table.add_column("passes on the way")
    for heading in ("trained", "fixed", "steps", "deviation", "seconds", "verified"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["target"],
            row["source"],
            ", ".join(row["passes"]) or "-",
            f"{row['weights']['trainable']:,}",
            f"{row['weights']['fixed']:,}",
            f"{row['steps']:,}",
            f"{row['max_deviation']:.1g}",
            f"{row['seconds']:.2f}",
            "[green]yes[/green]" if row["verified"] else "[red]NO[/red]",
        )
    return table
