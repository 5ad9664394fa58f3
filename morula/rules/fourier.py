"""Rules of numpy.fft, and the transposes of discrete Fourier transforms that SciPy's rules use.

    y = F x:                x̄ = Fᴴ ȳ, an inverse transform whose norm is that of the other direction
    rfft, ihfft:            the second half is not there: x̄ by irfft of ȳ, all but its ends halved
    irfft, hfft:            the second half counts too: x̄ by rfft of ȳ, all but its ends doubled
    cropped or padded:      x̄ padded or cropped

A transform over several axes is one after the other; x̄ goes back over them.
Shapes: any, along `axis` or `axes`; length n or s in place of the operand's.
Tests: tests/rules/test_fourier.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import NoTangent, non_differentiable, rrule, type_stable
from morula.rules.arrays.sequences import takes_sequences
from morula.rules.numbers import Anything

FLIPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
OVER_REAL = {"rfft", "ihfft"}  # half a spectrum of real numbers
TO_REAL = {"irfft", "hfft"}  # and back


def transpose(kind, ȳ, length, size, axis, norm):
    """x̄ of a transform of this length along an axis along which x had this size."""
    if kind == "fft":
        x̄ = np.fft.ifft(ȳ, axis=axis, norm=FLIPPED[norm])
    elif kind == "ifft":
        x̄ = np.fft.fft(ȳ, axis=axis, norm=FLIPPED[norm])
    elif kind == "rfft":
        x̄ = np.fft.irfft(ȳ * inner(0.5, length, axis, ȳ), length, axis, FLIPPED[norm])
    elif kind == "ihfft":
        x̄ = np.fft.irfft(np.conjugate(ȳ) * inner(0.5, length, axis, ȳ), length, axis, norm)
    elif kind == "irfft":
        x̄ = np.fft.rfft(ȳ, axis=axis, norm=FLIPPED[norm])
        x̄ = x̄ * inner(2.0, length, axis, x̄)
    else:
        x̄ = np.fft.rfft(ȳ, axis=axis, norm=norm)
        x̄ = np.conjugate(x̄) * inner(2.0, length, axis, x̄)
    return resized(x̄, size, axis)


def inner(factor: float, length: int, axis: int, x: Any) -> Any:
    """This factor for each frequency but zero and the middle one, where there is one."""
    weights = np.full(length // 2 + 1, factor, x.real.dtype)
    weights[0] = 1
    if length % 2 == 0:
        weights[-1] = 1
    return weights.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def resized(x, size, axis):
    """x cropped, or padded with zeros, to a size along an axis."""
    have = x.shape[axis]
    if have == size:
        return x
    axis = axis % x.ndim
    if size < have:
        return x[(slice(None),) * axis + (slice(size),)]
    return np.pad(x, [(0, size - have if i == axis else 0) for i in range(x.ndim)])


Step = tuple[str, int, int, int]  # the transform, its length, the size of what it takes, its axis


def steps(name: str, shape: tuple[int, ...], s: Any, axes: Any) -> list[Step]:
    """The transforms along one axis that one over `axes` consists of, in their order."""
    axes = list(range(len(shape)) if axes is None and s is None else axes or range(-len(s), 0))
    sizes = list(shape)
    lengths = [sizes[a] for a in axes] if s is None else list(s)
    kind = name.rstrip("2n")
    whole = "ifft" if kind in ("ifft", "irfft", "ihfft") else "fft"
    order = [(whole, i) for i in range(len(axes) - 1)]
    order = [*order, (kind, -1)] if kind in TO_REAL else [(kind, -1), *reversed(order)]
    found = []
    for each, i in order:
        axis = axes[i]
        n = shape[axis] if lengths[i] == -1 else lengths[i]
        if each in TO_REAL:
            n = 2 * (shape[axis] - 1) if s is None else n
            out = n
        else:
            out = n // 2 + 1 if each in OVER_REAL else n
        found.append((each, n, sizes[axis], axis))
        sizes[axis] = out
    return found


def transpose_all(ȳ, taken, norm):
    """x̄ of several transforms."""
    for kind, length, size, axis in reversed(taken):
        ȳ = transpose(kind, ȳ, length, size, axis, norm)
    return ȳ


non_differentiable(inner, steps)


def _along_one(name):
    primal = getattr(np.fft, name)

    @rrule(primal)
    def _(a: np.ndarray, n=None, axis=-1, norm=None):
        y = primal(a, n, axis, norm)
        size = a.shape[axis]
        length = y.shape[axis] if name in TO_REAL else (size if n is None else n)

        def transform_pullback(ȳ):
            x̄ = transpose(name, ȳ, length, size, axis, norm)
            return x̄, NoTangent(), NoTangent(), NoTangent()

        return y, transform_pullback


def _along_several(name):
    primal = getattr(np.fft, name)
    default = (-2, -1) if name.endswith("2") else None

    @rrule(primal)
    def _(a: np.ndarray, s=None, axes=default, norm=None):
        taken = steps(name, a.shape, s, axes)

        def transform_pullback(ȳ):
            return transpose_all(ȳ, taken, norm), NoTangent(), NoTangent(), NoTangent()

        return primal(a, s, axes, norm), transform_pullback


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _along_one(_name)
    type_stable(getattr(np.fft, _name))
    takes_sequences(getattr(np.fft, _name))
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    _along_several(_name)
    takes_sequences(getattr(np.fft, _name))


def frequencies(primal: Any) -> None:
    """Whole numbers over n d, where d is the distance of the samples."""

    @rrule(primal)
    def _(n: Anything, d: Anything = 1.0, *, device=None, xp=None):
        options = {} if xp is None else {"xp": xp}
        y = primal(n, d, device=device, **options)

        def frequencies_pullback(ȳ):
            return NoTangent(), -np.sum(ȳ * y) / d

        return y, frequencies_pullback


frequencies(np.fft.fftfreq)
frequencies(np.fft.rfftfreq)
