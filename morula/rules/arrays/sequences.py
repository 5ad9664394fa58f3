"""NumPy's functions on lists, tuples and NumPy's scalars: their rules for arrays, after conversion.

    np.sum([a, b]), np.dot((a, b), x), x + [1.0, 2.0], np.float64(2).sum()

An argument that is a list or a tuple is converted as NumPy would do it; its cotangent has its
structure again. Rules for a single number go by an array without axes.
Tests: tests/rules/arrays/test_sequences.py
"""

from __future__ import annotations

import inspect
import operator
from functools import partial
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    NoTangent,
    call,
    is_zero,
    primitives,
    project_to,
    python_function,
    rrule,
    unthunk,
)
from morula.rules.arrays.construction import as_it_is, like_sequence
from morula.rules.arrays.types import Anything, Numeric, Scalar, Sequence
from morula.rules.calls import without_callee
from morula.rules.containers import argument_tuple, made_tuple, unpacked

UNARY: tuple[Any, ...] = (
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.square,
    np.negative, np.positive, np.absolute, np.fabs, np.sign, np.conjugate, np.reciprocal, np.sin,
    np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh,
    np.arccosh, np.arctanh, np.degrees, np.radians, np.rad2deg, np.deg2rad, np.real, np.imag,
)  # fmt: skip
BINARY: tuple[Any, ...] = (
    np.add, np.subtract, np.multiply, np.true_divide, np.power, np.float_power, np.remainder,
    np.maximum, np.minimum, np.fmax, np.fmin, np.arctan2, np.hypot, np.copysign, np.logaddexp,
    np.logaddexp2, np.fmod, np.matmul, np.dot, np.vdot, np.inner, np.outer, np.kron, np.tensordot,
)  # fmt: skip
OF_TWO: tuple[Any, ...] = (np.convolve, np.correlate, np.heaviside, np.vecdot)
OPERATORS: tuple[Any, ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.pow,
    operator.matmul, np.ndarray.dot,
    *[
        getattr(np.ndarray, f"__{reflected}{name}__")
        for name in ("add", "sub", "mul", "truediv", "mod", "pow", "matmul") for reflected in ("", "r")
    ],
)  # fmt: skip
FIRST: tuple[Any, ...] = (
    np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.ptp, np.cumsum, np.cumprod,
    np.trace, np.diagonal, np.reshape, np.ravel, np.transpose, np.squeeze, np.expand_dims,
    np.repeat, np.tile, np.roll, np.flip, np.diff, np.take, np.diag, np.tril, np.triu, np.sort,
    np.clip, np.nansum, np.nanmean, np.pad, np.median, np.quantile, np.percentile, np.nanmedian,
    np.nanquantile, np.nanpercentile, np.broadcast_to, np.insert, np.delete, np.swapaxes,
    np.partition, np.unique,
)  # fmt: skip
OF_A_MATRIX: tuple[Any, ...] = (
    np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.matrix_power, np.linalg.norm,
    np.linalg.cond, np.linalg.cholesky, np.linalg.qr, np.linalg.pinv, np.linalg.eig, np.linalg.eigh,
    np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.svd, np.linalg.svdvals,
)  # fmt: skip
OF_A_MATRIX_AND_ANOTHER: tuple[Any, ...] = (
    np.linalg.solve, np.linalg.lstsq, np.linalg.vecdot, np.linalg.outer,
)  # fmt: skip
OF_SCALARS: tuple[Any, ...] = (
    np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.ravel, np.reshape, np.squeeze,
    np.cumsum, np.cumprod, np.transpose, np.expand_dims, np.repeat, np.tile, np.ptp, np.nansum,
    np.nanmean, np.nanmax, np.nanmin,
)  # fmt: skip
METHODS_OF_SCALARS = (
    "sum", "prod", "mean", "var", "std", "max", "min", "ravel", "reshape", "squeeze", "flatten",
    "cumsum", "cumprod", "item", "astype", "copy", "tolist", "conjugate", "conj", "clip",
    "transpose", "repeat", "take", "view",
)  # fmt: skip


def _by_arrays(primal: Any, by: Any, args: Any, kwargs: Any) -> Any:
    """The value and the pullback of a call whose sequences and scalars are converted to arrays."""
    y = primal(*args, **kwargs)
    if isinstance(y, Sequence) and any([y is a for a in args]):  # as np.diff(a, 0) is
        return y, lambda ȳ: tuple([ȳ if a is y else ZERO for a in (*args, *kwargs.values())])
    arrays = [as_array(a) if i in CONVERTED[primal] else a for i, a in enumerate(args)]
    _, back = call(by, *arrays, **kwargs)
    given = tuple([as_it_is(a) for a in (*args, *kwargs.values())])

    def sequence_pullback(ȳ):
        _, *cotangents = back(ȳ)
        return tuple(
            [
                like_sequence(unthunk(x̄), x) if isinstance(x, Sequence) and not is_zero(x̄) else x̄
                for x, x̄ in zip(given, cotangents, strict=True)
            ]
        )

    return y, sequence_pullback


def as_array(a):
    """An array of a sequence or a number; what is something else stays as it is."""
    return np.asarray(a) if isinstance(a, Sequence | Scalar | np.generic) else a


CONVERTED: dict[Any, tuple[int, ...]] = {}


def _first(primal):
    CONVERTED[primal] = (0,)

    @rrule(primal)
    def _(x: Sequence, *args: Anything, **kwargs):
        return _by_arrays(primal, primal, (x, *args), kwargs)


def takes_sequences(*primals):
    """Declare functions whose rules for arrays serve sequences as first arguments too."""
    for primal in primals:
        _first(primal)


def takes_array_likes(places, *primals):
    """Declare functions whose arguments at these places may be sequences.

    A call with anything else that is no array is followed into the code of the function.
    """
    for primal in primals:
        _array_like(primal, places)


def _array_like(primal, places):
    CONVERTED[primal] = places
    parameters = list(inspect.signature(primal).parameters.values())

    def rule(*args, **kwargs):
        if any([i < len(args) and isinstance(args[i], Sequence) for i in places]):
            y, back = _by_arrays(primal, primal, args, kwargs)
        else:
            y, own = python_function(primal, args, kwargs)
            project = project_to(y)  # to its memory, where the code has written to it
            back = partial(without_callee, lambda ȳ: own(project(ȳ)))

        def array_likes_pullback(ȳ):
            found = dict(zip([*names[: len(args)], *kwargs], back(ȳ), strict=True))
            return tuple([found.get(k, NoTangent()) for k in names])

        return y, array_likes_pullback

    # Without annotations it is the least specific rule; what is by position only is not served by
    # name, so such a call is spelt anew.
    names = [p.name for p in parameters]
    rule.__signature__ = inspect.Signature(
        [
            p.replace(annotation=p.empty, kind=p.POSITIONAL_ONLY if i <= max(places) else p.kind)
            for i, p in enumerate(parameters)
        ]
    )
    rrule(primal)(rule)


def take_two_sequences(*primals):
    """The same for functions of two arguments, each of which may be a sequence."""
    for primal in primals:
        _pair(primal)


def _pair(primal):
    CONVERTED[primal] = (0, 1)

    @rrule(primal)
    def _(a: Sequence, b: Sequence, *args: Anything, **kwargs):
        return _by_arrays(primal, primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: Sequence, b: Numeric, *args: Anything, **kwargs):
        return _by_arrays(primal, primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: Numeric, b: Sequence, *args: Anything, **kwargs):
        return _by_arrays(primal, primal, (a, b, *args), kwargs)


def _operator(primal):
    CONVERTED[primal] = (0, 1)

    @rrule(primal)
    def _(a: Sequence, b: np.ndarray | np.inexact):
        return _by_arrays(primal, primal, (a, b), {})

    @rrule(primal)
    def _(a: np.ndarray | np.inexact, b: Sequence):
        return _by_arrays(primal, primal, (a, b), {})


def _of_scalar(primal, name):
    CONVERTED[primal] = (0,)
    method = getattr(np.ndarray, name)

    @rrule(primal)
    def _(x: np.generic, *args: Anything, **kwargs):
        return _by_arrays(primal, method, (x, *args), kwargs)


for _primal in (*UNARY, *FIRST, *OF_A_MATRIX):
    _first(_primal)
for _primal in (*BINARY, *OF_TWO, *OF_A_MATRIX_AND_ANOTHER):
    _pair(_primal)
for _primal in OPERATORS:
    _operator(_primal)
for _name in METHODS_OF_SCALARS:
    _of_scalar(getattr(np.generic, _name), _name)


def _function_of_scalar(primal):
    CONVERTED[primal] = (0,)

    @rrule(primal)
    def _(x: Scalar, *args: Anything, **kwargs):
        return _by_arrays(primal, primal, (x, *args), kwargs)


for _primal in OF_SCALARS:
    _function_of_scalar(_primal)


def _method_of_ufuncs(primal):
    CONVERTED[primal] = (1,)

    @rrule(primal)
    def _(ufunc: np.ufunc, x: Sequence | Scalar, *args: Anything, **kwargs):
        return _by_arrays(primal, primal, (ufunc, x, *args), kwargs)


for _primal in (np.ufunc.reduce, np.ufunc.accumulate, np.ufunc.reduceat):
    _method_of_ufuncs(_primal)


@rrule(np.where)
def _(condition: Anything, a: Sequence, b: Sequence | Numeric):
    return _by_arrays(np.where, np.where, (condition, a, b), {})


@rrule(np.where)
def _(condition: Anything, a: Numeric, b: Sequence):
    return _by_arrays(np.where, np.where, (condition, a, b), {})


CONVERTED[np.where] = (1, 2)


@rrule(np.compress)
def _(condition: Anything, a: Sequence, axis=None):
    return _by_arrays(np.compress, np.compress, (condition, a, axis), {})


CONVERTED[np.compress] = (1,)


# -- the items of an array, which are views of it ----------------------------------------------------


@rrule(tuple)
def _(items: np.ndarray):
    return made_tuple(items)


@rrule(primitives.as_tuple)
def _(items: np.ndarray, fn: Anything = primitives.NULL):
    return argument_tuple(items, fn)


@rrule(primitives.unpack)
def _(items: np.ndarray, n: int):
    return unpacked(items, n)
