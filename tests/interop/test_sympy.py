"""Numbers of SymPy's are numbers; its expressions have no derivative here, and say so."""

import pytest

import morula
from morula.core.errors import DifferentiationError
from tests.modes import check_modes

sympy = pytest.importorskip("sympy")

A = sympy.Symbol("a")
NUMBERS = {
    "Float": lambda x: sympy.Float(x) * 2,
    "sympify": lambda x: sympy.sympify(x) * x,
    "Rational": lambda x: x**2 * sympy.Rational(1, 3) - sympy.Rational(1, 2) / sympy.Float(x),
    "Integer": lambda x: sympy.Integer(3) * x**2,
    "powers": lambda x: 2 ** sympy.Float(x) + sympy.Float(x) ** x + x ** sympy.Rational(1, 2),
    "functions": lambda x: (
        sympy.sin(sympy.Float(x)) * sympy.sqrt(x * sympy.log(sympy.Float(x + 1)))
    ),
    "constants": lambda x: x**2 * float(sympy.sqrt(2)) + float(sympy.pi) * x,
    "compared": lambda x: x * x if sympy.Float(x) > 0 else 0.0,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    check_modes(lambda x: float(NUMBERS[name](x)), 0.7)


@pytest.mark.parametrize("f", [
    sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan,
    sympy.sinh, sympy.cosh, sympy.tanh, sympy.sqrt,
])  # fmt: skip
def test_functions(f):
    check_modes(lambda x: float(f(sympy.Float(x))), 0.4)


def test_what_lambdify_makes():
    f = sympy.lambdify(A, sympy.sin(A) * A**2, "math")
    check_modes(f, 0.7)
    check_modes(lambda x: sympy.lambdify(A, sympy.exp(A), "math")(x) * x, 0.7)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: A.subs(A, x),
        lambda x: (A * x).subs(A, 2.0),
        lambda x: sympy.gamma(sympy.Float(x)),
        lambda x: sympy.N(sympy.pi * x),
    ],
)
def test_expressions_are_refused(f):
    def g(x):
        return float(f(x))

    for derivative in (lambda: morula.grad(g)(0.7), lambda: morula.jvp(g, (0.7,), (1.0,))):
        with pytest.raises(DifferentiationError, match="lambdify"):
            derivative()


def test_a_number_is_a_point_of_its_own_space():
    found = morula.grad(lambda x: x**3)(sympy.Rational(1, 2))
    assert isinstance(found, sympy.Number)
    assert float(found) == 0.75


def test_numbers_that_become_code_or_text_warn():
    def through_code(x):
        return sympy.lambdify(A, A * x)(2.0)

    def through_text(x):
        return float(str(sympy.Float(x)))

    for f in (through_code, through_text):
        with pytest.warns(UserWarning, match="derivative"):
            morula.grad(f)(0.7)
    with pytest.warns(UserWarning, match="derivative"):
        morula.jvp(through_text, (0.7,), (1.0,))
    with pytest.raises(DifferentiationError):
        morula.jvp(through_code, (0.7,), (1.0,))
