"""Structural zeros go past the tests that they decide; other cotangents are tested once."""

import math
import operator

import numpy as np
import pytest

from morula import code_adjoint, gradient, value_and_grad
from morula.core import verify
from morula.core.cotangents import ZERO
from morula.core.parse import parse
from morula.core.zeros import fold_decided, part_ways
from morula.testing import check_gradient

CONSTANTS = {"$ZeroTangent": ZERO}

CHAIN = """\
f:  # f.py
b0(%0, %1, %2):
    %3 = operator.is_(%0, $ZeroTangent)
    goto b2($ZeroTangent, %1) if %3
    goto b1()
b1():
    %4 = operator.neg(%0)
    goto b2(%4, %2)
b2(%5, %6):
    %7 = operator.is_(%5, $ZeroTangent)
    goto b4() if %7
    goto b3()
b3():
    %8 = operator.mul(%5, %2)
    goto b5(%8)
b4():
    goto b5($ZeroTangent)
b5(%9):
    %10 = operator.is_(%9, $ZeroTangent)
    goto b7(%1) if %10
    goto b6()
b6():
    %11 = operator.add(%9, %6)
    goto b7(%11)
b7(%12):
    %13 = operator.sub(%12, %6)
    return %13"""


def read(text):
    return parse(text, CONSTANTS)


def run(ir, *args):
    """What a function of numbers in SSA form gives, and how many tests control has met."""
    values = dict(zip(ir.params, args, strict=True))
    block = ir.entry
    met = 0

    def value(x):
        return values[x] if x in values else x.value

    while True:
        for call in block.calls:
            values[call.out] = call.primitive(*map(value, call.args))
            met += call.primitive is operator.is_
        branch = next(b for b in block.branches if b.cond is None or value(b.cond))
        found = [value(a) for a in branch.args]
        if branch.block is None:
            return found[0], met
        block = branch.block
        values.update(zip(block.params, found, strict=True))


@pytest.mark.parametrize(("x", "met"), [(ZERO, 1), (3.0, 3)])
def test_a_zero_meets_one_test_of_a_chain(x, met):
    value, before = run(read(CHAIN), x, 5.0, 7.0)
    assert before == 3
    ir = read(CHAIN)
    assert part_ways(ir, ir.entry)
    verify.verify(ir)
    assert run(ir, x, 5.0, 7.0) == (value, met)
    assert not part_ways(ir, ir.entry)


def test_what_is_not_decided_stays():
    text = CHAIN.replace("goto b2($ZeroTangent, %1)", "goto b2(%2, %1)").replace(
        "goto b5($ZeroTangent)", "goto b5(%1)"
    )
    ir = read(text)
    assert not part_ways(ir, ir.entry)
    assert str(ir) == text


TWICE = """\
f:  # f.py
b0(%0, %1):
    %2 = operator.is_(%0, $ZeroTangent)
    goto b4(%1) if %2
    goto b1()
b1():
    %3 = operator.neg(%0)
    %4 = operator.is_(%0, $ZeroTangent)
    goto b3() if %4
    goto b2()
b2():
    %5 = operator.mul(%3, %1)
    goto b4(%5)
b3():
    goto b4(%3)
b4(%6):
    %7 = operator.is_(%0, $ZeroTangent)
    goto b5() if %7
    return %6
b5():
    return %1"""


@pytest.mark.parametrize("x", [ZERO, 3.0])
def test_a_test_behind_the_same_one_is_decided(x):
    ir = read(TWICE)
    assert fold_decided(ir, ir.entry)
    verify.verify(ir)
    assert [str(c.out) for c in ir.calls() if c.primitive is operator.is_] == ["%2", "%7"]
    assert run(ir, x, 5.0)[0] == run(read(TWICE), x, 5.0)[0]
    assert not fold_decided(ir, ir.entry)


# -- programs ------------------------------------------------------------------------------------------


def orbit(p, n=20):
    """An array per step in a list: cotangents come out of the list, or none does."""
    a, b = p

    def slope(y):
        return np.array([y[1] * a, -y[0] * b + y[0] * y[1]])

    steps = [np.array([1.0, 0.5])]
    for _ in range(n):
        y = steps[-1]
        k = slope(y)
        steps.append(y + 0.05 * slope(y + 0.05 * k))
    return np.sum(np.stack(steps) ** 2)


def test_entries_read_behind_a_list_are_put_together_again():
    text = str(code_adjoint(orbit, np.array([1.1, 0.4]), 20))
    assert text.startswith("# specialised")
    assert "gathering.vector" in text
    assert "indexing.scatter" not in text
    check_gradient(orbit, np.array([1.1, 0.4]))


def filtered(phi, theta, x):
    """A list of numbers that grows while its end is read."""
    e = [0.0, 0.0]
    for t in range(2, len(x)):
        e.append(x[t] - phi[0] * x[t - 1] - phi[1] * x[t - 2] - theta * e[-1] * e[-2])
    total = 0.0
    for v in e:
        total += v * v
    return total


def test_the_steps_of_a_range_carry_nothing_beside_a_list():
    args = np.array([0.5, -0.2]), 0.3, np.sin(np.arange(12.0))
    text = str(code_adjoint(filtered, *args))
    assert text.startswith("# specialised")
    assert "rules.iteration" not in text
    check_gradient(filtered, *args)


def epidemic(beta, gamma, data):
    """States that begin without cotangent, in a loop over the items of a list."""
    s, i, loss = 0.99, 0.01, 0.0
    for d in data:
        for _ in range(3):
            new = beta * s * i
            s, i = s - 0.2 * new, i + 0.2 * (new - gamma * i)
        loss += (i - d) ** 2
    return loss


@pytest.mark.parametrize("of", [float, np.float64], ids=["float", "float64"])
def test_cotangents_that_begin_as_zeros_are_added_by_plain_sums(of):
    data = [of(x) for x in np.linspace(0.01, 0.2, 6)]
    text = str(code_adjoint(lambda beta, gamma: epidemic(beta, gamma, data), 0.5, 0.1))
    assert text.startswith("# specialised")
    assert "cotangents.accumulate" not in text
    check_gradient(lambda beta, gamma: epidemic(beta, gamma, data), 0.5, 0.1)


def test_structural_zeros_stay_zeros_on_the_parted_ways():
    def f(x):
        kept = []
        for k in range(3):
            y = x * k
            kept.append(math.sqrt(y) if y else y)
        return kept[1] + kept[2]

    def infinite(x):
        kept = [1.0 / x, x]
        return kept[1] if x == 0.0 else kept[0]

    check_gradient(f, 2.0)
    assert gradient(infinite, 4.0) == (-0.0625,)
    with pytest.raises(ZeroDivisionError):
        gradient(infinite, 0.0)
    with np.errstate(divide="ignore"):
        value, g = value_and_grad(lambda x: [np.log(x), x * x][1])(np.zeros(1)[0])
    assert (value, g) == (0.0, 0.0)


def test_a_way_to_which_other_ways_lead_reads_its_own_variables():
    def overwritten(x, y):
        n = 0
        while n < 3:
            n += 1
            x = math.sin(y * 3)
        return x

    def swapped(x, y):
        n = 0
        while n < 3:
            n += 1
            x, y = math.exp(y * x), x
        return x * y

    assert gradient(overwritten, 0.7, 0.4) == (0.0, 3 * math.cos(0.4 * 3))
    check_gradient(swapped, 0.7, 0.4)
