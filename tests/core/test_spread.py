"""`f(*args, **kwargs)` whose arguments are known one by one: an ordinary call."""

import pytest

import morula
from morula.core.bytecode.lower import lower
from morula.core.ir import Const
from morula.core.primitives import apply, build_list, build_map, build_tuple
from morula.core.spread import spread_arguments


def target(a, b=2.0, *rest, c=3.0, **more):
    return a * b + c + sum(rest) * a + sum(more.values()) * b


def collected(*args, **kwargs):
    return target(*args, **kwargs)


def after_another(x, *args, **kwargs):
    return target(x, *args, c=x, **kwargs)


SPREAD = {
    "positional": lambda x: target(*(x, 3.0)),
    "a list": lambda x: target(x, *[x, 4.0], 5.0),
    "several": lambda x: target(*(x,), *(2.0, x), 1.0),
    "keywords": lambda x: target(x, **{"b": x, "c": 2.0}),
    "keywords twice": lambda x: target(x, **{"b": x}, **{"c": 2.0, "d": x}),
    "both": lambda x: target(*(x,), **{"b": x}, c=x),
    "through a function": lambda x: collected(x, 3.0, c=x),
    "through two": lambda x: after_another(x, 3.0, x, d=x),
    "nothing": lambda x: collected(*(), a=x, **{}),
}


@pytest.mark.parametrize("name", SPREAD)
def test_arguments_that_are_known_one_by_one(path, name):
    f = SPREAD[name]
    value, (slope,) = morula.withgradient(f, 1.5)
    assert value == f(1.5)
    assert slope == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6)


def left(f):
    """What is left of such calls in the SSA form of a function."""
    ir = lower(f.__code__, f.__globals__).copy()
    while spread_arguments(ir):
        pass
    parts = (apply, build_list, build_map, build_tuple)
    return [c.primitive.__name__ for c in ir.calls() if c.primitive in parts]


@pytest.mark.parametrize("name", [n for n in SPREAD if "through" not in n and n != "nothing"])
def test_nothing_is_put_together_for_them(name):
    assert set(left(SPREAD[name])) <= {"build_tuple"}


def test_the_call_has_its_arguments_in_their_order():
    f = SPREAD["both"]
    ir = lower(f.__code__, f.__globals__).copy()
    assert spread_arguments(ir)
    (call,) = [c for c in ir.calls() if len(c.keywords) == 2]
    assert call.keywords == ("b", "c")
    assert not any(type(a) is Const for a in call.args)


def reads_the_list(x):
    items = [x, 2.0]
    y = target(*items)
    items[0] = 5.0
    return y * items[0]


def reads_the_dict(x):
    named = {"b": x}
    named["b"] = 3.0 * x
    return target(x, **named) * named["b"]


def gives_it_away(x):
    named = {"b": x}
    keep = [named]
    return target(x, **named) * keep[0]["b"]


def depends(x):
    items = [x]
    if x > 0:
        items = [x, 3.0]
    return target(*items)


def grows_in_a_loop(x):
    items = []
    for _ in range(2):
        items = [*items, x]
    return target(*items)


@pytest.mark.parametrize(
    "f", [reads_the_list, reads_the_dict, gives_it_away, depends, grows_in_a_loop]
)
def test_what_others_see_stays(path, f):
    assert "apply" in left(f)
    value, (slope,) = morula.withgradient(f, 1.5)
    assert value == f(1.5)
    assert slope == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: target(x, **{"b": x}, **{"b": x}), "multiple values for keyword argument 'b'"),
        (lambda x: collected(x, 2.0, **{"b": x}), "multiple values for argument 'b'"),
        (lambda x: target(*3), r"argument after \* must be an iterable, not int"),
        (lambda x: target(x, **3), r"argument after \*\* must be a mapping, not int"),
        (lambda x: target(x, **{1: x}), "keywords must be strings"),
    ],
)
def test_errors_are_those_of_python(path, f, message):
    with pytest.raises(TypeError, match=message):
        f(1.0)
    with pytest.raises(TypeError, match=message):
        morula.gradient(f, 1.0)


def given_on(x, cls=None, **keywords):
    if cls is None and not keywords:
        return 3.0 * x
    return cls(**keywords)


def test_keywords_that_a_branch_asks_for_are_kept(path):
    assert morula.gradient(lambda x: given_on(x) * x, 2.0) == (12.0,)
    assert morula.gradient(lambda x: given_on(x, float) * x, 2.0) == (0.0,)
