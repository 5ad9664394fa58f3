"""Forward mode of JAX's callables: `jax.jvp` along the tangents that are not zero.

Tests: tests/interop/test_jax_primitives.py
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from morula.core.extend import ZERO, call, is_zero, no_rule, non_differentiable, unthunk
from morula.interop.jax.arrays import device
from morula.interop.jax.kinds import is_array, is_leaf
from morula.interop.jax.primitives import (
    InReverse,
    Result,
    apply,
    as_seed,
    by_integer,
    by_integer_anew,
    linearized,
    matching,
    places_of,
    plain_numbers,
    pulled,
    pulled_anew,
    put_together,
    take_apart,
    with_leaves,
    with_real,
)
from morula.interop.jax.transforms import made, places, put
from morula.interop.meanings import Forward, takes_only_tangents
from morula.mixed_mode.push import push, pushes
from morula.mixed_mode.tangents import (
    Pass,
    together,
    value_of,
)
from morula.rules.calls import entry, serves

Args = tuple[Any, ...]
Names = tuple[str, ...]


@pushes(take_apart)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    taken, leaves = take_apart(*args)
    found = [ZERO] * len(leaves)
    store = Forward(run)
    for form, ẋ in zip(taken.forms, tangents, strict=True):
        form.gather(ẋ, store, found)
    takes_only_tangents(run, args[0], args[1], found)
    return (taken, leaves), together([ZERO, together(found)])


@pushes(put_together)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    result, outs = args
    y = put_together(result, outs)
    form, order, _ = places_of(result, y, outs)
    if result.refuse is not None and None in order and not is_zero(tangents[1]):
        raise result.refuse()
    dots = [ZERO if i is None else entry(tangents[1], i) for i in order]
    return y, form.scatter(dots, Forward(run))


@pushes(apply)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    found = [pushed(args[0], args[1], dots) for dots in run.split(tangents[1])]
    outs, result, _ = found[0]
    return (outs, result), together([run.gathered([dots for _, _, dots in found]), ZERO])


@pushes(linearized)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    call, leaves = args
    try:
        dots = run.each(lambda c: pushed(call, leaves, c)[2], tangents[1])
    except TypeError as error:
        if "custom_vjp" not in str(error):
            raise
        dots = run.each(lambda c: pushed(InReverse(call), leaves, c)[2], tangents[1])
    return linearized(*args), together([dots, ZERO, ZERO])


@pushes(pulled)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, pulled_anew, ZERO, args, tangents)


@pushes(by_integer)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, by_integer_anew, ZERO, args, tangents)


def pushed(call: Any, leaves: Args, tangents: Any) -> tuple[Any, Any, Any]:
    """The leaves of the result of a call, what else it is, and the tangents of the leaves."""
    active = [i for i in range(len(leaves)) if not is_zero(entry(tangents, i))]
    if not active:
        outs, result = apply(call, leaves)
        return outs, result, ZERO
    integers = [i for i in active if i in call.integers]
    real = with_real(leaves, integers)
    dots = tuple([tangent_of(real[i], entry(tangents, i)) for i in active])
    if not integers:
        return along(call, leaves, active, dots)
    outs, result = apply(call, leaves)
    _, of_real, found = along(call, real, active, dots)
    among = matching(result.kinds, of_real.kinds)
    found = [as_seed(y, found[i]) for y, i in zip(outs, among, strict=True)]
    return outs, result, tuple(found)


def along(call: Any, leaves: Args, active: list[int], dots: Args) -> tuple[Any, Any, Any]:
    """The same, by the tangents of some leaves."""
    outs, others, found, result = pushforward(call, leaves, active, dots)
    return tuple(outs), result.replace(others), tuple(found)


def pushforward(call: Any, leaves: Args, active: list[int], dots: Args) -> Any:
    """The arrays of the result, the tangents, and what else the result is."""
    kept: list[Any] = []

    def function(*values: Any) -> tuple[Any, Any]:
        result = call.traced(with_leaves(leaves, active, values))
        kept.append(result)
        return result.outs, result.others

    primals = tuple([leaves[i] for i in active])
    outs, found, others = jax.jvp(function, primals, tuple(dots), has_aux=True)
    return plain_numbers(outs), others, found, kept[-1]


class Pushforward:
    """The pushforward of a call as a function of its leaves and of the tangents of some."""

    captured: frozenset[int] = frozenset()
    must_be_traced = True

    def __init__(self, call: Any, active: list[int], n: int) -> None:
        self.call = call
        self.fn = call.fn
        self.active = active
        self.n = n
        self.integers = call.integers
        self.kinds: tuple[str, ...] = ()

    def traced(self, leaves: Args) -> Result:
        """The result and its tangent."""
        *arrays, inner = pushforward(self.call, leaves[: self.n], self.active, leaves[self.n :])
        result = Result(self.fn, arrays)
        result.inner = inner
        return result


@serves(along)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    return call(along_anew, *args)


@pushes(along)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, along_anew, ZERO, args, tangents)


def along_anew(call: Any, leaves: Args, active: list[int], dots: Args) -> tuple[Any, Any, Any]:
    """`along`, as differentiated code sees it."""
    found, result = apply(Pushforward(call, active, len(leaves)), (*leaves, *dots))
    outs, others, tangents = put_together(result, found)
    return tuple(outs), settled(result, others), tuple(tangents)


def settled(result: Any, others: list[Any]) -> Any:
    """The result of the call itself."""
    return result.inner.replace(others)


non_differentiable(settled)


def tangent_of(x: Any, ẋ: Any) -> Any:
    """The tangent of a leaf as JAX wants it."""
    primal = jnp.asarray(x) if not is_array(x) else x
    return device(unthunk(ẋ), primal.dtype, primal.shape)


@pushes(made)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    transform, given, named = args
    dots = [entry(tangents[1], i) for i in range(len(given))]
    dots += [value_of(run, named, key) for key in named]
    values = (*given, *named.values())
    y = made(transform, given, named)
    if not all(map(is_zero, dots)) and any(map(is_leaf, jax.tree_util.tree_leaves(y))):
        raise no_rule(transform, given, why="in forward mode")
    store = Forward(run)
    for node, key, item in places(y, values):
        for x, ẋ in zip(values, dots, strict=True):
            if x is item and not is_zero(ẋ):
                put(store, node, key, ẋ)
    return y, ZERO
