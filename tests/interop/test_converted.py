"""Objects of which NumPy's functions, or those of math, make arrays or numbers."""

import cmath
import math
import operator

import numpy as np
import pytest
import scipy.linalg

from morula import gradient, jvp, withgradient
from morula.interop.converted import may_convert
from tests.modes import check_modes


class Wrapped:
    """An object that is an array to NumPy, and says how often it was asked for it."""

    def __init__(self, v):
        self.v = np.asarray(v, float)
        self.asked = 0

    def __array__(self, dtype=None, copy=None):
        self.asked += 1
        return np.array(self.v * self.v, dtype=dtype)

    def __sub__(self, other):
        return 10.0 * np.sum(self.v - other)


class Vector:
    """A sequence of its own kind."""

    def __init__(self, *entries):
        self.entries = entries

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, i):
        return self.entries[i]

    def __radd__(self, other):
        raise AssertionError("NumPy answers for its arrays")

    def sum(self, axis=None, out=None):
        return 100.0 * self.entries[0]


class Measured:
    """A number, where one is asked for."""

    def __init__(self, v):
        self.v = v

    def __float__(self):
        return float(self.v * self.v)


class Phasor:
    """A complex number, where one is asked for."""

    def __init__(self, r):
        self.r = r

    def __complex__(self):
        return complex(self.r, 2.0 * self.r)


class Ahead:
    """An object that NumPy leaves the operators to."""

    __array_priority__ = 10.0

    def __init__(self, v):
        self.v = v

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.v, dtype=dtype)

    def __rmul__(self, other):
        return 7.0 * np.sum(other * self.v)


class Listed:
    """A mapping, which has items and a length and is no sequence."""

    def __init__(self, v):
        self.v = v

    def __len__(self):
        return 1

    def __getitem__(self, name):
        if name != "v":
            raise KeyError(name)
        return self.v


def pair(x):
    return np.array([x, 2.0 * x])


def stored(x):
    out = np.zeros((3, 2))
    out[0] = Wrapped(pair(x))
    out[1, 0] = Measured(x)
    out[2] = Vector(x, Measured(3.0 * x))
    operator.setitem(out, (1, 1), Measured(2.0 * x))
    return (out * [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).sum()


def objects(x):
    made = np.empty((1, 2), object)
    made[0, 0], made[0, 1] = Measured(x), Measured(2.0 * x)
    return made


def entries_stored(x):
    out = np.zeros((1, 3))
    out[:, 1:] = objects(x)
    return out.sum() * x


def filled(x):
    out = np.zeros(2)
    out.fill(Measured(x))
    return out.sum()


def in_place(x):
    out = pair(x)
    out += Wrapped(pair(x))
    out *= Vector(x, 2.0)
    return out.sum()


PROGRAMS = {
    "asarray": lambda x: np.asarray(Wrapped(pair(x))).sum(),
    "array": lambda x: np.array(Wrapped(pair(x)), dtype=float)[1],
    "array in an order": lambda x: np.array(Wrapped(pair(x)), order="C").sum(),
    "array with a flag": lambda x: np.array(Wrapped(pair(x)), copy=True, ndmin=2)[0, 1],
    "array of no class": lambda x: np.array(Wrapped(pair(x)), subok=False)[1],
    "nested": lambda x: np.array([Wrapped(pair(x)), pair(x)])[:, 1].prod(),
    "tuple": lambda x: np.concatenate((Wrapped(pair(x)), Vector(x, x))).prod(),
    "ufunc": lambda x: np.sin(Wrapped(pair(x))).sum(),
    "ufunc out": lambda x: np.multiply(Wrapped(pair(x)), x, out=np.zeros(2)).sum(),
    "method of a ufunc": lambda x: np.multiply.outer(Wrapped(pair(x)), Vector(x, 3.0)).sum(),
    "operator": lambda x: (pair(x) * Wrapped(pair(x))).sum(),
    "scalar": lambda x: (np.float64(2.0) * Wrapped(pair(x)) * np.sin(x)).sum(),
    "reflected": lambda x: (Wrapped(pair(x)) / pair(x)).sum(),
    "operator of its own": lambda x: Wrapped(pair(x)) - pair(x) * x,
    "left to it": lambda x: pair(x) * Ahead(pair(x)),
    "sequence": lambda x: (pair(x) + Vector(x, x**2)).prod(),
    "matmul": lambda x: pair(x) @ Wrapped(pair(x)),
    "method": lambda x: pair(x).dot(Wrapped(pair(x))),
    "dot": lambda x: np.dot(Vector(x, 2.0), Wrapped(pair(x))),
    "keyword": lambda x: np.clip(pair(x), a_min=Wrapped(pair(0.5 * x)), a_max=5.0).sum(),
    "sum": lambda x: np.sum(Wrapped(pair(x))),
    "max": lambda x: np.max(Wrapped(pair(x))),
    "sum of its own": lambda x: np.sum(Vector(x, 2.0)),
    "norm": lambda x: np.linalg.norm(Wrapped(pair(x))),
    "solve": lambda x: scipy.linalg.solve(Wrapped(np.eye(2) + x), Vector(x, 1.0))[0],
    "interp": lambda x: np.interp(0.3 * x, Vector(0.0, 1.0), Wrapped(pair(x))),
    "math": lambda x: math.sin(Measured(x)) * math.hypot(Measured(x), 3.0),
    "fsum": lambda x: math.fsum([Measured(x), 1.0, Measured(2.0 * x)]),
    "cmath": lambda x: cmath.exp(Phasor(x)).real * abs(cmath.sqrt(Measured(x))),
    "number": lambda x: np.asarray(Measured(x), dtype=float) * x,
    "numbers": lambda x: np.array([[Measured(x), 1.0], [x, Measured(x)]], dtype=float).prod(),
    "complex numbers": lambda x: abs(np.array([Phasor(x), 1.0j], dtype=complex).prod()),
    "entries": lambda x: np.asarray(objects(x), dtype=float).prod(),
    "entries of another type": lambda x: objects(x).astype(float).prod(),
    "entries stored": entries_stored,
    "stored": stored,
    "filled": filled,
    "in place": in_place,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_made_of_it_has_the_derivative(name):
    check_modes(PROGRAMS[name], 0.7)


def test_it_is_asked_as_often_as_in_the_plain_call():
    met = []

    def f(x):
        w = Wrapped(x)
        met.append(w)
        return np.sum(np.exp(w)) + np.asarray(w, dtype=float).sum()

    x = np.array([0.3, 0.4])
    f(x)
    value, (slope,) = withgradient(f, x)
    assert value == f(x)
    assert [w.asked for w in met] == [2, 2, 2]
    np.testing.assert_allclose(slope, 2 * x * np.exp(x * x) + 2 * x)


def test_arguments_have_a_tangent_of_their_own_class():
    w, v = Wrapped([0.3, 0.4]), Vector(0.5, 0.6)
    w̄, v̄ = gradient(lambda w, v: np.dot(w, v), w, v)
    np.testing.assert_allclose(w̄.v, [2 * 0.3 * 0.5, 2 * 0.4 * 0.6])
    np.testing.assert_allclose(v̄.entries, [0.09, 0.16])


def test_float32_is_kept():
    class Single:
        def __init__(self, v):
            self.v = v

        def __array__(self, dtype=None, copy=None):
            return self.v

    x = np.array([0.5, 2.0], np.float32)
    value, (slope,) = withgradient(lambda x: np.sum(np.exp(Single(x))), x)
    assert value.dtype == slope.dtype == np.float32


def test_empty_ones():
    slope = gradient(
        lambda x: np.sum(np.sin(Wrapped(x))) + np.sum(np.array(Vector(*x))), np.ones(0)
    )
    assert slope[0].shape == (0,)


def test_what_numpy_refuses_is_refused_in_its_words():
    class Wrong:
        def __init__(self, v):
            self.v = v

        def __array__(self, dtype=None, copy=None):
            return [self.v]

    for f in (lambda x: np.sin(Wrong(x)), lambda x: math.sin(Vector(x, x))):
        with pytest.raises((TypeError, ValueError)) as plain:
            f(1.0)
        with pytest.raises(plain.type):
            gradient(f, 1.0)
        with pytest.raises(plain.type):
            jvp(f, (1.0,), (1.0,))


@pytest.mark.parametrize("make", [np.array, np.asarray, np.asanyarray])
def test_what_makes_arrays_takes_its_keywords_in_any_order(path, make):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    weights = np.array([[0.5, -1.0], [2.0, 0.25]])
    (g,) = gradient(lambda x: np.sum(weights * make(x, order="C", dtype=float)), x)
    np.testing.assert_array_equal(g, weights)
    (g,) = gradient(lambda x: np.sum(weights * make(x, order=None, dtype=None)), x)
    np.testing.assert_array_equal(g, weights)
    assert gradient(lambda v: make([Measured(v), 1.0], order="C", dtype=float)[0], 2.0) == (4.0,)


def test_mappings_are_no_sequences():
    f = lambda x: np.array(Listed(x), dtype=object).item()["v"] * 3.0
    assert f(2.0) == 6.0
    assert gradient(f, 2.0) == (3.0,)


@pytest.mark.parametrize(
    "options",
    [{"ndmin": 1}, {"copy": None, "ndmin": 2}, {"order": "C"}, {"order": "F", "dtype": "f8"}],
)
def test_other_settings_of_arrays_are_no_dtypes(options):
    check_modes(lambda x: np.array([Wrapped(pair(x)), pair(x)], **options).prod(), 0.7)


def test_objects_whose_dict_was_asked_for():
    """Their attributes stand under its identity from then on."""

    def f(x):
        w = Wrapped(x)
        vars(w)["scale"] = 1.0
        return np.sum(np.exp(w)) * w.scale

    x = np.array([0.3, 0.4])
    np.testing.assert_allclose(gradient(f, x)[0], 2 * x * np.exp(x * x))
    assert jvp(f, (x,), (np.ones(2),))[1] == pytest.approx(np.sum(2 * x * np.exp(x * x)))


def test_lists_are_looked_into_where_numpy_converts_only():
    """Appending to a list looks at no item of it."""
    many = [Measured(1.0)]
    assert not may_convert(list.append, (many, 1.0))
    assert not may_convert(len, (many,))
    assert may_convert(np.array, (many,))


class Length:
    """It can be multiplied and added, is a number to math, and has items."""

    def __init__(self, v):
        self.v = v

    def __float__(self):
        return float(self.v)

    def __mul__(self, other):
        return Length(self.v * getattr(other, "v", other))

    def __add__(self, other):
        return Length(self.v + getattr(other, "v", other))

    __rmul__, __radd__ = __mul__, __add__

    def __iter__(self):
        return iter([self.v, 2.0])


PRODUCTS = {
    "list": lambda x: math.prod([Length(x), Length(x * x)]),
    "tuple": lambda x: math.prod((2.0, Length(x), 3, Length(x))),
    "start": lambda x: math.prod([x, x * x], start=Length(x)),
    "generator": lambda x: math.prod(Length(x * i) for i in range(1, 4)),
    "items of an object": lambda x: Length(math.prod(Length(x)) * math.fsum(Length(x * x))),
    "numbers": lambda x: Length(math.prod((x, 2, x * x), start=x) * math.prod([], start=3)),
}
if hasattr(math, "sumprod"):
    PRODUCTS |= {
        "sum": lambda x: math.sumprod([Length(x), x], (x, Length(x * x))),
        "sum of numbers": lambda x: Length(math.sumprod([1e100, x, -1e100], (1.0, x * x, 1.0))),
    }


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_objects_are_by_their_operators(name):
    check_modes(lambda x: PRODUCTS[name](x).v * x, 1.3)
