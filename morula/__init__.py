"""Reverse-mode automatic differentiation of ordinary Python.

>>> import math, morula
>>> morula.gradient(lambda x, y: x * math.sin(y), 2.0, 0.0)
(0.0, 2.0)
"""

from morula import rules as _rules  # registers them
from morula.core.cotangents import NoTangent, Tangent, Thunk, ZeroTangent, project_to
from morula.core.errors import (
    AmbiguousRuleError,
    ArgumentError,
    ConvergenceError,
    CotangentError,
    DifferentiationError,
    NoRuleError,
    OutputError,
    RuleError,
    UnsupportedError,
)
from morula.core.inspection import code_adjoint, code_ir
from morula.core.interface import J, grad, gradient, pullback, value_and_grad, withgradient
from morula.core.registry import frule, non_differentiable, rrule, scalar_rule
from morula.mixed_mode import jvp, pushforward
from morula.rules.checkpoints import checkpoint
from morula.rules.implicit import fixed_point, implicit_rule
from morula.rules.steering import hook, ignore_derivatives, isderiving, nestlevel, showgrad
from morula.rules.vectors import ravel

del _rules

__all__ = [
    "AmbiguousRuleError",
    "ArgumentError",
    "ConvergenceError",
    "CotangentError",
    "DifferentiationError",
    "J",
    "NoRuleError",
    "NoTangent",
    "OutputError",
    "RuleError",
    "Tangent",
    "Thunk",
    "UnsupportedError",
    "ZeroTangent",
    "checkpoint",
    "code_adjoint",
    "code_ir",
    "fixed_point",
    "frule",
    "grad",
    "gradient",
    "hook",
    "ignore_derivatives",
    "implicit_rule",
    "isderiving",
    "jvp",
    "nestlevel",
    "non_differentiable",
    "project_to",
    "pullback",
    "pushforward",
    "ravel",
    "rrule",
    "scalar_rule",
    "showgrad",
    "value_and_grad",
    "withgradient",
]
