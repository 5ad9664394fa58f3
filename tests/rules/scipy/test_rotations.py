"""scipy.spatial.transform: rotations and motions, by all that they are made of and turned into."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.spatial import transform
from scipy.spatial.transform import Rotation, RotationSpline, Slerp

import morula
from morula import UnsupportedError, grad, gradient, hessian, jvp, value_and_grad
from morula.testing import check_gradient
from tests.array_modes import check_array_modes, weigh

pytest.importorskip(
    "scipy.spatial.transform._rotation_cy", reason="this SciPy's rotations are compiled classes"
)
RigidTransform = transform.RigidTransform

RNG = np.random.default_rng(3)
V = RNG.standard_normal(3)
VS = RNG.standard_normal((4, 3))
Q = RNG.standard_normal(4)
QS = RNG.standard_normal((4, 4))
X = RNG.standard_normal(3)
XS = RNG.standard_normal((4, 3))
W = RNG.random(4) + 0.3
MS = Rotation.from_rotvec(VS).as_matrix() + 0.05 * RNG.standard_normal((4, 3, 3))
E6 = RNG.standard_normal((4, 6))
D8 = RNG.standard_normal((4, 8))
AXES = Rotation.from_rotvec([0.3, 0.5, -0.2]).as_matrix()
SKEWED = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8]])
TIMES = np.array([0.0, 1.0, 2.5, 3.0])
AT = np.array([0.3, 1.2, 2.5, 2.9])


def rot(v):
    return Rotation.from_rotvec(v)


def mat(r):
    return weigh(r.as_matrix())


MADE = {
    "from_quat": (lambda q: mat(Rotation.from_quat(q)), Q),
    "from_quat, many": (lambda q: mat(Rotation.from_quat(q, scalar_first=True)), QS),
    "from_quat, a tensor": (lambda q: mat(Rotation.from_quat(np.stack((q, 2 * q[::-1])))), QS),
    "Rotation": (lambda q: mat(Rotation(q, scalar_first=True)), Q),
    "Rotation, not normalized": (
        lambda q: weigh(Rotation(q, normalize=False, copy=False).as_rotvec()), QS,
    ),
    "from_matrix": (lambda m: mat(Rotation.from_matrix(m)), MS[0]),
    "from_matrix, many": (lambda m: weigh(Rotation.from_matrix(m).as_quat()), MS),
    "from_matrix, valid": (lambda m: weigh(Rotation.from_matrix(m, assume_valid=True).as_quat()), MS),
    "from_rotvec": (lambda v: mat(Rotation.from_rotvec(v)), V),
    "from_rotvec, many": (lambda v: mat(Rotation.from_rotvec(100 * v, degrees=True)), VS),
    "from_rotvec, a tensor": (lambda v: mat(Rotation.from_rotvec(np.stack((v, -v)))), VS),
    "from_rotvec, small": (lambda v: mat(Rotation.from_rotvec(v)), 1e-4 * VS),
    "from_mrp": (lambda v: mat(Rotation.from_mrp(v)), V),
    "from_mrp, many": (lambda v: mat(Rotation.from_mrp(v)), VS),
    "from_euler": (lambda v: mat(Rotation.from_euler("xyz", v)), V),
    "from_euler, intrinsic": (lambda v: mat(Rotation.from_euler("ZXZ", 50 * v, degrees=True)), VS),
    "from_euler, two": (lambda v: mat(Rotation.from_euler("yx", v[:2])), V),
    "from_euler, a number": (lambda a: mat(Rotation.from_euler("y", a)), 0.7),
    "from_euler, one in rows": (lambda v: mat(Rotation.from_euler("Y", v[:, None])), V),
    "from_euler, a list": (lambda v: mat(Rotation.from_euler("zyx", [v[0], 0.4, v[1]])), V),
    "from_davenport": (lambda v: mat(Rotation.from_davenport(AXES, "extrinsic", v)), V),
    "from_davenport, by axes": (
        lambda v, s: mat(Rotation.from_davenport(s * AXES[:2], "i", 30 * v[:, :2], degrees=True)),
        VS, 1.3,
    ),
    "from_davenport, a number": (lambda a, v: mat(Rotation.from_davenport(v, "e", a)), 0.7, V),
    "identity": (lambda v: mat(Rotation.identity() * rot(v)), V),
    "random": (lambda v: mat(Rotation.random(rng=4) * rot(v)), V),
    "random, many": (lambda v: mat(Rotation.random(4, rng=4) * rot(v)), VS),
    "group": (lambda v: mat(Rotation.create_group("D2") * rot(v)), V),
    "concatenate": (lambda v, w: mat(Rotation.concatenate([rot(v), rot(w), rot(2 * v)])), V, VS),
    "concatenate, one": (lambda v: mat(Rotation.concatenate(rot(v))), VS),
}  # fmt: skip
TURNED_INTO = {
    "as_quat": lambda r: r.as_quat(),
    "as_quat, canonical": lambda r: r.as_quat(canonical=True),
    "as_quat, scalar first": lambda r: r.as_quat(True, scalar_first=True),
    "as_matrix": lambda r: r.as_matrix(),
    "as_rotvec": lambda r: r.as_rotvec(),
    "as_rotvec, degrees": lambda r: r.as_rotvec(degrees=True) / 50,
    "as_mrp": lambda r: r.as_mrp(),
    "as_euler": lambda r: r.as_euler("xyz"),
    "as_euler, intrinsic": lambda r: r.as_euler("ZYX", degrees=True) / 50,
    "as_euler, symmetric": lambda r: r.as_euler("yxy", suppress_warnings=True),
    "as_euler, symmetric, intrinsic": lambda r: r.as_euler("ZXZ"),
    "as_euler, odd": lambda r: r.as_euler("xzy"),
    "as_davenport": lambda r: r.as_davenport(AXES, "extrinsic"),
    "as_davenport, intrinsic": lambda r: r.as_davenport(SKEWED, "i", degrees=True) / 50,
    "magnitude": lambda r: r.magnitude(),
    "inv": lambda r: r.inv().as_quat(),
    "apply": lambda r: r.apply(X),
    "apply, inverse": lambda r: r.apply(XS, inverse=True),
    "times": lambda r: (r * Rotation.from_rotvec(X)).as_quat(),
    "times many": lambda r: (r * Rotation.from_rotvec(XS)).as_quat(),
    "many times": lambda r: (Rotation.from_rotvec(XS) * r).as_quat(),
    "to the power": lambda r: (r**0.6).as_quat(),
    "to the powers 0, 1, 2, -1": lambda r: [(r**n).as_quat() for n in (0, 1, 2, -1)],
    "reduce": lambda r: r.reduce(left=Rotation.from_rotvec(XS)).as_quat(),
    "reduce, both": lambda r: r.reduce(
        Rotation.from_rotvec(XS), Rotation.from_rotvec(-XS)
    ).as_quat(),
    "reduce, with indices": lambda r: r.reduce(
        right=Rotation.from_rotvec(XS), return_indices=True
    )[0].as_quat(),
    "reduce by nothing": lambda r: r.reduce().as_quat(),
    "single": lambda r: r.as_quat() if r.single else 2 * r.as_quat(),
    "shape": lambda r: r.as_quat() * np.size(np.zeros(r.shape)),
    "pickled": lambda r: r.as_quat() * 2,
}
OF_MANY = {
    "mean": lambda r: r.mean().as_matrix(),
    "mean of rows": lambda r: r.mean(axis=0).as_matrix(),
    "mean of none": lambda r: r.mean(axis=()).as_matrix(),
    "an item": lambda r: r[1].as_quat(),
    "a slice": lambda r: r[1:3].as_quat(),
    "by a mask": lambda r: r[np.array([True, False, True, True])].as_quat(),
    "by numbers": lambda r: r[np.array([3, 0, 3])].as_quat(),
    "by a list": lambda r: r[[3, 0, 3]].as_quat(),
    "length": lambda r: r.as_quat() * len(r),
    "iterated": lambda r: [x.as_rotvec() for x in r],
    "approx_equal": lambda r: r.as_quat() * r.approx_equal(r[0], atol=1e-3)[:, None],
}
OF_TWO = {
    "mean with weights": (lambda v, w: mat(rot(v).mean(weights=w)), VS, W),
    "mean of a tensor": (
        lambda v, w: mat(Rotation.from_rotvec(v.reshape(2, 2, 3)).mean(w.reshape(2, 2), axis=1)), VS, W,
    ),
    "apply one to one": (lambda v, x: weigh(rot(v).apply(x)), V, X),
    "apply one to many": (lambda v, x: weigh(rot(v).apply(x)), V, XS),
    "apply many to one": (lambda v, x: weigh(rot(v).apply(x, inverse=True)), VS, X),
    "apply many to many": (lambda v, x: weigh(rot(v).apply(x)), VS, XS),
    "apply to a list": (lambda v, x: weigh(rot(v).apply([x[0], 1.0, x[1]])), VS, X),
    "apply, tensors": (lambda v, x: weigh(rot(v[:, None]).apply(x)), VS, XS),
    "times": (lambda v, x: weigh((rot(v) * rot(x)).as_quat()), VS, XS),
    "times, tensors": (lambda v, x: weigh((rot(v[:, None]) * rot(x)).as_quat()), VS, XS),
    "to a power": (lambda v, n: weigh((rot(v) ** n).as_quat()), VS, 1.7),
    "to the power zero": (lambda v, n: weigh((rot(v) ** n).as_quat()), VS, 0.0),
    "to the power one": (lambda v, n: weigh((rot(v) ** n).as_quat()), VS, 1.0),
    "to the power minus one": (lambda v, n: weigh((rot(v) ** n).as_quat()), VS, -1.0),
    "to a power in an array": (lambda v, n: weigh((rot(v) ** n).as_quat()), V, np.array([1.7])),
    "align_vectors": (lambda a, b: [mat(r := Rotation.align_vectors(a, b)), r][0][0], XS, VS),
    "as_davenport, by axes": (
        lambda v, a: weigh(rot(v).as_davenport(rot(a).apply(np.eye(3)), "e")), VS, X,
    ),
    "reduce, by what reduces": (
        lambda v, x: weigh(rot(v).reduce(rot(x), rot(x[1:])).as_quat()), VS, XS,
    ),
}  # fmt: skip
del OF_TWO["align_vectors"]


@pytest.mark.parametrize("name", MADE)
def test_made_of(name):
    f, *xs = MADE[name]
    check_array_modes(f, *xs)


@pytest.mark.parametrize("rows", [V, VS, VS[:1]], ids=["one", "four", "one in a stack"])
@pytest.mark.parametrize("name", TURNED_INTO)
def test_turned_into(name, rows):
    if "reduce" in name and rows.ndim == 1 and name != "reduce by nothing":
        rows = rows + 0.1
    check_array_modes(lambda v: weigh(TURNED_INTO[name](rot(v))), rows)


@pytest.mark.parametrize("name", OF_MANY)
def test_of_many(name):
    check_array_modes(lambda v: weigh(OF_MANY[name](rot(v))), VS)


@pytest.mark.parametrize("name", OF_TWO)
def test_of_two(name):
    f, *xs = OF_TWO[name]
    check_array_modes(f, *xs)
