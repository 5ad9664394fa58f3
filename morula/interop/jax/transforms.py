"""Transformations of JAX's, which make functions of functions, and constructions of its classes.

A transformation runs nothing yet: it is called as it is, and what it made holds the function that it
was given. When that is called, the cotangents of what it holds are found by its form (forms.py); those
of what goes by value, a partial say, are handed back from where it is held. What a class makes of an
array holds that array.
Tests: tests/interop/test_jax_captured.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax

from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    accumulate,
    adjoint_of,
    is_zero,
    no_rule,
    non_differentiable,
)
from morula.interop.jax.forms import (
    Cell,
    List,
    Method,
    Partial,
    Tree,
    Tuple,
    found_at,
    kind_of,
    parts_of,
    put_at,
)
from morula.interop.jax.kinds import is_leaf
from morula.interop.jax.primitives import Whole, put_together, take_apart
from morula.interop.meanings import Reverse
from morula.rules.calls import serves, together
from morula.rules.objects import give

Args = tuple[Any, ...]

TRANSFORMS = {
    id(fn): fn
    for fn in (
        jax.jit, jax.vmap, jax.pmap, jax.grad, jax.value_and_grad, jax.jacfwd, jax.jacrev,
        jax.jacobian, jax.hessian, jax.checkpoint, jax.remat, jax.named_call, jax.make_jaxpr,
        jax.custom_gradient, jax.linear_transpose, jax.numpy.vectorize, jax.custom_vjp, jax.custom_jvp,
        jax.custom_vjp.defvjp, jax.custom_jvp.defjvp, jax.custom_jvp.defjvps,
    )
}  # fmt: skip


def is_transform(fn: Any) -> bool:
    """Does it make a function?"""
    return id(fn) in TRANSFORMS


def note_transform(fn: Any) -> None:
    """Note that it has made a function."""
    TRANSFORMS[id(fn)] = fn


def transformed(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What a transformation gives."""
    return made(fn, args, kwargs)


def made(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The call itself, whose pullback hands back the cotangents of what it was given."""
    return fn(*args, **kwargs)


@serves(made)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    transform, given, named = args
    y = made(transform, given, named)
    held = places(y, (*given, *named.values()))

    def made_pullback(ȳ: Any) -> Args:
        if not is_zero(ȳ):
            raise no_rule(transform, given)
        for key, x in named.items():
            give(adjoint_of(named), key, handed_back(x, held))
        return NONE, NONE, together([handed_back(x, held) for x in given]), NONE

    return y, made_pullback


def as_called(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The call itself."""
    return fn(*args, **kwargs)


def places(y: Any, given: Args) -> list[tuple[Any, Any, Any]]:
    """Where in a function of JAX's making the values are held that it was made of."""
    wanted = {id(x): x for x in given}
    found, waiting, seen = [], [y], set()
    while waiting:
        x = waiting.pop()
        kind = None if id(x) in seen else kind_of(x)
        seen.add(id(x))
        if kind is None:
            continue
        node = kind(x)
        for key, item in parts_of(node):
            if id(item) in wanted and not isinstance(node, (Tuple, Method, Partial)):
                found.append((node, key, item))
            elif id(item) not in wanted:
                waiting.append(item)
    return found


def handed_back(x: Any, held: list[tuple[Any, Any, Any]]) -> Any:
    """The cotangent of a value, from where it is held."""
    mine = [(node, key) for node, key, item in held if item is x]
    if not mine and is_leaf(x):
        return NotKnown(partial(no_rule, "a function made by JAX", (x,), why="made of a number"))
    store = Reverse()
    total = ZERO
    for node, key in mine:
        total = accumulate(total, taken(store, node, key))
    return total


def taken(store: Any, node: Any, key: Any) -> Any:
    """What a store has for a part of a value."""
    if isinstance(node, Cell):
        return store.get_cell(node.x)
    if isinstance(node, List):
        return store.get_item(node.x, key)
    return found_at(store, key if isinstance(node, Tree) else (node.x, key))


def put(store: Any, node: Any, key: Any, c: Any) -> None:
    """Give a store something for a part of a value."""
    if isinstance(node, Cell):
        store.put_cell(node.x, c)
    elif isinstance(node, List):
        store.put_item(node.x, key, c)
    else:
        put_at(store, key if isinstance(node, Tree) else (node.x, key), c)


# -- constructions ---------------------------------------------------------------------------------


def constructed(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An object of a class of JAX's: the arrays that it was given are in it."""
    run, leaves = take_apart(fn, args, kwargs)
    return put_together(Made(fn, args, as_constructed(run, leaves, args, kwargs)), leaves)


def as_constructed(run: Any, leaves: Args, args: Args, kwargs: dict[str, Any]) -> Any:
    """The object; each of its numbers and arrays is to be found in it."""
    return run.plain(leaves) if run.twice else run.fn(*args, **kwargs)


class Made(Whole):
    """An object; what was computed in its construction has cotangents that nobody knows."""

    in_parts = True

    def __init__(self, fn: Any, args: Args, y: Any) -> None:
        super().__init__(
            y, partial(no_rule, fn, args, reason="for what it computes in its construction")
        )


non_differentiable(as_called, as_constructed, places, is_transform, note_transform)
