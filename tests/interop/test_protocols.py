"""Classes that say themselves what NumPy's functions do with their objects."""

import numpy as np
import pytest

from morula import (
    Tangent,
    grad,
    gradient,
    hessian,
    hvp,
    jacobian,
    jvp,
    ravel,
    value_and_grad,
)
from morula.core.errors import CotangentError
from morula.testing import check_gradient

try:
    import pint
except ImportError:
    pint = None

X = np.array([1.0, 2.0, 3.0])
unit = pint and pint.UnitRegistry()


class Boxed:
    """An array that answers to both protocols."""

    def __init__(self, v):
        self.v = v

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        if method != "__call__" or any(isinstance(x, str) for x in inputs):
            return NotImplemented
        if "out" in keywords:
            (out,) = keywords["out"]
            keywords["out"] = (out.v,)
        y = ufunc(*[x.v if isinstance(x, Boxed) else x for x in inputs], **keywords)
        return out if "out" in keywords else Boxed(y)

    def __array_function__(self, func, types, args, kwargs):
        if func is np.median:
            return NotImplemented
        assert Boxed in types

        def opened(x):
            if isinstance(x, list):
                return [opened(item) for item in x]
            return x.v if isinstance(x, Boxed) else x

        return Boxed(func(*map(opened, args), **kwargs))


class Doubled(Boxed):
    """A subclass, which is asked before its base."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return Boxed(2.0 * super().__array_ufunc__(ufunc, method, *inputs, **keywords).v)


def into(x):
    out = Boxed(np.zeros(3))
    np.multiply(Boxed(x), x, out)
    np.add(out, x, out=out)
    return out.v.sum()


PROGRAMS = [
    (lambda x: np.sqrt(Boxed(x)).v.sum(), 0.5 / np.sqrt(X)),
    (lambda x: np.multiply(x, Boxed(x)).v.sum(), 2 * X),
    (lambda x: (x * Boxed(x)).v.sum(), 2 * X),
    (lambda x: (np.float64(3.0) * Boxed(x)).v.sum() + (x[0] * Boxed(x)).v[1], [5.0, 4.0, 3.0]),
    (lambda x: np.sum(Boxed(x)).v ** 2, np.full(3, 12.0)),
    (lambda x: np.cumsum(Boxed(x), axis=0).v.sum(), [3.0, 2.0, 1.0]),
    (lambda x: np.concatenate([x, Boxed(x)]).v.sum(), np.full(3, 2.0)),
    (lambda x: np.where(x > 1.5, Boxed(x * x), Boxed(x)).v.sum(), [1.0, 4.0, 6.0]),
    (lambda x: np.exp(Boxed(x), where=x < 2.5, out=Boxed(x * x)).v.sum(), [*np.exp(X[:2]), 6.0]),
    (lambda x: np.add(Boxed(x), Doubled(x)).v.sum(), np.full(3, 4.0)),
    (into, 2 * X + 1),
]


@pytest.mark.parametrize(("f", "want"), PROGRAMS)
def test_what_the_class_says_is_followed(f, want):
    np.testing.assert_allclose(gradient(f, X)[0], want)
    np.testing.assert_allclose(grad(f)(X), want)
    y, ẏ = jvp(f, (X,), (np.array([1.0, -2.0, 0.5]),))
    assert y == f(X)
    np.testing.assert_allclose(ẏ, np.dot(want, [1.0, -2.0, 0.5]))


def test_second_derivatives_and_jacobians():
    def f(x):
        return np.sum(np.exp(Boxed(x))).v * x[0]

    want = np.diag(np.exp(X) * X[0]) + np.outer(np.exp(X), [1, 0, 0])
    want = want + np.outer([1, 0, 0], np.exp(X))
    np.testing.assert_allclose(hessian(f, X), want)
    np.testing.assert_allclose(hvp(f, X, X), want @ X)
    (rows,) = jacobian(lambda x: np.sin(Boxed(x)).v, X)
    np.testing.assert_allclose(rows, np.diag(np.cos(X)))


def test_what_the_class_leaves_is_numpys_error():
    with pytest.raises(TypeError, match="median"):
        gradient(lambda x: np.median(Boxed(x)), X)
    with pytest.raises(TypeError, match="add"):
        gradient(lambda x: np.add(Boxed(x), "one"), X)


@pytest.mark.skipif(pint is None, reason="the extra labelled is not installed")
def test_quantities_of_pint():
    for f, want in [
        (lambda x: np.sin(x * unit.deg).sum().magnitude, np.cos(np.deg2rad(X)) * np.pi / 180),
        (lambda x: np.concatenate([x * unit.m, x * unit.cm]).sum().magnitude, np.full(3, 1.01)),
        (lambda x: np.interp(x[0] * unit.m, X * unit.m, X**2 * unit.s).magnitude, [3.0, 0, 0]),
    ]:
        value = f(X)  # pint keeps what it has read of its units; its parser would be differentiated
        assert value_and_grad(f)(X)[0] == value
        np.testing.assert_allclose(gradient(f, X)[0], want)


def area(q):
    return (q["a"] * q["b"]).to("cm**2").magnitude


@pytest.mark.skipif(pint is None, reason="the extra labelled is not installed")
def test_gradients_by_quantities_of_pint():
    q = {"a": 2.0 * unit.m, "b": 3.0 * unit.cm}
    (q̄,) = gradient(area, q)
    assert q̄ == {
        "a": Tangent[unit.Quantity](_magnitude=pytest.approx(300.0)),
        "b": Tangent[unit.Quantity](_magnitude=pytest.approx(200.0)),
    }
    vector, unravel = ravel(q)
    assert vector.tolist() == [2.0, 3.0]
    assert str(unravel(vector)["a"]) == "2.0 meter"
    ones = {name: Tangent[unit.Quantity](_magnitude=1.0) for name in q}
    assert jvp(area, (q,), (ones,)) == (pytest.approx(600.0), pytest.approx(500.0))


@pytest.mark.thorough
@pytest.mark.skipif(pint is None, reason="the extra labelled is not installed")
def test_second_derivatives_by_quantities_of_pint():
    q = {"a": 2.0 * unit.m, "b": 3.0 * unit.cm}
    twice = hvp(area, q, {name: Tangent[unit.Quantity](_magnitude=1.0) for name in q})
    assert [twice[name]._magnitude for name in q] == [pytest.approx(100.0)] * 2


@pytest.mark.skipif(pint is None, reason="the extra labelled is not installed")
def test_precision_and_second_derivatives_of_quantities():
    def volume(x):
        return ((x * unit.m) ** 3).magnitude.sum()

    (x̄,) = gradient(volume, X.astype(np.float32))
    assert x̄.dtype == np.float32
    np.testing.assert_allclose(x̄, 3 * X**2)
    np.testing.assert_allclose(hvp(volume, X, X), 6 * X**2)
    z̄ = gradient(lambda z: abs((z * unit.V) ** 2).magnitude, 1 + 2j)[0]
    assert z̄ == pytest.approx(2 + 4j)


@pytest.mark.skipif(pint is None, reason="the extra labelled is not installed")
def test_quantities_where_a_number_is_needed_are_errors():
    q = 1.5 * unit.m
    with pytest.raises(TypeError, match=r"returned a Quantity\. Return one of its numbers"):
        gradient(lambda x: x * unit.m, 1.5)
    with pytest.raises(CotangentError, match=r"is a Quantity, expected Tangent\[Quantity\]"):
        jvp(lambda q: q.magnitude, (q,), (1.0 * unit.cm,))
    with pytest.raises(pint.DimensionalityError):
        gradient(lambda x: (x * unit.m + x * unit.s).magnitude, 1.0)


class Counted:
    """An array that answers for all the methods of ufuncs, and notes how it was asked."""

    def __init__(self, v, asked):
        self.v = v
        self.asked = asked

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        self.asked.append((method, sorted(keywords)))
        if "out" in keywords:
            keywords["out"] = tuple([x.v for x in keywords["out"]])
        opened = [x.v if isinstance(x, Counted) else x for x in inputs]
        return Counted(getattr(ufunc, method)(*opened, **keywords), self.asked)


def test_the_methods_of_ufuncs():
    def f(x, asked):
        c, out = Counted(x, asked), Counted(np.zeros(3), asked)
        y = np.add.reduce(c, 0).v * np.multiply.accumulate(c, 0, None).v
        y = y + np.maximum.outer(c, 2.5 * x).v[0] * np.add.reduceat(c, [0, 1], 0).v[1]
        np.multiply.accumulate(c, out=out)
        np.add.at(out, [0, 0], c.v[:2])
        return (y * out.v).sum()

    def differentiated(x):
        return f(x, [])

    asked, noted = [], []
    f(X.copy(), asked)
    check_gradient(differentiated, X)
    ẏ = jvp(lambda x: f(x, noted), (X,), (X,))[1]
    assert noted == asked
    assert ẏ == pytest.approx(gradient(differentiated, X)[0] @ X)
