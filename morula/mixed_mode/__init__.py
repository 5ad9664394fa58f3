"""Forward mode, and what combines the modes: Jacobians, Hessians, Taylor series."""

from morula.core.shipped import waits
from morula.mixed_mode import (
    asynchronous,
    attributes,
    calls,
    context_variables,
    generators,
    implicit,
    iteration,
    memoryviews,
    meta,
    references,
    sequences,
    steering,
    structures,
    twins,
    unfollowed,
    writing,
)
from morula.mixed_mode.jacobians import diaghessian, forwarddiff, hessian, hvp, jacobian
from morula.mixed_mode.preferred import prefer_forward
from morula.mixed_mode.pushforward import jvp, pushforward
from morula.mixed_mode.taylor import taylor

waits("threading", "morula.mixed_mode.threads")

__all__ = [
    "asynchronous",
    "attributes",
    "calls",
    "context_variables",
    "diaghessian",
    "forwarddiff",
    "generators",
    "hessian",
    "hvp",
    "implicit",
    "iteration",
    "jacobian",
    "jvp",
    "memoryviews",
    "meta",
    "prefer_forward",
    "pushforward",
    "references",
    "sequences",
    "steering",
    "structures",
    "taylor",
    "twins",
    "unfollowed",
    "writing",
]
