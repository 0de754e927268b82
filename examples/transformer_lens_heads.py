"""A Turing machine in TransformerLens: generate its run, look at its heads, and make one of them misread.

tapegrad export increment --target decoder --set tokens=500 --to huggingface -o increment
python examples/transformer_lens_heads.py
"""

import json
from pathlib import Path
from typing import Any

from transformer_lens.model_bridge import TransformerBridge

model: Any = TransformerBridge.boot_transformers("increment", device="cpu")
tokens = model.to_tokens("<begin> 0 0 sees:_ cell:1 1 0 sees:_ cell:1 0 0 sees:_ <start>", prepend_bos=False)
text = model.generate(tokens, max_new_tokens=100, do_sample=False, verbose=False, return_type="tokens")

labels = json.loads(Path("increment", "labels.json").read_text())
for head, does in labels["heads"].items():
    print(f"L{head.replace('.', 'H')} {does}")
[last_write] = [head for head, does in labels["heads"].items() if does.startswith("last write to tape 0:")]
layer, head = map(int, last_write.split("."))

words = [labels["tokens"][number] for number in text[0].tolist()]
_, cache = model.run_with_cache(text)
print("\nposition  next    looks at")
for position in range(14, len(words) - 1, 4):  # the last digit of a record: a symbol comes next
    source = int(cache["pattern", layer][0, head, position].argmax())
    print(f"{position:>8}  {words[position + 1]:<6}  {source:>2} {words[source]}")


def look_at_the_first_token(pattern, hook):
    """The first token stands for the blank."""
    pattern[:, head, 14] = 0
    pattern[:, head, 14, 0] = 1
    return pattern


hooks = [(f"blocks.{layer}.attn.hook_pattern", look_at_the_first_token)]
misread = int(model.run_with_hooks(text[:, :15], fwd_hooks=hooks)[0, -1].argmax())
print(f"\nThe tape has a 1 there; with the head turned to the first token: {labels['tokens'][misread]}")
