"""Colours of columns: those of one colour are computed together, and their entries told apart.

Reference: Gebremedhin, Manne, Pothen, What color is your Jacobian?, SIAM Review 47(4), 2005.
Tests: tests/mixed_mode/test_sparsity.py
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from morula.core.registry import non_differentiable


def colours_of(pattern: Any) -> Any:
    """A colour for each column, such that no two of one colour share a row; the first that is free."""
    columns = pattern.tocsc()
    taken: list[set[int]] = [set() for _ in range(pattern.shape[0])]
    colours = np.zeros(pattern.shape[1], int)
    for j in range(pattern.shape[1]):
        rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
        used = set().union(*[taken[i] for i in rows])
        colours[j] = first_free(used)
        for i in rows:
            taken[i].add(int(colours[j]))
    return colours


def first_free(used: set[int]) -> int:
    """The least colour that is not used."""
    return next(c for c in range(len(used) + 1) if c not in used)


class Star:
    """Colours for the columns of a symmetric pattern, each entry of which is in some column alone.

    Two neighbours differ; and of the two ends of each edge, one has no other neighbour of the colour
    of the other end: there the entry is read. Then no path of four vertices has two colours, which
    is what a star colouring is. An arrow needs two, however long it is.
    """

    def __init__(self, pattern: Any) -> None:
        pattern = pattern.tocsr()
        ends = pattern.indptr
        self.neighbours = [
            [j for j in pattern.indices[ends[i] : ends[i + 1]].tolist() if j != i]
            for i in range(pattern.shape[0])
        ]
        n = len(self.neighbours)
        self.colours = np.full(n, -1)
        # of each vertex: its coloured neighbours by their colours
        self.around: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(n)]
        # of each vertex: the colours of neighbours where its entry is not alone
        self.crowded: list[set[int]] = [set() for _ in range(n)]
        for v in sorted(range(n), key=lambda v: -len(self.neighbours[v])):
            self.give(v, first_free(self.forbidden(v)))

    def forbidden(self, v: int) -> set[int]:
        """The colours that a vertex cannot have."""
        found = set(self.around[v])
        for same in self.around[v].values():
            for w in same:
                found |= self.crowded[w]
                if len(same) > 1:
                    found |= self.around[w].keys()
        return found

    def give(self, v: int, colour: int) -> None:
        """Let a vertex have a colour."""
        self.colours[v] = colour
        for same in self.around[v].values():
            if len(same) > 1:
                for w in same:
                    self.crowded[w].add(colour)
        for w in self.neighbours[v]:
            same = self.around[w][colour]
            same.append(v)
            if len(same) > 1 and self.colours[w] >= 0:
                for u in same if len(same) == 2 else (v,):
                    self.crowded[u].add(int(self.colours[w]))

    def place(self, i: int, j: int) -> tuple[int, int]:
        """The colour and the row where the entry of row i and column j is alone."""
        if i == j or len(self.around[i][int(self.colours[j])]) == 1:
            return int(self.colours[j]), i
        return int(self.colours[i]), j


non_differentiable(colours_of, Star)
