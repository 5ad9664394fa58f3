"""ctypes and addresses: memory of arrays as C sees it, which is not followed but watched.

A ctypes object holds what it was made of, a pointer holds the array that it points to. The address
of an array is a number; the arrays whose addresses were asked for are known as long as they live. So
a foreign function, or a write through a ctypes object, that changes an array is found as any other
change by a function that has no rule.
Tests: tests/rules/test_foreign.py
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    non_differentiable,
    parts_of,
    rrule,
    shows_memory,
    stays_general,
)
from morula.rules.arrays.addresses import expose, exposed_at, is_at
from morula.rules.arrays.memory import owner_of
from morula.rules.arrays.types import Anything

CData: Any = ctypes._SimpleCData.__base__
Addresses: Any = type(np.empty(0).ctypes)
Reference: Any = type(ctypes.byref(ctypes.c_int()))
FUNCTION: Any = type(ctypes.memmove).__base__


@parts_of.register(int)
def _(address: int) -> Any:
    """The arrays at an address that was asked for."""
    return exposed_at(address) or None


@parts_of.register(memoryview)
@parts_of.register(Reference)
@parts_of.register(CData)
def _(x: Any) -> Any:
    """The arrays whose memory it shows, and what it holds itself."""
    shown = {id(owner): owner for owner in arrays_in(x)}
    return {"contents": bytes(x), **shown} if isinstance(x, CData) else shown


def arrays_in(x: Any) -> list[np.ndarray]:
    """The arrays whose memory something shows."""
    found, waiting = {id(x): x}, [x]
    while waiting:
        for part in behind(waiting.pop()):
            if id(part) not in found:
                found[id(part)] = part
                waiting.append(part)
    return [owner_of(part) for part in found.values() if isinstance(part, np.ndarray)]


def behind(x: Any) -> list[Any]:
    """What something keeps alive, or points to, of which it may show the memory."""
    if isinstance(x, CData):
        pointed = exposed_at(ctypes.addressof(x)) | exposed_at(address_in(x) or 0)
        return [x._objects, x._b_base_, *vars(x).values(), *pointed.values()]
    if isinstance(x, Reference):
        return [x._obj]
    if isinstance(x, dict):
        return list(x.values())
    return [shown_by(x)] if isinstance(x, memoryview) else []


def shown_by(m: memoryview) -> Any:
    """What has the memory that a memoryview shows."""
    try:
        return m.obj
    except ValueError:  # it has been released
        return None


def address_in(x: Any) -> int | None:
    """The address that a pointer, or a number of C's, is."""
    if isinstance(x, ctypes._Pointer):
        return ctypes.cast(x, ctypes.c_void_p).value
    return x.value if isinstance(x, ctypes._SimpleCData) and isinstance(x.value, int) else None


for _type in (CData, Reference, memoryview):
    shows_memory.register(_type, lambda x: bool(arrays_in(x)))
del _type


def is_in_array(x: Any) -> bool:
    """Lies what ctypes holds in the memory of an array?"""
    return isinstance(x, CData) and any([is_at(y, ctypes.addressof(x)) for y in arrays_in(x)])


def address_of(x: Any) -> int:
    """Where it is; what it shows may be written to there from now on."""
    for shown in arrays_in(x):
        expose(shown)
    return ctypes.addressof(x)


non_differentiable(is_in_array, address_of)


@rrule(ctypes.addressof)
def _(x: Anything):
    return address_of(x), lambda ȳ: (NONE,)


def is_foreign(x: Any) -> bool:
    """Is it a type that shows the memory of arrays, or a value of one?"""
    kind = x if isinstance(x, type) else type(x)
    return issubclass(kind, (CData, Addresses)) and not issubclass(kind, FUNCTION)


stays_general.append(is_foreign)
