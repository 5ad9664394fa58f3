"""Structures of leaves, as a function that is handed to another system takes and gives them.

Tuples, lists and dicts. A form says where the leaves are: an int is the number of a leaf, a dict has
the forms of parts by key, None holds no leaf.
Tests: tests/interop/test_to_torch.py, tests/interop/test_to_casadi.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from morula.core.cotangents import AbstractZero, unthunk
from morula.core.errors import qualified_name
from morula.interop.operations import OperationError, is_inexact


def form_of(x: Any, is_leaf: Any, leaves: list[Any]) -> Any:
    """The form of a value, whose leaves are added to the list."""
    if is_leaf(x):
        leaves.append(x)
        return len(leaves) - 1
    if isinstance(x, (tuple, list)):
        items: Any = enumerate(x)
    elif isinstance(x, dict):
        items = x.items()
    else:
        return None
    parts = {key: form_of(item, is_leaf, leaves) for key, item in items}
    return {key: form for key, form in parts.items() if form is not None} or None


def filled(x: Any, form: Any, leaves: Any) -> Any:
    """A value like this one with these leaves."""
    if form is None:
        return x
    if isinstance(form, int):
        return leaves[form]
    if isinstance(x, dict):
        new = x.copy()
        for key, part in form.items():
            new[key] = filled(x[key], part, leaves)
        return new
    items = [filled(item, form.get(i), leaves) for i, item in enumerate(x)]
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)


def shown(form: Any) -> Any:
    """A form that can be hashed."""
    if isinstance(form, dict):
        return tuple([(key, shown(part)) for key, part in form.items()])
    return form


class Form:
    """A structure with tensors, or numbers and arrays, as leaves."""

    has_objects = False

    def __init__(self, structure: Any, form: Any) -> None:
        self.structure = structure
        self.form = form
        self.size = size_of(form)

    def fill(self, leaves: Sequence[Any]) -> Any:
        """The structure with these leaves."""
        return filled(self.structure, self.form, leaves)

    def mirror(self, leaves: Sequence[Any]) -> Any:
        """A tangent of the structure: None where there is no leaf."""
        return mirrored(self.structure, self.form, leaves)

    def leaves(self, x: Any) -> list[Any]:
        """The leaves of a tangent; None where that is a structural zero."""
        found: list[Any] = [None] * self.size
        find(x, self.form, found)
        return found

    def parts(self, y: Any) -> list[Any]:
        """The leaves of such a structure."""
        leaves: list[Any] = []
        if form_of(y, is_number, leaves) != self.form:
            raise OperationError(
                "the structure of a value changes with the values of the arguments"
            )
        return leaves


def size_of(form: Any) -> int:
    """How many leaves a form has."""
    if isinstance(form, dict):
        return sum(map(size_of, form.values()))
    return 0 if form is None else 1


def mirrored(x: Any, form: Any, leaves: Any) -> Any:
    """What is like `x`, with leaves where it has them and None elsewhere."""
    if form is None or isinstance(form, int):
        return None if form is None else leaves[form]
    if isinstance(x, dict):
        return {key: mirrored(item, form.get(key), leaves) for key, item in x.items()}
    items = [mirrored(item, form.get(i), leaves) for i, item in enumerate(x)]
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)


def find(x: Any, form: Any, found: list[Any]) -> None:
    """Put the leaves of a tangent where they belong."""
    x = unthunk(x)
    if form is None or x is None or isinstance(x, AbstractZero):
        return
    if isinstance(form, int):
        found[form] = x
        return
    for key, part in form.items():
        find(x[key], part, found)


def is_number(x: Any) -> bool:
    """Is it a number or an array that PyTorch takes?"""
    kinds = (int, float, complex, np.ndarray, np.generic)
    return isinstance(x, kinds) and np.asarray(x).dtype.kind in "fciub"


def value_form(f: Any, y: Any, library: str) -> tuple[Form, list[Any]]:
    """The form of a value and its leaves, if all that it holds are numbers and arrays."""
    leaves: list[Any] = []
    form = form_of(y, is_number, leaves)
    other = next(strangers(y, is_number), None)
    if form is None or other is not None:
        raise OperationError(
            f"{qualified_name(f)} gave a {type(y if other is None else other).__name__}: {library} "
            "takes numbers and arrays, in tuples, lists and dicts"
        )
    return Form(y, form), leaves


def strangers(x: Any, is_leaf: Any) -> Iterator[Any]:
    """What a structure holds that is no leaf and not None."""
    if is_leaf(x) or x is None:
        return
    if isinstance(x, (tuple, list, dict)):
        for item in x.values() if isinstance(x, dict) else x:
            yield from strangers(item, is_leaf)
    else:
        yield x


def value_kinds(leaves: Sequence[Any], kinds_in: Sequence[Any]) -> tuple[Any, ...]:
    """Shapes and dtypes of a value: what NumPy gave in double precision has that of the arguments."""
    precise = any(dtype in (np.float64, np.complex128) for _, dtype in kinds_in) or not any(
        map(is_inexact, kinds_in)
    )
    narrow = {np.dtype(float): np.dtype("f4"), np.dtype(complex): np.dtype("c8")}
    dtypes = [np.asarray(leaf).dtype for leaf in leaves]
    return tuple(
        [
            (np.shape(leaf), dtype if precise else narrow.get(dtype, dtype))
            for leaf, dtype in zip(leaves, dtypes, strict=True)
        ]
    )
