"""What is asked of a program that is compiled: of two numbers, it gives one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import morula
from morula.core.extend import by_the_general_path

POINT = (0.7, 1.3)


def nothing_is_left_to_run_time(f: Callable[..., Any]) -> None:
    code = morula.code_adjoint(f, *POINT)
    assert code.kind.startswith("specialised")
    assert not code.left


def holds_for_other_types(f: Callable[..., Any], points: Sequence[tuple[Any, Any]]) -> None:
    """Values and gradients are those of the general path, one type after the other."""
    g = morula.value_and_grad(f, (0, 1))
    for point in points:
        value, gradients = g(*point)
        with by_the_general_path():
            general, expected = morula.withgradient(f, *point)
        assert type(value) is type(general)
        assert repr(value) == repr(general)
        np.testing.assert_allclose(gradients, expected, rtol=1e-12)


def is_pulled_back_again(f: Callable[..., Any]) -> np.ndarray:
    """Each pullback twice; gives the gradient."""
    expected = np.array(morula.gradient(f, *POINT))
    for _ in range(3):
        _, back = morula.pullback(f, *POINT)
        np.testing.assert_allclose(back(1.0), expected, rtol=1e-12)
        np.testing.assert_allclose(back(2.0), 2.0 * expected, rtol=1e-12)
    return expected
