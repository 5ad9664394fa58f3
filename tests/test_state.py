"""State outside of the function: set by one call, read by another, however they are called.

Globals, attributes of classes, modules, objects and functions, items of containers, captured
variables, default values, context variables: what was stored there carries its derivative.
"""

import contextvars
import itertools
import types

import numpy as np
import pytest

from morula import grad, jvp


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
    put(1.0)
