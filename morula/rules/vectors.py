"""Structures as flat vectors, for optimisers that know nothing else: `ravel` and its inverse.

Both are ordinary Python, and differentiated as such. What has a tangent space goes into the vector,
in the order in which it stands in the structure; the rest stays in the inverse.
Tests: tests/rules/test_vectors.py
"""

import copy
import math
import numbers
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from morula.core.extend import Tangent, has_tangent, meet, non_differentiable
from morula.rules.objects import (
    Mirror,
    has_fields,
    is_by_identity,
    is_part_of_python,
    meet_all,
    mirror_of,
    own_fields,
    parts_by,
)


def ravel(params: Any) -> tuple[Any, Any]:
    """The numbers in a structure as one vector, and the function that makes such a structure of one.

    Takes numbers, arrays, tuples, named tuples, lists, dicts, objects and `Tangent`, nested in any
    way, and the stored entries of sparse arrays; what else is in there (texts, truth values,
    functions) is kept as it is. The vector has the dtype that holds all of the numbers. `unravel`
    gives each number its own type and dtype back; integers count as points of the real line and come
    back as floats. Where JAX traces the numbers, the vector is an array of JAX's, and so is what is
    made of one. A list, a dict or an object that stands in two places is taken once, as it has
    one gradient. Both may be differentiated.

    Args:
        params: the structure.
    Returns:
        `vector` of shape (n,), `unravel`: vector of n numbers -> a new structure like `params`.
    Raises:
        TypeError: an array holds objects; `unravel`: it is no vector of numbers.
        ValueError: `unravel`: the vector has another length.

    >>> vector, unravel = ravel({"w": [1.0, 2.0], "b": 3.0, "name": "line"})
    >>> vector
    array([1., 2., 3.])
    >>> unravel(2 * vector)
    {'w': [2.0, 4.0], 'b': 6.0, 'name': 'line'}
    """
    return raveled(params, is_leaf)


def raveled(params: Any, takes: Any) -> tuple[Any, Any]:
    """`ravel` of those numbers and arrays for which `takes(x)` holds."""
    meet_all(params)
    leaves: list[Any] = []
    form = form_of(params, leaves, {}, takes)
    library = tracing(leaves)
    if library is not None:
        vector = library.vector_of(leaves)
        return vector, Unravel(form, len(vector))
    dtype = common_dtype(leaves)
    parts = [np.reshape(as_array(leaf), -1).astype(dtype) for leaf in leaves]
    vector = np.concatenate(parts) if parts else np.zeros(0)
    return vector, Unravel(form, len(vector))


class Unravel:
    """The inverse of `ravel` for structures of one form."""

    def __init__(self, form: Any, size: int) -> None:
        self.form = form
        self.size = size

    def __call__(self, vector: Any) -> Any:
        """The structure with the numbers of the vector."""
        traced = tracing([vector]) is not None
        vector = vector * 1.0 if traced and vector.dtype.kind in "iu" else vector
        vector = vector if traced else np.asarray(vector)
        check_vector(vector, self.size)
        return self.form.fill(vector, {})

    def __repr__(self) -> str:
        return f"unravel(vector of shape ({self.size},))"


def check_vector(vector: Any, size: int) -> None:
    """Can a structure be made of it?"""
    if vector.dtype.kind not in "fciu" and vector.dtype.name != "bfloat16":
        raise TypeError(f"unravel takes a vector of numbers, got an array of {vector.dtype}")
    if vector.shape != (size,):
        raise ValueError(f"unravel takes a vector of shape ({size},), got shape {vector.shape}")


def common_dtype(leaves: list[Any]) -> Any:
    """The floating or complex dtype that holds all of the numbers."""
    return np.result_type(*[tangent_dtype(leaf) for leaf in leaves]) if leaves else np.dtype(float)


def tangent_dtype(leaf: Any) -> Any:
    """The dtype of a number's or an array's tangents."""
    if foreign_of(leaf) is not None:
        leaf = as_array(leaf)
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype if leaf.dtype.kind in "fc" else np.dtype(float)
    return np.dtype(complex if isinstance(leaf, complex) else float)


def never(x: Any) -> bool:
    """No."""
    return False


class Foreign(NamedTuple):
    """Arrays of another library: their types, which are leaves, the ways to NumPy's and back."""

    types: tuple[type, ...]
    is_leaf: Callable[[Any], bool]
    to_numpy: Callable[[Any], Any]
    from_numpy: Callable[[Any, Any, Any], Any]  # array, kind, shape
    kind: Callable[[Any], Any]  # what makes an array like another one, besides its shape
    is_traced: Callable[[Any], bool] = never  # has an array no numbers, while a program is traced?
    vector_of: Any = None  # the vector of numbers and arrays, of which some are traced


foreign: list[Foreign] = []


def foreign_of(x: Any) -> Foreign | None:
    """The library that an array is of, if it is not NumPy."""
    meet(type(x))
    return next((library for library in foreign if isinstance(x, library.types)), None)


def tracing(xs: list[Any]) -> Foreign | None:
    """The library that traces one of these."""
    for x in xs:
        library = foreign_of(x)
        if library is not None and library.is_traced(x):
            return library
    return None


def is_leaf(x: Any) -> bool:
    """Is it a number or an array that goes into the vector?"""
    library = foreign_of(x)
    if library is not None:
        return library.is_leaf(x)
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind == "O":
            raise TypeError("ravel cannot take an array of objects: make a list of it")
        return x.dtype.kind in "fciu"
    return isinstance(x, numbers.Number) and not isinstance(x, bool)


def as_array(x: Any) -> Any:
    """A number or an array as an array; numbers that NumPy does not know are rounded."""
    library = foreign_of(x)
    if library is not None:
        return library.to_numpy(x)
    if isinstance(x, (np.ndarray, np.generic, complex)):
        return np.asarray(x)
    return np.asarray(float(x))


def is_object(x: Any) -> bool:
    """Is it an object that holds attributes of the user's?"""
    kind = type(x)
    return has_fields(kind) and is_by_identity(x) and not is_part_of_python(kind)


non_differentiable(check_vector, common_dtype, is_leaf, is_object, foreign_of, tracing)


class Leaf:
    """A number or an array: where it stands in the vector."""

    def __init__(self, x: Any, start: int) -> None:
        self.shape = tuple(np.shape(x))
        self.start = start
        self.library = foreign_of(x)
        traced = tracing([x]) is not None
        self.dtype = x.dtype if traced else tangent_dtype(x)
        by_shape = traced or self.library is None
        size = math.prod(self.shape) if by_shape else np.size(as_array(x))
        self.stop = start + size
        self.own = None if self.library is None else self.library.kind(x)
        self.kind = type(x) if not isinstance(x, (int, np.integer)) else float

    def fill(self, vector: Any, made: dict[int, Any]) -> Any:
        """The number or the array with the vector's numbers."""
        if self.dtype.kind != "c" and vector.dtype.kind == "c":
            vector = vector.real
        if self.library is not None:
            part = vector[self.start : self.stop]
            return self.library.from_numpy(part, self.own, self.shape)
        if tracing([vector]) is not None:  # it can be made no number of NumPy's
            return vector[self.start : self.stop].reshape(self.shape)
        if issubclass(self.kind, np.ndarray):
            return vector[self.start : self.stop].reshape(self.shape).astype(self.dtype)
        x = vector[self.start]
        if issubclass(self.kind, np.generic):
            return x.astype(self.dtype)
        return complex(x) if self.kind is complex else self.kind(float(x))


class Constant:
    """What does not go into the vector."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def fill(self, vector: Any, made: dict[int, Any]) -> Any:
        """The value itself."""
        return self.x


class Node:
    """A container or an object, and the forms of its parts by key."""

    def __init__(self, primal: Any) -> None:
        self.primal = primal
        self.parts: dict[Any, Any] = {}

    def fill(self, vector: Any, made: dict[int, Any]) -> Any:
        """A new one with the vector's numbers."""
        if id(self) in made:
            return made[id(self)]
        primal = self.primal
        mirror = mirror_of(primal)
        if mirror is not None:
            items = [part.fill(vector, made) for part in self.parts.values()]
            made[id(self)] = mirror.made_of(primal, items)
            return made[id(self)]
        if isinstance(primal, tuple):
            items = [part.fill(vector, made) for part in self.parts.values()]
            return type(primal)(*items) if hasattr(primal, "_fields") else tuple(items)
        if isinstance(primal, Tangent):
            fields = {key: part.fill(vector, made) for key, part in self.parts.items()}
            return Tangent[primal._primal](fields)
        new = copy.copy(primal)
        made[id(self)] = new
        for key, part in self.parts.items():
            x = part.fill(vector, made)
            if isinstance(primal, (list, deque, dict)):
                new[key] = x
            else:
                object.__setattr__(new, key, x)
        return new


def inner(a: Any, b: Any) -> Any:
    """The inner product of two numbers, or of two arrays of one shape."""
    return np.sum(a * b) if isinstance(a, np.ndarray) else a * b


def inner_of_tuples(a: Any, b: Any) -> Any:
    """The same of two tuples of numbers, arrays and tuples."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + (inner_of_tuples(x, y) if isinstance(x, tuple) else inner(x, y))
    return total


def form_of(x: Any, leaves: list[Any], known: dict[Any, Any], takes: Any) -> Any:
    """The form of a structure; `leaves` gets its numbers, `known` holds the containers so far."""
    if takes(x):
        start = known.get("size", 0)
        leaf = Leaf(x, start)
        known["size"] = leaf.stop
        leaves.append(x)
        return leaf
    parts = parts_in_order(x)
    if parts is None:
        return Constant(x)
    if id(x) in known:
        return known[id(x)]
    node = Node(x)
    if not isinstance(x, (tuple, Tangent)):
        known[id(x)] = node
    for key, part in parts:
        node.parts[key] = form_of(part, leaves, known, takes)
    mirror = mirror_of(x)
    if mirror is not None:
        add_parts(node, mirror, leaves, known, takes)
    return node


def add_parts(node: Node, mirror: Mirror, leaves: list[Any], known: Any, takes: Any) -> None:
    """The parts of an object that its library mirrors."""
    settings = mirror.settings(node.primal)
    for i, part in enumerate(parts_by(mirror, node.primal)):
        if part.counts:
            takes_it = takes if not settings else lambda x: type(x) not in settings and takes(x)
            node.parts[i] = form_of(part.read(), leaves, known, takes_it)
        else:
            node.parts[i] = Constant(part.value)


def parts_in_order(x: Any) -> Any:
    """Keys and values of what a structure consists of; None: it is none."""
    if isinstance(x, (tuple, list, deque)):
        return list(enumerate(x))
    if isinstance(x, dict):
        return list(x.items())
    if isinstance(x, Tangent):
        return [(key, x[key]) for key in x]
    if is_object(x) and has_tangent(type(x)):
        fields = own_fields(x) if mirror_of(x) is None else ()
        return [(name, getattr(x, name)) for name in fields]
    return None
