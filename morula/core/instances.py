"""Objects that a program makes and keeps to itself: their attributes become variables.

Dicts with keys that are known are such objects, too.

    v = Vector(x, y); w = v + v.scaled(2.0); return w.norm()

`Vector(x, y)` becomes a new instance and a call of `__init__`, methods, properties and operators become
calls of the functions of the class, all of which are inlined; what is left are attributes that are
written and read, as closure variables are (cells.py). Where an object turns out to be seen by anyone
else, the function is specialised anew without this (`Escapes`).
Tests: tests/core/test_instances.py
"""

from __future__ import annotations

import dataclasses
import operator
from abc import ABCMeta
from collections import namedtuple
from collections.abc import Hashable, Iterator
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

from morula.core import primitives
from morula.core.bytecode.instructions import IN_PLACE
from morula.core.errors import UnsupportedError
from morula.core.infer import Inference, is_of_plain_kind, transfers
from morula.core.ir import IR, Block, Call, Const, Operand, Var, substitute
from morula.core.primitives import UNDEFINED, actual_type, build_named
from morula.core.registry import registry
from morula.core.ssa import Variables, prune_params
from morula.core.traits import Known, contents, is_compiled, only_reads, stays_general, typed_zero
from morula.core.values import Value, is_named_tuple, known

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser


class Escapes(Exception):
    """An object that was taken for one of the program's own is seen by others."""


def new_instance(cls: type) -> Any:
    """An instance without attributes."""
    return object.__new__(cls)


only_reads(new_instance)


_MISSING = object()


# What is resolved by the class of its argument: it is not inlined before that is known.
BY_CLASS = (dataclasses.replace,)
FIELD_KIND: Any = dataclasses._FIELD  # type: ignore[attr-defined]


def in_class(cls: type, name: str) -> Any:
    """What a class or one of its bases has under a name."""
    return next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), _MISSING)


def is_plain(cls: Any) -> bool:
    """Does the class make and read its instances in the way of all objects?"""
    return (
        (type(cls) is type or (type(cls) is ABCMeta and not cls.__abstractmethods__))
        and not is_compiled(cls)
        and registry.get(cls) is None
        and all(not is_compiled(c) or c is object for c in cls.__mro__)
        and in_class(cls, "__new__") is object.__dict__["__new__"]
        and in_class(cls, "__getattribute__") is object.__dict__["__getattribute__"]
        and in_class(cls, "__getattr__") is _MISSING
        and in_class(cls, "__del__") is _MISSING
        and not any(test(cls) for test in stays_general)
    )


def guard_class(s: Specialiser, cls: Any) -> None:
    """The program asks whether a plain class still is one."""
    if isinstance(cls, type):
        for name in PLAIN_NAMES:
            s.guards.attributes[id(cls), name] = (cls, name, getattr(cls, name))


def set_field(x: Any, name: str, value: Any) -> None:
    """Stands for the making of a named tuple with this item."""


only_reads(set_field)

_Sample = namedtuple("_Sample", "item")
FIELD = type(_Sample.item)
REPLACE = _Sample._replace.__code__

# What reads a tuple in the place of a named one.
READ_IN_ORDER = (iter, tuple, list, zip, enumerate, reversed, sum, min, max, primitives.list_extend)


# What must stay as it is for instances to be plain.
PLAIN_NAMES = ("__new__", "__init__", "__getattribute__", "__setattr__")

PLAIN_READING = (object.__getattribute__, tuple.__getattribute__)

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
SPECIAL = {getattr(operator, name): f"__{name}__" for name in ("neg", "pos", "abs", "getitem")}
SPECIAL |= {getattr(operator, name): f"__{name}__" for name in BINARY} | {abs: "__abs__"}
IN_PLACE_OF = {getattr(operator, "i" + name): name for name in BINARY}
REFLECTED = {f"__{name}__": f"__r{name}__" for name in BINARY}
NUMBERS = (int, float, complex)
assert all(f.__name__ in IN_PLACE.values() for f in IN_PLACE_OF)


def special_method(s: Specialiser, call: Call) -> tuple[FunctionType, tuple[Operand, ...]] | None:
    """The function of a class that an operator calls, and its arguments."""
    fn: Any = call.primitive
    if not isinstance(fn, BuiltinFunctionType) or (fn not in SPECIAL and fn not in IN_PLACE_OF):
        return None
    found = [known(s.value(a)) for a in call.args]
    types = [k.type for k in found if k is not None]
    if len(types) < len(found) or has_own_rule(fn, types):
        return None
    left, right = types[0], types[-1]
    name = SPECIAL.get(fn) or f"__{IN_PLACE_OF[fn]}__"
    if not is_compiled(left):
        if fn in IN_PLACE_OF and in_class(left, f"__{fn.__name__}__") is not _MISSING:
            name = f"__{fn.__name__}__"
        elif name in REFLECTED and right is not left and issubclass(right, left):
            return None
        return found_method(s, left, name, call.args)
    if left in NUMBERS and name in REFLECTED and not is_compiled(right):
        return found_method(s, right, REFLECTED[name], call.args[::-1])
    return None


def has_own_rule(fn: Any, types: list[type]) -> bool:
    """Does a rule say what a call means for these types, other than that for all of their kind?"""
    entry = registry.get(fn)
    if entry is None or entry.reverse is None:
        return False
    rule = entry.find_by_types("reverse", tuple(types))
    general = tuple([next(base for base in t.__mro__ if is_compiled(base)) for t in types])
    of_all = entry.find_by_types("reverse", general)
    is_own = rule is not None and rule.function is not getattr(of_all, "function", None)
    return is_own or any(typed_zero(t) for t in types if not is_compiled(t))


def found_method(
    s: Specialiser, cls: type, name: str, args: Any
) -> tuple[FunctionType, tuple[Operand, ...]] | None:
    """A function of a class, which the program asks for."""
    function = in_class(cls, name)
    if not is_of_plain_kind(cls) or type(function) is not FunctionType:
        return None
    if registry.get(function) is not None or "NotImplemented" in function.__code__.co_names:
        return None
    s.guards.attributes[id(cls), name] = (cls, name, function)
    return function, tuple(args)


def presumed(x: Any, cls: type) -> Any:
    """x, which was taken to be of this class before all was known that x may be."""
    return x


only_reads(presumed)


@transfers(presumed)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return args[0]


def presume(s: Specialiser, call: Call, n: int) -> None:
    """Let the first operands of a call be proven to be of the types that they seem to have."""
    if not s.presumes:
        return
    block = next(b for b in s.ir.blocks if call in b.calls)
    args = list(call.args)
    for i, x in enumerate(args[:n]):
        k = None if type(x) is Const else known(s.value(x))
        if k is not None:
            mark = Call(s.ir.var(), Const(presumed), (x, Const(k.type)), (), call.position)
            block.calls.insert(block.calls.index(call), mark)
            args[i] = mark.out
    call.args = tuple(args)


def drop_proven(s: Specialiser) -> bool:
    """Leave out what was presumed and is known by now; was there anything?"""
    proven: dict[Var, Operand] = {}
    for call in s.ir.calls():
        if call.primitive is presumed:
            k = known(s.value(call.args[0]))
            if k is not None and k.type is call.args[1].value:
                proven[call.out] = call.args[0]
    for block in s.ir.blocks if proven else ():
        block.calls = [c for c in block.calls if c.out not in proven]
    substitute(s.ir, proven)
    return bool(proven)


def followed_class(value: Value) -> type | None:
    """The class of an object that stays one and is followed."""
    if type(value) is not Known or value.detail is None or value.type not in contents:
        return None
    return value.type if is_plain(value.type) else None


def is_pending(s: Specialiser, call: Call) -> bool:
    """Will a call, or the reading of a method, be resolved by the classes of objects?"""
    if type(call.fn) is Var:
        cls = followed_class(s.value(call.fn))
        return cls is not None and type(in_class(cls, "__call__")) is FunctionType
    classes = [followed_class(s.value(a)) for a in call.args]
    if call.primitive is dataclasses.replace:
        return (
            bool(classes) and classes[0] is not None and fields_kept(classes[0], call) is not None
        )
    if call.keywords or not any(classes):
        return False
    if call.primitive is getattr and classes[0] is not None and is_access(call):
        return type(in_class(classes[0], call.args[1].value)) in (FunctionType, property)
    return special_method(s, call) is not None


def fields_kept(cls: type, call: Call) -> list[str] | None:
    """The fields that `dataclasses.replace` takes over from its argument; None: it may refuse."""
    fields = in_class(cls, "__dataclass_fields__")
    if len(call.args) - len(call.keywords) != 1 or fields is _MISSING or type(cls) is not type:
        return None
    plain = all(f._field_type is FIELD_KIND and f.init for f in fields.values())
    if not plain or not fields.keys() >= {*call.keywords}:
        return None
    return [name for name in fields if name not in call.keywords]


def resolve_replace(s: Specialiser, block: Block, call: Call) -> bool:
    """`dataclasses.replace(x, v=v)` becomes a call of the class of x."""
    k = known(s.value(call.args[0])) if call.args else None
    kept = None if k is None or is_compiled(k.type) else fields_kept(k.type, call)
    if k is None or kept is None:
        return False
    name = "__dataclass_fields__"
    s.guards.attributes[id(k.type), name] = (k.type, name, in_class(k.type, name))
    presume(s, call, 1)
    x, *changed = call.args
    reads = [Call(s.ir.var(f), Const(getattr), (x, Const(f)), (), call.position) for f in kept]
    at = block.calls.index(call)
    block.calls[at:at] = reads
    call.fn, call.args = Const(k.type), (*changed, *[c.out for c in reads])
    call.keywords = (*call.keywords, *kept)
    return True


def resolve_operators(s: Specialiser) -> bool:
    """Operators of objects, and properties, become calls of the functions of their classes."""
    changed = False
    for block in s.ir.blocks:
        for call in list(block.calls):
            if call.primitive is dataclasses.replace:
                changed |= resolve_replace(s, block, call)
    for call in s.ir.calls():
        if call.keywords or type(call.fn) is not Const or not call.args:
            continue
        if call.primitive is getattr and len(call.args) == 2 and type(call.args[1]) is Const:
            if type(call.args[0]) is Const and call.args[0].value is object:
                if call.args[1].value == "__setattr__":
                    substitute(s.ir, {call.out: Const(SET)})
                    call.removable = True
                continue
            k = known(s.value(call.args[0]))
            name = call.args[1].value
            if k is None or not is_of_plain_kind(k.type) or is_compiled(k.type):
                continue
            found = in_class(k.type, name)
            if type(found) is property and type(found.fget) is FunctionType:
                if in_class(k.type, "__getattribute__") not in PLAIN_READING:
                    continue
                if has_own_rule(getattr, [k.type, str]):
                    continue
                s.guards.attributes[id(k.type), name] = (k.type, name, found)
                call.fn, call.args = Const(found.fget), (call.args[0],)
                presume(s, call, 1)
                changed = True
            continue
        method = special_method(s, call)
        if method is not None:
            call.fn, call.args = Const(method[0]), method[1]
            presume(s, call, len(call.args))
            changed = True
    return changed


def resolve_instances(s: Specialiser) -> bool:
    """A step on the way from objects of the program's own to variables; was there one?"""
    if not s.keeps_objects:
        return resolve_operators(s) or Instances(s).step()
    if drop_proven(s) or resolve_operators(s) or Instances(s).step():
        return True
    s.presumes = True
    try:
        s.infer()
        return resolve_operators(s) or Instances(s).resolve_attributes()
    finally:
        s.presumes = False
        s.infer()


class Instances:
    """The objects that a program makes, under all names that they have in it."""

    def __init__(self, s: Specialiser) -> None:
        self.s = s
        self.ir: IR = s.ir
        self.cls: dict[Var, type] = {
            c.out: c.args[0].value for c in self.ir.calls() if c.primitive is new_instance
        }
        self.cls |= {c.out: dict for c in self.ir.calls() if has_constant_keys(c)}
        self.made = set(self.cls)
        self.incoming: dict[Var, list[Operand]] = {}
        for p, a in self.ir.passed():
            self.incoming.setdefault(p, []).append(a)
        self.add_joins()
        self.hoped = {p: c for p, c in s.hoped.values() if p in self.incoming}
        self.all = self.kept() | self.hoped | self.cls

    def add_joins(self) -> None:
        """Parameters of blocks that only such objects of one class are passed to."""
        joins = {p for p in self.incoming if any(a in self.cls for a in self.incoming[p])}
        grown = True
        while grown:
            more = {p for p in self.incoming if any(a in joins for a in self.incoming[p])}
            grown = not more <= joins
            joins |= more
        again = True
        cls: dict[Operand, type] = {}
        while again:
            again = False
            cls = dict(self.cls)  # type: ignore[arg-type]
            spread = True
            while spread:
                spread = False
                for p in joins:
                    found = {cls[a] for a in self.incoming[p] if a in cls}
                    if p not in cls and len(found) == 1:
                        cls[p] = found.pop()
                        spread = True
            bad = {
                p
                for p in joins
                if any(cls.get(a) is not cls.get(p) or a not in cls for a in self.incoming[p])
            }
            if bad:
                joins -= bad
                again = True
        self.cls = cls  # type: ignore[assignment]

    def kept(self) -> dict[Var, type]:
        """The objects that stay objects, where they are found again."""
        found = {v: followed_class(x) for v, x in self.s.types.items()}
        return {v: cls for v, cls in found.items() if cls is not None}

    def step(self) -> bool:
        """The first of these that can be done."""
        return (
            self.make()
            or self.read_named()
            or self.resolve_attributes()
            or self.resolve_super()
            or self.resolve_hopes()
            or self.promote()
        )

    # -- construction

    def make(self) -> bool:
        """The call of a class becomes a new instance and a call of `__init__`."""
        changed = False
        for block in self.ir.blocks:
            for call in list(block.calls):
                cls = call.fn.value if type(call.fn) is Const else None
                if isinstance(cls, type) and is_named_tuple(cls) and registry.get(cls) is None:
                    changed |= self.make_named(block, call, cls)
                    continue
                if not isinstance(cls, type) or not is_plain(cls):
                    continue
                initialise = in_class(cls, "__init__")
                is_bare = initialise is object.__init__ and not call.args
                is_function = type(initialise) is FunctionType and returns_none(initialise)
                if not (is_bare or is_function):
                    continue
                if self.is_seen(call.out) and not self.s.keeps_objects:
                    self.s.leaves_objects = True
                    continue
                guard_class(self.s, cls)
                changed = True
                if is_bare:
                    call.fn, call.args = Const(new_instance), (Const(cls),)
                    continue
                new = Call(call.out, Const(new_instance), (Const(cls),), (), call.position)
                call.fn, call.args = Const(initialise), (new.out, *call.args)
                call.out = self.ir.var()
                block.calls.insert(block.calls.index(call), new)
        return changed

    def make_named(self, block: Block, call: Call, cls: Any) -> bool:
        """The same for a named tuple."""
        n = len(call.args) - len(call.keywords)
        items: dict[str, Operand] = {k: Const(v) for k, v in cls._field_defaults.items()}
        items |= zip(cls._fields, call.args[:n], strict=False)
        items |= zip(call.keywords, call.args[n:], strict=True)
        right = n <= len(cls._fields) and not {*cls._fields[:n]} & {*call.keywords}
        if not right or items.keys() != {*cls._fields}:
            return False
        self.s.guards.attributes[id(cls), "__new__"] = (cls, "__new__", cls.__new__)
        if self.s.keeps_objects or self.is_seen(call.out):
            fields = [items[name] for name in cls._fields]
            call.fn, call.args, call.keywords = Const(build_named), (Const(cls), *fields), ()
            return True
        i = block.calls.index(call)
        block.calls[i : i + 1] = named(self.ir, call.out, cls, items, call.position)
        return True

    def is_seen(self, x: Operand) -> bool:
        """Is it plain that others see the object?"""
        for call in self.ir.calls():
            if x not in call.operands():
                continue
            if call.primitive in (
                *KEEPERS,
                primitives.build_list,
                primitives.build_map,
                primitives.build_set,
            ):
                return True
            if call.primitive is setattr and x in call.args[1:] and call.args[0] not in self.all:
                return True
        return x in self.ir.returned()

    # -- named tuples

    def read_named(self) -> bool:
        """What reads a named tuple as a tuple reads its attributes."""
        changed = False
        replaced = {
            c.out: c
            for c in self.ir.calls()
            if is_access(c) and c.args[0] in self.all and c.args[1].value == "_replace"
        }
        for block in self.ir.blocks:
            for call in list(block.calls):
                x: Any = call.args[0] if call.args else None
                read = replaced.get(call.fn)  # type: ignore[arg-type]
                if read is not None:
                    x = read.args[0]
                    cls: Any = self.all[x]
                    if not is_named_tuple(cls) or in_class(cls, "_replace").__code__ is not REPLACE:
                        continue
                    if len(call.args) != len(call.keywords):
                        continue
                    if not {*call.keywords} <= {*cls._fields}:
                        continue
                    fields = {f: self.ir.var(f) for f in cls._fields}
                    reads = [
                        Call(v, Const(getattr), (x, Const(f)), (), call.position)
                        for f, v in fields.items()
                    ]
                    items = fields | dict(zip(call.keywords, call.args, strict=True))
                    i = block.calls.index(call)
                    made = named(self.ir, call.out, cls, items, call.position)
                    block.calls[i : i + 1] = [*reads, *made]
                    read.removable = changed = True
                    continue
                if call.primitive is operator.is_ and x in self.cls:
                    if type(call.args[1]) is Const:
                        substitute(self.ir, {call.out: Const(False)})
                        block.calls.remove(call)
                        changed = True
                    continue
                named_args = [
                    a
                    for a in call.args
                    if type(a) is Var and is_named_tuple(self.all.get(a, object))
                ]
                if not named_args or call.keywords:
                    continue
                cls = self.all[named_args[0]]
                n = len(cls._fields)
                if call.primitive is operator.getitem and x is named_args[0]:
                    key = call.args[1].value if type(call.args[1]) is Const else None
                    if type(key) is int and -n <= key < n:
                        call.fn = Const(getattr)
                        call.args = (x, Const(cls._fields[key]))
                        changed = True
                elif call.primitive is len:
                    substitute(self.ir, {call.out: Const(n)})
                    block.calls.remove(call)
                    changed = True
                elif call.primitive is primitives.unpack and call.args[1].value == n:
                    call.fn, call.args = Const(primitives.build_tuple), self.items(block, call, x)
                    changed = True
                elif call.primitive in READ_IN_ORDER:
                    whole = {}
                    for a in named_args:
                        whole[a] = self.ir.var()
                        parts = self.items(block, call, a)
                        together = Call(whole[a], Const(primitives.build_tuple), parts)
                        block.calls.insert(block.calls.index(call), together)
                    call.args = tuple([whole.get(a, a) for a in call.args])  # type: ignore[arg-type]
                    changed = True
        return changed

    def items(self, block: Block, call: Call, x: Any) -> tuple[Operand, ...]:
        """The items of a named tuple, read before a call."""
        found = []
        for name in self.all[x]._fields:  # type: ignore[attr-defined]
            found.append(self.ir.var(name))
            read = Call(found[-1], Const(getattr), (x, Const(name)), (), call.position)
            block.calls.insert(block.calls.index(call), read)
        return tuple(found)

    # -- attributes

    def written_names(self) -> set[str]:
        """The names of all attributes that are written to such objects."""
        return {call.args[1].value for call in self.writes()}

    def writes(self) -> Iterator[Call]:
        for call in self.ir.calls():
            writes = call.primitive is setattr or call.primitive is SET
            if writes and call.args[0] in self.all and type(call.args[1]) is Const:
                yield call

    def resolve_attributes(self) -> bool:
        """Methods and constants of the class are taken from there."""
        written = self.written_names()
        callers: dict[Operand, list[Call]] = {}
        for call in self.ir.calls():
            if type(call.fn) is Var:
                callers.setdefault(call.fn, []).append(call)
        changed = False
        for block in self.ir.blocks:
            for call in list(block.calls):
                if type(call.fn) is Var and call.fn in self.all:
                    function = in_class(self.all[call.fn], "__call__")
                    if type(function) is FunctionType:
                        self.bind(call, self.all[call.fn], "__call__", function)
                        changed = True
                if call.primitive is not getattr or call.args[0] not in self.all:
                    continue
                if len(call.args) != 2 or type(call.args[1]) is not Const:
                    continue
                cls, name = self.all[call.args[0]], call.args[1].value
                found = in_class(cls, name)
                if found is _MISSING or name in written:
                    continue
                if type(found) is FunctionType:
                    for caller in callers.get(call.out, ()):
                        caller.fn = call.args[0]
                        self.bind(caller, cls, name, found)
                    self.drop(block, call)
                    changed = True
                if self.s.presumes:
                    continue
                if type(found) is staticmethod and type(found.__func__) is FunctionType:
                    self.s.guards.attributes[id(cls), name] = (cls, name, found.__func__)
                    substitute(self.ir, {call.out: Const(found.__func__)})
                    self.drop(block, call)
                    changed = True
        return changed

    def resolve_super(self) -> bool:
        """Methods of base classes, by way of `super()`."""
        supers = {
            c.out: c
            for c in self.ir.calls()
            if c.primitive is super
            and len(c.args) == 2
            and type(c.args[0]) is Const
            and c.args[1] in self.all
        }
        reads = {
            c.out: c
            for c in self.ir.calls()
            if c.primitive is getattr and c.args[0] in supers and is_access(c)
        }
        changed = False
        for call in self.ir.calls() if reads else ():
            if type(call.fn) is not Var or call.fn not in reads:
                continue
            read = reads[call.fn]
            base, x = supers[read.args[0]].args  # type: ignore[index]
            cls, name = self.all[x], read.args[1].value  # type: ignore[index]
            after = cls.__mro__[cls.__mro__.index(base.value) + 1 :]
            owner = next((c for c in after if name in c.__dict__), object)
            function = owner.__dict__.get(name)
            if type(function) is FunctionType:
                if getattr(after[0], name) is function:
                    owner = after[0]  # which asks those between the two as well
                self.s.guards.attributes[id(owner), name] = (owner, name, function)
                call.fn, call.args = Const(function), (x, *call.args)
                read.removable = supers[read.args[0]].removable = changed = True  # type: ignore[index]
        return changed

    def drop(self, block: Block, call: Call) -> None:
        """Leave the reading of a method out, if it is nothing but called."""
        for other in self.ir.calls():
            if call.out in other.args:
                raise Escapes
        for other_block in self.ir.blocks:
            for branch in other_block.branches:
                if call.out in branch.args:
                    raise Escapes
        block.calls.remove(call)

    def bind(self, call: Call, cls: type, name: str, function: FunctionType) -> None:
        """Make a call of an object, or of its method, one of a function of its class."""
        self.s.guards.attributes[id(cls), name] = (cls, name, function)
        call.fn, call.args = Const(function), (call.fn, *call.args)
        presume(self.s, call, 1)

    def resolve_hopes(self) -> bool:
        """In a loop `p = p.moved()`: what p is depends on what its method gives.

        It is taken for what comes in from before, which is asked where it is used.
        """
        if not self.s.examples.given or self.s.keeps_objects:
            return False
        for p, values in self.incoming.items():
            classes = {self.cls[a] for a in values if a in self.cls}
            unknown = [a for a in values if a not in self.cls and self.s.value(a) is None]
            if p in self.all or p in self.s.given or len(classes) != 1 or not unknown:
                continue
            if len(unknown) + sum(a in self.cls for a in values) < len(values):
                continue
            (cls,) = classes
            if cls is dict:
                continue
            block = next(b for b in self.ir.blocks if p in b.params)
            kind, same = self.ir.var(), self.ir.var()
            block.calls[:0] = [
                Call(kind, Const(actual_type), (p,)),
                Call(same, Const(operator.is_), (kind, Const(cls))),
            ]
            self.s.hoped[kind] = p, cls
            self.s.given[p] = Known(cls)
            self.s.guard_test(block, 2, same)
            return True
        return False

    # -- promotion

    def promote(self) -> bool:
        """Make variables of the attributes of those that nobody else sees."""
        families = [f for f in self.families() if self.is_private(f)]
        if not families:
            return False
        family_of = {x: f for f in families for x in f.members}
        if not all(self.is_assigned(f) for f in families):
            families = [f for f in families if self.is_assigned(f)]
            family_of = {x: f for f in families for x in f.members}
            if not families:
                return False
        self.turn(family_of)
        return True

    def families(self) -> list[Family]:
        """The objects that have a name in common, together."""
        of: dict[Operand, Family] = {x: Family(c, {x}) for x, c in self.cls.items()}
        for p in self.cls:
            if p in self.made:
                continue
            for a in self.incoming[p]:
                one, other = of[p], of[a]
                if one is not other:
                    one.members |= other.members
                    of.update(dict.fromkeys(other.members, one))
        found = list({id(f): f for f in of.values()}.values())
        for f in found:
            f.joined = any(x not in self.made for x in f.members)
        for call in self.ir.calls():
            if call.args and call.args[0] in of and is_access(call, of[call.args[0]].cls):
                of[call.args[0]].add(call.args[1].value)
            if call.out in of and has_constant_keys(call):
                for key in call.args[::2]:
                    of[call.out].add(key.value)
        return found

    def is_private(self, f: Family) -> bool:
        """Is all that happens to these objects reading and writing of attributes?"""
        slots_only = f.cls.__dictoffset__ == 0
        for name in () if f.cls is dict else f.names:
            found = in_class(f.cls, name)
            plain = found is _MISSING or not hasattr(type(found), "__get__")
            if type(found) in (MemberDescriptorType, FIELD):
                continue
            if not plain or (slots_only and found is _MISSING):
                return False
        for call in self.ir.calls():
            inside = f.members.intersection(a for a in call.operands() if type(a) is Var)
            if not inside or call.primitive in (new_instance, primitives.require):
                continue
            if call.out in self.s.hoped:
                continue
            if call.out in f.members and has_constant_keys(call):
                if not f.members.isdisjoint(call.args):
                    return False
                continue
            if not is_access(call, f.cls) or call.args[0] not in f.members:
                return False
            if len(call.args) > 2 and call.args[2] in f.members:
                return False
            if call.primitive not in (getattr, set_field) and issubclass(f.cls, tuple):
                return False
            if call.primitive is setattr and in_class(f.cls, "__setattr__") is not SET:
                return False
            if not is_reading(call) and f.joined and call.args[0] not in self.made:
                return False
        tested = [branch.cond for block in self.ir.blocks for branch in block.branches]
        return f.members.isdisjoint([*tested, *self.ir.returned()]) and all(
            p in f.members for p, a in self.ir.passed() if a in f.members
        )

    def default(self, f: Family, name: str) -> Operand:
        """What a new object has under a name: an attribute of its class."""
        found = _MISSING if f.cls is dict else in_class(f.cls, name)
        if found is _MISSING or type(found) in (MemberDescriptorType, FIELD):
            return Const(UNDEFINED)
        return Const(found)

    def is_assigned(self, f: Family) -> bool:
        """Is each attribute written before it is read, and nothing behind a join of names?"""
        everything = {(x, name) for x in f.members for name in f.names}
        at_end: dict[Block, set[Any]] = {b: set(everything) for b in self.ir.blocks}
        passed_at_end: dict[Block, set[Any]] = {b: set() for b in self.ir.blocks}
        predecessors = self.ir.predecessors()
        changed, fine = True, True
        while changed:
            changed, fine = False, True
            for block in self.ir.blocks:
                sources = [source for source, _ in predecessors[block]]
                now = set(everything) if sources else set()
                passed: set[Any] = set()
                for source in sources:
                    now &= at_end[source]
                    passed |= passed_at_end[source]
                for p in block.params:
                    if p in f.members:
                        now |= {(p, name) for name in f.names}
                for call in block.calls:
                    x = call.args[0] if call.args else None
                    if call.primitive is new_instance and call.out in f.members:
                        now -= {(call.out, name) for name in f.names}
                        passed.discard(call.out)
                        for name in f.names:
                            default = self.default(f, name)
                            if default.value is not UNDEFINED:
                                now.add((call.out, name))
                    elif call.out in f.members:
                        now -= {(call.out, name) for name in f.names}
                        now |= {(call.out, key.value) for key in call.args[::2]}
                        passed.discard(call.out)
                    elif x in f.members and is_access(call, f.cls):
                        key = (x, call.args[1].value)
                        if is_reading(call):
                            fine &= key in now
                        else:
                            now.add(key)
                            fine &= x not in passed
                for branch in block.branches:
                    for a in branch.args:
                        if a in f.members:
                            fine &= all((a, name) in now for name in f.names)
                            passed.add(a)
                if now != at_end[block] or passed != passed_at_end[block]:
                    at_end[block], passed_at_end[block] = now, passed
                    changed = True
        return fine

    def turn(self, family_of: dict[Var, Family]) -> None:
        """Write and read variables in the place of attributes."""
        ir = self.ir

        def at_entry(block: Block, variable: Hashable) -> Operand | None:
            return Const(UNDEFINED) if block is ir.entry else None

        variables = Variables(ir, at_entry)
        mapping: dict[Var, Operand] = {}
        for block in ir.blocks:
            for p in [p for p in block.params if p in family_of]:
                i = block.params.index(p)
                names = family_of[p].names
                fresh = [ir.var(f"{p.name}.{name}") for name in names]
                block.params[i : i + 1] = fresh
                for name, v in zip(names, fresh, strict=True):
                    variables.write(block, (p, name), v)
        for block in ir.blocks:
            kept = []
            for call in block.calls:
                x: Any = call.args[0] if call.args else None
                if call.primitive is new_instance and call.out in family_of:
                    f = family_of[call.out]
                    for name in f.names:
                        default = self.default(f, name)
                        if default.value is not UNDEFINED:
                            self.s.guards.attributes[id(f.cls), name] = (
                                f.cls,
                                name,
                                default.value,
                            )
                        variables.write(block, (call.out, name), default)
                elif call.out in family_of:
                    for key, item in zip(call.args[::2], call.args[1::2], strict=True):
                        variables.write(block, (call.out, key.value), item)
                elif x in family_of and call.primitive is primitives.require:
                    continue
                elif x in family_of and is_access(call, family_of[x].cls):
                    name = call.args[1].value
                    if is_reading(call):
                        mapping[call.out] = variables.read(block, (x, name), str(name))
                    else:
                        variables.write(block, (x, name), call.args[2])
                        mapping[call.out] = Const(None)
                elif call.primitive is actual_type and x in family_of:
                    mapping[call.out] = Const(family_of[x].cls)
                else:
                    kept.append(call)
            block.calls = kept
            for branch in block.branches:
                if not any(a in family_of for a in branch.args):
                    continue
                args: list[Operand] = []
                for a in branch.args:
                    if a in family_of:
                        for name in family_of[a].names:
                            args.append(variables.read(block, (a, name), str(name)))
                    else:
                        args.append(a)
                branch.args = args
        variables.finish()
        substitute(ir, mapping)
        prune_params(ir)


class Family:
    """Objects of one class that have names in common, and the attributes that are used."""

    def __init__(self, cls: type, members: set[Var]) -> None:
        self.cls = cls
        self.members = members
        self.names: list[Any] = []
        self.joined = False

    def add(self, name: Any) -> None:
        """One more attribute, or key."""
        if name not in self.names:
            self.names.append(name)


SET: Any = object.__setattr__
KEEPERS = (
    primitives.list_append,
    primitives.list_extend,
    primitives.map_add,
    primitives.set_add,
    list.append,
    operator.setitem,
)


ACCESSES = (getattr, setattr, SET, set_field)


def named(ir: IR, out: Var, cls: Any, items: dict[str, Any], position: Any) -> list[Call]:
    """The calls that make a named tuple."""
    calls = [Call(out, Const(new_instance), (Const(cls),), (), position)]
    for name in cls._fields:
        args = (out, Const(name), items[name])
        calls.append(Call(ir.var(), Const(set_field), args, (), position))
    return calls


READING = (getattr, operator.getitem)


def is_reading(call: Call) -> bool:
    """Is an attribute or an item read, not written?"""
    return call.primitive in READING


def has_constant_keys(call: Call) -> bool:
    """Is it the making of a dict with keys that are known?"""
    return call.primitive is primitives.build_map and all(
        type(key) is Const and type(key.value) in (str, int) for key in call.args[::2]
    )


def is_access(call: Call, cls: type = object) -> bool:
    """Is an attribute, or an item of a dict, read or written whose name is known?"""
    n = 2 if is_reading(call) else 3
    accesses = (operator.getitem, operator.setitem) if cls is dict else ACCESSES
    return (
        call.primitive in accesses
        and len(call.args) == n
        and type(call.args[1]) is Const
        and isinstance(call.args[1].value, (str, int) if cls is dict else str)
        and not call.keywords
    )


def returns_none(function: FunctionType) -> bool:
    """Does it return None always?"""
    from morula.core.specialise import inline_form

    try:
        ir = inline_form(function.__code__, function.__globals__)
    except UnsupportedError:
        return False
    return all(type(x) is Const and x.value is None for x in ir.returned())
