"""The two Wirtinger derivatives, of holomorphic and other functions."""

import numpy as np
import pytest

from morula import gradient, wirtinger

pytestmark = pytest.mark.usefixtures("path")
Z = 0.7 - 1.3j


def differences(f, z, h=1e-6):
    by_x = (f(z + h) - f(z - h)) / (2 * h)
    by_y = (f(z + 1j * h) - f(z - 1j * h)) / (2 * h)
    return (by_x - 1j * by_y) / 2, (by_x + 1j * by_y) / 2


@pytest.mark.parametrize(
    "f",
    [
        lambda z: z**3,
        lambda z: z.conjugate(),
        lambda z: abs(z) ** 2,
        lambda z: z.real * z + z.imag,
        lambda z: np.exp(z) * np.conj(z),
        lambda z: np.angle(z),
        lambda z: abs(z),
        lambda z: z * 2,
    ],
)
def test_against_differences(f):
    for z in (Z, np.complex128(Z)):
        assert np.allclose(wirtinger(f, z), differences(f, z), atol=1e-8)


def test_holomorphic_and_real_functions():
    assert wirtinger(lambda z: z**2, Z) == (2 * Z, 0)
    by_z, by_conjugate = wirtinger(lambda z: abs(z) ** 2, Z)
    assert by_z == np.conj(by_conjugate)
    assert np.isclose(2 * by_conjugate, gradient(lambda z: abs(z) ** 2, Z)[0])


def test_arrays_and_real_arguments():
    z = np.array([1 + 1j, 2 - 1j])
    by_z, by_conjugate = wirtinger(lambda z: np.sum(z**2 + np.conj(z)), z)
    assert np.allclose(by_z, 2 * z)
    assert np.allclose(by_conjugate, 1)
    by_z, by_conjugate = wirtinger(lambda z: z * z.conjugate(), 3.0)
    assert (by_z, by_conjugate) == (3, 3)


def test_several_numbers_are_refused():
    with pytest.raises(TypeError, match="one number"):
        wirtinger(lambda z: np.array([1, 2]) * z, Z)


def test_inside_differentiated_code():
    g = gradient(lambda x: abs(wirtinger(lambda z: z**2, x * (1 + 1j))[0]) ** 2, 2.0)[0]
    assert np.isclose(g, 8 * 2 * 2.0)


def test_on_a_branch_cut_the_side_counts():
    assert wirtinger(np.sqrt, complex(-1, 0.0))[0] == -0.5j
    assert wirtinger(np.sqrt, complex(-1, -0.0))[0] == 0.5j
