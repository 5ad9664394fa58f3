"""Forward mode of memoryview, np.frombuffer and np.ndarray(buffer=).

The tangents of the array whose memory they show are kept beside it (memory.py) from then on.
Tests: tests/rules/arrays/test_memoryviews.py
"""

import operator
from typing import Any

import numpy as np

from morula.core.cotangents import ZERO
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.memory import current
from morula.mixed_mode.push import push, pushes, split_call
from morula.mixed_mode.tangents import Pass
from morula.mixed_mode.writing import UNKNOWN, item, put_all
from morula.rules.arrays import memoryviews as reverse


def _showing(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if not any(isinstance(x, (np.ndarray, memoryview)) for x in args):
            return NotImplemented  # bytes, which may have been made of numbers
        for x, ẋ in zip(args, tangents, strict=True):
            if isinstance(x, np.ndarray):
                now = current(run, x, ẋ)
                put_all(run, x, now, now)
        return split_call(fn, args, keywords), ZERO


for _fn in (memoryview, np.frombuffer, np.ndarray, np.ndarray.__new__):
    _showing(_fn)


def _reading(fn: Any, by: Any = None) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        m = args[0]
        if type(m) is not memoryview or not reverse.is_of_array(m):
            return NotImplemented
        return push(run, by or fn, ZERO, (np.asarray(m), *args[1:]), (ZERO,) * len(args), keywords)


for _fn in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.copy):
    _reading(_fn)
_reading(memoryview.tolist, np.ndarray.tolist)
del _fn


@pushes(reverse.view_of)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return reverse.view_of(*args), ZERO


@pushes(operator.getitem)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    m, index = args
    if type(m) is not memoryview or not reverse.is_of_array(m):
        return NotImplemented
    y = m[index]
    if isinstance(y, (memoryview, int)):
        return y, ZERO
    return y, push(run, operator.getitem, ZERO, (np.asarray(m), index), (ZERO, ZERO))[1]


@pushes(operator.setitem)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    m, index, value = args
    if type(m) is not memoryview or not reverse.is_of_array(m):
        return NotImplemented
    reverse.raise_if_invalid(m, index, value)
    if isinstance(value, (bytes, bytearray)):
        value = np.frombuffer(value, m.format)
    return item(
        run, operator.setitem, [np.asarray(m), index, value], [UNKNOWN, ZERO, tangents[2]], {}, {}
    )
