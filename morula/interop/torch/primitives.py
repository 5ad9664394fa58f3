"""Callables of PyTorch's as primitives: `torch.autograd` is their adjoint and their pushforward.

    primitive(f, args) = put together (outs_of (take apart (f, args)))

`take_apart` finds the tensors and numbers in the arguments, and the parameters of a module, and runs
the call on them; `outs_of` gives the tensors that came out, by the record of that run (graphs.py);
`put_together` makes the value of them. Morula differentiates all three.
Tests: tests/interop/test_torch.py
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from functools import partial
from types import BuiltinFunctionType, CellType
from typing import Any

import numpy as np
import torch

from morula.core.errors import NoRuleError
from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    Thunk,
    accumulate,
    adjoint_object,
    adjoint_of,
    collector,
    general,
    is_reached,
    is_zero,
    materialise,
    no_rule,
    no_tangent,
    non_differentiable,
    on_entry,
    project_to,
    projector,
    unsupported,
    unthunk,
)
from morula.interop.meanings import (
    Args,
    Forward,
    Reverse,
    is_delayed,
    raw,
    reverse,
    takes_only_tangents,
)
from morula.interop.structures import filled, form_of
from morula.interop.torch.graphs import Graph, Pushed, Transposed
from morula.interop.torch.tensors import host, is_inexact, is_tensor, like
from morula.mixed_mode.push import pushes
from morula.mixed_mode.tangents import together
from morula.rules.calls import entry, serves
from morula.rules.objects import has_fields, is_by_identity, take

NUMBERS = (float, complex, np.floating, np.complexfloating)
INTEGERS = (int, np.integer)
REFUSING = (TypeError, ValueError, RuntimeError, IndexError)


def primitive(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`fn(*args, **kwargs)`, for a callable of PyTorch's."""
    if any(map(is_iterator, args)):  # such as net.parameters()
        args = tuple([list(x) if is_iterator(x) else x for x in args])
    run, leaves, token = take_apart(fn, args, kwargs)
    return put_together(run, outs_of(run.graph, leaves), token)


def primitive_at_once(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The value of `primitive` and its pullback, in one step."""
    if any(map(is_iterator, args)):
        return reverse(primitive, fn, args, kwargs)
    run, leaves, token = take_apart(fn, args, kwargs)
    outs = outs_of(run.graph, leaves)
    y = put_together(run, outs, token)

    def primitive_pullback(ȳ: Any) -> Args:
        bars, arrived = bars_of_outs(run, outs, ȳ)
        listed, _ = bars_of_inputs(run, bars_of_leaves(run.graph, leaves, outs, bars), arrived)
        table = adjoint_of(kwargs) if kwargs else {}
        named = [take(table, key) for key in kwargs]
        return NONE, *[raw(listed, i) for i in range(len(args))], *named

    return y, primitive_pullback


def is_iterator(x: Any) -> bool:
    """Can it be run through only once?"""
    return isinstance(x, Iterator)


# -- cotangents by form ----------------------------------------------------------------------------


def scatter(form: Any, x: Any, bars: Any, store: Any) -> Any:
    """The cotangent of a value by value; what goes by identity is put in the store."""
    if form is None:
        return ZERO
    if isinstance(form, int):
        return bars[form]
    parts = {key: scatter(part, x[key], bars, store) for key, part in form.items()}
    if isinstance(x, tuple):
        found = [parts.get(i, ZERO) for i in range(len(x))]
        return tuple(found) if any(map(is_delayed, found)) else together(found)
    for key, c in parts.items():
        (store.put_item if isinstance(x, list) else store.put_value)(x, key, c)
    return ZERO


def gather(form: Any, x: Any, c: Any, store: Any, found: list[Any]) -> None:
    """Add to `found` the cotangents of the leaves of a value."""
    if form is None:
        return
    if isinstance(form, int):
        found[form] = accumulate(found[form], unthunk(c))
        return
    for key, part in form.items():
        if isinstance(x, tuple):
            inside = entry(c, key)
        else:
            inside = (store.get_item if isinstance(x, list) else store.get_value)(x, key)
        gather(part, x[key], inside, store, found)


def is_floating(x: Any) -> bool:
    """Is it a tensor with a tangent space?"""
    return is_tensor(x) and is_inexact(x)


def is_input(x: Any) -> bool:
    """Is it a number, an array or a tensor that a call may be differentiated by?"""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fc"
    return is_floating(x) or isinstance(x, NUMBERS)


def is_integer(x: Any) -> bool:
    """Is it an integer: a point of the real line, for Morula?"""
    return isinstance(x, INTEGERS) and type(x) is not bool


def is_leaf(x: Any) -> bool:
    """Is it an input or an integer?"""
    return is_input(x) or is_integer(x)


def is_operand(x: Any) -> bool:
    """The same of an operator, which makes tensors of arrays of integers, too."""
    return is_leaf(x) or (isinstance(x, np.ndarray) and x.dtype.kind in "iu")


def holds_inside(x: Any, test: Any) -> bool:
    """Does a value pass a test, or anything that it holds, however deep?"""
    return test(x) or any(test(v) for _, parts in general.held_by((x,)) for v in parts.values())


def is_input_by_value(x: Any) -> bool:
    """Is it an input, or holds one, and is not found by its identity?"""
    return is_input(x) or (not is_by_identity(x) and holds_inside(x, is_input))


def unique(xs: list[Any]) -> list[Any]:
    """Each object once."""
    return list({id(x): x for x in xs}.values())


def is_made(x: Any) -> bool:
    """Is it a callable or an object of the user's or PyTorch's, that is no module?"""
    if isinstance(x, torch.nn.Module) or is_tensor(x):
        return False
    return hasattr(x, "__closure__") or isinstance(x, partial) or has_fields(type(x))


def partials_of(given: Iterable[tuple[Any, Any]]) -> list[Any]:
    """The names of those that are partial applications to what a call may be differentiated by."""
    return [k for k, x in given if isinstance(x, partial) and general.holds(x, is_input)]


# -- a call ----------------------------------------------------------------------------------------


class Run:
    """A call on tensors, with its record.

    The leaves are those of the arguments, then those of modules, each in a table under a name. The
    record is by those of them that are `traced`; of the others the derivative is not known, nor
    is it of what functions hold that are handed to PyTorch: pairs of owner and key.
    """

    def __init__(self, fn: Any, args: Args, kwargs: dict[str, Any]) -> None:
        self.fn = fn
        self.inputs = (args, kwargs)
        self.leaves: list[Any] = []
        self.form = form_of(self.inputs, test_of_leaves(fn), self.leaves)
        self.integers = [i for i, x in enumerate(self.leaves) if is_integer(x)]
        self.n_args = len(self.leaves)
        self.tables: list[tuple[Any, str]] = []
        self.held: list[tuple[Any, Any]] = []
        self.partials = partials_of(enumerate(args))
        self.named_partials = partials_of(kwargs.items())
        self.y: Any = None
        self.traced: list[int] = []
        self.begin: list[Any] = []
        self.find_parameters()
        if not isinstance(fn, torch.nn.Module):
            self.find_held()
        self.run()
        outs: list[Any] = []
        self.y_form = form_of(self.y, is_floating, outs)
        self.graph = Graph(self.begin, outs)
        self.graph.with_real = self.with_reals(())
        self.y = filled(self.y, self.y_form, [x.detach() for x in outs])

    def find_parameters(self) -> None:
        """The parameters of modules, and other tensors that are their attributes."""
        for module in unique([inner for whole in self.modules() for inner in whole.modules()]):
            for table in (module._parameters, vars(module)):
                for name, x in table.items():
                    if is_floating(x):
                        self.leaves.append(x)
                        self.tables.append((table, name))

    def modules(self) -> list[Any]:
        """The modules that a call has to do with: also those that its callables hold."""
        if isinstance(self.fn, torch.nn.Module):
            return [self.fn]
        args, kwargs = self.inputs
        inside = [v for _, parts in general.held_by(self.made()) for v in parts.values()]
        found = [*args, *kwargs.values(), *inside]
        return [x for x in found if isinstance(x, torch.nn.Module)]

    def made(self) -> tuple[Any, ...]:
        """The callables and objects that a call has to do with."""
        args, kwargs = self.inputs
        return tuple([x for x in (self.fn, *args, *kwargs.values()) if is_made(x)])

    def find_held(self) -> None:
        """What the functions hold that PyTorch is given, or made the callable of."""
        found = {(id(table), name) for table, name in self.tables}
        for owner, parts in general.held_by(self.made()):
            if is_by_identity(owner) and not isinstance(owner, torch.nn.Module):
                inputs = [key for key, x in parts.items() if is_input_by_value(x)]
                self.held += [(owner, k) for k in inputs if (id(owner), k) not in found]

    def made_what_is_reached(self) -> bool:
        """Is the value a function, as `torch.vmap` gives one, in which cotangents have arrived?"""
        return any(is_reached(owner) for owner, _ in general.held_by((self.y,)))

    def run(self) -> None:
        """Run the call: by all that it takes as tensors."""
        tensors = [i for i, x in enumerate(self.leaves) if is_tensor(x)]
        everything = [i for i in range(len(self.leaves)) if i not in self.integers]
        if tensors and len(tensors) < len(everything) and takes_tensors(self.fn):
            try:
                return self.record(everything)
            except TypeError:
                _no_numbers.add(self.fn)
        return self.record(tensors)

    def record(self, traced: list[int]) -> None:
        """The call, with these leaves recorded."""
        dtype = precision_of(self.leaves)
        leaves = list(self.leaves)
        for i in traced:
            leaves[i] = beginning(leaves[i], dtype)
        self.y = self.call(leaves)
        self.traced = traced
        self.begin = [leaves[i] for i in traced]

    def call(self, leaves: list[Any]) -> Any:
        """What the call gives with these leaves, recorded."""
        args, kwargs = filled(self.inputs, self.form, leaves)
        of_modules = list(zip(self.tables, leaves[self.n_args :], strict=True))
        before = [table[name] for table, name in self.tables]
        with torch.enable_grad():
            try:
                for (table, name), x in of_modules:
                    table[name] = x
                return self.fn(*args, **kwargs)
            finally:
                for ((table, name), x), old in zip(of_modules, before, strict=True):
                    if table.get(name) is x:
                        table[name] = old

    def with_reals(self, reals: tuple[int, ...]) -> list[Any]:
        """For each integer but those: the record of the call by it as well."""
        return [partial(self.with_real, (*reals, i)) for i in self.integers if i not in reals]

    def with_real(self, reals: tuple[int, ...]) -> Graph | None:
        """The record of the call by some integers as well; None: one of them is no real number."""
        leaves = list(self.leaves)
        for k, x in zip(self.traced, self.begin, strict=True):
            leaves[k] = x
        for i in reals:
            leaves[i] = beginning(float(self.leaves[i]), precision_of(self.leaves))
        outs: list[Any] = []
        if form_of(self.again(leaves), is_floating, outs) != self.y_form:
            for i in reals:
                leaves[i] = float(self.leaves[i])
            if form_of(self.again(leaves), is_floating, []) == self.y_form:
                raise self.unknown()  # it is a number, but no tensor
            return None
        graph = Graph([*self.begin, *[leaves[i] for i in reals]], outs)
        graph.with_real = self.with_reals(reals)
        return graph

    def again(self, leaves: list[Any]) -> Any:
        """What the call gives with other leaves; nothing else of that stays. None: they are refused."""
        buffers = [x for module in self.modules() for x in module.buffers()]
        old, state = [x.clone() for x in buffers], torch.get_rng_state()
        try:
            return self.call(leaves)
        except REFUSING:
            return None
        finally:
            for x, before in zip(buffers, old, strict=True):
                x.data.copy_(before)
            if not torch.equal(state, torch.get_rng_state()):
                torch.set_rng_state(state)
                raise self.unknown()  # other numbers than in the first run

    def taken(self) -> Args:
        """The leaves that are recorded, and the integers."""
        return tuple([self.leaves[i] for i in (*self.traced, *self.integers)])

    def untraced(self) -> list[int]:
        """The numbers among the arguments that are not."""
        return [i for i in range(self.n_args) if i not in {*self.traced, *self.integers}]

    def unknown(self) -> Exception:
        """The error for what the record is not by."""
        return no_rule(
            self.fn, self.leaves, reason="PyTorch differentiates by tensors only: make one of it"
        )


ARITHMETIC = {
    getattr(operator, name)
    for name in ["add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"]
}


def test_of_leaves(fn: Any) -> Any:
    """What tells whether a callable can be differentiated by a value."""
    if type(fn) is not BuiltinFunctionType:
        return is_leaf
    if fn in ARITHMETIC:
        return is_operand
    return is_input if fn is operator.getitem else is_leaf


_no_numbers: set[Any] = set()


def takes_tensors(fn: Any) -> bool:
    """Is it compiled, so that it looks at its arguments before it does anything, and takes tensors?"""
    return not hasattr(fn, "__code__") and fn not in _no_numbers


def precision_of(leaves: list[Any]) -> Any:
    """The floating dtype of numbers among tensors: that of the widest."""
    found = [torch.empty(0, dtype=x.dtype).real.dtype for x in leaves if is_tensor(x)]
    return max(found, key=lambda d: torch.finfo(d).bits) if found else torch.get_default_dtype()


def beginning(x: Any, dtype: Any) -> Any:
    """A leaf from which a record begins."""
    if is_tensor(x):
        return (x.clone() if x.is_inference() else x.detach()).requires_grad_()
    if isinstance(x, np.ndarray):
        if (
            x.dtype.kind in "iu"
        ):  # of NumPy's precision, for that is what calculates in the plain call
            x = x.astype(np.result_type(x, np.float16 if dtype.itemsize == 2 else np.float32))
        return torch.tensor(x).requires_grad_()
    if isinstance(x, (complex, np.complexfloating)):
        dtype = torch.complex128 if dtype is torch.float64 else torch.complex64
    return torch.tensor(x, dtype=dtype).requires_grad_()


# -- the three steps -------------------------------------------------------------------------------


def take_apart(fn: Any, args: Args, kwargs: dict[str, Any]) -> tuple[Run, Args, float]:
    """A call with its record, the leaves that this is by, and a token.

    The token has a cotangent if anything of the value has: then those of what is not traced
    are not known.
    """
    if kwargs.get("out") is not None:
        raise in_place(fn)
    run = Run(fn, args, kwargs)
    return run, run.taken(), 0.0


def in_place(fn: Any) -> Exception:
    """The error for what changes a tensor."""
    return unsupported(
        f"{getattr(fn, '__name__', fn)}, which changes a tensor in place,",
        "tensors go by value in differentiated code",
        "make a new tensor",
    )


@serves(take_apart)
def _(f: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    run, leaves, token = take_apart(*args)

    def take_apart_pullback(ȳ: Any) -> Any:
        return NONE, NONE, *bars_of_inputs(run, entry(ȳ, 1), entry(ȳ, 2))

    return (run, leaves, token), take_apart_pullback


def bars_of_inputs(run: Run, found: Any, arrived: Any) -> tuple[Any, Any]:
    """The cotangents of the arguments, from those of what is traced."""
    bars: list[Any] = [ZERO] * len(run.leaves)
    for k, i in enumerate((*run.traced, *run.integers)):
        bars[i] = in_kind(run.leaves[i], raw(found, k))
    if not is_zero(arrived):
        for i in run.untraced():
            bars[i] = NotKnown(run.unknown)
        for owner, key in run.held:
            put(Reverse(), owner, key, NotKnown(run.unknown))
    for (table, name), c in zip(run.tables, bars[run.n_args :], strict=True):
        Reverse().put_value(table, name, c)
    of_inputs = scatter(run.form, run.inputs, bars, Reverse())
    of_args = entry(of_inputs, 0)
    if (run.partials or run.named_partials) and run.made_what_is_reached():
        of_args = [entry(of_args, i) for i in range(len(run.inputs[0]))]
        for i in run.partials:
            of_args[i] = NotKnown(run.unknown)
        for name in run.named_partials:
            Reverse().put_value(run.inputs[1], name, NotKnown(run.unknown))
    return together(of_args) if of_args else ZERO, entry(of_inputs, 1)


def put(store: Any, owner: Any, key: Any, c: Any) -> None:
    """A cotangent of what a mutable value holds."""
    if isinstance(owner, CellType):
        store.put_cell(owner, c)
    elif isinstance(owner, list):
        store.put_item(owner, key, c)
    else:
        store.put_value(owner, key, c)


def in_kind(x: Any, c: Any) -> Any:
    """A cotangent of PyTorch's in the space of a leaf of any kind."""
    if type(c) is Thunk:
        return project_to(x)(c)
    if is_zero(c) or type(c) is NotKnown:
        return c
    return project_to(x)(host(c) if is_tensor(c) and not is_tensor(x) else c)


@pushes(take_apart)
def _(pass_: Any, args: Args, tangents: Args, keywords: Any) -> Any:
    run, leaves, token = take_apart(*args)
    dots = [ZERO] * len(run.leaves)
    store = Forward(pass_)
    gather(run.form, run.inputs, (tangents[1], tangents[2]), store, dots)
    for i, (table, name) in enumerate(run.tables):
        dots[run.n_args + i] = unthunk(store.get_value(table, name))
    held = [get(store, owner, key) for owner, key in run.held]
    held += [entry(tangents[1], i) for i in run.partials]
    held += [store.get_value(args[2], name) for name in run.named_partials]
    if not all(map(is_zero, [*held, *[dots[i] for i in run.untraced()]])):
        raise run.unknown()
    takes_only_tangents(pass_, run.fn, args[1], dots)
    of_leaves = together([dots[i] for i in (*run.traced, *run.integers)])
    return (run, leaves, token), together([ZERO, of_leaves, ZERO])


def get(store: Any, owner: Any, key: Any) -> Any:
    """The tangent of what a mutable value holds."""
    if isinstance(owner, CellType):
        return store.get_cell(owner)
    return (store.get_item if isinstance(owner, list) else store.get_value)(owner, key)


def outs_of(graph: Graph, leaves: Args) -> Args:
    """The floating tensors that came out of a record; None where one is structurally zero."""
    return tuple(graph.values())


@serves(outs_of)
def _(f: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    graph, leaves = args
    outs = outs_of(graph, leaves)

    def outs_pullback(ȳ: Any) -> Any:
        return NONE, NONE, bars_of_leaves(graph, leaves, outs, ȳ)

    return outs, outs_pullback


def bars_of_leaves(graph: Graph, leaves: Args, outs: Args, ȳ: Any) -> Any:
    """The cotangents of what a record is by, from those of what came out of it."""
    present = [i for i in range(len(outs)) if not is_zero(entry(ȳ, i))]
    if not present or not leaves:
        return ZERO
    bars = [unthunk(entry(ȳ, i)) for i in present]
    for c in bars:
        if type(c) is NotKnown:
            return (c,) * len(leaves)
    return pulled(graph, leaves, outs, present, bars)


def pulled(graph: Graph, leaves: Args, outs: Args, present: list[int], bars: list[Any]) -> Any:
    """The cotangents of the leaves; those of integers when they are asked for."""
    seeds = tuple([like(c, outs[i]) for i, c in zip(present, bars, strict=True)])
    n = len(graph.inputs)
    found = outs_of(transposed(graph, present, seeds), (*leaves[:n], *seeds, *leaves[n:]))
    of_integers = [
        Thunk(partial(by_integer, graph, leaves, i, present, bars)) for i in range(len(leaves) - n)
    ]
    return tuple([*[ZERO if c is None else c for c in found[:n]], *of_integers])


def by_integer(graph: Graph, leaves: Args, i: int, present: list[int], bars: list[Any]) -> Any:
    """The cotangent of an integer: that of the real number, where the callable takes one."""
    again = with_real(graph, i)
    if again is None:  # a shape, an index, an axis
        return ZERO
    if type(again) is NotKnown:
        return again
    n = len(graph.inputs)
    leaves = brought_forward(leaves, n, i)
    c = pulled(again, leaves, outs_of(again, leaves), present, bars)[n]
    return ZERO if is_zero(c) else host(c)


def with_real(graph: Graph, i: int) -> Graph | NotKnown | None:
    """The record of the same call, by one of its integers as well, or why there is none."""
    try:
        return graph.with_real[i]()
    except NoRuleError as error:
        reason = error
    return NotKnown(lambda: reason)


def brought_forward(leaves: Args, n: int, i: int) -> Args:
    """The leaves, with the i-th integer before the others."""
    integers = leaves[n:]
    return (*leaves[:n], integers[i], *integers[:i], *integers[i + 1 :])


@pushes(outs_of)
def _(pass_: Any, args: Args, tangents: Args, keywords: Any) -> Any:
    graph, leaves = args
    return outs_of(graph, leaves), pass_.each(partial(dots_of, graph, leaves), tangents[1])


def dots_of(graph: Graph, leaves: Args, tangents: Any) -> Any:
    """The tangents of the floating tensors that came out of a record."""
    n = len(graph.inputs)
    found = along(graph, leaves, [entry(tangents, i) for i in range(n)])
    for i in range(len(leaves) - n):
        ẋ = entry(tangents, n + i)
        again = None if is_zero(ẋ) else with_real(graph, i)
        if type(again) is NotKnown:
            again.refuse()
        if again is not None:
            found = accumulate(found, along(again, brought_forward(leaves, n, i), [*[ZERO] * n, ẋ]))
    return found


def along(graph: Graph, leaves: Args, dots: list[Any]) -> Any:
    """The same, by those that are recorded."""
    active = [i for i, ẋ in enumerate(dots) if not is_zero(ẋ)]
    if not active:
        return ZERO
    n = len(graph.inputs)
    given = tuple([like(unthunk(dots[i]), graph.inputs[i]) for i in active])
    found = outs_of(pushed(graph, active, given), (*leaves[:n], *given, *leaves[n:]))
    return together([ZERO if c is None else c for c in found])


def transposed(graph: Graph, present: list[int], seeds: Args) -> Graph:
    """The record of its pullback."""
    return Transposed(graph, present, list(seeds))


def pushed(graph: Graph, active: list[int], dots: Args) -> Graph:
    """The record of its pushforward."""
    return Pushed(graph, active, list(dots))


def put_together(run: Run, outs: Args, token: float) -> Any:
    """The value of the call."""
    return run.y


@serves(put_together)
def _(f: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    run, outs, token = args
    y = put_together(run, outs, token)

    def put_together_pullback(ȳ: Any) -> Any:
        return NONE, NONE, *bars_of_outs(run, outs, ȳ)

    return y, put_together_pullback


def bars_of_outs(run: Run, outs: Args, ȳ: Any) -> tuple[Any, Any]:
    """The cotangents of what came out of a record, and of the token."""
    bars = [ZERO] * len(outs)
    gather(run.y_form, run.y, ȳ, Reverse(), bars)
    found = together(bars)
    return found, ZERO if is_zero(found) else 1.0


@pushes(put_together)
def _(pass_: Any, args: Args, tangents: Args, keywords: Any) -> Any:
    run, outs, token = args
    dots = [entry(tangents[1], i) for i in range(len(outs))]
    y = put_together(run, outs, token)
    return y, scatter(run.y_form, run.y, dots, Forward(pass_))


for _type in (Run, Graph):
    projector.register(_type, lambda x: None)
    adjoint_object.register(_type, lambda x: None)
    collector.register(_type, lambda y, part: None)
    on_entry.register(_type, lambda x, known: x)
    materialise.register(_type, lambda x, x̄, of: None)
    no_tangent(_type)
no_tangent(Transposed, Pushed)
del _type

non_differentiable(transposed, pushed, with_real, is_floating, is_input, is_iterator)
