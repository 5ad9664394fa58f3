"""Every call of the tables, against finite differences and compiled."""

import warnings

import pytest

from morula.core.errors import DifferentiationError
from tests import coverage

LINES = [
    pytest.param(calls, id=f"{path.stem}-{section}-{name}".replace(" ", "_"))
    for path in sorted(coverage.HERE.glob("*.txt"))
    for section, name, calls in coverage.read(path.name)
]


@pytest.mark.parametrize("calls", LINES)
def test_the_gradient_of_each_call_is_right(calls):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            if call.startswith("~"):
                not_served_or_right(call[1:])
            else:
                coverage.check_general(call)
                coverage.check_compiled(call)
                if not any(name in call for name in OF_DOUBLES):
                    coverage.check_single(call)


# What a remainder counts as zero, and how far bytes are apart, are other questions there.
OF_DOUBLES = ("polydiv", "as_strided")


def not_served_or_right(call):
    """What is not served yet is refused; nothing is silently wrong."""
    try:
        coverage.check_general(call)
        coverage.check_compiled(call)
    except (DifferentiationError, NotImplementedError):
        pass
