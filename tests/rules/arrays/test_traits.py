"""Spaces, units, details and gradients of arrays and scalars."""

import numpy as np
import pytest

from morula.core.extend import NoTangent, ZeroTangent, materialise, project_to, unit
from morula.core.traits import describe, has_tangent, sample, typed_zero

FLOATS = ["f2", "f4", "f8", "g", "c8", "c16", "G"]


def gradient(x, x̄):
    return materialise(x, x̄, lambda _: None)


@pytest.mark.parametrize("dtype", FLOATS)
def test_arrays_keep_dtype_and_shape(dtype):
    x = np.ones((2, 3), dtype)
    g = project_to(x)(np.ones((2, 3), "c16"))
    assert (g.dtype, g.shape) == (x.dtype, x.shape)
    assert project_to(x)(x) is x
    assert gradient(x, ZeroTangent()).dtype == x.dtype


@pytest.mark.parametrize("dtype", FLOATS)
def test_scalars_keep_their_type(dtype):
    x = np.dtype(dtype).type(2)
    for x̄ in (1.0, 1, np.float64(1), np.array(1.0), np.array([1 + 0j]), np.complex64(1)):
        assert type(project_to(x)(x̄)) is type(x)
    assert type(gradient(x, ZeroTangent())) is type(x)
    assert type(typed_zero(type(x))) is type(x)
    assert sample(describe(x)) == 1


def test_integers_and_truth_values():
    assert project_to(np.arange(3))(np.ones(3, "c8")).dtype == float
    assert gradient(np.arange(3), ZeroTangent()).dtype == float
    assert project_to(np.array([True]))(np.ones(1)) is NoTangent()
    assert gradient(np.array([True]), np.ones(1)) is None
    assert gradient(np.array(["a"]), NoTangent()) is None
    assert type(project_to(np.int64(3))(np.float64(2))) is float
    assert gradient(np.int32(3), ZeroTangent()) == 0.0
    assert gradient(np.bool_(True), 1.0) is None
    assert not has_tangent(np.bool_)
    assert not has_tangent(type(np.dtype("f4")))
    assert not has_tangent(type(np.add))


def test_axes_of_length_one_are_put_back():
    assert project_to(np.ones((1, 3)))(np.ones(3)).shape == (1, 3)
    assert project_to(np.ones(()))(2.0).shape == ()
    with pytest.raises(ValueError, match=r"shape \(3,\) has shape \(2,\)"):
        project_to(np.ones(3))(np.ones(2))
    with pytest.raises(ValueError, match=r"shape \(3, 2\) has shape \(2, 3\)"):
        project_to(np.ones((3, 2)))(np.ones((2, 3)))


def test_units():
    assert unit(np.float32(3)).dtype == np.float32
    assert unit(np.array([[3.0]])).tolist() == [[1.0]]
    assert unit(np.array(3)).dtype == float
    assert unit(np.int64(3)) == 1.0
    for y in (np.ones(2), np.array(1j), np.complex64(1), np.bool_(True), np.array([True])):
        assert unit(y) is None


def test_gradients_are_fresh_and_writable():
    x = np.ones(3)
    x̄ = np.broadcast_to(2.0, 3)
    for g in (gradient(x, x̄), gradient(x, x)):
        assert g.flags.writeable
        assert not np.shares_memory(g, x)
        assert type(g) is np.ndarray


@pytest.mark.parametrize("x", [np.ones((2, 3)), np.ones(4, "c8"), np.array(3), np.ones(0, "f4")])
def test_samples_have_the_detail_of_what_they_stand_for(x):
    assert describe(sample(describe(x))) == describe(x)
