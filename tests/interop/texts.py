"""Machines, prompts and runs that stock checkpoints are compared with."""

from itertools import islice
from pathlib import Path
from typing import Any

import tapegrad as tg
from tapegrad._compile import Compiled
from tapegrad.attention.tokens import Interpreter
from tapegrad.interop.huggingface import files
from tapegrad.machines.library import ready
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.programs.library import READY
from tapegrad.programs.model import Program
from tapegrad.targets import target_named
from tapegrad.targets.decoder import DecoderNet

FAMILIES = ["gpt2", "llama", "gpt-neox"]
TOKENS = 1500
Source = TuringMachine | Program
Case = tuple[Source, list[tuple[Any, ...]], int]


def decoder(machine: Source, tokens: int = TOKENS) -> DecoderNet:
    """Its net."""
    net = tg.compile(machine, "decoder", tokens=tokens).net
    assert isinstance(net, DecoderNet)
    return net


def two_tapes() -> TuringMachine:
    """Copies a word to the second tape, in the order in which it is read, and stops at the blank."""
    rules = {("copy", (a, "_")): Rule((a, a), (1, -1), "copy") for a in "ab"}
    return TuringMachine(rules, "copy", alphabet=("_", "a", "b"), name="to the other tape")


CASES: list[Case] = [
    (ready("palindrome"), [("",), ("ab",), ("abba",)], TOKENS),
    (ready("increment"), [("1011",), ("",)], 60_000),
    (two_tapes(), [("abba",), ("b",)], TOKENS),
    (random_machine(3, tapes=2, symbols=3, states=4), [("",)], TOKENS),
]
PROGRAM: Case = (READY["subleq-echo"].build(), [(b"H",), (b"",)], TOKENS)


def run_of(
    net: DecoderNet, machine: Source, words: tuple[Any, ...], most: int = 150
) -> tuple[list[int], list[int]]:
    """A prompt and the run, or the first tokens of it, by the plain interpreter."""
    prompt = net.words.prompt(machine.start(*words), net.tokens)
    return prompt, list(islice(Interpreter(net.words.program).run(prompt), most))


def said(net: DecoderNet, text: list[int]) -> str:
    """Tokens in words."""
    return " ".join(net.words.program.tokens[number].word for number in text)


def files_of(net: DecoderNet, machine: Source, family: str = "gpt2") -> dict[str, bytes]:
    """The checkpoint, file by file."""
    return files(Compiled(net, target_named("decoder"), machine, (), {}), family)


def written(folder: Path, net: DecoderNet, machine: Source, family: str = "gpt2") -> Path:
    """The checkpoint, in a folder."""
    folder.mkdir(exist_ok=True)
    for name, content in files_of(net, machine, family).items():
        (folder / name).write_bytes(content)
    return folder
