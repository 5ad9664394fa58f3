"""What is declared to give new arrays does."""

import numpy as np
import pytest

from morula import grad
from morula.core.callees import Callees
from morula.core.specialise import Specialiser
from morula.core.traits import gives_new
from morula.core.values import known_value
from morula.rules.arrays.sequences import BINARY, UNARY


@pytest.mark.parametrize("fn", [f for f in (*UNARY, *BINARY) if f not in (np.real, np.imag)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_share_no_memory(fn):
    args = (np.eye(2),) * (1 if fn in UNARY else 2)
    assert not np.shares_memory(fn(*args), args[0])


N = 200_000  # more entries than samples have


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.tanh(x) * 2.0 + x**2,
        lambda x: (x > 0.5) * x,
        lambda x: np.where(x > 0.5, x, 0.0),
        lambda x: x.reshape(2, -1),
        lambda x: x[1:7],
        lambda x: x[:, None] - x[:2].sum(),
        lambda x: np.outer(x, x[:2]),
        lambda x: np.mean(x.reshape(-1, 4), axis=1, keepdims=True),
        lambda x: np.dot(x.reshape(4, -1), x[:50_000]),
        lambda x: np.concatenate((x, x[:3])),
        lambda x: np.repeat(x, 2),
        lambda x: x.reshape(-1, 5).T @ x.reshape(-1, 5),
    ],
)
def test_the_shapes_of_large_results_are_known(program):
    """The shapes that inference finds are those of the values, and most are found."""
    x = np.random.default_rng(0).random(N)
    specialiser = Specialiser(program, [known_value(x)], Callees())
    specialiser.run()
    (result,) = results(specialiser)
    found = specialiser.value(result)
    y = program(x)
    assert found is None or found.detail[2] in (None, y.shape)
    names = set(program.__code__.co_names) - {"outer", "concatenate", "repeat"}
    if names == set(program.__code__.co_names):
        assert found.detail == (y.dtype.str, y.ndim, y.shape)


@pytest.mark.parametrize(
    ("program", "args", "expected"),
    [
        (lambda x, n: x * np.sum(np.ones(n)), (2.0, np.int64(3)), 3.0),
        (lambda x, n: x * np.sum(np.ones(np.sum(np.arange(n)))), (2.0, 4), 6.0),
        (lambda x, flag: np.sum(np.ones((2, 3))[flag] * x), (2.0, False), 0.0),
        (lambda x, y: np.sum(y[y > 0] * x), (2.0, np.float64(-3.0)), 0.0),
        (lambda x, y: np.sum(y[y > 0] * x), (2.0, np.float64(3.0)), 3.0),
        (lambda x, n: np.sum(np.sum(np.ones((2, 3)) * x, n) ** 2), (2.0, 1), 72.0),
    ],
)
def test_numbers_that_decide_a_shape(program, args, expected):
    """No sample stands for them."""
    assert grad(program)(*args) == expected


def test_a_whole_number_as_a_factor_decides_no_shape():
    x = np.ones(3)
    specialiser = Specialiser(lambda x, n: x * n, [known_value(x), known_value(2)], Callees())
    specialiser.run()
    assert [v.detail[2] for v in map(specialiser.value, results(specialiser))] == [(3,)]


def results(specialiser):
    branches = [b for block in specialiser.ir.blocks for b in block.branches]
    return [b.args[0] for b in branches if b.block is None]


def test_a_transpose_by_einsum_is_a_view():
    """So it is not overwritten, and its cotangent is a copy."""
    assert not gives_new(np.einsum)
    x = np.ones((100, 100))
    grad(lambda x: np.sum(np.exp(np.einsum("ij->ji", x))))(x)
    assert np.all(x == 1)
