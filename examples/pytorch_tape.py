"""PyTorch's own optimisers run a Turing machine: training this module is the computation.

python examples/pytorch_tape.py
"""

import tapegrad as tg

compiled = tg.compile(tg.read("1RB1RZ_1LB0RC_1LC1LA"), "tape", cells=32)
module = tg.to_torch(compiled).start(compiled.start())  # weights s (state), T (tape), H (head), z (labels)
on_simplex, sgd = module.optimisers()  # conditional gradient for s, torch.optim.SGD for all the rest

steps = 0
while steps == 0 or module.loss().item() > module.stop:
    on_simplex.zero_grad()
    sgd.zero_grad()
    module.loss().backward()
    on_simplex.step()
    sgd.step()
    steps += 1

ones = int((module.T > 0).sum())
print(f"{steps} gradient steps, loss {module.loss().item():g}: the machine has halted with {ones} ones")
