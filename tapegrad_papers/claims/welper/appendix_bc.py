"""Appendices B and C: numbers to bits and back as networks, and a vector orthogonal to the labels."""

from itertools import product

import jax
import numpy as np
from numpy.typing import NDArray

from tapegrad.precision import in_double
from tapegrad.targets.descent import loss as orthogonal_module
from tapegrad.targets.extended.formats import FixedPoint, FloatingPoint, NumberFormat
from tapegrad_papers.claims.ledger import Outcome, holds, holds_corrected
from tapegrad_papers.claims.welper.layer_count import nonlinear_depth
from tapegrad_papers.claims.welper.paper import PAPER


def _as_printed(x: float, mantissa: int, exponent: int) -> float:
    """The algorithm of appendix B for x > 0 with only its plain misprints mended: line 9 changes x, and the
    loop goes on to the next exponent. Returns the number that the digits stand for."""
    for bits in product((0, 1), repeat=exponent):
        e = 2.0 ** sum(b << j for j, b in enumerate(bits))
        if 2 * e > x >= e:
            digits = 0
            for i in reversed(range(mantissa + 1)):
                if x >= 2**i * e:
                    digits += 2**i
                    x -= 2**i * e
            return digits * e
    return 0.0


def _mistakes(form: NumberFormat, numbers: NDArray[np.float64], bits: NDArray[np.float64]) -> int:
    """Numbers whose bits come out wrong, and rows of bits whose number does."""
    there, back = jax.jit(form.quantise)(numbers), jax.jit(form.dequantise)(bits)
    return int((np.asarray(there) != bits).any(axis=1).sum() + (np.asarray(back) != numbers).sum())


@PAPER.claim("Appendix B", "Numbers become bits and bits numbers by networks, exactly")
@in_double
def appendix_b(long: bool) -> Outcome:
    wrong, numbers = 0, 0
    for fixed, continuous in product(((8, 4), (10, 2)) if long else ((8, 4),), (False, True)):
        form = FixedPoint(*fixed, continuous)
        count = 2**form.width
        whole = np.arange(count)
        value = np.where(whole >= count // 2, whole - count, whole) / 2.0**form.fraction
        bits = (whole[:, None] >> np.arange(form.width) & 1).astype(float)
        wrong += _mistakes(form, value, bits)
        numbers += count
    for continuous in (False, True):
        form = FloatingPoint(5, 10, continuous)  # NumPy's half precision
        patterns = np.arange(0, 2**16, 1 if long else 13, dtype=np.uint16)
        half = patterns.view(np.float16).astype(float)
        kept = np.isfinite(half) & (half != 0)
        bits = (patterns[:, None].astype(int) >> np.arange(16) & 1).astype(float)
        wrong += _mistakes(form, half[kept], bits[kept])
        numbers += int(kept.sum())
    three = _as_printed(3.0, mantissa=3, exponent=3)
    checks = {
        "both networks are exact on every number tried, with steps and with ramps": wrong == 0,
        "half precision agrees with NumPy's own bits": wrong == 0 and numbers > 5000,
        "the printed loop turns 3 into 2, with 4 digits of mantissa": three == 2.0,
    }
    return holds_corrected(
        checks,
        stated="x -> sign, mantissa, exponent by Heaviside units, unchanged with ramps psi_epsilon",
        measured=f"{numbers:,} numbers there and back, {wrong} wrong; printed loop: 3 -> {three:g}",
        correction="Line 4 must read 2^(m+1) e > |x| >= 2^m e: as printed, x < 2e, so every digit above the "
        "first is 0 and 3 becomes 2. Line 9 changes x, not y; the return stands after the loop; psi_epsilon "
        "is 1 from epsilon on, not from 1 on.",
        numbers=numbers,
        wrong=wrong,
        printed_three=three,
    )


@PAPER.claim("Appendix C", "A unit vector orthogonal to the labels, also where they are nearly parallel to v")
@in_double
def appendix_c(long: bool) -> Outcome:
    random = np.random.default_rng(0)
    worst_length = worst_angle = worst_bare = 0.0
    tried = 0
    for size in (2, 3, 10, 50):
        vectors = list(random.normal(size=(200 if long else 40, size)))
        for tiny in (0.0, 1e-17, 1e-12, 1e-9, 1e-6, 1e-3):
            nearly = np.eye(size)[0] + tiny * random.normal(size=size)
            vectors += [nearly, 1e3 * nearly, np.eye(size)[1] + tiny * random.normal(size=size)]
            worst_bare = max(worst_bare, _bare_angle(nearly))
        f_perp = jax.jit(orthogonal_module.orthogonal)
        for z in vectors:
            found = np.asarray(f_perp(z, np.float64(min(z @ z, 1.0))))
            worst_length = max(worst_length, abs(np.linalg.norm(found) - 1))
            worst_angle = max(worst_angle, abs(found @ z) / np.linalg.norm(z))
            tried += 1
    layers = nonlinear_depth(lambda z: orthogonal_module.orthogonal(z, 1.0), np.ones((3, 1)))
    checks = {
        "unit length to 1e-14": worst_length < 1e-14,
        "orthogonal to 1e-14": worst_angle < 1e-14,
        "without the second axis w, nearly parallel labels give a vector that is not orthogonal": worst_bare
        > 0.1,
    }
    return holds(
        checks,
        stated="|f_perp| = 1 and f_perp . z = 0 for all z; 5 layers",
        measured=f"{tried} vectors: length off by {worst_length:.1g}, cosine {worst_angle:.1g}; "
        f"{layers} non-linear operations in a row",
        note="Needs nm >= 2 label numbers. The 5 layers are groups: one non-linearity at a time, with guards "
        f"against division by 0, there are {layers}. Division is missing from the list (1).",
        length_error=worst_length,
        cosine=worst_angle,
        cosine_without_second_axis=worst_bare,
        nonlinear_depth=layers,
    )


def _bare_angle(z: np.ndarray) -> float:
    """The cosine between z and the normalised projection of v = e_1 alone; 1 where that is 0 / 0."""
    projected = np.eye(len(z))[0] - z[0] / (z @ z) * z
    length = np.linalg.norm(projected)
    return float(abs(projected @ z) / length / np.linalg.norm(z)) if length else 1.0
