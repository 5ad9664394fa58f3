"""Gradient functions in use: caches, guards, types, threads, long loops, exceptions, interface."""

import functools
import gc
import inspect
import io
import math
import pickle
import sys
import threading
import traceback
import tracemalloc
import types

import numpy as np
import pytest

import morula
from morula import (
    DifferentiationError,
    grad,
    gradient,
    pullback,
    rrule,
    value_and_grad,
    withgradient,
)
from morula.core import compiled, interface

pytestmark = pytest.mark.usefixtures("path")


def compilations(monkeypatch):
    """A list that grows by one at each transformation of a function of this file, on either path.

    Those of other tests do not count: what these have left is closed when it is collected.
    """
    done = []
    compile_gradient = compiled.Gradient.compile
    monkeypatch.setattr(morula.core.general, "_forward_codes", {})
    for module, name in ((compiled.Gradient, "compile"), (morula.core.general, "transform")):
        original = getattr(module, name)

        def counted(*args, original=original):
            code = args[0].fn.__code__ if original is compile_gradient else args[0]
            done.extend([args] if code.co_filename == __file__ else [])
            return original(*args)

        monkeypatch.setattr(module, name, counted)
    return done


# -- one transformation per code object and types --------------------------------------------------


def test_ten_thousand_lambdas_cost_one_transformation(monkeypatch):
    k = 1.0
    done = compilations(monkeypatch)
    for i in range(10_000):
        k = float(i)
        assert gradient(lambda x: k * x * x, 2.0) == (4 * k,)
    assert len(done) == 1


@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_a_thousand_gradient_functions_cost_one_transformation(monkeypatch, transform):
    done = compilations(monkeypatch)
    for i in range(1000):
        k = float(i)
        transform(lambda x: k * x * x)(2.0)
    assert len(done) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda f: gradient(f, 2.0),
        lambda f: withgradient(f, 2.0),
        lambda f: grad(f)(2.0),
        lambda f: value_and_grad(f)(2.0),
        lambda f: pullback(f, 2.0)[1](1.0),
    ],
    ids=["gradient", "withgradient", "grad", "value_and_grad", "pullback"],
)
@pytest.mark.usefixtures("quick_collections")
def test_fresh_lambdas_cost_no_memory(use):
    def run(n):
        for i in range(n):
            k = float(i)
            use(lambda x, c=k: (lambda y: y * k)(x) * c)
            if i % 20 == 0:  # tables of functions that it has yet to find grow with their number
                gc.collect()

    run(100)
    gc.collect()
    tracemalloc.start()
    try:
        run(
            1000
        )  # the table of the functions that the collector has yet to find is as large as it gets
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        run(400)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 4_000


def test_a_large_captured_array_is_not_kept_alive():
    class Kept(np.ndarray):
        pass

    import weakref

    def use(n):
        a = np.ones(n).view(Kept)
        gradient(lambda x: x * a.size, 2.0)
        gradient(lambda x: float(np.asarray(a).sum()) * x, 2.0)
        return weakref.ref(a)

    references = [use(n) for n in (3, 4, 5)]
    gc.collect()
    assert [r() for r in references] == [None] * 3


def test_classes_that_are_made_again_and_again_are_freed(monkeypatch, path):
    import weakref

    from morula.rules.shadows import is_plain_class

    monkeypatch.setattr(compiled, "most_kept", 4)
    monkeypatch.setattr(compiled.Family, "most_programs", 4)

    def use(n):
        class Line:
            def __init__(self, slope):
                self.slope = slope

            def at(self, x):
                return self.slope * x

        def f(line, x):
            return line.at(x) ** n

        assert gradient(f, Line(2.0), 1.0)[1] == n * 2.0**n
        assert value_and_grad(f, 1)(Line(2.0), 1.0)[1] == n * 2.0**n
        return weakref.ref(Line)

    if path == "general":
        return
    references = [use(n % 3) for n in range(60)]
    is_plain_class.cache_clear()
    gc.collect()
    assert sum([r() is not None for r in references]) < 30


def test_a_new_gradient_function_does_not_begin_with_what_did_not_hold(path):
    if path == "general":
        return

    def make():
        return lambda x: np.array([x, np.sqrt(x)])[0]

    with pytest.warns(RuntimeWarning):  # of the first attempt: a slope that is infinite times zero
        assert gradient(make(), 0.0) == (1.0,)
    with np.errstate(invalid="raise"):
        assert gradient(make(), 0.0) == (1.0,)


def test_functions_of_one_code_with_different_defaults_and_captures():
    def make(k, d):
        def f(x, y=d):
            return k * x * y

        return f

    found = [gradient(make(k, d), 2.0)[0] for k in (1.0, 3.0) for d in (5.0, 7.0)]
    assert found == [5.0, 7.0, 15.0, 21.0]
    found = [grad(make(k, d))(2.0) for k in (1, 3.0, np.float64(2)) for d in (5.0, 7)]
    assert found == [5.0, 7.0, 15.0, 21.0, 10.0, 14.0]


def test_one_code_captures_different_functions():
    def make(g):
        return lambda x: g(x) * x

    for _ in range(2):
        for g, expected in [
            (math.sin, math.sin(0.5) + 0.5 * math.cos(0.5)),
            (math.cos, math.cos(0.5) - 0.5 * math.sin(0.5)),
            (lambda t: t * t, 3 * 0.25),
            (lambda t: t, 1.0),
            (float, 1.0),
        ]:
            assert gradient(make(g), 0.5)[0] == pytest.approx(expected, rel=1e-14)
            assert grad(make(g))(0.5) == pytest.approx(expected, rel=1e-14)


def test_more_captured_functions_than_programs_are_kept():
    def make(g):
        return lambda x: g(x)

    for i in range(100):
        assert gradient(make(lambda t, i=i: t * i), 2.0) == (float(i),)

    namespaces = [{} for _ in range(60)]
    for i, namespace in enumerate(namespaces):
        exec(f"def g(t): return t * {i}", namespace)
        assert gradient(make(namespace["g"]), 2.0) == (float(i),)


def test_code_of_many_functions_with_the_same_source():
    for i in range(25):
        namespace = {"k": i}
        exec("def f(x):\n    return x * k", namespace)
        assert gradient(namespace["f"], 2.0) == (float(i),)
        namespace.clear()  # the function goes, and its code


# -- the world changes between calls ---------------------------------------------------------------

scale = 2.0


def helper(x):
    return x * x


def uses_globals(x):
    return helper(x) * scale


def test_a_global_number_rebound_between_calls(monkeypatch):
    g = grad(uses_globals)
    assert g(3.0) == 12.0
    monkeypatch.setitem(globals(), "scale", 5.0)
    assert g(3.0) == 30.0
    monkeypatch.setitem(globals(), "scale", 5)
    assert g(3.0) == 30.0
    monkeypatch.setitem(globals(), "scale", np.float32(4))
    assert g(3.0) == 24.0
    assert gradient(uses_globals, 3.0) == (24.0,)


def test_a_global_function_rebound_between_calls(monkeypatch):
    g = grad(uses_globals)
    assert g(3.0) == 12.0
    monkeypatch.setitem(globals(), "helper", lambda x: x**3)
    assert g(3.0) == 54.0
    monkeypatch.setitem(globals(), "helper", math.sqrt)
    assert g(4.0) == 0.5
    monkeypatch.setitem(globals(), "helper", abs)
    assert g(-4.0) == -2.0
    monkeypatch.undo()
    assert g(3.0) == 12.0


def test_a_global_rebound_many_times(monkeypatch):
    g = grad(uses_globals)
    for i in range(30):
        monkeypatch.setitem(globals(), "helper", lambda x, i=i: x * i)
        assert g(3.0) == 2.0 * i


def test_a_builtin_shadowed_between_calls(monkeypatch):
    def f(x):
        return abs(x) * 2

    g = grad(f)
    assert g(-3.0) == -2.0
    monkeypatch.setitem(globals(), "abs", lambda x: x * x)
    assert g(-3.0) == -12.0
    monkeypatch.undo()
    assert g(-3.0) == -2.0


def test_a_module_attribute_rebound_between_calls(monkeypatch):
    module = types.ModuleType("module")
    module.k = 2.0
    module.g = lambda x: x * module.k
    inner = module.inner = types.ModuleType("inner")
    inner.h = math.sin

    def f(x):
        return module.g(x) + inner.h(x) + module.inner.h(x) * module.k

    derivative = grad(f)
    c = math.cos(0.5)
    assert derivative(0.5) == pytest.approx(2 + 3 * c)
    module.k = 3.0
    assert derivative(0.5) == pytest.approx(3 + 4 * c)
    inner.h = lambda x: x
    assert derivative(0.5) == pytest.approx(3 + 4)
    module.g = lambda x: x * x
    assert derivative(0.5) == pytest.approx(1 + 4)
    module.inner = types.SimpleNamespace(h=lambda x: 2 * x)
    assert derivative(0.5) == pytest.approx(1 + 1 + 6)


def test_math_patched_between_calls(monkeypatch):
    def f(x):
        return math.sin(x) + np.cos(x)

    g = grad(f)
    assert g(0.5) == pytest.approx(math.cos(0.5) - math.sin(0.5))
    monkeypatch.setattr(math, "sin", lambda x: 5 * x)
    assert g(0.5) == pytest.approx(5 - np.sin(0.5))
    monkeypatch.setattr(np, "cos", lambda x: 7 * x)
    assert g(0.5) == pytest.approx(12)
    monkeypatch.undo()
    assert g(0.5) == pytest.approx(math.cos(0.5) - math.sin(0.5))


def test_the_globals_of_a_callee_rebound_between_calls():
    namespace = {}
    exec("k = 2.0\ndef inner(x): return x * k\ndef outer(x): return inner(x) + k", namespace)
    outer = namespace["outer"]
    g = grad(lambda x: outer(x))
    assert g(3.0) == 2.0
    namespace["k"] = 4.0
    assert g(3.0) == 4.0
    exec("def inner(x): return x * x * k", namespace)
    assert g(3.0) == 24.0
    exec("def outer(x): return inner(x) * 10", namespace)
    assert g(3.0) == 24.0  # the captured function is the old one
    assert grad(lambda x: namespace["outer"](x))(3.0) == 240.0


def test_a_captured_variable_rebound_between_calls():
    k = 2.0

    def f(x):
        return x * k  # noqa: F821 (it is deleted below)

    g = grad(f)
    assert g(3.0) == 2.0
    k = 3.0
    assert g(3.0) == 3.0
    k = np.float64(4)
    assert g(3.0) == 4.0
    k = 5
    assert g(3.0) == 5.0
    k = np.array([1.0, 2.0])
    with pytest.raises(TypeError, match="shape"):
        g(3.0)
    del k
    with pytest.raises(NameError):
        g(3.0)


def test_defaults_and_code_of_a_function_changed_between_calls():
    def f(x, k=2.0):
        return x * k

    assert gradient(f, 3.0) == (2.0,)
    assert grad(f)(3.0) == 2.0
    f.__defaults__ = (5.0,)
    assert gradient(f, 3.0) == (5.0,)
    assert grad(f)(3.0) == 5.0
    f.__code__ = (lambda x, k: x * x * k).__code__
    assert gradient(f, 3.0) == (30.0,)


def test_defaults_of_a_helper_changed_between_calls():
    def inner(x, k=2.0):
        return x * k

    g = grad(lambda x: inner(x))
    assert g(3.0) == 2.0
    inner.__defaults__ = (5.0,)
    assert g(3.0) == 5.0
    inner.__code__ = (lambda x, k=0: x * x * k).__code__
    assert g(3.0) == 30.0


def test_keyword_defaults_of_a_helper_changed_between_calls():
    def inner(x, *, k=2.0):
        return x * k

    g = grad(lambda x: inner(x))
    assert g(3.0) == 2.0
    inner.__kwdefaults__["k"] = 5.0
    assert g(3.0) == 5.0
    inner.__kwdefaults__ = {"k": 7.0}
    assert g(3.0) == 7.0


def test_a_method_replaced_between_calls():
    class Model:
        def loss(self, x):
            return x * 2

    model = Model()
    g = grad(lambda x: model.loss(x))
    assert g(3.0) == 2.0
    Model.loss = lambda self, x: x * x
    assert g(3.0) == 6.0
    model.loss = lambda x: x * 10
    assert g(3.0) == 10.0


def test_a_global_list_changed_between_calls():
    table = [1.0, 2.0]

    def f(x):
        return sum([c * x for c in table])

    assert gradient(f, 3.0) == (3.0,)
    table.append(4.0)
    assert gradient(f, 3.0) == (7.0,)
    table[:] = [5]
    assert gradient(f, 3.0) == (5.0,)


# -- rules are redefined ---------------------------------------------------------------------------


def test_a_rule_added_and_redefined_between_calls():
    def square(x):
        return x * x

    def f(x):
        return square(x) + 1.0

    g = grad(f)
    assert g(3.0) == 6.0

    @rrule(square)
    def _(x: float):
        return square(x), lambda ȳ: (100.0 * ȳ,)

    assert g(3.0) == 100.0
    assert gradient(f, 3.0) == (100.0,)
    assert pullback(f, 3.0)[1](1.0) == (100.0,)

    @rrule(square)
    def _(x: float):
        return square(x), lambda ȳ: (7.0 * ȳ,)

    assert g(3.0) == 7.0
    assert gradient(f, 3.0) == (7.0,)
    assert pullback(f, 3.0)[1](1.0) == (7.0,)

    @rrule(square)
    def _(x: np.float64):
        return square(x), lambda ȳ: (8.0 * ȳ,)

    assert g(3.0) == 7.0
    assert g(np.float64(3)) == 8.0


def test_a_rule_added_during_the_call():
    def twice(x):
        return x * 2

    def f(x):
        if not added:
            added.append(rrule(twice)(lambda x: (twice(x), lambda ȳ: (50.0 * ȳ,))))
        return twice(x)

    added = []
    first = gradient(f, 3.0)
    assert first in [(2.0,), (50.0,)]
    assert gradient(f, 3.0) == (50.0,)


def test_a_scalar_rule_for_a_helper():
    def f(x):
        return special(x) * 2

    def special(x):
        return float(str(x)) ** 2

    g = grad(f)
    g(3.0)
    morula.scalar_rule(special)(lambda y, x: 2 * x)
    assert g(3.0) == 12.0
    morula.scalar_rule(special)(lambda y, x: (3 * x,))
    assert g(3.0) == 18.0


def test_a_rule_registered_while_a_program_is_made_counts_in_it(monkeypatch, path):
    def double(x):
        return 2 * x

    compile_program = compiled.Gradient.compile
    rules = [lambda x: (2 * x, lambda ȳ: (100 * ȳ,))]

    def meanwhile(*args):
        code = compile_program(*args)
        if rules:
            rrule(double)(rules.pop())
        return code

    monkeypatch.setattr(compiled.Gradient, "compile", meanwhile)
    g = grad(lambda x: double(x) * x)
    expected = 204.0 if path == "specialised" else 8.0
    assert (g(2.0), g(2.0)) == (expected, expected)


# -- polymorphic arguments -------------------------------------------------------------------------


def polynomial(x):
    return x * x * 3 - x / 2


def test_one_gradient_function_for_numbers_of_many_types():
    from decimal import Decimal
    from fractions import Fraction

    g = grad(polynomial)
    numbers = [
        2,
        2.0,
        np.float64(2),
        np.float32(2),
        np.int64(2),
        np.longdouble(2),
        Fraction(2),
        True,
    ]
    for _ in range(2):
        for x in numbers[:-1]:
            assert g(x) == 11.5
    assert [type(g(x)) for x in numbers[:4]] == [float, float, np.float64, np.float32]
    assert type(g(Fraction(2))) is Fraction
    assert grad(lambda x: x * x)(Decimal(3)) == Decimal(6)
    assert g(np.array(2.0)) == 11.5
    assert g(np.array([2.0])).shape == (1,)
    assert g(2.0) == 11.5
    z = 1 + 2j
    assert grad(lambda z: abs(z) ** 2)(z) == pytest.approx(2 * z)
    assert grad(lambda z: abs(z) ** 2)(3.0) == 6.0


def test_one_gradient_function_for_arrays_of_more_than_forty_shapes(rng):
    def f(x):
        return np.sum(np.tanh(x) * x)

    g, vg = grad(f), value_and_grad(f)
    shapes = [(n,) for n in range(25)] + [(n, m) for n in range(1, 5) for m in range(1, 5)]
    shapes += [(1, 2, 3), (2, 1, 1), ()]
    for _ in range(2):
        for shape in shapes:
            for dtype in (float, np.float32):
                x = np.asarray(rng.standard_normal(shape), dtype)
                t = np.tanh(x)
                expected = t + x * (1 - t * t)
                for found in (g(x), vg(x)[1], gradient(f, x)[0]):
                    assert found.shape == shape
                    assert found.dtype == dtype
                    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_shapes_that_change_how_operands_broadcast(rng):
    def f(x, y):
        return (x * y).sum() + (x + y).sum()

    g = grad(f, (0, 1))
    for left in [(), (1,), (3,), (2, 1), (2, 3), (1, 3), (4, 2, 3)]:
        for right in [(), (1,), (3,), (2, 1), (2, 3), (1, 3)]:
            x, y = rng.standard_normal(left), rng.standard_normal(right)
            full = np.broadcast_shapes(left, right)
            x̄, ȳ = g(x, y)
            assert (np.shape(x̄), np.shape(ȳ)) == (left, right)
            both = np.broadcast_to(x, full), np.broadcast_to(y, full)
            np.testing.assert_allclose(np.sum(x̄), np.sum(both[1] + 1), rtol=1e-12)
            np.testing.assert_allclose(np.sum(ȳ), np.sum(both[0] + 1), rtol=1e-12)


def test_memory_layouts_and_strides(rng):
    g = grad(lambda x: (x * weights).sum())
    weights = rng.standard_normal((3, 4))
    a = rng.standard_normal((3, 4))
    for x in [a, np.asfortranarray(a), a[::-1], a[:, ::-1], np.ascontiguousarray(a.T).T]:
        np.testing.assert_array_equal(g(x), weights)
    np.testing.assert_array_equal(g(np.broadcast_to(1.0, (3, 4))), weights)
    read_only = a.copy()
    read_only.flags.writeable = False
    found = g(read_only)
    assert found.flags.writeable


def test_types_inside_of_structures_change():
    def f(p):
        return p[0] * p[1]

    g = grad(f)
    assert g((2.0, 3.0)) == (3.0, 2.0)
    assert g([2.0, 3.0]) == [3.0, 2.0]
    assert g((2, 3.0)) == (3.0, 2.0)
    assert g((2.0, 3.0, 4.0)) == (3.0, 2.0, 0.0)
    assert g((2.0, 3.0, "text")) == (3.0, 2.0, None)
    assert g({0: 2.0, 1: 3.0}) == {0: 3.0, 1: 2.0}
    assert g((2.0, 3.0, (1.0, [2.0]))) == (3.0, 2.0, (0.0, [0.0]))
    np.testing.assert_array_equal(g(np.array([2.0, 3.0])), [3.0, 2.0])
    assert g((2.0, 3.0)) == (3.0, 2.0)


def test_a_type_that_changes_within_a_loop():
    def f(x):
        s = 0
        for i in range(4):
            s = s + x * i if i % 2 else s * 2
        return s

    for x in (2.0, 2, np.float64(2), np.float32(2)):
        assert gradient(f, x) == (5.0,)
    np.testing.assert_array_equal(gradient(lambda x: f(x).sum(), np.ones(2))[0], [5.0, 5.0])


def test_subclasses_of_numbers():
    class Metres(float):
        pass

    assert gradient(lambda x: x * x, Metres(3.0))[0] == 6.0
    assert gradient(lambda x: x * x, np.float64(3.0))[0] == 6.0


# -- threads ---------------------------------------------------------------------------------------


def in_threads(n, work):
    """What `work(i)` gives in n threads that start at once."""
    barrier, results, errors = threading.Barrier(n), [None] * n, []

    def run(i):
        try:
            barrier.wait()
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    if errors:
        raise errors[0]
    return results


@pytest.fixture
def often_switching():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("often_switching")
def test_the_first_call_in_sixteen_threads_at_once():
    def f(x, n):
        items = [x]
        for i in range(n):
            items.append(items[-1] * math.sin(x))
        return sum(items)

    expected = [gradient(lambda x, n: f(x, n) + 0.0, 0.1 * i, 5)[0] for i in range(16)]
    shared = grad(f)
    found = in_threads(16, lambda i: (shared(0.1 * i, 5), gradient(f, 0.1 * i, 5)[0]))
    for pair, value in zip(found, expected, strict=True):
        assert pair == pytest.approx((value, value), rel=1e-12)


@pytest.mark.usefixtures("often_switching")
def test_threads_with_different_types_and_functions():
    def f(x):
        return (x * x).sum() if isinstance(x, np.ndarray) else x * x

    g = grad(f)
    points = [2.0, 2, np.float64(2), np.ones(3), np.ones((2, 2)), np.float32(2), 3.0, np.ones(1)]

    def work(i):
        k = float(i)
        for _ in range(20):
            x = points[i % 8]
            np.testing.assert_allclose(g(x), 2 * np.asarray(x))
            assert gradient(lambda t: t * k, 1.0) == (k,)
            namespace = {}
            exec(f"def fresh(x): return x * {i}", namespace)
            assert gradient(namespace["fresh"], 1.0) == (float(i),)

    in_threads(16, work)


@pytest.mark.usefixtures("often_switching")
def test_rules_registered_while_other_threads_differentiate():
    def square(x):
        return x * x

    def work(i):
        if i == 0:
            for _ in range(20):
                rrule(square)(lambda x: (square(x), lambda ȳ: (2 * ȳ * x,)))
            return
        g = grad(lambda x: square(x) * i)
        for _ in range(20):
            assert g(3.0) == 6.0 * i

    in_threads(4, work)


def test_mutable_values_in_threads():
    _, back = pullback(lambda l: sum([x * x for x in l]), [1.0, 2.0])
    found = in_threads(8, lambda i: [back(float(i)) for _ in range(50)][-1])
    assert found == [([2.0 * i, 4.0 * i],) for i in range(8)]


# -- pickle ----------------------------------------------------------------------------------------


def module_level(x, y=2.0):
    return x**2 * y


module_level_gradient = grad(module_level)


@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_gradient_functions_pickle_when_the_function_does(transform, monkeypatch):
    # The test modules have made-up names under --import-mode=importlib.
    monkeypatch.setitem(
        sys.modules, __name__, sys.modules.get(__name__) or types.ModuleType(__name__)
    )
    monkeypatch.setattr(sys.modules[__name__], "module_level", module_level, raising=False)
    g = transform(module_level)
    expected = g(3.0)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(g, protocol))
        assert again(3.0) == expected
        assert again(3.0, 5.0) == g(3.0, 5.0)
    assert pickle.loads(pickle.dumps(transform(math.sin)))(0.0) == transform(math.sin)(0.0)
    twice = grad(transform(module_level)) if transform is grad else transform(grad(module_level))
    assert pickle.loads(pickle.dumps(twice))(3.0) == twice(3.0)
    assert not hasattr(sys.modules[twice.__module__], "__file__")
    tuples = transform(module_level, argnums=(0, 1))
    assert pickle.loads(pickle.dumps(tuples))(3.0, 2.0) == tuples(3.0, 2.0)


def test_gradients_pickle():
    found = gradient(lambda p: p["a"][0] ** 2, {"a": [2.0], "b": (1.0,)})
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_after_the_first_call():
    import multiprocessing

    gradient(module_level, 3.0)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(False)

    def child():
        sender.send((gradient(module_level, 4.0), gradient(lambda x: x * x, 5.0)))

    process = context.Process(target=child)
    process.start()
    assert receiver.poll(60)
    assert receiver.recv() == ((16.0,), (10.0,))
    process.join(60)


# -- long loops and deep recursion -----------------------------------------------------------------


def power(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def accumulated(x, n):
    s = 0.0
    for i in range(n):
        if i % 3:
            s += math.sin(x) / (i + 1)
        else:
            s = s * 0.5
    return s


def appended(x, n):
    items = []
    for i in range(n):
        items.append(x * i)
    return sum(items)


def nested(x, n):
    s = x
    for i in range(n // 100):
        for j in range(100):
            s = s + x
    return s


def through_a_closure(x, n):
    total = 0.0

    def add(v):
        nonlocal total
        total += v

    for i in range(n):
        add(x)
    return total


@pytest.mark.parametrize("n", [1_000, 100_000])
def test_loops_of_many_iterations(n, path):
    if path == "general":
        n //= 20
    assert gradient(power, 1.0, n)[0] == n
    assert gradient(nested, 1.0, n)[0] == n // 100 * 100 + 1
    assert gradient(appended, 1.0, n)[0] == n * (n - 1) / 2
    h = 1e-6
    slope = (accumulated(0.3 + h, n) - accumulated(0.3 - h, n)) / (2 * h)
    assert gradient(accumulated, 0.3, n)[0] == pytest.approx(slope, rel=1e-6)
    assert gradient(through_a_closure, 1.0, n)[0] == n


def test_a_million_iterations(path):
    n = 1_000_000
    if path == "specialised":
        assert gradient(power, 1.0, n)[0] == n
    n //= 50  # `pullback` goes by the general path
    _, back = pullback(power, 1.0, n)
    assert back(1.0)[0] == n
    del back  # frees the tape


def test_recursion_as_deep_as_python_allows():
    def recursive(n, x):
        return x if n == 0 else recursive(n - 1, x) * 1.0 + x

    for n in (0, 1, 10, 100):
        assert gradient(recursive, n, 2.0)[1] == n + 1.0
    with pytest.raises(RecursionError):
        gradient(recursive, 10**6, 2.0)
    assert gradient(recursive, 10, 2.0)[1] == 11.0


def test_mutual_recursion():
    def even(n, x):
        return x if n == 0 else odd(n - 1, x) * x

    def odd(n, x):
        return 2 * x if n == 0 else even(n - 1, x) + x

    def by_hand(x):
        return ((x + x) * x + x) * x  # even(4)

    h = 1e-6
    slope = (by_hand(1.5 + h) - by_hand(1.5 - h)) / (2 * h)
    assert even(4, 1.5) == by_hand(1.5)
    assert gradient(even, 4, 1.5)[1] == pytest.approx(slope, rel=1e-8)


def test_recursion_over_a_tree():
    def total(tree, k):
        if isinstance(tree, tuple):
            return k * sum([total(t, k) for t in tree])
        return tree

    tree = (1.0, (2.0, (3.0, 4.0)), 5.0)
    leaves, slope = gradient(total, tree, 2.0)
    assert leaves == (2.0, (4.0, (8.0, 8.0)), 2.0)
    assert slope == 6 + 2 * 2 * 2 + 3 * 4 * 7


# -- exceptions ------------------------------------------------------------------------------------


class Refused(Exception):
    def __init__(self, x, reason):
        super().__init__(x, reason)
        self.x = x


def check_positive(x):
    if x < 0:
        raise Refused(x, "negative")  # the line that raises
    return math.sqrt(x)


def calls_check(x):
    y = x - 1.0
    return check_positive(y) * y  # the line that calls


def lines_of(error):
    return [
        (frame.name, frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == __file__
    ]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: gradient(calls_check, x),
        lambda x: withgradient(calls_check, x),
        lambda x: grad(calls_check)(x),
        lambda x: pullback(calls_check, x),
        lambda x: gradient(lambda t: calls_check(t) * 2, x),
    ],
    ids=["gradient", "withgradient", "grad", "pullback", "nested"],
)
def test_exceptions_of_the_user_keep_type_and_lines(use):
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            use(-3.0)
        assert caught.type is Refused
        assert caught.value.x == -4.0
        found = lines_of(caught.value)
        assert any(line.endswith("# the line that raises") for _, line in found)
        assert any(line.endswith("# the line that calls") for _, line in found)
        use(5.0)


def test_the_call_after_an_exception_works():
    g = grad(calls_check)
    assert g(5.0) == 3.0
    with pytest.raises(Refused):
        g(-5.0)
    assert g(5.0) == 3.0
    with pytest.raises(TypeError):
        g("text")
    assert g(5.0) == 3.0


@pytest.mark.parametrize(
    ("f", "x", "error"),
    [
        (lambda x: 1 / (x - x), 2.0, ZeroDivisionError),
        (lambda x: math.log(x), -1.0, ValueError),
        (lambda x: [x][1], 2.0, IndexError),
        (lambda x: {"a": x}["b"], 2.0, KeyError),
        (lambda x: x.missing, 2.0, AttributeError),
        (lambda x: undefined_name, 2.0, NameError),  # noqa: F821 (it is not there)
        (lambda x: x + "text", 2.0, TypeError),
        (lambda x: math.exp(x), 1e4, OverflowError),
        (lambda x: (x, x)[0](x), 2.0, TypeError),
        (lambda x: module_level(x, 1, 2), 2.0, TypeError),
        (lambda x: module_level(z=x), 2.0, TypeError),
        (lambda x: next(iter([])), 2.0, StopIteration),
        (lambda x: sys.exit(3), 2.0, SystemExit),
    ],
)
def test_builtin_exceptions_are_those_of_the_plain_call(f, x, error):
    with pytest.raises(error) as plain:
        f(x)
    for _ in range(2):
        with pytest.raises(error) as caught:
            gradient(f, x)
        assert caught.type is plain.type
        assert caught.value.args == plain.value.args


# A text, for pytest writes the assertions in its modules anew, with all that it says of what fails.
POSITIVE = """
def f(x):
    assert x > 0, f"{x} is not positive"
    return x
"""


def test_a_failed_assertion():
    namespace = {}
    exec(POSITIVE, namespace)
    f = namespace["f"]
    assert gradient(f, 1.0) == (1.0,)
    with pytest.raises(AssertionError, match=r"-1\.0 is not positive"):
        gradient(f, -1.0)


def test_an_exception_in_a_pullback_shows_the_primal_line():
    def strange(x):
        return x

    @rrule(strange)
    def _(x):
        def strange_pullback(ȳ):
            raise Refused(ȳ, "in the reverse pass")

        return x, strange_pullback

    def f(x):
        return strange(x) * 2  # the primal line

    with pytest.raises(Refused) as caught:
        gradient(f, 1.0)
    assert any(line.endswith("# the primal line") for _, line in lines_of(caught.value))
    with pytest.raises(Refused):
        gradient(f, 1.0)
    assert gradient(lambda x: x * 2, 1.0) == (2.0,)


def test_an_exception_in_the_reverse_pass_leaves_no_state():
    def strange(x):
        return x

    fail = [True]

    @rrule(strange)
    def _(x):
        def strange_pullback(ȳ):
            if fail[0]:
                raise Refused(ȳ, "now")
            return (ȳ,)

        return x, strange_pullback

    def f(l):
        l2 = [l[0] * 2, l[1]]
        return strange(l2[0]) * l2[1] + l[0]

    with pytest.raises(Refused):
        gradient(f, [2.0, 3.0])
    fail[0] = False
    assert gradient(f, [2.0, 3.0]) == ([7.0, 4.0],)


def test_an_exception_inside_of_a_nested_gradient():
    def inner(y):
        return check_positive(y)

    def f(x):
        return x * gradient(inner, x)[0]

    with pytest.raises(Refused):
        gradient(f, -1.0)
    assert gradient(f, 4.0)[0] == pytest.approx(0.25 * 4**-0.5)


def test_keyboard_interrupt():
    def f(x):
        if x > 1:
            raise KeyboardInterrupt
        return x

    with pytest.raises(KeyboardInterrupt):
        gradient(f, 2.0)
    assert gradient(f, 1.0) == (1.0,)


# -- side effects ----------------------------------------------------------------------------------


def test_side_effects_happen_once_and_in_order():
    log = []

    def note(x):
        log.append(("note", x))
        return x

    def f(x):
        log.append("begin")
        y = note(x) * 2
        for i in range(3):
            log.append(i)
            y = y + note(x * i)
        if x > 1:
            log.append(f"{y:.1f}")
        return note(y)

    f(2.0)
    expected = list(log)
    for use in (gradient, withgradient, pullback, lambda f, x: grad(f)(x)):
        log.clear()
        use(f, 2.0)
        assert log == expected
    log.clear()
    _, back = pullback(f, 2.0)
    back(1.0)
    back(1.0)
    assert log == expected


def test_printing_and_writing(capsys):
    out = io.StringIO()

    def f(x):
        print("x is", x)
        out.write(f"{x!r} ")
        y = x * x
        print(y, end="!", file=out)
        return y

    assert gradient(f, 3.0) == (6.0,)
    assert capsys.readouterr().out == "x is 3.0\n"
    assert out.getvalue() == "3.0 9.0!"


def test_counters_and_random_numbers_advance_once():
    import random

    class Counter:
        calls = 0

    def f(x):
        Counter.calls += 1
        return x * random.random()

    random.seed(3)
    plain = f(2.0) / 2.0
    random.seed(3)
    assert gradient(f, 2.0)[0] == pytest.approx(plain)
    assert Counter.calls == 2
    after = random.random()
    random.seed(3)
    random.random()
    assert random.random() == after


def test_arguments_are_left_as_the_plain_call_leaves_them():
    def f(items, table):
        items.append(items[0] * 2)
        table["new"] = items[-1]
        return table["new"] * items[1]

    items, table = [2.0, 3.0], {"old": 1.0}
    found = gradient(f, items, table)
    assert items == [2.0, 3.0, 4.0]
    assert table == {"old": 1.0, "new": 4.0}
    assert found == ([6.0, 4.0], {"old": 0.0})


# -- the interface ---------------------------------------------------------------------------------


def test_keyword_arguments_are_passed_and_not_differentiated():
    def f(x, y, *, k=1.0, **rest):
        return x * y * k * rest.get("extra", 1.0)

    assert gradient(f, 2.0, 3.0) == (3.0, 2.0)
    assert gradient(f, 2.0, 3.0, k=5.0) == (15.0, 10.0)
    assert gradient(f, 2.0, 3.0, k=5.0, extra=2.0) == (30.0, 20.0)
    assert gradient(f, 2.0, y=3.0) == (3.0,)
    assert grad(f)(2.0, 3.0, k=5.0) == 15.0
    assert grad(f)(2.0, y=3.0) == 3.0
    assert value_and_grad(f, (0, 1))(2.0, 3.0, k=2.0) == (12.0, (6.0, 4.0))


def test_keyword_arguments_of_a_plain_function():
    def f(x, y=2.0, z=3.0):
        return x * y + z

    g = grad(f)
    assert g(1.0) == 2.0
    assert g(1.0, 5.0) == 5.0
    assert g(1.0, z=7.0) == 2.0
    assert g(1.0, y=7.0) == 7.0
    assert gradient(f, 1.0, y=7.0) == (7.0,)
    assert gradient(f, 1.0) == (2.0,)
    assert gradient(f, 1.0, 5.0) == (5.0, 1.0)


def test_the_differentiated_argument_has_to_be_given():
    def f(x, y=2.0):
        return x * y

    assert grad(f)(x=1.0) == 2.0
    assert grad(f, 1)(4.0, y=3.0) == 4.0
    with pytest.raises(TypeError, match="at least 2 of them"):
        grad(f, 1)(1.0)
    with pytest.raises(TypeError, match="at least 1 of them"):
        grad(f)(y=1.0)


def test_argnums():
    def f(x, y, z):
        return x * y * y * z

    args = (2.0, 3.0, 5.0)
    whole = gradient(f, *args)
    assert whole == (45.0, 60.0, 18.0)
    for i in range(-3, 3):
        assert grad(f, i)(*args) == whole[i]
        assert grad(f, argnums=(i,))(*args) == (whole[i],)
        assert value_and_grad(f, i)(*args) == (f(*args), whole[i])
    assert grad(f, (0, 2))(*args) == (45.0, 18.0)
    assert grad(f, [2, 0])(*args) == (18.0, 45.0)
    assert grad(f, (-1, -3))(*args) == (18.0, 45.0)
    assert grad(f, (1, 1))(*args) == (60.0, 60.0)
    assert grad(f, ())(*args) == ()


def test_negative_argnums_count_from_the_end_of_what_was_passed():
    def f(x, y=10.0):
        return x * x * y

    assert grad(f, -1)(3.0) == 60.0
    assert grad(f, -1)(3.0, 2.0) == 9.0

    def g(*xs):
        return xs[0] * xs[-1]

    assert grad(g, -1)(3.0, 4.0) == 3.0
    assert grad(g, -1)(3.0, 4.0, 5.0) == 3.0
    assert grad(g, 1)(3.0, 4.0, 5.0) == 0.0


@pytest.mark.parametrize("argnums", [3, -4, (0, 3), 100])
def test_wrong_argnums_count_the_arguments(argnums):
    def f(x, y, z):
        return x * y * z

    with pytest.raises(TypeError, match=r"3 positional arguments"):
        grad(f, argnums)(1.0, 2.0, 3.0)


@pytest.mark.parametrize("argnums", ["0", 0.5, None, True, (0, "x")])
def test_argnums_of_the_wrong_type(argnums):
    with pytest.raises(TypeError, match="argnums"):
        grad(lambda x: x, argnums)


def test_too_few_arguments():
    def f(x, y):
        return x * y

    with pytest.raises(TypeError, match="argument"):
        grad(f)()
    with pytest.raises(TypeError, match="argument"):
        grad(f)(1.0)
    with pytest.raises(TypeError, match="argument"):
        gradient(f, 1.0)
    with pytest.raises(TypeError, match="argument"):
        gradient(f, 1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="1 positional argument"):
        grad(lambda *xs: xs[0], 1)(1.0)
    assert grad(f)(1.0, 2.0) == 2.0


def test_auxiliary_output():
    def f(x, y):
        return x * y, {"any": "thing", "x": x}

    assert grad(f, has_aux=True)(2.0, 3.0) == (3.0, {"any": "thing", "x": 2.0})
    assert value_and_grad(f, has_aux=True)(2.0, 3.0) == (
        (6.0, {"any": "thing", "x": 2.0}),
        3.0,
    )
    assert grad(f, (0, 1), has_aux=True)(2.0, 3.0)[0] == (3.0, 2.0)
    marker = object()
    assert grad(lambda x: (x * x, marker), has_aux=True)(3.0) == (6.0, marker)
    assert grad(lambda x: (x, None), has_aux=True)(3.0) == (1.0, None)
    with pytest.raises(TypeError, match="has_aux"):
        grad(lambda x: x, has_aux=True)(3.0)
    with pytest.raises(TypeError, match="has_aux"):
        grad(lambda x: (x, x, x), has_aux=True)(3.0)


class Model:
    """A model with one parameter."""

    def __init__(self, w):
        self.w = w

    def loss(self, x):
        """The loss."""
        return self.w * x * x

    def __call__(self, x):
        return self.w * x

    @staticmethod
    def static(x):
        return x * 3

    @classmethod
    def made(cls, x):
        return cls(x).w * 4

    @grad
    def slope(self, x):
        return x


def test_methods():
    m = Model(2.0)
    assert gradient(m.loss, 3.0) == (12.0,)
    assert grad(m.loss)(3.0) == 12.0
    assert value_and_grad(m.loss)(3.0) == (18.0, 12.0)
    m.w = 5.0
    assert grad(m.loss)(3.0) == 30.0
    assert gradient(Model.static, 3.0) == (3.0,)
    assert gradient(Model.made, 3.0) == (4.0,)
    self_, x = gradient(Model.loss, m, 3.0)
    assert (self_.w, x) == (9.0, 30.0)
    assert grad(Model.loss, 1)(m, 3.0) == 30.0


def test_callables_partials_builtins_and_classes():
    assert gradient(Model(2.0), 3.0) == (2.0,)
    assert grad(Model(2.0))(3.0) == 2.0
    assert gradient(functools.partial(module_level, y=5.0), 3.0) == (30.0,)
    assert grad(functools.partial(module_level, 3.0))(5.0) == 9.0
    assert gradient(math.sin, 0.0) == (1.0,)
    assert grad(math.sin)(0.0) == 1.0
    assert value_and_grad(math.exp)(0.0) == (1.0, 1.0)
    assert gradient(abs, -2.0) == (-1.0,)
    assert gradient(np.sin, 0.0) == (1.0,)
    np.testing.assert_array_equal(gradient(np.sum, np.ones(2))[0], [1.0, 1.0])
    np.testing.assert_array_equal(gradient(np.ndarray.sum, np.ones(2))[0], [1.0, 1.0])
    np.testing.assert_array_equal(gradient(np.ones(2).dot, np.ones(2))[0], [1.0, 1.0])
    assert gradient(float, 2.0) == (1.0,)
    assert gradient(sum, [1.0, 2.0]) == ([1.0, 1.0],)
    assert gradient(max, 1.0, 2.0) == (0.0, 1.0)
    assert gradient(functools.partial(functools.partial(module_level, 3.0), 5.0)) == ()


def test_gradients_of_gradients():
    assert grad(grad(lambda x: x**3))(2.0) == 12.0
    assert grad(grad(math.sin))(0.5) == pytest.approx(-math.sin(0.5))
    assert grad(lambda x: gradient(lambda y: y**3, x)[0])(2.0) == 12.0
    assert grad(lambda x: value_and_grad(lambda y: y**3)(x)[1])(2.0) == 12.0
    assert grad(value_and_grad(lambda y: y**3), has_aux=True)(2.0) == (12.0, 12.0)


def test_a_gradient_function_as_a_decorator():
    @grad
    def f(x):
        """The cube."""
        return x**3

    assert f(2.0) == 12.0
    assert f.__name__ == "f"
    assert f.__doc__ == "The cube."


def test_metadata_survives():
    def f(x: float, y: int = 3, *, z: str = "a") -> float:
        """What f does."""
        return x * y

    f.attribute = 17

    def g(x: float, y: int = 3) -> float:
        """What g does."""
        return x * y

    g.attribute = 17
    for fn in (f, g):
        for transformed in (grad(fn), value_and_grad(fn), grad(fn, has_aux=True)):
            assert transformed.__name__ == fn.__name__
            assert transformed.__qualname__ == fn.__qualname__
            assert transformed.__module__ == fn.__module__
            assert transformed.__doc__ == fn.__doc__
            assert transformed.__wrapped__ is fn
            assert inspect.signature(transformed) == inspect.signature(fn)
            assert callable(transformed)
    assert grad(g).attribute == 17
    assert grad(Model(2.0).loss).__doc__ == "The loss."
    assert isinstance(grad(functools.partial(g, y=2)).__name__, str)


def test_making_a_gradient_function_does_not_change_the_function():
    def f(x):
        return x * x

    before = dict(f.__dict__), f.__code__
    grad(f)(2.0)
    gradient(f, 2.0)
    assert (dict(f.__dict__), f.__code__) == before
    assert f(3.0) == 9.0


OUTPUTS = {
    "vector": (lambda x: np.ones(3) * x, r"shape \(3,\)"),
    "matrix": (lambda x: np.ones((2, 2)) * x, r"shape \(2, 2\)"),
    "empty": (lambda x: np.ones(0) * x, r"shape \(0,\)"),
    "complex": (lambda x: x * 1j, "complex.*real.*imag.*abs"),
    "complex array": (lambda x: np.array([x * 1j]), "complex"),
    "None": (lambda x: None, "None.*return"),
    "no return": (lambda x: print(end=""), "None.*return"),
    "bool": (lambda x: x > 1, "comparison|truth value"),
    "numpy bool": (lambda x: np.float64(x) > 1, "comparison|truth value"),
    "string": (lambda x: f"{x}", "str"),
    "tuple": (lambda x: (x, x), "tuple"),
    "list": (lambda x: [x], "list"),
    "dict": (lambda x: {"a": x}, "dict"),
}


@pytest.mark.parametrize(("f", "message"), OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_that_are_not_one_real_number(f, message):
    for use in (gradient, withgradient, lambda f, x: grad(f)(x), lambda f, x: value_and_grad(f)(x)):
        for _ in range(2):
            with pytest.raises(TypeError, match=f"(?s){message}") as caught:
                use(f, 2.0)
            assert isinstance(caught.value, DifferentiationError)


def test_an_output_that_is_not_a_number_for_some_arguments_only():
    def f(x):
        return x * 2 if x > 0 else None

    g = grad(f)
    assert g(1.0) == 2.0
    with pytest.raises(TypeError, match="None"):
        g(-1.0)
    assert g(1.0) == 2.0


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_outputs_of_size_one_are_accepted(shape):
    def f(x):
        return (x * x).reshape(shape)

    found = gradient(f, np.array([3.0]))[0]
    np.testing.assert_array_equal(found, [6.0])


def test_pullback_accepts_any_output():
    y, back = pullback(lambda x: x > 1, 2.0)
    assert y is True
    assert back(True) == (0.0,)
    y, back = pullback(lambda x: (x, {"a": x * x}, "text"), 3.0)
    assert y == (3.0, {"a": 9.0}, "text")
    assert back((1.0, {"a": 1.0}, None)) == (7.0,)
    y, back = pullback(lambda z: z * z, 1 + 1j)
    assert back(1.0 + 0j)[0] == pytest.approx(2 * (1 - 1j))


def test_generators_and_coroutines_are_refused():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    async def agen(x):
        yield x

    for f in (generator, coroutine, agen):
        with pytest.raises(TypeError) as caught:
            gradient(f, 1.0)
        text = str(caught.value)
        assert "generator" in text or "coroutine" in text
        assert isinstance(caught.value, DifferentiationError)


def test_not_callable():
    for thing in (3, "text", None, [1]):
        with pytest.raises(TypeError):
            gradient(thing, 1.0)
        with pytest.raises(TypeError):
            grad(thing)(1.0)


def test_arguments_without_a_tangent_space():
    def f(x, name, flag, nothing, module, function):
        return x * len(name) if flag and nothing is None else x

    args = (2.0, "abc", True, None, math, len)
    assert gradient(f, *args)[:5] == (3.0, None, None, None, None)
    assert grad(f, 1)(*args) is None
    assert gradient(lambda s, x: x, "text", 2.0) == (None, 1.0)
    assert gradient(lambda p: p["x"], {"x": 2.0, "name": "n", "no": None}) == (
        {"x": 1.0, "name": None, "no": None},
    )
    with pytest.raises(TypeError):
        gradient(lambda s: s, "text")


def test_unused_arguments_get_zeros():
    a = np.ones((2, 3), np.float32)
    found = gradient(lambda x, y, z, t: x, 2.0, 3, a, (1.0, [2.0, {"k": 3.0}]))
    assert found[:2] == (1.0, 0.0)
    assert [type(x) for x in found[:2]] == [float, float]
    assert found[2].dtype == np.float32
    np.testing.assert_array_equal(found[2], np.zeros((2, 3)))
    assert found[2].flags.writeable
    assert found[3] == (0.0, [0.0, {"k": 0.0}])
    assert gradient(lambda x: 3.0, 2.0) == (0.0,)
    assert gradient(lambda x: 3, 2.0) == (0.0,)
    assert gradient(lambda z: 3.0, 1j) == (0j,)
    found = gradient(lambda x: x, np.float32(2))[0]
    assert type(found) is np.float32


def test_gradient_of_nothing():
    assert gradient(lambda: 3.0) == ()
    assert withgradient(lambda: 3.0) == (3.0, ())
    assert pullback(lambda: 3.0)[1](1.0) == ()


def test_minimisers_of_scipy():
    from scipy.optimize import minimize, rosen

    def f(x):
        return sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x0 = np.array([-1.2, 1.0, 0.5])
    assert f(x0) == pytest.approx(rosen(x0))
    for method in ("BFGS", "L-BFGS-B", "SLSQP"):
        found = minimize(value_and_grad(f), x0, jac=True, method=method, tol=1e-10)
        np.testing.assert_allclose(found.x, 1.0, atol=1e-3)
        found = minimize(f, x0, jac=grad(f), method=method, tol=1e-10)
        np.testing.assert_allclose(found.x, 1.0, atol=1e-3)

    def scaled(x, k):
        return k * ((x - 1) ** 2).sum()

    found = minimize(scaled, x0, args=(3.0,), jac=grad(scaled), method="BFGS")
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_the_gradient_is_a_new_array_at_every_call():
    g = value_and_grad(lambda x: (x * x).sum())
    x = np.ones(3)
    _, first = g(x)
    _, second = g(x + 1)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, [2.0, 2.0, 2.0])
    assert type(g(x)[0]) in (float, np.float64)
    assert first.dtype == np.float64
    assert first.shape == (3,)


def test_descent_with_integers_and_floats():
    x = 10
    for _ in range(100):
        x = x - 0.1 * grad(lambda x: (x - 3) ** 2)(x)
    assert x == pytest.approx(3.0)


def test_repr_of_a_gradient_function():
    assert "f" in repr(grad(uses_globals))


def test_a_gradient_function_follows_the_shapes_of_its_arguments(monkeypatch):
    """The second call with other shapes costs no look-up."""
    monkeypatch.setattr(compiled, "specialising", True)
    g = grad(lambda x: np.sum(x * x))
    g(np.ones(3))
    g(np.ones(5))
    looked_up = []
    program = compiled.Family.program
    monkeypatch.setattr(
        compiled.Family, "program", lambda *args: looked_up.append(1) or program(*args)
    )
    assert g(np.ones(5)).tolist() == [2.0] * 5
    assert not looked_up
    assert g(np.ones(3)).tolist() == [2.0] * 3
    assert looked_up


# -- a program however the gradient is asked for ---------------------------------------------------


@pytest.fixture
def reasons(monkeypatch):
    """Why each of the programs that are asked for was not compiled; empty strings: it was."""
    monkeypatch.setattr(compiled, "specialising", True)
    found = []
    original = compiled.Family.compile

    def compile_and_note(*args):
        program = original(*args)
        found.append(program.reason)
        return program

    monkeypatch.setattr(compiled.Family, "compile", compile_and_note)
    compiled.forget_programs()
    return found


def output_and_list(x, w):
    h = np.tanh(x @ w)
    return (h * h).sum(), {"hidden": h, "more": [h, (x, "text")]}


def early_pair(x, w):
    if (x > 0).all():
        return (x @ w).sum(), {"p": x}
    return -x.sum(), None


def history(x, w):
    seen = []
    for i in range(3):
        x = x * w.T * i + x
        seen.append(x)
    return x.sum(), seen


@pytest.mark.parametrize("f", [output_and_list, early_pair, history])
@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_a_program_gives_the_auxiliary_output(reasons, f, transform):
    x, w = np.array([[0.5, 2.0]]), np.array([[0.3], [0.4]])
    found = getattr(morula, transform)(f, (0, 1), has_aux=True)(x, w)
    assert reasons == [""]
    general = getattr(interface, f"general_{transform}")(f, (0, 1), True)
    assert repr(found) == repr(general(x, w))


def test_the_auxiliary_output_shares_no_memory_with_the_gradient():
    def f(x, c):
        h = np.exp(c)
        return (x * h).sum(), h

    x̄, aux = grad(f, has_aux=True)(np.ones(3), np.zeros(3))
    assert not np.shares_memory(x̄, aux)
    assert (x̄.tolist(), aux.tolist()) == ([1.0] * 3, [1.0] * 3)


def test_the_auxiliary_output_is_what_it_was_in_the_forward_pass():
    def f(x):
        a = np.exp(x)
        b = a * 2.0
        c = np.sin(b)
        return (c * c).sum(), [a, b, c]

    x = np.linspace(0.0, 1.0, 2000)
    _, aux = grad(f, has_aux=True)(x)
    for found, expected in zip(aux, f(x)[1], strict=True):
        assert found.tolist() == expected.tolist()


def test_side_effects_with_an_auxiliary_output_happen_once():
    log = []

    def f(x):
        log.append(x)
        return (x * x, log) if x > 0 else x

    g = grad(f, has_aux=True)
    x̄, aux = g(3.0)
    assert (x̄, aux, aux is log) == (6.0, [3.0], True)
    with pytest.raises(TypeError, match="must return a pair"):
        g(-3.0)
    assert log == [3.0, -3.0]


def test_gradients_with_auxiliary_outputs_nest():
    def f(x):
        return x**3, x

    assert grad(lambda x: grad(f, has_aux=True)(x)[0])(2.0) == 12.0
    assert grad(lambda x: grad(f, has_aux=True)(x)[1])(2.0) == 1.0
    assert grad(grad(f, has_aux=True), has_aux=True)(2.0) == (12.0, 2.0)


class Spring:
    def __init__(self, k):
        self.k = k
        self.calls = 0

    def energy(self, x, offset=0.5, *, scale=2.0):
        return self.k * (x - offset) ** 2 * scale

    def counted(self, x):
        self.calls += 1
        self.last = x * x
        return self.k * self.last

    def with_aux(self, x):
        return self.k * x * x, {"x": x}

    def sums(self, x, *others):
        return self.k * x * sum([math.sin(o) for o in others])

    @classmethod
    def of_class(cls, x):
        return cls(x).energy(x)

    def __call__(self, x, y=1.0):
        return self.energy(x) * y


def scaled(x, y=2.0, *, scale=3.0):
    return x * x * y + scale * math.sin(y)


def star(x, *rest, power=2):
    return x * math.prod(rest) + sum([r**power for r in rest])


def keyed(x, /, y=2.0, *rest, scale=3.0, **more):
    k = 2.0 * sum(rest)
    for name in more:
        k += len(name) * more[name]
    return x * y * k * scale


def option(x, **options):
    return x * x * options.get("factor", 2.0)


def stores_in_keywords(x, **options):
    options["square"] = x * x
    return (lambda: options["square"] * options["k"])()


def hands_on(*args, **kwargs):
    return 2.0 * scaled(*args, **kwargs)


SPRING = Spring(3.0)
ASKED = [
    (SPRING.energy, 0, (2.0,), {}),
    (SPRING.energy, (0, 1), (2.0, 0.1), {"scale": 5.0}),
    (SPRING.energy, -1, (2.0,), {"offset": 0.2}),
    (SPRING.energy, -1, (2.0, 0.2), {}),
    (SPRING.sums, (0, -1, 1), (2.0, 0.3, 0.7), {}),
    (Spring.of_class, 0, (2.0,), {}),
    (SPRING, 0, (2.0,), {}),
    (SPRING, (1, 0), (2.0, 3.0), {}),
    (SPRING, [0], (2.0,), {"y": 3.0}),
    (scaled, 0, (2.0,), {}),
    (scaled, 0, (2.0,), {"y": 0.5, "scale": 4.0}),
    (scaled, -1, (2.0,), {}),
    (scaled, (0, -1), (2.0, 0.5), {"scale": 4.0}),
    (star, 0, (2.0,), {}),
    (star, (0, 1, 2), (2.0, 0.3, 0.7), {"power": 3}),
    (star, -1, (2.0, 0.3, 0.7), {}),
    (functools.partial(scaled, scale=7.0), (0, 1), (2.0, 0.5), {}),
    (functools.partial(scaled, scale=7.0), 0, (2.0,), {"scale": 1.0}),
    (functools.partial(scaled, y=7.0), 0, (2.0,), {"scale": 1.0}),
    (functools.partial(scaled, 2.0), 0, (0.5,), {}),
    (functools.partial(functools.partial(SPRING.energy, 2.0), scale=1.5), 0, (0.5,), {}),
    (functools.partial(star, 2.0, 0.3), (0, 1), (0.7, 0.2), {"power": 3}),
    (keyed, (0, 1), (2.0, 3.0), {}),
    (keyed, (0, -1), (2.0, 3.0, 0.5), {"scale": 1.5, "k": 2.0, "longer": 0.5}),
    (option, 0, (2.0,), {}),
    (option, 0, (2.0,), {"factor": 5.0}),
    (option, 0, (2.0,), {"factor": 5}),
    (stores_in_keywords, 0, (2.0,), {"k": 3.0}),
    (hands_on, 0, (2.0,), {}),
    (hands_on, (1, 0), (2.0, 0.4), {"scale": 0.5}),
    (functools.partial(hands_on, scale=0.5), 0, (2.0,), {"y": 0.4}),
]


@pytest.mark.parametrize(("f", "argnums", "args", "kwargs"), ASKED)
def test_whatever_runs_a_python_function_goes_by_a_program(reasons, f, argnums, args, kwargs):
    value, gradients = interface.general_value_and_grad(f, argnums, False)(*args, **kwargs)
    for with_value, expected in ((False, gradients), (True, (value, gradients))):
        g = interface._gradient_function(f, argnums, False, with_value)  # a new one
        found = [g(*args, **kwargs) for _ in range(2)]
        assert list(map(repr, found)) == [repr(expected)] * 2
    assert reasons == ["", ""]


@pytest.mark.parametrize(("f", "args", "kwargs"), [(f, a, k) for f, _, a, k in ASKED])
def test_so_it_does_by_all_its_arguments(reasons, f, args, kwargs):
    y, back = pullback(f, *args, **kwargs)
    assert repr(gradient(f, *args, **kwargs)) == repr(back(1.0))
    assert repr(withgradient(f, *args, **kwargs)) == repr((y, back(1.0)))
    assert reasons == ["", ""]


WRONG = [
    (SPRING.energy, 0, (), {}),
    (SPRING.energy, 2, (1.0,), {}),
    (SPRING.energy, 0, (1.0, 2.0, 3.0), {}),
    (SPRING.energy, 0, (1.0,), {"x": 2.0}),
    (SPRING.energy, 0, (1.0,), {"self": 2.0}),
    (SPRING.energy, 0, (1.0,), {"other": 2.0}),
    (SPRING, -2, (1.0,), {}),
    (SPRING, 0, (1.0, 2.0, 3.0), {}),
    (Spring.energy, 1, (SPRING,), {}),
    (scaled, 0, (1.0, 2.0, 3.0), {}),
    (scaled, 0, (1.0,), {"x": 2.0}),
    (star, 2, (1.0, 2.0), {}),
    (star, 0, (1.0, 2.0), {"x": 2.0}),
    (functools.partial(scaled, y=1.0), 0, (1.0, 2.0), {}),
    (functools.partial(scaled, y=1.0), 1, (1.0,), {}),
    (functools.partial(scaled, 1.0, 2.0), 0, (1.0,), {}),
    (lambda x, *, k: x * k, 0, (1.0,), {}),
    (lambda *xs: "text", 0, (1.0,), {}),
    (hands_on, 0, (1.0,), {"x": 2.0}),
    (hands_on, 0, (1.0,), {"other": 2.0}),
    (hands_on, 0, (1.0, 2.0), {"y": 2.0}),
    (hands_on, 1, (1.0,), {"y": 2.0}),
]


@pytest.mark.parametrize(("f", "argnums", "args", "kwargs"), WRONG)
@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_errors_are_those_of_the_general_path(f, argnums, args, kwargs, transform):
    general = getattr(interface, f"general_{transform}")(f, argnums, False)
    with pytest.raises(TypeError) as expected:
        general(*args, **kwargs)
    with pytest.raises(type(expected.value)) as found:
        getattr(interface, transform)(f, argnums)(*args, **kwargs)
    assert str(found.value) == str(expected.value)


def test_a_method_changes_its_object_once():
    spring = Spring(2.0)
    g = grad(spring.counted)
    assert [g(3.0), g(4.0)] == [12.0, 16.0]
    assert (spring.calls, spring.last) == (2, 16.0)
    assert grad(spring.with_aux, has_aux=True)(3.0) == (12.0, {"x": 3.0})
    assert value_and_grad(spring.with_aux, has_aux=True)(3.0) == ((18.0, {"x": 3.0}), 12.0)


def test_the_methods_of_many_objects_cost_one_transformation(monkeypatch):
    done = compilations(monkeypatch)
    for i in range(200):
        spring = Spring(float(i))
        assert grad(spring.energy)(1.0) == 2.0 * i
        assert gradient(spring.energy, 1.0, scale=1.0) == (float(i),)
        assert grad(functools.partial(scaled, scale=float(i)))(1.0) == 4.0
    assert len(done) <= 4


def test_rules_of_methods_and_objects_come_first(path):
    class Model:
        def loss(self, x):
            return x * x

        def __call__(self, x):
            return x * x

    model = Model()
    bound, called = grad(model.loss), grad(model)
    assert [bound(3.0), called(3.0), *gradient(model.loss, 3.0), *gradient(model, 3.0)] == [6.0] * 4

    @rrule(Model.loss)
    def _(self: Model, x: float):
        return model.loss(x), lambda ȳ: (morula.NoTangent(), 100.0 * ȳ)

    assert [bound(3.0), called(3.0), *gradient(model.loss, 3.0)] == [100.0, 6.0, 100.0]
    assert [grad(model.loss)(3.0), withgradient(model.loss, 3.0)] == [100.0, (9.0, (100.0,))]

    @rrule(Model.__call__)
    def _(self: Model, x: float):
        return x * x, lambda ȳ: (morula.NoTangent(), 10.0 * ȳ)

    assert [called(3.0), *gradient(model, 3.0)] == [10.0, 10.0]

    @rrule(model)
    def _(x: float):
        return x * x, lambda ȳ: (1.0 * ȳ,)

    assert [called(3.0), *gradient(model, 3.0), grad(model)(3.0)] == [1.0] * 3
    assert grad(Model())(3.0) == 10.0


def test_methods_defaults_and_keywords_changed_between_calls(path):
    class Model:
        def loss(self, x, k=2.0, *, c=1.0):
            return x * k * c

        def __call__(self, x):
            return x * 2.0

    model = Model()
    bound, called = grad(model.loss), grad(model)
    part = functools.partial(scaled, y=1.0)
    of_part = grad(part)
    assert [bound(3.0), called(3.0), of_part(3.0)] == [2.0, 2.0, 6.0]
    Model.loss.__defaults__ = (5.0,)
    Model.__call__ = lambda self, x: x * x
    part.keywords["y"] = 2.0
    assert [bound(3.0), called(3.0), of_part(3.0)] == [5.0, 6.0, 12.0]
    Model.loss.__kwdefaults__["c"] = 2.0
    assert bound(3.0) == 10.0
    Model.loss.__kwdefaults__ = {"c": 3.0}
    assert bound(3.0) == 15.0
    Model.loss.__code__ = (lambda self, x, k=0, *, c=0: x * x * k * c).__code__
    assert bound(3.0) == 90.0
    model.__class__ = type("Other", (Model,), {"__call__": lambda self, x: x**3})
    assert called(3.0) == 27.0


def test_keywords_with_the_names_of_parameters_and_locals(path):
    assert grad(keyed)(2.0, 3.0, x=1.0, rest=2.0, more=3.0) == 3.0 * 3.0 * (1 + 4 * 2.0 + 4 * 3.0)
    assert grad(stores_in_keywords)(2.0, k=3.0, x_=1.0, options=2.0) == 12.0


def test_the_dict_of_keywords_is_new_at_every_call(path):
    given, kept = {"k": 3.0}, []

    def f(x, **options):
        kept.append(options)
        options["more"] = 1.0
        return x * options["k"], options

    g = grad(f, has_aux=True)
    for _ in range(2):
        assert g(2.0, **given) == (3.0, {"k": 3.0, "more": 1.0})
    assert given == {"k": 3.0}
    assert kept[0] is not kept[1]


def test_many_ways_to_call_one_gradient_function(path):
    g = grad(lambda *xs: sum([x * x for x in xs]), -1)
    for n in range(1, 80):
        assert g(*[float(i) for i in range(n)]) == 2.0 * (n - 1)


def test_gradients_of_methods_and_partials_nest(path):
    assert grad(grad(SPRING.counted))(2.0) == 6.0
    assert grad(lambda k: grad(Spring(k).energy)(1.0))(3.0) == 2.0
    assert grad(lambda k: grad(functools.partial(scaled, y=k))(3.0))(1.0) == 6.0
    assert grad(lambda k: gradient(scaled, 3.0, y=k)[0])(1.0) == 6.0
    slope, of_scaled = grad(SPRING.energy), grad(scaled)
    assert grad(lambda x: slope(x, scale=1.0) * of_scaled(x, y=2.0))(2.0) == 6.0 * 8.0 + 9.0 * 4.0


def test_gradient_functions_with_keyword_only_parameters_pickle(monkeypatch):
    monkeypatch.setitem(
        sys.modules, __name__, sys.modules.get(__name__) or types.ModuleType(__name__)
    )
    monkeypatch.setattr(sys.modules[__name__], "scaled", scaled, raising=False)
    g, _ = grad(scaled), grad(scaled)
    assert pickle.loads(pickle.dumps(g))(3.0, scale=1.0) == g(3.0, scale=1.0)


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2.0 * f(*args, **kwargs)

    return wrapper


doubled_scaled = doubled(scaled)


def test_calls_of_decorated_functions_are_inlined(reasons):
    def f(x):
        return doubled_scaled(x, y=x) + doubled_scaled(x) * x

    g = grad(f)
    assert g(1.5) == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6)
    assert reasons == [""]
    assert "call" not in [getattr(c, "__name__", "") for c in g.__code__.co_consts]


def test_what_a_called_function_captures_is_rebound_between_calls(path):
    h = math.sin

    def inner(x):
        return h(x)  # noqa: F821 (it is deleted below)

    def make(inner):
        return lambda x: inner(x) * 3.0

    g = grad(make(inner))
    assert g(0.5) == 3.0 * math.cos(0.5)
    h = math.cos
    assert g(0.5) == -3.0 * math.sin(0.5)
    h = lambda x: x * x
    assert g(0.5) == 3.0
    del h
    with pytest.raises(NameError, match="'h'"):
        g(0.5)


def test_a_called_function_that_rebinds_what_it_captures(path):
    first = math.cos

    def alternating(x):
        nonlocal first
        now = first
        first = math.sin if now is math.cos else math.cos
        return now(x)

    g = grad(lambda x: alternating(x) + 2.0 * alternating(x) + 4.0 * alternating(x))
    assert g(0.5) == pytest.approx(-5.0 * math.sin(0.5) + 2.0 * math.cos(0.5))
    assert g(0.5) == pytest.approx(-2.0 * math.sin(0.5) + 5.0 * math.cos(0.5))
