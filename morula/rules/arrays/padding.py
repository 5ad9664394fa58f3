"""Rules of np.pad, in each of its modes.

Modes that repeat entries go by their places (`moving`); those that compute the margin are done axis
by axis, as NumPy does it: the corners are margins of margins. Reflections of odd type are linear
along each axis, by the matrix that padding the identity gives.
Shapes: each axis grows by its two widths.
Tests: tests/rules/arrays/test_padding.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import NoTangent, UnsupportedError, call, non_differentiable, rrule
from morula.rules.arrays.moving import moved_back, numbered
from morula.rules.arrays.types import Anything

REPEATING = ("edge", "reflect", "symmetric", "wrap")
STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}


def widths_of(pad_width: Any, ndim: int) -> list[Any]:
    """The widths before and after, for each axis."""
    if isinstance(pad_width, dict):
        given = [pad_width.get(i, pad_width.get(i - ndim, (0, 0))) for i in range(ndim)]
        return [(w, w) if np.ndim(w) == 0 else tuple(w) for w in given]
    return [(int(b), int(a)) for b, a in np.broadcast_to(pad_width, (ndim, 2))]


def keywords_of(mode: str, constant_values, end_values, stat_length, reflect_type) -> dict:
    """Those that NumPy takes in this mode."""
    if mode in STATISTICS:
        return {"stat_length": stat_length}
    if mode in ("reflect", "symmetric"):
        return {"reflect_type": reflect_type}
    if mode == "linear_ramp":
        return {"end_values": end_values}
    return {"constant_values": constant_values} if mode == "constant" else {}


non_differentiable(widths_of)


@rrule(np.pad)
def _(
    array: np.ndarray, pad_width: Anything, mode="constant", *,
    constant_values=0, end_values=0, stat_length=None, reflect_type="even",
):  # fmt: skip
    if callable(mode):
        raise UnsupportedError(
            "np.pad with a function that writes the margins cannot be differentiated: "
            "compute them, and put the parts together by np.concatenate"
        )
    shape = array.shape
    keywords = keywords_of(mode, constant_values, end_values, stat_length, reflect_type)
    y = np.pad(array, pad_width, mode, **keywords)
    if mode == "constant" and np.ndim(constant_values) == 0:

        def pad_pullback(ȳ):
            widths = widths_of(pad_width, len(shape))
            inside = tuple([slice(b, b + n) for (b, _), n in zip(widths, shape, strict=True)])
            return ȳ[inside], NoTangent(), NoTangent(), np.sum(ȳ) - np.sum(ȳ[inside])

        return y, pad_pullback

    if mode in REPEATING and reflect_type == "even":

        def repeating_pullback(ȳ):
            places = np.pad(numbered(array), pad_width, mode)
            return moved_back(ȳ, places, shape), NoTangent(), NoTangent()

        return y, repeating_pullback
    widths = widths_of(pad_width, len(shape))
    _, back = call(padded, array, widths, mode, constant_values, end_values, stat_length)

    def margins_pullback(ȳ):
        _, ā, _, _, constant_bar, end_bar, _ = back(ȳ)
        return ā, NoTangent(), NoTangent(), constant_bar, end_bar

    return y, margins_pullback


def padded(x, widths, mode, constant_values, end_values, stat_length):
    """`np.pad`, axis by axis, without writing into an array."""
    given = end_values if mode == "linear_ramp" else constant_values
    values = np.broadcast_to(np.asarray(given), (len(widths), 2))
    lengths = np.broadcast_to(np.asarray(stat_length, object), (len(widths), 2))
    for i, (before, after) in enumerate(widths):
        if mode in ("reflect", "symmetric"):
            matrix = reflection(x.shape[i], before, after, mode)
            x = np.moveaxis(np.tensordot(matrix, x, ((1,), (i,))), 0, i)
            continue
        y = np.moveaxis(x, i, 0)
        left = margin(y, before, mode, values[i, 0], lengths[i, 0])
        right = margin(np.flip(y, 0), after, mode, values[i, 1], lengths[i, 1])
        x = np.moveaxis(np.concatenate((left, y, np.flip(right, 0)), 0), 0, i)
    return x


def reflection(n: int, before: int, after: int, mode: str) -> np.ndarray:
    """The matrix of a reflection of odd type of n samples."""
    return np.pad(np.eye(n), ((before, after), (0, 0)), mode, reflect_type="odd")


non_differentiable(reflection)


def margin(y, width, mode, value, length):
    """What stands before the first row."""
    shape = (width, *y.shape[1:])
    if mode == "constant":
        return np.broadcast_to(value, shape)
    if mode == "linear_ramp":
        t = np.reshape(np.arange(width) / max(width, 1), (-1, *[1] * (y.ndim - 1)))
        return value + t * (y[:1] - value)
    near = y if length is None else y[: int(length)]
    return np.broadcast_to(STATISTICS[mode](near, axis=0, keepdims=True), shape)
