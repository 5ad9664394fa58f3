"""The rules of JAX, which are loaded when a differentiated program first meets one of its values.

`vjp_rule` lets JAX differentiate a function of the user's.
Tests: tests/interop/
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from morula.core.extend import (
    NONE,
    ZERO,
    Tangent,
    adjoint_object,
    collector,
    general,
    on_entry,
    projector,
    registry,
    stays_general,
)
from morula.interop.jax import arrays, forward, mirrors
from morula.interop.jax.claims import back_by_jax, belongs, claims
from morula.interop.jax.forms import BOUND, JITTED, PLACES
from morula.interop.jax.kinds import is_complex, is_inexact, is_leaf, is_tracer
from morula.mixed_mode.jacobians import Library, libraries
from morula.rules.vectors import Foreign, foreign

__all__ = ["arrays", "forward", "mirrors", "vjp_rule"]


def dtype_of(x: Any) -> Any:
    """The dtype of an array."""
    return x.dtype


def vjp_rule(f: Any) -> Any:
    """Let JAX differentiate a callable that it can trace: a primitive with `jax.vjp`; a decorator too.

    Morula does not look into it then. It may be given numbers and arrays of any kind, in any
    structure, and what it captures has its cotangents.

    >>> import jax.numpy as jnp, numpy as np
    >>> from morula import gradient
    >>> from morula.interop.jax import vjp_rule
    >>> @vjp_rule
    ... def energy(x):
    ...     return jnp.sum(jnp.tanh(x) ** 2)
    >>> gradient(lambda x: 2.0 * energy(x), np.zeros(2))
    (array([0., 0.]),)
    """
    back_by_jax(f)
    registry.registry.entry(f).changed()
    return f


@on_entry.register(JITTED)
def _(x, known):
    """What `jax.jit` gave is shown as the function inside."""
    return on_entry(x.__wrapped__, known)


for _type in (*PLACES, BOUND):
    projector.register(_type, lambda x: None)
    adjoint_object.register(_type, lambda x: None)
    collector.register(_type, lambda y, part: None)
del _type

foreign.append(
    Foreign(
        arrays.TYPES,
        is_leaf,
        arrays.host,
        arrays.from_vector,
        dtype_of,
        is_tracer,
        arrays.vector_of,
    )
)
libraries.append(Library(arrays.TYPES, jnp, is_inexact, is_complex))

# -- cotangents as trees ---------------------------------------------------------------------------


def _flatten(x: Tangent) -> Any:
    keys = tuple(x.keys())
    return [(jax.tree_util.GetAttrKey(str(k)), x[k]) for k in keys], (x._primal, keys)


def _unflatten(form: Any, parts: Any) -> Tangent:
    primal, keys = form
    return Tangent[primal](dict(zip(keys, parts, strict=True)))


if jax.tree_util.all_leaves([Tangent[object]()]):  # not yet: this module may be loaded twice
    jax.tree_util.register_pytree_with_keys(Tangent, _flatten, _unflatten)
    for _zero in (ZERO, NONE):
        jax.tree_util.register_static(type(_zero))

general.CLAIMS.append(claims)
stays_general.append(belongs)
registry.registry.entry(claims).changed()
