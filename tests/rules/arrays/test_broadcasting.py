"""Between shapes: each helper against NumPy's own broadcasting."""

import numpy as np
import pytest

from morula.rules.arrays.broadcasting import (
    collapse,
    match,
    reduced_size,
    restore,
    spread,
    total,
    unbroadcast,
)
from morula.testing import check_rrule

SHAPES = [
    ((), (3,)), ((), (2, 3)), ((3,), (2, 3)), ((1, 3), (2, 3)), ((2, 1), (2, 3)), ((1, 1), (4,
    2, 3)), ((2, 1), (4, 2, 3)), ((2, 3), (2, 3)), ((1,), (0,)), ((3, 1), (0, 3, 1)), ((4, 1,
    3), (4, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(("small", "large"), SHAPES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_spread_and_unbroadcast_are_transposes(rng, check_second_order, small, large, dtype):
    a = rng.standard_normal(small).astype(dtype) if small else np.dtype(dtype).type(1.5)
    b = rng.standard_normal(large).astype(dtype)
    wide = spread(a, large)
    assert np.array_equal(wide, np.broadcast_to(a, large))
    assert wide.dtype == b.dtype
    back = unbroadcast(b, small)
    assert np.shape(back) == small
    assert back.dtype == b.dtype
    assert np.isclose(np.vdot(wide, b), np.vdot(a, back), rtol=1e-4)
    check_rrule(spread, a, large)
    check_rrule(unbroadcast, b, small)
    if dtype == "f8":
        check_second_order(unbroadcast, b, small)
        check_second_order(spread, np.asarray(a), large)
    check_rrule(total, b, order=2)


def test_spread_is_read_only_and_takes_any_memory_layout():
    x = np.arange(6.0).reshape(2, 3).T
    assert np.array_equal(spread(x, (4, 3, 2)), np.broadcast_to(x, (4, 3, 2)))
    for a in (x.copy()[:1], 2.0, np.float64(2), 3):
        view = spread(a, (5, 3, 2)) if np.ndim(a) else spread(a, (3, 2))
        assert not view.flags.writeable


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, 0), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_restore_is_the_transpose_of_a_sum(rng, check_second_order, axis, keepdims):
    x = rng.standard_normal((2, 3, 4))
    y = np.sum(x, axis=axis, keepdims=keepdims)
    back = restore(y, x.shape, axis, keepdims)
    assert back.shape == x.shape
    assert np.isclose(np.vdot(back, x), np.vdot(y, y))
    check_rrule(restore, y, x.shape, axis, keepdims)
    check_rrule(collapse, x, axis, keepdims)
    check_second_order(collapse, x, axis, keepdims)
    assert reduced_size(x.shape, axis) == x.size / np.size(y)


def test_match_takes_python_numbers():
    assert match(2.0, ()) == 2.0
    assert match(np.ones((2, 3)), (3,)).tolist() == [2, 2, 2]
