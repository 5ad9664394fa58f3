"""Arrays and numbers of classes that say in Python what an operator or a function does with them.

Rules compute with plain ones. A number of such a class goes into a function as what it is without
the class, as the function itself takes it. For an array of such a class a function means what it
gives, with the derivative of the same call of plain arrays where the numbers are the same; if they
are others, the class has done something of its own that no rule knows of, and the call is refused.
What a class says by `__array_ufunc__` or `__array_function__` is followed: see protocols.py.
Tests: tests/interop/test_array_classes.py
"""

from __future__ import annotations

import math
import operator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    NoTangent,
    UnsupportedError,
    adds_to_base,
    frule,
    general,
    non_differentiable,
    rrule,
    stays_general,
)
from morula.core.general import Claim
from morula.core.registry import registry
from morula.core.traits import is_compiled
from morula.interop import protocols
from morula.interop.converted import AS_THEY_ARE, BY_OPERATORS
from morula.interop.meanings import Args, as_it_is, claim
from morula.interop.protocols import ARRAY_FUNCTION, METHOD, UFUNC_METHOD
from morula.rules.arrays.inplace import writes_to_arrays
from morula.rules.calls import MISSING, own_method, with_derivative_of
from morula.rules.numbers import Anything
from morula.rules.own_classes import (
    ARITHMETIC,
    ARITHMETIC_IN_PLACE,
    METHODS,
    MOVES,
    OPERATORS,
    PLAIN,
    TWO_SIDED,
    has_ways_of_its_own,
    iterates_itself,
    number,
    plain,
    types_in,
)

# What hands on the numbers of an array, or the memory: it computes nothing.
HANDING_ON = """
    array_split asanyarray asarray ascontiguousarray astype atleast_1d atleast_2d atleast_3d
    broadcast_to copy diagonal dsplit expand_dims flip fliplr flipud hsplit imag moveaxis ndim
    permute_dims matrix_transpose ravel real reshape rollaxis rot90 shape shares_memory
    may_share_memory size split squeeze swapaxes transpose unstack vsplit result_type
"""
MOVING = {*HANDING_ON.split()}


# -- what calls mean -------------------------------------------------------------------------------


def by_numbers(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function of such arrays, with the derivative of that of plain ones."""
    return told_by_plain(fn, as_it_is(fn, args, kwargs), args, kwargs)


def of_numbers(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function that takes numbers for what they are without their classes."""
    return fn(*map(plain, args), **{key: plain(x) for key, x in kwargs.items()})


def distance(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`math.dist`, which looks at what a tuple holds, whatever iterating over it gives."""
    return fn(*[plain(tuple(tuple.__iter__(x)) if isinstance(x, tuple) else x) for x in args])


def by_its_method(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An operator whose method the class of the first operand has written."""
    return own_method(type(args[0]), f"__{fn.__name__}__")(*args)


def of_base(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A method of arrays, where the class has one of the same name, which is not asked."""
    told = fn(plain(args[0]), *args[1:], **kwargs)
    if told is None:
        return None
    if fn.__name__ in ARITHMETIC_IN_PLACE:
        return args[0]
    if not is_array(told):
        return told
    y = as_it_is(fn, args, kwargs)
    return with_derivative_of(y, told) if is_view_of(told, args[0]) else in_the_form_of(y, told)


def is_array(x: Any) -> bool:
    """Is it an array, which may be of the class again?"""
    return isinstance(x, np.ndarray)


def is_view_of(y: np.ndarray, x: np.ndarray) -> bool:
    """Does what is written to y go to the memory of x, whose cotangents are followed?"""
    return np.may_share_memory(y, x)


non_differentiable(is_array, is_view_of)


def by_places(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`np.concatenate`, which asks a list for its items one by one, and not for an iterator."""
    arrays, *others = args
    return fn([arrays[i] for i in range(len(arrays))], *others, **kwargs)


def default_function(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`ndarray.__array_function__`: a function without what the class says of it."""
    _, function, _, values, named = args
    y = as_it_is(fn, args, kwargs)
    return y if y is NotImplemented else told_by_plain(function, y, values, named)


def implementation(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`np.dot._implementation` and the like, by which classes call what they have redefined."""
    return told_by_plain(of_implementation(fn), as_it_is(fn, args, kwargs), args, kwargs)


def default_ufunc(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`ndarray.__array_ufunc__`: a ufunc of arrays of which no class says what it does."""
    _, ufunc, method, *inputs = args
    if protocols.speakers((*inputs, *(kwargs.get("out") or ())), "__array_ufunc__"):
        return NotImplemented
    return getattr(ufunc, method)(*inputs, **kwargs)


def of_implementation(fn: Any) -> Any:
    """The function of NumPy's that has this implementation, which is compiled; or None."""
    if not _implementations:
        for module in (np, np.linalg, np.fft):
            functions: list[Any] = [f for f in vars(module).values() if type(f) is ARRAY_FUNCTION]
            for found in functions:
                own = found._implementation
                if type(own) is BuiltinFunctionType:
                    _implementations[id(own)] = found
    return _implementations.get(id(fn))


_implementations: dict[int, Any] = {}


def told_by_plain(fn: Any, y: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What a call has given, with the derivative of that of plain arrays."""
    check_nothing_is_written(fn, args, kwargs)
    z = fn(*map(plain, args), **{key: plain(x) for key, x in kwargs.items()})
    check(fn, y, z, args)
    if not isinstance(y, tuple):
        return in_the_form_of(y, z)
    parts = [in_the_form_of(*pair) for pair in zip(y, z, strict=True)]
    return tuple(parts) if type(y) is tuple else type(y)(*parts)


def in_the_form_of(y: Any, z: Any) -> Any:
    """The same numbers with the class of y: an array in memory of its own, which may be written to."""
    return of_class(z, y) if isinstance(y, np.ndarray) else with_derivative_of(y, z)


def of_class(z: Any, y: Any) -> Any:
    """A copy of y, of which z is the plain array."""
    made = np.ndarray.copy(y, "K")
    getattr(made, "__dict__", {}).update(getattr(y, "__dict__", {}))
    return made


@rrule(of_class)
def _(z: Anything, y: np.ndarray):
    def of_class_pullback(ȳ):
        return ȳ, NoTangent()

    return of_class(z, y), of_class_pullback


@frule(of_class)
def _(z: Anything, y: np.ndarray):
    def of_class_pushforward(ż, ẏ):
        return ż

    return of_class(z, y), of_class_pushforward


def check_nothing_is_written(fn: Any, args: Args, kwargs: dict[str, Any]) -> None:
    """Is no array given for the result?"""
    if kwargs.get("out") is not None or (type(fn) is np.ufunc and len(args) > fn.nin):
        raise refusal(fn, "writes to an array that is given")


def check(fn: Any, y: Any, z: Any, args: Any) -> None:
    """Are the numbers those of plain arrays, in memory of their own?"""
    if not same_numbers(y, z):
        raise refusal(fn, "is not that of their numbers")
    if isinstance(y, list):
        raise refusal(fn, "gives a list")
    if any([np.may_share_memory(a, b) for a in arrays_in(y) for b in arrays_in(args)]):
        raise refusal(fn, "gives a view of one")


def same_numbers(y: Any, z: Any) -> bool:
    """Are the results the same but for the classes of arrays in them?"""
    if isinstance(y, (list, tuple)):
        return type(y) is type(z) and len(y) == len(z) and all(map(same_numbers, y, z))
    if isinstance(y, NUMBERS) and not isinstance(y, np.generic):
        return type(number(y)) is type(z) and same_numbers(np.asarray(number(y)), np.asarray(z))
    if not isinstance(y, (np.ndarray, np.generic)):
        return type(y) is type(z)
    a, b = np.asarray(y), np.asarray(z)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.dtype.kind not in "fc" or np.array_equal(a, b, equal_nan=True)


def arrays_in(x: Any) -> list[Any]:
    """The arrays among these values, and in lists and tuples of them."""
    if isinstance(x, (list, tuple)):
        return [a for item in x for a in arrays_in(item)]
    return [x] if isinstance(x, np.ndarray) else []


def refusal(fn: Any, why: str) -> UnsupportedError:
    """What is raised where the class does something that no rule knows of."""
    name = getattr(fn, "__name__", fn)
    return UnsupportedError(
        f"{name} of arrays of a class of its own {why}, which differentiated code cannot follow: "
        "call it with np.asarray(…), or register a rule for the class with @rrule"
    )


non_differentiable(check, check_nothing_is_written, of_implementation)
OF_NUMBERS, OF_PLAIN, OF_FUNCTION, OF_IMPLEMENTATION, OF_UFUNC = map(
    claim, (by_numbers, of_numbers, default_function, implementation, default_ufunc)
)
MEANINGS = {math.dist: claim(distance), **dict.fromkeys(AS_THEY_ARE, BY_OPERATORS)}


OF_BASE, BY_ITS_METHOD, BY_PLACES = claim(of_base), claim(by_its_method), claim(by_places)


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means in which such an array or number takes part."""
    kind = type(fn)
    if fn is np.ndarray.__array_ufunc__:
        return OF_UFUNC
    if fn is np.ndarray.__array_function__:
        return OF_FUNCTION
    if of_implementation(fn) is not None:
        return OF_IMPLEMENTATION
    if values and isinstance(values[0], np.ndarray) and not is_compiled(type(values[0])):
        cls = type(values[0])
        if kind in (METHOD, METHOD_OF_ARRAYS) and fn.__objclass__ is np.ndarray:
            if fn.__name__ in MOVES and adds_to_base(cls, fn.__name__) and has_ways_of_its_own(cls):
                return OF_BASE
        elif is_asked_of_class(kind, fn, cls):
            return BY_ITS_METHOD if has_ways_of_its_own(cls) else None
    if fn is np.concatenate and values and is_list_of_its_own(type(values[0])):
        return BY_PLACES
    iterates, computing = takes_items(kind, fn), computes(kind, fn, values)
    if not iterates and not computing:
        return None
    types = types_in(values)
    if iterates and any(map(iterates_itself, types)):
        return MEANINGS.get(fn, OF_PLAIN)
    own = [t for t in types if has_ways_of_its_own(t)]
    of_arrays = any([issubclass(t, np.ndarray) for t in own])
    if not computing:
        return OF_PLAIN if of_arrays and fn in MAKING else None
    if not of_arrays:
        of_python = OF_NUMBERS if kind is FunctionType else MEANINGS.get(fn, OF_PLAIN)
        return of_python if own else None
    return None if writes_to_arrays(fn, [type(x) for x in values], len(values), ()) else OF_NUMBERS


def is_list_of_its_own(cls: type) -> bool:
    """Is it a class of lists that says itself what the items are?"""
    if cls is list or not issubclass(cls, list):
        return False
    return any([own_method(cls, name) is not MISSING for name in ("__iter__", "__getitem__")])


def is_asked_of_class(kind: type, fn: Any, cls: type) -> bool:
    """Is it an operator on items or in place, for which the class has a method?"""
    if kind is not BuiltinFunctionType or fn not in ITEMS:
        return False
    return own_method(cls, f"__{fn.__name__}__") is not MISSING


def takes_items(kind: type, fn: Any) -> bool:
    """Does it iterate over a list or a tuple that it is given, whatever class that is of?"""
    return kind in (np.ufunc, ARRAY_FUNCTION) or (kind is BuiltinFunctionType and fn in ITERATING)


ITEMS = {operator.getitem, operator.setitem, operator.delitem}
ITEMS |= {getattr(operator, f"i{name}") for name in TWO_SIDED}
MAKING = {np.asarray, np.ascontiguousarray, np.asfortranarray}  # arrays of no class
ITERATING = {np.array, np.asanyarray, math.fsum, *MAKING, *MEANINGS}
NUMBERS = (*PLAIN,)
METHOD_OF_ARRAYS = type(np.ndarray.sum)


def computes(kind: type, fn: Any, values: Args) -> bool:
    """Is it a function of NumPy's, or an operator or a method of arrays, that gives new numbers?"""
    if kind is np.ufunc:
        return True
    if kind is ARRAY_FUNCTION:
        return fn.__name__ not in MOVING
    if kind is UFUNC_METHOD and fn.__objclass__ is np.ufunc:
        return fn.__name__ != "at"
    if kind is METHOD_OF_ARRAYS and fn.__objclass__ is np.ndarray:
        return fn.__name__ in METHODS
    if kind is METHOD and fn.__objclass__ is np.ndarray:
        return fn.__name__ in OPERATORS and not fn.__name__.startswith("__i")
    if kind is METHOD and issubclass(fn.__objclass__, NUMBERS):
        return fn.__name__ in ARITHMETIC
    if kind is METHOD_OF_ARRAYS and issubclass(fn.__objclass__, NUMBERS):
        return not fn.__name__.startswith("_")
    if kind is FunctionType:
        return is_of_libraries(fn) and not any(map(callable, values))
    if kind is not BuiltinFunctionType:
        return False
    if fn.__module__ in ("math", "cmath"):
        return True
    return fn in COMPILED and protocols.is_compiled_for(fn, values)


COMPILED = protocols.OPERATORS | protocols.FURTHER


def is_of_libraries(fn: Any) -> bool:
    """Is it a Python function of SciPy or a method of Fraction, with a rule?"""
    package = fn.__module__.partition(".")[0] if type(fn.__module__) is str else ""
    entry = registry.get(fn) if package in ("fractions", "scipy") else None
    return entry is not None and entry.reverse is not None


general.CLAIMS.append(claims)
stays_general.append(lambda x: isinstance(x, type) and has_ways_of_its_own(x))
