"""PyTorch's random numbers, which come again where a function is run again.

Tests: tests/interop/test_torch.py
"""

from __future__ import annotations

from typing import Any

import torch

from morula.rules.checkpoints import Source, sources


def shared() -> list[Any]:
    """The generators of the processor and of the devices that are in use."""
    devices = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
    return [torch.default_generator, *devices]


def state(generator: Any) -> Any:
    """The state of a generator, as an array of NumPy's."""
    return generator.get_state().numpy()


def set_state(generator: Any, bits: Any) -> None:
    """Bring a generator back to a state."""
    generator.set_state(torch.from_numpy(bits))


sources.append(Source(torch.Generator, state, set_state, shared))
