"""What other tools have, by name: `python -m tests.coverage.peers` writes peers.json.

Autograd: functions with a vector-Jacobian product; JAX and PyTorch: functions of that name.
"""

import importlib
import json
import warnings

from tests import coverage
from tests.coverage import page

TORCH = {"numpy": ("torch",), "numpy.ndarray": ("torch.Tensor",), "numpy.linalg": ("torch.linalg",),
         "numpy.fft": ("torch.fft",), "scipy.special": ("torch.special", "torch"),
         "scipy.linalg": ("torch.linalg", "torch"), "scipy.fft": ("torch.fft",)}  # fmt: skip


def module(name):
    """A module, or a class in one."""
    try:
        return importlib.import_module(name)
    except ImportError:
        outer, _, inner = name.rpartition(".")
        return getattr(module(outer), inner, None) if outer else None


def of_autograd(section, name):
    from autograd.core import primitive_vjps

    if section == "numpy.ndarray":
        from autograd.numpy.numpy_boxes import ArrayBox

        return hasattr(ArrayBox, name)
    if not section.startswith(("numpy", "scipy")):
        return False
    there = getattr(module("autograd." + section), name, None)
    return there is not None and there in primitive_vjps


def of_jax(section, name):
    if section == "numpy.ndarray":
        import jax.numpy

        return hasattr(type(jax.numpy.zeros(1)), name)
    return callable(getattr(module("jax." + section), name, None))


def of_torch(section, name):
    if section == "math":
        return False
    return any(callable(getattr(module(m), name, None)) for m in TORCH.get(section, ()))


def sections():
    """Section and name of all that is listed."""
    for path in sorted(coverage.HERE.glob("*.txt")):
        if path.name != "constant.txt":
            yield from [(section, name) for section, name, _ in coverage.read(path.name)]
    yield from [(section, name) for section, name, _ in page.of_scipy()]


def main():
    """Ask the tools that are installed here."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for section, name in sections():
            has = [of_autograd(section, name), of_jax(section, name), of_torch(section, name)]
            found.setdefault(section, {})[name] = "".join(
                letter for letter, there in zip("ajt", has, strict=True) if there
            )
    (coverage.HERE / "peers.json").write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
