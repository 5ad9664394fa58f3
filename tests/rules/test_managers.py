"""Compiled programs of functions that handle exceptions, for calls that raise none; np.errstate."""

import contextlib
import math
import traceback
import warnings

import numpy as np
import pytest

import morula
from morula import code_adjoint, gradient
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


def is_compiled(grad):
    programs = grad.__morula__.programs.values()
    return bool(programs) and all(p.code is not None for p in programs)


def logarithm(a):
    try:
        y = math.log(a)
    except ValueError:
        y = a * a
    return y * a


def asked_only(a):
    try:
        math.sqrt(a)
    except ValueError:
        return a * a
    return a * 3.0


def quotient(a):
    try:
        return 1.0 / a
    except ZeroDivisionError:
        return 2.0 * a + 1.0
    finally:
        a = 3.0


def power(a):
    try:
        y = a**400
    except OverflowError:
        y = a * 1e3
    return y * 1.0


def not_needed(a):
    try:
        y = math.exp(a)
    except OverflowError:
        y = 0.0 * a
        a = a * a
    del y
    return a * 2.0


def in_a_callee(a):
    def safe(x):
        try:
            return math.log(x)
        except ValueError:
            return -x

    return safe(a) * safe(a - 1.0)


def in_a_loop(a):
    s = 0.0
    for i in range(4):
        try:
            s += math.sqrt(a - i)
        except ValueError:
            s += a
    return s


def raised_here(a):
    try:
        if a < 0:
            raise ValueError("negative")
        y = a * a
    except ValueError as error:
        y = -a * len(str(error))
    else:
        y = y * 2.0
    return y


def item(x):
    try:
        v = x[5]
    except IndexError:
        v = x[0] * 2
    return v * x[1]


def solved(x):
    try:
        y = np.linalg.solve(x, np.ones(len(x)))
    except np.linalg.LinAlgError:
        y = x.sum(axis=0)
    return y.sum()


PROGRAMS = [
    (logarithm, 2.0, -1.0),
    (asked_only, 2.0, -1.0),
    (quotient, 2.0, 0.0),
    (power, 1.01, 20.0),
    (not_needed, 1.0, 1e4),
    (in_a_callee, 3.0, 0.5),
    (in_a_loop, 5.0, 1.5),
    (raised_here, 2.0, -2.0),
    (item, np.arange(6.0) + 1, np.arange(3.0) + 1),
    (solved, 2.0 * np.eye(3), np.zeros((3, 3))),
]


@pytest.mark.parametrize(("f", "without", "raising"), PROGRAMS)
def test_a_program_for_no_exception_and_the_general_path_for_one(f, without, raising):
    grad = morula.value_and_grad(f)
    for x in (without, raising, without):
        value, found = grad(x)
        with by_the_general_path():
            expected = morula.value_and_grad(f)(x)
        assert value == expected[0]
        np.testing.assert_allclose(found, expected[1], rtol=1e-13)
        np.testing.assert_allclose(morula.grad(f)(x), expected[1], rtol=1e-13)
    grad(without)
    assert is_compiled(grad)
    check_gradient(f, without)


class Stop(BaseException):
    pass


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Stop])
@pytest.mark.parametrize("made", [lambda kind: kind, lambda kind: kind(1)], ids=["class", "object"])
def test_exceptions_that_end_a_program_are_handled_as_well(kind, made):
    def f(a):
        try:
            if a > 0:
                raise made(kind)
        except kind:
            return 2 * a
        return a

    def directly(a):
        try:
            if a > 0:
                raise KeyboardInterrupt
        except BaseException:
            return 2 * a
        return a

    assert gradient(f, 1.0) == gradient(directly, 1.0) == (2.0,)
    assert gradient(f, -1.0) == gradient(directly, -1.0) == (1.0,)


def test_effects_happen_once_where_exceptions_are_handled():
    log = []

    def f(a):
        log.append(a)
        try:
            y = math.log(a)
        except ValueError:
            y = -a
        return y * a

    grad = morula.grad(f)
    for a in (2.0, -2.0, 2.0):
        grad(a)
    assert log == [2.0, -2.0, 2.0]


def test_an_exception_that_nobody_handles_has_the_lines_of_the_function():
    def f(a):
        try:
            y = math.log(a)
        except KeyError:
            y = 0.0
        return y

    with pytest.raises(ValueError, match=r"math domain error|positive input") as raised:
        morula.grad(f)(-1.0)
    lines = [frame.line for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert "y = math.log(a)" in lines


def test_other_types_and_globals_are_asked_for_in_such_a_program(monkeypatch):
    grad = morula.grad(logarithm)
    assert grad(2.0) == math.log(2.0) + 1.0
    assert grad(np.float64(2.0)) == math.log(2.0) + 1.0
    monkeypatch.setattr(math, "log", math.sqrt)
    assert grad(4.0) == pytest.approx(3.0)


def ignoring(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(x > 0, np.log(x), 0.0)
    return (y * y).sum()


def raising(x):
    try:
        with np.errstate(all="raise"):
            y = np.log(x)
    except FloatingPointError:
        y = x * 2
    return y.sum()


def one_in_another(x):
    with np.errstate(all="ignore"), np.errstate(divide="raise"):
        y = 1.0 / x
    return y.sum()


def nothing(x):
    with contextlib.nullcontext():
        y = x * x
    return y.sum()


@pytest.mark.parametrize("f", [ignoring, raising, one_in_another, nothing])
def test_error_states_are_entered_and_left(f):
    before = np.geterr()
    grad = morula.grad(f)
    for x in (np.array([1.0, 2.0]), np.array([0.5, 3.0])):
        found = grad(x)
        with by_the_general_path():
            np.testing.assert_array_equal(found, morula.grad(f)(x))
        assert np.geterr() == before
    grad(x)
    assert is_compiled(grad)


def test_what_is_computed_in_a_with_statement_is_computed_there():
    grad = morula.grad(ignoring)
    grad(np.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grad(np.array([1.0, -2.0])).tolist() == [0.0, 0.0]


def test_error_states_are_left_by_an_exception():
    before = np.geterr()
    grad = morula.grad(one_in_another)
    grad(np.ones(2))
    with pytest.raises(FloatingPointError):
        grad(np.zeros(2))
    assert np.geterr() == before
    assert morula.grad(raising)(np.zeros(2)).tolist() == [2.0, 2.0]
    assert np.geterr() == before


def test_the_program_that_is_shown_is_the_one_that_runs():
    shown = str(morula.code_adjoint(logarithm, 2.0))
    assert "specialised" in shown
    assert "math.log" in shown


def summed(x):
    with np.errstate(all="ignore"):
        return np.log(x).sum() * x.max()


def joined(x):
    try:
        values = []
        values.append(x.prod())
        return values.pop() * x[0]
    except ValueError:
        return 0.0


@pytest.mark.parametrize("f", [summed, joined])
def test_methods_of_known_types_leave_the_program_compiled(f):
    x = np.array([0.5, 2.0, 1.5])
    assert str(code_adjoint(f, x)).startswith(
        "# specialised to the types of the arguments; 0 calls"
    )
    check_gradient(f, x)
