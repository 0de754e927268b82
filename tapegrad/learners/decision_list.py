"""Decision lists: if x3 then 1, else if not x1 then 0, ... else 1."""

from typing import Any

from tapegrad.circuits import Array, Bit, UInt, any_of, array, smallest, where
from tapegrad.learners.counting import learner_of
from tapegrad.learners.functions import FunctionLearner


def decision_list(n: int, samples: int) -> FunctionLearner:
    """Learns a list of rules "literal -> label" by demotion.

    Every one of the 2 (2n + 1) rules, the empty literal included, starts at level 0. The answer is that of
    the rules at the lowest level among those that apply. A sample demotes, by one level, the rules that
    applied there with the wrong label. Rule k of a consistent list never falls below level k, so n + 2
    levels suffice.
    """
    deepest = n + 2
    level = UInt(deepest.bit_length())

    def literals(x: Any) -> list[Any]:
        return [*x, *(~x), Bit(1)]

    def deciding(memory: Any, x: Any) -> tuple[list[Any], list[Any]]:
        """For each label, which of its rules stand at the lowest level that applies."""
        apply = literals(x)
        levels = [*memory["for_0"], *memory["for_1"]]
        lowest = smallest(
            where(a, rule, level(deepest)) for rule, a in zip(levels, [*apply, *apply], strict=True)
        )
        at = [a & (rule == lowest) for rule, a in zip(levels, [*apply, *apply], strict=True)]
        return at[: len(apply)], at[len(apply) :]

    def predict(memory: Any, x: Any) -> Any:
        return any_of(deciding(memory, x)[1])

    def demoted(levels: Any, at: list[Any], wrong: Any) -> Any:
        falls = [wrong & here & (rule < deepest) for rule, here in zip(levels, at, strict=True)]
        return array([where(fall, rule + 1, rule) for rule, fall in zip(levels, falls, strict=True)])

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        for_0, for_1 = deciding(memory, x)
        return {"for_0": demoted(memory["for_0"], for_0, y), "for_1": demoted(memory["for_1"], for_1, ~y)}

    return learner_of(
        samples,
        name=f"decision list of {n} bits",
        x=Array(Bit, n),
        memory={"for_0": Array(level, 2 * n + 1), "for_1": Array(level, 2 * n + 1)},
        update=update,
        predict=predict,
    )
