"""What the core is told of arrays of the standard: spaces, units, gradients; the way to NumPy and back.

The tangent space of a real or complex floating array has its shape and dtype, and is on its device.
Tests: tests/interop/test_array_api.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    AbstractZero,
    CotangentError,
    adjoint_object,
    collector,
    general,
    materialise,
    non_differentiable,
    projector,
    registry,
    rrule,
    space_problem,
    unit,
    unsupported,
    unthunk,
)
from morula.interop.array_api.kinds import (
    as_numpy_dtype,
    is_array,
    is_inexact,
    kind_of,
    namespaces,
    note_type,
)
from morula.interop.array_api.masks import mask_of, remember
from morula.interop.meanings import differentiate_copies, go_by_value
from morula.mixed_mode.jacobians import Library, libraries
from morula.rules.arrays.structural import Selected, selected
from morula.rules.numbers import Anything
from morula.rules.vectors import Foreign, foreign

# -- to NumPy and back -----------------------------------------------------------------------------


def host(x: Any) -> Any:
    """An array as one of NumPy's, in memory of its own."""
    return np.array(exported(x))


def exported(x: Any) -> Any:
    """An array as one of NumPy's, by the way of the standard if there is one."""
    try:
        return np.from_dlpack(x, device="cpu")
    except (TypeError, AttributeError, BufferError, NotImplementedError, RuntimeError, ValueError):
        return np.asarray(x)


def like(v: Any, x: Any) -> Any:
    """A number or an array of any kind as an array of the class, dtype and device of `x`."""
    xp = x.__array_namespace__()
    where = v._where if type(v) is Selected else None
    if not is_array(v):
        v = np.asarray(v)
        v = v.real if v.dtype.kind == "c" and kind_of(x) != "c" else v
        v = xp.asarray(v.astype(as_numpy_dtype(x.dtype)), dtype=x.dtype, device=x.device)
    if kind_of(v) == "c" and kind_of(x) != "c":
        v = xp.real(v)
    v = v if v.dtype == x.dtype else xp.astype(v, x.dtype)
    if where is not None:
        remember(v, xp.asarray(where, device=x.device))
    if tuple(v.shape) == tuple(x.shape):
        return v
    if [n for n in v.shape if n != 1] != [n for n in x.shape if n != 1]:
        raise CotangentError(
            f"the cotangent of an array of shape {tuple(x.shape)} has shape {tuple(v.shape)}"
        )
    return xp.reshape(v, tuple(x.shape))


differentiate_copies(host, like=like, is_array=is_array, is_inexact=is_inexact)


def valued(z: Any, y: Any) -> Any:
    """The array y, whose derivative is that of NumPy's array of the same values."""
    return y


@rrule(valued)
def _(z: Anything, y: Anything):
    same = agree(z, y)

    def valued_pullback(ȳ):
        if not same:
            raise unsupported(
                f"a function of the array API standard on {type(y).__qualname__}",
                "it gives other numbers than NumPy's, by which it would be differentiated",
                "give it a rule with @rrule",
            )
        where = mask_of(ȳ)
        return host(ȳ) if where is None else selected(host(ȳ), host(where)), NONE

    return valued(z, y), valued_pullback


def agree(z: Any, y: Any) -> bool:
    """Are they the same numbers, but for rounding?"""
    y, z = np.asarray(host(y)), np.asarray(z)
    if y.shape != z.shape or y.dtype.kind != z.dtype.kind:
        return False
    finite = np.abs(z[np.isfinite(z)])
    close = np.sqrt(np.finfo(y.dtype).eps)
    return np.allclose(y, z, close, close * finite.max(initial=0.0), equal_nan=True)


# -- traits ----------------------------------------------------------------------------------------


def _projector(x: Any) -> Any:
    if not is_inexact(x):
        return nowhere
    dtype, shape = x.dtype, x.shape

    def project_array(x̄: Any) -> Any:
        return x̄ if is_array(x̄) and x̄.dtype == dtype and x̄.shape == shape else like(x̄, x)

    return project_array


def nowhere(x̄: Any) -> Any:
    """There is no tangent space."""
    return NONE


def _unit(y: Any) -> Any:
    is_one = is_array(y) and y.size == 1 and kind_of(y) == "f"
    return y.__array_namespace__().ones_like(y) if is_one else None


def _materialise(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    if not is_inexact(x):
        return None
    x̄, xp = unthunk(x̄), x.__array_namespace__()
    if isinstance(x̄, AbstractZero):
        return xp.zeros_like(x)
    return xp.asarray(like(x̄, x), copy=True)


def _space_problem(x: Any, x̄: Any) -> tuple[str, str] | None:
    shape = tuple(getattr(x̄, "shape", ()))
    if shape != tuple(x.shape):
        return (
            f"an array of shape {tuple(x.shape)}",
            f"of type {type(x̄).__name__} and shape {shape}",
        )
    return None


def dtype_of(x: Any) -> Any:
    """An array of no entries, by which others are made like it."""
    return x.__array_namespace__().reshape(x, (-1,))[:0]


def from_numpy(part: Any, of: Any, shape: Any) -> Any:
    """A part of a vector of NumPy's as an array of this kind."""
    xp = of.__array_namespace__()
    part = np.reshape(part, shape)
    part = part.real if kind_of(of) != "c" else part
    return xp.asarray(part.astype(as_numpy_dtype(of.dtype)), dtype=of.dtype, device=of.device)


class AsNumpy:
    """What the functions of Jacobians ask of NumPy, for arrays of one class."""

    def __init__(self, t: type) -> None:
        self.t = t

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """Zeros of a shape."""
        return namespaces[self.t].zeros(shape, dtype=dtype)

    def asarray(self, x: Any) -> Any:
        """An array of NumPy's as one of the class."""
        return namespaces[self.t].asarray(x)

    def stack(self, xs: Any, axis: int = 0) -> Any:
        """Arrays along a new axis."""
        return xs[0].__array_namespace__().stack(xs, axis=axis)

    array = stack

    def reshape(self, x: Any, shape: Any) -> Any:
        """Another shape."""
        return x.__array_namespace__().reshape(x, tuple(shape))

    def real(self, x: Any) -> Any:
        """The real part; of real numbers they themselves."""
        return x.__array_namespace__().real(x) if kind_of(x) == "c" else x

    def conjugate(self, x: Any) -> Any:
        """The conjugate."""
        return x.__array_namespace__().conj(x) if kind_of(x) == "c" else x

    def sum(self, x: Any) -> Any:
        """The sum."""
        return x.__array_namespace__().sum(x)


def by_standard(t: type) -> type:
    """Let arrays of a class go by value, differentiated by the rules for the array API standard.

    Classes whose operators are compiled need it not; the code of others is Python, and is followed as
    such where they are not declared. Gives the class back, so it decorates it, too.

    Raises:
        TypeError: the class has no `__array_namespace__`.
    """
    if not hasattr(t, "__array_namespace__"):
        raise TypeError(f"{t.__qualname__} has no __array_namespace__")
    note_type(t)
    projector.register(t, _projector)
    unit.register(t, _unit)
    materialise.register(t, _materialise)
    space_problem.register(t, _space_problem)
    go_by_value(t)
    foreign.append(Foreign((t,), is_inexact, host, from_numpy, dtype_of))
    libraries.append(Library((t,), AsNumpy(t), is_inexact_dtype, is_complex_dtype))
    for claims in general.CLAIMS:
        registry.registry.entry(claims).changed()
    return t


def goes_by_value(t: type) -> None:
    """Hand on the cotangents of the bound methods of a compiled class, whose type this is."""
    if t not in _handed_on:
        _handed_on.add(t)
        projector.register(t, lambda x: None)
        adjoint_object.register(t, lambda x: None)
        collector.register(t, lambda y, part: None)


_handed_on: set[type] = set()


def is_inexact_dtype(dtype: Any) -> bool:
    """Do arrays of this dtype have a tangent space?"""
    return as_numpy_dtype(dtype).kind in "fc"


def is_complex_dtype(dtype: Any) -> bool:
    """Are these complex numbers?"""
    return as_numpy_dtype(dtype).kind == "c"


non_differentiable(agree)
