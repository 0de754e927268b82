"""Stock checkpoints on the device that PyTorch has here: a long run by `generate()`, and a longer one in one
pass.

    python -m bench.decoder                                 # 2,000 and 20,000 tokens
    python -m bench.decoder --generate 100000 --recorded 1000000
    python -m bench.decoder --programs                      # rates of the fast engine, without PyTorch

Needs the packages torch and transformers. TF32 is off. The recorded run comes from the `fast` engine, which
reads the compiled arrays; every argmax of the stock model must be its next token. Attention is computed in
pieces of queries, so that no matrix of all scores is held.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tapegrad as tg
from tapegrad.interop.huggingface import files
from tapegrad.machines.library import ready
from tapegrad.targets.decoder.fast import Fast, read_tables
from tapegrad.targets.decoder.net import DecoderNet

MACHINE = "busy-beaver-2x4"
"""It halts after 3,932,964 steps only."""
PIECE = 1024


def recorded(tokens: int) -> tuple[DecoderNet, list[int], list[int]]:
    """A net for so many tokens, a prompt, and the whole text by the fast engine."""
    machine = ready(MACHINE)
    net = tg.compile(machine, "decoder", tokens=tokens).net
    assert isinstance(net, DecoderNet)
    prompt = net.words.prompt(machine.start(), tokens)
    return net, prompt, Fast(read_tables(net.model, tokens)).advance(prompt, tokens)


def programs() -> Iterator[dict[str, Any]]:
    """A SUBLEQ and a C program by the fast engine, in processor time; the first record, which compiles it, is
    not counted."""
    sort = Path(__file__).parents[1] / "examples" / "programs" / "quicksort.c"
    for name, data in (("subleq-echo", bytes(range(1, 128)) * 8), (str(sort), b"5 3 8 1 9 2 7\n")):
        program = tg.read(name)
        net = tg.compile(program, "decoder", tokens=1 << 20).net
        assert isinstance(net, DecoderNet)
        tables, record = read_tables(net.model, net.tokens), net.words.record
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


def opened(net: DecoderNet) -> Any:
    """The stock model, on the device."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as place:
        for name, content in files(net, ready(MACHINE)).items():
            Path(place, name).write_bytes(content)
        return AutoModelForCausalLM.from_pretrained(place, attn_implementation="sdpa").to(device).eval()


def generated(tokens: int) -> dict[str, Any]:
    """A run by `generate()` with its cache, compared token by token."""
    import torch

    net, prompt, text = recorded(tokens)
    model = opened(net)
    given = torch.tensor([prompt], device=model.device)
    began = time.perf_counter()
    found = model.generate(given, attention_mask=torch.ones_like(given), max_length=tokens)[0].tolist()
    seconds = time.perf_counter() - began
    return {"generated": tokens, "agreed": found == text, "seconds": seconds, "device": str(model.device)}


def in_one_pass(tokens: int) -> dict[str, Any]:
    """A recorded run through the stock model, piece by piece of queries with its cache: every argmax, and the
    smallest distance of the best logit from the next."""
    import torch
    from transformers import DynamicCache

    net, prompt, text = recorded(tokens)
    model, cache = opened(net), DynamicCache()
    began, wrong, gap = time.perf_counter(), 0, float("inf")
    ids = torch.tensor([text], device=model.device)
    with torch.inference_mode():
        for first in range(0, tokens - 1, PIECE):
            own = ids[:, first : min(first + PIECE, tokens - 1)]
            logits = model(own, past_key_values=cache, use_cache=True).logits[0]
            best = logits.topk(2).values
            after = ids[0, first + 1 : first + 1 + own.shape[1]]
            generated_here = torch.arange(first + 1, first + 1 + own.shape[1], device=ids.device) >= len(
                prompt
            )
            wrong += int(((logits.argmax(-1) != after) & generated_here).sum())
            gap = min(gap, float((best[:, 0] - best[:, 1])[generated_here].min()))
    seconds = time.perf_counter() - began
    return {
        "recorded": tokens,
        "wrong": wrong,
        "logit_gap": gap,
        "seconds": seconds,
        "device": str(model.device),
    }


def main() -> int:
    """Both, printed; 1 if a token was wrong."""
    parser = argparse.ArgumentParser(description="Runs stock checkpoints and compares every token.")
    parser.add_argument("--generate", type=int, default=2_000, help="tokens of the run by generate()")
    parser.add_argument("--recorded", type=int, default=20_000, help="tokens of the recorded run")
    parser.add_argument("--programs", action="store_true", help="only programs, by the fast engine")
    options = parser.parse_args()
    if options.programs:
        for row in programs():
            print(row, flush=True)
        return 0
    first, second = generated(options.generate), in_one_pass(options.recorded)
    for row in (first, second):
        print(row, flush=True)
    return int(not first["agreed"] or second["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
