"""Random programs: both paths against each other, dual numbers and finite differences."""

import itertools
import math
import random

import pytest
from hypothesis import HealthCheck, given, settings

from tests.dual_numbers import DUAL_MATH, Dual
from tests.flow_writer import FlowWriter
from tests.program_writer import Program
from tests.random_programs import check, difference, forward_gradient, programs
from tests.small_loops import check_loop, small_loops
from tests.structure_writer import StructureWriter

few = settings(
    max_examples=50,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@few
@given(programs())
def test_gradients_of_random_programs(program):
    check(program)


@pytest.mark.parametrize("number", range(20))
def test_gradients_of_random_programs_with_structures(number):
    check(StructureWriter(random.Random(f"structures {number}")).program())


@pytest.mark.parametrize("number", range(20))
def test_gradients_of_random_programs_with_exceptions_generators_and_classes(number):
    check(FlowWriter(random.Random(f"flow {number}")).program())


@pytest.mark.parametrize("source", list(small_loops(1)))
def test_gradients_of_all_loops_of_one_statement(source):
    check_loop(source)


@pytest.mark.parametrize("first", range(16))
def test_gradients_of_a_part_of_all_loops_of_two_statements(first):
    for source in itertools.islice(small_loops(2), 3 * first, None, 61):
        check_loop(source)


# -- the checks themselves -------------------------------------------------------------------------


def test_dual_numbers_are_right():
    def f(x, y):
        return (x**2 / y - math.sin(x)) % 0.7 + abs(-x) // 1 + 2**x

    def g(x, y):
        return (x**2 / y - DUAL_MATH.sin(x)) % 0.7 + abs(-x) // 1 + 2**x

    args = (1.3, 0.9)
    y = g(Dual(args[0], (1.0, 0.0)), Dual(args[1], (0.0, 1.0)))
    assert y.x == f(*args)
    for i in range(2):
        slope, bound = difference(f, args, i)
        assert y.dx[i] == pytest.approx(slope, abs=bound)


def test_differences_say_nothing_at_a_kink():
    assert difference(abs, (0.0,), 0) is None
    assert difference(lambda x: 1.0 if x > 0 else 0.0, (0.0,), 0) is None
    assert difference(lambda x: max(x, 3 * x), (0.0,), 0) is None
    assert difference(lambda x: x * abs(x), (1.0,), 0)[0] == pytest.approx(2.0)


def test_dual_numbers_count_what_a_small_change_may_turn():
    def edges(f, *args):
        Dual.edges = 0
        f(*[Dual(x, (1.0 * (i == 0), 1.0 * (i == 1))) for i, x in enumerate(args)])
        return Dual.edges

    assert edges(lambda x, y: x and y, 0.0, 1.0) == 1
    assert edges(lambda x, y: 0.0 * x == y, 1.0, 0.0) == 1
    assert edges(lambda x, y: (x and y, x < y, x == x, x != 2.0), 0.5, 1.0) == 0


def test_a_program_is_its_source():
    program = Program("def f(x, y):\n    LOG.append(x)\n    return x * math.sin(y)", (2.0, 0.5))
    f, log = program.load()
    assert f(*program.args) == 2.0 * math.sin(0.5)
    assert log == [2.0]
    value, gradient = forward_gradient(program)
    assert value == f(*program.args)
    assert gradient == (math.sin(0.5), 2.0 * math.cos(0.5))
    assert "def f(x, y):" in repr(program)


def test_a_wrong_gradient_is_found(monkeypatch):
    import morula

    program = Program("def f(x):\n    return x * x", (2.0,))
    check(program)
    right = morula.withgradient
    monkeypatch.setattr(morula, "withgradient", lambda f, *args: (right(f, *args)[0], (4.001,)))
    with pytest.raises(AssertionError, match="def f"):
        check(program)
