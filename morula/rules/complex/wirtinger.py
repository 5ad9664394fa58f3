"""The two Wirtinger derivatives of a function of complex numbers.

With df = ∂f/∂z dz + ∂f/∂z* dz* the pullback of ȳ is z̄ = ȳ (∂f/∂z)* + ȳ* ∂f/∂z*, so that ȳ = 1 and
ȳ = i give both.
Tests: tests/rules/test_wirtinger.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import interface


def wirtinger(f: Callable[..., Any], z: Any) -> tuple[Any, Any]:
    """∂f/∂z and ∂f/∂z* of a function of one complex number or array.

    f is holomorphic where the second one is zero; of a real f the second is the conjugate of the
    first, and half of what `gradient` returns.

    Args:
        f: function of one argument whose result is one real or complex number.
        z: a number, or an array, which is taken to be complex.
    Returns:
        two derivatives of the shape of z.
    Raises:
        TypeError: f(z) is not one number.
    Reference: Kreutz-Delgado, The complex gradient operator and the CR-calculus, arXiv:0906.4835.
    >>> wirtinger(lambda z: z**2 * z.conjugate(), 1 + 2j)
    ((10-0j), (-3+4j))
    """
    y, back = interface.pullback(f, z if np.iscomplexobj(z) else z + 0j)
    if np.size(y) != 1:
        raise TypeError(
            f"wirtinger needs one number as the output of f, which returned an array of shape "
            f"{np.shape(y)}: take an entry or a sum of it"
        )
    one = np.ones(np.shape(y)) if isinstance(y, np.ndarray) else 1.0
    (along,) = back(one)
    if not np.iscomplexobj(y):
        return along.conjugate() / 2, along / 2
    (across,) = back(1j * one)
    return (along - 1j * across).conjugate() / 2, (along + 1j * across) / 2
