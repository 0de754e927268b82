"""Circuits whose answer Python's integers know, built gate by gate."""

from tapegrad.circuits import Circuit, CircuitBuilder


def multiplier(bits: int) -> Circuit:
    """Two unsigned numbers to their whole product, lowest bit first: rows of full adders."""
    build = CircuitBuilder()
    a = [build.input(f"a[{i}]") for i in range(bits)]
    b = [build.input(f"b[{i}]") for i in range(bits)]
    row, top, product = [build.and_(bit, b[0]) for bit in a], build.constant(False), []
    for j in range(1, bits):
        product.append(row[0])
        carry, shifted, row = build.constant(False), [*row[1:], top], []
        for i in range(bits):
            term = build.and_(a[i], b[j])
            half = build.xor(shifted[i], term)
            row.append(build.xor(half, carry))
            carry = build.or_(build.and_(shifted[i], term), build.and_(half, carry))
        top = carry
    for k, wire in enumerate([*product, *row, top]):
        build.output(f"product[{k}]", wire)
    return build.circuit(f"{bits} x {bits} multiplier")
