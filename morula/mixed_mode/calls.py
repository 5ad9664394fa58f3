"""Forward mode of calls: what calling each kind of callable does to tangents.

The kinds are those of morula/rules/calls.py: a bound method is its function with the object first,
a class makes its object by its `__new__` and `__init__`, a partial adds arguments. The tangent of a
bound method is that of its object, the tangent of a partial is `Tangent[partial](func=…, args=…)`.
Tests: tests/mixed_mode/test_language.py
"""

import operator
from functools import partial
from inspect import isgeneratorfunction
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, Generic, TypeVar, cast

import numpy as np

from morula.core import errors, general
from morula.core.callables import Calls, as_called
from morula.core.cotangents import ZERO, Tangent, is_zero, unthunk
from morula.core.gradients import Transformed
from morula.core.registry import find_rrule, is_constant
from morula.mixed_mode.push import (
    Both,
    follow_made_text,
    opaque,
    push,
    pushes,
    pushes_type,
    python_function,
    split_call,
    unknown_tangent,
)
from morula.mixed_mode.tangents import (
    Pass,
    all_zero,
    holds_mutable,
    in_space_of,
    is_stream,
    item_of,
    reached,
    set_tangents,
    set_value,
    tangents_if_any,
    tangents_of,
    together,
    value_of,
)
from morula.mixed_mode.transposition import nothing_enters, transposed_call
from morula.rules import caches
from morula.rules import calls as reverse
from morula.rules.arrays.callbacks import each_entry, function_of_ufunc
from morula.rules.arrays.ufunc_methods import along_axes, operands
from morula.rules.calls import (
    ITERATED_BY_PLACE,
    MISSING,
    STEPS,
    body_of,
    derivative_body_of,
    entry,
    has_places,
    has_too_few,
    items_of_base,
    lookup,
    order_of,
    own_method,
    part,
    registered,
    spelling_for,
)

_T = TypeVar("_T")
Args = tuple[Any, ...]
Names = tuple[str, ...]

# -- compiled callables ----------------------------------------------------------------------------


def compiled(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    """A callable that cannot be looked into; what only moves the items of a list is followed."""
    before = [] if keywords else reverse.copies(args)
    lists = [(x, old) for x, old in before if isinstance(x, list)]
    if not lists:
        return opaque(run, fn, ḟ, args, tangents, keywords)
    (xs, _), *_ = lists
    old = tangents_if_any(run, xs)
    reaches = any([not is_zero(ẋ) for ẋ in tangents]) or old or reached(run, args)
    if not reaches:
        return opaque(run, fn, ḟ, args, tangents, keywords)
    set_tangents(run, xs, [])  # so that `opaque` sees no tangent enter, and none change
    try:
        y = fn(*args)
    finally:
        set_tangents(run, xs, old or [])
    changed = reverse.changes(before)
    if not changed:
        place = next((i for i, item in enumerate(xs) if item is y), None)
        if place is not None:
            return y, item_of(old or [], place)
        return y, unknown_tangent(run, fn, args, y)
    moved = reverse.moves(before, changed, args, y)
    if moved is None:
        raise errors.no_rule(fn, args, why="which changes a list that has tangents")
    _, places, _, place = moved

    def came_from(place: int | None) -> Any:
        if place is None:
            return ZERO
        return item_of(old, place) if place >= 0 else tangents[place]

    found, ẏ = [came_from(i) for i in places], came_from(place)
    tangents_of(run, xs)[:] = found
    return y, ẏ


def served_call(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    """A call whose meaning in reverse mode is registered: by the body that says it, if any."""
    told = derivative_body_of(fn)
    streams = any(map(is_stream, args))  # what they run over may have tangents
    if told is not None and (streams or not nothing_enters(run, fn, ḟ, args, tangents)):
        y = split_call(fn, args, keywords)
        _, ẏ = push(run, told, ZERO, args, tangents, keywords)
        if is_zero(ẏ) or run.primitive is not None:
            return y, ẏ
        return y, run.each(partial(in_space_of, y), ẏ)
    body = body_of(fn)
    lazy = streams or isgeneratorfunction(body)  # or have them by then
    if body is None or (not lazy and nothing_enters(run, fn, ḟ, args, tangents)):
        found = transposed_call(run, fn, ḟ, args, tangents, keywords)
        follow_made_text(run, fn, args, tangents, found[0])
        return found
    return push(run, body, ZERO, args, tangents, keywords)


def respelled(run: Pass, fn: Any, args: Args, tangents: Args, keywords: Names) -> Any:
    """The call spelt as a rule of `fn` knows it, other arguments by position; None if none does."""
    n = len(args) - len(keywords)
    spelling = spelling_for(fn, args[:n], dict(zip(keywords, args[n:], strict=True)))
    if spelling is None:
        return None
    positions, named, _ = spelling
    order = [*positions, *[i for _, i in named]]
    values, dots = tuple([args[i] for i in order]), tuple([tangents[i] for i in order])
    return push(run, fn, ZERO, values, dots, tuple([name for name, _ in named]))


@pushes_type(BuiltinFunctionType, reverse.BuiltinMethodType)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    if registered(fn)[0] is not None:
        return served_call(run, fn, ḟ, args, tangents, keywords)
    descriptor = reverse.unbound(fn)
    if descriptor is None:
        found = respelled(run, fn, args, tangents, keywords)
        return found or compiled(run, fn, ḟ, args, tangents, keywords)
    return push(run, descriptor, ZERO, (fn.__self__, *args), (ḟ, *tangents), keywords)


@pushes_type(MethodWrapperType)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    method = vars(fn.__objclass__)[fn.__name__]
    return push(run, method, ZERO, (fn.__self__, *args), (ḟ, *tangents), keywords)


@pushes_type(MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    if fn.__name__ in STEPS and len(args) == 1 and not keywords:
        if own_method(type(args[0]), fn.__name__) is MISSING:
            return push(run, STEPS[fn.__name__], ZERO, args, tangents)
        if fn.__objclass__ in ITERATED_BY_PLACE:
            given = (*args, fn.__objclass__), (*tangents, ZERO)
            return push(run, items_of_base, ZERO, *given)
    if registered(fn)[0] is not None:
        return served_call(run, fn, ḟ, args, tangents, keywords)
    found = respelled(run, fn, args, tangents, keywords)
    return found or compiled(run, fn, ḟ, args, tangents, keywords)


@pushes_type(type(np.sum))
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    if registered(fn)[0] is not None:
        return served_call(run, fn, ḟ, args, tangents, keywords)
    found = respelled(run, fn, args, tangents, keywords)
    if found is not None:
        return cast(Both, found)
    body = fn._implementation
    if type(body) is FunctionType and not any(
        hasattr(type(a), "__array_function__") and not isinstance(a, np.ndarray) for a in args
    ):
        return push(run, body, ZERO, args, tangents, keywords)
    return compiled(run, fn, ḟ, args, tangents, keywords)


# -- Python functions, methods, callable objects ---------------------------------------------------


@pushes_type(FunctionType)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    if registered(fn)[0] is not None:
        return served_call(run, fn, ḟ, args, tangents, keywords)
    family = fn.__dict__.get("__morula__")
    if family is not None:
        return gradient_function(run, fn, family, args, tangents, keywords)
    found = respelled(run, fn, args, tangents, keywords) if keywords else None
    if found is not None:
        return cast(Both, found)
    if args and reverse.is_dispatcher(fn):
        chosen = reverse.implementation(fn, type(args[0]))
        return push(run, chosen, ZERO, args, tangents, keywords)
    return python_function(run, fn, ḟ, args, tangents, keywords)


def gradient_function(
    run: Pass, fn: Any, family: Any, args: Args, tangents: Args, keywords: Names
) -> Both:
    """What `grad` or `value_and_grad` gave: by the general path, whatever was compiled for it."""
    if isinstance(family, Calls):
        return push(run, family.general, ZERO, args, tangents, keywords)
    values, dots = (family.general, fn.__wrapped__, *args), (ZERO, ZERO, *tangents)
    return push(run, as_called, ZERO, values, dots, keywords)


@pushes_type(Transformed)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    return push(run, fn.run, ZERO, args, tangents, keywords)


@pushes(MethodType)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    known = type(args[0]) is FunctionType
    return (MethodType(*args), tangents[1]) if known else NotImplemented


@pushes_type(MethodType)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    return push(run, fn.__func__, ZERO, (fn.__self__, *args), (ḟ, *tangents), keywords)


@pushes_type(staticmethod)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    return push(run, fn.__func__, ZERO, args, tangents, keywords)


@pushes(np.frompyfunc)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    """The tangent of the ufunc is that of its function."""
    return split_call(np.frompyfunc, args, keywords), tangents[0]


@pushes(function_of_ufunc)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return function_of_ufunc(*args), tangents[0]


@pushes_type(np.ufunc)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    """A call that no rule of the ufunc itself serves: keywords, or types that it does not know."""
    if registered(fn)[0] is not None:
        return served_call(run, fn, ḟ, args, tangents, keywords)
    n = len(args) - len(keywords)
    f = function_of_ufunc(fn)
    if f is not None and not keywords and n == fn.nin:
        dots = (ḟ, ZERO, *tangents)
        return push(run, each_entry, ZERO, (f, fn.nout, *args), dots, keywords)
    if fn.signature is not None and not {"axis", "axes", "keepdims"}.isdisjoint(keywords):
        values, dots = (fn, args[:n], *args[n:]), (ZERO, together(tangents[:n]), *tangents[n:])
        return push(run, along_axes, ZERO, values, dots, keywords)
    served = is_constant(fn) or find_rrule(fn, operands(args[:n])) is not None
    if not served or find_rrule(np.ufunc.__call__, (fn, *args[:n]), keywords) is None:
        return compiled(run, fn, ḟ, args, tangents, keywords)
    return push(run, np.ufunc.__call__, ZERO, (fn, *args), (ZERO, *tangents), keywords)


@pushes_type(object)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    if registered(fn)[0] is not None:
        return served_call(run, fn, ḟ, args, tangents, keywords)
    method = own_method(type(fn), "__call__")
    if method is not MISSING:
        return push(run, method, ZERO, (fn, *args), (ḟ, *tangents), keywords)
    method = lookup(type(fn), "__call__")
    if type(method) is BuiltinFunctionType:
        return push(run, method, ZERO, args, tangents, keywords)
    found = respelled(run, fn, args, tangents, keywords)
    return found or compiled(run, fn, ḟ, args, tangents, keywords)


# -- classes ---------------------------------------------------------------------------------------


@pushes_type(type)
def construct(run: Pass, cls: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    """A class: its metaclass decides, `type` makes an instance."""
    if registered(cls)[0] is not None:
        return served_call(run, cls, ḟ, args, tangents, keywords)
    of_metaclass = lookup(type(cls), "__call__")
    if type(of_metaclass) is FunctionType:
        return push(run, of_metaclass, ZERO, (cls, *args), (ZERO, *tangents), keywords)
    return instance(run, cls, args, tangents, keywords)


@pushes(type.__call__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return instance(run, args[0], args[1:], tangents[1:], keywords)


def instance(run: Pass, cls: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    """`type.__call__`: `__new__`, then `__init__` on what it made."""
    new, initialise = lookup(cls, "__new__"), lookup(cls, "__init__")
    new = new.__func__ if type(new) is staticmethod else new
    plain_new, plain_initialise = new is object.__new__, initialise is object.__init__
    if plain_new and plain_initialise:
        return split_call(cls, args, keywords), ZERO
    obj: Any
    ȯbj: Any = ZERO
    if plain_new:
        obj = object.__new__(cls)
    elif type(new) is FunctionType or reverse.is_made_by_steps(cls):
        obj, ȯbj = push(run, new, ZERO, (cls, *args), (ZERO, *tangents), keywords)
    else:
        return compiled(run, cls, ZERO, args, tangents, keywords)
    if isinstance(obj, cls):
        initialise = lookup(type(obj), "__init__")
        if initialise is not object.__init__:
            method = reverse.in_place_of_method(initialise)
            nothing, _ = push(run, method, ZERO, (obj, *args), (ȯbj, *tangents), keywords)
            if nothing is not None:
                raise TypeError(f"__init__() should return None, not {type(nothing).__name__!r}")
    return obj, ȯbj


@pushes_type(type(Generic[_T]), GenericAlias)  # type: ignore[index]
def generic_alias(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    """`Box[float](…)`: an instance of the class."""
    y, ẏ = push(run, fn.__origin__, ZERO, args, tangents, keywords)
    reverse.remember_class(y, fn)
    return y, ẏ


@pushes(type(Generic[_T]).__call__)  # type: ignore[index]
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return generic_alias(run, args[0], ZERO, args[1:], tangents[1:], keywords)


def _new_number(kind: Any) -> Any:
    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
        _, ẏ = push(run, kind, ZERO, args[1:], tangents[1:], keywords)
        return split_call(kind.__new__, args, keywords), ẏ

    return meaning


for _kind in (float, complex):
    pushes(_kind.__new__)(_new_number(_kind))
del _kind

# -- functools, operator ---------------------------------------------------------------------------


@pushes(partial)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    y = split_call(partial, args, keywords)
    n = len(args) - len(keywords)
    inner, ḟ = args[0], tangents[0]
    given = list(tangents[1:n])
    for name, ẋ in zip(keywords, tangents[n:], strict=True):
        set_value(run, y.keywords, name, ẋ)
    if type(inner) is partial:  # flattened by CPython
        given = [entry(part(ḟ, "args"), i) for i in range(len(inner.args))] + given
        given = [given[i] for i in order_of(inner.args, n - 1)]
        for name in inner.keywords:
            if name not in keywords:
                set_value(run, y.keywords, name, value_of(run, inner.keywords, name))
        ḟ = part(ḟ, "func")
    fields = {}
    if not is_zero(ḟ):
        fields["func"] = ḟ
    if not all_zero(given):
        fields["args"] = tuple(given)
    return y, Tangent[partial](fields) if fields else ZERO


@pushes_type(partial)
def _(run: Pass, p: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    n = len(args) - len(keywords)
    named = {k: (v, value_of(run, p.keywords, k)) for k, v in p.keywords.items()}
    named.update(zip(keywords, zip(args[n:], tangents[n:], strict=True), strict=True))
    given = unthunk(part(ḟ, "args"))
    values = (*p.args, *args[:n])
    zero = is_zero(given)
    held = [ZERO if zero else unthunk(given[i]) for i in range(len(p.args))]
    dots = (*held, *tangents[:n])
    if has_places(p.args):
        if has_too_few(p.args, n):
            return split_call(p, args, keywords), ZERO  # which raises the error
        order = order_of(p.args, n)
        values, dots = tuple([values[i] for i in order]), tuple([dots[i] for i in order])
    values, dots = (
        (*values, *[v for v, _ in named.values()]),
        (*dots, *[ẋ for _, ẋ in named.values()]),
    )
    if general.is_emitted(p.func):
        return python_function(run, p.func, part(ḟ, "func"), values, dots, tuple(named))
    return push(run, p.func, part(ḟ, "func"), values, dots, tuple(named))


@pushes_type(caches.CACHED)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    n = len(args) - len(keywords)
    given = args[:n], dict(zip(keywords, args[n:], strict=True)), tangents
    return through_cache(run, fn, fn.__wrapped__, ZERO, *given)


@pushes(caches.on_miss)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    fn, compute, given, named = args
    dots = [entry(tangents[2], i) for i in range(len(given))]
    dots += [value_of(run, named, name) for name in named]
    return through_cache(run, fn, compute, tangents[1], given, named, tuple(dots))


def through_cache(
    run: Pass,
    fn: Any,
    compute: Any,
    ċompute: Any,
    args: Args,
    named: dict[str, Any],
    tangents: Args,
) -> Both:
    """The value of a function with a cache, where `compute` gives it on a miss, and its tangent."""
    values, keywords = (*args, *named.values()), tuple(named)
    found: list[Any] = []

    def pushed(*args: Any, **named: Any) -> Any:
        given = (*args, *named.values())
        y, ẏ = push(run, compute, ċompute, given, tangents, tuple(named))
        found.append(ẏ)
        return y

    y = caches.on_miss(fn, pushed, args, named)
    key = (fn, values, keywords)
    if found:
        run.calls[key] = y, found[0], tangents
        return y, found[0]
    if all_zero(tangents) and not reached(run, (fn.__wrapped__, *values)):
        return y, ZERO
    known, ẏ, inputs = run.calls.get(key, (None, ZERO, ()))
    if known is y and y is not None and all(map(is_same_tangent, tangents, inputs)):
        return y, ẏ
    if holds_mutable(y):
        raise errors.no_rule(fn, args, reason="it keeps a mutable result for later calls")
    before = general.held_by((fn.__wrapped__, *values))
    again, ẏ = push(run, fn.__wrapped__, ZERO, values, tangents, keywords)
    if general.changes(before):
        raise errors.no_rule(fn, args, reason="it has a cache, and changes what it can reach")
    if not caches.is_same(y, again):
        raise errors.no_rule(fn, args, reason="it gives another result than the one in its cache")
    run.calls[key] = y, ẏ, tangents
    return y, ẏ


def is_same_tangent(a: Any, b: Any) -> bool:
    """Are two tangents surely the same?"""
    return a is b or (is_zero(a) and is_zero(b)) or (type(a) is type(b) is float and a == b)


def getters(run: Pass, get: Any, x: Any, ẋ: Any, keys: Any) -> Both:
    """One thing got from `x`, or a tuple of several."""
    pairs = [push(run, get, ZERO, (x, key), (ẋ, ZERO)) for key in keys]
    if len(pairs) == 1:
        return pairs[0]
    return tuple([y for y, _ in pairs]), together([ẏ for _, ẏ in pairs])


@pushes(operator.itemgetter)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    fields = {i: ẋ for i, ẋ in enumerate(tangents) if not is_zero(ẋ)}
    return operator.itemgetter(*args), Tangent[operator.itemgetter](fields) if fields else ZERO


@pushes_type(operator.itemgetter)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    dots = (*tangents, *[part(ḟ, i) for i in reverse.fields_of(fn)])
    return push(run, reverse.items_at, ZERO, (*args, *reverse.values_held(fn)), dots)


@pushes_type(operator.attrgetter)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    return getters(run, reverse.attribute_path, args[0], tangents[0], fn.__reduce__()[1])


@pushes(operator.methodcaller)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    n = len(args) - len(keywords)
    fields = dict(zip([*range(n - 1), *keywords], tangents[1:], strict=True))
    fields = {k: ẋ for k, ẋ in fields.items() if not is_zero(ẋ)}
    y = split_call(operator.methodcaller, args, keywords)
    return y, Tangent[operator.methodcaller](fields) if fields else ZERO


@pushes_type(operator.methodcaller)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    name, _, names = reverse.form_of(fn)
    method, ṁethod = push(run, getattr, ZERO, (args[0], name), (tangents[0], ZERO))
    dots = [part(ḟ, key) for key in reverse.fields_of(fn)]
    return push(run, method, ṁethod, reverse.values_held(fn), tuple(dots), names)
