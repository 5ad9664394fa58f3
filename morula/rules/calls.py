"""Rules of calling: what `f(...)` means for every kind of callable that has no rule of its own.

A bound method is its function with the object first, a class makes its object by the code of its
`__new__` and `__init__`, a partial adds arguments, an object is called by its `__call__`. The
cotangent of a bound method is that of the object, the cotangent of a partial is
`Tangent[partial](func=…, args=…, keywords=…)`. `serves(f)` registers what calling one callable
means where rules cannot say it: for any types of arguments and any keywords.
Tests: tests/rules/test_calls.py
"""

import contextlib
import functools
import inspect
import operator
import re
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Generic, TypeVar

import numpy as np

from morula.core.extend import (
    COMPILED_METHODS,
    NONE,
    ZERO,
    Calls,
    NotSpecialised,
    Tangent,
    Transformed,
    UnsupportedError,
    accumulate,
    add,
    adjoint_object,
    adjoint_of,
    as_passing,
    by_type,
    call,
    callables,
    called_whole,
    collector,
    errors,
    expect_nothing,
    find_rrule,
    fixed_types,
    frule,
    general,
    has_tangent,
    is_bound_in_python,
    is_compiled,
    is_zero,
    multiply,
    non_differentiable,
    projector,
    python_function,
    refuses,
    registry,
    resolves,
    rrule,
    runs,
    scalar_rule,
    scale,
    unthunk,
)
from morula.rules.arrays.outs import call_with_out, signature_of
from morula.rules.arrays.types import Anything
from morula.rules.boxes import (
    default_value,
    give_default,
    is_positional_only,
    missing_arguments,
    remember,
    take_defaults,
)

_T = TypeVar("_T")
Back = Callable[[Any], tuple[Any, ...]]
Resolver = Callable[[Any, tuple[Any, ...], dict[str, Any]], tuple[Any, Back]]

_F = TypeVar("_F", bound=Callable[..., Any])
_served: dict[int, tuple[Any, Resolver]] = {}


_bodies: dict[int, Any] = {}  # functions that run in the place of others
_derivatives: dict[int, Any] = {}  # functions whose derivatives are those of others


def serves(*callables: Any, passing: bool = False) -> Callable[[_F], _F]:
    """Register what calling these means: resolver(fn, args, kwargs) -> (y, back).

    `back(ȳ)` gives the cotangent of the callable and one for each argument, keywords last. A resolver
    that is `passing` makes one call and passes on its value, even if that is `Raised`.
    """

    def register(resolver: _F) -> _F:
        if passing:
            as_passing(resolver)
        for fn in callables:
            _served[id(fn)] = (fn, resolver)
            _bodies.pop(id(fn), None)
            if type(fn) is FunctionType:
                called_whole(fn)
        return resolver

    return register


def registered(fn: Any) -> tuple[Resolver | None, bool]:
    """What calling `fn` itself means, if that was registered; does it expect no `Raised`?"""
    found = _served.get(id(fn))
    return (None, False) if found is None else (found[1], found[1] not in general.PASSING)


def served(fn: Any) -> Resolver | None:
    """What calling `fn` itself means, if that was registered."""
    resolver, expects_nothing = registered(fn)
    if expects_nothing:
        expect_nothing()
    return resolver


def runs_body(body: Any, *callables: Any) -> None:
    """Declare that calls of these mean calls of `body`, in every mode."""
    for fn in callables:
        _bodies[id(fn)] = body


def body_of(fn: Any) -> Any:
    """The function that runs in the place of `fn`, or None."""
    return _bodies.get(id(fn))


def tells_derivative(body: Any, *callables: Any) -> None:
    """Declare that the derivative of calls of these is that of calls of `body`, in every mode."""
    for fn in callables:
        _derivatives[id(fn)] = body


def derivative_body_of(fn: Any) -> Any:
    """The function that tells the derivative of `fn`, or None."""
    return _derivatives.get(id(fn))


def with_derivative_of(y: Any, told: Any) -> Any:
    """y, whose derivatives are those of `told`."""
    return y


@rrule(with_derivative_of)
def _(y: Anything, told: Anything):
    """It stays where it is, so that derivatives of derivatives see it, too."""

    def with_derivative_of_pullback(ȳ):
        return NONE, ȳ

    return with_derivative_of(y, told), with_derivative_of_pullback


@frule(with_derivative_of)
def _(y: Anything, told: Anything):
    def with_derivative_of_pushforward(ẏ, tȯld):
        return tȯld

    return with_derivative_of(y, told), with_derivative_of_pushforward


def once(what: str) -> None:
    """Stands in a rule that cannot be differentiated itself yet."""


@serves(once)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise UnsupportedError(
        f"{args[0]} in a derivative of a derivative cannot be differentiated yet"
    )


MISSING = type("Missing", (), {})()


def lookup(cls: type, name: str) -> Any:
    """What a class or its bases define under a name, as it stands there, or MISSING."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


def own_method(cls: type, name: str) -> Any:
    """What a class itself puts in the place of a special method, or MISSING.

    That is a function, a compiled method of another name, as in `__setattr__ = dict.__setitem__`, one
    that an extension module has made, if it is served, or what Python binds, as a `partialmethod`.
    """
    found = lookup(cls, name)
    if found is MISSING or type(found) is FunctionType:
        return found
    if type(found) in COMPILED_METHODS:
        return MISSING if found.__name__ == name else found
    if type(found) is BuiltinFunctionType:  # which does not become a method
        return MISSING
    if registered(found)[0] is not None:
        return found
    return partial(call_bound, found) if is_bound_in_python(found) else MISSING


def call_bound(method: Any, x: Any, /, *others: Any, **named: Any) -> Any:
    """What stands in a class in the place of a method, called for an object."""
    if works_as_property(method, "__get__"):
        return method.fget(x)(*others, **named)
    if hasattr(type(method), "__get__"):
        return method.__get__(x, type(x))(*others, **named)
    return method(*others, **named)


def works_as_property(found: Any, method: str) -> bool:
    """Is it a property, also of a derived class, which leaves one of its methods as it is?"""
    kind = type(found)
    return issubclass(kind, property) and lookup(kind, method) is vars(property)[method]


def in_place_of_method(found: Any) -> Any:
    """A function of an object and others that does what `found` does in the place of a method."""
    return partial(call_bound, found) if is_bound_in_python(found) else found


def bound_method_of(x: Any, name: str) -> Any:
    """A special method of a class that is of no common kind, such as a `partialmethod`, or MISSING."""
    found = lookup(type(x), name)
    if type(found) is FunctionType or type(found) in COMPILED_METHODS:
        return MISSING
    return found.__get__(x, type(x)) if hasattr(type(found), "__get__") else found


non_differentiable(
    registered, body_of, derivative_body_of, lookup, own_method, bound_method_of, works_as_property,
    in_place_of_method,
)  # fmt: skip


REGISTERS = (rrule, frule, scalar_rule, non_differentiable)


@refuses
def _(adjoint: Any) -> None:
    """What a program means that registers rules as it runs is found out when it happens."""
    if any(call.primitive in REGISTERS for call in adjoint.specialiser.ir.calls()):
        raise NotSpecialised("it registers rules")


def together(bars: Any) -> Any:
    """The cotangent of a tuple from those of its items."""
    return ZERO if all(map(is_zero, bars)) else tuple(bars)


def without_callee(back: Back, ȳ: Any) -> tuple[Any, ...]:
    """From (function, object, arguments) to (method, arguments): a method counts as its object."""
    return back(ȳ)[1:]


# -- compiled callables ----------------------------------------------------------------------------

CONTAINERS = (list, dict, set, deque)


def is_changed(x: Any, before: Any) -> bool:
    """Does a container hold other objects than its copy from before?"""
    x = list.copy(x) if isinstance(x, list) else x
    if len(x) != len(before):
        return True
    if isinstance(x, dict):
        before = [v for pair in before.items() for v in pair]
        x = [v for pair in x.items() for v in pair]
    if isinstance(x, set):
        return x != before
    return not all(map(operator.is_, x, before))


def copies(args: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """The containers among the arguments, with their present contents."""
    return [(a, contents_of(a)) for a in args if isinstance(a, CONTAINERS)]


def contents_of(a: Any) -> Any:
    """What a container holds, whatever its class says when it is iterated over."""
    if isinstance(a, list):
        return list.copy(a)
    return dict(a) if isinstance(a, dict) else set(a) if isinstance(a, set) else list(a)


def changes(before: list[tuple[Any, Any]]) -> list[Any]:
    """The containers whose contents are no longer those of the copies."""
    return [x for x, old in before if is_changed(x, old)]


non_differentiable(copies, changes)


OUT_OF_SIGHT = (bytes, bytearray, memoryview)  # numbers may lie in these


def is_constant_operand(x: Any) -> bool:
    """Is it nothing that has a derivative, nor holds numbers that may have one?"""
    if isinstance(x, OUT_OF_SIGHT) or id(x) in general.LOSSY:
        return False
    return isinstance(x, ModuleType) or not has_tangent(type(x))


non_differentiable(is_constant_operand)


def compiled(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str = "") -> Any:
    """A callable that cannot be looked into.

    What only moves the items of a list, as heapq does, is followed by their identity. What is given
    nothing that could have a derivative gives a constant.
    """
    given = (*args, *kwargs.values())
    if given and all(map(is_constant_operand, (getattr(fn, "__self__", None), *given))):
        expect_nothing()
        return fn(*args, **kwargs), partial(general._constant_back, 1 + len(given))
    before = copies(args)
    y, back, all_changed = general.opaque_with_changes(fn, args, kwargs, reason)
    changed = changes(before) if before else []
    if not changed:
        return y, back
    moved = None if kwargs else moves(before, changed, args, y)
    if moved is None:
        return y, back
    others = [(x, keys) for x, keys in all_changed if x is not changed[0]]

    def moves_pullback(ȳ: Any) -> tuple[Any, ...]:
        general.refuse_changes(fn, args, others, ȳ)
        return put_back_items(*moved, len(args), ȳ)  # type: ignore[call-arg]

    return y, moves_pullback


def moves(before: Any, changed: list[Any], args: tuple[Any, ...], y: Any) -> Any:
    """Where the items of the one changed list, and the value, come from.

    That is a list, the places its items had (a negative one: of an argument), and that of the
    value; None if it cannot be told.
    """
    if len(changed) > 1 or not isinstance(changed[0], list):
        return None
    (xs,) = changed
    old = next(items for x, items in before if x is xs)
    places = {id(a): i - len(args) for i, a in enumerate(args)}
    places.update({id(item): i for i, item in enumerate(old)})
    now = list.copy(xs)
    if len({*map(id, old)}) < len(old) or not all(id(item) in places for item in now):
        return None
    if y is not None and id(y) not in places:
        return None
    return xs, [places[id(item)] for item in now], len(old), places.get(id(y))


def put_back_items(
    xs: list[Any], places: list[int], n: int, place: int | None, n_args: int, ȳ: Any
) -> tuple[Any, ...]:
    """The cotangents of the items of a list go back to where the items were."""
    bars = adjoint_of(xs)
    found = [bars[i] if i < len(bars) else ZERO for i in range(len(places))]
    of_args: list[Any] = [ZERO] * n_args
    bars[:] = [ZERO] * n
    for i, c in [*zip(places, found, strict=True), (place, ȳ)]:
        if i is not None:
            target = of_args if i < 0 else bars
            target[i] = accumulate(target[i], c)
    return (NONE, *of_args)


non_differentiable(moves)


# The type of bound methods that CPython also hands the class in which they are defined.
BuiltinMethodType: Any = type(re.compile("").match)


@resolves(BuiltinFunctionType, passing=True)
@resolves(BuiltinMethodType, passing=True)
def builtin_function(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A compiled function, or a compiled method that is bound to its object."""
    resolver = served(fn)
    if resolver is not None:
        return resolver(fn, args, kwargs)
    owner = fn.__self__
    descriptor = unbound(fn)
    if descriptor is None:
        expect_nothing()
        return respelled(fn, args, kwargs) or compiled(fn, args, kwargs)
    y, back = call(descriptor, owner, *args, **kwargs)
    return y, partial(without_callee, back)


def unbound(fn: Any) -> Any:
    """What stands in the class of a compiled bound method, or None if it is a plain function."""
    owner = fn.__self__
    if owner is None or isinstance(owner, ModuleType):
        return None
    if isinstance(owner, type):
        for base in owner.__mro__:
            found = base.__dict__.get(fn.__name__)
            if type(found) is ClassMethodDescriptorType:
                return found
    for base in type(owner).__mro__:  # not the first one found, for `super()` may have skipped it
        found = base.__dict__.get(fn.__name__)
        if type(found) is MethodDescriptorType and found.__get__(owner, type(owner)) == fn:
            return found
    return None


non_differentiable(unbound)


@resolves(MethodWrapperType)
def method_wrapper(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.__add__` of a compiled class."""
    y, back = call(vars(fn.__objclass__)[fn.__name__], fn.__self__, *args, **kwargs)
    return y, partial(without_callee, back)


STEPS: dict[str, Any] = {"__iter__": iter, "__next__": next}  # what methods of iteration mean
ITERATED_BY_PLACE = (list, tuple, deque)  # also where a derived class iterates in a way of its own


def items_of_base(xs: Any, cls: Any) -> Iterator[Any]:
    """`list.__iter__(xs)`, or that of another base, of a class that iterates in a way of its own."""
    i = 0
    while i < cls.__len__(xs):
        yield cls.__getitem__(xs, i)
        i += 1


@resolves(MethodDescriptorType, passing=True)
@resolves(WrapperDescriptorType, passing=True)
@resolves(ClassMethodDescriptorType, passing=True)
def unbound_method(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A compiled method without a rule for these arguments."""
    resolver = served(fn)
    if resolver is not None:
        return resolver(fn, args, kwargs)
    expect_nothing()
    if fn.__name__ in STEPS and len(args) == 1 and not kwargs:
        if own_method(type(args[0]), fn.__name__) is MISSING:
            return call(STEPS[fn.__name__], *args)
        if fn.__objclass__ in ITERATED_BY_PLACE:
            return call(items_of_base, *args, fn.__objclass__)
    return (
        call_with_out(fn, args, kwargs) or respelled(fn, args, kwargs) or compiled(fn, args, kwargs)
    )


# -- one call, spelt in another way ----------------------------------------------------------------


def respelled(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call spelt as a rule of `fn` knows it, other arguments by position; None if none does."""
    spelling = spelling_for(fn, args, kwargs)
    if spelling is None:
        return None
    positions, names, where = spelling
    given = [*args, *kwargs.values()]
    positional = [given[i] for i in positions]
    y, back = call(fn, *positional, **{k: given[i] for k, i in names})

    def respelled_pullback(ȳ: Any) -> tuple[Any, ...]:
        f̄, *bars = back(ȳ)
        return (f̄, *[NONE if i is None else bars[i] for i in where])

    return y, respelled_pullback


def spelling_for(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Which arguments go by position, which by name, and where the ones of the call are among them.

    Arguments are counted, those by name behind the others: what they are is passed on by who asks.

    Those that are given as their default says, `out=None` say, are left out.
    """
    entry_of_fn = registry.registry.get(fn)
    signature = signature_of(fn) if entry_of_fn is not None and entry_of_fn.reverse else None
    if signature is None:
        return None
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    parameters = signature.parameters
    if any(parameters[k].kind is inspect.Parameter.VAR_POSITIONAL for k in bound):
        return None
    for k in [k for k in bound if parameters[k].kind is inspect.Parameter.VAR_KEYWORD]:
        bound.update(bound.pop(k))
    defaults = {k: p.default for k, p in parameters.items()}
    given = {
        k: v
        for k, v in bound.items()
        if v is not defaults.get(k, MISSING)
        or (isinstance(v, (int, float)) and type(v) is not bool)
    }
    names, first = list(given), list(parameters)
    for n in range(len(names), 0, -1):
        positional = tuple(given[k] for k in names[:n])
        named = {k: given[k] for k in names[n:]}
        if names[:n] == first[:n] and find_rrule(fn, positional, named) is not None:
            if len(positional) == len(args) and named.keys() == kwargs.keys():
                return None
            asked_for = [*first[: len(args)], *kwargs]
            numbers = [asked_for.index(k) for k in names]
            where = [names.index(k) if k in given else None for k in asked_for]
            return numbers[:n], list(zip(names[n:], numbers[n:], strict=True)), where
    return None


non_differentiable(spelling_for)


fixed_types.add(type(np.sum))


@resolves(type(np.sum))
def array_function(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy's without a rule: many are written in Python."""
    resolver = served(fn)
    if resolver is not None:
        return resolver(fn, args, kwargs)
    found = call_with_out(fn, args, kwargs) or respelled(fn, args, kwargs)
    if found is not None:
        return found
    body = fn._implementation
    if type(body) is FunctionType and not any(
        hasattr(type(a), "__array_function__") and not isinstance(a, np.ndarray) for a in args
    ):
        return call(body, *args, **kwargs)
    return compiled(fn, args, kwargs)


# -- Python functions, methods, callable objects ---------------------------------------------------

_OF_PYTHON = functools.singledispatch(lambda x: x).__code__  # type: ignore[attr-defined]
_OF_OURS = by_type(lambda x: x).__code__  # type: ignore[attr-defined]


def is_dispatcher(fn: FunctionType) -> bool:
    """Does it run another function, by the type of its first argument?"""
    return fn.__code__ is _OF_PYTHON or fn.__code__ is _OF_OURS


non_differentiable(is_dispatcher)


@resolves(FunctionType, passing=True)
def function(fn: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A Python function: through its own code."""
    resolver = served(fn)
    if resolver is not None:
        return resolver(fn, args, kwargs)
    family = fn.__dict__.get("__morula__")
    if family is not None:
        return gradient_function(fn, family, args, kwargs)
    found = respelled(fn, args, kwargs) if kwargs else None
    if found is not None:
        return found
    if args and is_dispatcher(fn):
        return call(implementation(fn, type(args[0])), *args, **kwargs)
    missing = missing_arguments(fn, len(args), kwargs)
    if not missing:
        return python_function(fn, args, kwargs)
    defaults = {name: default_value(*place) for name, place in missing.items()}
    by_position = [name for name in defaults if is_positional_only(fn, name)]
    given = (*args, *[defaults.pop(name) for name in by_position])
    y, back = python_function(fn, given, {**kwargs, **defaults})
    first, last = 1 + len(args), 1 + len(given)
    named = last + len(kwargs)

    def function_pullback(ȳ: Any) -> tuple[Any, ...]:
        cotangents = back(ȳ)
        of_defaults = (*cotangents[first:last], *cotangents[named:])
        for (holder, key), c in zip(missing.values(), of_defaults, strict=True):
            give_default(holder, key, c)
        return (*cotangents[:first], *cotangents[last:named])

    return y, function_pullback


def gradient_function(fn: Any, family: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `grad` or `value_and_grad` gave: by the general path, whatever was compiled for it."""
    if isinstance(family, Calls):
        return call(family.general, *args, **kwargs)
    y, back = call(callables.as_called, family.general, fn.__wrapped__, *args, **kwargs)
    return y, lambda ȳ: back(ȳ)[2:]


@resolves(Transformed)
def _(fn: Transformed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(fn.run, *args, **kwargs)


def implementation(fn: Any, cls: type) -> Any:
    """The function that a single-dispatch function runs for a type."""
    return fn.dispatch(cls)


non_differentiable(implementation)


@resolves(MethodType, passing=True)
def bound_method(fn: MethodType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function, with the object as its first argument."""
    y, back = call(fn.__func__, fn.__self__, *args, **kwargs)
    return y, partial(without_callee, back)


@serves(MethodType)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function, _ = args
    if type(function) is not FunctionType:  # whose cotangent may go by value
        return compiled(fn, args, kwargs)
    return MethodType(*args), lambda ȳ: (NONE, NONE, ȳ)


@runs(MethodType)
def _(fn: MethodType) -> Any:
    return fn.__func__, (fn.__self__,), {}


PLACEHOLDER = getattr(functools, "Placeholder", MISSING)  # since CPython 3.14


def has_places(held: Any) -> bool:
    """Does a partial that holds these arguments leave places among them for others?"""
    return any([x is PLACEHOLDER for x in held])


def has_too_few(held: tuple[Any, ...], n: int) -> bool:
    """Are n more arguments too few for the places that a partial leaves?"""
    return sum([x is PLACEHOLDER for x in held]) > n


def order_of(held: tuple[Any, ...], n: int) -> list[int]:
    """The places, in (*held, *given), of the arguments that a partial passes on for n given ones."""
    free = [i for i, x in enumerate(held) if x is PLACEHOLDER][:n]
    order = list(range(len(held)))
    for j, i in enumerate(free):
        order[i] = len(held) + j
    return order + list(range(len(held) + len(free), len(held) + n))


def in_places(order: list[int], bars: Any) -> list[Any]:
    """Cotangents of arguments in this order, put back."""
    found = [ZERO] * (max(order, default=-1) + 1)
    for i, c in zip(order, bars, strict=True):
        found[i] = c
    return found


non_differentiable(has_places, has_too_few, order_of)


@runs(partial)
def _(fn: Any) -> Any:
    return None if has_places(fn.args) else (fn.func, fn.args, fn.keywords)


@runs(object)
def _(fn: Any) -> Any:
    method = lookup(type(fn), "__call__")
    if type(method) is not FunctionType or registered(fn)[0] is not None:
        return None
    return method, (fn,), {}


@resolves(staticmethod, passing=True)
def static_method(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function inside."""
    return call(fn.__func__, *args, **kwargs)


@resolves(object, passing=True)
def callable_object(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An object with a `__call__` of its own."""
    resolver = served(fn)
    if resolver is not None:
        return resolver(fn, args, kwargs)
    method = own_method(type(fn), "__call__")
    if method is not MISSING:
        y, back = call(method, fn, *args, **kwargs)
        return y, partial(without_callee, back)
    method = lookup(type(fn), "__call__")
    if type(method) is BuiltinFunctionType:
        y, back = call(method, *args, **kwargs)
        return y, lambda ȳ: (NONE, *back(ȳ)[1:])
    return respelled(fn, args, kwargs) or compiled(fn, args, kwargs)


# -- classes ---------------------------------------------------------------------------------------


@resolves(type)
def construct(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A class: its metaclass decides, `type` makes an instance."""
    resolver = served(cls)
    if resolver is not None:
        return resolver(cls, args, kwargs)
    of_metaclass = lookup(type(cls), "__call__")
    if type(of_metaclass) is FunctionType:
        y, back = call(of_metaclass, cls, *args, **kwargs)
        return y, partial(without_callee, back)
    return instance(cls, args, kwargs)


@serves(type.__call__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y, back = instance(args[0], args[1:], kwargs)
    return y, lambda ȳ: (NONE, *back(ȳ))


def is_made_by_steps(cls: type) -> bool:
    """Are the `__new__` and the `__init__` of a class called one by one?"""
    return not is_compiled(cls) or issubclass(cls, BaseException)


non_differentiable(is_made_by_steps)


def instance(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`type.__call__`: `__new__`, then `__init__` on what it made."""
    new, initialise = lookup(cls, "__new__"), lookup(cls, "__init__")
    new = new.__func__ if type(new) is staticmethod else new
    plain_new, plain_initialise = new is object.__new__, initialise is object.__init__
    if plain_new and plain_initialise:
        return cls(*args, **kwargs), lambda ȳ: (NONE,)  # object() takes no arguments
    n = len(args) + len(kwargs)
    obj: Any
    new_back: Any
    if plain_new:
        obj, new_back = object.__new__(cls), None
    elif type(new) is FunctionType or is_made_by_steps(cls):
        obj, new_back = call(new, cls, *args, **kwargs)
    else:
        return compiled(cls, args, kwargs)
    initialise_back = None
    if isinstance(obj, cls):
        initialise = lookup(type(obj), "__init__")
        if initialise is not object.__init__:
            nothing, initialise_back = call(in_place_of_method(initialise), obj, *args, **kwargs)
            if nothing is not None:
                raise TypeError(f"__init__() should return None, not {type(nothing).__name__!r}")

    def instance_pullback(ȳ: Any) -> tuple[Any, ...]:
        cotangents: list[Any] = [ZERO] * n
        if plain_new and not is_zero(ȳ) and adjoint_object(obj) is None:  # a number of a class
            why = "whose objects count as numbers, not as their attributes"
            raise errors.no_rule(cls, args, why=why)
        if initialise_back is not None:
            _, obj̄, *cotangents = initialise_back(ZERO)
            ȳ = accumulate(ȳ, obj̄)
        if new_back is not None:
            _, _, *more = new_back(ȳ)
            cotangents = [accumulate(a, b) for a, b in zip(cotangents, more, strict=True)]
        return (NONE, *cotangents)

    return obj, instance_pullback


@resolves(type(Generic[_T]))  # type: ignore[index]
@resolves(GenericAlias)
def generic_alias(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Box[float](…)`: an instance of the class."""
    y, back = call(fn.__origin__, *args, **kwargs)
    remember_class(y, fn)
    return y, back


@serves(type(Generic[_T]).__call__)  # type: ignore[index]
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y, back = generic_alias(args[0], args[1:], kwargs)
    return y, lambda ȳ: (NONE, *back(ȳ))


def remember_class(x: Any, alias: Any) -> None:
    """What `typing` notes on an instance."""
    with contextlib.suppress(Exception):
        x.__orig_class__ = alias


non_differentiable(remember_class)

# What these make does not depend on their arguments: `__init__` reads them.
non_differentiable(
    object.__new__, list.__new__, dict.__new__, set.__new__, deque.__new__, object.__init__,
)  # fmt: skip


def new_number(kind: Any) -> Any:
    """The rule of `float.__new__(cls, x)`: the value is that of `float(x)`."""

    def resolver(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        _, back = call(kind, *args[1:], **kwargs)
        return fn(*args, **kwargs), lambda ȳ: (NONE, *back(ȳ))

    return resolver


NUMBERS = (
    float, complex, Fraction, Decimal, np.float16, np.float32, np.float64, np.longdouble,
    np.complex64, np.complex128, np.clongdouble,
)  # fmt: skip
for _kind in NUMBERS:
    serves(_kind.__new__)(new_number(_kind))
non_differentiable(int.__new__, str.__new__, bytes.__new__)

PARTS_OF_A_FUNCTION = ("code", "globals", "name", "argdefs", "closure", "kwdefaults")


@serves(FunctionType)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = FunctionType(*args, **kwargs)
    remember(y)
    given = dict(zip(PARTS_OF_A_FUNCTION, args, strict=False)) | kwargs

    def new_function_pullback(ȳ: Any) -> tuple[Any, ...]:
        found = take_defaults(y, given.get("argdefs"))
        return (NONE, *[found if name == "argdefs" else NONE for name in given])

    return y, new_function_pullback


# -- functools -------------------------------------------------------------------------------------


def part(x̄: Any, key: Any) -> Any:
    """One field of the cotangent of a partial and the like."""
    x̄ = unthunk(x̄)
    return ZERO if is_zero(x̄) else unthunk(x̄[key])


def item(x̄: Any, i: int) -> Any:
    """One entry of a cotangent that is a tuple, if it is not zero."""
    return ZERO if is_zero(x̄) else x̄[i]


# -- objects that operator makes -------------------------------------------------------------------


@serves(operator.itemgetter)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def itemgetter_pullback(ȳ: Any) -> tuple[Any, ...]:
        return (NONE, *[part(ȳ, i) for i in range(len(args))])

    return operator.itemgetter(*args, **kwargs), itemgetter_pullback


@resolves(operator.itemgetter, passing=True)
def item_getter(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`itemgetter(i, …)(x)` is `x[i], …`."""
    (x,) = args
    y, back = call(items_at, x, *values_held(fn))

    def item_getter_pullback(ȳ: Any) -> tuple[Any, ...]:
        _, x̄, *bars = back(ȳ)
        return Tangent[operator.itemgetter](dict(enumerate(bars))), x̄

    return y, item_getter_pullback


def items_at(x: Any, *keys: Any) -> Any:
    """One item of `x`, or a tuple of several."""
    return x[keys[0]] if len(keys) == 1 else tuple([x[key] for key in keys])


@resolves(operator.attrgetter)
def attribute_getter(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`attrgetter("a.b", …)(x)` is `x.a.b, …`."""
    (x,) = args
    return getters(attribute_path, x, fn.__reduce__()[1])


def attribute_path(x: Any, path: str) -> Any:
    """`x.a.b` for the path "a.b"."""
    for name in path.split("."):
        x = getattr(x, name)
    return x


def getters(get: Any, x: Any, keys: tuple[Any, ...]) -> Any:
    """One thing got from `x`, or a tuple of several."""
    pairs = [call(get, x, key) for key in keys]
    values = tuple([y for y, _ in pairs])
    backs = [back for _, back in pairs]
    single = len(keys) == 1

    def getters_pullback(ȳ: Any) -> tuple[Any, ...]:
        x̄: Any = ZERO
        for i in reversed(range(len(backs))):
            c = ȳ if single else entry(ȳ, i)
            x̄ = accumulate(backs[i](c)[1], x̄)
        return NONE, x̄

    return values[0] if single else values, getters_pullback


@serves(operator.methodcaller)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = operator.methodcaller(*args, **kwargs)

    def methodcaller_pullback(ȳ: Any) -> tuple[Any, ...]:
        bars = [part(ȳ, i) for i in range(len(args) - 1)]
        return (NONE, NONE, *bars, *[part(ȳ, k) for k in kwargs])

    return y, methodcaller_pullback


@resolves(operator.methodcaller)
def method_caller(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`methodcaller(name, …)(x)` is `x.name(…)`."""
    (x,) = args
    name, n, keywords = form_of(fn)
    values = values_held(fn)
    method, method_back = call(getattr, x, name)
    y, back = call(method, *values[:n], **dict(zip(keywords, values[n:], strict=True)))

    def method_caller_pullback(ȳ: Any) -> tuple[Any, ...]:
        method_bar, *bars = back(ȳ)
        fields = dict(zip(fields_of(fn), bars, strict=True))
        return Tangent[operator.methodcaller](fields), method_back(method_bar)[1]

    return y, method_caller_pullback


def form_of(caller: Any) -> tuple[str, int, tuple[str, ...]]:
    """The name of the method, the number of arguments by position and the keywords."""
    make, arguments = caller.__reduce__()
    if type(make) is partial:
        return make.args[0], len(arguments), tuple(make.keywords)
    return arguments[0], len(arguments) - 1, ()


def fields_of(fn: Any) -> list[Any]:
    """The fields of the cotangent of a getter of items or a caller of methods."""
    if type(fn) is operator.itemgetter:
        return [*range(len(fn.__reduce__()[1]))]
    _, n, keywords = form_of(fn)
    return [*range(n), *keywords]


def values_held(fn: Any) -> tuple[Any, ...]:
    """The keys of a getter of items, or the arguments of a caller of methods."""
    make, held = fn.__reduce__()
    if type(make) is partial:
        return (*held, *make.keywords.values())
    return held if type(fn) is operator.itemgetter else held[1:]


@rrule(values_held)
def _(fn: Anything):
    def values_held_pullback(ȳ):
        cotangents = [entry(ȳ, i) for i in range(len(fields_of(fn)))]
        return (Tangent[type(fn)](dict(zip(fields_of(fn), cotangents, strict=True))),)

    return values_held(fn), values_held_pullback


@frule(values_held)
def _(fn: Anything):
    def values_held_pushforward(ḟ):
        return tuple([part(ḟ, key) for key in fields_of(fn)])

    return values_held(fn), values_held_pushforward


non_differentiable(form_of, fields_of)

# -- cotangents of tuples, that calls pass about ---------------------------------------------------


def entry(x̄: Any, i: int) -> Any:
    """One entry of the cotangent of a tuple."""
    if x̄ is ZERO:
        return ZERO
    x̄ = unthunk(x̄)
    if is_zero(x̄):
        return ZERO
    return unthunk(x̄[i])


@add.register
def _(a: tuple, b: Any) -> Any:
    return like_tuple(a, [accumulate(x, entry(b, i)) for i, x in enumerate(a)])


@add.register
def _(a: Tangent, b: Any) -> Any:
    return add(b, a) if isinstance(b, tuple) else a + b


@multiply.register
def _(x̄: tuple, factor: Any) -> Any:
    return like_tuple(x̄, [scale(c, factor) for c in x̄])


def like_tuple(x̄: tuple[Any, ...], items: list[Any]) -> Any:
    """A tuple, or a named one of the same kind."""
    return type(x̄)(*items) if hasattr(x̄, "_fields") else tuple(items)


# Callables whose cotangents go by value, or that have none: nothing is projected, no field table.
for _type in (
    MethodType,
    BuiltinFunctionType,
    MethodWrapperType,
    MethodDescriptorType,
    WrapperDescriptorType,
    np.ufunc,
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
    type(np.sum),
):
    projector.register(_type, lambda x: None)
    adjoint_object.register(_type, lambda x: None)
    collector.register(_type, lambda y, part: None)
del _type, _kind
