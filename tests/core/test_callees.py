"""Functions that call themselves: as pairs of functions for their types, and on the general path."""

import math

import numpy as np
import pytest

import morula
from morula.core import callees, compiled
from morula.testing import check_gradient


def evaluate(tree, x, y):
    if isinstance(tree, str):
        return x if tree == "x" else y
    operation, left, right = tree
    a = evaluate(left, x, y)
    b = evaluate(right, x, y)
    if operation == "+":
        return a + b
    return a * b


TREE = ("*", ("+", "x", ("*", "y", "y")), ("*", "x", ("+", "y", "x")))


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


def fast_power(x, n):
    if n == 0:
        return 1.0
    half = fast_power(x, n // 2)
    return half * half * x if n % 2 else half * half


def is_even_product(x, n):
    return 1.0 if n == 0 else x * is_odd_product(x, n - 1)


def is_odd_product(x, n):
    return math.sin(x) if n == 0 else (x + n) * is_even_product(x, n - 1)


def fibonacci(a, b, n=6):
    return a if n == 0 else fibonacci(b, a + b * a, n=n - 1)


def folded(pair, n):
    x, y = pair
    return x * y if n == 0 else folded((y, x + y), n - 1)


def smooth(v, n):
    return v if n == 0 else smooth(0.5 * (v + np.roll(v, 1)) ** 2, n - 1)


def clenshaw(f, x, n):
    return f(x) if n == 0 else f(clenshaw(f, x * 0.5, n - 1)) + x


PROGRAMS = [
    (lambda x, y: evaluate(TREE, x, y), (0.7, 1.3)),
    (lambda x: power(x, 5), (1.1,)),
    (lambda x: fast_power(math.sin(x), 11), (1.1,)),
    (lambda x: is_even_product(x, 5), (0.9,)),
    (lambda a, b: fibonacci(a, b), (0.3, 0.4)),
    (lambda x, y: folded((x, y), 4), (0.3, 0.4)),
    (lambda v: np.sum(smooth(v, 3)), (np.array([1.0, 0.2, -0.3]),)),
    (lambda x: clenshaw(math.cos, x, 3), (0.4,)),
    (lambda x: power(n=3, x=x) + power(x * x, 2), (1.2,)),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_recursive_functions(path, f, args):
    check_gradient(f, *args)
    value, _ = morula.withgradient(f, *args)
    assert repr(value) == repr(f(*args))


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_recursive_functions_are_specialised(f, args):
    compiled.forget_programs()
    compiled._families.clear()
    morula.gradient(f, *args)
    programs = [p for family in compiled._families.values() for p in family.programs.values()]
    assert [p.reason for p in programs] == [""]


def test_second_derivatives(path):
    slope = morula.grad(lambda x: fast_power(x, 5))
    assert slope(1.3) == pytest.approx(5 * 1.3**4)
    assert morula.grad(slope)(1.3) == pytest.approx(20 * 1.3**3)


def halves(x, n):
    """The square root at 0 has no finite slope; where it is not used, that must not matter."""
    root = math.sqrt(x)
    return ignored(root, x, n)


def ignored(root, x, n):
    return x * x if n == 0 else ignored(root, x, n - 1)


def test_cotangents_that_are_structurally_zero_stay_zero(path):
    assert morula.grad(lambda x: halves(x, 2))(0.0) == 0.0


def chosen(a, b, n):
    return a if n == 0 else chosen(b, a, n - 1)


def test_one_of_two_arguments_is_not_used(path):
    assert morula.gradient(lambda x, y: chosen(math.sqrt(x), y, 1), 0.0, 2.0) == (0.0, 1.0)


def rebound(x, n):
    return x if n == 0 else 2.0 * rebound(x, n - 1)


def test_a_callee_that_is_rebound_is_seen(path, monkeypatch):
    slope = morula.grad(lambda x: rebound(x, 3))
    assert slope(1.0) == 8.0
    monkeypatch.setitem(globals(), "rebound", lambda x, n: 5.0 * x)
    assert slope(1.0) == 5.0


def test_code_that_is_replaced_is_seen(path):
    def twice(x, n):
        return x if n == 0 else 2.0 * twice(x, n - 1)

    namespace = {}
    exec("def f(x, n):\n    return x if n == 0 else 2.0 * f(x, n - 1)", namespace)
    slope = morula.grad(lambda x: namespace["f"](x, 3))
    f = namespace["f"]
    assert morula.grad(f)(1.0, 3) == 8.0
    f.__code__ = (lambda x, n: 7.0 * x).__code__
    assert morula.grad(f)(1.0, 3) == 7.0
    assert slope(1.0) == 7.0
    assert morula.grad(twice)(1.0, 3) == 8.0


def deep(x, n):
    return x if n == 0 else 1.0 * deep(x, n - 1)


def test_too_deep_a_recursion_raises_what_python_raises(path):
    with pytest.raises(RecursionError):
        morula.grad(deep)(1.0, 10**6)
    assert morula.grad(deep)(1.0, 5) == 1.0


def checked(x, n):
    if n == 0:
        raise ValueError(f"at {x}")
    return checked(x + 1.0, n - 1)


def test_exceptions_of_the_callee_come_out(path):
    with pytest.raises(ValueError, match=r"at 3\.0"):
        morula.grad(checked)(1.0, 2)


def grown(x, items):
    """Its argument is of another type at every level."""
    return x if len(items) > 3 else x * grown(x, (*items, x))


def test_types_that_never_end(path):
    assert morula.grad(lambda x: grown(x, ()))(2.0) == pytest.approx(5 * 2.0**4)


def remembering(x, seen):
    seen.append(x)
    return x if len(seen) > 3 else x * remembering(x, seen)


def test_effects_happen_once(path):
    seen = []
    assert morula.grad(lambda x: remembering(x, seen))(2.0) == pytest.approx(4 * 2.0**3)
    assert seen == [2.0] * 4
    assert all(type(s) is float for s in seen)


def leaves(tree):
    return sum([leaves(t) for t in tree]) if isinstance(tree, tuple) else tree * tree


def test_a_tree_of_numbers(path):
    assert morula.grad(leaves)((1.0, (2.0, (3.0,)), 4.0)) == (2.0, (4.0, (6.0,)), 8.0)


def of_lists(tree):
    return sum([of_lists(t) for t in tree]) if isinstance(tree, list) else tree * tree


def test_a_tree_of_lists(path):
    assert morula.grad(of_lists)([1.0, [2.0, [3.0]], 4.0]) == [2.0, [4.0, [6.0]], 8.0]


def ring(x, n):
    return x if n == 0 else x * ring(x, n - 1)


def rings(x, n):
    return ring(x, n) if n == 0 else x + rings(x, n - 1) * ring(x, n)


def rings_of_rings(x, n):
    return rings(x, n) if n == 0 else x + rings_of_rings(x, n - 1) * rings(x, n)


def all_rings(x, n):
    return rings_of_rings(x, n) if n == 0 else x + all_rings(x, n - 1) * rings_of_rings(x, n)


def test_functions_within_functions_are_inferred_a_few_times_each(monkeypatch):
    """What one returns is assumed and checked; those behind it begin with what they returned before."""
    runs = []
    specialised = callees.Callees.specialised
    monkeypatch.setattr(
        callees.Callees,
        "specialised",
        lambda self, callee: runs.append(callee.fn.__name__) or specialised(self, callee),
    )
    check_gradient(lambda x: all_rings(x, 2), 0.5)
    assert 0 < runs.count("ring") <= 6  # 16, where each begins anew
