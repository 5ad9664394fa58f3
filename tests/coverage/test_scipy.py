"""Every call of the tables of SciPy, in both modes against finite differences."""

import warnings

import pytest

from tests import coverage
from tests.coverage.sweep import Case

LINES = [
    pytest.param(calls, id=f"{section}-{name}")
    for path in sorted((coverage.HERE / "scipy").glob("*.txt"))
    for section, name, calls in coverage.read(path)
]


@pytest.mark.parametrize("calls", LINES)
def test_the_derivatives_of_each_call_are_right(calls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            Case(*coverage.function(call)).first()
