"""Programs whose gradients were wrong once, found among random ones."""

import collections
import functools
import heapq
import itertools
import math

import numpy as np
import pytest

import morula
from morula import (
    NoTangent,
    checkpoint,
    grad,
    gradient,
    hvp,
    jvp,
    rrule,
    withgradient,
)
from morula.core import compiled, specialise
from morula.testing import check_gradient


def test_a_truth_value_decides_the_shape_of_what_it_selects(path):
    def f(a):
        top = np.max(a)
        return a.sum() + np.sin(np.mean(top[top > 0] * 1.0)) + np.sin(top[top > 9].sum())

    value, (ā,) = withgradient(f, np.array([0.5, -1.0, 0.25]))
    assert value == -0.25 + math.sin(0.5)
    assert ā == pytest.approx([1 + math.cos(0.5), 1, 1])


def test_no_tangent_out_of_a_rule_is_zero_to_what_comes_before(path):
    assert gradient(lambda a: (np.arange(a[1]) * a[0]).sum(), np.array([0.5, 2.5]))[
        0
    ] == pytest.approx([3.0, 0.0])

    def whole(x):
        return math.floor(x) * 1.0

    @rrule(whole)
    def _(x):
        def whole_pullback(ȳ):
            return (NoTangent(),)

        return whole(x), whole_pullback

    (ā,) = gradient(lambda a: whole(a[1]) * a[0], np.array([0.5, 2.5]))
    assert ā == pytest.approx([2.0, 0.0])


class Items(dict):
    """A dict with its items as attributes, as SciPy's results are."""

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __getattr__ = dict.__getitem__


def test_attributes_that_a_class_stores_as_items(path):
    def f(a):
        items = Items(y=1.0)
        items.y = a * a
        items.z = items.y * 2
        del items.y
        items["y"] = a
        return items.y + items.z

    assert gradient(f, 3.0) == (13.0,)
    assert jvp(f, (3.0,), (1.0,)) == (21.0, 13.0)


def scaled(x, *, by=(1.0,), more=None):
    """Writes to memory of its own, and is not inlined."""
    try:
        y = np.array([by[0] * x])
        y[0] *= x
    finally:
        pass
    return y


def in_a_list(x):
    return [scaled(x)][0][0]


def in_a_result(x):
    def both():
        y = scaled(x)
        return y, {"a": [y]}

    p, q = called(both)
    return p[0] * q["a"][0][0]


def in_a_closure(x):
    def later():
        y = scaled(x)
        return lambda: y[0]

    return called(later)() * x


def in_an_attribute(x):
    class Result:
        pass

    def made():
        r = Result()
        r.y = scaled(x)
        return r

    return called(made).y[0]


def called(f):
    try:
        return f()
    finally:
        pass


def by_names(x, **options):
    more = {"more": None}
    more.update(options)
    return scaled(x, by=(x,), **more)[0]


def again(x):
    return checkpoint(lambda y: scaled(y)[0] * x, x)


@pytest.mark.parametrize(
    "f", [in_a_list, in_a_result, in_a_closure, in_an_attribute, by_names, again]
)
def test_a_program_calls_code_that_writes_to_memory_of_its_own(path, f):
    check_gradient(f, 0.9)
    slope = gradient(f, 0.9)[0]
    assert jvp(f, (0.9,), (1.0,))[1] == pytest.approx(slope)
    curvature = (gradient(f, 0.9001)[0] - gradient(f, 0.8999)[0]) / 0.0002
    assert jvp(grad(f), (0.9,), (1.0,))[1] == pytest.approx(curvature, rel=1e-6)
    assert gradient(lambda x: gradient(f, x)[0], 0.9)[0] == pytest.approx(curvature, rel=1e-6)


def test_forward_mode_follows_callbacks_that_write_to_memory(path):
    def f(a):
        return np.apply_along_axis(lambda v: scaled(v[0])[0] * v, 0, np.array([a, 1.0])).sum()

    check_gradient(f, 0.9)
    assert jvp(f, (0.9,), (1.0,)) == pytest.approx((f(0.9), gradient(f, 0.9)[0]))


def test_an_array_method_that_numpy_runs_in_python_in_forward_mode():
    def f(a):
        return np.vectorize(lambda v, w: v * w)(np.array([a, 2.0]), np.array([a, a])).sum()

    assert jvp(f, (3.0,), (1.0,)) == (15.0, 8.0)


class Scale:
    def __init__(self):
        self.k = 2.0

    def of(self, x):
        return x * self.k


SCALE = Scale()


def a_method_under_a_name(x):
    of = SCALE.of
    return of(x) * of(x + 1)


def a_method_where_exceptions_are_handled(x):
    try:
        return SCALE.of(x) * x
    except KeyError:
        return 1.0


def test_methods_of_captured_objects_that_are_not_only_called(path):
    assert gradient(a_method_under_a_name, 1.5) == (16.0,)
    assert gradient(a_method_where_exceptions_are_handled, 1.5) == (6.0,)


NOTES: list[float] = []


def test_a_program_that_begins_anew_has_noted_nothing(path):
    """The cotangent of an item that does not matter is no number: that was taken for granted."""

    def f(x, y):
        y *= math.cos([0.5, y][0])
        NOTES.append(0.5)
        a = y * (y if -1.0 < x < 2.0 else 1)
        return a + y + x

    for _ in range(2):
        NOTES.clear()
        check_gradient(f, 0.7, 0.7)
        NOTES.clear()
        gradient(f, 0.7, 0.7)
        assert NOTES == [0.5]


def test_lines_that_tell_a_derivative_do_not_stand_where_a_rule_serves(path):
    """Those of linspace call it with arrays; so a program grew and grew."""

    def f(a):
        total = 0.0
        for t in np.linspace(0.0, 1.0, 3):
            total += a[0] * float(t)
        return total + (np.linspace([a[0], 1.0], [2.0, a[1]], 3)[1] ** 2).sum()

    check_gradient(f, np.array([0.5, -0.25]))
    (ā,) = gradient(f, np.array([0.5, -0.25]))
    assert ā == pytest.approx([1.5 + 1.25, 0.375])


def test_a_program_that_takes_too_many_rounds_goes_by_the_general_path(monkeypatch):
    """It is not begun again by other assumptions, each of which would take as long."""

    def f(x):
        try:
            total = x * x
        except KeyError:
            total = 0.0
        return total + np.trapezoid(np.array([x, 1.0]))

    monkeypatch.setattr(specialise.Specialiser, "max_effort", 20)
    compiled.forget_programs()
    g = grad(f)
    assert g(2.0) == pytest.approx(4.5)
    assert [p.reason for p in g.__morula__.programs.values()] == [
        "it calls too much code of others"
    ]
    compiled.forget_programs()


def test_views_by_strides_at_second_order():
    def f(x):
        windows = np.lib.stride_tricks.as_strided(x, (3, 2), (x.strides[0], x.strides[0]))
        return (windows**3).sum()

    x = np.array([1.0, 2.0, 3.0, 4.0])
    expected = [6.0, 48.0, 108.0, 96.0]
    np.testing.assert_allclose(hvp(f, x, x), expected)
    np.testing.assert_allclose(jvp(lambda x: gradient(f, x)[0], (x,), (x,))[1], expected)
    np.testing.assert_allclose(
        gradient(lambda x: gradient(f, x)[0] @ np.ones(4), x)[0], [6.0, 24.0, 36.0, 24.0]
    )


def test_an_axis_that_is_given_reaches_the_pullback(path):
    X = np.arange(12.0).reshape(3, 4)
    (x̄,) = gradient(lambda x: (x * 2).sum(axis=1)[0], X)
    np.testing.assert_array_equal(x̄, [[2.0] * 4, [0.0] * 4, [0.0] * 4])


def test_an_object_that_is_made_without_its_class_being_called():
    class Plain:
        pass

    class Meta(type):
        scale = 3.0

    class Made(metaclass=Meta):
        def __new__(cls, *args):
            return object.__new__(cls)

    def f(x):
        o, p = object.__new__(Plain), Made.__new__(Made)
        o.d, p.d = x, x * Made.scale
        return o.d * p.d * int.__new__(int, 2)

    for _ in range(2):
        assert morula.gradient(f, 3.0) == (36.0,)
    assert morula.pullback(f, 3.0)[1](1.0) == (36.0,)


def test_a_tangent_that_is_not_yet_filled_has_no_fields():
    half = object.__new__(morula.Tangent)
    with pytest.raises(AttributeError, match="_fields"):
        half.anything


def counter_and_loss(a):
    def bump():
        nonlocal a
        a += 1
        return a

    def direct(x):
        s = a * x
        bump()
        return s + a * x * x

    def by_its_value(x):
        k = bump()
        return k * x + a * x * x

    def in_a_function(x):
        g = lambda y: y * a
        s = g(x)
        bump()
        return s + g(x * x)

    def by_a_list(x):
        s = a * x
        for step in [bump]:
            step()
        return s + a * x * x

    return direct, by_its_value, in_a_function, by_a_list


@pytest.mark.parametrize("i", range(4))
def test_a_captured_variable_that_another_closure_rebinds(i):
    x = 1.5
    value, (found,) = morula.withgradient(counter_and_loss(2.0)[i], x)
    assert value == counter_and_loss(2.0)[i](x)
    assert found == (3.0 if i == 1 else 2.0) + 2 * 3.0 * x


class Slotted:
    __slots__ = ("step",)

    def __init__(self, step):
        self.step = step


@pytest.mark.parametrize(
    "hide",
    [
        lambda bump: [bump].pop,
        lambda bump: functools.partial(functools.partial(bump)),
        lambda bump: Slotted(bump).step,
        lambda bump: lambda step=bump: step(),
        lambda bump: lambda *, step=bump: step(),
        lambda bump: lambda held=collections.deque([bump]): held[0](),
        lambda bump: (lambda held: lambda: held.step())(Slotted(bump)),
    ],
)
def test_a_captured_variable_that_a_hidden_closure_rebinds(hide):
    def made(a):
        def bump():
            nonlocal a
            a += 1

        step = hide(bump)

        def f(x):
            s = a * x
            result = step()
            if callable(result):
                result()
            return s + a * x * x

        return f

    value, found = morula.withgradient(made(2.0), 1.5)
    assert value == made(2.0)(1.5)
    assert found == (2.0 + 2 * 3.0 * 1.5,)


def test_functions_that_capture_what_was_captured():
    def outer(a, w):
        def f(x):
            def g(y):
                return (lambda z: z * a * (w @ w) * y)(x) + y

            return g(x * a)

        return f

    w = np.array([1.0, 2.0])
    f = outer(3.0, w)
    assert morula.withgradient(f, 1.5) == (f(1.5), (2 * 1.5 * 9.0 * 5.0 + 3.0,))
    assert "specialised" in str(morula.code_adjoint(f, 1.5)).splitlines()[0]
    f.__closure__[0].cell_contents = 5.0
    assert morula.grad(f)(1.5) == 2 * 1.5 * 25.0 * 5.0 + 5.0


def test_folds_of_quotients_come_to_an_end():
    def f(x, y, z):
        kept = [
            sum(itertools.chain((y for u in (x, v, 1) if len([]) > 0.3 and x < 1), (y,)))
            for v in [[x, x, x][z % 3], y + y, math.atan(x)]
            for _ in range(2)
        ]
        return math.atan(math.log1p(x * x) * (lambda _: 2.0)(y) + len(kept))

    check_gradient(lambda x, y: f(x, y, 3), -0.45, -1.3)


class Layer:
    """A weight, and a function that is given when it is made."""

    def __init__(self, function, weight=0.7):
        self.function, self.weight = function, weight

    def __call__(self, x):
        return self.function(self.weight * x)


def multiplied_by(k):
    return lambda x: k * x


def to_the_square(x):
    return x * x


FUNCTIONS = [
    math.sin, math.cos, np.tanh, np.exp, multiplied_by(2.0), multiplied_by(3.0), to_the_square,
    Layer(math.sin), functools.partial(math.pow, 2.0), functools.partial(math.pow, 3.0),
    Layer(math.cos).__call__,
]  # fmt: skip


def through_a_method(model, x):
    return model(x)


def through_an_attribute(model, x):
    return model.function(x) * model.weight


def through_a_derivative(model, x):
    return jvp(model.function, (x,), (1.0,))[1] * model.weight


@pytest.mark.parametrize("f", [through_a_method, through_an_attribute, through_a_derivative])
def test_functions_that_objects_hold_are_those_of_this_object(f):
    """A program took the function that it had found in the first object for that of all others."""
    slope = grad(f, 1)
    for function in FUNCTIONS * 2:
        model = Layer(function)
        with_slope = (f(model, 1.2 + 1e-6) - f(model, 1.2 - 1e-6)) / 2e-6
        assert morula.value_and_grad(f, 1)(model, 1.2)[0] == f(model, 1.2)
        assert slope(model, 1.2) == pytest.approx(with_slope, abs=1e-8)
        assert grad(lambda x, model=model: f(model, x))(1.2) == slope(model, 1.2)


def test_the_function_of_a_captured_object():
    def loss(function):
        layer = Layer(function)
        return lambda x: layer.function(x)

    slopes = [grad(loss(function))(1.2) for function in (math.sin, math.cos, math.exp)]
    assert slopes == pytest.approx([math.cos(1.2), -math.sin(1.2), math.exp(1.2)])


def test_arithmetic_that_nobody_reads_is_counted_as_such():
    """Of `l2`, which is filled in order, nothing is left but a product that nobody reads."""

    class Held:
        def __init__(self, a, b=0.5):
            self.a = functools.reduce(lambda t, w: t * math.cos(w), [1.25, b], a)
            self.b = math.atan2(a, 2.5)
            self.xs = [(b if a > b else -1.5), a]

        def __mul__(self, u):
            return type(self)(self.a * u, self.a * 0.5)

    def in_order():
        level, heap = 0.25, []
        for i in range(4):
            new = math.atan(-1.5) if math.cos(level) > 1.5 or level > 0.1 else min(level, level)
            heapq.heappush(heap, new * i)
        sum([heapq.heappop(heap) * (i + 1) for i in range(2)])
        return level

    def f(x, y):
        pair = [((x, x)[1] * (y // 2)), abs(x)]
        held = Held(2 * x + 1 - 2, (1.1 + abs(x)) ** math.sin(x))
        for _, _ in zip([], (1.5, sum(map(sum, [pair, (held.b, x)]))), strict=False):
            pass
        (cube, *_) = (held.b**3,)
        if b := (cube * -2) > 0.3 and held.a < 1:
            min(cube, -2)
        return cube * 2 + in_order() + held.a + sum(pair) + sum(held.xs) + b

    check_gradient(lambda x: f(x, 2), 2.1)


def test_an_iterator_over_entries_in_a_list():
    """np.ndenumerate holds an `x.flat` that compiled programs did not see: zero, silently."""
    check_gradient(lambda x: next([np.ndenumerate(np.array([x * x, x]))][0])[1] * x, 0.7)


def test_what_is_called_is_known_without_being_written_there():
    """Second derivatives of an `enumerate` in a list: its type was taken for None."""

    def f(x):
        return next([enumerate([x * x])][:][0])[1] * x

    assert grad(grad(f))(0.7) == pytest.approx(6 * 0.7)
