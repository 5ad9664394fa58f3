"""Questions that compiled functions ask of objects: in, any, all, the text of an object, its order.

What stands here in Python is what they mean where an object, or what gives the objects, is of a
class that answers by code of its own.
Tests: tests/rules/test_special_methods.py
"""

import io
import operator
import string
import sys
from types import FunctionType
from typing import Any

from morula.core.extend import non_differentiable
from morula.rules.calls import lookup

ASKS_OBJECTS = True  # as all modules do whose functions deal with objects of users


def is_contained(xs: Any, x: Any) -> bool:
    """`x in xs`, item by item; lists and tuples look at what they hold, whatever iterating gives."""
    kind = list if isinstance(xs, list) else tuple if isinstance(xs, tuple) else None
    for y in xs if kind is None else kind.__iter__(xs):  # noqa: SIM110
        if y is x or y == x:
            return True
    return False


def is_any(xs: Any) -> bool:
    """`any(xs)`."""
    for x in xs:  # noqa: SIM110
        if x:
            return True
    return False


def are_all(xs: Any) -> bool:
    """`all(xs)`."""
    for x in xs:  # noqa: SIM110
        if not x:
            return False
    return True


def is_true(fn: Any, item: Any) -> bool:
    """Does a function accept an item?"""
    return bool(fn(item))


def is_same_or_equal(y: Any, x: Any) -> bool:
    """Does a container that holds `y` find `x` by it?"""
    return y is x or bool(y == x)


def is_less(x: Any, y: Any) -> bool:
    """`x < y`, as sorting asks for it."""
    return bool(x < y)


def is_greater(x: Any, y: Any) -> bool:
    """`x > y`, as max asks for it."""
    return bool(x > y)


def formatted(value: Any, conversion: str, spec: Any) -> str:
    """One `{value!conversion:spec}` of an f-string."""
    if conversion == "s":
        value = str(value)
    elif conversion == "r":
        value = repr(value)
    elif conversion == "a":
        value = ascii(value)
    return format(value, spec)


def print_each(*values: Any, file: Any = None, **options: Any) -> None:
    """`print(…)`."""
    texts = [str(value) for value in values]
    if writes_itself(type(file)):
        write_each(texts, file, **options)
    else:
        print_texts(texts, sys.stdout if file is None else file, options)


def write_each(
    texts: list[str], file: Any, sep: Any = None, end: Any = None, flush: bool = False
) -> None:
    """Print to a file that is written in Python: it gets text by text."""
    for i, text in enumerate(texts):
        if i > 0:
            file.write(" " if sep is None else sep)
        file.write(text)
    file.write("\n" if end is None else end)
    if flush:
        file.flush()


def print_texts(texts: list[str], file: Any, options: dict[str, Any]) -> None:
    """Print to any other."""
    print(*texts, file=file, **options)


def writes_itself(cls: Any) -> bool:
    """Has a class of files a `write` in Python?"""
    return isinstance(cls, type) and type(lookup(cls, "write")) is FunctionType


def is_read_again(types: tuple[Any, ...]) -> bool:
    """May what is printed be read again: is there a file in memory, or one of a user's?"""
    if isinstance(sys.stdout, io.StringIO):
        return True
    return any([t is io.StringIO or writes_itself(t) for t in types])


non_differentiable(print_texts, writes_itself, is_read_again)


def range_of(*limits: Any) -> range:
    """`range(…)` of what counts as an integer."""
    return range(*[operator.index(limit) for limit in limits])


def filled_in(text: str, *values: Any, **named: Any) -> str:
    """`text.format(…)`: each value is asked for its text."""
    return string.Formatter().vformat(text, values, named)


def filled_in_from(text: str, named: Any) -> str:
    """`text.format_map(named)`."""
    return string.Formatter().vformat(text, (), named)


def joined(separator: str, texts: Any) -> str:
    """`separator.join(texts)`."""
    return str.join(separator, list(texts))


class Key:
    """What `functools.cmp_to_key` makes of an object."""

    __slots__ = ("compare", "obj")
    __hash__ = None

    def __init__(self, compare: Any, obj: Any) -> None:
        self.compare = compare
        self.obj = obj

    def __lt__(self, other: Any) -> Any:
        return self.compare(self.obj, other.obj) < 0

    def __gt__(self, other: Any) -> Any:
        return self.compare(self.obj, other.obj) > 0

    def __eq__(self, other: Any) -> Any:
        return self.compare(self.obj, other.obj) == 0

    def __le__(self, other: Any) -> Any:
        return self.compare(self.obj, other.obj) <= 0

    def __ge__(self, other: Any) -> Any:
        return self.compare(self.obj, other.obj) >= 0
