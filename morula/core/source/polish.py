"""A last look at the text: needless brackets, names for iterators, tests behind `while True`."""

from __future__ import annotations

import ast
from collections import Counter


def polished(text: str) -> str:
    """The same function without needless brackets and names for iterators."""
    tree = ast.parse(text)
    counts = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    for node in ast.walk(tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(body, list):
                put_iterators_into_loops(body, counts)
                put_tests_into_loops(body)
                body[:] = map(in_place, body)
    return ast.unparse(tree)


def put_iterators_into_loops(body: list[ast.stmt], counts: Counter[str]) -> None:
    """`it = iter(x)` in front of `for i in it:` goes into it, if nothing between the two matters."""
    for loop in [s for s in body if isinstance(s, ast.For)]:
        if not isinstance(loop.iter, ast.Name) or counts[loop.iter.id] != 2:
            continue
        between: set[str] = set()
        for made in reversed(body[: body.index(loop)]):
            match made:
                case ast.Assign([ast.Name(name)], made_by) if name == loop.iter.id:
                    if not between & names_read(made_by):
                        body.remove(made)
                        loop.iter = argument_of_iter(made_by)
                    break
                case ast.Assign([ast.Name(name)], ast.Constant() | ast.List([])):
                    between.add(name)
                case _:
                    break


def names_read(tree: ast.AST) -> set[str]:
    """The variables in an expression."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def argument_of_iter(made_by: ast.expr) -> ast.expr:
    """A loop takes an iterator of what it is given by itself."""
    match made_by:
        case ast.Call(ast.Name("iter"), [items], []):
            return items
    return made_by


def put_tests_into_loops(body: list[ast.stmt]) -> None:
    """`while True:` that begins with a way out is `while` with a condition."""
    for loop in body:
        match loop:
            case ast.While(ast.Constant(True), [ast.If(test, [ast.Break()], []), _, *_]):
                loop.test = negated(test)
                del loop.body[0]


def negated(test: ast.expr) -> ast.expr:
    """`not test`."""
    match test:
        case ast.UnaryOp(ast.Not(), inner):
            return inner
    return ast.UnaryOp(ast.Not(), test)


def in_place(statement: ast.stmt) -> ast.stmt:
    """`x = operator.iadd(x, y)` is `x += y`."""
    match statement:
        case ast.Assign([target], ast.Call(ast.Attribute(ast.Name("operator"), name), [x, y], [])):
            if name in IN_PLACE and ast.unparse(target) == ast.unparse(x):
                return ast.AugAssign(target, IN_PLACE[name], y)  # type: ignore[arg-type]
    return statement


IN_PLACE = {
    "iadd": ast.Add(), "isub": ast.Sub(), "imul": ast.Mult(), "itruediv": ast.Div(),
    "ipow": ast.Pow(), "imatmul": ast.MatMult(), "imod": ast.Mod(), "ifloordiv": ast.FloorDiv(),
}  # fmt: skip
