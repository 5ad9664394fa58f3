"""Arrays with labels, of pandas and xarray: what is done with them is done with the arrays inside.

A meaning does the call as it is, and the same with the arrays; where both give the same numbers,
the value is that of the call and its derivative that of the arrays, with the labels put back. What
picks entries, or brings those of two arrays together, is found by doing it with their numbers; along
which axes a reduction goes, by doing it with numbers that do not agree by chance. All else is an
error if a cotangent reaches its result.
Tests: tests/interop/test_labelled.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from itertools import combinations
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from morula.core.errors import ArgumentError
from morula.core.extend import (
    NONE,
    ZERO,
    AbstractZero,
    CotangentError,
    NotKnown,
    general,
    is_zero,
    materialise,
    memory,
    non_differentiable,
    opaque,
    project_to,
    projector,
    registry,
    rrule,
    shows_all,
    space_problem,
    stays_general,
    unit,
    unsupported,
    unthunk,
)
from morula.core.general import Claim
from morula.core.registry import not_known
from morula.interop.meanings import (
    Args,
    claim,
    forward,
    go_by_value,
    handed_on,
    plainly,
    reverse,
)
from morula.mixed_mode.push import opaque as opaque_forward
from morula.rules.arrays.memory import is_followed
from morula.rules.numbers import Anything
from morula.rules.vectors import Foreign, foreign, tangent_dtype


class Library(NamedTuple):
    """A library of such arrays: its name, their types, how one is made like another."""

    name: str
    types: tuple[type, ...]
    like: Callable[[Any, Any], Any]
    same_labels: Callable[[Any, Any], bool]


libraries: list[Library] = []
labelled_types: tuple[type, ...] = ()  # of all of them


def library_of(x: Any) -> Library | None:
    """The library that an array with labels is of."""
    return next((library for library in libraries if isinstance(x, library.types)), None)


def is_labelled(x: Any) -> bool:
    """Is it an array with labels?"""
    return isinstance(x, labelled_types)


# -- to arrays and back ----------------------------------------------------------------------------


def values_of(x: Any) -> Any:
    """The array inside."""
    return np.asarray(x)


def labelled(values: Any, like: Any) -> Any:
    """An array with the labels of another."""
    library = library_of(like)
    assert library is not None
    return library.like(np.asarray(values), like)


def valued(values: Any, y: Any) -> Any:
    """y, which has these values."""
    return y


@rrule(values_of)
def _(x: Anything):
    def values_pullback(ȳ):
        refuse_written(x, ȳ)
        return (ȳ if is_not_known(ȳ) else labelled(ȳ, x),)

    return values_of(x), values_pullback


@rrule(labelled)
def _(values: Anything, like: Anything):
    def labelled_pullback(ȳ):
        return (ȳ if is_not_known(ȳ) else values_of(ȳ)), NONE

    return labelled(values, like), labelled_pullback


@rrule(valued)
def _(values: Anything, y: Anything):
    def valued_pullback(ȳ):
        return values_of(ȳ) if is_labelled(ȳ) else ȳ, NONE

    return valued(values, y), valued_pullback


def is_not_known(x̄: Any) -> bool:
    """Is it a cotangent that nobody knows, which travels as it is?"""
    return type(x̄) is NotKnown


def shown(x: Any) -> Any:
    """The array inside, not to be written to."""
    found = values_of(x).view()
    found.flags.writeable = False
    return found


@rrule(shown)
def _(x: Anything):
    def shown_pullback(ȳ):
        refuse_written(x, ȳ)
        return (ȳ if is_not_known(ȳ) else labelled(ȳ, x),)

    return shown(x), shown_pullback


def around(values: Any, y: Any) -> Any:
    """y, which may share its memory with these values."""
    return y


@rrule(around)
def _(values: Anything, y: Anything):
    def around_pullback(ȳ):
        if is_followed(values):
            raise unsupported(
                "an array with labels around an array that is written to,",
                "arrays with labels go by value in differentiated code",
                "give it a copy of the array",
            )
        return (ȳ if is_not_known(ȳ) else values_of(ȳ)), NONE

    return around(values, y), around_pullback


# -- what writes to them ---------------------------------------------------------------------------


def refuse_written(x: Any, c: Any) -> None:
    """An error where a cotangent would go to an array with labels that differentiated code changes."""
    if memory.is_written(x) and not is_zero(c):
        raise written_to(x)


def written_to(x: Any) -> Exception:
    """The error for an array with labels that is written to: it goes by value."""
    name = type(x).__name__
    return unsupported(
        f"what writes to a {name}",
        "arrays with labels go by value in differentiated code",
        f"write to an array of NumPy's and make the {name} of it, or join new ones",
    )


def owners(given: Args) -> list[Any]:
    """The arrays with labels in a call, also those that an indexer such as `x.loc` belongs to."""
    found = [x for x in given if is_labelled(x)]
    if given and belongs(type(given[0])):
        for name in ("obj", "data_array", "_obj"):
            x = getattr(given[0], name, None)
            if is_labelled(x):
                found.append(x)
    return found


def copies(given: Args) -> list[tuple[Any, Any]]:
    """The arrays with labels in a call, and what they hold before it."""
    return [(x, x.copy(deep=True)) for x in owners(given)]


def changed(before: list[tuple[Any, Any]]) -> list[Any]:
    """Those whose numbers are others now."""
    return [x for x, old in before if not (have_same_numbers(x, old) or old.equals(x))]


def have_same_numbers(x: Any, old: Any) -> bool:
    """Do two arrays hold the same, whatever their labels are?"""
    x, old = values_of(x), values_of(old)
    return np.array_equal(x, old, equal_nan=x.dtype.kind in "fc" and old.dtype.kind in "fc")


# -- meanings --------------------------------------------------------------------------------------


def by_elements(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An operator, or a universal function: of the entries that the labels bring together."""
    y = as_it_is(fn, args, kwargs)
    if sum(map(is_labelled, args)) > 1:
        places = brought_together(fn, args)
        found = fn(*[np.ravel(values_of(x))[at] for x, at in zip(args, places, strict=True)])
    else:
        found = fn(*[values_of(x) if is_labelled(x) else x for x in args])
    check(fn, args, y, found)
    return valued(found, y)


def brought_together(fn: Any, args: Args) -> list[Any]:
    """For each of two arrays, which of its entries are in the entries of the result."""
    if not all(map(is_labelled, args)) or len(args) != 2:
        raise OtherNumbersError("it takes more than two arrays with labels")
    add = np.add if isinstance(fn, np.ufunc) else operator.add
    first, second = [labelled(np.arange(float(x.size)).reshape(x.shape), x) for x in args]
    none = [labelled(np.zeros(x.shape), x) for x in args]
    found = [np.asarray(add(first, none[1])), np.asarray(add(none[0], second))]
    if np.isnan(found).any():
        raise OtherNumbersError("a label of one array is not there in the other")
    return [places.astype(int) for places in found]


def reduced(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.sum()` and the like."""
    y = as_it_is(fn, args, kwargs)
    found = getattr(np, fn.__name__)(values_of(args[0]), **options(fn, args, kwargs))
    check(fn, args, y, found)
    return valued(found, y)


def options(fn: Any, args: Args, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options of NumPy's function that give the same numbers, for any array."""
    of, *more = args
    x = np.random.default_rng(0).uniform(1.0, 2.0, of.shape)
    y = fn(labelled(x, of), *more, **kwargs)
    spread = [{"ddof": 1}, {"ddof": 0}] if fn.__name__ in ("var", "std") else [{}]
    axes = [c for n in range(1, x.ndim + 1) for c in combinations(range(x.ndim), n)]
    for axis in [None, *axes]:
        for also in spread:
            found = getattr(np, fn.__name__)(x, axis=axis, **also)
            if agree(y, found):
                return {"axis": axis, **also}
    raise OtherNumbersError("it gives other numbers than NumPy's function of this name")


def picked(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What picks entries of the first argument, or puts them in another order; or coordinates."""
    y = as_it_is(fn, args, kwargs)
    if is_fixed(fn, args, kwargs):
        return y
    places = places_of(fn, args, kwargs)
    found = np.ravel(values_of(args[0]))[places]
    check(fn, args, y, found)
    return valued(found, y)


def places_of(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Where in the array the entries stand."""
    found = np.asarray(fn(counted(args[0], 0), *args[1:], **kwargs))
    if found.dtype.kind not in "iuf" or np.isnan(found).any():
        raise OtherNumbersError("its result is not made of the entries alone")
    return found.astype(int)


def counted(x: Any, first: int) -> Any:
    """An array like another, of its places."""
    values = values_of(x)
    return labelled(np.arange(first, first + values.size).reshape(values.shape), x)


def is_fixed(fn: Any, args: Args, kwargs: dict[str, Any]) -> bool:
    """Are the labels alone in what is picked, such as the coordinates, and no entries?"""
    first, other = [np.asarray(fn(counted(args[0], n), *args[1:], **kwargs)) for n in (0, 1)]
    return first.size > 0 and np.array_equal(first, other)


def check(fn: Any, args: Args, y: Any, found: Any) -> None:
    """Are these the numbers of a result?"""
    if not agree(y, found):
        if values_of(y).dtype.kind not in "biufc":
            raise OtherNumbersError("its result has no numbers alone")
        raise OtherNumbersError("its result is not that of the arrays inside, in their order")


def agree(y: Any, found: Any) -> bool:
    """Have both the same numbers?"""
    y, found = np.asarray(y), np.asarray(found)
    if y.dtype.kind not in "biufc" or found.dtype.kind not in "biufc":
        return False
    return y.shape == found.shape and bool(np.allclose(y, found, 1e-12, 0, equal_nan=True))


def as_it_is(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The call itself."""
    return fn(*args, **kwargs)


def values(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.values`, `x.to_numpy()`, `np.asarray(x)`."""
    return shown(args[0])


def number(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`float(x)`, `x.item()`."""
    return values_of(args[0]).item()


def made(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`Series(values, index)`."""
    y = as_it_is(fn, args, kwargs)
    check(fn, args, y, args[0])
    return around(args[0], y)


class OtherNumbersError(Exception):
    """A call has another result than the same call of the arrays inside."""


def unknown(fn: Any, args: Args, kwargs: dict[str, Any], reason: str = "") -> Any:
    """What has no meaning here: a call as it is."""
    before = copies((*args, *kwargs.values()))
    y, back = opaque(fn, args, kwargs, reason or REASON, in_sight)  # type: ignore[call-arg]
    for x in changed(before):
        memory.write_to(x)
    return y, back


def in_sight(error: Any, values: Args) -> Args:
    """Cotangents that nobody knows, where all that may depend on arguments is in arrays with labels."""
    if not all(map(shows, values)):
        raise error
    own = [x for x in values if not belongs(type(x)) and not is_silent(x)]
    bars = iter(not_known(error, tuple(own)))
    unknown = NotKnown(lambda: error)
    return tuple(
        [ZERO if is_silent(x) else unknown if belongs(type(x)) else next(bars) for x in values]
    )


def shows(x: Any) -> bool:
    """Are all numbers of a value that may depend on arguments in sight?"""
    if isinstance(x, (list, tuple, dict)):
        return all(map(shows, x.values() if isinstance(x, dict) else x))
    return belongs(type(x)) or is_silent(x) or shows_all(x)


def is_silent(x: Any) -> bool:
    """Is it a text, a range or a function of the library's, of which nobody asks for a derivative?"""
    return isinstance(x, TEXTS) or (isinstance(x, (type, FunctionType)) and belongs(x))


def unknown_forward(
    run: Any, fn: Any, ḟ: Any, args: Args, tangents: Any, keywords: Any, reason: str = ""
) -> Any:
    """The same in forward mode."""
    before = copies(args)
    found = opaque_forward(run, fn, ḟ, args, tangents, keywords, reason or REASON)
    written = changed(before)
    if written and not all(map(is_zero, (ḟ, *tangents))):
        raise written_to(written[0])
    return found


def reverse_or_unknown(meaning: Any, fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The value of a call and its pullback, which is not known where the numbers are others."""
    try:
        return reverse(meaning, fn, args, kwargs)
    except OtherNumbersError as error:
        reason = str(error)
    return unknown(fn, args, kwargs, reason)


def forward_or_unknown(
    meaning: Any, run: Any, fn: Any, ḟ: Any, args: Args, tangents: Any, keywords: Any
) -> Any:
    """The same in forward mode."""
    try:
        return forward(meaning, run, fn, ḟ, args, tangents, keywords)
    except OtherNumbersError as error:
        reason = str(error)
    return unknown_forward(run, fn, ḟ, args, tangents, keywords, reason)


def if_same(meaning: Any) -> Claim:
    """The call means what this function gives, where that has the same numbers."""
    return Claim(partial(reverse_or_unknown, meaning), partial(forward_or_unknown, meaning))


TEXTS = (str, bytes, slice, range)
REASON = "Morula has no rule for it on arrays with labels"
ELEMENTS, REDUCED, PICKED = if_same(by_elements), if_same(reduced), if_same(picked)
VALUES, NUMBER, MADE = claim(values), claim(number), if_same(made)
HANDED_ON, PLAINLY, UNKNOWN = claim(handed_on), claim(plainly), Claim(unknown, unknown_forward)

OPERATORS = {
    id(fn)
    for fn in (
        operator.neg, operator.pos, operator.abs, operator.add, operator.sub, operator.mul,
        operator.truediv, operator.pow, operator.mod, abs,
    )
}  # fmt: skip
WRITES = (operator.setitem, operator.delitem, setattr, delattr)
COMPARISONS = {id(getattr(operator, name)) for name in ["lt", "le", "eq", "ne", "gt", "ge"]}
REDUCTIONS = {"sum", "mean", "prod", "var", "std", "max", "min", "median"}
PICKING = {"isel", "sel", "head", "tail", "transpose", "squeeze"}
BY_NAME = {
    **dict.fromkeys(REDUCTIONS, REDUCED),
    **dict.fromkeys(PICKING, PICKED),
    **dict.fromkeys(("to_numpy", "__array__"), VALUES),
    **dict.fromkeys(("item", "__float__"), NUMBER),
}


def claims(fn: Any, given: Args) -> Claim | None:
    """What a call means that has to do with arrays with labels."""
    if isinstance(fn, type) and any(fn in library.types for library in libraries):
        plain = given and isinstance(given[0], np.ndarray) and not any(map(is_labelled, given[1:]))
        return MADE if plain else UNKNOWN
    if isinstance(fn, type) and belongs(fn) and given and not issubclass(fn, BaseException):
        return UNKNOWN
    if not given or isinstance(fn, (MethodType, partial)):
        return None
    if fn in WRITES and (is_labelled(given[0]) or belongs(type(given[0]))):
        return UNKNOWN
    if not any(map(is_labelled, given[:2])):  # groups and indexers of the library's
        return UNKNOWN if belongs(fn) and belongs(type(given[0])) else None
    if fn is getattr:
        return of_attribute(*given[:2])
    if id(fn) in OPERATORS or isinstance(fn, np.ufunc):
        return ELEMENTS
    if id(fn) in COMPARISONS:
        return PLAINLY
    if fn is operator.getitem:
        return PICKED
    if fn in (float, np.asarray, np.array):
        return NUMBER if fn is float else VALUES
    if fn in (len, type, isinstance, hasattr):
        return PLAINLY
    if belongs(fn) or str(getattr(fn, "__module__", "")).split(".")[0] == "numpy":
        return BY_NAME.get(getattr(fn, "__name__", ""), UNKNOWN)
    return None


def of_attribute(x: Any, name: str) -> Claim:
    """`x.name`."""
    if name in ("values", "data"):
        return VALUES
    found = getattr(x, name, None)
    if name == "T" or is_labelled(found):
        return PICKED
    if isinstance(found, (float, complex, np.inexact)) and not hasattr(type(x), name):
        return PICKED  # an entry by its label
    return HANDED_ON if callable(getattr(x, name, None)) else PLAINLY


def belongs(x: Any) -> bool:
    """Is a type or a callable of such a library, so that a program with it is not specialised?"""
    package = str(getattr(x, "__module__", "")).split(".")[0]
    return any(package == library.name for library in libraries)


# -- what the core is told -------------------------------------------------------------------------


def follow(
    name: str,
    types: tuple[type, ...],
    like: Callable[[Any, Any], Any],
    same_labels: Callable[[Any, Any], bool],
) -> None:
    """Differentiate programs with the arrays of a library; `like(values, x)` puts labels on."""
    global labelled_types
    if not libraries:
        general.CLAIMS.append(claims)
        stays_general.append(belongs)
    libraries.append(Library(name, types, like, same_labels))
    labelled_types += types
    for t in types:
        projector.register(t, project)
        unit.register(t, lambda y: None)
        materialise.register(t, gradient_of)
        space_problem.register(t, lambda x, x̄: None)
        go_by_value(t)
    foreign.append(Foreign(types, goes_into_vector, values_of, from_vector, handed_as_kind))
    registry.registry.entry(claims).changed()


def goes_into_vector(x: Any) -> bool:
    """Does `ravel` take its numbers?"""
    dtype = values_of(x).dtype
    if dtype.kind == "O":
        raise ArgumentError(
            f"ravel cannot take a {type(x).__name__} of objects: give it the columns of numbers"
        )
    return dtype.kind in "fciu"


def from_vector(part: Any, like: Any, shape: Any) -> Any:
    """A part of a vector with the labels, and in the precision, of an array."""
    return labelled(np.reshape(part, shape).astype(tangent_dtype(like)), like)


def handed_as_kind(x: Any) -> Any:
    """What `from_vector` needs to know."""
    return x


def project(x: Any) -> Any:
    """What brings a cotangent to the labels and numbers of an array."""
    inside = project_to(values_of(x))

    def project_labelled(x̄: Any) -> Any:
        if is_not_known(x̄):
            return x̄.refuse() if memory.is_written(x) else x̄
        if is_labelled(x̄) and not has_labels_of(x, x̄):
            raise CotangentError(
                f"the cotangent or tangent of a {type(x).__name__} has other labels: give it the same "
                "ones, in their order, or take an array of NumPy's"
            )
        found = inside(values_of(x̄) if is_labelled(x̄) else x̄)
        return NONE if found is NONE else labelled(found, x)

    project_labelled.takes_unknown = True  # type: ignore[attr-defined]
    return project_labelled


def has_labels_of(x: Any, other: Any) -> bool:
    """Has an array the labels of another one?"""
    library = library_of(x)
    assert library is not None
    return isinstance(other, library.types) and library.same_labels(x, other)


def gradient_of(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    """What the user gets."""
    x̄ = unthunk(x̄)
    inside = values_of(x)
    if inside.dtype.kind not in "fciu":
        return None
    c = np.zeros(inside.shape, float) if isinstance(x̄, AbstractZero) else np.asarray(x̄)
    return labelled(c.astype(inside.dtype if inside.dtype.kind in "fc" else float), x)


non_differentiable(
    is_labelled,
    options,
    brought_together,
    places_of,
    check,
    is_fixed,
    as_it_is,
    has_labels_of,
    is_not_known,
)
