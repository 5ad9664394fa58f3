"""Folds: each one does what it says, gives the same bits in a primal, the same number in an adjoint."""

import itertools
import math
import operator

import numpy as np
import pytest

from morula import code_adjoint, gradient, value_and_grad
from morula.core.bytecode.lower import lower
from morula.core.ir import Const
from morula.core.simplify import simplify
from morula.core.traits import describe
from morula.core.values import known
from morula.rules.arrays.broadcasting import restore, spread, unbroadcast
from morula.rules.arrays.indexing import scattered
from morula.rules.arrays.reductions import attains
from morula.rules.arrays.reductions import shared as share
from morula.rules.arrays.structural import masked, selected
from morula.testing import check_gradient

neg, reduce, where, conjugate = operator.neg, np.ufunc.reduce, np.where, np.ndarray.conjugate
dot = np.dot
of_float, of_int = float.conjugate, int.conjugate
FLOATS = [0.0, -0.0, 1.5, -2.25, 1e200, math.inf, math.nan]
A = np.array([[0.5, -1.5, 0.0], [2.0, -0.0, 3.5]])
B = np.array([[1.5, 0.25, -2.0], [-0.5, 4.0, 0.75]])
Z = A + 1j * B
ROW = np.array([0.25, -1.5, 3.0])
MASK = A > 0.25
SHAPE = (2, 3)
F8, F4 = np.dtype("f8"), np.dtype("f4")
ADD = np.add
REPEATED = [1, 1, 1]


def run(ir, args, seen=None):
    """What a straight program gives; `seen` is told the value of each variable."""
    values = dict(zip(ir.params, args, strict=True))

    def value(x):
        return x.value if type(x) is Const else values[x]

    block = ir.entry
    while True:
        for call in block.calls:
            n = len(call.args) - len(call.keywords)
            named = dict(zip(call.keywords, map(value, call.args[n:]), strict=True))
            values[call.out] = value(call.fn)(*map(value, call.args[:n]), **named)
        (branch,) = block.branches
        found = [value(a) for a in branch.args]
        if branch.block is None:
            if seen is not None:
                seen.update(values)
            return found[0]
        values.update(zip(branch.block.params, found, strict=True))
        block = branch.block


def folded(f, *args, adjoint=False, exact=True):
    """The primitives of `f` after folding and its value before and after."""
    ir = lower(f.__code__, f.__globals__).copy()
    values = {}
    before = run(ir, [np.copy(a) if type(a) is np.ndarray else a for a in args], values)
    types = {v: describe(x) for v, x in values.items()}

    def known_of(x):
        return known(x) if type(x) is Const else types.get(x)

    for call in ir.calls():
        call.removable = True
    simplify(ir, lambda _: True, known_of, ir.blocks if adjoint else (), exact)
    names = [call.primitive.__name__ for call in ir.calls()]
    after = run(ir, args)
    return names, before, after


def same_bits(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and ((a != a and b != b) or repr(a) == repr(b))


# -- folds of the primal: the same bits ------------------------------------------------------------

SCALAR_FOLDS = [
    (lambda a, b: a * 1.0, []),
    (lambda a, b: 1.0 * a, []),
    (lambda a, b: a * -1.0, ["neg"]),
    (lambda a, b: -1.0 * a, ["neg"]),
    (lambda a, b: -a * b, ["mul", "neg"]),
    (lambda a, b: a * -b, ["mul", "neg"]),
    (lambda a, b: a + -b, ["sub"]),
    (lambda a, b: -a + b, ["sub"]),
    (lambda a, b: a - -b, ["add"]),
    (lambda a, b: neg(neg(a)), []),
    (lambda a, b: a**1, []),
    (lambda a, b: of_float(a), []),
]


@pytest.mark.parametrize(("f", "expected"), SCALAR_FOLDS)
def test_folds_of_floats_keep_all_bits(f, expected):
    for a, b in itertools.product(FLOATS, repeat=2):
        names, before, after = folded(f, a, b)
        assert names == expected
        assert same_bits(before, after)


def test_the_sign_of_a_dividend_comes_last():
    for a, b in itertools.product(FLOATS, [1.5, -2.0, 1e-200, math.inf]):
        names, before, after = folded(lambda a, b: -a / b, a, b)
        assert names == ["truediv", "neg"]
        assert same_bits(before, after)


UNFOLDED_SCALARS = [
    (lambda a, b: a * 1, (2.5, 1.0), ["mul"]),
    (lambda a, b: a * 1.0, (2, 1), ["mul"]),
    (lambda a, b: -a * b, (2.0, 3), ["neg", "mul"]),
    (lambda a, b: a**1, (2, 1), ["pow"]),
    (lambda a, b: a**1.0, (2.0, 1.0), ["pow"]),
    (lambda a, b: of_float(a), (2.0, 1.0), []),
    (lambda a, b: of_int(a), (2, 1), []),
]


@pytest.mark.parametrize(("f", "args", "expected"), UNFOLDED_SCALARS)
def test_other_types_and_shared_values_stay(f, args, expected):
    names, before, after = folded(f, *args)
    assert names == expected
    assert same_bits(before, after)


def test_a_negative_that_is_used_again_stays():
    def f(a, b):
        n = -a
        return n * b + n

    assert folded(f, 2.0, 3.0)[0] == ["neg", "mul", "add"]


ARRAY_FOLDS = [
    (lambda a, b: -a * b, ["mul", "neg"]),
    (lambda a, b: -a / b, ["truediv", "neg"]),
    (lambda a, b: a + -b, ["sub"]),
    (lambda a, b: a - -b, ["add"]),
    (lambda a, b: -(2.0 * a), ["mul"]),
    (lambda a, b: neg(neg(a)), ["neg", "neg"]),
    (lambda a, b: a**1, ["pow"]),
    (lambda a, b: conjugate(a), []),
    (lambda a, b: spread(2.0, SHAPE) * a, ["mul"]),
    (lambda a, b: where(MASK, spread(2.0, SHAPE), a), ["where"]),
    (lambda a, b: unbroadcast(a, SHAPE), []),
    (lambda a, b: unbroadcast(a, (3,)), ["reduce"]),
    (lambda a, b: unbroadcast(a, (1, 3)), ["reduce"]),
    (lambda a, b: unbroadcast(a, (2, 1)), ["reduce"]),
    (lambda a, b: unbroadcast(a, (1, 1)), ["reduce"]),
    (lambda a, b: unbroadcast(a, ()), ["unbroadcast"]),
    (lambda a, b: restore(2.0, SHAPE), ["spread"]),
    (lambda a, b: restore(a[:1], SHAPE, 0, True), ["getitem", "spread"]),
    (lambda a, b: restore(a[0], SHAPE, 0, False), ["getitem", "restore"]),
    (lambda a, b: attains(a, 3.5, None, False, True), ["equal"]),
    (lambda a, b: attains(a, a[:1], 0, True, True), ["getitem", "equal"]),
    (lambda a, b: attains(a, a[0], 0, False, True), ["getitem", "attains"]),
    (lambda a, b: attains(a, 3.5, None, False, MASK), ["attains"]),
    (
        lambda a, b: scattered(a[:, :2], (slice(None), slice(0, 2)), SHAPE, F8),
        ["getitem", "fresh_zeros", "set_at"],
    ),
    (lambda a, b: scattered(a[0], 1, SHAPE, F8), ["getitem", "fresh_zeros", "set_at"]),
    (lambda a, b: scattered(a[0], 1, SHAPE, F4), ["getitem", "scattered"]),
    (lambda a, b: scattered(a[0], REPEATED, (3,), F8), ["getitem", "scattered"]),
]


@pytest.mark.parametrize(("f", "expected"), ARRAY_FOLDS)
def test_folds_of_arrays_keep_all_bits(f, expected):
    names, before, after = folded(f, A, B)
    assert [n for n in names if n not in ("build_tuple", "build_slice", "slice")] == expected
    assert same_bits(np.asarray(before), np.asarray(after))


def test_a_complex_conjugate_stays():
    names, before, after = folded(lambda z: conjugate(z), Z)
    assert names == ["conjugate"]
    assert same_bits(before, after)


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (lambda a: reduce(ADD, a, 1, None, None, False), 3),
        (lambda a: reduce(ADD, a, 0, None, None), 3),
        (lambda a: reduce(ADD, a, None, None, None, True), 4),
    ],
)
def test_defaults_of_reduce_are_left_out(f, arguments):
    ir = lower(f.__code__, f.__globals__).copy()
    simplify(ir, lambda _: True)
    (call,) = ir.calls()
    assert len(call.args) == arguments
    assert same_bits(np.asarray(run(ir, (A,))), np.asarray(f(A)))


# -- folds of the adjoint: the same numbers --------------------------------------------------------

ADJOINT_FOLDS = [
    (lambda a, b: 2.0 * (3.0 * a), ["mul"]),
    (lambda a, b: 2 * (3.0 * a), ["mul"]),
    (lambda a, b: 2.0 * spread(3.0, SHAPE), ["spread"]),
    (lambda a, b: a * (1.0 / b), ["truediv"]),
    (lambda a, b: a**1, []),
    (lambda a, b: -(-1.0 * a), []),
    (lambda a, b: neg(neg(a)), []),
    (lambda a, b: 3.0 * a + 3.0 * b, ["add", "mul"]),
    (lambda a, b: 3.0 * a + -3.0 * b, ["sub", "mul"]),
    (lambda a, b: -3.0 * a + 3.0 * b, ["sub", "mul"]),
    (lambda a, b: reduce(ADD, -a, 0), ["reduce", "neg"]),
    (lambda a, b: a * b + spread(2.0, SHAPE), ["mul", "add"]),
    (lambda a, b: dot(3.0 * a, ROW), ["dot", "mul"]),
    (lambda a, b: a * b + share(2.0, b, 4.0), ["mul", "plus_shared"]),
    (lambda a, b: (a * b) + (a / b), ["mul", "truediv", "iadd"]),
    (lambda a, b: (a * b) + b, ["mul", "iadd"]),
    (lambda a, b: a + b, ["add"]),
    (lambda a, b: a * b + masked(a, MASK), ["mul", "where", "add"]),
    (lambda a, b: a + selected(b, MASK), ["where", "add"]),
    (lambda a, b: a * b + scattered(b[0], 1, SHAPE, F8), ["mul", "getitem", "add_at"]),
]


@pytest.mark.parametrize(("f", "expected"), ADJOINT_FOLDS)
def test_folds_of_adjoints_give_the_same_numbers(f, expected):
    a, b = A.copy(), B.copy()
    names, before, after = folded(f, a, b, adjoint=True)
    assert names == expected
    np.testing.assert_allclose(after, before, rtol=1e-14)
    assert same_bits(a, A)
    assert same_bits(b, B)


def test_a_sum_in_place_overwrites_nothing_that_is_read_again():
    def f(a, b):
        s = a * b
        t = s + a
        return t * s

    names, before, after = folded(f, A, B, adjoint=True)
    assert names == ["mul", "add", "mul"]
    np.testing.assert_allclose(after, before)


def test_matmul_is_dot_only_where_bits_do_not_count():
    def f(a, b):
        return a @ b

    for adjoint, exact in ((False, True), (True, True), (False, False)):
        names, before, after = folded(f, A, ROW, adjoint=adjoint, exact=exact)
        assert names == (["matmul"] if exact and not adjoint else ["dot"])
        np.testing.assert_allclose(after, before)


# -- whole gradients -------------------------------------------------------------------------------

X = np.array([4.0, 0.0, 9.0])
ROWS = np.array([[True, False, True], [True, False, False]])


def shared(x):
    s = np.sqrt(x)
    return np.where(x > 0, s, 0.0).sum() + np.where(x > 5, s, 1.0).sum()


def broadcast(x):
    return np.where(ROWS, np.sqrt(x), 0.0).sum()


def reduced(x):
    s = np.sqrt(x)
    return np.sum(s, where=x > 0) + np.sum(s, where=x > 5)


def signs(x):
    s = np.sqrt(x)
    return np.where(ROWS, -s * -2.0, 0.0).sum() - -s[x > 5].sum()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (shared, [0.25, 0.0, 1 / 3]),
        (broadcast, [0.5, 0.0, 1 / 6]),
        (reduced, [0.25, 0.0, 1 / 3]),
        (signs, [1.0, 0.0, 1 / 2]),
    ],
)
def test_folds_keep_structural_zeros(f, expected, path):
    np.testing.assert_allclose(gradient(f, X)[0], expected)


def test_only_what_a_product_asks_about_is_marked():
    x = np.linspace(1.0, 2.0, 5)
    marking = ("scatter", "marked_part", "marked_shared", "selected")

    def marks(f):
        text = str(code_adjoint(f, x))
        return [name for name in marking if f".{name}(" in text]

    A = np.ones((3, 5))
    assert marks(lambda x: np.sum(x[1:] - x[:-1] ** 2)) == []
    assert marks(lambda x: np.sum(np.maximum(A @ x, 0.5) ** 2)) == []
    assert marks(lambda x: np.sum((A @ np.maximum(x, 1.5)) ** 2)) == []
    assert marks(lambda x: np.max(2.0 * x)) == []
    assert marks(lambda x: np.sum(np.maximum(np.sqrt(x), 1.5))) == ["marked_part"]
    assert marks(lambda x: np.max(np.sqrt(x))) == ["marked_shared"]
    assert marks(lambda x: np.sum(np.sqrt(x)[1:])) == ["scatter"]


def test_a_difference_is_made_in_the_memory_of_what_is_subtracted_from():
    def f(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    check_gradient(f, np.array([0.3, -0.7, 1.2]))
    program = str(code_adjoint(f, np.ones(3)))
    assert "operator.isub" in program
    assert "operator.neg" not in program


# -- numbers that only what is not taken depends on ------------------------------------------------

FEW = np.array([1.0, 2.0, 3.0])


def by_where(x):
    return np.sum(np.where(x > 100, x / np.sqrt(x @ x), 0.0))


def by_maximum(x):
    return np.sum(np.maximum(x / np.sqrt(x @ x), 5.0))


def by_mask(x):
    s = np.sqrt(x @ x)
    return np.sum((-x * s / s)[x > 100])


def in_a_list(x):
    found = [x * 2.0]
    for _ in range(2):
        y = found[-1]
        found.append(y / np.sqrt(y @ y))
    return np.sum(np.stack(found)[np.zeros((3, 3), bool)])


@pytest.mark.parametrize("f", [by_where, by_maximum, by_mask, in_a_list])
def test_numbers_of_what_is_not_taken_get_nothing(f, path):
    for _ in range(2):
        assert gradient(f, FEW)[0].tolist() == [0.0, 0.0, 0.0]
        assert value_and_grad(f)(FEW)[1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_infinite_slopes_of_numbers_that_are_not_taken_do_no_harm(path):
    def f(a, x):
        s = np.sqrt(a)
        r = 3.0 * s
        return np.sum(np.where(x > 100, -x / r, 0.0)) + np.sum(np.maximum(x * s, 5.0)) + a

    assert gradient(f, np.float64(0.0), FEW)[0] == 1.0
    assert gradient(f, 0.0, FEW)[0] == 1.0
    assert gradient(f, 4.0, FEW)[0] == 1.0 + 0.25 * 3.0
    assert gradient(f, 4.0, 100 * FEW)[0] == pytest.approx(1 + 0.25 * 600 + (200 + 300) / 3 / 8 / 2)
