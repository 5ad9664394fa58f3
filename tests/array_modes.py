"""One function of arrays in every mode: both paths, forward mode, second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient

thorough = False  # set by conftest.py


def often(names: Iterable[str], *those: str) -> list[Any]:
    """Parameters of a test, of which all but those are run with `--thorough` only."""
    return [n if n in those else pytest.param(n, marks=pytest.mark.thorough) for n in names]


def weigh(y: Any) -> Any:
    """A real number that depends on every entry of the results, also twice."""
    if isinstance(y, tuple | list):
        return sum([weigh(y[i]) for i in range(len(y))])
    y = np.asarray(y)
    weights = np.cos(np.arange(np.size(y)) + 1.0).reshape(np.shape(y))
    return np.sum(weights * y + 0.1 * np.sin(weights) * y * y)


def check_array_modes(f: Callable[..., Any], *xs: Any, second: bool | None = None) -> None:
    """Compare all of them with the plain call, with differences, and with each other.

    Second derivatives may take seconds: those of most are taken with `--thorough` only.
    """

    def of_all(xs: Any) -> Any:
        return f(*xs)

    rng = np.random.default_rng(5)
    along = tuple([direction(x, rng) for x in xs])
    check_gradient(f, *xs)
    value, slopes = morula.value_and_grad(of_all)(xs)
    assert value == f(*xs)
    with by_the_general_path():
        general_value, general_slopes = morula.value_and_grad(of_all)(xs)
    assert general_value == value
    for slope, other in zip(slopes, general_slopes, strict=True):
        np.testing.assert_allclose(other, slope, rtol=1e-10, atol=1e-12)
    pushed_value, pushed = morula.jvp(of_all, (xs,), (along,))
    assert pushed_value == value
    expected = sum([np.vdot(g, v).real for g, v in zip(slopes, along, strict=True)])
    np.testing.assert_allclose(pushed, expected, rtol=1e-9, atol=1e-11)
    second = thorough if second is None else second
    if second and not any(map(np.iscomplexobj, xs)):
        with by_the_general_path():  # programs of second derivatives take seconds to make
            check_second(of_all, xs, along)


def direction(x: Any, rng: np.random.Generator) -> Any:
    """One in the space of x."""
    v = rng.standard_normal(np.shape(x))
    return v + 1j * rng.standard_normal(np.shape(x)) if np.iscomplexobj(x) else v


def check_second(f: Callable[..., Any], xs: Any, along: Any, h: float = 1e-5) -> None:
    """Compare the product of the Hessian and a direction with differences of gradients."""
    above, below = [
        morula.grad(f)(tuple([x + s * h * v for x, v in zip(xs, along, strict=True)]))
        for s in (1, -1)
    ]
    for found, a, b in zip(morula.hvp(f, xs, along), above, below, strict=True):
        expected = (a - b) / (2 * h)
        scale = 1.0 + np.max(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * scale)
