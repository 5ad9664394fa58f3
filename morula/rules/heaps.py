"""Rules of `heapq` where its result may be what it was given, and the heap as it was.

What else it does moves the items of a list, which is followed by their identity (calls.py).
Tests: tests/rules/test_containers.py
"""

import heapq

from morula.rules.arrays.bodies import instead_of


@instead_of(heapq.heappushpop)
def heappushpop(heap, item, /):
    """The least of the items of a heap and one more, which takes its place."""
    return heapq.heapreplace(heap, item) if heap and heap[0] < item else item


if hasattr(heapq, "heappushpop_max"):  # Python 3.14

    @instead_of(heapq.heappushpop_max)
    def heappushpop_max(heap, item, /):
        """The same for the greatest."""
        return heapq.heapreplace_max(heap, item) if heap and item < heap[0] else item
