"""Adjoints with fewer operations: sums and products of numbers and arrays, written anew.

The adjoint of a product of products repeats factors, takes out again what it has put in, and multiplies
by one constant after the other. Here what a block of an adjoint computes by + - * / alone is
taken as a graph. Of each sum or product in turn the terms are found: like terms are collected,
factors cancel, common factors are taken out, and what is computed already is used; the graph gets the
new expression where that, and all that is then needed no more, makes it cheaper. The value
of the function is not touched: only adjoints are.

A monomial is a product of powers of variables with whole exponents that are not zero.
Tests: tests/rules/test_algebra.py
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from morula.core.extend import Block, Call, Const, Known, Var, is_written, marks, tidies
from morula.rules.arrays.traits import whole_shape

Monomial = frozenset[tuple[Var, int]]
Product = tuple[float, Monomial]  # with its coefficient
Terms = dict[Monomial, float]

ONE: Monomial = frozenset()
NUMBER, OF_NUMPY, ARRAY = 1, 4, 12  # kinds of values, by what an operation on one costs
SLOWER = {operator.truediv: 1.5, operator.pow: 4.0}
SUMS = {operator.add: 1, operator.sub: -1, operator.iadd: 1, operator.isub: -1}
NOT_IN_PLACE = {operator.iadd: operator.add, operator.isub: operator.sub}
PRODUCTS = (operator.mul, operator.truediv, operator.neg, operator.pow, np.square)
LARGEST = 1e15  # of constants that are calculated with
HIGHEST = 3  # power that is written as a product
MOST_CALLS = 400  # of a block that is looked at
MOST_TERMS = 24  # of a sum that is
MOST_FACTORS = 8  # of a product that is
ROUNDS = 3
SAME = 1e-9  # costs that differ by less are the same


@tidies
def collect_terms(adjoint: Any, blocks: Iterable[Block]) -> bool:
    """Write these blocks of an adjoint anew where that takes less time; was there one?"""
    program = Program(adjoint)
    changed = False
    for block in blocks:
        if 1 < len(block.calls) <= MOST_CALLS:
            changed |= Graph(program, block).improve()
    return changed


class Program:
    """What is known of the program that the blocks are in."""

    def __init__(self, adjoint: Any) -> None:
        ir = adjoint.ir
        self.adjoint = adjoint
        self.uses: Counter[Any] = Counter()
        self.definitions: dict[Any, Call] = {}
        self.loops = len(adjoint.reversal.loop_values()) > 0
        marked = any(marks(c.primitive) for c in ir.calls())
        self.numbers_only = marked or adjoint.arrays_change
        self.kinds: dict[Any, int] = {}
        for block in ir.blocks:
            self.add(block.calls)
            for branch in block.branches:
                self.uses.update([*branch.args, branch.cond])

    def add(self, calls: Iterable[Call]) -> None:
        """Take calls to what is known."""
        for call in calls:
            self.definitions[call.out] = call
            self.uses.update(call.operands())

    def replace(self, block: Block, calls: list[Call]) -> None:
        """Give a block other calls; the blocks after it are to see what is computed there now."""
        for call in block.calls:
            del self.definitions[call.out]
            self.uses.subtract(call.operands())
        self.add(calls)
        block.calls = calls

    def kind(self, x: Any) -> int:
        """What sort of value an operand is; 0: none that is calculated with here."""
        if type(x) is Const:
            return NUMBER if type(x.value) in (int, float) and abs(x.value) < LARGEST else 0
        found = self.kinds.get(x)
        if found is None:
            found = self.kind_of_known(self.adjoint.known_of(x)) or self.kind_of_number(x)
            self.kinds[x] = found
        return found

    def kind_of_number(self, x: Any) -> int:
        """That of a cotangent of a float out of a shadow, and of what is computed from such numbers."""
        k = self.adjoint.primal_of.get(x)
        if k is not None:
            return OF_NUMPY if k.type is float else 0
        call = self.definitions.get(x)
        if call is None or call.keywords or (call.primitive not in (*SUMS, *PRODUCTS)):
            return 0
        self.kinds[x] = 0
        return OF_NUMPY if all([0 < self.kind(a) < ARRAY for a in call.args]) else 0

    def kind_of_known(self, k: Any) -> int:
        """The same, of what is known of it."""
        if k is None:
            return 0
        if k.type is float:
            return NUMBER
        if k.type is np.float64:
            return OF_NUMPY
        if k.type is not np.ndarray or self.numbers_only or k.detail is None:
            return 0
        return ARRAY if k.detail[0] in ("<f8", "<f4") and whole_shape(k.detail) else 0

    def is_of_ring(self, call: Call) -> bool:
        """Is it a sum or a product of what is like its result, and of numbers?"""
        fn, args = call.primitive, call.args
        if (fn not in SUMS and fn not in PRODUCTS) or call.keywords or not self.kind(call.out):
            return False
        if fn is operator.pow:
            n = args[1].value if type(args[1]) is Const else None
            return type(n) is int and 1 < n <= HIGHEST and self.fits(args[0], call.out)
        if fn is not operator.mul and any([type(x) is Const and x.value == 0 for x in args]):
            return False  # x + 0.0 makes 0.0 of -0.0, which has a meaning in buffers
        return all([self.fits(x, call.out) for x in args])

    def fits(self, x: Any, whole: Var) -> bool:
        """Is an operand like the result, or a number?"""
        kind, most = self.kind(x), self.kind(whole)
        if most == ARRAY and kind > NUMBER:
            k = self.adjoint.known_of(whole)
            return bool(self.adjoint.known_of(x) == k or (kind < ARRAY and k.detail[0] == "<f8"))
        return 0 < kind <= most


@dataclass
class Node:
    """A sum or a product: what it is computed by and from, and how often it is used."""

    fn: Any
    args: tuple[Any, ...]
    cost: float
    uses: int = 0


@dataclass
class Tree:
    """An expression that a node may be computed by; a leaf is an operand."""

    kind: int
    cost: float
    leaf: Any = None
    fn: Any = None
    args: tuple[Tree, ...] = ()


class Graph:
    """The sums and products of a block."""

    def __init__(self, program: Program, block: Block) -> None:
        self.program = program
        self.block = block
        ring = [c for c in block.calls if program.is_of_ring(c)]
        self.nodes: dict[Var, Node] = {}
        for c in ring:
            fn = NOT_IN_PLACE.get(c.primitive, c.primitive)
            self.nodes[c.out] = Node(fn, c.args, self.cost(fn, c.out), 0)
        self.users: dict[Any, Node] = {}  # one for each node
        for c in ring:
            for x in c.args:
                if x in self.nodes:
                    self.nodes[x].uses += 1
        self.ends = {v for v, n in self.nodes.items() if program.uses[v] != n.uses}
        for v in self.ends:
            self.nodes[v].uses += 1
        for node in [node for node in self.nodes.values() if not node.uses]:
            self.release(node.args)  # nobody reads it
        self.read = {x for c in block.calls for x in c.operands() if type(x) is Var}
        others = [c for c in block.calls if c.out not in self.nodes]
        self.kept_apart = {c.args[0] for c in others if is_written(c.primitive) and c.args}
        self.made: dict[Any, Var] = {}  # nodes by what computes them
        self.products: dict[Monomial, list[tuple[float, Var]]] = {}  # and by what they are
        self.monomials: dict[Var, Product] = {}
        self.types: dict[Var, Any] = {}  # of new nodes

    def cost(self, fn: Any, out: Var) -> float:
        """What an operation costs, by its result."""
        return SLOWER.get(fn, 1.0) * self.program.kind(out)

    # -- the search

    def improve(self) -> bool:
        """Give nodes cheaper expressions, as long as there are any; were there?"""
        if len(self.nodes) < 2:
            return False
        better = True
        rounds = 0
        while better and rounds < ROUNDS:
            rounds += 1
            self.look_around()
            tops = [v for v in self.nodes if self.is_top(v)]
            better = any([self.rewrite(v) for v in tops])
        if rounds > 1:
            self.schedule()
        return rounds > 1

    def look_around(self) -> None:
        """What there is to be used."""
        self.monomials, self.made, self.products = {}, {}, {}
        for v, node in self.nodes.items():
            if node.uses:
                self.register(v, node)
        for v in self.read:
            if v not in self.nodes and self.product_elsewhere(v) is not None:
                self.offer(v)

    def register(self, v: Var, node: Node) -> None:
        """Let a node be found by others."""
        self.users.update(dict.fromkeys(node.args, node))
        if v in self.kept_apart:
            return
        self.made.setdefault(key_of(node.fn, node.args), v)
        if node.fn in PRODUCTS:
            self.offer(v)

    def offer(self, v: Var) -> None:
        """Let a product be found by what it is the product of."""
        c, m = self.monomial(v, inside=True)
        if is_moderate(c) and sum([abs(k) for _, k in m]) > 1:
            self.products.setdefault(m, []).append((c, v))

    def is_top(self, v: Var) -> bool:
        """Is it no mere term or factor of one other node?"""
        node = self.nodes[v]
        if node.uses != 1 or v in self.ends:
            return node.uses > 0
        return self.users[v].fn in PRODUCTS and node.fn in SUMS

    def rewrite(self, v: Var) -> bool:
        """Compute a node by a cheaper expression, if there is one."""
        node = self.nodes[v]
        if not node.uses:
            return False
        old_fn, old_args, old_cost = node.fn, node.args, node.cost
        self.terms_seen = 0
        terms = self.terms_of(v)
        if terms is None:
            return False
        saved = old_cost + self.release(old_args)
        self.top, self.fresh, self.dependent = v, [], {v: True}
        tree = self.total(terms)
        better = False
        if tree.leaf is not None:
            if self.is_like(v, tree.leaf):
                self.replace(v, tree.leaf)
                return True
        elif tree.kind == self.program.kind(v):
            args = tuple([self.build(a) for a in tree.args])
            node.fn, node.args, node.cost = tree.fn, args, self.cost(tree.fn, v)
            saved -= node.cost + self.take(args)
            merged = self.terms_seen > len(terms)
            better = saved > SAME or (saved > -SAME and merged)
            if not better:
                self.release(args)
        if better:
            self.register(v, node)
            return True
        node.fn, node.args, node.cost = old_fn, old_args, old_cost
        self.take(old_args)
        for u in self.fresh:
            self.forget(u)
        return False

    def is_like(self, v: Var, x: Any) -> bool:
        """May an operand take the place of a node, which is equal to it, wherever that is read?"""
        program = self.program
        if v in self.ends or x in self.kept_apart or not self.is_cheap(x):
            return False
        known_of = program.adjoint.known_of
        return program.kind(x) == program.kind(v) and (
            program.kind(v) < ARRAY or known_of(x) == (self.types.get(v) or known_of(v))
        )

    def replace(self, v: Var, x: Any) -> None:
        """Read x where a node is read; nobody uses the node any more."""
        self.nodes[v].uses = 0
        for node in self.nodes.values():
            if node.uses and v in node.args:
                self.take([x] * node.args.count(v))
                node.args = tuple([x if a is v else a for a in node.args])

    def release(self, args: Iterable[Any]) -> float:
        """Use these no more: what is saved."""
        saved = 0.0
        for x in args:
            node = self.nodes.get(x)
            if node is not None:
                node.uses -= 1
                if not node.uses:
                    saved += node.cost + self.release(node.args)
        return saved

    def take(self, args: Iterable[Any]) -> float:
        """Use these: what it costs."""
        cost = 0.0
        for x in args:
            node = self.nodes.get(x)
            if node is not None:
                node.uses += 1
                if node.uses == 1:
                    cost += node.cost + self.take(node.args)
        return cost

    def build(self, tree: Tree) -> Any:
        """The operand that an expression is, as a node."""
        if tree.leaf is not None:
            return tree.leaf
        args = tuple([self.build(a) for a in tree.args])
        key = key_of(tree.fn, args)
        found = self.made.get(key)
        if found is not None and not self.depends(found):
            return found
        v = self.program.adjoint.ir.var()
        self.types[v] = self.type_of(tree)
        self.program.kinds[v] = tree.kind
        self.nodes[v] = node = Node(tree.fn, args, self.cost(tree.fn, v))
        self.fresh.append(v)
        self.register(v, node)
        return v

    def forget(self, v: Var) -> None:
        """Take back a node that nobody uses."""
        node = self.nodes.pop(v)
        key = key_of(node.fn, node.args)
        if self.made.get(key) is v:
            del self.made[key]
        if v in self.monomials:
            found = self.products.get(self.monomials.pop(v)[1], [])
            found[:] = [item for item in found if item[1] is not v]

    def depends(self, v: Any) -> bool:
        """Is a node computed from the one that is written anew?"""
        found = self.dependent.get(v)
        if found is None:
            node = self.nodes.get(v)
            found = node is not None and any([self.depends(x) for x in node.args])
            self.dependent[v] = found
        return found

    def schedule(self) -> None:
        """The calls of the block: sums and products where they are needed first."""
        calls: list[Call] = []
        place = {c.out: c for c in self.block.calls}
        done: set[Var] = set()

        def need(v: Any) -> None:
            if v not in self.nodes or v in done:
                return
            done.add(v)
            node = self.nodes[v]
            for x in node.args:
                need(x)
            call = Call(v, Const(node.fn), node.args)
            call.removable = call.movable = True
            if (old := place.get(v)) is not None:
                call.position, call.movable = old.position, old.movable
            calls.append(call)

        for call in self.block.calls:
            if call.out not in self.nodes:
                for x in call.operands():
                    need(x)
                calls.append(call)
        for v in self.ends:
            need(v)
        self.program.replace(self.block, calls)
        types = self.program.adjoint.types
        types.update({v: k for v, k in self.types.items() if v in done})

    def type_of(self, tree: Tree) -> Any:
        """What is known of the value of an expression; of other numbers, inference will say it."""
        if tree.kind == NUMBER:
            return Known(float)
        return self.program.adjoint.known_of(self.top) if tree.kind == ARRAY else None

    # -- expansion

    def product_elsewhere(self, v: Var) -> Call | None:
        """The call that has computed a product of what is at hand here, in another block."""
        call = self.program.definitions.get(v)
        if call is None or call.primitive not in PRODUCTS or v in self.nodes:
            return None
        if not self.program.is_of_ring(call):
            return None
        return call if all([type(x) is Const or self.at_hand(x) for x in call.args]) else None

    def at_hand(self, x: Var) -> bool:
        """Does it cost nothing to read a variable here?"""
        return x in self.read or not self.program.loops

    def monomial(self, x: Any, inside: bool = False) -> Product:
        """What an operand is the product of."""
        if type(x) is Const:
            return float(x.value), ONE
        if x in self.kept_apart and not inside:
            return atom(x)
        found = self.monomials.get(x)
        if found is None:
            found = self.monomials[x] = self.product_of(x)
        return found

    def product_of(self, x: Var) -> Product:
        """Products of many factors, and of arrays that would cancel, are looked through no further."""
        if x in self.nodes:
            fn, args = self.nodes[x].fn, self.nodes[x].args
        else:
            call = self.product_elsewhere(x)
            fn, args = (None, ()) if call is None else (call.primitive, call.args)
        if fn not in PRODUCTS:
            return atom(x)
        found = self.combined(fn, [self.monomial(a) for a in args])
        if found is None or len(found[1]) > MOST_FACTORS:
            found = self.combined(
                fn, [self.monomial(a) if type(a) is Const else atom(a) for a in args]
            )
        return atom(x) if found is None else found

    def combined(self, fn: Any, factors: list[Product]) -> Product | None:
        """What an operation makes of the monomials of its operands; None: nothing that is one."""
        c, m = factors[0]
        if fn is operator.neg:
            return -c, m
        if fn is np.square:
            return self.times(c, m, c, m)
        d, n = factors[1]
        if fn is operator.pow:
            return c**d, frozenset([(x, k * int(d)) for x, k in m])
        if fn is operator.mul:
            return self.times(c, m, d, n)
        return None if d == 0.0 else self.times(c, m, 1.0 / d, inverse(n))

    def times(self, c: float, m: Monomial, d: float, n: Monomial) -> Product | None:
        """The product of two monomials. Arrays do not cancel: x / x is not one where x is zero."""
        powers = dict(m)
        for x, k in n:
            before = powers.get(x, 0)
            if before * k < 0 and self.program.kind(x) != NUMBER:
                return None
            powers[x] = before + k
            if abs(powers[x]) > 1 and (y := self.square_of(x)) is not None:
                half = int(powers[x] / 2)
                powers[x] -= 2 * half
                powers[y] = powers.get(y, 0) + half
        return c * d, frozenset([(x, k) for x, k in powers.items() if k])

    def square_of(self, x: Var) -> Var | None:
        """What the number x is the square root of, if that is at hand."""
        call = self.program.definitions.get(x)
        if call is None or call.primitive is not math.sqrt or type(call.args[0]) is not Var:
            return None
        y = call.args[0]
        return y if self.program.kind(y) == NUMBER and self.at_hand(y) else None

    def terms_of(self, v: Var) -> Terms | None:
        """The terms of a sum or of a product; None: there are too many, or none."""
        found: Terms = {}
        node = self.nodes[v]
        if node.fn in SUMS:
            self.add_terms(node.args[0], 1.0, found)
            self.add_terms(node.args[1], SUMS[node.fn], found)
        elif node.fn is operator.neg:
            self.add_terms(node.args[0], -1.0, found)
        else:
            c, m = self.monomial(v, inside=True)
            found[m], self.terms_seen = c, 1
        found = {m: c for m, c in found.items() if c}
        fine = 0 < len(found) <= MOST_TERMS and all(map(is_moderate, found.values()))
        return found if fine else None

    def add_terms(self, x: Any, sign: float, found: Terms) -> None:
        """Add the terms of a part of a sum."""
        node = self.nodes.get(x)
        if (
            node is not None
            and node.uses == 1
            and x not in self.ends
            and self.terms_seen < MOST_TERMS
        ):
            if node.fn in SUMS:
                self.add_terms(node.args[0], sign, found)
                self.add_terms(node.args[1], sign * SUMS[node.fn], found)
                return
            if node.fn is operator.neg:
                self.add_terms(node.args[0], -sign, found)
                return
        c, m = self.monomial(x)
        found[m] = found.get(m, 0.0) + sign * c
        self.terms_seen += 1

    # -- expressions

    def leaf(self, x: Any) -> Tree:
        """An operand; one that nobody else needs any more is computed for this."""
        node = self.nodes.get(x)
        return Tree(self.program.kind(x), 0.0 if node is None or node.uses else node.cost, x)

    def number(self, c: float) -> Tree:
        """A constant."""
        return Tree(NUMBER, 0.0, Const(c))

    def operation(self, fn: Any, *args: Tree) -> Tree:
        """An operation on expressions."""
        kind = max([a.kind for a in args])
        cost = SLOWER.get(fn, 1.0) * kind + sum([a.cost for a in args])
        return Tree(kind, cost, None, fn, args)

    def total(self, terms: Terms) -> Tree:
        """The best expression for a sum of terms."""
        if len(terms) == 1:
            ((m, c),) = terms.items()
            return self.product(c, m)
        if all([c < 0 for c in terms.values()]):
            positive = self.total({m: -c for m, c in terms.items()})
            return self.operation(operator.neg, positive)
        found = [self.plain_sum(terms), *self.factored(terms)]
        return min(found, key=lambda tree: tree.cost)

    def plain_sum(self, terms: Terms) -> Tree:
        """Term by term, beginning with one that is added."""
        ordered = sorted(terms.items(), key=lambda item: item[1] < 0)
        (m, c), *rest = ordered
        result = self.product(c, m)
        for m, c in rest:
            fn = operator.add if c > 0 else operator.sub
            result = self.operation(fn, result, self.product(abs(c), m))
        return result

    def factored(self, terms: Terms) -> Iterator[Tree]:
        """With the coefficient taken out that all have, or the factor that most have."""
        sizes = {abs(c) for c in terms.values()}
        if len(sizes) == 1 and sizes != {1.0}:
            inner = self.total({m: math.copysign(1.0, c) for m, c in terms.items()})
            yield self.operation(operator.mul, self.number(*sizes), inner)
        counts = Counter([(x, k > 0) for m in terms for x, k in m])
        (x, above), n = max(
            counts.items(),
            key=lambda item: (item[1] * self.program.kind(item[0][0]), item[0][0].id),
            default=((None, True), 0),
        )
        if n < 2 or x is None:
            return
        inside, outside = Terms(), Terms()
        for m, c in terms.items():
            if (x, above) in [(y, k > 0) for y, k in m]:
                inside[less(m, x, 1 if above else -1)] = c
            else:
                outside[m] = c
        subtracted = bool(outside) and all([c < 0 for c in inside.values()])
        whole = self.total({m: -c for m, c in inside.items()} if subtracted else inside)
        group = self.operation(operator.mul if above else operator.truediv, whole, self.leaf(x))
        if not outside:
            yield group
        elif subtracted:
            yield self.operation(operator.sub, self.total(outside), group)
        elif all([c < 0 for c in outside.values()]):
            rest = self.total({m: -c for m, c in outside.items()})
            yield self.operation(operator.sub, group, rest)
        else:
            yield self.operation(operator.add, self.total(outside), group)

    def product(self, c: float, m: Monomial) -> Tree:
        """The expression of a monomial, with what is computed already."""
        above, below = [], []
        for d, u in self.parts(c, dict(m), m):
            c /= d
            above.append(self.leaf(u))
        for x, k in sorted(self.rest, key=lambda item: (item[0] not in self.nodes, -item[0].id)):
            (above if k > 0 else below).extend([self.leaf(x)] * abs(k))
        # Numbers of NumPy's and arrays are divided by numbers, not numbers: those raise errors at zero.
        above.sort(key=lambda tree: tree.kind == ARRAY)
        below.sort(key=lambda tree: -tree.kind)
        if abs(abs(c) - 1.0) < 1e-15 and above:
            result = above.pop(0)
        else:
            result, c = self.number(c), 1.0
        for tree in above:
            result = self.operation(operator.mul, result, tree)
        for tree in below:
            result = self.operation(operator.truediv, result, tree)
        return self.operation(operator.neg, result) if c < 0 else result

    def parts(self, c: float, powers: dict[Var, int], m: Monomial) -> list[tuple[float, Var]]:
        """Nodes that are parts of a monomial, the largest first, and what is left of it, `rest`."""
        found: list[tuple[float, Var]] = []
        while sum([abs(k) for k in powers.values()]) > 1:
            part = self.largest_part(c, powers)
            if part is None:
                break
            n, (d, u) = part
            c /= d
            found.append((d, u))
            for x, k in n:
                powers[x] -= k
                if not powers[x]:
                    del powers[x]
        self.rest = list(powers.items())
        return found

    def largest_part(
        self, c: float, powers: dict[Var, int]
    ) -> tuple[Monomial, tuple[float, Var]] | None:
        """The node that is the product of most of these factors."""
        names = sorted(powers, key=lambda x: x.id)
        choices = [[(x, k) for k in between(powers[x])] for x in names]
        most = math.prod([len(ways) for ways in choices])
        if most > 4**4:
            return None
        sizes = {}
        for way in itertools.product(*choices):
            size = sum([abs(k) for _, k in way])
            if size > 1:
                sizes[frozenset([(x, k) for x, k in way if k])] = size
        for n in sorted(sizes, key=lambda n: -sizes[n]):
            there = [
                (d, u)
                for d, u in self.products.get(n, ())
                if u is not self.top and self.is_cheap(u)
            ]
            if there:
                return n, min(there, key=lambda item: abs(abs(c / item[0]) - 1.0))
        return None

    def is_cheap(self, u: Var) -> bool:
        """Is a node there anyway, and not computed from what is written anew?"""
        node = self.nodes.get(u)
        return node is None or (node.uses > 0 and not self.depends(u))


def is_moderate(c: float) -> bool:
    """May a coefficient be multiplied and divided by another one?"""
    return 1.0 / LARGEST < abs(c) < LARGEST


def key_of(fn: Any, args: Iterable[Any]) -> Any:
    """What two nodes that compute the same have in common."""
    return fn, *[x if type(x) is Var else repr(x.value) for x in args]


def between(k: int) -> range:
    """The exponents from 0 to k."""
    return range(k + 1) if k > 0 else range(0, k - 1, -1)


def atom(x: Var) -> Product:
    """The variable itself as a monomial."""
    return 1.0, frozenset([(x, 1)])


def inverse(m: Monomial) -> Monomial:
    return frozenset([(x, -k) for x, k in m])


def less(m: Monomial, x: Var, sign: int) -> Monomial:
    """The monomial without one factor x, or 1 / x."""
    return frozenset([(y, k - sign if y is x else k) for y, k in m if y is not x or k != sign])
