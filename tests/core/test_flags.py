"""Structural zeros become flags beside numbers, where all that is done with them is known."""

import itertools
import operator

import pytest

from morula.core import verify
from morula.core.cotangents import ZERO
from morula.core.flags import flag_zeros
from morula.core.ir import Const
from morula.core.values import is_zero_value
from tests.core.test_zeros import read, run

SUMS = """\
f:  # f.py
b0(%0, %1, %2, %3):
    goto b1($ZeroTangent, %3) if %1
    goto b1(%0, $ZeroTangent)
b1(%4, %5):
    %6 = operator.is_(%4, $ZeroTangent)
    goto b3($ZeroTangent) if %6
    goto b2()
b2():
    %7 = operator.mul(%4, %4)
    goto b3(%7)
b3(%8):
    goto b4(%8) if %2
    goto b4(%5)
b4(%9):
    %10 = morula.core.cotangents.accumulate(%8, %9)
    %11 = operator.is_(%10, $ZeroTangent)
    goto b6(100.0) if %11
    goto b5()
b5():
    %12 = morula.core.cotangents.accumulate(%10, %0)
    goto b6(%12)
b6(%13):
    %14 = morula.core.cotangents.accumulate(%5, %13)
    return %14"""


def flagged(ir):
    """Whether all zeros of a program have flags; what stands for nothing is a number like no other."""
    variables = {
        *ir.params,
        *(c.out for c in ir.calls()),
        *(p for b in ir.blocks for p in b.params),
    }
    return flag_zeros(ir, ir.entry, variables, lambda v: Const(1e300))


def test_flags_mean_what_zeros_mean():
    ir = read(SUMS)
    assert flagged(ir)
    verify.verify(ir)
    operands = [x for call in ir.calls() for x in call.operands()]
    assert not any(map(is_zero_value, operands))
    assert not any(is_zero_value(a) for b in ir.blocks for br in b.branches for a in br.args)
    assert not any(c.primitive is operator.is_ for c in ir.calls())
    for first, second in itertools.product((False, True), repeat=2):
        args = 3.0, first, second, 7.0
        assert run(ir, *args)[0] == run(read(SUMS), *args)[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("operator.mul(%4, %4)", "operator.mul(%5, %5)"),  # not behind a test of its own
        ("return %14", "return %8"),
    ],
)
def test_a_zero_that_goes_elsewhere_stays(before, after):
    text = SUMS.replace(before, after)
    ir = read(text)
    assert not flagged(ir)
    assert str(ir) == text


def test_a_zero_of_unknown_origin_stays():
    ir = read(SUMS)
    known = {c.out for c in ir.calls()} | {p for b in ir.blocks for p in b.params}
    known -= {next(c.out for c in ir.calls() if c.primitive is operator.mul)}
    assert not flag_zeros(ir, ir.entry, known, lambda v: Const(0.0))
    assert str(ir) == SUMS


def test_a_program_without_zeros_stays():
    text = SUMS.replace("$ZeroTangent", "%3")
    ir = read(text)
    assert not flagged(ir)
    assert str(ir) == text
    assert run(read(SUMS), ZERO, True, True, 2.0)[0] == 102.0
