"""Pullbacks as programs: the same as those of the general path, however often they are called."""

import math

import numpy as np
import pytest

import morula
from morula.core import compiled, interface, pulled

X = np.array([0.3, 1.2, -0.7])
A = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])


def loop(x):
    t = x
    for _ in range(5):
        t = math.sin(t) * x + t * 0.5
    return t


def unchanged(x):
    return x


def shifted(x):
    return x + 1


def entry_by_entry(x):
    return np.tanh(x * x) + x


def powers(x):
    return np.exp(x)


def part_of(x):
    return x[1:]


def of_two(x, y):
    return np.exp(x) @ y


def product(a, b):
    return a @ b


def of_a_global(x):
    return A @ np.sin(x)


def scaled(x, n):
    return x * n


def branching(x):
    return x * x if x > 1 else math.sin(x)


def in_a_loop(x):
    for _ in range(3):
        x = np.sin(x) * x
    return x


def without_the_argument(x):
    return np.ones(2)


def selected_of_roots(x):
    return np.maximum(np.sqrt(x - np.min(X)).reshape(3, 1).ravel(), 1.0)


def large_chain(x):
    y = np.sin(x) * x
    return np.exp(y * 2.0) * y


COMPILED = [
    (loop, (0.7,)),
    (unchanged, (X,)),
    (unchanged, (1.5,)),
    (shifted, (X,)),
    (shifted, (1.5,)),
    (entry_by_entry, (X,)),
    (entry_by_entry, (X.astype(np.float32),)),
    (powers, (X,)),
    (powers, (X * 1j,)),
    (part_of, (X,)),
    (of_two, (X, X + 1)),
    (product, (A, A.T)),
    (of_a_global, (X,)),
    (scaled, (1.5, 3)),
    (scaled, (X, 3)),
    (scaled, (X, "2" == "2")),
    (branching, (0.5,)),
    (branching, (1.5,)),
    (in_a_loop, (X,)),
    (without_the_argument, (X,)),
    (selected_of_roots, (X,)),
    (large_chain, (X,)),
]


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch):
    compiled.forget_programs()
    compiled._families.clear()
    monkeypatch.setattr(pulled.Pullbacks, "was_asked_for", True)
    yield
    compiled._families.clear()


def programs():
    """All programs for pullbacks that there are."""
    families = [f for f in compiled._families.values() if type(f) is pulled.Pullbacks]
    return [p for f in families for p in f.programs.values()]


def cotangent_of(y):
    """Some cotangent of the value."""
    return np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype) if np.ndim(y) else 0.7


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("f", "args"), COMPILED)
def test_what_is_compiled(f, args):
    y, back = morula.pullback(f, *args)
    assert [p.code is not None for p in programs()] == [True]
    expected, general = interface.general_pullback(f, *args)
    np.testing.assert_array_equal(y, expected)
    assert type(y) is type(expected)
    ȳ = cotangent_of(y)
    before = np.copy(ȳ)
    for c in (ȳ, None, ȳ, 2 * ȳ):
        found, wanted = back(c), general(c)
        assert list(map(type, found)) == list(map(type, wanted))
        for a, b in zip(found, wanted, strict=True):
            if a is not None:
                assert np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-15)
    np.testing.assert_array_equal(ȳ, before)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("f", "args"), COMPILED)
def test_gradients_share_no_memory(f, args):
    y, back = morula.pullback(f, *args)
    ȳ = cotangent_of(y)
    first, second = back(ȳ), back(ȳ)
    others = [x for x in (y, ȳ, *second, *args) if isinstance(x, np.ndarray)]
    for x̄ in first:
        if isinstance(x̄, np.ndarray):
            assert not any(np.shares_memory(x̄, x) for x in others)


def written_to(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * i
    return y


def of_lists(x):
    return [x, x * x]


def with_a_log(x):
    LOG.append(x)
    return x * x


def stored(x):
    STORE["x"] = x * x
    return x * STORE["x"]


def with_an_exception(x):
    try:
        return x * {"a": x}["b"]
    except KeyError:
        return x * x * x


LOG: list[float] = []
STORE: dict[str, float] = {}


@pytest.mark.parametrize(
    ("f", "x", "ȳ", "x̄"),
    [
        (written_to, X, np.ones(3), [0.0, 1.0, 2.0]),
        (of_lists, 1.5, [1.0, 1.0], 4.0),
        (with_a_log, 1.5, 1.0, 3.0),
        (stored, 2.0, 1.0, 12.0),
        (with_an_exception, 2.0, 1.0, 12.0),
    ],
)
def test_what_changes_something_is_left_to_the_general_path(f, x, ȳ, x̄):
    for n in (1, 2):
        LOG.clear()
        _, back = morula.pullback(f, x)
        assert [p.code for p in programs()] == [None]
        assert LOG == ([x] if f is with_a_log else []), n
        for _ in range(2):
            np.testing.assert_allclose(back(ȳ)[0], x̄)


def test_the_first_call_compiles_nothing(monkeypatch):
    monkeypatch.setattr(pulled.Pullbacks, "was_asked_for", False)
    generally = morula.pullback(loop, 0.7)[1](1.0)
    assert generally == pytest.approx(morula.gradient(loop, 0.7), rel=1e-14)
    assert not programs()
    assert morula.pullback(loop, 0.7)[1](1.0) == generally
    assert len(programs()) == 1


def test_what_changes_before_the_reverse_pass_counts_as_it_was():
    def f(x):
        return x * x * 2.0

    x = X.copy()
    y, back = morula.pullback(f, x)
    assert programs()[0].code is not None
    x[:] = 100.0
    y[:] = 100.0
    np.testing.assert_allclose(back(np.ones(3))[0], 4.0 * X)
    np.testing.assert_array_equal(x, 100.0)


def test_what_was_captured_counts_as_it_was():
    w = X.copy()

    def f(x):
        return x * w

    _, back = morula.pullback(f, 2.0 * X)
    assert programs()[0].code is not None
    w[:] = 100.0
    np.testing.assert_allclose(back(np.ones(3))[0], X)


def test_cotangents_of_another_form_are_errors():
    _, back = morula.pullback(entry_by_entry, X)
    with pytest.raises(ValueError, match="shape"):
        back(np.ones(4))
    np.testing.assert_array_equal(back([1, 0, 0])[0], back(np.array([1.0, 0.0, 0.0]))[0])


def test_pullbacks_in_what_is_differentiated():
    def slope(x):
        return morula.pullback(loop, x)[1](1.0)[0]

    for x in (0.7, 0.7):
        bend = (slope(x + 1e-5) - slope(x - 1e-5)) / 2e-5
        assert morula.grad(slope)(x) == pytest.approx(bend, rel=1e-6)
        assert morula.jvp(slope, (x,), (1.0,))[1] == pytest.approx(bend, rel=1e-6)
        assert morula.grad(morula.grad(loop))(x) == pytest.approx(bend, rel=1e-6)


def test_a_rule_that_is_registered_later():
    class Scale:
        def __call__(self, x):
            return 2.0 * x

    scale = Scale()

    def f(x):
        return scale(x) * x

    assert morula.pullback(f, 3.0)[1](1.0) == (12.0,)

    @morula.rrule(Scale.__call__)
    def _(self: Scale, x: float):
        return 2.0 * x, lambda ȳ: (morula.NoTangent(), 5.0 * ȳ)

    assert morula.pullback(f, 3.0)[1](1.0) == (21.0,)
