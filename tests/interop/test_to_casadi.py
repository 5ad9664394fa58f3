"""NumPy functions that Morula differentiates, as functions of CasADi's: against CasADi's own."""

import gc

import numpy as np
import pytest

casadi = pytest.importorskip("casadi", reason="the extra casadi is not installed")

from morula.interop.casadi import to_casadi  # noqa: E402
from morula.interop.operations import OperationError  # noqa: E402


def model(x, a):
    y = np.sin(x) * a
    while y[0] < 0.1:
        y = y + 1.0
    return np.sum(y**2) + x[0] ** 3


def model_in_casadi(x, a):
    return casadi.sumsqr(casadi.sin(x) * a) + x[0] ** 3


f = to_casadi(model, 3, ())


def numbers(expression, symbols, point):
    return casadi.Function("F", symbols, [expression])(*point).full()


@pytest.mark.parametrize(
    "derived",
    [
        lambda y, x, a: y,
        lambda y, x, a: casadi.gradient(y, x),
        lambda y, x, a: casadi.jacobian(y, a),
        lambda y, x, a: casadi.jtimes(y, x, casadi.DM([1, 2, 3])),
        lambda y, x, a: casadi.jtimes(casadi.gradient(y, x), a, 2),
        lambda y, x, a: casadi.hessian(y, x)[0],
        lambda y, x, a: casadi.gradient(casadi.exp(y / 10) * casadi.sum1(x), x),
    ],
)
def test_derivatives_of_all_orders_are_those_of_functions_of_casadi(derived):
    x, a = casadi.MX.sym("x", 3), casadi.MX.sym("a")
    point = [0.5, 1.0, 2.0], 2.0
    got, want = (numbers(derived(h(x, a), x, a), [x, a], point) for h in (f, model_in_casadi))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_third_derivatives():
    x = casadi.MX.sym("x")
    y = to_casadi(lambda x: x * x * x * x, ())(x)
    for _ in range(3):
        y = casadi.gradient(y, x)
    assert numbers(y, [x], [2.0]) == 48


def layer(w, b, x):
    return {"out": np.tanh(w @ x + b), "size": np.sum(w**2)}


def test_matrices_vectors_and_several_outputs():
    node = to_casadi(layer, (2, 3), 2, 3)
    assert [node.name_in(i) for i in range(3)] == ["w", "b", "x"]
    assert [node.name_out(i) for i in range(2)] == ["out", "size"]
    symbols = w, b, x = casadi.MX.sym("w", 2, 3), casadi.MX.sym("b", 2), casadi.MX.sym("x", 3)
    y = node(w=w, b=b, x=x)
    ours = casadi.sum1(y["out"] ** 2) * y["size"]
    theirs = casadi.sum1(casadi.tanh(w @ x + b) ** 2) * casadi.sumsqr(w)
    rng = np.random.default_rng(0)
    point = [rng.standard_normal(s.shape) for s in symbols]
    for s in symbols:
        slope, own = casadi.gradient(ours, s), casadi.gradient(theirs, s)
        assert slope.shape == s.shape
        np.testing.assert_allclose(numbers(slope, symbols, point), numbers(own, symbols, point))
        second, own = casadi.jacobian(slope, x), casadi.jacobian(own, x)
        np.testing.assert_allclose(numbers(second, symbols, point), numbers(own, symbols, point))
    blocks = node.jacobian()(*point, 0, 0)
    own = casadi.Function("own", symbols, [casadi.jacobian(casadi.tanh(w @ x + b), w)])
    np.testing.assert_allclose(blocks[0].full(), own(*point).full())


def test_structures_of_arguments_and_values():
    def g(p, t):
        return p["a"] * t, [p["b"][0].sum(), t]

    node = to_casadi(g, {"a": 2, "b": [(2, 2)]}, ())
    outs = node([1, 2], np.array([[1.0, 2.0], [3.0, 4.0]]), 3)
    assert [y.full().ravel().tolist() for y in outs] == [[3, 6], [10], [3]]
    named = to_casadi(lambda p: {"x y": p[0], "z": p[1]}, [(), ()], out={"x y": (), "z": ()})
    assert [named.name_out(i) for i in range(2)] == ["x_y", "z"]
    assert named(i0=2, i1=3)["z"] == 3


def test_a_value_of_integers_is_one_of_numbers_without_slope():
    x = casadi.MX.sym("x", 2)
    count = to_casadi(lambda x: int(np.sum(x > 0)), 2)
    slope = casadi.gradient(count(x) * casadi.sum1(x), x)
    assert numbers(slope, [x], [[1.0, -2.0]]).ravel().tolist() == [1, 1]


def test_the_point_where_the_shape_of_the_value_is_found_can_be_avoided():
    def inverse(x):
        if np.all(x == 1.0):
            raise ArithmeticError("singular")
        return 1.0 / (x - 1.0)

    with pytest.raises(ArithmeticError) as caught:
        to_casadi(inverse, 2)
    assert "out=shape" in caught.value.__notes__[0]
    assert to_casadi(inverse, 2, out=2)([2, 3]).full().ravel().tolist() == [1.0, 0.5]


def test_what_is_made_with_a_node_keeps_it():
    def made():
        x = casadi.MX.sym("x", 2)
        return casadi.Function("g", [x], [casadi.gradient(to_casadi(np.prod, 2)(x), x)])

    g = made()
    gc.collect()
    assert g([2, 3]).full().ravel().tolist() == [3, 2]


def test_errors():
    with pytest.raises(OperationError, match="gave a str: CasADi takes numbers and arrays"):
        to_casadi(lambda x: "x", 2)
    with pytest.raises(OperationError, match="complex numbers, which CasADi does not have"):
        to_casadi(lambda x: x * 1j, 2)
    with pytest.raises(TypeError, match=r"no arrays of shape \(2, 2, 2\)"):
        to_casadi(np.sum, (2, 2, 2))
    with pytest.raises(TypeError, match="'x' is no shape"):
        to_casadi(np.sum, "x")
    with pytest.raises(RuntimeError, match=r"shape \(2,\) where shape \(1,\) was announced"):
        to_casadi(lambda x: x, 2, out=1)([1, 2])

    def refuses(x):
        if x > 1:
            raise KeyError("no such thing")
        return x

    with pytest.raises(RuntimeError, match="no such thing"):
        to_casadi(refuses, ())(2)


def test_ipopt_solves_with_an_objective_and_constraints_in_numpy():
    def rosenbrock(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    x = casadi.MX.sym("x", 2)
    found = []
    for objective, constraints in (
        (to_casadi(rosenbrock, 2)(x), to_casadi(lambda x: np.array([x @ x, x[0]]), 2)(x)),
        (rosenbrock(x), casadi.vertcat(casadi.sumsqr(x), x[0])),
    ):
        quiet = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": 0}
        solve = casadi.nlpsol("solve", "ipopt", {"x": x, "f": objective, "g": constraints}, quiet)
        result = solve(x0=[0.5, 0.5], lbg=[-casadi.inf, -1], ubg=[1, 1])
        assert solve.stats()["success"]
        found.append((result["x"].full().ravel(), solve.stats()["iter_count"]))
    (ours, steps), (theirs, same_steps) = found
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    assert steps == same_steps
