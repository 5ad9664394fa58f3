"""Rules of the writers of `csv`: the text of a row is written by the `write` of what they write to.

So the text is noted as any other that was made of numbers (rules/lossy.py), whoever made the writer,
and a `write` of a user's is followed.
Tests: tests/rules/test_lossy.py
"""

import csv
import gc
import io
from collections.abc import Callable, Iterable
from typing import Any

from morula.core.extend import (
    Const,
    NotSpecialised,
    call,
    no_tangent,
    non_differentiable,
    refuses,
)
from morula.rules.calls import runs_body, serves
from morula.rules.lossy import is_one_of

WRITER: Any = type(csv.writer(io.StringIO()))


def write_of(writer: Any) -> Callable[[str], Any]:
    """The `write` that a writer calls with the texts of its rows."""
    return next(x for x in gc.get_referents(writer) if callable(x) and not isinstance(x, type))


def text_of_row(row: Any, dialect: Any) -> str:
    """What a writer of this dialect writes for a row."""
    text = io.StringIO(newline="")
    csv.writer(text, dialect).writerow(row)
    return text.getvalue()


no_tangent(WRITER)
non_differentiable(write_of, text_of_row)


def write_row(writer: Any, row: Any) -> Any:
    """`writer.writerow(row)`."""
    items = list(row) if isinstance(row, Iterable) else row
    return write_of(writer)(text_of_row(items, writer.dialect))


def write_rows(writer: Any, rows: Any) -> None:
    """`writer.writerows(rows)`."""
    for row in rows:
        write_row(writer, row)


BODIES = {WRITER.writerow: write_row, WRITER.writerows: write_rows}


@serves(*BODIES)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(BODIES[fn], *args, **kwargs)


for _method, _body in BODIES.items():
    runs_body(_body, _method)


@refuses
def _(adjoint: Any) -> None:
    """What a program writes to tables is found out when it happens."""
    names = [method.__name__ for method in BODIES]
    for c in adjoint.specialiser.ir.calls():
        read = c.primitive is getattr and type(c.args[1]) is Const and c.args[1].value in names
        if read or is_one_of(c.primitive, (*BODIES, text_of_row)):
            raise NotSpecialised("numbers written to tables")
