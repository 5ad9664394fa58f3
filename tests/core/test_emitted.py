"""What is emitted for programs of known types: nothing that the types make superfluous."""

import math

import numpy as np

from morula import code_adjoint, grad


def test_constants_of_modules_in_rules_are_folded():
    program = str(code_adjoint(lambda x: math.sqrt(x) * x, 2.0))
    assert "inf'" not in program
    assert "isinstance" not in program
    assert "conjugate" not in program


def test_cotangents_that_are_put_off_are_computed_where_they_are_needed(path):
    """A power of numbers of two precisions goes by a rule that is not inlined."""
    x = np.array([1.5, -0.5, 1.75], dtype="f4")

    def program(x):
        total = x[x > 0].sum()
        return np.sin(total) + (1.5**total) ** 2

    t = np.float64(3.25)
    slope = np.cos(t) + 2 * 1.5 ** (2 * t) * np.log(1.5)
    assert np.allclose(grad(program)(x), [slope, 0, slope], rtol=1e-5)
