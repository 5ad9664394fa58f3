"""What one forward pass carries: the tangents of mutable values, found by identity.

Numbers, arrays and tuples have their tangents by value, and functions that are differentiated pass
them along. What the tangents of a list, a dict, an object or a cell are stands in a table: it has
the form of the adjoint object of that value, with tangents in the place of cotangents. A pass is
handed down explicitly, so that two passes, one within the other, never see each other's tangents.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, MappingView
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from morula.core import errors, memory
from morula.core.context import Reached
from morula.core.cotangents import NONE, ZERO, NotKnown, Tangent, is_zero, project_to, unthunk
from morula.core.extend import adjoint_object, non_differentiable
from morula.core.general import held_by
from morula.core.shipped import meet
from morula.core.traits import gradient_for, has_tangent, materialise, on_entry, space_problem
from morula.mixed_mode.memory import current, holds_followed, is_followed
from morula.rules.boxes import Box, captured_by
from morula.rules.calls import entry
from morula.rules.containers import lengthen, position
from morula.rules.objects import (
    as_tangent,
    has_fields,
    is_by_identity,
    is_rebound,
    own_fields,
    owner_of,
    put,
)

FEW = 256  # entries of a table that are not worth looking for values that have died


class Pass:
    """One forward pass: the tangents of mutable values, by identity."""

    __slots__ = (
        "absorbing",
        "calls",
        "encodings",
        "keepers",
        "limit",
        "protected",
        "table",
        "written",
    )
    primitive: Any = None  # what a call means that a rule serves, where tangents are no tangents
    attribute: Any = None  # the same for attributes of numbers and arrays
    refusal = ""  # what such a pass is for, in messages

    def __init__(self) -> None:
        self.table: dict[int, tuple[Any, Any]] = {}
        self.absorbing: set[tuple[int, int]] = set()  # what is mutable, with its given tangent
        self.written: dict[int, tuple[Any, Any]] = {}  # memory of arrays, and what lies beside it
        self.encodings: dict[int, Any] = {}  # texts that were made of what has tangents
        self.keepers: dict[int, Any] = {}  # compiled objects that were given what has tangents
        self.calls: dict[Any, Any] = {}  # of functions with caches, and their tangents
        self.limit = FEW
        self.protected = 0  # how many protected regions the pass is in

    def given(self, ẋ: Any) -> Any:
        """The tangent of a number or an array, from what the user gives as such."""
        return ẋ

    def each(self, linear: Callable[..., Any], *tangents: Any) -> Any:
        """A linear function of tangents."""
        return unthunk(linear(*tangents))

    def split(self, tangents: Any) -> list[Any]:
        """Tangents of any structure along each direction."""
        return [tangents]

    def gathered(self, found: list[Any]) -> Any:
        """The inverse."""
        return found[0]

    def count_of_layers(self) -> int:
        """Of how many arrays the tangent of an array consists."""
        return 1

    def empty_layer(self, shape: Any, dtype: Any) -> Any:
        """An array of zero tangents."""
        return np.zeros(shape, dtype)

    def layers(self, ẋ: Any) -> list[Any]:
        """The arrays of a tangent."""
        return [ẋ]

    def of_layers(self, layers: list[Any]) -> Any:
        """The tangent of these arrays."""
        return layers[0]

    def forget_the_dead(self) -> None:
        """Drop the entries of values that nothing else refers to."""
        alive: int = 0
        while len(self.table) != alive:
            alive = len(self.table)
            for key in list(self.table):
                if sys.getrefcount(self.table[key][0]) <= HELD_BY_TABLE:
                    del self.table[key]
        self.limit = max(FEW, 2 * alive)


def _references() -> int:
    """The count of references to a value that a table alone holds."""
    table = {0: (Pass(), None)}
    return sys.getrefcount(table[0][0])


HELD_BY_TABLE = _references()


def holder_of(x: Any) -> Any:
    """The mutable value that tangents of x are found by: an object and its `__dict__` share them."""
    if type(x) is CellType or type(x) is list:
        return x
    if is_rebound(x):
        return x.__dict__
    owner = owner_of(x) if type(x) is dict else None
    return x if owner is None else owner


def tangents_of(run: Pass, x: Any) -> Any:
    """The tangents of a mutable value, to be written to."""
    x = holder_of(x)
    found = run.table.get(id(x))
    if found is None:
        if len(run.table) >= run.limit:
            run.forget_the_dead()
        found = run.table[id(x)] = (x, adjoint_object(x))
    return found[1]


def tangents_if_any(run: Pass, x: Any) -> Any:
    """The tangents of a mutable value if it has any, else None."""
    if not run.table:
        return None
    x = holder_of(x)
    found = run.table.get(id(x))
    return None if found is None else found[1]


def set_tangents(run: Pass, x: Any, tangents: Any) -> None:
    """Let these be the tangents of a mutable value."""
    tangents_of(run, x)
    x = holder_of(x)
    run.table[id(x)] = (x, tangents)


non_differentiable(holder_of, tangents_of, tangents_if_any, set_tangents)

# -- items of tangents -----------------------------------------------------------------------------


def item_of(tangents: Any, i: int) -> Any:
    """An entry of the tangents of a list."""
    return ZERO if tangents is None or i >= len(tangents) else tangents[i]


def set_item(run: Pass, xs: list[Any], i: int, ẋ: Any) -> None:
    """The tangent of an item of a list."""
    if is_zero(ẋ) and tangents_if_any(run, xs) is None:
        return
    tangents = tangents_of(run, xs)
    lengthen(tangents, i + 1)
    tangents[i] = ẋ


def set_all(run: Pass, xs: list[Any], tangents: Any) -> None:
    """The tangents of all items of a list that is new."""
    if not all_zero(tangents):
        tangents_of(run, xs)[:] = tangents


def value_of(run: Pass, x: Any, key: Any) -> Any:
    """The tangent of an attribute of an object, of a value in a dict."""
    tangents = tangents_if_any(run, x)
    return ZERO if tangents is None else tangents.get(key, ZERO)


def set_value(run: Pass, x: Any, key: Any, ẋ: Any) -> None:
    """The tangent of an attribute of an object, of a value in a dict."""
    if not is_zero(ẋ):
        put(tangents_of(run, x), key, ẋ)
        return
    tangents = tangents_if_any(run, x)
    if tangents is not None:
        tangents.pop(key, None)


def box_of(run: Pass, cell: Any) -> Any:
    """The tangent of what a cell holds."""
    box = tangents_if_any(run, cell)
    return ZERO if box is None else box.cotangent


def set_box(run: Pass, cell: Any, ẋ: Any) -> None:
    """The tangent of what a cell holds."""
    if not is_zero(ẋ) or tangents_if_any(run, cell) is not None:
        tangents_of(run, cell).cotangent = ẋ


# -- which values have tangents by identity --------------------------------------------------------

BY_VALUE: tuple[type, ...] = (  # their tangents are passed along
    int, float, complex, bool, str, bytes, type(None), np.ndarray, np.generic, type, range, slice,
)  # fmt: skip


def holds_mutable(x: Any) -> bool:
    """Are there tangents of `x`, or of parts of it, that are found by identity?"""
    if isinstance(x, BY_VALUE):
        return False
    if isinstance(x, tuple):
        return any(map(holds_mutable, x)) or type(x).__dictoffset__ != 0
    if isinstance(x, MethodType):
        return holds_mutable(x.__self__)
    return is_by_identity(x)


def any_mutable(values: Any) -> bool:
    """Does `holds_mutable` say so of one of these?"""
    return any(map(holds_mutable, values))


def all_zero(tangents: Any) -> bool:
    """Are all of these structurally zero?"""
    return all(map(is_zero, tangents))


non_differentiable(holds_mutable, any_mutable, all_zero, is_zero)


def is_stream(x: Any) -> bool:
    """Is it an iterator, or a view of a dict: something whose items have tangents elsewhere?"""
    return hasattr(type(x), "__next__") or isinstance(x, MappingView)


def reached(run: Pass, values: tuple[Any, ...]) -> bool:
    """Can a tangent that is not zero be found by way of these values?"""
    if not run.table:
        return False
    for x, _ in held_by(values):
        tangents = tangents_if_any(run, x)
        if tangents is not None and not is_empty(tangents):
            return True
    return any(not is_empty(tangents_if_any(run, x)) for x in values if isinstance(x, frozenset))


def is_empty(tangents: Any) -> bool:
    """Are the tangents of a mutable value all zero?"""
    if tangents is None or isinstance(tangents, list):
        return all_zero(tangents or ())
    if isinstance(tangents, dict):
        return all_zero(tangents.values())
    return hasattr(type(tangents), "cotangent") and is_zero(tangents.cotangent)


non_differentiable(reached)

# -- between tables and values ---------------------------------------------------------------------


def by_value(run: Pass, x: Any, ẋ: Any, seen: frozenset[int] = frozenset()) -> Any:
    """The tangent of a value and of all that it holds, in one structure that mirrors it."""
    if id(x) in seen:
        return ZERO
    if isinstance(x, tuple):
        return together([by_value(run, v, entry(ẋ, i), seen) for i, v in enumerate(x)])
    if isinstance(x, BY_VALUE) or not is_by_identity(x):
        return unthunk(current(run, x, ẋ) if run.written else ẋ)
    tangents = tangents_if_any(run, x)
    seen |= {id(x)}
    if isinstance(x, list):
        found = [by_value(run, v, item_of(tangents, i), seen) for i, v in enumerate(x)]
        return ZERO if all_zero(found) else found
    if isinstance(x, (FunctionType, CellType)):
        cells = captured_by(x) if isinstance(x, FunctionType) else []
        fields = {
            name: by_value(run, cell.cell_contents, box_of(run, cell), seen) for name, cell in cells
        }
        fields = {name: v for name, v in fields.items() if not is_zero(v)}
        return Tangent[FunctionType](fields) if fields else ZERO
    parts = x if isinstance(x, dict) else own_fields(x) if has_fields(type(x)) else {}
    fields = {k: by_value(run, v, (tangents or {}).get(k, ZERO), seen) for k, v in parts.items()}
    fields.update({k: v for k, v in (tangents or {}).items() if k not in parts})
    fields = {k: v for k, v in fields.items() if not is_zero(v)}
    if not fields:
        return ZERO
    return fields if isinstance(x, dict) else Tangent[type(x)](fields)


def of_leaves(tangents: Any, leaf: type, take: Callable[[Any], Any]) -> Any:
    """Tangents of any structure in which others are taken from those of one type."""
    if isinstance(tangents, leaf):
        return take(tangents)
    if isinstance(tangents, Box):
        box = Box()
        box.cotangent = of_leaves(tangents.cotangent, leaf, take)
        return box
    if isinstance(tangents, dict):
        return {key: of_leaves(c, leaf, take) for key, c in tangents.items()}
    if isinstance(tangents, (tuple, list)):
        return type(tangents)([of_leaves(c, leaf, take) for c in tangents])
    if isinstance(tangents, Tangent):
        return tangents._map(lambda c: of_leaves(c, leaf, take))
    return tangents


def in_space_of(y: Any, ẏ: Any) -> Any:
    """A tangent in the space of the value."""
    ẏ = unthunk(ẏ)
    if type(ẏ) is NotKnown:
        ẏ.refuse()
    if is_zero(ẏ) or ẏ is NONE:
        return ZERO
    ẏ = unthunk(project_to(y)(ẏ))
    return ZERO if ẏ is NONE else ẏ


def in_space_by_value(y: Any, ẏ: Any) -> Any:
    """The same for a value that may hold lists, dicts and objects, whose tangents come by value."""
    ẏ = unthunk(ẏ)
    if is_zero(ẏ) or ẏ is NONE or not holds_mutable(y):
        return in_space_of(y, ẏ)
    if isinstance(y, (tuple, list, deque)):
        parts = _parts(ẏ, y, "the value")
        found = [in_space_by_value(v, parts.get(i, ZERO)) for i, v in enumerate(y)]
        return ZERO if all_zero(found) else found if isinstance(y, list) else tuple(found)
    if not isinstance(ẏ, (dict, Tangent)):
        raise errors.wrong_space("the tangent of the value", "a dict or a Tangent", _shown(ẏ))
    values = y if isinstance(y, dict) else own_fields(y)
    return {key: in_space_by_value(values[key], c) for key, c in ẏ.items()}


def placed(run: Pass, y: Any, ẏ: Any) -> Any:
    """The tangent of what a rule has made, where those of lists, dicts and objects are looked for."""
    if is_zero(ẏ):
        return ZERO
    if isinstance(y, tuple):
        return together([placed(run, v, entry(ẏ, i)) for i, v in enumerate(y)])
    if isinstance(y, (list, deque)):
        set_all(run, y, [placed(run, v, entry(ẏ, i)) for i, v in enumerate(y)])
        return ZERO
    if isinstance(ẏ, dict):
        values = y if isinstance(y, dict) else own_fields(y)
        for key, c in ẏ.items():
            set_value(run, y, key, placed(run, values[key], c))
        return ZERO
    return ẏ


def together(tangents: Any) -> Any:
    """The tangent of a tuple from those of its items."""
    return ZERO if all_zero(tangents) else tuple(tangents)


def absorb(run: Pass, x: Any, given: Any, name: str) -> Any:
    """The tangent by value of `x` that a user has given; that of what is mutable goes to the table.

    It mirrors the value; None is a zero. `name` says in messages what it is the tangent of.
    """
    given = unthunk(given)
    if given is None or is_zero(given):
        return ZERO
    if not isinstance(x, BY_VALUE):
        meet(type(x))
    if not has_tangent(type(x)):
        if isinstance(given, (int, float)) and given == 0:
            return ZERO
        raise errors.wrong_space(
            f"the tangent of {name}", f"None: a {type(x).__name__} has none", _shown(given)
        )
    if isinstance(x, tuple):
        parts = _parts(given, x, name)
        return together([absorb(run, v, parts.get(i), f"{name}[{i}]") for i, v in enumerate(x)])
    if type(x) is partial:
        held = {"func": x.func, "args": x.args, "keywords": x.keywords}
        dots = {
            k: absorb(run, held[k], c, f"{name}.{k}") for k, c in _fields(given, x, name).items()
        }
        fields = {k: c for k, c in dots.items() if not is_zero(c)}
        return Tangent[partial](fields) if fields else ZERO
    if isinstance(x, Tangent):
        return absorb(run, x._fields, _fields(given, x, name), name)
    if isinstance(x, (list, dict, FunctionType)) or (
        not isinstance(x, BY_VALUE) and is_by_identity(x)
    ):
        pair = id(x), id(given)
        if pair not in run.absorbing:  # or it holds itself
            run.absorbing.add(pair)
            absorb_contents(run, x, given, name)
            run.absorbing.remove(pair)
        return ZERO
    return number_or_array(run, x, given, name)


def absorb_contents(run: Pass, x: Any, given: Any, name: str) -> None:
    """The tangents of what is in something mutable, to the table."""
    if isinstance(x, list):
        parts = _parts(given, x, name)
        set_all(run, x, [absorb(run, v, parts.get(i), f"{name}[{i}]") for i, v in enumerate(x)])
    elif isinstance(x, dict):
        if not isinstance(given, (dict, Tangent)) or not {*given.keys()} <= {*x}:
            raise errors.wrong_space(
                f"the tangent of {name}", "a dict of the same keys", _shown(given)
            )
        for k, c in given.items():
            set_value(run, x, k, absorb(run, x[k], c, f"{name}[{k!r}]"))
    elif isinstance(x, FunctionType):
        cells = dict(captured_by(x))
        for k, c in _fields(given, x, name).items():
            set_box(run, cells[k], absorb(run, cells[k].cell_contents, c, f"{name}.{k}"))
    else:
        fields = own_fields(x)
        for k, c in _fields(given, x, name).items():
            set_value(run, x, k, absorb(run, fields[k], c, f"{name}.{k}"))


def number_or_array(run: Pass, x: Any, given: Any, name: str) -> Any:
    """The tangent of a number or an array, in its space."""
    if isinstance(given, (Tangent, dict, str)) or (isinstance(given, list) and np.shape(x) == ()):
        raise errors.wrong_space(
            f"the tangent of {name}", f"like a {type(x).__name__}", _shown(given)
        )
    if isinstance(given, (list, tuple)):
        given = np.asarray(given)
    problem = space_problem(x, given)
    if problem is not None:
        raise errors.wrong_space(f"the tangent of {name}", *problem)
    if is_complex(given) and not is_complex(x):
        raise errors.wrong_space(f"the tangent of {name}", "real", "complex")
    ẋ = project_to(x)(given)
    return ZERO if ẋ is NONE else run.given(ẋ)


def is_complex(x: Any) -> bool:
    """Is it a complex number or array?"""
    says = getattr(getattr(x, "dtype", None), "is_complex", None)  # a dtype that is not NumPy's
    return not isinstance(x, Mapping) and bool(np.iscomplexobj(x) if says is None else says)


def _shown(given: Any) -> str:
    if isinstance(given, Tangent):
        return f"{Tangent[given._primal]} of {', '.join(map(repr, given)) or 'nothing'}"
    return f"a {type(given).__name__}"


def _parts(given: Any, x: Any, name: str) -> dict[int, Any]:
    """The items of the tangent of a sequence, by position."""
    if isinstance(given, Tangent):
        return {position(x, k): c for k, c in given.items()}
    if isinstance(given, (tuple, list, deque, np.ndarray)) and len(given) == len(x):
        return dict(enumerate(given))
    shown = _shown(given) + (f" of length {len(given)}" if hasattr(given, "__len__") else "")
    raise errors.wrong_space(
        f"the tangent of {name}", f"a {type(x).__name__} of length {len(x)}", shown
    )


def _fields(given: Any, x: Any, name: str) -> dict[str, Any]:
    """The fields of the tangent of an object, by name."""
    given = as_tangent(x, given)
    if isinstance(x, FunctionType):
        known = {*dict(captured_by(x))}
    elif type(x) is partial:
        known = {"func", "args", "keywords"}
    else:
        known = {*(x if isinstance(x, Tangent) else own_fields(x))}
    if not isinstance(given, (Tangent, dict)) or not {*given.keys()} <= known:
        kind = (x._primal if isinstance(x, Tangent) else type(x)).__name__
        raise errors.wrong_space(
            f"the tangent of {name}", f"Tangent[{kind}] of its attributes", _shown(given)
        )
    return dict(given.items())


class Held(Reached):
    """`of` for `materialise`: the tangents of mutable values in a pass."""

    def __init__(self, run: Pass) -> None:
        super().__init__()
        self.run = run

    def __call__(self, x: Any) -> Any:
        """The tangents of `x`, or None."""
        return tangents_if_any(self.run, x)


def refreshed(run: Pass, values: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tangents of values, with those that lie beside memory that was written to."""
    if not any([type(x) is tuple or type(x) is list or isinstance(x, np.ndarray) for x in values]):
        return tangents
    for x in values:
        if type(x) is list and any([is_followed(run, v) for v in x]):
            refresh_held(run, (x,))
    return tuple([current(run, x, ẋ) for x, ẋ in zip(values, tangents, strict=True)])


def refresh_held(run: Pass, values: tuple[Any, ...]) -> None:
    """The same for what mutable values hold."""
    for x, parts in held_by(values):
        for key, v in parts.items():
            if not holds_followed(run, v) or not is_by_identity(x):
                continue
            tangents = tangents_of(run, x)
            if isinstance(tangents, list):
                set_item(run, x, key, current(run, v, item_of(tangents, key)))
            elif isinstance(tangents, dict):
                tangents[key] = current(run, v, tangents.get(key, ZERO))
            else:
                tangents.cotangent = current(run, v, tangents.cotangent)


def shown_to_user(run: Pass, y: Any, ẏ: Any) -> Any:
    """The tangent of an output as a user gets it: zeros of its own shape where nothing arrived."""
    return gradient_for(on_entry(y, {}), last(run, y, ẏ), Held(run))


def last(run: Pass, y: Any, ẏ: Any) -> Any:
    """The tangent of an output, with all that was written to memory."""
    if not run.written:
        return ẏ
    refresh_held(run, (y,))
    return current(run, y, ẏ)


def zeros_like(x: Any) -> Any:
    """A tangent of zeros, of the shape and kind of a number, an array or a tuple of such."""
    if isinstance(x, tuple):
        return tuple([zeros_like(v) for v in x])
    if not has_tangent(type(x)) or holds_mutable(x):
        return ZERO
    outer = memory.follow(None)  # what lies beside an array is not to be taken
    zero = materialise(x, ZERO, Reached())
    memory.follow(outer)
    return ZERO if zero is None or zero is NONE else zero


non_differentiable(zeros_like)
