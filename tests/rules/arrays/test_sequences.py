"""Lists, tuples and single numbers where NumPy takes arrays."""

import operator
from collections import deque

import numpy as np
import pytest
from scipy import special

from morula import grad, gradient, jvp, pullback
from morula.core.extend import by_the_general_path
from morula.rules.arrays.sequences import BINARY, FIRST, OF_TWO, UNARY, takes_array_likes
from morula.testing import check_gradient, check_rrule

PAIR = [0.3, 0.7]


@pytest.mark.parametrize("fn", UNARY)
def test_functions_of_one_list(fn):
    if fn is np.sign:
        return
    check_rrule(fn, PAIR if fn is not np.arccosh else [1.3, 1.7])
    check_rrule(fn, ((0.3, 0.7), (0.2, 0.1)) if fn is not np.arccosh else (1.3, 1.7))


@pytest.mark.parametrize("fn", [*BINARY, *OF_TWO])
def test_functions_of_two_lists(fn):
    if fn is np.tensordot:
        check_rrule(fn, [PAIR, PAIR], [PAIR, PAIR], axes=2)
        return
    check_rrule(fn, PAIR, (0.45, 0.2))
    check_rrule(fn, PAIR, np.array([0.45, 0.2]))
    check_rrule(fn, np.array([0.45, 0.2]), PAIR)


@pytest.mark.parametrize(
    "fn",
    [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul],
)
def test_operators_with_an_array(fn):
    check_rrule(fn, PAIR, np.array([0.45, 0.2]))
    check_rrule(fn, np.array([0.45, 0.2]), (0.3, 0.7))


@pytest.mark.parametrize("fn", [operator.add, operator.sub, operator.truediv, operator.pow])
def test_operators_with_a_number_of_numpys(fn):
    check_gradient(lambda x: np.sum(fn([x[0], 2.0], x[1]) * x), np.array([0.45, 0.2]))
    check_gradient(lambda x: np.sum(fn(x[1], (x[0], 2.0)) * x), np.array([0.45, 0.2]))


@pytest.mark.parametrize(
    "name", ["dot", "__add__", "__rsub__", "__mul__", "__rtruediv__", "__pow__", "__matmul__"]
)
def test_methods_of_an_array_with_a_list(name):
    method = getattr(np.ndarray, name)
    check_rrule(method, np.array([0.45, 0.2]), PAIR)
    check_gradient(lambda x: np.sum(method(x, (0.3, 0.7)) ** 2), np.array([0.45, 0.2]))


ARGUMENTS = {
    np.reshape: ((4,),), np.expand_dims: (0,), np.repeat: (2,), np.tile: (2,), np.roll: (1,),
    np.take: (1,), np.clip: (0.1, 0.5), np.pad: (1,), np.quantile: (0.3,), np.percentile: (30.0,),
    np.nanquantile: (0.3,), np.nanpercentile: (30.0,), np.broadcast_to: ((2, 2, 2),),
    np.insert: (1, 0.5), np.delete: (1,), np.swapaxes: (0, 1), np.partition: (1,),
}  # fmt: skip


@pytest.mark.parametrize("fn", FIRST)
def test_functions_of_a_matrix_as_a_list(fn):
    check_rrule(fn, [[0.3, 0.7], [0.2, 0.9]], *ARGUMENTS.get(fn, ()))


@pytest.mark.parametrize("fn", [np.sum, np.mean, np.max, np.ravel, np.cumsum])
@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.float32(2.0), 2 + 1j])
def test_functions_of_a_number(fn, x):
    if fn is not np.max or not isinstance(x, complex):
        check_rrule(fn, x)


@pytest.mark.parametrize("name", ["sum", "mean", "item", "ravel", "copy", "conj", "max"])
@pytest.mark.parametrize("x", [np.float64(2.0), np.float32(2.0)])
def test_methods_of_a_number(name, x):
    check_rrule(getattr(np.generic, name), x)


def test_where_with_lists():
    check_rrule(np.where, [True, False], PAIR, 2.0)
    check_rrule(np.where, [True, False], 2.0, PAIR)
    check_rrule(np.where, [True, False], PAIR, (0.1, 0.2))


LIST = [1.0, 2.5, 0.3]
WITH_KEYWORDS = {
    "sum initial": lambda s: np.sum(LIST, initial=s),
    "sum of list of s, initial": lambda s: np.sum([s, 2.0], initial=s * s),
    "max initial": lambda s: np.max(LIST, initial=s * 9),
    "min initial": lambda s: np.min(LIST, initial=s * 0.01),
    "prod initial": lambda s: np.prod(LIST, initial=s),
    "clip": lambda s: np.sum(np.clip(LIST, a_min=s, a_max=2.0)),
    "clip2": lambda s: np.sum(np.clip(LIST, min=s, max=2 * s)),
    "diff prepend": lambda s: np.sum(np.diff(LIST, prepend=s) ** 2),
    "diff append": lambda s: np.sum(np.diff(LIST, append=[s]) ** 2),
    "quantile": lambda s: np.quantile(LIST, q=s / 2),
    "pad": lambda s: np.sum(np.pad(LIST, 1, constant_values=s) ** 2),
    "std mean": lambda s: np.std(LIST, mean=np.array([s])),
    "var mean": lambda s: np.var(LIST, mean=s),
    "nansum": lambda s: np.nansum(LIST, initial=s),
    "insert": lambda s: np.sum(np.insert(LIST, 1, values=s) ** 2),
    "add out where": lambda s: np.sum(
        np.add([1.0, 2.0], [s, s], where=[True, False], out=np.array([s, s * 2]))
    ),
}


@pytest.mark.parametrize("f", WITH_KEYWORDS.values(), ids=WITH_KEYWORDS.keys())
def test_what_is_given_by_name_beside_a_list_has_a_derivative(f):
    slope = pytest.approx((f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6, rel=1e-6)
    assert grad(f)(0.7) == slope
    assert pullback(f, 0.7)[1](1.0) == (slope,)
    assert jvp(f, (0.7,), (1.0,))[1] == slope


def into(w):
    """What a call writes over loses its cotangent; what a mask leaves keeps its own."""
    np.add([1.0, 2.0], w * 2, out=w)
    np.exp([0.1, 0.2], where=[True, False], out=w)
    return w


def test_lists_and_out():
    w = np.array([0.3, 0.5])
    (w̄,) = gradient(lambda w: into(w * 1.0).sum(), w)
    np.testing.assert_allclose(w̄, [0.0, 2.0])
    _, ẏ = jvp(lambda w: into(w * 1.0), (w,), (np.ones(2),))
    np.testing.assert_allclose(ẏ, [0.0, 2.0])


@pytest.mark.parametrize("x", [0.7, np.float64(0.7)])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.nansum(x) + np.nanmean(x) + np.nanmax(x) * np.nanmin(x) + np.ptp(x),
        lambda x: np.add.reduce(x) + np.add.reduce([x, 2.0], initial=x) * x,
        lambda x: np.multiply.reduce((x, x), keepdims=True)[0],
        lambda x: np.maximum.reduce([[x, 1.0], [2.0, x]], axis=1) @ [x, 1.0],
        lambda x: np.add.accumulate([x, x * x]) @ [2.0, x],
        lambda x: np.add.reduceat([x, 1.0, x], [0, 2]) @ [3.0, x],
        lambda x: np.logaddexp.reduce([x, 1.0]),
    ],
)
def test_methods_of_ufuncs_and_numbers(f, x):
    check_gradient(f, x)
    np.testing.assert_allclose(jvp(f, (x,), (1.0,))[1], gradient(f, x)[0])


# -- lists that change after the call --------------------------------------------------------------

READS = {
    "mean": np.mean,
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "std": np.std,
    "median": np.median,
    "norm": np.linalg.norm,
    "dot": lambda xs: np.dot(xs, xs),
    "outer": lambda xs: np.sum(np.outer(xs, [1.0, 2.0])),
    "einsum": lambda xs: np.einsum("i,i->", xs, xs),
    "exp": lambda xs: np.sum(np.exp(xs)),
    "add.reduce": lambda xs: np.add.reduce(xs),
    "array": lambda xs: np.array(xs) @ np.array(xs),
    "asarray": lambda xs: np.sum(np.asarray(xs) ** 2),
    "ascontiguousarray": lambda xs: np.sum(np.ascontiguousarray(xs) ** 2),
    "float64": lambda xs: np.sum(np.float64(xs) ** 2),
    "full": lambda xs: np.sum(np.full((3, 2), xs) ** 2),
    "where": lambda xs: np.sum(np.where([True, False], xs, [0.0, 1.0])),
    "insert": lambda xs: np.sum(np.insert(np.ones(2), 1, xs) ** 2),
    "diagflat": lambda xs: np.sum(np.diagflat(xs) ** 2),
    "concatenate": lambda xs: np.sum(np.concatenate([xs, xs]) ** 2),
    "stack": lambda xs: np.sum(np.stack(xs) ** 2),
    "stack, nested": lambda xs: np.sum(np.stack([xs, xs]) ** 2),
    "hstack": lambda xs: np.sum(np.hstack(xs) ** 2),
    "nested": lambda xs: np.sum([xs, [1.0, 2.0]]) * np.sum((xs, xs)),
    "multi_dot": lambda xs: np.linalg.multi_dot([[xs, xs], np.ones((2, 2)), xs])[0],
}
CHANGES = {
    "appended to": lambda xs: xs.append(3.0),
    "cleared": lambda xs: xs.clear(),
    "written to": lambda xs: xs.__setitem__(0, 5.0),
    "reversed": lambda xs: xs.reverse(),
}


@pytest.mark.parametrize("make", [list, deque])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", READS)
def test_lists_that_change_after_the_call(read, change, make):
    def f(x):
        xs = make([x, 3.0 * x])
        y = READS[read](xs)
        CHANGES[change](xs)
        return y * 1.0

    def unchanged(x):
        return READS[read]([x, 3.0 * x]) * 1.0

    expected = pytest.approx(grad(unchanged)(0.7))
    check_gradient(unchanged, 0.7)
    assert grad(f)(0.7) == expected
    with by_the_general_path():
        assert grad(f)(0.7) == expected


@pytest.mark.parametrize("make", [list, deque])
@pytest.mark.parametrize("read", READS)
def test_lists_that_the_caller_changes_before_the_pullback(read, make):
    xs = make([0.7, 2.1])
    _, back = pullback(lambda xs: READS[read](xs) * 1.0, xs)
    (expected,) = back(1.0)
    for change in ("written to", "reversed", "appended to", "cleared"):
        CHANGES[change](xs)
        (found,) = back(1.0)
        np.testing.assert_allclose(found, expected)


def test_a_running_mean():
    def f(x):
        xs, total = [], 0.0
        for i in range(4):
            xs.append(x * i)
            total = total + np.mean(xs) * i
        return total

    check_gradient(f, 0.5)
    with by_the_general_path():
        check_gradient(f, 0.5)


def test_containers_in_a_list_that_change_before_the_pullback():
    y, back = pullback(lambda x: [x, {"a": x * 2}, [x * 3]], 2.0)
    y[1].clear()
    y[2].append(1.0)
    assert back([1.0, {"a": 1.0}, [1.0]]) == (6.0,)


OF_A_DEQUE = {
    "array": lambda q: np.sum(np.array(q) ** 2),
    "asanyarray": lambda q: np.sum(np.asanyarray(q) ** 2),
    "mean": np.mean,
    "std": np.std,
    "var": lambda q: np.var(q, ddof=1),
    "median": np.median,
    "quantile": lambda q: np.quantile(q, 0.3),
    "sum": np.sum,
    "nansum": np.nansum,
    "max": np.max,
    "cumsum": lambda q: np.cumsum(q)[1] ** 2,
    "exp": lambda q: np.sum(np.exp(q)),
    "dot": lambda q: np.dot(q, q),
    "operator": lambda q: np.sum(np.arange(3.0) * q),
    "reduce": lambda q: np.multiply.reduce(q),
    "concatenate": lambda q: np.prod(np.concatenate([q, [2.0]])),
    "a rule": lambda q: np.sum(special.diric(q, 3)),
    "factorial": lambda q: np.sum(special.factorial(q)),
}


@pytest.mark.parametrize("name", OF_A_DEQUE)
def test_a_deque_is_a_sequence_like_others(name):
    def f(x):
        q = deque(maxlen=3)
        for i in range(5):
            q.append(x[i % 3] * (i + 1.0))
        return OF_A_DEQUE[name](q)

    check_gradient(f, np.array([0.3, 0.7, 0.2]))


class Holder:
    """What NumPy takes for an array, and nothing is known of."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


def filled(x):
    y = np.zeros(3)
    y[:] = x
    return y


takes_array_likes((0,), filled)


@pytest.mark.parametrize("make", [tuple, deque, Holder])
def test_what_the_code_behind_a_rule_writes_to_is_its_value(make):
    check_gradient(lambda x: np.sum(filled(make(x)) ** 2), np.array([0.3, 0.7, 0.2]))
    with by_the_general_path():
        check_gradient(lambda x: np.sum(filled(make(x)) ** 2), np.array([0.3, 0.7, 0.2]))


OF_LISTS = {
    "swapaxes": lambda x: np.swapaxes([*x], 0, 1)[0],
    "partition": lambda x: np.partition([*x[0]], 1),
    "unique": lambda x: np.unique([*x[0]]),
    "array_split counts what len counts": lambda x: np.array_split([*x], 2, axis=1)[0],
    "split": lambda x: np.split([*x], [1], axis=1)[0],
    "choose": lambda x: np.array([0, 1, 0]).choose([deque(x[0]), x[1]]),
    "broadcast_arrays": lambda x: np.broadcast_arrays([*x[0]], 2.0, tuple(x))[0],
    "matrix": lambda x: np.asarray(np.matrix([[*x[0]], x[1].tolist()]).T * np.asmatrix(x)),
    "choice": lambda x: draws().choice([*x[0]], 4, p=[0.2, 0.3, 0.5]),
    "one choice": lambda x: draws().choice((x[0, 0], x[1, 0])),
    "permutation": lambda x: draws().permutation([*x])[0],
    "uniform": lambda x: draws().uniform([*x[0]], [*(5 * x[1])]),
    "normal": lambda x: draws().normal([*x[0]], tuple(x[1])),
    "exponential": lambda x: draws().exponential([*x[0]]),
    "lognormal": lambda x: draws().lognormal(tuple(x[0]), [*x[1]]),
    "weibull": lambda x: draws().weibull([*x[0]]),
    "pareto": lambda x: draws().pareto([*(x[0] + 1)]),
    "vonmises": lambda x: draws().vonmises([*x[0]], 2.0),
    "triangular": lambda x: draws().triangular([*x[0]], [*(x[0] + x[1])], [*(x[0] + 3 * x[1])]),
}


def draws():
    return np.random.default_rng(3)


@pytest.mark.parametrize("name", OF_LISTS)
def test_lists_are_what_their_arrays_are(name):
    check_gradient(
        lambda x: np.sum(OF_LISTS[name](x) ** 2), np.array([[0.3, 0.7, 0.2], [0.4, 0.9, 1.1]])
    )


def test_parameters_of_draws_are_those_at_the_draw():
    def f(x):
        scales = [x[0], x[1]]
        y = draws().normal(0.0, scales) ** 2 + draws().choice(scales)
        scales.clear()
        return np.sum(y)

    check_gradient(f, np.array([0.3, 0.7]))


@pytest.mark.parametrize("items", [[], [np.float32(0.3), np.float32(0.7)], [0.3 + 0.4j, 0.7]])
def test_deques_of_every_kind(items):
    expected = gradient(lambda xs: np.sum(np.abs(np.exp(xs)) ** 2), items)[0]
    q = deque(items)
    value, back = pullback(lambda xs: np.sum(np.abs(np.exp(xs)) ** 2), q)
    for _ in range(2):  # a pullback may be called again
        (found,) = back(type(value)(1))
        assert [*found] == [*expected]
        assert [*map(type, found)] == [*map(type, expected)]


@pytest.mark.parametrize("kind", [tuple, list])
def test_a_sequence_that_is_given_back_as_it_is(kind):
    def f(x):
        xs = kind((x, x * x, 1.0))
        return np.diff(xs, 0)[1] * np.diff(xs, n=0)[0]

    assert pullback(f, 1.3)[1](1.0)[0] == pytest.approx(3 * 1.3**2)
    check_gradient(f, 1.3)
