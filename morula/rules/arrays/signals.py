"""Rules along a line of samples: convolve, correlate, interp, gradient, trapezoid, unwrap, cross.

    y = a ∗ v:                ā[i] = Σ ȳ[i + j] v[j]*            v̄[j] = Σ ȳ[i + j] a[i]*
    y = interp(x, xp, fp):    linear in fp; the slope in x is that of the piece that x is in

At a knot of `interp` the slope is that of the piece to the right, at the last one to the left.
Shapes: `convolve` and `correlate` of 1-d arrays and numbers; the others along an axis.
Tests: tests/rules/arrays/test_signals.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from morula.core.extend import Const, NoTangent, folds, rrule, type_stable
from morula.rules.arrays.bodies import derivative_of
from morula.rules.arrays.broadcasting import shape_of
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.types import Numeric

# -- convolution -----------------------------------------------------------------------------------


def in_full(ȳ, n, m, mode, swapped=False):
    """A cotangent of some entries of a convolution of n and m samples, as that of all of them."""
    short, long = min(n, m), max(n, m)
    if mode == "full":
        return ȳ
    return scatter(ȳ, part_of_full(short, long, mode, swapped), (n + m - 1,), ȳ.dtype)


def part_of_full(short, long, mode, swapped):
    """Which entries of the whole convolution these are."""
    start = short - 1 if mode == "valid" else short // 2 if swapped else (short - 1) // 2
    length = long - short + 1 if mode == "valid" else long
    return slice(start, start + length)


@folds(in_full)
def _(f: Any, call: Any) -> Any:
    """What is the whole stays; of others it is known where they stand."""
    ȳ, n, m, mode, *swapped = call.args
    if type(mode) is Const and mode.value == "full":
        return ȳ
    given: list[Any] = [getattr(x, "value", None) for x in (n, m, mode, *swapped)]
    known = f.details(ȳ) if f.types(ȳ) is np.ndarray else None
    if None in given or known is None or given[2] not in ("same", "valid"):
        return None
    n, m, mode, *swapped = given
    where = part_of_full(min(n, m), max(n, m), mode, *(swapped or [False]))
    dtype = np.dtype(known[0])
    return [f.same_call(call, scatter, ȳ, f.const(where), f.const((n + m - 1,)), f.const(dtype))]


@rrule(np.convolve)
def _(a: Numeric, v: Numeric, mode="full"):
    a_shape = shape_of(a)
    v_shape = shape_of(v)

    def convolve_pullback(ȳ):
        whole = in_full(ȳ, np.size(a), np.size(v), mode)
        return (
            np.reshape(np.correlate(whole, np.ravel(v), "valid"), a_shape),
            np.reshape(np.correlate(whole, np.ravel(a), "valid"), v_shape),
            NoTangent(),
        )

    return np.convolve(a, v, mode), convolve_pullback


@rrule(np.correlate)
def _(a: np.ndarray, v: np.ndarray, mode="valid"):
    """Σ a[i + k] v[i]*: the convolution of a with v*, reversed."""

    def correlate_pullback(ȳ):
        whole = in_full(ȳ, a.size, v.size, mode, a.size < v.size)
        return (
            np.convolve(whole, v, "valid"),
            np.flip(np.correlate(whole, a, "valid").conjugate()),
            NoTangent(),
        )

    return np.correlate(a, v, mode), correlate_pullback


type_stable(np.convolve, np.correlate)

# -- interpolation ---------------------------------------------------------------------------------


@derivative_of(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    """The piece of a polygon that each x is in, or what is given beyond its ends."""
    x, xp, fp = np.asarray(x) + 0.0, np.asarray(xp) + 0.0, np.asarray(fp) + 0.0
    if period is not None:
        x, xp = x % period, xp % period
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[:1]))
    first = fp[0] if left is None or period is not None else left
    last = fp[-1] if right is None or period is not None else right
    if len(xp) == 1:
        y = fp[np.zeros(x.shape, int)]
    else:
        i = np.clip(np.searchsorted(xp, x, "right") - 1, 0, len(xp) - 2)
        y = fp[i] + (fp[i + 1] - fp[i]) * ((x - xp[i]) / (xp[i + 1] - xp[i]))
    return np.where(x < xp[0], first, np.where(x > xp[-1], last, y))


# -- differences and integrals ---------------------------------------------------------------------


@derivative_of(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Half of the sums of neighbours, times the steps."""
    y = np.moveaxis(np.asanyarray(y), axis, -1)
    if x is None:
        step = dx
    elif np.ndim(x) == 1:
        step = np.diff(np.asanyarray(x))
    else:
        step = np.diff(np.moveaxis(np.asanyarray(x), axis, -1))
    return np.sum(step * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


@derivative_of(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    """Central differences inside, one-sided ones of the given order at the ends."""
    f = np.asanyarray(f) + 0.0
    axes = range(f.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [i % f.ndim for i in axes]
    steps = varargs or (1.0,)
    if len(steps) == 1:
        steps = steps * len(axes)
    slopes = [slope_along(f, step, i, edge_order) for i, step in zip(axes, steps, strict=True)]
    return slopes[0] if len(axes) == 1 else tuple(slopes)


def slope_along(f, step, axis, edge_order):
    """The derivative along one axis; `step` is a number, or the coordinates of the samples."""
    f = np.moveaxis(f, axis, -1)
    step = np.asanyarray(step) + 0.0
    h = np.full(f.shape[-1] - 1, step) if step.ndim == 0 else np.diff(step)
    rise = (f[..., 1:] - f[..., :-1]) / h
    before, after = h[:-1], h[1:]
    inside = (after * rise[..., :-1] + before * rise[..., 1:]) / (before + after)
    first, last = rise[..., :1], rise[..., -1:]
    if edge_order == 2:
        bend = (rise[..., 1:] - rise[..., :-1]) / (before + after)
        first = first - h[:1] * bend[..., :1]
        last = last + h[-1:] * bend[..., -1:]
    return np.moveaxis(np.concatenate((first, inside, last), -1), -1, axis)


@rrule(np.unwrap)
def _(p: Numeric, discont=None, axis=-1, *, period=2 * math.pi):
    """p plus whole periods."""
    y = np.unwrap(p, discont, axis, period=period)

    def unwrap_pullback(ȳ):
        turns = np.round((y - p) / period)
        return ȳ, NoTangent(), NoTangent(), np.sum(ȳ * turns)

    return y, unwrap_pullback


# -- vectors of space ------------------------------------------------------------------------------


@derivative_of(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """a × b; of vectors with two components, the third component of it."""
    if axis is not None:
        axisa, axisb, axisc = axis, axis, axis
    a, b = np.moveaxis(np.asarray(a), axisa, -1), np.moveaxis(np.asarray(b), axisb, -1)
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return z
    a_z = a[..., 2] if a.shape[-1] == 3 else np.zeros(a.shape[:-1])
    b_z = b[..., 2] if b.shape[-1] == 3 else np.zeros(b.shape[:-1])
    x, y = a[..., 1] * b_z - a_z * b[..., 1], a_z * b[..., 0] - a[..., 0] * b_z
    return np.moveaxis(np.stack(np.broadcast_arrays(x, y, z), -1), -1, axisc)
