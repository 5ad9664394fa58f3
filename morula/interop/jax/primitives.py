"""Callables of JAX's as primitives, with `jax.vjp` as the adjoint and `jax.jvp` as the pushforward.

    primitive(f, args) = put together (apply (take apart (f, args)))

`take_apart` finds the numbers and arrays in the callable and in its arguments (forms.py), `apply` is
a function of these leaves alone, and `put_together` makes its value of the leaves of the result. All
of them are functions that Morula differentiates, so `primitive` is one. The pullback of `apply` is
another function of leaves, `Transposed`, so it is an `apply` in its turn: derivatives of any order.

JAX's cotangents of complex numbers are the conjugates of Morula's.
Tests: tests/interop/test_jax_primitives.py
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from morula.core.errors import DifferentiationError, qualified_name
from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    Thunk,
    accumulate,
    call,
    is_zero,
    no_rule,
    non_differentiable,
    project_to,
    unsupported,
)
from morula.interop.jax.arrays import device, host
from morula.interop.jax.compiled import OFTEN, compile_passes, count_of, is_known
from morula.interop.jax.forms import Keyed, forms_of, is_opaque
from morula.interop.jax.kinds import is_array, is_inexact, is_leaf, is_object_of_jax, told_apart
from morula.interop.meanings import Reverse, raw
from morula.rules.calls import entry, serves, together
from morula.rules.objects import has_fields

Args = tuple[Any, ...]


def primitive(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`fn(*args, **kwargs)`, for a callable of JAX's."""
    run, leaves = take_apart(fn, args, kwargs)
    outs, result = apply(run, leaves)
    return put_together(result, outs)


def primitive_at_once(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The value of `primitive` and its pullback, in one step."""
    run, leaves = take_apart(fn, args, kwargs)
    outs, result, pulls = linearized(run, leaves)
    y = put_together(result, outs)
    places = places_of(result, y, outs)

    def primitive_pullback(ȳ: Any) -> Args:
        bars = pull(run, leaves, outs, pulls, bars_of_outs(result, outs, places, ȳ))
        bars, store = in_their_kinds(leaves, bars), Reverse()
        of_fn, of_args, of_kwargs = run.forms
        listed = of_args.scatter(bars, store)
        parts = dict(of_kwargs.parts) if isinstance(of_kwargs, Keyed) else {}
        named = [parts[key].scatter(bars, store) if key in parts else ZERO for key in kwargs]
        return of_fn.scatter(bars, store), *[raw(listed, i) for i in range(len(args))], *named

    return y, primitive_pullback


# -- calls as functions of leaves ------------------------------------------------------------------


class OpaqueResultError(Exception):
    """The result is no tree of arrays and plain values."""


class Result:
    """What a result consists of besides the arrays that have tangents."""

    in_parts = False
    refuse: Any = None
    inner: Any = None  # where this is the result of a pushforward: that of the call

    def __init__(self, fn: Any, y: Any) -> None:
        self.tree: Any
        items, self.tree = jax.tree_util.tree_flatten(y)
        self.kinds = tuple(map(kind_of_part, items))
        self.outs = [x for x in items if is_out(x)]
        self.others = [x for x in items if is_array(x) and not is_out(x)]
        self.kept = [x for x in items if not is_array(x)]
        if any(map(is_leaf, self.kept)):  # a constant, or what has lost its tracer
            self.refuse = partial(no_rule, fn, (), reason="JAX gave a number for an array")

    def replace(self, others: list[Any]) -> Result:
        """The same with arrays in the place of tracers."""
        self.outs, self.others = [], others
        return self

    def like(self, others: list[Any]) -> Result:
        """One like this of another call."""
        return copy(self).replace(others)

    def put_together(self, outs: Any) -> Any:
        """The result, of these arrays."""
        of = {"out": iter(outs), "other": iter(self.others), "kept": iter(self.kept)}
        return self.tree.unflatten([next(of[kind]) for kind in self.kinds])


class Whole:
    """A result whose arrays have no tangents, or none that JAX knows: `refuse` raises what it says."""

    in_parts = False
    kinds: tuple[str, ...] = ()

    def __init__(self, y: Any, refuse: Any = None) -> None:
        self.y = y
        self.refuse = refuse

    def put_together(self, outs: Any) -> Any:
        """The result."""
        return self.y


def is_out(x: Any) -> bool:
    """Is it an array with a tangent space, or a number?"""
    return is_inexact(x.dtype) if is_array(x) else type(x) in (float, complex)


def kind_of_part(x: Any) -> str:
    """What a leaf of a result is."""
    return "out" if is_out(x) else "other" if is_array(x) else "kept"


class Run:
    """A call as a function of its leaves."""

    must_be_traced = False  # is there no way without?
    kinds: tuple[str, ...] = ()  # of the leaves of its result, when it was run
    twice = False  # is a leaf there twice?

    def __init__(self, fn: Any, forms: Any, captured: set[int], integers: set[int]) -> None:
        self.fn = fn
        self.forms = forms
        self.captured = captured  # the leaves that the callable has not got as arguments
        self.integers = integers

    def plain(self, leaves: Args) -> Any:
        """The call with these leaves."""
        built: dict[int, Any] = {}
        fn, args, kwargs = [form.build(leaves, built) for form in self.forms]
        before = [(x, held_by_tree(x)) for x in built.values() if is_tree(x)]
        try:
            y = fn(*args, **kwargs)
        except Exception as error:
            if type(error).__name__ == "TraceContextError":  # of Flax: what is no copy was changed
                raise changes(fn, "a Variable") from error
            raise
        for x, held in before:
            if not have_same(held, held_by_tree(x)):
                raise changes(fn, f"a {type(x).__name__}")
        return y

    def traced(self, leaves: Args) -> Result:
        """The result of the call with tracers among the leaves."""
        y = self.plain(leaves)
        if any(map(is_bound, jax.tree_util.tree_leaves(y))):
            raise unsupported(
                f"what {qualified_name(self.fn)} gives, a module of Flax with its variables,",
                "Morula does not find the variables in it",
                "call module.apply(variables, ...)",
            )
        if is_opaque(y):
            raise OpaqueResultError
        return Result(self.fn, y)


def is_bound(x: Any) -> bool:
    """Is it a module of Flax's that holds variables?"""
    return is_object_of_jax(x) and not is_array(x) and getattr(x, "scope", None) is not None


def is_tree(x: Any) -> bool:
    """Is it an object that JAX can take apart, and whose children are always the same ones?"""
    return has_fields(type(x)) and have_same(held_by_tree(x), held_by_tree(x))


def held_by_tree(x: Any) -> list[Any]:
    """The children of a tree."""
    keyed, _ = jax.tree_util.default_registry.flatten_one_level_with_keys(x) or ((), None)
    return [child for _, child in keyed]


def have_same(xs: list[Any], ys: list[Any]) -> bool:
    """Are these the very same values?"""
    return len(xs) == len(ys) and all(map(operator.is_, xs, ys))


def changes(fn: Any, what: str) -> Exception:
    """The error for a call that changes what it is given: JAX is given copies."""
    return unsupported(
        f"a call of {qualified_name(fn)}, which changes {what}",
        "JAX is called with copies of what Morula differentiates by, so that the change would be lost",
        "put all that changes it into one function under jax.jit, which gives the new state back "
        "(nnx.merge at its beginning, nnx.state at its end)",
    )


class Transposed:
    """The pullback of a call as a function of its leaves and of those cotangents that are not zero."""

    captured: frozenset[int] = frozenset()
    must_be_traced = True
    kinds: tuple[str, ...] = ()

    def __init__(self, run: Any, active: list[int], n: int, present: list[int]) -> None:
        self.run = run
        self.fn = run.fn
        self.active = active  # the leaves that JAX differentiates by
        self.n = n  # the number of all
        self.present = present  # the outputs that have cotangents
        self.integers = run.integers

    def traced(self, leaves: Args) -> Result:
        """The cotangents of the active leaves."""
        seeds = leaves[self.n :]
        return Result(
            self.fn,
            list(transposed(self.run, leaves[: self.n], self.active, self.present, seeds)),
        )


class InReverse:
    """A call as reverse mode runs it: a `custom_vjp` by its forward rule.

    That is what JAX differentiates again, in either mode, and not the function itself.
    """

    captured: frozenset[int] = frozenset()
    must_be_traced = True
    kinds: tuple[str, ...] = ()

    def __init__(self, call: Any) -> None:
        self.call = call
        self.fn = call.fn
        self.integers = call.integers

    def traced(self, leaves: Args) -> Result:
        """The leaves of its result."""
        active = [i for i in range(len(leaves)) if i not in self.integers]
        outs, _, _ = vjp(self.call, leaves, active)
        return Result(self.fn, outs)


def with_leaves(leaves: Args, places: list[int], values: Any) -> Args:
    """The leaves with these in some places."""
    new = list(leaves)
    for i, x in zip(places, values, strict=True):
        new[i] = x
    return tuple(new)


def vjp(run: Any, leaves: Args, active: list[int]) -> tuple[Any, Any, Any]:
    """The leaves of a result, JAX's pullback by the active leaves, and what else the result is."""
    kept: list[Any] = []

    def function(*values: Any) -> tuple[Any, Any]:
        result = run.traced(with_leaves(leaves, active, values))
        if any(type(x) in (float, complex) for x in result.outs):
            raise TypeError("it gave a number for an array")  # a constant, or its tracer is lost
        kept.append(result)
        return result.outs, result.others

    outs, pull, others = jax.vjp(function, *[leaves[i] for i in active], has_aux=True)
    shapes = [(np.shape(x), jnp.result_type(x)) for x in outs]
    return plain_numbers(outs), (pull, shapes), kept[-1].replace(others)


def plain_numbers(outs: Any) -> list[Any]:
    """The leaves of a result: a number that was handed on is a number, as in the plain call."""
    return [x if is_array(x) else x + 0.0 for x in outs]  # of a class of JAX's, with a dtype


def transpose(pull: Any, present: list[int], seeds: Any) -> Any:
    """The cotangents of the active leaves, as Morula has them, from those of some outputs."""
    pull, shapes = pull
    given = dict(zip(present, seeds, strict=True))
    bars = [
        conjugate(given[i]) if i in given else jnp.zeros(shape, dtype)
        for i, (shape, dtype) in enumerate(shapes)
    ]
    return tuple(map(conjugate, pull(bars)))


def transposed(run: Any, leaves: Args, active: list[int], present: list[int], seeds: Any) -> Any:
    """The cotangents of the active leaves, from those of some outputs of the call as it was run.

    With real numbers in the place of integers it may have more outputs, of other dtypes.
    """
    outs, pull, result = vjp(run, leaves, active)
    among = matching(run.kinds, result.kinds)
    present = [among[i] for i in present]
    given = [as_seed(outs[i], c) for i, c in zip(present, seeds, strict=True)]
    return transpose(pull, present, given)


def matching(kinds: tuple[str, ...], others: tuple[str, ...]) -> list[int]:
    """Of each output among the leaves of a result, its number among the outputs of one like it."""
    if len(kinds) != len(others):
        raise TypeError("another result for a real number")
    return [others[:i].count("out") for i, kind in enumerate(kinds) if kind == "out"]


def conjugate(x: Any) -> Any:
    """JAX's cotangent of a complex number from Morula's, and back."""
    return jnp.conj(x) if jnp.iscomplexobj(x) else x


# -- the leaves of a call --------------------------------------------------------------------------


def take_apart(fn: Any, args: Args, kwargs: dict[str, Any]) -> tuple[Any, Args]:
    """A call as a function of its leaves, and these."""
    forms, known = forms_of(fn, args, kwargs)
    leaves = told_apart(known.leaves)
    run = Run(fn, forms, known.captured, known.integers)
    run.twice = any(x is not old for x, old in zip(leaves, known.leaves, strict=True))
    return run, leaves


@serves(take_apart)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    run, leaves = take_apart(*args)

    def take_apart_pullback(ȳ: Any) -> Any:
        bars = in_their_kinds(leaves, entry(ȳ, 1))
        store = Reverse()
        return (NONE, *[form.scatter(bars, store) for form in run.forms])

    return (run, leaves), take_apart_pullback


def in_their_kinds(leaves: Args, bars: Any) -> list[Any]:
    """The cotangents of leaves, as JAX gives them, in the spaces of the leaves."""
    return [project_to(x)(in_kind(x, raw(bars, i))) for i, x in enumerate(leaves)]


def in_kind(x: Any, c: Any) -> Any:
    """A cotangent of JAX's as one of NumPy's where the leaf is none of JAX's; when it is asked for."""
    return c if is_array(x) or not is_array(c) else Thunk(partial(host, c))


def put_together(result: Any, outs: Any) -> Any:
    """The result of a call from its leaves."""
    return result.put_together(outs)


@serves(put_together)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    result, outs = args
    y = put_together(result, outs)
    places = places_of(result, y, outs)

    def put_together_pullback(ȳ: Any) -> Any:
        return NONE, NONE, bars_of_outs(result, outs, places, ȳ)

    return y, put_together_pullback


def bars_of_outs(result: Any, outs: Any, places: Any, ȳ: Any) -> Any:
    """The cotangents of the leaves of a result, as a tuple."""
    form, order, n = places
    found = gathered(form, n, ȳ)
    bars: list[Any] = [ZERO] * len(outs)
    for i, c in zip(order, found, strict=True):
        if i is not None:
            bars[i] = accumulate(bars[i], c)
        elif not is_zero(c) and result.refuse is not None:
            if not result.in_parts:
                raise result.refuse()
            bars = [NotKnown(result.refuse)] * len(outs)
    return together(bars)


def gathered(form: Any, n: int, ȳ: Any) -> list[Any]:
    """The cotangents of the leaves of a result."""
    found = [ZERO] * n
    form.gather(ȳ, Reverse(), found)
    return found


def places_of(result: Any, y: Any, outs: Any) -> tuple[Any, list[Any], int]:
    """The form of a result, which of the outputs its leaves are, and how many it has."""
    (form,), known = forms_of(y)
    if len(set(map(id, outs))) < len(outs):
        outs = told_apart(outs)
        _, known = forms_of(result.put_together(outs))
    where: dict[int, Any] = {}
    for i, x in enumerate(outs):
        where[id(x)] = None if id(x) in where else i  # integers cannot be told apart
    return form, [where.get(id(x)) for x in known.leaves], len(known.leaves)


# -- the function of the leaves --------------------------------------------------------------------


def apply(run: Any, leaves: Args) -> tuple[Args, Any]:
    """The leaves of the result of a call, and what else it consists of."""
    outs, result, _ = linearized(run, leaves)
    return outs, result


def linearized(run: Any, leaves: Args) -> tuple[Args, Any, Any]:
    """The same, and the pullback: JAX's, and the leaves that it is by, or why there is none."""
    if len(run.integers) == len(leaves):
        return without_derivatives(run, leaves)
    if run.must_be_traced:
        active = [i for i in range(len(leaves)) if i not in run.integers]
        try:
            outs, pull, result = vjp(run, leaves, active)
        except NotImplementedError as error:
            if "custom_lin" not in str(error):
                raise
            reason = "JAX: a function with a custom_vjp has no forward mode"
            raise no_rule(run.fn, leaves, why="in forward mode", reason=reason) from None
        run.kinds = result.kinds
        return tuple(outs), result, (pull, active, "")
    count = count_of(run, leaves)
    found = in_compiled_form(count, run, leaves)
    if found is not None:
        run.kinds = found[1].kinds
        return found
    reason = ""
    for active in by_which(run, leaves):
        try:
            outs, pull, result = vjp(run, leaves, active)
            if count is not None and not all(map(is_array, outs)):
                count.passes = None  # a compiled call gives no numbers
            run.kinds = result.kinds
            return tuple(outs), result, (pull, active, reason)
        except DifferentiationError:
            raise
        except RETRIED as error:
            reason = str(error).split("\n")[0]
    refuse = partial(no_rule, run.fn, leaves, reason=f"JAX: {reason}")
    return (), Whole(run.plain(leaves), refuse), (None, [], reason)


def in_compiled_form(count: Any, run: Any, leaves: Args) -> Any:
    """The same for a call that was made often; None: it was not, or cannot be compiled."""
    if count is None or count.calls <= OFTEN or count.passes is None:
        return None
    active = next(by_which(run, leaves))
    try:
        if not count.passes:
            count.passes = compile_passes(vjp, run, leaves, active)
        forward, backward = count.passes
        outs, arrays, pull, result = forward(leaves)
    except DifferentiationError:
        raise
    except RETRIED:  # it asks for values
        count.passes = None
        return None
    shapes = [(x.shape, x.dtype) for x in outs]
    back = partial(backward, pull)
    return tuple(outs), result.like(arrays), ((back, shapes), active, "")


def without_derivatives(run: Any, leaves: Args) -> tuple[Args, Any, Any]:
    """The same for a call of no leaves that JAX has a derivative by."""
    y = run.plain(leaves)
    if not leaves or is_opaque(y):
        return (), Whole(y), (None, [], "")
    result = Result(run.fn, y)
    run.kinds = result.kinds
    outs, others = result.outs, result.others
    return tuple(outs), result.replace(others), (None, [], "")


RETRIED = (TypeError, ValueError, NotImplementedError, AttributeError, IndexError)


def by_which(run: Any, leaves: Args) -> Iterator[list[int]]:
    """Which leaves are to be traced: all, if the callable can do with it.

    It may ask for the value of one: a number that decides a shape, an array that goes to NumPy.
    """
    everything = [i for i in range(len(leaves)) if i not in run.integers]
    yield everything
    fewer = [
        i for i in everything if is_array(leaves[i]) or not is_host(leaves[i], run.captured, i)
    ]
    fewest = [i for i in everything if is_array(leaves[i])]
    if len(fewer) < len(everything):
        yield fewer
    if len(fewest) < len(fewer):
        yield fewest


def is_host(x: Any, captured: set[int], i: int) -> bool:
    """Is a leaf one number, or captured?"""
    return i in captured or not isinstance(x, np.ndarray)


@serves(apply)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    run, leaves = args
    outs, result, pulls = linearized(run, leaves)

    def apply_pullback(ȳ: Any) -> Any:
        return NONE, NONE, pull(run, leaves, outs, pulls, entry(ȳ, 0))

    return (outs, result), apply_pullback


@serves(linearized)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    run, leaves = args
    outs, result, pulls = linearized(run, leaves)
    again, pulls_again = run, pulls
    if has_custom_vjp(run, leaves):
        again = InReverse(run)
        _, _, pulls_again = linearized(again, leaves)

    def linearized_pullback(ȳ: Any) -> Any:
        return NONE, NONE, pull(again, leaves, outs, pulls_again, entry(ȳ, 0))

    return (outs, result, pulls), linearized_pullback


def has_custom_vjp(run: Any, leaves: Args) -> bool:
    """Does a call run a function of the user's with a `custom_vjp`?"""
    if run.must_be_traced or is_known(run.fn):
        return False
    active = [i for i in range(len(leaves)) if i not in run.integers]
    try:
        program = jax.make_jaxpr(lambda *xs: run.traced(with_leaves(leaves, active, xs)).outs)
        return runs_custom_vjp(program(*[leaves[i] for i in active]))
    except RETRIED:  # it asks for values
        return False


def programs_in(params: Any) -> list[Any]:
    """The programs that a step of another calls."""
    return [x for x in jax.tree_util.tree_leaves([*params.values()]) if hasattr(x, "eqns")]


def runs_custom_vjp(program: Any) -> bool:
    """Is there one in a program, or in what it calls?"""
    return any(
        "custom_vjp" in step.primitive.name or any(map(runs_custom_vjp, programs_in(step.params)))
        for step in program.eqns
    )


def pull(run: Any, leaves: Args, outs: Args, pulls: Any, bars: Any) -> Any:
    """The cotangents of the leaves from those of the outputs."""
    present = [i for i in range(len(outs)) if not is_zero(entry(bars, i))]
    if not present:
        return ZERO
    for i in present:
        if type(entry(bars, i)) is NotKnown:
            return (entry(bars, i),) * len(leaves)
    seeds = tuple([as_seed(outs[i], entry(bars, i)) for i in present])
    return pulled(run, leaves, pulls, present, seeds)


def as_seed(out: Any, c: Any) -> Any:
    """The cotangent of an output as JAX wants it."""
    return device(c, jnp.result_type(out), np.shape(out))


def pulled(run: Any, leaves: Args, pulls: Any, present: list[int], seeds: Args) -> Any:
    """The same, from those that are not zero."""
    pull, active, _ = pulls
    if not active:
        return spread(run, leaves, pulls, present, seeds, ())
    try:
        found = transpose(pull, present, seeds)
    except (ValueError, NotImplementedError) as error:
        if "everse-mode" not in str(error) and "ranspos" not in str(error):
            raise
        raise no_rule(run.fn, leaves, reason=f"JAX: {error}") from None
    return spread(run, leaves, pulls, present, seeds, found)


def spread(
    run: Any, leaves: Args, pulls: Any, present: list[int], seeds: Args, found: Any
) -> tuple[Any, ...]:
    """Cotangents of all leaves: of integers when they are asked for; some have one nobody knows."""
    _, active, reason = pulls
    error = partial(no_rule, run.fn, leaves, reason=f"JAX asked for its value: {reason}")
    bars: list[Any] = [NotKnown(error)] * len(leaves)
    for i, c in zip(active, found, strict=True):
        bars[i] = c
    for i in run.integers:
        bars[i] = Thunk(partial(by_integer, run, leaves, i, present, seeds))
    return tuple(bars)


def by_integer(run: Any, leaves: Args, i: int, present: list[int], seeds: Args) -> Any:
    """The cotangent of an integer: that of the real number, where the callable can take one."""
    try:
        return host(transposed(run, with_real(leaves, [i]), [i], present, seeds)[0])
    except RETRIED:  # a shape, an index, an axis
        return ZERO


def with_real(leaves: Args, places: list[int]) -> Args:
    """The leaves with integers as real numbers."""
    return with_leaves(leaves, places, [as_real(leaves[i]) for i in places])


def as_real(x: Any) -> Any:
    """An integer as a real number; one of Python's stays one, which decides no dtype."""
    return float(x) if isinstance(x, int) else np.asarray(x, float)


def takes_real(run: Any, leaves: Args, i: int, present: list[int], seeds: Args) -> bool:
    """Can the callable take a real number in the place of an integer?"""
    return by_integer(run, leaves, i, present, seeds) is not ZERO


def by_integer_anew(run: Any, leaves: Args, i: int, present: list[int], seeds: Args) -> Any:
    """`by_integer`, as differentiated code sees it."""
    if not takes_real(run, leaves, i, present, seeds):
        return ZERO
    pullback = Transposed(run, [i], len(leaves), present)
    pullback.integers = run.integers - {i}
    found, _ = apply(pullback, (*with_real(leaves, [i]), *seeds))
    return host(found[0])


@serves(by_integer)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    return call(by_integer_anew, *args)


def pulled_anew(run: Any, leaves: Args, pulls: Any, present: list[int], seeds: Args) -> Any:
    """`pulled`, as differentiated code sees it."""
    _, active, _ = pulls
    found: Any = ()
    if active:
        found, _ = apply(Transposed(run, active, len(leaves), present), (*leaves, *seeds))
    return spread(run, leaves, pulls, present, seeds, found)


@serves(pulled)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    return call(pulled_anew, *args)


non_differentiable(places_of, is_out, takes_real, matching)
