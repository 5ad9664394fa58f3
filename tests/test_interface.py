"""gradient, grad, value_and_grad, pullback and J, as users of JAX and SciPy expect them."""

import functools
import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import morula
from morula import (
    ArgumentError,
    DifferentiationError,
    J,
    NoRuleError,
    NoTangent,
    OutputError,
    Tangent,
    grad,
    gradient,
    jvp,
    numeric_rule,
    pullback,
    value_and_grad,
    withgradient,
)

pytestmark = pytest.mark.usefixtures("path")


def product(x, y=2.0, *, scale=1.0):
    """The product of x and y."""
    return x * x * y * scale


# -- grad and value_and_grad -----------------------------------------------------------------------


def test_grad_gives_the_bare_gradient_for_an_int_and_a_tuple_for_a_sequence():
    assert grad(product)(3.0, 2.0) == 12.0
    assert grad(product, 1)(3.0, 2.0) == 9.0
    assert grad(product, argnums=(0, 1))(3.0, 2.0) == (12.0, 9.0)
    assert grad(product, argnums=[1])(3.0, 2.0) == (9.0,)
    assert grad(product, argnums=(1, 0, 1))(3.0, 2.0) == (9.0, 12.0, 9.0)
    assert value_and_grad(product, argnums=(0, 1))(3.0, 2.0) == (18.0, (12.0, 9.0))
    assert value_and_grad(product)(3.0) == (18.0, 12.0)


def test_negative_argnums_count_from_the_end():
    assert grad(lambda x, y: x * y**2, -1)(2.0, 3.0) == 12.0
    assert grad(lambda x, y: x * y**2, (-2, -1))(2.0, 3.0) == (9.0, 12.0)
    assert grad(product, -1)(3.0) == 12.0  # of the arguments that were given
    assert grad(product, -1)(3.0, 2.0) == 9.0


@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_wrong_argnums_and_too_few_arguments(transform):
    with pytest.raises(ArgumentError, match=r"at least 3 .*product was called with 1 pos"):
        transform(product, 2)(3.0)
    with pytest.raises(ArgumentError, match=r"at least 3 .*product was called with 2 pos"):
        transform(product, (0, -3))(3.0, 2.0)
    with pytest.raises(
        ArgumentError, match="with 1 positional argument; those passed by keyword count where"
    ):
        transform(product, 2)(3.0, y=2.0)
    for argnums in (1.0, "x", None, True, (0, 1.0)):
        with pytest.raises(TypeError, match="argnums must be an int or a sequence of ints"):
            transform(product, argnums)


def of_three(x, y, z=1.0):
    return x * y * z


class OfThree:
    def __call__(self, x, y, z=1.0):
        return x * y * z


def with_keywords(x, y, z=1.0, *rest, **others):
    return x * y * z


OF_THREE = {
    "function": of_three,
    "object": OfThree(),
    "method": OfThree().__call__,
    "partial": functools.partial(with_keywords, other=1.0),
    "partial of a position": functools.partial(lambda a, x, y, z=1.0: a * x * y * z, 1.0),
    "starred": with_keywords,
    "of a fixed step": numeric_rule(lambda x, y, z=1.0: x * y * z),
}


@pytest.mark.parametrize("f", OF_THREE.values(), ids=OF_THREE)
def test_what_is_differentiated_may_be_given_by_name(f):
    for _ in range(2):
        assert grad(f, 1)(2.0, y=3.0) == pytest.approx(2.0)
        assert grad(f)(x=2.0, y=3.0) == pytest.approx(3.0)
        assert grad(f, (2, 0))(2.0, z=4.0, y=3.0) == pytest.approx((6.0, 12.0))
        assert value_and_grad(f, 2)(2.0, y=3.0, z=5.0) == pytest.approx((30.0, 6.0))
        assert grad(f, -1)(2.0, y=3.0) == pytest.approx(3.0)  # of those given by position
        with pytest.raises(ArgumentError, match=r"at least 3 .* positional argument"):
            grad(f, 2)(2.0, y=3.0)  # the default is not differentiated
        assert grad(f, 1)(2.0, 3.0) == pytest.approx(2.0)


def test_what_is_differentiated_may_be_given_by_name_behind_a_default():
    def f(x, y=2.0, z=3.0):
        return x * y * z * z

    assert grad(f, 2)(2.0, z=4.0) == 32.0
    assert grad(f, (2, 0))(z=4.0, x=1.0) == (16.0, 32.0)
    by_z, by_x = grad(f, 2), grad(f)
    for inner, x, z in [
        (lambda x, z: grad(f, 2)(x, z=z), 16.0, 8.0),
        (lambda x, z: grad(f)(x, z=z), 0.0, 16.0),
        (lambda x, z: by_z(x, z=z), 16.0, 8.0),
        (lambda x, z: by_x(x, z=z), 0.0, 16.0),
    ]:
        assert gradient(inner, 2.0, 4.0) == (x, z)
        assert jvp(inner, (2.0, 4.0), (3.0, 5.0))[1] == 3 * x + 5 * z
    assert grad(lambda x, y: (x * y, "aux"), 1, has_aux=True)(2.0, y=3.0) == (2.0, "aux")
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        grad(f)(2.0, x=1.0)


@pytest.mark.parametrize("transform", [grad, value_and_grad])
@pytest.mark.parametrize(
    ("argnums", "args", "needed"),
    [(0, (), 1), (1, (2.0,), 2), ((0, 1), (2.0,), 2), (2, (2.0, 3.0), 3), ((0, 2), (), 1)],
)
def test_too_few_arguments_are_counted(transform, argnums, args, needed):
    gradient_function = transform(of_three, argnums)
    message = f"at least {needed} of them, but .*of_three was called with {len(args)} positional"
    for _ in range(2):
        with pytest.raises(ArgumentError, match=message):
            gradient_function(*args)
        gradient_function(2.0, 3.0, 4.0)  # afterwards as before


@pytest.mark.parametrize("transform", [grad, value_and_grad])
def test_arguments_that_are_not_differentiated_may_be_given_by_name_or_be_missing(transform):
    at = transform(of_three)
    assert at(2.0, y=3.0) == at(2.0, 3.0) == at(2.0, z=1.0, y=3.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        at(2.0)
    with pytest.raises(ArgumentError, match=r"at least 1 of them.*called with 0 positional"):
        at(y=3.0)


def test_aux_is_passed_through_untouched():
    aux = object()

    def f(x):
        return x**2, aux

    assert grad(f, has_aux=True)(3.0) == (6.0, aux)
    assert value_and_grad(f, has_aux=True)(3.0) == ((9.0, aux), 6.0)
    assert grad(lambda x, y: (x * y, [x, "s"]), (0, 1), has_aux=True)(2.0, 3.0) == (
        (3.0, 2.0),
        [2.0, "s"],
    )
    with pytest.raises(OutputError, match=r"must return a pair \(output, aux\).* returned a float"):
        grad(lambda x: x, has_aux=True)(2.0)


def test_keyword_arguments_are_passed_on_and_not_differentiated():
    assert grad(product)(3.0, y=5.0, scale=2.0) == 60.0
    assert value_and_grad(product)(3.0, scale=2.0) == (36.0, 24.0)
    assert gradient(product, 3.0, y=5.0) == (30.0,)
    assert withgradient(product, 3.0, 5.0, scale=2.0) == (90.0, (60.0, 18.0))
    y, back = pullback(product, 3.0, scale=2.0)
    assert (y, back(1.0)) == (36.0, (24.0,))


def test_name_docstring_and_signature_survive():
    for transformed in (grad(product), value_and_grad(product)):
        assert transformed.__name__ == "product"
        assert transformed.__doc__ == "The product of x and y."
        assert inspect.signature(transformed) == inspect.signature(product)
        assert transformed.__wrapped__ is product


def test_grad_as_a_decorator_on_functions_and_methods():
    @grad
    def slope(x):
        return x**3

    class Model:
        def __init__(self, k):
            self.k = k

        @functools.partial(grad, argnums=1)
        def force(self, x):
            return self.k * x**2

        def energy(self, x):
            return self.k * x**3

    assert slope(2.0) == 12.0
    assert Model(3.0).force(2.0) == 12.0
    assert grad(Model(3.0).energy)(2.0) == 36.0
    assert grad(functools.partial(product, y=4.0))(2.0) == 16.0
    assert grad(functools.partial(product, 3.0))(2.0) == 9.0
    assert grad(Model.energy)(Model(3.0), 2.0) == Tangent[Model](k=8.0)


def test_grad_of_grad():
    assert grad(grad(lambda x: x**3))(2.0) == 12.0
    assert grad(lambda x: grad(product, 1)(x, 2.0))(3.0) == 6.0


def test_builtins_and_callable_objects():
    assert grad(math.sin)(0.0) == 1.0
    assert gradient(max, 2.0, 3.0) == (0.0, 1.0)
    assert gradient(np.sum, np.ones(2))[0].tolist() == [1.0, 1.0]
    assert grad(abs)(-2.0) == -1.0

    class Square:
        def __call__(self, x):
            return x * x

    assert grad(Square())(3.0) == 6.0
    assert gradient(float, 3.0) == (1.0,)


# -- what comes back -------------------------------------------------------------------------------


def test_gradient_is_always_a_tuple():
    assert gradient(lambda x: x * x, 3.0) == (6.0,)
    assert gradient(lambda: 3.0) == ()
    assert withgradient(lambda: 3.0) == (3.0, ())


def test_gradients_are_of_the_kind_of_their_arguments():
    assert gradient(lambda x: x * x, 3) == (6.0,)
    assert type(gradient(lambda x: x * x, 3)[0]) is float
    assert gradient(lambda x: x * x, Fraction(1, 3)) == (Fraction(2, 3),)
    assert type(gradient(lambda x: x * x, Decimal("0.1"))[0]) is Decimal
    assert gradient(lambda z: (z * z).real, 1 + 2j) == (2 - 4j,)
    assert gradient(lambda x: (x * 1j).imag * 2, 3.0) == (2.0,)
    assert gradient(lambda x, n, s, t: x**n if t else len(s), 2.0, 3, "s", True)[2:] == (None, None)
    for dtype in (np.float32, np.float64, np.float16):
        assert gradient(lambda x: (x * x).sum(), np.ones(2, dtype))[0].dtype == dtype
    assert gradient(lambda x: (x * 0.5).sum(), np.arange(3))[0].dtype == np.float64


def test_what_does_not_matter_gets_zeros():
    args = (2.0, np.ones((2, 3)), [1.0, (2.0,)], {"a": 1.0}, 1j, "text", None)
    gradients = gradient(lambda *args: 3.0, *args)
    assert gradients[0] == 0.0
    assert gradients[1].shape == (2, 3)
    assert not gradients[1].any()
    assert gradients[2:] == ([0.0, (0.0,)], {"a": 0.0}, 0j, None, None)


def test_every_result_is_new_memory():
    x = np.ones(3)
    f = grad(lambda x: (x * x).sum())
    first, second = f(x), f(x)
    assert not np.shares_memory(first, second)
    first *= -1.0
    assert f(x).tolist() == [2.0, 2.0, 2.0]
    a, b = gradient(lambda a, b: (a + b).sum(), x, x)
    assert not np.shares_memory(a, b)
    assert a.flags.writeable


def test_scipys_optimisers_take_value_and_grad():
    optimize = pytest.importorskip("scipy.optimize")

    def rosenbrock(x, a):
        return (a - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2

    found = optimize.minimize(
        value_and_grad(rosenbrock), np.array([-1.0, 2.0]), args=(1.0,), jac=True, method="BFGS"
    )
    np.testing.assert_allclose(found.x, [1.0, 1.0], rtol=1e-4)


# -- outputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (lambda x: None, "returned None: is a return statement missing"),
        (lambda x: x * 1j, r"a complex value \(complex\).*real part"),
        (lambda x: np.array([x, x]), r"a ndarray of shape \(2,\).*\.sum\(\).*jacobian.*pullback"),
        (lambda x: x > 1, r"a truth value \(bool\).*test_interface.py:\d+, in <lambda>:   .*x > 1"),
        (lambda x: [x], "a list"),
        (lambda x: (x, x), "a tuple"),
        (lambda x: "text", "a str"),
        (lambda x: np.array([x * 1j]), "a complex value"),
    ],
)
@pytest.mark.parametrize("transform", [lambda f: grad(f), lambda f: lambda x: gradient(f, x)])
def test_an_output_that_is_not_one_real_number(transform, output, message):
    with pytest.raises(OutputError, match=f"(?s)gradient needs one real number.*{message}"):
        transform(output)(2.0)
    assert issubclass(OutputError, TypeError)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_arrays_of_one_entry_are_numbers(shape):
    (ḡ,) = gradient(lambda x: x * x, np.full(shape, 3.0))
    np.testing.assert_array_equal(ḡ, np.full(shape, 6.0))
    assert gradient(lambda x: np.reshape(x * x, shape), 3.0) == (6.0,)


def test_an_output_of_an_integer_type():
    assert gradient(lambda x: 3, 2.0) == (0.0,)
    assert gradient(lambda x: x * x, 3) == (6.0,)


# -- pullback and J --------------------------------------------------------------------------------


def test_a_pullback_may_be_called_any_number_of_times():
    y, back = pullback(lambda x, y: (x * y, x, "s"), 2.0, 3.0)
    assert y == (6.0, 2.0, "s")
    assert [back((1.0, 10.0, None)) for _ in range(3)] == [(13.0, 2.0)] * 3
    assert back((0.0, 1.0, None)) == (1.0, 0.0)
    assert back(Tangent[tuple]({0: 1.0})) == (3.0, 2.0)


def test_a_pullback_is_linear_and_accepts_any_output():
    _, back = pullback(lambda z: z * z, 1 + 2j)
    assert back(1.0)[0] == 2 - 4j
    assert back(1j)[0] == pytest.approx(4 + 2j)
    assert pullback(lambda x: x > 1, 2.0)[1](True) == (0.0,)
    assert pullback(lambda x: None, 2.0)[1](None) == (0.0,)
    _, back = pullback(lambda x: np.outer(x, x), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(back(np.eye(2))[0], [2.0, 4.0])


def test_a_pullback_gives_the_same_when_its_caller_changed_what_it_got():
    x = np.array([1.0, 2.0])
    y, back = pullback(lambda x: np.exp(x) * x, x)
    expected = back(np.ones(2))[0]
    x[:] = 0.0
    y[:] = 0.0
    np.testing.assert_array_equal(back(np.ones(2))[0], expected)
    assert (x.tolist(), y.tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_j_gives_the_cotangent_of_the_callable_first():
    def scaled(a, w):
        return lambda x: a * x + w[0]

    assert J(scaled(3.0, [1.0]), 2.0)[1](1.0) == (
        Tangent[type(product)](a=2.0, w=[1.0]),
        3.0,
    )
    assert J(math.sin, 0.0)[1](1.0) == (NoTangent(), 1.0)


# -- errors ----------------------------------------------------------------------------------------


def test_a_users_exception_keeps_its_type():
    class Own(Exception):
        pass

    def f(x):
        raise Own("message")

    for transform in (grad(f), lambda x: gradient(f, x), lambda x: pullback(f, x)):
        with pytest.raises(Own, match="message") as caught:
            transform(1.0)
        assert any(entry.name == "f" for entry in caught.traceback)


def test_a_call_with_wrong_arguments_raises_what_python_raises():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        gradient(product)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        gradient(product, 1.0, z=2.0)
    with pytest.raises(TypeError, match="positional argument"):
        gradient(product, 1.0, 2.0, 3.0)
    with pytest.raises(TypeError):
        gradient(3.0, 1.0)


def test_a_callable_without_a_rule_says_what_to_do():
    import array

    def f(x):
        return array.array("d", [x])[0] * x

    with pytest.raises(NoRuleError, match=r"(?s)no reverse rule for .*@rrule") as caught:
        gradient(f, 2.0)
    assert issubclass(NoRuleError, NotImplementedError)
    assert any(entry.name == "f" for entry in caught.traceback)
    assert issubclass(NoRuleError, DifferentiationError)


def test_tracebacks_of_the_reverse_pass_show_the_users_lines():
    def broken(x):
        def raises(x):
            raise AssertionError

        @morula.rrule(raises)
        def _(x: float):
            def pullback(ȳ):
                raise ZeroDivisionError("in the pullback")

            return x, pullback

        y = raises(x)
        return y * 2

    with pytest.raises(ZeroDivisionError) as caught:
        gradient(broken, 1.0)
    assert any(entry.name == "broken" for entry in caught.traceback)


def test_the_tables_of_a_broken_pass_are_gone():
    with pytest.raises(IndexError):
        gradient(lambda x: [x][1], 1.0)
    assert gradient(lambda xs: xs[0] * xs[1], [2.0, 3.0]) == ([3.0, 2.0],)


def test_arrays_that_the_caller_changed_come_back_after_the_pullback():
    x, params = np.array([1.0, 2.0]), {"w": [np.array([3.0, 4.0])]}
    view = x[:1]
    y, back = pullback(lambda x, p: {"y": x * p["w"][0], "same": x}, x, params)
    expected = back({"y": np.ones(2)})
    view[:] = 7.0
    params["w"][0] *= 0.0
    y["y"][1] = 5.0
    again = back({"y": np.ones(2)})
    np.testing.assert_array_equal(again[0], expected[0])
    np.testing.assert_array_equal(again[1]["w"][0], expected[1]["w"][0])
    assert (x[0], params["w"][0].tolist(), y["y"][1]) == (7.0, [0.0, 0.0], 5.0)
