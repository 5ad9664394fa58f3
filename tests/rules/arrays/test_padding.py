"""np.pad: every mode with widths on each side, wider than the array, of each dtype."""

import numpy as np
import pytest

from morula import UnsupportedError, grad, gradient, jvp, pullback
from morula.testing import check_rrule

WIDTHS = [0, 1, 3, (2, 1), ((1, 0), (0, 2)), ((4, 9), (7, 5))]
KEYWORDS = {
    "constant": [{}, {"constant_values": 0.5}, {"constant_values": ((1.0, 2.0), (0.3, -1.0))}],
    "edge": [{}], "wrap": [{}], "linear_ramp": [{}, {"end_values": (0.5, 2.0)}],
    "reflect": [{}, {"reflect_type": "odd"}], "symmetric": [{}, {"reflect_type": "odd"}],
    "mean": [{}, {"stat_length": 2}], "maximum": [{}, {"stat_length": ((1, 2), (3, 1))}],
    "minimum": [{}, {"stat_length": 2}], "median": [{}, {"stat_length": 3}],
}  # fmt: skip
CASES = [(mode, keywords) for mode, all_keywords in KEYWORDS.items() for keywords in all_keywords]


@pytest.mark.parametrize(("mode", "keywords"), CASES)
@pytest.mark.parametrize("width", WIDTHS)
def test_modes(rng, mode, keywords, width):
    check_rrule(np.pad, rng.standard_normal((3, 4)), width, mode, **keywords)


@pytest.mark.parametrize(("mode", "keywords"), CASES)
def test_dtypes_and_layouts(rng, mode, keywords):
    x = rng.standard_normal((4, 6))
    check_rrule(np.pad, x.astype("f4"), 2, mode, **keywords)
    check_rrule(np.pad, x[::2, ::-1], 2, mode, **keywords)
    if mode not in ("maximum", "minimum", "median"):
        check_rrule(np.pad, x + 1j * x[::-1], 2, mode, **keywords)


@pytest.mark.parametrize(("mode", "keywords"), CASES)
def test_second_derivatives(rng, check_second_order, mode, keywords):
    if "constant_values" not in keywords:
        check_second_order(np.pad, rng.standard_normal((3, 2)), 1, mode, **keywords)


def test_margins_have_gradients(path):
    x = np.arange(3.0)
    found = gradient(lambda a, b: np.pad(x, 2, constant_values=(a, b)).sum(), 1.0, 2.0)
    assert found == (2.0, 2.0)
    assert gradient(lambda a: np.pad(x, (2, 0), "linear_ramp", end_values=a).sum(), 1.0) == (1.5,)


def test_an_axis_of_length_one_and_the_empty_array():
    check_rrule(np.pad, np.array([2.0]), 2, "reflect")
    check_rrule(np.pad, np.array([2.0]), 2, "symmetric")
    check_rrule(np.pad, np.zeros((0, 2)), 1)


def test_a_function_as_mode_is_refused():
    def margins(line, widths, axis, keywords):
        line[: widths[0]] = 2.0

    with pytest.raises(UnsupportedError, match=r"np\.pad with a function"):
        gradient(lambda x: np.pad(x, 1, margins).sum(), np.ones(3))


@pytest.mark.parametrize(
    "pad",
    [
        lambda x, s: np.pad(x, 1, constant_values=s),
        lambda x, s: np.pad(x, 1, constant_values=(s, 2.0 * s)),
        lambda x, s: np.pad(x, 3, "linear_ramp", end_values=s),
    ],
)
def test_second_derivatives_by_what_is_put_around(pad, path):
    """That the result depends on these values was lost, so second derivatives were wrong."""

    def f(s):
        y = pad(np.array([0.5, 1.5, 2.5]), s)
        return np.sin(np.sum(y * np.linspace(0.3, 1.4, y.size)))

    steps = grad(f)(0.7 + 1e-5) - grad(f)(0.7 - 1e-5)
    assert grad(grad(f))(0.7) == pytest.approx(steps / 2e-5)
    assert jvp(grad(f), (0.7,), (1.0,))[1] == pytest.approx(steps / 2e-5)


def widths_that_change(x):
    widths = [0, 1]
    widths.reverse()
    return np.pad(x, widths)


CALLS = {
    "a number": lambda x: np.pad(x, 2),
    "no width": lambda x: np.pad(x, 0),
    "a pair": lambda x: np.pad(x, (1, 2), "constant"),
    "a list": lambda x: np.pad(x, [1, 2]),
    "each axis": lambda x: np.pad(np.outer(x, x), ((1, 0), (0, 2)), mode="constant"),
    "a variable width": lambda x: np.pad(x, len(x[x > 0])),
    "a list that changes": widths_that_change,
    "an array": lambda x: np.pad(x, np.array([1, 2])),
    "a constant": lambda x: np.pad(x, 1, constant_values=7),
    "a value": lambda x: np.pad(x, 1, constant_values=x[1]),
    "two values": lambda x: np.pad(x, 1, constant_values=(x[1], 2.0)),
    "edge": lambda x: np.pad(x, 2, "edge"),
    "wrap": lambda x: np.pad(np.outer(x, x), (2, 5), mode="wrap"),
    "reflect": lambda x: np.pad(x, (1, 2), mode="reflect"),
    "odd": lambda x: np.pad(x, (1, 2), mode="reflect", reflect_type="odd"),
    "even": lambda x: np.pad(x, (1, 2), mode="symmetric", reflect_type="even"),
    "mean": lambda x: np.pad(x, 1, mode="mean"),
    "ramp": lambda x: np.pad(x, 2, mode="linear_ramp", end_values=x[0]),
    "a branch not taken": lambda x: np.where(np.arange(5) < 4, np.pad(x, 1), np.nan) * (
        np.arange(5) < 4
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_programs(call, dtype):
    def f(x):
        y = call(x)
        return np.sum(np.nan_to_num(np.abs(y) ** 2 * np.cos(np.arange(y.shape[-1]))))

    x = np.array([0.5, -0.3, 0.7]).astype(dtype)
    _, back = pullback(f, x)
    found = grad(f)(x)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, back(1.0)[0], rtol=1e-5 if dtype == "f4" else 1e-10)
