"""The functions of scipy.optimize for one method each, linear programs and least squares."""

import math

import numpy as np
import pytest
from scipy import optimize, sparse

from morula import UnsupportedError, grad, gradient, jvp, value_and_grad
from morula.core.extend import by_the_general_path


def loss(x, a):
    return (x[0] - a) ** 2 + 0.1 * (x[1] - 2 * a) ** 4 + (x[1] - a * a) ** 2 + 0.3 * x[0] * x[1]


def slope(x, a):
    first = 2 * (x[0] - a) + 0.3 * x[1]
    return np.array([first, 0.4 * (x[1] - 2 * a) ** 3 + 2 * (x[1] - a * a) + 0.3 * x[0]])


def both(x, a):
    return loss(x, a), slope(x, a)


def curve(x, a):
    return (x - a) ** 2 + 0.1 * x**4


def steep(x, a):
    return np.array([x[0] - 0.3 * np.cos(a * x[1]), x[1] - 0.2 * np.sin(x[0] + a)])


START, QUIET = [0.5, 0.5], {"disp": False}
EXACT, EXACTLY = {"gtol": 1e-10, **QUIET}, {"pgtol": 1e-12, "factr": 1}
MINIMA = {
    "fmin": lambda a: optimize.fmin(loss, START, (a,), xtol=1e-10, ftol=1e-14, **QUIET),
    "fmin_powell": lambda a: optimize.fmin_powell(loss, START, (a,), 1e-10, 1e-14, **QUIET),
    "fmin_bfgs": lambda a: optimize.fmin_bfgs(loss, START, slope, (a,), **EXACT),
    "fmin_cg": lambda a: optimize.fmin_cg(loss, START, slope, args=(a,), **EXACT),
    "fmin_ncg": lambda a: optimize.fmin_ncg(loss, START, slope, args=(a,), avextol=1e-12, **QUIET),
    "fmin_l_bfgs_b": lambda a: optimize.fmin_l_bfgs_b(loss, START, slope, (a,), **EXACTLY)[0],
    "value and slope": lambda a: optimize.fmin_l_bfgs_b(both, START, args=(a,), **EXACTLY)[0],
    "fmin_tnc": lambda a: optimize.fmin_tnc(loss, START, slope, args=(a,), disp=0, ftol=1e-15)[0],
    "fmin_slsqp": lambda a: optimize.fmin_slsqp(loss, START, args=(a,), acc=1e-14, iprint=0),
    "fmin_cobyla": lambda a: optimize.fmin_cobyla(loss, START, [], args=(a,), consargs=(), rhoend=1e-9),
    "brent": lambda a: np.array([optimize.brent(curve, args=(a,)), 1.0]),
    "golden": lambda a: np.array([optimize.golden(curve, (a,), (-1, 2)), 1.0]),
    "fminbound": lambda a: np.array([optimize.fminbound(curve, -1, 3, (a,), 1e-10), 1.0]),
}  # fmt: skip
ROOTS = ("anderson", "broyden1", "broyden2", "diagbroyden", "newton_krylov")


def check(f, x, rel=1e-4, h=1e-3):
    """The values, forward mode and both paths; differences of what solvers find are rough."""
    expected = (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)
    value, found = value_and_grad(f)(x)
    assert value == f(x)
    assert found == pytest.approx(expected, rel=rel, abs=1e-6)
    with by_the_general_path():
        assert grad(f)(x) == pytest.approx(found, rel=1e-9)
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("name", MINIMA)
def test_minima(name):
    check(lambda a: MINIMA[name](a) @ np.array([1.0, 2.0]), 0.8)


@pytest.mark.parametrize("name", ROOTS)
def test_roots(name):
    def f(a):
        return getattr(optimize, name)(lambda x: steep(x, a), [0.3, 0.2], f_tol=1e-12).sum()

    check(f, 0.8)


def test_what_else_they_tell():
    def f(a):
        x, value, *_ = optimize.fmin_bfgs(loss, START, slope, (a,), full_output=True, **EXACT)
        return value + 0.0 * x[0]

    check(f, 0.8)
    with pytest.raises(UnsupportedError, match="fmin_bfgs tells besides"):
        gradient(
            lambda a: optimize.fmin_bfgs(loss, START, slope, (a,), full_output=True, **EXACT)[2][0],
            0.8,
        )
    kept = optimize.fmin(loss, START, (0.8,), retall=True, **QUIET)
    x, points = value_and_grad(
        lambda a: optimize.fmin(loss, START, (a,), retall=True, **QUIET)[0].sum()
    )(0.8)
    assert x == kept[0].sum()
    assert np.isfinite(points)


def test_constraints_are_refused():
    for f in (
        lambda a: optimize.fmin_l_bfgs_b(loss, START, slope, (a,), bounds=[(2, 3), (0, 5)])[0].sum(),
        lambda a: optimize.fmin_slsqp(loss, START, [lambda x, a: x[0] - a], args=(a,), iprint=0).sum(),
        lambda a: optimize.fminbound(curve, 2, 3, (a,)),
        lambda a: optimize.minimize_scalar(curve, bounds=(2, 3), args=(a,), method="bounded").x,
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="at a bound, under constraints"):
            gradient(f, 0.8)


def system(a):
    return np.array([[1.0, a], [0.3, 2.0], [a, a]]), np.array([1.0, 2.0, a])


def program(a):
    return np.array([-1.0, -2.0 * a]), np.array([[1.0, 1.0], [a, 2.0]]), np.array([2.0, 1.0 + a])


def of_program(a, **settings):
    c, A, b = program(a)
    r = optimize.linprog(c, A, b, **settings)
    return r.fun + r.x @ np.array([0.3, 0.7]) + np.sum(r.slack * np.array([0.2, 0.4]))


LINEAR = {
    "nnls": lambda a: np.sum(optimize.nnls(*system(a))[0]) + optimize.nnls(*system(a))[1],
    "nnls at zero": lambda a: np.sum(optimize.nnls(*[-v for v in system(a)][:1], system(a)[1])[0]) + a,
    "lsq_linear": lambda a: optimize.lsq_linear(*system(a)).x.sum(),
    "within bounds": lambda a: optimize.lsq_linear(*system(a), bounds=(0.1, 0.6 * a)).x @ [1.0, 2.0],
    "its cost": lambda a: optimize.lsq_linear(*system(a), bounds=(0.1, 0.6 * a)).cost,
    "sparse": lambda a: optimize.lsq_linear(sparse.csr_array(system(a)[0]), system(a)[1]).x.sum(),
    "isotonic": lambda a: optimize.isotonic_regression(np.array([1.0, a, 0.5, 2.0, a * a])).x
    @ np.arange(5.0),
    "decreasing": lambda a: optimize.isotonic_regression(
        np.array([1.0, a, 0.5, 2.0, a * a]), weights=np.array([1.0, a, 2.0, 1.0, 1.0]), increasing=False
    ).x
    @ np.arange(5.0),
    "linprog": of_program,
    "bounds": lambda a: of_program(a, bounds=[(0.1 * a, None), (None, 0.4)]),
    "equation": lambda a: optimize.linprog(
        [1.0, 2.0], A_eq=np.array([[1.0, a]]), b_eq=np.array([1.0])
    ).fun,
    "whole numbers": lambda a: optimize.milp(
        np.array([-1.0, -a]), integrality=[1, 1], bounds=optimize.Bounds(0, 2)
    ).fun,
    "assignment": lambda a: np.array([[a, 2.0], [1.0, a * a]])[
        optimize.linear_sum_assignment(np.array([[a, 2.0], [1.0, a * a]]))
    ].sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_linear_problems(name):
    check(LINEAR[name], 0.8)


def test_what_has_no_derivative_in_linear_problems():
    with pytest.raises(UnsupportedError, match="as many constraints are active"):
        gradient(lambda a: optimize.linprog([-1, -1], [[1, 1], [1, 2]], [a, a]).x.sum(), 0.8)
    with pytest.raises(UnsupportedError, match="ineqlin"):
        gradient(lambda a: optimize.linprog(*program(a)).ineqlin.marginals.sum(), 0.8)
    with pytest.raises(UnsupportedError, match="whole numbers"):
        gradient(
            lambda a: optimize.milp(np.array([-1.0, -a]), bounds=optimize.Bounds(0, 2)).fun, 0.8
        )
    with pytest.raises(UnsupportedError, match="whole numbers"):
        gradient(lambda a: optimize.linprog(*program(a), integrality=[1, 0]).fun, 0.8)


def test_complex_roots():
    def f(c):
        z = optimize.newton(lambda z, c: z**2 + c, 0.1 + 0.8j, lambda z, c: 2 * z, args=(c,))
        return z.imag + 2.0 * z.real

    check(f, 1.3)
    assert f(1.3) == pytest.approx(np.sqrt(1.3))


def test_further_arguments_in_a_list():
    """Where SciPy unpacks them as they are."""

    def f(a):
        x = optimize.newton(lambda x, a, b: x**3 + a * x - b, 0.5, args=[a, 1.0])
        return x + optimize.fixed_point(lambda x, a: np.cos(a * x), 0.5, args=[a])

    check(f, 0.8)


def single(x, a):
    """A loss of one unknown as its users write it: an array of one, for SciPy hands one over."""
    return (x - a) ** 2 + 0.1 * np.sin(a * x)


@pytest.mark.parametrize("name", ["fmin", "fmin_powell", "fmin_bfgs", "fmin_cg", "fmin_ncg"])
def test_losses_that_are_arrays_of_one(name):
    minimiser = getattr(optimize, name)
    more = (lambda x, a: 2 * (x - a) + 0.1 * a * np.cos(a * x),) if name == "fmin_ncg" else ()

    def f(a):
        x, value, *_ = minimiser(single, 0.3, *more, args=(a,), full_output=True, **QUIET)
        assert np.shape(value) == ()
        return math.sin(value) + 0.0 * np.sum(x)

    check(f, 0.8)
