"""Arithmetic on words: tuples of wires, least significant first, built gate by gate.

The full adder has five gates, a choice between two bits three, and every sum of many terms (product,
count of ones) goes through the same compression of columns.
"""

from collections.abc import Iterable, Sequence

from tapegrad.circuits.builder import CircuitBuilder, Wire

WireWord = Sequence[Wire]


def constant(build: CircuitBuilder, value: int, width: int) -> list[Wire]:
    """The binary digits of a number."""
    return [build.constant(bool(value >> i & 1)) for i in range(width)]


def add_columns(build: CircuitBuilder, columns: Iterable[Iterable[Wire]]) -> list[Wire]:
    """The sum of bits of weight 2^i given in column i, modulo 2^(number of columns). Threes become a sum
    and a carry, all columns at once, until two bits of each weight remain; then the carry runs through."""
    left = [[bit for bit in column if build.known(bit) is not False] for column in columns]
    while any(len(column) > 2 for column in left):
        left = _compressed(build, left)
    total: list[Wire] = []
    carry: list[Wire] = []
    for column in left:
        bit, carry = _column_sum(build, [*column, *carry], last=len(total) == len(left) - 1)
        total.append(bit)
    return total


def _compressed(build: CircuitBuilder, columns: list[list[Wire]]) -> list[list[Wire]]:
    fewer: list[list[Wire]] = [[] for _ in columns]
    for weight, column in enumerate(columns):
        last = weight == len(columns) - 1
        triples = len(column) // 3 * 3
        for i in range(0, triples, 3):
            bit, carry = _column_sum(build, column[i : i + 3], last=last)
            fewer[weight].append(bit)
            if carry:
                fewer[weight + 1].extend(carry)
        fewer[weight] += column[triples:]
    return fewer


def _column_sum(build: CircuitBuilder, bits: Sequence[Wire], *, last: bool) -> tuple[Wire, list[Wire]]:
    """The sum of up to three bits: its low bit, and its carry unless that leaves the word."""
    if len(bits) < 2:
        return (bits[0] if bits else build.constant(False)), []
    a, b, *third = bits
    differ = build.xor(a, b)
    if not third:
        return differ, [] if last else [build.and_(a, b)]
    total = build.xor(differ, third[0])
    return total, [] if last else [build.or_(build.and_(a, b), build.and_(differ, third[0]))]


def add(build: CircuitBuilder, a: WireWord, b: WireWord) -> list[Wire]:
    """a + b modulo 2^width."""
    return add_columns(build, zip(a, b, strict=True))


def subtract(build: CircuitBuilder, a: WireWord, b: WireWord) -> list[Wire]:
    """a - b modulo 2^width. The borrow of a bit is b where the bits differ, else the borrow before it."""
    difference: list[Wire] = []
    borrow = build.constant(False)
    for x, y in zip(a, b, strict=True):
        differ = build.xor(x, y)
        difference.append(build.xor(differ, borrow))
        if len(difference) < len(a):
            borrow = build.where(differ, y, borrow)
    return difference


def _gates_of_product(build: CircuitBuilder, a: WireWord, b: WireWord) -> int:
    """An AND for each partial product, and a full adder to add it."""
    return 6 * min(len(a) * (len(a) + 1) // 2, len(_open(build, a)) * len(_open(build, b)))


def _open(build: CircuitBuilder, a: WireWord) -> dict[int, Wire]:
    """The bits that are not 0 for sure, by their places."""
    return {place: bit for place, bit in enumerate(a) if build.known(bit) is not False}


def multiply(build: CircuitBuilder, a: WireWord, b: WireWord) -> list[Wire]:
    """a * b modulo 2^width: the partial products of each weight, compressed."""
    build.expect(_gates_of_product(build, a, b), f"a product of {len(a):,} bits")
    left, right = _open(build, a), _open(build, b)
    if len(left) > len(right):  # the places of the fewer bits are gone through, in the order of those of a
        left, right = dict(reversed(right.items())), left
    pairs = (
        [build.and_(bit, right[w - i]) for i, bit in left.items() if w - i in right] for w in range(len(a))
    )
    return add_columns(build, pairs)


def divide(build: CircuitBuilder, a: WireWord, b: WireWord) -> tuple[list[Wire], list[Wire]]:
    """Quotient and remainder of unsigned words by long division. By zero: all ones, and a."""
    known = all(build.known(bit) is not None for bit in b)
    build.expect((2 if known else 8) * len(a) ** 2, f"a division of {len(a):,} bits")
    zero = build.constant(False)
    remainder: list[Wire] = [zero] * len(a)
    divisor = [*b, zero]
    quotient: list[Wire] = []
    for bit in reversed(a):
        extended = [bit, *remainder]
        fits = build.not_(less(build, extended, divisor))
        reduced = subtract(build, extended, divisor)
        remainder = choose(build, fits, reduced, extended)[:-1]
        quotient.append(fits)
    return quotient[::-1], remainder


def negate(build: CircuitBuilder, a: WireWord) -> list[Wire]:
    """-a modulo 2^width."""
    return subtract(build, constant(build, 0, len(a)), a)


def magnitude(build: CircuitBuilder, a: WireWord) -> list[Wire]:
    """The absolute value of a signed word, as an unsigned one."""
    return choose(build, a[-1], negate(build, a), a)


def divide_signed(build: CircuitBuilder, a: WireWord, b: WireWord) -> tuple[list[Wire], list[Wire]]:
    """Quotient, rounded down, and remainder, with the sign of b. By zero: all ones, and a.

    Let q and r be those of the magnitudes. Where the signs differ, the quotient is -q, or -q - 1 = ~q if
    something remains; what remains then is |b| - r. By zero that is -|a| = a for a negative a, as it should.
    """
    size = magnitude(build, b)
    quotient, remainder = divide(build, magnitude(build, a), size)
    differ, rest = build.xor(a[-1], b[-1]), any_of(build, remainder)
    down = choose(build, rest, [build.not_(bit) for bit in quotient], negate(build, quotient))
    left = choose(build, build.and_(differ, rest), subtract(build, size, remainder), remainder)
    by_zero = build.not_(any_of(build, b))
    rounded = [build.or_(by_zero, bit) for bit in choose(build, differ, down, quotient)]
    return rounded, choose(build, b[-1], negate(build, left), left)


def power(build: CircuitBuilder, a: WireWord, exponent: WireWord) -> list[Wire]:
    """a to this power modulo 2^width: the product of a, a^2, a^4, ... for each bit of the exponent."""
    product = one = constant(build, 1, len(a))
    build.expect(
        _gates_of_power(len(a), [*_open(build, exponent)], len(exponent)), f"a power of {len(a):,} bits"
    )
    for place, bit in enumerate(exponent):
        if place:
            a = multiply(build, a, a)
        if build.known(bit) is not False:
            product = multiply(build, product, choose(build, bit, a, one))
    return product


def _gates_of_power(width: int, places: Sequence[int], length: int) -> int:
    """Half of a square's partial products are the same as others; and a to the power 2^k is divisible by 2^k,
    or leaves 1, so that as many bits are known."""
    left = [max(0, width - place) ** 2 for place in range(length)]
    return 3 * sum(left[1:]) // 2 + 3 * sum(left[place] for place in places[1:])


def equal(build: CircuitBuilder, a: WireWord, b: WireWord) -> Wire:
    """1 if the words are the same."""
    return build.not_(any_of(build, [build.xor(x, y) for x, y in zip(a, b, strict=True)]))


def less(build: CircuitBuilder, a: WireWord, b: WireWord, *, signed: bool = False) -> Wire:
    """1 if a < b: the highest bit that differs decides (the sign bit the other way round)."""
    verdict = build.constant(False)
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        winner = x if signed and i == len(a) - 1 else y
        verdict = build.where(build.xor(x, y), winner, verdict)
    return verdict


def choose(build: CircuitBuilder, condition: Wire, a: WireWord, b: WireWord) -> list[Wire]:
    """`a` if the condition is 1, else `b`."""
    return [build.where(condition, x, y) for x, y in zip(a, b, strict=True)]


def resized(build: CircuitBuilder, a: WireWord, width: int, *, signed: bool) -> list[Wire]:
    """Cut off at the top, or extended by the sign if signed, else by zeros."""
    fill = a[-1] if signed else build.constant(False)
    return [*a[:width], *([fill] * (width - len(a)))]


def any_of(build: CircuitBuilder, bits: Sequence[Wire]) -> Wire:
    """1 if one is 1; a balanced tree."""
    return _tree(build.or_, bits) if bits else build.constant(False)


def all_of(build: CircuitBuilder, bits: Sequence[Wire]) -> Wire:
    """1 if all are 1; a balanced tree."""
    return _tree(build.and_, bits) if bits else build.constant(True)


def parity(build: CircuitBuilder, bits: Sequence[Wire]) -> Wire:
    """1 if an odd number are 1; a balanced tree."""
    return _tree(build.xor, bits) if bits else build.constant(False)


def _tree(gate, bits: Sequence[Wire]) -> Wire:
    level = list(bits)
    while len(level) > 1:
        paired = [gate(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = paired + level[len(level) // 2 * 2 :]
    return level[0]


def shift(build: CircuitBuilder, a: WireWord, amount: int, *, right: bool, signed: bool) -> list[Wire]:
    """To the right copies of the sign come in if signed, else zeros; to the left always zeros."""
    amount = min(amount, len(a))
    if right:
        fill = a[-1] if signed else build.constant(False)
        return [*a[amount:], *([fill] * amount)]
    return [*([build.constant(False)] * amount), *a[: len(a) - amount]]


def shift_by_word(
    build: CircuitBuilder, a: WireWord, amount: WireWord, *, right: bool, signed: bool
) -> list[Wire]:
    """A shift by 1, 2, 4, ... for each bit of the amount; amounts beyond the width shift everything out."""
    for i, bit in enumerate(amount):
        a = choose(build, bit, shift(build, a, 1 << i, right=right, signed=signed), a)
    return list(a)


def pick(build: CircuitBuilder, items: Sequence[WireWord], index: WireWord) -> list[Wire]:
    """The item at an index, by a tree of choices; zeros for an index beyond the end."""
    level = [list(item) for item in items]
    zeros = [build.constant(False)] * len(level[0])
    for bit in index:
        if len(level) % 2:
            level.append(zeros)
        level = [choose(build, bit, level[i + 1], level[i]) for i in range(0, len(level), 2)]
    return level[0]


def decode(build: CircuitBuilder, index: WireWord, length: int) -> list[Wire]:
    """For each i below `length`, 1 if the index is i; the products of shared halves."""
    flags = [build.constant(True)]
    for i, bit in reversed(list(enumerate(index))):
        clear = build.not_(bit)
        flags = [build.and_(flag, side) for flag in flags for side in (clear, bit)]
        flags = flags[: -(-length >> i)]
    return flags[:length]
