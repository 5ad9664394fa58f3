"""Random NumPy programs: both paths against each other and against finite differences."""

import random

import pytest
from hypothesis import HealthCheck, given, settings

from tests.array_programs import FreshWriter, InPlaceWriter, array_programs, check, raises


@settings(
    max_examples=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(array_programs())
def test_gradients_of_random_array_programs(program):
    check(program)


@pytest.mark.parametrize("number", range(150))
def test_gradients_of_random_programs_that_write_to_arrays(number):
    program = InPlaceWriter(random.Random(f"in place {number}")).program()
    if not raises(program):
        check(program)


@pytest.mark.parametrize("number", range(30))
def test_gradients_of_random_programs_that_write_to_what_they_have_made(number):
    program = FreshWriter(random.Random(f"fresh {number}")).program()
    if not raises(program):
        check(program)
