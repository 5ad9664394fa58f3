"""Adjoints as modules of their own: what they import, that they give the gradient, how they read."""

import builtins
import math
import random

import numpy as np
import pytest
import scipy.integrate

import morula
from morula import code_adjoint, gradient
from tests.program_writer import Writer
from tests.structure_writer import StructureWriter


def module_of(source, with_morula=False):
    """The names that a module with this text defines; it may not import Morula."""

    def plain_import(name, *args):
        assert with_morula or not name.startswith("morula"), name
        return builtins.__import__(name, *args)

    namespace = {"__builtins__": {**vars(builtins), "__import__": plain_import}, "__name__": "file"}
    exec(compile(source, "<file>", "exec"), namespace)
    return namespace


def same(a, b):
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and np.array_equal(a, b, equal_nan=True)


def check_source(f, *args, with_morula=False):
    source = code_adjoint(f, *args).source("g")
    g = module_of(source, with_morula)["g"]
    for _ in range(2):
        found = g(*args)
        assert same(found if len(args) > 1 else (found,), gradient(f, *args))
    return source


# -- programs with every kind of control flow ------------------------------------------------------


def sines(x):
    total = 0.0
    for i in range(3):
        total += math.sin(x) * i
    return total


def power(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def power_with_a_limit(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        if r > 100:
            break
        r *= x
    return r


def newton(a):
    x = a
    for _ in range(30):
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < 1e-12:
            return x
    return -1.0 * x


def collatz_like(x):
    steps = 0
    while x > 1.0:
        x = x / 2 if steps % 2 else 3 * x / 4
        steps += 1
        if steps > 50:
            return 0.0 * x
    else:
        x = x * steps
    return x


def pairs(a, b):
    total = 0.0
    for i in range(4):
        for j in range(i):
            if i * j % 3 == 1:
                continue
            if total > 1e6:
                break
            total += (a * i - b * j) ** 2
    return total


def nested_choice(x, y):
    if x > y:
        if x > 2 * y:
            z = x * y
        else:
            z = x - y
    elif x < 0:
        return y * y
    else:
        z = x / y
    return z * z


def swapped(x, n):
    a, b = x, 2 * x
    for _ in range(n):
        a, b = b, a * b
    return a


def of_a_list(xs):
    total = xs[0]
    for x in xs[1:]:
        total = total * 0.5 + x
    return total


def logistic(w, X, y):
    return np.mean(np.logaddexp(0, -y * (X @ w)))


def scaled(x):
    return SCALE * math.exp(-x * x)


SCALE = 2.5


def make_scaled(factor):
    def f(x):
        return factor * x**3

    return f


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (sines, (0.3,)),
        (power, (1.5, 4)),
        (power, (1.5, 0)),
        (power_with_a_limit, (2.0, 3)),
        (power_with_a_limit, (200.0, 3)),
        (power_with_a_limit, (200.0, 0)),
        (newton, (2.0,)),
        (newton, (1e300,)),
        (collatz_like, (9.0,)),
        (collatz_like, (0.5,)),
        (pairs, (1.0, 2.0)),
        (pairs, (1e3, 2.0)),
        (nested_choice, (5.0, 1.0)),
        (nested_choice, (1.5, 1.0)),
        (nested_choice, (-1.5, 1.0)),
        (nested_choice, (0.5, 1.0)),
        (scaled, (0.4,)),
        (make_scaled(3.0), (0.4,)),
    ],
)
def test_a_module_of_its_own_gives_the_gradient_without_morula(f, args):
    check_source(f, *args)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (swapped, (1.1, 5)),
        (of_a_list, ([1.0, 2.0, 3.0],)),
        (logistic, (np.ones(2), np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0]))),
        (lambda x: (x @ x) * x.sum(), (np.arange(3.0),)),
        (lambda x: np.log(np.sum(np.exp(x - x.max()))), (np.arange(3.0, dtype=np.float32),)),
        (lambda z: abs(z) ** 2, (3 + 4j,)),
        (lambda x: np.prod(x[1:] * x[:-1]), (np.arange(1.0, 4.0),)),
        (lambda x: x.sum(), (np.ones((0, 2)),)),
        (lambda x: np.array([x, np.sqrt(x)])[0] * 2, (0.0,)),
        (lambda xs: sum(x * x for x in xs), ([1.0, 2.0],)),
    ],
)
def test_what_needs_functions_of_morula_imports_them(f, args):
    check_source(f, *args, with_morula=True)


def test_a_file_reads_like_an_adjoint_by_hand():
    assert check_source(sines, 0.3) == SINES


SINES = '''\
"""The gradient of sines, made by Morula."""

from __future__ import annotations

import math


def g(x):
    v1 = range(3)
    for v3 in v1:
        pass
    x̄ = 0.0
    for v4 in reversed(v1):
        x̄ = x̄ + 1.0 * v4 * math.cos(x)
    return x̄
'''


def test_names_of_the_user_and_of_the_file_are_kept_apart():
    def f(math, np, x):
        return math * x + np * x

    check_source(f, 2.0, 3.0, 5.0)

    def g(ZERO, tape, iter):
        for _ in range(2):
            ZERO = ZERO * tape * iter
        return ZERO

    check_source(g, 2.0, 3.0, 5.0)


def test_positional_and_keyword_parameters_stay():
    def f(x, /, y, *, z):
        return x * y * z

    g = module_of(code_adjoint(f, 2.0, 3.0, z=5.0).source("g"))["g"]
    assert g(2.0, y=3.0, z=5.0) == (15.0, 10.0)


def test_values_of_global_variables_are_those_of_the_day():
    global SCALE
    g = module_of(code_adjoint(scaled, 0.4).source("g"))["g"]
    expected = g(0.4)
    SCALE = 7.5
    try:
        assert g(0.4) == expected
    finally:
        SCALE = 2.5


def test_constants_are_written_with_all_their_digits():
    weights = np.array([0.1, 1 / 3, np.inf])

    def f(x):
        return float(weights[1]) * x + (x if math.isinf(weights[2]) else 0.0)

    check_source(f, 2.0)
    limit = math.inf
    check_source(lambda x: x * 3 if x < limit else x, 2.0)


@pytest.mark.parametrize("number", range(12))
def test_random_programs_as_modules(number):
    writer = (Writer, StructureWriter)[number % 2]
    program = writer(random.Random(f"source {number}")).program()
    f, _ = program.load()
    try:
        source = code_adjoint(f, *program.args).source("g")
    except NotImplementedError:
        return
    found = module_of(source, with_morula=True)["g"](*program.args)
    expected = gradient(f, *program.args)
    assert same(found if len(program.args) > 1 else (found,), expected)


# -- what has no file ------------------------------------------------------------------------------


def test_general_adjoints_say_why_they_have_no_file():
    def f(x):
        try:
            raise ValueError(x)
        except ValueError as e:
            return e.args[0] * 2

    with pytest.raises(
        morula.UnsupportedError, match=r"cannot be written as a module: it is general"
    ):
        code_adjoint(f, 1.0).source()


def test_calls_that_are_resolved_at_run_time_are_named():
    def f(x):
        return scipy.integrate.quad(lambda t: t * x, 0, 1)[0]

    with pytest.raises(morula.UnsupportedError, match=r"line \d+: .* is found out when it"):
        code_adjoint(f, 1.0).source()


def test_long_arrays_belong_into_files_of_data():
    data = np.arange(5000.0)

    def f(x):
        return x * np.sum(data)

    with pytest.raises(morula.UnsupportedError, match="ndarray cannot be written down"):
        code_adjoint(f, 1.0).source()
