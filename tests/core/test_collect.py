"""Generator expressions that are read at once: as lists in programs, lazily elsewhere."""

import itertools
import math

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.testing import check_gradient

XS = [0.5, 1.2, 2.0]
X = np.array(XS)

PROGRAMS = {
    "sum": lambda xs: sum(x * x for x in xs),
    "sum with a condition": lambda xs: sum(x * x for x in xs if x > 1) * xs[0],
    "two loops": lambda xs: sum(x * y for x in xs for y in xs if x < y),
    "list": lambda xs: list(x * x for x in xs)[1],
    "tuple": lambda xs: tuple(x * xs[0] for x in xs)[2],
    "max": lambda xs: max(x * (3 - x) for x in xs),
    "min": lambda xs: min(x * (3 - x) for x in xs),
    "sorted": lambda xs: sorted(-x * xs[1] for x in xs)[0],
    "fsum": lambda xs: math.fsum(x * x for x in xs),
    "prod": lambda xs: math.prod(x + 1 for x in xs),
    "nested": lambda xs: sum(sum(x * y for y in xs) for x in xs),
    "zip": lambda xs: sum(a * b for a, b in itertools.pairwise(xs)),
    "enumerate": lambda xs: sum(x**i for i, x in enumerate(xs)),
    "a captured variable": lambda xs: (lambda w: sum(w * x for x in xs))(xs[0] * 2),
    "walrus": lambda xs: sum(y * y for x in xs if (y := x * 2) > 1),
    "start": lambda xs: sum((x for x in xs), xs[1] * xs[2]),
    "key": lambda xs: max((x for x in xs), key=lambda v: -v) * xs[2],
    "taken before it is read": lambda xs: [g := (x * xs[0] for x in xs), sum(g)][1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    f = PROGRAMS[name]
    check_gradient(f, XS)
    check_gradient(f, X)
    with compiled.by_the_general_path():
        general = morula.grad(f)(XS)
    np.testing.assert_allclose(morula.grad(f)(XS), general, rtol=1e-12)


def test_it_is_compiled():
    f = PROGRAMS["sum"]
    morula.grad(f)(XS)
    assert "generators" not in str(morula.code_adjoint(f, XS))


def test_what_is_not_read_to_the_end_stays_lazy():
    seen = []

    def f(xs):
        first = next(x * x for x in xs if not seen.append(x))
        found = any(x > 1 for x in xs if not seen.append(x))
        return first * 2 if found else first

    assert morula.grad(f)(XS) == [2.0, 0.0, 0.0]
    assert seen == [0.5, 0.5, 1.2]


def test_effects_happen_in_order():
    seen = []

    def note(x):
        seen.append(x)
        return x

    def f(xs):
        total = sum(note(x) for x in xs)
        note("between")
        return total * max(note(x) for x in xs)

    assert morula.grad(f)(XS) == [2.0, 2.0, 2.0 + 3.7]
    assert seen == [*XS, "between", *XS]


def test_exceptions_leave_as_they_do():
    def f(xs):
        return sum(1 / (x - 2.0) for x in xs)

    with pytest.raises(ZeroDivisionError):
        morula.grad(f)(XS)


def test_an_own_sum_is_not_the_builtin():
    def sum(items):
        return next(items) * 3

    def f(xs):
        return sum(x * x for x in xs)

    assert morula.grad(f)(XS) == [3.0, 0.0, 0.0]
