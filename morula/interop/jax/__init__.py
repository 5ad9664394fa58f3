"""JAX: its arrays and callables in differentiated code, and Morula's functions in its programs."""

from morula.interop.jax.export import to_jax
from morula.interop.jax.rules import vjp_rule

__all__ = ["to_jax", "vjp_rule"]
