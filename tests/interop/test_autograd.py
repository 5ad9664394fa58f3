import math

import numpy as np
import pytest

from morula import NoRuleError, grad, gradient, hessian, hvp, jvp, value_and_grad
from morula.core.errors import CotangentError

pytest.importorskip("autograd", reason="primitives of Autograd need Autograd")

import autograd.numpy as anp
from autograd.extend import defvjp, primitive


@primitive
def log_sum_exp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


defvjp(log_sum_exp, lambda ans, x: lambda g: anp.full(x.shape, g) * anp.exp(x - ans))


@primitive
def clipped(x, limit, *, scale=1.0):
    return math.ldexp(min(x, limit), 0) * scale


# Not the derivative of the code, and meant: it shows that the rule is used.
defvjp(clipped, lambda ans, x, limit, scale=1.0: lambda g: 7.0 * g * scale, None)


@primitive
def silent(x):
    return math.ldexp(x, 1)


X = np.array([0.5, 1.0, 2.0])


def plain(x):
    return np.log(np.sum(np.exp(x)))


def test_primitives_of_a_user_have_their_rules():
    value, found = value_and_grad(lambda x: log_sum_exp(x) ** 2)(X)
    expected_value, expected = value_and_grad(lambda x: plain(x) ** 2)(X)
    assert np.allclose(value, expected_value)
    assert np.allclose(found, expected)
    assert grad(log_sum_exp)(X).shape == (3,)
    assert gradient(lambda x: clipped(x, 3.0, scale=2.0), 5.0) == (14.0,)
    assert gradient(lambda x, y: clipped(x, y), 5.0, 3.0) == (7.0, 0.0)


def test_primitives_of_a_user_at_second_order_and_forward():
    assert np.allclose(
        hessian(lambda x: log_sum_exp(x) ** 2, X), hessian(lambda x: plain(x) ** 2, X)
    )
    assert np.allclose(jvp(log_sum_exp, (X,), (X,))[1], jvp(plain, (X,), (X,))[1])
    by_reverse = gradient(lambda x: (gradient(log_sum_exp, x)[0] ** 2).sum(), X)[0]
    assert np.allclose(by_reverse, gradient(lambda x: (gradient(plain, x)[0] ** 2).sum(), X)[0])


def test_primitives_of_autograd_are_the_functions_that_they_wrap():
    found = gradient(lambda x: anp.sum(anp.sin(x) * anp.dot(x, x)), X)[0]
    assert np.allclose(found, gradient(lambda x: np.sum(np.sin(x) * np.dot(x, x)), X)[0])
    stacked = gradient(lambda x: anp.sum(anp.concatenate([x, x]) * anp.array([1.0] * 6)), X)[0]
    assert stacked.tolist() == [2.0, 2.0, 2.0]


def test_primitives_without_a_rule_are_refused_where_it_matters():
    assert gradient(lambda x: x * float(silent(1.0)), 2.0) == (2.0,)
    with pytest.raises(NoRuleError, match="defvjp was not called"):
        gradient(silent, 2.0)


@primitive
def norm_and_scale(p, x):
    return p["scale"] * np.sqrt(np.sum(x * x))


defvjp(
    norm_and_scale,
    lambda ans, p, x: lambda g: {"scale": g * anp.sqrt(anp.sum(x * x))},
    lambda ans, p, x: lambda g: g * p["scale"] * x / anp.sqrt(anp.sum(x * x)),
)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_precision_is_that_of_the_argument(dtype):
    x = X.astype(dtype)
    f = lambda x: log_sum_exp(abs(x) ** 2)
    found = grad(f)(x)
    assert found.dtype == x.dtype
    assert np.allclose(found, grad(lambda x: plain(abs(x) ** 2))(x), rtol=1e-5)
    assert grad(lambda n: log_sum_exp(n * 1.0))(np.arange(3)).dtype == np.float64


def test_structures_go_through_primitives_of_a_user():
    def by_primitive(p, x):
        return norm_and_scale(p, x) ** 2

    def by_hand(p, x):
        return p["scale"] ** 2 * np.sum(x * x)

    p = {"scale": 3.0}
    found, expected = gradient(by_primitive, p, X), gradient(by_hand, p, X)
    assert found[0]["scale"] == pytest.approx(expected[0]["scale"])
    assert np.allclose(found[1], expected[1])
    assert hvp(lambda p: by_primitive(p, X), p, p)["scale"] == pytest.approx(6 * X @ X)
    assert np.allclose(hessian(lambda x: by_primitive(p, x), X), 18 * np.eye(3))
    tangent = jvp(by_primitive, (p, X), (p, X))[1]
    assert tangent == pytest.approx(4 * by_hand(p, X))


@primitive
def wrong_shape(x):
    return np.sum(x)


defvjp(wrong_shape, lambda ans, x: lambda g: anp.ones(2) * g)


def test_products_of_another_shape_are_refused():
    with pytest.raises(CotangentError, match=r"\(3,\)"):
        gradient(wrong_shape, X)
