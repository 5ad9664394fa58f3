"""What PyTorch differentiates: results with the graph that it has recorded for them.

A `Graph` has tensors as inputs and as values. Its pullback at given cotangents, and its pushforward
along given tangents, are graphs in their turn, on the same record: nothing is run again, so
what was drawn at random stays drawn, and derivatives go to the order that PyTorch knows.
Tests: tests/interop/test_torch.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

import torch


class Graph:
    """Inputs, values, and the record that leads from the ones to the others.

    `with_real` gives, for each integer that the call has as an argument, its record by that as well.
    """

    with_real: Sequence[Callable[[], Graph | None]] = ()

    def __init__(self, inputs: list[Any], outs: list[Any]) -> None:
        self.inputs = inputs
        self.outs = outs

    def connected(self) -> list[Any]:
        """The values, as the record has them."""
        return self.outs

    def values(self) -> list[Any]:
        """The values alone; None where one is structurally zero."""
        return [y.detach() for y in self.outs]

    def dependent(self) -> list[int]:
        """Which values depend on inputs."""
        return [i for i, y in enumerate(self.connected()) if y is not None and y.requires_grad]


class Derived(Graph):
    """Derivatives of another graph; recorded themselves only when they are differentiated again."""

    def __init__(self, graph: Graph, given: list[Any]) -> None:
        self.graph = graph
        self.given = [torch.as_tensor(x).detach().requires_grad_() for x in given]
        self.inputs = [*graph.inputs, *self.given]
        self.n = len(graph.inputs)
        self.outs: Any = None
        self.with_real = [partial(self.by_real, i) for i in range(len(graph.with_real))]

    def by_real(self, i: int) -> Derived | None:
        """The same derivatives, by an integer of the call as well."""
        again = self.graph.with_real[i]()
        if again is None:
            return None
        new = copy(self)
        new.graph, new.outs = again, None
        new.inputs = [*self.inputs, again.inputs[-1]]
        new.with_real = [partial(new.by_real, k) for k in range(len(again.with_real))]
        return new

    def connected(self) -> list[Any]:
        """The derivatives, recorded."""
        if self.outs is None:
            with torch.enable_grad():
                self.outs = self.compute(True)
        return self.outs

    def values(self) -> list[Any]:
        """The derivatives alone."""
        found = self.compute(False) if self.outs is None else self.outs
        return [None if x is None else x.detach() for x in found]

    def compute(self, record: bool) -> list[Any]:
        """The derivatives."""
        raise NotImplementedError


class Transposed(Derived):
    """The cotangents of the inputs, for cotangents of those values that are `present`."""

    def __init__(self, graph: Graph, present: list[int], bars: list[Any]) -> None:
        super().__init__(graph, bars)
        self.present = present

    def compute(self, record: bool) -> list[Any]:
        """By PyTorch's reverse mode."""
        of = set(self.graph.dependent())
        pairs = [(i, ȳ) for i, ȳ in zip(self.present, self.given, strict=True) if i in of]
        if not pairs:
            return [None] * self.n
        outs = self.graph.connected()
        return differentiated(
            [outs[i] for i, _ in pairs], self.graph.inputs[: self.n], [ȳ for _, ȳ in pairs], record
        )


class Pushed(Derived):
    """The tangents of the values, for tangents of those inputs that are `active`."""

    def __init__(self, graph: Graph, active: list[int], dots: list[Any]) -> None:
        super().__init__(graph, dots)
        self.active = active

    def compute(self, record: bool) -> list[Any]:
        """The derivative of the pullback, which is linear, by its argument."""
        outs, of = self.graph.connected(), self.graph.dependent()
        found: list[Any] = [None] * len(outs)
        if not of:
            return found
        with torch.enable_grad():
            seeds = [torch.zeros_like(outs[i]).requires_grad_() for i in of]
            inputs = [self.graph.inputs[i] for i in self.active]
            bars = differentiated([outs[i] for i in of], inputs, seeds, True)
            pairs = [(b, ẋ) for b, ẋ in zip(bars, self.given, strict=True) if b is not None]
            pairs = [(b, ẋ) for b, ẋ in pairs if b.requires_grad]
            if not pairs:
                return found
            dots = differentiated([b for b, _ in pairs], seeds, [ẋ for _, ẋ in pairs], record)
        for i, ẏ in zip(of, dots, strict=True):
            found[i] = ẏ
        return found


def differentiated(outs: list[Any], inputs: list[Any], bars: list[Any], record: bool) -> list[Any]:
    """PyTorch's gradients; the record is kept for other passes."""
    return list(
        torch.autograd.grad(
            outs, inputs, bars, retain_graph=True, create_graph=record, allow_unused=True
        )
    )
