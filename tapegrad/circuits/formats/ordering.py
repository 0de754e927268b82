"""Definitions in an order in which each comes after what it reads."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


class CycleError(Exception):
    """Definitions that read each other in a circle; `path` leads from one of them back to itself."""

    def __init__(self, path: Sequence[Hashable]) -> None:
        super().__init__(path)
        self.path = path


def in_order(keys: Iterable[Key], reads: Callable[[Key], Sequence[Key]]) -> list[Key]:
    """The keys and all they read, each after what it reads, as close to the given order as that allows.
    Depth first, with a stack of its own: a file may be as deep as it is long."""
    order: list[Key] = []
    done: set[Key] = set()
    for key in keys:
        if key in done:
            continue
        path, todo = {key: None}, [(key, iter(reads(key)))]  # the path is kept in order, for the message
        while todo:
            current, operands = todo[-1]
            for operand in operands:
                if operand in path:
                    whole = list(path)
                    raise CycleError([*whole[whole.index(operand) :], operand])
                if operand not in done:
                    path[operand] = None
                    todo.append((operand, iter(reads(operand))))
                    break
            else:
                todo.pop()
                del path[current]
                done.add(current)
                order.append(current)
    return order
