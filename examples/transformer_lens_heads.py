"""A Turing machine in TransformerLens: generate its run, then look at the heads that make it.

python examples/transformer_lens_heads.py
"""

import torch

import tapegrad as tg
from tapegrad.interop.lens import to_transformer_lens

machine = tg.read("busy-beaver-3x2")
lens = to_transformer_lens(tg.compile(machine, "transformer", steps=32), context=32)
print(f"d_model {lens.model.cfg.d_model}, {lens.model.cfg.n_layers} blocks, {lens.model.cfg.d_vocab} tokens")
for head in lens.heads:
    print(f"  L{head.block}H{head.head} {head.name}: {head.does}")

first = machine.start()
generated = lens.generate(first)
tokens = torch.cat([lens.prompt(first), torch.tensor([generated[:-1]])], 1)  # without the last, "halt"
logits, cache = lens.model.run_with_cache(tokens)
print("\nposition  token                      cell  last write to it")
for position, token in enumerate(tokens[0].tolist()):
    cell = cache["resid_mid", 0][0, position, lens.coordinates.at("place")].item()
    source = cache["pattern", 2][0, 0, position].argmax().item()
    print(f"{position:>8}  {lens.vocabulary.names[token]:<25}  {cell:>4.0f}  {source:>4}")
