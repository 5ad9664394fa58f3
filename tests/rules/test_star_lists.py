"""Calls with the items of a list of the caller's: `f(*xs)`, `zip(*rows)`."""

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


def product(a, b, c=2.0):
    return a * b + c


def spread(xs):
    return product(*xs)


def columns(rows):
    return sum(sum(column) ** 2 for column in zip(*rows, strict=True))


def transposed(rows):
    turned = [list(column) for column in zip(*rows, strict=True)]
    n, m = len(rows), len(turned)
    gram = [[sum(rows[i][k] * turned[k][j] for k in range(m)) for j in range(n)] for i in range(n)]
    return sum(sum(row) for row in gram)


def of_each_row(rows):
    total = 0.0
    for row in rows:
        total += product(*row)
    return total


def of_a_list_that_grows(xs):
    ys = list(xs)
    ys.append(xs[0] * 2.0)
    return product(*ys)


XS, ROWS = [1.5, -0.5], [[1.0, 2.0, 3.0], [4.0, 5.0, 0.5]]
CASES = [(spread, XS), (columns, ROWS), (transposed, ROWS), (of_each_row, ROWS)]


@pytest.mark.parametrize(("f", "x"), [*CASES, (of_a_list_that_grows, XS)])
def test_value_and_gradient(f, x):
    check_gradient(f, x)
    assert repr(morula.withgradient(f, x)[0]) == repr(f(x))
    with by_the_general_path():
        expected = morula.gradient(f, x)
    np.testing.assert_allclose(morula.gradient(f, x), expected, rtol=1e-12)


@pytest.mark.parametrize(("f", "x"), CASES[:3])
def test_it_is_compiled(f, x):
    code = morula.code_adjoint(f, x)
    assert code.kind.startswith("specialised")
    assert not code.left


@pytest.mark.parametrize(("f", "x"), CASES)
def test_other_lengths(f, x):
    g = morula.value_and_grad(f)
    longer = [*x, x[0]]
    for _ in range(3):
        for xs in (x, longer, x):
            with by_the_general_path():
                try:
                    expected = morula.value_and_grad(f)(xs)
                except TypeError as error:
                    with pytest.raises(TypeError, match=str(error).split("(")[0]):
                        g(xs)
                    continue
            value, gradient = g(xs)
            assert value == expected[0]
            np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)


def test_rows_of_different_lengths():
    rows = [[1.0, 2.0], [3.0, 4.0, 5.0]]
    for _ in range(2):
        assert morula.withgradient(of_each_row, rows) == (21.0, ([[2.0, 1.0], [4.0, 3.0, 1.0]],))


def test_too_few():
    for f in (spread, morula.grad(spread)):
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            f([1.0])
