"""Several directions in one run: the same as one after the other, each effect once, each rule once."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from morula import NoRuleError, frule, grad, hessian, jacobian, jvp, rrule
from morula.mixed_mode.directions import AT_ONCE, pushed_along
from tests.rules.test_unknown import cubic_root

X = np.array([0.3, -1.2, 0.7])
DIRECTIONS = [np.array(v) for v in ([1.0, 0.0, 0.0], [0.5, -2.0, 1.0], [0.0, 0.0, 0.0])]


def structures(x):
    kept = {"a": [x[0], (x[1] * 2, x)], "b": x * x}
    kept["a"].append(kept.pop("b"))
    first, (second, whole), *rest = kept["a"]
    return np.array([first * second, *whole, *[r.sum() for r in rest]])


def objects(x):
    @dataclass
    class Point:
        u: float
        v: float = 1.0

        @cached_property
        def product(self):
            return self.u * self.v

    p = Point(x[0], v=x[1])
    p.u += x[2]
    return p.product * p.u


def written(x):
    a = np.zeros((2, 3))
    a[0] = x
    a[1, ::2] = a[0, 1:] * x[0]
    a += a.sum()
    np.add.at(a, ([0, 0], [1, 1]), x[:2])
    a.T[0] *= x[1]
    return a


def records(x):
    table = np.zeros(3, [("u", float), ("v", float)])
    table["u"] = x
    table["v"] = x[::-1] * table["u"]
    return table["v"] * table[1]["u"] + table["u"]


def factors(x):
    A = np.outer(x, x) + np.diag(x**2) + 3 * np.eye(3)
    w, V = np.linalg.eigh(A)
    return np.linalg.solve(A, w) + np.abs(V) @ x + np.linalg.slogdet(A)[1]


def exceptions(x):
    try:
        y = x[0] * 2
        raise KeyError(y * x[1])
    except KeyError as error:
        return error.args[0] * y


def generators(x):
    def running():
        total = 0.0
        for v in x:
            total += v * x[0]
            yield total

    return sum(t * t for t in running()) + max(running(), key=abs)


def slopes(x):
    return grad(lambda y: np.sum(np.sin(y) * y**2) * x[0])(x)


def closures(x):
    total = 0.0

    def add(v):
        nonlocal total
        total = total + v * x[1]

    for v in x:
        add(v)
    return total * x.T.real


def complex_numbers(x):
    z = x[0] + 1j * x[1]
    return np.array([z**2, np.exp(z), np.conj(z) * x[2]])


@pytest.mark.parametrize(
    "f",
    [structures, objects, written, records, factors, exceptions, generators, slopes, closures,
     complex_numbers, lambda x: 3.0, lambda x: x],
)  # fmt: skip
def test_each_direction_is_as_if_alone(f):
    y, found = pushed_along(f, (X,), [(v,) for v in DIRECTIONS])
    np.testing.assert_array_equal(y, f(X))
    for v, ẏ in zip(DIRECTIONS, found, strict=True):
        expected = jvp(f, (X,), (v,))[1]
        assert type(ẏ) is type(expected)
        np.testing.assert_allclose(ẏ, expected, rtol=1e-12)


def test_directions_by_different_arguments():
    y, found = pushed_along(lambda a, b: a * b + a, (2.0, X), [(1.0, None), (None, X), (2.0, X)])
    np.testing.assert_array_equal(y, 2 * X + 2)
    np.testing.assert_allclose(found, [X + 1, 2 * X, 2 * (X + 1) + 2 * X])
    alone = pushed_along(lambda a: a**2, (3,), [(1.0,)])
    assert alone == (9, [6.0])


def test_a_jacobian_of_few_inputs_is_one_run_and_many_inputs_are_taken_in_chunks(capsys):
    def f(a, x):
        print("run")
        return np.array([a * x[0], a + x.sum()])

    by_a, by_x = jacobian(f, 2.0, X, mode="forward")
    assert capsys.readouterr().out == "run\n"
    np.testing.assert_allclose(by_a, [X[0], 1])
    np.testing.assert_allclose(by_x, [[2, 0, 0], [1, 1, 1]])
    jacobian(lambda x: f(1.0, x), np.ones(AT_ONCE + 1), mode="forward")
    assert capsys.readouterr().out == "run\n" * 2


def test_hessians_of_what_is_not_compiled_take_one_run_of_the_gradient():
    runs = []

    def f(z):
        runs.append(1)
        return np.sum(np.abs(z) ** 4)

    z = np.array([1 + 2j, 0.5j])
    H = hessian(f, z)
    assert len(runs) <= 3
    assert H.shape == (2, 2)


def test_rules_of_users_are_asked_once():
    asked = []

    def doubled(x):
        return 2 * np.asarray(x)

    @frule(doubled)
    def _(x):
        asked.append("forward")
        return doubled(x), lambda ẋ: 2 * ẋ

    def halved(x):
        return np.asarray(x) / 2

    @rrule(halved)
    def _(x):
        asked.append("reverse")
        return halved(x), lambda ȳ: (ȳ / 2,)

    (J,) = jacobian(lambda x: doubled(x) * halved(x), X, mode="forward")
    np.testing.assert_allclose(J, np.diag(2 * X))
    assert asked == ["forward", "reverse"]


def test_what_has_no_rule_is_an_error():
    unknown = cubic_root
    with pytest.raises(NoRuleError, match="cbrt"):
        jacobian(lambda x: unknown(x[0]) * x, X, mode="forward")
    (J,) = jacobian(lambda x: unknown(64.0) * x, X, mode="forward")
    np.testing.assert_allclose(J, 4 * np.eye(3))
