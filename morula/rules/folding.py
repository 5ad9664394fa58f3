"""What the specialiser may compute ahead, and what it knows of results that samples do not tell.

Products with the cotangent "one" that a gradient begins with, and conjugates of real values, are
the value itself. A power has a type that depends on the values; here is what is sure of it.
Tests: tests/rules/test_folding.py
"""

import itertools
import math
import operator
from typing import Any

import numpy as np

from morula.core.extend import (
    FOLDS,
    NEVER,
    ZERO,
    Call,
    Const,
    Known,
    NoTangent,
    Tangent,
    ZeroTangent,
    accumulate,
    alternatives,
    cheap,
    entry_of,
    field_of,
    folds,
    fresh_results,
    gradient_for,
    guesses,
    harmless_where,
    in_place_forms,
    is_zero_value,
    join,
    known,
    marks,
    only_reads,
    partial_functions,
    primitives,
    result_on_samples,
    settled,
    stands_for_zero,
    to_space,
    transfers,
    type_stable,
    unthunk,
    written_results,
)
from morula.rules.arrays.arithmetic import real_slope
from morula.rules.arrays.broadcasting import (
    collapse,
    match,
    restore,
    spread,
    total,
    unbroadcast,
    widened,
)
from morula.rules.arrays.construction import entries, parts_like
from morula.rules.arrays.elementwise import (
    array_part,
    infinite_less,
    marked_part,
    share_in,
    share_of,
    taken,
)
from morula.rules.arrays.indexing import (
    entry,
    marked_like,
    scatter,
    scatter_all,
    scattered,
    scattered_all,
)
from morula.rules.arrays.reductions import (
    add_shared,
    attaining,
    attains,
    marked_shared,
    on_diagonal,
    plus_shared,
    set_on_diagonal,
    shared,
)
from morula.rules.arrays.structural import Selected, mark, masked, selected, unmarked
from morula.rules.arrays.traits import COMPLEX, FLOATING, INTEGERS, whole_shape
from morula.rules.containers import bars_of
from morula.rules.gathering import (
    entries_at,
    gathered,
    in_pieces,
    is_of_doubles,
    marked_entries_at,
    pieced,
    plus_at,
    vector,
)
from morula.rules.list_types import extended_in_place, repeats_tuple


def constant(x: Any) -> Any:
    """The value of a constant operand of type int or float, else None."""
    value = getattr(x, "value", None)
    return value if type(value) in (int, float) else None


def is_one_of_numpy(x: Any) -> bool:
    """Is a constant operand the number one, as NumPy's scalar?"""
    value = getattr(x, "value", None)
    return type(value) is np.float64 and value == 1


def alike(f: Any, a: Any, b: Any) -> bool:
    """Are both floats, or both arrays of floats, so that a sign may move from one to the other?"""
    t = f.types(a)
    return t is f.types(b) and (t is float or (t is np.ndarray and f.details(a) == f.details(b)))


def with_float(f: Any, call: Any) -> Any:
    """A whole number beside an array of floats is a float, of which NumPy makes less work."""
    a, b = call.args
    for x, y in ((a, b), (b, a)):
        c = constant(x)
        if type(c) is not int or abs(c) >= 1 << 53 or f.types(y) is not np.ndarray:
            continue
        if f.details(y)[0] in ("<f8", "<f4") and f.details(y)[1]:
            args = [f.const(float(c)) if z is x else z for z in call.args]
            return [f.same_call(call, call.primitive, *args)]
    return None


def negated(f: Any, x: Any) -> Any:
    """What `x` is the negative of, if that negative is needed nowhere else."""
    call = f.definition(x, operator.neg)
    return call.args[0] if call is not None and f.used_once(x) else None


def negative_of(f: Any, call: Any, fn: Any, a: Any, b: Any) -> list[Any]:
    """The calls that give -fn(a, b)."""
    inner = f.new_call(call, fn, a, b)
    return [inner, f.same_call(call, operator.neg, inner.out)]


@folds(operator.mul)
def _(f: Any, call: Any) -> Any:
    """Products with 1.0 and -1.0, and signs out of products: the same, bit for bit."""
    a, b = call.args
    if (found := with_float(f, call)) is not None:
        return found
    for x, y in ((a, b), (b, a)):
        factor = constant(x)
        if factor == 1 and type(factor) is float and f.types(y) is float:
            return y
        if factor == -1 and type(factor) is float and f.types(y) is float:
            return [f.same_call(call, operator.neg, y)]
        if is_one_of_numpy(x) and f.types(y) is np.float64:
            return y
    for x, y in ((a, b), (b, a)):
        if (scalar := spread_from(f, x, y)) is not None:
            return [f.same_call(call, operator.mul, scalar, y)]
        if f.in_adjoint and type(constant(x)) in (int, float):
            found = times_constant(f, call, x, y)
            if found is not None:
                return found
    if alike(f, a, b):
        if (x := negated(f, a)) is not None:
            return negative_of(f, call, operator.mul, x, b)
        if (x := negated(f, b)) is not None:
            return negative_of(f, call, operator.mul, a, x)
        if f.in_adjoint:
            return times_reciprocal(f, call)
    return None


def times_constant(f: Any, call: Any, x: Any, y: Any) -> Any:
    """In an adjoint, constant factors of an array are multiplied first."""
    whole = f.definition(y, spread)
    if whole is not None and type(constant(whole.args[0])) is float:
        factor = type(x)(constant(whole.args[0]) * constant(x))
        return [f.same_call(call, spread, factor, whole.args[1])]
    if f.types(y) is not np.ndarray:
        return None
    if type(constant(x)) is float and (z := negated(f, y)) is not None:
        return [f.same_call(call, operator.mul, type(x)(-constant(x)), z)]
    product = f.definition(y, operator.mul)
    if product is None or not f.used_once(y):
        return None
    c = constant(product.args[0])
    if c is None or float not in (type(c), type(constant(x))):
        return None
    return [f.same_call(call, operator.mul, type(x)(float(c * constant(x))), product.args[1])]


def times_reciprocal(f: Any, call: Any) -> Any:
    """In an adjoint, a * (1 / b) is a / b, which is nearer to the truth as well."""
    a, b = call.args
    for x, y in ((a, b), (b, a)):
        quotient = f.definition(y, operator.truediv)
        if quotient is None or constant(quotient.args[0]) != 1 or not f.used_once(y):
            continue
        goes = quotient.removable or f.block_of.get(y) is f.block  # else it is computed anyhow
        if goes:
            return [f.same_call(call, operator.truediv, x, quotient.args[1])]
    return None


def times_known_reciprocal(f: Any, call: Any, a: Any, b: Any) -> Any:
    """In an adjoint, a / b is a * y where the primal has y = 1 / b: one residual, not two."""
    known = f.notes.get("reciprocals")
    if known is None:
        known = f.notes["reciprocals"] = {
            c.args[1]: c.out
            for c in f.definitions.values()
            if c.primitive is operator.truediv and constant(c.args[0]) == 1
        }
    y = known.get(b)
    home = f.block_of.get(b)
    if y is None or not f.in_adjoint or home is None or home is f.block:
        return None
    if f.block_of.get(y) is not home or f.types(b) not in (float, np.ndarray) or not alike(f, b, y):
        return None
    return [f.same_call(call, operator.mul, a, y)]


def unspread(f: Any, call: Any) -> Any:
    """What is spread to the shape that the other operand has anyway need not be."""
    a, b = call.args
    if (scalar := spread_from(f, a, b)) is not None:
        return [f.same_call(call, call.primitive, scalar, b)]
    if (scalar := spread_from(f, b, a)) is not None:
        return [f.same_call(call, call.primitive, a, scalar)]
    return None


@folds(operator.truediv)
def _(f: Any, call: Any) -> Any:
    a, b = call.args
    if (found := with_float(f, call) or unspread(f, call)) is not None:
        return found
    if (found := times_known_reciprocal(f, call, a, b)) is not None:
        return found
    if alike(f, a, b) and (x := negated(f, a)) is not None:
        return negative_of(f, call, operator.truediv, x, b)
    return None


of_constant = FOLDS[id(operator.truth)]


@folds(operator.truth, over=of_constant)
def _(f: Any, call: Any) -> Any:
    """In an adjoint, a number that the primal has divided by is not zero."""
    x = call.args[0]
    home = f.block_of.get(x)
    if not f.in_adjoint or home is None or home is f.block or f.types(x) is not float:
        return of_constant(f, call)
    divisors = f.notes.setdefault("divisors", {})
    if home not in divisors:
        divisors[home] = divisors_in(f, home)
    return f.const(True) if x in divisors[home] else of_constant(f, call)


def divisors_in(f: Any, block: Any) -> set[Any]:
    """The numbers that a block divides numbers by, with the factors that they have there."""
    found: set[Any] = set()
    for call in reversed(block.calls):
        if call.primitive is operator.truediv and f.types(call.args[0]) in (float, int):
            found.add(call.args[1])
        elif call.primitive is operator.mul and call.out in found and f.types(call.out) is float:
            found.update(call.args)
    return found


of_module = FOLDS[id(getattr)]


def spread_from(f: Any, x: Any, other: Any) -> Any:
    """What `x` is spread from, if the shape is that of the array `other`, which does the same."""
    call = f.definition(x, spread)
    if call is None or f.types(other) is not np.ndarray:
        return None
    scalar, shape = call.args
    known_shape = f.details(other)[2]
    is_known = known_shape is not None and getattr(shape, "value", None) == known_shape
    if not is_known and not is_shape_of(f, shape, other):
        return None
    return scalar if f.types(scalar) in SPREADABLE else None


SPREADABLE = (float, np.float64, np.ndarray)


def is_shape_of(f: Any, shape: Any, y: Any) -> bool:
    """Is it the shape of what y has its shape from?"""
    read = f.definition(shape, getattr)
    if read is None or value_of(read.args[1]) != "shape":
        return False
    return shaped_like(f, read.args[0]) is shaped_like(f, y)


def shaped_like(f: Any, x: Any) -> Any:
    """The array whose shape x has, which was computed from it and numbers entry by entry."""
    while (call := f.definitions.get(x)) is not None and f.types(x) is np.ndarray:
        arrays = [a for a in call.args if f.types(a) not in NUMBERS]
        if call.keywords or len(arrays) != 1 or id(call.primitive) not in ENTRY_BY_ENTRY:
            break
        if f.types(arrays[0]) is not np.ndarray:
            break
        x = arrays[0]
    return x


NUMBERS = (float, int, np.float64)
ENTRY_BY_ENTRY = {
    id(fn)
    for fn in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow,
        operator.iadd, operator.isub, np.square, np.exp, np.log, np.sqrt, np.tanh, np.sin, np.cos,
    )
}  # fmt: skip


@folds(getattr, over=of_module)
def _(f: Any, call: Any) -> Any:
    """The shape of what is computed entry by entry is that of the operand."""
    if len(call.args) == 2 and value_of(call.args[1]) in ("shape", "size"):
        x = call.args[0]
        like = x if f.in_adjoint and f.block_of.get(x) is not f.block else shaped_like(f, x)
        if like is not x and f.types(x) is np.ndarray:
            return [f.same_call(call, getattr, like, call.args[1])]
    return of_module(f, call)


def is_plain_index(f: Any, x: Any) -> bool:
    """Is it a slice, an int, or a tuple of those, which meets no entry twice?"""
    if f.types(x) in (int, slice):
        return True
    items = f.details(x) if f.types(x) is tuple else None
    return items is not None and all(_type_of(i) in (int, slice) for i in items)


def _type_of(value: Any) -> Any:
    return type(value.value) if hasattr(value, "value") else getattr(value, "type", None)


def add_at(x̄: Any, c: Any, index: Any) -> Any:
    """`c` added to the entries of a fresh array that a plain index meets, in place."""
    x̄ = unmarked(x̄)
    x̄[index] += c
    return x̄


def fresh_zeros(shape: Any) -> Any:
    """Zeros to be written to."""
    return np.zeros(shape)


def set_at(zeros: Any, c: Any, index: Any) -> Any:
    """`c` as the entries of fresh zeros that a plain index meets, in place."""
    if c is ZERO:
        return mark(zeros, np.zeros(zeros.shape, bool))
    zeros[index] = c
    return zeros if type(c) is not Selected else marked_like(zeros, c, index)


# What hands the zeros of a cotangent on, and what does not ask about them.
HANDING_ON = {
    id(f)
    for f in (
        primitives.build_tuple, accumulate, settled, primitives.sum_if_any, primitives.maybe_zero,
        primitives.never_zero, primitives.alias,
        operator.add, operator.iadd, operator.sub, operator.isub, operator.neg, np.add, np.subtract,
        entry, vector, entries_at, marked_entries_at,
        np.negative, np.ndarray.conj, np.ndarray.conjugate, np.conjugate, operator.getitem,
        np.ndarray.reshape, np.reshape, np.transpose, np.ndarray.transpose, np.swapaxes,
        np.ndarray.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.ravel, np.broadcast_to,
        unbroadcast, match, spread, restore, total, collapse, np.ufunc.reduce, np.where, masked,
        selected, scatter, scattered, array_part, marked_part, add_at, set_at, on_diagonal,
        set_on_diagonal, scatter_all, scattered_all, pieced, plus_at,
    )
}  # fmt: skip
UNASKING = {
    id(f)
    for f in (
        operator.is_, operator.is_not, operator.matmul, np.dot, np.ndarray.dot, np.outer,
        gradient_for, np.matmul, isinstance,
    )
}  # fmt: skip


def is_finite(x: Any) -> bool:
    """Is it a finite constant?"""
    value = constant(x)
    return value is not None and math.isfinite(value)


def is_asked_for(f: Any, x̄: Any) -> bool:
    """May it matter which zeros of a cotangent are structural: may one be multiplied by infinity?

    An array may be if it is multiplied entry by entry by anything but a finite number: data have
    gaps. Numbers that the program is given, and what it makes of them, are taken to be finite.
    """
    if not f.in_adjoint or f.readers is None:
        return True
    seen = {x̄}
    work = [x̄]
    while work:
        x = work.pop()
        for reader in f.readers.get(x, ()):
            if hasattr(reader, "primitive"):
                if is_unasking(f, reader):
                    continue
                if not hands_on(reader, x) and not is_finite_multiple(f, reader, x):
                    return True
                reader = reader.out
            if reader not in seen:
                seen.add(reader)
                work.append(reader)
    return False


def is_unasking(f: Any, call: Any) -> bool:
    """Does a call not ask which zeros are structural, nor hand that on?"""
    if call.primitive is operator.getitem:
        return f.types(call.out) in NUMBERS
    return id(call.primitive) in UNASKING or is_read_of(call, ("shape", "dtype", "ndim"))


NUMBERS = (float, np.float64, np.float32, complex, np.complex128, np.complex64)


def is_finite_multiple(f: Any, call: Any, x: Any) -> bool:
    """Is it the product of a number with finite ones?"""
    if call.primitive not in (operator.mul, operator.imul) or f.types(x) not in NUMBERS:
        return False
    return all(a is x or stays_finite(f, a, set()) for a in call.args)


def stays_finite(f: Any, x: Any, seen: set[Any]) -> bool:
    """Is it made of numbers that are given, and constants, by what gives finite numbers for them?"""
    if hasattr(x, "value"):
        return type(x.value) not in (float, np.ndarray) or bool(np.all(np.isfinite(x.value)))
    if x in seen or f.types(x) in (int, bool, slice):
        return True
    seen.add(x)
    made = f.definitions.get(x)
    if made is None:
        if x in f.ir.entry.params:
            return f.types(x) in NUMBERS and not f.in_rule
        return all(stays_finite(f, a, seen) for a in passed_to(f, x))
    if made.primitive in (operator.truediv, operator.pow):
        whole = constant(made.args[1])
        if not whole or not math.isfinite(whole) or (made.primitive is operator.pow and whole < 0):
            return False
        return stays_finite(f, made.args[0], seen)
    return made.primitive in KEEPING_FINITE and all(stays_finite(f, a, seen) for a in made.args)


KEEPING_FINITE = {
    operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.iadd,
    operator.isub, operator.imul, operator.getitem, operator.matmul, abs, float, np.float64,
    math.sin, math.cos, math.tanh, math.atan, math.sqrt, np.sin, np.cos, np.tanh, np.arctan,
    np.sqrt, np.abs, np.add, np.subtract, np.multiply, np.negative, np.array, np.asarray, np.zeros,
    np.ones, np.dot, np.ndarray.dot, primitives.build_tuple, primitives.alias,
}  # fmt: skip


def passed_to(f: Any, param: Any) -> list[Any]:
    """What a parameter of a block is passed."""
    found = f.notes.get("passed")
    if found is None:
        found = f.notes["passed"] = {}
        for p, a in f.ir.passed():
            found.setdefault(p, []).append(a)
    return found.get(param, [])


def hands_on(call: Any, x: Any) -> bool:
    """Does a call with x as an operand neither ask for zeros nor end them?"""
    if id(call.primitive) in HANDING_ON:
        return True
    if call.primitive in (operator.mul, operator.imul) and len(call.args) == 2:
        return any(a is not x and is_finite(a) for a in call.args)
    if call.primitive in (operator.truediv, operator.itruediv):
        return call.args[0] is x and is_finite(call.args[1]) and constant(call.args[1]) != 0
    return is_read_of(call, ("T",))


def is_read_of(call: Any, names: tuple[str, ...]) -> bool:
    """Does it read an attribute of one of these names?"""
    return call.primitive is getattr and getattr(call.args[1], "value", None) in names


def _unmarked_forms(marking: Any, plain: Any) -> None:
    @folds(marking)
    def _(f: Any, call: Any) -> Any:
        """What nobody asks about is not marked."""
        if plain is scattered and (found := in_pieces(f, call)) is not None:
            return found
        numbers = (float, np.float64) if plain in (scattered, shared) else ()
        if f.types(call.args[0]) not in (np.ndarray, *numbers) or is_asked_for(f, call.out):
            return None
        unmarked = f.same_call(call, plain, *call.args)
        return (plain is scattered and into_zeros(f, unmarked)) or [unmarked]


@transfers(bars_of)
def _(s: Any, call: Any, args: Any) -> Any:
    x, n = args
    length = None if getattr(x, "type", None) is not tuple else len(x.detail or ())
    return x if length == constant(n) else None


@folds(bars_of)
def _(f: Any, call: Any) -> Any:
    """The cotangents that a cotangent of the whole tuple was put together from."""
    made = f.definition(call.args[0], primitives.build_tuple)
    return None if made is None or len(made.args) != constant(call.args[1]) else made.out


@folds(parts_like)
def _(f: Any, call: Any) -> Any:
    """The cotangents of numbers and arrays whose types are known, one by one."""
    ȳ, items = call.args
    known = types_of_parts(f.known(ȳ), f.known(items))
    if known is None:
        return None
    calls: list[Any] = []

    def parts(made: Any, known: Any, place: tuple[int, ...]) -> Any:
        for i, k in enumerate(known.detail):
            at = (*place, i)
            if type(k) is Const:
                made.args = (*made.args, k)
                continue
            if k.type is tuple:
                part = parts(f.new_call(call, primitives.build_tuple), k, at)
            else:
                part = f.new_call(call, entry, ȳ, f.const(at if place else i))
            calls.append(part)
            made.args = (*made.args, part.out)
        return made

    whole = parts(f.same_call(call, primitives.build_tuple), known, ())
    return [*calls, whole]


@transfers(parts_like)
def _(s: Any, call: Any, args: Any) -> Any:
    return types_of_parts(*args)


def types_of_parts(ȳ: Any, items: Any) -> Any:
    """What is known of the cotangents of the items of an array, if they are entries or rows of ȳ."""
    if getattr(ȳ, "type", None) is not np.ndarray or ȳ.detail is None or ȳ.detail[0] not in REAL:
        return None
    return parts_at(ȳ.detail, items, 0)


def parts_at(whole: Any, items: Any, depth: int) -> Any:
    dtype, ndim = whole[:2]
    kind = getattr(items, "type", None)
    if depth and (type(items) is Const or kind is bool):
        return Const(ZERO)
    if kind is int or kind in REAL[dtype]:
        return Known(REAL[dtype][0]) if ndim == depth else None
    if kind is np.ndarray and items.detail is not None:
        return items if depth and items.detail[:2] == (dtype, ndim - depth) else None
    if kind is not tuple or not items.detail:
        return None
    parts = tuple([parts_at(whole, item, depth + 1) for item in items.detail])
    return None if None in parts else Known(tuple, parts)


REAL = {"<f8": (np.float64, float), "<f4": (np.float32,)}


@folds(entry)
def _(f: Any, call: Any) -> Any:
    """An entry of an array, where nothing depends on whether it is structurally zero."""
    if not f.in_adjoint or f.types(call.out) is None:
        return None
    x̄, _ = call.args
    may_matter = may_be_marked(f, x̄) and is_asked_for(f, call.out)
    if f.types(call.out) is np.ndarray or not may_matter or f.assumptions.assume(has_nan):
        return [f.same_call(call, operator.getitem, *call.args)]
    return None


ONLY_FLOATS = frozenset((float,))


def has_nan(*xs: Any) -> bool:
    """Is any of these not a number, or has entries or items that are none?

    That is what a slope that is infinite makes of a zero that counts as a number.
    """
    return any(map(is_nan, xs))


def is_nan(x: Any) -> bool:
    """The same of one number, array or structure."""
    if type(x) is float:
        return x != x
    if type(x) is list and ONLY_FLOATS.issuperset(map(type, x)):
        return any(map(operator.ne, x, x))
    if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
        flat = x.ravel()
        return bool(np.isnan(np.vdot(flat, flat)))
    if isinstance(x, np.ndarray) or not isinstance(x, (list, tuple, dict, Tangent)):
        return bool(np.any(x != x))
    return has_nan(*parts_of(x))


def parts_of(x: Any) -> Any:
    """What a structure of cotangents holds."""
    fields = x._fields if isinstance(x, Tangent) else x
    return fields.values() if isinstance(fields, dict) else fields


stands_for_zero(float, 0.0, has_nan, operator.ne)


@folds(entries)
def _(f: Any, call: Any) -> Any:
    """Likewise, of all entries."""
    (x̄,) = call.args
    known = f.details(x̄) if f.types(x̄) is np.ndarray else None
    if not f.in_adjoint or known is None:
        return None
    if not may_be_marked(f, x̄) or f.assumptions.assume(has_nan):
        return [f.same_call(call, np.ndarray.tolist if known[1] == 1 else list, x̄)]
    return None


@transfers(entries)
def _(s: Any, call: Any, args: Any) -> Any:
    return None


@transfers(entry)
def _(s: Any, call: Any, args: Any) -> Any:
    return entry_of(*args)


@folds(scattered)
def into_zeros(f: Any, call: Any) -> Any:
    """Into zeros of known shape, by a plain index."""
    ȳ, index, shape, dtype = call.args
    if (found := in_pieces(f, call)) is not None or f.again:
        return found
    if not hasattr(shape, "value") or not hasattr(dtype, "value") or dtype.value != np.float64:
        return None
    if not is_of_doubles(f, ȳ) or not is_plain_index(f, index):
        return None
    zeros = f.new_call(call, fresh_zeros, shape)
    written = f.same_call(call, set_at, zeros.out, ȳ, index)
    written.removable = True
    return [zeros, written]


def in_place(f: Any, call: Any, a: Any, b: Any) -> Any:
    """Sums of arrays in an adjoint are added up in the first one's memory."""
    if f.again:
        return None
    for x, y in ((a, b), (b, a)):
        part = f.definition(y, set_at)
        if part is not None and f.may_overwrite(x) and f.used_once(y):
            return [f.same_call(call, add_at, x, part.args[1], part.args[2])]
        part = f.definition(y, scatter)
        if part is not None and f.used_once(y) and is_plain_index(f, part.args[1]):
            return [f.same_call(call, plus_at, x, *part.args)]
        part = f.definition(y, shared)
        if part is not None and f.used_once(y) and f.details(x) == f.details(part.args[1]):
            return [f.same_call(call, plus_shared, x, *part.args)]
    for x, y in ((a, b), (b, a)):
        if f.may_overwrite(x):
            z = negated(f, y)
            if z is not None and f.details(z) == f.details(y):
                return [f.same_call(call, operator.isub, x, z)]
            return [f.same_call(call, operator.iadd, x, y)]
    return None


def with_factor(f: Any, call: Any, a: Any, b: Any) -> Any:
    """In an adjoint, c a + c b is c (a + b)."""
    x, y = f.definition(a, operator.mul), f.definition(b, operator.mul)
    if not f.in_adjoint or x is None or y is None or not (f.used_once(a) and f.used_once(b)):
        return None
    c, d = constant(x.args[0]), constant(y.args[0])
    if type(c) is not float or type(d) is not float or abs(c) != abs(d):
        return None
    if f.types(x.args[1]) is not np.ndarray or f.details(x.args[1]) != f.details(y.args[1]):
        return None
    if c == d:
        inner = f.new_call(call, operator.add, x.args[1], y.args[1])
        return [inner, f.same_call(call, operator.mul, x.args[0], inner.out)]
    inner = f.new_call(call, operator.sub, y.args[1], x.args[1])
    return [inner, f.same_call(call, operator.mul, y.args[0], inner.out)]


@folds(operator.add)
def _(f: Any, call: Any) -> Any:
    """x + -y is x - y; sums of arrays are made in place where that is safe."""
    a, b = call.args
    if (found := with_float(f, call)) is not None:
        return found
    for x, y in ((a, b), (b, a)):
        if (scalar := spread_from(f, x, y)) is not None:
            return [f.same_call(call, operator.add, y, scalar)]
    if (found := gathered(f, call, a, b)) is not None:
        return found
    if f.types(a) is np.ndarray and f.details(a) == f.details(b) and whole_shape(f.details(a)):
        found = unmarked_sum(f, call, a, b) or with_factor(f, call, a, b) or in_place(f, call, a, b)
        if found is not None:
            return found
    if alike(f, a, b):
        if (x := negated(f, b)) is not None:
            return [f.same_call(call, operator.sub, a, x)]
        if (x := negated(f, a)) is not None:
            return [f.same_call(call, operator.sub, b, x)]
    return None


@folds(operator.iadd)
def _(f: Any, call: Any) -> Any:
    return gathered(f, call, *call.args)


@folds(operator.sub)
def _(f: Any, call: Any) -> Any:
    """x - -y is x + y."""
    a, b = call.args
    if (found := with_float(f, call) or unspread(f, call)) is not None:
        return found
    if alike(f, a, b) and (x := negated(f, b)) is not None:
        return [f.same_call(call, operator.add, a, x)]
    return None


@folds(operator.neg)
def _(f: Any, call: Any) -> Any:
    """--x is x; -(c * x) is (-c) * x."""
    product = f.definition(call.args[0], operator.mul)
    if product is not None:
        c = constant(product.args[0])
        if c == -1 and type(c) is float and f.types(product.args[1]) is np.ndarray:
            return product.args[1]
        if type(c) is float and f.types(product.args[1]) is np.ndarray and f.used_once(product.out):
            return [f.same_call(call, operator.mul, type(product.args[0])(-c), product.args[1])]
    negative = f.definition(call.args[0], operator.neg)
    x = None if negative is None else negative.args[0]
    plain = f.types(x) is float or (f.in_adjoint and f.types(x) is np.ndarray)
    return x if plain else None


@folds(operator.pow)
def _(f: Any, call: Any) -> Any:
    """x ** 1 is x, for floats, and in an adjoint for arrays; x ** 2 is what NumPy calls for it."""
    x, n = call.args
    if constant(n) == 2 and f.types(x) is np.ndarray and f.details(x)[0][1] == "f":
        return [f.same_call(call, np.square, x)]
    if constant(n) != 1 or type(constant(n)) is not int:
        return None
    if f.types(x) is float or (f.in_adjoint and f.types(x) is np.ndarray):
        return x
    return None


@folds(unbroadcast)
def _(f: Any, call: Any) -> Any:
    """Between known shapes the sum over broadcast axes is one reduction."""
    x̄, target = call.args
    shape = getattr(target, "value", None)
    have = whole_shape(f.details(x̄)) if f.types(x̄) is np.ndarray else None
    if have is None or shape is None:
        return over_axes_too_many(f, call, x̄, target)
    if have == shape:
        return x̄
    extra = len(have) - len(shape)
    if extra == 0:
        axes = tuple([i for i, n in enumerate(shape) if n == 1 and have[i] != 1])
        return [reduction(f, call, x̄, axes[0] if len(axes) == 1 else axes, True)]
    if extra == 1 and have[1:] == shape:
        return [reduction(f, call, x̄, 0, False)]
    return None


@folds(widened)
def _(f: Any, call: Any) -> Any:
    """What is no whole number stays as it is."""
    (x,) = call.args
    kind, detail = f.types(x), f.details(x)
    if kind is np.ndarray:
        stays = detail is not None and np.dtype(detail[0]).kind in "fc"
    else:
        stays = kind is not None and issubclass(kind, (float, complex, np.inexact))
    return x if stays else None


@folds(total)
def _(f: Any, call: Any) -> Any:
    """The sum of a multiple is a multiple of the sum, that of a product a scalar product."""
    (x,) = call.args
    if not f.in_adjoint or f.readers is not None or f.types(x) is not np.ndarray:
        return None
    whole = f.definition(x, spread)
    if whole is not None and is_finite(whole.args[0]) and type(value_of(whole.args[1])) is tuple:
        return f.const(float(whole.args[0].value * math.prod(whole.args[1].value)))
    made = f.definitions.get(x)
    if made is not None and (f.used_once(x) or is_only_summed(f, x)):
        found = total_of_product(f, call, made)
        if found is not None:
            return found
    detail = f.details(x)
    if detail is None or detail[1] == 0 or detail[0] != "<f8":
        return None
    return [reduction(f, call, x, None, False)]


def is_only_summed(f: Any, x: Any) -> bool:
    """Is an array that is a constant times another read for its sums, and sums of products, only?"""
    made = f.definition(x, operator.mul)
    if made is None or constant(made.args[0]) is None or f.block_of.get(x) is not f.block:
        return False
    readers = [c for c in f.block.calls if x in c.args]
    summed = all([c.primitive in (total, np.ndarray.dot) and c.args[:2] != (x, x) for c in readers])
    return summed and sum([c.args.count(x) for c in readers]) == f.uses_of(x)


def total_of_product(f: Any, call: Any, made: Any) -> Any:
    """The sum of what a call multiplies, divides or takes the negative of."""
    if made.primitive is operator.neg:
        inner = f.new_call(call, total, made.args[0])
        return [inner, f.same_call(call, operator.neg, inner.out)]
    if made.primitive in (operator.mul, operator.truediv):
        a, b = made.args
        for x, y in ((a, b), (b, a)) if made.primitive is operator.mul else ((b, a),):
            if f.types(x) in NUMBERS and f.types(y) is np.ndarray:
                inner = f.new_call(call, total, y)
                return [inner, f.same_call(call, made.primitive, inner.out, x)]
    if made.primitive is operator.mul and are_vectors(f, made.args):
        return [f.same_call(call, np.ndarray.dot, *made.args)]
    if made.primitive is np.square and are_vectors(f, made.args):
        return [f.same_call(call, np.ndarray.dot, *made.args, *made.args)]
    return None


def are_vectors(f: Any, arrays: Any) -> bool:
    """Are they arrays of doubles with one axis of the same known length?"""
    details = [f.details(x) if f.types(x) is np.ndarray else None for x in arrays]
    first = details[0]
    fine = first is not None and first[:2] == ("<f8", 1) and whole_shape(first) is not None
    return fine and all([d == first for d in details])


@folds(restore)
def _(f: Any, call: Any) -> Any:
    """Where no axis has gone, to restore is to spread."""
    ȳ, shape, axis, keepdims = (*call.args, f.const(None), f.const(False))[:4]
    whole = value_of(axis, 0) is None or value_of(keepdims) is True
    if whole or f.types(ȳ) in (float, np.float64, np.float32):
        return [f.same_call(call, spread, ȳ, shape)]
    return None


def value_of(x: Any, otherwise: Any = None) -> Any:
    """The value of a constant operand."""
    return x.value if hasattr(x, "value") else otherwise


@folds(attains)
def _(f: Any, call: Any) -> Any:
    """Where no axis has gone, the comparison broadcasts by itself."""
    a, y, axis, keepdims, where = call.args
    if value_of(where) is not True:
        return None
    if value_of(axis, 0) is None or value_of(keepdims) is True:
        return [f.same_call(call, np.equal, a, y)]
    return None


@folds(np.where)
def _(f: Any, call: Any) -> Any:
    """np.where broadcasts by itself."""
    if len(call.args) != 3:
        return None
    mask, x, y = call.args
    if (inner := spread_from(f, x, mask)) is not None:
        return [f.same_call(call, np.where, mask, inner, y)]
    return None


@folds(taken)
def _(f: Any, call: Any) -> Any:
    """By an array of truth values, the part of a branch is a selection."""
    ȳ, condition, holds, shape = call.args
    known = f.details(condition) if f.types(condition) is np.ndarray else None
    if f.types(ȳ) is not np.ndarray or known is None or known[0] != "|b1" or not known[1]:
        return None
    if type(value_of(holds)) is not bool:
        return None
    calls = []
    if not holds.value:
        calls.append(f.new_call(call, np.logical_not, condition))
        condition = calls[0].out
    calls.append(f.new_call(call, selected, ȳ, condition))
    return [*calls, f.same_call(call, unbroadcast, calls[-1].out, shape)]


MOST_STEPS = 100  # back from a value to what it may have its marks from


def may_be_marked(f: Any, x̄: Any) -> bool:
    """May some of its entries be structurally zero, by what it is computed from?"""
    seen: set[Any] = set()
    work = [x̄]
    while work:
        x = work.pop()
        if hasattr(x, "value") or x in seen:
            continue
        seen.add(x)
        made = f.definitions.get(x)
        if made is None and x in f.ir.entry.params and not f.in_rule:
            continue
        passed = passed_to(f, x) if made is None else made.args
        if not passed or (made and marks(made.primitive)) or len(seen) > MOST_STEPS:
            return True
        if made is None or id(made.primitive) not in UNASKING:
            work += passed
    return False


def unmarked_sum(f: Any, call: Any, a: Any, b: Any) -> Any:
    """In a sum with a full array it does not matter that entries are structurally zero."""
    for x, y in ((a, b), (b, a)):
        part = f.definition(y, selected) or f.definition(y, masked)
        if part is not None and f.used_once(y):
            if f.details(part.args[1]) is None or may_be_marked(f, x):
                continue
            plain = f.new_call(call, np.where, part.args[1], part.args[0], f.const(0.0))
            return [plain, f.same_call(call, operator.add, x, plain.out)]
    return None


def over_axes_too_many(f: Any, call: Any, x̄: Any, target: Any) -> Any:
    """Where the numbers of axes are known, the sum over the first ones; what is left is compared."""
    read = f.definition(target, getattr)
    if read is None or f.types(read.args[0]) is not np.ndarray or f.types(x̄) is not np.ndarray:
        return None
    if f.readers is not None or not f.in_adjoint or value_of(read.args[1]) != "shape":
        return None
    extra = f.details(x̄)[1] - f.details(read.args[0])[1]
    if extra < 1 or f.details(read.args[0])[1] == 0:
        return None
    summed = reduction(
        f, f.new_call(call, match), x̄, 0 if extra == 1 else tuple(range(extra)), False
    )
    return [summed, f.same_call(call, match, summed.out, target)]


def reduction(f: Any, call: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """A sum over an axis as the cheapest call there is."""
    found = f.same_call(call, np.ufunc.reduce, f.const(np.add), x, f.const(axis))
    if keepdims:
        found.args, found.keywords = (*found.args, f.const(True)), ("keepdims",)
    return found


@folds(operator.matmul)
def _(f: Any, call: Any) -> Any:
    """np.dot is the cheaper spelling, where its bits are not compared with those of @."""
    a, b = call.args
    if f.exact or f.types(a) is not np.ndarray or f.types(b) is not np.ndarray:
        return None
    x, y = f.details(a), f.details(b)
    if x[0] == y[0] and x[0][1] == "f" and {x[1], y[1]} <= {1, 2}:
        return [f.same_call(call, np.ndarray.dot, a, b)]
    return None


@folds(np.dot, np.ndarray.dot)
def _(f: Any, call: Any) -> Any:
    """The method is the cheaper spelling; in an adjoint, a factor is taken out of the larger one."""
    if len(call.args) != 2:
        return None
    a, b = call.args
    if f.in_adjoint and (found := factor_out(f, call, a, b)) is not None:
        return found
    if call.primitive is np.dot and f.types(a) is np.ndarray:
        return [f.same_call(call, np.ndarray.dot, a, b)]
    return None


def factor_out(f: Any, call: Any, a: Any, b: Any) -> Any:
    """(c a) · b as c (a · b), where that is less to multiply."""
    product = f.definition(a, operator.mul)
    if product is None or not (f.used_once(a) or is_only_summed(f, a)):
        return None
    c, x = product.args
    if f.types(b) is not np.ndarray:
        return None
    if type(constant(c)) is not float or f.types(x) is not np.ndarray or f.details(x) is None:
        return None
    m, n = whole_shape(f.details(x)), whole_shape(f.details(b))
    if m is None or n is None or not 1 <= len(n) <= 2 or f.details(x)[0] != f.details(b)[0]:
        return None
    if math.prod(m[:-1]) * math.prod(n[1:]) > math.prod(m):
        return None
    inner = f.new_call(call, np.ndarray.dot, x, b)
    return [inner, f.same_call(call, operator.mul, c, inner.out)]


@folds(float.conjugate, int.conjugate)
def _(f: Any, call: Any) -> Any:
    return call.args[0] if len(call.args) == 1 else None


type_stable(np.generic.conjugate, np.generic.conj)


@folds(np.generic.conjugate, np.generic.conj)
def _(f: Any, call: Any) -> Any:
    """The conjugate of a real scalar of NumPy's is the scalar."""
    return call.args[0] if f.types(call.args[0]) in FLOATING else None


@folds(np.ndarray.conjugate, np.ndarray.conj)
def _(f: Any, call: Any) -> Any:
    """The conjugate of a real array is the array."""
    known = f.details(call.args[0])
    return call.args[0] if known is not None and known[0][1] == "f" else None


@folds(np.conjugate)
def _(f: Any, call: Any) -> Any:
    """In an adjoint, where nobody asks for a copy, the same."""
    x = call.args[0]
    known = f.details(x) if f.types(x) is np.ndarray and len(call.args) == 1 else None
    return x if f.in_adjoint and known is not None and known[0][1] == "f" else None


@folds(np.ravel)
def _(f: Any, call: Any) -> Any:
    """In an adjoint, where nobody asks for a view, an array of one axis is flat."""
    x = call.args[0]
    known = f.details(x) if f.types(x) is np.ndarray and len(call.args) == 1 else None
    return x if f.in_adjoint and known is not None and known[1] == 1 else None


@folds(np.reshape, np.ndarray.reshape)
def _(f: Any, call: Any) -> Any:
    """Likewise, an array of the right shape has it; the method is the cheaper spelling."""
    if not f.in_adjoint or len(call.args) != 2 or f.types(call.args[0]) is not np.ndarray:
        return None
    x, shape = call.args
    if f.details(x)[2] is not None and f.details(x)[2] == value_of(shape):
        return x
    if call.primitive is np.reshape:
        return [f.same_call(call, np.ndarray.reshape, x, shape)]
    return None


@transfers(infinite_less)
def _(s: Any, call: Any, args: Any) -> Any:
    return result_on_samples(operator.sub, args[:2])


@transfers(share_of)
def _(s: Any, call: Any, args: Any) -> Any:
    return result_on_samples(operator.sub, args)


@transfers(attaining)
def _(s: Any, call: Any, args: Any) -> Any:
    """How many entries attain an extreme value: an array like that of the values."""
    y = args[4]
    return y if getattr(y, "type", None) is np.ndarray else None


@transfers(real_slope)
def _(s: Any, call: Any, args: Any) -> Any:
    """What is like x ** p."""
    return args[0] if getattr(args[0], "type", None) in (np.ndarray, float) else None


_unmarked_forms(scatter, scattered)
_unmarked_forms(marked_part, array_part)
_unmarked_forms(marked_shared, shared)
_unmarked_forms(selected, masked)
_unmarked_forms(on_diagonal, set_on_diagonal)
_unmarked_forms(marked_entries_at, entries_at)


@transfers(scatter, scattered)
def _(s: Any, call: Any, args: Any) -> Any:
    """Cotangents of real arrays are real, of whatever else nothing is known."""
    found = result_on_samples(scattered, args)
    dtype = getattr(args[3], "value", None)
    unknown = args[0] is None or (
        getattr(args[0], "type", None) is np.ndarray
        and args[0].detail[0] == getattr(dtype, "str", 0)
    )
    if found is None and unknown and getattr(dtype, "kind", None) == "f":
        return result_on_samples(np.zeros, args[2:])
    return found


@transfers(marked_part)
def _(s: Any, call: Any, args: Any) -> Any:
    """An array like what is shared out, if it is one."""
    ȳ = args[0]
    return ȳ if getattr(ȳ, "type", None) is np.ndarray and ȳ.detail[1] else None


@transfers(selected, masked)
def _(s: Any, call: Any, args: Any) -> Any:
    """What is marked as selected is an array all the same."""
    return args[0] if getattr(args[0], "type", None) is np.ndarray else None


@transfers(shared, marked_shared)
def _(s: Any, call: Any, args: Any) -> Any:
    """An array like that of which the extreme is taken."""
    a = args[1]
    return a if getattr(a, "type", None) is np.ndarray and a.detail[0][1] == "f" else None


@transfers(add_at, plus_at, set_at, plus_shared, add_shared)
def _(s: Any, call: Any, args: Any) -> Any:
    return args[0]


def _in_place(in_place: Any, op: Any, of_lists: Any = None) -> None:
    @transfers(in_place, over=of_lists)
    def _(s: Any, call: Any, args: Any) -> Any:
        """In place or not, the type of a sum is the same; an array that is changed stays what it is."""
        if getattr(args[0], "type", None) is np.ndarray and args[0].detail is not None:
            return args[0]
        if of_lists is not None and getattr(args[0], "type", None) is list:
            return of_lists(s, call, args)
        return None if repeats_tuple(args) else result_on_samples(op, args)


_in_place(operator.iadd, operator.add, extended_in_place)
for _op in ("sub", "mul", "truediv"):
    _in_place(getattr(operator, f"i{_op}"), getattr(operator, _op))


@transfers(operator.pow, operator.ipow)
def _(s: Any, call: Any, args: Any) -> Any:
    """What is known of a ** n, of each that a and n may be."""
    if None in args or NEVER in args:
        return NEVER if NEVER in args else None
    found = NEVER
    for a, n in itertools.product(*map(alternatives, args)):
        one = power(a, n) or (None if may_assume(s) else whole_power(a, n))
        if one is None:
            return None
        found = join(found, one)
    return found


def may_assume(s: Any) -> bool:
    """Has a program examples, by which it may take the result for an int?"""
    return bool(getattr(getattr(s, "examples", None), "given", False))


def whole_power(a: Any, n: Any) -> Any:
    """A whole number to the power of one is whole, or a float if that is negative."""
    both = (Known(int), Known(int))
    return join(Known(int), Known(float)) if (known(a), known(n)) == both else None


def power(a: Any, n: Any) -> Any:
    """A float or an array stays one for an int n, an int for a constant n >= 0."""
    base, exponent = (getattr(known(x), "type", None) for x in (a, n))
    constant = getattr(n, "value", None)
    if type(constant) is int and constant >= 0:
        return result_on_samples(operator.pow, [a, n])
    if base is float and (exponent is int or is_whole(constant)):
        return known(a)
    types = {base, exponent}
    if types <= {int, float, np.float64, np.float32, np.ndarray} and not types <= {int, float}:
        return result_on_samples(operator.pow, [a, n])
    return None


def is_whole(x: Any) -> bool:
    """Is it a whole number?"""
    return type(x) is float and x.is_integer()


only_reads(operator.pow)


@guesses(operator.pow, operator.ipow)
def _(a: Any, n: Any) -> Any:
    """a ** n is real, though it need not be."""
    if a is None or n is None:
        return None
    found = NEVER
    for one, other in itertools.product(alternatives(a), alternatives(n)):
        types = [getattr(known(x), "type", None) for x in (one, other)]
        found = join(found, Known(float) if types in FLOATS else power(one, other))
    return None if found is NEVER else found


FLOATS = ([float, float], [int, float])


type_stable(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
type_stable(np.ufunc.reduce, np.dot, np.ndarray.dot, np.where, scattered, infinite_less, share_of)
type_stable(np.zeros, np.ones, np.full, np.eye, np.zeros_like, np.ones_like)
type_stable(np.ndarray)  # its attributes: shape, T, dtype, ...

in_place_forms(plus_shared, 4, {0: lambda *args: (add_shared, *args)})
in_place_forms(share_of, 2, {0: lambda a, b: (share_in, a, b)})
written_results(fresh_zeros, set_at, add_at, add_shared, share_in, operator.iadd, operator.isub)
type_stable(fresh_zeros)
fresh_results(
    scatter, scattered, add_at, plus_at, add_shared, plus_shared, set_at, shared, fresh_zeros,
    operator.iadd, operator.isub, np.ufunc.reduce, np.where,
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.matmul,
    share_of, share_in, operator.pow, np.dot, np.add, np.multiply, np.subtract, np.divide, np.negative,
    np.exp, np.log, np.tanh, np.sqrt, np.sin, np.cos, np.outer, np.add.reduce, np.ndarray.dot,
)  # fmt: skip


cheap(operator.add, operator.sub, operator.mul, operator.neg)
cheap(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)

DEFAULTS = {  # of ufunc.reduce
    "axis": 0, "dtype": None, "out": None, "keepdims": False, "initial": np._NoValue, "where": True,
}  # fmt: skip


@folds(np.ufunc.reduce)
def _(f: Any, call: Any) -> Any:
    """Arguments that say what is so anyway only cost time; in an adjoint, Σ -x is -Σ x."""
    args, n = list(call.args), 3 if len(call.args) > 2 else 2
    if f.in_adjoint and value_of(args[0]) is np.add and (x := negated(f, args[1])) is not None:
        inner = f.new_call(call, np.ufunc.reduce, args[0], x, *args[2:])
        inner.keywords = call.keywords
        return [inner, f.same_call(call, operator.neg, inner.out)]
    if call.keywords or len(args) <= 3:
        return None
    named = dict(zip(list(DEFAULTS)[1:], args[n:], strict=False))
    named = {k: v for k, v in named.items() if getattr(v, "value", f) is not DEFAULTS[k]}
    found = f.same_call(call, np.ufunc.reduce, *args[:n], *named.values())
    found.keywords = tuple(named)
    return [found]


partial_functions(
    math.log, math.log2, math.log10, math.log1p, math.sqrt, math.asin, math.acos, math.acosh,
    math.atanh, math.gamma, math.lgamma, math.pow, math.fmod, math.exp, math.expm1, math.sinh,
    math.cosh, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.itruediv,
    operator.ifloordiv, operator.imod, operator.ipow, divmod, math.remainder, int,
)  # fmt: skip


def divides_by_a_number(args: Any) -> bool:
    """Is the divisor a constant that is not zero?"""
    return constant(args[1]) not in (None, 0)


harmless_where[id(operator.truediv)] = divides_by_a_number


@folds(unthunk)
def _(f: Any, call: Call) -> Any:
    """What is known for a number, an array or a tuple is no thunk."""
    (x,) = call.args
    kind = type(x.value) if type(x) is Const else f.types(x)
    return x if kind in SETTLED else None


SETTLED = (float, int, complex, np.float64, np.float32, np.ndarray, tuple, ZeroTangent, NoTangent)


@folds(to_space)
def _(f: Any, call: Call) -> Any:
    """What is in the space stays; of a complex number for a real one, the real part."""
    x, x̄ = call.args
    if is_zero_value(x̄):
        return x̄
    k, k̄ = f.known(x), f.known(x̄)
    if k is None or k̄ is None:
        return None
    if k == k̄ and (k.type is not np.ndarray or whole_shape(k.detail)):
        return x̄
    if k.type is float and k̄.type is complex:
        return [Call(call.out, Const(getattr), (x̄, Const("real")), (), call.position)]
    return None


def numpy_field(dtype: np.dtype) -> str:
    """The field of the entries of an array; whole numbers and truth values count as real ones."""
    if dtype.kind == "f":
        return "real" if dtype == np.float64 else dtype.str
    if dtype.kind == "c":
        return "complex" if dtype == np.complex128 else dtype.str
    return "real" if dtype.kind in "iub" else dtype.kind


for _type in (int, float):
    field_of[_type] = lambda detail: "real"
field_of[complex] = lambda detail: "complex"
field_of[np.ndarray] = lambda detail: numpy_field(np.dtype(detail[0]))


def _scalar_field(t: type) -> None:
    field = numpy_field(np.dtype(t))
    field_of[t] = lambda detail: field


for _type in (*FLOATING, *COMPLEX, *INTEGERS):
    _scalar_field(_type)
