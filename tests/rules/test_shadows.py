"""Programs with lists: by shadows, by the adjoints found by identity, and on the general path."""

import itertools
import math

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.core.cotangents import ZERO
from morula.rules import shadows
from morula.testing import check_gradient


def built_and_read(x, y):
    rows = [[x, y], [y, x * y]]
    return rows[0][1] * rows[1][1] + rows[-1][0] ** 2


def comprehension(x, y):
    xs = [x * i + y for i in range(4)]
    return xs[0] * xs[3] + xs[1] * xs[-2]


def nested_comprehension(x, y):
    rows = [[x * i + j * y for j in range(3)] for i in range(2)]
    total = 0.0
    for row in rows:
        for k, v in enumerate(row):
            total += (k + 1) * v * v
    return total


def appended(x, y):
    xs = [x]
    for i in range(3):
        xs.append(xs[-1] * y + xs[0] * i)
    return xs[1] * xs[3]


def appended_to_one(x, y):
    xs = [x]
    xs.append(y)
    return xs[-1] * 2 + y


def appended_constants(x, y):
    """In the adjoint, the loop does nothing but take from the shadow, in its header."""
    xs = [x, y]
    n = 0
    while n < 2:
        n += 1
        xs.append(math.tanh(n))
    return xs[0] * xs[1] * xs[2]


def appended_rows(x, y):
    rows = [[x, y]]
    rows.append(rows[0])
    rows.append([y])
    rows[1][0] *= 2
    return rows[0][0] * rows[1][1] + rows[2][0]


def assigned(x, y):
    xs = [x, y, 0.0]
    xs[2] = xs[0] * xs[1]
    xs[0] = xs[2] + 1.0
    xs[0] = xs[0] * xs[1]
    return xs[0] * xs[2]


def an_alias(x, y):
    xs = [x, y]
    ys = xs
    ys[0] = y * y
    return xs[0] * ys[1]


def chosen(x, y):
    xs, ys = [x, y], [y * y, x]
    zs = xs if x < 1.0 else ys
    zs[1] = zs[0] * 3.0
    return xs[1] * ys[1] + zs[0]


def of_tuples(x, y):
    """The items of a tuple reach its cotangent one by one."""
    xs = [(x, y), (y, x * y)]
    for i in range(2):
        a, b = xs[i]
        xs.append((b * a, a))
    xs[0] = (xs[3][0], xs[2][1])
    return xs[0][0] * xs[-1][1] + xs[0][1]


def a_tuple_twice(x, y):
    """What came out of a shadow for one of two is added to what the other has got."""
    xs = [(x, y)]
    pair = xs[0]
    xs.append(pair)
    return xs[0][1] * xs[1][0] * pair[0]


def unpacked_behind_a_pop(x, y):
    xs = [x, y * x]
    last = xs.pop()
    (first,) = xs
    return last * first * last


def replaced(x, y):
    state = [x, y]
    for _ in range(4):
        state = [state[0] + 0.1 * state[1], state[1] - 0.1 * state[0] * state[0]]
    return state[0] * state[1]


def unpacked(x, y):
    total = 0.0
    rows = [[x, y], [x * y, 2.0], [1.0, y]]
    for a, b in rows:
        total += a * b * b
    return total


def a_tuple_of_lists(x, y):
    total = 0.0
    for a, b in [[x, y], [x * y, 2.0], [1.0, y]]:  # to CPython a tuple
        total += a * b * b
    return total


def zipped(x, y):
    xs, ys = [x, y, x * y], [y, 3.0, x]
    total = 0.0
    for i, (a, b) in enumerate(zip(xs, ys)):  # noqa: B905
        total += a * b**i
    return total


def backwards(x, y):
    total = 1.0
    for v in reversed([x, y, x + y]):
        total = total * v + y
    return total


def sums(x, y):
    xs = [x, y, x * y]
    return sum(xs) * max(xs) + min(xs[1:]) + len(xs)


def sums_of_lists(x, y):
    xs = [x * i for i in range(4)]
    rows = [[x, y], [y * y, x, 1.0]]
    return sum(xs) * sum([r[0] * sum(r) for r in rows]) + sum([]) + sum([2, 3]) * y


def extremes_of_lists(x, y):
    xs = [x * x, y, x, y, 0.5]
    return max(xs) * y + min(xs) ** 2 + max([v * y for v in xs]) * x


def a_sum_with_a_start(x, y):
    return sum([x, y], x) * sum([y], start=y * y)


def fibonacci(x, y):
    table = [x, y] + [0.0] * 4
    for i in range(2, 6):
        table[i] = table[i - 1] + table[i - 2] * table[0]
    return table[5]


def of_constants(x, y):
    weights = [1.0, 2.0, 3.0]
    powers = [x, x * x, x * y]
    return sum([w * p for w, p in zip(weights, powers, strict=True)])


def of_functions(x, y):
    total = 0.0
    for f in [math.sin, math.cos]:
        total += f(x) * y
    return total


def mixed(x, y):
    xs = [x, 2, y]
    total = 0.0
    for v in xs:
        total += v * v
    return total


def swapped(x, y):
    xs, ys = [x, y], [y, x * y]
    for _ in range(3):
        xs[0] = ys[1] * xs[1]
        xs, ys = ys, xs
    return xs[0] * ys[0] + xs[1]


def a_list_in_a_tuple(x, y):
    pair = ([x, y], 2.0)
    for _ in range(2):
        xs, c = pair
        pair = ([xs[1] * c, xs[0]], c + y)
    return pair[0][0] * pair[1]


def deleted(x, y):
    xs = [x, y, x * y]
    del xs[0]
    xs.insert(0, y)
    return xs[0] * xs[2]


def captured(x, y):
    xs = [x]

    def add(v):
        xs.append(v * xs[-1])

    add(y)
    add(x)
    return xs[1] * xs[2]


def unused_items(x, y):
    xs = [math.sqrt(x), y, x]
    return xs[1] * xs[2]


def chained_with_constants(x, y):
    moved = (x * i + y for i in (1, 2, 3))
    return sum(itertools.chain((y * u for u in (0.0, x, y)), (2.0,), moved, (x, 4.0)))


def chained_and_read(x, y):
    moved = (x * i + y for i in (1, 2))
    xs = list(itertools.chain((y * u for u in (x, y)), (2.0, 7.0), moved, (3.0, 4.0)))
    return xs[0] * xs[1] + xs[2] * xs[3] + xs[-1] * xs[-3] + xs[4] * xs[4]


def walked(x, y):
    """A stack: what is popped was pushed in other iterations."""
    stack, total = [x], 0.0
    while stack:
        v = stack.pop()
        if abs(v) > 0.2:
            stack.append(v * 0.5)
            stack.append(v * y * 0.3)
        else:
            total += v * v
    return total


def popped_rows(x, y):
    rows = [[x, 1.0], [x * y, x]]
    last = rows.pop()
    last.append(y)
    return sum(last) * last.pop() + rows.pop()[0]


def pushed_again(x, y):
    stack = [x, 2.0, x * y]
    a = stack.pop()
    stack.append(a * x)
    b = stack.pop()
    return a * b + stack.pop() + sum(stack)


def products(x, y):
    xs = [x + i for i in range(3)]
    xs.append(0.0 * y)
    return math.prod(xs[:3]) * y + math.prod([x, y, 2]) + math.fsum(xs) * math.prod([x + y])


def turned(x, y):
    r, xs = 0.0, [x, y, x * y]
    for v in reversed(xs):
        r = r * 0.5 + v
        xs.append(r)
    for i, v in enumerate(reversed(xs)):
        r += i * v
    return r + sum(xs)


def sliced(x, y):
    xs = [x * i + y for i in range(5)]
    ys = xs[::-1]
    ys[0] = x * y
    ys.append(x)
    total = sum(xs[1:3]) * xs[-1] + sum(ys)
    for a, b in zip(xs[:-1], xs[1:], strict=True):  # noqa: RUF007
        total += (b - a) ** 2
    for n, m in zip([3, 4, 5][:-1], [3, 4, 5][1:], strict=False):
        total += x * n * m
    return total


def sliced_rows(x, y):
    rows = [[x, 1.0], [x * y, 2.0], [3.0, y]]
    some = rows[1:]
    some[0][1] = x
    return rows[1][1] * some[1][1] + some[0][0] + len(some[5:])


def emptied(x, y):
    xs = [x * y]
    last = xs.pop()
    return sum(xs) + last * x


def filled(x, y):
    xs = [0.0] * 4
    for i in range(4):
        xs[i] = x * i + y
    ys, zs = list(xs), xs.copy()
    ys[0] = x
    zs.append(y)
    return sum(xs) * ys[1] + sum(ys) + zs[-1] * zs[2]


def filled_rows(x, y):
    rows = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(3):
            rows[i][j] = x * i + y * j
    return sum(map(sum, rows)) * rows[1][1]


def repeated(x, y):
    rows, xs = [[x]] * 2, [y] * 3
    rows[0].append(x * y)
    xs[1] = x
    return sum(rows[1]) * sum(xs)


def cleared(x, y):
    """A loop over a reversed list ends when the list has become too short."""
    xs, total = [x, x * y, 1.0], 0.0
    for v in reversed(xs):
        total += v * y
        if v == 1.0:
            xs.clear()
    return total + x


def shortened(x, y):
    xs, total = [x, x * y, y], 0.0
    for v in reversed(xs):
        total += v * y
        del xs[0]
    return total + x


def none_left(x, y):
    """The sum of a list that may be empty may be an int."""
    xs = [x]
    xs.pop()
    return x * y * (2.0 if isinstance(sum(xs), int) else 3.0)


PROGRAMS = [
    cleared, shortened, none_left, filled, filled_rows, repeated, emptied, sliced, sliced_rows,
    walked, popped_rows, pushed_again, products, turned,
    built_and_read, comprehension, nested_comprehension, appended, appended_rows, assigned, an_alias,
    chosen, of_tuples, replaced, appended_constants, a_tuple_of_lists, unpacked, zipped, backwards,
    sums, fibonacci, of_constants, of_functions, mixed, sums_of_lists, extremes_of_lists,
    a_sum_with_a_start, appended_to_one, a_tuple_twice, unpacked_behind_a_pop,
    a_list_in_a_tuple, deleted, captured, unused_items, swapped, chained_with_constants,
    chained_and_read,
]  # fmt: skip
FOLLOWED = [
    built_and_read, comprehension, nested_comprehension, appended, appended_rows, assigned, an_alias,
    replaced, unpacked, swapped, walked, popped_rows, pushed_again, sliced, sliced_rows,
    filled, filled_rows,
]  # fmt: skip


@pytest.fixture(params=["shadows", "identity", "general"])
def way(request, monkeypatch):
    """The three ways to the adjoint of a list."""
    compiled.forget_programs()
    compiled._families.clear()
    if request.param != "shadows":
        monkeypatch.setattr(shadows.Shadows, "is_needed", lambda plan: False)
    monkeypatch.setattr(compiled, "specialising", request.param != "general")
    yield request.param
    compiled.forget_programs()
    compiled._families.clear()


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("point", [(0.7, 1.3), (1.4, 0.6)])
def test_programs_with_lists(way, f, point):
    check_gradient(f, *point)
    value, gradients = morula.withgradient(f, *point)
    assert repr(value) == repr(f(*point))
    assert [type(g) for g in gradients] == [float, float]


@pytest.mark.parametrize(
    "f", [walked, popped_rows, pushed_again, products, turned, sliced, sliced_rows, filled]
)
def test_a_pullback_may_be_called_again(way, f):
    _, expected = morula.withgradient(f, 0.7, 1.3)
    for _ in range(3):
        _, back = morula.pullback(f, 0.7, 1.3)
        np.testing.assert_allclose(back(1.0), expected, rtol=1e-13)
        np.testing.assert_allclose(back(2.0), np.multiply(2.0, expected), rtol=1e-13)


@pytest.mark.parametrize("f", FOLLOWED)
def test_lists_have_shadows(f, monkeypatch):
    found = []
    give = shadows.Shadows.apply

    def apply(plan):
        found.append(give(plan))
        return found[-1]

    monkeypatch.setattr(shadows.Shadows, "apply", apply)
    compiled.forget_programs()
    compiled._families.clear()
    morula.gradient(f, 0.7, 1.3)
    assert found


def test_what_is_not_read_is_structurally_zero(way):
    assert morula.gradient(unused_items, 0.0, 2.0) == (2.0, 0.0)
    assert morula.gradient(unused_items, 0.0, 2.0) == (2.0, 0.0)


# -- numbers in the place of structural zeros


def first_root(xs):
    ys = [math.sqrt(x) for x in xs]
    return ys[0]


def first_angle(xs):
    ys = [math.asin(x) for x in xs]
    return ys[0]


def first_reciprocal(xs):
    ys = [math.pow(x, -1.0) for x in xs]
    return ys[0]


def later_put(xs):
    ys = [0.0] * len(xs)
    for i, x in enumerate(xs):
        ys[i] = math.sqrt(x)
    ys[1] = 3.0
    ys.append(math.sqrt(xs[1]))
    return ys[0] * ys[1]


def carried(x, n):
    y, total = math.sqrt(x), 1.0
    for _ in range(n):
        total = 0.5 * total + y
    return total


@pytest.mark.parametrize(
    ("f", "point", "expected"),
    [
        (first_root, [4.0, 0.0], [0.25, 0.0]),
        (first_root, [0.0, 4.0], [math.inf, 0.0]),
        (first_angle, [0.0, 1.0], [1.0, 0.0]),
        (first_reciprocal, [2.0, 1e-200], [-0.25, 0.0]),  # the slope overflows
        (later_put, [4.0, 0.0], [0.75, 0.0]),
    ],
)
def test_infinite_slopes_of_items_that_are_not_read(way, f, point, expected):
    g = morula.grad(f)
    x, z, h = 0.25, 1 / 9, 1e-6
    difference = (f([x + h, z]) - f([x - h, z])) / (2 * h)
    for _ in range(2):
        assert g(point) == expected
        assert g([x, z]) == pytest.approx([difference, 0.0])


@pytest.mark.parametrize(("n", "slope"), [(0, 0.0), (1, 1.0), (3, 1.75)])
def test_sums_that_a_loop_carries(way, n, slope):
    g = morula.grad(carried)
    assert g(4.0, n) == slope / 4
    assert g(0.0, n) == (math.inf if n else 0.0)
    assert g(4.0, n) == slope / 4


def test_nobody_asks_whether_anything_has_reached_a_number():
    g = morula.grad(first_root)
    g([0.5, 0.2])
    assert any(c is shadows.number_shadow_of for c in g.__code__.co_consts)
    assert not any(c is ZERO for c in g.__code__.co_consts)


def test_an_error_of_the_program_itself_is_raised_once(way):
    seen = []

    def f(xs):
        seen.append(len(xs))
        ys = [math.log(x) for x in xs]
        return ys[0]

    with pytest.raises(ValueError, match=r"math domain error|positive input"):
        morula.grad(f)([1.0, -1.0])
    assert seen == [2]


# -- lists as arguments


def energy(points, masses):
    total = 0.0
    for m, (x, y) in zip(masses, points, strict=False):
        total += m * (x * x + y * y)
    for i in range(len(points)):
        total += points[i][0] * points[i - 1][1]
    return total


def test_lists_as_arguments(way):
    points, masses = [[1.0, 2.0], [3.0, 4.0], [0.5, -1.0]], [1.0, 2.0, 0.5]
    check_gradient(energy, points, masses)
    kept = [list(p) for p in points]
    gradients = morula.gradient(energy, points, masses)
    assert points == kept
    assert [type(g) for g in gradients] == [list, list]
    assert all(type(v) is float for row in gradients[0] for v in row)
    assert morula.grad(energy)(points, masses) == gradients[0]
    assert morula.gradient(energy, points, masses)[0] is not gradients[0]


def total_of(xs):
    total = 0.0
    for x in xs:
        total += x * x
    return total


@pytest.mark.parametrize(
    ("xs", "expected"),
    [
        ([1.0, 2.0], [2.0, 4.0]),
        ([1, 2], [2.0, 4.0]),
        ([1.0, 2], [2.0, 4.0]),
        ([], []),
        ([1.0, True], [2.0, None]),
    ],
)
def test_items_of_other_types(way, xs, expected):
    slope = morula.grad(total_of)
    assert slope([3.0]) == [6.0]
    assert slope(xs) == expected
    assert [type(a) for a in slope(xs)] == [type(a) for a in expected]
    assert slope([3.0]) == [6.0]


def test_the_sum_of_no_items(way):
    assert morula.grad(lambda xs: sum(xs) * 2.0)([]) == []
    assert morula.withgradient(lambda xs: sum(xs), [])[0] == 0
    assert type(morula.withgradient(lambda xs: sum([v * v for v in xs]), [])[0]) is int
    assert morula.withgradient(lambda xs: sum([v * v for v in xs]), [1.0, 2.0]) == (
        5.0,
        ([2.0, 4.0],),
    )
    with pytest.raises(ValueError, match="empty"):
        morula.grad(lambda xs: max([v * v for v in xs]))([])


def test_ties_of_items(way):
    assert morula.grad(lambda xs: max(xs))([1.0, 3.0, 3.0]) == [0.0, 1.0, 0.0]
    assert morula.grad(lambda xs: min([x * x for x in xs]))([1.0, -1.0]) == [2.0, 0.0]


def test_lists_of_arrays(way):
    xs = [np.arange(3.0), np.ones(3, np.float32)]

    def f(xs):
        total = 0.0
        for x in xs:
            total = total + np.sum(x * x)
        return total

    first, second = morula.grad(f)(xs)
    np.testing.assert_array_equal(first, 2 * xs[0])
    assert second.dtype == np.float32
    np.testing.assert_array_equal(second, 2 * xs[1])
    assert not np.shares_memory(first, xs[0])


@pytest.mark.parametrize("x", [1.5, np.float32(1.5), np.float64(1.5), 2])
def test_real_items_of_complex_programs_stay_real(way, x):
    def f(x):
        xs = [x, x * 2]
        z = xs[0] * (1 + 2j) + xs[1]
        return abs(z) ** 2

    (x̄,) = morula.gradient(f, x)
    assert x̄ == pytest.approx(26 * float(x))
    assert type(x̄) is (float if type(x) is int else type(x))


def test_lists_of_complex_numbers(way):
    def f(zs):
        total = 0.0
        for z in zs:
            total = total + abs(z * z + 1)
        return total

    check_gradient(f, [1 + 2j, 0.5j])
    assert morula.grad(f)([]) == []


def test_lists_of_empty_arrays(way):
    def f(xs):
        total = 0.0
        for x in xs:
            total = total + np.sum(x * x)
        return total

    (x̄,) = morula.grad(f)([np.zeros((0, 2), np.float32)])
    assert (x̄.shape, x̄.dtype) == ((0, 2), np.float32)


def test_one_list_at_two_places(way):
    row = [1.0, 2.0]

    def f(rows):
        return rows[0][0] * rows[1][1]

    assert morula.grad(f)([row, row]) == [[2.0, 1.0], [2.0, 1.0]]


def test_an_argument_that_is_changed(way):
    def f(xs, y):
        xs[0] = xs[0] * y
        xs.append(y)
        return xs[0] * xs[1] * xs[2]

    xs = [2.0, 3.0]
    assert morula.gradient(f, xs, 5.0) == ([75.0, 50.0], 60.0)
    assert xs == [10.0, 3.0, 5.0]


def test_an_argument_that_something_else_changes(way):
    xs = [1.0, 2.0]

    class Sly:
        def __init__(self):
            self.held = xs

        def __call__(self, v):
            self.held[1] = 10.0
            return v

    sly = Sly()

    def f(xs, y):
        first = xs[1]
        z = sly(y)
        return first * z + xs[1] * y

    assert f(xs, 3.0) == 36.0
    xs[1] = 2.0
    _, ȳ = morula.gradient(f, xs, 3.0)
    assert ȳ == 12.0


def test_second_derivatives(way):
    def f(x):
        return replaced(x, 0.3)

    slope = morula.grad(f)
    h = 1e-5
    expected = (slope(1.1 + h) - slope(1.1 - h)) / (2 * h)
    assert morula.grad(slope)(1.1) == pytest.approx(expected, rel=1e-6)


# -- objects as arguments


class Dense:
    def __init__(self, weight, bias, name="dense"):
        self.weight = weight
        self.bias = bias
        self.name = name

    def __call__(self, x):
        return math.tanh(self.weight * x + self.bias)


class Model:
    def __init__(self, layers, scale):
        self.layers = layers
        self.scale = scale

    def predict(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scale


def predict(model, x):
    return model.predict(x) ** 2


def make_model():
    return Model([Dense(0.5, 0.1), Dense(-0.7, 0.2)], 3.0)


def as_numbers(gradient):
    return [gradient.scale, *[v for layer in gradient.layers for v in (layer.weight, layer.bias)]]


def test_objects_as_arguments(way):
    model = make_model()
    model_bar, x̄ = morula.gradient(predict, model, 0.8)
    h = 1e-6
    parts = [(model, "scale"), *[(m, n) for m in model.layers for n in ("weight", "bias")]]
    for (owner, name), found in zip(parts, as_numbers(model_bar), strict=True):
        value = getattr(owner, name)
        setattr(owner, name, value + h)
        above = predict(model, 0.8)
        setattr(owner, name, value - h)
        below = predict(model, 0.8)
        setattr(owner, name, value)
        assert found == pytest.approx((above - below) / (2 * h), rel=1e-6)
    assert x̄ == pytest.approx((predict(model, 0.8 + h) - predict(model, 0.8 - h)) / (2 * h))
    assert isinstance(model_bar, morula.Tangent)
    assert model_bar.layers[0].name is None


def test_objects_have_shadows():
    compiled.forget_programs()
    compiled._families.clear()
    morula.grad(predict)(make_model(), 0.8)
    (family,) = compiled._families.values()
    (program,) = family.programs.values()
    assert any(c is shadows.shadow_of for c in program.code.co_consts)


def test_one_object_at_two_places(way):
    layer = Dense(0.5, 0.1)
    model = Model([layer, layer], 1.0)
    found = morula.grad(predict)(model, 0.8)
    assert found.layers[0] is found.layers[1]
    apart = morula.grad(predict)(Model([Dense(0.5, 0.1), Dense(0.5, 0.1)], 1.0), 0.8)
    both = apart.layers[0].weight + apart.layers[1].weight
    assert found.layers[0].weight == pytest.approx(both)


def test_an_attribute_that_the_class_gets_later(way):
    class Scaled:
        def __init__(self, k):
            self.k = k

    def f(s, x):
        return s.k * x

    slope = morula.grad(f, argnums=(0, 1))
    assert slope(Scaled(2.0), 3.0)[1] == 2.0
    Scaled.k = property(lambda self: self.__dict__["k"] * 10.0, lambda self, k: None)
    scaled = Scaled(0.0)
    scaled.__dict__["k"] = 2.0
    s̄, x̄ = slope(scaled, 3.0)
    assert (s̄.k, x̄) == (30.0, 20.0)


def test_attributes_of_the_class(way):
    class Scaled:
        k = 2.0

        def __init__(self, shift):
            self.shift = shift

    def f(s, x):
        return s.k * x + s.shift

    assert morula.grad(f, 1)(Scaled(1.0), 3.0) == 2.0
    own = Scaled(1.0)
    own.k = 5.0
    s̄, x̄ = morula.gradient(f, own, 3.0)
    assert (s̄.k, s̄.shift, x̄) == (3.0, 1.0, 5.0)


def test_an_object_that_is_changed(way):
    def f(model, x):
        model.scale = model.scale * x
        return model.scale**2

    model = make_model()
    model_bar, x̄ = morula.gradient(f, model, 2.0)
    assert model.scale == 6.0
    assert (model_bar.scale, x̄) == (24.0, 36.0)


def test_an_object_that_holds_itself(way):
    model = make_model()
    model.layers[0].owner = model
    assert morula.grad(predict)(model, 0.8).layers[0].owner.scale == pytest.approx(
        morula.grad(predict)(make_model(), 0.8).scale
    )


def test_arrays_in_objects_share_no_memory(way):
    class Pair:
        def __init__(self):
            self.a = np.arange(3.0)
            self.b = self.a

    def f(p):
        return np.sum(p.a + p.b)

    found = morula.grad(f)(Pair())
    np.testing.assert_array_equal(found.a, np.ones(3))
    assert not np.shares_memory(found.a, found.b)
