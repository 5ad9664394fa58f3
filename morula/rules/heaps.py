"""Rules of `heapq` where its result may be what it was given, and the heap as it was; `bisect.insort`.

What else they do moves the items of a list, which is followed by their identity (calls.py).
Tests: tests/rules/test_containers.py
"""

import bisect
import heapq

from morula.rules.arrays.bodies import instead_of


@instead_of(bisect.insort_right)
def insort_right(a, x, lo=0, hi=None, *, key=None):
    """An item is put behind those that are not greater."""
    of_x = x if key is None else key(x)
    a.insert(bisect.bisect_right(a, of_x, lo, hi, key=key), x)


@instead_of(bisect.insort_left)
def insort_left(a, x, lo=0, hi=None, *, key=None):
    """An item is put before those that are not less."""
    of_x = x if key is None else key(x)
    a.insert(bisect.bisect_left(a, of_x, lo, hi, key=key), x)


@instead_of(heapq.heappushpop)
def heappushpop(heap, item, /):
    """The least of the items of a heap and one more, which takes its place."""
    return heapq.heapreplace(heap, item) if heap and heap[0] < item else item


if hasattr(heapq, "heappushpop_max"):  # Python 3.14

    @instead_of(heapq.heappushpop_max)
    def heappushpop_max(heap, item, /):
        """The same for the greatest."""
        return heapq.heapreplace_max(heap, item) if heap and item < heap[0] else item
