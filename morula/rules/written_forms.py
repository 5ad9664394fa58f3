"""Calls that write to arrays, in the forms that compiled programs know: `x[k] = v` and `x += v`.

    np.exp(x, out=y)          t = np.exp(x); y[...] = t
    np.multiply(y, v, out=y)  y *= v
    np.copyto(y, v), y.fill(v)  y[...] = v
    y.sort()                  t = np.sort(y); y[...] = t
    np.sqrt(x, out=y, where=m)  t = np.sqrt(x[m]); y[m] = t
    np.put(y, k, v)           y[k] = v, where y has one axis
    np.putmask(y, m, v)       t = v[m]; y[m] = t
    np.fill_diagonal(y, v)    k = diagonal_index(y); y[k] = v
    np.add.at(y, k, v)        add_at(y, k, v), which has a meaning of its own (buffers.py)

All others are left to the general path, and so are arrays that are not real.
Tests: tests/rules/test_written_forms.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    Call,
    Const,
    Known,
    effects,
    fresh_results,
    gives_new,
    is_constant,
    known,
    non_differentiable,
    only_reads,
    result_on_samples,
    rewrites,
    substitute,
    transfers,
)
from morula.rules.arrays.inplace import fits
from morula.rules.arrays.outs import parted
from morula.rules.arrays.traits import whole_shape
from morula.rules.buffers import COPIES, MAKERS, add_at

REAL = ("<f8", "<f4")
WHOLE = Const(Ellipsis)
IN_PLACE = {
    np.add: operator.iadd,
    np.subtract: operator.isub,
    np.multiply: operator.imul,
    np.true_divide: operator.itruediv,
}
COMMUTING = (np.add, np.multiply)
# They round as IEEE 754 says, wherever their result is written.
EXACT = (
    *IN_PLACE, np.negative, np.positive, np.absolute, np.fabs, np.sqrt, np.square, np.maximum,
    np.minimum, np.fmax, np.fmin, np.copysign, np.reciprocal, np.floor, np.ceil, np.trunc, np.rint,
)  # fmt: skip
OTHERS = (np.sum, np.dot, np.matmul, np.clip, np.cumsum, np.mean, np.max, np.min, np.ndarray.dot)
EXACT_OTHERS = (np.clip, np.max, np.min)
PLACED = {id(np.put): 1, id(np.putmask): 1, id(np.fill_diagonal): 0}  # how many arguments say where
AT = {np.add: False, np.subtract: True}  # is what is added the negative?


@rewrites
def spell_writes(s: Any) -> bool:
    """Put these forms in the place of calls; was there any?"""
    return Writes(s).apply()


class Writes:
    """The writes of one program."""

    def __init__(self, s: Any) -> None:
        self.s = s
        self.ir = s.ir
        self.made = {c.out: c for c in self.ir.calls()}

    def apply(self) -> bool:
        """Spell all calls that can be."""
        done = False
        for block in self.ir.blocks:
            for call in list(block.calls):
                spell = self.spelling_of(call)
                if spell is not None:
                    spell(block, call)
                    done = True
        return done

    def spelling_of(self, call: Any) -> Callable[[Any, Any], None] | None:
        """How a call is spelt; None: as it is."""
        fn, n = call.primitive, len(call.args)
        if type(call.fn) is not Const:
            return None
        if self.y_of_at(call) is not None:
            return self.spell_at
        if fn is np.ndarray.fill and n == 2 and not call.keywords:
            one = known(self.s.value(call.args[1]))
            is_one = one is not None and one.type is not np.ndarray
            return self.spell_whole if is_one and self.fits(*call.args) else None
        if fn is np.copyto and n == 2 and not call.keywords:
            return self.spell_whole if self.fits(*call.args) else None
        if id(fn) in PLACED and not call.keywords:
            return self.spell_placed if self.is_placed(call) else None
        if call.keywords and call.keywords[-1] == "where":
            return self.spell_where if self.is_spelt_by_mask(call) else None
        if fn is np.ndarray.sort and n == 1 and self.detail(call.args[0]) is not None:
            return self.spell_sort
        return self.spell_out if self.is_spelt_without_out(call) else None

    # -- what is known

    def detail(self, x: Any) -> Any:
        """What is known of a real array: dtype, number of axes, shape; None: it may be another."""
        k = known(self.s.value(x))
        if k is None or k.type is not np.ndarray or k.detail is None or k.detail[0] not in REAL:
            return None
        return k.detail

    def fits(self, x: Any, v: Any) -> bool:
        """May v be written to the array x, in whose dtype it is?"""
        detail, value = self.detail(x), known(self.s.value(v))
        if detail is None or value is None:
            return False
        if value.type is np.ndarray:
            return value.detail is not None and value.detail[0] == detail[0]
        return value.type in (int, float, bool, np.float64)

    def is_whole(self, y: Any) -> bool:
        """Has an array that is made here a memory of its own, in the order of its axes?"""
        made = self.made.get(y)
        if made is None:
            return False
        new = gives_new(made.primitive) and self.detail(y)[1] < 2
        return new or made.primitive in (*MAKERS, *COPIES)

    # -- out=

    def out_of(self, call: Any) -> Any:
        """The array that a call writes its result to, and the other arguments; None: it has none."""
        n = len(call.args) - len(call.keywords)
        parts = parted(call.primitive, n, call.keywords)
        if parts is None or len(parts.outs) != 1 or parts.names:
            return None
        return call.args[parts.outs[0]], tuple([call.args[i] for i in parts.positions])

    def is_spelt_without_out(self, call: Any) -> bool:
        """May its result be written by a write of its own, to the last bit?"""
        fn = call.primitive
        ufunc = isinstance(fn, np.ufunc) and fn.nout == 1 and fn.signature is None
        if not (ufunc or fn in OTHERS) or is_constant(fn):
            return False
        found = self.out_of(call)
        if found is None or self.detail(found[0]) is None:
            return False
        y, args = found
        if not (fn in EXACT or fn in EXACT_OTHERS or self.is_whole(y)):
            return False
        result = known(result_on_samples(fn, [self.s.value(a) for a in args]))
        return result is not None and self.is_like(self.detail(y), result)

    def is_like(self, detail: Any, result: Any) -> bool:
        """Is a result of the dtype of the array that it is written to, with no more axes?"""
        if result.type is not np.ndarray:
            return np.dtype(detail[0]).type is result.type
        same = result.detail is not None and result.detail[0] == detail[0]
        return same and result.detail[1] <= detail[1]

    def spell_out(self, block: Any, call: Any) -> None:
        """`fn(*args, out=y)`."""
        fn = call.primitive
        y, args = self.out_of(call)
        in_place = IN_PLACE.get(fn)
        operands = args if fn not in COMMUTING or args[0] is y else args[::-1]
        filled = y in self.made and self.made[y].primitive in MAKERS  # has a shadow (buffers.py)
        if in_place is not None and filled and operands[0] is y and self.fits(y, operands[1]):
            call.fn, call.args, call.keywords = Const(in_place), operands, ()
            return
        t = self.ir.var()
        result = known(result_on_samples(fn, [self.s.value(a) for a in args]))
        assert result is not None
        self.s.types[t] = result
        ahead = [Call(t, Const(fn), args, (), call.position)]
        before, after = [
            None if d is None else whole_shape(d) for d in (self.detail(y), result.detail)
        ]
        if before is None or before != after:
            given = (y, t, Const(fn), *args)
            ahead.append(Call(self.ir.var(), Const(require_out), given, (), call.position))
        self.spell_as(block, call, ahead, y, t)

    def spell_as(
        self, block: Any, call: Any, ahead: list[Any], y: Any, v: Any, k: Any = WHOLE
    ) -> None:
        """`y[k] = v`, behind other calls; what the call gave is y, if it has given anything."""
        i = block.calls.index(call)
        block.calls[i:i] = ahead
        if call.primitive is not np.copyto:
            substitute(self.ir, {call.out: y})
        call.fn, call.args, call.keywords = Const(operator.setitem), (y, k, v), ()
        self.s.types[call.out] = Known(type(None))

    # -- where=

    def masked_parts(self, call: Any) -> Any:
        """What is written to where a mask holds: the function or None, the array, the operands."""
        fn, n = call.primitive, len(call.args) - len(call.keywords)
        if fn is np.copyto and n == 2 and call.keywords == ("where",):
            return None, call.args[0], call.args[1:2]
        if fn in EXACT and n == fn.nin and call.keywords == ("out", "where"):
            return fn, call.args[n], call.args[:n]
        return None, None, ()

    def is_spelt_by_mask(self, call: Any) -> bool:
        """May it be written as `y[m] = fn(a[m], b)`? Then all arrays are of the same shape."""
        fn, y, operands = self.masked_parts(call)
        if y is None or self.detail(y) is None or not all([self.fits(y, a) for a in operands]):
            return False
        m = known(self.s.value(call.args[-1]))
        if m is None or m.type is not np.ndarray or m.detail is None or m.detail[0][1] != "b":
            return False
        details = [d for a in operands if (d := self.detail(a)) is not None]
        shapes = [whole_shape(d) for d in (*details, m.detail, self.detail(y))]
        return bool(details or fn is None) and None not in shapes and len({*shapes}) == 1

    def spell_where(self, block: Any, call: Any) -> None:
        """`fn(a, b, out=y, where=m)` and `np.copyto(y, v, where=m)`."""
        fn, y, operands = self.masked_parts(call)
        m, ahead, parts = call.args[-1], [], []
        for a in operands:
            if self.detail(a) is not None:
                ahead.append(
                    Call(self.ir.var(), Const(operator.getitem), (a, m), (), call.position)
                )
                self.s.types[ahead[-1].out] = Known(np.ndarray, (self.detail(a)[0], 1, None))
                a = ahead[-1].out
            parts.append(a)
        v = parts[0]
        if fn is not None:
            v = self.ir.var()
            self.s.types[v] = Known(np.ndarray, (self.detail(y)[0], 1, None))
            ahead.append(Call(v, Const(fn), tuple(parts), (), call.position))
        self.spell_as(block, call, ahead, y, v, m)

    # -- the others

    def spell_whole(self, block: Any, call: Any) -> None:
        """`np.copyto(y, v)` and `y.fill(v)`."""
        y, v = call.args
        call.fn, call.args = Const(operator.setitem), (y, WHOLE, v)

    def is_placed(self, call: Any) -> bool:
        """Do the values of such a call go to their places one by one?"""
        fn, (y, *where, v) = call.primitive, call.args
        if len(where) != PLACED[id(fn)] or not self.fits(y, v):
            return False
        detail, given, k = self.detail(y), known(self.s.value(v)), self.index_detail(*where)
        assert given is not None
        places: Any = None
        if fn is np.fill_diagonal:
            shape = whole_shape(detail)
            places = None if shape is None else (min(shape),)
            if detail[1] != 2:
                return False
        elif k is None:
            return False
        elif fn is np.put:
            places = k[2]
            if detail[1] != 1 or k[0][1] not in "iu":
                return False
        else:
            places = detail[2]
            if k[0][1] != "b" or whole_shape(k) is None or k[2] != places:
                return False
        if given.type is not np.ndarray or given.detail is None:
            return given.type is not np.ndarray
        shape = whole_shape(given.detail)
        return shape is not None and shape == places

    def index_detail(self, *where: Any) -> Any:
        """What is known of an array that says where; None: there is none."""
        k = known(self.s.value(where[0])) if where else None
        return k.detail if k is not None and k.type is np.ndarray else None

    def spell_placed(self, block: Any, call: Any) -> None:
        """`np.put(y, k, v)`, `np.putmask(y, k, v)`, `np.fill_diagonal(y, v)`."""
        fn, (y, *where, v) = call.primitive, call.args
        k, ahead = where[0] if where else self.ir.var(), []
        if fn is np.fill_diagonal:
            ahead = [Call(k, Const(diagonal_index), (y,), (), call.position)]
        elif fn is np.putmask and self.detail(v) is not None:
            ahead = [Call(self.ir.var(), Const(operator.getitem), (v, k), (), call.position)]
            v = ahead[0].out
        i = block.calls.index(call)
        block.calls[i:i] = ahead
        call.fn, call.args = Const(operator.setitem), (y, k, v)

    def spell_sort(self, block: Any, call: Any) -> None:
        """`y.sort()`."""
        (y,) = call.args
        t = self.ir.var()
        self.s.types[t] = self.s.value(y)
        i = block.calls.index(call)
        block.calls.insert(i, Call(t, Const(np.sort), (y,), (), call.position))
        call.fn, call.args = Const(operator.setitem), (y, WHOLE, t)

    def y_of_at(self, call: Any) -> Any:
        """The array that `np.add.at` and `np.subtract.at` write to; None: it is another call."""
        ufunc, args = ufunc_and_args(call)
        if ufunc not in AT or len(args) != 3 or call.keywords or not self.fits(args[0], args[2]):
            return None
        return args[0]

    def spell_at(self, block: Any, call: Any) -> None:
        """`np.add.at(y, k, v)`."""
        ufunc, (y, k, v) = ufunc_and_args(call)
        if AT[ufunc]:
            t = self.ir.var()
            self.s.types[t] = self.s.value(v)
            block.calls.insert(
                block.calls.index(call), Call(t, Const(operator.neg), (v,), (), call.position)
            )
            v = t
        call.fn, call.args = Const(add_at), (y, k, v)


def ufunc_and_args(call: Any) -> tuple[Any, tuple[Any, ...]]:
    """The ufunc whose `at` is called, and with what; None: it is another call."""
    fn = call.primitive
    if fn is np.ufunc.at and call.args and type(call.args[0]) is Const:
        return call.args[0].value, call.args[1:]
    bound = getattr(fn, "__name__", None) == "at" and type(fn) is type(np.add.at)
    return (fn.__self__, call.args) if bound else (None, ())


# -- what runs -------------------------------------------------------------------------------------


def require_out(y: np.ndarray, t: Any, fn: Any, *args: Any) -> None:
    """Raise what a call raises whose result does not fit into the array that it is written to."""
    if not fits(y, t):
        fn(*args, out=y)


def diagonal_index(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of the diagonal of a matrix."""
    k = np.arange(min(y.shape))
    return k, k


@transfers(diagonal_index)
def _(s: Any, call: Any, args: Any) -> Any:
    k = Known(np.ndarray, (np.dtype(int).str, 1, None))
    return Known(tuple, (k, k))


non_differentiable(require_out, diagonal_index)
only_reads(require_out, diagonal_index)
fresh_results(diagonal_index)
effects(require_out)
transfers(require_out)(lambda s, call, args: Known(type(None)))
