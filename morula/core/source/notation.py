"""Primitives that have a notation of their own: signs, displays, methods."""

from __future__ import annotations

import keyword
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from morula.core import primitives
from morula.core.context import call_plainly
from morula.core.cotangents import ZERO
from morula.core.emit import Node
from morula.core.ir import Call, Const, Var
from morula.core.source.module import refuse

if TYPE_CHECKING:
    from morula.core.source.function import FunctionText

SIGNS = {
    "pow": "**", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@", "add": "+",
    "sub": "-", "lshift": "<<", "rshift": ">>", "and_": "&", "xor": "^", "or_": "|", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "is_": "is", "is_not": "is not",
}  # fmt: skip
BINARY = {getattr(operator, name): sign for name, sign in SIGNS.items()}
UNARY = {operator.neg: "-", operator.pos: "+", operator.invert: "~", operator.not_: "not "}

Writer = Callable[["FunctionText", Node], str]
WRITTEN: dict[Any, Writer] = {}
FITS: dict[Any, Callable[[Call], bool]] = {}


def is_written_out(call: Call) -> bool:
    """Is a call written by a sign, a display or the like?"""
    if type(call.fn) is not Const or call.keywords:
        return False
    try:
        fits = FITS.get(call.primitive)
    except TypeError:  # not hashable
        return False
    return fits is not None and fits(call)


def takes(n: int) -> Callable[[Call], bool]:
    """Is it a call of n arguments?"""
    return lambda call: len(call.args) == n


def names_attribute(call: Call) -> bool:
    """Is the second of two arguments a name that can stand behind a dot?"""
    if len(call.args) != 2 or type(call.args[1]) is not Const:
        return False
    name = call.args[1].value
    return type(name) is str and name.isidentifier() and not keyword.iskeyword(name)


def written(
    *fns: Any, fits: Callable[[Call], bool] = lambda call: True
) -> Callable[[Writer], Writer]:
    """Declare how calls of primitives are written, if they fit."""

    def declare(write: Writer) -> Writer:
        for fn in fns:
            WRITTEN[fn] = write
            FITS[fn] = fits
        return write

    return declare


@written(*BINARY, fits=takes(2))
def _(w: FunctionText, node: Node) -> str:
    left, right = map(w.expression, node.operands)
    return f"({left} {BINARY[node.call.primitive]} {right})"


@written(*UNARY, fits=takes(1))
def _(w: FunctionText, node: Node) -> str:
    return f"({UNARY[node.call.primitive]}{w.expression(node.operands[0])})"


@written(operator.truth, fits=takes(1))
def _(w: FunctionText, node: Node) -> str:
    return f"bool({w.listed(node.operands)})"


@written(operator.contains, fits=takes(2))
def _(w: FunctionText, node: Node) -> str:
    x, items = map(w.expression, node.operands)
    return f"({x} in {items})"


@written(operator.getitem, primitives.actual_item, fits=takes(2))
def _(w: FunctionText, node: Node) -> str:
    return item(w, *node.operands)


@written(operator.setitem, fits=takes(3))
def _(w: FunctionText, node: Node) -> str:
    value, items, key = node.operands
    return f"{item(w, items, key)} = {w.expression(value)}"


@written(operator.delitem, fits=takes(2))
def _(w: FunctionText, node: Node) -> str:
    return f"del {item(w, *node.operands)}"


def item(w: FunctionText, items: Any, key: Any) -> str:
    """`items[key]`."""
    return f"{w.expression(items)}[{subscript(w, key)}]"


def subscript(w: FunctionText, key: Any) -> str:
    """What stands between square brackets."""
    primitive = key.call.primitive if type(key) is Node else None
    if primitive is slice and len(key.operands) > 1:
        bounds = ["" if is_none(x) else w.expression(x) for x in key.operands]
        return ":".join(bounds)
    if primitive is primitives.build_tuple and key.operands:
        return "".join(f"{subscript(w, x)}, " for x in key.operands)
    if type(key) is Const and type(key.value) is tuple and key.value:
        return "".join(f"{subscript(w, Const(x))}, " for x in key.value)
    if type(key) is Const and type(key.value) is slice:
        bounds = [key.value.start, key.value.stop, key.value.step]
        return ":".join("" if x is None else w.module.constant(x) for x in bounds)
    return w.expression(key)


def is_none(x: Any) -> bool:
    """Is an operand the constant None?"""
    return type(x) is Const and x.value is None


@written(getattr, primitives.actual_attribute, fits=names_attribute)
def _(w: FunctionText, node: Node) -> str:
    x, name = node.operands
    return f"({w.expression(x)}).{name.value}"


@written(
    primitives.alias,
    primitives.maybe_zero,
    primitives.maybe_zero_of_parts,
    primitives.never_zero,
    primitives.require,
    fits=lambda call: bool(call.args),
)
def _(w: FunctionText, node: Node) -> str:
    return w.expression(node.operands[0])


@written(primitives.build_tuple)
def _(w: FunctionText, node: Node) -> str:
    return f"({w.listed(node.operands)}{',' if len(node.operands) == 1 else ''})"


@written(primitives.build_list)
def _(w: FunctionText, node: Node) -> str:
    return f"[{w.listed(node.operands)}]"


@written(primitives.build_set, fits=lambda call: bool(call.args))
def _(w: FunctionText, node: Node) -> str:
    return f"{{{w.listed(node.operands)}}}"


@written(primitives.build_map)
def _(w: FunctionText, node: Node) -> str:
    texts = list(map(w.expression, node.operands))
    pairs = [f"{k}: {v}" for k, v in zip(texts[::2], texts[1::2], strict=True)]
    return f"{{{', '.join(pairs)}}}"


@written(primitives.build_string)
def _(w: FunctionText, node: Node) -> str:
    return f'"".join([{w.listed(node.operands)}])'


def written_as_call(primitive: Any, name: str) -> None:
    """Written as a call of the builtin of this name, or, `.name`, of a method of the first operand."""

    @written(primitive)
    def _(w: FunctionText, node: Node) -> str:
        if not name.startswith("."):
            return f"{name}({w.listed(node.operands)})"
        owner, *args = node.operands
        return f"{w.expression(owner)}{name}({w.listed(args)})"


for _primitive, _name in (
    (primitives.list_append, ".append"),
    (primitives.list_extend, ".extend"),
    (primitives.set_add, ".add"),
    (primitives.set_update, ".update"),
    (primitives.dict_update, ".update"),
    (primitives.actual_type, "type"),
    (primitives.actual_length, "len"),
    (primitives.pull, "next"),
):
    written_as_call(_primitive, _name)


@written(call_plainly)
def _(w: FunctionText, node: Node) -> str:
    fn, *args = node.operands
    return f"{w.expression(fn)}({w.listed(args)})"


@written(primitives.sum_if_any, fits=takes(2))
def _(w: FunctionText, node: Node) -> str:
    x̄, c = node.operands
    if type(x̄) is Node or type(c) is Node:  # x̄ is read twice, and before c
        return f"{w.module.function(primitives.sum_if_any)}({w.listed(node.operands)})"
    before, more = w.expression(x̄), w.expression(c)
    return f"({more} if {before} is {w.module.constant(ZERO)} else {more} + {before})"


@written(primitives.get_cell)
def _(w: FunctionText, node: Node) -> str:
    cell = node.call.args[0]
    if type(cell) is not Var or cell not in w.captured:
        refuse("it reads a closure variable that changes")
    return w.module.value(w.free[cell], w.captured[cell])


@written(primitives.load_global)
def _(w: FunctionText, node: Node) -> str:
    namespace, name = (x.value for x in node.call.args)
    return w.module.value(name, primitives.load_global(namespace, name))
