"""What is known of the items of lists: what the types of results say of them."""

import bisect

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.core.program import Gradient
from morula.core.values import argument_value, known
from morula.testing import check_gradient


def result_type(f, *args):
    """The type that is found for the result of f, or None."""
    gradient = Gradient(f, [argument_value(a) for a in args], (0,), True, True, args)
    found = known(gradient.specialised().returned())
    return None if found is None else found.type


def opaque(xs):
    """Something that is not looked into."""
    with open(xs):
        pass


def built(x):
    xs = [x, x * 2.0]
    return xs[1]


def nested(x):
    rows = [[x * i for i in range(3)] for _ in range(2)]
    return rows[1][2]


def appended(x):
    xs = []
    for _ in range(3):
        xs.append(x)
    return xs[0]


def of_two_types(x):
    xs = [x, "text"]
    return xs[0]


def changed_to_text(x):
    xs = [x]
    ys = xs
    ys[0] = "text"
    return xs[0]


def changed_behind_a_branch(x):
    xs, ys = [x], [x]
    zs = xs if x > 0 else ys
    zs.append("text")
    return ys[0]


def changed_in_a_list(x):
    row = [x]
    rows = [row]
    rows[0].append("text")
    return row[0]


def given_away(x):
    xs = [x]
    opaque(xs)
    return xs[0]


def sorted_in_place(x):
    xs = [x, x * x]
    xs.sort()
    return xs[0]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (built, float),
        (nested, float),
        (appended, float),
        (sorted_in_place, float),
        (of_two_types, None),
        (changed_to_text, None),
        (changed_behind_a_branch, None),
        (changed_in_a_list, None),
    ],
)
def test_items_of_lists_that_are_made(f, expected):
    assert result_type(f, 2.0) is expected


def test_a_list_that_something_unknown_gets():
    gradient = Gradient(given_away, [argument_value(2.0)], (0,), True, True)
    assert gradient.specialised().returned() is None


def first(xs):
    return xs[0]


def first_of_first(xs):
    return xs[0][0]


@pytest.mark.parametrize(
    ("f", "xs", "expected"),
    [
        (first, [1.0, 2.0], float),
        (first, [1, 2], int),
        (first, [np.float32(1)], np.float32),
        (first, [np.ones(2), np.ones(3)], np.ndarray),
        (first_of_first, [[1.0], [2.0, 3.0], []], float),
    ],
)
def test_items_of_arguments(f, xs, expected):
    assert result_type(f, xs) is expected


def test_an_argument_that_gets_something_else():
    def f(xs, ys):
        ys.append("text")
        return xs[0]

    xs = [1.0]
    gradient = Gradient(f, [argument_value(xs)] * 2, (0,), True, True)
    assert gradient.specialised().returned() is None


def test_lists_of_other_items_get_programs_of_their_own(path):
    def f(xs):
        total = 0.0
        for x in xs:
            total = total + np.sum(x * x)
        return total

    slope = morula.grad(f)
    for _ in range(12):
        assert slope([1.0, 2.0]) == [2.0, 4.0]
        np.testing.assert_array_equal(slope([np.ones(2)])[0], [2.0, 2.0])
        assert slope([1, 2.0]) == [2.0, 4.0]
        assert slope([]) == []
    if path == "specialised":
        programs = slope.__dict__["__morula__"].programs.values()
        assert all(p.code is not None for p in programs)
        assert max(p.tries for p in programs) <= 2


A = np.array([[1.1, 0.2, 0.3], [0.4, 1.5, 0.6], [0.7, 0.8, 1.9]])


def recurrent(a):
    h, hs = np.zeros(3), []
    for x in a:
        h = np.tanh(a @ h + x)
        hs.append(h)
    found = np.array(hs)
    return (found[1:] * found[:-1]).sum()


def stacked(a):
    hs = []
    for i in range(3):
        hs.append(a[i] * a[i - 1])
    last = np.stack(hs, axis=-1)[0, 1] * np.concatenate(hs, axis=0)[2]
    return (np.stack(hs, 1) @ a).sum() + np.concatenate(hs)[4] * 2 + np.stack(hs)[-1, 0] + last


def rows_and_columns(a):
    hs = [a[i] * a[i - 1] for i in range(3)]
    gs = [a[: i + 1] * 2.0 for i in range(2)]
    fs = [a[:, :2] * a[0, 0], a]
    together = (np.vstack(hs) @ a).sum() + (np.vstack(gs) ** 2).sum()
    return (
        together
        + (np.hstack(hs) ** 2).sum()
        + (np.hstack(fs) ** 3 * np.concatenate(fs, axis=1)).sum()
    )


def orthogonal(a):
    found = []
    for v in a.T:
        for q in found:
            v = v - (q @ v) * q
        found.append(v / np.sqrt(v @ v))
    return np.array(found)[0].sum() + np.stack(found, 1)[2, 1]


def written_between(a):
    hs = []
    for i in range(3):
        hs.append(a[i] * a[i - 1])
    hs[1] = hs[0] * 2.0
    return (np.array(hs) * a).sum() + hs[0].sum()


def numbers(a):
    hs = [a[0, 0] * 2, a[1, 1] * 3]
    return np.array(hs).sum() + np.stack(hs)[0] * a[2, 2]


JOINED = [recurrent, stacked, rows_and_columns, orthogonal, written_between, numbers]


@pytest.mark.parametrize("f", JOINED)
def test_lists_of_arrays_that_are_joined(f):
    check_gradient(f, A)
    program = str(morula.code_adjoint(f, A))
    assert program.startswith("# specialised")
    assert "call_from_program" not in program
    second = morula.hessian(f)(A)
    with by_the_general_path():
        np.testing.assert_allclose(second, morula.hessian(f)(A), rtol=1e-9, atol=1e-12)


def test_a_list_that_was_taken_to_hold_arrays_may_be_empty():
    def f(a, n):
        found = []
        for i in range(n):
            found.append(a[i] * 2.0)
        return np.array(found).sum() + a.sum()

    g = morula.grad(f)
    assert g(A, 2).sum(axis=1).tolist() == [9.0, 9.0, 3.0]
    assert g(A, 0).tolist() == np.ones((3, 3)).tolist()
    assert morula.value_and_grad(f)(A, 0)[0] == A.sum()


# -- lists of a program's own beside objects that it is differentiated by ------------------------------


def heads(params, x):
    parts = []
    for k in range(3):
        parts.append(np.tanh(x[k] * params["w"] + params["b"]))
    return np.concatenate(parts).sum()


def table(cost):
    """Distances in a table of lists, of what two words are made of."""
    s, t = "kitten", "sitting"
    d = [[0.0] * (len(t) + 1) for _ in range(len(s) + 1)]
    for i in range(1, len(s) + 1):
        d[i][0] = i * cost["del"]
    for j in range(1, len(t) + 1):
        d[0][j] = j * cost["ins"]
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            swap = 0.0 if s[i - 1] == t[j - 1] else cost["sub"]
            d[i][j] = min(
                d[i - 1][j] + cost["del"], d[i][j - 1] + cost["ins"], d[i - 1][j - 1] + swap
            )
    return d[-1][-1]


def between(ys, xs, points):
    total = 0.0
    for x in points:
        i = max(0, min(len(xs) - 2, bisect.bisect_right(xs, x) - 1))
        t = (x - xs[i]) / (xs[i + 1] - xs[i])
        total += (ys[i] * (1 - t) + ys[i + 1] * t) ** 2
    return total


PARAMS = {"w": np.array([0.5, -1.0]), "b": np.array([0.1, 0.2])}
COSTS = {"del": 1.0, "ins": 1.25, "sub": 1.75}
PLACES = [0.0, 0.5, 2.0, 3.0]


def extended(x):
    """Lists that are added to in place."""
    xs = [x]
    for _ in range(3):
        xs += [xs[-1] * x, x]
    more = [x * x]
    more += xs
    return sum(more)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (extended, (1.3,)),
        (lambda params: heads(params, [0.3, -0.2, 0.9]), (PARAMS,)),
        (table, (COSTS,)),
        (between, ([1.0, 2.0, -1.0, 0.5], PLACES, [0.2, 0.7, 2.5])),
    ],
    ids=["extended", "heads", "table", "between"],
)
def test_own_lists_are_written_to_beside_arguments_that_hold_numbers(f, args):
    program = str(morula.code_adjoint(f, *args))
    assert program.startswith("# specialised")
    assert "call_from_program" not in program
    check_gradient(f, *args)


def in_a_list(p, x):
    held = [p]
    held.append(p)
    held[0]["w"] = held[1]["w"] * 2
    return np.sum(p["w"] * x)


def bound_anew(p, x):
    held = []
    for key in ("w", "b"):
        held.append(p[key] * x)
    p["w"] = p["b"]
    return np.sum(held[0] * held[1] * p["w"])


def by_way_of_an_item(p, x):
    held = [p["w"]]
    held.append(p["b"])
    held[0] += x
    return np.sum(p["w"] * p["b"] * x)


def two_names(p, x):
    rows = [p["w"], [x]] * 2
    rows[2] *= 3.0
    rows[1].append(2.0)
    return np.sum(p["w"] * x) + rows[3][1] * np.sum(rows[0])


@pytest.mark.parametrize("f", [in_a_list, bound_anew, by_way_of_an_item, two_names])
def test_what_an_own_list_holds_may_be_an_argument_all_the_same(f):
    def arguments():
        return {k: v.copy() for k, v in PARAMS.items()}, np.array([1.5, 2.0])

    left, by_program, by_path = arguments(), arguments(), arguments()
    value = f(*left)
    found = morula.value_and_grad(f, (0, 1))(*by_program)
    with by_the_general_path():
        expected = morula.value_and_grad(f, (0, 1))(*by_path)
    assert found[0] == expected[0] == value
    np.testing.assert_equal(found[1], expected[1])
    np.testing.assert_equal(by_program, left)
    np.testing.assert_equal(by_path, left)


def sum_of_what_a_loop_gives(x, n):
    xs = [x, 1]
    for _ in range(n):
        xs.append(xs[-1] * x + xs[-2])
    return sum(xs) * xs[-1]


def sum_of_arrays(x, n):
    xs = []
    for i in range(n):
        xs.append(np.ones(i % 2 + 1) * x)
    return np.sum(sum(xs)) if xs else x


def sum_of_mixed_items(x, n):
    xs = [x, np.float64(2.0), 3]
    for _ in range(n):
        xs.append(np.array(x))
    return float(sum(xs)) * x


@pytest.mark.parametrize("f", [sum_of_what_a_loop_gives, sum_of_arrays, sum_of_mixed_items])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_sums(f, n):
    value, gradient = morula.value_and_grad(f)(1.3, n)
    assert value == f(1.3, n)
    with by_the_general_path():
        assert gradient == pytest.approx(morula.grad(f)(1.3, n), rel=1e-13)
    check_gradient(lambda x: f(x, n), 1.3)
    _, back = morula.pullback(f, 1.3, n)
    assert back(1.0) == back(1.0)
