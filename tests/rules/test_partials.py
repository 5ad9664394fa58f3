"""functools.partial: its arguments, and its keywords, which are a dict."""

import copy
import functools
from functools import partial

import numpy as np
import pytest

from morula import (
    DifferentiationError,
    J,
    Tangent,
    grad,
    gradient,
    hvp,
    jvp,
    pullback,
    rrule,
    value_and_grad,
)
from morula.testing import check_gradient


def scaled(a, b=1.0, *, factor=1.0):
    return a * b * factor


def test_keywords_of_a_partial_that_are_read_from_it(path):
    def f(x, y):
        return x * x * y

    assert grad(lambda k: functools.partial(f, y=k).keywords["y"] ** 2)(3.0) == 6.0
    inner = functools.partial(f, y=5.0)
    both = grad(lambda k: (p := functools.partial(inner, x=k))() * p.keywords["x"])
    assert both(3.0) == 5.0 * 3 * 9.0
    assert grad(lambda k: gradient(functools.partial(f, y=k), 3.0)[0])(1.0) == 6.0


def written(x):
    p = functools.partial(scaled, 2.0, factor=3.0)
    p.keywords["factor"] = x
    return p() * x


def written_by_another_name(x):
    p = functools.partial(scaled, 2.0)
    before = p(b=x)
    named = p.keywords
    named.update(factor=x * x)
    return before + p(5.0)


def overwritten(x):
    p = functools.partial(scaled, 2.0, factor=x)
    q = functools.partial(p, factor=x * x)
    p.keywords.clear()
    return p() + q()


def taken_out(x):
    p = functools.partial(scaled, x, factor=x)
    return p.keywords.pop("factor") * p(4.0)


def shared_by_a_copy(x):
    p = functools.partial(scaled, 2.0, factor=x)
    q = copy.copy(p)
    q.keywords["factor"] = x**3
    return p() + q()


def apart_in_a_deep_copy(x):
    p = functools.partial(scaled, 2.0, factor=x)
    q = copy.deepcopy(p)
    q.keywords["factor"] = x**3
    return p() + 3.0 * q()


PROGRAMS = [
    written, written_by_another_name, overwritten, taken_out, shared_by_a_copy, apart_in_a_deep_copy
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_keywords_that_are_written_to(f, path):
    h = 1e-5
    slope = (f(1.5 + h) - f(1.5 - h)) / (2 * h)
    curvature = (f(1.5 + h) - 2 * f(1.5) + f(1.5 - h)) / h**2
    assert value_and_grad(f)(1.5) == (f(1.5), pytest.approx(slope))
    assert jvp(f, (1.5,), (1.0,)) == (f(1.5), pytest.approx(slope))
    assert hvp(f, 1.5, 1.0) == pytest.approx(curvature, rel=1e-3, abs=1e-3)


def test_the_gradient_of_a_partial_mirrors_it(path):
    p = functools.partial(scaled, [2.0, 5.0], factor=np.array([3.0, 4.0]))

    def f(p):
        first, second = p.args[0]
        return np.sum(p.keywords["factor"] * first) + np.sum(p.keywords["factor"] ** 2) * second

    (p̄,) = gradient(f, p)
    assert isinstance(p̄, Tangent)
    assert p̄.args == ([7.0, 25.0],)
    assert p̄.keywords["factor"].tolist() == [32.0, 42.0]


def test_the_gradient_is_that_of_what_the_partial_held_on_entry(path):
    p = functools.partial(scaled, 2.0, factor=3.0)

    def f(p):
        p.keywords["factor"] = p.keywords["factor"] ** 2
        return p()

    assert gradient(f, p)[0].keywords == {"factor": 12.0}
    assert p.keywords == {"factor": 9.0}


def test_a_partial_that_is_differentiated():
    _, back = J(functools.partial(scaled, 2.0, factor=3.0), 5.0)
    p̄, b̄ = back(1.0)
    assert (p̄.args, p̄.keywords, b̄) == ((15.0,), {"factor": 10.0}, 6.0)


def test_a_rule_whose_result_is_a_partial(path):
    def bound(x):
        return functools.partial(scaled, x, factor=x)

    @rrule(bound)
    def _(x: float):
        def bound_pullback(ȳ):
            return (ȳ.args[0] + ȳ.keywords["factor"],)

        return bound(x), bound_pullback

    assert grad(lambda x: bound(x)(5.0))(3.0) == 30.0


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_pullback_that_is_called_again(f, path):
    _, back = pullback(f, 1.5)
    assert back(1.0) == back(1.0) == (pytest.approx(grad(f)(1.5)),)


def test_arrays_in_keywords(path):
    def f(x):
        p = functools.partial(scaled, x, factor=x[::-1])
        p.keywords["b"] = x.reshape(-1)[:2] * 1j
        return np.sum(np.abs(p() ** 2))

    for dtype in (np.float32, np.complex128):
        x = np.array([0.5, 1.5]).astype(dtype)
        check_gradient(f, x)
        assert grad(f)(x).dtype == dtype
    assert grad(f)(np.zeros(0)).shape == (0,)


def cubic(a, b, c=2.0):
    return a * b * b * c


TANGENTS = {
    "arguments": ({"args": (1.0,)}, 4 * 3.0),
    "keywords": ({"keywords": {"c": 1.0}}, 1.3 * 4),
    "both": ({"args": (1.0,), "keywords": {"c": 0.5}}, 4 * 3.0 + 0.5 * 1.3 * 4),
    "none": ({}, 0.0),
}


@pytest.mark.parametrize("name", TANGENTS)
def test_the_tangent_of_a_partial_mirrors_it(name):
    fields, expected = TANGENTS[name]
    p, ṗ = partial(cubic, 1.3, c=3.0), Tangent[partial](fields)
    assert jvp(lambda p: p(2.0), (p,), (ṗ,)) == (p(2.0), pytest.approx(expected))
    whole = jvp(lambda p: p.args[0] * p.keywords["c"] * p(2.0), (p,), (ṗ,))[1]
    by_parts = jvp(lambda p: p.args[0] * p.keywords["c"], (p,), (ṗ,))[1]
    assert whole == pytest.approx(1.3 * 3.0 * expected + by_parts * p(2.0))
    mixed = gradient(lambda x: jvp(lambda p: p(x), (p,), (ṗ,))[1], 2.0)[0]
    assert mixed == pytest.approx(expected)  # 2 expected / x


def test_a_function_in_a_partial_has_a_tangent():
    def scaled(s):
        return lambda y: s * y

    ṗ = Tangent[partial](func={"s": 1.0})
    assert jvp(lambda p: p(2.0), (partial(scaled(1.3)),), (ṗ,)) == (2.6, 2.0)


@pytest.mark.parametrize(
    "fields", [{"arg": (1.0,)}, {"args": 1.0}, {"args": (1.0, 2.0)}, {"keywords": {"z": 1.0}}]
)
def test_a_tangent_that_does_not_mirror_the_partial_is_refused(fields):
    with pytest.raises(DifferentiationError, match="the tangent of argument 0"):
        jvp(lambda p: p(2.0), (partial(cubic, 1.3),), (Tangent[partial](fields),))
