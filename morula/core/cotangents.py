"""The vocabulary of cotangents: ZeroTangent, NoTangent, Tangent, Thunk; their sums and projections.

The words are ChainRules'. A cotangent of a number or an array is a number or an array; that of a
structured primal is a `Tangent` (a plain tuple, list or dict of cotangents is taken as well, for
primals of that type). What adds or projects a given type is said by the rules, through the two
functions by type at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from reprlib import recursive_repr
from typing import Any, ClassVar, final

from morula.core.dispatch import by_type
from morula.core.memory import in_memory


class AbstractZero:
    """What the two zeros share: they vanish in sums and swallow factors."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return self if other is NONE else other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return -other

    def __rsub__(self, other: Any) -> Any:
        return other

    def __mul__(self, other: Any) -> Any:
        return self

    __rmul__ = __truediv__ = __matmul__ = __rmatmul__ = __getitem__ = __mul__

    def __neg__(self) -> Any:
        return self

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def conjugate(self) -> Any:
        """The zero itself."""
        return self

    # NumPy must leave sums and products with a zero to the methods above.
    __array_ufunc__ = None


@final
class ZeroTangent(AbstractZero):
    """The zero of any tangent space; one object, so `is` compares it."""

    __slots__ = ()
    _instance: ClassVar[ZeroTangent]

    def __new__(cls) -> ZeroTangent:
        return cls._instance


@final
class NoTangent(AbstractZero):
    """Says that there is no tangent space: a string, an index, a module; one object."""

    __slots__ = ()
    _instance: ClassVar[NoTangent]

    def __new__(cls) -> NoTangent:
        return cls._instance

    def __add__(self, other: Any) -> Any:
        # A zero of some space says more than the absence of one.
        return other

    __radd__ = __add__


ZeroTangent._instance = object.__new__(ZeroTangent)
NoTangent._instance = object.__new__(NoTangent)
ZERO = ZeroTangent()
NONE = NoTangent()


class Thunk:
    """A cotangent that is computed when it is first needed, and then kept.

    >>> t = Thunk(lambda: 2.0 * 3.0)
    >>> unthunk(t)
    6.0
    """

    __slots__ = ("_compute", "_value")
    __array_ufunc__ = None

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    def force(self) -> Any:
        """The cotangent itself."""
        if self._compute is not None:
            self._value = unthunk(self._compute())
            self._compute = None
        return self._value

    def __add__(self, other: Any) -> Any:
        return accumulate(self, other)

    def __radd__(self, other: Any) -> Any:
        return accumulate(other, self)

    def __repr__(self) -> str:
        return "Thunk(...)" if self._compute is not None else f"Thunk({self._value!r})"


# Functions that write to what they are given: that has no place for what is not known.
WRITERS: set[Any] = set()


class NotKnown:
    """A cotangent that nobody has a formula for: a sum with it, a multiple, a part is it again.

    It travels as others do, and whoever looks at it gets the error. What `find` gives is the
    cotangent after all, for a user who asks for it as it is, when nothing was added or multiplied.
    """

    __slots__ = ("_error", "_find")

    def __init__(
        self, error: Callable[[], Exception], find: Callable[[], Any] | None = None
    ) -> None:
        self._error = error
        self._find = find

    def _absorb(self, *_: Any, **__: Any) -> NotKnown:
        return self if self._find is None else NotKnown(self._error)

    def found(self) -> Any:
        """The cotangent, if it can be found after all."""
        return self.refuse() if self._find is None else self._find()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _absorb
    __matmul__ = __rmatmul__ = __neg__ = __pos__ = __getitem__ = _absorb

    def refuse(self, *_: Any) -> Any:
        """Raise the error."""
        raise self._error()

    __float__ = __complex__ = __array__ = __iter__ = __bool__ = refuse

    def __array_ufunc__(self, *_: Any, out: Any = None, **kwargs: Any) -> NotKnown:
        return self if out is None else self.refuse()

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> NotKnown:
        writes = kwargs.get("out") is not None or fn in WRITERS
        return self.refuse() if writes else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self.refuse()


def unthunk(x̄: Any) -> Any:
    """`x̄`, computed if it is a Thunk."""
    return x̄.force() if type(x̄) is Thunk else x̄


def settled(x̄: Any) -> Any:
    """`x̄`, computed if it is a Thunk; the structural zero where there is no cotangent."""
    x̄ = unthunk(x̄)
    return ZERO if x̄ is NONE else x̄


def is_zero(x̄: Any) -> bool:
    """Is a cotangent structurally zero, as a whole or in all of its parts?"""
    x̄ = unthunk(x̄)
    if type(x̄) is tuple:
        return all(map(is_zero, x̄))
    if type(x̄) is Tangent:
        return all(map(is_zero, x̄._fields.values()))
    return isinstance(x̄, AbstractZero)


class Tangent:
    """The cotangent of a structured primal of type `P`: `Tangent[P](field=cotangent, ...)`.

    Fields left out are zero; attributes of a gradient's argument that have no tangent space (texts,
    truth values) are None, and no fields. Tangents of sequences and mappings take a dict of positions
    or keys.
    Fields are read as attributes or as items; tangents of one type add, and take a factor. A
    primal and a tangent of its type add to a new primal: `params - 0.1 * gradient`.

    >>> class Point: ...
    >>> t = Tangent[Point](x=1.0) + 2 * Tangent[Point](x=1.0, y=0.5)
    >>> t
    Tangent[Point](x=3.0, y=1.0)
    >>> t.x, t["y"]
    (3.0, 1.0)
    """

    __slots__ = ("_fields", "_primal", "_without")
    _primal: type
    _fields: dict[Any, Any]
    _without: tuple[str, ...]  # the attributes of a primal that have no tangent space
    __array_ufunc__ = None

    def __class_getitem__(cls, primal: type) -> Callable[..., Tangent]:
        return _TangentOf(primal)

    def __getattr__(self, name: str) -> Any:
        if name in Tangent.__slots__ or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        if name in self._fields:
            return self._fields[name]
        if name in self._without:
            return None
        if hasattr(self._primal, name) or not self._fields:
            return ZERO
        raise AttributeError(
            f"{self!r} has no field {name!r}; its fields are {', '.join(map(str, self._fields))}"
        )

    def __getitem__(self, key: Any) -> Any:
        return self._fields.get(key, ZERO)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._fields)

    def keys(self) -> Any:
        """The names of the fields that are not structurally zero."""
        return self._fields.keys()

    def items(self) -> Any:
        """Pairs of field and cotangent."""
        return self._fields.items()

    def _map(self, fn: Callable[[Any], Any]) -> Tangent:
        return tangent_of(self._primal, {k: fn(v) for k, v in self._fields.items()}, self._without)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, AbstractZero) or (type(other) is int and other == 0):
            return self  # as in arrays of objects, which are made full of 0
        if not isinstance(other, Tangent):
            return NotImplemented
        if self._fields and other._fields and not are_related(self._primal, other._primal):
            raise TypeError(
                f"a tangent of {self._primal.__name__} and one of {other._primal.__name__} do not add"
            )
        total = dict(self._fields)
        for key, value in other._fields.items():
            total[key] = accumulate(total[key], value) if key in total else value
        return tangent_of(self._primal, total, self._without)

    def __mul__(self, factor: Any) -> Tangent:
        return self._map(lambda v: scale(v, factor))

    __rmul__ = __mul__

    def __neg__(self) -> Tangent:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + (-1 * other)

    def __radd__(self, primal: Any) -> Any:
        if isinstance(primal, AbstractZero) or (type(primal) is int and primal == 0):
            return self  # the sum of tangents begins with 0
        return moved(primal, self) if isinstance(primal, self._primal) else NotImplemented

    def __rsub__(self, primal: Any) -> Any:
        return self.__neg__().__radd__(primal)

    def __truediv__(self, divisor: Any) -> Tangent:
        return self._map(lambda v: scale(v, 1 / divisor))

    def __eq__(self, other: object) -> Any:
        return (
            isinstance(other, Tangent)
            and self._primal is other._primal
            and is_equal(self._fields, other._fields)
        )

    __hash__ = None  # type: ignore[assignment]

    @recursive_repr()
    def __repr__(self) -> str:
        if all(isinstance(k, str) and k.isidentifier() for k in self._fields):
            inside = ", ".join(f"{k}={v!r}" for k, v in self._fields.items())
        else:
            inside = repr(self._fields)
        return f"Tangent[{self._primal.__name__}]({inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return tangent_of, (self._primal, self._fields, self._without)


def are_related(a: type, b: type) -> bool:
    """May one value be of both types, one of which derives from the other?"""
    return issubclass(a, b) or issubclass(b, a)


def is_equal(a: Any, b: Any) -> bool:
    """Are two cotangents the same, array by array?"""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_equal(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_equal, a, b))
    if getattr(a, "shape", ()) != getattr(b, "shape", ()):
        return False
    same: Any = a == b
    return bool(same.all() if hasattr(same, "all") else same)


def tangent_of(primal: type, fields: dict[Any, Any], without: tuple[str, ...] = ()) -> Tangent:
    """The cotangent of a value of this type with these fields, which it keeps."""
    tangent = object.__new__(Tangent)
    tangent._primal = primal
    tangent._fields = fields
    tangent._without = without
    return tangent


class _TangentOf:
    """What `Tangent[P]` is: called with fields it makes the tangent."""

    __slots__ = ("primal",)

    def __init__(self, primal: type) -> None:
        self.primal = primal

    def __call__(self, fields: Mapping[Any, Any] | None = None, /, **named: Any) -> Tangent:
        return tangent_of(self.primal, dict(fields or {}, **named))

    def __repr__(self) -> str:
        return f"Tangent[{self.primal.__name__}]"

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Tangent) and instance._primal is self.primal


def accumulate(a: Any, b: Any) -> Any:
    """The sum of two cotangents of one primal; neither is written to."""
    if a is NONE:
        return b
    if b is NONE:
        return a
    if a is ZERO:
        return b
    if b is ZERO:
        return a
    if type(a) is Thunk or type(b) is Thunk:
        return Thunk(lambda: accumulate(unthunk(a), unthunk(b)))
    return add(a, b)


def scale(x̄: Any, factor: Any) -> Any:
    """`factor` times a cotangent of any structure."""
    x̄ = unthunk(x̄)
    if isinstance(x̄, AbstractZero):
        return x̄
    return multiply(x̄, factor)


@by_type
def add(a: Any, b: Any) -> Any:
    """The sum of two cotangents that are neither zero nor thunks; rules register structures."""
    return a + b


@by_type
def multiply(x̄: Any, factor: Any) -> Any:
    """`factor * x̄`; rules register structures."""
    return x̄ * factor


@by_type
def moved(x: Any, ẋ: Tangent) -> Any:
    """A new primal `x + ẋ`; rules register structures."""
    return NotImplemented


@by_type
def projector(x: Any) -> Callable[[Any], Any] | None:
    """What brings a cotangent back to the space of `x`; None: nothing has to be done.

    Rules register the types they know.
    """
    return None


@projector.register(NotKnown)
def _(x: NotKnown) -> Callable[[Any], Any]:
    return x.refuse


_Projection = Callable[[Any], Any]


def hands_on(x: Any, keys: Iterable[Any]) -> Callable[[_Projection], _Projection]:
    """Declare a projection that gives parts of a cotangent to adjoint objects: it must not wait.

    It is that to the space of `x`, which has parts under these keys.
    """

    def declare(project: _Projection) -> _Projection:
        project.hands_on = x, tuple(keys)  # type: ignore[attr-defined]
        return project

    return declare


class HandedOn(threading.local):
    """The values whose parts are being told that nobody knows their cotangents."""

    def __init__(self) -> None:
        self.ids: set[int] = set()


_handed_on = HandedOn()


def hand_on(project: _Projection, of: Any, keys: tuple[Any, ...], unknown: NotKnown) -> Any:
    """Give what is not known to all parts of a value, which may refer to itself."""
    if id(of) in _handed_on.ids:
        return ZERO
    _handed_on.ids.add(id(of))
    try:
        return project(_TangentOf(object)(dict.fromkeys(keys, unknown)))
    finally:
        _handed_on.ids.discard(id(of))


# Projects the parts of a cotangent, in a reverse pass or where none runs: said where passes are.
project_parts: list[Callable[[_Projection, Any, Any], Any]] = []


def project_to(x: Any) -> Callable[[Any], Any]:
    """The projection of cotangents to the tangent space of `x`: `project_to(x)(x̄)`.

    Real stays real, shape and dtype are kept, and so is structure. Zeros pass unchanged. Thunks
    are projected when they are computed; those of structures, and all while memory changes as the
    reverse pass goes back, are computed at once.

    >>> project_to(1.0)(2 + 3j)
    2.0
    """
    return partial(projected, projector(x))


def projected(project: Callable[[Any], Any] | None, x̄: Any) -> Any:
    """A cotangent, brought to a space by what `projector` gave."""
    if x̄ is ZERO or x̄ is NONE or project is None:
        return x̄
    parts = getattr(project, "hands_on", None)
    if type(x̄) is Thunk:
        if parts is None and not in_memory():
            return Thunk(lambda: projected(project, x̄.force()))
        x̄ = x̄.force()
        if isinstance(x̄, AbstractZero):
            return x̄
    if type(x̄) is NotKnown:
        if parts is not None:
            return hand_on(project, parts[0], parts[1], x̄)
        return project(x̄) if in_memory() and hasattr(project, "takes_unknown") else x̄
    return project(x̄) if parts is None else project_parts[0](project, parts[0], x̄)
