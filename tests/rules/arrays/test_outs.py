"""Calls with out=, by name and by position, of what has a derivative and of what has none."""

import numpy as np
import pytest
from scipy import special

from morula import grad, gradient, hessian, jvp, why
from tests.mutation import check_mutation

X = np.array([1.23, -2.61, 3.72])


def with_nan(x):
    """A column that counts and one that does not."""
    return np.stack([x * x, np.full(3, np.nan)], 1)


CONSTANT = {
    "round, by name": lambda w, x: np.round(w, 1, out=w),
    "round, by position": lambda w, x: np.round(w, 1, w),
    "around": lambda w, x: np.around(w, 1, w),
    "method round": lambda w, x: w.round(1, w),
    "method round, by name": lambda w, x: w.round(1, out=w),
    "method of the class": lambda w, x: np.ndarray.round(w, 1, w),
    "floor": lambda w, x: np.floor(w, w),
    "floor, by name": lambda w, x: np.floor(x, out=w),
    "floor, in a tuple": lambda w, x: np.floor(w, out=(w,)),
    "floor with a mask": lambda w, x: np.floor(x, out=w, where=x > 0),
    "rint": lambda w, x: np.rint(x, w),
    "fix": lambda w, x: np.fix(w, w),
    "fix, by name": lambda w, x: np.fix(x, out=w),
    "sign": lambda w, x: np.sign(w, w),
    "comparison": lambda w, x: np.greater(w, 0.0, out=w, casting="unsafe"),
    "isnan": lambda w, x: np.isnan(w, w),
    "isposinf": lambda w, x: np.isposinf(w, w),
    "floor_divide": lambda w, x: np.floor_divide(w, 2.0, w),
    "logical_not": lambda w, x: np.logical_not(w, out=w),
    "all": lambda w, x: np.all(w.reshape(1, 3), 0, w),
    "any, by name": lambda w, x: np.any(w.reshape(1, 3), axis=0, out=w),
    "argmax": lambda w, x: np.argmax(w.reshape(3, 1), 1, np.zeros(3, int)),
    "reduction of truths": lambda w, x: np.logical_and.reduce(w.reshape(1, 3), axis=0, out=w),
    "special.round": lambda w, x: special.round(w, w),
    "random": lambda w, x: np.random.default_rng(0).random(out=w),
    "random, by position": lambda w, x: np.random.default_rng(0).random(None, np.float64, w),
    "standard_normal": lambda w, x: np.random.default_rng(0).standard_normal(out=w),
    "standard_gamma": lambda w, x: np.random.default_rng(0).standard_gamma(2.0, out=w),
}
BY_POSITION = {
    "sum": lambda w, x: np.sum(np.outer(x, x), 1, None, w),
    "sum, with what comes behind": lambda w, x: np.sum(np.outer(x, x), 0, None, w[None], True),
    "sum, method": lambda w, x: np.outer(x, x).sum(1, None, w),
    "add.reduce": lambda w, x: np.add.reduce(np.outer(x, x), 1, None, w),
    "multiply.reduce, by name": lambda w, x: np.multiply.reduce(np.outer(x, x), 1, out=w),
    "add.accumulate": lambda w, x: np.add.accumulate(x * x, 0, None, w),
    "add.reduceat": lambda w, x: np.add.reduceat(x * x, [0, 1, 2], 0, None, w),
    "mean": lambda w, x: np.mean(np.outer(x, x), 1, None, w),
    "prod": lambda w, x: np.prod(np.outer(x, x), 1, None, w),
    "std": lambda w, x: np.std(np.outer(x, [1.0, 2.0]), 1, None, w),
    "var, method": lambda w, x: np.outer(x, [1.0, 2.0]).var(1, None, w),
    "max": lambda w, x: np.max(np.outer(x, [1.0, 2.0]), 1, w),
    "min, method": lambda w, x: np.outer(x, [1.0, 2.0]).min(1, w),
    "ptp": lambda w, x: np.ptp(np.outer(x, [1.0, 2.0]), 1, w),
    "cumsum": lambda w, x: np.cumsum(x * x, 0, None, w),
    "cumprod, method": lambda w, x: x.cumprod(0, None, w),
    "clip": lambda w, x: np.clip(x * x, 2.0, 9.0, w),
    "clip, method": lambda w, x: x.clip(-1.0, 2.0, w),
    "einsum, by name": lambda w, x: np.einsum("i,j->i", x, w, out=w),
    "einsum of lists of axes": lambda w, x: np.einsum(x, [0], x, [1], [0], out=w),
    "take": lambda w, x: np.take(x * x, [2, 1, 1], 0, w),
    "take, method": lambda w, x: x.take([2, 1, 1], 0, w, "wrap"),
    "compress": lambda w, x: np.compress([True, True, True], x * x, 0, w),
    "choose": lambda w, x: np.choose([0, 1, 0], [x, x * x], w),
    "dot": lambda w, x: np.dot(np.outer(x, x), x, w),
    "dot, method": lambda w, x: np.outer(x, x).dot(x, w),
    "outer": lambda w, x: np.outer(x[:1], x, w[None]),
    "trace": lambda w, x: np.trace(np.ones((3, 3, 3)) * x, 0, 0, 1, None, w),
    "concatenate": lambda w, x: np.concatenate([x[:1] ** 2, x[1:]], 0, w),
    "median": lambda w, x: np.median(np.outer(x, [1.0, 2.0]), 1, w),
    "quantile": lambda w, x: np.quantile(np.outer(x, [1.0, 2.0]), 0.3, 1, w),
    "nansum": lambda w, x: np.nansum(with_nan(x), 1, None, w),
    "nanmean": lambda w, x: np.nanmean(with_nan(x), 1, None, w),
    "nanmax": lambda w, x: np.nanmax(with_nan(x), 1, w),
    "nancumsum": lambda w, x: np.nancumsum(x * x, 0, None, w),
    "modf": lambda w, x: np.modf(x, np.empty(3), w),
    "divmod": lambda w, x: np.divmod(x, 2.0, np.empty(3), w),
    "ldexp": lambda w, x: np.ldexp(x, 1, w),
    "vecdot": lambda w, x: np.vecdot(np.outer(x, x), x, w),
    "special.ndtr": lambda w, x: special.ndtr(x, w),
    "nothing to write to": lambda w, x: np.round(x, 1, None),
}
FILLS = CONSTANT | BY_POSITION


def filled(fill):
    def f(x):
        w = x * 1.5
        y = w * x
        fill(w, x)
        return (w * x).sum() + y.sum()

    return f


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS.keys())
def test_out_in_reverse_mode(path, fill):
    check_mutation(filled(fill), X)


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS.keys())
def test_out_in_forward_mode(fill):
    f = filled(fill)
    v = np.array([0.3, -0.8, 0.5])
    y, dy = jvp(f, (X,), (v,))
    assert y == f(X)
    assert np.isclose(dy, gradient(f, X)[0] @ v, rtol=1e-12)


@pytest.mark.parametrize("name", ["floor, by name", "sum", "clip", "standard_normal"])
def test_out_in_second_derivatives(name):
    def f(x):
        return filled(FILLS[name])(x) * x[0]

    expected = [
        (grad(f)(X + h) - grad(f)(X - h)) / 2e-5 for h in 1e-5 * np.eye(3)
    ]  # the gradients are compared with finite differences above
    assert np.allclose(hessian(f)(X), expected, rtol=1e-6, atol=1e-6)


def test_the_result_is_what_was_written_to(path):
    def f(x):
        w = x * 1.5
        y = np.floor(x, w)
        y *= x
        return (w * x).sum()

    check_mutation(f, X)


def test_masks_of_truths_have_no_cotangents(path):
    def f(x):
        mask = np.empty(3, bool)
        np.greater(x, 0.0, out=mask)
        return (np.where(mask, x * x, x)).sum()

    check_mutation(f, X)


def test_choices_one_by_one(path):
    check_mutation(lambda x: (np.array([1, 0, 1]).choose(x, x * x) * x).sum(), X)


def test_a_draw_happens_once(path):
    def f(x, rng):
        w = x * 1.0
        rng.standard_normal(out=w)
        return (w * x).sum() * rng.random()

    plain, ours = np.random.default_rng(1), np.random.default_rng(1)
    f(X, plain)
    gradient(f, X, ours)
    assert plain.random() == ours.random()
    pushed = np.random.default_rng(1)
    jvp(lambda x: f(x, pushed), (X,), (X,))
    pushed.random()
    plain_again = np.random.default_rng(1)
    f(X, plain_again)
    plain_again.random()
    assert pushed.random() == plain_again.random()


def test_why_says_where_the_dependence_ends():
    def f(x):
        w = x * 2.0
        np.floor(w, out=w)
        return w.sum()

    assert gradient(f, X)[0].tolist() == [0.0, 0.0, 0.0]
    assert "numpy.floor ends it: it has no derivative" in str(why(f, X))


AS_ARRAYS = {
    "subtract": lambda x: np.subtract(x, 1.0, out=...),
    "of numbers": lambda x: np.multiply(x[0], x[1], out=...),
    "reduce": lambda x: np.add.reduce(x * x, out=...),
    "modf": lambda x: np.modf(x * x, out=...)[0],
    "modf of a number": lambda x: np.modf(x[0] * x[1], out=...)[0],
}


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="NumPy 2.3 has out=...")
@pytest.mark.parametrize("name", AS_ARRAYS)
def test_the_result_as_an_array_can_be_written_to(name, path):
    def f(x):
        y = AS_ARRAYS[name](x)
        y *= y
        y[..., None] += x[0]
        return np.sum(y)

    check_mutation(f, X)
