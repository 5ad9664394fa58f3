"""eval and exec of texts that compute with active values."""

import math
import sys

import pytest

from morula import (
    UnsupportedError,
    grad,
    gradient,
    hvp,
    jvp,
    withgradient,
)
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


def expressions(x):
    return eval("x * x * 2", {"x": x}) + eval("  x * y", {"x": x}, {"y": x * 3}) + eval("2 + 3")


def functions_of_a_text(x):
    names = {"x": x}
    exec("y = x * 3\nz = y * x\ndef f(a):\n    return a * z", names)
    return names["z"] + names["f"](x)


def a_loop_in_a_text(x):
    names = {"x": x}
    exec(compile("r = x * x\nfor i in range(3):\n    r = r * x", "<loop>", "exec"), {}, names)
    return names["r"]


def a_class_in_a_text(x):
    names = {"x": x, "sin": math.sin}
    exec("class C:\n    k = x * 2\n    def m(self):\n        return sin(self.k) * x", names)
    return names["C"]().m()


def what_a_text_changes(x):
    names = {"xs": [x, x * 2]}
    eval("xs.append(xs[0] * xs[1])", names)
    exec("global more\nxs[0] = xs[1] * 2\nmore = xs[0]\ndel xs[1]", names)
    return names["xs"][1] * names["more"]


def comprehensions_in_a_text(x):
    return eval("sum([a * x for a in range(3)]) + max(a * x for a in (1, 2))", {"x": x})


PROGRAMS = [
    expressions,
    functions_of_a_text,
    a_loop_in_a_text,
    a_class_in_a_text,
    what_a_text_changes,
    comprehensions_in_a_text,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradients_agree_with_differences(program):
    check_gradient(program, 0.7)
    assert jvp(program, (0.7,), (2.0,))[1] == pytest.approx(2.0 * gradient(program, 0.7)[0])


@pytest.mark.parametrize("program", [expressions, functions_of_a_text])
def test_second_derivatives(program):
    check_gradient(grad(program), 0.7)
    assert hvp(program, 0.7, 1.0) == pytest.approx(grad(grad(program))(0.7))


def locals_behind_a_branch(x):
    if x > 0:
        y = x
    return locals()["x"] * 2


def vars_in_a_loop(x):
    for _ in range(2):
        x = vars()["x"] * 2
    return x


def dir_behind_a_branch(x, y=1):
    if x > 0:
        del y
    return len(dir()) * x


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: eval("x * 2"), "eval without a namespace"),
        (lambda x: exec("y = x") or x, "exec without a namespace"),
        (locals_behind_a_branch, r"locals\(\), which asks"),
        (vars_in_a_loop, r"vars\(\), which asks"),
        (dir_behind_a_branch, r"dir\(\), which asks"),
    ],
)
def test_texts_that_read_the_variables_around_them_are_refused(program, message):
    with pytest.raises(UnsupportedError, match=message) as caught:
        gradient(program, 0.7)
    assert any(entry.path.name == "test_source_texts.py" for entry in caught.traceback[1:])
    with pytest.raises(UnsupportedError, match=message):
        jvp(program, (0.7,), (1.0,))


def test_functions_that_read_the_variables_of_a_frame_are_refused():
    def f(x):
        return sys._getframe().f_locals["x"] * 2

    with pytest.raises(UnsupportedError, match="f_locals, the variables"):
        gradient(f, 0.7)
    with pytest.raises(UnsupportedError, match="f_locals, the variables"):
        jvp(f, (0.7,), (1.0,))
    assert grad(lambda x: f_locals_of_an_object(x))(2.0) == 4.0


def f_locals_of_an_object(x):
    class Frame:
        pass

    frame = Frame()
    frame.f_locals = x * x
    return frame.f_locals


def test_errors_of_texts_are_those_of_python():
    with pytest.raises(SyntaxError, match="invalid syntax"):
        gradient(lambda x: eval("x *", {"x": x}), 1.0)
    with pytest.raises(NameError, match="'y' is not defined"):
        gradient(lambda x: eval("x * y", {"x": x}), 1.0)
    with pytest.raises(TypeError, match="globals must be a dict"):
        gradient(lambda x: eval("1", [x]), 1.0)


def test_the_namespace_holds_what_the_plain_run_leaves_there():
    def f(x):
        exec("y = x * 2", names)
        return names["y"]

    names = {"x": 3.0}
    assert withgradient(f, 1.0)[0] == 6.0
    assert names["y"] == 6.0
    assert "__builtins__" in names


def test_attributes_and_names_of_an_object():
    class Point:
        pass

    def f(x):
        point = Point()
        point.v = x
        return vars(point)["v"] * x * ("v" in dir(point))

    assert gradient(f, 1.5) == (3.0,)
    assert jvp(f, (1.5,), (1.0,)) == (2.25, 3.0)


# -- the variables of the function itself


def a_variable_by_its_name(x):
    y = x * 3
    return locals()["y"] ** 2 + y


def variables_in_a_text(x):
    y, name = x * 3, "y"
    return y * len("{name} is {y:.1f}".format(**locals()))


def attributes_from_parameters(x):
    class Point:
        def __init__(self, a, b=2.0, *, c=3.0):
            self.__dict__.update({k: v for k, v in locals().items() if k != "self"})
            if self.a > 5:
                later = 1

    p = Point(x * 2, c=x)
    return p.a * p.b * p.c


def variables_that_are_checked(x):
    def check(function, values):
        for name, kind in function.__annotations__.items():
            if not isinstance(values[name], kind):
                raise TypeError(name)

    def scaled(value: float, by: float):
        check(scaled, locals())
        return value * by**2

    return scaled(x, x)


def captured_variables(x):
    y = x * 2

    def inside(a):
        return vars()["y"] * a + y

    def outside():
        return y * 0 + inside(x)

    return outside() * locals()["y"]


def a_dict_of_ones_own(x):
    y = x**2
    found = locals()
    found["y"] = found["y"] * x
    return found["y"] + y


def in_a_generator(x):
    def steps(a):
        b = a * 2
        yield locals()["b"] * a
        yield a

    return sum(steps(x))


OWN_VARIABLES = [
    a_variable_by_its_name,
    variables_in_a_text,
    attributes_from_parameters,
    variables_that_are_checked,
    captured_variables,
    a_dict_of_ones_own,
    in_a_generator,
]


@pytest.mark.parametrize("program", OWN_VARIABLES)
def test_functions_that_ask_for_their_own_variables(program):
    assert withgradient(program, 0.7)[0] == program(0.7)
    check_gradient(program, 0.7)
    assert jvp(program, (0.7,), (2.0,))[1] == pytest.approx(2.0 * gradient(program, 0.7)[0])
    assert hvp(program, 0.7, 1.0) == pytest.approx(grad(grad(program))(0.7))


def test_the_names_and_their_order_are_those_of_the_plain_run():
    def names(x, b=1, *rest, c=2, **more):
        y = x
        seen = [*locals()]
        z = x
        return x * 2, seen, [lambda: y, more]

    def in_order(x):
        zero = 0
        later = dir()
        return later

    kept = []

    def f(x):
        kept.append((names(x, c=3)[1], in_order(x)))
        return names(x)[0]

    plain = names(1.0, c=3)[1], in_order(1.0)
    assert gradient(f, 1.0) == (2.0,)
    assert kept == [plain]


def test_functions_of_that_name_are_the_users(monkeypatch):
    monkeypatch.setitem(globals(), "locals", lambda: {"x": 5.0})
    assert withgradient(lambda x: locals()["x"] * x, 2.0) == (10.0, (5.0,))
