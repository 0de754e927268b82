"""A stock checkpoint against a recorded run, on the device that PyTorch has here: every token is compared.

    python -m bench.record FOLDER --tokens 20000      # where this package is
    python -m bench.generate FOLDER                   # where PyTorch, transformers, NumPy and safetensors are

On a large accelerator, a horizon of 1,000,000 tokens in one pass, and 100,000 tokens by `generate()`, where
eager attention was seen to be the quicker one:

    python -m bench.record run --tokens 1000000
    python -m bench.generate run --generate 0 --recorded 1000000 --tf32 off on
    python -m bench.generate run --generate 0 --recorded 1000000 --dtype bfloat16
    python -m bench.record shorter --tokens 100000
    python -m bench.generate shorter --recorded 0 --generate 100000 --attention eager

With `--start`, `generate()` is given what comes before, in one pass: with eager attention that takes memory
for all scores at once.

Two things are measured: `generate()`, and one pass over the whole text with a cache, in pieces of queries, so
that no matrix of all scores is held: every argmax must be the next token, and the smallest distance of the
best logit from the second is reported.

The pass over 1,000,000 tokens needs some 12 GB for keys and values, and 5 GB for the mask of a piece.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM, DynamicCache

PIECE = 1024
ROWS = 1 << 16
"""Rows of the table of positions that are made at once."""


class Row(NamedTuple):
    """A line of the table."""

    what: str
    dtype: str
    tf32: str
    tokens: int
    wrong: int
    first_wrong: int | None
    gap: float | None
    seconds: float


def completed(folder: Path, place: Path) -> None:
    """The checkpoint of a recorded folder; if it is a GPT-2, with its table of positions."""
    for name in ("config.json", "generation_config.json"):
        (place / name).write_bytes((folder / name).read_bytes())
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    if config["model_type"] == "gpt2":
        places = json.loads((folder / "places.json").read_text())
        weights["transformer.wpe.weight"] = positions(places, config["n_positions"], config["n_embd"])
    save_file(weights, place / "model.safetensors", {"format": "pt"})


def positions(places: dict[str, int], count: int, width: int) -> NDArray[np.float32]:
    """The table: bits of the number of a position's record, bits of that of the last record that is complete
    once the next token is there, and the slot; each as x and as -x. The first token has none of them."""
    table = np.zeros((count, width), np.float32)
    record, bits = places["record"], np.arange(places["bits"])
    for start in range(1, count, ROWS):
        at = np.arange(start, min(start + ROWS, count))
        own, slots = np.divmod(at - 1, record)
        before = np.maximum(at // record - 1, 0)
        parts = [number[:, None] >> bits & 1 for number in (own, before)]
        rows = np.concatenate([*parts, slots[:, None] == np.arange(record)], axis=1)
        for sign, copy in ((1, 0), (-1, places["copy"])):
            first = copy + places["first"]
            table[at[0] : at[-1] + 1, first : first + rows.shape[1]] = sign * rows
    return table


def precise(tf32: str) -> None:
    """Whether products of matrices may be rounded to TF32."""
    torch.backends.cuda.matmul.allow_tf32 = tf32 == "on"
    torch.backends.cudnn.allow_tf32 = tf32 == "on"


def by_generate(model: Any, text: torch.Tensor, start: int, end: int) -> tuple[int, int | None]:
    """How many of the tokens that `generate()` adds to the first ones are wrong, and where the first is."""
    given = text[None, :start]
    found = model.generate(given, attention_mask=torch.ones_like(given), max_length=end)[0]
    same = found[start:] == text[start : len(found)]
    wrong = int((~same).sum()) + end - len(found)
    return wrong, (start + int((~same).int().argmax()) if not same.all() else len(found)) if wrong else None


def in_one_pass(model: Any, text: torch.Tensor, prompt: int, piece: int) -> tuple[int, int | None, float]:
    """How many next tokens are wrong, where the first is, and the smallest distance of the best logit from
    the second."""
    cache, wrong, gap = DynamicCache(), [], float("inf")
    with torch.inference_mode():
        for start in range(0, len(text) - 1, piece):
            end = min(start + piece, len(text) - 1)
            logits = model(text[None, start:end], past_key_values=cache, use_cache=True).logits[0].float()
            best, second = logits.topk(2).values.unbind(1)
            follows = torch.arange(start + 1, end + 1, device=text.device)
            own = follows >= prompt  # what is given is not predicted
            # Numbers that are none are wrong, and their distances do not count.
            wrong += follows[own & (logits.argmax(1) != text[start + 1 : end + 1])].tolist()
            if own.any():
                gap = min(gap, float((best - second)[own].min()))
    return len(wrong), wrong[0] if wrong else None, gap


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """What was asked for, one after the other. The first passes over a few tokens are not timed."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    text = torch.tensor(np.load(options.folder / "text.npy").astype(np.int64), device=device)
    prompt = json.loads((options.folder / "places.json").read_text())["prompt"]
    with tempfile.TemporaryDirectory() as place:
        completed(options.folder, Path(place))
        for dtype in options.dtype:
            how = {"dtype": getattr(torch, dtype), "attn_implementation": options.attention}
            model: Any = AutoModelForCausalLM.from_pretrained(place, **how)
            model = model.to(device).eval()
            by_generate(model, text, prompt, min(prompt + 20, len(text)))
            for tf32 in options.tf32:
                precise(tf32)
                end = min(options.generate, len(text))
                start = max(prompt, options.start)
                if end > start:
                    began = time.perf_counter()
                    found = by_generate(model, text, start, end)
                    seconds = time.perf_counter() - began
                    yield Row("generate()", dtype, tf32, end - start, *found, None, seconds)
                count = min(options.recorded, len(text))
                if count > prompt:
                    began = time.perf_counter()
                    wrong = in_one_pass(model, text[:count], prompt, options.piece)
                    yield Row("one pass", dtype, tf32, count - prompt, *wrong, time.perf_counter() - began)


def main(arguments: list[str] | None = None) -> int:
    """Prints a table; 1 if a token was wrong in single precision without TF32."""
    parser = argparse.ArgumentParser(description="Compares a stock checkpoint with a recorded run.")
    parser.add_argument("folder", type=Path, help="what bench.record wrote")
    parser.add_argument("--generate", type=int, default=2_000, help="length of the text by generate()")
    parser.add_argument("--start", type=int, default=0, help="how much of the text generate() is given")
    parser.add_argument("--recorded", type=int, default=20_000, help="tokens of the text read in one pass")
    parser.add_argument("--dtype", nargs="+", default=["float32"], choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--tf32", nargs="+", default=["off"], choices=["off", "on"])
    attention = "eager was the quicker one for generate() on an H200, sdpa takes less memory"
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"], help=attention)
    parser.add_argument("--piece", type=int, default=PIECE, help="queries at once")
    options = parser.parse_args(arguments)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{device}, PyTorch {torch.__version__}\n")
    print("| what | dtype | TF32 | tokens | wrong | first wrong | smallest gap | seconds |")
    print("|---|---|---|---:|---:|---:|---:|---:|", flush=True)
    failed = False
    for row in rows(options):
        first = "" if row.first_wrong is None else f"{row.first_wrong:,}"
        gap = "" if row.gap is None else f"{row.gap:.4f}"
        counts = f"{row.tokens:,} | {row.wrong:,} | {first} | {gap} | {row.seconds:.1f}"
        print(f"| {row.what} | {row.dtype} | {row.tf32} | {counts} |", flush=True)
        failed |= row.wrong > 0 and (row.dtype, row.tf32) == ("float32", "off")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
