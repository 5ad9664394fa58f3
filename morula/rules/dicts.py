"""Rules of dicts, also of defaultdict, OrderedDict and Counter.

The adjoint object of a dict is a dict of cotangents by key; `Key(k)` stands for the cotangent of a
key itself. It follows the changes of the primal backwards.
Tests: tests/rules/test_containers.py
"""

import collections
import operator
from collections import OrderedDict, defaultdict
from types import MappingProxyType
from typing import Any

from morula.core.extend import (
    NONE,
    ZERO,
    CotangentError,
    NoTangent,
    Tangent,
    UnsupportedError,
    accumulate,
    adjoint_object,
    adjoint_of,
    call,
    gives_view,
    hands_on,
    is_zero,
    non_differentiable,
    primitives,
    project_to,
    projector,
    repeatable,
    rrule,
)
from morula.rules.calls import entry, lookup, runs_body, serves
from morula.rules.class_copies import (
    copied_as_dict,
    made_by_factory,
    ordered_default,
    stores_by_class,
    union_of,
)
from morula.rules.containers import (
    by_class,
    by_operator,
    drain,
    is_native,
    not_like,
    projections_inside,
)
from morula.rules.filling import put_by_keys, put_pairs, runs_code
from morula.rules.memos import is_remembered, refuse, remember
from morula.rules.numbers import Anything
from morula.rules.objects import behind, give, owner_of, put, take

# -- dicts -----------------------------------------------------------------------------------------


class Key:
    """In the adjoint of a dict: the cotangent of a key, not of its value."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __hash__(self) -> int:
        return hash((Key, self.key))

    def __eq__(self, other: Anything) -> bool:
        return isinstance(other, Key) and (self.key is other.key or bool(self.key == other.key))


@rrule(give, by_identity=True)
def _(table: dict, key: Anything, c: Anything):
    """Keys of tables only name what they have cotangents of: they have none, as keys of dicts have."""
    before = table.get(key, ZERO)
    if is_zero(c) or before is ZERO:
        give(table, key, c)

        def first_pullback(ȳ):
            return NoTangent(), NoTangent(), ZERO if is_zero(c) else take(adjoint_of(table), key)

        return None, first_pullback
    table[key], back = call(accumulate, before, c)

    def give_pullback(ȳ):
        bars = adjoint_of(table)
        _, of_before, of_given = back(take(bars, key))
        give(bars, key, of_before)
        return NoTangent(), NoTangent(), of_given

    return None, give_pullback


@rrule(put, by_identity=True)
def _(table: dict, key: Anything, c: Anything):
    put(table, key, c)

    def put_pullback(ȳ):
        return NoTangent(), NoTangent(), take(adjoint_of(table), key)

    return None, put_pullback


@adjoint_object.register(dict)
def _(x: dict) -> dict[Any, Any]:
    owner = owner_of(x)
    return {} if owner is None else adjoint_of(owner)


@rrule(primitives.build_map, by_identity=True)
def _(*items: Anything):
    y = primitives.build_map(*items)
    keys = items[::2]

    def build_map_pullback(ȳ):
        bars = adjoint_of(y)
        found = []
        for key in keys[::-1]:  # of a key that is given twice, the last value counts
            found += [take(bars, key), take(bars, Key(key))]
        return tuple(found[::-1])

    return y, build_map_pullback


def dict_getitem(d: dict, key: Anything):
    if key not in d and type(d) is not dict:
        missing = lookup(type(d), "__missing__")
        if not is_native(d, "__missing__"):
            return by_class("__missing__", d, key)
        if (
            isinstance(d, defaultdict)
            and missing is defaultdict.__missing__
            and d.default_factory is not None
        ):
            return default_item(d, key)
    is_memo = key in d and is_remembered(d, key)

    def getitem_pullback(ȳ):
        if is_memo:
            refuse(ȳ, key)
        give(adjoint_of(d), key, ȳ)
        return NoTangent(), NoTangent()

    return dict.__getitem__(d, key), getitem_pullback


def default_item(d: Any, key: Any) -> Any:
    """`d[key]` of a defaultdict that has no such key."""
    if stores_by_class(d):
        y, back = call(made_by_factory, d, key)
        return y, lambda ȳ: back(ȳ)[1:]
    factory = d.default_factory
    y, back = call(factory)
    dict.__setitem__(d, key, y)

    def default_item_pullback(ȳ):
        bars = adjoint_of(d)
        if not is_zero(back(accumulate(take(bars, key), ȳ))[0]):
            raise factory_by_value(factory)
        return NoTangent(), take(bars, Key(key))

    return y, default_item_pullback


def factory_by_value(factory: Any) -> Exception:
    """The factory of a defaultdict has a derivative, and no place for it."""
    return UnsupportedError(
        f"the factory of a defaultdict, a {type(factory).__name__}, holds numbers that the gradient "
        "depends on: let it be a function (lambda: …)"
    )


def dict_setitem(d: dict, key: Anything, value: Anything):
    new = key not in d
    store_of(d)(d, key, value)

    def setitem_pullback(ȳ):
        remember(d, key)
        bars = adjoint_of(d)
        return NoTangent(), take(bars, Key(key)) if new else ZERO, take(bars, key)

    return None, setitem_pullback


def store_of(d: dict[Any, Any]) -> Any:
    """The compiled `__setitem__` of a dict; an OrderedDict has its own."""
    return OrderedDict.__setitem__ if isinstance(d, OrderedDict) else dict.__setitem__


def put_of(d: dict[Any, Any]) -> Any:
    """What `update` puts an item in with: an OrderedDict asks its class, others do not."""
    asks = isinstance(d, OrderedDict) and not is_native(d, "__setitem__")
    return operator.setitem if asks else store_of(d)


def delete_of(d: dict[Any, Any]) -> Any:
    """The compiled `__delitem__` of a dict."""
    return OrderedDict.__delitem__ if isinstance(d, OrderedDict) else dict.__delitem__


non_differentiable(store_of, put_of, delete_of)


def dict_delitem(d: dict, key: Anything):
    delete_of(d)(d, key)

    def delitem_pullback(ȳ):
        take(adjoint_of(d), key)
        return NoTangent(), NoTangent()

    return None, delitem_pullback


@rrule(operator.getitem, by_identity=True)
def _(d: dict, key: Anything):
    if is_native(d, "__getitem__"):
        return dict_getitem(d, key)
    return by_class("__getitem__", d, key)


@rrule(operator.setitem, by_identity=True)
def _(d: dict, key: Anything, value: Anything):
    if is_native(d, "__setitem__"):
        return dict_setitem(d, key, value)
    return by_class("__setitem__", d, key, value)


@rrule(primitives.map_add, by_identity=True)
def _(d: dict, key: Anything, value: Anything):
    return dict_setitem(d, key, value)


@rrule(operator.delitem, by_identity=True)
def _(d: dict, key: Anything):
    if is_native(d, "__delitem__"):
        return dict_delitem(d, key)
    return by_class("__delitem__", d, key)


rrule(dict.__getitem__, by_identity=True)(dict_getitem)
_cls: Any
for _cls in (dict, OrderedDict):
    rrule(_cls.__setitem__, by_identity=True)(dict_setitem)
    rrule(_cls.__delitem__, by_identity=True)(dict_delitem)


@rrule(dict.get, by_identity=True)
def _(d: dict, key: Anything, default: Anything = None):
    if key not in d:
        return default, lambda ȳ: (NoTangent(), NoTangent(), ȳ)
    is_memo = is_remembered(d, key)

    def get_pullback(ȳ):
        if is_memo:
            refuse(ȳ, key)
        give(adjoint_of(d), key, ȳ)
        return NoTangent(), NoTangent(), ZERO

    return dict.__getitem__(d, key), get_pullback


def dict_pop(d: dict, key: Anything, *default: Anything):
    if key not in d:
        y = dict.pop(d, key, *default)  # raises KeyError without a default
        return y, lambda ȳ: (NoTangent(), NoTangent(), *[ȳ] * len(default))
    y = OrderedDict.pop(d, key) if isinstance(d, OrderedDict) else dict.pop(d, key)

    def pop_pullback(ȳ):
        give(adjoint_of(d), key, ȳ)
        return (NoTangent(), NoTangent(), *[ZERO] * len(default))

    return y, pop_pullback


@rrule(dict.popitem, by_identity=True)
@rrule(OrderedDict.popitem, by_identity=True)
def _(d: dict, last: bool = True):
    y = OrderedDict.popitem(d, last) if isinstance(d, OrderedDict) else dict.popitem(d)

    def popitem_pullback(ȳ):
        bars = adjoint_of(d)
        give(bars, Key(y[0]), entry(ȳ, 0))
        give(bars, y[0], entry(ȳ, 1))
        return NoTangent(), NoTangent()

    return y, popitem_pullback


def dict_setdefault(d: dict, key: Anything, default: Anything = None):
    if isinstance(d, OrderedDict) and not is_stored_plainly(d):
        y, back = call(ordered_default, d, key, default)
        return y, lambda ȳ: back(ȳ)[1:]
    if key in d:
        y, back = dict_getitem(d, key)
        return y, lambda ȳ: (*back(ȳ), ZERO)
    store_of(d)(d, key, default)

    def setdefault_pullback(ȳ):
        remember(d, key)
        bars = adjoint_of(d)
        return NoTangent(), take(bars, Key(key)), accumulate(take(bars, key), ȳ)

    return default, setdefault_pullback


def is_stored_plainly(d: Any) -> bool:
    """Does the class of a dict leave it as it is how an item is put in, and given?"""
    return is_native(d, "__setitem__") and is_native(d, "__getitem__")


for _cls in (dict, OrderedDict):
    rrule(_cls.pop, by_identity=True)(dict_pop)
    rrule(_cls.setdefault, by_identity=True)(dict_setdefault)


@rrule(dict.clear, by_identity=True)
@rrule(OrderedDict.clear, by_identity=True)
def _(d: dict):
    OrderedDict.clear(d) if isinstance(d, OrderedDict) else dict.clear(d)

    def clear_pullback(ȳ):
        adjoint_of(d).clear()
        return (NoTangent(),)

    return None, clear_pullback


@rrule(dict.copy, by_identity=True)
def dict_copy(d: dict):
    if not is_copied_plainly(d):
        y, back = call(copied_as_dict, d)
        return y, lambda ȳ: back(ȳ)[1:]
    y = dict.copy(d)
    keys = plain_keys(d)

    def copy_pullback(ȳ):
        bars, copied = adjoint_of(d), adjoint_of(y)
        for key in [*keys, *keys_in(copied)]:
            give(bars, key, take(copied, key))
        return (NoTangent(),)

    return y, copy_pullback


def keys_in(bars: dict[Any, Any]) -> list[Key]:
    """The keys that have cotangents of their own."""
    return [key for key in bars if type(key) is Key]


VIEWS = (
    dict.keys, dict.items, dict.values, OrderedDict.keys, OrderedDict.items, OrderedDict.values,
)  # fmt: skip
non_differentiable(OrderedDict.move_to_end, *VIEWS)
gives_view(*VIEWS)
repeatable(*VIEWS, dict.get, dict.copy, OrderedDict.copy, defaultdict.copy)


def update(d: dict[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`d.update(*args, **kwargs)`, item by item; its pullback gives the cotangents of both."""
    filled = [filled_from(d, source) for source in args]
    backs = [call(put_of(d), d, name, value)[1] for name, value in kwargs.items()]

    def update_pullback() -> list[Any]:
        bars = [back(ZERO)[3] for back in reversed(backs)]
        return [*[back() for back in filled], *reversed(bars)]

    return update_pullback


def filled_from(d: dict[Any, Any], source: Any) -> Any:
    """Put in the items of a mapping, or pairs; gives the cotangent of what they came from."""
    if isinstance(source, MappingProxyType):
        source = behind(source)
    if not is_copied_plainly(source, d) or put_of(d) is operator.setitem:
        put_all = put_by_keys if hasattr(source, "keys") else put_pairs
        _, back = call(put_all, put_of(d), d, source)
        return lambda: back(ZERO)[-1]
    keys = plain_keys(source)
    backs = [dict_setitem(d, key, dict.__getitem__(source, key))[1] for key in keys]

    def mapping_pullback() -> Any:
        table = adjoint_of(source)
        for key, back in zip(reversed(keys), reversed(backs), strict=True):
            _, key_bar, value_bar = back(ZERO)
            give(table, Key(key), key_bar)
            give(table, key, value_bar)
        return ZERO

    return mapping_pullback


def plain_keys(d: dict[Any, Any]) -> list[Any]:
    """The keys of a dict in their order, whatever its class says when it is iterated over."""
    return list(OrderedDict.keys(d) if isinstance(d, OrderedDict) else dict.keys(d))


def is_copied_plainly(source: Any, into: Any = None) -> bool:
    """Are items of a mapping copied without asking its class for `keys` and `__getitem__`?

    So does CPython where a class derived from dict leaves `__iter__` as it is, unless an OrderedDict
    is filled.
    """
    if not isinstance(source, dict):
        return False
    own_order = type(source).__iter__ is not dict.__iter__ or isinstance(into, OrderedDict)
    return not own_order or (is_native(source, "keys") and is_native(source, "__getitem__"))


non_differentiable(is_copied_plainly, is_stored_plainly)


@serves(dict.update, OrderedDict.update, dict.__init__, OrderedDict.__init__, dict.__ior__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    d, *rest = args
    if len(rest) > 1:
        fn(*args, **kwargs)  # raises
    back = update(d, tuple(rest), kwargs)
    y = d if fn is dict.__ior__ else None
    return y, lambda ȳ: (NONE, ZERO, *back())


@serves(defaultdict.__init__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    d, *rest = args
    defaultdict.__init__(d, *rest[:1])
    back = update(d, tuple(rest[1:]), kwargs)
    return None, lambda ȳ: (NONE, ZERO, *[NONE] * len(rest[:1]), *back())


@serves(dict, OrderedDict, defaultdict)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    factory = args[:1] if cls is defaultdict else ()
    if len(args) - len(factory) > 1:
        cls(*args, **kwargs)  # raises
    d = cls(*factory)
    back = update(d, args[len(factory) :], kwargs)
    return d, lambda ȳ: (NONE, *[NONE] * len(factory), *back())


@rrule(primitives.dict_update, by_identity=True)
def _(d: dict, more: Anything):
    if not hasattr(more, "keys"):
        raise TypeError(f"'{type(more).__name__}' object is not a mapping")
    back = update(d, (more,), {})
    return None, lambda ȳ: (NoTangent(), *back())


@rrule(primitives.dict_merge, by_identity=True)
def _(d: dict, more: Anything, fn: Anything):
    if not hasattr(more, "keys") or any([key in d for key in more]):
        primitives.dict_merge(d, more, fn)  # raises
    back = update(d, (more,), {})
    return None, lambda ȳ: (NoTangent(), *back(), NoTangent())


@rrule(dict.__or__, by_identity=True)
def dict_or(a: dict, b: dict):
    y, copy_back = dict_copy(a)
    back = update(y, (b,), {})

    def or_pullback(ȳ):
        back()
        copy_back(ZERO)
        return NoTangent(), NoTangent()

    return y, or_pullback


def dict_ior(a: dict, b: Anything):
    back = update(a, (b,), {})
    return a, lambda ȳ: (NoTangent(), *back())


@rrule(operator.or_, by_identity=True)
def _(a: dict, b: dict):
    if not is_native(a, "__or__") or not is_native(b, "__ror__"):
        return by_operator(operator.or_, a, b)
    union = union_of(a, b)
    if union is None:
        return dict_or(a, b)
    y, back = call(union, a, b)
    return y, lambda ȳ: back(ȳ)[1:]


@rrule(operator.ior, by_identity=True)
def _(a: dict, b: Anything):
    return dict_ior(a, b) if is_native(a, "__ior__") else by_operator(operator.ior, a, b)


def fromkeys(cls, iterable, value=None):
    """A dict of these keys."""
    y = cls()
    for key in iterable:
        y[key] = value
    return y


@serves(vars(dict)["fromkeys"], vars(OrderedDict)["fromkeys"])
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(fromkeys, *args, **kwargs)


runs_body(fromkeys, vars(dict)["fromkeys"], vars(OrderedDict)["fromkeys"])


def counts_plainly(mapping: Any) -> bool:
    """Does compiled code count in it without asking its class for `get` and `__setitem__`?"""
    native = [is_native(mapping, name) for name in ("get", "__setitem__")]
    return isinstance(mapping, dict) and all(native)


@serves(collections._count_elements)  # type: ignore[attr-defined]
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    mapping, iterable = args
    if not counts_plainly(mapping) or runs_code(iterable):
        return call(counted_one_by_one, mapping, iterable)
    items, back = drain(iterable)
    new: dict[Any, int] = {}
    for i, item in enumerate(items):
        if item not in mapping:
            new.setdefault(item, i)
    fn(mapping, items)

    def count_pullback(ȳ: Any) -> tuple[Any, ...]:
        table = adjoint_of(mapping)
        bars: list[Any] = [ZERO] * len(items)
        for key in keys_in(table):
            if key.key in new:
                bars[new[key.key]] = take(table, key)
        for item in new:
            take(table, item)
        return NONE, ZERO, back(bars)

    return None, count_pullback


def counted_one_by_one(mapping: Any, iterable: Any) -> None:
    """What compiled code does with a mapping of a user's class."""
    get = mapping.get
    for item in iterable:
        mapping[item] = get(item, 0) + 1


@rrule(primitives.own_keywords, by_identity=True)
def _(kwargs: dict):
    def own_keywords_pullback(ȳ):
        bars = adjoint_of(kwargs)
        return (Tangent[dict]({key: take(bars, key) for key in list(bars)}),)

    return kwargs, own_keywords_pullback


@projector.register(dict)
def _(x: dict) -> Any:
    items = dict(x)
    inside = projections_inside(items)

    @hands_on(x, items)
    def absorb(x̄: Any) -> Any:
        """A cotangent that a rule returned by value goes to the adjoint of the dict."""
        if type(x̄) is int and x̄ == 0:  # as in arrays of objects, which are made full of 0
            return ZERO
        if not isinstance(x̄, (dict, Tangent)):
            raise not_like(items, x̄)
        bars = adjoint_of(x)
        for key, c in x̄.items():
            if key not in items:
                n = len(items)
                raise CotangentError(
                    f"the cotangent of a dict of length {n} has the key {key!r}, the dict has not"
                )
            if c is not None:
                give(bars, key, (inside.get(key) or project_to(items[key]))(c))
        return ZERO

    return absorb


del _cls
