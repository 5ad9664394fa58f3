"""Construction of SSA form from named variables: parameters only where values differ."""

from morula.core.bytecode.lower import lower
from morula.core.cfg import Joins, dominators
from morula.core.general import general_plan
from morula.core.ir import IR, Branch, Const
from morula.core.reverse import Reversal
from morula.core.ssa import Placed, Variables, prune_params


def diamond(variables, ir, top):
    """Two ways from `top` to a new block, one of them by a block between."""
    side, bottom = ir.block(), ir.block()
    top.branches = [Branch(bottom, (), Const(True)), Branch(side)]
    side.branches = [Branch(bottom)]
    variables.seal(side, (top, top.branches[1]))
    variables.seal(bottom, (top, top.branches[0]), (side, side.branches[0]))
    return side, bottom


def test_a_sealed_block_has_no_parameter_for_what_is_the_same_on_all_ways():
    ir = IR("f")
    top = ir.block()
    variables = Variables(ir, lambda block, variable: None)
    one = Const(1)
    variables.write(top, "x", one)
    bottom = top
    for _ in range(2000):  # deeper than calls may nest
        _, bottom = diamond(variables, ir, bottom)
    assert variables.read(bottom, "x") is one
    assert not any(block.params for block in ir.blocks)


def test_a_sealed_block_has_a_parameter_for_what_differs():
    ir = IR("f")
    top = ir.block()
    variables = Variables(ir, lambda block, variable: None)
    one, two = Const(1), Const(2)
    variables.write(top, "x", one)
    side, bottom = diamond(variables, ir, top)
    assert variables.read(side, "x") is one
    variables.write(side, "x", two)
    x = variables.read(bottom, "x")
    assert bottom.params == [x]
    assert [top.branches[0].args, side.branches[0].args] == [[one], [two]]
    assert variables.read(bottom, "x") is x


def test_a_sealed_block_passes_on_what_an_open_one_gets_later():
    ir = IR("f")
    entry, top = ir.block(), ir.block()
    entry.branches = [Branch(top)]
    variables = Variables(ir, lambda block, variable: None if block is top else Const(variable))
    side, bottom = diamond(variables, ir, top)
    variables.write(side, "x", Const(2))
    x, y = variables.read(bottom, "x"), variables.read(bottom, "y")
    variables.finish()
    assert bottom.params == [x]
    assert top.params[1] is y
    assert [a.value for a in entry.branches[0].args] == ["x", "y"]
    assert top.branches[0].args == [top.params[0]]


def test_reading_a_variable_that_nobody_wrote_goes_to_the_top_at_once():
    """And leaves its value on the way in: where another way comes, it is found."""
    ir = IR("f")
    top = ir.block()
    variables = Variables(ir, lambda block, variable: Const(variable))
    side, bottom = diamond(variables, ir, top)
    inner, last = diamond(variables, ir, bottom)
    x = variables.read(inner, "x")
    assert x.value == "x"
    variables.write(inner, "x", Const(2))
    joined = variables.read(last, "x")
    assert last.params == [joined]
    assert [branch.args[0].value for branch in (bottom.branches[0], inner.branches[0])] == ["x", 2]
    assert not bottom.params
    assert not side.params


def test_a_parameter_stays_where_a_pinned_value_is_passed():
    for both in (True, False):
        ir = IR("f")
        top = ir.block()
        x, y = ir.var("x"), ir.var("y")
        top.params = [x, y]
        side, bottom = ir.block(), ir.block()
        p = ir.var("p")
        bottom.params = [p]
        bottom.branches = [Branch(None, [p])]
        top.branches = [Branch(side, (), x), Branch(bottom, [x])]
        side.branches = [Branch(bottom, [x if both else y])]
        prune_params(ir, pinned=lambda block, value, side=side: block is side)
        assert bottom.params == [p]
        assert [b.args for block in (top, side) for b in block.branches if b.block is bottom] == [
            [x],
            [x if both else y],
        ]
        if both:
            prune_params(ir)
            assert bottom.params == []
            assert bottom.branches[0].args == [x]


def test_a_placed_variable_has_parameters_where_different_values_meet():
    ir = IR("f")
    top, left, right, bottom, after = (ir.block() for _ in range(5))
    top.branches = [Branch(left, (), Const(True)), Branch(right)]
    left.branches, right.branches = [Branch(bottom)], [Branch(bottom)]
    bottom.branches = [Branch(after)]
    after.branches = [Branch(None, (Const(None),))]
    parent = dominators(ir)
    joins = Joins(ir, parent)
    changes = {"x": joins.of(frozenset([top, left])), "y": joins.of(frozenset([top]))}
    variables = Placed(ir, lambda block, variable: None, parent, changes.get)
    one, two = Const(1), Const(2)
    variables.write(top, "x", one)
    variables.write(top, "y", one)
    variables.write(left, "x", two)
    assert variables.read(after, "y") is one
    x = variables.read(after, "x")
    variables.finish()
    assert [block.params for block in ir.blocks] == [[], [], [], [x], []]
    assert left.branches[0].args == [two]
    assert right.branches[0].args == [one]


def steps_with_branches(n):
    lines = ["def f(x):"]
    for i in range(n):
        lines += [f"    y{i} = x * {i}.5", f"    if y{i} > 1.0:", f"        x = x + y{i} * y{i}"]
    namespace = {}
    exec("\n".join([*lines, "    return x"]), namespace)
    return namespace["f"]


def test_adjoints_of_many_branches_are_made_of_few_variables():
    """Their number grows as that of the branches, not as its square."""

    def variables_made(n):
        f = steps_with_branches(n)
        reversal = Reversal(lower(f.__code__, f.__globals__), general_plan)
        reversal.build()
        built = reversal.ir.next_id
        reversal.resolve()
        return built, reversal.ir.next_id - built

    few, many = variables_made(10), variables_made(40)
    assert all(m < 5 * f for f, m in zip(few, many, strict=True))
