"""Small functions, one for each construct of the language, with the arguments to call them with."""

import math
import operator
from fractions import Fraction

PROGRAMS = []  # (function, arguments)

total = 10
log = []


def runs(*calls):
    """Call the function with each of these tuples of arguments."""

    def register(f):
        PROGRAMS.extend((f, args) for args in calls)
        return f

    return register


class Point:
    """An object with everything that attribute access can meet."""

    kind = "point"

    def __init__(self, x, y=0):
        self.x, self.y = x, y

    def __eq__(self, other):
        return type(other) is type(self) and (self.x, self.y) == (other.x, other.y)

    def __repr__(self):
        return f"{type(self).__name__}({self.x!r}, {self.y!r})"

    def __add__(self, other):
        log.append("add")
        return Point(self.x + other.x, self.y + other.y)

    def __iadd__(self, other):
        log.append("iadd")
        self.x += other.x
        return self

    def __getitem__(self, key):
        log.append(key)
        return (self.x, self.y)[key] if isinstance(key, int) else key

    def __setitem__(self, key, value):
        log.append((key, value))

    def __delitem__(self, key):
        log.append(("del", key))

    def __bool__(self):
        log.append("bool")
        return bool(self.x)

    def __lt__(self, other):
        log.append("lt")
        return [self.x] if self.x < other.x else []

    def __format__(self, spec):
        return f"<{spec}>"

    def __call__(self, *args, **kwargs):
        return self.x, args, kwargs

    @property
    def norm(self):
        return math.hypot(self.x, self.y)

    @classmethod
    def origin(cls, **kwargs):
        return cls(0, **kwargs)

    @staticmethod
    def double(a):
        return 2 * a

    def scaled(self, factor, *, shift=0):
        return Point(self.x * factor + shift, self.y * factor + shift)


class Pixel(Point):
    kind = "pixel"

    def __init__(self, x, y=0, colour="red"):
        super().__init__(x, y)
        self.colour = colour

    def scaled(self, factor, **kwargs):
        found = super().scaled(factor, **kwargs)
        return found, super().kind, __class__.__name__

    def parent(self):
        return super()

    def explicit(self):
        return super(Pixel, self).scaled(2)

    def shared(self):
        return [super(Pixel, self).double(i) for i in (1, 2)], lambda: self

    def rebound(self):
        self = Pixel(7)
        return super().scaled(1)


class Number:
    """Records which operator was called."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


def _record(name):
    def method(self, *others):
        return Number(f"{name}({', '.join(map(repr, (self, *others)))})")

    return method


for _name in """add radd iadd sub rsub isub mul rmul imul matmul imatmul truediv rtruediv itruediv
        floordiv ifloordiv mod imod pow ipow lshift ilshift rshift irshift and iand or ior xor ixor
        neg pos invert""".split():
    setattr(Number, f"__{_name}__", _record(_name))


class Grumpy:
    """Whatever it is asked, it raises."""

    def __bool__(self):
        raise ArithmeticError("no truth")

    def __iter__(self):
        raise ArithmeticError("no items")

    def __getattr__(self, name):
        raise AttributeError(f"no {name}")

    def __eq__(self, other):
        raise ArithmeticError("no equality")


class Countdown:
    """An iterator that tells when it is asked."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        log.append("iter")
        return self

    def __next__(self):
        log.append(self.n)
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class OldSequence:
    """Iterated over by its indices."""

    def __getitem__(self, i):
        return (10, 20, 30)[i]


class Mapping:
    def keys(self):
        return ["p", "q"]

    def __getitem__(self, key):
        return key.upper()


def say(x):
    log.append(x)
    return x


# -- expressions and operators


@runs((7, 3), (-7, 3), (2.5, 2), (Fraction(7, 3), 2), (7, 0), ("a", 3), (1 + 2j, 2))
def arithmetic(a, b):
    return a * b, a + a, a - b, a / b, a // b, a % b, a**b, -a, +a


@runs((6, 3), (True, False), ({1, 2}, {2, 3}), (1.5, 2))
def bits(a, b):
    return a & b, a | b, a ^ b, a - b, ~a, a << b, a >> b


@runs((Number("a"), Number("b")))
def all_operators(a, b):
    return [
        a + b, a - b, a * b, a @ b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b,
        a ^ b, -a, +a, ~a, 1 + a, 2 - a, 3 * a, 4 / a,
    ]  # fmt: skip


@runs((Number("a"), Number("b")))
def all_operators_in_place(a, b):
    found = []
    c = a
    c += b
    found.append(c)
    c = a
    c -= b
    found.append(c)
    c = a
    c *= b
    found.append(c)
    c = a
    c @= b
    found.append(c)
    c = a
    c /= b
    found.append(c)
    c = a
    c //= b
    found.append(c)
    c = a
    c %= b
    found.append(c)
    c = a
    c **= b
    found.append(c)
    c = a
    c <<= b
    found.append(c)
    c = a
    c >>= b
    found.append(c)
    c = a
    c &= b
    found.append(c)
    c = a
    c |= b
    found.append(c)
    c = a
    c ^= b
    return found, c


@runs(([1], [2]), ([1], (2,)), ((1,), (2,)), ([1], 2))
def in_place_keeps_aliases(a, b):
    c = a
    c += b
    return a, c, a is c


@runs((1, 2), (2, 2), ("a", "b"), (1, "a"), (Point(1), Point(2)), (math.nan, math.nan))
def comparisons(a, b):
    return a < b, a <= b, a == b, a != b, a > b, a >= b


@runs((1, [1]), (2, [1]), (None, [None]), ("a", "abc"), (1, 2))
def membership(a, b):
    return a in b, a not in b, a is b, a is not b, a is None, a is not None


@runs((1, 2, 3), (3, 2, 1), (1, 1, 1), (Point(1), Point(2), Point(3)), (Point(2), Point(1), 0))
def chained(a, b, c):
    return say(a) < say(b) < say(c)


@runs((1, 2, 3), (1, 5, 3), (4, 5, 6), (4, 5, 4))
def chained_in_test(a, b, c):
    if a < b <= c != 6:
        return "inside"
    while not 0 < a < b:
        a += 1
        if a > 20:
            return "never"
    return a


@runs((0, 1), (1, 0), ([], ()), (Point(1), Point(0)), (Grumpy(), 1))
def short_circuit(a, b):
    return say(a) and say(b), say(a) or say(b), not a, not b, not (a and b)


@runs((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1))
def mixed_conditions(a, b, c):
    if (a and b) or c:
        x = 1
    elif a or (b and not c):
        x = 2
    else:
        x = 3
    return x, (a or b) and c, a and (b or c), bool(a and b)


@runs((1,), (0,), (-1,), (Grumpy(),))
def conditional_expression(a):
    return "positive" if a > 0 else "zero" if a == 0 else "negative"


@runs((1,), (0,), (Point(0),), (Point(1),))
def conditional_as_argument(a):
    return max(1 if a else 2, 3 if not a else 4, key=(abs if a else operator.neg))


@runs((5,), (0,))
def walrus(a):
    if (b := a * 2) > 5:
        return b
    c = [d := a + 1, d * 2]
    return b, c, d, (e := (a, 1)), e


@runs((3,), (0,))
def walrus_in_while(n):
    found = []
    while (n := n - 1) >= 0:
        found.append(n)
    return found, n


@runs((1, 2.5), ("a", "é"), (None, [1]), (Point(1), Point(2)))
def f_strings(a, b):
    width = 8
    return (
        f"{a}", f"{a}{b}", f"{a!r} and {b!s:>{width}} {a!a}", f"{{{a}}}", f"{b!r:>12}",
        f"{'x':*^{width}}", f"{a=}", f"plain", f"{f'{a}'!r}", "%s-%s" % (a, b), f"{b!s}",
    )  # fmt: skip


@runs((3.14159,), (2,), ("a",), (Grumpy(),))
def f_string_specs(a):
    return f"{a:.2f} {a:>10.3f}"


@runs(([1, 2, 3, 4], 1, 3), ("abcdef", 1, None), ((1, 2, 3), -1, 0), (5, 1, 2))
def slices(x, i, j):
    return x[i:j], x[:j], x[i:], x[:], x[i:j:2], x[::-1], x[1:2], x[::2]


@runs(([1, 2, 3, 4, 5],), ((1, 2, 3),), (Point(1, 2),))
def slice_assignment(x):
    x[1:3] = [10]
    x[:1] += [7]
    x[::2] = x[::2]
    del x[1:2]
    del x[0]
    return x


@runs(([1, 2, 3],), (Point(1, 2),), ({0: 5, (1, 2): 6, -1: 7},), (3,), ("abc",))
def subscripts(x):
    x[0] += 1
    x[-1] = x[0]
    return x[0], x[1, 2], x


@runs((Point(1, 2),))
def exotic_subscripts(x):
    return x[1:2, 0], x[...], x[None], x[1, ...], x[()], x[1:2:3, :]


# -- statements


@runs((5,), (0,), (-3,))
def if_else(n):
    if n > 0:
        n = n + 1
    elif n < 0:
        n = -n
    else:
        return "zero"
    return n


@runs((5,), (0,))
def while_else(n):
    found = []
    while n > 0:
        n -= 1
        if n == 3:
            continue
        if n == 1:
            found.append("break")
            break
        found.append(n)
    else:
        found.append("else")
    return found, n


@runs(([1, 2, 3],), ([],), ([1, -1, 2],), ((4, 0, 5),), (Countdown(3),), (3,), (OldSequence(),))
def for_else(xs):
    found = []
    for x in xs:
        if x < 0:
            break
        if x == 0:
            continue
        found.append(x)
    else:
        found.append("else")
    return found


@runs((4,), (0,), (1,))
def nested_loops(n):
    found = []
    for i in range(n):
        for j in range(i):
            if j == 2:
                break
            if i == j + 1:
                continue
            found.append((i, j))
        else:
            found.append(i)
        k = 0
        while True:
            k += 1
            if k > i:
                break
    return found


@runs(([3, 1, 2],), ([],))
def loop_variable_afterwards(xs):
    for x in xs:
        pass
    return x


@runs((10,), (27,))
def endless(n):
    steps = 0
    while True:
        if n == 1:
            return steps
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1


@runs((0,), (1,), (2,), (3,))
def early_returns(n):
    if n == 0:
        return
    for i in range(5):
        if i == n:
            return i
        while n == 2:
            return "two"
    return None


@runs((3,), (0,))
def swap_in_a_loop(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a, b


@runs((5, 3), (2, 7))
def three_way_rotation(a, b):
    c = 0
    while a + b + c < 60:
        a, b, c = b + 1, c + a, a
    return a, b, c


@runs((1,), (0,), ("",), (Point(0),), (Grumpy(),))
def assertion(x):
    assert x
    assert x, f"{x} is false"
    return x


@runs((0,), (3,))
def assertion_with_message(x):
    assert x > 1, ("small", x)
    return x


@runs((1,), (0,))
def raising(x):
    if x:
        raise ValueError("x", x)
    raise KeyError from TypeError(x)


@runs((1,))
def raising_what_is_no_exception(x):
    raise x


@runs(())
def nothing_at_all():
    pass


@runs((1,))
def documented(x):
    """With a docstring."""
    return x


# -- variables


@runs((True,), (False,))
def maybe_unbound(x):
    if x:
        y = 1
    return y


@runs((True,), (False,))
def unbound_by_del(x):
    y = 1
    if x:
        del y
    return y


@runs((3,), (0,))
def unbound_after_loop(n):
    for i in range(n):
        last = i
    return last


@runs((1,))
def del_of_unbound(x):
    if x > 5:
        y = 1
    del y


@runs((1,))
def del_of_argument(x):
    del x
    return x


@runs((1,))
def deleted_and_bound_again(x):
    del x
    x = 5
    return x


@runs((2,), (0,))
def unbound_in_the_first_round(n):
    found = []
    for i in range(n):
        if i:
            found.append(y)
        y = i
    return found, y


@runs((True,), (False,))
def unbound_cell(x):
    if x:
        y = 1
    get = lambda: y
    return y, get()


@runs((True,), (False,))
def unbound_free_variable(x):
    get = lambda: y
    if x:
        y = 1
    return get()


@runs((True,), (False,))
def del_of_cell(x):
    y = 1
    get = lambda: y
    if x:
        del y
    return get(), y


@runs((1,))
def globals_(x):
    global total
    total = total + x
    return total


@runs((1,))
def del_of_global(x):
    global passing
    passing = x
    del passing
    return passing


@runs((1,))
def unknown_global(x):
    return x + no_such_variable


@runs((1,))
def unknown_builtin(x):
    return no_such_function(x)


@runs((Point(1, 2),), (Pixel(3),), (None,))
def attributes(p):
    p.x = p.x + 1
    p.y += 2
    p.new = p.norm
    before = p.__dict__.copy()
    del p.new
    return p, before, p.kind


@runs((Point(1),), (3,))
def missing_attribute(p):
    return p.missing


@runs((Point(1),), (3,))
def del_of_missing_attribute(p):
    del p.missing


# -- calls


def callee(a, b=2, *args, c, d=4, **kwargs):
    return a, b, args, c, d, kwargs


def positional_only(a, /, b, *, c=0):
    return a, b, c


@runs((1, 2))
def calls(x, y):
    return (
        callee(x, c=y), callee(x, y, 3, 4, c=5), callee(x, c=1, e=2, d=3), callee(b=1, a=2, c=3),
        positional_only(x, b=y), positional_only(x, y, c=1),
    )  # fmt: skip


@runs(
    ((1, 2), {"c": 3}), ([1], {"c": 1, "z": 2}), ((), {}), (5, {}), ((), 5), (iter("ab"), {"c": 0})
)
def star_calls(args, kwargs):
    return (callee(*args, **kwargs), callee(0, *args, **kwargs), callee(0, *args, 7, c=1, e=2))


@runs(({"c": 3},), ({"a": 3},), (5,), (Mapping(),), ({1: 2},))
def double_star_calls(kwargs):
    return callee(1, c=2, d=5, **kwargs)


@runs(({"p": 1}, {"q": 2}), ({"p": 1}, {"p": 2}), (Mapping(), {}), (Mapping(), Mapping()))
def two_double_stars(a, b):
    return callee(1, c=2, **a, **b)


@runs((5,), (None,), (OldSequence(),), (Grumpy(),))
def star_of_what_is_no_iterable(args):
    return print(*args)


@runs((5,))
def star_of_what_is_no_iterable_among_others(args):
    return callee(1, *args)


@runs((5,))
def double_star_of_what_is_no_mapping(kwargs):
    return Point(1).scaled(**kwargs)


@runs(())
def wrong_calls():
    return callee(1)


@runs(())
def too_many_arguments():
    return Point.double(1, 2)


@runs(())
def unexpected_keyword():
    return Point(1, z=2)


@runs((3,))
def calling_what_is_not_callable(x):
    return x(1)


@runs((Point(1, 2),), (Pixel(3, 4),), (3,))
def methods(p):
    return p.scaled(2), p.scaled(2, shift=1), p.double(3), p.origin(), type(p).scaled(p, 3)


@runs((Pixel(3, 4),))
def method_objects(p):
    m = p.scaled
    f = p.double
    return m(2), f(3), p(1, k=2), p.shared()[0], p.shared()[1]() is p, p.explicit()


@runs((2,))
def instantiation(x):
    p, q = Point(x), Pixel(x, colour="blue")
    return p, q, q.colour, Point.origin(), Pixel.origin(y=1)


@runs(((1, 2, 3), {"k": 1}))
def own_stars(args, kwargs):
    def f(a, *rest, k=0, **more):
        rest += (a,)
        more["a"] = a
        return rest, k, more

    return f(*args, **kwargs), f(1), f(1, z=2)


@runs((5,), (0,))
def recursion(n):
    return 1 if n == 0 else n * recursion(n - 1)


@runs((7,))
def inner_recursion(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n)


@runs((3,))
def builtin_calls(n):
    return (
        sum(range(n)),
        max(1, n, key=abs),
        sorted([3, n, 1], reverse=True),
        list(zip("ab", range(n))),
    )


@runs(([1, 2], 3))
def evaluation_order(x, y):
    return (
        say(x)[say(0)],
        {say("k"): say(1), **say({})},
        callee(say(1), *say([2]), c=say(3), **say({})),
    )


@runs(([1, 2],))
def evaluation_order_of_assignments(x):
    say(x)[say(0)] = say(x)[say(1)]
    say(x)[say(1)] += say(5)
    return x


@runs((Point(1, 2),))
def evaluation_order_of_a_read_and_a_write(p):
    return p.x, setattr(p, "x", 5), p.x


@runs(([1],))
def reads_stay_before_writes(x):
    first = x[0]
    x[0] = 7
    y = x[0]
    x.append(first)
    return first, y, x


@runs((3,))
def method_of_a_result(n):
    return "a b c".split()[1].upper().join(["1", "2"]), "{}".format(n), [n].copy()


# -- functions


@runs((1,))
def defaults(x):
    def f(a, b=x, *, c=(x, 2), d):
        return a, b, c, d

    g = lambda a, b=x + 1, *, c=x: (a, b, c)
    return (
        f(1, d=3),
        g(1),
        f.__defaults__,
        f.__kwdefaults__,
        g.__defaults__,
        f.__name__,
        f.__qualname__,
    )


@runs((1,))
def annotated(x):
    def f(a: int, b: "str" = "b", *, c: list[int] = None) -> float:
        """Says something."""
        y: int = a
        z: float
        return y

    return f(x), f.__annotations__, f.__doc__, f.__module__


@runs((3,))
def closure(n):
    def add(x):
        return x + n

    return add(1), list(map(add, [1, 2])), add.__closure__[0].cell_contents


@runs((3,))
def counter(n):
    count = 0

    def step(by=1):
        nonlocal count
        count += by
        return count

    return [step() for _ in range(n)], step(10), count


@runs((2,))
def rebound_argument(n):
    def get():
        return n

    before = get()
    n = n + 1
    n += 1
    return before, get(), n


@runs((3,))
def loop_closures(n):
    fs = []
    for i in range(n):
        fs.append(lambda: i)
    return [f() for f in fs]


@runs((3,))
def loop_closures_with_default(n):
    return [f() for f in [lambda i=i: i for i in range(n)]]


@runs((2,))
def deep_nesting(n):
    def outer(a):
        def middle(b):
            nonlocal n
            n += b

            def inner(c):
                return a, b, c, n

            return inner

        return middle

    return outer(1)(2)(3), outer(4)(5)(6), n


@runs((3,))
def decorated(n):
    def twice(f):
        return lambda *args: f(f(*args))

    @twice
    @twice
    def step(x):
        return x + n

    return step(1)


@runs((3,))
def lambdas(n):
    return (
        (lambda: n)(),
        (lambda x, *y, **z: (x, y, z, n))(1, 2, k=3),
        (lambda x: lambda y: x + y + n)(1)(2),
    )


@runs((3,))
def recursive_lambda(n):
    f = lambda k: 1 if k == 0 else k * f(k - 1)
    return f(n)


@runs(([3, 1, 2],))
def generators_of_others(xs):
    return (
        sum(x * x for x in xs),
        all(x > 0 for x in xs),
        any(x > 5 for x in xs),
        tuple(x for x in xs),
    )


# -- displays and comprehensions


@runs((1, [2, 3]), (1, 5), (1, {"a": 1}))
def displays(a, b):
    return [a, *b], (a, *b, 2), {a, *b}, [*b, *b], (*b,)


@runs(({"a": 1},), (5,), ({},))
def dict_displays(d):
    return {"b": 2, **d, "c": 3}, {**d}, {d and 1: 2}, {"a": 0, **d}


@runs(())
def constants():
    return [1, 2, 3], (1, 2), {1, 2, 3}, {"a": 1, "b": 2}, [], {}, (), "abc", b"x", 1j, ..., -0.0


@runs(([1, 2, 3],), ([],), ((5, 6),), (3,), (Countdown(2),))
def list_comprehension(xs):
    return [x * 2 for x in xs], [x for x in xs if x > 1 if x < 5]


@runs(([1, 2, 3],), ("aab",))
def set_and_dict_comprehensions(xs):
    return {x for x in xs}, {x: i for i, x in enumerate(xs)}, {x * 2: say(x) for x in xs if x != 2}


@runs((3,), (0,))
def nested_comprehensions(n):
    return (
        [[i * j for j in range(i)] for i in range(n)],
        [(i, j) for i in range(n) for j in range(i) if (i + j) % 2],
        {i: {j for j in range(i)} for i in range(n)},
    )


@runs(([1, 2, 3],), ([],))
def comprehension_with_walrus(xs):
    found = [last := x for x in xs if (y := x * 2) > 2]
    return found, last, y


@runs(([1, 2], 5))
def comprehension_hides_a_variable(xs, x):
    y = 7
    a = [x for x in xs]
    b = [y for y in xs for x in (y, y)]
    return a, b, x, y


@runs(([1, 2], True), ([1, 2], False))
def comprehension_hides_an_unbound_variable(xs, bind):
    if bind:
        x = 5
    a = [x for x in xs]
    return a, x


@runs(([1, 2],))
def comprehension_hides_a_variable_in_a_loop(xs):
    found = []
    for i in xs:
        found += [[i for i in range(3)], i]
        if i == 1:
            del i
            found.append([i for i in xs])
    return found


@runs(([1, 2],))
def comprehension_hides_a_cell(xs):
    i = 5
    get = lambda: i
    a = [i for i in xs]
    b = [lambda: i for i in xs]
    return a, [f() for f in b], i, get()


@runs(([1, 2],))
def comprehension_has_a_cell_only(xs):
    i = 5
    b = [lambda: (i, j) for i in xs for j in (i, 7)]
    return [f() for f in b], i


@runs(([1, 2],))
def comprehension_sees_variables(xs):
    k = 3

    def inner(m):
        return [k * m * x for x in xs], [(lambda: k + x)() for x in xs]

    return inner(2), [k for _ in xs]


@runs(([1, 2],))
def comprehension_hides_a_free_variable(xs):
    i = 5

    def inner():
        return [i for i in xs], i

    return inner()


@runs(([[1, 2], [3, 4]],))
def comprehension_unpacks(rows):
    return [a + b for a, b in rows], [(x, y) for x, *y in rows], [[*r, 0] for r in rows]


@runs(([1, 0, 2],))
def comprehension_raises(xs):
    x = 9
    return [1 / x for x in xs], x


@runs((Pixel(2),))
def comprehension_of_methods(p):
    return [p.scaled(k, shift=1)[0].x for k in range(2)], [f"{k}{p!r:>20}" for k in "ab"]


# -- unpacking


@runs(((1, 2),), ([1, 2],), ("ab",), (iter([1, 2]),), ((1,),), ((1, 2, 3),), (5,), ({1: 2, 3: 4},))
def unpacking(xs):
    a, b = xs
    return a, b


@runs(((1, (2, 3)),), ((1, "ab"),), ((1, 2),), ([[0], [1, 2]],))
def nested_unpacking(xs):
    a, (b, c) = xs
    return a, b, c


@runs(([1, 2, 3, 4],), ((1, 2),), ((1,),), ("abc",), (5,), (Grumpy(),), (OldSequence(),))
def starred_unpacking(xs):
    a, *b, c = xs
    *d, e = xs
    f, *g = xs
    return a, b, c, d, e, f, g


@runs(([],), ([1],), (iter(()),))
def unpacking_of_none_or_one(xs):
    [] = []
    (a,) = xs
    [*b] = (a,)
    return a, b


@runs(([1, 2],))
def several_targets(xs):
    a = b = c, d = xs
    a[0], a[1] = a[1], a[0]
    return a, b, c, d


@runs((Point(1, 2),))
def unpacking_into_places(p):
    xs = [0, 0]
    p.x, xs[0], (p.y, *xs[1:]) = 5, 6, (7, 8, 9)
    return p, xs


@runs(([(1, 2), (3, 4)],))
def unpacking_in_for(pairs):
    found = 0
    for i, (a, b) in enumerate(pairs):
        found += i * a * b
    return found, i, a


# -- imports


@runs(())
def imports():
    import math
    import os.path
    import xml.dom as dom
    from collections import OrderedDict, deque as d
    from os import path as p

    return math.pi, os.path.join("a", "b"), dom.__name__, OrderedDict(a=1), d([1]), p is os.path


@runs(())
def import_of_what_is_not_there():
    import no_such_module


@runs(())
def import_of_a_name_that_is_not_there():
    from math import no_such_name


# -- matching without patterns of structure


@runs((1,), ("a",), (None,), (5,))
def literal_match(x):
    match x:
        case 1 | 2:
            return "small"
        case "a":
            return "letter"
        case None:
            return "none"
        case y if y > 3:
            return y
    return "other"


# -- larger programs


@runs((30,))
def sieve(n):
    prime = [True] * n
    found = []
    for i in range(2, n):
        if not prime[i]:
            continue
        found.append(i)
        for j in range(i * i, n, i):
            prime[j] = False
    return found


@runs(([5, 2, 9, 1, 5],), ([],))
def quicksort(xs):
    if len(xs) <= 1:
        return xs
    pivot, *rest = xs
    return (
        quicksort([x for x in rest if x < pivot])
        + [pivot]
        + quicksort([x for x in rest if x >= pivot])
    )


@runs((2.0,), (0.0,), (-1.0,))
def newton(a):
    x, steps = a or 1.0, 0
    while abs(x * x - a) > 1e-12 and steps < 50:
        x = (x + a / x) / 2 if x else 1.0
        steps += 1
    return x, steps


@runs(([[1, 2], [3, 4]], [[5, 6], [7, 8]]))
def matrix_product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


@runs(("the cat the dog",))
def word_count(text):
    counts = {}
    for word in text.split():
        if word not in counts:
            counts[word] = 0
        counts[word] += 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


@runs((20,))
def many_variables(n):
    a = b = c = d = e = f = g = h = i = j = k = l = m = o = p = q = r = s = t = u = v = w = x = (
        y
    ) = z = n
    a1 = a2 = a3 = a4 = a5 = a6 = a7 = a8 = a9 = a + 1
    for aa in range(3):
        a, b, c, d, e, f, g, h, i, j, k = b, c, d, e, f, g, h, i, j, k, a + aa
        l += m * o - p
        a9 += a1
    return (
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        m,
        o,
        p,
        q,
        r,
        s,
        t,
        u,
        v,
        w,
        x,
        y,
        z,
        a9,
        a2 + a3 + a4,
        a5,
    )


@runs(([1, 2],))
def unpacking_one_behind_an_effect(xs):
    last = xs.pop()
    (first,) = xs
    return first, last


def _long_loop():
    lines = ["def long_loop(n):", "    x = 0", "    while n > 0:", "        n -= 1"]
    lines += [f"        if n == {k}: x += {k}" for k in range(120)]
    scope = {}
    exec("\n".join([*lines, "    return x, n"]), scope)
    return scope["long_loop"]


runs((130,), (3,))(_long_loop())
