"""Functions compiled by numba when they are first called: to import numba takes as long as many a run."""

from collections.abc import Callable, Mapping
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class Compiled:
    """A function that is compiled when it is first called. Compiled functions may call one another."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self._function, self._options = function, options
        update_wrapper(self, function)

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function."""
        from tapegrad._jit_cache import dispatcher, let_call

        let_call(type(self))
        return dispatcher(self._function, self._options)

    def __call__(self, *given: Any) -> Any:
        return self.dispatcher(*given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def njit(**options: Any) -> Callable[[Function], Function]:
    """`numba.njit` with these options, cached."""
    return lambda function: cast(Function, Compiled(function, options))
