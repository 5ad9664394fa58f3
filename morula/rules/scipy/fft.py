"""Rules of scipy.fft: Fourier, cosine and sine transforms, and the fast Hankel transform.

    Fourier transforms:      as those of numpy.fft (rules/fourier.py)
    y = T x, T = √c L O R:   x̄ = Tᵀ ȳ = c R² T⁻¹ L² ȳ

where O is the orthogonal transform of the type, and L and R are 1 but for factors √2 or 1/√2 at
the ends. So that a transpose is the inverse transform between two multiplications of end values.
Operands are never overwritten, whatever `overwrite_x` says.
Makhoul, A fast cosine transform in one and two dimensions, IEEE Trans. ASSP 28(1), 1980; Hamilton,
Uncorrelated modes of the non-linear power spectrum, MNRAS 312, 2000, for the Hankel transform.
Tests: tests/rules/scipy/test_fft.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import fft, special

from morula.core.extend import NoTangent, UnsupportedError, call, non_differentiable, rrule
from morula.rules.arrays.sequences import takes_sequences
from morula.rules.fourier import frequencies, resized, steps, transpose, transpose_all

# -- Fourier transforms ----------------------------------------------------------------------------


def _along_one(name):
    primal = getattr(fft, name)

    @rrule(primal)
    def _(x: np.ndarray, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
        y = primal(x, n, axis, norm, False, workers, plan=plan)
        size = x.shape[axis]
        length = y.shape[axis] if name in ("irfft", "hfft") else (size if n is None else n)

        def transform_pullback(ȳ):
            x̄ = transpose(name, ȳ, length, size, axis, norm)
            return x̄, NoTangent(), NoTangent(), NoTangent(), NoTangent(), NoTangent()

        return y, transform_pullback

    takes_sequences(primal)


def _along_several(name):
    primal = getattr(fft, name)
    default = (-2, -1) if name.endswith("2") else None

    @rrule(primal)
    def _(
        x: np.ndarray,
        s=None,
        axes=default,
        norm=None,
        overwrite_x=False,
        workers=None,
        *,
        plan=None,
    ):
        taken = steps(name, x.shape, s, axes)

        def transform_pullback(ȳ):
            x̄ = transpose_all(ȳ, taken, norm)
            return x̄, NoTangent(), NoTangent(), NoTangent(), NoTangent(), NoTangent()

        return primal(x, s, axes, norm, False, workers, plan=plan), transform_pullback

    takes_sequences(primal)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _along_one(_name)
    for _more in ("2", "n"):
        _along_several(_name + _more)


# -- cosine and sine transforms --------------------------------------------------------------------

ENDS = {  # L and R of each type without orthogonalisation: factors at the ends, squared
    ("dct", 1): ({0: 2.0, -1: 2.0}, {0: 0.5, -1: 0.5}),
    ("dct", 2): ({0: 2.0}, {}),
    ("dct", 3): ({}, {0: 0.5}),
    ("dst", 2): ({-1: 2.0}, {}),
    ("dst", 3): ({}, {-1: 0.5}),
}
_PROBE = np.array([1.0, 2.0])
HONOURED = np.allclose(
    fft.dct(_PROBE + 0j, orthogonalize=True), fft.dct(_PROBE, orthogonalize=True)
)
MORE = {("dct", 1): -1, ("dst", 1): 1}  # how much the length that scales differs from the operand's


def trigonometric_transpose(name, ȳ, size, axis, type, norm, orthogonalize):
    """x̄ of a cosine or sine transform, or of the inverse of one."""
    if np.iscomplexobj(ȳ) and not HONOURED:  # as in SciPy 1.17
        orthogonalize = None
    inverse = name[0] == "i"
    kind = name[-3:]
    ends: Any = ({}, {})
    if not (norm == "ortho" if orthogonalize is None else orthogonalize):
        ends = ENDS.get((kind, type), ends)
    n = ȳ.shape[axis]
    length = 2 * (n + MORE.get((kind, type), 0))
    c = {None: length, "backward": length, "ortho": 1.0, "forward": 1 / length}[norm]
    T = getattr(fft, kind if inverse else "i" + kind)
    first, second = ends
    if inverse:
        first = {i: 1 / e for i, e in ends[1].items()}
        second = {i: 1 / e for i, e in ends[0].items()}
        c = 1 / c
    x̄ = T(ȳ * at_ends(first, axis, ȳ), type, axis=axis, norm=norm, orthogonalize=orthogonalize)
    return resized(x̄ * (c * at_ends(second, axis, x̄)), size, axis)


def at_ends(factors: dict[int, float], axis: int, x: Any) -> Any:
    """Ones along an axis, but for these factors."""
    n = x.shape[axis]
    weights = np.ones(n, x.real.dtype)
    for i, factor in factors.items():
        weights[i] = factor
    return weights.reshape([n if i == axis % x.ndim else 1 for i in range(x.ndim)])


def axes_of(shape: tuple[int, ...], s: Any, axes: Any) -> list[int]:
    """The axes of a transform over several."""
    if axes is not None:
        return [axes] if isinstance(axes, int) else list(axes)
    n = len(shape) if s is None else 1 if isinstance(s, int) else len(s)
    return list(range(-n, 0))


non_differentiable(at_ends, axes_of)


def _trigonometric(name):
    primal = getattr(fft, name)

    @rrule(primal)
    def _(
        x: np.ndarray, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None,
        orthogonalize=None,
    ):  # fmt: skip
        size = x.shape[axis]

        def transform_pullback(ȳ):
            x̄ = trigonometric_transpose(name, ȳ, size, axis, type, norm, orthogonalize)
            return (x̄, *[NoTangent()] * 7)

        return primal(x, type, n, axis, norm, False, workers, orthogonalize), transform_pullback

    several = getattr(fft, name + "n")

    @rrule(several)
    def _(
        x: np.ndarray, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None,
        orthogonalize=None,
    ):  # fmt: skip
        y = several(x, type, s, axes, norm, False, workers, orthogonalize=orthogonalize)
        taken = axes_of(x.shape, s, axes)

        def transform_pullback(ȳ):
            for axis in taken:
                size = x.shape[axis]
                ȳ = trigonometric_transpose(name, ȳ, size, axis, type, norm, orthogonalize)
            return (ȳ, *[NoTangent()] * 7)

        return y, transform_pullback

    takes_sequences(primal, several)


for _name in ("dct", "idct", "dst", "idst"):
    _trigonometric(_name)


# -- Hankel transform ------------------------------------------------------------------------------


def hankel(a: Any, dln: Any, mu: Any, offset: Any, bias: Any, inverse: bool) -> Any:
    """The Hankel transform of order mu in logarithmic steps dln, by functions that have rules.

    a rᵇⁱᵃˢ has the transform u^ · â, reversed, with u at the frequencies k = 2π m / (n dln)
        u = exp(Λ((μ+1+q+ik)/2) - Λ((μ+1-q+ik)/2)* + q log 2 + ik(log 2 - offset)),   Λ = log Γ
    Hamilton (2000), appendix B.
    """
    n = a.shape[-1]
    sign = 1 if inverse else -1
    rise = sign * bias * dln * (np.arange(n) - (n - 1) / 2)
    shift = sign * bias * offset
    k = np.arange(n // 2 + 1) * (math.pi / (n * dln))
    upper = special.loggamma((mu + 1 + bias) / 2 + 1j * k)
    lower = special.loggamma((mu + 1 - bias) / 2 + 1j * k)
    if not (np.isfinite(upper[0]) and np.isfinite(lower[0])):
        raise UnsupportedError("a fast Hankel transform at a pole of its coefficients: change bias")
    exponent = upper - np.conjugate(lower) + math.log(2) * bias + 2j * k * (math.log(2) - offset)
    u = np.exp(exponent)
    if n % 2 == 0:
        u = np.where(np.arange(n // 2 + 1) == n // 2, u.real, u)
    spectrum = np.fft.rfft(a * np.exp(rise + (shift if inverse else 0.0)))
    spectrum = spectrum / np.conjugate(u) if inverse else spectrum * u
    y = np.flip(np.fft.irfft(spectrum, n), -1)
    return y * np.exp(rise + (0.0 if inverse else shift))


def _hankel(primal, inverse):
    @rrule(primal)
    def _(a: np.ndarray, dln, mu, offset=0.0, bias=0.0):
        def hankel_pullback(ȳ):
            _, back = call(hankel, a, dln, mu, offset, bias, inverse)
            return tuple(back(ȳ)[1:6])

        return primal(a, dln, mu, offset, bias), hankel_pullback


_hankel(fft.fht, False)
_hankel(fft.ifht, True)
takes_sequences(fft.fht, fft.ifht)
frequencies(fft.fftfreq)
frequencies(fft.rfftfreq)
non_differentiable(fft.next_fast_len, fft.prev_fast_len, fft.get_workers)
