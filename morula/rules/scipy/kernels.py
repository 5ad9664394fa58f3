"""Compiled functions of SciPy's that write their result to an argument.

    @writes(kernel, place)
    def _(*args): ...          what it writes, in functions that have rules

The numbers are those of the kernel, written by an assignment; the derivative is that of the body.
Tests: tests/rules/scipy/test_chapters.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from morula.core.extend import NotSpecialised, rewrites
from morula.rules.arrays.bodies import derivative_of, instead_of

_writing: set[int] = set()


def written_to(*kernels: Any) -> None:
    """Declare compiled functions that write to arguments: the general path follows that."""
    _writing.update(map(id, kernels))


@rewrites
def _(s: Any) -> bool:
    for c in s.ir.calls():
        if id(c.primitive) in _writing:
            raise NotSpecialised("compiled code writes to an argument")
    return False


def writes(kernel: Any, place: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function of the arguments tell what a kernel writes to the one at this place."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        def written(*args: Any) -> Any:
            new = args[place].copy()  # some kernels leave entries as they are
            kernel(*args[:place], new, *args[place + 1 :])
            return new

        written_to(kernel)
        derivative_of(written)(body)

        @instead_of(kernel)
        def write(*args: Any, **out: Any) -> Any:
            args = (*args, *out.values())
            args[place][...] = written(*args)
            return args[place]

        return body

    return register
