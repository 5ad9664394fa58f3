"""The printed form of the SSA form, reading it back, and what `verify` finds."""

import math
import operator
import re

import pytest

from morula.core import primitives, verify
from morula.core.bytecode import lower
from morula.core.emit import tidy
from morula.core.ir import IR, Block, Branch, Call, Const, IRPrinter, Position, Var
from morula.core.parse import alike, parse
from morula.core.verify import INVARIANTS, InvalidIR, checked
from tests.core.programs import PROGRAMS

FUNCTIONS = dict.fromkeys(f for f, _ in PROGRAMS)


def power(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def lowered(f):
    return lower(f.__code__, f.__globals__)


def read_back(ir):
    """The function printed and read, with the table of its constants."""
    printer = IRPrinter(ir)
    text = printer.text()
    return parse(text, printer.constants)


POWER = """\
power:  # power.py
b0(%0.x, %1.n):
    goto b1(%1.n, 1.0)
b1(%2.n, %3.r):
    %4 = operator.gt(%2.n, 0)             # 3
    goto b2() if %4
    return %3.r
b2():
    %5.n = operator.isub(%2.n, 1)         # 4
    %6.r = operator.imul(%3.r, %0.x)      # 5
    goto b1(%5.n, %6.r)"""


def test_a_printed_function_reads_back_as_it_was_printed():
    ir = parse(POWER)
    assert str(ir) == POWER
    assert ir.name == "power"
    assert ir.filename == "power.py"
    assert [p.name for p in ir.params] == ["x", "n"]
    assert [c.primitive for c in ir.calls()] == [operator.gt, operator.isub, operator.imul]
    assert [c.position.line for c in ir.calls()] == [3, 4, 5]
    verify.verify(ir)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_function_reads_back_the_same(f):
    ir = verify.verify(lowered(f))
    again = verify.verify(read_back(ir))
    assert alike(again, ir)
    assert str(again) == str(ir)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_passes_leave_valid_functions(f):
    ir = lowered(f).copy()
    verify.verify(ir, "copy")
    tidy(ir)
    verify.verify(ir, "tidy")
    assert alike(read_back(ir), ir)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_printing_is_deterministic(f):
    ir = lowered(f)
    assert str(ir) == str(ir) == str(ir.copy())


def test_the_print_does_not_depend_on_ids():
    first = lowered(power)
    second = first.copy()
    for v in [*second.params, *(c.out for c in second.calls())]:
        v.id += 100
    assert str(first) == str(second)


LITERALS = [
    None, True, False, ..., 0, -1, 10**30, 1.5, -0.0, 1e300, 1e-7, 2j, 1 + 2j, -1.5 - 2e-9j, "", "a",
    "it's", 'a "quoted" # word, (in) brackets', "line\nbreak \\ \x00 é ∂ \u2028", b"\x00'\"", (), (1,),
    (1, "a, b", (2.0, None)),
]  # fmt: skip


@pytest.mark.parametrize("value", LITERALS, ids=repr)
def test_literals_read_back(value):
    ir = one_call(print, value, value)
    again = parse(str(ir))
    found = again.blocks[0].calls[0].args[1].value
    assert repr(found) == repr(value)
    assert type(found) is type(value)


def one_call(fn, *args):
    ir = IR("f", "file.py")
    block = ir.block()
    out = ir.var("out")
    block.calls = [Call(out, Const(fn), [Const(a) for a in args], (), Position(1))]
    block.branches = [Branch(None, [out])]
    return ir


def test_constants_without_a_literal_form_stand_in_a_table():
    first, second = {}, {}
    same_name = [lambda: 1, lambda: 2]
    values = [
        first,
        second,
        first,
        math.nan,
        math.inf,
        math.sin,
        len,
        dict,
        same_name[0],
        same_name[1],
    ]
    values += [(first, math.sin, 1), primitives.DONE, math, (x for x in ()), complex(-0.0, 1.0)]
    ir = one_call(operator.add, *values)
    printer = IRPrinter(ir)
    text = printer.text()
    assert "($dict, $dict$2, $dict, $float, $float$2, math.sin, len, dict, " in text
    again = parse(text, printer.constants)
    found = [a.value for a in again.blocks[0].calls[0].args]
    assert all(a is b for a, b in zip(found, values, strict=True) if type(b) is not tuple)
    assert found[10][0] is first
    assert alike(again, ir)


def test_names_of_modules_are_looked_up_without_a_table():
    ir = parse("f:\nb0(%0):\n    %1 = math.sin(%0)\n    %2 = len(%1, key=abs)\n    return %2")
    assert [c.primitive for c in ir.calls()] == [math.sin, len]
    assert ir.blocks[0].calls[1].keywords == ("key",)
    assert ir.blocks[0].calls[1].args[1].value is abs


def test_marks_of_calls_and_blocks_read_back():
    ir = lowered(power).copy()
    ir.cold, ir.kept = [ir.blocks[2]], [ir.blocks[1], ir.blocks[2]]
    next(iter(ir.calls())).removable = True
    again = read_back(ir)
    assert alike(again, ir)
    assert again.cold == [again.blocks[2]]
    assert again.kept == again.blocks[1:3]
    assert [c.removable for c in again.calls()] == [c.removable for c in ir.calls()]


def test_a_closure_reads_back():
    n = 3

    def f(x):
        return x + n

    ir = lowered(f)
    again = read_back(ir)
    assert [v.name for v in again.free] == ["n"]
    assert alike(again, ir)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no head", "not the head of a function"),
        ("f:\n    return 1", "expected a block"),
        ("f:\nb0(:", "not the head of a block"),
        ("f:\nb0(%0):\n    goto b7()", "expected the label of a block at column 11"),
        ("f:\nb0(%0):\n    %1 = nowhere.at.all(%0)", "a constant of the table; nowhere.at.all"),
        ("f:\nb0(%0):\n    %1 = len(%0", r"expected '\)' at column 15"),
        ("f:\nb0(%0):\n    %1 = len(%0) extra", "expected the end of a call"),
        ("f:\nb0(%0):\n    return %0 when %1", "expected the end of a branch"),
        ("f:\nb0(%0):\n    %1 len", "expected ' = '"),
        ("f:\nb0(%0):\n    %1 = len(,)", "expected an operand"),
    ],
)  # fmt: skip
def test_what_is_no_printed_form_is_an_error(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("1.0", "1"),
        lambda text: text.replace("%2.n, 0)", "%2.n, %1.n)"),
        lambda text: text.replace("# 4", "# 5"),
        lambda text: text.replace("gt", "ge"),
        lambda text: text.replace("goto b2() if", "goto b1(%2.n, %3.r) if"),
        lambda text: text.replace("# 4", "# 4 removable"),
    ],
)
def test_functions_that_differ_are_not_alike(change):
    assert change(POWER) != POWER
    assert not alike(parse(change(POWER)), parse(POWER))


def test_functions_with_other_constants_are_not_alike():
    assert alike(one_call(print, math), one_call(print, math))
    assert not alike(one_call(print, {}), one_call(print, {}))


# -- verify


BROKEN = {
    "targets belong to the function": lambda ir: ir.blocks.pop(),
    "targets belong to the function ": lambda ir: ir.blocks.append(ir.blocks[1]),
    "entry is entered once": lambda ir: setattr(ir.blocks[2].branches[0], "block", ir.entry),
    "blocks are reachable": lambda ir: ir.block().branches.append(Branch(None, [Const(1)])),
    "last branch is unconditional": lambda ir: ir.blocks[1].branches.pop(),
    "last branch is unconditional ": lambda ir: setattr(ir.blocks[1].branches[0], "cond", None),
    "arguments match parameters": lambda ir: ir.blocks[2].branches[0].args.pop(),
    "arguments match parameters ": lambda ir: ir.blocks[1].branches[1].args.append(Const(1)),
    "operands are variables or constants": lambda ir: setattr(ir.blocks[2].calls[0], "args", (1, 2)),
    "keywords name arguments": lambda ir: setattr(ir.blocks[2].calls[0], "keywords", ("a", "a")),
    "variables are defined once": lambda ir: setattr(ir.blocks[2].calls[0], "out", ir.params[0]),
    "numbers are unique": lambda ir: setattr(ir.blocks[2].calls[0].out, "id", 0),
    "numbers are unique ": lambda ir: setattr(ir, "next_id", 1),
    "definitions dominate uses": lambda ir: ir.blocks[2].calls.reverse() or swap_args(ir),
    "definitions dominate uses ": lambda ir: setattr(
        ir.blocks[1].branches[1], "args", [ir.blocks[2].calls[0].out]
    ),
    "definitions dominate uses  ": lambda ir: setattr(
        ir.blocks[1].branches[1], "args", [Var(3, "other")]
    ),
}  # fmt: skip


def swap_args(ir):
    late, early = ir.blocks[2].calls[1].out, ir.blocks[2].calls[0]
    early.args = (late, Const(1))


@pytest.mark.parametrize("case", BROKEN)
def test_verify_finds_what_is_broken(case):
    ir = parse(POWER)
    BROKEN[case](ir)
    with pytest.raises(InvalidIR) as caught:
        verify.verify(ir, "some pass")
    message = str(caught.value)
    assert message.startswith(case.strip() + ": ")
    assert "\n  in power after some pass\n" in message
    assert len(re.findall(r"^  > ", message, re.M)) == 1


def test_every_invariant_has_a_broken_function():
    assert {check.__name__.replace("_", " ") for check in INVARIANTS} == {c.strip() for c in BROKEN}


def test_a_message_shows_the_lines_around():
    ir = parse(POWER)
    ir.blocks[2].calls[1].args = (Var(99, "lost"), Const(1))
    with pytest.raises(InvalidIR) as caught:
        verify.verify(ir)
    assert str(caught.value) == (
        "definitions dominate uses: %7.lost is not defined\n"
        "  in power\n"
        "        return %3.r\n"
        "    b2():\n"
        "        %5.n = operator.isub(%2.n, 1)         # 4\n"
        "  >     %6.r = operator.imul(%7.lost, 1)      # 5\n"
        "        goto b1(%5.n, %6.r)"
    )


def test_checked_does_something_only_under_the_switch(monkeypatch):
    ir = IR("broken", blocks=[Block()])
    ir.blocks[0].branches = [Branch(None, [])]
    monkeypatch.setattr(verify, "enabled", False)
    assert checked("nothing", ir) is ir
    monkeypatch.setattr(verify, "enabled", True)
    with pytest.raises(InvalidIR, match=r"(?s)0 arguments for 1 parameters.*after nothing"):
        checked("nothing", ir)
