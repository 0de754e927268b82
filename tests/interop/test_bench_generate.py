"""The commands that compare stock checkpoints with recorded runs: a small one, and they notice mistakes."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from bench.record import recorded, told, write
from tapegrad.attention.tape_tokens import TapeTokens
from tapegrad.attention.tokens import Interpreter
from tapegrad.machines.library import ready
from tests.interop.texts import decoder

ROOT = Path(__file__).parents[2]
TOKENS = 400


@pytest.mark.parametrize("name", ["busy-beaver-3x2", "busy-beaver-4x2", "busy-beaver-2x4", "increment"])
def test_what_is_told_is_what_the_tokens_program_says(name):
    machine = ready(name)
    net = decoder(machine, 3000)
    assert isinstance(net.words, TapeTokens)
    prompt = net.words.prompt(machine.start(), net.tokens)
    wanted = [net.words.program.tokens[number].word for number in
              islice(Interpreter(net.words.program).run(prompt), 1200)]  # fmt: skip
    # States with a space in their names are written with a dot.
    found = [word.replace(" ", "·") for word in islice(told(machine, net.words.digits), 1200)]
    assert found == wanted


def test_a_long_text_is_that_of_the_fast_engine():
    from tapegrad.targets.decoder.fast import Fast, read_tables

    net, prompt, text = recorded(ready("busy-beaver-2x4"), 60_000)
    assert Fast(read_tables(net.network, net.tokens)).advance(text[:prompt], 60_000) == text


def compared(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """In a process that has nothing of this package."""
    barred = (
        "import sys; sys.modules['tapegrad'] = sys.modules['jax'] = None; from bench.generate import main"
    )
    code = f"{barred}; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(folder), "--piece", "96", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def cells(ran: subprocess.CompletedProcess[str]) -> list[list[str]]:
    lines = [line for line in ran.stdout.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_small_run_is_compared_and_a_mistake_is_noticed(tmp_path, family):
    pytest.importorskip("transformers")
    write(tmp_path, TOKENS, ready("busy-beaver-2x4"), family)
    ran = compared(tmp_path, "--generate", "120", "--recorded", str(TOKENS), "--tf32", "off", "on")
    assert ran.returncode == 0, ran.stderr
    found = cells(ran)
    assert [row[:3] for row in found] == [
        [what, "float32", tf32] for tf32 in ("off", "on") for what in ("generate()", "one pass")
    ]
    prompt = 5
    assert [row[3:6] for row in found] == [[str(120 - prompt), "0", ""], [str(TOKENS - prompt), "0", ""]] * 2
    assert found[1][6] == "2.0000"
    text = np.load(tmp_path / "text.npy")
    text[300] ^= 1
    np.save(tmp_path / "text.npy", text)
    ran = compared(tmp_path, "--generate", "320", "--start", "200", "--recorded", str(TOKENS))
    assert ran.returncode == 1
    assert [row[5] for row in cells(ran)] == ["300", "300"]
