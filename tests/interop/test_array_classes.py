"""Arrays, numbers and sequences of classes that say in Python what is done with them."""

import cmath
import functools
import math
import operator
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.special

from morula import UnsupportedError, grad, gradient, hessian, jacobian, jvp, pullback, withgradient
from morula.core import compiled
from morula.testing import check_gradient

X = np.array([1.5, 2.5, 3.5])
W = np.array([1.0, -2.0, 3.0])


class Scaled(np.ndarray):
    """Operators that do more than those of arrays do, by the ufuncs of them."""

    def times(self, factor):
        return (np.asarray(self) * factor).view(Scaled)

    def __add__(self, other):
        return np.add(self, other).times(2.0)

    def __sub__(self, other):
        return np.subtract(self, other).times(3.0)

    def __mul__(self, other):
        return np.multiply(self, other).times(5.0)

    def __truediv__(self, other):
        return np.true_divide(self, other).times(7.0)

    def __pow__(self, other):
        return np.power(self, other).times(11.0)

    def __matmul__(self, other):
        return np.matmul(self, other) * 13.0

    def __neg__(self):
        return np.negative(self).times(17.0)

    def __abs__(self):
        return np.abs(self).times(19.0)


OF_OPERATORS = [
    lambda a: a + 1.0,
    lambda a: a - X,
    lambda a: a * a,
    lambda a: a / (a + a),
    lambda a: a**3,
    lambda a: a @ a,
    lambda a: -a,
    abs,
    lambda a: np.add(a, a),
    lambda a: np.subtract(a, X) + np.subtract(2.0, a),
    lambda a: np.multiply(a, a * 2.0),
    lambda a: np.true_divide(a, np.exp(a)),
    lambda a: np.power(a, 2.5),
    lambda a: np.matmul(a, a),
    lambda a: 2.0 / a,
    lambda a: X - a,
    lambda a: 2.0**a,
    lambda a: np.arctan2(a, np.add(a, 1.0)),
    lambda a: np.var(a) * W,
    lambda a: a.std() * W,
    lambda a: np.interp(a, X, W),
    lambda a: np.concatenate([a, a])[1:4],
    lambda a: np.where(a > 2.0, a, np.square(a)),
    lambda a: np.multiply.outer(a, a).sum(axis=0),
    lambda a: np.multiply.accumulate(a),
    lambda a: np.linalg.qr(np.outer(a, a) + np.eye(3))[1][0],
]


@pytest.mark.parametrize("f", OF_OPERATORS)
def test_operators_of_the_class_and_functions_of_its_arrays(f, path):
    def total(x):
        return float(np.sum(np.asarray(f(x.view(Scaled))) * W))

    check_gradient(total, X)
    check_forward(total)


def check_forward(f):
    v = np.array([0.5, -1.0, 2.0])
    y, ẏ = jvp(f, (X,), (v,))
    assert y == f(X)
    np.testing.assert_allclose(ẏ, gradient(f, X)[0] @ v, rtol=1e-12)


class Tripled(np.ndarray):
    """What a ufunc gives, three times."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        inputs = [x.view(np.ndarray) if isinstance(x, Tripled) else x for x in inputs]
        if out is not None:
            keywords["out"] = tuple(o.view(np.ndarray) for o in out)
        y = super().__array_ufunc__(ufunc, method, *inputs, **keywords)
        if y is NotImplemented:
            return y
        return out[0] if out is not None else (3.0 * np.asarray(y)).view(Tripled)


class Known(Tripled):
    """A class that says more than its base does, and is asked first."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        y = super().__array_ufunc__(ufunc, method, *inputs, **keywords)
        return y if ufunc is np.exp else np.asarray(y).view(Known)


def in_place(a):
    a = a * 1.0
    a += X
    a *= 2.0
    np.multiply(a, a, out=a)
    return a


def into_plain(a):
    y = X * 1.0
    y += a
    return y


OF_UFUNCS = [
    np.exp,
    lambda a: a + X,
    lambda a: X + a * 2.0,
    lambda a: 2.0 / a / X,
    lambda a: 2.0**a,
    lambda a: a**2,
    lambda a: a**0.5 + a**-1 + a**1.5,
    lambda a: -a + abs(a),
    lambda a: divmod(a, 2.0)[1],
    lambda a: a % 2.0,
    lambda a: np.divmod(a, 2.0)[0] + a,
    lambda a: np.add.reduce(a) * W,
    lambda a: np.multiply.accumulate(a),
    lambda a: np.multiply.outer(a, X)[1],
    lambda a: np.concatenate([a, X])[2:5],
    lambda a: np.where(a > 2.0, a, X),
    lambda a: a[1:] * X[1:].sum(),
    lambda a: a.reshape(3, 1).T[0] * 2.0,
    lambda a: np.dot(a, X) * W,
    in_place,
    into_plain,
    lambda a: a.__add__(X) + np.ndarray.__rsub__(a, X),
]


@pytest.mark.parametrize("cls", [Tripled, Known])
@pytest.mark.parametrize("f", OF_UFUNCS)
def test_ufuncs_as_the_class_says(f, cls, path):
    def total(x):
        y = np.asarray(f(x.view(cls)))
        return float(np.sum(y * W[: len(y)]))

    check_gradient(total, X)


class Opened(np.ndarray):
    """Functions five times what they are, some by what implements them."""

    def __array_function__(self, func, types, args, kwargs):
        if func is np.concatenate:
            return 5.0 * np.asarray(func._implementation(*args, **kwargs))
        y = super().__array_function__(func, types, args, kwargs)
        return y if y is NotImplemented else np.asarray(y) * 5.0


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.concatenate([a, X])[2:5],
        lambda a: np.sum(a) * W,
        lambda a: np.dot(a, X) * W,
        lambda a: np.cumsum(a),
        lambda a: np.where(a > 2.0, a * a, X),
        lambda a: np.linalg.norm(a) * W,
    ],
)
def test_functions_as_the_class_says(f, path):
    def total(x):
        return float(np.sum(np.asarray(f(x.view(Opened))) * W))

    check_gradient(total, X)
    check_forward(total)


class Wrapped(np.ndarray):
    """What comes of a ufunc is wrapped as it should not be."""

    def __array_wrap__(self, out, context=None, return_scalar=False):
        return np.asarray(out) * 2.0


class Summed(np.ndarray):
    """A method of its own, which NumPy's function calls."""

    def sum(self, **keywords):
        return 2.0 * np.asarray(self).sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.exp(x.view(Wrapped)).sum(),
        lambda x: np.asarray(x.view(Wrapped) * x).sum(),
        lambda x: np.sum(x.view(Summed)),
        lambda x: np.asarray(x.view(Tripled).sum()),
        lambda x: np.stack([x.view(Opened), x])[0, 1],  # calls concatenate
    ],
)
def test_what_no_rule_knows_of_is_refused(f, path):
    with pytest.raises(UnsupportedError, match="is not that of their numbers"):
        gradient(lambda x: float(f(x)), X)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.multiply(a, a, out=a.copy()),
        lambda a: np.multiply(a, a, a.copy()),
        lambda a: np.cumsum(a, out=a.copy()),
    ],
)
def test_results_in_given_arrays_are_refused(f, path):
    with pytest.raises(UnsupportedError, match="writes to an array that is given"):
        gradient(lambda x: float(np.asarray(f(x.view(Scaled)))[0]), X)


def test_keywords_of_ufuncs(path):
    def f(x):
        return float(np.asarray(np.power(x.view(Scaled), 2.0, dtype=np.float64)) @ W)

    np.testing.assert_allclose(gradient(f, X)[0], 2 * X * W)


def write_to_result(x):
    y = np.multiply(x.view(Scaled), 2.0)
    y[0] = x[1]
    return y


def write_to_factor(x):
    q, r = np.linalg.qr(np.outer(x, x).view(Scaled) + np.eye(3))
    r[0, 1:] *= 2.0
    return q[0] + r[0]


def write_to_argument(x):
    a = (x * 1.0).view(Scaled)
    y = np.multiply(a, a)
    a[0] = 5.0
    a[1:] *= x[1:]
    return np.asarray(y) + np.asarray(a)


def write_through_a_view(x):
    a = (x * 1.0).view(Scaled)
    b = a[1:]
    b /= x[1:] ** 2
    return a


def write_what_the_class_gave(x):
    a = (x * 1.0).view(Tripled)
    y = a * x
    a[0] = 5.0
    y[1] = x[0]
    return np.asarray(y) + np.asarray(a)


@pytest.mark.parametrize(
    "f",
    [
        write_to_result,
        write_to_factor,
        write_to_argument,
        write_through_a_view,
        write_what_the_class_gave,
    ],
)
def test_arrays_that_are_written_to(f, path):
    def total(x):
        return float(np.sum(np.asarray(f(x)) * W))

    check_gradient(total, X)
    check_forward(total)


Z = np.array([1.5 + 0.5j, 2.5 - 1.0j, 3.5 + 2.0j])


@pytest.mark.parametrize(
    "f",
    [
        lambda z: np.abs(np.asarray(np.multiply(z.view(Scaled), z.view(Scaled) + z))),
        lambda z: np.asarray(np.abs(np.exp(z.view(Scaled)))),
        lambda z: np.abs(np.prod(z.view(Scaled))) * W,
        lambda z: np.real(np.vdot(z.view(Scaled), z * (1 + 2j))) * W,
        lambda z: np.abs(np.asarray(z.view(Tripled) * z)),
    ],
)
def test_complex_arrays(f, path):
    check_gradient(lambda z: float(np.sum(f(z) * W)), Z)


@pytest.mark.parametrize("x", [X.astype(np.float32), np.zeros((0, 3)), np.zeros((3, 1))[::-1]])
@pytest.mark.parametrize(("cls", "factor"), [(Scaled, 2.0), (Tripled, 6.0)])
def test_the_gradient_has_the_dtype_and_the_shape(x, cls, factor, path):
    def f(x):
        return np.asarray(np.multiply(x.view(cls), x))

    y, back = pullback(f, x)
    for scale in (1.0, 2.0):  # a second call
        (found,) = back(scale * np.ones_like(y))
        assert (found.dtype, found.shape) == (x.dtype, x.shape)
        np.testing.assert_allclose(found, factor * scale * x)


def test_a_method_of_its_own_is_followed(path):
    np.testing.assert_allclose(grad(lambda x: x.view(Summed).sum())(X), np.full(3, 2.0))


def test_arrays_of_the_class_are_differentiated(path):
    def f(a):
        return float(np.sum(np.asarray(a * a) * W))

    np.testing.assert_allclose(np.asarray(gradient(f, X.view(Tripled))[0]), 6 * X * W)
    np.testing.assert_allclose(np.asarray(gradient(f, X.view(Scaled))[0]), 10 * X * W)


def test_higher_derivatives_and_jacobians():
    def f(x):
        return float(np.sum(np.asarray(np.exp(x.view(Tripled)) * x) * W))

    np.testing.assert_allclose(hessian(f, X), np.diag(9 * W * np.exp(X) * (2 + X)))
    found = jacobian(lambda x: np.asarray(x.view(Scaled) - x**2), X)[0]
    np.testing.assert_allclose(found, np.diag(3.0 - 6.0 * X))


def test_the_class_is_asked_as_often_as_in_the_plain_call(path):
    asked = []

    class Asked(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
            asked.append(ufunc.__name__)
            plain = [np.asarray(x) for x in inputs]
            return getattr(ufunc, method)(*plain, **keywords).view(Asked)

    def f(x):
        a = x.view(Asked)
        return float(np.asarray(np.exp(a) - a * 2.0).sum())

    f(X)
    plain = list(asked)
    asked.clear()
    np.testing.assert_allclose(gradient(f, X)[0], np.exp(X) - 2.0)
    assert asked == plain == ["exp", "multiply", "subtract"]


class Named(np.ndarray):
    """An attribute, of which the class has another."""

    unit = None

    def __new__(cls, x, unit):
        self = np.asarray(x).view(cls)
        self.unit = unit
        return self

    def __array_finalize__(self, given):
        self.unit = getattr(given, "unit", None)


def test_attributes_of_arrays():
    def f(x):
        a = Named(x, "m")
        b = a * 2.0
        assert (a.unit, b.unit, Named.unit) == ("m", "m", None)
        return float(np.asarray(b @ b))

    np.testing.assert_allclose(gradient(f, X)[0], 8 * X)
    with pytest.raises(Exception, match="attribute 'unit'"):
        gradient(lambda x: float(Named(x, x[0]).unit), X)


def test_without_compiling(monkeypatch):
    monkeypatch.setattr(compiled, "specialising", False)
    np.testing.assert_allclose(gradient(lambda x: float((x.view(Tripled) + x)[0]), X)[0], [6, 0, 0])


class Number(float):
    """Operators that do more than those of numbers do."""

    def __add__(self, other):
        return Number(super().__add__(other) + 1.0)

    __radd__ = __add__

    def __sub__(self, other):
        return Number(float(self) - float(other) + 7.0)

    def __rsub__(self, other):
        return Number(float(other) - float(self) + 7.0)

    def __mul__(self, other):
        return Number(super().__mul__(other) * 3.0)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return Number(super().__truediv__(other) * 5.0)

    def __rtruediv__(self, other):
        return Number(super().__rtruediv__(other) * 5.0)

    def __neg__(self):
        return Number(-float(self) * 11.0)

    def __pow__(self, other):
        return Number(super().__pow__(other) * 13.0)


A = np.array([1.0, 2.0, 3.0])
OF_NUMBERS = [
    lambda a: math.hypot(a, 2.0),
    lambda a: math.atan2(2.0, a),
    lambda a: math.log(3.0, a),
    lambda a: math.pow(a, 2.5) + math.pow(2.5, a),
    lambda a: math.prod([a, 2.0, a]),
    lambda a: math.fsum([a, a]),
    lambda a: math.dist([a, 1.0], [2.0, a]),
    lambda a: math.asin(a * 0.1),
    lambda a: math.gamma(a) * math.erf(a),
    lambda a: abs(cmath.sqrt(a) + cmath.phase(complex(a, 2.0))),
    lambda a: np.hypot(a, 2.0) + np.square(a) + np.sinc(a),
    lambda a: np.multiply(a, A).sum() + (A * a).sum(),
    lambda a: np.dot(A, [a, a, 1.0]),
    lambda a: np.interp(a, A, A**2),
    lambda a: np.linalg.norm([a, 2.0]) + np.var([a, 2.0]),
    lambda a: np.prod([a, a]) + np.logaddexp(a, 1.0),
    lambda a: scipy.special.beta(a, 2.0) + scipy.special.logsumexp([a, 1.0]),
    lambda a: statistics.mean([a, a, 2.0]) + statistics.stdev([a, 1.0]),
    lambda a: statistics.fmean(iter([a, a])) + statistics.variance((a, 2.0)),
    lambda a: statistics.NormalDist.from_samples([a, 2.0, 3.0]).stdev,
    lambda a: statistics.quantiles([a, 2.0, 3.0])[0],
    lambda a: sum([a, a]) + functools.reduce(operator.mul, [a, 2.0, a]),
    lambda a: a / 2.0 + 3.0 / a,
    lambda a: a / (a * a) - a**2.5 - 2.0**a,
    lambda a: float.__pow__(a, a) + divmod(a, 0.4)[1],
    lambda a: max(a, 1.0) + abs(a) + a.conjugate(),
]
if hasattr(math, "sumprod"):
    OF_NUMBERS.append(lambda a: math.sumprod([a, 2.0], [a, 1.0]))


@pytest.mark.parametrize("f", OF_NUMBERS)
def test_functions_of_numbers_with_operators_of_their_own(f, path):
    def total(x):
        return float(f(Number(x)))

    check_gradient(total, 1.3)
    y, ẏ = jvp(total, (1.3,), (1.0,))
    assert y == total(1.3)
    assert ẏ == pytest.approx(gradient(total, 1.3)[0], rel=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: statistics.variance([a, 2.0], a),
        lambda a: statistics.linear_regression([1.0, 2.0, 4.0], [a, 2.0, 3.0]).slope,
    ],
)
def test_statistics_by_the_operators_of_a_class_are_refused(f, path):
    with pytest.raises(UnsupportedError, match="is not that of the numbers"):
        gradient(lambda x: float(f(Number(x))), 1.3)


def test_numbers_of_a_class_as_arguments(path):
    def f(a):
        return math.hypot(a, 2.0)

    want = 1.3 / math.hypot(1.3, 2.0)
    for x in (1.3, Number(1.3), 1.3):
        assert gradient(f, x)[0] == pytest.approx(want)
        assert gradient(lambda xs: f(xs[0]), [x])[0][0] == pytest.approx(want)
    assert hessian(lambda x: f(Number(x)), 1.3) == pytest.approx(4 / math.hypot(1.3, 2.0) ** 3)


class Double(np.float64):
    """A number of NumPy's with a product of its own."""

    def __mul__(self, other):
        return Double(super().__mul__(other) * 3.0)

    __rmul__ = __mul__

    def __rtruediv__(self, other):
        return Double(super().__rtruediv__(other) * 5.0)


class Ratio(Fraction):
    """An exact number with a product and a quotient of its own."""

    def __mul__(self, other):
        return Ratio(super().__mul__(other) * 3)

    def __truediv__(self, other):
        return Ratio(super().__truediv__(other) * 5)


class Money(Decimal):
    """A decimal number with a product and a quotient of its own."""

    def __mul__(self, other):
        return Money(super().__mul__(other) * 3)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return Money(super().__truediv__(other) * 5)

    def __rtruediv__(self, other):
        return Money(super().__rtruediv__(other) * 5)


X_DECIMAL, X_FRACTION = Decimal("1.3"), Fraction(13, 10)
OF_KINDS = [
    (lambda x: np.float64(Double(x) * 2.0 + 3.0 / Double(x)), 1.3, 6.0 - 15.0 / 1.69),
    (lambda x: np.float64(np.hypot(Double(x), 2.0)), 1.3, 1.3 / math.hypot(1.3, 2.0)),
    (lambda x: np.float64(math.log(3.0, Double(x))), 1.3, -math.log(3) / 1.3 / math.log(1.3) ** 2),
    (lambda x: Fraction(Ratio(x) * Ratio(x)), X_FRACTION, 6 * X_FRACTION),
    (lambda x: Fraction(Ratio(x) / Ratio(x * x)), X_FRACTION, -5 / X_FRACTION**2),
    (lambda x: math.hypot(Ratio(x), 2), X_FRACTION, 1.3 / math.hypot(1.3, 2.0)),
    (lambda x: Decimal(Money(x) * Money(x)), X_DECIMAL, 6 * X_DECIMAL),
    (lambda x: Decimal(Money(x).ln()), X_DECIMAL, 1 / X_DECIMAL),
    (lambda x: Decimal(Money(x).fma(Money(x), 2)), X_DECIMAL, 2 * X_DECIMAL),
    (lambda x: Decimal(abs(Money(x))) + Money(x).sqrt(), X_DECIMAL, 1 + 1 / (2 * X_DECIMAL.sqrt())),
]


@pytest.mark.parametrize(("f", "x", "want"), OF_KINDS)
def test_other_kinds_of_numbers(f, x, want, path):
    found = gradient(f, x)[0]
    assert type(found) is type(x)
    assert float(found) == pytest.approx(float(want), rel=1e-12)
    y, ẏ = jvp(f, (x,), (type(x)(1),))
    assert y == f(x)
    assert float(ẏ) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize(
    ("cls", "x"),
    [(np.float32, np.float32(1.5)), (Fraction, Fraction(3, 2)), (Decimal, Decimal("1.5"))],
)
def test_numbers_of_derived_classes_are_made_of_numbers(cls, x, path):
    derived = type("Derived", (cls,), {})
    assert gradient(lambda x: derived(x) * x, x)[0] == 3
    assert jvp(lambda x: derived(x) * x, (x,), (cls(1),))[1] == 3


class Doubling(list):
    """Iterating over it gives twice its items."""

    def __iter__(self):
        return (2.0 * x for x in list.__iter__(self))


class DoublingPair(tuple):
    """The same of a tuple."""

    __slots__ = ()

    def __iter__(self):
        return (2.0 * x for x in tuple.__iter__(self))


@pytest.mark.parametrize("cls", [Doubling, DoublingPair])
@pytest.mark.parametrize(
    "f",
    [
        np.sum,
        lambda xs: np.array(xs).sum(),
        lambda xs: np.asarray(xs)[1],
        lambda xs: np.max([1.0, np.max(xs)]),
        lambda xs: np.dot(xs, [1.0, 2.0]),
        lambda xs: np.concatenate([xs, xs])[3],
        lambda xs: np.stack([xs, xs])[1, 1],
        lambda xs: np.multiply(xs, [1.0, 2.0])[1],
        lambda xs: np.ravel(xs)[1],
        math.fsum,
        math.prod,
        lambda xs: math.dist(xs, (1.0, 2.0)) if isinstance(xs, tuple) else sum(xs),
        lambda xs: statistics.mean(xs),
        lambda xs: xs[1] * (1.3 in xs),
    ],
)
def test_sequences_that_say_what_their_items_are(f, cls, path):
    def total(x):
        return float(f(cls([x, x * x])))

    check_gradient(total, 1.3)
    assert withgradient(total, 1.3)[0] == total(1.3)


class Priced(dict):
    """What the pairs of it say is not what it holds."""

    def items(self):
        return [(key, 5.0 * x) for key, x in super().items()]

    def values(self):
        return [2.0 * x for x in super().values()]


def test_views_of_dicts_that_say_what_their_pairs_are(path):
    def f(x):
        prices = Priced(a=x, b=x * x)
        return sum(prices.values()) + sum([v for _, v in prices.items()]) + sum(dict.values(prices))

    assert withgradient(f, 1.5) == (8.0 * (1.5 + 2.25), (8.0 * 4.0,))


class OneBased(np.ndarray):
    """Places begin with one."""

    def __getitem__(self, i):
        return super().__getitem__(i - 1)

    def __setitem__(self, i, value):
        super().__setitem__(i - 1, value)


class Twofold(np.ndarray):
    """Methods that move numbers double them."""

    def __getitem__(self, i):
        return 2 * np.asarray(super().__getitem__(i))

    def reshape(self, *shape):
        return super().reshape(*shape) * 2

    def copy(self):
        return super().copy() * 3

    def tolist(self):
        return [2 * v for v in super().tolist()]

    def sort(self):
        super().sort()
        np.multiply(self, 2, out=self)

    def __iadd__(self, other):
        return np.ndarray.__iadd__(self, 2 * other)

    @property
    def T(self):
        return super().T * 2


def put_one_based(x):
    y = np.ndarray.copy(x).view(OneBased)
    y[1] = 5 * y[2]
    return np.sum(np.asarray(y) ** 2)


def added(x):
    y = np.ndarray.copy(x).view(Twofold)
    y += x * x
    return np.sum(np.asarray(y) * [1.0, 2.0])


def in_order(x):
    y = np.ndarray.copy(x).view(Twofold)
    np.ndarray.sort(y)
    return np.sum(np.asarray(y) * [1.0, 2.0])


MOVED = {
    "item": lambda x: x.view(OneBased)[1] * 1.0,
    "put": put_one_based,
    "items": lambda x: np.sum(x.view(Twofold)[0:2] * [1.0, 2.0]),
    "reshape": lambda x: np.sum(np.asarray(x.view(Twofold).reshape(-1))),
    "copy": lambda x: np.sum(np.asarray(x.view(Twofold).copy())),
    "tolist": lambda x: x.view(Twofold).tolist()[1],
    "T": lambda x: np.sum(np.asarray(x.view(Twofold).T)),
    "in place": added,
    "of the base": in_order,
}


@pytest.mark.parametrize("name", MOVED)
def test_classes_that_say_what_moving_numbers_means(name):
    f, x = MOVED[name], np.array([1.7, 1.3])
    slopes = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    value, (gradient,) = withgradient(f, x)
    assert value == f(x)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6)
    found, along = jvp(f, (x,), (np.array([1.0, 0.5]),))
    np.testing.assert_allclose([found, along], [value, np.dot(slopes, [1.0, 0.5])], rtol=1e-6)


class Passing(np.ndarray):
    """Its methods do what those of plain arrays do."""

    def __getitem__(self, i):
        return super().__getitem__(i)

    def reshape(self, *shape):
        return super().reshape(*shape)

    def copy(self):
        return super().copy()


def written_view(x):
    y = np.ndarray.copy(x).view(Passing)
    v = y[0:2]
    v *= x[2:]
    return np.sum(np.asarray(y) * [1.0, 2.0, 3.0, 4.0])


def written_form(x):
    y = np.ndarray.copy(x).view(Passing)
    v = y.reshape(2, 2)
    v[0] = x[2:] * x[0]
    return np.sum(np.asarray(y) * [1.0, 2.0, 3.0, 4.0])


def written_copy(x):
    y = x.view(Passing).copy()
    y[1] = x[0] * x[3]
    v = y[2:]
    v += x[1]
    return np.sum(np.asarray(y) * x)


def written_under_a_view(x):
    y = np.ndarray.copy(x).view(Passing)
    v = y[1:]
    y[2] = x[0] ** 2
    return np.sum(np.asarray(v) ** 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", [written_view, written_form, written_copy, written_under_a_view])
def test_views_and_copies_by_methods_of_a_class_may_be_written_to(f, dtype):
    x = np.array([1.3, 0.7, 2.1, 0.4], dtype)
    wide = x.astype(float)
    slopes = [(f(wide + h) - f(wide - h)) / 2e-6 for h in 1e-6 * np.eye(4)]
    value, back = pullback(f, x)
    assert value == f(x)
    for _ in range(2):
        (cotangent,) = back(1.0)
        assert cotangent.dtype == dtype
        np.testing.assert_allclose(cotangent, slopes, rtol=1e-6 if dtype is np.float64 else 1e-5)
    _, along = jvp(f, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(along, np.sum(slopes), rtol=1e-6 if dtype is np.float64 else 1e-5)
