"""Rules of scipy.fftpack: transforms, and differential operators on periodic sequences.

    fft, ifft, …, dct, …:    as those of scipy.fft; rfft has its parts side by side
    y = K x, K shift-invariant and real:     x̄ = R K R ȳ,  (R x)ₙ = x₋ₙ

The second line serves diff, hilbert, tilbert and their like. Their real parameters (periods, widths)
have a gradient for `shift` and `diff`; for others asking for it is an error.
Tests: tests/rules/scipy/test_fftpack.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fftpack

from morula.core.extend import NoTangent, non_differentiable, rrule
from morula.rules.arrays.sequences import takes_sequences
from morula.rules.fourier import resized, steps, transpose, transpose_all
from morula.rules.scipy.fft import axes_of, trigonometric_transpose
from morula.rules.unknown import unknown

# -- Fourier transforms ----------------------------------------------------------------------------


def _complex(name):
    primal = getattr(fftpack, name)

    @rrule(primal)
    def _(x: np.ndarray, n=None, axis=-1, overwrite_x=False):
        length = x.shape[axis] if n is None else n

        def transform_pullback(ȳ):
            x̄ = transpose(name, ȳ, length, x.shape[axis], axis, None)
            return x̄, NoTangent(), NoTangent(), NoTangent()

        return primal(x, n, axis), transform_pullback

    takes_sequences(primal)
    for more in ("2", "n"):
        _several(name + more)


def _several(name):
    primal = getattr(fftpack, name)
    default = (-2, -1) if name.endswith("2") else None

    @rrule(primal)
    def _(x: np.ndarray, shape=None, axes=default, overwrite_x=False):
        taken = steps(name, x.shape, shape, axes)

        def transform_pullback(ȳ):
            return transpose_all(ȳ, taken, None), NoTangent(), NoTangent(), NoTangent()

        return primal(x, shape, axes), transform_pullback

    takes_sequences(primal)


_complex("fft")
_complex("ifft")


def packed(z, n, axis):
    """Half a spectrum as real numbers: z₀, Re z₁, Im z₁, Re z₂, …, n of them."""
    z = np.moveaxis(z, axis, -1)
    pairs = np.stack((z.real, z.imag), axis=-1).reshape((*z.shape[:-1], 2 * z.shape[-1]))
    flat = np.concatenate((pairs[..., :1], pairs[..., 2 : n + 1]), axis=-1)
    return np.moveaxis(flat, -1, axis)


def unpacked(y, axis):
    """The spectrum out of its packed form."""
    y = np.moveaxis(y, axis, -1)
    n = y.shape[-1]
    zero = np.zeros((*y.shape[:-1], 1), y.dtype)
    parts = [y[..., :1], zero, y[..., 1:]]
    if n % 2 == 0:
        parts.append(zero)
    pairs = np.concatenate(parts, axis=-1)
    z = pairs[..., 0::2] + 1j * pairs[..., 1::2]
    return np.moveaxis(z, -1, axis)


@rrule(fftpack.rfft)
def _(x: np.ndarray, n=None, axis=-1, overwrite_x=False):
    length = x.shape[axis] if n is None else n

    def rfft_pullback(ȳ):
        x̄ = transpose("rfft", unpacked(ȳ, axis), length, x.shape[axis], axis, None)
        return x̄, NoTangent(), NoTangent(), NoTangent()

    return fftpack.rfft(x, n, axis), rfft_pullback


@rrule(fftpack.irfft)
def _(x: np.ndarray, n=None, axis=-1, overwrite_x=False):
    length = x.shape[axis] if n is None else n

    def irfft_pullback(ȳ):
        half = length // 2 + 1
        z̄ = transpose("irfft", ȳ, length, half, axis, None)
        x̄ = resized(packed(z̄, length, axis), x.shape[axis], axis)
        return x̄, NoTangent(), NoTangent(), NoTangent()

    return fftpack.irfft(x, n, axis), irfft_pullback


# -- cosine and sine transforms --------------------------------------------------------------------


def _trigonometric(name):
    primal = getattr(fftpack, name)
    several = getattr(fftpack, name + "n")
    kind = name[-3:]
    inverse = {1: 1, 2: 3, 3: 2, 4: 4} if name[0] == "i" else {}

    @rrule(primal)
    def _(x: np.ndarray, type=2, n=None, axis=-1, norm=None, overwrite_x=False):
        def transform_pullback(ȳ):
            t = inverse.get(type, type)
            x̄ = trigonometric_transpose(kind, ȳ, x.shape[axis], axis, t, norm, None)
            return (x̄, *[NoTangent()] * 5)

        return primal(x, type, n, axis, norm), transform_pullback

    @rrule(several)
    def _(x: np.ndarray, type=2, shape=None, axes=None, norm=None, overwrite_x=False):
        taken = axes_of(x.shape, shape, axes)

        def transform_pullback(ȳ):
            t = inverse.get(type, type)
            for axis in taken:
                ȳ = trigonometric_transpose(kind, ȳ, x.shape[axis], axis, t, norm, None)
            return (ȳ, *[NoTangent()] * 5)

        return several(x, type, shape, axes, norm), transform_pullback

    takes_sequences(primal, several)


for _name in ("dct", "idct", "dst", "idst"):
    _trigonometric(_name)


# -- operators on periodic sequences ---------------------------------------------------------------


def reversed_time(x):
    """x₀, x₋₁, x₋₂, …"""
    return np.roll(np.flip(x, -1), 1, -1)


def _operator(name, parameters):
    primal = getattr(fftpack, name)

    def transposed(ȳ, values):
        return reversed_time(primal(reversed_time(ȳ), *values))

    if parameters == 0:

        @rrule(primal)
        def _(x: np.ndarray):
            def operator_pullback(ȳ):
                return (transposed(ȳ, ()),)

            return primal(x), operator_pullback

    elif parameters == 1:

        @rrule(primal)
        def _(x: np.ndarray, h, period=None):
            def operator_pullback(ȳ):
                return (
                    transposed(ȳ, (h, period)),
                    unknown(primal, "its parameter"),
                    unknown(primal, "its period"),
                )

            return primal(x, h, period), operator_pullback

    else:

        @rrule(primal)
        def _(x: np.ndarray, a, b, period=None):
            def operator_pullback(ȳ):
                return (
                    transposed(ȳ, (a, b, period)),
                    unknown(primal, "its first parameter"),
                    unknown(primal, "its second parameter"),
                    unknown(primal, "its period"),
                )

            return primal(x, a, b, period), operator_pullback


for _name, _parameters in {
    "hilbert": 0, "ihilbert": 0, "tilbert": 1, "itilbert": 1,
    "cc_diff": 2, "cs_diff": 2, "sc_diff": 2, "ss_diff": 2,
}.items():  # fmt: skip
    _operator(_name, _parameters)


@rrule(fftpack.diff)
def _(x: np.ndarray, order=1, period=None):
    def diff_pullback(ȳ):
        x̄ = reversed_time(fftpack.diff(reversed_time(ȳ), order, period))
        if period is None:
            return x̄, NoTangent(), NoTangent()
        return x̄, NoTangent(), -order / period * along(ȳ, y)

    y = fftpack.diff(x, order, period)
    return y, diff_pullback


def along(ȳ, ẏ):
    """The cotangent of a real number, with which the result changes by ẏ."""
    return np.sum((np.conj(ȳ) * ẏ).real)


@rrule(fftpack.shift)
def _(x: np.ndarray, a, period=None):
    """x at t + a: ā by the derivative of the result, which depends on a / period."""
    y = fftpack.shift(x, a, period)

    def shift_pullback(ȳ):
        x̄ = reversed_time(fftpack.shift(reversed_time(ȳ), a, period))
        slope = fftpack.diff(y, 1, period)
        n = x.shape[-1]
        if n % 2 == 0:  # which diff leaves out: SciPy multiplies it by cos ωa + sin ωa
            ω = math.pi * n / (2 * math.pi if period is None else period)
            signs = 1.0 - 2.0 * (np.arange(n) % 2)
            rise = ω * (np.cos(ω * a) - np.sin(ω * a))
            slope = slope + (np.sum(signs * x) * rise / n) * signs
        ā = along(ȳ, slope)
        return x̄, ā, NoTangent() if period is None else -a / period * ā

    return y, shift_pullback


non_differentiable(fftpack.next_fast_len)
