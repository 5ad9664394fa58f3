"""Which calls are PyTorch's, and what they mean: callables of PyTorch's, and what is done with tensors.

Tests: tests/interop/test_torch.py
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from functools import partial
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import torch

from morula.core.extend import non_differentiable, opaque, unsupported
from morula.core.general import Claim
from morula.interop.meanings import (
    ITERATING,
    NUMBERS,
    Args,
    as_it_is,
    claim,
    forward,
    handed_on,
    iterates,
    plainly,
)
from morula.interop.torch.primitives import (
    holds_inside,
    in_place,
    is_floating,
    is_input,
    primitive,
    primitive_at_once,
)
from morula.interop.torch.tensors import from_shared, host, is_tensor, like, shown
from morula.mixed_mode.push import opaque as opaque_forward

# -- meanings --------------------------------------------------------------------------------------


def by_value(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function of Python's numbers."""
    return fn(*[host(x).item() if is_tensor(x) else x for x in args], **kwargs)


def by_rows(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What iterates: over the rows of a tensor."""
    given = [primitive(torch.unbind, (x,), {}) if is_tensor(x) else x for x in args]
    return fn(*given, **kwargs)


def rows(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An iterator over the rows of a tensor."""
    return iter(primitive(torch.unbind, args, {}))


def conversion(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.item()` and the like, by the methods of NumPy's arrays."""
    return getattr(host(args[0]), CONVERSIONS[fn.__name__])()


def to_numpy(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.numpy()`, `np.asarray(x)`."""
    x, *more = args
    return shown(x) if fn not in NUMPY else fn(shown(x), *more, **kwargs)


def copied(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`copy.deepcopy(x)`."""
    return primitive(torch.clone, args[:1], {})


def from_numbers(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`torch.tensor(data)`, `torch.from_numpy(array)`: a tensor, by PyTorch's law, is a constant."""
    y = as_it_is(fn, args, kwargs)
    if fn is not torch.tensor and isinstance(args[0], np.ndarray):
        return from_shared(args[0], y)
    return like(np.asarray(args[0]), y)


def attribute(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.T` and the like."""
    return primitive(getattr, args, kwargs)


def named(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.sort().values` and the like: an item of a tuple."""
    return args[0][place_of(*args)]


def place_of(x: Any, name: str) -> int:
    """Where in a tuple with names a part stands."""
    return type(x).__match_args__.index(name)


def refused(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What changes a tensor."""
    raise in_place(fn)


def of_autograd(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`y.backward()` and the like."""
    raise unsupported(
        f"{fn.__name__} of PyTorch's in differentiated code",
        "it works on a record that Morula keeps",
        "use gradient, which may be called inside",
    )


def unknown(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An object that holds tensors where nobody looks for them."""
    return opaque(fn, args, kwargs, HOLDS)  # type: ignore[call-arg]


def unknown_forward(run: Any, fn: Any, ḟ: Any, args: Args, tangents: Any, keywords: Any) -> Any:
    """The same in forward mode."""
    return opaque_forward(run, fn, ḟ, args, tangents, keywords, HOLDS)


HOLDS = "the derivative by what an object of PyTorch's holds is known of modules and distributions"

# -- which calls -----------------------------------------------------------------------------------

UNKNOWN = Claim(unknown, unknown_forward)
PYTHON = (  # modules whose code is followed
    "torch.nn.modules.module",
    "torch.nn.modules.container",
    "torch.distributions",
    "torch.utils.data",
)
PRIMITIVE = Claim(primitive_at_once, partial(forward, primitive))
BY_VALUE = claim(by_value)
BY_ROWS = claim(by_rows)
ROWS = claim(rows)
COPIED = claim(copied)
CONVERSION = claim(conversion)
TO_NUMPY = claim(to_numpy)
FROM_NUMBERS = claim(from_numbers)
ATTRIBUTE = claim(attribute)
PLAINLY = claim(plainly)
HANDED_ON = claim(handed_on)
NAMED = claim(named)
REFUSED = claim(refused)
OF_AUTOGRAD = claim(of_autograd)

_BINARY = "add sub mul matmul truediv floordiv mod pow"
OPERATORS = {
    id(getattr(operator, name)) for name in f"neg pos abs invert {_BINARY} getitem".split()
} | {id(abs), id(pow), id(divmod), id(round)}
CHANGING = {
    id(getattr(operator, f"i{name}")) for name in f"{_BINARY} and or xor lshift rshift".split()
} | {id(operator.setitem), id(operator.delitem)}
OPERANDS = (int, float, complex, np.ndarray, np.generic)
CONVERSIONS = {
    "item": "item",
    "tolist": "tolist",
    "__float__": "__float__",
    "__complex__": "__complex__",
    "__int__": "__int__",
    "__index__": "__index__",
}
NUMPY = {np.asarray, np.array, np.asanyarray, np.ascontiguousarray}
DIFFERENTIABLE = {"T", "mT", "H", "mH", "real", "imag"}
MAKING = {torch.tensor, torch.as_tensor, torch.from_numpy, torch.asarray}
OF_TENSORS = (torch._C.TensorBase, torch.Tensor)
CONSTANT = {"detach", "detach_", "data_ptr", "size", "dim", "numel", "stride", "new_tensor"}
AUTOGRAD = {"backward", "requires_grad_", "register_hook", "retain_grad"}
_modules: dict[Any, bool] = {}


def is_of_torch(module: Any) -> bool:
    """Is a module, given by its name, in PyTorch?"""
    found = _modules.get(module)
    if found is None:
        found = _modules[module] = str(module).split(".")[0] in ("torch", "torchvision")
    return found


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means that is PyTorch's."""
    if isinstance(fn, torch.nn.Module):
        return PRIMITIVE
    find = _by_type.get(type(fn))
    if find is not None:
        return find(fn, values)
    if isinstance(fn, type):
        return of_class(fn, values)
    return None if fn is torch.Tensor else of_object(fn)


def of_object(fn: Any) -> Claim | None:
    """A callable object of PyTorch's: a scripted function, say."""
    return PRIMITIVE if is_of_torch(type(fn).__module__) and not is_tensor(fn) else None


def of_function(fn: Any, values: Args) -> Claim | None:
    """A function of Python's."""
    if not is_of_torch(fn.__globals__.get("__name__")):
        return None
    module, name = fn.__globals__["__name__"], fn.__name__
    if module.startswith(PYTHON):
        return PLAINLY if name == "_standard_normal" else None
    if module.startswith(("torch.autograd.grad_mode", "torch.utils._contextlib")) or (
        name in ("__enter__", "__exit__")
    ):
        return MODE if name in ("__enter__", "__exit__") else by_name(fn, values)
    if name == "__iter__" and values and is_tensor(values[0]):
        return ROWS
    return by_name(fn, values)


def by_name(fn: Any, values: Args) -> Claim:
    """A function or a method of PyTorch's."""
    name = fn.__name__
    if name in AUTOGRAD or (name == "grad" and getattr(fn, "__module__", "") == "torch.autograd"):
        return OF_AUTOGRAD
    if name in CONSTANT:
        return PLAINLY
    if values and is_tensor(values[0]):
        if name in CONVERSIONS:
            return CONVERSION
        if name == "__deepcopy__":
            return COPIED
        if name in ("numpy", "__array__"):
            return TO_NUMPY
        if changes(name):
            return REFUSED
    if not torch.is_grad_enabled():
        return under_no_grad()
    return PRIMITIVE


def changes(name: str) -> bool:
    """Does a method change its tensor?"""
    if name in ("__setitem__", "__delitem__"):
        return True
    if name.startswith("__"):
        return name.startswith("__i") and name not in (
            "__index__",
            "__int__",
            "__invert__",
            "__iter__",
        )
    return name.endswith("_")


def of_builtin(fn: Any, values: Args) -> Claim | None:
    """A compiled function."""
    if fn is getattr:
        return of_attribute(*values[:2]) if len(values) > 1 else None
    if id(fn) in CHANGING:
        return REFUSED if is_tensor(values[0]) else None
    if id(fn) in OPERATORS:
        return of_operator(fn, values)
    if fn in MAKING:
        if values and is_tensor(values[0]):
            return PLAINLY if fn is torch.tensor else PRIMITIVE
        return FROM_NUMBERS
    if is_of_torch(getattr(fn, "__module__", None)):
        return by_name(fn, values)
    if not any(map(is_tensor, values)):
        return None
    if id(fn) in ITERATING:
        return BY_ROWS if iterates(fn, values, is_tensor) else None
    if id(fn) in NUMBERS or getattr(fn, "__module__", None) in ("math", "cmath"):
        return BY_VALUE
    return TO_NUMPY if fn in NUMPY else None


def of_attribute(x: Any, name: str) -> Claim | None:
    """`x.name`."""
    if isinstance(x, (torch.finfo, torch.iinfo)):
        return PLAINLY
    if not is_tensor(x):
        return (
            NAMED if isinstance(x, tuple) and type(x).__module__ == "torch.return_types" else None
        )
    if name in DIFFERENTIABLE:
        return ATTRIBUTE
    return HANDED_ON if callable(getattr(x, name, None)) else PLAINLY


def of_operator(fn: Any, values: Args) -> Claim | None:
    """An operator with a tensor among its operands."""
    if not any(map(is_tensor, values)):
        return None
    if fn is operator.getitem and not is_tensor(values[0]):
        return None
    if not torch.is_grad_enabled():
        return under_no_grad()
    return PRIMITIVE if fn is operator.getitem or all(map(is_operand, values)) else None


def is_operand(x: Any) -> bool:
    """Is it what tensors are computed with?"""
    return is_tensor(x) or isinstance(x, OPERANDS)


def of_class(fn: Any, values: Args) -> Claim | None:
    """The construction of a class."""
    if is_of_torch(fn.__module__):
        if issubclass(fn, torch.Tensor):
            return PRIMITIVE
        if fn.__module__.startswith(PYTHON):
            return None
        if fn.__module__.startswith("torch.optim"):
            return OF_AUTOGRAD
        return UNKNOWN if any(may_be_lost(fn, x) for x in values) else PLAINLY
    if not any(map(is_tensor, values)):
        return None
    if id(fn) in ITERATING:
        return BY_ROWS if iterates(fn, values, is_tensor) else None
    return BY_VALUE if id(fn) in NUMBERS or issubclass(fn, np.generic) else None


def may_be_lost(fn: type, x: Any) -> bool:
    """Does an object of a class of PyTorch's hold something of `x` that the gradient may be by?

    The numbers that a module is made with are its settings.
    """
    return holds_inside(x, is_floating if issubclass(fn, torch.nn.Module) else is_input)


def of_descriptor(fn: Any, values: Args) -> Claim | None:
    """A method of a compiled class."""
    return by_name(fn, values) if fn.__objclass__ in OF_TENSORS else None


def of_numpy(fn: Any, values: Args) -> Claim | None:
    """A function of NumPy's."""
    return TO_NUMPY if fn in NUMPY and values and is_tensor(values[0]) else None


def nobody(fn: Any, values: Args) -> None:
    """What is resolved to a call of something else."""
    return None


_by_type: dict[type, Callable[[Any, Args], Claim | None]] = {
    FunctionType: of_function,
    BuiltinFunctionType: of_builtin,
    type(np.sum): of_numpy,
    MethodDescriptorType: of_descriptor,
    WrapperDescriptorType: of_descriptor,
    MethodType: nobody,
    partial: nobody,
}


# -- under no_grad ---------------------------------------------------------------------------------


class Modes(threading.local):
    """How often the differentiated program has entered a mode of PyTorch's, such as `no_grad`."""

    entered = 0


modes = Modes()


def in_mode(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`with torch.no_grad():`"""
    return switched(fn, args)


def switched(fn: Any, args: Args) -> Any:
    """Enter or leave a mode."""
    modes.entered = max(0, modes.entered + (1 if fn.__name__ == "__enter__" else -1))
    return fn(*args)


MODE = claim(in_mode)


def under_no_grad() -> Claim:
    """What is computed there is a constant, if it is the program that says so."""
    if modes.entered:
        return PLAINLY
    raise unsupported(
        "PyTorch's code under torch.no_grad()",
        "the gradient was asked for where PyTorch gives none",
        "ask for it outside",
    )


def belongs(x: Any) -> bool:
    """Is a callable or a type PyTorch's, so that a program with it is not specialised?"""
    if isinstance(x, type):
        return issubclass(x, (torch.Tensor, torch.nn.Module)) or is_of_torch(x.__module__)
    if isinstance(x, torch.nn.Module):
        return True
    return is_of_torch(getattr(x, "__module__", None)) or (
        type(x) is MethodDescriptorType and x.__objclass__ in OF_TENSORS
    )


non_differentiable(switched, place_of)
