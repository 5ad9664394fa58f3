"""One function of one number in every mode: both paths, forward mode, second derivatives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


def check_modes(f: Callable[[float], float], x: float) -> None:
    """Compare all of them with the plain call, with differences, and with each other."""
    check_gradient(f, x)
    value, slope = morula.value_and_grad(f)(x)
    assert value == f(x)
    with by_the_general_path():
        assert morula.value_and_grad(f)(x) == (value, pytest.approx(slope, rel=1e-12))
    assert morula.jvp(f, (x,), (1.0,)) == (value, pytest.approx(slope, rel=1e-12))
    h = 1e-6
    second = (morula.grad(f)(x + h) - morula.grad(f)(x - h)) / (2 * h)
    assert morula.hessian(f, x) == pytest.approx(second, rel=1e-5, abs=1e-6)
