"""The one door for rules: all that a rule may import from the core."""

from morula.core import primitives
from morula.core.context import adjoint_if_any, adjoint_of, isolated
from morula.core.cotangents import (
    NONE,
    ZERO,
    AbstractZero,
    NoTangent,
    Tangent,
    Thunk,
    ZeroTangent,
    accumulate,
    add,
    multiply,
    project_to,
    projector,
    scale,
    unthunk,
)
from morula.core.errors import CotangentError, UnsupportedError, no_rule
from morula.core.general import call, opaque, python_function, resolves
from morula.core.registry import (
    find_rrule,
    frule,
    non_differentiable,
    rrule,
    scalar_rule,
    type_stable,
)
from morula.core.infer import result_on_samples, transfers
from morula.core.simplify import folds
from morula.core.traits import (
    adjoint_object,
    describe,
    detail_of,
    fresh_results,
    materialise,
    no_tangent,
    sample_of,
    unit,
    zero_of,
)

__all__ = [
    "NONE",
    "ZERO",
    "AbstractZero",
    "CotangentError",
    "NoTangent",
    "Tangent",
    "Thunk",
    "UnsupportedError",
    "ZeroTangent",
    "accumulate",
    "add",
    "adjoint_if_any",
    "adjoint_object",
    "adjoint_of",
    "call",
    "describe",
    "detail_of",
    "find_rrule",
    "folds",
    "fresh_results",
    "frule",
    "isolated",
    "materialise",
    "multiply",
    "no_rule",
    "no_tangent",
    "non_differentiable",
    "opaque",
    "primitives",
    "project_to",
    "projector",
    "python_function",
    "resolves",
    "result_on_samples",
    "rrule",
    "sample_of",
    "scalar_rule",
    "scale",
    "transfers",
    "type_stable",
    "unit",
    "unthunk",
    "zero_of",
]
