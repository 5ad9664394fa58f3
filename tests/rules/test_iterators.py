"""The iterators of itertools: items, laziness and errors are Python's; gradients are right."""

import array
import itertools
import struct

import numpy as np
import pytest

from morula import NoRuleError, grad, gradient, hvp, jvp, pullback
from morula.testing import check_gradient

XS = [0.5, -1.2, 2.0, 0.3]
CALLS = {
    "chain": lambda xs, source: itertools.chain(source(xs), source([1.0])),
    "from_iterable": lambda xs, source: itertools.chain.from_iterable(source([xs, xs])),
    "accumulate": lambda xs, source: itertools.accumulate(source(xs)),
    "accumulate by a function": lambda xs, source: itertools.accumulate(
        source(xs), lambda a, b: a * b, initial=2.0
    ),
    "compress": lambda xs, source: itertools.compress(source(xs), [1, 0, 1]),
    "count": lambda xs, source: itertools.islice(itertools.count(xs[0], xs[2]), 5),
    "cycle": lambda xs, source: itertools.islice(itertools.cycle(source(xs)), 9),
    "dropwhile": lambda xs, source: itertools.dropwhile(lambda x: x > 0, source(xs)),
    "takewhile": lambda xs, source: itertools.takewhile(lambda x: x < 1, source(xs)),
    "filterfalse": lambda xs, source: itertools.filterfalse(lambda x: x < 0, source(xs)),
    "filterfalse of None": lambda xs, source: itertools.filterfalse(None, source([0.0, *xs])),
    "groupby": lambda xs, source: (
        k * sum(g) for k, g in itertools.groupby(source(xs), lambda x: x > 0)
    ),
    "islice": lambda xs, source: itertools.islice(source(xs), 2),
    "islice from": lambda xs, source: itertools.islice(source(xs), 1, None, 2),
    "islice of nothing": lambda xs, source: itertools.islice(source(xs), 0),
    "pairwise": lambda xs, source: (b - a for a, b in itertools.pairwise(source(xs))),
    "combinations": lambda xs, source: (a * b for a, b in itertools.combinations(source(xs), 2)),
    "with replacement": lambda xs, source: (
        a * b for a, b in itertools.combinations_with_replacement(source(xs), 2)
    ),
    "permutations": lambda xs, source: (
        a - b * b for a, b in itertools.permutations(source(xs), 2)
    ),
    "product": lambda xs, source: (a * b for a, b in itertools.product(source(xs), [1.0, xs[1]])),
    "product with itself": lambda xs, source: (
        a * b - c for a, b, c in itertools.product(source(xs), repeat=3)
    ),
    "repeat": lambda xs, source: itertools.repeat(xs[0] * xs[1], 3),
    "starmap": lambda xs, source: map(lambda a, b: a * b, source(xs), xs[1:]),
    "tee": lambda xs, source: map(lambda a, b: a * b, *itertools.tee(source(xs))),
    "zip_longest": lambda xs, source: (
        a * b for a, b in itertools.zip_longest(source(xs), xs[:2], fillvalue=xs[1])
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("source", [list, tuple, iter])
def test_gradients(name, source, path):
    def f(xs):
        total = 0.0
        for i, y in enumerate(CALLS[name](xs, source)):
            total += (i + 1) * y * y
        return total

    check_gradient(f, XS)


@pytest.mark.parametrize("name", CALLS)
def test_sources_are_read_as_far(name):
    if name == "groupby":
        return

    def read(differentiated, n):
        seen = []

        def source(xs):
            for x in xs:
                seen.append(x)
                yield x

        def take(xs):
            iterator = iter(CALLS[name](xs, source))
            return [y for y, _ in zip(iterator, range(n), strict=False)]

        found = pullback(take, XS)[0] if differentiated else take(XS)
        return found, seen

    for n in (0, 1, 3):
        assert read(True, n) == read(False, n)


def test_a_group_ends_when_the_next_begins():
    def f(xs):
        groups = [list(g) for _, g in list(itertools.groupby(xs, lambda x: x > 0))]
        return sum(map(len, groups[:-1])) + xs[0]

    assert pullback(f, XS)[0] == f(XS)


def test_infinite_ones_stay_lazy():
    found = grad(lambda x: next(itertools.count(x, x)) + next(itertools.repeat(x)))(2.0)
    assert found == 2.0


@pytest.mark.parametrize("limits", [(-1,), (0, -2), (1, 2, 0), ("a",)])
def test_errors_of_limits(limits):
    with pytest.raises((ValueError, TypeError)) as plain:
        itertools.islice(XS, *limits)
    with pytest.raises(plain.type):
        gradient(lambda xs: sum(itertools.islice(xs, *limits)), XS)


def test_ranges_stay_compiled():
    def f(xs):
        total = 0.0
        for i, j in itertools.combinations(range(len(xs)), 2):
            total += (xs[i] - xs[j]) ** 2
        return total

    check_gradient(f, XS)
    assert type(pullback(lambda x: itertools.product(range(2), repeat=2), 1.0)[0]) is (
        itertools.product
    )


@pytest.mark.parametrize(
    "f",
    [
        lambda x: sum(x.flat),
        lambda x: sum([a * a for a in x.flat]),
        lambda x: sum(a * a for a in x.flat),
        lambda x: max(x.flat),
        lambda x: list(x.flat)[1] * x[0],
    ],
)
def test_the_entries_of_an_array_one_by_one(f):
    check_gradient(f, np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.frombuffer(x.tobytes())[0] * 2,
        lambda x: struct.unpack("d", x[:1].tobytes())[0] * 2,
        lambda x: next(np.broadcast(x, 1.0))[0],
    ],
)
def test_numbers_that_come_back_out_of_sight_are_refused(f):
    with pytest.raises(NoRuleError):
        gradient(f, np.array([1.0, 2.0, 3.0]))


def written_after_it_was_made(x):
    xs = [1.0, 2.0]
    items = itertools.chain(xs, [3.0])
    next(items)
    xs[1] = x[0]
    return next(items) * 2


def written_into_what_it_gives(x):
    rows = [[1.0], [2.0]]
    pairs = itertools.product(rows, [1])
    rows[0][0] = x[0]
    return next(pairs)[0][0] * 2


@pytest.mark.parametrize(
    "f",
    [
        lambda x: sum(k * sum(g) for k, g in itertools.groupby(x, key=lambda v: int(v > 1))),
        lambda x: sum(x[i] * x[j] for i, j in itertools.product(range(2), range(3))),
        lambda x: sum(x[i] * x[j] for i, j in itertools.combinations(range(3), 2)),
        lambda x: sum(a * b * b for a, b in itertools.permutations(x, 2)),
        lambda x: sum(v for v, _ in zip(itertools.count(x[0], x[1]), range(4))),
        lambda x: sum(a * b for a, b in zip(*itertools.tee(x), strict=True)),
        lambda x: [x[i] for i in np.ndindex(3)][2] * next(x[i] for i in np.ndindex()).sum(),
        written_after_it_was_made,
        written_into_what_it_gives,
    ],
)
def test_forward_mode(f):
    x, v, h = np.array([0.5, 1.5, 2.5]), np.array([1.0, 2.0, -1.0]), 1e-6
    slope = (f(x + h * v) - f(x - h * v)) / (2 * h)
    assert jvp(f, (x,), (v,))[1] == pytest.approx(slope, rel=1e-6)
    assert grad(f)(x) @ v == pytest.approx(slope, rel=1e-6)


class Pairs:
    def __init__(self, x):
        self.x = x
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 2:
            raise StopIteration
        self.n += 1
        return [self.x, self.n * self.x]


class Able:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return iter([[self.x, self.x], {0: self.x, 1: 2 * self.x}])


def product(p, q):
    return p[0] * p[1] * q[0] * q[1]


def by_unpacking(items):
    p, q = items
    return product(p, q)


TAKEN = {
    "star": lambda items: product(*items),
    "unpacked": by_unpacking,
    "tuple": lambda items: product(*tuple(items)),
    "tuple.__new__": lambda items: (lambda t: product(t[0], t[1]))(tuple.__new__(tuple, items)),
    "list": lambda items: product(*list(items)),
}
MADE = {
    "map": lambda x: map(lambda k: [x, k * x], (1, 2)),
    "map to dicts": lambda x: map(lambda k: {0: x, 1: k * x}, (1, 2)),
    "filter": lambda x: filter(None, map(lambda k: [x, k * x], (1, 2))),
    "generator": lambda x: ([x, k * x] for k in (1, 2)),
    "iterator": Pairs,
    "iterable": Able,
}


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("made", MADE)
def test_lists_that_an_iterator_makes_keep_their_cotangents(made, taken):
    def f(x):
        return TAKEN[taken](MADE[made](x))

    assert gradient(f, 3.0) == (8 * 27.0,)
    assert grad(f)(3.0) == 8 * 27.0
    assert jvp(f, (3.0,), (1.0,)) == (162.0, 216.0)
    assert hvp(f, 3.0, 1.0) == 24 * 9.0


OF_CONSTANTS = {
    "product": lambda: itertools.product(range(3), repeat=2),
    "chain": lambda: zip(itertools.chain(range(3), range(2)), range(5), strict=True),
    "combinations": lambda: itertools.combinations(range(4), 2),
    "permutations": lambda: itertools.permutations(range(3), 2),
    "pairwise": lambda: itertools.pairwise(range(4)),
    "zip_longest": lambda: itertools.zip_longest(range(3), range(2), fillvalue=7),
    "islice": lambda: enumerate(itertools.islice(range(10), 2, 5)),
    "accumulate": lambda: enumerate(itertools.accumulate(range(5))),
    "cycle": lambda: zip(range(3), itertools.cycle(range(2))),
    "tee": lambda: zip(*itertools.tee(range(3)), strict=True),
    "ndindex": lambda: np.ndindex(2, 3),
    "memoryview": lambda: enumerate(memoryview(b"ab")),
}


@pytest.mark.parametrize("name", OF_CONSTANTS)
def test_whole_numbers_that_iterators_give_are_constants(name, path):
    def loop(x):
        y = 0.0
        for i, j in OF_CONSTANTS[name]():
            y = y + x * i * j + x**3 * j
        return y

    def generator(x):
        return sum(x * i * j + x**3 * j for i, j in OF_CONSTANTS[name]())

    pairs = [*OF_CONSTANTS[name]()]
    slope = sum(i * j + 12 * j for i, j in pairs)
    for f in (loop, generator):
        assert gradient(f, 2.0) == (pytest.approx(slope),)
        assert pullback(f, 2.0)[1](1.0) == (pytest.approx(slope),)
        assert jvp(f, (2.0,), (1.0,))[1] == pytest.approx(slope)
        assert hvp(f, 2.0, 1.0) == pytest.approx(sum(12 * j for _, j in pairs))


def test_numbers_of_iterators_of_unknown_origin_are_refused():
    def f(x):
        return sum(x * i for i in itertools.compress(array.array("d", [x, 2.0]), [1, 1]))

    with pytest.raises(NoRuleError):
        gradient(f, 2.0)


def own(x):
    """A generator of the user's, which is no iterator of itertools."""
    yield x
    yield x * x


ITERATORS = {
    "accumulate": lambda x: itertools.accumulate([x, x]),
    "chain": lambda x: itertools.chain([x], [x]),
    "from_iterable": lambda x: itertools.chain.from_iterable([[x], [x]]),
    "cycle": lambda x: itertools.cycle([x]),
    "islice": lambda x: itertools.islice(own(x), 2),
    "repeat": lambda x: itertools.repeat(x),
    "starmap": lambda x: itertools.starmap(lambda a, b: a * b, [(x, x), (x, 1)]),
    "takewhile": lambda x: itertools.takewhile(lambda v: True, own(x)),
    "tee": lambda x: itertools.tee(own(x))[0],
    "generator": own,
    "map": lambda x: map(lambda v: v * x, own(x)),
}


def attributes_there(make, x):
    it = make(x)
    names = ["send", "throw", "close", "gi_frame", "__name__", "__next__", "__iter__"]
    return x, [hasattr(it, name) for name in names], getattr(it, "close", None) is None


def class_asked(make, x):
    return x, make(x).__class__, type(make(x))


def sent(make, x):
    it = make(x)
    next(it)
    try:
        return it.send(2.0) * x
    except AttributeError as e:
        return 7.0 * x, str(e)


def delegated(make, x, act):
    def outer():
        try:
            yield from make(x)
        except ValueError:
            yield 3 * x

    run = outer()
    first = next(run)
    try:
        return first * act(run)
    except AttributeError as e:
        return 7.0 * x, str(e)


ASKED = {
    "attributes": attributes_there,
    "class": class_asked,
    "sent": sent,
    "next of the one delegated to": lambda make, x: delegated(make, x, next),
    "sent to the one delegated to": lambda make, x: delegated(make, x, lambda g: g.send(2.0)),
    "thrown to the one delegated to": lambda make, x: delegated(
        make, x, lambda g: g.throw(ValueError("thrown"))
    ),
    "closed with the one delegated to": lambda make, x: delegated(
        make, x, lambda g: 2.0 if g.close() is None else 3.0
    ),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", ITERATORS)
def test_they_have_the_attributes_that_python_gives_them(name, asked):
    def f(x):
        return ASKED[asked](ITERATORS[name], x)

    def first(x):
        y = f(x)
        return y[0] if type(y) is tuple else y

    x, h = 1.5, 1e-6
    slope = (first(x + h) - first(x - h)) / (2 * h)
    assert pullback(f, x)[0] == f(x)
    assert jvp(f, (x,), (1.0,))[0] == f(x)
    assert grad(first)(x) == pytest.approx(slope)
    assert jvp(first, (x,), (1.0,))[1] == pytest.approx(slope)
    assert hvp(lambda v: first(v[0]), np.array([x]), np.array([1.0])).shape == (1,)
