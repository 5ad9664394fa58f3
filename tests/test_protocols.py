"""What classes do when Python asks them: iteration, text, order, equality; exceptions on the way."""

import functools
import itertools
from collections.abc import Generator

import pytest

from morula import NoRuleError, grad, gradient, hvp, jvp, withgradient
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


class Ending:
    """An iterator that changes its state before it ends."""

    def __init__(self, v, n):
        self.v = v
        self.n = n
        self.total = 0.0
        self.log = []

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            self.total = self.total * self.v + self.v
            self.log.append(self.v * self.v)
            raise StopIteration
        self.total = self.total + self.v
        return self.v * self.n


class Table:
    """A sequence by `__getitem__`, with a state."""

    def __init__(self, v):
        self.v = v
        self.c = 0.0
        self.log = []

    def __getitem__(self, i):
        self.c = self.c + self.v * (i + 1)
        self.log.append(self.c * self.v)
        if i >= 3:
            raise IndexError(i)
        return self.v * i

    def __len__(self):
        self.c = self.c * self.v
        return 3


def in_a_loop(it, x):
    s = 0.0
    for v in it:
        s = s + v
    return s


def with_a_default(it, x):
    return next(it, x) + next(it, x) + next(it, x) + next(it, x)


def unpacked(it, x):
    a, *b = it
    return a + sum(b) * 2


def zipped(it, x):
    return sum([a * b for a, b in zip([1.0, 2.0, x, 4.0], it)])  # noqa: B905


def as_keys(it, x):
    d = dict(zip("abc", it))  # noqa: B905
    return d["a"] + d["b"] * x


def asked_for_any(it, x):
    return x * any(v > 100 for v in it)


CONSUMERS = [
    in_a_loop,
    with_a_default,
    unpacked,
    zipped,
    as_keys,
    asked_for_any,
    lambda it, x: sum(map(lambda v: v * x, it)),
    lambda it, x: sum(filter(None, it)),
    lambda it, x: sum(itertools.islice(it, 9)) + x,
    lambda it, x: (77.0 in it) + x,
]


def consuming(consume):
    """A function of what an iterator gives and of what it leaves behind."""

    def f(x):
        it = Ending(x, 3)
        y = consume(it, x)
        return y * it.total + sum(it.log)

    return f


@pytest.mark.parametrize("consume", CONSUMERS)
def test_what_an_iterator_does_before_it_ends(consume):
    f = consuming(consume)
    check_gradient(f, 0.7)
    assert withgradient(f, 0.7)[0] == f(0.7)


@pytest.mark.parametrize("path", ["general"], indirect=True)
@pytest.mark.parametrize("consume", [in_a_loop, zipped, CONSUMERS[6], CONSUMERS[9]])
def test_derivatives_of_what_an_iterator_does_before_it_ends(consume):
    assert_second(consuming(consume), 0.7)


def assert_second(f, x):
    first = grad(f)
    second = pytest.approx((first(x + 1e-5) - first(x - 1e-5)) / 2e-5, rel=1e-6)
    assert grad(first)(x) == second
    assert hvp(f, x, 1.0) == second
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx(first(x))


@pytest.mark.parametrize(
    "consume",
    [in_a_loop, zipped, lambda it, x: sum(reversed(it)), CONSUMERS[9]],
)
def test_what_a_sequence_does_before_it_ends(consume):
    def f(x):
        table = Table(x)
        y = consume(table, x)
        return y * table.c + sum(table.log)

    check_gradient(f, 0.7)


@pytest.mark.parametrize("path", ["general"], indirect=True)
def test_derivatives_of_what_a_sequence_does_before_it_ends():
    def f(x):
        table = Table(x)
        return in_a_loop(table, x) * table.c + sum(reversed(table)) + sum(table.log)

    check_gradient(f, 0.7)
    assert_second(f, 0.7)


def test_a_function_of_map_that_ends_the_iteration():
    def f(x):
        seen = [x]

        def each(v):
            seen.append(v * x)
            if len(seen) > 3:
                raise StopIteration
            return v * x

        s = 0.0
        for v in map(each, [1.0, 2.0, x, 4.0, 5.0]):
            s = s + v
        return s * sum(seen)

    check_gradient(f, 0.7)


# -- answers that change something -----------------------------------------------------------------


class Logging:
    """Notes all that it is asked."""

    def __init__(self, v):
        self.v = v
        self.log = []

    def note(self, k):
        self.log.append(self.v * self.v * k)

    def __format__(self, spec):
        self.note(1)
        return "f" + spec

    def __str__(self):
        self.note(2)
        return "s"

    def __repr__(self):
        self.note(3)
        return "r"

    def __index__(self):
        self.note(4)
        return 1

    def __hash__(self):
        self.note(5)
        return 7

    def __eq__(self, other):
        self.note(6)
        return self is other

    def __bool__(self):
        self.note(7)
        return True

    def __lt__(self, other):
        self.note(8)
        return self.v < other.v

    def __gt__(self, other):
        self.note(9)
        return self.v > other.v

    def __bytes__(self):
        self.note(10)
        return b"s"


ANSWERS = [
    lambda a, b: f"{a} {a!r} {a!s} {b:>3}",
    lambda a, b: format(a) + format(b, "x"),
    lambda a, b: str(a) + repr(b),
    lambda a, b: print(a, b, sep="", end=""),
    lambda a, b: ",".join(map(str, [a, b])),
    lambda a, b: hash(a) + hex(b).count("x") + len(bytes(a)) + len(range(b)),
    lambda a, b: (a == b) + (a != b) + (a in [b]) + (b not in (b, a)),
    lambda a, b: any([a, b]) + all((a, b)) + len(list(filter(None, [a, b]))),
    lambda a, b: sorted([b, a]) + sorted([1, 0], key=[b, a].__getitem__, reverse=True),
    lambda a, b: [a, b].sort() or max(a, b) or min([b, a]),
    lambda a, b: [a, b].remove(b),
    lambda a, b: list(itertools.takewhile(lambda v: v, [a, b])),
]


@pytest.mark.parametrize("ask", ANSWERS)
def test_what_is_noted_while_answering(ask, capsys):
    def f(x):
        a, b = Logging(x), Logging(2 * x)
        ask(a, b)
        return sum(a.log) * x + sum(b.log)

    assert withgradient(f, 0.7)[0] == f(0.7)
    check_gradient(f, 0.7)
    assert jvp(f, (0.7,), (1.0,))[1] == pytest.approx(grad(f)(0.7))


@pytest.mark.parametrize("path", ["general"], indirect=True)
def test_derivatives_of_what_is_noted_while_answering():
    def f(x):
        a, b = Logging(x), Logging(2 * x)
        s = f"{a}" + str(b)
        return sum(a.log) * len(s) + sum(b.log) * len(sorted([b, a])) * max(a, b).v

    assert_second(f, 0.7)


OUT_OF_SIGHT = [
    lambda a, b: str([a, b]),
    lambda a, b: [a] == [b],
    lambda a, b: (a, 1) < (b, 2),
    lambda a, b: [a, b].index(b),
    lambda a, b: __import__("heapq").heappush([a], b),
]


@pytest.mark.parametrize("ask", OUT_OF_SIGHT)
def test_what_is_noted_out_of_sight_is_refused_where_it_matters(ask):
    def f(x):
        a, b = Logging(x), Logging(2 * x)
        ask(a, b)
        return sum(a.log) * x + sum(b.log)

    with pytest.raises(NoRuleError, match="changes a list that the gradient runs through"):
        gradient(f, 0.7)
    assert gradient(lambda x: (ask(Logging(x), Logging(x)), x * x)[1], 3.0) == (6.0,)


def test_keys_that_are_compared_by_a_function():
    def f(x):
        log = []

        def compare(a, b):
            log.append(a * b)
            return -1 if a < b else 1

        xs = sorted([x, 2 * x, x / 2], key=functools.cmp_to_key(compare))
        return xs[0] * sum(log)

    check_gradient(f, 0.7, order=2)


def test_what_the_functions_that_give_keys_note():
    def f(x):
        log = []
        xs = sorted([2 * x, x], key=lambda v: (log.append(v * v), v)[1])
        xs.sort(key=lambda v: (log.append(v**3), -v)[1])
        least = min([2 * x, x], key=lambda v: (log.append(v**4), v)[1])
        return sum(log) * xs[0] * least

    check_gradient(f, 0.7, order=2)


# -- exceptions ------------------------------------------------------------------------------------


class Failing:
    def __init__(self, v, log):
        self.v = v
        self.log = log

    @property
    def p(self):
        self.log.append(self.v**3)
        raise AttributeError(self.v)

    def __getattr__(self, name):
        self.log.append(self.v**4)
        raise AttributeError(self.v)


def test_attributes_that_are_missed():
    def f(x):
        log = []
        a = Failing(x, log)
        return (hasattr(a, "q") + getattr(a, "p", x)) * sum(log)

    check_gradient(f, 0.7)


CALLERS = [
    lambda f, xs: list(map(f, xs)),
    lambda f, xs: tuple(filter(f, xs)),
    lambda f, xs: sum(map(f, xs)),
    lambda f, xs: xs.extend(map(f, xs[:])),
    lambda f, xs: [a for a, _ in zip(map(f, xs), xs)],  # noqa: B905
    lambda f, xs: "".join(map(f, xs)),
]


@pytest.mark.parametrize("caller", CALLERS)
def test_an_exception_after_some_items(caller):
    def f(x):
        log = []

        def each(v):
            log.append(v * x)
            if len(log) > 2:
                raise ValueError(v * 3)
            return v

        try:
            caller(each, [x, 2 * x, 3 * x])
        except ValueError as error:
            return error.args[0] * sum(log)

    check_gradient(f, 0.7)


def test_iterators_are_of_the_classes_that_made_them():
    def f(x):
        xs = [x, 2 * x]
        made = [
            itertools.chain(xs, xs),
            itertools.accumulate(xs),
            itertools.islice(xs, 1),
            itertools.count(x),
            itertools.combinations(xs, 1),
            itertools.groupby(xs),
            zip(xs),
            map(abs, xs),
            filter(None, xs),
            enumerate(xs),
            (v for v in xs),
        ]
        seen.append([type(y) for y in made])
        seen.append([isinstance(y, (itertools.chain, map, Generator)) for y in made])
        for y in made:
            match y:
                case itertools.islice():
                    x = x * 2
        return x * next(made[0])

    seen = []
    check = f(0.7)
    expected, seen = seen, []
    assert withgradient(f, 0.7) == (check, (pytest.approx(4 * 0.7),))
    jvp(f, (0.7,), (1.0,))
    assert seen == expected * 2
