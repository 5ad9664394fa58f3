"""What compiled programs spell out of dicts: their methods, copies, views, and loops over them.

What is left are readings and writings of single values, asking for keys, and loops over keys, which
all have shadows (shadows.py). A loop over keys counts: they carry no derivative, or the program is left
to the general path there.
Tests: tests/rules/test_dict_types.py
"""

from __future__ import annotations

import operator
from collections import defaultdict
from types import FunctionType
from typing import Any

from morula.core.extend import (
    Call,
    Const,
    count_uses,
    known,
    primitives,
    rewrites,
    spells,
    substitute,
    traits,
)
from morula.rules.dict_types import DICTS, entries_of
from morula.rules.lists import loops_to_count


def got(d: Any, key: Any, default: Any = None) -> Any:
    """`d.get(key, default)`."""
    return d[key] if key in d else default  # noqa: SIM401


item_there = dict.__getitem__  # which asks nobody for what is missing


def got_or_float(d: Any, key: Any) -> Any:
    """`d[key]` of a `defaultdict(float)`."""
    if key not in d:
        d[key] = 0.0
    return item_there(d, key)


def got_or_int(d: Any, key: Any) -> Any:
    """`d[key]` of a `defaultdict(int)`."""
    if key not in d:
        d[key] = 0
    return item_there(d, key)


def got_or_list(d: Any, key: Any) -> Any:
    """`d[key]` of a `defaultdict(list)`."""
    if key not in d:
        d[key] = []
    return item_there(d, key)


def got_or_dict(d: Any, key: Any) -> Any:
    """`d[key]` of a `defaultdict(dict)`."""
    if key not in d:
        d[key] = {}
    return item_there(d, key)


def got_or_made(d: Any, key: Any, make: Any) -> Any:
    """The same of one with a function of the user's."""
    if key not in d:
        d[key] = make()
    return item_there(d, key)


def got_or_put(d: Any, key: Any, default: Any = None) -> Any:
    """`d.setdefault(key, default)`."""
    if key not in d:
        d[key] = default
    return d[key]


def popped(d: Any, key: Any) -> Any:
    """`d.pop(key)`."""
    value = d[key]
    del d[key]
    return value


def popped_or(d: Any, key: Any, default: Any) -> Any:
    """`d.pop(key, default)`."""
    if key not in d:
        return default
    value = d[key]
    del d[key]
    return value


def copied(d: Any) -> Any:
    """`dict(d)`, `d.copy()`."""
    return {key: d[key] for key in d}


def of_pairs(pairs: Any) -> Any:
    """`dict(zip(keys, values))`, and of a list of pairs."""
    return {key: value for key, value in pairs}


def updated(d: Any, other: Any) -> None:
    """`d.update(other)` of another dict."""
    for key in other:
        d[key] = other[key]


def joined(d: Any, other: Any) -> Any:
    """`d | other`, `{**d, **other}`."""
    new = {key: d[key] for key in d}
    for key in other:
        new[key] = other[key]
    return new


def keys_of(d: Any) -> Any:
    """`list(d.keys())`."""
    return [key for key in d]


def values_of(d: Any) -> Any:
    """`list(d.values())`."""
    return [d[key] for key in d]


def items_of(d: Any) -> Any:
    """`list(d.items())`."""
    return [(key, d[key]) for key in d]


SPELLED = {
    (id(fn), n): spelled
    for fn, n, spelled in (
        (dict.get, 2, got),
        (dict.get, 3, got),
        (dict.setdefault, 2, got_or_put),
        (dict.setdefault, 3, got_or_put),
        (dict.pop, 2, popped),
        (dict.pop, 3, popped_or),
        (dict.copy, 1, copied),
        (dict, 1, copied),
    )
}
DEFAULTS = {float: got_or_float, int: got_or_int, list: got_or_list, dict: got_or_dict}
OF_TWO = {id(operator.or_): joined, id(dict.update): updated}
LISTED = {id(dict.keys): keys_of, id(dict.values): values_of, id(dict.items): items_of}


@spells
def spell_out_dicts(s: Any) -> bool:
    """Put Python functions in the place of what is called of dicts; was there anything?"""
    made = {c.out: c for c in s.ir.calls()}
    uses = count_uses(s.ir)
    changed = False
    for block in s.ir.blocks:
        for call in list(block.calls):
            spelled = spelling(s, call, made, uses)
            if spelled is not None:
                call.fn, changed = Const(spelled), True
                continue
            changed |= makes_default(call, made) or get_default(s, call)
            changed |= update_by_name(s, block, call) or list_view(s, block, call, made, uses)
    return changed


def spelling(s: Any, call: Call, made: dict[Any, Any], uses: Any) -> Any:
    """The function in the place of what is called."""
    if call.keywords or not call.args:
        return None
    first = call.args[0]
    if call.primitive is dict and len(call.args) == 1:
        source: Any = made.get(first)
        if source is not None and source.primitive is zip and uses[first] == 1:
            return None if source.keywords else of_pairs
    two = OF_TWO.get(id(call.primitive))
    if two is not None and len(call.args) == 2:
        is_own = entries_of(s.value(first)) is not None
        if call.args[1] is first or not is_own or not is_dict(s, call.args[1]):
            return None
        return two
    spelled = SPELLED.get((id(call.primitive), len(call.args)))
    if spelled in (got, got_or_put, popped, popped_or):
        entries = entries_of(s.value(first))
        fits = entries is not None and (spelled is not popped or entries.make is None)
        return spelled if fits else None
    return spelled if spelled is not None and is_dict(s, first) else None


def is_dict(s: Any, x: Any) -> bool:
    """Is it known to be a dict, of no subclass but defaultdict?"""
    k = known(s.value(x))
    return k is not None and k.type in DICTS


def makes_default(call: Call, made: dict[Any, Any]) -> bool:
    """`defaultdict(lambda: 0.5)`: a function that has captured nothing is a constant."""
    if call.primitive is not defaultdict or len(call.args) != 1:
        return False
    f = made.get(call.args[0])
    if f is None or f.primitive is not primitives.make_function or len(f.args) > 5:
        return False
    if any(type(x) is not Const for x in f.args) or f.args[2].value or f.args[3].value:
        return False
    call.args = (Const(FunctionType(f.args[1].value, f.args[0].value)),)
    return True


def get_default(s: Any, call: Call) -> bool:
    """`d[key]` of a defaultdict puts what is missing."""
    if call.primitive is not operator.getitem:
        return False
    entries = entries_of(s.value(call.args[0]))
    if entries is None or entries.make is None:
        return False
    call.fn = Const(DEFAULTS.get(entries.make, got_or_made))
    if entries.make not in DEFAULTS:
        call.args = (*call.args, Const(entries.make))
    return True


def update_by_name(s: Any, block: Any, call: Call) -> bool:
    """`d.update(x=a, y=b)` puts one value after the other."""
    n = len(call.args) - len(call.keywords)
    if call.primitive is not dict.update or n != 1 or not call.keywords:
        return False
    if entries_of(s.value(call.args[0])) is None:
        return False
    puts = [
        Call(s.ir.var(), Const(operator.setitem), (call.args[0], Const(k), x), (), call.position)
        for k, x in zip(call.keywords, call.args[1:], strict=True)
    ]
    at = block.calls.index(call)
    substitute(s.ir, {call.out: Const(None)})
    block.calls[at : at + 1] = puts
    return True


def list_view(s: Any, block: Any, call: Call, made: dict[Any, Any], uses: Any) -> bool:
    """What reads a dict or a view of it at once reads a list."""
    if not traits.is_read_at_once(call):
        return False
    if is_dict(s, call.args[0]):
        keys = Call(s.ir.var(), Const(keys_of), call.args[:1], (), call.position)
        block.calls.insert(block.calls.index(call), keys)
        call.args = (keys.out, *call.args[1:])
        return True
    view: Any = made.get(call.args[0])
    if view is None or id(view.primitive) not in LISTED or uses[view.out] != 1:
        return False
    if not is_dict(s, view.args[0]):
        return False
    view.fn = Const(LISTED[id(view.primitive)])
    return True


@rewrites
def loop_over_keys(s: Any) -> bool:
    """`for key, value in d.items()` becomes `for key in d` with `value = d[key]`; keys count."""
    made = {c.out: c for c in s.ir.calls()}
    uses = count_uses(s.ir)
    for block, step, start in loops_to_count(s, made, uses):
        view = made.get(start.args[0])
        is_view = view is not None and id(view.primitive) in LISTED and uses[view.out] == 1
        over = view.args[0] if view is not None and is_view else start.args[0]
        if is_dict(s, over):
            s.counted.update((step.out, start.out))
            if is_view:
                read_by_key(s, block, step, start, view)
            s.key_loops.append(over)
            return True
    return False


def read_by_key(s: Any, block: Any, step: Call, start: Call, view: Any) -> None:
    """A loop over a view of a dict reads the values itself."""
    ir, (d,) = s.ir, view.args
    start.args = (d,)
    for home in ir.blocks:
        home.calls = [c for c in home.calls if c is not view]
    if view.primitive is dict.keys:
        return
    test, body = block.calls[-1], block.branches[1].block
    item, key = step.out, ir.var("key")
    step.out = key
    s.counted.discard(item)
    s.counted.add(key)
    test.args = (key, test.args[1])
    value = item if view.primitive is dict.values else ir.var()
    calls = [Call(value, Const(operator.getitem), (d, key), (), step.position)]
    if view.primitive is dict.items:
        calls.append(Call(item, Const(primitives.build_tuple), (key, value), (), step.position))
    body.calls[:0] = calls
