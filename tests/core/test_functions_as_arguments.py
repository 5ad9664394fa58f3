"""Functions that are arguments, or defaults: programs take them for the functions that they are."""

import sys

import numpy as np
import pytest

from morula import frule, grad, gradient, hvp, jvp, rrule
from morula.core import general
from morula.testing import check_gradient


def bent(x):
    return np.tanh(x) * x


def repeated(x, activation=bent, n=3):
    for _ in range(n):
        x = activation(x)
    return x.sum()


def by_ufunc(x, activation=np.tanh):
    return repeated(x, activation)


def by_name(x, *, activation=bent):
    return repeated(x, activation)


def by_class(x, kind=float):
    return kind(x[0]) * x[1]


X = np.array([0.3, 0.8])


def codes(g):
    return [p.code is not None for p in g.__dict__["__morula__"].programs.values()]


@pytest.mark.parametrize("f", [repeated, by_ufunc, by_name, by_class])
def test_gradients_with_functions_as_defaults(f):
    g = grad(f)
    check_gradient(f, X)
    assert g(X) == pytest.approx(gradient(f, X)[0])
    assert hvp(f, X, X) == pytest.approx(jvp(g, (X,), (X,))[1])


def test_programs_call_no_function_by_the_general_path(monkeypatch):
    def f(x, activation=bent, n=3):
        for _ in range(n):
            x = activation(x)
        return x.sum()

    g = grad(f)
    by_default, by_argument = g(X), g(X, np.sin)
    assert codes(g) == [True, True]
    monkeypatch.setattr(general, "call", None)
    assert g(X) == pytest.approx(by_default)
    assert g(X, np.sin) == pytest.approx(by_argument)


def test_each_function_has_its_own_gradient():
    g = grad(repeated)
    functions = [bent, np.tanh, lambda x: x**2, np.sin, np.abs, lambda x: x * 3]
    for activation in (*functions, *functions[::-1], *functions):
        assert g(X, activation) == pytest.approx(grad(lambda x: repeated(x, activation))(X))


def test_functions_made_anew_are_compiled_for_a_few_times_only():
    def f(x, activation, n=3):
        for _ in range(n):
            x = activation(x)
        return x.sum()

    g = grad(f)
    for _ in range(10):
        assert g(X, lambda x: x * 3) == pytest.approx([27.0, 27.0])
    assert sum(p.tries for p in g.__morula__.programs.values()) <= 2


def test_functions_that_have_captured_variables():
    g = grad(repeated)
    for k in (2.0, 3.0):
        assert g(X, lambda x: x * k) == pytest.approx([k**3] * 2)


def test_what_a_global_function_reads_may_change(monkeypatch):
    g = grad(repeated)
    assert g(X, scaled) == pytest.approx([8.0, 8.0])
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert g(X, scaled) == pytest.approx([27.0, 27.0])


SCALE = 2.0


def scaled(x):
    return x * SCALE


# -- parameters that are given by name only


def scaled_by_name(x, y=2.0, *, k=3.0, n=2):
    for _ in range(n):
        x = np.sin(x) * k * y
    return x.sum()


def test_forward_mode_with_parameters_given_by_name_only(monkeypatch):
    def plain(x):
        return scaled_by_name(x)

    second = hvp(plain, X, X)
    value, slope = jvp(plain, (X,), (X,))
    monkeypatch.setattr(general, "call", None)  # neither goes by the general path
    assert jvp(scaled_by_name, (X,), (X,)) == (value, pytest.approx(slope))
    assert jvp(scaled_by_name, (X, 2.0), (X, 0.0)) == (value, pytest.approx(slope))
    assert hvp(scaled_by_name, X, X) == pytest.approx(second)


def test_methods_with_parameters_given_by_name_only():
    class Model:
        def __init__(self, w):
            self.w = w

        def loss(self, x, *, power=3):
            return (x * self.w).sum() ** power

    model = Model(np.array([2.0, 1.0]))
    expected = jvp(lambda x: model.loss(x), (X,), (X,))
    assert jvp(model.loss, (X,), (X,)) == (expected[0], pytest.approx(expected[1]))


def test_they_are_not_given_by_position():
    with pytest.raises(TypeError, match="positional argument"):
        jvp(scaled_by_name, (X, 2.0, 3.0), (X, 0.0, 0.0))
    with pytest.raises(TypeError, match="positional argument"):
        hvp(scaled_by_name, X, X, 2.0, 3.0)


def test_changed_defaults_are_seen():
    def f(x, *, k=3.0):
        return x**3 * k

    assert jvp(f, (1.0,), (1.0,)) == (3.0, 9.0)
    f.__kwdefaults__ = {"k": 5.0}
    assert jvp(f, (1.0,), (1.0,)) == (5.0, 15.0)
    assert hvp(f, 1.0, 1.0) == 30.0


def test_rules_of_functions_with_parameters_given_by_name_only():
    def f(x, *, k=3.0):
        return x * k

    @frule(f)
    def _(x: float):
        return 7.0, lambda ẋ: 11.0 * ẋ

    assert jvp(f, (1.0,), (1.0,)) == (7.0, 11.0)


def cubing():
    return lambda v: v**3


def total(x, fn):
    return np.sum(fn(x))


def test_functions_of_the_same_code_share_a_program():
    g, entered = grad(total), []
    expected = g(X, cubing())
    other = cubing()
    sys.setprofile(lambda frame, event, arg: entered.append(frame.f_code.co_name))
    try:
        found = g(X, other)
    finally:
        sys.setprofile(None)
    np.testing.assert_array_equal(found, expected)
    assert "call" not in entered  # nothing is found out when it happens


def test_a_function_of_the_same_code_with_a_rule_of_its_own():
    plain, ruled = cubing(), cubing()

    @rrule(ruled)
    def _(v: np.ndarray):
        return v**3, lambda ȳ: (5.0 * ȳ,)

    g = grad(total)
    for _ in range(2):
        np.testing.assert_array_equal(g(X, plain), 3 * X**2)
        np.testing.assert_array_equal(g(X, ruled), np.full(X.shape, 5.0))
