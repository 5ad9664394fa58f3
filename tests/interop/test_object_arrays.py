"""Arrays whose entries are objects, lists, tuples or arrays."""

import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from morula import UnsupportedError, grad, hvp, jvp, value_and_grad
from morula.core import compiled
from morula.interop import object_arrays
from morula.testing import check_gradient


class Length:
    """A number with a unit, which knows nothing of NumPy."""

    def __init__(self, metres):
        self.metres = metres

    def __add__(self, other):
        return Length(self.metres + (other.metres if isinstance(other, Length) else other))

    __radd__ = __add__

    def __mul__(self, other):
        return Length(self.metres * (other.metres if isinstance(other, Length) else other))

    __rmul__ = __mul__

    def __sub__(self, other):
        return Length(self.metres - other.metres)

    def __truediv__(self, n):
        return Length(self.metres / n)

    def __neg__(self):
        return Length(-self.metres)

    def __abs__(self):
        return Length(abs(self.metres))

    def __pow__(self, n):
        return Length(self.metres**n)

    def __ge__(self, other):
        return self.metres >= other.metres

    def __le__(self, other):
        return self.metres <= other.metres

    def sin(self):
        return Length(np.sin(self.metres))


def array_of(kind, x):
    v = np.empty(2, dtype=object)
    if kind == "array":
        v[0], v[1] = np.array([x, 2.0 * x]), np.array([x * x, 1.0])
    elif kind == "object":
        v[0], v[1] = Length(x), Length(x * x)
    elif kind == "list":
        v[0], v[1] = [x, 2.0 * x], [x * x]
    else:
        v[0], v[1] = (x, 2.0 * x), (x * x,)
    return v


def total(r):
    """The sum of all numbers, the later ones with greater weights."""
    if isinstance(r, Length):
        return r.metres
    if isinstance(r, (np.ndarray, list, tuple)):
        whole = 0.0
        for i, item in enumerate(r):
            whole = whole + total(item) * (i + 1.0)
        return whole
    return r


def in_place(v, w):
    v += w
    return v


def filled(v):
    w = np.empty(3, dtype=object)
    w[:2] = v
    w[2] = v[0]
    return w


def changed(v):
    w = v.copy()
    np.add.at(w, [0, 0], v[1])
    return w


ALL = ("array", "object", "list", "tuple")
SUMS = {
    "v + v": lambda v: v + v,
    "v * 2": lambda v: v * 2,
    "2 * v": lambda v: 2 * v,
    "v += v": lambda v: in_place(v, v),
    "operator.add": lambda v: operator.add(v, v),
    "np.add": lambda v: np.add(v, v),
    "out=": lambda v: np.add(v, v, out=np.empty(2, dtype=object)),
    "v.sum()": lambda v: v.sum(),
    "np.sum": lambda v: np.sum(v.reshape(2, 1), axis=0, keepdims=True),
    "sum": lambda v: sum(v[1:], v[0]),
    "np.add.reduce": lambda v: np.add.reduce(v),
    "np.add.accumulate": lambda v: np.add.accumulate(v),
    "np.cumsum": lambda v: np.cumsum(v),
}
PRODUCTS = {
    "np.add.at": changed,
    "v @ w": lambda v: v @ np.array([1.0, 2.0]),
    "matrix @ v": lambda v: np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]) @ v,
    "np.dot": lambda v: np.dot(v, v),
    "np.inner": lambda v: np.inner(v, v),
    "np.outer": lambda v: np.outer(v, np.array([1.0, 2.0])),
    "np.multiply.outer": lambda v: np.multiply.outer(v, np.array([1.0, 2.0])),
    "np.prod": lambda v: np.prod(v),
    "np.cumprod": lambda v: np.cumprod(v),
    "v.mean()": lambda v: v.mean(),
    "-v": lambda v: -v,
    "np.negative": lambda v: np.negative(v),
    "abs(v)": lambda v: abs(v),
    "v ** 2": lambda v: v**2,
    "np.square": lambda v: np.square(v),
    "np.diff": lambda v: np.diff(v),
    "v + entry": lambda v: v + v[0],
}
OF_LENGTHS = {
    "np.sin": lambda v: np.sin(v),
    "np.maximum": lambda v: np.maximum(v, v[0]),
    "v.max()": lambda v: v.max(),
    "np.min": lambda v: np.min(v),
    "np.float64 * v": lambda v: np.float64(2.0) * v,
    "np.float64 * entry": lambda v: np.float64(2.0) * v[1],
    "array * entry": lambda v: np.array([1.0, 2.0]) * v[1],
    "np.add of entries": lambda v: np.add(v[0], v[1]),
    "np.sin of an entry": lambda v: np.sin(v[1]),
    "np.sum of a list": lambda v: np.sum([v[0], v[1]]),
    "np.dot of lists": lambda v: np.dot([v[0], v[1]], [1.0, 2.0]),
    "np.array of a list": lambda v: np.array([v[1], v[0]]) * 3.0,
    "np.vectorize": lambda v: np.vectorize(lambda entry: entry * 3.0)(v),
    "np.vectorize(otypes)": lambda v: np.vectorize(lambda e: e * 3.0, otypes=[object])(v),
    "np.diag": lambda v: np.diag(np.diag(v)),
}
MOVED = {
    "v[0]": lambda v: v[0],
    "v[::-1]": lambda v: v[::-1],
    "v[[1, 0, 1]]": lambda v: v[[1, 0, 1]],
    "v[mask]": lambda v: v[np.array([False, True])],
    "v.reshape": lambda v: v.reshape(2, 1).T,
    "np.concatenate": lambda v: np.concatenate([v, v[::-1]]),
    "np.stack": lambda v: np.stack([v, v], axis=1),
    "np.append": lambda v: np.append(v, v),
    "np.where": lambda v: np.where(np.array([False, True]), v, v[::-1]),
    "np.take": lambda v: np.take(v, [0, 0]),
    "np.tile": lambda v: np.tile(v, 2),
    "np.repeat": lambda v: np.repeat(v, 2),
    "np.broadcast_to": lambda v: np.broadcast_to(v, (2, 2)),
    "v.copy()": lambda v: v.copy(),
    "v.tolist()": lambda v: v.tolist(),
    "v.item": lambda v: v.item(1),
    "list(v)": lambda v: [entry for entry in v],
    "v.flat": lambda v: [entry for entry in v.flat],
    "w[:2] = v": filled,
}
CASES = [
    *[(name, kind) for name in MOVED for kind in ALL],
    *[(name, kind) for name in SUMS for kind in ("array", "object", "list", "tuple")],
    *[(name, kind) for name in PRODUCTS for kind in ("array", "object")],
    *[(name, "object") for name in OF_LENGTHS],
]


# -- decimals and fractions ------------------------------------------------------------------------


def written_as_list(t, x, v):
    v[:] = [t(x), t(x) * t(x)]
    return v[0] * v[1]


def written_as_one(t, x, v):
    v[:] = t(x)
    return v[0] * v[1]


def written_entry_by_entry(t, x, v):
    v[0] = t(x)
    v[1] /= v[0]
    w = v.copy()
    w[0] += v[1] * v[1]
    return w[0] * w[1]


def written_over(t, x, v):
    np.multiply(v, t(x), out=v)
    np.copyto(v[:1], [v[1] * v[1]])
    return v[0] * v[1]


def filled_with_one(t, x, v):
    v.fill(t(x) * v[0])
    v *= t(x)
    return v[0] * v[1]


EXACT = {
    "entries": lambda t, x, v: np.array([t(x), t(x) * t(x)]) @ np.array([t(x), t(2)]),
    "rows": lambda t, x, v: (lambda a: a[0][1] * a[1][1])(np.array([[t(1), t(x)], [t(x), t(x)]])),
    "np.sum": lambda t, x, v: np.sum(np.array([t(x), t(x) * t(x)]) ** 2),
    "np.mean of a list": lambda t, x, v: np.mean([t(x), t(x) * t(x)]) ** 2,
    "np.prod": lambda t, x, v: np.array([t(x), t(x)]).prod() * max(np.array([t(x), t(1)])),
    "v.tolist()": lambda t, x, v: sum(np.array([t(x), t(x)]).tolist()) ** 2,
    "floats": lambda t, x, v: (np.array([t(x), t(x)], dtype=float) ** 2).sum(),
    "astype": lambda t, x, v: np.linalg.norm(np.array([t(x), t(2)]).astype(float)),
    "np.sort": lambda t, x, v: np.sort(np.array([t(x), t(1) / t(x)]))[1] ** 3,
    "np.where": lambda t, x, v: np.where([True, False], np.array([t(x)] * 2) ** 2, v).sum() * t(x),
    "v[:] = list": written_as_list,
    "v[:] = number": written_as_one,
    "v[i] = number": written_entry_by_entry,
    "out=": written_over,
    "v.fill": filled_with_one,
}


@pytest.mark.parametrize("t", [Decimal, Fraction])
@pytest.mark.parametrize("name", EXACT)
def test_decimals_and_fractions_in_arrays(name, t):
    def f(x):
        return float(EXACT[name](t, x, np.array([t(2), t(3)])))

    x, h = 1.25, 1e-4
    slope = (f(x + h) - f(x - h)) / (2 * h)
    second = (f(x + h) - 2 * f(x) + f(x - h)) / h**2
    value, found = value_and_grad(f)(x)
    assert value == f(x)
    assert found == pytest.approx(slope, rel=1e-6)
    with compiled.by_the_general_path():
        assert grad(f)(x) == pytest.approx(slope, rel=1e-6)
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-6)
    assert hvp(f, x, 1.0) == pytest.approx(second, rel=1e-5)


def test_functions_of_decimals_of_which_nothing_is_said_are_refused():
    def f(t, x):
        return float(np.median(np.array([t(x), t(x) * t(x), t(0)]))) ** 2

    assert grad(lambda x: f(Fraction, x))(1.25) == 2.5
    with pytest.raises(UnsupportedError, match="median of an array whose entries are objects"):
        grad(lambda x: f(Decimal, x))(1.25)


# -- all of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_what_numpy_does_with_entries(name, kind):
    does = {**SUMS, **PRODUCTS, **OF_LENGTHS, **MOVED}[name]

    def f(x):
        return total(does(array_of(kind, x)))

    x, h = 1.3, 1e-5
    slope = (f(x + h) - f(x - h)) / (2 * h)
    value, found = value_and_grad(f)(x)
    assert value == f(x)
    assert found == pytest.approx(slope, rel=1e-7)
    with compiled.by_the_general_path():
        assert grad(f)(x) == pytest.approx(slope, rel=1e-7)
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("kind", ["array", "object"])
def test_second_derivatives(kind):
    def f(x):
        v = array_of(kind, x)
        return total((v * v).sum() + v @ np.array([1.0, 2.0]))

    h = 1e-4
    second = (f(1.3 + h) - 2 * f(1.3) + f(1.3 - h)) / h**2
    assert hvp(f, 1.3, 1.0) == pytest.approx(second, rel=1e-5)


@pytest.mark.parametrize("kind", ["array", "object"])
def test_entries_by_the_arguments(kind):
    check_gradient(lambda x, y: total(array_of(kind, x) * y), 1.3, 0.7)


def test_a_function_of_which_nothing_is_said_is_refused():
    def f(x):
        return total(np.convolve(array_of("object", x), np.array([1.0, 2.0])))

    for derivative in (grad(f), lambda x: jvp(f, (x,), (1.0,))):
        with pytest.raises(
            UnsupportedError, match="convolve of an array whose entries are objects"
        ):
            derivative(1.3)


def test_reductions_with_settings_that_are_not_followed_are_refused():
    def f(x):
        return total(array_of("object", x).sum(where=np.array([True, False]), initial=Length(0.0)))

    with pytest.raises(UnsupportedError, match="where="):
        grad(f)(1.3)


def test_numpys_errors_stay():
    def f(x):
        return total(np.dot(array_of("object", x), np.array([1.0, 2.0, 3.0])))

    with pytest.raises(ValueError, match="do not match"):
        grad(f)(1.3)


def test_no_entries():
    def f(x):
        return np.sum(np.array([Length(x)])[:0]) + x

    assert grad(f)(1.3) == 1.0
    assert f(1.3) == value_and_grad(f)(1.3)[0]


def test_comparisons_are_constant():
    def f(x):
        v = array_of("object", x)
        return total(v[v >= np.array([Length(1.5), Length(1.5)])]) * x

    assert grad(f)(1.3) == pytest.approx(3 * 1.3**2)


def test_an_operator_that_the_class_asks_for_is_its_own():
    class Own(Length):
        __array_ufunc__ = None

        def __rmul__(self, other):
            return other.sum() * self.metres

    assert grad(lambda x: np.array([1.0, 2.0]) * Own(x * x))(1.5) == pytest.approx(9.0)


def test_arrays_of_numbers_go_by_the_rules_of_other_arrays():
    assert object_arrays.claims(np.add, (np.array([1.0, 2], object), 1.0)) is None
    assert grad(lambda x: np.sum(np.array([x, 2 * x], object) * 3.0))(1.0) == 9.0
