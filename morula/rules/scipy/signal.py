"""Rules of scipy.signal's compiled functions: filters and convolutions.

    A(z) y = B(z) x + z₀:   ū = A⁻ᴴ ȳ is the same filter backwards, ā = -Σ ū y*, and so on

Convolutions in several dimensions have the derivative of those by Fourier transforms.
Tests: tests/rules/scipy/test_chapters.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import _signaltools, _sigtools, _sosfilt, _upfirdn, fftconvolve, sepfir2d

from morula.core.extend import UnsupportedError, rrule
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.scipy.kernels import written_to

# -- recursive filters -----------------------------------------------------------------------------


def recursive(a, u):
    """y with Σ aₖ yₙ₋ₖ = uₙ along the last axis."""
    dtype = np.result_type(a, u, np.float64)
    return _sigtools._linear_filter(np.ones(1, dtype), a.astype(dtype), u.astype(dtype), -1)


@rrule(recursive)
def _(a: np.ndarray, u: np.ndarray):
    y = recursive(a, u)

    def recursive_pullback(ȳ):
        ū = np.flip(recursive(np.conjugate(a), np.flip(ȳ, -1)), -1)
        n = y.shape[-1]
        ā = [-np.sum(ū[..., k:] * np.conjugate(y[..., : max(n - k, 0)])) for k in range(len(a))]
        return np.stack(ā), ū

    return y, recursive_pullback


def delayed(b, x, length):
    """Σ bₖ xₙ₋ₖ along the last axis, for so many n."""
    pad = [(0, 0)] * (x.ndim - 1) + [(len(b) - 1, max(length - x.shape[-1], 0))]
    padded = np.pad(x, pad)
    total = 0.0
    for k in range(len(b)):
        start = len(b) - 1 - k
        total = total + b[k] * padded[..., start : start + length]
    return total


@derivative_of(_sigtools._linear_filter)
def linear_filter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """y, and with zi the state at the end, which is what the past adds to what is yet to come."""
    x = np.moveaxis(x, axis, -1)
    n, order = x.shape[-1], max(len(a), len(b)) - 1
    u = delayed(b, x, n + order)
    if zi is None:
        return np.moveaxis(recursive(a, u[..., :n]), -1, axis)
    z = np.moveaxis(zi, axis, -1)
    z = np.broadcast_to(z, (*x.shape[:-1], order))
    u = u + a[0] * np.pad(z, [(0, 0)] * (x.ndim - 1) + [(0, n)])
    y = recursive(a, u[..., :n])
    rest = (u - delayed(a, y, n + order))[..., n:] / a[0]
    return np.moveaxis(y, -1, axis), np.moveaxis(rest, -1, axis)


def by_sections(sos: Any, x: Any, zi: Any) -> Any:
    """What sosfilt leaves in the signals (m, n) and in the states (m, sections, 2)."""
    y, state = x.copy(), zi.copy()
    _sosfilt._sosfilt(sos, y, state)
    return y, state


@derivative_of(by_sections)
def in_sections(sos: Any, x: Any, zi: Any) -> Any:
    """One filter after the other."""
    states = []
    for s in range(sos.shape[0]):
        x, z = linear_filter(sos[s, :3], sos[s, 3:], x, -1, zi[:, s])
        states.append(z)
    return x, np.stack(states, axis=1)


@instead_of(_sosfilt._sosfilt)
def sosfilt(sos: Any, x: Any, zi: Any) -> None:
    """By sections, written where the kernel writes."""
    y, state = by_sections(sos, x, zi)
    x[...] = y
    zi[...] = state


written_to(_sosfilt._sosfilt)


# -- convolutions ----------------------------------------------------------------------------------


@derivative_of(_signaltools.correlate)
def correlate(in1: Any, in2: Any, mode: Any = "full", method: Any = "auto") -> Any:
    """The convolution with the reversed conjugate."""
    a, b = np.asarray(in1), np.conjugate(np.asarray(in2))
    return fftconvolve(a, np.flip(b), mode) if a.ndim else a * b


SYMMETRIC = 4  # SciPy's code of this boundary


@derivative_of(_sigtools._convolve2d)
def convolve2d(
    in1: Any, in2: Any, flip: Any = 1, mode: Any = 2, boundary: Any = 0, fillvalue: Any = 0
) -> Any:
    """Products with the shifted and padded first operand; the codes are those of SciPy's function."""
    kernel = np.flip(in2) if flip else in2
    (h, w), (m, n) = in1.shape, in2.shape
    pad = [(m - 1, m - 1), (n - 1, n - 1)]
    if boundary == 0:
        padded = np.pad(in1, pad, constant_values=fillvalue)
    else:
        padded = np.pad(in1, pad, "symmetric" if boundary == SYMMETRIC else "wrap")
    start, shape = (0, 0), (h + m - 1, w + n - 1)
    if mode == 1:
        start = ((m - 1) // 2, (n - 1) // 2) if flip else (m // 2, n // 2)
        shape = (h, w)
    elif mode == 0:
        start, shape = (m - 1, n - 1), (h - m + 1, w - n + 1)
    total = 0.0
    for k in np.ndindex(m, n):
        i, j = start[0] + k[0], start[1] + k[1]
        total = total + kernel[k] * padded[i : i + shape[0], j : j + shape[1]]
    return total


@derivative_of(sepfir2d)
def separable(input: Any, hrow: Any, hcol: Any) -> Any:
    """The convolution of the rows, then of the columns, of what is mirrored at its edges."""
    return mirrored(mirrored(np.asarray(input), hrow, 1), hcol, 0)


def mirrored(x: Any, h: Any, axis: int) -> Any:
    """The convolution along an axis with a kernel of odd length."""
    h = np.asarray(h)
    n, half = x.shape[axis], len(h) // 2
    if len(h) > n:
        raise UnsupportedError(
            f"sepfir2d with a kernel of length {len(h)} along an axis of length {n} has no derivative: "
            "SciPy's mirror reaches as far as the array"
        )
    x = np.moveaxis(x, axis, -1)
    wide = np.pad(x, [(0, 0), (half, half)], "symmetric")
    total: Any = 0.0
    for k in range(len(h)):
        start = len(h) - 1 - k
        total = total + h[k] * wide[:, start : start + n]
    return np.moveaxis(total, -1, axis)


@derivative_of(_upfirdn.upfirdn)
def upfirdn(
    h: Any,
    x: Any,
    up: Any = 1,
    down: Any = 1,
    axis: Any = -1,
    mode: Any = "constant",
    cval: Any = 0,
) -> Any:
    """Zeros between the samples, a convolution, and each `down`-th of the result."""
    h, x = np.asarray(h), np.moveaxis(np.asarray(x), axis, -1)
    if mode not in (None, "constant") or cval:
        raise UnsupportedError("upfirdn has a derivative here with mode='constant' and cval=0")
    n = x.shape[-1]
    between = np.zeros((*x.shape, up - 1), x.dtype)
    spread = np.reshape(np.concatenate((x[..., None], between), -1), (*x.shape[:-1], n * up))
    spread = spread[..., : (n - 1) * up + 1]
    kernel = np.reshape(h, [1] * (x.ndim - 1) + [-1])
    return np.moveaxis(fftconvolve(spread, kernel, axes=-1)[..., ::down], -1, axis)
