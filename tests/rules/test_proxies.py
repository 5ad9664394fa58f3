"""One variable by several names: globals(), vars(), modules, classes, mapping proxies; both modes."""

import sys
import types

import pytest

from morula import hvp, jvp
from tests.mutation import check_mutation

G = 1.0
this = sys.modules[__name__]
other = types.ModuleType("other")
other.G = 1.0


def times_global(a):
    return a * G


class Settings:
    a = 1.0


@pytest.fixture(autouse=True)
def as_before():
    yield
    globals()["G"] = other.G = Settings.a = 1.0


def set_by_name(a, b, c):
    globals()["G"] = a * b
    return G * c


def updated(a, b, c):
    globals().update(G=a * b)
    globals()["G"] += c
    return times_global(a) * G


def read_by_name(a, b, c):
    global G
    G = a * b
    return globals()["G"] * globals().get("G") * c


def called_by_name(a, b, c):
    globals()["G"] = a * b
    return globals()["times_global"](c)


def made_and_deleted(a, b, c):
    globals()["made"] = a * b
    y = made * c  # noqa: F821
    del globals()["made"]
    return y


def an_attribute_of_this_module(a, b, c):
    global G
    G = a * b
    return this.G * c


def set_as_an_attribute(a, b, c):
    this.G = a * b
    return G * c * globals()["G"]


def variables_of_another_module(a, b, c):
    other.G = a * b
    y = vars(other)["G"] * c
    vars(other)["G"] = y * b
    other.__dict__["G"] *= a
    return other.G + y


def a_proxy(a, b, c):
    d = {"a": a * b, "b": c}
    p = types.MappingProxyType(d)
    d["a"] *= c
    return p["a"] * p.get("b") + p.get("c", a) + sum(v * v for v in p.values())


def copies_of_a_proxy(a, b, c):
    p = types.MappingProxyType({"a": a * b, "b": c})
    d, e, f = dict(p), {**p}, p.copy()
    d["a"] *= 2.0
    return d["a"] * e["b"] + f["a"] + (p | {"c": a})["a"] + (lambda a, b: a * b)(**p)


def items_of_a_proxy(a, b, c):
    p = types.MappingProxyType({"a": a * b, "b": c})
    return sum(p[k] * len(p) for k in p) + sum(v * v for k, v in p.items() if k == "a")


def attributes_of_a_class(a, b, c):
    Settings.a = a * b
    return vars(Settings)["a"] * c * Settings.__dict__.get("a") + dict(vars(Settings))["a"]


def attributes_of_a_class_of_its_own(a, b, c):
    class Own:
        a = 1.0

    Own.a = a * b
    return sum(v * v for k, v in vars(Own).items() if k == "a") * c


PROGRAMS = (
    set_by_name, updated, read_by_name, called_by_name, made_and_deleted,
    an_attribute_of_this_module, set_as_an_attribute, variables_of_another_module, a_proxy,
    copies_of_a_proxy, items_of_a_proxy, attributes_of_a_class, attributes_of_a_class_of_its_own,
)  # fmt: skip
POINT = (0.7, 1.3, -0.4)


@pytest.mark.parametrize("f", PROGRAMS)
def test_all_names_are_of_one_variable(f, path):
    gradients = check_mutation(f, *POINT)
    assert jvp(f, POINT, (1.0, 2.0, -1.0))[1] == pytest.approx(
        gradients[0] + 2 * gradients[1] - gradients[2]
    )


@pytest.mark.parametrize("f", PROGRAMS)
def test_second_derivatives(f):
    def by_one(a):
        return f(a, 1.3, -0.4)

    h = 1e-4
    expected = (by_one(0.7 + h) - 2 * by_one(0.7) + by_one(0.7 - h)) / h**2
    assert hvp(by_one, 0.7, 1.0) == pytest.approx(expected, rel=1e-5, abs=1e-5)
