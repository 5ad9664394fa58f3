"""What the core is told of JAX's arrays: spaces, units, gradients; the way between them and NumPy's.

The tangent space of a floating or complex array has its shape and dtype, `bfloat16` too. Integers,
truth values and random keys have none. A cotangent comes in any kind of number or array, and is
brought to that of the primal. While JAX traces a program, all of this is traced as well.
Tests: tests/interop/test_jax_arrays.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from morula.core.extend import (
    ABSTRACT,
    NONE,
    AbstractZero,
    CotangentError,
    materialise,
    non_differentiable,
    projector,
    rrule,
    space_problem,
    unit,
    unthunk,
)
from morula.interop.jax.kinds import is_array, is_inexact, is_tracer
from morula.interop.meanings import go_by_value
from morula.rules.numbers import Anything

TYPES = (jax.Array, jax.core.Tracer)


# -- between JAX and NumPy -------------------------------------------------------------------------


def host(x: Any) -> Any:
    """A JAX array as one of NumPy's; a tracer is left as it is."""
    return x if is_tracer(x) else np.asarray(x)


def device(x: Any, dtype: Any, shape: Any) -> Any:
    """A number or an array of any kind as a JAX array of this dtype and shape."""
    if not is_inexact(dtype) or not jnp.issubdtype(dtype, jnp.complexfloating):
        x = x.real if jnp.iscomplexobj(x) else x
    x = jnp.asarray(x, dtype)
    if x.shape != shape:
        if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
            raise CotangentError(f"the cotangent of an array of shape {shape} has shape {x.shape}")
        x = x.reshape(shape)
    return x


def vector_of(xs: list[Any]) -> Any:
    """Numbers and arrays of any kind as one vector, of the dtype that JAX gives their sum."""
    return jnp.concatenate([jnp.ravel(x) for x in real_line(xs)])


def from_vector(part: Any, dtype: Any, shape: Any) -> Any:
    """A part of a vector as an array of this dtype and shape."""
    return device(part.reshape(shape), dtype, shape)


def real_line(xs: list[Any]) -> list[Any]:
    """Numbers and arrays, integers as points of the real line."""
    return [x if is_inexact(jnp.result_type(x)) else jnp.asarray(x, float) for x in xs]


@rrule(host)
def _(x: Anything):
    of, shape = x.dtype, x.shape

    def host_pullback(ȳ):
        return (device(ȳ, of, shape),) if is_inexact(of) else (NONE,)

    return host(x), host_pullback


@rrule(device)
def _(x: Anything, dtype: Anything, shape: Anything):
    on_host = not is_array(x)

    def device_pullback(ȳ):
        return host(ȳ) if on_host else ȳ, NONE, NONE

    return device(x, dtype, shape), device_pullback


def like(x: Any) -> Callable[[Any], Any]:
    """What brings a cotangent to the dtype and shape of a JAX array."""
    dtype, shape = x.dtype, x.shape

    def project_jax(x̄: Any) -> Any:
        if is_array(x̄) and x̄.dtype == dtype and x̄.shape == shape:
            return x̄
        return device(x̄, dtype, shape)

    return project_jax


def nowhere(x̄: Any) -> Any:
    """There is no tangent space."""
    return NONE


# -- traits ----------------------------------------------------------------------------------------


def _projector(x: Any) -> Any:
    return like(x) if is_inexact(x.dtype) else nowhere


def _unit(y: Any) -> Any:
    if y.size != 1 or not jnp.issubdtype(y.dtype, jnp.floating):
        return None
    return jnp.ones(y.shape, y.dtype)


def _materialise(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    if not is_inexact(x.dtype):
        return None
    x̄ = unthunk(x̄)
    zero = isinstance(x̄, AbstractZero)
    found = jnp.zeros(x.shape, x.dtype) if zero else like(x)(x̄)
    return jax.device_put(found, x.sharding) if lies_elsewhere(found, x) else found


def lies_elsewhere(x̄: Any, x: Any) -> bool:
    """Does a gradient lie on other devices than its array, or in other parts?"""
    if is_tracer(x) or is_tracer(x̄) or not x.committed:
        return False
    return not x̄.sharding.is_equivalent_to(x.sharding, x.ndim)


def _space_problem(x: Any, x̄: Any) -> tuple[str, str] | None:
    shape = np.shape(x̄)
    if shape != x.shape:
        return f"an array of shape {x.shape}", f"of type {type(x̄).__name__} and shape {shape}"
    return None


for _type in TYPES:
    projector.register(_type, _projector)
    unit.register(_type, _unit)
    materialise.register(_type, _materialise)
    space_problem.register(_type, _space_problem)
    go_by_value(_type)
del _type
ABSTRACT.append(jax.core.Tracer)

non_differentiable(is_array, is_tracer, is_inexact, lies_elsewhere)
