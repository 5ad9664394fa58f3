"""State outside of the function: set by one call, read by another, however they are called.

Globals, attributes of classes, modules, objects and functions, items of containers, captured
variables, default values, context variables: what was stored there carries its derivative.
"""

import contextvars
import functools
import itertools
import types

import numpy as np
import pytest

from morula import grad, jvp, pullback
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


class Plain:
    v = 1.0


class WithSlot:
    __slots__ = ("v",)


class WithProperty:
    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, x):
        self._v = x


class WithHooks:
    def __init__(self):
        object.__setattr__(self, "held", {"v": 1.0})

    def __getattr__(self, name):
        return self.held[name]

    def __setattr__(self, name, x):
        self.held[name] = x


number, pair, array, replaced = 1.0, (1.0,), np.array([1.0, 2.0]), np.array([1.0, 2.0])
plain, slotted, computed, hooked = Plain(), WithSlot(), WithProperty(), WithHooks()
module, listed, keyed, nested = types.ModuleType("state"), [1.0], {"v": 1.0}, [[1.0]]
variable = contextvars.ContextVar("variable", default=1.0)


def set_number(x):
    global number
    number = x


def set_by_name(x):
    globals()["number"] = x


def set_pair(x):
    global pair
    pair = (x,)


def set_array(x):
    array[0] = x


def replace_array(x):
    global replaced
    replaced = np.array([x, x])


def set_module(x):
    module.v = x


def set_class(x):
    Plain.v = x


def set_object(x):
    plain.v = x


def set_in_dict_of_object(x):
    plain.__dict__["v"] = x


def set_slot(x):
    slotted.v = x


def set_property(x):
    computed.v = x


def set_hooked(x):
    hooked.v = x


def set_item(x):
    listed[0] = x


def replace_item(x):
    listed.append(x)
    listed.pop(0)


def set_key(x):
    keyed["v"] = x


def set_inner(x):
    nested[0] = [x]


def set_of_function(x):
    set_of_function.v = x


def set_variable(x):
    variable.set(x)


def default(x=None, store=[1.0]):  # noqa: B006
    if x is not None:
        store[0] = x
    return store[0]


def closures():
    captured = 1.0

    def put(x):
        nonlocal captured
        captured = x

    return put, lambda: captured


STATES = {
    "number": (set_number, lambda: number),
    "by name": (set_by_name, lambda: number),
    "pair": (set_pair, lambda: pair[0]),
    "array": (set_array, lambda: array[0]),
    "replaced array": (replace_array, lambda: replaced[0]),
    "module": (set_module, lambda: module.v),
    "class": (set_class, lambda: Plain.v),
    "class by an object": (set_class, lambda: Plain().v),
    "object": (set_object, lambda: plain.v),
    "dict of an object": (set_in_dict_of_object, lambda: vars(plain)["v"]),
    "slot": (set_slot, lambda: slotted.v),
    "property": (set_property, lambda: computed.v),
    "hooks": (set_hooked, lambda: hooked.v),
    "item": (set_item, lambda: listed[0]),
    "other items": (replace_item, lambda: listed[0]),
    "key": (set_key, lambda: keyed["v"]),
    "inner list": (set_inner, lambda: nested[0][0]),
    "function": (set_of_function, lambda: set_of_function.v),
    "context variable": (set_variable, lambda: variable.get()),
    "default value": (default, lambda: default()),
    "captured": closures(),
}


def write_here(put, x):
    put(x)


def write_protected(put, x):
    try:
        put(x)
    finally:
        pass


def write_by_callback(put, x):
    list(map(put, [x]))


def write_and_raise(put, x):
    try:
        put(x)
        raise ValueError
    except ValueError:
        pass


def read_here(get):
    return get()


def read_protected(get):
    try:
        return get()
    finally:
        pass


WAYS = list(
    itertools.product(
        (write_here, write_protected, write_by_callback, write_and_raise),
        (read_here, read_protected),
    )
)


@pytest.mark.parametrize(("write", "read"), WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("state", STATES)
def test_what_is_stored_outside_carries_its_derivative(state, write, read):
    put, get = STATES[state]
    names = {"write": write, "read": read, "put": put, "get": get}
    source = """
def f(x):
    before = read(get) * x
    write(put, x * x)
    between = read(get) * x
    write(put, between)
    return before + between * read(get) + read(get)
"""
    exec(source, names)  # so that all of these are globals, known to the program
    f = names["f"]
    expected = 1 + 6 * 1.3**5 + 3 * 1.3**2
    for derivative in (grad(f), grad(f), lambda x: jvp(f, (x,), (1.0,))[1]):
        put(1.0)
        assert derivative(1.3) == pytest.approx(expected)
    with by_the_general_path():
        put(1.0)
        assert grad(f)(1.3) == pytest.approx(expected)
    put(1.0)
    _, back = pullback(f, 1.3)
    put(1.0)
    assert back(1.0) == back(1.0) == (pytest.approx(expected),)
    put(1.0)
    assert grad(grad(f))(1.3) == pytest.approx(30 * 1.3**4 + 6 * 1.3)
    put(1.0)


def add_up(n):
    return number if n == 0 else add_up(n - 1) * 1.0


class Reader:
    """An object all of whose operators read the state."""

    def __add__(self, other):
        return number + other

    def __getitem__(self, i):
        return number * i

    def __iter__(self):
        return iter([number, number])

    def __float__(self):
        return float(number)

    def __call__(self):
        return number

    def __abs__(self):
        return number

    def __getattr__(self, name):
        return number

    @property
    def v(self):
        return number


reader = Reader()


def in_a_recursion(x):
    return add_up(2) * x


def in_a_recursion_of_a_comprehension(x):
    return [add_up(i) for i in range(3)][1] * x


def in_a_recursion_by_map(x):
    first, _ = map(add_up, [1, 2])
    return first * x


def in_a_local_recursion(x):
    def count(n):
        return number if n == 0 else count(n - 1)

    return count(2) * x


def in_a_local_function(x):
    def read():
        return number

    return read() * x


def in_a_generator(x):
    def numbers():
        for _ in range(3):
            yield number

    return sum(numbers()) * x


def in_a_reduction(x):
    return functools.reduce(lambda total, i: total + number, range(3), 0.0) * x


def in_a_vectorised_function(x):
    return float(np.vectorize(lambda i: i * number)(np.arange(3.0)).sum()) * x


def in_special_methods(x):
    a, b = reader
    return ((reader + 1.0) * reader[2] + float(reader) * abs(reader) + reader() * a * b) * x


def in_attributes(x):
    return reader.v * x + reader.anything * Reader().v


@pytest.mark.parametrize(
    "read",
    [
        in_a_recursion,
        in_a_recursion_of_a_comprehension,
        in_a_recursion_by_map,
        in_a_local_recursion,
        in_a_local_function,
        in_a_generator,
        in_a_reduction,
        in_a_vectorised_function,
        in_special_methods,
        in_attributes,
    ],
)
def test_what_reads_state_that_a_call_before_it_has_set(read):
    def f(x):
        write_protected(set_number, x)
        return read(x)

    h = 1e-5
    expected = (f(1.5 + h) - f(1.5 - h)) / (2 * h)
    for derivative in (grad(f), grad(f), lambda x: jvp(f, (x,), (1.0,))[1]):
        set_number(1.0)
        assert derivative(1.5) == pytest.approx(expected, rel=1e-6)


def squared(x):
    return x * x


def cubed(x):
    return x**3


chosen = squared


class Told:
    k = 2.0

    def __init__(self):
        self.z = 1.0

    def power(self, x):
        return x * x


class Bare:
    k = 2.0


def choose():
    global chosen
    chosen = cubed


def choose_protected():
    global chosen
    try:
        chosen = cubed
    finally:
        pass


def choose_by_name():
    try:
        globals()["chosen"] = cubed
    finally:
        pass


def change_classes():
    try:
        Told.k = Bare.k = 5.0
        Told.power = lambda self, x: x**3
    finally:
        pass


def change_by_name():
    try:
        setattr(Bare, "k", 5.0)  # noqa: B010
    finally:
        pass


def change_by_computed_name():
    try:
        for name in ["j", "k"]:
            setattr(Bare, name, 5.0)
    finally:
        pass


def attribute_by_computed_name(x):
    a = Bare()
    change_by_computed_name()
    return a.k * x


def function_here(x):
    before = chosen(x)
    choose()
    return before + chosen(x)


def function_elsewhere(x):
    before = chosen(x)
    choose_protected()
    return before + chosen(x)


def function_by_name(x):
    before = chosen(x)
    choose_by_name()
    return before + chosen(x)


def function_by_callback(x):
    before = chosen(x)
    list(map(lambda _: choose_protected(), [0]))
    return before + chosen(x)


def attribute_of_a_class(x):
    before = Told().k * x * Bare().k
    change_classes()
    return before + Told().k * x * Bare().k


def attribute_behind_an_object(x):
    a = Bare()
    change_classes()
    return a.k * x


def attribute_by_name(x):
    a = Bare()
    change_by_name()
    return a.k * x


def method(x):
    a = Told()
    before = a.power(x)
    change_classes()
    return before + a.power(x)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (function_here, 16),
        (function_elsewhere, 16),
        (function_by_name, 16),
        (function_by_callback, 16),
        (attribute_of_a_class, 29),
        (attribute_behind_an_object, 5),
        (attribute_by_name, 5),
        (attribute_by_computed_name, 5),
        (method, 16),
    ],
)
def test_functions_and_attributes_that_are_rebound_meanwhile(f, expected):
    global chosen
    power = Told.power
    for derivative in (grad(f), grad(f), lambda x: jvp(f, (x,), (1.0,))[1]):
        chosen, Told.power = squared, power
        Told.k = Bare.k = 2.0
        assert derivative(2.0) == pytest.approx(expected)
    chosen, Told.power = squared, power
    Told.k = Bare.k = 2.0


def view(x):
    array[:1][0] = x


def by_out(x):
    np.add(x, 0.0, out=array[:1])


def by_attribute(x):
    array.real = x


def by_mask(x):
    array[array == array[0]] = x


def in_a_loop(x):
    for i in range(2):
        array[i] += x


@pytest.mark.parametrize("put", [view, by_out, by_attribute, by_mask, in_a_loop])
@pytest.mark.parametrize("write", [write_here, write_protected])
@pytest.mark.parametrize("read", [read_here, read_protected])
def test_arrays_from_outside(put, write, read):
    names = {"write": write, "read": read, "put": put, "array": array}
    source = """
def get():
    return array[0]
def f(x):
    write(put, x * x)
    between = read(get) * x
    write(put, between)
    return between + array.sum() * read(get)
"""
    exec(source, names)
    f = names["f"]

    def reference(x):
        array[:] = [1.0, 2.0]
        return f(x)

    h = 1e-5
    expected = (reference(1.3 + h) - reference(1.3 - h)) / (2 * h)
    for derivative in (grad(f), grad(f), lambda x: jvp(f, (x,), (1.0,))[1]):
        array[:] = [1.0, 2.0]
        assert derivative(1.3) == pytest.approx(expected, rel=1e-6)
    array[:] = [1.0, 2.0]


KINDS = [
    np.array([1.3, 0.7]),
    np.array([1.3, 0.7], dtype=np.float32),
    np.array([1.3 + 0.2j, 0.7]),
    np.zeros(0),
]


@pytest.mark.parametrize("x", KINDS, ids=["real", "float32", "complex", "empty"])
@pytest.mark.parametrize("state", sorted(STATES.keys() - {"array", "replaced array"}))
def test_arrays_that_are_stored_outside(state, x):
    put, get = STATES[state]

    def f(x):
        write_protected(put, x * x)
        between = read_protected(get) * x
        write_protected(put, between)
        return np.sum(np.real(between * read_protected(get)))

    for _ in range(2):
        put(1.0)
        found = grad(f)(x)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, 6 * np.conj(x) ** 5, rtol=1e-5)
    put(1.0)


class Rows:
    """Sums of rows, found when they are first asked for, entry by entry."""

    def __init__(self, a, made=None):
        self.a = a
        self.made = made

    def fill(self, sums):
        for i in [j for j in range(len(self.a)) if self.a[j, 0] > 0]:
            sums[i] = self.a[i] @ self.a[i]
        self.made = sums

    @property
    def sums(self):
        try:
            if self.made is None:
                self.fill(np.zeros(len(self.a)))
        finally:
            self.asked = True
        return self.made


def test_an_array_that_a_property_makes_and_fills_and_keeps():
    def f(x):
        rows = Rows(np.array([[x[0], x[1]], [x[1], x[0] * x[1]]]))
        return rows.sums[0] * rows.sums[1] + rows.made[0]

    check_gradient(f, np.array([0.6, 0.8]))
    x, u = np.array([0.6, 0.8]), np.array([0.3, -0.2])
    assert jvp(f, (x,), (u,))[1] == pytest.approx(grad(f)(x) @ u, rel=1e-12)


def test_an_array_that_was_at_hand_before_is_followed_or_refused():
    def f(x):
        kept = x * 2
        rows = Rows(np.array([[x[0], x[1]], [x[1], x[0] * x[1]]]), kept)
        rows.fill(kept)
        return rows.sums[0] * kept[1] + rows.made[0]

    check_gradient(f, np.array([0.6, 0.8]))


LAZY = types.ModuleType("lazy_module_of_a_test")
exec(
    """
def __getattr__(name):
    if name not in stored:
        raise AttributeError(name)
    return 2 * stored[name]
""",
    LAZY.__dict__,
)
LAZY.stored = {"v": 1.0}


def from_a_lazy_module(x):
    LAZY.stored["v"] = x * x
    return LAZY.v * getattr(LAZY, "v") * x


def from_one_that_was_made_here(x):
    module = types.ModuleType("made_here")
    exec("def __getattr__(name):\n    return stored[name]", module.__dict__)
    module.stored = {"v": x * x}
    return module.v * getattr(module, "v", 0.0) + getattr(module, "stored")["v"]


def of_a_name_that_is_not_there(x):
    try:
        return np.no_such_name
    except AttributeError:
        return x * x * (not hasattr(np, "nor_this"))


@pytest.mark.parametrize(
    "f", [from_a_lazy_module, from_one_that_was_made_here, of_a_name_that_is_not_there]
)
def test_attributes_that_a_module_computes(f):
    check_gradient(f, 1.3)
    h = 1e-6
    slope = (f(1.3 + h) - f(1.3 - h)) / (2 * h)
    assert grad(f)(1.3) == pytest.approx(slope)
    assert pullback(f, 1.3)[1](1.0)[0] == pytest.approx(slope)
    assert jvp(f, (1.3,), (1.0,))[1] == pytest.approx(slope)
