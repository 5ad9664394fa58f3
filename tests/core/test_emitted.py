"""What is emitted for programs of known types: nothing that the types make superfluous."""

import contextlib
import dis
import functools
import math
import random
import sys
import tracemalloc
from types import FunctionType

import numpy as np
import pytest
from bytecode import Bytecode

from morula import code_adjoint, grad, gradient, hessian, withgradient
from morula.core import assemble, compiled
from morula.core.assemble import stack_size
from morula.core.bytecode.lower import lower
from morula.core.emit import emit


def test_the_stack_is_as_large_as_the_library_that_assembles_would_have_it(monkeypatch):
    def program(x):
        total = x
        for i in range(3):
            for y in [x, total]:
                total = (
                    total * y if y < 5 else max(total, key=abs) if i > 7 else total + f(y, k=[i])
                )
        return total

    def f(x, *, k):
        try:
            return {"x": x, **{"y": k}}["x"] * x
        except KeyError:
            return x

    sizes = []

    def compared(code):
        sizes.append((stack_size(code), Bytecode(code).compute_stacksize(check_pre_and_post=False)))
        return sizes[-1][0]

    monkeypatch.setattr(assemble, "stack_size", compared)
    for specialising in (True, False):
        monkeypatch.setattr(compiled, "specialising", specialising)
        compiled.forget_programs()
        assert hessian(program, 1.1) > 0
    assert len(sizes) >= 4  # those of the two functions; rules may be there
    assert all(ours == theirs for ours, theirs in sizes)


def number_and_parts(kind, x):
    if kind == "leaf":
        number = 2
        parts = None
    elif kind == "sum":
        number = 0
        parts = (x, x)
    else:
        number = 1
        parts = x
    return number, (parts, None)


def test_what_only_puts_its_result_together_returns_it_at_once():
    code = emit(lower(number_and_parts.__code__, globals()).copy(), number_and_parts.__code__, {})
    assert (2, (None, None)) in code.co_consts
    f = FunctionType(code, {})
    for kind, expected in [
        ("leaf", (2, (None, None))),
        ("sum", (0, ((0.5, 0.5), None))),
        ("other", (1, (0.5, None))),
    ]:
        assert f(kind, 0.5) == number_and_parts(kind, 0.5) == expected


def test_constants_of_modules_in_rules_are_folded():
    program = str(code_adjoint(lambda x: math.sqrt(x) * x, 2.0))
    assert "inf'" not in program
    assert "isinstance" not in program
    assert "conjugate" not in program


def test_cotangents_that_are_put_off_are_computed_where_they_are_needed(path):
    """A power of numbers of two precisions goes by a rule that is not inlined."""
    x = np.array([1.5, -0.5, 1.75], dtype="f4")

    def program(x):
        total = x[x > 0].sum()
        return np.sin(total) + (1.5**total) ** 2

    t = np.float64(3.25)
    slope = np.cos(t) + 2 * 1.5 ** (2 * t) * np.log(1.5)
    assert np.allclose(grad(program)(x), [slope, 0, slope], rtol=1e-5)


def test_what_is_computed_twice_is_differentiated_once():
    def program(x):
        return np.sum(x[:-1] ** 2) + np.sum(np.exp(x[:-1]))

    x = np.arange(4.0)
    printed = str(code_adjoint(program, x))
    assert printed.count("operator.getitem") == 1
    assert "add_at" not in printed
    assert np.allclose(grad(program)(x), [*(2 * x[:-1] + np.exp(x[:-1])), 0])


def test_two_arrays_of_the_same_values_are_two(path):
    """Of which one is changed, so that nothing may be shared or moved."""

    def program(x):
        a, b = np.ones(3), np.ones(3)
        a[0] = 7.0
        return x * b[0] + x * a[0]

    def in_place(x):
        a = np.ones(3) * 2
        b = a * 3
        a -= 1
        return x * b[0]

    assert grad(program)(2.0) == 8.0
    assert grad(in_place)(2.0) == 6.0


def test_what_an_unknown_function_may_have_changed_is_read_again():
    def program(x):
        a, b = np.arange(3.0), np.arange(3.0)
        before = a * 2
        random.Random(1).shuffle(a)
        return x * (before + a * 2 + b) @ np.array([1.0, 10.0, 100.0])

    assert grad(program)(1.0) == program(1.0)


def test_what_is_cheap_to_compute_again_is_on_no_tape():
    def program(a, n):
        x = 1.0
        for _ in range(n):
            u = a * x
            x = x + math.sin(u) * u
        return x

    assert str(code_adjoint(program, 0.5, 3)).count("list_append") == 2  # x and sin(u)
    h = 1e-6
    slope = (program(0.5 + h, 3) - program(0.5 - h, 3)) / (2 * h)
    assert math.isclose(grad(program)(0.5, 3), slope, rel_tol=1e-8)


def test_large_arrays_are_released_and_overwritten():
    """What a gradient holds at its peak, the result included, in arrays."""

    def chain(x):
        z = np.tanh(x * 2.0 + 1.0)
        return np.sum(np.exp(z * 3.0) + z)

    def logistic(x):
        return np.sum(np.logaddexp(0.0, x) - x * 0.5)

    x = np.ones(100_000)
    assert peak(grad(chain), x) < 3.1 * x.nbytes
    assert peak(grad(logistic), x) < 2.1 * x.nbytes


def peak(f, *args):
    f(*args)
    tracemalloc.start()
    try:
        f(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [3, 3000])
@pytest.mark.parametrize("choose", [np.maximum, np.minimum, np.hypot])
def test_nothing_is_overwritten_in_a_way_that_numpy_warns_of(choose, n):
    def f(x, c):
        return np.sum(x * choose(np.exp(c), 0.5) ** 2)

    x, c = np.ones(n), np.linspace(-2.0, 1.0, n)
    np.testing.assert_allclose(grad(f)(x, c), choose(np.exp(c), 0.5) ** 2, rtol=1e-15)


def test_small_arrays_are_overwritten():
    def f(x):
        return np.sum(np.exp(x * 2.0 + 1.0))

    g, x = grad(f), np.array([0.5, -1.0])
    for _ in range(2):
        np.testing.assert_allclose(g(x), 2 * np.exp([2.0, -1.0]), rtol=1e-15)
    assert x.tolist() == [0.5, -1.0]
    assert any(i.argrepr == "+=" for i in dis.get_instructions(g.__code__))


def test_arrays_of_one_number_are_made_anew():
    """NumPy takes twice as long where an operand is the result as well."""

    def f(x):
        return np.sum(np.exp(x * 2.0 + 1.0))

    g = grad(f)
    for _ in range(2):
        np.testing.assert_allclose(g(np.array([0.5])), 2 * np.exp([2.0]), rtol=1e-15)
    assert not any(i.argrepr in ("+=", "*=") for i in dis.get_instructions(g.__code__))


def test_a_reciprocal_is_the_only_residual_of_itself():
    def program(x):
        for _ in range(3):
            x = 1 / (1 + np.exp(-x))
        return np.sum(x)

    printed = str(code_adjoint(program, np.ones(4)))
    assert printed.count("operator.truediv") == 1
    assert printed.count("list_append") == 2  # exp(-x) and the reciprocal
    s, slope = np.ones(4), 1.0
    for _ in range(3):
        s = 1 / (1 + np.exp(-s))
        slope = slope * s * (1 - s)
    assert np.allclose(grad(program)(np.ones(4)), slope, rtol=1e-12)


def test_the_adjoint_of_an_extreme_along_an_axis_is_straight():
    """What the rule calls is inlined, and its types are known."""

    def program(x):
        return np.sum(np.exp(x - np.max(x, axis=1, keepdims=True)))

    printed = str(code_adjoint(program, np.ones((4, 3))))
    assert "reductions.extreme" not in printed
    assert "attaining" in printed


def test_functions_whose_exceptions_matter_have_a_general_form():
    def f(x):
        with contextlib.suppress(ZeroDivisionError):
            x = x * 2
        return x * x

    printed = str(code_adjoint(f, 2.0))
    first, *_ = printed.split("\n")
    assert first.startswith("# general, because: ")
    assert "f handles exceptions; " in first
    assert grad(f)(2.0) == 16.0


class Weight:
    def __init__(self, w):
        self.w = w

    def scaled(self, x, by=2.0):
        return self.w * x * by

    def __call__(self, x, *more, by=2.0):
        return self.w * x * by


def with_defaults(x, n=3, *rest, k=2.0, **others):
    return x * n * k


def power(x):
    return x * x * x


@pytest.mark.parametrize(
    ("f", "args", "kwargs"),
    [
        (with_defaults, (1.0,), {}),
        (with_defaults, (1.0, 2, 5.0, 6.0), {"k": 3.0}),
        (with_defaults, (1.0,), {"n": 4, "other": 1.0}),
        (Weight(2.0).scaled, (1.0,), {}),
        (Weight.scaled, (Weight(2.0), 1.0), {}),
        (Weight(2.0), (1.0,), {}),
        (functools.partial(with_defaults, n=2), (1.0,), {}),
        (functools.partial(with_defaults, 2.0), (1.0,), {}),
        (grad(power), (2.0,), {}),
    ],
)
def test_the_adjoint_is_shown_however_a_function_is_called(f, args, kwargs):
    first, *_ = str(code_adjoint(f, *args, **kwargs)).split("\n")
    assert first == "# specialised to the types of the arguments; 0 calls are resolved at run time"


def test_calls_that_are_resolved_at_run_time_are_counted_and_named():
    def total(weights, x):
        s = 0.0
        for weight in weights:
            s += weight.w * x
        return s

    shown = code_adjoint(total, WEIGHTS, 3.0)
    first, second, *_ = str(shown).split("\n")
    assert first.endswith("; 1 call is resolved at run time")
    assert second == f"#   line {total.__code__.co_firstlineno + 3}: getattr"


class OtherWeight(Weight):
    pass


WEIGHTS = [Weight(1.0), OtherWeight(2.0)] * 9


def numbered(weights, x):
    s = 0.0
    for n, weight in enumerate(weights):
        s += n * weight.w * x
    return s


def paired(weights, x):
    s = 0.0
    for weight, factor in zip(weights, [2.0, 3.0] * 9, strict=True):
        s += factor * weight.w * x
    return s


def of_rows(rows, x):
    s = 0.0
    for row in rows:
        for weight in row:
            s += weight.w * x
    return s


@pytest.mark.parametrize(
    ("f", "weights", "slope"),
    [
        (numbered, WEIGHTS, sum(n * w.w for n, w in enumerate(WEIGHTS))),
        (paired, WEIGHTS, 9 * (2.0 + 6.0)),
        (of_rows, [WEIGHTS, WEIGHTS], 54.0),
    ],
)
def test_what_is_read_from_unlike_objects_is_known_where_it_is_alike(f, weights, slope):
    first, *_ = str(code_adjoint(f, weights, 3.0)).split("\n")
    assert first == "# specialised to the types of the arguments; 1 call is resolved at run time"
    assert gradient(f, weights, 3.0)[1] == slope


def test_calls_of_the_general_form_are_named():
    def rounded(x, fs):
        total = 0.0
        for f in fs:
            total += float(f"{f(x):.3f}")
        return total

    first, *lines = str(code_adjoint(rounded, 2.0, [math.sin, math.cos])).split("\n")
    assert first.startswith("# general, because: numbers that were text; ")
    assert f"#   line {rounded.__code__.co_firstlineno + 3}: float" in lines


def test_the_adjoint_of_a_call_that_python_refuses_is_refused():
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        code_adjoint(with_defaults)
    with pytest.raises(TypeError, match=r"math\.sin is not a Python function: it has no code"):
        code_adjoint(math.sin, 1.0)


# -- the way that control came, told by the condition --------------------------------------------------


def two_ways(x, n):
    y = x
    for _ in range(n):
        if y > 1.0:
            y = y * x
        else:
            y = y + math.sin(y) * x
    return y


def three_ways(x, n):
    total = 0.0
    for i in range(n):
        if i % 3 == 0 and x > 0.5:
            total += x * x
        elif total > 2.0:
            total *= 0.5 * x
        else:
            if x < 1.0:
                total = total + x
            total = total + 1.0
    return total


def left_early(x, n):
    y = x
    for _ in range(n):
        y = y * 1.5
        if y > 4.0:
            break
    else:
        y = y * x
    return y if y > 0.0 else -x


class Asked:
    """An object whose truth is asked for once."""

    times = 0

    def __bool__(self):
        Asked.times += 1
        return True


def asks(x):
    return x * x if Asked() else x


def by_an_array(x):
    return np.sum(x * x) if np.max(x) > 1.0 else np.sum(x)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
@pytest.mark.parametrize("x", [0.4, 0.9, 1.3])
@pytest.mark.parametrize("f", [two_ways, three_ways, left_early])
def test_the_adjoint_goes_back_the_way_that_control_came(f, x, n):
    value, (slope, _) = withgradient(f, x, n)
    assert value == f(x, n)
    h = 1e-6
    assert slope == pytest.approx((f(x + h, n) - f(x - h, n)) / (2 * h), rel=1e-6, abs=1e-8)


def test_a_condition_on_what_is_kept_anyway_is_asked_again():
    text = str(code_adjoint(two_ways, 0.4, 3))
    assert ".from" not in text
    assert text.count("operator.gt(") == 2  # in the primal and in the adjoint, on no tape


def test_an_object_is_not_asked_again():
    Asked.times = 0
    assert gradient(asks, 3.0) == (6.0,)
    assert Asked.times == 1


def test_conditions_of_numpy():
    np.testing.assert_array_equal(gradient(by_an_array, np.array([0.5, 2.0]))[0], [1.0, 4.0])
    np.testing.assert_array_equal(gradient(by_an_array, np.array([0.5, 0.0]))[0], [1.0, 1.0])


def test_the_lines_of_emitted_code_cover_it_exactly_where_the_source_is_wide(monkeypatch):
    wide = f"def f(x):\n    y = {' ' * 120}x * x\n    return {' ' * 160}y * math.sin(y)\n"
    codes = []

    def kept(self, code, like):
        codes.append(finish(self, code, like))
        return codes[-1]

    finish = assemble.Assembler.finish
    monkeypatch.setattr(assemble.Assembler, "finish", kept)
    slopes = []
    for specialising in (True, False):
        monkeypatch.setattr(compiled, "specialising", specialising)
        compiled.forget_programs()
        exec(wide, names := {"math": math})
        sys.setprofile(lambda frame, event, arg: frame.f_lineno and None)
        try:
            slopes.append(hessian(names["f"], 1.1))
        finally:
            sys.setprofile(None)
    assert slopes[0] == pytest.approx(slopes[1])
    assert len(codes) >= 4
    for code in codes:
        assert max(end for _, end, _ in code.co_lines()) == len(code.co_code), code


def test_constants_that_are_equal_and_not_the_same():
    def f(x):
        return x * math.pi + x * x * np.pi

    g = grad(f)
    assert g(2.0) == pytest.approx(5 * math.pi)
    program = g.__code__
    assert g(2.0) == pytest.approx(5 * math.pi)
    assert g.__code__ is program
    assert next(iter(g.__morula__.programs.values())).tries == 0
