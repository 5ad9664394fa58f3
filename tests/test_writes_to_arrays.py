"""Every way to write to an array, as it was given, copied and viewed, by every dtype, in both modes.

Of each write is asked what tests/mutation.py asks: value, gradient, final state, pullbacks again.
"""

import copy
import operator

import numpy as np
import pytest
import scipy.linalg

from morula import gradient, jvp
from tests.mutation import check_mutation, direction, leaves, with_leaves

X = np.array([[0.7, -1.3, 0.4, 1.9], [1.1, 0.6, -0.8, 0.3], [-0.5, 1.7, 0.9, -1.2]])
V = np.array([[0.9, 0.2, -1.1, 0.5], [1.4, -0.65, 0.85, 1.3], [0.7, 1.2, -0.4, 1.6]])
MASK = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 0, 0]], bool)
ROWS, COLUMNS = np.array([2, 0, 2]), np.array([1, 1, 3])
INDICES = {
    "an entry": (1, -2),
    "a row": 1,
    "a column": (slice(None), 2),
    "steps": (slice(None, None, 2), slice(None, None, -1)),
    "dots": (..., 0),
    "a new axis": (None, 1),
    "all": ...,
    "a mask": MASK,
    "a mask of rows": np.array([True, False, True]),
    "rows": np.array([2, 0]),
    "a list": [0, 2],
    "pairs": (ROWS, COLUMNS),
    "rows and a slice": (np.array([2, 0]), slice(1, 3)),
    "an integer of NumPy's": np.int64(2),
    "a grid": np.ix_([0, 2], [1, 3]),
    "nothing": slice(2, 2),
}


def set_at(index):
    def write(x, v):
        x[index] = v[index] * x[index]

    return write


def add_to(index):
    def write(x, v):
        x[index] += v[index] * x[0, 0]

    return write


def in_place(op):
    def write(x, v):
        v = v[:, :3] if op is operator.imatmul else v
        y = x[:, :3] if op is operator.imatmul else x
        y = op(y, v * v if op is operator.ipow else v)

    return write


def to_out(fn):
    def write(x, v):
        fn(x, v, out=x)

    return write


def at(ufunc):
    def write(x, v):
        ufunc.at(x, (ROWS, COLUMNS), v[0, :3])

    return write


def unbuffered(x, v):
    with np.nditer([x, v], op_flags=[["readwrite"], ["readonly"]]) as entries:
        for a, b in entries:
            a[...] = a * b


def enumerated(x, v):
    for place, entry in np.ndenumerate(v):
        x[place] *= entry


def rows(x, v):
    for i, row in enumerate(x):
        row *= v[i]
        row[0] = row[1] + v[i, 2]


def by_flat(x, v):
    x.flat[::2] = v.flat[::2] * v[0, 0]
    x.flat[[1, 3]] = v[0, :2]


def by_a_transpose(x, v):
    x.T[1] = v.T[0] * x.T[1]


def by_a_shape(x, v):
    x.shape = (4, 3)
    x[0] = v[0, :3]
    x.shape = (3, 4)


def by_reshaped_views(x, v):
    x.reshape(-1)[::3] *= v.ravel()[::3]
    x.swapaxes(0, 1)[1:, 0] -= v[0, 1:]


def overlapping_parts(x, v):
    x[1:] += x[:-1] * v[1:]
    x[:, :-1] = x[:, 1:]
    x[:] = x[::-1]


def by_a_memoryview(x, v):
    np.asarray(memoryview(x))[1] = v[1] * x[0]


def by_a_callee(x, v):
    def scale(y, factor):
        y *= factor
        return y

    y = scale(x[0], v[0])
    scale(y[1:], v[1, 1:])


def by_other_names(x, v):
    held = {"x": x, "rows": [x[0], x[1:]]}
    held["rows"][0] *= v[0]
    held["rows"][1][0, :] = held["x"][0] * v[1]
    y = x
    y[2, 0] = v[2, 0]


def over_a_solution(x, v):
    x[:, 0] = scipy.linalg.solve(v[:, :3] @ v[:, :3].T + 3 * np.eye(3), x[:, 0], overwrite_b=True)


def selected_where(x, v):
    np.multiply(x, v, out=x, where=MASK)
    np.add(x, v, out=x[::-1], where=~MASK)


def sums_to_out(x, v):
    np.sum(v, axis=0, out=x[0])
    np.dot(v[:, :3], x[:, 0], out=x[:, 1].copy())
    np.matmul(v[:3, :3], x[:, 1:], out=x[:, :3])
    np.cumsum(v[1], out=x[1])


WRITES = {
    **{f"x[{name}] = v": set_at(index) for name, index in INDICES.items()},
    **{f"x[{name}] += v": add_to(index) for name, index in INDICES.items()},
    **{
        f.__name__: in_place(f)
        for f in (operator.iadd, operator.isub, operator.imul, operator.itruediv)
    },
    "imatmul": in_place(operator.imatmul),
    "x **= 3": lambda x, v: operator.ipow(x, 3),
    **{
        f"{f.__name__} to out": to_out(f)
        for f in (np.add, np.subtract, np.multiply, np.divide)
    },
    **{f"{f.__name__}.at": at(f) for f in (np.add, np.subtract, np.multiply, np.divide)},
    "exp to out": lambda x, v: np.exp(x, out=x),
    "copyto": lambda x, v: np.copyto(x, v * v),
    "copyto where": lambda x, v: np.copyto(x, v * v, where=MASK),
    "put": lambda x, v: np.put(x, [3, 1, 3], v[0, :3]),
    "place": lambda x, v: np.place(x, MASK, v[0]),
    "putmask": lambda x, v: np.putmask(x, MASK, v[::-1]),
    "put_along_axis": lambda x, v: np.put_along_axis(x, ROWS[:, None], v[:, :1], 1),
    "fill_diagonal": lambda x, v: np.fill_diagonal(x, v[0, :3]),
    "fill": lambda x, v: x[1].fill(v[0, 0]),
    "resize": lambda x, v: (x.resize((12,), refcheck=False), operator.imul(x[:4], v[0])),
    "real": lambda x, v: setattr(x, "real", v.real * 2),
    "swap of rows": lambda x, v: operator.setitem(x, [0, 1], x[[1, 0]] * v[:2]),
    "swap of entries": lambda x, v: operator.setitem(x, (0, slice(None)), (v[0, 0], *x[0, :3])),
    **{
        f.__name__: f
        for f in (
            unbuffered, enumerated, rows, by_flat, by_a_transpose, by_a_shape, by_reshaped_views,
            overlapping_parts, by_a_memoryview, by_a_callee, by_other_names, over_a_solution,
            selected_where, sums_to_out,
        )
    },
}  # fmt: skip
OF_REAL_NUMBERS = {
    "sort": lambda x, v: x.sort(),
    "sort along an axis": lambda x, v: x.sort(axis=0),
    "partition": lambda x, v: x.partition(1),
    "maximum to out": to_out(np.maximum),
    "maximum.at": at(np.maximum),
    "minimum.at": at(np.minimum),
    "x %= v": lambda x, v: operator.imod(x, v),
    "clip to out": lambda x, v: operator.imul(np.clip(x, -0.6, v, out=x), 0.9),
    "x **= v": lambda x, v: operator.ipow(operator.imul(x, x), v),
}


def on_the_argument(write, x, v):
    kept = x * 2  # a pullback that has what x held
    write(x, v)
    return np.sum(np.abs(x) ** 2) + np.sum((kept.ravel() * x.ravel()).real)


def on_a_copy(write, x, v):
    y = x.copy()
    write(y, v)
    return np.sum(np.abs(y) ** 2) + np.sum((y.ravel() * x.ravel()).real)


def on_a_new_array(write, x, v):
    y = np.zeros((3, 4), x.dtype)
    y[:] = x * x
    write(y, v)
    z = y * v.reshape(y.shape)
    write(y, v)
    return np.sum(np.abs(y) ** 2) + np.sum((z.ravel() * y.ravel()).real)


ON = (on_the_argument, on_a_copy, on_a_new_array)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("name", [*WRITES, *OF_REAL_NUMBERS])
def test_writes(name, on, path):
    write = {**WRITES, **OF_REAL_NUMBERS}[name]
    check_mutation(lambda x, v: on(write, x, v), X.copy(), V.copy(), rtol=1e-5)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("name", WRITES)
def test_writes_of_complex_numbers(name, on):
    z, w = X + 0.3j * X[::-1] + 0.1, V - 0.2j * V[:, ::-1]
    check_mutation(lambda x, v: on(WRITES[name], x, v), z, w, rtol=1e-5)


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("name", [*WRITES, *OF_REAL_NUMBERS])
def test_in_single_precision_and_in_forward_mode(name, on):
    write = {**WRITES, **OF_REAL_NUMBERS}[name]

    def f(x, v):
        return on(write, x, v)

    gradients = [gradient(f, X.copy(), V.copy()) for _ in range(3)]
    single = gradient(f, X.astype("f4"), V.astype("f4"))
    assert all(x̄.dtype == np.float32 for x̄ in single)
    for x̄, again, s̄ in zip(gradients[0], gradients[2], single, strict=True):
        np.testing.assert_allclose(again, x̄, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(s̄, x̄, rtol=1e-2, atol=1e-3)
    args = (X.copy(), V.copy())
    dots = with_leaves(args, iter([direction(np.random.default_rng(2), x) for x in leaves(args)]))
    y, ẏ = jvp(f, args, dots)
    plain = copy.deepcopy((X, V))
    assert y == f(*plain)
    assert all(np.array_equal(a, b) for a, b in zip(args, plain, strict=True))
    expected = sum(float(np.sum(x̄ * d)) for x̄, d in zip(gradients[0], dots, strict=True))
    assert ẏ == pytest.approx(expected, rel=1e-8, abs=1e-9)
