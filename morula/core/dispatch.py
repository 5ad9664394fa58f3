"""Functions that are told apart by the type of their first argument.

`functools.singledispatch` asks the argument for its `__class__`, which may run code of the user's
and may be made up (proxies, mocks). What a value is, its type says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch, update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

_T = TypeVar("_T")


def by_type(default: Callable[..., _T]) -> _SingleDispatchCallable[_T]:
    """`singledispatch` by the type of the first argument, which goes by position."""
    dispatcher: Any = singledispatch(default)
    dispatch = dispatcher.dispatch

    def run(x: Any, *args: Any) -> Any:
        return dispatch(type(x))(x, *args)

    return update_wrapper(run, dispatcher)  # type: ignore[return-value]
