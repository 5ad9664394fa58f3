"""Random NumPy programs: both paths against each other and against finite differences."""

from hypothesis import HealthCheck, given, settings

from tests.array_programs import array_programs, check


@settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(array_programs())
def test_gradients_of_random_array_programs(program):
    check(program)
