"""Loops that compiled programs take apart, over numbers of all types: dtypes, values, both paths."""

import collections
import contextlib
import functools
import itertools

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path


def a_generator(x):
    def steps():
        for v in x:
            yield v * v
            yield v + 1

    s = 0
    for v in steps():
        s = s * 0.5 + v
    return s


def items_that_are_known(x):
    s = x[0]
    for a in (x[0], x[1], x[2]):
        s = s + a * a
    return s


def neighbours(x):
    s = x[0] * 0
    for a, b in zip(x, x[1:], strict=False):  # noqa: RUF007, a zip is what is tested
        s = s + a * b
    return s


def counted(x):
    s = 0
    for i, a in enumerate(x):
        s += i * a * a
    return s


def items_of_a_dict(x):
    d = {"a": x[0], "b": x[1]}
    for k in d:
        d[k] = d[k] * x[2]
    return d["a"] * d["b"]


def a_queue(x):
    waiting = [v * 2 for v in x]
    while len(waiting) > 1:
        waiting.append(waiting.pop(0) * waiting.pop(0))
    return waiting[0]


def a_buffer(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] * x[i - 1]
    return y.sum()


def a_narrow_buffer(x):
    y = np.zeros(len(x), np.complex64 if np.iscomplexobj(x) else np.float32)
    for i in range(len(x)):
        y[i] = x[i] * x[i - 1]
    return (y * y).sum()


def in_place(x):
    y = np.array(x)
    for _ in range(3):
        y *= x
        y += 1
    return y.sum()


def a_zero_of_the_same_type(x):
    s = np.asarray(x).dtype.type(0)
    for v in x:
        s = s + v * v
    return s


def accumulated(x):
    return list(itertools.accumulate(x, lambda a, b: a * b + 1))[-1]


def reduced(x):
    return functools.reduce(lambda a, b: a * b + a, x)


def branches(x):
    s = 0.0
    for v in x:
        s = s + v if abs(v) > 0.8 else s * v + 1
    return s


def rows(x):
    m, s = np.outer(x, x), 0
    for row in m:
        s = s + row @ x
    return s


def an_object(x):
    class State:
        def __init__(self, v):
            self.v = v

        def step(self, w):
            self.v = self.v * w + self.v

    state = State(x[0])
    for w in x[1:]:
        state.step(w)
    return state.v


def a_short_memory(x):
    d, s = collections.deque(x, maxlen=2), 0
    for v in x:
        d.append(v * s + 1)
        s = s + d[0] * d[1]
    return s


def two_in_turn(x):
    a, b = x[0], x[1]
    for _ in range(4):
        a, b = b, a * b + x[2]
    return a * b


REAL = np.array([0.7, -1.2, 0.9, 1.3])
COMPLEX = REAL + 1j * REAL[::-1]
INPUTS = {
    "half": REAL.astype(np.float16),
    "single": REAL.astype(np.float32),
    "double": REAL,
    "longer": REAL.astype(np.longdouble),
    "single complex": COMPLEX.astype(np.complex64),
    "double complex": COMPLEX,
    "list": REAL.tolist(),
    "list of single": list(REAL.astype(np.float32)),
    "list of mixed": [0.7, np.float32(-1.2), np.float64(0.9), 2],
    "list with complex": [0.7, 1 + 2j, np.float32(0.9), 2],
}
PROGRAMS = [
    a_generator, items_that_are_known, neighbours, counted, items_of_a_dict, a_queue, a_buffer,
    a_narrow_buffer, in_place, a_zero_of_the_same_type, accumulated, reduced, branches, rows,
    an_object, a_short_memory, two_in_turn,
]  # fmt: skip


def as_arrays(gradient):
    return [np.asarray(g) for g in gradient] if isinstance(gradient, list) else [gradient]


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_types_through_loops(program, kind):
    x = INPUTS[kind]
    if isinstance(x, list) and program in (a_buffer, in_place):
        x = np.array(x)

    def loss(x):
        y = program(x)
        return y.real if np.iscomplexobj(y) else y

    value = loss(x)
    found = []
    for path in (contextlib.nullcontext, by_the_general_path, contextlib.nullcontext):
        with path():
            y, (gradient,) = morula.withgradient(loss, x)
        assert type(y) is type(value)
        assert y == value
        found.append(as_arrays(gradient))
        if isinstance(x, np.ndarray):
            assert gradient.dtype == x.dtype
        else:
            assert [type(g) for g in gradient] == [
                type(v) if isinstance(v, (np.inexact, complex)) else float for v in x
            ]
    loose = {"half": 2e-2, "single": 1e-4, "single complex": 1e-4}
    tolerance = loose.get(kind, 1e-4 if kind.startswith("list") else 1e-12)
    if program is a_narrow_buffer:
        tolerance = max(tolerance, 1e-4)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    wide = np.array(x, np.complex128 if np.iscomplexobj(np.array(x)) else np.float64)
    expected = differences(loss, wide, 1e-3 if program is a_narrow_buffer else 1e-6)
    if isinstance(x, list):
        expected = [
            d if isinstance(v, complex) else d.real for v, d in zip(x, expected, strict=True)
        ]
    np.testing.assert_allclose(
        np.concatenate([np.ravel(a) for a in found[0]]).astype(wide.dtype),
        expected,
        rtol=2e-2 if kind == "half" else 2e-3,
        atol=2e-2 if kind == "half" else 2e-3,
    )


def differences(loss, x, h):
    """Central differences, by the real and the imaginary parts."""
    found = np.zeros_like(x)
    for i in range(len(x)):
        for unit in (1.0, 1j) if np.iscomplexobj(x) else (1.0,):
            step = np.zeros_like(x)
            step[i] = h * unit
            found[i] += unit * (float(loss(x + step)) - float(loss(x - step))) / (2 * h)
    return found


ITEMS = [1.0, 2.0]
OF_LOOPS = {
    "a list": lambda x, xs, d: xs,
    "a list from outside": lambda x, xs, d: ITEMS,
    "a dict": lambda x, xs, d: d,
    "its values": lambda x, xs, d: d.values(),
    "its items": lambda x, xs, d: d.items(),
    "zip": lambda x, xs, d: zip(xs, ITEMS, strict=True),
    "enumerate": lambda x, xs, d: enumerate(ITEMS),
    "reversed": lambda x, xs, d: reversed(xs),
    "a generator": lambda x, xs, d: (v * x for v in ITEMS),
    "a set": lambda x, xs, d: {*ITEMS},
    "an array": lambda x, xs, d: np.array(ITEMS),
}


def with_nothing(items, x):
    xs, d = [0.5, 1.5], {"a": x, "b": 2.0}
    for _ in items(x, xs, d):
        pass
    return list(reversed(xs))[0] * x + d["a"] * x  # noqa: RUF015


def with_a_count(items, x):
    xs, d, n = [0.5, 1.5], {"a": x, "b": 2.0}, 0
    for _ in items(x, xs, d):
        n += 1
    return list(reversed(xs))[0] * x + d["a"] * n  # noqa: RUF015


def with_a_break(items, x):
    xs, d = [0.5, 1.5], {"a": x, "b": 2.0}
    for _ in items(x, xs, d):
        break
    return list(reversed(xs))[0] * x + d["a"] * x  # noqa: RUF015


@pytest.mark.parametrize("items", OF_LOOPS.values(), ids=OF_LOOPS)
@pytest.mark.parametrize("loop", [with_nothing, with_a_count, with_a_break])
def test_bodies_that_do_not_read_their_item(loop, items):
    def f(x):
        return loop(items, x)

    value, slope = morula.value_and_grad(f)(1.2)
    assert value == f(1.2)
    assert slope == pytest.approx((f(1.2 + 1e-6) - f(1.2 - 1e-6)) / 2e-6)
