"""Tracebacks that show the functions that were inlined.

An exception that leaves an emitted program passes a handler, which puts a frame into its traceback
for every function whose body the instruction that raised was inlined from: named as that function,
at its line. Before that nothing is done, so that a program without exceptions pays nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType, FunctionType, TracebackType
from typing import Any

from morula.core.context import break_off
from morula.core.ir import Inlined, Position
from morula.core.places import tell_place

Places = dict[int, Position]  # of the instructions in inlined code, by their offsets


def restore(places: Places, doubtful: set[int], error: BaseException) -> bool:
    """Put frames of inlined functions into the traceback of an exception that is passing.

    It breaks off the reverse pass, if the program has begun one. Does the exception come from what
    is doubtful? Then it is not to pass, but the program to begin anew.
    """
    here = sys._getframe(1)
    break_off(here)
    entry = error.__traceback__
    while entry is not None and entry.tb_frame is not here:
        entry = entry.tb_next
    if entry is not None and entry.tb_lasti in doubtful and isinstance(error, Exception):
        return True
    if entry is None or entry.tb_lasti not in places:
        tell_place(error)
        return False
    behind, position = entry.tb_next, places[entry.tb_lasti]
    while position.inlined is not None:
        frame = frame_of(position.inlined)
        behind = TracebackType(behind, frame, -1, position.line or frame.f_lineno)
        position = position.inlined.at
    entry.tb_next = behind
    tell_place(error)
    return False


def frame_of(inlined: Inlined) -> FrameType:
    """A frame with the name, the file and the globals of a function that was inlined."""
    code = inlined.code
    lookalike = _own_frame.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    make = FunctionType(lookalike, inlined.namespace, code.co_name, (sys._getframe,))
    frame: FrameType = make()
    return frame


def _own_frame(frame: Callable[[], Any] = sys._getframe) -> Any:
    return frame()


def handler_of(places: Places, doubtful: set[int]) -> Callable[[BaseException], bool]:
    """What a program calls with an exception that is passing."""
    return functools.partial(restore, places, doubtful)


def exception_table(entries: list[tuple[int, int, int, int, bool]]) -> bytes:
    """The table of handlers of a code object, as CPython packs it.

    An entry is the offsets of the beginning and the end of what is protected, and that of the
    handler; how much is left on the stack; whether the offset of the instruction is put on it.
    """
    table = bytearray()
    for start, end, target, depth, lasti in entries:
        numbers = [start // 2, (end - start) // 2, target // 2, depth << 1 | lasti]
        for i, number in enumerate(numbers):
            digits = [number & 63]
            while number := number >> 6:
                digits.append(number & 63)
            packed = [digit | 64 for digit in digits[:0:-1]] + [digits[0]]
            packed[0] |= 128 if i == 0 else 0
            table += bytes(packed)
    return bytes(table)
