"""What an earlier differentiated call has stored in a memo is not a silent zero for the next one."""

import numpy as np
import pytest

from morula import UnsupportedError, grad, gradient, hessian, ignore_derivatives
from morula.rules import memos

pytestmark = pytest.mark.usefixtures("path")


def by_test(memo, x):
    if x not in memo:
        memo[x] = x * x
    return memo[x]


def by_early_return(memo, x):
    if x in memo:
        return memo[x]
    y = x * x
    memo[x] = y
    return y


def by_get(memo, x):
    found = memo.get(x)
    if found is None:
        found = memo[x] = x * x
    return found


def by_exception(memo, x):
    try:
        return memo[x]
    except KeyError:
        memo[x] = x * x
        return memo[x]


def by_setdefault(memo, x):
    return memo.setdefault((x, 2), x * x) if (x, 2) not in memo else memo[x, 2]


@pytest.mark.parametrize("square", [by_test, by_early_return, by_get, by_exception, by_setdefault])
def test_the_second_call_is_an_error_and_not_a_zero(square):
    memo = {}

    def f(x):
        return 3 * square(memo, x)

    assert gradient(f, 2.0) == (12.0,)
    with pytest.raises(UnsupportedError, match="Clear such"):
        gradient(f, 2.0)
    assert gradient(f, 1.5) == (9.0,)
    memo.clear()
    assert gradient(f, 2.0) == (12.0,)


def test_a_memo_of_arrays():
    memo = {}

    def f(x):
        key = x.tobytes()
        if key not in memo:
            memo[key] = np.sin(x)
        return np.sum(memo[key])

    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(grad(f)(x), np.cos(x))
    with pytest.raises(UnsupportedError, match="Clear such"):
        grad(f)(x)
    with pytest.raises(UnsupportedError, match="Clear such"):
        hessian(f)(x)


def test_what_is_no_memo_is_served():
    state, table = {"scale": 2.0}, {0.5: 3.0}

    def counted(x):
        state["scale"] = state["scale"] + 1.0
        return state["scale"] * x

    def looked_up(x):
        return table[0.5] * x

    def declared(x):
        if x not in table:
            table[x] = 2.0 * x
        return ignore_derivatives(table[x]) * x

    def within(x):
        own = {}
        for _ in range(2):
            if x not in own:
                own[x] = x * x
        return own[x]

    assert gradient(counted, 1.0) == (3.0,)
    assert gradient(counted, 1.0) == (4.0,)
    for _ in range(2):
        assert gradient(looked_up, 1.0) == (3.0,)
        assert gradient(declared, 1.0) == (2.0,)
        assert gradient(within, 1.5) == (3.0,)


def test_dicts_that_nobody_holds_are_forgotten():
    def f(x):
        own = {x: x * x}
        own[2 * x] = x
        return own[x] + own[2 * x]

    for k in range(200):
        gradient(f, 1.0 + k)
    assert len(memos._stored) < 150
