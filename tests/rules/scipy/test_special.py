"""The functions of scipy.special against differences, to second order, real and complex."""

import numpy as np
import pytest
from scipy import linalg
from scipy import special as sp

from morula import gradient, hvp, jvp, pullback
from morula.core.errors import NoRuleError, UnsupportedError
from morula.core.extend import call
from morula.testing import check_gradient, check_rrule

call(sp.erf, 0.5)  # loads the rules

X = np.array([0.3, 0.8, 1.7])
INSIDE = np.array([0.2, 0.45, 0.9])  # of the unit interval
SIGNED = np.array([-1.3, 0.4, 2.1])
Z = np.array([0.3 + 0.4j, 1.1 - 0.6j])

UNARY = {
    "cbrt exp2 exp10 expm1 cosm1 exprel erf erfc erfi erfcx dawsn ndtr log_ndtr expit log_expit "
    "softplus sindg cosdg tandg cotdg entr j0 j1 i0 i1 i0e i1e itstruve0 itmodstruve0 "
    "log1p digamma gamma gammaln rgamma wrightomega ber bei berp beip expi loggamma": X,
    "y0 y1 k0 k1 k0e k1e ker kei kerp keip exp1 spence it2struve0 kolmogorov": X,
    "erfinv logit ndtri ellipk ellipkm1 kolmogi": INSIDE,
    "ellipe ellipk erf dawsn erfcx log_ndtr expit exprel digamma cosm1 i0e i1e": SIGNED * 0.4,
    "ndtri_exp": -X,
    "erfcinv": INSIDE,
    "zetac zeta": X + 1.5,
}
UNARY_CASES = [(name, x) for names, x in UNARY.items() for name in names.split()]


@pytest.mark.parametrize(("name", "x"), UNARY_CASES, ids=[n for n, _ in UNARY_CASES])
def test_of_one_argument(name, x):
    fn = getattr(sp, name)
    check_rrule(fn, x, order=2, rtol=1e-5)
    check_rrule(fn, float(x[0]))
    check_rrule(fn, np.float64(x[1]))
    check_rrule(fn, x[:2].reshape(2, 1).astype("f4"), rtol=1e-2, atol=1e-3)


COMPLEX = """
    dawsn digamma erf erfc erfcx erfi exp1 expi expm1 gamma log1p log_ndtr loggamma ndtr psi rgamma
    spence wofz wrightomega lambertw
"""


@pytest.mark.parametrize("name", COMPLEX.split())
def test_of_complex_numbers(name):
    fn = getattr(sp, name)
    check_rrule(fn, Z, order=2, rtol=1e-5)
    check_rrule(fn, complex(Z[0]))


@pytest.mark.parametrize(
    ("name", "x"),
    [("airy", X), ("airy", -X), ("airy", Z), ("airye", X), ("fresnel", X), ("fresnel", Z),
     ("sici", X), ("shichi", X), ("sici", Z), ("shichi", Z), ("itj0y0", X),
     ("iti0k0", X), ("it2j0y0", X), ("it2i0k0", X), ("kelvin", X), ("modfresnelp", X),
     ("modfresnelm", X), ("airye", Z)],
)  # fmt: skip
def test_with_several_results(name, x):
    check_rrule(getattr(sp, name), x, rtol=1e-5)
    check_rrule(getattr(sp, name), x[0].item(), rtol=1e-5)
    if name not in ("airye",):
        check_rrule(getattr(sp, name), x, order=2, rtol=1e-4)


ALL_ARGUMENTS = {
    "xlogy": (X, X + 1), "xlog1py": (X, X), "powm1": (X, SIGNED), "kl_div": (X, X + 0.4),
    "rel_entr": (X, X + 0.4), "huber": (X, SIGNED), "pseudo_huber": (X, SIGNED),
    "radian": (X, X, X), "boxcox": (X, SIGNED), "boxcox1p": (X, SIGNED), "inv_boxcox": (X, X * 0.3),
    "inv_boxcox1p": (X, X * 0.3), "owens_t": (SIGNED, X), "beta": (X, X + 0.5),
    "betaln": (X, X + 0.5), "poch": (X, X + 0.5), "binom": (X + 3, X), "comb": (X + 3, X),
    "perm": (X + 3, X), "zeta": (X + 1.5, X + 0.5), "ellipkinc": (SIGNED * 3, INSIDE),
    "ellipeinc": (SIGNED * 3, INSIDE), "elliprf": (X, X + 0.5, X + 1), "elliprg": (X, X + 0.5, X + 1),
    "elliprd": (X, X + 0.5, X + 1), "elliprc": (X, X + 0.5), "elliprj": (X, X + 0.5, X + 1, X + 2),
    "agm": (X, X + 1), "voigt_profile": (SIGNED, X, X + 0.2), "nrdtrimn": (INSIDE, X, SIGNED),
    "nrdtrisd": (SIGNED, INSIDE, SIGNED + 0.5), "tklmbda": (SIGNED * 0.2, X),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL_ARGUMENTS)
def test_by_all_arguments(name):
    fn, args = getattr(sp, name), ALL_ARGUMENTS[name]
    check_rrule(fn, *args, rtol=1e-5)
    check_rrule(fn, *[a[:, None] if i % 2 else a for i, a in enumerate(args)], rtol=1e-5)
    check_rrule(fn, *[float(a[1]) for a in args], order=2, rtol=1e-4)
    if name not in ("tklmbda", "nrdtrisd"):
        check_rrule(fn, *[a.astype("f4") for a in args], rtol=1e-2, atol=1e-2)


def test_ellipj():
    check_rrule(sp.ellipj, SIGNED, INSIDE, rtol=1e-5)
    check_rrule(sp.ellipj, SIGNED[:, None], INSIDE, rtol=1e-5)


@pytest.mark.parametrize("name", ["elliprf", "elliprd", "elliprg", "elliprj", "elliprc"])
def test_integrals_of_carlson_with_complex_arguments(name):
    n = {"elliprc": 2, "elliprj": 4}.get(name, 3)
    check_rrule(getattr(sp, name), *[Z + i for i in range(n)], rtol=1e-5)


LAST_ARGUMENT = {
    "jv": (1.5, X), "jn": (2, X), "yv": (0.5, X), "yn": (2, X), "iv": (1.5, X), "kv": (0.5, X),
    "kn": (2, X), "jve": (1.5, X), "yve": (0.5, X), "ive": (1.5, X), "kve": (0.5, X),
    "hankel1": (1.5, X), "hankel2": (1.5, X), "hankel1e": (1.5, X), "hankel2e": (0.5, X),
    "struve": (1.5, X), "modstruve": (0.5, X), "wright_bessel": (1.2, 0.7, X),
    "log_wright_bessel": (1.2, 0.7, X), "eval_chebyt": (4, INSIDE), "eval_chebyu": (3, INSIDE),
    "eval_chebyc": (3, INSIDE), "eval_chebys": (4, INSIDE), "eval_sh_chebyt": (3, INSIDE),
    "eval_sh_chebyu": (3, INSIDE), "eval_legendre": (4, INSIDE), "eval_sh_legendre": (3, INSIDE),
    "eval_laguerre": (3, X), "eval_hermite": (4, X), "eval_hermitenorm": (4, X),
    "eval_genlaguerre": (3, 0.7, X), "eval_gegenbauer": (3, 0.7, INSIDE),
    "eval_jacobi": (3, 0.7, 0.4, INSIDE), "eval_sh_jacobi": (3, 2.7, 1.4, INSIDE),
    "hyp0f1": (1.3, SIGNED), "hyp1f1": (0.7, 1.3, SIGNED), "hyperu": (0.7, 1.3, X),
    "hyp2f1": (0.7, 1.3, 2.2, INSIDE), "lpmv": (1, 2.5, INSIDE), "expn": (3, X),
    "spherical_jn": (2, X), "spherical_yn": (2, X), "spherical_in": (2, X),
    "spherical_kn": (2, X), "polygamma": (2, X), "smirnovi": (5, INSIDE),
}  # fmt: skip


def by_last(fn, args, **keywords):
    """The sum with weights of fn(...), as a function of the last argument."""

    def f(x):
        y = fn(*args[:-1], x, **keywords)
        c = np.reshape(np.cos(np.arange(np.size(y))), np.shape(y))
        return np.sum(np.real(y) * c) + np.sum(np.imag(y) * c * c)

    return f


@pytest.mark.parametrize("name", LAST_ARGUMENT)
def test_by_the_last_argument(name):
    args = LAST_ARGUMENT[name]
    f = by_last(getattr(sp, name), args)
    check_gradient(f, args[-1], rtol=1e-5)
    check_gradient(f, float(args[-1][0]), rtol=1e-5)
    if name not in ("smirnovi",):
        check_gradient(lambda x: np.sum(gradient(f, x)[0] ** 2), args[-1], rtol=1e-4)


@pytest.mark.parametrize(
    "name",
    ["jv", "yv", "iv", "kv", "hankel1", "hankel2", "hankel1e", "hankel2e", "jve", "yve", "ive",
     "kve"],
)  # fmt: skip
def test_bessel_functions_of_complex_numbers(name):
    check_gradient(by_last(getattr(sp, name), (1.5, Z)), Z, rtol=1e-5)
    check_gradient(by_last(getattr(sp, name), (0.5, Z)), Z.conj(), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "args"),
    [("hyp1f1", (0.7, 1.3, Z)), ("hyp2f1", (0.7, 1.3, 2.2, Z * 0.5)), ("hyp0f1", (1.3, Z)),
     ("eval_jacobi", (2.5, 0.7, 0.4, Z * 0.3)), ("eval_legendre", (2.5, Z * 0.3)),
     ("eval_chebyt", (2.5, Z * 0.3)), ("eval_genlaguerre", (2.5, 0.7, Z * 0.3)),
     ("spherical_jn", (2, Z)), ("spherical_yn", (2, Z)), ("spherical_in", (2, Z)),
     ("spherical_kn", (2, Z))],
)  # fmt: skip
def test_of_complex_last_arguments(name, args):
    check_gradient(by_last(getattr(sp, name), args), args[-1], rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "args"),
    [("jvp", (1.5, X, 2)), ("yvp", (0.5, X, 1)), ("ivp", (1.5, X, 1)), ("kvp", (0.5, X, 2)),
     ("h1vp", (0.5, X, 1)), ("h2vp", (0.5, X, 1)), ("spherical_jn", (0, X, True)),
     ("spherical_yn", (2, X, True)), ("spherical_in", (0, X, True)), ("spherical_kn", (1, X, True)),
     ("besselpoly", None)],
)  # fmt: skip
def test_derivatives_of_bessel_functions(name, args):
    if args is None:
        check_gradient(lambda a: np.sum(sp.besselpoly(a, 1.5, 2.5)), X)
        return
    order, x, which = args
    fn = getattr(sp, name)

    def f(x):
        y = fn(order, x, which)
        return np.sum(np.real(y) * X) + np.sum(np.imag(y))

    check_gradient(f, x, rtol=1e-5)


PAIRS = {
    "mathieu_cem": (2, 0.7, 30 * X), "mathieu_sem": (2, 0.7, 30 * X),
    "mathieu_modcem1": (2, 0.7, X), "mathieu_modcem2": (2, 0.7, X), "mathieu_modsem1": (2, 0.7, X),
    "mathieu_modsem2": (2, 0.7, X), "pbdv": (1.3, SIGNED), "pbvv": (1.3, SIGNED),
    "pbwa": (0.6, SIGNED), "pro_ang1": (1, 2, 0.8, INSIDE), "pro_rad1": (1, 2, 0.8, X + 1),
    "pro_rad2": (1, 2, 2.0, X + 3), "obl_ang1": (1, 2, 0.8, INSIDE), "obl_rad1": (1, 2, 0.8, X),
    "obl_rad2": (1, 2, 2.0, X + 3), "pro_ang1_cv": (1, 2, 0.8, 6.3, INSIDE),
    "pro_rad1_cv": (1, 2, 0.8, None, X + 1), "obl_rad1_cv": (1, 2, 0.8, None, X),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_functions_with_their_slopes(name):
    args = list(PAIRS[name])
    if name.endswith("_cv"):
        args[3] = getattr(sp, name[:3] + "_cv")(*args[:3])
    fn = getattr(sp, name)
    check_gradient(lambda x: np.sum(fn(*args[:-1], x)[0] * X), args[-1], rtol=1e-4)
    check_gradient(lambda x: np.sum(fn(*args[:-1], x)[1] * X), args[-1], rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "order"),
    [("riccati_jn", 3), ("riccati_yn", 3), ("lmbda", 2.5), ("lqn", 3), ("pbdv_seq", 2.5),
     ("pbvv_seq", 2.5), ("pbdn_seq", 3)],
)  # fmt: skip
def test_sequences_of_orders(name, order):
    fn = getattr(sp, name)
    x = 0.7
    for part in (0, 1):
        check_gradient(lambda x, part=part: np.sum(np.real(fn(order, x)[part])), x, rtol=1e-5)
    check_gradient(lambda x: np.sum(sp.lqmn(2, 3, x)[0]) + np.sum(sp.lqmn(1, 2, x)[1]), 0.4)


@pytest.mark.parametrize("diff_n", [0, 1])
def test_legendre_functions(diff_n):
    for fn, args in (
        (sp.legendre_p, (3, INSIDE)), (sp.assoc_legendre_p, (3, 1, INSIDE)),
        (sp.sph_legendre_p, (3, 1, INSIDE)), (sp.legendre_p_all, (3, INSIDE)),
        (sp.assoc_legendre_p_all, (2, 1, INSIDE)), (sp.sph_legendre_p_all, (2, 1, INSIDE)),
    ):  # fmt: skip
        check_gradient(by_last(fn, args, diff_n=diff_n), args[-1], rtol=1e-5)
    with pytest.raises(NoRuleError, match="three times"):
        gradient(lambda x: sp.legendre_p(3, x, diff_n=2)[2], 0.4)


def test_spherical_harmonics():
    def f(θ, φ):
        y = sp.sph_harm_y(2, 1, θ, φ)
        every = sp.sph_harm_y_all(2, 1, θ, φ)
        return np.sum(y.real * X) + np.sum(y.imag) + np.sum(every.real) + 2 * np.sum(every.imag)

    check_gradient(f, X, SIGNED)
    check_gradient(lambda θ: np.abs(sp.sph_harm_y(2, 0, θ, 0.3)), 0.4)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(rng, axis, keepdims):
    a, b = rng.standard_normal((2, 3, 4))
    check_rrule(sp.logsumexp, a, axis=axis, keepdims=keepdims, order=2)
    check_rrule(sp.logsumexp, a, axis, abs(b), keepdims)
    check_rrule(sp.logsumexp, a, axis=axis, b=abs(b[:1]), keepdims=keepdims)
    check_rrule(sp.logsumexp, a, axis, b, keepdims, True)
    check_rrule(sp.logsumexp, a + 1j * b, axis, keepdims=keepdims)
    check_rrule(sp.logsumexp, a.astype("f4"), axis=axis, keepdims=keepdims)
    for fn in (sp.softmax, sp.log_softmax):
        check_rrule(fn, a, axis=axis, order=2)


def test_logsumexp_of_weights_in_lists():
    def f(x):
        weights = [[x[0, 0] ** 2], [2.0]]
        y = sp.logsumexp(x, axis=0, b=weights)
        weights.clear()
        return y.sum()

    check_gradient(f, np.array([[0.5, -1.0], [0.3, 2.0]]))


def test_logsumexp_of_infinite_entries():
    g = gradient(lambda x: sp.logsumexp(x), np.array([-np.inf, 0.0, 0.0]))[0]
    assert np.allclose(g, [0, 0.5, 0.5])
    g = gradient(lambda x: sp.logsumexp(x), np.array([np.inf, 0.0, np.inf]))[0]
    assert np.allclose(g, [0.5, 0, 0.5])
    g = gradient(lambda x: sp.logsumexp(x, b=np.array([1.0, 0.0])), np.array([1.0, 2.0]))[0]
    assert np.allclose(g, [1, 0])


def test_an_order_without_a_formula_is_an_error():
    for f in (
        lambda v: sp.jv(v, 0.7),
        lambda v: sp.hyp2f1(v, 1.0, 2.0, 0.3),
        lambda v: sp.eval_gegenbauer(3, v, 0.3),
        lambda v: sp.mathieu_cem(2, v, 10.0)[0],
    ):
        with pytest.raises(NoRuleError, match="is not known"):
            gradient(f, 1.3)
    assert gradient(lambda v, x: sp.jv(1.5, x), 1.3, 0.7)[0] == 0


def test_tails():
    """To all digits, where the difference of large numbers would lose them."""
    assert np.isclose(gradient(sp.erfcx, 1e6)[0], -1 / np.sqrt(np.pi) / 1e12, rtol=1e-11)
    assert np.isclose(gradient(sp.dawsn, 1e6)[0], -0.5e-12, rtol=1e-11)
    assert np.isclose(gradient(sp.log_ndtr, -1e6)[0], 1e6 + 1e-6, rtol=1e-14)
    assert gradient(sp.log_ndtr, 40.0)[0] < 1e-300
    assert np.isclose(gradient(lambda z: sp.wofz(z).imag, 1e6)[0], -1 / np.sqrt(np.pi) / 1e12)
    by_a = gradient(sp.betaln, 1e8, 1.0)[0]
    assert np.isclose(by_a, -1e-8, rtol=1e-12)
    assert np.isclose(gradient(sp.exprel, 1e-9)[0], 0.5, rtol=1e-8)
    assert np.isclose(gradient(sp.ellipk, 1e-20)[0], np.pi / 8, rtol=1e-14)
    assert gradient(sp.xlogy, 0.0, 0.0)[1] == 0
    assert gradient(sp.boxcox, 2.0, 0.0)[1] == np.log(2.0) ** 2 / 2


def test_special_points():
    assert np.isclose(gradient(sp.rgamma, -2.0)[0], 2)
    assert np.isclose(gradient(sp.rgamma, 0.0)[0], 1)
    assert gradient(sp.spence, 1.0)[0] == -1
    assert np.isclose(gradient(lambda z: sp.lambertw(z).real, 0.0)[0], 1)
    assert gradient(sp.beip, 0.0)[0] == 0.5
    assert gradient(lambda x: sp.diric(x, 3), 0.0)[0] == 0
    check_gradient(lambda x: np.sum(sp.diric(x, 4) * X), SIGNED)
    check_gradient(lambda a: sp.multigammaln(a, 3), 2.7)
    check_gradient(lambda n: sp.factorial(n), 2.5)
    check_gradient(lambda x: np.sum(sp.smirnov(5, x)), INSIDE)
    check_gradient(lambda x: np.sum(sp.kolmogorov(x)), np.array([0.4, 0.9, 1.1, 2.0]))


def test_objects_of_polynomials():
    check_gradient(lambda x: sp.legendre(3)(x), 0.4)
    check_gradient(lambda x: sp.assoc_laguerre(x, 3, 1), 0.4)


def test_both_paths(path):
    def f(x, a):
        return np.sum(sp.gammaln(x) * sp.erf(a * x)) + sp.logsumexp(x) + np.sum(sp.jv(1, x))

    check_gradient(f, X, 0.7)


def test_lists_and_integers():
    check_rrule(sp.erf, [0.3, 0.7])
    check_rrule(sp.xlogy, [0.3, 0.7], np.array([1.0, 2.0]))
    check_rrule(sp.beta, (0.3, 0.7), 2.0)
    check_rrule(sp.gammaln, np.array([1, 2, 3]))
    check_rrule(sp.airy, [0.3, 0.7])
    check_rrule(sp.softmax, [0.3, 0.7])
    assert gradient(sp.gammaln, 3)[0] == sp.digamma(3)


def test_keywords_of_ufuncs():
    check_gradient(lambda x: np.sum(sp.erf(x, dtype=np.float64) ** 2), X)


@pytest.mark.parametrize("name", ["erf", "gammaln", "xlogy", "gammainc", "betaln"])
def test_zero_axes_and_empty_arrays(name):
    fn = getattr(sp, name)
    n = fn.nin
    check_rrule(fn, *[np.array(0.7 + i) for i in range(n)])
    check_rrule(fn, *[np.zeros((0, 2)) for _ in range(n)])
    check_rrule(fn, *[np.ones((4, 3))[::2, ::-1] * (0.7 + i) for i in range(n)])


def test_weights_in_a_list():
    def f(x):
        return sp.logsumexp([x[0], x[1]], b=[x[1], 2.0])

    x, v = np.array([0.7, 1.3]), np.array([0.4, -0.3])
    check_gradient(f, x)
    slope = (gradient(f, x + 1e-5 * v)[0] - gradient(f, x - 1e-5 * v)[0]) / 2e-5
    np.testing.assert_allclose(hvp(f, x, v), slope, rtol=1e-6)


def test_matrices_in_lists_at_second_order():
    def f(x):
        matrix = [[1.0, x[0]], [x[1], 3.0], [1.0, 1.0]]
        return np.sum(linalg.pinv(matrix)) + linalg.det(matrix[:2]) ** 2

    x, v = np.array([0.7, 1.3]), np.array([0.4, -0.3])
    check_gradient(f, x)
    slope = (gradient(f, x + 1e-5 * v)[0] - gradient(f, x - 1e-5 * v)[0]) / 2e-5
    np.testing.assert_allclose(hvp(f, x, v), slope, rtol=1e-6)


@pytest.mark.parametrize("z", [X, SIGNED, Z, complex(Z[1]), 0.7])
def test_airye_in_forward_mode(z):
    plain = np.array(sp.airye(np.asarray(z) + 1e-6))
    expected = (plain - np.array(sp.airye(np.asarray(z) - 1e-6))) / 2e-6
    _, found = jvp(sp.airye, (z,), (np.asarray(z) ** 0 if np.shape(z) else type(z)(1),))
    for by_differences, tangent in zip(expected, found, strict=True):
        defined = ~np.isnan(by_differences)
        np.testing.assert_allclose(
            np.asarray(tangent)[defined], by_differences[defined], rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_softmax_of_complex_numbers(axis):
    w = np.stack([Z, Z * 1j - 0.3])
    check_rrule(sp.softmax, w, axis=axis, order=2, rtol=1e-5)
    check_rrule(sp.log_softmax, w, axis=axis, order=2, rtol=1e-5)


@pytest.mark.parametrize("name", ["chebyt", "chebyu", "chebyc", "chebys", "sh_chebyt", "sh_chebyu",
                                  "legendre", "sh_legendre", "laguerre"])  # fmt: skip
def test_a_real_degree_has_no_zero_derivative(name):
    polynomial = getattr(sp, "eval_" + name)
    with pytest.raises(NoRuleError, match="derivative by its first argument is not known"):
        gradient(polynomial, 1.5, 0.4)
    check_gradient(lambda x: polynomial(1.5, x), 0.4)
    assert gradient(polynomial, 2, 0.4)[0] in (None, 0.0)


@pytest.mark.parametrize(
    ("fn", "i", "args"),
    [(sp.eval_genlaguerre, 0, (1.0, 0.7, 0.4)), (sp.eval_gegenbauer, 0, (1.0, 0.7, 0.4)),
     (sp.eval_jacobi, 0, (1.0, 0.7, 0.4, 0.3)), (sp.pro_cv, 2, (1, 2, 0.4)),
     (sp.obl_cv, 2, (1, 2, 0.4))],
)  # fmt: skip
def test_parameters_without_a_formula_are_refused(fn, i, args):
    with pytest.raises(NoRuleError, match="is not known"):
        gradient(lambda x: fn(*args[:i], x, *args[i + 1 :]), args[i])


@pytest.mark.parametrize("fn", [sp.mathieu_even_coef, sp.mathieu_odd_coef])
def test_coefficients_of_mathieu_functions_are_refused_by_q(fn):
    with pytest.raises(NoRuleError, match="its last argument is not known"):
        gradient(lambda q: np.sum(fn(2, q)[:3]), 0.7)


@pytest.mark.parametrize("fn", [sp.pro_cv_seq, sp.obl_cv_seq])
def test_sequences_of_characteristic_values_are_refused_by_c(fn):
    with pytest.raises(NoRuleError, match="its last argument is not known"):
        gradient(lambda c: np.sum(fn(0, 2, c)), 0.7)


@pytest.mark.parametrize("fn", [sp.mathieu_a, sp.mathieu_b])
def test_characteristic_values_of_mathieu_functions(fn):
    for m in (1, 2, 5, np.array([1, 2, 3])):
        check_gradient(lambda q, m=m: np.sum(fn(m, q) * X), SIGNED * 2, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:floating point number truncated", "ignore:non-integer arg n")
@pytest.mark.parametrize(
    ("fn", "args"),
    [(sp.kn, (1.5, X)), (sp.yn, (2.7, X)), (sp.expn, (0.5, X)), (sp.expn, (1.9, X)),
     (sp.smirnov, (3.6, INSIDE * 0.9)), (sp.nbdtr, (2.7, 3.5, INSIDE)), (sp.nbdtri, (2, 3.5, INSIDE)),
     (sp.bdtr, (1.0, 4.6, INSIDE)), (sp.bdtrc, (1.0, 4.6, INSIDE))],
)  # fmt: skip
def test_counts_are_truncated_as_scipy_does(fn, args):
    check_gradient(lambda x: np.sum(fn(*args[:-1], x) * X), args[-1], rtol=1e-5)


@pytest.mark.parametrize("z", [-2 + 0.01j, -0.5 - 0.001j, -3 + 2j, 0.3 - 1j])
def test_integrals_of_carlson_near_the_negative_numbers(z):
    check_rrule(sp.elliprc, 1.9, z, rtol=1e-5)
    check_rrule(sp.elliprd, 1.9, 2.2, z, rtol=1e-5)
    check_rrule(sp.elliprj, 1.9, 2.1, 1.3, z, rtol=1e-5)


def test_principal_values_of_the_integrals_of_carlson():
    check_rrule(sp.elliprc, X, -X - 0.2, order=2, rtol=1e-4)
    check_rrule(sp.elliprj, X + 1, X + 0.2, X, -X, rtol=1e-4)


def test_beyond_the_bounds_tukeys_distribution_is_constant():
    x = np.array([-0.8, -0.2, 0.3, 0.7])
    assert np.all(np.isclose(gradient(lambda x: np.sum(sp.tklmbda(x, 1.9)), x)[0][[0, 3]], 0.0))
    check_rrule(sp.tklmbda, x, 1.9, rtol=1e-5)
    check_rrule(sp.tklmbda, 0.7, 1.9)
    check_rrule(sp.tklmbda, x, np.array([1.9, -0.4, 1.2, 0.5]), rtol=1e-5)


@pytest.mark.parametrize(
    "f",
    [lambda a: np.sum(sp.roots_gegenbauer(4, a)[0] ** 2), lambda a: np.sum(sp.j_roots(4, a, 0.3)[1]),
     lambda a: np.sum(sp.roots_jacobi(4, 0.3, beta=a)[1]), lambda a: sp.ellip_normal(a, 2.5, 2, 1),
     lambda a: np.sum(sp.roots_genlaguerre(4, alpha=a)[0]),
     lambda a: np.sum(sp.roots_sh_jacobi(4, 2.3, a)[0]),
     lambda a: sp.genlaguerre(3, alpha=a)(0.4), lambda a: sp.jacobi(3, a, 0.3)(0.4)],
)  # fmt: skip
def test_parameters_of_weights_have_no_zero_derivative(f):
    with pytest.raises(NoRuleError, match="is not known"):
        gradient(f, 1.3)


@pytest.mark.parametrize("all_orders", [False, True])
def test_second_derivatives_of_spherical_harmonics(all_orders):
    def f(angles):
        if all_orders:
            return np.sum(sp.sph_harm_y_all(2, 2, angles[0], angles[1]).real)
        return sp.sph_harm_y(2, 1, angles[0], angles[1]).imag

    x, v, h = np.array([0.7, 0.4]), np.array([1.0, -0.5]), 1e-6
    slope = (gradient(f, x + h * v)[0] - gradient(f, x - h * v)[0]) / (2 * h)
    np.testing.assert_allclose(hvp(f, x, v), slope, rtol=1e-6, atol=1e-8)


def test_slopes_of_spherical_harmonics_have_derivatives():
    def f(x):
        return sp.sph_harm_y(2, 1, x, 0.4, diff_n=1)[1][0].real

    h = 1e-6
    assert gradient(f, 0.7)[0] == pytest.approx((f(0.7 + h) - f(0.7 - h)) / (2 * h), rel=1e-6)


BESIDE_COUNTS = [
    *[(name, ALL_ARGUMENTS[name]) for name in ALL_ARGUMENTS],
    ("betainc", (X, X + 0.5, INSIDE)), ("gammainc", (X, X)), ("gdtr", (X, X, X)),
    ("ellipj", (SIGNED, INSIDE)), ("hyp2f1", (X, X, X + 1, INSIDE)), ("eval_legendre", (X, INSIDE)),
]  # fmt: skip
COUNTS = {
    "truth values": np.array([True, True, True]),
    "a truth value": np.True_,
    "a truth value of Python's": True,
    "whole numbers": np.array([1, 2, 3]),
    "whole numbers without a sign": np.array([1, 2, 3], np.uint8),
    "narrow whole numbers": np.array([1, 2, 3], np.int8),
}


def differences(fn, args, j):
    """∂fn/∂(argument j), all arguments given in double precision."""
    steps = []
    for h in (1e-5, -1e-5):
        moved = [np.asarray(a, float) for a in args]
        moved[j] = moved[j] + h
        steps.append(first_of(fn(*moved)))
    return (steps[0] - steps[1]) / 2e-5


def first_of(y):
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize(("name", "args"), BESIDE_COUNTS, ids=[n for n, _ in BESIDE_COUNTS])
def test_truth_values_and_whole_numbers_beside_real_arguments(name, args, counts):
    fn = getattr(sp, name)
    for i in range(len(args)):
        given = [counts if k == i else a for k, a in enumerate(args)]
        for j in set(range(len(args))) - {i}:
            with np.errstate(all="ignore"):
                expected = differences(fn, given, j)
            known = np.isfinite(expected)

            def f(x, given=given, j=j, known=known):
                y = first_of(fn(*[x if k == j else a for k, a in enumerate(given)]))
                return np.sum(y[known])

            try:
                with np.errstate(all="ignore"):
                    found = gradient(f, args[j])[0]
            except NoRuleError:
                continue
            np.testing.assert_allclose(found[known], expected[known], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr", "ellipk", "logit"])
@pytest.mark.parametrize("dtype", ["u1", "i1", "i8"])
def test_of_one_argument_that_is_no_real_number(name, dtype):
    with np.errstate(all="ignore"):
        _, back = call(getattr(sp, name), np.array([0, 1, 1], dtype))
        as_real = call(getattr(sp, name), np.array([0.0, 1.0, 1.0]))[1](np.ones(3))[1]
        np.testing.assert_array_equal(back(np.ones(3))[1], as_real)


def test_truth_values_leave_single_precision():
    x = X.astype("f4")
    bases = np.array([True, False, True])
    assert gradient(lambda x: np.sum(sp.boxcox1p(bases, x)), x)[0].dtype == "f4"


@pytest.mark.parametrize("name", ["ive", "jve", "yve", "spherical_jn", "spherical_in"])
def test_orders_without_a_sign_do_not_wrap_around(name):
    fn, orders = getattr(sp, name), np.array([1, 0, 2], np.uint8)
    expected = (fn(orders, X + 1e-5) - fn(orders, X - 1e-5)) / 2e-5
    np.testing.assert_allclose(gradient(lambda x: np.sum(fn(orders, x)), X)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr", "ellipk", "logit", "zetac"])
def test_a_truth_value_has_no_cotangent_and_needs_no_formula(name):
    fn, x = getattr(sp, name), np.array([0.3])
    with np.errstate(all="ignore"):
        y, back = pullback(lambda x, b: np.sum(x * fn(b)), x, np.array([True]))
        np.testing.assert_allclose(back(1.0)[0], y / x, rtol=1e-12)


def test_at_a_pole_and_at_what_has_no_value():
    """The slopes are infinite or NaN; they were errors of Python's."""
    with np.errstate(all="ignore"):
        assert np.isinf(gradient(sp.zetac, 1.0)[0])
        assert gradient(lambda x, b: sp.zetac(b) * x, 2.0, True) == (np.inf, None)
        assert np.isnan(gradient(sp.chndtrinc, 1.0, 0.5, 3.0)).all()
        x = np.array([1.0, 3.0]), np.array([0.5, 2.0]), np.array([3.0, 0.5])
        found = gradient(lambda *x: sp.chndtrinc(*x).sum(), *x)
    assert [list(np.isfinite(g)) for g in found] == [[False, True]] * 3


def test_oblate_functions_of_the_second_kind_near_zero_are_refused():
    """Value and slope of SciPy's belong to no one function there: the Wronskian tells."""
    with pytest.raises(UnsupportedError, match="not those of one function"):
        gradient(lambda x: sp.obl_rad2(1, 2, 1.5, x)[0], 0.7)
