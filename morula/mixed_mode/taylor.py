"""Taylor series: taylor(f, x, order).

A forward pass with series (series.py) in the place of tangents: what moves numbers about moves their
series; what is linear in them is applied to each coefficient, products convolve, and every other
function says by its rule what its series is. The rule gives the pushforward, y' = p(x, x'), and its own
code is run in the same pass: what it computes of x are series again, y itself among them. So the k-th
coefficient of y is found from those before, at the cost of a few products, and no rule is needed
for orders.
Tests: tests/mixed_mode/test_taylor.py
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from morula.core import errors
from morula.core.context import as_before
from morula.core.cotangents import ZERO, is_zero, unthunk
from morula.core.general import held_by
from morula.core.registry import non_differentiable
from morula.core.traits import has_tangent
from morula.mixed_mode.push import by_position, carries, push, refuse_unknown, split_call
from morula.mixed_mode.series import (
    Series,
    derivative,
    difference,
    fit,
    general_power,
    integer_power,
    mapped,
    power,
    product,
    quotient,
    sine_over_argument,
    sum_of,
)
from morula.mixed_mode.tangents import (
    Pass,
    absorb,
    by_value,
    holds_mutable,
    last,
    of_leaves,
    set_all,
    set_tangents,
    shown_to_user,
    tangents_if_any,
    tangents_of,
    zeros_like,
)
from morula.rules.arrays.elementwise import array_part, marked_part
from morula.rules.linalg.parts import apart, unmixed

NUMERIC = (int, float, complex, np.ndarray, np.generic)
NUMBERS = (*NUMERIC, numbers.Number)
# -- what the user calls ---------------------------------------------------------------------------


def taylor(f: Callable[[Any], Any], x: Any, order: int, direction: Any = None) -> Any:
    """The Taylor coefficients c_k of f(x + t v) = Σ c_k t^k up to `order`, in one run of `f`.

    Args:
        f: any function of one argument; it runs once, with its side effects. Where it branches on
            numbers, the coefficients are those of the branch taken.
        x: point; a number, or with a direction any structure.
        order: of the last coefficient, a natural number.
        direction: v, like x; 1 if x is a number. For an elementwise f of an array, ones give the
            series of each entry.
    Returns:
        Where f gives a float, a complex or an array: array of shape `(order + 1, *y.shape)`, so
        c_k is the k-th derivative over k!. For other numbers and for structures: the list of the
        c_k, each of which mirrors y.
    Raises:
        TypeError: x is no number and no direction is given; a function on the way has no rule.
        ValueError: `order` is negative; the direction is not like x.
    Cost: order² products for each operation.
    Reference: Griewank, Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 13.

    >>> import math
    >>> taylor(math.exp, 0.0, 4)
    array([1.        , 1.        , 0.5       , 0.16666667, 0.04166667])
    """
    n = checked_order(order)
    run = Expanding(n)
    ẋ = absorb(run, x, direction_of(x, direction), "argument 0")
    y, s = as_before(push, run, f, ZERO, (x,), (ẋ,))
    refuse_unknown((s,))
    return coefficients(run, y, last(run, y, s), n)


def checked_order(order: Any) -> int:
    """The order as an integer that is not negative."""
    n = operator.index(order)
    if n < 0:
        raise errors.CotangentError(f"order is {n}, taylor takes a natural number")
    return n


def direction_of(x: Any, direction: Any) -> Any:
    """The direction; one by itself if x is a number."""
    if direction is not None:
        return direction
    if isinstance(x, (tuple, list, dict, np.ndarray)) or not has_tangent(type(x)):
        raise errors.ArgumentError(
            f"taylor needs a direction where x is no number but a {type(x).__name__}: "
            "taylor(f, x, order, v) gives the series of f(x + t v); for an elementwise function "
            "of an array, v = np.ones_like(x) gives that of each entry"
        )
    return 1


non_differentiable(checked_order, direction_of)


def coefficients(run: Expanding, y: Any, s: Any, order: int) -> Any:
    """What the user gets."""
    held = [x for x, _ in held_by((y,)) if tangents_if_any(run, x) is not None]
    parts = [shown_to_user(nth(run, held, k), y, coefficient(s, k)) for k in range(1, order + 1)]
    return together_in_array([y, *parts]) if is_numeric(y) else [y, *parts]


def together_in_array(parts: list[Any]) -> Any:
    """Numbers or arrays as the entries of one array."""
    return np.stack(parts) if isinstance(parts[0], np.ndarray) else np.array(parts)


def is_numeric(y: Any) -> bool:
    """Is it a number or an array of NumPy's kinds?"""
    return isinstance(y, NUMERIC) and np.asarray(y).dtype.kind in "biufc"


non_differentiable(is_numeric)


def nth(run: Expanding, held: list[Any], k: int) -> Pass:
    """A pass with the k-th coefficients in the place of the series of mutable values."""
    found = Pass()
    for x in held:
        set_tangents(found, x, coefficient(tangents_of(run, x), k))
    return found


def coefficient(s: Any, k: int) -> Any:
    """The k-th coefficients of a structure of series."""
    return of_leaves(s, Series, lambda c: c.at(k))


MOST_RULES = 300  # asked for one operation of the program

# -- the pass --------------------------------------------------------------------------------------


class Expanding(Pass):
    """A forward pass with series as tangents."""

    __slots__ = ("known", "order", "round")
    refusal = "for Taylor series"

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order
        self.round: Any = None  # the series that the code of a rule makes, in their order
        self.known: Any = (
            None  # what rules were asked for one operation of the program, by arguments
        )

    def within(self, known: dict[Any, Any]) -> Expanding:
        """The pass as the code of a rule sees it: its series are computed later, term by term."""
        inner = Expanding(self.order)
        inner.table, inner.written = self.table, self.written
        inner.round, inner.known = [], known
        return inner

    def given(self, ẋ: Any) -> Any:
        """The series that begins with a direction."""
        return ZERO if is_zero(ẋ) else Series([ẋ])

    def count_of_layers(self) -> int:
        """One for each coefficient."""
        return self.order

    def layers(self, ẋ: Any) -> list[Any]:
        """The coefficients of a series, which are known outside of rules only."""
        if self.round is not None:
            raise errors.UnsupportedError(
                "a rule writes to an array, which its Taylor series cannot follow: let the rule "
                "make a new array"
            )
        return [ẋ.at(k) for k in range(1, self.order + 1)]

    def of_layers(self, layers: list[Any]) -> Any:
        """The series with these coefficients."""
        return Series(layers)

    def primitive(
        self,
        fn: Any,
        rule: Any,
        is_forward: bool,
        args: tuple[Any, ...],
        tangents: tuple[Any, ...],
        keywords: tuple[str, ...],
    ) -> Any:
        """The value of a call that a rule serves, and its series."""
        values = tuple([by_value(self, x, ẋ) for x, ẋ in zip(args, tangents, strict=True)])
        if all(map(is_zero, values)):
            return split_call(rule.function, args, keywords)[0], ZERO
        found = by_arithmetic(fn, args, values, keywords)
        if found is None:
            return self.by_rule(fn, rule, is_forward, args, values, keywords)
        y, s = found
        if isinstance(y, list):
            set_all(self, y, [self.finished(c) for c in s])
            return y, ZERO
        return y, self.finished(s)

    def finished(self, s: Any) -> Any:
        """A series that is computed, or will be in the round of the rule that it is a part of."""
        if isinstance(s, (tuple, list)):
            return tuple([self.finished(c) for c in s])
        if is_zero(s):
            return s
        if self.round is None:
            s.finish(self.order)
        else:
            self.round.append(s)
        return s

    def by_rule(
        self,
        fn: Any,
        rule: Any,
        is_forward: bool,
        args: tuple[Any, ...],
        values: tuple[Any, ...],
        keywords: tuple[str, ...],
    ) -> Any:
        """The value of a call and its series, which the rule of the call gives."""
        key = (id(fn), keywords, *map(key_of, args, values))
        known = {} if self.known is None else self.known
        if key in known:
            return known[key][0]
        y = split_call(rule.function, args, keywords)[0]
        if holds_mutable(y):
            raise errors.no_rule(fn, args, why=self.refusal)
        if not carries(y):
            return y, ZERO
        form = by_pushforward if is_forward else by_rows
        if not is_forward and is_elementwise(fn) and not has_sequences(args):
            wide = [
                x if is_zero(s) or np.shape(x) == np.shape(y) else np.broadcast_to(x, np.shape(y))
                for x, s in zip(args, values, strict=True)
            ]
            if any([x is not v for x, v in zip(args, wide, strict=True)]):
                spread = tuple([ZERO if is_zero(s) else mapped(s, partial(fit, y)) for s in values])
                return y, push(self, fn, ZERO, tuple(wide), spread, keywords)[1]
            form = by_slopes
        elif not is_forward and is_one_number(y):
            form = by_slopes
        asked = Asked(self.within(known), form, rule, args, values, keywords)
        whole = Series((), asked)
        s = tuple(parts_of(y, whole)) if isinstance(y, tuple) else whole
        known[key] = (y, s), fn, args, values
        if len(known) > MOST_RULES:
            raise errors.no_rule(
                fn,
                args,
                why=f"for Taylor series: to order {self.order} it asks for more than {MOST_RULES} "
                "others; a forward rule that uses its own result needs few",
            )
        if self.round is not None:
            self.round.append(whole)
            return y, s
        return y, self.finished(s)

    def attribute(self, x: Any, ẋ: Any, name: str, y: Any) -> Any:
        """The series of an attribute of a number or an array."""
        if is_zero(ẋ) or not isinstance(y, NUMERIC):
            return ZERO
        if name in ("T", "mT", "real", "imag", "flat"):
            return self.finished(mapped(ẋ, lambda c: getattr(c, name)))
        return ZERO


def has_sequences(args: Any) -> bool:
    """Are numbers in a tuple or a list among the arguments, each of which has a series of its own?"""
    return any([isinstance(x, (tuple, list)) for x in args])


def is_one_number(y: Any) -> bool:
    """Is a result one real or complex number, in an array or not?"""
    return not isinstance(y, tuple) and np.ndim(y) == 0


def key_of(x: Any, s: Any) -> Any:
    """What tells an argument of a rule from another."""
    if is_zero(s):
        return (type(x), x) if isinstance(x, (int, float, complex, str)) else (id(x), None)
    return id(x), id(s)


class Asked:
    """The terms of y, by y' = p(x, x'): the code of the rule runs once, on series."""

    __slots__ = ("call", "run", "ṡ", "ẏ")

    def __init__(self, run: Expanding, *call: Any) -> None:
        self.run = run
        self.call = call

    def __call__(self, k: int) -> Any:
        """The k-th term of y."""
        if k == 1:
            self.begin()
            return self.ẏ
        for s in self.run.round:
            s.at(k - 1)
        return over(term_of(self.ṡ, k - 1), k)

    def begin(self) -> None:
        """Run the rule and its pushforward."""
        form, rule, args, values, keywords = self.call
        pairs = [differentiated(self.run, x, s) for x, s in zip(args, values, strict=True)]
        ẋs, ṡs = tuple([c for c, _ in pairs]), tuple([s for _, s in pairs])
        given = (rule, args, ẋs, keywords)
        self.ẏ, self.ṡ = push(self.run, form, ZERO, given, (ZERO, values, ṡs, ZERO))


def differentiated(run: Pass, x: Any, s: Any) -> Any:
    """The first coefficient of s' and its series, for all parts of a structure."""
    if isinstance(s, (tuple, list)):
        pairs = [differentiated(run, v, c) for v, c in zip(x, s, strict=True)]
        first, rest = [c for c, _ in pairs], [c for _, c in pairs]
        if isinstance(s, tuple):
            return tuple(first), tuple(rest)
        set_all(run, first, rest)
        return first, ZERO
    if not is_zero(s) and type(s) is not Series:
        raise errors.no_rule(type(x), (), why="for Taylor series")
    return derivative(s)


def term_of(s: Any, k: int) -> Any:
    """The k-th coefficients of a structure of series."""
    if isinstance(s, tuple):
        return tuple([term_of(c, k) for c in s])
    return ZERO if is_zero(s) else s.at(k)


def over(c: Any, k: int) -> Any:
    """Coefficients over an integer."""
    if isinstance(c, tuple):
        return tuple([over(part, k) for part in c])
    return ZERO if is_zero(c) else c / k


# -- the derivative that a rule gives, as code that the pass runs ----------------------------------


def by_pushforward(rule: Any, args: Any, ẋs: Any, keywords: Any) -> Any:
    """A forward rule says it."""
    if not keywords:
        _, pushforward = rule.function(*args)
    else:
        _, pushforward = split_call(rule.function, args, keywords)
        ẋs = by_position(rule, ẋs, keywords)
    if not rule.trusted:
        ẋs = filled(args, ẋs)
    return unthunk(pushforward(*ẋs))


def filled(args: Any, ẋs: Any) -> Any:
    """Zeros for those tangents that are structurally zero."""
    return tuple([zeros_like(x) if is_zero(ẋ) else ẋ for x, ẋ in zip(args, ẋs, strict=False)])


def by_slopes(rule: Any, args: Any, ẋs: Any, keywords: Any) -> Any:
    """The result is one number, or each entry of it depends on the same entry of x: ẏ = g ẋ."""
    n = len(args) - len(keywords)
    if not keywords:
        y, pullback = rule.function(*args)
    else:
        y, pullback = split_call(rule.function, args, keywords)
    places = rule.positions(n, keywords)
    one = one_like(y)
    ẏ = contracted(args, ẋs, places, pullback(one), y)
    if is_complex(y):
        ẏ = ẏ + 1j * contracted(args, ẋs, places, pullback(1j * one), y)
    return ẏ


def contracted(args: Any, ẋs: Any, places: Any, slopes: Any, y: Any) -> Any:
    """Σ Re g* ẋ."""
    total: Any = ZERO
    for x, ẋ, i in zip(args, ẋs, places, strict=True):
        if is_zero(ẋ) or i is None or i >= len(slopes):
            continue
        g = unthunk(slopes[i])
        if isinstance(x, (tuple, list)):
            total = total + contracted(x, ẋ, range(len(x)), () if is_zero(g) else g, y)
        elif not is_zero(g):
            part = np.real(np.conjugate(g) * ẋ) if is_complex(x) else g * ẋ
            total = total + (np.sum(part) if np.ndim(x) > np.ndim(y) else part)
    return total


def by_rows(rule: Any, args: Any, ẋs: Any, keywords: Any) -> Any:
    """Every entry of the result has a gradient: ẏ = Σ Re g* ẋ, one by one."""
    n = len(args) - len(keywords)
    if not keywords:
        y, pullback = rule.function(*args)
    else:
        y, pullback = split_call(rule.function, args, keywords)
    places = rule.positions(n, keywords)
    if not isinstance(y, tuple):
        return rows_of(args, ẋs, places, pullback, y, None)
    parts = []
    for i in range(len(y)):
        parts.append(rows_of(args, ẋs, places, pullback, y, i) if is_varied(y[i]) else ZERO)
    return tuple(parts)


def rows_of(args: Any, ẋs: Any, places: Any, pullback: Any, y: Any, i: Any) -> Any:
    """The tangent of y, or of its i-th part, entry by entry."""
    part = y if i is None else y[i]
    entries = []
    for e in seeds(part):
        entry = contracted(args, ẋs, places, pullback(placed(y, i, e)), 0.0)
        if is_complex(part):
            entry = entry + 1j * contracted(args, ẋs, places, pullback(placed(y, i, 1j * e)), 0.0)
        entries.append(0.0 * e.flat[0] if is_zero(entry) else entry)
    return np.reshape(np.array(entries), np.shape(part))


def placed(y: Any, i: Any, e: Any) -> Any:
    """The cotangent of a tuple from that of its i-th part."""
    return e if i is None else tuple([e if j == i else ZERO for j in range(len(y))])


def seeds(y: Any) -> list[Any]:
    """The cotangents that are one in one entry of an array."""
    found = []
    for i in range(np.size(y)):
        e = np.zeros(np.size(y), np.result_type(y))
        e[i] = 1
        found.append(e.reshape(np.shape(y)))
    return found


def is_varied(y: Any) -> bool:
    """Is it an inexact number or an array of such?"""
    return is_numeric(y) and np.asarray(y).dtype.kind in "fc"


non_differentiable(seeds, placed, is_varied)


def one_like(y: Any) -> Any:
    """The cotangent of ones."""
    return np.ones_like(y) if isinstance(y, np.ndarray) else type(y)(1)


def is_complex(x: Any) -> bool:
    """Is it a complex number, or an array of such?"""
    return isinstance(x, (complex, np.ndarray, np.generic)) and np.iscomplexobj(x)


non_differentiable(one_like, is_complex)


def is_elementwise(fn: Any) -> bool:
    """Does each entry of its result depend on the same entry of its arguments?"""
    return any([fn is one for one in ELEMENTWISE]) or (
        isinstance(fn, np.ufunc) and fn.signature is None and fn.nout == 1
    )


ELEMENTWISE = (
    operator.abs, operator.pow, operator.mod, abs, pow, np.clip, np.ndarray.clip, np.sinc, np.angle,
    np.nan_to_num, np.i0,
)  # fmt: skip

# -- what needs no rule ----------------------------------------------------------------------------

SUMS = {operator.add, operator.iadd, np.add}
DIFFERENCES = {operator.sub, operator.isub, np.subtract}
QUOTIENTS = {operator.truediv, operator.itruediv, np.true_divide}
POWERS = {operator.pow, operator.ipow, np.power, np.float_power, pow, math.pow}
MULTILINEAR: dict[Any, tuple[int, ...]] = {  # the arguments in which they are linear, each by itself
    **dict.fromkeys(
        (
            operator.mul, operator.imul, np.multiply, operator.matmul, np.matmul, np.dot,
            np.ndarray.dot, np.inner, np.outer, np.vdot, np.kron, np.tensordot, np.convolve,
            np.cross, np.vecdot,
        ),
        (0, 1),
    ),
}  # fmt: skip
CONSTANT_IN: dict[Any, tuple[int, ...]] = {
    array_part: (1, 2),
    marked_part: (1, 2),
}  # these step between constants
LINEAR: dict[Any, tuple[int, ...]] = {  # the arguments in which they are linear, all together
    **dict.fromkeys(
        (
            operator.neg, operator.pos, np.negative, np.positive, np.real, np.imag, np.conjugate,
            np.ndarray.conj, np.ndarray.conjugate, np.sum, np.ndarray.sum, np.mean, np.ndarray.mean,
            np.cumsum, np.ndarray.cumsum, np.trace, np.ndarray.trace, np.diagonal, np.ndarray.diagonal,
            operator.getitem, np.reshape, np.ndarray.reshape, np.transpose, np.ndarray.transpose,
            np.ravel, np.ndarray.ravel, np.ndarray.flatten, np.squeeze, np.ndarray.squeeze,
            np.expand_dims, np.swapaxes, np.ndarray.swapaxes, np.moveaxis, np.broadcast_to, np.flip,
            np.fliplr, np.flipud, np.rot90, np.roll, np.repeat, np.ndarray.repeat, np.tile, np.diff,
            np.delete, np.take, np.ndarray.take, np.diag, np.triu, np.tril, np.copy, np.ndarray.copy,
            np.asarray, np.array, np.asanyarray, np.ascontiguousarray, np.ndarray.astype,
            np.concatenate, np.stack, np.hstack, np.vstack, np.column_stack, np.split, np.array_split,
            np.atleast_1d, np.atleast_2d, np.ndarray.tolist, np.ndarray.item, np.fft.fft, np.fft.ifft,
            np.fft.rfft, np.fft.irfft, float, np.ndarray.__float__,
        ),
        (0,),
    ),
    array_part: (0,),
    marked_part: (0,),
    np.append: (0, 1),
    np.insert: (0, 2),
    np.where: (1, 2),
    apart: (0,),
}  # fmt: skip
OF_COEFFICIENTS = {apart: unmixed}  # what these are for the coefficients of a series
KEYWORDS = {  # of these that hold no numbers of the result
    "axis", "axes", "keepdims", "offset", "axis1", "axis2", "n", "k", "copy", "order", "shape",
    "dtype", "shift", "reps", "repeats", "optimize",
}  # fmt: skip
MOST = 4  # positional arguments, the last of which are axes and shapes


def by_arithmetic(
    fn: Any, args: tuple[Any, ...], series: tuple[Any, ...], keywords: tuple[str, ...]
) -> Any:
    """The value and the series of a call whose series is known for any numbers, or None."""
    n = len(args) - len(keywords)
    if not {*keywords} <= KEYWORDS or n > MOST or not all(map(is_zero, series[n:])):
        return None
    if not is_hashable(fn):
        return None
    linear = LINEAR.get(fn)
    if linear is not None:
        return linearly(fn, args, series, keywords, linear)
    factors = MULTILINEAR.get(fn)
    if fn is np.einsum and isinstance(args[0], str):
        return products_of_indices(args, series, keywords)
    if fn is np.sinc and n == 1:
        return np.sinc(args[0]), sine_over_argument(args[0], series[0])
    if is_matrix_function(fn) and n == 1 and not keywords:
        return by_toeplitz(fn, args[0], series[0])
    if factors is None and (keywords or n != 2):
        return None
    if not all(isinstance(x, NUMBERS) for x in args[:2]):
        return None
    if factors is not None:
        return multilinearly(fn, args, series, keywords, factors)
    a, b = series
    if fn in SUMS:
        y = fn(*args)
        return y, sum_of(y, a, b)
    if fn in DIFFERENCES:
        y = fn(*args)
        return y, difference(y, a, b)
    if fn in QUOTIENTS:
        y = fn(*args)
        return y, quotient(y, args, a, b)
    if fn in POWERS and is_zero(b):
        return by_constant_exponent(fn, args[0], args[1], a)
    if fn in POWERS and isinstance(args[0], NUMERIC) and np.all(np.greater(args[0], 0)):
        y = fn(*args)
        return y, general_power(y, args[0], args[1], a, b)
    return None


def is_hashable(fn: Any) -> bool:
    """May it be looked up in a table?"""
    try:
        hash(fn)
    except TypeError:
        return False
    return True


def linearly(
    fn: Any,
    args: tuple[Any, ...],
    series: tuple[Any, ...],
    keywords: tuple[str, ...],
    places: tuple[int, ...],
) -> Any:
    """A function that is linear in some arguments together."""
    steps = CONSTANT_IN.get(fn, ())
    if any([not is_zero(s) for i, s in enumerate(series) if i not in (*places, *steps)]):
        return None
    y = split_call(fn, args, keywords)
    if any([y is args[i] for i in places if i < len(args)]):
        return y, series[[y is x for x in args].index(True)]

    def after(k: int) -> Any:
        given = [
            replaced(x, s, k) if i in places else x
            for i, (x, s) in enumerate(zip(args, series, strict=True))
        ]
        return split_call(OF_COEFFICIENTS.get(fn, fn), tuple(given), keywords)

    return y, parts_of(y, Series((), after))


def replaced(x: Any, s: Any, k: int) -> Any:
    """The k-th coefficients in the place of numbers."""
    if isinstance(x, (tuple, list)):
        parts = [ZERO] * len(x) if is_zero(s) else s
        return [replaced(v, c, k) for v, c in zip(x, parts, strict=True)]
    c = ZERO if is_zero(s) else s.at(k)
    return zeros_like(x) if is_zero(c) else c


def parts_of(y: Any, s: Series) -> Any:
    """The series of the parts of a tuple or a list, from the series of the whole."""
    if isinstance(y, (tuple, list)):
        return [parts_of(v, mapped(s, operator.itemgetter(i))) for i, v in enumerate(y)]
    return s if (is_numeric(y) and np.asarray(y).dtype.kind in "fc") or not is_numeric(y) else ZERO


def multilinearly(
    fn: Any,
    args: tuple[Any, ...],
    series: tuple[Any, ...],
    keywords: tuple[str, ...],
    places: tuple[int, ...],
) -> Any:
    """A product of any kind."""
    y = split_call(fn, args, keywords)
    rest = args[len(places) :]

    def multiply(*factors: Any) -> Any:
        return split_call(fn, (*factors, *rest), keywords) if rest else fn(*factors)

    n = len(places)
    return y, product(multiply, y, args[:n], series[:n])


def products_of_indices(
    args: tuple[Any, ...], series: tuple[Any, ...], keywords: tuple[str, ...]
) -> Any:
    """np.einsum: a product of all its arrays."""
    n = len(args) - len(keywords)
    if not all(isinstance(x, NUMERIC) for x in args[1:n]) or not {*keywords} <= {"optimize"}:
        return None
    y = split_call(np.einsum, args, keywords)

    def multiply(*factors: Any) -> Any:
        return np.einsum(args[0], *factors)

    return y, product(multiply, y, args[1:n], series[1:n])


def is_matrix_function(fn: Any) -> bool:
    """Is it a function of a square matrix, like the exponential?"""
    module = getattr(fn, "__module__", None) or ""
    return module.startswith("scipy.linalg") and getattr(fn, "__name__", "") in MATRIX_FUNCTIONS


MATRIX_FUNCTIONS = {
    "expm", "logm", "sqrtm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm",
}  # fmt: skip


def by_toeplitz(fn: Any, x: Any, s: Any) -> Any:
    """f(A₀ + A₁ t + …): the first row of blocks of f(T), where T has A_(j-i) as its blocks.

    Reference: Higham, Functions of Matrices, SIAM 2008, section 3.2, for two blocks.
    """
    if np.ndim(x) != 2:
        return None
    n = len(x)

    def after(k: int) -> Any:
        blocks = [x, *[zeros_like(x) if is_zero(s.at(j)) else s.at(j) for j in range(1, k + 1)]]
        rows = [
            np.concatenate([np.zeros_like(x)] * i + blocks[: k + 1 - i], axis=1)
            for i in range(k + 1)
        ]
        return fn(np.concatenate(rows))[:n, k * n :]

    return fn(x), Series((), after)


def by_constant_exponent(fn: Any, base: Any, exponent: Any, a: Series) -> Any:
    """a ** r; by products if r is a natural number, for then a may be zero; else by division by a."""
    y = fn(base, exponent)
    r = exponent
    if isinstance(r, (int, float)) and r == int(r) and 1 <= r <= FEW_FACTORS:
        return y, integer_power(operator.mul, base, int(r), a)
    if np.any(np.equal(base, 0)):
        return None
    return y, power(y, base, r, a)


FEW_FACTORS = 64
