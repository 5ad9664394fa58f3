"""Forward mode through what steers the gradient, and over reverse mode through it."""

import numpy as np
import pytest

from morula import (
    checkpoint,
    checkpointed,
    fixed_point,
    gradient,
    hook,
    jvp,
    nestlevel,
    numeric_rule,
    ravel,
)


def D(f):
    return lambda x: gradient(f, x)[0]


def looped(x):
    for _ in checkpointed(range(3)):
        x = x * x
    return x


def square_root(a):
    return fixed_point(lambda x, a: (x + a / x) / 2, 1.0, a)


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (looped, 1.1, 8 * 1.1**7),
        (square_root, 2.0, 0.5 * 2**-0.5),
        (lambda x: checkpoint(lambda y: y**3, x), 2.0, 12.0),
        (lambda x: ravel([x, 2.0])[1](ravel([x * x, 3.0])[0])[0], 2.0, 4.0),
        (numeric_rule(lambda x: x**3), 2.0, 12.0),
        (lambda x: hook(lambda x̄: 5 * x̄, x) ** 2, 3.0, 6.0),  # hooks are of the reverse pass
        (lambda x: x * nestlevel(), 3.0, 1.0),
    ],
)
def test_forward(f, x, slope):
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize(
    ("f", "x", "second"),
    [
        (lambda x: x**3, 2.0, 12.0),
        (lambda x: checkpoint(lambda y: y**3, x), 2.0, 12.0),
        (lambda x: hook(lambda x̄: 5 * x̄, x) ** 2, 3.0, 10.0),
        (lambda x: x * x * nestlevel(), 3.0, 4.0),
        (lambda x: (np.array([x]).astype(float).reshape(-1) ** 3).sum(), 2.0, 12.0),
    ],
)
def test_forward_over_reverse(f, x, second):
    assert jvp(D(f), (x,), (1.0,))[1] == pytest.approx(second, rel=1e-8)
