"""Rules of np.pad, in each of its modes.

Modes that repeat entries go by their places (`moving`); those that compute the margin are done axis
by axis, as NumPy does it: the corners are margins of margins. Reflections of odd type are linear
along each axis, by the matrix that padding the identity gives.
Shapes: each axis grows by its two widths.
Tests: tests/rules/arrays/test_padding.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from morula.core.extend import (
    Const,
    Known,
    NoTangent,
    UnsupportedError,
    call,
    folds,
    non_differentiable,
    primitives,
    rewrites,
    rrule,
    transfers,
    type_stable,
)
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.traits import whole_shape
from morula.rules.arrays.types import Anything
from morula.rules.list_types import is_array

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


def inside_of(pad_width: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Where in the padded array the given one stands."""
    widths = widths_of(pad_width, len(shape))
    return tuple([slice(b, b + n) for (b, _), n in zip(widths, shape, strict=True)])


non_differentiable(widths_of, inside_of)


# -- the two most frequent kinds -------------------------------------------------------------------


def with_number(array, pad_width, number):
    """`np.pad` with one number all around."""
    return np.pad(array, pad_width, "constant", constant_values=number)


@rrule(with_number)
def _(array: np.ndarray, pad_width: Anything, number: Anything):
    y = with_number(array, pad_width, number)
    inside = inside_of(pad_width, array.shape)

    def with_number_pullback(ȳ):
        ā = ȳ[inside]
        return ā, NoTangent(), np.sum(ȳ) - np.sum(ā)

    return y, with_number_pullback


def with_entries(array, pad_width, mode):
    """`np.pad` in a mode that repeats entries."""
    return np.pad(array, pad_width, mode)


@rrule(with_entries)
def _(array: np.ndarray, pad_width: Anything, mode: str):
    shape = array.shape

    def with_entries_pullback(ȳ):
        ā = scatter(ȳ.reshape(-1), sources(shape, pad_width, mode), (math.prod(shape),), ȳ.dtype)
        return np.reshape(ā, shape), NoTangent(), NoTangent()

    return with_entries(array, pad_width, mode), with_entries_pullback


def sources(shape: tuple[int, ...], pad_width: Any, mode: Any) -> np.ndarray:
    """Which entries of an array stand in the padded one, by their numbers."""
    return np.pad(np.arange(math.prod(shape)).reshape(shape), pad_width, mode).ravel()


non_differentiable(sources)


@transfers(sources)
def _(s: Any, call: Any, args: Any) -> Any:
    return Known(np.ndarray, (np.dtype(int).str, 1, None))


type_stable(np.pad, with_number, with_entries)


@transfers(np.pad, with_number, with_entries)
def _(s: Any, call: Any, args: Any) -> Any:
    """An array like the given one, of which constants say how large it is."""
    if len(args) < 2 or not is_array(args[0]):
        return None
    given = args[0].detail
    width = None if call.keywords else constant_value(args[1])
    if width is None:
        return Known(np.ndarray, (*given[:2], None))
    if not are_widths(width, given[1]):
        return None
    extents: Any = whole_shape(given)
    if extents is not None:
        pairs = zip(extents, widths_of(width, given[1]), strict=True)
        extents = tuple([n + b + a for n, (b, a) in pairs])
    return Known(np.ndarray, (*given[:2], extents))


def are_widths(x: Any, ndim: int) -> bool:
    """Are these widths that NumPy takes for an array with so many axes?"""
    try:
        widths = np.asarray(x)
    except ValueError:
        return False
    fits = np.shape(widths) in ((), (1,), (2,), (1, 1), (1, 2), (ndim, 1), (ndim, 2))
    return fits and widths.dtype.kind == "i" and bool(np.all(widths >= 0))


def constant_value(k: Any) -> Any:
    """The value of a constant, or of a tuple of constants; None: it is not known."""
    if type(k) is Const:
        return k.value
    items = (k.detail or ()) if getattr(k, "type", None) is tuple else ()
    found = tuple(map(constant_value, items))
    return None if None in found or not found else found


@folds(inside_of)
def _(f: Any, call: Any) -> Any:
    """That is constant, if the widths and the shape are."""
    width, shape = (getattr(x, "value", None) for x in call.args)
    if width is None or shape is None or not are_widths(width, len(shape)):
        return None
    return f.const(inside_of(width, shape))


@rewrites
def _(s: Any) -> bool:
    """In programs, calls of `np.pad` are calls of these."""
    return any([spell_padding(s, c) for c in s.ir.calls() if c.primitive is np.pad])


def spell_padding(s: Any, call: Any) -> bool:
    """The same for one call, if it is known to be of such a kind."""
    n = len(call.args) - len(call.keywords)
    given = dict(zip(("array", "pad_width", "mode"), call.args[:n], strict=False))
    given.update(zip(call.keywords, call.args[n:], strict=True))
    array, width = given.pop("array", None), given.pop("pad_width", None)
    mode = getattr(given.pop("mode", Const("constant")), "value", None)
    number = given.pop("constant_values", Const(0)) if mode == "constant" else Const(mode)
    if given or array is None or width is None or not is_array(s.value(array)):
        return False
    if mode == "constant" and is_one_number(s.value(number)):
        call.fn = Const(with_number)
    elif mode in REPEATING:
        call.fn = Const(with_entries)
    else:
        return False
    width = Const(found) if (found := constant_in(s, width, call)) is not None else width
    call.args, call.keywords = (array, width, number), ()
    return True


def is_one_number(k: Any) -> bool:
    """Is it known for a number?"""
    kind = type(k.value) if type(k) is Const else getattr(k, "type", None)
    return kind is not None and issubclass(kind, float | int | np.generic)


def constant_in(s: Any, x: Any, reader: Any) -> Any:
    """What a tuple or list of constants holds that nothing but one call reads, as a tuple."""
    if type(x) is Const:
        return x.value
    calls = list(s.ir.calls())
    made = next((c for c in calls if c.out is x), None)
    if made is None or made.primitive not in (primitives.build_list, primitives.build_tuple):
        return None
    passed = any(a is x for _, a in s.ir.passed())
    if passed or any(x in c.operands() for c in calls if c is not reader):
        return None
    items = [constant_in(s, a, made) for a in made.args]
    return None if None in items else tuple(items)


# -- all kinds -------------------------------------------------------------------------------------


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
    if mode == "constant" and np.ndim(constant_values) == 0:
        y, back = call(with_number, array, pad_width, constant_values)

        def pad_pullback(ȳ):
            _, ā, _, number_bar = back(ȳ)
            return ā, NoTangent(), NoTangent(), number_bar

        return y, pad_pullback

    if mode in REPEATING and reflect_type == "even":
        y, back = call(with_entries, array, pad_width, mode)

        def repeating_pullback(ȳ):
            return back(ȳ)[1], NoTangent(), NoTangent()

        return y, repeating_pullback
    keywords = keywords_of(mode, constant_values, end_values, stat_length, reflect_type)
    y = np.pad(array, pad_width, mode, **keywords)
    widths = widths_of(pad_width, array.ndim)
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
