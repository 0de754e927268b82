"""A machine's run in words, told by plain arithmetic, and the stock checkpoint that must say it.

    python -m bench.record FOLDER --tokens 1000000

`python -m bench.generate FOLDER` then compares them, on another machine if need be: it needs PyTorch and
transformers, and nothing of this package. To be carried there the folder is small: the checkpoint has all its
files but for the table of positions, which that command makes again.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import tapegrad as tg
from tapegrad.attention.tape_tokens import TapeTokens
from tapegrad.interop.huggingface import FAMILIES, settings, stock_of
from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.targets.decoder.net import DecoderNet

MACHINE = "busy-beaver-2x4"
"""It halts after 3,932,964 steps only, and its tape stays short."""


def told(machine: TuringMachine, digits: int) -> Iterator[str]:
    """The words that follow the prompt of an empty tape, from the table of a machine with one tape: a
    dictionary of cells, the place of the head, and its hexadecimal digits."""
    cells: dict[int, str] = {}
    state, place, move = machine.start_state, 0, 0
    while True:
        before, carry = place - move, move
        for digit in range(digits):
            old, new = (value >> 4 * digit & 15 for value in (before, place))
            carry = carry if carry and abs(new - old) == 15 else 0
            yield f"{new:x}{'+' if carry > 0 else '-' if carry < 0 else ''}"
        symbol = cells.get(place, machine.blank)
        yield f"sees:{symbol}"
        rule = machine.rules.get((state, (symbol,)))
        if rule is None:
            yield "<halt>"
            return
        (cells[place],), (move,), state = rule.write, rule.moves, rule.state
        yield f"write:{cells[place]},move:{'LSR'[move + 1]},enter:{state}"
        place += move


def recorded(machine: TuringMachine, tokens: int) -> tuple[DecoderNet, int, list[int]]:
    """A net for so many tokens, how long its prompt is, and the whole text."""
    net = tg.compile(machine, "decoder", tokens=tokens).net
    assert isinstance(net, DecoderNet)
    assert isinstance(net.words, TapeTokens)
    prompt = net.words.prompt(machine.start(), tokens)
    run = islice(told(machine, net.words.digits), tokens - len(prompt))
    return net, len(prompt), prompt + [net.words.program.numbers[word] for word in run]


def write(folder: Path, tokens: int, machine: TuringMachine, family: str = "gpt2") -> None:
    """The checkpoint without its table of positions, what that is made of, and the text."""
    net, prompt, text = recorded(machine, tokens)
    stock = stock_of(net, family)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in settings(stock).items():
        (folder / name).write_bytes(content)
    save_file(stock.weights(), folder / "model.safetensors", {"format": "pt"})
    table = net.positions
    places = {"record": table.record, "bits": table.bits, "first": table.first, "copy": net.parts.width}
    (folder / "places.json").write_text(json.dumps(places | {"prompt": prompt}))
    np.save(folder / "text.npy", np.array(text, np.uint16))


def main() -> int:
    """Writes the folder that is named on the command line."""
    parser = argparse.ArgumentParser(description="Tells a run, and writes the checkpoint that must say it.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokens", type=int, default=20_000, help="of the text, and the horizon")
    parser.add_argument("--family", default="gpt2", choices=list(FAMILIES))
    options = parser.parse_args()
    write(options.folder, options.tokens, ready(MACHINE), options.family)
    size = sum(path.stat().st_size for path in options.folder.iterdir())
    print(f"{options.tokens:,} tokens of {MACHINE}, {size:,} bytes, written to {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
