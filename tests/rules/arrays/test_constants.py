"""What is constant, in the table of COVERAGE and beyond."""

import numpy as np
import pytest

from morula.core.registry import find_rrule, is_constant
from morula.rules.arrays.constants import CONSTANT, METHODS


@pytest.mark.parametrize("name", CONSTANT.split())
def test_constants(name):
    assert not hasattr(np, name) or is_constant(getattr(np, name))
    assert find_rrule(getattr(np, name, None), (np.ones(3),)) is None


@pytest.mark.parametrize("name", METHODS.split())
def test_constant_methods(name):
    assert not hasattr(np.ndarray, name) or is_constant(getattr(np.ndarray, name))
