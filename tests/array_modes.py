"""One function of arrays with a number as its value, in every mode and to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


def check_all_modes(f: Callable[..., Any], *xs: np.ndarray) -> None:
    """Compare all of them with the plain call, with differences, and with each other."""
    check_gradient(f, *xs)
    value = f(*xs)
    slopes = morula.gradient(f, *xs)
    assert morula.withgradient(f, *xs)[0] == value
    with by_the_general_path():
        again, others = morula.withgradient(f, *xs)
    assert again == value
    for slope, other in zip(slopes, others, strict=True):
        np.testing.assert_allclose(other, slope, rtol=1e-11, atol=1e-12)
    along = [direction(x, k) for k, x in enumerate(xs)]
    total = sum([np.vdot(g, t).real for g, t in zip(slopes, along, strict=True)])
    pushed = morula.jvp(f, xs, tuple(along))
    assert pushed[0] == value
    np.testing.assert_allclose(pushed[1], total, rtol=1e-10, atol=1e-11)
    check_second(f, xs, along)


def check_second(f: Callable[..., Any], xs: tuple[Any, ...], along: list[Any]) -> None:
    """Products with the Hessian by each real argument, and differences of gradients."""
    h = 1e-6
    for k, (x, t) in enumerate(zip(xs, along, strict=True)):
        if np.iscomplexobj(x):
            continue

        def of_one(x: Any, k: int = k) -> Any:
            return f(*xs[:k], x, *xs[k + 1 :])

        up, down = [morula.gradient(of_one, x + step * t)[0] for step in (h, -h)]
        np.testing.assert_allclose(
            morula.hvp(of_one, x, t), (up - down) / (2 * h), rtol=1e-4, atol=2e-6
        )


def direction(x: np.ndarray, k: int) -> np.ndarray:
    """A direction in the space of x."""
    t = np.cos(1.0 + k + np.arange(np.size(x))).reshape(np.shape(x))
    return t - 0.5j * t[::-1] if np.iscomplexobj(x) else t
