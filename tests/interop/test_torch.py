"""PyTorch inside of Morula's gradients: against torch.autograd."""

import copy
import math
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from morula import (  # noqa: E402
    J,
    NonFiniteError,
    NoRuleError,
    Tangent,
    UnsupportedError,
    checkpoint,
    debug_nans,
    diaghessian,
    forwarddiff,
    gradient,
    hessian,
    hvp,
    ignore_derivatives,
    jacobian,
    jvp,
    pullback,
    ravel,
    taylor,
    tree_map,
    why,
    withgradient,
)


def by_torch(f, *args):
    xs = [x.detach().clone().requires_grad_() for x in args]
    found = torch.autograd.grad(f(*xs), xs, allow_unused=True)
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(xs, found, strict=True))


def x3(dtype=torch.float64):
    return torch.tensor([0.5, 1.5, 2.0], dtype=dtype)


A = torch.arange(9.0, dtype=torch.float64).reshape(3, 3) / 10 + torch.eye(3, dtype=torch.float64)
PROGRAMS = [
    lambda x: (2 * x - x / 3 + x**2 + 1).sum(),
    lambda x: torch.sin(x).exp().log1p().mean(),
    lambda x: (A @ x) @ x,
    lambda x: torch.linalg.solve(A, x).norm(),
    lambda x: torch.einsum("i,ij,j->", x, A, x),
    lambda x: x[0] * x[1:].prod() + x[[0, 2]].sum() + x[x > 1].sum(),
    lambda x: torch.stack([x, x * x]).T.reshape(-1).cumsum(0).sum(),
    lambda x: torch.cat([x, x.flip(0)]).sort().values[:3].sum(),
    lambda x: torch.max(x.reshape(1, 3), dim=1)[0][0] * 3,
    lambda x: sum(t * t for t in x),
    lambda x: F.softmax(x, dim=0)[1] + F.gelu(x).sum() + F.cross_entropy(x, torch.tensor(1)),
    lambda x: torch.where(x > 1, x, x**2).sum(),
    lambda x: torch.special.gammaln(x).sum() + torch.logsumexp(x, 0),
    lambda x: x.clone().to(torch.float32).double().sum() * x.shape[0],
    lambda x: (x.unsqueeze(0).expand(2, 3) * torch.tensor([[1.0], [2.0]])).sum(),
    lambda x: torch.fft.fft(x).abs().sum(),
    lambda x: abs(-x).sum() + (x % 1.0).sum() + 2.0 ** x[0] + (1 - x)[2],
    lambda x: [x.sum(), x.unbind()][1][1] * {"k": x}["k"][0],
    lambda x: torch.func.grad(lambda y: (y**3).sum())(x).sum(),
    lambda x: (x * x.detach()).sum(),
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_are_those_of_pytorch(f):
    x = x3()
    (got,) = gradient(f, x)
    assert not got.requires_grad
    torch.testing.assert_close(got, by_torch(f, x)[0])
    torch.testing.assert_close(pullback(f, x)[0], f(x))


@pytest.mark.parametrize("f", PROGRAMS[:3] + PROGRAMS[5:6])
def test_forward_mode_and_second_order(f):
    x, v = x3(), torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    y, ẏ = jvp(f, (x,), (v,))
    torch.testing.assert_close(y, f(x))
    want = torch.autograd.functional.jvp(f, x, v)[1]
    torch.testing.assert_close(ẏ, want)
    hv = torch.autograd.functional.hvp(f, x, v)[1]
    torch.testing.assert_close(hvp(f, x, v), hv)
    torch.testing.assert_close(gradient(lambda x: (gradient(f, x)[0] * v).sum(), x)[0], hv)
    torch.testing.assert_close(gradient(lambda x: jvp(f, (x,), (v,))[1], x)[0], hv)
    torch.testing.assert_close(jvp(lambda x: jvp(f, (x,), (v,))[1], (x,), (v,))[1], (hv * v).sum())


def test_the_gradient_has_the_kind_of_the_argument():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        (g,) = gradient(lambda x: (x * x).sum(), x3(dtype))
        assert g.dtype == dtype
    a, b = gradient(lambda a, b: (torch.from_numpy(a) * b).sum(), np.ones(3), x3())
    assert type(a) is np.ndarray
    assert torch.is_tensor(b)
    np.testing.assert_allclose(a, x3().numpy())
    assert gradient(lambda a: (a * x3()).sum(), 2.0) == (4.0,)
    assert gradient(lambda a: torch.tensor([a, 2.0 * a]).sum() * x3()[0], np.float64(2)) == (1.5,)
    n, flag = gradient(lambda x, n, flag: x[n].sum(), x3(), torch.tensor(1), torch.tensor(True))[1:]
    assert n is None
    assert flag is None
    z = torch.tensor([1 + 2j])
    torch.testing.assert_close(gradient(lambda z: (z.abs() ** 2).sum(), z)[0], 2 * z)
    parameter = nn.Parameter(x3())
    assert type(gradient(lambda p: (p * p).sum(), parameter)[0]) is torch.Tensor


def test_tensors_with_arrays_and_numbers_of_numpy():
    n = np.array([2.0, 3.0, -1.0])

    def f(x, n):
        return (x * n * n).sum() * x[0] + x[1] * np.float32(2.0) + (x.numpy()[1] * x).sum()

    def in_torch(x, n):
        return (x * n * n).sum() * x[0] + x[1] * 2.0 + (x[1] * x).sum()

    x, like = x3(), torch.from_numpy(n)
    x̄, n̄ = gradient(f, x, n)
    want = torch.func.grad(in_torch, (0, 1))(x, like)
    torch.testing.assert_close(f(x, n), in_torch(x, like))
    torch.testing.assert_close(x̄, want[0])
    assert type(n̄) is np.ndarray
    np.testing.assert_allclose(n̄, want[1])
    torch.testing.assert_close(
        gradient(lambda x: (gradient(f, x, n)[0] * x).sum(), x)[0],
        torch.func.grad(lambda x: (torch.func.grad(in_torch)(x, like) * x).sum())(x),
    )
    (mixed,) = gradient(lambda n: (gradient(f, x, n)[0] * x).sum(), n)
    second = torch.func.grad(lambda n: (torch.func.grad(in_torch)(x, n) * x).sum())(like)
    np.testing.assert_allclose(mixed, second)
    slope = jvp(f, (x, n), (x, n))[1]
    torch.testing.assert_close(slope, want[0] @ x + want[1] @ like)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("n", [3, np.int64(3), np.arange(3)])
def test_an_integer_is_a_point_of_the_real_line_where_pytorch_can_take_a_real_number(n, dtype):
    x = x3(dtype)
    f = lambda n: (x * n * n).sum().item()
    numbers = x.double().numpy()
    want = 2 * numbers * n if np.ndim(n) else 2 * numbers.sum() * n
    found = gradient(f, n)[0]
    assert isinstance(found, np.ndarray if np.ndim(n) else float)
    np.testing.assert_allclose(found, want, rtol=1e-2)
    np.testing.assert_allclose(jvp(f, (n,), (np.ones(np.shape(n)),))[1], np.sum(want), rtol=1e-2)
    if dtype is not torch.bfloat16 or not np.ndim(n):  # PyTorch has no such product
        value = withgradient(lambda x: (x * n).sum(), x)[0]
        assert value.dtype == (x * n).sum().dtype


def test_second_derivatives_by_integers():
    x = x3()
    f = lambda k: (x * k * k + torch.sin(x * k)).sum().item()
    want = 2 * x.sum() - (x**2 * torch.sin(3 * x)).sum()
    for found in (
        hessian(f, 3),
        hvp(f, 3, 1.0),
        gradient(lambda k: gradient(f, k)[0], 3)[0],
        gradient(lambda k: jvp(f, (k,), (1.0,))[1], 3)[0],
        jvp(lambda k: jvp(f, (k,), (1.0,))[1], (3,), (1.0,))[1],
    ):
        np.testing.assert_allclose(found, want)
    (mixed,) = gradient(lambda x: gradient(lambda k: (x * k * k).sum(), 3)[0], x)
    torch.testing.assert_close(mixed, 6 * torch.ones(3).double())


def test_integers_that_are_no_numbers():
    A = x3().repeat(3, 1)
    f = lambda A, d: torch.softmax(A, d).max(d).values[d] * A.reshape((3, d + 2)).sum((0, d))
    assert gradient(f, A, 1)[1] == 0.0
    with pytest.raises(NotImplementedError, match="differentiates by tensors only"):
        gradient(lambda k: F.leaky_relu(A, k).sum(), 2)
    with pytest.raises(NotImplementedError, match="differentiates by tensors only"):
        gradient(lambda k: Scaled()(A, k), 2)
    net = Steps()
    assert gradient(lambda x, n: net(x, n), A, 2)[1] == 0.0
    assert net.norm.num_batches_tracked == 1


def test_integers_in_structures_and_by_name():
    class Product(nn.Module):
        def forward(self, parts):
            return parts["x"].sum() * parts["n"] * parts["all"][0]

    net = Product()
    f = lambda x, n: net({"x": x, "n": n, "all": [n]})
    assert gradient(f, x3(), 3)[1] == pytest.approx(6 * float(x3().sum()))
    g = lambda x, n: torch.pow(x, exponent=n).sum() * torch.add(x, x, alpha=1)[0]
    want = by_torch(g, x3().abs(), torch.tensor(3.0).double())[1]
    assert gradient(g, x3().abs(), 3)[1] == pytest.approx(float(want))


def test_integers_of_the_program_cost_nothing(monkeypatch):
    """The call is run again for an integer only if its gradient is asked for."""
    monkeypatch.setattr("morula.interop.torch.primitives.Run.again", None)
    A = x3().repeat(2, 1)

    def f(x, n):
        y = torch.var(x, dim=1, correction=1).sum() + torch.sum(x, dim=[0, 1]) + x.sum(dim=(0, 1))
        return (
            y * 2 + x.reshape((3, 2)).permute([1, 0]).max(0).values[n] + torch.softmax(x, n)[0, n]
        )

    assert gradient(lambda x: f(x, 1), A)[0].shape == (2, 3)


class Steps(nn.Module):
    """What a run leaves in it would be left twice."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3).double()

    def forward(self, x, n):
        for _ in range(n):
            x = x * x
        return self.norm(x).sum()


class Scaled(nn.Module):
    """What it draws would be drawn again."""

    def forward(self, x, n):
        return (F.dropout(x, 0.5) * n).sum()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: float((x * x).sum()),
        lambda x: (x * x).sum().item(),
        lambda x: sum((x * x).tolist()),
        lambda x: (x * x).float().numpy().sum(),
        lambda x: math.exp((x * x).sum()) / math.exp(0.25 + 1.44 + 4.0),
    ],
)
def test_numbers_of_bfloat16(f):
    """NumPy has no such dtype."""
    x = torch.tensor([0.5, 1.2, 2.0], dtype=torch.bfloat16)
    value, (x̄,) = withgradient(f, x)
    assert type(value) is type(f(x))
    assert x̄.dtype == torch.bfloat16
    np.testing.assert_allclose(x̄.float(), 2 * x.float(), rtol=2e-2)
    with pytest.raises(TypeError, match="BFloat16"):
        gradient(lambda x: x.numpy().sum(), x)


def test_what_is_computed_in_inference_mode_is_constant():
    def f(x):
        with torch.inference_mode():
            y = x * x
        return (y * x).sum() + (y.clone() * x).sum()

    torch.testing.assert_close(gradient(f, x3())[0], 2 * x3() ** 2)


def test_to_numpy_and_back():
    def f(x):
        y = np.sin(x.numpy()) * np.asarray(x)
        total = float(x[0]) + x[1].item() * math.exp(x[2]) + x.tolist()[0]
        return (torch.from_numpy(y) * x).sum() + torch.as_tensor(total)

    def in_torch(x):
        return (torch.sin(x) * x * x).sum() + x[0] + x[1] * torch.exp(x[2]) + x[0]

    torch.testing.assert_close(gradient(f, x3())[0], by_torch(in_torch, x3())[0])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.shift = torch.tensor(0.5)

    def forward(self, x):
        return self.layers(x) * self.scale + self.shift

    def penalty(self):
        return sum((p**2).sum() for p in self.parameters()) + self.scale


def test_modules():
    torch.manual_seed(0)
    net, x = Net(), torch.randn(5, 3)
    before = {k: v.clone() for k, v in net.state_dict().items()}

    def loss(net, x):
        return (net(x) ** 2).mean() + 0.1 * net.penalty()

    g, x̄ = gradient(loss, net, x)
    x_ = x.clone().requires_grad_()
    loss(net, x_).backward()
    torch.testing.assert_close(x̄, x_.grad)
    assert isinstance(g, Tangent)
    torch.testing.assert_close(g.scale, net.scale.grad)
    torch.testing.assert_close(g["layers"]["0"].weight, net.layers[0].weight.grad)
    torch.testing.assert_close(g.layers["2"].bias, net.layers[2].bias.grad)
    torch.testing.assert_close(g.shift, (2 * net(x)).mean())
    for name, value in net.state_dict().items():
        torch.testing.assert_close(value, before[name])
    assert isinstance(net.scale, nn.Parameter)
    (captured, _) = J(lambda x: net(x).sum(), x)[1](torch.tensor(1.0))
    torch.testing.assert_close(captured["net"].scale, net.layers(x).sum())
    ẏ = jvp(lambda net: net(x).sum(), (net,), (Tangent[Net](shift=torch.tensor(1.0)),))[1]
    assert ẏ.item() == pytest.approx(5.0)


def test_dropout_is_drawn_once():
    torch.manual_seed(0)
    x = torch.ones(50)
    y, back = pullback(lambda x: F.dropout(x * x, 0.5), x)
    torch.testing.assert_close(back(torch.ones(50))[0], 2 * y)

    def f(x):
        return (F.dropout(x * x, 0.5) * x).sum()

    (g,) = gradient(f, x)
    assert {*g.tolist()} == {0.0, 6.0}


def test_constants_of_pytorch():
    def f(x):
        with torch.no_grad():
            target = x * 3
        return ((x - target) ** 2).sum() + (x.detach() * x).sum() + (x.data * x).sum()

    torch.testing.assert_close(gradient(f, x3())[0], by_torch(f, x3())[0])
    with torch.no_grad(), pytest.raises(NotImplementedError, match="no_grad"):
        gradient(lambda x: (x * x).sum(), x3())
    assert gradient(lambda x: x[int(ignore_derivatives(x).argmax())], x3())[0].tolist() == [0, 0, 1]


def changes_item(x):
    x[0] = 1.0
    return x.sum()


def adds_in_place(x):
    x += 1
    return x.sum()


@pytest.mark.parametrize(
    "f",
    [
        changes_item,
        adds_in_place,
        lambda x: x.add_(1).sum(),
        lambda x: x.__setitem__(0, 1.0) or x.sum(),
        lambda x: torch.relu_(x).sum(),
        lambda x: torch.sin(x, out=torch.empty(3)).sum(),
    ],
)
def test_what_changes_a_tensor_is_refused(f):
    with pytest.raises(NotImplementedError, match="changes a tensor in place"):
        gradient(f, x3(torch.float32))


def test_other_refusals():
    with pytest.raises(NotImplementedError, match="use gradient"):
        gradient(lambda x: (x * x).sum().backward() or 1.0, x3().requires_grad_())
    with pytest.raises(NotImplementedError, match="differentiates by tensors only"):
        gradient(lambda a: torch.vmap(lambda t: t * a)(x3()).sum(), 2.0)
    with pytest.raises(NotImplementedError, match="differentiates by tensors only"):
        gradient(lambda a: torch.full((2,), a).sum(), 2.0)
    torch.testing.assert_close(
        gradient(lambda x: torch.vmap(lambda t: t * 2.0)(x).sum(), x3())[0],
        2 * torch.ones(3).double(),
    )
    with pytest.raises(TypeError, match="one real number"):
        gradient(lambda x: x * 2, x3())
    with pytest.raises(Exception, match="numpy"):
        gradient(lambda x: torch.sum(torch.as_tensor(np.sin(x))), x3())


def in_a_tuple(a):
    held = (a, 1.0)
    return lambda t: held[0] * t


def as_a_default(a):
    def scaled(t, by=(a,)):
        return by[0] * t

    return scaled


@pytest.mark.parametrize(
    "made", [in_a_tuple, as_a_default, lambda a: partial(lambda by, t: by * t, a)]
)
def test_what_functions_hold_that_pytorch_is_given(made):
    def f(a):
        return torch.vmap(made(a))(x3()).sum()

    a = torch.tensor(2.0, dtype=torch.float64)
    with pytest.raises(NotImplementedError, match="no reverse rule"):
        gradient(f, a)
    with pytest.raises(NotImplementedError, match="no reverse rule"):
        jvp(f, (a,), (a,))
    with pytest.raises(NotImplementedError, match="no reverse rule"):
        gradient(lambda a: torch.vmap(func=made(a))(x3()).sum(), a)
    with pytest.raises(NotImplementedError, match="no reverse rule"):
        jvp(lambda a: torch.vmap(func=made(a))(x3()).sum(), (a,), (a,))
    (found,) = gradient(lambda x: torch.vmap(made(2.0))(x).sum(), x3())
    torch.testing.assert_close(found, 2 * torch.ones(3).double())


def test_memory_that_is_shared_with_numpy():
    def writes_to_what_is_seen(x):
        x = x * 1.0
        x.numpy()[0] = 5.0
        return (x * x).sum()

    def writes_to_what_was_given(a):
        a = a * 1.0
        t = torch.from_numpy(a)
        a[0] = 5.0
        return float((t * t).sum())

    def writes_to_a_copy(a):
        a = a * 1.0
        t = torch.tensor(a)
        a[0] = 5.0
        return float((t * t).sum()) + a[1]

    with pytest.raises(ValueError, match="read-only"):
        gradient(writes_to_what_is_seen, x3())
    with pytest.raises(NotImplementedError, match="shares memory"):
        gradient(writes_to_what_was_given, np.ones(3))
    np.testing.assert_allclose(gradient(writes_to_a_copy, np.ones(3))[0], [2, 3, 2])


def test_copies():
    for f in (copy.copy, copy.deepcopy, torch.clone, lambda x: copy.deepcopy([x])[0]):
        assert gradient(lambda x: f(x).sum(), x3())[0].tolist() == [1, 1, 1]


def test_errors_of_pytorch_come_through():
    with pytest.raises(RuntimeError, match="must match"):
        gradient(lambda x: (x + torch.ones(2)).sum(), x3())


def test_training_with_tree_map():
    torch.manual_seed(0)
    x, y = torch.randn(30, 3), torch.randn(30, 1)
    params = {"w": torch.zeros(3, 1), "b": torch.zeros(1)}

    def loss(p):
        return ((x @ p["w"] + p["b"] - y) ** 2).mean()

    for _ in range(100):
        params = tree_map(lambda p, g: p - 0.1 * g, params, gradient(loss, params)[0])
    best = torch.linalg.lstsq(torch.cat([x, torch.ones(30, 1)], 1), y).solution
    torch.testing.assert_close(params["w"], best[:3], atol=1e-3, rtol=1e-3)


def test_pytorch_is_loaded_by_the_program_only():
    code = (
        "import sys, morula; morula.gradient(lambda x: x * x, 1.0); print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def wave(x):
    return torch.sin(x) * x.sum()


def cubes(x):
    return (x**3).sum() * x[0]


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_jacobians_are_tensors_in_every_mode(mode, dtype):
    x, s = x3(dtype), torch.tensor(2.0, dtype=dtype)
    for f, args in (
        (wave, (x,)),
        (cubes, (x,)),
        (lambda s: s * x, (s,)),
        (lambda s: s**2, (s,)),
        (lambda x, s: x * s, (x, s)),
        (lambda a: a @ a, (torch.outer(x, x),)),
    ):
        want = torch.func.jacrev(f, argnums=tuple(range(len(args))))(*args)
        torch.testing.assert_close(jacobian(f, *args, mode=mode), want)
    by_number, by_array = jacobian(
        lambda a, b: x * a + torch.tensor(b).sum(), 2.0, np.ones(2), mode=mode
    )
    np.testing.assert_allclose(by_number, x)
    assert type(by_array) is np.ndarray
    assert by_array.shape == (3, 2)
    (of_array,) = jacobian(lambda x: 2 * x.numpy(), x, mode=mode)
    torch.testing.assert_close(of_array, 2 * torch.eye(3, dtype=dtype))


def test_second_derivatives_are_tensors():
    x, s = x3(), torch.tensor(2.0)
    want = torch.func.hessian(cubes)(x)
    torch.testing.assert_close(hessian(cubes, x), want)
    torch.testing.assert_close(diaghessian(cubes, x), want.diag())
    torch.testing.assert_close(hvp(cubes, x, x), want @ x)
    torch.testing.assert_close(hessian(cubes)(x3(torch.float32)), want.float())
    torch.testing.assert_close(hessian(lambda s: s**3, s), 6 * s)
    (c,) = gradient(lambda x: (jacobian(wave, x)[0] * want).sum(), x)
    own = torch.func.grad(lambda x: (torch.func.jacrev(wave)(x) * want).sum())(x)
    torch.testing.assert_close(c, own)
    (c,) = gradient(lambda x: forwarddiff(wave, x).sum(), x)
    torch.testing.assert_close(c, by_torch(lambda x: wave(x).sum(), x)[0])


def test_jacobians_of_complex_values_and_of_nothing():
    x = x3()
    want = torch.diag(1j * torch.exp(1j * x))
    for mode in (None, "forward", "reverse"):
        (got,) = jacobian(lambda x: torch.exp(1j * x), x, mode=mode)
        torch.testing.assert_close(got, want)
        (got,) = jacobian(lambda z: z * z, 1j * x, mode=mode)
        torch.testing.assert_close(got, torch.diag(2j * x))
        assert jacobian(lambda x: x[:0], x, mode=mode)[0].shape == (0, 3)
        assert jacobian(wave, x[:0], mode=mode)[0].shape == (0, 0)


def test_tensors_in_vectors():
    p = {"w": x3(torch.float32), "b": torch.tensor(2.0, dtype=torch.bfloat16), "n": torch.arange(2)}
    vector, unravel = ravel([p, 1.0])
    assert vector.tolist() == [0.5, 1.5, 2.0, 2.0, 1.0]
    again, number = unravel(2 * vector)
    assert again["w"].tolist() == [1.0, 3.0, 4.0]
    assert (again["w"].dtype, again["b"].dtype) == (torch.float32, torch.bfloat16)
    assert again["n"] is p["n"]
    assert number == 2.0
    v̄ = gradient(lambda v: float((unravel(v)[0]["w"] ** 2).sum()), vector)[0]
    assert v̄.tolist() == [1.0, 3.0, 4.0, 0.0, 0.0]
    assert gradient(lambda w: ravel([w])[0] @ np.ones(3), x3())[0].tolist() == [1.0] * 3
    with pytest.raises(TypeError, match=r"ravel does not take a Linear: give it dict\(module"):
        ravel([nn.Linear(2, 1)])


def test_passes_that_carry_no_tangents_are_refused():
    with pytest.raises(TypeError, match="sparse derivatives are by numbers and arrays of NumPy's"):
        jacobian(wave, x3(), sparsity="auto")
    with pytest.raises(NoRuleError, match="for Taylor series"):
        taylor(torch.sin, torch.tensor(1.0), 3)
    with pytest.raises(TypeError, match="argument 0 has the dtype torch"):
        jacobian(lambda n: n * 2.0, torch.arange(2))


FIRST_CALLS = """
import os, sys, morula, torch
x = torch.ones(2)
for first in (
    lambda: morula.jvp(lambda x: x * x, (x,), (x,))[1].tolist() == [2.0, 2.0],
    lambda: morula.jacobian(lambda x: x * x, x)[0].tolist() == [[2.0, 0.0], [0.0, 2.0]],
    lambda: morula.ravel([x])[0].tolist() == [1.0, 1.0],
):
    child = os.fork()
    if not child:
        os._exit(not first())
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each is the first call of a process")
def test_any_function_may_be_the_first_that_meets_a_tensor():
    subprocess.run([sys.executable, "-c", FIRST_CALLS], check=True)


def test_random_numbers_come_again():
    def dropped(t):
        return torch.nn.functional.dropout(t, 0.5) * t

    t = torch.ones(12, dtype=torch.float64)
    for seed in range(3):
        torch.manual_seed(seed)
        mask = dropped(t)
        after = torch.rand(1)

        def same(f, mask=mask, after=after, seed=seed):
            torch.manual_seed(seed)
            found = f()
            assert torch.equal(found, 2 * mask)
            assert torch.equal(torch.rand(1), after)

        same(lambda: gradient(lambda t: checkpoint(dropped, t).sum(), t)[0])
        same(lambda: torch.diag(jacobian(dropped, t, mode="forward")[0]))
        same(lambda: torch.diag(hessian(lambda t: dropped(t).sum(), t)))
        same(lambda: gradient(lambda t: forwarddiff(dropped, t).sum(), t)[0])


def test_why_and_debug_nans_look_into_tensors():
    t = torch.tensor([0.0, 1.5])
    ends = {
        "floor ends it: its derivative is zero there": lambda t: torch.floor(t * 2).sum(),
        "detach ends it": lambda t: (t.detach() * 2).sum(),
        "comes out of torch._VariableFunctionsClass.sqrt": lambda t: torch.sqrt(t - t).sum(),
    }
    for reason, f in ends.items():
        (finding,) = why(f, t).findings
        assert reason in finding.reason
    with pytest.raises(NonFiniteError, match="sqrt is not finite"), debug_nans():
        gradient(lambda t: torch.sqrt(t).sum(), t)
    with debug_nans():
        assert gradient(lambda t: torch.sqrt(t + 1).sum(), t)[0][0] == 0.5


class Doubled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2

    def squared(self, x):
        return super().forward(x) ** 2


BATCH = torch.linspace(-0.5, 1.2, 6, dtype=torch.float64).reshape(2, 3)
MODULES = [
    lambda net: net[0].forward(BATCH).pow(2).sum(),
    lambda net: nn.Linear.forward(net[0], BATCH).pow(3).sum(),
    lambda net: net[2].squared(net[0](BATCH)).sum() + net(BATCH).sum(),
    lambda net: torch.func.functional_call(net, {}, BATCH).pow(2).sum(),
    lambda net: torch.func.functional_call(net, {"0.weight": net[0].weight * 2}, BATCH).sum(),
    lambda net: nn.utils.parameters_to_vector(net.parameters()).pow(2).sum(),
    lambda net: torch.utils.checkpoint.checkpoint(net, BATCH, use_reentrant=False).sum(),
    lambda net: torch.vmap(lambda row: net(row))(BATCH).pow(2).sum(),
    lambda net: torch.func.jacrev(net)(BATCH[0]).pow(2).sum(),
]


@pytest.mark.parametrize("f", MODULES)
def test_parameters_of_modules_that_are_given_to_pytorch(f):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), Doubled(2, 1)).double()
    y = f(net)
    y.backward()
    (g,) = gradient(f, net)
    for i in ("0", "2"):
        for name in ("weight", "bias"):
            want = getattr(net[int(i)], name).grad
            got = getattr(g[i], name)
            torch.testing.assert_close(got, torch.zeros_like(got) if want is None else want)
    assert f(net) == y


def log_likelihood(x):
    normal = torch.distributions.Normal(x[0], x[1])
    apart = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, x[2]))
    return normal.log_prob(x[3]) * 2 + apart + torch.distributions.Gamma(x[2], x[3]).mean


def drawn(x):
    torch.manual_seed(1)
    choice = torch.distributions.Categorical(logits=x)
    sample = torch.distributions.MultivariateNormal(x[:2], torch.diag(x[2:])).rsample()
    return choice.log_prob(choice.sample()) + choice.entropy() * sample.sum()


def from_a_dataset(x):
    data = torch.utils.data.TensorDataset(x, x**2)
    return sum(a * b for a, b in [data[1], data[3]])


@pytest.mark.parametrize("f", [log_likelihood, drawn, from_a_dataset])
def test_objects_of_pytorch_hold_tensors(f):
    x = torch.tensor([0.4, 0.7, 1.3, 0.9], dtype=torch.float64)
    leaf = x.clone().requires_grad_()
    y = f(leaf)
    (want,) = torch.autograd.grad(y, leaf)
    assert f(x) == y.detach()
    torch.testing.assert_close(gradient(f, x)[0], want)
    torch.testing.assert_close(jvp(f, (x,), (torch.ones(4, dtype=x.dtype),))[1], want.sum())


def test_objects_that_nobody_looks_into_are_refused():
    t = torch.ones(3)
    with pytest.raises(UnsupportedError, match="SGD of PyTorch's in differentiated code"):
        gradient(lambda t: torch.optim.SGD([t]).param_groups[0]["params"][0].sum(), t)

    class Held:
        def __init__(self, t):
            self.t = t

    def captured(t):
        held = Held(t)
        return torch.vmap(lambda row: row * held.t)(t).sum()

    with pytest.raises(NoRuleError, match="differentiates by tensors only"):
        gradient(captured, t)


def test_pushforwards_of_tensors_that_numpy_has_no_dtype_for():
    t = torch.tensor([0.5, 1.5], dtype=torch.bfloat16)
    y, ẏ = jvp(lambda t: (t * t).sum(), (t,), (torch.ones_like(t),))
    assert y.dtype == ẏ.dtype == torch.bfloat16
    assert (float(y), float(ẏ)) == (2.5, 4.0)
    assert torch.equal(hvp(lambda t: (t * t).sum(), t, t), 2 * t)
