"""NumPy functions that Morula differentiates, as PyTorch functions: against PyTorch's own."""

from typing import NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

from morula.interop.operations import OperationError  # noqa: E402
from morula.interop.torch import to_torch  # noqa: E402


def model(x, a):
    y = np.sin(x) * a
    while y[0] < 0.1:
        y = y + 1.0
    return np.sum(y**2) + x[0] ** 3


def model_in_torch(x, a):
    return torch.sum((torch.sin(x) * a) ** 2) + x[0] ** 3


f = to_torch(model)


def point(dtype=torch.float64):
    return torch.tensor([0.5, 1.0, 2.0], dtype=dtype), torch.tensor(2.0, dtype=dtype)


@pytest.mark.parametrize(
    "transform",
    [
        lambda h: torch.func.grad(h, argnums=(0, 1)),
        lambda h: lambda x, a: torch.func.jvp(h, (x, a), (x + 1, a)),
        lambda h: torch.func.jacrev(torch.func.jacrev(h)),
        lambda h: lambda x, a: torch.func.vmap(h, (0, None))(torch.stack([x, x + 1]), a),
        lambda h: (
            lambda x, a: torch.func.vmap(torch.func.grad(h), (0, None))(torch.stack([x, x + 1]), a)
        ),
        lambda h: (
            lambda x, a: torch.func.grad(lambda xs: torch.func.vmap(h, (0, None))(xs, a).prod())(
                torch.stack([x, x + 1])
            )
        ),
    ],
)
def test_transforms_give_what_they_give_for_functions_of_pytorch(transform):
    got, want = transform(f)(*point()), transform(model_in_torch)(*point())
    torch.testing.assert_close(got, want)


def test_backward_and_its_derivatives():
    x, a = (t.requires_grad_() for t in point())
    y = f(x, a)
    y.backward()
    g = torch.autograd.grad(model_in_torch(x, a), (x, a))
    torch.testing.assert_close((x.grad, a.grad), g)
    assert torch.autograd.gradcheck(f, (x, a))
    assert torch.autograd.gradgradcheck(f, (x, a))
    assert f(x, 2.0).requires_grad
    assert not f(x.detach(), a.detach()).requires_grad


class Pair(NamedTuple):
    a: object
    b: object


def test_structures_and_what_is_no_tensor():
    def g(params, n, *, how):
        assert type(n) is int
        assert how == "up"
        w, b = params["w"]
        return {"out": w * params["k"].b + b * n, "parts": (params["k"].a.sum(), w.size)}

    w = torch.ones(2, requires_grad=True)
    k = Pair(torch.ones(3, requires_grad=True), torch.tensor(2.0, requires_grad=True))
    b = np.float64(3.0)
    y = to_torch(g)({"w": [w, b], "k": k}, 4, how="up")
    torch.testing.assert_close(y["out"], torch.tensor([14.0, 14.0]))
    assert y["parts"][1].item() == 2
    (y["out"].sum() ** 2 + y["parts"][0]).backward()
    torch.testing.assert_close(w.grad, torch.tensor([112.0, 112.0]))
    torch.testing.assert_close(k.a.grad, torch.ones(3))
    torch.testing.assert_close(k.b.grad, torch.tensor(112.0))
    counts = to_torch(lambda x, n: x[n] * 2.0)(w, torch.tensor(1))
    assert torch.autograd.grad(counts, w)[0].tolist() == [0.0, 2.0]


def test_precision_is_that_of_pytorch_outside_and_double_inside():
    seen = []

    def g(x):
        seen.append(np.asarray(x).dtype)
        return x**2

    for dtype in (torch.float16, torch.float32, torch.float64):
        x = torch.tensor([1.5], dtype=dtype, requires_grad=True)
        y = to_torch(g)(x)
        (x̄,) = torch.autograd.grad(y.sum(), x)
        assert x̄.dtype == dtype
        assert x̄.item() == 3.0
    assert {*map(str, seen)} == {"float64"}
    assert to_torch(g)(torch.ones(1)).dtype == torch.float32
    with pytest.raises(TypeError, match="bfloat16"):
        to_torch(g)(torch.ones(1, dtype=torch.bfloat16))


def test_complex_numbers():
    def g(z, x):
        return np.abs(z * np.exp(1j * x)) ** 2 * x + np.real(z**2)

    z = torch.tensor(1 + 2j, dtype=torch.complex128, requires_grad=True)
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(to_torch(g), (z, x))
    assert torch.autograd.gradgradcheck(to_torch(g), (z, x))


def test_errors():
    with pytest.raises(OperationError, match="gave a str"):
        to_torch(lambda x: "x")(torch.ones(2))
    with pytest.raises(OperationError, match="gave a str"):
        to_torch(lambda x: (x, "up" if x[0] > 0 else "down"))(torch.ones(2))
    grows = to_torch(lambda x: np.ones(int(x[0])) * x[1])
    grows(torch.ones(2))
    with pytest.raises(OperationError, match="shape"):
        grows(2 * torch.ones(2))
    changes = to_torch(lambda x: (x, x) if x[0] > 1 else x)
    changes(torch.ones(2))
    with pytest.raises(OperationError, match="structure"):
        changes(2 * torch.ones(2))

    def refuses(x):
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        to_torch(refuses)(torch.ones(2))


def test_an_optimiser_of_pytorch_trains_a_numpy_model():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((20, 2))
    targets = points @ [1.0, -2.0] + 0.5
    loss = to_torch(lambda w, b: np.mean((points @ w + b - targets) ** 2))
    w, b = torch.zeros(2, requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser = torch.optim.Adam([w, b], lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        value = loss(w, b)
        value.backward()
        optimiser.step()
    assert value.item() < 1e-4
