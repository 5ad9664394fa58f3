"""Closure variables: captured, rebound, shared; default values; the cotangent of a function."""

import math
import types

import numpy as np
import pytest

from morula import J, NoTangent, Tangent, grad, gradient, hvp, jvp, pullback
from morula.testing import check_gradient
from tests.modes import check_modes

pytestmark = pytest.mark.usefixtures("path")


def captured(x):
    y = x * x
    return (lambda z: z * y * x)(2.0)


def rebound_after_capture(x):
    y = x

    def f(z):
        return z * y

    first = f(2.0)
    y = x * x * x
    return first * f(x)


def rebound_by_the_inner_function(x):
    total = x

    def add(z):
        nonlocal total
        total = total * z + x
        return total

    return add(x) * add(2.0) + total


def a_counter_and_its_reader(x):
    def make():
        state = x

        def step(z):
            nonlocal state
            state *= z

        return step, lambda: state * x

    step, read = make()
    step(x)
    before = read()
    step(3.0)
    return before * read()


def one_cell_per_call(x):
    fs = [(lambda a: lambda z: a * z)(v) for v in (x, x * x)]
    gs = [lambda z: v * z for v in (x, x * x)]  # all see the last one
    return fs[0](x) * fs[1](2.0) + gs[0](1.0) * gs[1](x)


def three_levels(x):
    def outer(a):
        def middle(b):
            def inner(c):
                nonlocal a
                a = a * b
                return a * c * x

            return inner

        return middle

    f = outer(x)(x * x)
    return f(1.0) + f(x)


def recursion_through_a_cell(x):
    def power(n):
        return x * power(n - 1) if n else 1.0

    return power(4)


def an_argument_that_is_captured(x):
    def f(a):
        a = a * x
        return (lambda: a * a)()

    return f(x) + f(2.0)


def deleted_and_bound_again(x):
    y = x

    def f():
        return y

    first = f()
    del y
    y = x * x
    return first * f()


def default_values(x):
    def f(a, b=x * x, c=(x, 2.0), *, k=x):
        return a * b * c[0] * k

    return f(1.0) + f(x, 2.0) + f(2.0, c=(1.0, x)) + f(1.0, k=3.0)


def a_keyword_with_the_name_of_a_positional_parameter(x):
    def f(a, b=3.0, /, *, c, **more):
        return a * b * c + more["b"] * more["a"]

    return f(x, c=x, b=x * x, a=2 * x)


def default_values_in_a_loop(x):
    fs = []
    for i in range(3):
        fs.append(lambda z, i=i, w=x**i: z * w * (i + 1))
    return fs[0](x) * fs[1](1.0) * fs[2](x)


def default_values_that_go_by_position_only(x):
    def f(a, b=x, c=2 * x, /, d=x * x, **more):
        return a * b * c * d + sum(more.values())

    return f(x) * f(x, 2.0) * f(1.0, d=x, b=x)


def a_default_value_read_by_two_calls(x):
    def f(a, b=x * x, *, k=x):
        return a * b * k

    fs = [f]
    return fs[0](1.0) * fs[0](x)


def put_global(x):
    global written
    written = x * x


def a_global_that_is_set(x):
    global counter
    counter = x
    for _ in range(2):
        counter *= x
    put_global(counter)
    return written * counter


def put_global_protected(x):
    global written
    try:
        written = x * x
    finally:
        pass


class Settings:
    scale = 1.0


def put_attribute_of_a_class(x):
    try:
        Settings.scale = x * x
    finally:
        pass


setters = [put_global_protected, put_attribute_of_a_class]


def a_global_that_is_set_behind_the_back(x):
    put_global_protected(x)
    return written * x


def a_global_that_is_set_by_what_a_loop_calls(x):
    for put in setters:
        put(x)
    return written * x + Settings.scale


def a_global_that_is_set_by_a_callback(x):
    list(map(put_global_protected, [x, 2 * x]))
    return written * x


def an_attribute_of_a_class_that_is_set_behind_the_back(x):
    put_attribute_of_a_class(x)
    return Settings.scale * x


def a_global_that_is_set_in_a_recursion(x):
    def count(n):
        if n == 0:
            put_global_protected(x)
            return x
        return count(n - 1)

    return count(3) * written


def with_setter(factor):
    """A function that reads what it has captured, and one that rebinds that."""

    def times(x):
        return factor * x * x

    def put(now):
        nonlocal factor
        factor = now

    return times, put


times, put_factor = with_setter(2.0)


def a_captured_number_that_is_rebound(x):
    put_factor(2.0)
    first = times(x)
    put_factor(5.0)
    second = times(x)
    put_factor(x)
    third = times(x)
    return first + second * third


PROGRAMS = [
    a_global_that_is_set,
    a_global_that_is_set_behind_the_back,
    a_global_that_is_set_by_what_a_loop_calls,
    a_global_that_is_set_by_a_callback,
    a_global_that_is_set_in_a_recursion,
    an_attribute_of_a_class_that_is_set_behind_the_back,
    a_captured_number_that_is_rebound,
    captured,
    rebound_after_capture,
    rebound_by_the_inner_function,
    a_counter_and_its_reader,
    one_cell_per_call,
    three_levels,
    recursion_through_a_cell,
    an_argument_that_is_captured,
    deleted_and_bound_again,
    default_values,
    default_values_in_a_loop,
    a_default_value_read_by_two_calls,
    default_values_that_go_by_position_only,
    a_keyword_with_the_name_of_a_positional_parameter,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_agrees_with_differences(program):
    check_gradient(program, 0.7)


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives_agree_with_differences_of_gradients(program):
    h = 1e-5
    expected = (gradient(program, 0.7 + h)[0] - gradient(program, 0.7 - h)[0]) / (2 * h)
    assert hvp(program, 0.7, 1.0) == pytest.approx(expected, rel=1e-7)
    assert gradient(lambda x: gradient(program, x)[0], 0.7)[0] == pytest.approx(expected, rel=1e-7)
    slope = lambda x: jvp(program, (x,), (1.0,))[1]
    assert gradient(slope, 0.7)[0] == pytest.approx(expected, rel=1e-7)
    assert jvp(slope, (0.7,), (1.0,))[1] == pytest.approx(expected, rel=1e-7)


def test_a_global_that_is_not_set_is_constant():
    assert gradient(lambda x: x * SCALE * WEIGHTS.sum(), 2.0) == (6.0,)
    assert gradient(lambda x: x * written if x < 0 else x * SCALE, 2.0) == (2.0,)


SCALE, WEIGHTS = 2.0, np.ones(3)


def closure(a, xs, name, g=None):
    def f(x):
        return a * x * xs[0] * (1.0 if g is None else g(x)) * len(name)

    return f


def test_the_cotangent_of_a_closure_is_that_of_what_it_captured():
    f = closure(2.0, [5.0, 1.0], "n")
    _, back = J(f, 3.0)
    assert back(1.0) == (Tangent[type(f)](a=15.0, xs=[6.0, 0.0]), 10.0)
    _, back = J(closure(2.0, [5.0], "n", f), 3.0)
    f̄, x̄ = back(1.0)
    assert (f̄.a, f̄.xs, f̄.g, x̄) == (
        450.0,
        [180.0],
        Tangent[type(f)](a=450.0, xs=[180.0, 0.0]),
        600.0,
    )


def test_a_function_without_captured_numbers_has_no_cotangent():
    assert J(lambda x: x * x, 3.0)[1](1.0) == (NoTangent(), 6.0)
    assert gradient(lambda f, x: f(x), math.sin, 0.0) == (None, 1.0)
    assert gradient(lambda f, x: f(x), lambda x: x * x, 3.0) == (None, 6.0)
    f = closure(2.0, [5.0], "n")
    assert gradient(lambda f, x: f(x), f, 1.0) == (Tangent[type(f)](a=5.0, xs=[2.0]), 10.0)


def test_a_function_that_captures_itself():
    def make(a):
        def power(x, n):
            return a * x * power(x, n - 1) if n else 1.0

        return power

    f̄, x̄, _ = J(make(2.0), 3.0, 2)[1](1.0)
    assert (f̄.a, x̄) == (36.0, 24.0)


def test_cells_hold_afterwards_what_the_plain_call_leaves():
    def make():
        state = 1.0

        def f(x):
            nonlocal state
            state = state * x
            return state

        return f, lambda: state

    f, read = make()
    y, back = pullback(f, 3.0)
    assert (y, read()) == (3.0, 3.0)
    assert [back(1.0), back(1.0)] == [(1.0,), (1.0,)]
    assert gradient(f, 2.0) == (3.0,)
    assert read() == 6.0


def test_unbound_variables_raise_what_python_raises():
    def f(x):
        def g():
            return y

        if x > 2:
            y = x
        return g()

    with pytest.raises(NameError, match="cannot access free variable 'y'"):
        gradient(f, 1.0)


def test_what_is_captured_and_reached_through_other_objects_has_its_cotangent():
    class Holder:
        def __init__(self, inner):
            self.inner = inner

    holder = Holder(Holder([2.0, {"k": 5.0}]))
    (f̄, x̄) = J(lambda x: holder.inner.inner[1]["k"] * x, 3.0)[1](1.0)
    assert x̄ == 5.0
    assert f̄["holder"].inner.inner == [0.0, {"k": 3.0}]
    nested = ([2.0],)
    assert J(lambda x: nested[0][0] * x, 3.0)[1](1.0)[0]["nested"] == ([3.0],)


def test_what_a_called_function_has_captured_is_read_anew_at_every_call():
    times, put = with_setter(2.0)

    def f(x):
        return times(x) + times(x + 1)

    assert grad(f)(1.0) == 12
    put(3.0)
    assert grad(f)(1.0) == 18
    put(1)
    assert grad(f)(1.0) == 6
    put("a text")
    with pytest.raises(TypeError):
        grad(f)(1.0)


def test_a_captured_function_that_is_rebound_meanwhile():
    def pair(f):
        def call(x):
            return f(x)

        def put(now):
            nonlocal f
            f = now

        return call, put

    call, put = pair(lambda x: x * x)

    def f(x):
        squared = call(x)
        put(lambda x: x**3)
        cubed = call(x)
        put(lambda x: x * x)
        return squared + cubed

    assert grad(f)(2.0) == grad(f)(2.0) == 16


def with_number(number):
    """Functions that read what they have captured, and one that is found by name and rebinds it."""

    def constant(x):
        before = number * x
        put_found(5.0)
        return before + number * x

    def varied(x):
        before = number * x
        put_found(x)
        return before + number * x

    def put(now):
        nonlocal number
        number = now

    return constant, varied, put


read_constant, read_varied, put_number = with_number(2.0)


def put_found(now):
    try:
        put_number(now)
    finally:
        pass


@pytest.mark.parametrize(("f", "expected"), [(read_constant, 7), (read_varied, 8)])
def test_what_a_function_has_captured_is_rebound_by_one_that_is_found_by_name(f, expected):
    for derivative in (grad(f), grad(f), lambda x: jvp(f, (x,), (1.0,))[1]):
        put_number(2.0)
        assert derivative(3.0) == expected


def read_by_introspection(x):
    v = x * x
    g = lambda: v * 2.0
    return g.__closure__[0].cell_contents * g()


def written_by_introspection(x):
    v = x * x

    def g():
        return v * 2.0

    g.__closure__[0].cell_contents = x**3
    return v * g()


@pytest.mark.parametrize("f", [read_by_introspection, written_by_introspection])
def test_the_contents_of_a_cell_are_an_attribute_of_it(f):
    check_modes(f, 0.7)


def test_a_function_that_is_given_other_code():
    def f(x):
        def g(v):
            return v * 2.0

        y = g(x)
        g.__code__ = (lambda v: v * v).__code__
        return y * g(x)

    check_modes(f, 0.7)


def scale_by(a):
    def scaled(y):
        return a * y

    return scaled


def cell_made_by_hand(x):
    cell = types.CellType(x * x)
    return cell.cell_contents * x


def function_of_a_cell_made_by_hand(x):
    cell = types.CellType()
    cell.cell_contents = x * x
    return types.FunctionType(scale_by(1.0).__code__, globals(), "f", None, (cell,))(x)


def power_of(x, n=1.0):
    return x * n


def function_of_default_values(x):
    return types.FunctionType(power_of.__code__, {}, "f", (x * x,))(x)


def function_of_default_values_by_name(x):
    f = types.FunctionType(power_of.__code__, {}, argdefs=(x * x,))
    return f(x)


def copy_of_a_function(x):
    def f(y, n=x):
        return y * n * x

    return types.FunctionType(f.__code__, {}, f.__name__, f.__defaults__, f.__closure__)(x)


def default_values_that_are_read(x):
    def f(y=x, *, n=x):
        return y * n

    return f.__defaults__[0] * f.__kwdefaults__["n"] * f(1.0)


def a_default_value_that_is_written_to(x):
    def f(y, *, n=1.0):
        return y * n

    f.__kwdefaults__["n"] = x * x
    return f(x)


BY_HAND = [
    cell_made_by_hand, function_of_a_cell_made_by_hand, function_of_default_values,
    function_of_default_values_by_name, copy_of_a_function, default_values_that_are_read,
    a_default_value_that_is_written_to
]  # fmt: skip


@pytest.mark.parametrize("f", BY_HAND)
def test_cells_and_functions_that_are_made_by_hand(f):
    assert gradient(f, 1.5) == (6.75,)
    assert jvp(f, (1.5,), (1.0,)) == (3.375, 6.75)
    assert hvp(f, 1.5, 1.0) == grad(grad(f))(1.5) == 9.0
