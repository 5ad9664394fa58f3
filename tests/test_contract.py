"""What the other files do not say of names, results, errors and pickles, one test for each promise."""

import collections
import copy
import functools
import inspect
import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

from morula import (
    J,
    Tangent,
    Thunk,
    checkpoint,
    frule,
    grad,
    gradient,
    hessian,
    hook,
    hvp,
    ignore_derivatives,
    jacobian,
    jvp,
    non_differentiable,
    project_to,
    pullback,
    rrule,
    scalar_rule,
    taylor,
    value_and_grad,
    withgradient,
)
from morula.core import compiled, extend, general

# -- names, and what is called by keyword ----------------------------------------------------------


def times(x, *, f=1.0, x_or_thunk=1.0, self=1.0, args=1.0):
    return x * f * x_or_thunk * self * args


CALLS = {
    "gradient": lambda **k: gradient(times, 2.0, **k)[0],
    "withgradient": lambda **k: withgradient(times, 2.0, **k)[1][0],
    "pullback": lambda **k: pullback(times, 2.0, **k)[1](1.0)[0],
    "J": lambda **k: J(times, 2.0, **k)[1](1.0)[1],
    "grad": lambda **k: grad(times)(2.0, **k),
    "grad of a partial": lambda **k: grad(functools.partial(times))(2.0, **k),
    "value_and_grad": lambda **k: value_and_grad(times)(2.0, **k)[1],
    "jacobian": lambda **k: jacobian(times)(2.0, **k),
    "checkpoint": lambda **k: gradient(lambda x: checkpoint(times, x, **k), 2.0)[0],
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", ["f", "x_or_thunk", "self", "args"])
def test_keywords_go_to_the_function_whatever_their_names(call, name):
    assert call(**{name: 3.0}) == 3.0


def scaled_cube(x, c=1.0):
    return c * x**3 if isinstance(x, float) else c * (x**3).sum()


def test_hessians_take_further_arguments_as_scipy_gives_them():
    assert hessian(f=scaled_cube, x=2.0) == 12.0
    assert hessian(scaled_cube, 2.0, 3.0) == 36.0
    assert hessian(scaled_cube)(2.0, 3.0) == hessian(scaled_cube)(2.0, c=3.0) == 36.0
    np.testing.assert_array_equal(hessian(scaled_cube)(np.ones(2), 3.0), 18 * np.eye(2))
    assert jvp(lambda c: hessian(scaled_cube, 2.0, c), (3.0,), (1.0,)) == (36.0, 12.0)
    assert hvp(scaled_cube, 2.0, 1.0, 3.0) == 36.0


def test_jacobians_hand_keywords_on():
    assert jacobian(scaled_cube)(2.0, c=3.0) == 36.0


@pytest.mark.parametrize("transform", [hessian, jacobian, grad])
def test_transforms_need_an_argument(transform):
    with pytest.raises(TypeError, match="scaled_cube"):
        transform(scaled_cube)()


@pytest.mark.parametrize("transform", [hessian, jacobian])
def test_transforms_have_the_name_the_docstring_and_the_signature_of_the_function(transform):
    made = transform(scaled_cube)
    assert made.__name__ == "scaled_cube"
    assert made.__wrapped__ is scaled_cube
    assert inspect.signature(made) == inspect.signature(scaled_cube)


def test_transforms_of_methods_are_methods():
    class Well:
        def __init__(self, k):
            self.k = k

        @functools.partial(jacobian, mode="reverse")
        def by_all(self, x):
            return self.k * x**2

        @functools.partial(grad, argnums=1)
        def force(self, x):
            return self.k * x**2

        sine = grad(math.sin)
        curvature = hessian(functools.partial(math.pow, 2.0))

    well = Well(3.0)
    assert well.force(2.0) == 12.0
    assert well.sine(0.0) == 1.0
    assert well.curvature(1.0) == pytest.approx(2 * math.log(2) ** 2)
    with pytest.raises(TypeError, match="argument 0"):
        well.by_all(2.0)


def test_a_taylor_series_of_order_zero_is_the_value():
    for f in (math.exp, lambda x: math.sin(x) / x, lambda x: 2.0 * x):
        assert taylor(f, 1.0, 0) == [f(1.0)]


# -- cotangents mirror the value -------------------------------------------------------------------


MIRRORED = [
    lambda x: x.sum(),
    lambda x: x,
    lambda x: (x, 2.0),
    lambda x: [x, "a"],
    lambda x: {"a": x},
    lambda x: "a",
]


@pytest.mark.parametrize("f", MIRRORED)
def test_none_is_a_zero_cotangent_of_any_value(f):
    _, back = pullback(f, np.ones(2))
    np.testing.assert_array_equal(back(None)[0], np.zeros(2))


@pytest.mark.parametrize("ȳ", ["a", [1.0], (1.0,), {"a": 1.0}], ids=repr)
@pytest.mark.parametrize("x", [2.0, 2j, 2], ids=repr)
def test_a_cotangent_of_a_number_is_a_number(x, ȳ):
    for f in (lambda x: x, lambda x: x * 2):
        with pytest.raises(
            ValueError, match=r"a cotangent of a number is a \w+, expected a number"
        ):
            pullback(f, x)[1](ȳ)


def test_a_cotangent_of_a_dict_has_its_keys():
    _, back = pullback(lambda x: {"a": x}, 2.0)
    with pytest.raises(ValueError, match="has the key 'b', the dict has not"):
        back({"b": 1.0})


@pytest.mark.parametrize("argnums", [np.int64(1), np.uint8(1)])
def test_argnums_are_integers_of_any_type(argnums):
    assert grad(math.pow, argnums)(2.0, 1.0) == grad(math.pow, 1)(2.0, 1.0)
    assert grad(math.pow, range(argnums + 1))(2.0, 1.0) == grad(math.pow, (0, 1))(2.0, 1.0)


@pytest.mark.parametrize("argnums", [True, np.bool_(True), "", "a", b"a", 1.0, None, (0, True)])
def test_nothing_else_is_argnums(argnums):
    with pytest.raises(TypeError, match="argnums must be an int or a sequence of ints"):
        grad(math.pow, argnums)


# -- a user's exception keeps its type, and gets a note --------------------------------------------


class Refusal(Exception):
    def __init__(self, code, reason):
        super().__init__(code, reason)


def refuses(x):
    raise Refusal(1, "no")


def inverts(x):
    return np.linalg.inv(x * np.zeros((2, 2))).sum()


def calls_refuses(x):
    return x * refuses(x)


def refused_on_the_way_back(x):
    return hook(lambda x̄: refuses(x̄), x) * x


WAYS = {
    "gradient": gradient,
    "grad": lambda f, x: grad(f)(x),
    "pullback": lambda f, x: pullback(f, x)[1](1.0),
    "jvp": lambda f, x: jvp(f, (x,), (1.0,)),
    "hessian": hessian,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("f", "kind", "line"),
    [
        (refuses, Refusal, 'raise Refusal(1, "no")'),
        (calls_refuses, Refusal, 'raise Refusal(1, "no")'),
        (inverts, np.linalg.LinAlgError, "return np.linalg.inv(x * np.zeros((2, 2))).sum()"),
    ],
)
def test_an_exception_gets_a_note_with_the_line_that_was_differentiated(way, f, kind, line):
    with pytest.raises(kind) as caught:
        way(f, 1.0)
    assert type(caught.value) is kind
    assert caught.value.__cause__ is None
    (note,) = caught.value.__notes__
    assert note.startswith("while Morula differentiated ")
    assert note.endswith(line)


@pytest.mark.parametrize("way", ["gradient", "grad", "pullback", "hessian"])
def test_so_does_one_of_the_reverse_pass(way):
    with pytest.raises(Refusal) as caught:
        WAYS[way](refused_on_the_way_back, 1.0)
    assert any('raise Refusal(1, "no")' in note for note in caught.value.__notes__)


def test_an_exception_that_takes_no_note_passes_all_the_same():
    class Closed(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    def f(x):
        raise Closed

    with pytest.raises(Closed):
        gradient(f, 1.0)


# -- transformed functions pickle when the function does -------------------------------------------


class Spring:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * x**2

    def energy(self, x):
        return self.k * x**3

    @staticmethod
    def square(x):
        return x**2

    class Inner:
        @staticmethod
        def cube(x):
            return x**3


PICKLED = {
    "object": Spring(2.0),
    "bound method": Spring(2.0).energy,
    "static method": Spring.square,
    "nested class": Spring.Inner.cube,
    "partial": functools.partial(scaled_cube, c=2.0),
    "function": scaled_cube,
    "builtin": math.sin,
    "ufunc": np.sin,
}


@pytest.mark.parametrize("transform", [grad, value_and_grad, jacobian, hessian])
@pytest.mark.parametrize("f", PICKLED.values(), ids=PICKLED)
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_what_a_transform_gives_pickles(transform, f, protocol):
    made = transform(f)
    assert pickle.loads(pickle.dumps(made, protocol))(1.5) == made(1.5)


def test_their_options_go_with_them():
    by_second = grad(functools.partial(math.pow), argnums=(1,))
    assert pickle.loads(pickle.dumps(by_second))(2.0, 3.0) == by_second(2.0, 3.0)
    sparse = jacobian(np.sin, sparsity="auto")
    assert pickle.loads(pickle.dumps(sparse))(np.ones(3)).nnz == 3


def test_another_process_finds_them():
    made = [t(Spring.Inner.cube) for t in (grad, hessian)] + [grad(Spring(2.0))]
    run = "import pickle, sys; print([g(1.5) for g in pickle.loads(sys.stdin.buffer.read())])"
    done = subprocess.run(
        [sys.executable, "-c", run], input=pickle.dumps(made), capture_output=True
    )
    assert done.stdout.decode().strip() == str([g(1.5) for g in made]), done.stderr.decode()


TAKEN_ALONG = """
import pickle, sys
import numpy as np
import cloudpickle as p
from morula import grad, jacobian, value_and_grad

def cube(x):
    return (x**3).sum()

class Model:
    def __init__(self, w):
        self.w = w

def made(k):
    def f(x, y=2.0):
        return k * y * cube(x) if x[0] > 0 else np.sin(x).sum()
    return f

x = np.array([1.0, 2.0])
cases = [
    (grad(cube), x),
    (value_and_grad(made(3.0)), x),
    (grad(grad(lambda x: x**4)), 2.0),
    (grad(lambda m: m.w**2), Model(3.0)),
    (grad(lambda x: (x * x, "aux"), has_aux=True), 3.0),
    ((lambda g: lambda x: g(x) + 1.0)(grad(made(1.0))), x),
    (jacobian(lambda x: x * x), x),
]
before = [p.dumps(case) for case in cases]
found = [repr(g(a)) for g, a in cases]
after = [p.dumps(case) for case in cases]
assert pickle.loads(pickle.dumps(grad(cube))) is grad(cube)
pickle.dump((before + after, found + found), sys.stdout.buffer)
"""

ELSEWHERE = """
import pickle, sys
import cloudpickle as p
pickled, expected = pickle.load(sys.stdin.buffer)
for one, value in zip(pickled, expected, strict=True):
    g, x = p.loads(one)
    assert [repr(g(x)), repr(g(x)), repr(p.loads(p.dumps(g))(x))] == [value] * 3, value
"""


def test_gradients_of_the_main_program_and_of_lambdas_are_taken_along(tmp_path):
    pytest.importorskip("cloudpickle")
    main = tmp_path / "main.py"
    main.write_text(TAKEN_ALONG, encoding="utf-8")
    done = subprocess.run([sys.executable, main], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    run = [sys.executable, "-c", ELSEWHERE]
    there = subprocess.run(run, input=done.stdout, capture_output=True)
    assert there.returncode == 0, there.stderr.decode()


def test_a_transformed_object_is_differentiated_as_the_object_is():
    force = grad(Spring(2.0))
    curvature = hessian(Spring(2.0).energy)
    assert gradient(lambda x: force(x) ** 2, 1.5) == (48.0,)
    assert jvp(lambda x: force(x) ** 2, (1.5,), (1.0,)) == (36.0, 48.0)
    assert jvp(lambda x: curvature(x) * x, (1.5,), (1.0,)) == (27.0, 36.0)
    assert repr(force).startswith("grad(<")


# -- JAX is first met under a trace ----------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "jax.jit(morula.grad(f))(2.0)",
        "jax.lax.scan(lambda c, x: (morula.grad(f)(c), x), 2.0, jax.numpy.ones(1))[0]",
    ],
)
def test_jax_may_be_tracing_when_morula_meets_it(program):
    pytest.importorskip("jax")
    run = f"import jax, morula\ndef f(x): return x * x\nprint(float({program}))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.stdout.strip() == "4.0", done.stderr


# -- a Thunk that nobody asks for is not computed --------------------------------------------------


def product_with_thunks(computed):
    def product(a, b):
        return a * b

    @rrule(product)
    def _(a: float, b: float):
        def product_pullback(ȳ):
            def by(name, c):
                computed.append(name)
                return ȳ * c

            return Thunk(lambda: by("a", b)), Thunk(lambda: by("b", a))

        return a * b, product_pullback

    return product


@pytest.mark.parametrize(
    ("way", "asked"),
    [
        (lambda f: grad(f)(2.0, 3.0), "a"),
        (lambda f: grad(f, 1)(2.0, 3.0), "b"),
        (lambda f: grad(lambda x, y: f(x, y))(2.0, 3.0), "a"),
        (lambda f: gradient(lambda x: f(x, 3.0), 2.0), "a"),
        (lambda f: gradient(lambda x: f(3.0, x) ** 2, 2.0), "b"),
        (lambda f: gradient(lambda x: f(x, ignore_derivatives(x)), 2.0), "a"),
        (lambda f: pullback(lambda x: f(x, 3.0), 2.0)[1](1.0), "a"),
        (lambda f: gradient(f, 2.0, 3.0), "ab"),
    ],
)
def test_a_thunk_is_computed_only_if_its_cotangent_is_asked_for(way, asked):
    computed = []
    way(product_with_thunks(computed))
    assert sorted(computed) == list(asked)


def test_a_thunk_in_the_wrong_space_is_an_error_that_names_the_rule_and_not_before_it_is_computed():
    def f(a, b):
        return a

    @rrule(f)
    def _(a: float, b: float):
        return a, lambda ȳ: (ȳ, Thunk(lambda: np.ones(3)))

    assert grad(f)(2.0, 3.0) == 1.0
    with pytest.raises(ValueError, match=r"cotangent 1 of the pullback of the rule of .*f "):
        gradient(f, 2.0, 3.0)


# -- project_to knows the libraries that it meets --------------------------------------------------


@pytest.mark.parametrize(
    ("module", "program", "printed"),
    [
        ("scipy.sparse", "project_to(m.eye_array(2, format='csr'))(np.ones((2, 2))).nnz", "2"),
        ("jax.numpy", "project_to(m.ones(2, 'float16'))(np.ones(2)).dtype", "float16"),
    ],
)
def test_project_to_may_be_the_first_that_meets_a_library(module, program, printed):
    pytest.importorskip(module)
    run = f"import {module} as m, numpy as np\nfrom morula import project_to\nprint({program})"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.stdout.strip() == printed, done.stderr


# -- T14: real numbers in arrays of integers -------------------------------------------------------

WRITES = {
    "ufunc": lambda y, v: np.add(v, 1.0, out=y, casting="unsafe"),
    "ufunc by position": lambda y, v: np.sin(v, y, casting="unsafe"),
    "ufunc with a mask": lambda y, v: np.exp(v, out=y, casting="unsafe", where=[True]),
    "concatenate": lambda y, v: np.concatenate([v], out=y, casting="unsafe"),
    "cumsum": lambda y, v: np.cumsum(v, out=y),
    "take": lambda y, v: np.take(v, [0], out=y),
    "sum": lambda y, v: np.sum(v, axis=0, keepdims=True, out=y),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_written_to_integers_by_out_has_no_derivative_and_warns(write):
    def f(x):
        y = np.zeros(1, int)
        write(y, np.array([x * 2.5]))
        return y[0] * x

    slope = f(3.0) / 3.0
    for way in (lambda: gradient(f, 3.0)[0], lambda: pullback(f, 3.0)[1](1.0)[0]):
        with pytest.warns(UserWarning, match=r"rounded(.|\n)*test_contract.py:\d+"):
            assert way() == slope
    with pytest.warns(UserWarning, match="rounded"):
        assert jvp(f, (3.0,), (1.0,))[1] == slope


# -- section 6: a branch that was not taken is not looked at ---------------------------------------


def asks_math(x):
    return math.not_yet_there(x) if hasattr(math, "not_yet_there") else x * x


def asks_numpy(x):
    if not hasattr(np, "not_yet_there"):
        return x * x
    return np.not_yet_there(x)


@pytest.mark.parametrize("f", [asks_math, asks_numpy])
def test_an_attribute_that_a_module_lacks_matters_only_where_it_is_read(f):
    assert gradient(f, 3.0) == (grad(f)(3.0),) == pullback(f, 3.0)[1](1.0) == (6.0,)
    assert hessian(f, 3.0) == 2.0
    with pytest.raises(AttributeError, match="not_yet_there"):
        gradient(lambda x: math.not_yet_there(x), 3.0)


ROUNDED = {
    "sum": lambda x: np.sum(x, dtype=int),
    "method": lambda x: x.sum(dtype="i4"),
    "reduce": lambda x: np.add.reduce(x, dtype=int),
    "mean": lambda x: np.mean(x, dtype=int),
    "prod": lambda x: np.prod(x, dtype=int),
    "trace": lambda x: np.trace(np.outer(x, x), dtype=int),
    "cumsum": lambda x: np.cumsum(x, dtype=int)[-1],
    "cumprod": lambda x: np.cumprod(x, dtype=int)[-1],
    "accumulate": lambda x: np.add.accumulate(x, dtype=int)[-1],
}


@pytest.mark.parametrize("whole", ROUNDED.values(), ids=ROUNDED)
def test_what_is_made_whole_before_it_is_added_up_has_no_derivative(whole):
    x = np.array([3.7, 1.2])
    slopes = [0.0, float(whole(x))]

    def f(x):
        return whole(x) * x[1]

    np.testing.assert_array_equal(gradient(f, x)[0], slopes)
    np.testing.assert_array_equal(pullback(f, x)[1](1.0)[0], slopes)
    np.testing.assert_array_equal([jvp(f, (x,), (e,))[1] for e in np.eye(2)], slopes)
    np.testing.assert_array_equal(
        gradient(lambda n: whole(n) * 1.0, np.array([3, 1]))[0] != 0, True
    )


# -- section 6: side effects, the state of the arguments, pullbacks that are called again ------------

seen = []


def note(x):
    seen.append(np.asarray(x).tolist())


class Vector:
    """Its attributes go through `__setattr__`, its operators write in place."""

    def __init__(self, v):
        object.__setattr__(self, "v", v)

    def __setattr__(self, name, value):
        note(value)
        super().__setattr__(name, value * 2 if name == "w" else value)

    def __getattr__(self, name):
        if name == "norm":
            return self.v @ self.v
        raise AttributeError(name)

    def __imatmul__(self, m):
        self.v[:] = m @ self.v
        return self

    def __lt__(self, other):
        return self.norm < other.norm


def objects_that_write(x):
    a, b = Vector(x[:2]), Vector(x[2:].copy())
    a @= np.array([[1.0, x[2]], [x[3], 2.0]])
    a.w = b.norm
    b.w = min(a, b).norm * x[0]
    return b.w * a.w + max([b, a]).v[1] + hasattr(a, "none")


@functools.total_ordering
class Rounded:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        note(other.v)
        return round(float(self.v)) == round(float(other.v))

    def __lt__(self, other):
        return round(float(self.v)) < round(float(other.v))


def ties_of_a_total_ordering(x):
    items = [Rounded(e) for e in (x[0], x[3] + 0.4, x[1], x[2])]
    if items[0] >= items[1]:
        x[0] *= items[0].v
    ranks = sum(i * o.v**2 for i, o in enumerate(sorted(items)))
    return ranks * sorted(items, reverse=True)[0].v + max(items).v * min(items).v + x[0]


def guards_that_write(x):
    s = 0.0
    for key, group in itertools.groupby(x, key=lambda e: bool(e > 0)):
        match (key, list(group)):
            case (True, [a, *_]) if (s := s + a) > 100:
                s = 0.0
            case (True, [a]) if x.__setitem__(0, x[0] + a) is None:
                s *= a
            case (False, [b, *_]):
                s -= b**2
                x[1:2] = s
            case (_, [*rest]):
                s += sum(rest) * x[0]
                note(len(rest))
    return s + x @ x


def generators_that_write(x):
    def squares():
        for e in x:
            note(e)
            x[0] += e
            yield e * x[0]

    first, *middle, last = squares()
    (p, q), *rest = zip([first, last], middle, strict=True)
    x[1] = first * sum([*middle, *(e for e in middle)])
    return p * q + len(rest) * last + x[1] + max(*middle, first, key=abs)


class Scaled:
    """Scales an entry within; swallows one kind of exception."""

    def __init__(self, x, i):
        self.x, self.i, self.old = x, i, x[i].copy()

    def __enter__(self):
        self.x[self.i] *= 3
        return self.x

    def __exit__(self, kind, error, trace):
        note(kind is None)
        self.x[self.i] = self.old * (1 if kind is None else 2)
        return kind is ZeroDivisionError


def exits_that_swallow(x):
    s = 0.0
    with Scaled(x, 0) as z, Scaled(x, 1):
        s += z[0] * z[1] + x.sum()
        1 / 0
    try:
        with Scaled(x, 3):
            s += x[3] ** 2
            raise KeyError(x[3])
    except KeyError as e:
        s += e.args[0] * x[3]
    for e in x:
        try:
            if e < 0:
                continue
            s += e**2
        finally:
            x[0] *= 1.1
    else:
        s *= x[0]
    return s


def strided_views_in_a_dict(x):
    w = np.zeros((6, 4), order="F")
    v = w[::-2, ::3]
    np.add.at(v, (np.array([0, 0, 2, 0]), np.array([1, 1, 0, 1])), x**2)
    views = {"v": v, "t": v.T}
    np.add.at(views["t"], (slice(None), [0, 0, 1]), x[1:3, None] * x[1:])
    views["t"] *= x[0]
    np.add.at(x[1:], [0, 0, 2], views["v"][0, 1])
    np.multiply(v[0], 2, out=views["t"][:, 1])
    np.add(x[:3], x[1:], out=x[1:])
    np.square.at(x, [1, 1])
    note(w)
    return (w**3).sum() + x @ np.arange(1.0, 5)


PROGRAMS = [
    objects_that_write,
    ties_of_a_total_ordering,
    guards_that_write,
    generators_that_write,
    exits_that_swallow,
    strided_views_in_a_dict,
]


def observed(run, x):
    """What a run gives, what it noted and what it left in its argument."""
    x = copy.deepcopy(x)
    seen.clear()
    y = run(x)
    return y, [*seen], x.tolist()


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_run_as_they_are_and_their_pullbacks_again(f):
    x, v, h = np.array([0.7, -1.2, 1.9, 0.4]), np.array([0.3, -0.8, 0.5, 1.1]), 1e-6
    y, noted, left = observed(f, x)
    slope = (f(x + h * v) - f(x - h * v)) / (2 * h)
    (y1, back), *others = observed(lambda x: pullback(f, x), x)
    assert (y1, others) == (y, [noted, left])
    (x̄,) = back(1.0)
    assert x̄ @ v == pytest.approx(slope, rel=1e-5)
    _, other = pullback(f, x + 0.01 * v)
    other(1.0)
    for _ in range(2):
        np.testing.assert_array_equal(back(1.0)[0], x̄)
    (y2, ẏ), *others = observed(lambda x: jvp(f, (x,), (v,)), x)
    assert (y2, others) == (y, [noted, left])
    assert ẏ == pytest.approx(x̄ @ v, rel=1e-9)
    with extend.by_the_general_path():
        (y3, back), *others = observed(lambda x: pullback(f, x), x)
    assert (y3, others) == (y, [noted, left])
    np.testing.assert_allclose(back(1.0)[0], x̄, rtol=1e-12)


# -- section 5: a rule takes precedence, whatever was said of the callable before --------------------

STRAIGHT_THROUGH = """
import math, operator, numpy as np
from morula import *

def {name}(x):
    return {call}

def slopes(x):
    one = np.ones_like(x) if isinstance(x, np.ndarray) else 1.0
    return [
        gradient({name}, x)[0], grad({name})(x), value_and_grad({name})(x)[1],
        pullback({name}, x)[1](1.0)[0], jvp({name}, (x,), (one,))[1],
    ]

x = {x}
before = slopes(x)

@rrule({fn})
def _(x: {kind}):
    return {fn}(x), lambda ȳ: (7.0 * (x * 0.0 + ȳ),)

for found in slopes(x) + slopes(x):
    assert np.all(found == 7.0), found
assert np.array_equal(gradient(lambda x: np.sum(grad({name})(x)), x)[0], np.zeros_like(x))
"""


@pytest.mark.parametrize(
    ("fn", "kind", "x"),
    [
        ("np.round", "np.ndarray", "np.array([2.3])"),
        ("np.sign", "np.ndarray", "np.array([2.3])"),
        ("np.floor", "np.float64", "np.float64(2.3)"),
        ("np.spacing", "np.float64", "np.float64(2.3)"),
        ("math.floor", "float", "2.3"),
        ("round", "float", "2.3"),
        ("int", "float", "2.3"),
        ("sum", "np.ndarray", "np.array([2.3])"),
        ("max", "np.ndarray", "np.array([2.3])"),
    ],
)
def test_a_rule_takes_precedence_over_what_was_said_of_its_callable(fn, kind, x):
    call = f"np.sum({fn}(x) * 1.0)"
    run = STRAIGHT_THROUGH.format(name="f", call=call, fn=fn, kind=kind, x=x)
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_rule_from_outside_changes_no_derivative_that_morula_knows():
    run = """
import numpy as np
from morula import *

@rrule(np.floor)
def _(x: np.ndarray):
    return np.floor(x), lambda ȳ: (7.0 * ȳ,)

def f(x):
    return np.sum(2.0 * np.mod(7.0, x))

x = np.array([2.0, 3.5])  # the slope of 7 % x is -floor(7 / x), which is constant
for _ in range(3):
    assert np.array_equal(grad(f)(x), [-6.0, -4.0])
    assert np.array_equal(hessian(f, x), np.zeros((2, 2)))
    assert np.array_equal(gradient(lambda x: grad(f)(x).sum(), x)[0], np.zeros(2))
    assert np.array_equal(
        gradient(lambda x: pullback(f, x)[1](1.0)[0].sum(), x)[0], np.zeros(2)
    )
"""
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("register", "reverse", "forward"),
    [
        (lambda f: rrule(f)(lambda x: (x * x, lambda ȳ: (100.0 * ȳ,))), 100.0, 100.0),
        (lambda f: scalar_rule(f)(lambda y, x: 100.0), 100.0, 100.0),
        (lambda f: frule(f)(lambda x: (x * x, lambda ẋ: 100.0 * ẋ)), 4.0, 100.0),
        (lambda f: non_differentiable(f), 0.0, 0.0),
    ],
)
def test_rules_that_a_differentiated_function_registers_are_followed(register, reverse, forward):
    def f(x):
        def square(x):
            return x * x

        register(square)
        return square(x)

    for _ in range(3):
        assert grad(f)(2.0) == gradient(f, 2.0)[0] == pullback(f, 2.0)[1](1.0)[0] == reverse
        assert jvp(f, (2.0,), (1.0,)) == (4.0, forward)


def test_a_rule_is_a_function():
    with pytest.raises(TypeError, match=r"the rule of math\.sin is to be a function, got 3"):
        rrule(math.sin)(3)


@pytest.mark.parametrize(
    ("back", "message"),
    [
        (lambda ȳ: (np.ones(3),), r"cotangent 0 of the pullback of the rule of .*twice"),
        (lambda ȳ: ("text",), r"cotangent 0 of the pullback of the rule of .*twice"),
        (lambda ȳ: (ȳ, ȳ), r"the rule of .*twice"),
        (lambda ȳ: ȳ, r"the rule of .*twice"),
    ],
)
def test_a_wrong_cotangent_names_its_rule_in_both_modes(back, message):
    def twice(x):
        return 2.0 * x

    rrule(twice)(lambda x: (2.0 * x, back))
    x = np.ones(2)
    with pytest.raises((TypeError, ValueError), match=message):
        gradient(lambda x: np.sum(twice(x)), x)
    for _ in range(2):
        with pytest.raises((TypeError, ValueError), match=message):
            jvp(lambda x: twice(x), (x,), (x,))
    with pytest.raises((TypeError, ValueError), match=message):
        gradient(lambda x: np.sum(grad(lambda x: np.sum(twice(x) ** 2))(x)), x)


# -- section 4: cotangents ---------------------------------------------------------------------------


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


@pytest.mark.parametrize(
    ("x", "x̄", "expected"),
    [
        ([1.0, 2.0], [1.0 + 1j, 2.0], [1.0, 2.0]),
        ([1.0, 2.0], Tangent[list]({0: 3.0}), [3.0, 0.0]),
        ({"a": 1.0, "b": "text"}, {"a": 2j}, {"a": 0.0, "b": None}),
        ((1.0, [2.0, "text"]), (1j, [3.0, None]), (0.0, [3.0, None])),
        ([1.0], Thunk(lambda: [2.0]), [2.0]),
        (Pair(1.0, [2.0]), Tangent[Pair](a=2 + 1j), Tangent[Pair](a=2.0, b=[0.0])),
    ],
)
def test_project_to_takes_structures_where_nothing_is_differentiated(x, x̄, expected):
    assert project_to(x)(x̄) == expected


def test_project_to_of_a_structure_of_another_form_is_an_error():
    with pytest.raises(ValueError, match="expected one entry for each of its items"):
        project_to([1.0, 2.0])([1.0])
    assert project_to([1.0, 2.0])([1.0, 1.0]) == [1.0, 1.0]


def test_a_pullback_may_project_to_structures():
    def product(xs, pair):
        return xs[0] * xs[1] * pair.a

    @rrule(product)
    def _(xs, pair):
        (x, y), a = xs, pair.a

        def product_pullback(ȳ):
            of_pair = project_to(pair)(Tangent[Pair](a=x * y * ȳ + 0j))
            return project_to(xs)([ȳ * y * a, ȳ * x * a]), of_pair

        return x * y * a, product_pullback

    for _ in range(2):
        found = gradient(product, [2.0, 3.0], Pair(4.0, "text"))
        assert found == ([12.0, 8.0], Tangent[Pair](a=6.0))
        assert hessian(lambda x: product([x, 3.0], Pair(x, 0.0)), 2.0) == 6.0


def test_tangents_of_unrelated_types_do_not_add_and_sum_begins_with_zero():
    class Triple(Pair):
        pass

    t = Tangent[Pair](a=1.0)
    with pytest.raises(TypeError, match="a tangent of Pair and one of Point do not add"):
        t + Tangent[collections.namedtuple("Point", "x")](x=1.0)
    assert (t + Tangent[Triple](a=1.0)).a == 2.0
    assert sum([t, t, t]) == Tangent[Pair](a=3.0)


# -- section 5: a rule takes effect at the next call, and costs no more than what it changes -----------


def square(x):
    return x * x


def test_a_rule_for_a_function_of_which_nothing_was_known_leaves_what_is_transformed():
    def f(x):
        return math.sin(square(x)) * x

    with compiled.by_the_general_path():
        assert grad(f)(0.7) == pytest.approx(math.sin(0.49) + 2 * 0.49 * math.cos(0.49))
    kept = dict(general._forward_codes)
    assert kept

    def of_nobody(x):
        return x

    @rrule(of_nobody)
    def _(x: float):
        return x, lambda ȳ: (5.0 * ȳ,)

    assert general._forward_codes.items() >= kept.items()
    assert grad(lambda x: of_nobody(x) * 2.0)(1.0) == 10.0


@pytest.mark.parametrize("order", [grad, hessian])
def test_a_rule_takes_effect_where_the_callable_was_constant_in_transformed_code(order):
    @non_differentiable
    def step(x):
        return 2.0 * x

    def f(x):
        return step(x) * x

    assert order(f)(1.5) == (3.0 if order is grad else 0.0)

    @rrule(step)
    def _(x: float):
        return 2.0 * x, lambda ȳ: (2.0 * ȳ,)

    assert order(f)(1.5) == (6.0 if order is grad else 4.0)
