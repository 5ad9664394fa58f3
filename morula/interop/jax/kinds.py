"""Which values and callables are JAX's.

JAX's are those of jax and jaxlib, and of the libraries that are built on them for its
transformations: their functions can be traced, and their objects are trees of arrays.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from morula.interop.meanings import may_be_kept

PACKAGES = {
    "jax", "jaxlib", "equinox", "flax", "optax", "haiku", "diffrax", "optimistix", "lineax", "jaxopt",
    "distrax", "chex", "blackjax", "optax_contrib", "numpyro", "quax", "jraph", "rlax", "brax",
}  # fmt: skip

_packages: dict[Any, bool] = {}
_array_types: dict[type, bool] = {}
_objects: dict[type, bool] = {}
_inexact: dict[Any, bool] = {}


def is_of_jax(module: Any) -> bool:
    """Is a module, given by its name, one of these packages?"""
    found = _packages.get(module)
    if found is None:
        found = _packages[module] = str(module).split(".")[0] in PACKAGES
    return found


def is_array_type(t: type) -> bool:
    """Are values of this type JAX's arrays, or stand for one while it traces a program?"""
    found = _array_types.get(t)
    if found is None:
        found = issubclass(t, (jax.Array, jax.core.Tracer))
        if may_be_kept(t):
            _array_types[t] = found
    return found


def is_array(x: Any) -> bool:
    """Is it one of JAX's arrays, or stands for one while it traces a program?"""
    return is_array_type(type(x))


def is_tracer(x: Any) -> bool:
    """Does it stand for an array while JAX traces a program?"""
    return isinstance(x, jax.core.Tracer)


def is_inexact(dtype: Any) -> bool:
    """Do arrays of this dtype have a tangent space, for JAX?"""
    found = _inexact.get(dtype)
    if found is None:
        found = _inexact[dtype] = bool(jnp.issubdtype(dtype, jnp.inexact))
    return found


def is_complex(dtype: Any) -> bool:
    """Are these complex numbers?"""
    return bool(jnp.issubdtype(dtype, jnp.complexfloating))


def is_leaf(x: Any) -> bool:
    """Is it a real or complex number, or an array of such, that JAX differentiates by?"""
    if isinstance(x, (float, complex)):
        return True
    if is_array(x) or isinstance(x, (np.ndarray, np.generic)):
        return is_inexact(x.dtype)
    return False


def is_integer(x: Any) -> bool:
    """Is it an integer, or an array of NumPy's of such: a point of the real line, for Morula?"""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.kind in "iu"
    return isinstance(x, int) and type(x) is not bool


def is_object_of_jax(x: Any) -> bool:
    """Is the class of an object one of JAX's, or derived from one?"""
    t = type(x)
    found = _objects.get(t)
    if found is None:
        found = any(is_of_jax(base.__module__) for base in t.__mro__)
        if may_be_kept(t):
            _objects[t] = found
    return found


def is_callable_of_jax(fn: Any) -> bool:
    """Is it a function of JAX's, or one that a transformation of JAX's has made?"""
    if type(fn) is FunctionType:
        return is_of_jax(fn.__globals__.get("__name__"))
    if isinstance(fn, type):
        return is_of_jax(type(fn).__module__) or any(is_of_jax(b.__module__) for b in fn.__mro__)
    return is_object_of_jax(fn) and not is_array(fn)


def is_public(fn: Any) -> bool:
    """Does a module have it under its name? Then it captures nothing of the user's."""
    module = sys.modules.get(getattr(fn, "__module__", None) or "")
    name = getattr(fn, "__name__", None)
    return (
        isinstance(name, str)
        and getattr(module, name, None) is fn
        and is_of_jax(module.__name__ if module else None)
    )


def told_apart(xs: Any) -> tuple[Any, ...]:
    """Numbers and arrays, each another object: what is there twice is found by identity, too."""
    if len(set(map(id, xs))) == len(xs):
        return tuple(xs)
    seen: set[int] = set()
    found = []
    for x in xs:
        found.append(another(x) if id(x) in seen else x)
        seen.add(id(x))
    return tuple(found)


def another(x: Any) -> Any:
    """An object of the same value; an array of NumPy's has the same memory."""
    if is_array(x):
        return x.copy()
    if isinstance(x, (np.ndarray, np.generic)):
        return x.view()
    return x * 1.0 if type(x) in (float, complex) else x
