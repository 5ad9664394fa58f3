"""Calls of compiled functions with too few or too many arguments raise as in the plain call."""

import builtins
import cmath
import copy
import functools
import itertools
import math
import operator
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest

from morula import UnsupportedError, gradient, jvp
from morula.core import arity, compiled
from morula.core.arity import ANY, by_signature, counts_of, is_lasting
from morula.testing import check_gradient


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (operator.add, lambda x: (x, x, x)),
        (operator.neg, lambda x: ()),
        (operator.getitem, lambda x: ([x],)),
        (operator.setitem, lambda x: ([x], 0)),
        (math.atan2, lambda x: ()),
        (math.prod, lambda x: ([x], x, x)),
        (sum, lambda x: ([x], x, x)),
        (getattr, lambda x: (x, "real", x, x)),
        (setattr, lambda x: (x,)),
        (functools.reduce, lambda x: (operator.add,)),
        (itertools.islice, lambda x: ([x],)),
        (copy.copy, lambda x: (x, x)),
        (reversed, lambda x: ([x], [x])),
        (list.append, lambda x: ([x],)),
        (list.insert, lambda x: ([x], 0, x, x)),
        (dict.get, lambda x: ({"a": x}, "a", x, x)),
        (dict.pop, lambda x: ({"a": x},)),
        (deque.append, lambda x: (deque([x]), x, x)),
        (float.__add__, lambda x: (x,)),
    ],
)
def test_the_error_is_that_of_the_plain_call(fn, args):
    def f(x):
        try:
            fn(*args(x))
        except TypeError as error:
            told.append(str(error))
            return x * x
        return 0.0

    told = []
    f(2.0)
    assert gradient(f, 2.0) == (4.0,)
    assert jvp(f, (2.0,), (1.0,)) == (4.0, 4.0)
    assert len(told) == 3
    assert len(set(told)) == 1


def test_numbers_of_arguments():
    assert counts_of(operator.setitem) == range(3, 4)
    assert counts_of(sum) == range(1, 3)
    assert counts_of(list.pop) == range(1, 3)
    assert counts_of(math.gcd) == ANY
    assert counts_of([].append) == ANY  # made anew at each call
    assert by_signature(float.__add__) == range(2, 3)
    assert counts_of(np.ufunc.reduce) == ANY  # it takes more than it tells


def wrongly_told():
    """Compiled functions of Python that do not raise where their signatures say so."""
    owners = (builtins, operator, math, cmath, itertools, functools, list, dict, tuple, set, str)
    owners += (frozenset, float, int, complex, deque, OrderedDict, defaultdict, object, type, range)
    for owner in owners:
        for fn in vars(owner).values():
            if not is_lasting(fn) or fn in (input, breakpoint, print, open):
                continue
            counts = counts_of(fn)
            if counts == ANY:
                continue
            for n in range(counts.stop + 3):
                if n not in counts:
                    try:
                        fn(*[None] * n)
                    except TypeError:
                        continue
                    yield fn, n


def test_what_is_told_is_true():
    assert list(wrongly_told()) == []


@pytest.mark.parametrize("f", [lambda z: np.exp(np.sum(z**2)), lambda z: np.add.reduce(z) ** 3])
def test_second_derivatives_of_what_was_written_to(f):
    def g(x):
        z = x * 1.0
        z *= 2.0
        return f(z)

    check_gradient(g, np.array([0.3, 0.5]), order=2)


def test_a_count_thought_wrong_is_no_constant(monkeypatch):
    """A function that takes more than it tells is refused, not run as a constant."""
    monkeypatch.setattr(compiled, "specialising", False)
    monkeypatch.setitem(arity._counts, id(math.hypot), (math.hypot, range(2)))
    with pytest.raises(UnsupportedError, match="took 2 arguments"):
        gradient(lambda x: math.hypot(x, 2.0), 1.0)
    with pytest.raises(UnsupportedError, match="took 2 arguments"):
        jvp(lambda x: math.hypot(x, 2.0), (1.0,), (1.0,))
