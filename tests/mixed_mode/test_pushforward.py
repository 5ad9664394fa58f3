"""pushforward and jvp: what they take, what they give, what they refuse; forward rules."""

import ctypes
import functools
import math
import queue
import struct
from collections import deque, namedtuple
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg

from morula import (
    NoRuleError,
    NoTangent,
    Tangent,
    UnsupportedError,
    frule,
    grad,
    gradient,
    hessian,
    jacobian,
    jvp,
    pushforward,
    rrule,
    scalar_rule,
)
from tests.rules.test_unknown import cubic_root


def test_a_value_and_its_derivative():
    y, push = pushforward(lambda x, y: x * math.sin(y), 2.0, 0.5)
    assert y == 2.0 * math.sin(0.5)
    assert push(1.0, 0.0) == math.sin(0.5)
    assert push(None, 1.0) == 2.0 * math.cos(0.5)
    assert push(0.0, 0.0) == 0.0


def test_integers_are_points_and_take_floats():
    assert jvp(lambda n, x: n * x**n, (3, 2.0), (1.0, 0.0)) == (24.0, 8.0 + 24.0 * math.log(2.0))
    assert jvp(lambda n, x: sum([x] * n), (3, 2.0), (None, 1.0)) == (6.0, 3.0)


def test_what_does_not_depend_has_a_zero_of_its_shape():
    assert jvp(lambda x: (1.0, np.ones(2)), (2.0,), (1.0,))[1][0] == 0.0
    assert jvp(lambda x: "text", (2.0,), (1.0,)) == ("text", None)
    np.testing.assert_array_equal(jvp(lambda x: np.ones(2), (2.0,), (1.0,))[1], np.zeros(2))


@pytest.mark.parametrize("dtype", ["f2", "f4", "g", "F", "G"])
def test_the_dtype_is_kept(dtype):
    x = np.array([0.5, 0.25], dtype)

    def f(x):
        return np.sum(np.exp(x) * x**2 / 3.0 + np.sqrt(x))

    y, ẏ = jvp(f, (x,), (np.ones_like(x),))
    assert y.dtype == ẏ.dtype == x.dtype
    expected = np.sum(np.exp(x) * (x**2 + 2 * x) / 3 + 0.5 / np.sqrt(x))
    assert ẏ == pytest.approx(expected, rel=1e-2 if dtype == "f2" else 1e-5)


def test_other_numbers():
    assert jvp(lambda x: x * x / 3, (Fraction(1, 2),), (Fraction(1),)) == (
        Fraction(1, 12),
        Fraction(1, 3),
    )
    y, ẏ = jvp(lambda z: (z * z).real, (1 + 2j,), (1j,))
    assert (y, ẏ) == (-3.0, -4.0)


def test_a_complex_argument_by_directions():
    z, ż = np.array([1 + 2j, 0.5j]), np.array([1j, 2 - 1j])
    _, ẏ = jvp(lambda z: np.sum(np.abs(z) ** 2), (z,), (ż,))
    assert ẏ == pytest.approx(2 * np.sum((np.conj(z) * ż).real))


@pytest.mark.parametrize(
    ("args", "tangents", "error", "message"),
    [
        (1.0, (1.0,), TypeError, "takes a tuple or a list as args, got a float"),
        ((1.0,), (1.0, 2.0), TypeError, "2 tangents were given for 1 arguments"),
        ((np.ones(2),), (np.ones(3),), ValueError, "the tangent of argument 0 is"),
        ((1.0,), (1j,), ValueError, "the tangent of argument 0 is complex, expected real"),
        (([1.0, 2.0],), ([1.0],), ValueError, "the tangent of argument 0 is a list of length 1"),
        (({"a": 1.0},), ({"b": 1.0},), ValueError, "a dict of the same keys"),
        (("text",), (1.0,), ValueError, "a str has none"),
        ((1.0, [2.0, 3.0]), (1.0, [1.0, "x"]), ValueError, r"argument 1\[1\]"),
    ],
)
def test_tangents_of_the_wrong_structure_are_refused(args, tangents, error, message):
    with pytest.raises(error, match=message):
        jvp(lambda *xs: 1.0, args, tangents)


def test_methods_partials_and_keywords():
    def f(x, y, *, k):
        return x * y * k

    assert jvp(functools.partial(f, k=2.0), (3.0, 4.0), (1.0, 0.0)) == (24.0, 8.0)
    assert jvp(np.ndarray.sum, (np.ones(3),), (np.arange(3.0),)) == (3.0, 3.0)


# -- rules -----------------------------------------------------------------------------------------


def test_a_rule_of_ones_own_is_used():
    def f(x):
        raise AssertionError

    @frule(f)
    def _(x: float):
        return 2 * x, lambda ẋ: 7.0 * ẋ

    assert jvp(lambda x: f(x) * x, (3.0,), (1.0,)) == (18.0, 21.0 + 6.0)


def test_a_reverse_rule_is_transposed():
    def f(x, y, *, k=1.0):
        raise AssertionError

    @rrule(f)
    def _(x: float, y: np.ndarray, *, k=1.0):
        return x * y * k, lambda ȳ: (k * (ȳ * y).sum(), k * x * ȳ, (x * y * ȳ).sum())

    y = np.array([1.0, 2.0])
    value, slope = jvp(lambda x, y: f(x, y, k=x), (3.0, y), (1.0, np.array([0.0, 10.0])))
    np.testing.assert_allclose(value, 9 * y)
    np.testing.assert_allclose(slope, 2 * 3.0 * y + 9.0 * np.array([0.0, 10.0]))


class Pair:
    def __init__(self, x):
        self.first = 2 * x
        self.rest = [3 * x]
        self.itself = self


Both = namedtuple("Both", "first rest")
MADE = {
    "list": (lambda x: [2 * x, 3 * x], lambda c: 2 * c[0] + 3 * c[1], lambda y: y[0] * y[1]),
    "dict": (
        lambda x: {"a": 2 * x, "b": [3 * x]},
        lambda c: 2 * c["a"] + 3 * c["b"][0],
        lambda y: y["a"] * y["b"][0],
    ),
    "dict in a tuple": (
        lambda x: (2 * x, {"b": 3 * x}),
        lambda c: 2 * c[0] + 3 * c[1]["b"],
        lambda y: y[0] * y[1]["b"],
    ),
    "named tuple": (
        lambda x: Both(2 * x, [3 * x]),
        lambda c: 2 * c[0] + 3 * c[1][0],
        lambda y: y.first * y.rest[0],
    ),
    "deque": (
        lambda x: deque([2 * x, 3 * x]),
        lambda c: 2 * c[0] + 3 * c[1],
        lambda y: y[0] * y[1],
    ),
    "object": (Pair, lambda c: 2 * c.first + 3 * c.rest[0], lambda y: y.first * y.itself.rest[0]),
    "list of objects": (
        lambda x: [Pair(x)],
        lambda c: 2 * c[0].first + 3 * c[0].rest[0],
        lambda y: y[0].first * y[0].rest[0],
    ),
}


@pytest.mark.parametrize("made", MADE)
def test_a_reverse_rule_whose_value_is_mutable(made):
    make, pull, use = MADE[made]

    def primal(x):
        return make(x)

    @rrule(primal)
    def _(x):
        return primal(x), lambda c: (pull(c),)

    def f(x):  # 6 x²
        return use(primal(x))

    assert gradient(f, 2.0) == (24.0,)
    assert jvp(f, (2.0,), (1.0,)) == (24.0, 24.0)
    assert hessian(f, 2.0) == 12.0
    assert grad(grad(f))(2.0) == 12.0
    assert gradient(lambda x: jvp(f, (x,), (1.0,))[1], 2.0) == (12.0,)
    found = jacobian(lambda x: f(x[0]) + x[1], np.array([2.0, 1.0]), mode="forward")[0]
    assert found.tolist() == [24.0, 1.0]


@pytest.mark.parametrize("made", MADE)
def test_a_forward_rule_whose_value_is_mutable(made):
    make, _, use = MADE[made]
    if made in ("object", "list of objects"):
        pushed = lambda ẋ: Tangent[Pair](first=20 * ẋ, rest=[30 * ẋ])
        push = pushed if made == "object" else lambda ẋ: [pushed(ẋ)]
    else:
        push = lambda ẋ: make(10 * ẋ)

    def primal(x):
        return make(x)

    @frule(primal)
    def _(x):
        return primal(x), push

    def f(x):  # 6 x², and ten times its slope
        return use(primal(x))

    assert jvp(f, (2.0,), (1.0,)) == (24.0, 240.0)
    found = jacobian(lambda x: f(x[0]) + x[1], np.array([2.0, 1.0]), mode="forward")[0]
    assert found.tolist() == [240.0, 1.0]


def test_what_a_rule_hands_on_within_its_value_keeps_its_own_cotangents():
    class Node:
        def __init__(self, parent, x):
            self.parent = parent
            self.x = x

    def child(parent, x):
        return Node(parent, 2 * x)

    @rrule(child)
    def _(parent, x):
        return child(parent, x), lambda c: (NoTangent(), 2 * c.x)

    def f(root, x):
        node = child(root, x)
        return node.parent.x * node.x

    root = Node(None, 3.0)
    of_root, of_x = gradient(f, root, 5.0)
    assert (of_root.x, of_x) == (10.0, 6.0)


def test_a_rule_of_the_users_comes_before_a_forward_rule_of_morulas_own():
    def f(x):
        return x

    scalar_rule(f)(lambda y, x: 1.0)

    @rrule(f)
    def _(x: float):
        return x, lambda ȳ: (5.0 * ȳ,)

    frule(f)(lambda x: (x, lambda ẋ: 3.0 * ẋ))
    assert gradient(f, 1.0) == (5.0,)
    assert jvp(f, (1.0,), (1.0,))[1] == 3.0  # both are the user's: the forward rule is meant


@pytest.mark.parametrize("names", ["x, y", "primal, multiply", "_y, d_x", "partials, dot_x"])
def test_the_parameters_of_a_scalar_rule_have_any_names(names):
    def f(a, b):
        return a * math.exp(b)

    b = names.split(", ")[1]
    made = {}
    exec(f"def partials(o, {names}): return exp({b}), o", {"exp": math.exp}, made)
    scalar_rule(f)(made["partials"])
    y = 2.0 * math.exp(0.5)
    assert gradient(f, 2.0, 0.5) == (math.exp(0.5), y)
    assert jvp(f, (2.0, 0.5), (1.0, 10.0)) == (y, math.exp(0.5) + y * 10.0)


def test_a_scalar_rule_serves_both_modes():
    def f(a, b):
        return math.hypot(a, b)

    @scalar_rule(f)
    def _(y, a, b):
        return a / y, b / y

    assert jvp(f, (3.0, 4.0), (1.0, 1.0)) == (5.0, 1.4)


def test_a_callable_without_a_rule():
    unknown = cubic_root
    with pytest.raises(NoRuleError, match="cbrt"):
        jvp(lambda x: unknown(x) + x, (1.0,), (1.0,))
    assert jvp(lambda x: unknown(8.0) * x, (1.0,), (1.0,)) == (2.0, 2.0)


def test_a_compiled_object_that_keeps_what_it_is_given():
    def f(x):
        line = queue.SimpleQueue()
        line.put(x * x)
        return x if line.empty() else line.get() * x

    with pytest.raises(NoRuleError, match=r"SimpleQueue\.get"):
        jvp(f, (1.5,), (1.0,))
    with pytest.raises(NoRuleError, match=r"SimpleQueue\.get"):
        gradient(f, 1.5)


@pytest.mark.parametrize("eig", [np.linalg.eig, scipy.linalg.eig])
def test_vectors_without_a_derivative_are_refused_only_where_they_are_used(eig):
    """At equal eigenvalues the vectors have none; who unpacks them without need goes on."""

    def stable(x):
        w, v = eig(np.diag([x, x]))
        return x * x if len(w) == len(v) else 0.0

    def of_vectors(use):
        return lambda x: x * x + use(eig(np.diag([x, x]))[1])

    assert gradient(stable, 2.0) == (4.0,)
    assert jvp(stable, (2.0,), (1.0,)) == (4.0, 4.0)
    for use in (np.sum, np.ndarray.sum, lambda v: v.T[0, 1], lambda v: np.negative(v)[0].real[0]):
        with pytest.raises(UnsupportedError, match=r"equal eigenvalues.*\n.*np\.diag\(\[x, x\]\)"):
            jvp(of_vectors(use), (2.0,), (1.0,))


def test_items_of_what_has_no_rule_are_used_one_by_one():
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)
    unknown = kind(lambda x: (np.argsort(x)[:, None], float(x.sum())))

    def f(x):
        places, _ = unknown(x)
        return x[places[:, 0]] @ np.array([1.0, 2.0, 3.0]) + x[places[0, 0]] ** 2

    def g(x):
        return unknown(x)[1] * x[0]

    x = np.array([2.0, 3.0, 1.0])
    assert jvp(f, (x,), (np.array([1.0, 0.0, 1.0]),)) == (15.0, 2.0 + 1.0 + 2.0)
    with pytest.raises(NoRuleError, match="no reverse rule"):
        jvp(g, (x,), (x,))


def returned(x):
    y = x * 2.0
    return cubic_root(y)  # the unknown call


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (returned, 8.0),
        (lambda x: returned(x) * x, 8.0),
        (lambda xs: sum([returned(x) for x in xs]), [8.0]),
    ],
)
def test_what_has_no_rule_names_the_line_of_its_call(f, x):
    for _ in range(2):
        with pytest.raises(
            NoRuleError, match=r"in returned:   return cubic_root\(y\)  # the unknown"
        ):
            jvp(f, (x,), ([1.0] if isinstance(x, list) else 1.0,))


# -- the traps -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (lambda x: np.where(x >= 0, x, np.sqrt(-x)), 1.0, 1.0),
        (lambda x: np.where(x < 1, x, np.sqrt(x)), 0.0, 1.0),
        (lambda x: ((np.array([0.0, 1.0]) * x) ** 0.5)[1], 1.0, 0.5),
        (lambda x: np.minimum(1.0, 1 / x), np.float64(0.0), 0.0),
        (lambda x: abs(x), 0.0, 0.0),
        (lambda x: np.linalg.norm(np.array([x, x])), 0.0, 0.0),
        (lambda x: np.std(np.array([1.0, 1.0]) * x), 1.0, 0.0),
        (lambda x: np.hypot(x, x), 0.0, 0.0),
        (lambda x: x**0 + x**2, 0.0, 0.0),
        (lambda x: np.max(np.stack([x, x])), 1.0, 1.0),
        (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
        (lambda x: np.prod(np.array([0.0, 2.0, 3.0]) + x), 0.0, 6.0),
    ],
)
def test_kinks_and_branches_not_taken(f, x, slope):
    with np.errstate(all="ignore"):
        assert jvp(f, (x,), (1.0,))[1] == slope


def test_an_array_as_an_attribute():
    class Model:
        pass

    def f(x):
        model = Model()
        model.w = x * x
        return np.sum(model.w * x)

    x = np.array([1.0, 2.0])
    assert jvp(f, (x,), (np.ones(2),))[1] == np.sum(3 * x * x)


def test_tangents_of_arrays_in_an_array_of_objects_have_their_shapes():
    """They were broadcast, or an error of NumPy's."""
    x, wrong = np.empty(2, object), np.empty(2, object)
    x[:], wrong[0], wrong[1] = [np.ones(2), np.ones(3)], np.ones(2), np.ones(2)
    f = lambda x: (x[0] ** 2).sum() + x[1].sum()
    assert jvp(f, (x,), (x,)) == (5.0, 7.0)
    for ẋ in (wrong, np.ones(2)):
        with pytest.raises(ValueError, match=r"argument 0 .* an array of shape .* that is entry"):
            jvp(f, (x,), (ẋ,))


def test_a_value_of_an_unknown_space_is_refused():
    def held(x):
        return memoryview(struct.pack("d", x))

    def read(view):
        return struct.unpack("d", view)[0]

    @rrule(held)
    def _(x: float):
        return held(x), lambda ȳ: (ȳ,)

    @rrule(read)
    def _(view: memoryview):
        return read(view), lambda ȳ: (ȳ,)

    assert gradient(lambda x: read(held(x)) ** 2, 3.0) == (6.0,)
    with pytest.raises(UnsupportedError, match="values of memoryview"):
        jvp(lambda x: read(held(x)) ** 2, (3.0,), (1.0,))


class Node:
    def __init__(self, value, parent=None):
        self.value = value
        self.parent = parent
        self.children = []


def test_along_the_gradient_of_objects_that_hold_each_other():
    root = Node(2.0)
    leaf = Node(3.0, root)
    root.children.append(leaf)

    def f(n):
        return n.value * n.parent.value * n.parent.children[0].value

    g = gradient(f, leaf)
    assert (g[0].value, g[0].parent.value) == (12.0, 9.0)
    assert jvp(f, (leaf,), g) == (18.0, 12.0**2 + 9.0**2)


def test_along_the_gradient_of_a_list_that_holds_itself():
    xs = [2.0]
    xs.append((3.0, xs))
    g = gradient(lambda xs: xs[0] * xs[1][1][1][0], xs)
    assert jvp(lambda xs: xs[0] * xs[1][1][1][0], (xs,), g) == (6.0, 4.0 + 9.0)
