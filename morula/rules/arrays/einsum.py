"""Rules of einsum: the cotangent of an operand is an einsum of ȳ with the other operands.

    y = einsum("ij,j->i", A, x):     Ā = einsum("i,j->ij", ȳ, x*),   x̄ = einsum("i,ij->j", ȳ, A*)

What a letter of one operand alone was summed over is spread; a letter that an operand has twice stands
on its diagonal. Where a program knows the shapes, no more than the einsum is left of it.
Shapes: those of NumPy's; axes of length 1 broadcast.
Tests: tests/rules/arrays/test_einsum.py
"""

from __future__ import annotations

import itertools
import operator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from morula.core.extend import (
    NONE,
    Call,
    Const,
    NoTangent,
    call,
    folds,
    non_differentiable,
    primitives,
    rrule,
    type_stable,
)
from morula.rules.arrays.broadcasting import spread, unbroadcast
from morula.rules.arrays.construction import as_it_is
from morula.rules.arrays.joining import NUMBERS, shape_of
from morula.rules.arrays.outs import call_with_out
from morula.rules.calls import compiled, serves


@rrule(np.einsum)
def _(subscripts: str, *operands, optimize=False, dtype=None):
    given = as_it_is(operands)

    def einsum_pullback(ȳ):
        return einsum_cotangents(ȳ, subscripts, given, optimize)

    if dtype is None:
        return np.einsum(subscripts, *operands, optimize=optimize), einsum_pullback
    return np.einsum(subscripts, *operands, optimize=optimize, dtype=dtype), einsum_pullback


@serves(np.einsum)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Operands and lists of axes in turn, the axes of the result last; or a call with out=."""
    found = call_with_out(fn, args, kwargs)
    if found is not None:
        return found
    if len(args) < 2 or isinstance(args[0], str):
        return compiled(fn, args, kwargs)
    operands, subscripts = as_letters(args)
    y, back = call(np.einsum, subscripts, *operands, **kwargs)
    n = len(operands)

    def einsum_pullback(ȳ):
        _, _, *cotangents = back(ȳ)
        found = [NONE] * len(args)
        found[: 2 * n : 2] = cotangents[:n]
        return (NONE, *found, *[NONE] * len(kwargs))

    return y, einsum_pullback


def as_letters(args: Any) -> Any:
    """The operands and the subscripts of an `einsum` that is given by lists of axes."""
    n = len(args) // 2
    operands, axes = args[: 2 * n : 2], list(args[1::2])
    if len(args) % 2:
        axes.append(args[-1])
    letters = "".join(
        ["," * (0 < i < n) + "->" * (i == n) + subscripts_of(axes[i]) for i in range(len(axes))]
    )
    return operands, letters


def subscripts_of(axes: Any) -> str:
    """The letters of a list of axes."""
    return "".join(["..." if i is Ellipsis else LETTERS[i] for i in axes])


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
non_differentiable(subscripts_of)


def einsum_subscripts(subscripts, operands):
    """The letters of each operand and of the result, with letters in place of the ellipses."""
    return parsed(subscripts, tuple([np.ndim(x) for x in operands]))


@lru_cache(maxsize=1000)
def parsed(subscripts: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The same, from the numbers of axes of the operands."""
    subscripts = subscripts.replace(" ", "")
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    free = [c for c in LETTERS if c not in inputs]
    extra = [
        ndim - len(t.replace("...", "")) if "..." in t else 0
        for t, ndim in zip(terms, ndims, strict=True)
    ]
    most = max(extra, default=0)
    dots = "".join(free[:most])
    terms = [t.replace("...", dots[most - n :]) for t, n in zip(terms, extra, strict=True)]
    if arrow:
        return tuple(terms), output.replace("...", dots)
    letters = sorted(set("".join(terms)) - set(dots))
    once = [c for c in letters if "".join(terms).count(c) == 1]
    return tuple(terms), dots + "".join(once)


def einsum_cotangents(ȳ, subscripts, operands, optimize):
    """The cotangents of all arguments: none of the subscripts."""
    inputs, output = einsum_subscripts(subscripts, operands)
    cotangents = [
        einsum_cotangent(ȳ, i, inputs, output, operands, optimize) for i in range(len(operands))
    ]
    return (NoTangent(), *cotangents)


def einsum_cotangent(ȳ, i, inputs, output, operands, optimize):
    """The cotangent of operand i: einsum of ȳ with the others, spread over what was summed away.

    A letter that the operand has twice is put on its diagonal.
    """
    plan = einsum_plan(i, inputs, output, tuple([np.shape(x) for x in operands]))
    others = [np.conjugate(x) for x in (*operands[:i], *operands[i + 1 :])]
    x̄ = np.einsum(plan.expression, ȳ, *others, optimize=optimize)
    x̄ = np.broadcast_to(np.reshape(x̄, einsum_shape(plan, np.shape(x̄))), plan.full)
    x̄ = unbroadcast(x̄, plan.own)
    if plan.diagonal is None:
        return x̄
    return np.einsum(plan.diagonal, x̄, *[np.eye(n, dtype=x̄.dtype) for n in plan.repeated])


class EinsumPlan(NamedTuple):
    """How the cotangent of an operand is found."""

    expression: str  # of ȳ and the other operands: gives the letters that these have
    letters: str  # of the operand, each once
    found: str  # those that the expression gives
    full: tuple[int, ...]  # the sizes of the letters, where operands broadcast
    own: tuple[int, ...]  # those that the operand has
    diagonal: str | None  # puts the result on diagonals
    repeated: tuple[int, ...]  # the sizes of the letters that the operand has again


@lru_cache(maxsize=1000)
def einsum_plan(i, inputs, output, shapes):
    """The plan for operand i; all of it is letters and sizes."""
    sizes: dict = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        for c, n in zip(letters, shape, strict=True):
            sizes[c] = n if n != 1 else sizes.get(c, 1)
    wanted = inputs[i]
    own = dict(zip(wanted, shapes[i], strict=True))
    letters = "".join(dict.fromkeys(wanted))
    terms = [*inputs[:i], *inputs[i + 1 :]]
    found = "".join([c for c in letters if c in output or any(c in t for t in terms)])
    expression = ",".join([output, *terms]) + "->" + found
    fresh = [c for c in "zyxwvutsrqponmlkjihgfedcba" if c not in wanted]
    spelled, again = "", []
    for c in wanted:
        if c in spelled:
            again.append((c, fresh.pop()))
        spelled += again[-1][1] if c in spelled else c
    diagonal = ",".join([letters, *[a + b for a, b in again]]) + "->" + spelled if again else None
    return EinsumPlan(
        expression,
        letters,
        found,
        tuple([sizes[c] for c in letters]),
        tuple([own[c] for c in letters]),
        diagonal,
        tuple([own[a] for a, _ in again]),
    )


def einsum_shape(plan, shape):
    """The shape of what was found with an axis of length 1 for each letter that was not."""
    return tuple([shape[plan.found.index(c)] if c in plan.found else 1 for c in plan.letters])


non_differentiable(einsum_plan, einsum_shape, einsum_subscripts)
type_stable(np.einsum)


# -- in programs -----------------------------------------------------------------------------------


@folds(einsum_cotangents)
def _(f: Any, call: Call) -> Any:
    """The cotangents one by one."""
    ȳ, subscripts, operands, optimize = call.args
    known = f.details(operands) if f.types(operands) is tuple else None
    shapes = [shape_of(k) for k in known or ()]
    if f.types(ȳ) is None:  # nor is it known that NumPy takes these subscripts
        return None
    if type(subscripts) is not Const or not shapes or None in shapes:
        return None
    letters = [f.const(x) for x in parsed(subscripts.value, tuple(map(len, shapes)))]
    calls = [
        f.new_call(call, einsum_cotangent, ȳ, f.const(i), *letters, operands, optimize)
        for i in range(len(shapes))
    ]
    found = [f.const(NONE), *[c.out for c in calls]]
    return [*calls, f.same_call(call, primitives.build_tuple, *found)]


@folds(einsum_cotangent)
def _(f: Any, call: Call) -> Any:
    """The einsum itself, between arrays of known shapes that none of them broadcasts."""
    ȳ, i, inputs, output, operands, optimize = call.args
    if not all(type(x) is Const for x in (i, inputs, output, optimize)) or f.types(ȳ) is None:
        return None
    known: Any = f.details(operands) if f.types(operands) is tuple else None
    shapes = [shape_of(k) for k in known or ()]
    if not shapes or any(shape is None or None in shape for shape in shapes):
        return None
    axes = list(zip("".join(inputs.value), itertools.chain(*shapes), strict=True))
    sizes = dict(axes)
    if any(sizes[c] != n for c, n in axes):
        return None
    plan = einsum_plan(i.value, inputs.value, output.value, tuple(shapes))
    own = known[i.value]
    is_array = getattr(own, "type", None) is np.ndarray
    if not plan.own or not is_array:
        return None
    calls: list[Call] = []

    def append(fn: Any, *args: Any) -> Any:
        calls.append(f.new_call(call, fn, *args))
        if fn is np.einsum:
            calls[-1].keywords = ("optimize",)
        return calls[-1].out

    others = [append(operator.getitem, operands, f.const(j)) for j in range(len(shapes))]
    others = [
        x if is_real(k) else append(np.conjugate, x) for x, k in zip(others, known, strict=True)
    ]
    del others[i.value]
    x̄ = summed(append, plan, ȳ, others, optimize)
    if plan.found != plan.letters:
        if plan.found:
            shape = tuple([sizes[c] if c in plan.found else 1 for c in plan.letters])
            x̄ = append(np.reshape, x̄, f.const(shape))
        x̄ = append(spread, x̄, f.const(plan.full))
    if plan.diagonal is not None:
        dtype = f.const(np.dtype(own.detail[0]))
        rest = [(f.const(n), f.const(None), f.const(0), dtype) for n in plan.repeated]
        ones = [append(np.eye, *options) for options in rest]
        x̄ = append(np.einsum, f.const(plan.diagonal), x̄, *ones, f.const(False))
    if x̄ is ȳ:
        return ȳ
    calls[-1].out = call.out
    return calls


def summed(append: Any, plan: EinsumPlan, ȳ: Any, others: Any, optimize: Any) -> Any:
    """The sum over the letters that an operand has not; a number is a factor of it."""
    terms, found = plan.expression.split("->")
    of_y, *of_others = terms.split(",")
    if not of_y and not others:
        return ȳ
    if not of_y:
        if of_others == [found]:
            return append(operator.mul, ȳ, others[0])
        inner = append(np.einsum, Const(",".join(of_others) + "->" + found), *others, optimize)
        return append(operator.mul, ȳ, inner)
    if not others and of_y == found:
        return ȳ
    return append(np.einsum, Const(plan.expression), ȳ, *others, optimize)


def is_real(k: Any) -> bool:
    """Is it known to be a real array or number?"""
    if type(k) is Const:
        return not np.iscomplexobj(k.value)
    return k.detail[0][1] != "c" if k.type is np.ndarray else k.type in NUMBERS
