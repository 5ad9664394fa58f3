"""The module tokenize: what it makes of a text is constant.

Up to CPython 3.11 it is one long generator in Python, of which a pullback would take minutes to make.
Tests: tests/rules/test_texts.py
"""

from __future__ import annotations

import io
import itertools
import tokenize
from collections.abc import Iterator
from typing import Any

from morula.core.extend import NONE, adjoint_object, general, python_function
from morula.rules.calls import serves
from morula.rules.iteration import CONSTANT, originates
from morula.rules.lossy import is_marked, mark


@serves(tokenize.tokenize, tokenize.generate_tokens)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tokens of a text; lines that code of the user's reads are its own affair."""
    source = getattr(args[0], "__self__", None) if args else None
    if not isinstance(source, io.IOBase):
        return python_function(fn, args, kwargs)
    y = fn(*args, **kwargs)
    if is_marked(source, general.LOSSY):
        y = noted(y)
    return Tokens(y), lambda ȳ: (NONE,) * (1 + len(args) + len(kwargs))


class Tokens(itertools.chain):
    """An iterator of whose items it is known that they are constant."""

    __slots__ = ()


adjoint_object.register(Tokens, lambda x: None)


@originates(Tokens)
def _(iterator: Any, item: Any, skip: int) -> Any:
    return CONSTANT


def noted(tokens: Iterator[Any]) -> Iterator[Any]:
    """The tokens of a text that was made of numbers: so were they."""
    for token in tokens:
        mark(token.string, general.LOSSY)
        yield token
