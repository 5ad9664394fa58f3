"""The form of a value: where in it the numbers and arrays are that JAX differentiates by.

A form takes a value apart into its leaves and puts it together again from others, tracers for
instance. So what a closure has captured becomes an argument: `build` makes a function with other
cells. And it knows where the cotangents and tangents of the leaves are: those of tuples and partials
go by value, those of lists, dicts, objects and cells are found by identity, in a `store`, which is
that of the running reverse pass or that of a forward pass.
"""

from __future__ import annotations

from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from morula.core.extend import (
    ZERO,
    AbstractZero,
    NotKnown,
    accumulate,
    is_zero,
    non_differentiable,
    unsupported,
    unthunk,
)
from morula.interop.jax.kinds import (
    is_array,
    is_integer,
    is_leaf,
    is_object_of_jax,
    is_public,
    told_apart,
)
from morula.interop.meanings import raw
from morula.rules import boxes
from morula.rules.calls import MISSING, entry, part
from morula.rules.objects import (
    has_fields,
    is_by_identity,
    is_part_of_python,
    own_fields,
)
from morula.rules.partials import partial_tangent

ATOMS = (type, ModuleType, str, bytes, int, type(None), range, slice, np.generic, np.dtype)
# Objects of these hold arrays that they must go on to hold.
FOREIGN = {"numpy", "scipy", "pandas", "xarray", "torch", "sympy", "morula", "plum"}

with jax.ensure_compile_time_eval():  # JAX may be tracing when it is first met
    _array = jax.numpy.zeros(())
_at = type(_array.at)
_at_index: Any = type(_array.at[()])
PLACES: Any = (_at, _at_index)
BOUND = type(_array.block_until_ready)  # a compiled method of an array
JITTED = type(jax.jit(lambda x: x))


def unforced(bars: list[Any]) -> Any:
    """A tuple of cotangents of which none is computed yet."""
    return ZERO if all(isinstance(c, AbstractZero) for c in bars) else tuple(bars)


class Leaf:
    """A number or an array."""

    def __init__(self, i: int) -> None:
        self.i = i

    def build(self, values: Any, built: dict[int, Any]) -> Any:
        """The value with these leaves; `built` holds what was made so far."""
        return values[self.i]

    def scatter(self, bars: Any, store: Any) -> Any:
        """The cotangent of the value by value, the rest of it put in the store."""
        return bars[self.i]

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """Add to `found` the cotangents of the leaves."""
        found[self.i] = accumulate(found[self.i], unthunk(c))


class Constant:
    """What holds no leaves."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def build(self, values: Any, built: dict[int, Any]) -> Any:
        """The value itself."""
        return self.x

    def scatter(self, bars: Any, store: Any) -> Any:
        """Nothing."""
        return ZERO

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """Nothing."""


class Node(Constant):
    """What holds leaves, in parts: pairs of where they are and their forms."""

    def __init__(self, x: Any) -> None:
        super().__init__(x)
        self.parts: list[tuple[Any, Any]] = []
        self.finished = False
        self.holds_leaves = False

    def build(self, values: Any, built: dict[int, Any]) -> Any:
        """A value like this one, unless it holds no leaves."""
        if not self.holds_leaves:
            return self.x
        if id(self) not in built:
            self.make(values, built)
        return built[id(self)]

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """Put a value like this one into `built`."""
        raise NotImplementedError

    def items(self, values: Any, built: dict[int, Any]) -> list[Any]:
        """The parts, built."""
        return [form.build(values, built) for _, form in self.parts]


class Again(Constant):
    """A mutable value that is seen a second time."""

    def build(self, values: Any, built: dict[int, Any]) -> Any:
        """What the first one was built to."""
        return self.x.build(values, built)


class Tuple(Node):
    """A tuple, also a named one; by value."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """A tuple of the same type."""
        built[id(self)] = tuple.__new__(type(self.x), self.items(values, built))

    def scatter(self, bars: Any, store: Any) -> Any:
        """A tuple of cotangents."""
        return unforced([form.scatter(bars, store) for _, form in self.parts])

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """From a tuple of cotangents."""
        for i, form in self.parts:
            form.gather(entry(c, i), store, found)


class List(Node):
    """A list."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """A list of the same type."""
        built[id(self)] = new = type(self.x)()
        new.extend(self.items(values, built))

    def scatter(self, bars: Any, store: Any) -> Any:
        """By identity."""
        for i, form in self.parts:
            store.put_item(self.x, i, form.scatter(bars, store))
        return ZERO

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """By identity."""
        for i, form in self.parts:
            form.gather(store.get_item(self.x, i), store, found)


class Keyed(Node):
    """What has parts by a key: dicts."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """A dict of the same type, in the same order."""
        built[id(self)] = new = self.x.copy()
        for key, form in self.parts:
            new[key] = form.build(values, built)

    def scatter(self, bars: Any, store: Any) -> Any:
        """By identity."""
        for key, form in self.parts:
            store.put_value(self.x, key, form.scatter(bars, store))
        return ZERO

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """By identity."""
        for key, form in self.parts:
            form.gather(store.get_value(self.x, key), store, found)


class Object(Keyed):
    """An object of a class of the user's."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """An object with the same attributes but for those that hold leaves."""
        built[id(self)] = new = object.__new__(type(self.x))
        for name, value in own_fields(self.x).items():
            object.__setattr__(new, name, value)
        for name, form in self.parts:
            object.__setattr__(new, name, form.build(values, built))


def put_at(store: Any, place: tuple[Any, Any], c: Any) -> None:
    """Give a store something for what an owner holds under a key."""
    owner, key = place
    (store.put_item if isinstance(owner, list) else store.put_value)(owner, key, c)


def found_at(store: Any, place: tuple[Any, Any]) -> Any:
    """What a store has for that."""
    owner, key = place
    return (store.get_item if isinstance(owner, list) else store.get_value)(owner, key)


class Tree(Node):
    """An object that is registered with JAX as a tree; a part is found by its owner and key."""

    def __init__(self, x: Any) -> None:
        super().__init__(x)
        self.definition: Any = jax.tree_util.tree_structure(x, is_leaf=lambda y: y is not x)

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """What JAX makes of the parts."""
        built[id(self)] = self.definition.unflatten(self.items(values, built))

    def scatter(self, bars: Any, store: Any) -> Any:
        """By identity."""
        for place, form in self.parts:
            put_at(store, place, form.scatter(bars, store))
        return ZERO

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """By identity."""
        for place, form in self.parts:
            form.gather(found_at(store, place), store, found)


class Cell(Node):
    """The cell of a closure."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """A new cell."""
        built[id(self)] = new = CellType()
        new.cell_contents = self.parts[0][1].build(values, built)

    def scatter(self, bars: Any, store: Any) -> Any:
        """By identity."""
        store.put_cell(self.x, self.parts[0][1].scatter(bars, store))
        return ZERO

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """By identity."""
        self.parts[0][1].gather(store.get_cell(self.x), store, found)


class Function(Node):
    """A Python function: its cells, and those default values that carry cotangents."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """A function with the same code and other cells."""
        fn = self.x
        cells = [form.build(values, built) for key, form in self.parts if key == "cell"]
        built[id(self)] = new = FunctionType(
            fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, tuple(cells)
        )
        new.__dict__.update(fn.__dict__)
        new.__qualname__, new.__doc__, new.__module__ = fn.__qualname__, fn.__doc__, fn.__module__
        defaults, named = list(fn.__defaults__ or ()), dict(fn.__kwdefaults__ or {})
        for key, form in self.parts:
            if key != "cell":
                kind, place = key
                (named if kind == "named" else defaults)[place] = form.build(values, built)
        new.__defaults__, new.__kwdefaults__ = tuple(defaults) or None, named or None

    def scatter(self, bars: Any, store: Any) -> Any:
        """By identity."""
        for key, form in self.parts:
            c = form.scatter(bars, store)
            if key != "cell":
                store.put_value(*self.place(key), c)
        return ZERO

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """By identity."""
        for key, form in self.parts:
            c = ZERO if key == "cell" else store.get_value(*self.place(key))
            form.gather(c, store, found)

    def place(self, key: Any) -> tuple[Any, Any]:
        """Where the cotangent of a default value is."""
        kind, name = key
        return (self.x.__kwdefaults__, name) if kind == "named" else (self.x, key)


class Jitted(Keyed):
    """What `jax.jit` gave: the function inside, for its traces know nothing of other cells."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """The function inside."""
        built[id(self)] = self.parts[0][1].build(values, built)


class Method(Node):
    """A bound method: its cotangent is that of the object."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """The method of another object."""
        built[id(self)] = MethodType(*self.items(values, built))

    def scatter(self, bars: Any, store: Any) -> Any:
        """That of the object."""
        (_, function), (_, owner) = self.parts
        function.scatter(bars, store)
        return owner.scatter(bars, store)

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """From that of the object."""
        (_, function), (_, owner) = self.parts
        function.gather(ZERO, store, found)
        owner.gather(c, store, found)


class Partial(Node):
    """A partial: its cotangent is a structure of function and arguments; its keywords are a dict."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """A partial of the same type."""
        function, args, keywords = self.items(values, built)
        built[id(self)] = type(self.x)(function, *args, **keywords)

    def scatter(self, bars: Any, store: Any) -> Any:
        """A structure of cotangents."""
        (_, function), (_, args), (_, keywords) = self.parts
        of_args = args.scatter(bars, store)
        keywords.scatter(bars, store)
        listed = [raw(of_args, i) for i in range(len(self.x.args))]
        return partial_tangent(function.scatter(bars, store), listed)

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """From a structure of cotangents."""
        (_, function), (_, args), (_, keywords) = self.parts
        function.gather(part(c, "func"), store, found)
        args.gather(part(c, "args"), store, found)
        keywords.gather(ZERO, store, found)


class Place(Node):
    """What `x.at` and `x.at[i]` give: their cotangent is that of the array."""

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """The place in another array."""
        (array,) = self.items(values, built)
        new = array.at
        built[id(self)] = new[self.x.index] if isinstance(self.x, _at_index) else new

    def scatter(self, bars: Any, store: Any) -> Any:
        """That of the array."""
        return self.parts[0][1].scatter(bars, store)

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """From that of the array."""
        self.parts[0][1].gather(c, store, found)


class Fenced(Node):
    """A function with a derivative of its own, which by JAX's law has none by what it captures."""

    def __init__(self, x: Any) -> None:
        super().__init__(x)
        self.count = 0

    def make(self, values: Any, built: dict[int, Any]) -> None:
        """The function as it is."""
        built[id(self)] = self.x

    def scatter(self, bars: Any, store: Any) -> Any:
        """Cotangents that nobody has a formula for."""
        unknown = [NotKnown(captured_by_custom)] * self.count
        for key, form in self.parts:
            store.put_value(self.x, key, form.scatter(unknown, store))
        return ZERO

    def gather(self, c: Any, store: Any, found: list[Any]) -> None:
        """An error if there is anything."""
        inside = [ZERO] * self.count
        for key, form in self.parts:
            form.gather(store.get_value(self.x, key), store, inside)
        if not all(map(is_zero, inside)):
            raise captured_by_custom()


def captured_by_custom() -> Exception:
    """The error for what a function with custom derivatives has captured."""
    return unsupported(
        "what a function with custom_vjp or custom_jvp captures",
        "JAX gives no derivative by it",
        "make it an argument of that function",
    )


# -- finding the form of a value -------------------------------------------------------------------


class Forms:
    """The forms of the parts of one value, and its leaves so far."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.known: dict[int, Any] = {}
        self.changes = 0  # how often a leaf was met, or a value that may turn out to hold one
        self.depth = 0  # of cells and objects that we are in
        self.captured: set[int] = set()  # the leaves in these
        self.integers: set[int] = set()  # the leaves that JAX has no derivative by
        self.around: frozenset[int] = frozenset()  # the fenced functions that we are in

    def form(self, x: Any) -> Any:
        """The form of a value."""
        if is_leaf(x):
            self.leaves.append(x)
            self.changes += 1
            if self.depth:
                self.captured.add(len(self.leaves) - 1)
            return Leaf(len(self.leaves) - 1)
        if is_integer(x) and not self.depth:
            self.integers.add(len(self.leaves))
            self.leaves.append(x)
            self.changes += 1
            return Leaf(len(self.leaves) - 1)
        if isinstance(x, ATOMS) or is_array(x) or id(x) in self.around:
            return Constant(x)
        node = self.known.get(id(x))
        if node is not None:
            self.changes += not node.finished or node.holds_leaves
            return Again(node) if not node.finished or node.holds_leaves else Constant(x)
        kind = kind_of(x)
        if kind is None:
            return Constant(x)
        node = kind(x)
        if not isinstance(node, (Tuple, Method, Partial)):
            self.known[id(x)] = node
        before = self.changes
        if isinstance(node, Fenced):
            self.fence(node)
        else:
            inside = isinstance(node, (Cell, Object))
            self.depth += inside
            node.parts = [(key, self.form(item)) for key, item in parts_of(node)]
            self.depth -= inside
        node.finished, node.holds_leaves = True, self.changes > before
        return node if node.holds_leaves else Constant(x)

    def fence(self, node: Fenced) -> None:
        """A function with a derivative of its own: leaves apart from all others."""
        inside = Forms()
        inside.around = self.around | {id(node.x)}
        node.parts = [(key, inside.form(item)) for key, item in parts_of(node)]
        node.count = len(inside.leaves)
        self.changes += bool(inside.leaves)


def kind_of(x: Any) -> Any:
    """The kind of node for a value; None: it holds nothing of interest."""
    if isinstance(x, partial):
        return Partial
    if isinstance(x, tuple):
        return Tuple
    if isinstance(x, list):
        return List
    if isinstance(x, dict):
        return Keyed
    if isinstance(x, FunctionType):
        return Function if x.__closure__ or x in boxes._with_defaults else None
    if isinstance(x, CellType):
        return None if x == CellType() else Cell
    if isinstance(x, MethodType):
        return Method
    if type(x) in PLACES:
        return Place
    if isinstance(x, JITTED):
        return None if is_public(x) else Jitted
    if isinstance(x, (jax.custom_vjp, jax.custom_jvp)):
        return None if is_public(x) else Fenced
    if jax.tree_util.default_registry.flatten_one_level_with_keys(x) is not None:
        return Tree
    if is_object_of_jax(x) or not has_fields(type(x)) or not is_by_identity(x):
        return None
    package = str(type(x).__module__).split(".")[0]
    return None if package in FOREIGN or is_part_of_python(type(x)) else Object


def parts_of(node: Any) -> list[tuple[Any, Any]]:
    """The parts of a value and where they are in it."""
    x = node.x
    if isinstance(node, (Tuple, List)):
        return list(enumerate(x))
    if isinstance(node, Jitted):
        return [("__wrapped__", x.__wrapped__)]
    if isinstance(node, Object):
        return list(own_fields(x).items())
    if isinstance(node, Keyed):
        return list(x.items())
    if isinstance(node, Cell):
        return [("cell", x.cell_contents)]
    if isinstance(node, Function):
        found: list[Any] = [("cell", cell) for cell in x.__closure__ or ()]
        if x in boxes._with_defaults:
            found += [(("default", i), v) for i, v in enumerate(x.__defaults__ or ())]
            found += [(("named", k), v) for k, v in (x.__kwdefaults__ or {}).items()]
        return found
    if isinstance(node, Method):
        return [("function", x.__func__), ("object", x.__self__)]
    if isinstance(node, Partial):
        return [("func", x.func), ("args", x.args), ("keywords", x.keywords)]
    if isinstance(node, Place):
        return [("array", x.array)]
    if isinstance(node, Fenced):
        names = ("fun", "fwd", "bwd", "jvp")
        return [(name, vars(x)[name]) for name in names if vars(x).get(name) is not None]
    return tree_parts(x)


def tree_parts(x: Any) -> list[tuple[Any, Any]]:
    """The children of a tree, each with what holds it and under which key."""
    keyed, _ = jax.tree_util.default_registry.flatten_one_level_with_keys(x)
    children = [child for _, child in keyed]
    shown, seen = x, children
    if len(set(map(id, children))) < len(children):  # one like it shows which is which
        seen = list(told_apart(children))
        definition: Any = jax.tree_util.tree_structure(x, is_leaf=lambda y: y is not x)
        shown = definition.unflatten(seen)
    fields = own_fields(shown) if has_fields(type(shown)) else {}
    found = []
    for (key, child), like in zip(keyed, seen, strict=True):
        name, inner = place_in(fields, getattr(key, "name", None), like) or (str(key), None)
        place = (x, name) if inner is None else (own_fields(x)[name], inner[0])
        found.append((place, child))
    return found


def place_in(fields: dict[str, Any], name: Any, child: Any) -> tuple[str, Any] | None:
    """The attribute that holds a child, and the key if it is a dict or a list that does.

    The attribute of the child's name goes first.
    """
    if fields.get(name, MISSING) is child:
        return name, None
    for n, value in fields.items():
        if value is child:
            return n, None
    for n, value in fields.items():
        for k, item in items_of(value):
            if item is child:
                return n, (k,)
    return None if name is None else (name, None)


def items_of(x: Any) -> Any:
    """What a dict or a list holds, by key."""
    return x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()


def forms_of(*values: Any) -> tuple[list[Any], Forms]:
    """The forms of some values, and what is known of the leaves of them all."""
    forms = Forms()
    return [forms.form(x) for x in values], forms


def is_opaque(y: Any) -> bool:
    """Is there a function in a result, say, that holds numbers or arrays?"""
    return any(
        not is_array(x) and not is_leaf(x) and not is_integer(x) and forms_of(x)[1].leaves
        for x in jax.tree_util.tree_leaves(y)
    )


non_differentiable(forms_of, is_opaque)
