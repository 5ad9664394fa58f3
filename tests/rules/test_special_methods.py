"""What is constant for numbers and containers, and what else a class says that it is."""

import functools
import math
import operator
import pprint
import traceback
from collections import deque
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from morula import NoRuleError, UnsupportedError, gradient, jvp, value_and_grad
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


class Soft:
    """A number that compares by how much."""

    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return 1.0 / (1.0 + math.exp(self.v - value_of(other)))

    def __ge__(self, other):
        return NotImplemented if isinstance(other, str) else self.v - value_of(other)

    def __eq__(self, other):
        return math.exp(-((self.v - value_of(other)) ** 2))

    __hash__ = None

    def __round__(self, digits=0):
        return self.v * (digits + 1)

    def __trunc__(self):
        return self.v * 2

    def __floor__(self):
        return self.v**2

    def __ceil__(self):
        return Soft(self.v**3)


def value_of(x):
    return x.v if isinstance(x, Soft) else x


class Softer(Soft):
    def __gt__(self, other):
        return self.v * 3

    def __ne__(self, other):
        return self.v * 5


class Lazy:
    """A sequence that is computed when it is first asked for."""

    def __init__(self, v):
        self.v = v
        self.asked = []

    def load(self, factor):
        self.asked.append(self.v * factor)
        return True

    def __bool__(self):
        return self.load(2)

    def __len__(self):
        return self.load(3)

    def __contains__(self, x):
        return self.load(5)

    def __index__(self):
        return int(self.load(7))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.load(11)


class Sized:
    def __init__(self, v):
        self.v = v
        self.asked = []

    def __len__(self):
        self.asked.append(self.v)
        return 1

    def __iter__(self):
        self.asked.append(self.v * 2)
        yield self.v


def comparisons(x):
    a = Soft(x)
    return (a < 0.3) + (0.2 > a) * 2 + (a >= 1.0) * 3 + (0.5 <= a) * 5 + (a == 2.0) * (2.0 == a)


def comparisons_by_function(x):
    return operator.lt(Soft(x), x * x) * functools.reduce(operator.ge, [Soft(x), 0.5])


def a_subclass_is_asked_first(x):
    return (Soft(x) < Softer(x * 2)) + (Softer(x) < Soft(0.5)) + (Softer(x) != 1.0)


def what_is_not_said_is_identity(x):
    a = Soft(x)
    return x if (a != 1.0) is False and a.__ge__("b") is NotImplemented else x * x


def rounding(x):
    a = Soft(x)
    return round(a) + round(a, 2) * 2 + math.trunc(a) * 3 + math.floor(a) * 5 + math.ceil(a).v


def truth(x):
    a = Lazy(x)
    y = x if a else 1.0
    while not a:
        pass
    return y + sum(a.asked) * (2 if bool(a) and a else 3) + len(a.asked)


def truth_by_length(x):
    a = Sized(x)
    return (1.0 if a else 2.0) * len(a) * sum(a.asked)


def length_and_place(x):
    a = Lazy(x)
    return len(a) * x + sum(a.asked) + int(a) + operator.index(a)


def membership(x):
    a, b = Lazy(x), Sized(x)
    return (2.0 in a) + (x in b) * (x not in b or 3.0) + sum(a.asked) + sum(b.asked)


def any_and_all(x):
    a = Sized(x)
    return any(a) + all(a) * sum(a.asked)


def presence(x):
    a = Lazy(x)
    return hasattr(a, "more") * x + (not hasattr(a, "__more__")) + sum(a.asked)


PROGRAMS = [
    comparisons,
    comparisons_by_function,
    a_subclass_is_asked_first,
    what_is_not_said_is_identity,
    rounding,
    truth,
    truth_by_length,
    length_and_place,
    membership,
    any_and_all,
    presence,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradients_agree_with_differences(program):
    check_gradient(program, 0.7, order=2)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda a: a < "b", "'<' not supported between instances of 'Other' and 'str'"),
        (lambda a: 1 >= a, "'>=' not supported between instances of 'int' and 'Other'"),
        (bool, "__bool__ should return bool, returned float"),
        (lambda a: 1 if a else 2, "__bool__ should return bool, returned float"),
        (len, "'float' object cannot be interpreted as an integer"),
    ],
)
def test_what_a_class_must_not_answer_is_the_error_of_python(program, message):
    class Other:
        def __init__(self, v):
            self.v = v

        def __lt__(self, other):
            return NotImplemented

        def __le__(self, other):
            return NotImplemented

        def __bool__(self):
            return self.v

        def __len__(self):
            return self.v

    with pytest.raises(TypeError, match="^" + message.replace("(", r"\(")) as plain:
        program(Other(0.7))
    with pytest.raises(TypeError) as caught:
        gradient(lambda x: x * bool(program(Other(x))), 0.7)
    assert str(caught.value) == str(plain.value)
    with pytest.raises(TypeError) as caught:
        jvp(lambda x: x * bool(program(Other(x))), (0.7,), (1.0,))
    assert str(caught.value) == str(plain.value)


class Dotted(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __call__ = dict.__getitem__


class FirstWins(dict):
    __getitem__ = dict.get
    __setitem__ = dict.setdefault


class Taking(list):
    __getitem__ = list.pop


class Tripling:
    def _set(self, k, name, value):
        object.__setattr__(self, name, value * k)

    __setattr__ = functools.partialmethod(_set, 3.0)


def set_by_name(a):
    d = Dotted(x=a * a)
    d.y = d.x * a
    d.x = d.y * d.x
    z = d("y")
    del d.y
    d.y = 2 * a
    d.y += d.x
    return d["y"] * z


def first_wins(a):
    d = FirstWins(x=a * a)
    d["y"] = a
    d["y"] = 3 * a
    return d["x"] * d["y"]


def taken(a):
    u = Taking([a, a * a, 3.0])
    u[0]
    return u[0] * u[0]


def tripled(a):
    p = Tripling()
    p.z = a * a
    return p.z


@pytest.mark.parametrize("f", [set_by_name, first_wins, taken, tripled])
def test_special_methods_that_are_compiled_methods_of_other_names(f):
    check_gradient(f, 0.9, order=2)
    (dy,) = gradient(f, 0.9)
    assert jvp(f, (0.9,), (1.0,)) == (f(0.9), pytest.approx(dy))


class Stern(dict):
    __getattr__ = dict.__getitem__


def test_an_error_names_objects_that_have_no_name():
    def f(a):
        return memoryview(Stern(x=a))

    with pytest.raises(TypeError, match="Stern"):
        gradient(f, 1.0)


# -- operators of lists, tuples and their classes --------------------------------------------------
#
# The operators that sequences have of their own wait for those of numbers and for those that classes
# say in Python; `+=` of a class of lists does not wait.


class Row(list):
    def __add__(self, other):
        return Row([a * 3 + b * b for a, b in zip(self, other, strict=True)])

    def __radd__(self, other):
        return Row([a * 2 + b * b for a, b in zip(other, self, strict=True)])

    def __mul__(self, other):
        return Row([a * other for a in self])


class Pair(tuple):
    __slots__ = ()

    def __add__(self, other):
        return Pair([a + other for a in self])

    def __mul__(self, other):
        return Pair([a * other for a in self])


class Weight:
    def __init__(self, v):
        self.v = v

    def __radd__(self, other):
        return sum(other) * self.v

    def __rmul__(self, other):
        return sum(other) ** self.v


def measured(xs):
    return sum([(i + 1) * v * v for i, v in enumerate(xs)]) * len(xs)


def with_iadd(a, b):
    a += b
    return a


def with_imul(a, b):
    a *= b
    return a


OF_SEQUENCES = {
    "Pair * np.float64": lambda x: Pair((x, 2.0)) * np.float64(x),
    "Pair + np.float64": lambda x: Pair((x, 2.0)) + np.float64(x),
    "Pair * array": lambda x: [v.sum() for v in Pair((x, 2.0)) * np.array([x, 1.0])],
    "Pair *= np.float64": lambda x: with_imul(Pair((x, 2.0)), np.float64(x)),
    "Row * np.float64": lambda x: Row([x, 2.0]) * np.float64(x),
    "Row + list": lambda x: Row([x, 2.0]) + [x, x],
    "Row += Row": lambda x: with_iadd(Row([x, 2.0]), Row([x * x, 3.0])),
    "Row *= 2": lambda x: with_imul(Row([x, 2.0]), 2),
    "Row *= x": lambda x: with_imul(Row([x, 2.0]), x),
    "list + Row": lambda x: [x, 2.0] + Row([x * x, 3.0]),
    "list += Row": lambda x: with_iadd([x, 2.0], Row([x * x, 3.0])),
    "list += tuple": lambda x: with_iadd([x, 2.0], (x * x,)),
    "list += Weight": lambda x: [with_iadd([x, 2.0], Weight(x))],
    "list *= Weight": lambda x: [with_imul([x, 2.0], Weight(2))],
    "tuple += Weight": lambda x: [with_iadd((x, 2.0), Weight(x))],
    "tuple * Weight": lambda x: [(x, 2.0) * Weight(2)],
}


@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_operators_of_sequences_wait_for_those_of_numbers_and_classes(name):
    def f(x):
        return measured(OF_SEQUENCES[name](x))

    x, h = 1.3, 1e-5
    slope = (f(x + h) - f(x - h)) / (2 * h)
    value, found = value_and_grad(f)(x)
    assert value == f(x)
    assert found == pytest.approx(slope, rel=1e-7)
    assert jvp(f, (x,), (1.0,)) == pytest.approx((value, slope), rel=1e-7)


class Told:
    """Notes what its text is asked for."""

    def __init__(self, v, notes):
        self.v, self.notes = v, notes

    def __format__(self, spec):
        self.notes.append(self.v * 2)
        return format("told", spec)

    def __str__(self):
        self.notes.append(self.v * 3)
        return "told"

    def __repr__(self):
        self.notes.append(self.v * 5)
        return "Told()"


FILLED_IN = {
    "by place": lambda t, u: "{}".format(t),
    "by name": lambda t, u: "{0:>6} {a!r} {{}}".format(t, a=u),
    "an item": lambda t, u: "{0[0]} and {0[1]!s}".format([t, u]),
    "a mapping": lambda t, u: "{a:<7}{b}".format_map({"a": t, "b": u}),
    "a width in braces": lambda t, u: "{:{}}".format(t, 9),
}


@pytest.mark.parametrize("name", FILLED_IN)
def test_what_format_asks_objects_for(name):
    def f(x):
        notes = []
        text = FILLED_IN[name](Told(x, notes), Told(x * x, notes))
        return sum(notes) * len(text)

    x, h = 1.3, 1e-6
    value, found = value_and_grad(f)(x)
    assert value == f(x)
    assert found == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-7)
    assert jvp(f, (x,), (1.0,)) == pytest.approx((value, found))


class Growing:
    """Its text notes itself; that of `repr` doubles what it holds, too."""

    def __init__(self, v):
        self.v = v

    def __str__(self):
        self.text = "growing"
        return self.text

    def __repr__(self):
        self.v = 2.0 * self.v
        return "growing"


def test_texts_by_percent_of_objects_that_change(path):
    def f(x, template):
        it = Growing(x)
        return it.v * it.v * len(template % it)

    assert gradient(lambda x: f(x, "%s!"), 1.5)[0] == pytest.approx(8 * 3.0)
    with pytest.raises(UnsupportedError, match="changes a Growing in place"):
        gradient(lambda x: f(x, "%r!"), 1.5)
    with pytest.raises(UnsupportedError, match="changes a Growing in place"):
        gradient(lambda x: f(x, "%a"), 1.5)


SHOWN_BY = {
    "an error": lambda it: str(ValueError(it, 1)),
    "a key that was not found": lambda it: str(KeyError(it)),
    "a namespace": lambda it: str(SimpleNamespace(it=it)),
    "a partial function": lambda it: repr(functools.partial(max, it)),
    "a method": lambda it: repr(it.__str__),
    "an array of objects": lambda it: str(np.array([it], dtype=object)),
    "views": lambda it: (repr({1: it}.items()), repr({it: 1}.keys())),
    "a proxy": lambda it: repr(MappingProxyType({1: it})),
    "a frozen set": lambda it: repr(frozenset([it])),
    "a slice": lambda it: f"{slice(it)}",
    "a queue": lambda it: f"{deque([it])}",
    "lines of an error": lambda it: traceback.format_exception_only(ValueError([it])),
}


@pytest.mark.parametrize("name", SHOWN_BY)
def test_texts_of_what_holds_objects_that_change(name):
    """An object's text may be asked for through others: it is refused, not passed over."""

    def f(x):
        it = Growing(x)
        show(it)
        return it.v * it.v

    show = SHOWN_BY[name]
    with pytest.raises(NoRuleError, match="changes a Growing"):
        gradient(f, 1.5)
    show = lambda it: SHOWN_BY[name](Said(it))
    assert gradient(f, 1.5) == (3.0,)


class Said:
    """Its text changes nothing."""

    def __init__(self, it):
        self.it = it

    def __str__(self):
        return "said"

    def __repr__(self):
        return str(self)


@pytest.mark.parametrize("show", [pprint.pformat, lambda it: pprint.pformat([it])])
def test_pretty_texts_of_objects_that_change(show):
    def f(x):
        it = Growing(x)
        return it.v * len(show(it)) * it.v

    value, found = value_and_grad(f)(1.5)
    assert value == f(1.5)
    assert found == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6, rel=1e-7)
