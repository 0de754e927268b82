"""Programs as language models: how many tokens, and records, the fast engine writes in a second.

    python -m bench.decoder

Processor time; the first record, with which the engine is compiled, is not counted.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tapegrad as tg
from tapegrad.targets.decoder.fast import Fast, read_tables
from tapegrad.targets.decoder.net import DecoderNet

SORT = Path(__file__).parents[1] / "examples" / "programs" / "quicksort.c"
RUNS = (("subleq-echo", bytes(range(1, 128)) * 8), (str(SORT), b"5 3 8 1 9 2 7\n"))


def rates() -> Iterator[dict[str, Any]]:
    """A SUBLEQ and a C program."""
    for name, data in RUNS:
        program = tg.read(name)
        net = tg.compile(program, "decoder", tokens=1 << 20).net
        assert isinstance(net, DecoderNet)
        tables, record = read_tables(net.network, net.tokens), net.words.record
        prompt = net.words.prompt(program.start(data), net.tokens)
        Fast(tables).advance(prompt, len(prompt) + record)
        began = time.process_time()
        tokens = len(Fast(tables).advance(prompt, net.tokens)) - len(prompt)
        seconds = time.process_time() - began
        yield {
            "program": Path(name).name,
            "tokens": tokens,
            "tokens/s": round(tokens / seconds),
            "records/s": round(tokens / record / seconds),
        }


if __name__ == "__main__":
    for row in rates():
        print(row, flush=True)
