"""Objects that are registered with JAX as trees: their gradients are trees of the same class.

So `jax.tree.map`, Optax and `eqx.apply_updates` take a model and its gradient together. What holds no
numbers, a function say, is None there; in a module of Equinox all but arrays of floats is, as for
`eqx.filter_grad`.
Tests: tests/interop/test_jax_models.py
"""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import jax

from morula.core.extend import non_differentiable
from morula.interop.jax.forms import forms_of, tree_parts
from morula.interop.jax.transforms import constructed
from morula.rules.objects import Mirror, Part, has_fields, mirrors, own_fields

CONTAINERS = (tuple, list, dict, deque)
NUMBERS = (bool, int, float, complex)


def is_tree(x: Any) -> bool:
    """Is it an object that JAX can take apart?"""
    if isinstance(x, CONTAINERS) or not has_fields(type(x)):
        return False
    return jax.tree_util.default_registry.flatten_one_level_with_keys(x) is not None


def parts(x: Any) -> list[Part] | None:
    """The children of a tree that its attributes hold, in their order; None: it is no such tree."""
    if not is_tree(x):
        return None
    settings, found = settings_of(x), tree_parts(x)
    if not all(is_held(x, *place) for place, _ in found):
        return None
    return [
        Part(place[0], place[1], child, counts(child) and type(child) not in settings)
        for place, child in found
    ]


def is_held(x: Any, owner: Any, key: Any) -> bool:
    """Is a child where a program finds it?"""
    return owner is not x or key in own_fields(x)


def counts(child: Any) -> bool:
    """Is a child a tree, or is there something in it by which JAX differentiates?"""
    return not jax.tree_util.all_leaves([child]) or bool(forms_of(child)[1].leaves)


def settings_of(x: Any) -> tuple[type, ...]:
    """Numbers of these types are no parameters of an object: for Equinox, arrays alone are."""
    equinox = sys.modules.get("equinox")
    return NUMBERS if equinox is not None and isinstance(x, equinox.Module) else ()


def made_of(x: Any, children: list[Any]) -> Any:
    """A tree like another one, of these children."""
    definition = jax.tree_util.tree_structure(x, is_leaf=lambda y: y is not x)
    return constructed(unflattened, (definition, children), {})


def unflattened(definition: Any, children: list[Any]) -> Any:
    """What JAX makes of the children."""
    return definition.unflatten(children)


non_differentiable(parts, settings_of)

mirrors.append(Mirror(parts, made_of, settings_of))
