"""Which calls are JAX's, and what they mean: callables of JAX's, and what is done with its arrays.

A meaning is a Python function `meaning(f, args, kwargs)` that gives the value of the call, and is
differentiated in the place of it. NumPy's functions get arrays of NumPy's, numbers their values; what
iterates over an array gets its rows; all else is a primitive.
Tests: tests/interop/test_jax_arrays.py, test_jax_primitives.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any

import jax
import numpy as np

from morula.core.extend import no_rule, non_differentiable
from morula.core.general import Claim
from morula.interop.jax.arrays import host
from morula.interop.jax.forms import PLACES
from morula.interop.jax.kinds import (
    is_array,
    is_array_type,
    is_callable_of_jax,
    is_of_jax,
    is_tracer,
)
from morula.interop.jax.primitives import OpaqueResultError, primitive, primitive_at_once
from morula.interop.jax.transforms import (
    constructed,
    is_transform,
    note_transform,
    transformed,
)
from morula.interop.jax.trees import maps_plainly, tree_map
from morula.interop.meanings import (
    ITERATING,
    NUMBERS,
    array_of,
    as_it_is,
    claim,
    forward,
    handed_on,
    is_or_holds,
    iterates,
    plainly,
    reverse,
)
from morula.rules.calls import with_derivative_of
from morula.rules.objects import holds

Args = tuple[Any, ...]
Meaning = Callable[[Any, Args, dict[str, Any]], Any]


# -- meanings --------------------------------------------------------------------------------------


def primitive_or_transform(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A primitive, unless its result turns out to be a function."""
    try:
        return primitive_at_once(fn, args, kwargs)
    except OpaqueResultError:
        note_transform(fn)
    return reverse(transformed, fn, args, kwargs)


def by_numpy(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A call of NumPy's: of arrays of NumPy's."""
    given = [to_numpy(x) for x in args]
    return fn(*given, **{key: to_numpy(x) for key, x in kwargs.items()})


def to_numpy(x: Any) -> Any:
    """An array of JAX's, also in a list or a tuple, as one of NumPy's."""
    if is_array(x):
        return host(x)
    if type(x) in (list, tuple) and holds_array(x):
        return type(x)([to_numpy(item) for item in x])
    return x


def by_value(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function of Python's numbers."""
    return fn(*[host(x).item() if is_array(x) else x for x in args], **kwargs)


def by_rows(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What iterates: over the rows of an array."""
    given = [primitive(tuple, (x,), {}) if is_array(x) else x for x in args]
    return fn(*given, **kwargs)


def rows(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An iterator over the rows of an array."""
    return iter(primitive(tuple, args, {}))


def conversion(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.item()` and the like, by the methods of NumPy's arrays."""
    x, *more = args
    if is_tracer(x):
        return as_it_is(np.asarray, (x,), {})  # raises
    return getattr(host(x), CONVERSIONS[fn.__name__])(*more, **kwargs)


def compiled_method(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A compiled method that is bound to an array, and may give it back: `x.block_until_ready()`."""
    y = as_it_is(fn, args, kwargs)
    return with_derivative_of(y, array_of(fn)) if is_own(y, fn) else y


def is_own(y: Any, method: Any) -> bool:
    """Has a method given the array that it is bound to?"""
    if y is not method.__self__ and is_array(y):
        raise no_rule(method, (method.__self__,))
    return y is method.__self__


def to_host(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`jax.device_get(x)` of an array."""
    return host(*args)


def attribute(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.T` and the like."""
    return primitive(getattr, args, kwargs)


def field(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`module.weight`: what the object holds."""
    return object.__getattribute__(*args[:2])


non_differentiable(is_own)


# -- which calls -----------------------------------------------------------------------------------

PRIMITIVE = Claim(primitive_or_transform, partial(forward, primitive))
BY_NUMPY = claim(by_numpy)
BY_VALUE = claim(by_value)
BY_ROWS = claim(by_rows)
ROWS = claim(rows)
CONVERSION = claim(conversion)
ATTRIBUTE = claim(attribute)
FIELD = claim(field)
PLAINLY = claim(plainly)
HANDED_ON = claim(handed_on)
TRANSFORMED = claim(transformed)
TREE_MAP = claim(tree_map)
CONSTRUCTED = claim(constructed)
METHOD = claim(compiled_method)
TO_HOST = claim(to_host)

_UNARY = "neg pos abs invert"
_BINARY = "add sub mul matmul truediv floordiv mod pow"
OPERATORS = {
    id(fn)
    for fn in (
        *[getattr(operator, name) for name in (_UNARY + " " + _BINARY).split()],
        *[getattr(operator, f"i{name}") for name in _BINARY.split()],
        operator.getitem,
        abs,
        pow,
        divmod,
        round,
    )
}
OPERANDS = (int, float, complex, np.ndarray, np.generic)
CONVERSIONS = {
    "item": "item",
    "_item": "item",
    "tolist": "tolist",
    "__array__": "__array__",
    "__float__": "__float__",
    "__complex__": "__complex__",
    "__int__": "__int__",
    "__index__": "__index__",
}
DIFFERENTIABLE = {"T", "mT", "real", "imag"}
_backed: dict[int, Any] = {}


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means that is JAX's."""
    if id(fn) in _backed:
        return PRIMITIVE
    find = _by_type.get(type(fn))
    if find is not None:
        return find(fn, values)
    if isinstance(fn, type):
        return of_class(fn, values)
    if is_array(getattr(fn, "__self__", None)):
        return METHOD
    return PRIMITIVE if is_callable_of_jax(fn) else None


def of_function(fn: Any, values: Args) -> Claim | None:
    """A function of Python's."""
    if is_callable_of_jax(fn):
        if is_transform(fn):
            return TRANSFORMED
        if maps_plainly(fn, values):
            return TREE_MAP
        if fn is jax.lax.stop_gradient:
            return PLAINLY
        if values and is_array(values[0]):
            if fn is jax.device_get and not is_tracer(values[0]):
                return TO_HOST
            if fn.__name__ in CONVERSIONS:
                return CONVERSION
            if fn.__name__ == "__iter__":
                return ROWS
        return PRIMITIVE
    if any(map(is_array, values)) and is_numpy(fn):
        return of_numpy(fn, values)
    return None


def of_builtin(fn: Any, values: Args) -> Claim | None:
    """A compiled function."""
    if fn is getattr:
        return of_attribute(*values[:2]) if len(values) > 1 else None
    if id(fn) in OPERATORS:
        return of_operator(fn, values)
    if not any(map(is_array, values)):
        return numpys(values) if is_numpy(fn) and any(map(holds_array, values)) else None
    if fn is operator.setitem:
        return numpys(values) if isinstance(values[0], np.ndarray) else None
    if id(fn) in ITERATING:
        return BY_ROWS if iterates(fn, values, is_array) else None
    if id(fn) in NUMBERS or getattr(fn, "__module__", None) in ("math", "cmath"):
        return PLAINLY if any(map(is_tracer, values)) else BY_VALUE
    return numpys(values) if is_numpy(fn) else None


def of_attribute(x: Any, name: str) -> Claim | None:
    """`x.name`."""
    if is_array(x):
        if name in DIFFERENTIABLE:
            return ATTRIBUTE
        return HANDED_ON if name == "at" or callable(getattr(x, name, None)) else PLAINLY
    return FIELD if is_field(x, name) else None


def is_field(x: Any, name: str) -> bool:
    """Does an object itself hold an attribute, which a `__getattribute__` of JAX's would read?"""
    custom = type(x).__getattribute__
    if type(custom) is not FunctionType or not is_of_jax(custom.__globals__.get("__name__")):
        return False
    return holds(x, name) and not isinstance(object.__getattribute__(x, name), MethodType)


def of_operator(fn: Any, values: Args) -> Claim | None:
    """An operator with an array of JAX's among its operands."""
    if values and type(values[0]) in PLACES:
        return HANDED_ON
    if not any(map(is_array, values)):
        return None
    if fn is operator.getitem:
        if is_array(values[0]):
            return PRIMITIVE
        return numpys(values) if isinstance(values[0], np.ndarray) else None
    return PRIMITIVE if all(is_array(x) or isinstance(x, OPERANDS) for x in values) else None


def of_class(fn: Any, values: Args) -> Claim | None:
    """The construction of a class."""
    if is_transform(fn):
        return TRANSFORMED
    if is_callable_of_jax(fn):
        return PRIMITIVE if is_scalar_type(fn) else CONSTRUCTED
    if not any(map(is_array, values)):
        return None
    if id(fn) in ITERATING:
        return BY_ROWS if iterates(fn, values, is_array) else None
    if id(fn) in NUMBERS:
        return PLAINLY if any(map(is_tracer, values)) else BY_VALUE
    return numpys(values) if issubclass(fn, np.generic) else None


def of_numpy(fn: Any, values: Args) -> Claim | None:
    """A function of NumPy's that may call a method: `np.sum(x)` of a tracer is `x.sum()`."""
    if any(map(holds_tracer, values)):
        return PRIMITIVE
    return numpys(values) if any(is_array(x) or holds_array(x) for x in values) else None


def of_descriptor(fn: Any, values: Args) -> Claim | None:
    """A method of a compiled class."""
    if fn.__objclass__ in (np.ndarray, np.generic) and any(map(is_array, values[1:])):
        return numpys(values)
    return None


def numpys(values: Args) -> Claim:
    """A call of NumPy's, which raises what JAX says if it is given a tracer."""
    return PLAINLY if any(map(holds_tracer, values)) else BY_NUMPY


def holds_tracer(x: Any) -> bool:
    """Is it a tracer, or a list or a tuple that holds one?"""
    return is_tracer(x) or (type(x) in (list, tuple) and any(map(holds_tracer, x)))


def nobody(fn: Any, values: Args) -> None:
    """What is resolved to a call of something else."""
    return None


def is_numpy(fn: Any) -> bool:
    """Is it a function of NumPy's or SciPy's?"""
    return str(getattr(fn, "__module__", "")).split(".")[0] in ("numpy", "scipy")


def holds_array(x: Any) -> bool:
    """Does a list or a tuple hold an array of JAX's?"""
    return type(x) in (list, tuple) and is_or_holds(x, is_array)


def is_scalar_type(fn: Any) -> bool:
    """Is it `jnp.float32` or its like?"""
    return hasattr(fn, "dtype") and type(fn) is not type


_by_type: dict[type, Callable[[Any, Args], Claim | None]] = {
    FunctionType: of_function,
    BuiltinFunctionType: of_builtin,
    np.ufunc: of_numpy,
    type(np.sum): of_numpy,
    MethodDescriptorType: of_descriptor,
    WrapperDescriptorType: of_descriptor,
    MethodType: nobody,
    partial: nobody,
}

non_differentiable(holds_array)


def belongs(x: Any) -> bool:
    """Is a callable or a type JAX's, so that a program with it is not specialised?"""
    if id(x) in _backed:
        return True
    if isinstance(x, type) and is_array_type(x):
        return True
    return x is not None and is_callable_of_jax(x)


def back_by_jax(f: Any) -> None:
    """Let calls of `f` be primitives."""
    _backed[id(f)] = f
