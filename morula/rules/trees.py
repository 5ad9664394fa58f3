"""Functions of structures, number by number: `tree_map`, for steps of optimisers; sums x + Δx.

Both are ordinary Python, and differentiated as such. A structure and its gradient are gone through
together, though the gradient of an object is a `Tangent`.
Tests: tests/rules/test_trees.py
"""

import copy
from collections import deque
from typing import Any

from morula.core.extend import (
    NONE,
    AbstractZero,
    ArgumentError,
    Tangent,
    moved,
    non_differentiable,
    unthunk,
)
from morula.rules.vectors import is_leaf, is_object, parts_in_order


def tree_map(fn: Any, params: Any, /, *rest: Any) -> Any:
    """A structure like `params` of `fn(x, *parts of rest)` for each of its numbers and arrays.

    `rest` mirror `params`, or are its gradients: where one has no tangent space (None, in a
    gradient), the number stays as it is. Texts, truth values and functions stay too. A list, a dict
    or an object that stands in two places is made once, as it has one gradient. May be
    differentiated.

    Args:
        fn: a function of a number or an array of `params` and its counterparts.
        params: numbers, arrays, tuples, named tuples, lists, dicts, objects and `Tangent`, nested.
    Returns:
        a new structure; `params` is not changed.
    Raises:
        ArgumentError: one of `rest` does not have the structure of `params`.

    >>> params = {"w": [1.0, 2.0], "b": 3.0, "name": "line"}
    >>> tree_map(lambda p, g: p - 0.5 * g, params, {"w": [2.0, 0.0], "b": 1.0, "name": None})
    {'w': [0.0, 2.0], 'b': 2.5, 'name': 'line'}
    """
    return mapped(fn, params, rest, {})


def tree_leaves(params: Any) -> list[Any]:
    """The numbers and arrays in a structure, in their order.

    >>> tree_leaves({"w": [1.0, 2.0], "b": 3.0, "name": "line"})
    [1.0, 2.0, 3.0]
    """
    found: list[Any] = []
    tree_map(found.append, params)
    return found


def mapped(fn: Any, x: Any, rest: tuple[Any, ...], made: dict[int, Any]) -> Any:
    """`tree_map` of a part; `made` are the mutable parts so far."""
    if is_number(x):
        rest = tuple(map(unthunk, rest))
        return x if any(r is None or r is NONE for r in rest) else fn(x, *rest)
    parts = parts_in_order(x)
    if parts is None:
        return x
    if id(x) in made:
        return made[id(x)]
    check_structure(x, rest)
    if isinstance(x, (tuple, Tangent)):
        new = {key: mapped(fn, part, below(rest, key), made) for key, part in parts}
        if isinstance(x, Tangent):
            return Tangent[x._primal](new)
        items = list(new.values())
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    y = made[id(x)] = copy.copy(x)
    for key, part in parts:
        value = mapped(fn, part, below(rest, key), made)
        if isinstance(x, (list, deque, dict)):
            y[key] = value
        else:
            object.__setattr__(y, key, value)
    return y


def below(rest: tuple[Any, ...], key: Any) -> tuple[Any, ...]:
    """The counterparts of the part with this key."""
    return tuple([counterpart(r, key) for r in rest])


def counterpart(r: Any, key: Any) -> Any:
    """A part of what mirrors a structure."""
    r = unthunk(r)
    if r is None or isinstance(r, AbstractZero):
        return r
    if not isinstance(r, Tangent) and is_object(r):
        return getattr(r, key)
    return r[key]


def is_number(x: Any) -> bool:
    """Is it a number, or an array of any library's?"""
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return str(x.dtype) != "bool" and is_leaf_of_numpy(x)
    return is_leaf(x)


def is_leaf_of_numpy(x: Any) -> bool:
    """Is it no array of NumPy's, or one of numbers?"""
    return not type(x).__module__.startswith("numpy") or is_leaf(x)


def check_structure(x: Any, rest: tuple[Any, ...]) -> None:
    """Can the parts of `x` be found in what mirrors it?"""
    for r in map(unthunk, rest):
        if r is None or isinstance(r, AbstractZero):
            continue
        if isinstance(r, Tangent):
            fits = isinstance(x, r._primal if not isinstance(x, Tangent) else Tangent)
        elif isinstance(x, (tuple, list, deque)):
            fits = isinstance(r, (tuple, list, deque)) and len(r) == len(x)
        elif isinstance(x, dict):
            fits = isinstance(r, dict) and r.keys() == x.keys()
        else:
            fits = type(r) is type(x)
        if not fits:
            raise ArgumentError(
                f"tree_map takes structures that mirror the first one: where that has {shown(x)}, "
                f"another has {shown(r)}"
            )


def shown(x: Any) -> str:
    """A container, for a message."""
    if isinstance(x, dict):
        return f"a dict with the keys {list(x)}"
    if isinstance(x, (tuple, list, deque)):
        return f"a {type(x).__name__} of {len(x)}"
    return f"a {type(x).__name__}"


non_differentiable(is_number, check_structure)


@moved.register(object)
def _(x: Any, ẋ: Tangent) -> Any:
    return tree_map(plus, x, ẋ)


def plus(x: Any, ẋ: Any) -> Any:
    """One number of the sum."""
    return x + ẋ
