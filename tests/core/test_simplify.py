"""Each pass of the simplifier, by what is printed before and after it."""

import textwrap

import pytest

from morula.core.infer import transfers
from morula.core.parse import parse
from morula.core.simplify import folds, is_trusted, remove_unused, share, simplify


def printed(text):
    """The form of a function with variables numbered in their order."""
    return str(parse(str(parse(textwrap.dedent(text).strip("\n")))))


def after(run, text):
    ir = parse(textwrap.dedent(text).strip("\n"))
    run(ir)
    return printed(str(ir))


def simplified(ir):
    simplify(ir, is_trusted)


def shared(ir):
    share(ir, lambda block, call: None, lambda call: True)
    remove_unused(ir)


def test_dead_code_is_removed_and_what_may_have_effects_stays():
    before = """
        f:  # f.py
        b0(%0):
            %1 = operator.neg(%0)
            %2 = morula.core.primitives.build_tuple(%1, %0)
            %3 = morula.core.primitives.build_tuple(%2)
            return %0"""
    assert after(remove_unused, before) == printed("""
        f:  # f.py
        b0(%0):
            %1 = operator.neg(%0)
            return %0""")


def test_packed_tuples_are_forwarded():
    before = """
        f:  # f.py
        b0(%0, %1):
            %2 = morula.core.primitives.build_tuple(%0, %1)
            %3 = operator.getitem(%2, 0)
            %4 = operator.getitem(%2, 1)
            %5 = operator.is_(%3, %4)
            return %5"""
    assert after(simplified, before) == printed("""
        f:  # f.py
        b0(%0, %1):
            %2 = operator.is_(%0, %1)
            return %2""")


def test_common_subexpressions_are_computed_once():
    before = """
        f:  # f.py
        b0(%0):
            %1 = math.sin(%0)
            %2 = math.sin(%0)
            %3 = operator.mul(%1, %2)
            return %3"""
    assert after(shared, before) == printed("""
        f:  # f.py
        b0(%0):
            %1 = math.sin(%0)
            %2 = operator.mul(%1, %1)
            return %2""")


def test_operations_on_constants_are_computed():
    before = """
        f:  # f.py
        b0(%0):
            %1 = operator.mul(2.0, 3.0)
            %2 = operator.is_(%0, %1)
            return %2"""
    assert after(simplified, before) == printed("""
        f:  # f.py
        b0(%0):
            %1 = operator.is_(%0, 6.0)
            return %1""")


@pytest.mark.parametrize("register", [folds, transfers])
def test_what_a_primitive_means_is_not_replaced_unseen(register):
    def primitive():
        pass

    def first(*of):
        return None

    def second(*of):
        return first(*of)

    register(primitive)(first)
    register(primitive)(first)
    with pytest.raises(ValueError, match="has been said before"):
        register(primitive)(second)
    register(primitive, over=first)(second)
    with pytest.raises(ValueError, match="has been said before"):
        register(primitive)(first)
