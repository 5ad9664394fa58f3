"""Reverse-mode automatic differentiation of ordinary Python.

>>> import math, morula
>>> morula.gradient(lambda x, y: x * math.sin(y), 2.0, 0.0)
(0.0, 2.0)
"""

from morula import interop as _interop  # says which rules wait for which library
from morula import rules as _rules  # registers them
from morula.core.cotangents import NoTangent, Tangent, Thunk, ZeroTangent, project_to
from morula.core.errors import (
    AmbiguousRuleError,
    ArgumentError,
    ConvergenceError,
    CotangentError,
    DifferentiationError,
    NonFiniteError,
    NoRuleError,
    OutputError,
    RuleError,
    UnsupportedError,
)
from morula.core.inspection import code_adjoint, code_ir
from morula.core.interface import J, grad, gradient, pullback, value_and_grad, withgradient
from morula.core.registry import frule, non_differentiable, rrule, scalar_rule
from morula.mixed_mode import (
    diaghessian,
    forwarddiff,
    hessian,
    hvp,
    jacobian,
    jvp,
    prefer_forward,
    pushforward,
    taylor,
)
from morula.rules.checkpoints import checkpoint
from morula.rules.complex import wirtinger
from morula.rules.diagnosis import debug_nans, why
from morula.rules.implicit import fixed_point, implicit_rule
from morula.rules.loops import checkpointed
from morula.rules.numeric import numeric_rule
from morula.rules.steering import hook, ignore_derivatives, isderiving, nestlevel, showgrad
from morula.rules.trees import tree_leaves, tree_map
from morula.rules.vectors import ravel

del _interop, _rules

__all__ = [
    "AmbiguousRuleError",
    "ArgumentError",
    "ConvergenceError",
    "CotangentError",
    "DifferentiationError",
    "J",
    "NoRuleError",
    "NoTangent",
    "NonFiniteError",
    "OutputError",
    "RuleError",
    "Tangent",
    "Thunk",
    "UnsupportedError",
    "ZeroTangent",
    "checkpoint",
    "checkpointed",
    "code_adjoint",
    "code_ir",
    "debug_nans",
    "diaghessian",
    "fixed_point",
    "forwarddiff",
    "frule",
    "grad",
    "gradient",
    "hessian",
    "hook",
    "hvp",
    "ignore_derivatives",
    "implicit_rule",
    "isderiving",
    "jacobian",
    "jvp",
    "nestlevel",
    "non_differentiable",
    "numeric_rule",
    "prefer_forward",
    "project_to",
    "pullback",
    "pushforward",
    "ravel",
    "rrule",
    "scalar_rule",
    "showgrad",
    "taylor",
    "tree_leaves",
    "tree_map",
    "value_and_grad",
    "why",
    "wirtinger",
    "withgradient",
]
