"""Forward mode of JAX's callables: `jax.jvp` along the tangents that are not zero.

Tests: tests/interop/jax/test_primitives.py
"""

from __future__ import annotations

from types import CellType
from typing import Any

import jax
import jax.numpy as jnp

from morula.core.extend import ZERO, is_zero, unthunk
from morula.interop.jax.arrays import device
from morula.interop.jax.kinds import is_array
from morula.interop.jax.primitives import (
    apply,
    linearized,
    places_of,
    pulled,
    pulled_anew,
    put_together,
    take_apart,
    with_leaves,
)
from morula.interop.jax.transforms import as_called, places, put
from morula.mixed_mode.push import push, pushes
from morula.mixed_mode.tangents import (
    Pass,
    box_of,
    item_of,
    set_box,
    set_item,
    set_value,
    tangents_if_any,
    together,
    value_of,
)
from morula.rules.calls import entry

Args = tuple[Any, ...]
Names = tuple[str, ...]


class Forward:
    """The store of a forward pass: the tangents of mutable values."""

    def __init__(self, run: Pass) -> None:
        self.run = run

    def put_item(self, x: Any, i: int, ẋ: Any) -> None:
        """The tangent of an item of a list."""
        set_item(self.run, x, i, ẋ)

    def put_value(self, x: Any, key: Any, ẋ: Any) -> None:
        """The tangent of a value in a dict, or of an attribute of an object."""
        set_value(self.run, x, key, ẋ)

    def put_cell(self, cell: CellType, ẋ: Any) -> None:
        """The tangent of what a cell holds."""
        set_box(self.run, cell, ẋ)

    def get_item(self, x: Any, i: int) -> Any:
        """That of an item of a list."""
        return item_of(tangents_if_any(self.run, x), i)

    def get_value(self, x: Any, key: Any) -> Any:
        """That of a value in a dict, or of an attribute of an object."""
        return value_of(self.run, x, key)

    def get_cell(self, cell: CellType) -> Any:
        """That of what a cell holds."""
        return box_of(self.run, cell)


@pushes(take_apart)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    call, leaves = take_apart(*args)
    found = [ZERO] * len(leaves)
    store = Forward(run)
    for form, ẋ in zip(call.forms, tangents, strict=True):
        form.gather(ẋ, store, found)
    return (call, leaves), together([ZERO, together(found)])


@pushes(put_together)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    result, outs = args
    y = result.put_together(outs)
    form, order, _ = places_of(y, outs)
    if result.refuse is not None and None in order and not is_zero(tangents[1]):
        raise result.refuse()
    dots = [ZERO if i is None else entry(tangents[1], i) for i in order]
    return y, form.scatter(dots, Forward(run))


@pushes(apply)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    outs, result, dots = pushed(args[0], args[1], tangents[1])
    return (outs, result), together([dots, ZERO])


@pushes(linearized)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    _, _, dots = pushed(args[0], args[1], tangents[1])
    return linearized(*args), together([dots, ZERO, ZERO])


@pushes(pulled)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, pulled_anew, ZERO, args, tangents)


def pushed(call: Any, leaves: Args, tangents: Any) -> tuple[Any, Any, Any]:
    """The leaves of the result of a call, what else it is, and the tangents of the leaves."""
    active = [i for i in range(len(leaves)) if not is_zero(entry(tangents, i))]
    if not active:
        outs, result, _ = linearized(call, leaves)
        return outs, result, ZERO
    kept: list[Any] = []

    def function(*values: Any) -> tuple[Any, Any]:
        result = call.traced(with_leaves(leaves, active, values))
        kept.append(result)
        return result.outs, result.others

    primals = [leaves[i] for i in active]
    dots = [tangent_of(leaves[i], entry(tangents, i)) for i in active]
    outs, found, others = jax.jvp(function, primals, dots, has_aux=True)
    return tuple(outs), kept[-1].replace(others), tuple(found)


def tangent_of(x: Any, ẋ: Any) -> Any:
    """The tangent of a leaf as JAX wants it."""
    primal = jnp.asarray(x) if not is_array(x) else x
    return device(unthunk(ẋ), primal.dtype, primal.shape)


def transformed(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Any:
    """What a transformation makes holds the tangents of what it was given."""
    n = len(args) - len(keywords)
    y = as_called(fn, args[:n], dict(zip(keywords, args[n:], strict=True)))
    store = Forward(run)
    for node, key, item in places(y, args):
        for x, ẋ in zip(args, tangents, strict=True):
            if x is item and not is_zero(ẋ):
                put(store, node, key, ẋ)
    return y, ZERO
