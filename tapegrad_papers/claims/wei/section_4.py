"""Section 4: Turing machines as transformers, and how their size grows with log T."""

from itertools import pairwise, product

import numpy as np

from tapegrad.machines.library import ready
from tapegrad_papers.claims.ledger import Outcome, asymptotic
from tapegrad_papers.claims.wei.decoder import transformer
from tapegrad_papers.claims.wei.paper import PAPER
from tapegrad_papers.theory.transformer_sizes import transformer_sizes


@PAPER.claim("Theorem 4.1", "Transformers run machines for T steps with size and samples poly(k, |A|, log T)")
def theorem_4_1(long: bool) -> Outcome:
    machine = ready("palindrome")
    net = transformer(machine, 64)
    right = words = 0
    for letters in [w for n in range(7 if long else 5) for w in product("ab", repeat=n)]:
        carry = net.advance(net.start(machine.start("".join(letters))), 65, "fast")
        verdict = net.prediction(carry)
        right += verdict == (1 if letters == letters[::-1] else -1)
        words += 1
    starts = [net.start(machine.start(word)).output for word in ("a", "b")]
    rows = transformer_sizes(ready("increment"), range(4, 17, 1 if long else 4))
    layers = [row.layers_over_log for row in rows]
    norms = [row.norm_over_expression for row in rows]
    margins = [(row.exponent, row.margin) for row in rows if row.margin is not None]
    power = -np.polyfit(np.log([e for e, _ in margins]), np.log([m for _, m in margins]), 1)[0]
    samples = [row.samples for row in rows if row.samples is not None]
    sample_power = np.polyfit(np.log([e for e, _ in margins]), np.log(samples), 1)[0]
    checks = {
        "the verdict is right on every word": right == words,
        "d / log2 T does not grow": all(b <= a for a, b in pairwise(layers)),
        "alpha / ((k |A| + log T) log T) does not grow": all(b <= a for a, b in pairwise(norms)),
        "the proved margin falls like a power of log T": 0 <= power < 4,
        "the samples grow like a power of log T": 0 < sample_power < 12,
        "while T grows by a factor of at least 256": rows[-1].steps >= 256 * rows[0].steps,
        "o_0 cannot depend on the input: h_0 is the same for all": np.array_equal(starts[0], starts[1]),
    }
    return asymptotic(
        checks,
        stated="d ~ log T, alpha = poly(k, |A|, log T), samples poly(k, |A|, log T) O~(log(w d) / epsilon^2)",
        measured=f"{words} words right; T from {rows[0].steps} to {rows[-1].steps:,}: d / log2 T from "
        f"{layers[0]:.2f} to "
        f"{layers[-1]:.2f}, margin like (log T)^-{power:.2f}, samples like (log T)^{sample_power:.2f}",
        instead="Palindromes decided exactly; layers, norms, the margin of Theorem D.6 and the samples of "
        "Lemma 2.3 "
        "as T grows. A correction: the paper lets o_0 encode the first symbol, but h_0 is a constant; one "
        "more decoder step, step 0, reads it.",
        words=words,
        rows=[row.to_json() for row in rows],
        margin_power=float(power),
        sample_power=float(sample_power),
    )
