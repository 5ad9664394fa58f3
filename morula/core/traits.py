"""What the rules tell the core about types, so that the core need know none.

no_tangent(str, ...)           values of these types have no tangent space
detail_of.register(T)          what the program's meaning depends on besides the type (hashable)
sample_of(T)                   a small value of type T with a given detail, for type inference
unit.register(T)               the cotangent "one" of an output of type T
zero_of(T)                     a zero cotangent that sums start from, where that is fast
adjoint_object.register(T)     the adjoint object of a mutable value, found by its identity
collector.register(T)          what has reached a mutable result of a rule, by value
on_entry.register(T)           an argument of type T as it is before the function runs
memory_of.register(T)          what stands for the memory that a value shares with others
from_memory.register(T)        what is kept beside the memory of a new value of type T
directly(f)                    how a rule's cotangents go to written memory at once
remembered.register(T)         what a pullback needs of memory that its caller may change
parts_of.register(T)           what a value of type T holds that may be changed, by key
looked_through.register(T)     what else can be reached through it
holds_others(T, ...)           code that is given a value of these types may meet what it holds
materialise.register(T)        the gradient that a user gets for an argument of type T
"""

from __future__ import annotations

import functools
from abc import ABCMeta
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from types import FunctionType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any, TypeVar

from morula.core.cotangents import NONE, ZERO, NotKnown, unthunk
from morula.core.dispatch import by_type
from morula.core.shipped import meet


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value before the program runs: its exact type and a detail."""

    type: type
    detail: Any = None


T = TypeVar("T")
_told_of: list[Any] = []  # kept: their ids must stay their own


def say_once(known: dict[int, T], fns: Iterable[Any], meaning: T, over: T | None = None) -> None:
    """Note what functions mean: once, or over an earlier meaning that the new one goes on to."""
    for f in fns:
        if over is not None and known[id(f)] is over:
            known[id(f)] = meaning
        elif known.setdefault(id(f), meaning) is not meaning:
            raise ValueError(f"what {f!r} means has been said before")
        _told_of.append(f)


_no_tangent: set[type] = {type(None)}
_samples: dict[type, Callable[[Any], Any]] = {}
_zeros: dict[type, Any] = {}


def no_tangent(*types: type) -> None:
    """Values of exactly these types have no tangent space."""
    _no_tangent.update(types)


def has_tangent(t: type) -> bool:
    """May values of type `t` carry a derivative?"""
    return t not in _no_tangent


@by_type
def shows_all(x: Any) -> bool:
    """Does what may depend on the arguments of a program reach others by the cotangent of `x` alone?

    Not so where numbers are out of sight: in bytes, in the state of an iterator or a compiled object.
    """
    return False


@by_type
def detail_of(x: Any) -> Any:
    """What matters of `x` besides its type: for an array its dtype and number of dimensions."""
    return None


def describe(x: Any) -> Known:
    """What is known of a value like `x`."""
    meet(type(x))
    return Known(type(x), detail_of(x))


def sample_of(t: type) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register a function from a detail to a small value of type `t`."""

    def register(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        _samples[t] = make
        return make

    return register


def sample(known: Known) -> Any:
    """A small value that `known` describes; KeyError where no rule can make one."""
    return _samples[known.type](known.detail)


_apart: set[type] = set()


def keep_apart(*types: type) -> None:
    """Declare types that mean something else than their bases: rules of these do not serve them."""
    _apart.update(types)


def stands_apart(t: type) -> type | None:
    """The type itself or that base of it which was declared so, if any was."""
    return next((base for base in t.__mro__ if base in _apart), None) if _apart else None


# The special methods by which Python resolves an operator, of each operand, by the operator's identity.
resolved_by: dict[int, tuple[tuple[str, ...], ...]] = {}


def says_itself(primal: Any, i: int, t: type, of_rule: type) -> bool:
    """Has a class a method of its own for the i-th operand, in the place of that which a rule means?

    A rule for a class that is written in Python is meant for what derives from it. So is one for an
    abstract class, but that it means the compiled one of it, or the one of numbers.
    """
    names = resolved_by.get(id(primal), ())
    if i >= len(names) or t is of_rule or not issubclass(t, of_rule):
        return False
    if of_rule in t.__mro__ and not isinstance(of_rule, ABCMeta):
        meant = of_rule
    else:
        meant = next(filter(is_fixed, t.__mro__))
    if meant is object or not is_fixed(meant):
        return False
    between = t.__mro__[: t.__mro__.index(meant)]
    return any(says_otherwise(name, vars(c).get(name)) for c in between for name in names[i])


COMPILED_METHODS = (WrapperDescriptorType, MethodDescriptorType)
BINDING = (staticmethod, classmethod, property, type(functools.cache(len)))  # for Python code


def says_otherwise(name: str, found: Any) -> bool:
    """Is what a class has under the name of a special method another one than the compiled one?"""
    if type(found) in COMPILED_METHODS:
        return bool(found.__name__ != name)
    return type(found) is FunctionType or is_bound_in_python(found)


def adds_to_base(cls: type, name: str) -> bool:
    """Does a class say itself what a method of the compiled base that it derives from says?"""
    base = next(filter(is_fixed, cls.__mro__))
    between = cls.__mro__[: cls.__mro__.index(base)]
    return base is not object and any(says_otherwise(name, vars(c).get(name)) for c in between)


def is_bound_in_python(found: Any) -> bool:
    """Does Python code, or what is made for it, say what is called in the place of a method?"""
    kind = type(found)
    get = next((vars(c)["__get__"] for c in kind.__mro__ if "__get__" in vars(c)), None)
    if get is None:
        call = next((vars(c)["__call__"] for c in kind.__mro__ if "__call__" in vars(c)), None)
        return type(call) is FunctionType
    return type(get) is FunctionType or issubclass(kind, BINDING)


def is_fixed(t: type) -> bool:
    """Is it a class of which it is known here what its operators do?"""
    return is_compiled(t) or t in _zeros


def is_compiled(t: type) -> bool:
    """Is it a class that was not made by a `class` statement, as far as its flags tell?"""
    return not t.__flags__ & HEAP_TYPE


HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: among others, all classes that are written in Python


def has_python(t: type) -> bool:
    """Has a class itself methods that are written in Python?"""
    return any(says_otherwise(name, x) for name, x in vars(t).items())


def zero_of(t: type, zero: Any) -> None:
    """Sums of cotangents of primals of type `t` may start from the immutable `zero`."""
    _zeros[t] = zero


def typed_zero(t: type) -> Any:
    """The immutable zero registered for `t`, or None."""
    return _zeros.get(t)


def are_numbers(types: set[type]) -> bool:
    """Has each of these types such a zero?"""
    return types <= _zeros.keys()


Stand = tuple[Any, Callable[..., bool]]
_stands: dict[type, Stand] = {}
_of_one: dict[tuple[Callable[..., bool], type], Callable[[Any, Any], bool]] = {}


def stands_for_zero(
    t: type, number: Any, test: Callable[..., bool], of_one: Callable[[Any, Any], bool]
) -> None:
    """Cotangents of values of type `t` may be `number` where they are structurally zero.

    Added to another it does not change it. Where it meets an infinite slope, `test` says so, asked of
    the gradients that come out; for one gradient `x` of this type that is `of_one(x, x)`.
    """
    _stands[t] = number, test
    _of_one[test, t] = of_one


def test_of_one(test: Callable[..., bool], t: type) -> Callable[[Any, Any], bool] | None:
    """What may be asked of x and x, of this type, in the place of `test(x)`."""
    return _of_one.get((test, t))


def stand_for_zero(t: type) -> Stand | None:
    """That number and the test, if there is one."""
    return _stands.get(t)


IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: nobody sets attributes of such a class
_scalars: dict[type, type] = {}


def scalars(of: type, *types: type) -> None:
    """Declare numbers whose cotangents are of type `of`; that, and no more, is asked of them.

    No library but Python knows them.
    """
    _scalars.update(dict.fromkeys(types, of))


def cotangent_type(t: type) -> type | None:
    """The type of the cotangents of scalars of type `t`; None: they are none."""
    return _scalars.get(t)


@by_type
def unit(y: Any) -> Any:
    """The cotangent "one" of a scalar output `y`; None: `y` is not one real number."""
    return None


@by_type
def some_cotangent(y: Any) -> Any:
    """A cotangent of `y` to transpose a pullback at, where zeros would lose its form; else None."""
    return None


@by_type
def space_problem(x: Any, x̄: Any) -> tuple[str, str] | None:
    """What the cotangent of `x` should be and what `x̄` is; None: it is in the space of `x`."""
    return None


@by_type
def adjoint_object(x: Any) -> Any:
    """A fresh adjoint object for a mutable value; None: cotangents of `x` go by value."""
    return None


@by_type
def collector(y: Any, part: Callable[[Any], Any]) -> Callable[[], Any] | None:
    """What gives, in the reverse pass, all that reached a mutable result `y`, by value.

    None: the cotangents of `y` go by value anyhow. `part` gives the same for what `y` holds.
    """
    return None


@by_type
def memory_of(x: Any) -> Any:
    """What stands for the memory of a value that goes by value and may be written to; or None."""
    return None


@by_type
def from_memory(y: Any, args: tuple[Any, ...]) -> Any:
    """The cotangents kept beside the memory of a new value, which are zero afterwards.

    What shares memory with `args` is not new. The structural zero if there are none.
    """
    return ZERO


@by_type
def shows_memory(x: Any) -> bool:
    """Is this a way to the memory of values whose tangents go by value, other than those values?"""
    return False


# What the pullback of a rule does for operands in memory that is written to, at the cost of the part
# that they are: `direct(args, ȳ)` gives its cotangents, or None where there is nothing of the kind.
_direct: dict[int, Callable[[tuple[Any, ...], Any], tuple[Any, ...] | None]] = {}


def directly(fn: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what the pullback of a rule of `fn` does for operands in written memory."""

    def register(direct: Callable[..., Any]) -> Callable[..., Any]:
        _direct[id(fn)] = direct
        return direct

    return register


def is_done_at_once(fn: Any) -> bool:
    """Was that registered?"""
    return id(fn) in _direct


def at_once(fn: Any, args: tuple[Any, ...], ȳ: Any) -> tuple[Any, ...] | None:
    """Its cotangents, if that was registered and there is something to be done."""
    direct = _direct.get(id(fn))
    return None if direct is None else direct(args, ȳ)


_handing_over: set[int] = set()


def hands_over(*fns: Any) -> None:
    """Declare callables whose rules give what was there before, not found among their arguments."""
    _handing_over.update(map(id, fns))


def gives_old(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _handing_over


_handing_on: set[int] = set()


def hands_on_whole(*fns: Any) -> None:
    """Declare callables that give an argument itself, and whose rules are meant for all it gets."""
    _handing_on.update(map(id, fns))


def gives_itself(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _handing_on


_views: set[int] = set()


def gives_view(*fns: Any) -> None:
    """Declare callables without derivative whose results show what their argument holds."""
    _views.update(map(id, fns))


def is_view(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _views


_new_containers: set[int] = set()


def new_containers(*fns: Any) -> None:
    """Declare callables that return a new list: their rules get the cotangents of its items."""
    _new_containers.update(map(id, fns))


def makes_container(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _new_containers


@by_type
def on_entry(x: Any, known: dict[int, Any]) -> Any:
    """What `materialise` gets for an argument: itself, or a picture of what is mutable in it.

    `known` are the pictures made so far, by identity.
    """
    return x


@by_type
def remembered(x: Any, known: dict[int, Any]) -> list[Callable[[], Callable[[], None]]]:
    """What can bring the memory that a value holds back to its present state, and forth again.

    `known` are the values seen so far, by identity.
    """
    return []


@by_type
def parts_of(x: Any) -> dict[Any, Any] | None:
    """What a value holds that a function may change, by the keys of its adjoint object.

    Values are compared by identity, bytes by what they are. None: nothing.
    """
    return None


@by_type
def looked_through(x: Any) -> Collection[Any]:
    """What code may be handed by a value, beside its parts: the items of a frozenset."""
    return ()


# Compiled types of which is not known, without a value, what they hold and may hand to code.
_holders: list[type] = []


def holds_others(*types: type) -> None:
    """Declare types whose parts, and what is looked through to, are met by code that is given them."""
    _holders.extend(types)


def may_hold_others(t: Any) -> bool:
    """Is it such a type, or derived from one?"""
    return isinstance(t, type) and issubclass(t, tuple(_holders))


# What a container of exactly this type holds, as something to iterate over.
_items_of: dict[type, Callable[[Any], Collection[Any]]] = {}


def holds_items(items: Callable[[Any], Collection[Any]], *types: type) -> None:
    """Declare containers, of which `items` gives all that they hold, keys left out."""
    _items_of.update(dict.fromkeys(types, items))


def items_held(x: Any) -> Collection[Any] | None:
    """What a container holds; None where x is no such container."""
    items = _items_of.get(type(x))
    return None if items is None else items(x)


# Types of what stands for a value while a library traces a program; it is left as it is.
ABSTRACT: list[type] = []


def is_abstract(x̄: Any) -> bool:
    """Does it stand for a value while a library traces a program?"""
    return bool(ABSTRACT) and isinstance(x̄, tuple(ABSTRACT))


def gradient_for(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    """What a user gets for (a part of) an argument; None: it has no tangent space."""
    if not has_tangent(type(x)):
        return None
    x̄ = unthunk(x̄)
    if type(x̄) is NotKnown:
        if getattr(of, "hands_on_unknown", False):
            return x̄
        x̄ = x̄.found()
    gradient = materialise(x, x̄, of)
    return None if gradient is NONE else gradient


@by_type
def materialise(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    """The gradient that a user gets for the argument `x` with the cotangent `x̄`.

    `of(x)` is the adjoint object of a mutable `x`, or None where nothing reached it.
    """
    raise NotImplementedError


# `brought_by[A, B](x̄)`: a cotangent of type A, brought to the space of values of type B.
brought_by: dict[tuple[type, type], Callable[[Any], Any]] = {}

_new: set[int] = set()
detail_tests: dict[type, Callable[[Any], list[tuple[str, Any, Any]]]] = {}


def fresh_results(*fns: Any) -> None:
    """Declare callables whose results share no memory with their arguments."""
    _new.update(map(id, fns))


# How calls of a function are computed in the memory of an operand, by the operand's position: functions
# of the arguments that give another function and its arguments.
Form = Callable[..., tuple[Any, ...]]
_in_place_forms: dict[int, tuple[int, dict[int, Form]]] = {}


def in_place_forms(fn: Any, n: int, forms: dict[int, Form]) -> None:
    """Register how `fn` of n arguments overwrites one that is like the result, by its position.

    With more arguments it may write to one that it is given.
    """
    _in_place_forms[id(fn)] = n, forms


def forms_in_place(fn: Any) -> tuple[int | None, dict[int, Form]]:
    """How many arguments `fn` takes, where that is known, and its forms in place."""
    return _in_place_forms.get(id(fn), (None, {}))


_marking: set[int] = set()


def marks_results(*fns: Any) -> None:
    """Declare functions whose results know more than their type says: nothing is overwritten then."""
    _marking.update(map(id, fns))


def marks(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _marking


_vanishing: set[int] = set()


def may_vanish(*fns: Any) -> None:
    """Declare functions that give the structural zero for a number that comes of marked zeros alone."""
    _vanishing.update(map(id, fns))


def vanishes(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _vanishing


@by_type
def without_marks(x: Any) -> Any:
    """The same value, knowing no more than its type says."""
    return x


_of_marked: dict[int, Any] = {}


def of_marked(fn: Any, instead: Any) -> None:
    """Declare what is called in the place of `fn` where arguments may know more than their type."""
    _of_marked[id(fn)] = instead


def instead_if_marked(fn: Any) -> Any:
    """What to call in the place of a function there; None: the function itself."""
    return _of_marked.get(id(fn))


_in_space: set[int] = set()


def gives_in_space(*fns: Any) -> None:
    """Declare callables whose rules bring their cotangents to the spaces of the arguments."""
    _in_space.update(map(id, fns))


def is_in_space(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _in_space


_cheap: set[int] = set()


def cheap(*fns: Any) -> None:
    """Declare functions that give plain numbers in no more time than it takes to keep one."""
    _cheap.update(map(id, fns))


def costs_little(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _cheap


# Tests of calls, by what is known of their operands: is what they give made again rather than kept?
made_again: list[Callable[[Callable[[Any], Any], Any], bool]] = []
_effects: set[int] = set()


def effects(*fns: Any) -> None:
    """Declare helpers of rules that are called for what they do, not for what they return."""
    _effects.update(map(id, fns))


def has_effect(fn: Any) -> bool:
    """Is this callable called for what it does?"""
    return id(fn) in _effects


_repeatable: set[int] = set()


def repeatable(*fns: Any) -> None:
    """Declare callables that leave nothing behind, or nothing that a second call would not undo."""
    _repeatable.update(map(id, fns))


def is_repeatable(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _repeatable


_inlined: set[int] = set()


def inlined(*fns: Any) -> None:
    """Declare functions of other modes, which programs call otherwise, that become part of them."""
    _inlined.update(map(id, fns))


def is_inlined(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _inlined


# What is known of the results of functions that take derivatives, from what is known of their
# arguments, before they have become part of a program.
expected_results: dict[int, Callable[[list[Any]], Any]] = {}

# The functions that programs put in the place of calls of these, by what is known of the arguments.
typed_bodies: dict[int, Callable[[list[Any]], Any]] = {}
in_several_runs: set[int] = set()  # those whose bodies call a function several times


_in_company: set[type] = set()


def called_in_company(t: type) -> None:
    """Declare a type of callables whose calls know of each other: programs leave them to the
    general path with all that is around them.
    """
    _in_company.add(t)


def is_called_in_company(t: type) -> bool:
    """Is it such a type?"""
    return t in _in_company


_partial: set[int] = set()
_partial_of_arrays: set[int] = set()


def partial_functions(*fns: Any, of_arrays: bool = False) -> None:
    """Declare callables that raise an exception for some numbers, so that each call must be made.

    For entries of arrays they give NaN instead, unless it is said that they raise there too.
    """
    _partial.update(map(id, fns))
    if of_arrays:
        _partial_of_arrays.update(map(id, fns))


def is_partial(fn: Any) -> bool:
    """May this callable raise for some numbers?"""
    return id(fn) in _partial


def is_partial_of_arrays(fn: Any) -> bool:
    """May this callable raise for some arrays of the right shape?"""
    return id(fn) in _partial_of_arrays


# `harmless_where[id(f)](args)`: does a partial function f raise nothing, by the operands that are
# constant?
harmless_where: dict[int, Callable[[Any], bool]] = {}


def is_harmless(fn: Any, args: Any) -> bool:
    """Do the constants among the operands of a partial function say that it raises nothing?"""
    test = harmless_where.get(id(fn))
    return test is not None and test(args)


_written: set[int] = set()


def written_results(*fns: Any) -> None:
    """Declare callables whose results are written to: two calls must give two objects."""
    _written.update(map(id, fns))


def is_written(fn: Any) -> bool:
    """Must each call of this callable give an object of its own?"""
    return id(fn) in _written


_in_operand: set[int] = set()


def results_in_operand(*fns: Any) -> None:
    """Declare callables that may write to their first arguments, and give those as results."""
    _in_operand.update(map(id, fns))


def may_give_operand(fn: Any) -> bool:
    """May the result of this callable be its first argument, which it has written to?"""
    return id(fn) in _in_operand


def gives_new(fn: Any) -> bool:
    """Does the result of this callable share memory with nothing?"""
    return id(fn) in _new


def detail_matches(x: Any, detail: Any) -> bool:
    """Is the detail of `x` this one?"""
    return bool(detail_of(x) == detail)


# Details may be coarse or fine (an array's with or without its shape). `coarse_detail[T]` makes a
# fine detail coarse; `constant_attribute[T]` gives an attribute that the detail decides, or None.
# `is_finest[T]` says whether there is no finer one.
coarse_detail: dict[type, Callable[[Any], Any]] = {}
is_finest: dict[type, Callable[[Any], bool]] = {}
constant_attribute: dict[type, Callable[[Any, str], Any]] = {}

# Types of values whose attributes never change.
with_fixed_attributes: list[type] = []

# The rules of reading attributes of numbers and arrays; None of those that have no derivative.
attribute_rules: dict[tuple[type, str], Callable[..., Any] | None] = {}

# By the identity of a callable: the keyword of what it calls between two items.
_reading_at_once: dict[int, str | None] = {}


def reads_at_once(*fns: Any, calls: str | None = None) -> None:
    """Declare callables that run through an iterator, if it is all that they get, and keep it not.

    What goes by the keyword `calls` is called between two items.
    """
    _reading_at_once.update((id(fn), calls) for fn in fns)


def is_read_at_once(call: Any) -> bool:
    """Does a call run through its one argument, and does nothing happen between two items?"""
    between = _reading_at_once.get(id(call.primitive), call)
    return (
        between is not call
        and len(call.args) - len(call.keywords) == 1
        and between not in call.keywords
    )


_constants: set[int] = set()


def have_constants(*modules: ModuleType) -> None:
    """Declare modules whose numbers nobody rebinds: what is computed from them is computed once."""
    _constants.update(map(id, modules))


def has_constants(module: ModuleType) -> bool:
    """Is it one of these?"""
    return id(module) in _constants


def coarse(known: Known) -> Known:
    """The same with a coarse detail."""
    make = coarse_detail.get(known.type)
    return known if make is None else Known(known.type, make(known.detail))


# What `x[key]` is where no sample says it: `part_of[T](detail of x, what is known of key)`.
part_of: dict[type, Callable[[Any, Any], Any]] = {}


class Contents:
    """How the detail of a container type behaves that says what the container holds.

    A container may be known under several names and may change, so its detail is shared by all
    names, and grows while types are inferred; `inference` is the one that is running.
    """

    hands_on = False  # do functions that are given a container know what it holds?
    may_be_missing = False  # is a value followed that is a container or None?

    def seen(self, x: Any) -> Any:
        """What a container holds that is an argument; None: nothing in common."""
        raise NotImplementedError

    def holds(self, x: Any, detail: Any) -> bool:
        """Does a container hold just what was `seen`?"""
        raise NotImplementedError

    def begin(self, inference: Any, detail: Any) -> Any:
        """The shared detail for an argument of which `detail` was `seen`."""
        raise NotImplementedError

    def kept(self, detail: Any) -> Any:
        """What is known of a container, in the form of what was `seen`, for a function it is given."""

    def join(self, a: Any, b: Any) -> Any:
        """The detail of a container that has the detail `a` or `b`."""
        raise NotImplementedError

    def lose(self, detail: Any) -> None:
        """A container is known under a name that is not followed: it may hold anything."""
        raise NotImplementedError

    def changed(self, inference: Any) -> None:
        """Something was called that may change any container that others hold."""
        raise NotImplementedError

    def is_followed(self, detail: Any) -> bool:
        """Is it known what a container holds?"""
        return detail is not None

    def item(self, detail: Any) -> Any:
        """What is known of each item."""
        raise NotImplementedError

    def part(self, inference: Any, call: Any, detail: Any) -> Any:
        """What is known of a slice."""
        return None

    def at(self, detail: Any, key: Any) -> Any:
        """What is known of the item under a key of which `key` is known."""
        raise NotImplementedError

    def attribute(self, inference: Any, call: Any, detail: Any, name: str) -> Any:
        """What is known of an attribute that `call` reads of what is followed; then it stays so."""
        return None

    def put(self, inference: Any, call: Any, container: Any, key: Any, value: Any) -> Any:
        """`call` puts an item into a container of which this is known; the same of its result."""
        raise NotImplementedError


contents: dict[type, Contents] = {}

_sized_by_values: set[int] = set()
hides_values: dict[type, Callable[[Any], bool]] = {}  # by the detail: are values more than it says?


def sized_by_values(*fns: Any) -> None:
    """Declare callables whose arguments say in numbers how large the result is, or how it lies."""
    _sized_by_values.update(map(id, fns))


def is_sized_by(fn: Any, args: Iterable[Any]) -> bool:
    """Is the result of such a callable, by numbers that are not known?"""
    return id(fn) in _sized_by_values and any(
        type(a) is Known and a.type in hides_values and hides_values[a.type](a.detail) for a in args
    )


_only_reads: set[int] = set()


def only_reads(*fns: Any) -> None:
    """Declare callables that change no container, and hold on to none but in a result of known type."""
    _only_reads.update(map(id, fns))


def reads_only(fn: Any) -> bool:
    """Is it one of these?"""
    return id(fn) in _only_reads


_follow_changes: set[int] = set()


def follows_changes(*fns: Any) -> None:
    """Declare callables that change a container, of whose change the types are known, and no other."""
    _follow_changes.update(map(id, fns))


def leaves_types(fn: Any) -> bool:
    """Does what is known of containers hold behind a call?"""
    return id(fn) in _only_reads or id(fn) in _follow_changes


# Tests of a callable, the number of arguments by position and the keywords: is one of them a value
# that the result is written to?
says_where_to_write: list[Callable[[Any, int, Any], bool]] = []

# Tests of calls, `test(fn, types of the first operand, how many arguments, keywords)`: is a value
# changed in place whose type counts as immutable? Such programs are not specialised.
changes_in_place: list[Callable[[Any, list[type], int, tuple[str, ...]], bool]] = []


# Tests of callables and types: have they to do with values that are changed in place as above? A
# program without any of these takes what is unknown for no such value.
deals_in_place: list[Callable[[Any], bool]] = []

# Names of functions, methods and keywords, and of attributes that are set, by which code may write to
# such values.
names_that_write: set[str] = set()
attributes_that_write: set[str] = set()

# Names of methods of such values, or of containers and texts, that do not write to such values, with
# the number of arguments by position of which that holds: the next one may be where to write to.
names_that_read: dict[str, int] = {}


# Tests of callables and types: is it of a library that differentiates its own values? A program with
# any of these is not specialised, for there is nothing to gain.
stays_general: list[Callable[[Any], bool]] = []


# Which values hold so much memory that they are worth releasing early: `holds_memory[T](detail)`.
holds_memory: dict[type, Callable[[Any], bool]] = {}

# Of these, which are so small that it takes longer to overwrite them than to make new ones.
better_made_anew: dict[type, Callable[[Any], bool]] = {}


# Types whose values may decide the details of a result, such as a shape: no sample stands for them.
decide_details: set[type] = {int, bool}


# Which numbers a type holds: rules whose arguments hold different ones may give cotangents that have to
# be projected (complex ones for real arguments, double ones for single).
field_of: dict[type, Callable[[Any], str]] = {}


def field(known: Known) -> str | None:
    """The field of a value, "real" or "complex" or that of a precision; None: it holds no numbers."""
    find = field_of.get(known.type)
    return None if find is None else find(known.detail)
