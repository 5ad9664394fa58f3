"""scipy.spatial.transform: rotations and motions, by all that they are made of and turned into."""

import numpy as np
import pytest
from scipy.spatial import transform
from scipy.spatial.transform import Rotation, RotationSpline, Slerp

import morula
from morula import UnsupportedError, grad, gradient, hessian, jvp, value_and_grad
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient
from tests.array_modes import check_array_modes, check_second, often, weigh

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
AT = np.array([0.3, 1.2, 2.6, 2.9])


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
        Rotation.from_rotvec(XS), Rotation.from_rotvec(0.7 * XS[1:])
    ).as_quat(),
    "reduce, with indices": lambda r: r.reduce(right=Rotation.from_rotvec(XS), return_indices=True)[
        0
    ].as_quat(),
    "reduce by nothing": lambda r: r.reduce().as_quat(),
    "single": lambda r: r.as_quat() if r.single else 2 * r.as_quat(),
    "shape": lambda r: r.as_quat() * np.size(np.zeros(r.shape)),
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
    "to the power zero": (lambda v, n: mat(rot(v) ** n), VS, 0.0),
    "to the power one": (lambda v, n: mat(rot(v) ** n), VS, 1.0),
    "to the power minus one": (lambda v, n: mat(rot(v) ** n), VS, -1.0),
    "to a power in an array": (lambda v, n: weigh((rot(v) ** n).as_quat()), V, np.array([1.7])),
    "as_davenport, by axes": (
        lambda v, a: weigh(rot(v).as_davenport(rot(a).apply(np.eye(3)), "e")), VS, X,
    ),
    "reduce, by what reduces": (
        lambda v, x: weigh(rot(v).reduce(rot(x), rot(x[1:])).as_quat()), VS, XS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_made_of(name):
    f, *xs = MADE[name]
    check_array_modes(f, *xs)


@pytest.mark.parametrize("name", TURNED_INTO)
def test_turned_into(name):
    check_array_modes(lambda v: weigh(TURNED_INTO[name](rot(v))), VS)


@pytest.mark.parametrize("name", TURNED_INTO)
def test_one_turned_into(name):
    with by_the_general_path():
        for rows in (V, VS[:1]):
            check_gradient(lambda v: weigh(TURNED_INTO[name](rot(v))), rows)


def test_programs_of_second_derivatives():
    along = (XS,)
    check_second(lambda xs: weigh(rot(xs[0]).as_rotvec()), (VS,), along)
    check_second(lambda xs: weigh((rot(xs[0]) * rot(XS)).as_euler("xyz")), (VS,), along)


@pytest.mark.parametrize("name", OF_MANY)
def test_of_many(name):
    check_array_modes(lambda v: weigh(OF_MANY[name](rot(v))), VS)


@pytest.mark.parametrize("name", OF_TWO)
def test_of_two(name):
    f, *xs = OF_TWO[name]
    check_array_modes(f, *xs)


def aligned(a, b, w):
    r, rest, sensitivity = Rotation.align_vectors(a, b, weights=w, return_sensitivity=True)
    return weigh(r.as_quat()) + rest + weigh(sensitivity)


def fixed(a, b, w):
    weights = np.concatenate((w[:1], np.array([np.inf]), w[2:]))
    r, rest = Rotation.align_vectors(a, b, weights)
    return weigh(r.as_quat()) + rest


def alone(a, b, w):
    r, rest = Rotation.align_vectors(a[0], b[:1], w[:1])
    return weigh(r.as_matrix()) + rest


ALIGNED = {
    "with all": (aligned, XS, VS, W),
    "mirrored": (aligned, XS, -VS, W),
    "one fixed": (fixed, XS, VS, W),
    "one alone": (alone, XS, VS, W),
    "two": (lambda a, b: mat(Rotation.align_vectors(a, b)[0]), XS[:2], VS[:2]),
    "lists": (lambda a: mat(Rotation.align_vectors([a, [0.0, 1.0, 0.2]], VS[:2])[0]), X),
}


@pytest.mark.parametrize("name", ALIGNED)
def test_aligned(name):
    f, *xs = ALIGNED[name]
    check_array_modes(f, *xs)


def test_alignment_without_remainder():
    """What remains has no direction there, and the slope zero; the rotation has all of its own."""
    b = np.eye(3)
    r = Rotation.from_rotvec([0.0, 0.0, np.pi / 2])
    for g in gradient(lambda b: Rotation.align_vectors(r.apply(b), b)[1], b):
        assert np.all(np.isfinite(g))
    check_array_modes(lambda v: mat(Rotation.align_vectors(rot(v).apply(VS), VS)[0]), V)


@pytest.mark.filterwarnings("ignore:Optimal rotation")
@pytest.mark.parametrize("b", [-XS[:1], np.outer(W, X)], ids=["opposite", "on one line"])
def test_what_is_not_determined_by_vectors_is_refused(b):
    a = XS[:1] if len(b) == 1 else b.copy()
    with pytest.raises(UnsupportedError, match="not determined"):
        grad(lambda b: mat(Rotation.align_vectors(a, b)[0]))(b)


def interpolated(v, times, at):
    return Slerp(times, rot(v))(at).as_quat()


def splined(order):
    def f(v, times, at):
        y = RotationSpline(times, rot(v))(at, order)
        return weigh(y.as_quat() if order == 0 else y)

    return f


INTERPOLATED = {
    "Slerp": (lambda v, t, at: weigh(interpolated(v, t, at)), VS, TIMES, AT),
    "Slerp at a time": (lambda v, at: weigh(interpolated(v, TIMES, at)), VS, 1.7),
    "Slerp at a list": (lambda v, at: weigh(interpolated(v, [0, 1, 2, 3], [at, 2])), VS, 1.7),
    "spline": (splined(0), VS, TIMES, AT + 0.01),
    "rates of a spline": (splined(1), VS, TIMES, AT + 0.01),
    "accelerations of a spline": (splined(2), VS, TIMES, AT + 0.01),
    "spline of two": (lambda v, at: weigh(RotationSpline([0, 1], rot(v))(at, 1)), VS[:2], 0.4),
}


@pytest.mark.parametrize("name", often(INTERPOLATED, "Slerp", "spline"))
def test_interpolated(name):
    f, *xs = INTERPOLATED[name]
    check_array_modes(f, *xs, second="spline" not in name)


# -- rigid transforms ------------------------------------------------------------------------------

T = RigidTransform.from_exp_coords(E6).as_matrix()


def motion(e):
    return RigidTransform.from_exp_coords(e)


def affine(m, t):
    upper = np.concatenate((m, t[..., None]), axis=-1)
    return np.concatenate((upper, np.broadcast_to(np.eye(4)[3:], (*m.shape[:-2], 1, 4))), axis=-2)


MOTIONS_MADE = {
    "from_matrix": (lambda m, t: RigidTransform.from_matrix(affine(m, t)), MS, XS),
    "from_matrix, one": (lambda m, t: RigidTransform(affine(m, t)), MS[0], X),
    "not normalized": (lambda m, t: RigidTransform(affine(m, t), normalize=False), MS, XS),
    "from_rotation": (lambda v: RigidTransform.from_rotation(rot(v)), V),
    "from_translation": (lambda t: RigidTransform.from_translation(t), X),
    "from_components": (lambda t, v: RigidTransform.from_components(t, rot(v)), XS, VS),
    "from_components, one": (lambda t, v: RigidTransform.from_components(t, rot(v)), XS, V),
    "from_exp_coords": (lambda e: RigidTransform.from_exp_coords(e), E6),
    "from_exp_coords, one": (lambda e: RigidTransform.from_exp_coords(e), E6[0]),
    "from_exp_coords, small": (lambda e: RigidTransform.from_exp_coords(e * 1e-4), E6),
    "from_dual_quat": (lambda d: RigidTransform.from_dual_quat(d), D8),
    "from_dual_quat, scalar first": (
        lambda d: RigidTransform.from_dual_quat(d, scalar_first=True), D8[0],
    ),
    "identity": (lambda e: RigidTransform.identity(4) * motion(e), E6),
    "concatenate": (lambda e: RigidTransform.concatenate([motion(e), motion(e[0])]), E6),
    "a tensor": (lambda m: RigidTransform.from_exp_coords(m.reshape(2, 2, 6)), E6),
}  # fmt: skip
MOTIONS_TURNED = {
    "as_matrix": lambda r: r.as_matrix(),
    "as_components": lambda r: [r.as_components()[0], r.as_components()[1].as_quat()],
    "as_exp_coords": lambda r: r.as_exp_coords(),
    "as_dual_quat": lambda r: r.as_dual_quat(),
    "as_dual_quat, scalar first": lambda r: r.as_dual_quat(scalar_first=True),
    "rotation": lambda r: r.rotation.as_rotvec(),
    "translation": lambda r: r.translation,
    "inv": lambda r: r.inv().as_matrix(),
    "apply": lambda r: r.apply(X),
    "apply, inverse": lambda r: r.apply(XS, inverse=True),
    "times": lambda r: (r * RigidTransform.from_translation(X)).as_matrix(),
    "to a power": lambda r: (r**0.5).as_matrix(),
    "to the powers 0, 1, 2, -1": lambda r: [(r**n).as_matrix() for n in (0, 1, 2, -1)],
}
MOTIONS_OF_MANY = {
    "mean": lambda r: r.mean().as_matrix(),
    "mean with weights": lambda r: r.mean(weights=[0.3, 0.4, 1.0, 0.6]).as_matrix(),
    "mean of none": lambda r: r.mean(axis=()).as_matrix(),
    "items": lambda r: [r[1].as_matrix(), r[1:3].as_matrix(), r[np.array([2, 0])].as_matrix()],
    "iterated": lambda r: [x.as_matrix() * len(r) for x in r],
}


@pytest.mark.parametrize("name", MOTIONS_MADE)
def test_motions_made_of(name):
    f, *xs = MOTIONS_MADE[name]
    check_array_modes(lambda *xs: weigh(f(*xs).as_matrix()), *xs)


@pytest.mark.parametrize("name", MOTIONS_TURNED)
def test_motions_turned_into(name):
    check_array_modes(lambda e: weigh(MOTIONS_TURNED[name](motion(e))), E6)
    check_gradient(lambda e: weigh(MOTIONS_TURNED[name](motion(e))), E6[0])


@pytest.mark.parametrize("name", MOTIONS_OF_MANY)
def test_motions_of_many(name):
    check_array_modes(lambda e: weigh(MOTIONS_OF_MANY[name](motion(e))), E6)


def test_motions_by_two():
    check_array_modes(lambda e, x: weigh(motion(e).apply(x)), E6, XS)
    check_array_modes(lambda e, x: weigh(motion(e[0]).apply(x)), E6, X)
    check_array_modes(lambda e, f: weigh((motion(e) * motion(f)).as_matrix()), E6, E6[::-1])
    check_array_modes(lambda e, w: weigh(motion(e).mean(weights=w).as_matrix()), E6, W)


# -- special places --------------------------------------------------------------------------------


def test_no_rotation():
    """Everything is smooth there, but the magnitude, whose slope is zero by convention."""
    zero = np.zeros(3)
    programs = (
        lambda v: mat(rot(v)), lambda v: weigh(rot(v).as_rotvec()), lambda v: weigh(rot(v).as_mrp()),
        lambda v: weigh((rot(v) ** 0.3).as_quat()), lambda v: weigh(Rotation.from_mrp(v).as_rotvec()),
        lambda v: weigh(motion(np.concatenate((v, v))).as_exp_coords()),
        lambda v: mat(Rotation.from_rotvec(np.stack((v, v + 1))[None])),
        lambda v: weigh(rot(np.stack((v, v + 1))[None]).as_rotvec()),
        lambda v: weigh(motion(np.concatenate((v, v))[None, None]).as_exp_coords()),
    )  # fmt: skip
    for f in programs:
        check_array_modes(f, zero)
    assert grad(lambda v: rot(v).magnitude())(zero).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(morula.jacobian(lambda v: rot(v).as_rotvec())(zero), np.eye(3))
    second = hessian(lambda v: rot(v).as_quat()[3], zero)
    np.testing.assert_allclose(second, -np.eye(3) / 4, atol=1e-12)


@pytest.mark.parametrize("size", [0.0999, 0.1001, 1e-3, 1e-9, 1e-160])
def test_near_where_the_series_begin(size):
    v = size * V / np.linalg.norm(V)
    np.testing.assert_allclose(
        morula.jacobian(lambda v: rot(v).as_rotvec())(v), np.eye(3), rtol=1e-12, atol=1e-13
    )
    e = np.concatenate((v, v))
    found = morula.jacobian(lambda e: motion(e).as_exp_coords())(e)
    np.testing.assert_allclose(found, np.eye(6), rtol=1e-11, atol=1e-12)


def test_half_turns():
    """The slope is that of the side on which SciPy puts the rotation vector."""
    for axis in (*np.eye(3), np.ones(3) / np.sqrt(3)):
        q = np.append(axis, 0.0)
        found = morula.jacobian(lambda q: Rotation.from_quat(q).as_rotvec())(q)
        close = q + np.array([0, 0, 0, 1e-7])
        near = morula.jacobian(lambda q: Rotation.from_quat(q).as_rotvec())(close)
        np.testing.assert_allclose(found, near, atol=1e-6)
        assert np.all(np.isfinite(grad(lambda q: weigh(Rotation.from_quat(q).as_mrp()))(q)))
        assert np.all(np.isfinite(grad(lambda q: Rotation.from_quat(q).magnitude())(q)))
        check_array_modes(lambda m: mat(Rotation.from_matrix(m)), Rotation.from_quat(q).as_matrix())


@pytest.mark.parametrize("turn", [0.0, np.pi])
@pytest.mark.parametrize("seq", ["zxz", "XYX", "xyz", "ZYX"])
def test_angles_at_gimbal_lock_are_refused(seq, turn):
    second = turn if seq[0] == seq[2] else turn - np.pi / 2
    v = Rotation.from_euler(seq, [0.3, second, 0.4]).as_rotvec()

    def f(v, x):
        return rot(v).as_euler(seq, suppress_warnings=True)[0] * x + rot(v).as_quat()[0]

    with pytest.raises(UnsupportedError, match="gimbal lock"):
        gradient(f, v, 2.0)
    with pytest.raises(UnsupportedError, match="gimbal lock"):
        jvp(f, (v, 2.0), (v, 0.0))
    assert np.all(np.isfinite(gradient(f, v, 0.0)[0]))  # nothing reaches the angles
    together = np.stack((v, V))
    found = grad(lambda v: weigh(rot(v).as_euler(seq, suppress_warnings=True)[1]))(together)
    alone = grad(lambda v: weigh(rot(v).as_euler(seq, suppress_warnings=True)))(V)
    np.testing.assert_allclose(found, [np.zeros(3), alone])


def test_mean_of_what_has_none_is_refused():
    opposite = np.array([[0.0, 0.0, 0.0], [np.pi, 0.0, 0.0]])
    with pytest.raises(UnsupportedError, match="eigenvectors"):
        grad(lambda v: mat(rot(v).mean()))(opposite)
    same = grad(lambda v: weigh(rot(v).mean().as_rotvec()))(np.stack((V, V)))
    alone = grad(lambda v: weigh(rot(v).as_rotvec()))(V)
    np.testing.assert_allclose(same, np.stack((alone, alone)) / 2)


# -- objects ---------------------------------------------------------------------------------------


def replaced(v, w):
    r = rot(v)
    r[1] = rot(w)
    r[2:] = rot(np.stack((w, 2 * w)))
    return mat(r) + mat(r[1])


def shared(v, w):
    r = rot(v)
    items = list(r)
    once = r**1
    r[1] = rot(w)
    return mat(items[1]) + mat(once)


def replaced_motion(e, f):
    m = motion(e)
    m[1] = motion(f)
    return weigh(m.as_matrix())


def test_what_is_written_to():
    check_array_modes(replaced, VS, V)
    check_array_modes(shared, VS, V)
    check_array_modes(replaced_motion, E6, E6[0] + 1)


def test_rotations_as_arguments_and_captured():
    r, m = rot(VS), motion(E6)
    check_array_modes(lambda x: weigh(r.apply(x)) + weigh(m.apply(x)), XS)
    value, g = value_and_grad(lambda r: weigh(r.apply(XS)))(r)
    assert value == weigh(r.apply(XS))
    expected = grad(lambda q: weigh(Rotation(q, normalize=False).apply(XS)))(r.as_quat())
    np.testing.assert_allclose(g._quat, expected)


def test_values_are_those_of_the_plain_call():
    q = QS / np.linalg.norm(QS, axis=1)[:, None]
    for f in (
        lambda q: Rotation(q, normalize=False).as_matrix(),
        lambda q: (Rotation(q, normalize=False) * Rotation.from_quat(q)).as_quat(),
        lambda q: (Rotation.from_quat(q) ** 0.3).as_rotvec(),
        lambda q: Rotation.from_quat(q).mean().as_quat(),
        lambda q: Rotation.from_quat(q).as_euler("xyz"),
        lambda q: Rotation.from_matrix(Rotation.from_quat(q).as_matrix() + 0.01).as_quat(),
    ):
        value, _ = morula.pullback(f, q)
        assert np.array_equal(value, f(q))


def test_gradients_of_single_precision_stay_single():
    v = VS.astype(np.float32)
    g = grad(lambda v: weigh(rot(v).as_matrix()))(v)
    assert g.dtype == np.float32
    np.testing.assert_allclose(
        g, grad(lambda v: weigh(rot(v).as_matrix()))(VS), rtol=1e-4, atol=1e-5
    )


def test_stacks_without_rotations():
    empty = np.zeros((0, 3))
    for f in (
        lambda v: np.sum(rot(v).as_matrix()), lambda v: np.sum(rot(v).inv().as_rotvec()),
        lambda v: np.sum(rot(v).as_euler("xyz")), lambda v: np.sum(rot(v).magnitude()),
        lambda v: np.sum(rot(v).apply(np.zeros(3))), lambda v: np.sum((rot(v) * rot(v)).as_mrp()),
    ):  # fmt: skip
        assert grad(f)(empty).shape == (0, 3)


def test_errors_are_those_of_the_plain_call():
    for f, x, words in (
        (lambda v: mat(Rotation.from_rotvec(v)), np.ones(4), "shape"),
        (lambda q: mat(Rotation.from_quat(q)), np.zeros(4), "zero norm"),
        (lambda v: mat(Rotation.from_euler("xxz", v)), V, "consecutive axes"),
        (lambda m: mat(Rotation.from_matrix(m)), -np.eye(3), "Non-positive determinant"),
        (lambda v: weigh(Slerp([0, 1], rot(v[:2]))(2.0).as_quat()), VS, "within the range"),
    ):
        for differentiated in (f, grad(f)):
            with pytest.raises(ValueError, match=words):
                differentiated(x)


def test_approximate_equality_is_constant():
    def f(v):
        return np.sum(v) * np.sum(rot(v).approx_equal(rot(v + 1e-12)))

    np.testing.assert_array_equal(grad(f)(VS), np.full((4, 3), 4.0))
