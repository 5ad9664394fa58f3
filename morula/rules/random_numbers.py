"""Rules of random numbers: draws, and states, that depend on no number with a derivative.

normal(μ, σ) and uniform(a, b) are affine functions of a draw z that does not depend on them, which
is what their derivatives are for.
Tests: tests/rules/test_random_numbers.py
"""

import random
from typing import Any

import numpy as np

from morula.core.extend import NoTangent, non_differentiable, rrule
from morula.rules.arrays.broadcasting import unbroadcast
from morula.rules.numbers import Anything

CONSTANT = (
    "random", "integers", "bytes", "standard_normal", "standard_exponential", "standard_cauchy", "rand",
    "randn", "randint", "random_sample", "tomaxint", "randrange", "getrandbits", "randbytes", "seed",
    "getstate", "setstate", "get_state", "set_state", "spawn", "default_rng",
)  # fmt: skip

for _source in (np.random, np.random.Generator, np.random.RandomState, random, random.Random):
    for _name in CONSTANT:
        if hasattr(_source, _name):
            non_differentiable(getattr(_source, _name))


def affine(primal: Any, scale_of: Any, bars_of: Any) -> None:
    """Register the rule of a draw y = a + scale_of(a, b) · z; `bars_of(ȳ, z)` gives (ā, b̄)."""

    @rrule(primal)
    def _(source: Anything, a: Anything = 0.0, b: Anything = 1.0, size: Anything = None):
        y = primal(source, a, b, size)
        z = standard(y - a, scale_of(a, b))
        shapes = np.shape(a), np.shape(b)

        def draw_pullback(ȳ):
            ā, b̄ = bars_of(ȳ, z)
            return NoTangent(), unbroadcast(ā, shapes[0]), unbroadcast(b̄, shapes[1]), NoTangent()

        return y, draw_pullback


def standard(difference: Any, scale: Any) -> Any:
    """The draw behind a draw; where the scale is 0, one in the middle."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.true_divide(difference, scale)
    return np.where(np.equal(scale, 0), 0.0, z)[()]


for _source in (np.random.Generator, np.random.RandomState):
    affine(_source.normal, lambda μ, σ: σ, lambda ȳ, z: (ȳ, ȳ * z))
    affine(_source.uniform, lambda a, b: b - a, lambda ȳ, z: (ȳ * (1 - z), ȳ * z))

del _source, _name
