"""The gradient of a function as one function, for arguments of known types.

The primal and its adjoint are emitted as one function, with guards at its entry.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from morula.core import errors
from morula.core.adjoint import Adjoint, flat
from morula.core.callees import Callees
from morula.core.context import adjoint_if_any, enter, leave
from morula.core.cotangents import ZERO, project_to, unthunk
from morula.core.emit import emit, merge_blocks
from morula.core.infer import is_function_of_class
from morula.core.instances import Escapes
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, count_uses, substitute
from morula.core.primitives import (
    alias,
    build_list,
    build_map,
    build_set,
    build_tuple,
    get_cell,
    load_global,
)
from morula.core.registry import is_own, sizes_of
from morula.core.reuse import reuse_memory
from morula.core.reverse import reachable_from
from morula.core.sharing import ask_whether_shared
from morula.core.simplify import remove_unused
from morula.core.specialise import (
    WAYS_OUT,
    AssumptionsUnsafe,
    ExceptionsMatter,
    NotAsExpected,
    NotSpecialised,
    Specialiser,
    TooMuchEffort,
    assume_less,
    check_type,
    go_general,
)
from morula.core.ssa import prune_params
from morula.core.traits import (
    Known,
    brought_by,
    gradient_for,
    has_tangent,
    is_compiled,
    marks,
    sample,
    test_of_one,
    typed_zero,
    unit,
    without_marks,
)
from morula.core.values import NEVER, Value, is_zero_value, known, possibilities

if TYPE_CHECKING:
    from morula.core.orders import Source


def has_as_many_names(cls: type, sizes: tuple[int, ...]) -> bool:
    """Has a class got no method, property or operator since?"""
    return sizes_of((cls,)) == sizes


@dataclass(frozen=True)
class Tried:
    """What is still to be tried of what may turn out to be impossible when all else is done."""

    bodies: bool = True  # functions in the place of others, to be compiled as well
    keeping: bool = True  # objects that are put into others, with shadows


ALL = Tried()


class Gradient(Adjoint):
    """The gradient of `fn` by some of its parameters, for arguments of known types."""

    by_forward_rules = False  # is a forward rule what a function means that has no other?
    may_keep_objects = True  # has it shadows for objects that the program puts into others?

    def __init__(
        self,
        fn: FunctionType,
        knowns: list[Known],
        wanted: Sequence[int],
        with_value: bool,
        single: bool,
        has_aux: bool = False,
        keywords: tuple[str, ...] = (),
        examples: Sequence[Any] = (),
        optimistic: bool = False,
        assuming: bool = False,
        source: Source | None = None,
        no_exceptions: bool = False,
        tried: Tried = ALL,
    ) -> None:
        self.no_exceptions = no_exceptions
        self.tried = tried
        self.has_bodies = self.has_kept = False
        self.effort = 0  # of all attempts
        self.fn = fn
        self.source = source
        self.knowns = knowns
        self.wanted = wanted
        self.single = single
        self.gives_value = with_value
        self.has_aux = has_aux
        self.keywords = keywords
        self.signature = with_keywords(fn.__code__, keywords)
        self.examples = examples
        super().__init__(with_value or has_aux, optimistic)
        self.assumptions.allowed = assuming

    def compile(
        self,
        otherwise: Callable[..., Any],
        this: Any,
        generally: Callable[..., Any],
        protect: Callable[..., Any],
    ) -> CodeType:
        """The code, which closes over one more variable than `fn`: the function that runs it.

        Where its guards do not hold, it calls `otherwise(function, this, *arguments)`; where only
        the general path will do, `generally(function, *arguments)`. Where an exception would be
        handled, it is run by `protect(function, code, *arguments)`.
        """
        self.build()
        if self.specialiser.protected:
            otherwise, generally = leaving_by(otherwise), leaving_by(generally)
        self.ir.kept = []
        doubtful = self.calls_of_adjoint()
        merge_blocks(self.ir)
        reuse_memory(self.ir, self.known_of, self.is_in_memory)
        retry = self.add_guards(otherwise, this, generally)
        like, namespace = with_own_cell(self.signature), self.fn.__globals__
        code = emit(self.ir, like, namespace, self.holds_memory, None, True, doubtful, retry)
        if self.specialiser.protected:
            return stub(self.signature, self.fn.__globals__, protect, code)
        return code

    def specialised(self) -> Specialiser:
        """The primal for these types; with what is assumed from the examples, if that is safe."""
        examples, own_objects, no_exceptions = self.examples, True, self.no_exceptions
        may_expect, keeps_objects = True, False
        may_keep = self.may_keep_objects and self.tried.keeping
        while True:
            try:
                s = self.specialised_by(
                    examples, own_objects, no_exceptions, may_expect, keeps_objects
                )
            except AssumptionsUnsafe:
                examples = ()
            except ExceptionsMatter:
                no_exceptions = False
            except Escapes:
                own_objects &= keeps_objects or may_keep
                keeps_objects, may_keep = may_keep, False
            except NotAsExpected:
                may_expect = False
            else:
                if not (s.leaves_objects and may_keep):
                    s.callees.add_guards(s.guards)
                    return s
                keeps_objects, may_keep = True, False

    def specialised_by(
        self,
        examples: Sequence[Any],
        own_objects: bool,
        no_exceptions: bool,
        may_expect: bool,
        keeps_objects: bool,
    ) -> Specialiser:
        """The same, with what these examples show and with what is taken for granted."""
        ir = guards = None
        if self.source is not None:
            ir, guards = self.source.function(self.fn, self.knowns, examples, self.keywords)
        s = Specialiser(
            self.fn,
            self.knowns,
            Callees(),
            examples,
            self.keywords,
            own_objects,
            no_exceptions,
            ir,
        )
        s.keeps_objects = self.has_kept = keeps_objects
        if guards is not None:
            s.guards.take_over(guards)
        s.by_bodies, s.effort, s.may_expect = self.tried.bodies, self.effort, may_expect
        s.by_forward_rules = self.by_forward_rules
        try:
            s.run()
        finally:
            self.has_bodies, self.effort = s.has_bodies, s.effort
        return s

    def with_less(self, reason: Exception) -> Tried | None:
        """What is tried next where this was not possible, if there is anything."""
        if type(reason) is TooMuchEffort:
            return None
        if self.has_kept and self.tried.keeping:
            return replace(self.tried, keeping=False)
        return replace(self.tried, bodies=False) if self.has_bodies and self.tried.bodies else None

    def build(self) -> IR:
        """The primal and its adjoint in one, with the gradients as the result."""
        self.specialiser = s = self.specialised()
        returned = s.returned()
        self.returned = None if returned is NEVER else returned
        if self.has_aux:
            self.leave_out_aux()
        leaves = [leaf for i in self.wanted for leaf in flat(self.leaves_of(i))]
        ask_whether_shared(s, leaves)
        self.differentiate(leaves, leaves)
        self.set_seed()
        self.inline_rules()
        self.clean_adjoint()
        self.return_gradients()
        if self.needs_context and s.protected:
            raise NotSpecialised("it handles exceptions, and works on mutable values")
        if self.needs_context:
            self.keep_context()
        self.resolve()
        remove_unused(self.ir)
        prune_params(self.ir)
        return self.ir

    def resolve(self) -> None:
        """Let the residuals reach the adjoint."""
        self.reversal.resolve(self.is_cheap)

    def leaves_of(self, i: int) -> Any:
        """The variables of an argument; behind the parameters for one each it is an item of `*args`."""
        n, leaves = self.fn.__code__.co_argcount, self.specialiser.leaves
        if i < n:
            return leaves[i]
        if type(leaves[-1]) is Var:
            raise NotSpecialised("there are too many arguments")
        return leaves[-1][i - n]

    def leave_out_aux(self) -> None:
        """Containers that are made for the auxiliary output and nothing else carry no cotangents."""
        ir = self.specialiser.ir
        made = {c.out: c for c in ir.calls()}
        uses = count_uses(ir)
        for block in ir.blocks:
            for branch in block.branches:
                pair = made.get(branch.args[0]) if branch.block is None else None  # type: ignore[arg-type]
                if pair is not None and pair.primitive is build_tuple and uses[pair.out] == 1:
                    self.specialiser.counted |= only_inside(pair.args[1], made, uses)

    # -- the adjoint

    def set_seed(self) -> None:
        """The cotangent that the reverse pass begins with."""
        exit = self.reversal.exit
        (branch,) = exit.branches
        y = out = branch.args[0]
        built = self.result_tuple()
        # Their gradients are made with a look at them, or found in their shadows.
        looked_at = [self.shadows[x].value if x in self.shadows else x for x in self.leaves]
        built.args = (*built.args, *looked_at)
        value = self.returned
        if self.has_aux:
            out = self.append(exit, operator.getitem, y, Const(0))
            value = self.output_of(value)
        # The result may be a variable of a loop: this is the instance at the exit.
        if self.gives_value:
            built.args = (*built.args, self.append(exit, alias, y))
        elif self.has_aux:
            built.args = (*built.args, self.append(exit, operator.getitem, y, Const(1)))
        seed: Operand | None = self.unit_of(value)
        if seed is None and self.again:
            raise NotSpecialised("it is not known what one of its output is")
        if seed is None:
            seed = self.append(exit, one_of, out, Const(errors.qualified_name(self.fn)))
        branch.args[0] = self.append(exit, build_tuple, seed, Const(ZERO)) if self.has_aux else seed
        ir = self.ir
        (seed_param,) = self.reversal.start.params
        substitute(ir, {seed_param: branch.args[0]})
        self.reversal.start.params, branch.args = [], []

    def output_of(self, pair: Value) -> Value:
        """What is known of the output, from what is known of the pair with the auxiliary one."""
        k = known(pair)
        if k is None or k.type is not tuple or k.detail is None or len(k.detail) != 2:
            raise NotSpecialised("the result is not known to be a pair")
        output: Value = k.detail[0]
        return output

    def unit_of(self, y: Value) -> Const | None:
        """The cotangent "one" of the output, if its type decides it."""
        if y is None:
            return None
        units = []
        for k in possibilities(y):
            try:
                one = unit(sample(k))
            except KeyError:
                return None
            if one is None:
                raise NotSpecialised("the output is not one real number")
            if getattr(one, "shape", ()) != ():
                return None
            units.append(one)
        alike = self.again and all(one == units[0] for one in units)  # it is brought to its space
        if not alike and any(type(one) is not type(units[0]) for one in units):
            return None
        return Const(units[0])

    # -- the result

    def return_gradients(self) -> None:
        built = self.result_tuple()
        bars = list(built.args)
        kept = bars.pop() if self.gives_value or self.has_aux else None
        leaves = bars[len(self.leaves) :]
        del bars[len(self.leaves) :]
        block = self.reversal.end
        block.calls.remove(built)
        found: dict[Var, Operand] = {}
        definite = self.definite_cotangents()
        for leaf, x, x̄ in zip(self.leaves, leaves, bars, strict=True):
            if leaf in self.shadows:
                found[leaf] = self.append(block, self.shadows[leaf].finish, leaf, x)
                continue
            found[leaf] = self.final(block, x, x̄, bars, definite)
        results = []
        for i in self.wanted:
            results.append(self.assemble(block, self.leaves_of(i), found))
        out: Operand
        out = results[0] if self.single else self.append(block, build_tuple, *results)
        if kept is not None:
            both = (kept, out) if self.gives_value else (out, kept)
            out = self.append(block, build_tuple, *both)
        block.branches[0].args = [out]
        self.test_results([x for x in found.values() if type(x) is Var])

    def test_results(self, gradients: list[Operand]) -> None:
        """Begin anew where the gradients show that too much was assumed of them."""
        tests = self.specialiser.guards.results
        tests.update(self.assumptions.tests)
        if not tests or self.again:
            return
        if not self.assumptions.allowed:
            raise NotSpecialised("what a derivative inside of it assumes may not be so")
        block = self.reversal.end
        for test in tests:
            one_by_one = {x: of_one for x in gradients if (of_one := self.test_of(test, x))}
            rest = [x for x in gradients if x not in one_by_one]
            for x, of_one in one_by_one.items():
                block = self.assume_less_if(block, of_one, x, x)
            if rest:
                block = self.assume_less_if(block, test, *rest)

    def test_of(self, test: Callable[..., bool], x: Operand) -> Callable[[Any, Any], bool] | None:
        """What may be asked of x and x in the place of this test of the gradient x."""
        types = self.types_of(x)
        return test_of_one(test, types[0]) if len(types) == 1 else None

    def assume_less_if(self, block: Block, test: Callable[..., bool], *args: Operand) -> Block:
        """Begin anew at the end of a block if the test says so; returns where control goes on."""
        anew, onward = self.ir.block(), self.ir.block()
        anew.calls = [Call(self.ir.var(), Const(assume_less), ())]
        onward.branches = block.branches
        block.branches = [Branch(anew, (), self.append(block, test, *args)), Branch(onward)]
        return onward

    def keep_context(self) -> None:
        """Adjoint objects live from the beginning of the reverse pass to its end."""
        outer = self.append(self.reversal.exit, enter)
        result = self.append(self.reversal.end, leave, outer)
        assert result is not None

    def final(
        self,
        block: Block,
        x: Operand,
        x̄: Operand,
        all_bars: list[Operand],
        definite: set[Operand],
    ) -> Operand:
        """The gradient that the user gets for the argument x."""
        k = known(self.specialiser.value(x))
        if k is not None and not has_tangent(k.type):
            return Const(None)
        if k is not None and is_zero_value(x̄) and typed_zero(k.type) is not None:
            return Const(typed_zero(k.type))
        x̄_known = known(self.types.get(x̄) if type(x̄) is Var else x̄)  # type: ignore[arg-type]
        if k is not None and x̄_known is not None and (x̄ in definite or type(x̄) is Const):
            zero = typed_zero(k.type)
            if zero is not None and x̄_known.type is type(zero):
                return x̄
            in_aux = self.has_aux and x̄ in count_uses(self.ir)  # it may be
            brought = brought_by.get((x̄_known.type, k.type))
            if brought is not None and not self.again:
                return self.append(block, brought, x̄)
            alike = k == x̄_known and not any(marks(c.primitive) for c in self.ir.calls())
            if alike and self.is_new(x̄) and all_bars.count(x̄) == 1 and not in_aux:
                return x̄
            if alike and self.again:
                return x̄
        if self.again and (k is None or (x̄ not in definite and type(x̄) is not Const)):
            raise NotSpecialised("a gradient that may be structurally zero")
        if self.again:
            return self.append(block, in_space_of, x, x̄)
        return self.append(block, gradient_for, x, x̄, Const(adjoint_if_any))

    # -- guards

    def calls_of_adjoint(self) -> set[Var]:
        """What the reverse pass computes: if too much was assumed of it, it may raise exceptions."""
        return {c.out for block in reachable_from(self.reversal.start) for c in block.calls}

    def add_guards(
        self, otherwise: Callable[..., Any], this: Any, generally: Callable[..., Any]
    ) -> Var | None:
        """At the entry: are the world and the arguments as they were when this was compiled?

        If something is assumed of the adjoint, returns what the block begins with that goes another
        way.
        """
        less: Var | None = None
        ir, guards = self.ir, self.specialiser.guards
        own = ir.var(OWN)
        ir.free.append(own)
        slow = self.way_out(own, otherwise, Const(this))
        body = ir.block()
        entry = ir.entry
        body.calls, body.branches = entry.calls, entry.branches
        entry.calls, entry.branches = [], []
        captured = set(self.specialiser.captured)
        reads = [c for c in body.calls if c.out in captured]
        body.calls = [c for c in body.calls if c.out not in captured]
        entry.calls += reads
        block = entry

        def check(test: Var) -> None:
            nonlocal block
            after = ir.block()
            block.branches = [Branch(after, (), test), Branch(slow)]
            block = after

        for namespace, name, value in guards.globals.values():
            found = ir.var(name)
            is_other = namespace is not self.fn.__globals__ and name in namespace
            read = dict.get if is_other else load_global
            block.calls.append(Call(found, Const(read), (Const(namespace), Const(name))))
            check(self.append(block, operator.is_, found, Const(value)))
        for owner, name, value in guards.attributes.values():
            found = ir.var(name)
            block.calls.append(Call(found, Const(getattr), (Const(owner), Const(name))))
            check(self.append(block, operator.is_, found, Const(value)))
        for mapping, name, value in guards.items.values():
            found = ir.var(name)
            block.calls.append(Call(found, Const(dict.get), (Const(mapping), Const(name))))
            check(self.append(block, operator.is_, found, Const(value)))
        for cell, name, value in guards.cells.values():
            found = self.append(block, get_cell, Const(cell), Const(name))
            check(self.append(block, operator.is_, found, Const(value)))
        for of_class in guards.of_classes.values():
            check(self.append(block, is_function_of_class, *map(Const, of_class)))
        for cls in self.classes_met():
            sizes = Const(sizes_of((cls,)))
            check(self.append(block, has_as_many_names, Const(cls), sizes))
        for test, values in guards.tests:
            check(self.append(block, test, *map(Const, values)))
        for v, value in guards.identities:
            if any(c.out is v for c in reads):
                check(self.append(block, operator.is_, v, Const(value)))

        def append(fn: Any, *args: Operand) -> Var:
            return self.append(block, fn, *args)

        for v, k in [*zip(ir.params, self.knowns, strict=True), *guards.types]:
            check_type(v, k, append, check)
        block.branches = [Branch(body)]
        for other in list(ir.blocks):
            ends = {c.primitive for c in other.calls}.intersection(WAYS_OUT)
            if ends:
                way = self.way_out(own, generally) if go_general in ends else slow
                if assume_less in ends:
                    way = self.way_out(own, otherwise, Const(this))
                    less = ir.var()
                    way.calls.insert(0, Call(less, Const(this.assume_less), ()))
                other.calls, other.branches = [], [Branch(way)]
                ir.cold.append(other)
        return less

    def classes_met(self) -> list[type]:
        """The classes, written in Python, that the program makes, reads or calls objects of."""
        guards = self.specialiser.guards
        found = [x for x, *_ in (*guards.attributes.values(), *guards.of_classes.values())]
        for value in self.specialiser.types.values():
            if value is not None:
                found += [k.type for k in possibilities(value)]
        classes = {id(x): x for x in found if isinstance(x, type) and not is_compiled(x)}
        return [cls for cls in classes.values() if not is_own(cls)]

    def way_out(self, own: Var, otherwise: Callable[..., Any], *args: Operand) -> Block:
        """A block that returns what another way gives for the arguments of the function."""
        ir = self.ir
        block, out, function = ir.block(), ir.var(), ir.var()
        block.calls = [
            Call(function, Const(get_cell), (own, Const(OWN))),
            Call(out, Const(otherwise), (function, *args, *ir.params)),
        ]
        block.branches = [Branch(None, [out])]
        ir.cold.append(block)
        return block


CONTAINERS = (build_tuple, build_list, build_map, build_set)


def only_inside(x: Operand, made: dict[Var, Call], uses: dict[Var, int]) -> set[Var]:
    """A container that is in one place only, and those that are only in it."""
    call = made.get(x)  # type: ignore[arg-type]
    if call is None or uses[call.out] > 1 or call.primitive not in CONTAINERS:
        return set()
    return {call.out}.union(*[only_inside(a, made, uses) for a in call.args])


OWN = "gradient function"  # the variable by which emitted code finds the function that runs it


def with_own_cell(code: CodeType) -> CodeType:
    """The code with one more closure variable, for its signature and its names."""
    return code.replace(co_freevars=(*code.co_freevars, OWN))


def with_keywords(code: CodeType, keywords: tuple[str, ...]) -> CodeType:
    """The code with keyword-only parameters of these names in the place of `**kwargs`."""
    if not code.co_flags & inspect.CO_VARKEYWORDS:
        return code
    n = code.co_argcount + code.co_kwonlyargcount
    rest = n + bool(code.co_flags & inspect.CO_VARARGS)
    names = code.co_varnames
    names = (*names[:n], *keywords, *names[n:rest])
    return code.replace(
        co_varnames=names,
        co_nlocals=len(names),
        co_kwonlyargcount=code.co_kwonlyargcount + len(keywords),
        co_flags=code.co_flags & ~inspect.CO_VARKEYWORDS,
        co_cellvars=(),
    )


def stub(
    code: CodeType,
    namespace: dict[str, Any],
    otherwise: Callable[..., Any],
    this: Any = None,
) -> CodeType:
    """Code that goes to `otherwise(function, this, *arguments)` at once."""
    ir = IR(code.co_name, code.co_filename)
    block = ir.block()
    n = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    block.params = [ir.var(name) for name in code.co_varnames[:n]]
    ir.free = [ir.var(n) for n in (*code.co_freevars, OWN)]
    out, function = ir.var(), ir.var()
    block.calls = [
        Call(function, Const(get_cell), (ir.free[-1], Const(OWN))),
        Call(out, Const(otherwise), (function, Const(this), *block.params)),
    ]
    block.branches = [Branch(None, [out])]
    return emit(ir, with_own_cell(code), namespace)


def in_space_of(x: Any, x̄: Any) -> Any:
    """A gradient in the space of its argument, where it is differentiated in its turn."""
    return without_marks(unthunk(project_to(x)(x̄)))


class Left(BaseException):
    """A program that is run by another function is left, by one of its ways out."""

    def __init__(self, way: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.way = way
        self.args = args


def leaving_by(way: Callable[..., Any]) -> Callable[..., Any]:
    """A way out that whoever runs the program goes."""

    def leave(*args: Any) -> Any:
        raise Left(way, args)

    return leave


def one_of(y: Any, name: str) -> Any:
    """The cotangent "one" of an output that must be one real number."""
    one = unit(y)
    if one is None:
        raise errors.not_scalar(y, name)
    return one
