"""The primitives of `match`: is it a sequence, is it a mapping, what does a class or a mapping hold.

They are ordinary Python, so no rule has to say what their cotangents are.
"""

from __future__ import annotations

from typing import Any

_SEQUENCE, _MAPPING, _MATCHES_ITSELF = 1 << 5, 1 << 6, 1 << 22  # Py_TPFLAGS


def is_sequence(x: Any) -> bool:
    """May `[a, b]` match it?"""
    return bool(type(x).__flags__ & _SEQUENCE)


def is_mapping(x: Any) -> bool:
    """May `{key: value}` match it?"""
    return bool(type(x).__flags__ & _MAPPING)


def match_keys(x: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What a mapping has under these keys, or None if it lacks one."""
    check_keys(keys)
    found: tuple[Any, ...] = ()
    for key in keys:
        value = x.get(key, _MISSING)
        if value is _MISSING:
            return None
        found = (*found, value)
    return found


_MISSING = object()


def check_keys(keys: tuple[Any, ...]) -> None:
    """An error if a key stands in a pattern twice."""
    seen = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)


def match_class(x: Any, cls: Any, n: int, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """The attributes that `cls(a, b, name=c)` asks for, n of them by position; None: no match."""
    found: tuple[Any, ...] = ()
    if not is_instance(x, cls):
        return None
    if n and matches_itself(cls, n):
        found, n = (x,), 0
    for name in (*positional_names(cls, n, names), *names):
        value = getattr(x, name, _MISSING)
        if value is _MISSING:
            return None
        found = (*found, value)
    return found


def is_instance(x: Any, cls: Any) -> bool:
    """`isinstance`, with the message of a pattern."""
    if not isinstance(cls, type):
        raise TypeError("called match pattern must be a class")
    return isinstance(x, cls)


def matches_itself(cls: type, n: int) -> bool:
    """Is the one positional pattern for the object as a whole, as in `float(x)`?"""
    if hasattr(cls, "__match_args__") or not cls.__flags__ & _MATCHES_ITSELF:
        return False
    if n > 1:
        raise TypeError(f"{cls.__name__}() accepts 1 positional sub-pattern ({n} given)")
    return True


def positional_names(cls: type, n: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes that n positional patterns stand for."""
    if not n:
        return ()
    given = getattr(cls, "__match_args__", ())
    if not isinstance(given, tuple):
        kind = type(given).__name__
        raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {kind})")
    if len(given) < n:
        plural = "" if len(given) == 1 else "s"
        raise TypeError(
            f"{cls.__name__}() accepts {len(given)} positional sub-pattern{plural} ({n} given)"
        )
    twice = [name for i, name in enumerate(given[:n]) if name in (*names, *given[:i])]
    if twice:
        raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {twice[0]!r}")
    return given[:n]
