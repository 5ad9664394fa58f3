"""pinv and lstsq against differences, also at matrices of low rank."""

import numpy as np
import pytest

from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw, hermitian

DTYPES = ["f8", "c16", "f4"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 2)])
def test_pinv(rng, dtype, shape):
    check_rrule(np.linalg.pinv, draw(rng, shape, dtype), order=2 if dtype == "f8" else 1)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_pinv_with_options(rng, dtype):
    check_rrule(np.linalg.pinv, hermitian(rng, (3, 3), dtype), hermitian=True)
    check_rrule(np.linalg.pinv, draw(rng, (3, 2), dtype), rtol=1e-12)
    check_rrule(np.linalg.pinv, draw(rng, (3, 2), dtype), 1e-12)


def test_pinv_along_matrices_of_one_rank(rng):
    u, v = draw(rng, (4, 1), "f8"), draw(rng, (1, 3), "f8")
    c = draw(rng, (3, 4), "f8")
    check_gradient(lambda u, v: np.sum(np.linalg.pinv(u @ v) * c), u, v)
    b = draw(rng, 4, "f8")
    check_gradient(lambda u, v: np.linalg.lstsq(u @ v, b)[0] @ c[:, 0], u, v)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shapes", [((4, 2), (4,)), ((4, 2), (4, 3)), ((2, 4), (2,)), ((3, 3), (3, 2))]
)
def test_lstsq(rng, dtype, shapes):
    check_rrule(np.linalg.lstsq, draw(rng, shapes[0], dtype), draw(rng, shapes[1], dtype))
    check_rrule(np.linalg.lstsq, draw(rng, shapes[0], "f8"), draw(rng, shapes[1], dtype), 1e-10)


def test_lstsq_at_second_order(rng):
    check_gradient(
        lambda a, b: np.sum(np.linalg.lstsq(a, b)[0] ** 2) + np.linalg.lstsq(a, b)[1][0],
        draw(rng, (4, 2), "f8"),
        draw(rng, 4, "f8"),
    )
    check_rrule(np.linalg.lstsq, draw(rng, (4, 2), "f8"), draw(rng, 4, "f8"), order=2)
