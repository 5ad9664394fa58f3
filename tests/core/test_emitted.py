"""What is emitted for programs of known types: nothing that the types make superfluous."""

import math

from morula import code_adjoint


def test_constants_of_modules_in_rules_are_folded():
    program = str(code_adjoint(lambda x: math.sqrt(x) * x, 2.0))
    assert "inf'" not in program
    assert "isinstance" not in program
    assert "conjugate" not in program
