"""Exceptions that are really thrown, `with`, `match`: gradients, values and side effects."""

import contextlib
import math
import sys
import traceback

import numpy as np
import pytest

from morula import UnsupportedError, grad, gradient, hvp, jvp, pullback, withgradient
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


def caught_or_not(x):
    try:
        y = math.sqrt(x)
    except ValueError:
        y = x * 3
    return y * x


def with_else_and_finally(x):
    log = []
    try:
        y = math.sqrt(x)
    except ValueError as error:
        y = x * 3
        log.append(error)
    else:
        y = y * x
    finally:
        z = x * x
    return y * z + len(log)


def returned_through_finally(x):
    try:
        return math.sqrt(x) * 2
    except ValueError:
        return x * 3
    finally:
        x = 5


def finally_that_returns(x):
    try:
        1 / 0
    finally:
        return x * x  # noqa: B012


def finally_that_breaks(x):
    for _ in range(10):
        try:
            x = x * 2
            continue
        finally:
            break  # noqa: B012
    return x * x


def loop_with_continue(x):
    t = x
    for i in range(5):
        try:
            if i == 3:
                raise ValueError(i)
            t = t * x
        except ValueError:
            t = t + x
            continue
        finally:
            t = t * 1.5
    return t


def append_then_raise(items, x):
    items.append(x * x)
    raise KeyError("here")


def thrown_in_a_callee_after_an_effect(x):
    items = []
    try:
        append_then_raise(items, x)
    except KeyError:
        pass
    return items[0] * x


def thrown_two_calls_down(x):
    def middle(items):
        items.append(2 * x)
        append_then_raise(items, x)

    items = []
    with contextlib.suppress(KeyError):
        middle(items)
    return items[0] * items[1]


class Account:
    def __init__(self, balance):
        self.balance = balance

    def draw(self, amount):
        self.balance = self.balance - amount
        if self.balance < 0:
            raise Overdrawn(self.balance * 2)

    def __call__(self, amount):
        self.draw(amount)


class Overdrawn(Exception):
    def __init__(self, missing):
        super().__init__(missing)
        self.missing = missing


def a_value_in_an_exception(x):
    account = Account(x)
    try:
        account.draw(3 * x)
    except Overdrawn as error:
        return error.missing * error.args[0] * account.balance
    return x


def thrown_by_a_method_and_a_callable_object(x):
    account = Account(x)
    for call in (account.draw, account):
        try:
            call(2 * x)
        except Overdrawn as error:
            account.balance = account.balance + error.missing * x
    return account.balance


def nested_and_chained(x):
    try:
        try:
            1 / 0
        except ZeroDivisionError as error:
            raise ValueError("second") from error
    except ValueError as error:
        return x * x * isinstance(error.__cause__, ZeroDivisionError)


def raised_again(x):
    try:
        try:
            math.sqrt(-1)
        except ValueError:
            y = x * 3
            raise
    except ValueError as error:
        return y * x * len(error.args)


def unbound_names(x):
    try:
        undefined_name
    except NameError:
        y = x
    try:
        later  # noqa: F821
        later = 1
    except UnboundLocalError:
        return x * y * 4


def conditions_that_raise(x):
    try:
        if np.array([x, 2 * x]):
            return x
    except ValueError:
        return x * x


def groups(x):
    y = 1.0
    try:
        raise ExceptionGroup("both", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        y = y * x * len(group.exceptions)
    except* KeyError:
        y = y * x * 2
    return y * x


def a_group_of_one(x):
    try:
        raise ValueError(x)
    except* (ValueError, TypeError) as group:
        return_value = x * len(group.exceptions)
    return return_value * x


class Doubled:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self.x * 2

    def __exit__(self, kind, error, trace):
        self.x = self.x * 7
        return kind is ZeroDivisionError


def suppressing_manager(x):
    manager = Doubled(x)
    with manager as v:
        z = v * v
        z = z / 0
    return z * manager.x


def several_managers(x):
    with Doubled(x) as a, Doubled(a * x) as b:
        y = a * b
    return y


@contextlib.contextmanager
def scaled(state, k):
    old = state["v"]
    state["v"] = old * k
    try:
        yield state
    finally:
        state["v"] = old


def a_manager_that_restores(x):
    state = {"v": x}
    with scaled(state, x) as inside:
        y = inside["v"] * 2
    return y * state["v"]


def a_generator_manager_that_catches(x):
    @contextlib.contextmanager
    def tolerant():
        try:
            yield x * 2
        except ZeroDivisionError:
            pass

    y = 0.0
    with tolerant() as z:
        y = z * x
        1 / 0
    return y


def an_exit_stack(x):
    with contextlib.ExitStack() as stack:
        state = stack.enter_context(scaled({"v": x}, 2))
        y = state["v"] * x
    return y * state["v"]


def errstate(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x)
    return y * x


def mapping_patterns(x):
    match (x, {"a": 2 * x, "c": 3 * x}):
        case (y, {"a": z}) if y > 100:
            return y * z
        case (y, {"b": z}):
            return 5 * z
        case (y, {"a": z, **rest}):
            return y * z * rest["c"]


class Point:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b


def class_patterns(x):
    total = 0.0
    for shape in (Point(x, 2 * x), [x, 1.0, x * x], x * 5, "text", 7, None):
        match shape:
            case Point(a, b=b) if b > 100:
                total += a
            case Point(a, b):
                total += a * b
            case [first, *_, last]:
                total += first * last
            case float(v):
                total += v * x
            case str() | None:
                total += x
            case other:
                total += other * x
    return total


def a_key_that_is_missed(x):
    def look(table, key):
        return table[key]

    total = 0.0
    try:
        look({}, x * x)
    except KeyError as error:
        total += error.args[0] * x
    for ask in ({1.0: 2.0}.pop, {1.0}.remove):
        try:
            ask(x)
        except KeyError as error:
            total += error.args[0] ** 2
    try:
        {}[x, x]
    except LookupError as error:
        total += error.args[0][0] * error.args[0][1]
    return total


def an_attribute_that_is_missed(x):
    try:
        (2 * x).nowhere
    except AttributeError as error:
        return error.obj**3


PROGRAMS = [
    with_else_and_finally, finally_that_returns, finally_that_breaks, loop_with_continue,
    thrown_in_a_callee_after_an_effect, thrown_two_calls_down, a_value_in_an_exception,
    thrown_by_a_method_and_a_callable_object, nested_and_chained, raised_again, unbound_names,
    conditions_that_raise, groups, a_group_of_one, suppressing_manager, several_managers,
    a_manager_that_restores, a_generator_manager_that_catches, an_exit_stack, errstate,
    mapping_patterns, class_patterns, a_key_that_is_missed, an_attribute_that_is_missed,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(program):
    assert withgradient(program, 1.3)[0] == program(1.3)
    check_gradient(program, 1.3)


def test_a_pattern_reads_an_attribute_once():
    class Noting:
        @property
        def v(self):
            log.append("read")
            return x * x

    def f(x):
        match Noting():
            case Noting(w=_):
                return 1.0
            case Noting(v=v):
                return v * x

    x, log = 3.0, []
    assert gradient(f, x) == (9.0,)
    assert log == ["read"]


def test_names_that_are_not_there():
    def f(x):
        try:
            return nowhere * x
        except NameError as error:
            first = len(error.name) * x if error.__context__ is None else 0.0
        try:
            from math import nothing  # noqa: F401
        except ImportError as error:
            return first * (error.name == "math")

    assert gradient(f, 2.0) == (7.0,)


@pytest.mark.parametrize("program", [caught_or_not, returned_through_finally])
@pytest.mark.parametrize("x", [2.0, -2.0])
def test_with_and_without_an_exception(program, x):
    check_gradient(program, x)


def test_an_exception_that_nobody_catches_is_the_users():
    def f(x):
        try:
            return x / 0
        finally:
            log.append(sys.exc_info()[0])

    log = []
    with pytest.raises(ZeroDivisionError) as caught:
        gradient(f, 2.0)
    assert log == [ZeroDivisionError]
    lines = [e.line for e in traceback.extract_tb(caught.value.__traceback__)]
    assert "return x / 0" in lines


class Dividing:
    def __init__(self, v):
        self.v = v

    def __mul__(self, other):
        return self.v / 0


# Programs that fail in operations that Morula does in their place.
FAILING = {
    "a quotient": lambda x: x / 0,
    "an index": lambda x: [x][3],
    "a key": lambda x: {"a": x}["b"],
    "a text and a number": lambda x: "a" + x,
    "an attribute": lambda x: x.nothing,
    "a name": lambda x: x * no_such_name,  # noqa: F821
    "an unpacking": lambda x: sum(a * b for a, b in [[x]]),
    "an iteration": lambda x: sum([v * v for v in x]),
    "a comparison": lambda x: x if x < "a" else 1.0,
    "a membership": lambda x: x * (x in 3),
    "a call": lambda x: (lambda v: v)(x, x),
    "a domain": lambda x: math.sqrt(-abs(x)),
    "shapes": lambda x: np.sum(np.ones(3) * x + np.ones(4)),
    "an operator method": lambda x: Dividing(x) * 2,
    "a callback": lambda x: sum(map(lambda v: v / 0, [x])),
    "a generator": lambda x: sum(v / 0 for v in [x]),
    "a format": lambda x: float(f"{x:zz}"),
    "a manager": lambda x: within(x),
    "a keyword": lambda x: sorted([x], wrong=1)[0],
    "too many arguments": lambda x: sorted([x], x)[0],
}


def within(x):
    with x:
        return x


@pytest.mark.parametrize("program", FAILING)
@pytest.mark.parametrize("mode", [gradient, lambda f, x: jvp(f, (x,), (1.0,))])
def test_tracebacks_end_where_the_plain_one_does(program, mode, path):
    f = FAILING[program]
    with pytest.raises(Exception, match=r"\w") as plain:
        f(1.5)
    with pytest.raises(type(plain.value)) as caught:
        mode(f, 1.5)
    assert str(caught.value) == str(plain.value)
    last, *others = [
        [(entry.filename, entry.lineno, entry.name) for entry in traceback.extract_tb(e.tb)]
        for e in (caught, plain)
    ]
    assert last[-1] in (others[0] if path == "specialised" else others[0][-1:])
    assert any("while Morula differentiated" in note for note in caught.value.__notes__)


def test_too_deep_a_recursion_says_what_to_do():
    def endless(x):
        return endless(x) * 1.001

    with pytest.raises(RecursionError) as caught:
        gradient(endless, 2.0)
    assert any("sys.setrecursionlimit" in note for note in caught.value.__notes__)


def test_what_is_being_handled_is_as_in_the_plain_program():
    def f(x):
        try:
            [][0]
        except IndexError as error:
            seen.append(sys.exception() is error)
            try:
                {}["a"]
            except KeyError as inner:
                seen.append(inner.__context__ is error)
            seen.append(sys.exception() is error)
        seen.append(sys.exception())
        return x * x

    seen = []
    assert gradient(f, 3.0) == (6.0,)
    assert seen == [True, True, True, None]
    assert sys.exception() is None


def test_the_traceback_of_a_caught_exception_shows_the_users_lines():
    def thrower(x):
        return x / 0  # in the callee

    def f(x):
        try:
            y = thrower(x)  # the call
        except ZeroDivisionError as error:
            shown.extend(e.line for e in traceback.extract_tb(error.__traceback__))
            y = x
        return y * x

    shown = []
    assert gradient(f, 3.0) == (6.0,)
    assert shown[0] == "y = thrower(x)  # the call"
    assert "return x / 0  # in the callee" in shown


def test_effects_happen_once_and_in_order():
    def f(x):
        try:
            log.append("try")
            try:
                log.append("inner")
                raise ValueError
            finally:
                log.append("finally")
        except ValueError:
            log.append("except")
        else:
            log.append("else")
        return x * 2

    log = []
    gradient(f, 1.0)
    expected, log = log, []
    f(1.0)
    assert log == expected


def test_a_pullback_may_be_called_again():
    y, back = pullback(thrown_two_calls_down, 1.5)
    assert y == thrown_two_calls_down(1.5)
    assert back(1.0) == back(1.0) == (pytest.approx(6 * 1.5**2),)


def test_effects_lost_in_a_compiled_caller_are_refused():
    def f(x):
        items = [3.0, 2.0]

        def key(v):
            if v < 2.5:
                raise KeyError
            return v * x

        try:
            items.sort(key=key)
        except KeyError:
            pass
        return x * items[0]

    assert gradient(f, 2.0) == (3.0,)


def test_what_was_done_before_an_exception_in_a_rule_is_refused():
    def f(x):
        seen = []

        def key(v):
            seen.append(v)
            if len(seen) > 1:
                raise KeyError
            return v

        try:
            sorted([x, x * x], key=key)
        except KeyError:
            pass
        return seen[0] * x

    with pytest.raises(UnsupportedError, match="raised an exception that was caught outside"):
        gradient(f, 2.0)


def test_what_is_no_manager_is_refused_as_python_refuses_it():
    def f(x):
        with x:
            return x

    with pytest.raises(TypeError, match="does not support the context manager protocol"):
        gradient(f, 1.0)


def raised_in_a_generator(x):
    def powers():
        yield x * 2
        seen.append(x * x)
        raise ValueError(x * 3)

    seen = []
    s = 0.0
    try:
        for v in powers():
            s = s + v * v
    except ValueError as error:
        s = s + error.args[0] * seen[0]
    return s


def raised_out_of_a_recursion(x):
    state = {"v": x}

    def down(n):
        state["v"] = state["v"] * x
        if n == 0:
            raise ValueError(state["v"])
        try:
            down(n - 1)
        finally:
            state["v"] = state["v"] * 2

    try:
        down(3)
    except ValueError as error:
        return error.args[0] * state["v"]


def what_a_generator_returned(x):
    def once():
        yield x
        return x * x

    it = once()
    first = next(it)
    try:
        next(it)
    except StopIteration as stop:
        return first * stop.value


def raised_with_keywords_and_stars(x):
    def f(a, *, b, **named):
        raise ValueError(a * b * named["c"])

    try:
        f(*[x], **{"b": x, "c": 2 * x})
    except ValueError as error:
        return error.args[0] * x


class Without(Exception):
    def __init__(self, v, w=1.0):
        self.product = v * w


class OwnNew(Exception):
    def __new__(cls, v, *more):
        made = super().__new__(cls, v * v)
        made.given = v
        return made

    def __init__(self, *more):
        pass


class OwnSystem(OSError):
    def __init__(self, v):
        super().__init__(v, v * v)
        self.own = v


# What raises, what it raises, and what a handler makes of that: the attributes of each kind.
MADE_OF = {
    "a value": (lambda x: StopIteration(x * x), lambda e, x: e.value * e.args[0]),
    "a code": (lambda x: SystemExit(x * x), lambda e, x: e.code * x),
    "codes": (lambda x: SystemExit(x, x * x), lambda e, x: e.code[1] * e.args[0]),
    "numbers of the system": (
        lambda x: OSError(x, x * x, 3 * x, None, x**4),
        lambda e, x: e.errno * e.filename + e.filename2 + e.args[1] + len(e.args) * x,
    ),
    "an object": (lambda x: AttributeError("a", obj=x * x), lambda e, x: e.obj * x),
    "names": (
        lambda x: ImportError("a", name=x * x, path=x),
        lambda e, x: e.name * e.path,
    ),
    "arguments that its own __init__ leaves alone": (
        lambda x: Without(x * x, w=x),
        lambda e, x: e.args[0] * e.product,
    ),
    "arguments of its own __new__": (lambda x: OwnNew(x, 3), lambda e, x: e.args[0] * e.given),
    "arguments for its base": (
        lambda x: OwnSystem(x),
        lambda e, x: e.args[0] * e.args[1] + e.strerror * e.own,
    ),
    "a value that is set later": (
        lambda x: replaced(StopIteration(x), x * x),
        lambda e, x: e.value + e.args[0] * x,
    ),
    "a code of sys.exit": (lambda x: sys.exit(x * x), lambda e, x: e.code * e.args[0]),
}


def replaced(error, value):
    error.value = value
    return error


@pytest.mark.parametrize("case", MADE_OF)
def test_what_exceptions_are_made_of(case):
    make, read = MADE_OF[case]

    def f(x):
        try:
            raise make(x)
        except BaseException as error:
            return read(error, x)

    value, (slope,) = withgradient(f, 1.3)
    assert value == f(1.3)
    assert slope == pytest.approx((f(1.3 + 1e-5) - f(1.3 - 1e-5)) / 2e-5)
    assert jvp(f, (1.3,), (1.0,)) == (value, pytest.approx(slope))
    second = pytest.approx((grad(f)(1.3 + 1e-5) - grad(f)(1.3 - 1e-5)) / 2e-5)
    assert grad(grad(f))(1.3) == second
    assert hvp(f, 1.3, 1.0) == second


LEAVING = [
    loop_with_continue, nested_and_chained, thrown_in_a_callee_after_an_effect,
    thrown_by_a_method_and_a_callable_object, a_manager_that_restores, raised_in_a_generator,
    raised_out_of_a_recursion, what_a_generator_returned,
    raised_with_keywords_and_stars, an_attribute_that_is_missed,
]  # fmt: skip


@pytest.mark.parametrize("program", LEAVING, ids=lambda f: f.__name__)
def test_second_derivatives(program):
    first = grad(program)
    second = pytest.approx((first(1.3 + 1e-5) - first(1.3 - 1e-5)) / 2e-5)
    assert grad(first)(1.3) == second
    assert hvp(program, 1.3, 1.0) == second


@pytest.mark.parametrize(
    "program",
    [
        raised_with_keywords_and_stars,
        what_a_generator_returned,
        an_attribute_that_is_missed,
    ],
)
def test_derivatives_of_forward_mode(program):
    def first(x):
        return jvp(program, (x,), (1.0,))[1]

    second = pytest.approx((first(1.3 + 1e-5) - first(1.3 - 1e-5)) / 2e-5)
    assert grad(first)(1.3) == second
    assert jvp(first, (1.3,), (1.0,))[1] == second


@pytest.mark.thorough
def test_third_derivatives_are_refused_where_an_exception_leaves_a_function():
    def f(x):
        def thrower(y):
            raise ValueError(y * y * x)

        try:
            thrower(x * x)
        except ValueError as error:
            return error.args[0]

    with pytest.raises(UnsupportedError, match="in a derivative of a derivative"):
        grad(grad(grad(f)))(1.3)


class Empty:
    pass


def read(d, key):
    return d[key]


def delete(d, key):
    del d[key]


def handed_on(d, key):
    try:
        return read(d, key)
    except KeyError as error:
        raise RuntimeError(*error.args) from error


def of_no_field(d, key):
    d = Empty()
    d.value = key
    return d.field


def held(error):
    if isinstance(error, AttributeError):
        return error.obj.value
    return error.args[0]


@pytest.mark.parametrize("failing", [read, delete, dict.pop, handed_on, of_no_field])
def test_what_an_exception_holds_that_leaves_a_function_within_in_all_modes(failing, path):
    def f(x):
        try:
            failing({}, x * x * x)
        except (KeyError, RuntimeError, AttributeError) as error:
            return 2.0 * held(error)

    assert grad(f)(1.5) == pytest.approx(6.0 * 1.5**2)
    assert jvp(f, (1.5,), (1.0,)) == pytest.approx((2.0 * 1.5**3, 6.0 * 1.5**2))
    assert hvp(f, 1.5, 1.0) == pytest.approx(18.0)


def test_a_reverse_pass_over_a_forward_pass_refuses_what_it_would_lose():
    def f(x):
        try:
            delete({}, x * x * x)
        except KeyError as error:
            return 2.0 * error.args[0]

    with pytest.raises(UnsupportedError, match="exception of your own"):
        grad(lambda x: jvp(f, (x,), (1.0,))[1])(1.5)


@pytest.mark.parametrize("kinds", [RuntimeError, Exception, (ValueError, NotImplementedError)])
def test_a_refusal_is_not_what_a_handler_means(kinds):
    def f(x):
        try:
            return eval("x * 2")
        except kinds:
            return x * 3

    for derivative in (gradient, lambda f, x: jvp(f, (x,), (1.0,)), lambda f, x: hvp(f, x, 1.0)):
        with pytest.raises(UnsupportedError, match="eval without a namespace"):
            derivative(f, 1.0)


def by_a_bare_handler(x):
    try:
        y = eval("x * 2")
    except:  # noqa: E722
        y = x * 3
    return y


def by_a_manager(x):
    y = x * 3
    with contextlib.suppress(RuntimeError):
        y = eval("x * 2")
    return y


def by_groups(x):
    y = x * 3
    try:
        y = eval("x * 2")
    except* RuntimeError:
        pass
    return y


@pytest.mark.parametrize("f", [by_a_bare_handler, by_a_manager, by_groups])
def test_nor_what_any_other_handler_means(f):
    for derivative in (gradient, lambda f, x: jvp(f, (x,), (1.0,)), lambda f, x: hvp(f, x, 1.0)):
        with pytest.raises(UnsupportedError, match="eval without a namespace"):
            derivative(f, 1.0)


def test_a_refusal_is_handled_where_it_is_asked_for():
    def by_name(x):
        try:
            return eval("x * 2")
        except UnsupportedError:
            return x * 3

    def by_manager(x):
        with contextlib.suppress(UnsupportedError):
            return eval("x * 2")
        return x * 3

    for f in (by_name, by_manager):
        assert gradient(f, 1.0) == (3.0,)
        assert jvp(f, (1.0,), (1.0,)) == (3.0, 3.0)


def test_other_exceptions_end_in_bare_handlers_and_managers():
    def f(x):
        y = x
        for kind in (ValueError, KeyError):
            try:
                raise kind
            except:  # noqa: E722
                y *= x
                continue
        with contextlib.suppress(ValueError):
            y *= x
            raise ValueError
        return y

    assert gradient(f, 2.0) == (32.0,)
    assert jvp(f, (2.0,), (1.0,)) == (16.0, 32.0)
    assert hvp(f, 2.0, 1.0) == 48.0


def test_not_implemented_is_handled_as_ever():
    def f(x):
        try:
            raise NotImplementedError
        except RuntimeError:
            return x * 3

    assert gradient(f, 1.0) == (3.0,)
