"""`debug_nans` and `why` name the line that a zero or a NaN comes from."""

import functools
import inspect
import json
import math
import threading

import numpy as np
import pytest

import morula
from morula import (
    NonFiniteError,
    debug_nans,
    grad,
    gradient,
    ignore_derivatives,
    numeric_rule,
    pullback,
    rrule,
    value_and_grad,
    why,
)


def planted(f):
    """The line of a function that is marked."""
    lines, first = inspect.getsourcelines(f)
    return next(first + i for i, line in enumerate(lines) if "# here" in line)


# -- programs with a number that is not finite -----------------------------------------------------


def root_at_zero(x):
    y = x * 2.0
    z = np.sqrt(y)  # here
    return z.sum() * 3.0


def logarithm(x):
    y = np.log(x)  # here
    return (y + x).sum()


def division(x):
    total = 1.0
    for xi in x:
        total = total + 1.0 / (xi * xi + 0.0)  # here
    return total


def power(x):
    return (x**0.5).sum()  # here


def in_a_helper(x):
    def inner(y):
        return np.cbrt(y)  # here

    return inner(x).sum() + x.sum()


class Model:
    def __init__(self, w):
        self.w = w

    def loss(self, x):
        y = self.w * x
        return np.arccos(y).sum()  # here


def in_a_method(x):
    return Model(np.array([1.0, 1.0])).loss(x + 1.0)


def in_a_list(x):
    ys = []
    for xi in x:
        ys.append(np.sqrt(xi))  # here
    return sum(ys)


def in_a_dict(x):
    parts = {"a": x + 1.0, "b": x}
    parts["c"] = np.sqrt(parts["b"])  # here
    return parts["c"].sum() + parts["a"].sum()


def masked_and_real(x):
    harmless = np.where(x > 0, np.sqrt(x), 0.0)
    bad = np.log1p(x - 1.0)  # here
    return harmless.sum() + bad.sum()


def masked_by_an_index(x):
    roots = np.sqrt(x)
    used = roots[1:].sum()
    return used + np.arctanh(x + 1.0).sum()  # here


def half(x):
    return x / 2


@rrule(half)
def _(x: np.ndarray):
    return x / 2, lambda ȳ: (ȳ * np.nan,)


def wrong_rule(x):
    y = x + 1.0
    z = half(y)  # here
    return z.sum()


def generator(x):
    return sum(1.0 / xi for xi in x)  # here


def comprehension(x):
    ys = [
        math.pow(xi, 0.5) if xi > -1 else xi  # here
        for xi in x
    ]
    return ys[0] + ys[1]


def in_a_while_loop(x):
    y, n = x, 0
    while n < 3:
        y = y + np.log(x) if n == 1 else y * 2.0  # here
        n += 1
    return y.sum()


def in_an_array_that_is_written(x):
    y = np.zeros(2)
    y[0] = x[1]
    y[1] = np.sqrt(x[0])  # here
    return y.sum()


def in_a_partial(x):
    power = functools.partial(np.float_power, x2=0.5)
    return np.float_power(x, 0.5).sum() + len(power.keywords)  # here


def in_a_try(x):
    try:
        y = np.sqrt(x)  # here
        if y[1] > 1.0:
            raise ValueError
    except ValueError:
        y = y * 2.0
    return y.sum()


def a_norm_of_zeros(x):
    y = (x * np.array([1.0, 0.0])).sum()
    return (y * y) ** 0.5 + x.sum()  # here


def in_a_match(x):
    match x:
        case np.ndarray(size=2):
            return (1.0 / x).sum()  # here
    return x.sum()


def in_a_recursion(x, depth=2):
    if depth == 0:
        return np.sqrt(x).sum()  # here
    return in_a_recursion(x, depth - 1) * 1.5


BAD = [
    in_a_while_loop,
    in_an_array_that_is_written,
    in_a_partial,
    in_a_try,
    a_norm_of_zeros,
    in_a_match,
    in_a_recursion,
    root_at_zero,
    logarithm,
    division,
    power,
    in_a_helper,
    in_a_method,
    in_a_list,
    in_a_dict,
    masked_and_real,
    masked_by_an_index,
    wrong_rule,
    generator,
    comprehension,
]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("f", BAD)
def test_the_line_where_a_cotangent_stops_being_finite(f):
    x = np.array([0.0, 4.0])
    source = Model.loss if f is in_a_method else f
    plain = gradient(f, x)[0] if f is not generator else None
    with debug_nans(), pytest.raises(NonFiniteError) as caught:
        gradient(f, x)
    assert f"{__file__}:{planted(source)}, in " in str(caught.value)
    with debug_nans(), pytest.raises(NonFiniteError):
        grad(f)(x)
    assert f"{__file__}:{planted(source)}" in str(why(f, x).findings[0])
    if plain is not None:
        assert not np.isfinite(plain).all()
        np.testing.assert_array_equal(gradient(f, x)[0], plain)


def test_no_false_alarms():
    x = np.array([0.0, 4.0])

    def masked(x):
        return np.where(x > 0, np.sqrt(x), 0.0).sum() + np.sqrt(x + 1)[1]

    def unused(x):
        np.sqrt(x).sum()
        return x.sum()

    expected = [gradient(f, x)[0] for f in (masked, unused)]
    with debug_nans():
        np.testing.assert_array_equal(gradient(masked, x)[0], expected[0])
        np.testing.assert_array_equal(gradient(unused, x)[0], expected[1])
        value, g = value_and_grad(lambda x: x**3)(2.0)
    assert (value, g) == (8.0, 12.0)


def test_the_message_has_values_and_where_a_number_was_born():
    def f(x):
        y = np.log(x)
        z = y * x
        return (z * z).sum()

    with debug_nans(), pytest.raises(NonFiniteError) as caught:
        gradient(f, np.array([-1.0]))
    text = str(caught.value)
    assert "result array([nan])" in text
    assert "numbers that are not finite came first from numpy.log" in text
    assert "y = np.log(x)" in text
    assert "served by the rule at morula/rules/" in text


def test_it_is_off_afterwards_and_in_other_threads():
    g = grad(lambda x: x**0.5)
    assert g(0.0) == math.inf
    found = []
    with debug_nans():
        thread = threading.Thread(target=lambda: found.append(g(0.0)))
        thread.start()
        thread.join()
        with pytest.raises(NonFiniteError, match="is not finite"):
            g(0.0)
        with pytest.raises(RuntimeError, match="observed already"), debug_nans():
            pass
    assert found == [math.inf]
    assert g(0.0) == math.inf
    assert morula.core.watch.current is None


def test_a_pullback_with_a_cotangent_of_its_own():
    with debug_nans():
        _, back = pullback(lambda x: x * x, 2.0)
        assert back(math.inf) == (math.inf,)
        _, back = pullback(lambda x: 1 / x, 0.5)
        assert back(1.0) == (-4.0,)


# -- programs in which the dependence ends ---------------------------------------------------------


def by_int(x):
    y = x * 2.0
    n = int(y)  # here
    return n * 3.0


def by_rounding(x):
    return round(x * 3.0) * 1.5  # here


def by_a_comparison(x):
    y = x * x
    return 1.0 if y > 2 else 2.0  # here


def by_text(x):
    s = str(x * 2.0)  # here
    return float(s)


def by_json(x):
    return json.loads(json.dumps({"x": x}))["x"] * 2.0  # here


def by_ignoring(x):
    y = ignore_derivatives(x * x)  # here
    return y * 3.0


def by_argmax(x):
    i = np.argmax(np.array([x, 1.0]))  # here
    return [1.0, 2.0][i] * 2.0


def by_a_zero_factor(x):
    y = x * 0.0  # here
    return y + 1.0


def by_a_flat_part(x):
    y = x * x
    return np.maximum(y, 1e6) + 1.0  # here


def third(x):
    return x / 3


@rrule(third)
def _(x: float):
    return x / 3, lambda ȳ: (morula.NoTangent(),)


def by_a_rule(x):
    y = third(x * 2.0)  # here
    return y + 1.0


@numeric_rule
def steps(x):
    return math.floor(x)


def by_differences(x):
    return steps(x * 1.1) * 2.0  # here


def unused_result(x):
    y = x * x  # here
    return 3.0


def in_a_callee(x):
    def rounded(y):
        return math.floor(y) + 0.5  # here

    return rounded(x) * 2.0


def through_a_list(x):
    xs = [x, 2.0]
    xs.append(math.trunc(xs[0]))  # here
    return xs[1] * xs[2]


def in_a_loop(x):
    total = 0.0
    for i in range(3):
        total += x // 1.0  # here
    return total


def constant_function(x):
    return (lambda y: 2.0)(x) * 3.0  # here


def into_an_integer_array(x):
    y = np.zeros(2, dtype=int)
    y[0] = x  # here
    return y.sum() * 2.0


def by_a_sign(x):
    s = np.sign(x)  # here
    return s * 3.0


def by_a_key(x):
    names = {1.7: 5.0}
    return names[x] * 2.0  # here


def by_a_length(x):
    return len("a" * int(x * 3)) * 1.0  # here


def in_a_method_of_an_object(x):
    return Rounder(x).value() * 2.0


class Rounder:
    def __init__(self, x):
        self.x = x

    def value(self):
        return math.ceil(self.x)  # here


def flat_further_on(x):
    y = np.sin(x) * 2.0
    z = np.maximum(y, 9.0)  # here
    return z * 3.0


BREAKS = [
    flat_further_on,
    into_an_integer_array,
    by_a_sign,
    by_a_key,
    by_a_length,
    in_a_method_of_an_object,
    by_int,
    by_rounding,
    by_a_comparison,
    by_text,
    by_ignoring,
    by_argmax,
    by_a_zero_factor,
    by_a_flat_part,
    by_a_rule,
    by_differences,
    unused_result,
    in_a_callee,
    through_a_list,
    in_a_loop,
    constant_function,
]


@pytest.mark.parametrize("f", BREAKS)
def test_the_line_where_the_dependence_ends(f):
    assert gradient(f, 1.7) == (0.0,)
    found = why(f, 1.7)
    assert found.gradients == (0.0,)
    assert found.value == f(1.7)
    source = Rounder.value if f is in_a_method_of_an_object else f
    assert {finding.place.line for finding in found.findings} == {planted(source)}, found
    assert all(finding.kind == "zero" for finding in found.findings)
    assert all(finding.place.file == __file__ for finding in found.findings)


def test_findings_name_the_argument():
    class Point:
        def __init__(self, x, y, name):
            self.x, self.y, self.name = x, y, name

    def f(p, d, flag, unused, x):
        return p.x * 2.0 + d["a"][1] * x - x * d["a"][1] + int(p.y)

    found = why(f, Point(1.0, 2.0, "p"), {"a": (1.0, 3.0)}, True, 4.0, 5.0)
    by_path = {finding.path: finding for finding in found.findings}
    assert set(by_path) == {"p.y", "p.name", "d['a'][0]", "d['a'][1]", "flag", "unused", "x"}
    assert by_path["p.y"].reason == "int ends it: it has no derivative"
    assert by_path["p.name"].kind == by_path["flag"].kind == "None"
    assert by_path["unused"].reason == "it is not used"
    assert "cancel" in by_path["d['a'][1]"].reason


def test_the_calls_and_what_served_them():
    found = why(lambda x: np.sin(x) * steps(x) + third(x), 1.5)
    how = {served.name.split(".")[-1]: served.how for served in found.calls}
    assert how["sin"].startswith("the rule at morula/rules/")
    assert how["steps"] == "finite differences, by numeric_rule"
    assert "test_diagnosis.py" in how["third"]
    assert "findings" not in str(found)
    assert str(found).startswith("no gradient is zero")


def test_errors_are_those_of_gradient():
    with pytest.raises(TypeError, match="shape"):
        why(lambda x: x, np.ones(3))
    with pytest.raises(ZeroDivisionError):
        why(lambda x: x / 0, 1.0)
    assert morula.core.watch.current is None
