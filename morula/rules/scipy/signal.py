"""Rules of scipy.signal's compiled functions: filters and convolutions.

    A(z) y = B(z) x + z₀:   ū = A⁻ᴴ ȳ is the same filter backwards, ā = -Σ ū y*, and so on

Convolutions in several dimensions have the derivative of those by Fourier transforms.
Tests: tests/rules/scipy/test_chapters.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal
from scipy.linalg import companion
from scipy.signal import _signaltools, _sigtools, _sosfilt, _spline, _upfirdn, fftconvolve, sepfir2d

from morula.core.extend import UnsupportedError, non_differentiable, rrule
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


# -- states at the start: SciPy's code divides by a[0] only where that is not 1 --------------------


@derivative_of(signal.lfilter_zi)
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a step response that stands: (I - A) z = B."""
    b, a = np.atleast_1d(np.asarray(b)), np.atleast_1d(np.asarray(a))
    first = first_not_zero(a)
    b, a = b / a[first], a[first:] / a[first]
    n = max(len(a), len(b))
    b = np.concatenate((b, np.zeros(n - len(b))))
    a = np.concatenate((a, np.zeros(n - len(a))))
    return np.linalg.solve(np.eye(n - 1) - companion(a).T, b[1:] - a[1:] * b[0])


def first_not_zero(a: Any) -> int:
    """Where the first coefficient is that counts."""
    return int(np.argmax(a != 0))


non_differentiable(first_not_zero)


@derivative_of(signal.lfiltic)
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """The state after these outputs and inputs, the latest first."""
    b, a, y = [np.atleast_1d(np.asarray(v)) for v in (b, a, y)]
    first = first_not_zero(a)
    a = a[first:]
    M, N = len(b) - 1, len(a) - 1
    x = np.zeros(M) if x is None else np.atleast_1d(np.asarray(x))
    x = np.concatenate((x, np.zeros(max(M - len(x), 0))))
    y = np.concatenate((y, np.zeros(max(N - len(y), 0))))
    z = []
    for m in range(max(M, N)):
        by_x = np.sum(b[m + 1 :] * x[: M - m]) if m < M else 0.0
        by_y = np.sum(a[m + 1 :] * y[: N - m]) if m < N else 0.0
        z.append(by_x - by_y)
    return np.array(z) / a[0]


# -- symmetric filters -----------------------------------------------------------------------------


def precise(x: Any, precision: float) -> float:
    """What SciPy takes for the precision of sums over an array that are cut off."""
    by_default = 1e-6 if np.finfo(x.dtype).bits == 32 else 1e-11
    return precision if 0.0 < precision <= 1.0 else by_default


def counted(terms: Any, bound: float) -> Any:
    """Which terms SciPy adds up: all until the first whose square is no larger."""
    small = terms**2 <= bound
    return np.arange(len(terms)) <= (int(np.argmax(small)) if small.any() else len(terms))


non_differentiable(precise, counted)


def cut_off(terms: Any, x: Any, bound: float) -> Any:
    """The sum of the terms that count, times the entries of each row."""
    return np.sum(np.where(counted(terms, bound), terms, 0.0) * x, axis=-1)


@derivative_of(_spline.symiirorder1_ic)
def symiirorder1_ic(x: Any, z1: Any, precision: Any) -> Any:
    """x₀ + Σ z₁ᵏ⁺¹ xₖ of each row."""
    powers = z1 ** (np.arange(x.shape[-1]) + 1)
    return (x[..., 0] + cut_off(powers, x, precise(x, precision) ** 2))[..., None]


def response(k: Any, r: Any, omega: Any) -> Any:
    """That of 1 / (1 - 2r cos ω z⁻¹ + r² z⁻²) to an impulse, times its denominator at 1."""
    scale = 1 - 2 * r * np.cos(omega) + r * r
    return scale * r**k * np.sin(omega * (k + 1)) / np.sin(omega)


def both_ways(k: Any, r: Any, omega: Any) -> Any:
    """The response of that filter and of the same backwards, one after the other."""
    scale, square = 1 - 2 * r * np.cos(omega) + r * r, r * r
    of_both = scale**2 * (1 + square) / (1 - square)
    of_both = of_both / (1 - 2 * square * np.cos(2 * omega) + square**2)
    slope = (1 - square) / (1 + square) / np.tan(omega)
    k = np.abs(k)
    return of_both * r**k * (np.cos(omega * k) + slope * np.sin(omega * k))


@derivative_of(_spline.symiirorder2_ic_fwd)
def symiirorder2_ic_fwd(x: Any, r: Any, omega: Any, precision: Any) -> Any:
    """The first two outputs of each row, for an input that is mirrored at its start."""
    k, bound = np.arange(x.shape[-1]), precise(x, precision) ** 2
    first = response(0, r, omega) * x[..., 0] + cut_off(response(k + 1, r, omega), x, bound)
    ahead = response(0, r, omega) * x[..., 1] + response(1, r, omega) * x[..., 0]
    return np.stack((first, ahead + cut_off(response(k + 2, r, omega), x, bound)), axis=-1)


@derivative_of(_spline.symiirorder2_ic_bwd)
def symiirorder2_ic_bwd(x: Any, r: Any, omega: Any, precision: Any) -> Any:
    """The last two outputs of each row, the last first, for an input mirrored at its end."""
    k, bound, back = np.arange(x.shape[-1]), precise(x, precision), x[..., ::-1]
    last = both_ways(k, r, omega) + both_ways(k + 1, r, omega)
    before = both_ways(k - 1, r, omega) + both_ways(k + 2, r, omega)
    return np.stack((cut_off(last, back, bound), cut_off(before, back, bound)), axis=-1)


@derivative_of(_sigtools._medfilt2d)
def medfilt2d(x: Any, size: Any) -> Any:
    """The medians of windows of an odd number of entries, with zeros around."""
    m, n = int(size[0]), int(size[1])
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((m // 2, m // 2), (n // 2, n // 2))), (m, n)
    )
    return np.median(windows.reshape(*x.shape, m * n), axis=-1)
