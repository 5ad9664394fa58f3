"""Where a gradient went wrong: `debug_nans` and `why`.

Both look on while a function is differentiated (core/watch.py): at each call, what served it, with
which values and from which line; in the reverse pass, at the cotangents that it gets and gives.
Tests: tests/rules/test_diagnosis.py
"""

from __future__ import annotations

import numbers
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from morula.core.extend import (
    ZERO,
    AbstractZero,
    ArgumentError,
    NonFiniteError,
    Tangent,
    UnsupportedError,
    accumulate,
    adjoint_object,
    by_the_general_path,
    find_rrule,
    general,
    interface,
    is_zero,
    parts_of,
    places,
    qualified_name,
    registry,
    unthunk,
    watch,
)
from morula.rules.numeric import is_numeric
from morula.rules.steering import ignore_derivatives
from morula.rules.vectors import Foreign, foreign_of, tracing


class Record:
    """One call: what was called, with which values, where, and what served it."""

    __slots__ = ("args", "cotangents", "fn", "how", "number", "place", "reached", "y")

    def __init__(self, number: int, fn: Any, args: tuple[Any, ...], place: places.Place) -> None:
        self.number = number
        self.fn = fn
        self.args = args
        self.place = place
        self.y: Any = None
        self.how = ""
        self.reached = False  # by a cotangent that is not zero
        self.cotangents: list[Any] = [ZERO] * len(args)

    @property
    def name(self) -> str:
        """What was called, as its user knows it."""
        return qualified_name(self.fn)


def served_by(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What says what a call means."""
    if fn is ignore_derivatives:
        return "ignore_derivatives: it counts as constant"
    if is_numeric(fn):
        return "finite differences, by numeric_rule"
    rule = find_rrule(fn, args, kwargs)
    if rule is not None and not general.is_claimed(fn, args, kwargs):
        code = rule.function.__code__
        return f"the rule at {short_path(code.co_filename)}:{code.co_firstlineno}"
    if is_constant_of(fn, args):
        return "it has no derivative"
    return "the library of its values" if general.is_claimed(fn, args, kwargs) else "its own code"


def short_path(file: str) -> str:
    """The path of a file of Morula from its folder on."""
    return (
        str(Path(file).relative_to(Path(places.HERE).parent))
        if file.startswith(places.HERE)
        else file
    )


# -- numbers that are not finite -------------------------------------------------------------------


def is_finite(x: Any) -> bool:
    """Are all numbers in a value or a cotangent finite?"""
    x = numbers_of(unthunk(x))
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.kind not in "fc" or bool(np.isfinite(x).all())
    if isinstance(x, numbers.Complex):
        return not isinstance(x, (float, complex)) or bool(np.isfinite(x))
    if isinstance(x, (tuple, list)):
        return all(map(is_finite, x))
    if isinstance(x, dict):
        return all(map(is_finite, x.values()))
    return all(map(is_finite, x._fields.values())) if isinstance(x, Tangent) else True


def numbers_of(x: Any) -> Any:
    """An array of another library's as one of NumPy's, if it is there: a tracer is not."""
    library = foreign_of(x)
    if library is None or not is_there(x, library):
        return x
    x = library.to_numpy(x)
    return x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype.kind == "V" else x


def is_there(x: Any, library: Foreign) -> bool:
    """Does an array hold numbers that have derivatives? Some are to be computed yet."""
    try:
        return library.is_leaf(x)
    except ArgumentError:
        return False


def has_no_space(x: Any) -> bool:
    """Is it an array of another library's that has no derivative: of integers or truth values?"""
    library = foreign_of(x)
    try:
        return library is not None and not library.is_leaf(x)
    except ArgumentError:
        return False


def finite_part(x: Any) -> Any:
    """A cotangent with zeros for what is not finite."""
    x = unthunk(x)
    library, taken = foreign_of(x), numbers_of(x)
    if library is not None and taken is not x:
        return library.from_numpy(finite_part(taken), library.kind(x), np.shape(x))
    if isinstance(x, (np.ndarray, np.generic)):
        return np.where(np.isfinite(x), x, x.dtype.type(0))[()] if x.dtype.kind in "fc" else x
    if isinstance(x, (float, complex)):
        return x if np.isfinite(x) else type(x)(0)
    if isinstance(x, (tuple, list)):
        return type(x)([finite_part(item) for item in x])
    if isinstance(x, dict):
        return {key: finite_part(item) for key, item in x.items()}
    if isinstance(x, Tangent):
        fields = {key: finite_part(x[key]) for key in x}
        return Tangent[x._primal](fields)
    return x


class Event(NamedTuple):
    """A call's pullback that got a finite cotangent and gave one that is not."""

    record: Record
    time: int  # which call of this pullback
    ȳ: Any
    cotangents: Any


class Watching(watch.Observer):
    """Records calls, and finds the one that a number that is not finite came from."""

    most_tries = 64

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.in_pass = False
        self.events: list[Event] = []
        self.times: dict[int, int] = {}
        self.only: tuple[int, int] | None = None  # the event that is not mended
        self.born: Record | None = None  # the first call that gave what is not finite

    def call(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Look on while a call is differentiated."""
        place = places.place_of(sys._getframe(2))
        how = served_by(fn, args, kwargs)
        number = self.number
        if general.is_claimed(fn, args, kwargs):  # what happens within is the library's affair
            with watch.resting(self):
                y, back = general.call(fn, *args, **kwargs)
        else:
            y, back = general.call(fn, *args, **kwargs)
        is_leaf = self.number == number
        self.number += 1
        record = Record(self.number, fn, (*args, *kwargs.values()), place)
        record.y, record.how = y, how
        self.seen(record, is_leaf)
        if self.born is None and not is_finite(y) and all(map(is_finite, record.args)):
            self.born = record
        return y, partial(self.back, record, back)

    def seen(self, record: Record, is_leaf: bool) -> None:
        """A call has been made; a leaf is one within which no other was seen."""

    def back(self, record: Record, back: Any, ȳ: Any) -> Any:
        """Look on while a call is pulled back."""
        cotangents = back(ȳ)
        if not self.in_pass:
            return cotangents
        self.pulled(record, ȳ, cotangents)
        if is_finite(cotangents) or not is_finite(ȳ):
            return cotangents
        time = self.times[record.number] = self.times.get(record.number, 0) + 1
        if self.only is None:
            self.events.append(Event(record, time, ȳ, cotangents))
        elif self.only != (record.number, time):
            return finite_part(cotangents)
        return cotangents

    def pulled(self, record: Record, ȳ: Any, cotangents: Any) -> None:
        """A call has been pulled back."""

    def pass_with(self, run: Callable[[], Any], only: tuple[int, int] | None) -> Any:
        """One reverse pass, in which no number but one becomes infinite or NaN."""
        self.only, self.in_pass = only, True
        self.times.clear()
        try:
            return run()
        finally:
            self.in_pass = False

    def culprit(self, run: Callable[[], Any]) -> Event:
        """The first event that by itself makes the result what it is."""
        for event in self.events[: self.most_tries]:
            if not is_finite(self.pass_with(run, (event.record.number, event.time))):
                return event
        return self.events[0]


class NanWatch(Watching):
    """Raises an error at the end of a reverse pass whose result is not finite."""

    def pull(self, run: Callable[[], Any]) -> Any:
        """A reverse pass, looked at."""
        if self.in_pass:
            return run()
        self.events.clear()
        result = self.pass_with(run, None)
        if self.events and not is_finite(result):
            raise not_finite(self.culprit(run), self.born)
        return result


def not_finite(event: Event, born: Record | None) -> NonFiniteError:
    """The error that says where the first number came from that is not finite."""
    record = event.record
    cotangents = event.cotangents[1:]
    i = next((i for i, c in enumerate(cotangents) if not is_finite(c)), None)
    what = "of the callable" if i is None else f"of argument {i}"
    x̄ = event.cotangents[0] if i is None else cotangents[i]
    lines = [
        f"the cotangent {what} of {record.name} is not finite, that of its result is",
        f"  {record.place}",
        f"  arguments {', '.join(map(short, record.args))};  result {short(record.y)}",
        f"  cotangent of the result {short(unthunk(event.ȳ))}, {what} {short(unthunk(x̄))}",
        f"  served by {record.how}",
    ]
    if born is not None and not (is_finite(record.y) and all(map(is_finite, record.args))):
        lines.append(f"  numbers that are not finite came first from {born.name}:\n  {born.place}")
    return NonFiniteError("\n".join(lines))


def short(x: Any) -> str:
    """A value on part of a line."""
    text = " ".join(repr(x).split())
    return text if len(text) <= 70 else text[:67] + "..."


@contextmanager
def debug_nans() -> Iterator[None]:
    """Within it, a gradient that is not finite is an error, which names the line it comes from.

    That is the call whose pullback was the first to make an infinite number or NaN of finite ones,
    among those that matter: what is later masked out is no error. All goes by the general path, more
    slowly; the function runs once, its reverse pass once more for each suspect.

    Raises:
        NonFiniteError: at the end of a reverse pass.

    >>> import numpy as np
    >>> from morula import NonFiniteError, gradient
    >>> with debug_nans():
    ...     gradient(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum(), np.array([0.0, 4.0]))
    (array([0.  , 0.25]),)
    >>> try:
    ...     with debug_nans():
    ...         gradient(lambda x: np.sqrt(x - 1.0), 1.0)
    ... except NonFiniteError as error:
    ...     print(str(error).splitlines()[0])
    the cotangent of argument 0 of numpy.sqrt is not finite, that of its result is
    """
    with by_the_general_path(), watch.observing(NanWatch()):
        yield


# -- zeros -----------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """Why the gradient by one number, array or constant in the arguments is what it is."""

    path: str  # "x", "params['w'][0]"
    kind: str  # "zero", "None" or "not finite"
    reason: str
    place: places.Place | None

    def __str__(self) -> str:
        text = f"{self.path}: {self.kind}. {self.reason}"
        return text if self.place is None else f"{text}\n    {self.place}"


class Served(NamedTuple):
    """What served a call."""

    place: places.Place
    name: str
    how: str

    def __str__(self) -> str:
        return f"{self.place.file}:{self.place.line}  {self.name}: {self.how}"


class Why:
    """What `why` found: the `value`, the `gradients`, the `findings`, and what served the `calls`."""

    def __init__(
        self, value: Any, gradients: tuple[Any, ...], findings: list[Finding], calls: list[Served]
    ) -> None:
        self.value = value
        self.gradients = gradients
        self.findings = findings
        self.calls = calls

    def __str__(self) -> str:
        found = [str(f) for f in self.findings] or ["no gradient is zero, None or not finite"]
        return "\n".join([*found, "calls:", *[f"  {c}" for c in self.calls]])

    __repr__ = __str__


def why(f: Any, /, *args: Any, **kwargs: Any) -> Why:
    """Why gradients of `f` are zero, None, infinite or NaN: the line where the dependence ended.

    A zero gradient has a cause: a comparison, `int()`, a rule that gives no cotangent, a slope
    that is zero at this point, a result that is not used. For each number, array or constant in the
    arguments with such a gradient the result has one of the `findings` for each line that is a
    cause. `calls` says what served each call: a rule and where it stands, finite differences, or
    nothing where there is no derivative. Runs `f` once; print the result to read it.

    >>> import math
    >>> print(why(lambda x, n: math.floor(x) * n, 1.5, 2).findings[0].reason)
    math.floor ends it: it has no derivative
    """
    observer = WhyWatch()
    args = tuple([fresh(a) for a in args])
    with by_the_general_path(), watch.observing(observer):
        value, back = interface.differentiate(f, *args, **kwargs)
        one = interface._one(value, f)
        gradients = back(one)[1:]
    names = names_of(f, len(args))
    findings = []
    for name, x, gradient in zip(names, args, gradients, strict=True):
        for path, leaf, g in leaves_of(name, x, gradient):
            findings += observer.explain(path, leaf, g, args, value)
    calls = dict.fromkeys(Served(r.place, r.name, r.how) for r in observer.records)
    return Why(value, gradients, findings, list(calls))


def fresh(x: Any) -> Any:
    """A number as an object of its own, by which it is followed."""
    if type(x) in (float, complex):
        return x * 1.0
    return type(x)(x) if isinstance(x, (np.floating, np.complexfloating)) else x


def names_of(f: Any, n: int) -> list[str]:
    """The names of the parameters that the arguments are for."""
    code = getattr(f, "__code__", None)
    known = [] if code is None else list(code.co_varnames[: code.co_argcount])
    return [*known[:n], *[f"argument {i}" for i in range(len(known), n)]]


def leaves_of(path: str, x: Any, gradient: Any) -> Iterator[tuple[str, Any, Any]]:
    """The numbers, arrays and constants in an argument, with their gradients."""
    is_array = isinstance(x, np.ndarray) or (hasattr(x, "shape") and hasattr(x, "dtype"))
    parts = None if is_array else parts_of(x)
    if parts is None or gradient is None or isinstance(x, (set, frozenset)):
        yield path, x, gradient
        return
    for key, part in parts.items():
        if isinstance(x, (tuple, list, dict)):
            yield from leaves_of(f"{path}[{key!r}]", part, gradient[key])
        else:
            yield from leaves_of(f"{path}.{key}", part, getattr(gradient, str(key), None))


class WhyWatch(Watching):
    """Keeps all records, to follow values through them."""

    sees_constants = True

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Record] = []
        self.culprit_event: Event | None = None

    def seen(self, record: Record, is_leaf: bool) -> None:
        """Calls that others explain are not kept, unless an array is written to."""
        if is_leaf or any([a is record.y for a in record.args if isinstance(a, np.ndarray)]):
            self.records.append(record)

    def pulled(self, record: Record, ȳ: Any, cotangents: Any) -> None:
        """Keep whether a cotangent came, and what it gave."""
        record.reached |= not is_nothing(ȳ)
        given = cotangents[1:]
        record.cotangents = [
            accumulate(a, b) for a, b in zip(record.cotangents, given, strict=False)
        ]

    def pull(self, run: Callable[[], Any]) -> Any:
        """The reverse pass."""
        if self.in_pass:
            return run()
        result = self.pass_with(run, None)
        if self.events and not is_finite(result):
            self.culprit_event = self.culprit(run)
        return result

    def explain(
        self, path: str, x: Any, gradient: Any, args: tuple[Any, ...], value: Any
    ) -> list[Finding]:
        """Why the gradient by x is what it is, if it is zero, None or not finite."""
        if gradient is None:
            return [Finding(path, "None", f"a {type(x).__name__} has no tangent space", None)]
        if not is_finite(gradient):
            event = self.culprit_event
            if event is None:
                return [Finding(path, "not finite", "the value of the function is not", None)]
            reason = f"the first cotangent that is not comes out of {event.record.name}"
            return [Finding(path, "not finite", reason, event.record.place)]
        if not is_all_zero(gradient):
            return []
        return [
            Finding(path, "zero", reason, place) for reason, place in self.ends_of(x, args, value)
        ]

    def ends_of(
        self, x: Any, args: tuple[Any, ...], value: Any
    ) -> list[tuple[str, places.Place | None]]:
        """Where what depends on x ends: lines, and why."""
        trace = Trace(self.records, args, x)
        ends = trace.ends
        if not trace.touched:
            return [("it is not used", None)]
        matter = [r for r in ends if Trace(self.records, args, r.y, r.number).reaches(value)]
        found = {(reason_of(r), r.place): None for r in matter or ends}
        if found:
            return list(found)
        if trace.reaches(value):
            return [("the contributions cancel, or are too small", None)]
        last = trace.touched[-1]
        return [(f"what {last.name} gives does not reach the result", last.place)]


def is_all_zero(gradient: Any) -> bool:
    """Is a gradient zero, in all of its entries?"""
    if tracing([gradient]) is not None:
        raise UnsupportedError(
            "why looks at numbers, and while JAX traces a program there are none: call it outside of "
            "jit, vmap and the like, on the function that is traced"
        )
    return bool(np.all(np.equal(numbers_of(gradient), 0)))


def is_followed(x: Any) -> bool:
    """Is it known by its identity? Constants are the same object in many places."""
    return not (x is None or isinstance(x, (bool, str, type)) or callable(x))


class Trace:
    """What depends on one object, as the records of calls tell.

    A call depends on it if an argument does; its result does, if it is new and the dependence
    does not end in the call. Containers are followed, what is taken out of them is known by itself.
    """

    def __init__(
        self, records: list[Record], args: tuple[Any, ...], x: Any, after: int = 0
    ) -> None:
        self.dependent = {id(x)} if is_followed(x) else set()
        self.touched: list[Record] = []
        self.ends: list[Record] = []
        self.beside = {id(a) for r in records for a in r.args if writes_to(r, a)}
        self.through = after > 0  # is the dependence of data followed through all calls?
        known = set()
        if not after:
            known = known_in(args)
            self.dependent |= {id(h) for h in holders_of(args, x)}
        for record in records:
            if record.number > after:
                self.follow(record, known)
            known.add(id(record.y))

    def follow(self, record: Record, known: set[int]) -> None:
        """What a call adds."""
        hit = [i for i, a in enumerate(record.args) if id(a) in self.dependent]
        if not hit:
            return
        y = record.y
        if id(y) in known and id(y) not in self.dependent and is_followed(y):
            return  # it was there before: taken out of a container
        self.touched.append(record)
        seen = [i for i in hit if gives_by_value(record, record.args[i], self.beside)]
        if not self.through and is_end(record, hit, seen):
            self.ends.append(record)
            return
        if is_followed(y):
            self.dependent.add(id(y))
        if y is None:
            holder = record.args[0]
            if adjoint_object(holder) is not None or isinstance(holder, np.ndarray):
                self.dependent.add(id(holder))

    def reaches(self, value: Any) -> bool:
        """Does a value depend on it?"""
        return id(value) in self.dependent


def known_in(args: tuple[Any, ...]) -> set[int]:
    """All that can be reached from the arguments, by identity."""
    found = set()
    for x, parts in general.held_by(args):
        found.add(id(x))
        found |= {id(part) for part in parts.values()}
    return found | {id(a) for a in args}


def holders_of(args: tuple[Any, ...], x: Any) -> list[Any]:
    """What x is in, however deep."""
    held = general.held_by(args)
    found: list[Any] = []
    wanted = {id(x)}
    while True:
        more = [
            h
            for h, parts in held
            if id(h) not in wanted and any(id(p) in wanted for p in parts.values())
        ]
        if not more:
            return found
        found += more
        wanted |= {id(h) for h in more}


WRITING = (operator.setitem, np.copyto, np.ndarray.fill)


def is_constant_call(record: Record) -> bool:
    """Has what was called no derivative?"""
    return is_constant_of(record.fn, record.args)


def is_constant_of(fn: Any, args: tuple[Any, ...]) -> bool:
    """Has a callable no derivative, wherever its result goes?"""
    return registry.is_constant(fn) or registry.is_constant_for(fn, args)


def is_end(record: Record, hit: list[int], seen: list[int]) -> bool:
    """Does the dependence on these arguments end in a call? Those `seen` have cotangents by value."""
    if is_constant_call(record) or record.fn is ignore_derivatives or has_no_space(record.y):
        return True
    if stores_into_integers(record) or (hit == [0] and writes_over_all(record)):
        return True
    if not record.reached:
        return False
    return seen == hit and all(is_nothing(record.cotangents[i]) for i in hit)


def writes_to(record: Record, x: Any) -> bool:
    """Is this array what a call writes to?"""
    if not isinstance(x, np.ndarray):
        return False
    return x is (record.args[0] if record.y is None else record.y)


def gives_by_value(record: Record, x: Any, beside: set[int]) -> bool:
    """Does a call give the cotangent of an argument to the caller, not to what holds its memory?"""
    return adjoint_object(x) is None and (id(x) not in beside or writes_to(record, x))


def writes_over_all(record: Record) -> bool:
    """Does it write over every entry of an array?"""
    if record.fn not in WRITING or not isinstance(record.args[0], np.ndarray):
        return False
    x, *rest = record.args
    if record.fn is operator.setitem and x.dtype.kind != "V":
        return np.size(x[rest[0]]) == np.size(x)
    return record.fn is np.ndarray.fill or (record.fn is np.copyto and len(rest) == 1)


def stores_into_integers(record: Record) -> bool:
    """Does it write to an array of integers?"""
    first = record.args[0] if record.args else None
    return record.fn in WRITING and isinstance(first, np.ndarray) and first.dtype.kind in "iub"


def is_nothing(c: Any) -> bool:
    """Is a cotangent zero, structurally or by its numbers?"""
    c = unthunk(c)
    if is_zero(c) or isinstance(c, AbstractZero):
        return True
    if isinstance(c, (np.ndarray, numbers.Number)) or foreign_of(c) is not None:
        return is_all_zero(c)
    return isinstance(c, (tuple, list)) and all(map(is_nothing, c))


def reason_of(record: Record) -> str:
    """Why the dependence ends in a call."""
    if stores_into_integers(record):
        return f"{record.name} ends it: it writes to an array of integers"
    if writes_over_all(record):
        return f"{record.name} ends it: it writes over all of the array"
    if record.fn is ignore_derivatives or is_constant_call(record):
        return f"{record.name} ends it: {record.how.removeprefix('ignore_derivatives: ')}"
    if has_no_space(record.y):
        return f"{record.name} ends it: what it gives has no derivative"
    if all(is_zero(c) for c in record.cotangents):
        return f"{record.name} ends it: {record.how} gives it no cotangent"
    return f"{record.name} ends it: its derivative is zero there, by {record.how}"
