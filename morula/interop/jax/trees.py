"""`jax.tree.map` over values that are not JAX's: the function of every leaf, in Python.

As a primitive it would give arrays of JAX's, in JAX's precision, where the plain call gives what the
function gives.
Tests: tests/interop/test_jax_arrays.py
"""

from __future__ import annotations

from typing import Any

import jax

from morula.core.extend import non_differentiable
from morula.interop.jax.kinds import is_array

Args = tuple[Any, ...]
MAPS = (jax.tree.map, jax.tree_util.tree_map)
NODES = (list, tuple, dict)


def is_plain(tree: Any) -> bool:
    """Is it of lists, tuples and dicts, with no array of JAX's inside?"""
    if type(tree) is dict:
        return all(map(is_plain, tree.values()))
    if isinstance(tree, tuple) and (type(tree) is tuple or hasattr(tree, "_fields")):
        return all(map(is_plain, tree))
    if type(tree) is list:
        return all(map(is_plain, tree))
    return tree is None or (not is_array(tree) and jax.tree_util.all_leaves([tree]))


def maps_plainly(fn: Any, values: Args) -> bool:
    """Is it such a call of `jax.tree.map`?"""
    return any(fn is f for f in MAPS) and len(values) > 1 and all(map(is_plain, values[1:]))


def tree_map(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The tree of what the function gives for the leaves."""
    f, tree, *rest = args
    is_leaf = kwargs.get("is_leaf")
    check(tree, rest, is_leaf)
    return mapped(f, tree, rest, is_leaf)


def check(tree: Any, rest: Any, is_leaf: Any) -> None:
    """The errors of trees that differ."""
    structure: Any = jax.tree.structure(tree, is_leaf=is_leaf)
    for other in rest:
        structure.flatten_up_to(other)


def mapped(f: Any, tree: Any, rest: Any, is_leaf: Any) -> Any:
    """One node, or a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return f(tree, *rest)
    if tree is None:
        return None
    if type(tree) is dict:
        return {k: mapped(f, tree[k], [r[k] for r in rest], is_leaf) for k in sorted(tree)}
    if isinstance(tree, (list, tuple)):
        n = len(tree)
        items = [mapped(f, tree[i], [r[i] for r in rest], is_leaf) for i in range(n)]
        return items if type(tree) is list else made_like(tree, items)
    return f(tree, *rest)


def made_like(tree: Any, items: Any) -> Any:
    """A tuple of the type of another."""
    return tuple(items) if type(tree) is tuple else type(tree)(*items)


non_differentiable(check, is_plain, maps_plainly)
