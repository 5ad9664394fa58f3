"""Random NumPy programs: arrays in, one real number out.

Shapes and kinds are known while a program is written, so that it is sure to run. The arguments are
made from a seed. `check` compares both paths with each other and with differences along a random
direction, taken in double precision where the program runs in a shorter one.

    python -m tests.array_programs --examples 10000 --seed 1        a long run

Programs that raise when they are called plainly are passed over: a mask may leave nothing.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import math
import random
import struct
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import morula
from tests.program_writer import Choices, indented
from tests.random_programs import on_path

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = (
    (3,),
    (2, 3),
    (),
    (1,),
    (3, 1),
    (2, 2),
    (4,),
    (1, 3),
    (2, 1, 3),
    (3, 3),
)
WIDE = {"f": np.float64, "d": np.float64, "F": np.complex128, "D": np.complex128}


@dataclass(frozen=True)
class ArrayProgram:
    """Source that defines `f`, and what its arguments are."""

    source: str
    shapes: tuple[Shape, ...]
    dtypes: str
    seed: int
    scalars: bool  # arguments without axes are scalars, not arrays

    def __repr__(self) -> str:
        call = f"ArrayProgram('''\n{self.source}\n''', {self.shapes}, {self.dtypes!r}, {self.seed})"
        return f"\nimport numpy as np\n\n{self.source}\n\nf(*{self.arguments()!r})\n"

    def load(self) -> Callable[..., Any]:
        """`f`, in a module of its own."""
        name = f"<array program {next(_numbers)}>"
        lines = self.source.splitlines(keepends=True)
        linecache.cache[name] = (len(self.source), None, lines, name)
        namespace: dict[str, Any] = {"__name__": "program", "np": np}
        exec(compile(self.source, name, "exec"), namespace)
        return namespace["f"]  # type: ignore[no-any-return]

    def arguments(self) -> list[Any]:
        """The arguments, made anew."""
        rng = np.random.default_rng(self.seed)
        args: list[Any] = []
        for shape, letter in zip(self.shapes, self.dtypes, strict=True):
            x = rng.uniform(0.2, 1.8, shape) * rng.choice([-1.0, 1.0], shape)
            if letter in "FD":
                x = x + 1j * rng.uniform(-1, 1, shape)
            made = np.asarray(x, letter)
            args.append(made[()] if shape == () and self.scalars else made)
        return args


_numbers = itertools.count()


@dataclass(frozen=True)
class Array:
    """What is known of a variable."""

    name: str
    shape: Shape
    complex: bool


class ArrayWriter(Choices):
    """Writes a program of arrays, one operation per line."""

    LETTERS: tuple[str, ...] = ("d", "f", "D", "dD", "F", "fF")
    LENGTH = 8

    def program(self) -> ArrayProgram:
        n = 1 + self.number(3)
        shapes = tuple(self.pick(SHAPES) for _ in range(n))
        letters = self.pick(self.LETTERS)
        dtypes = "".join(self.pick(letters) for _ in range(n))
        self.arrays = [
            Array(name, shape, letter in "FD")
            for name, shape, letter in zip("abc", shapes, dtypes, strict=False)
        ]
        lines: list[str] = []
        for _ in range(self.LENGTH):
            if self.number(10) == 0:
                break
            lines += self.operation()
        total = [self.scalar(x) for x in self.arrays[:n] + self.arrays[n:][-3:]]
        lines.append(f"return {' + '.join(total)}")
        source = "\n".join([f"def f({', '.join('abc'[:n])}):", *indented(lines)])
        return ArrayProgram(source, shapes, dtypes, self.number(1000), not self.chance(2))

    def scalar(self, x: Array) -> str:
        """One real number that depends on all entries of x, and on their order."""
        if x.complex:
            form = self.pick(("np.sum(np.abs({0}) ** 2)", "(({0}) * (0.3 - 0.4j)).real.sum()"))
        else:
            form = self.pick(("np.sum({0} * {0})", "{0}.sum()", "np.mean(np.sin({0}))"))
        if x.shape and len(x.shape) == 1 and not x.complex and self.chance(2):
            form = f"({{0}} @ np.arange({x.shape[0]}.0))"
        return str(form.format(x.name))

    # -- lines

    def operation(self) -> list[str]:
        result = self.pick(self.OPERATIONS)(self)
        if result is None:
            result = self.unary()
        expression, shape, is_complex = result
        name = self.fresh("v")
        if math.prod(shape) > 200:
            return []
        self.arrays.append(Array(name, shape, is_complex))
        return [f"{name} = {expression}"]

    def any(self) -> Array:
        """An array; the last is the simplest."""
        return self.pick(self.arrays[::-1])  # type: ignore[no-any-return]

    def real(self) -> Array | None:
        found = [x for x in self.arrays if not x.complex]
        return self.pick(found[::-1]) if found else None

    def unary(self) -> Any:
        x = self.any()
        forms = ["np.sin({0})", "{0} ** 2", "-{0}", "np.exp(0.3 * {0})", "2.5 * {0}", "{0} - 1"]
        forms += ["{0} * {0}", "{0} / 4", "np.cos({0})", "{0} * np.float32(0.5)", "np.square({0})"]
        forms += ["{0} * (lambda t: t * {0})({0})", "{0}.copy()", "np.array({0})", "+{0}"]
        if x.complex:
            forms += ["np.conj({0})", "{0}.conj()", "1j * {0}"]
            to_real = ["np.abs({0})", "{0}.real", "np.imag({0})", "np.real({0})", "abs({0})"]
            if self.chance(3):
                return self.pick(to_real).format(x.name), x.shape, False
        else:
            forms += ["np.tanh({0})", "np.sqrt(1 + {0} * {0})", "np.abs({0})", "np.log1p({0} ** 2)"]
            forms += ["np.arctan({0})", "np.maximum({0}, 0.1)", "np.clip({0}, -0.9, 0.9)"]
            forms += ["(2 + {0} * {0}) ** 0.5", "1.5 ** {0}", "np.exp2({0})", "np.expm1(0.3 * {0})"]
            if self.chance(8):
                return f"{x.name} * (1 + 2j)", x.shape, True
        return self.pick(forms).format(x.name), x.shape, x.complex

    def binary(self) -> Any:
        x, y = self.any(), self.any()
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return None
        both_real = not (x.complex or y.complex)
        forms = ["{0} + {1}", "{0} * {1}", "{0} - {1}", "np.multiply({0}, {1})", "np.add({0}, {1})"]
        if not y.complex:
            forms += ["{0} / (2 + {1} * {1})"]
        if both_real:
            forms += ["np.maximum({0}, {1})", "np.minimum({0}, {1})", "np.hypot({0}, 2 + {1})"]
            forms += ["np.arctan2({0}, 3 + {1} ** 2)", "np.where({0} > {1}, {0}, {1} * 2)"]
            forms += ["(1.5 + np.abs({0})) ** np.tanh({1})", "np.logaddexp({0}, {1})"]
        forms += ["np.where(np.abs({0}) > 1, {0}, {1})", "np.where(True, {0}, {1})"]
        return self.pick(forms).format(x.name, y.name), shape, x.complex or y.complex

    def reduction(self) -> Any:
        x = self.any()
        axis: Any = None
        if x.shape and self.number(3):
            axis = self.number(len(x.shape))
            if len(x.shape) > 1 and self.chance(4):
                axis = (0, 1)
            elif self.chance(2):
                axis -= len(x.shape)
        keepdims = self.chance(2)
        names = ["sum", "mean", "prod"]
        if not x.complex:
            names += ["max", "min", "var", "std"]
        name = self.pick(names)
        if name == "std" and math.prod(x.shape) < 2:
            name = "mean"
        options = [] if axis is None else [f"axis={axis}"]
        options += ["keepdims=True"] if keepdims else []
        if self.chance(2):
            text = f"np.{name}({', '.join([x.name, *options])})"
        else:
            text = f"{x.name}.{name}({', '.join(options)})"
        if name == "std":  # not at a constant row
            axis_size = 2 if axis is None else np.zeros(x.shape).sum(axis, keepdims=True).size
            if axis_size == math.prod(x.shape):
                return None
            text = f"np.sqrt(1 + {text.replace('std', 'var')})"
        return text, np.zeros(x.shape).sum(axis, keepdims=keepdims).shape, x.complex

    def product(self) -> Any:
        x, y = self.any(), self.any()
        for a, b in ((x, y), (x, x), (y, x)):
            try:
                shape = (np.zeros(a.shape) @ np.zeros(b.shape)).shape
            except ValueError:
                continue
            forms = ["{0} @ {1}", "np.matmul({0}, {1})"]
            if len(a.shape) < 3 and len(b.shape) < 3:
                forms += ["np.dot({0}, {1})", "{0}.dot({1})"]
            return self.pick(forms).format(a.name, b.name), shape, a.complex or b.complex
        if len(x.shape) == 1 and len(y.shape) == 1:
            return f"np.outer({x.name}, {y.name})", x.shape + y.shape, x.complex or y.complex
        if len(x.shape) == 2:
            shape = x.shape[:1] * 2
            form = self.pick(("{0} @ {0}.T", "np.einsum('ij,kj->ik', {0}, {0})"))
            return form.format(x.name), shape, x.complex
        return None

    def index(self) -> Any:
        x = self.any()
        if 0 in x.shape:
            return f"{x.name}[...]", x.shape, x.complex
        if not x.shape:
            if self.chance(2):
                return f"{x.name}[()]", (), x.complex
            return f"{x.name}[None]", (1,), x.complex
        n = x.shape[0]
        i = self.number(n)
        forms = [f"{i}", f"{i - n}", "::-1", "None", "..., 0", f"[{i}, 0, {i}]", "..., None", "1:"]
        forms += [
            f"{i}:",
            ":-1",
            "::2",
            f"np.array([{i}, {i - n}])",
            f"[{i % 2 == 0}] * {n}",
            "...",
        ]
        if len(x.shape) > 1:
            forms += [":, 0", f"{i}, -1", ":, None", "[0, -1], [0, 0]", ":, ::-1", "0, ..., -1"]
        form = self.pick(forms)
        shape = eval(f"np.zeros({x.shape})[{form}]", {"np": np}).shape
        return f"{x.name}[{form}]", shape, x.complex

    def masked(self) -> Any:
        x = self.real()
        return None if x is None else (f"{x.name}[{x.name} > 0].sum()", (), False)

    def shaped(self) -> Any:
        x = self.any()
        forms = ["np.ravel({0})", "{0}.reshape(-1)", "{0}.T", "np.transpose({0})", "{0}[..., None]"]
        forms += [
            "np.expand_dims({0}, 0)",
            "{0}.flatten()",
            "np.atleast_2d({0})",
            "np.squeeze({0})",
        ]
        forms += ["np.reshape({0}, (1, -1))", "np.tile({0}, 2)", "{0}.astype({0}.dtype)"]
        if x.shape:
            forms += ["np.flip({0})", "np.roll({0}, 1)", "np.repeat({0}, 2, axis=0)"]
            forms += ["np.cumsum({0}, axis=0)", "np.broadcast_to({0}, (2, *{0}.shape))"]
            forms += ["np.diff({0}, axis=-1)"]
        if len(x.shape) > 1:
            forms += ["np.swapaxes({0}, 0, 1)", "np.moveaxis({0}, 0, -1)"]
            forms += ["{0}.transpose(-1, *range({0}.ndim - 1))"]
        form = self.pick(forms)
        shape = eval(form.format("x"), {"np": np, "x": np.zeros(x.shape)}).shape
        return form.format(x.name), shape, x.complex

    def joined(self) -> Any:
        x, y = self.any(), self.any()
        is_complex = x.complex or y.complex
        if x.shape == y.shape:
            if x.shape and self.chance(2):
                axis = self.number(len(x.shape))
                text = f"np.concatenate([{x.name}, {y.name}], axis={axis})"
                shape = np.concatenate([np.zeros(x.shape)] * 2, axis=axis).shape
                return text, shape, is_complex
            return f"np.stack([{x.name}, {y.name}])", (2, *x.shape), is_complex
        if x.shape == () or y.shape == ():
            return None
        text = f"np.concatenate([{x.name}.ravel(), {y.name}.ravel()])"
        return text, (math.prod(x.shape) + math.prod(y.shape),), is_complex

    def loop(self) -> Any:
        """Python among arrays."""
        x = self.any()
        if not x.shape:
            return f"np.array([{x.name}, {x.name} * 2])", (2,), x.complex
        forms = [
            ("sum([r * i for i, r in enumerate({0})])", x.shape[1:]),
            ("np.stack([r * {0}[0] for r in {0}])", x.shape),
            ("np.array([r.sum() for r in {0}])", x.shape[:1]),
            ("sum({0})", x.shape[1:]),
            ("({0}[0] if {0}.size > 2 else {0}[-1] * 2)", x.shape[1:]),
            ("max([r.sum() for r in {0}], key=lambda t: abs(t))", ()),
        ]
        form, shape = self.pick(forms)
        return form.format(x.name), shape, x.complex

    OPERATIONS: tuple[Any, ...] = (
        unary,
        binary,
        reduction,
        product,
        binary,
        index,
        shaped,
        joined,
        loop,
        masked,
    )


class InPlaceWriter(ArrayWriter):
    """Writes programs that also change arrays in place: arguments, buffers and views of them."""

    HELPERS = (
        "def add_to(t, e=0.5):",
        "    t += e",
        "    return t[0] * 2",
        "",
    )

    def program(self) -> ArrayProgram:
        made = super().program()
        source = "\n".join([*self.HELPERS, made.source])
        return ArrayProgram(source, made.shapes, made.dtypes, made.seed, made.scalars)

    def operation(self) -> list[str]:
        if self.chance(3):
            return super().operation()
        found = [x for x in self.arrays if x.shape and math.prod(x.shape)]
        if not found:
            return super().operation()
        t = self.pick(found[::-1])
        form = self.pick((self.write, self.write, self.update, self.alias, self.loop_in_place))
        return form(t)  # type: ignore[no-any-return]

    def value(self, t: Array, shape: Shape) -> str:
        """Something that may be written to a part of t that has this shape."""
        fits = []
        for x in self.arrays:
            try:
                good = np.broadcast_shapes(x.shape, shape) == shape
            except ValueError:
                good = False
            if good and (t.complex or not x.complex):
                fits.append(x)
        if not fits or self.chance(4):
            return str(self.pick(("0.5", "-2", "1.5")))
        x = self.pick(fits[::-1])
        return str(self.pick(("{0}", "{0} * 2", "({0} * {0})", "np.sin({0})", "-{0}"))).format(
            x.name
        )

    def part(self, t: Array) -> tuple[str, Shape]:
        """An index into t and the shape of what it gives."""
        n = t.shape[0]
        i = self.number(n)
        forms = [":", f"{i}", f"{i - n}", "1:", ":-1", "::-1", "::2", "...", "..., 0", "..., -1"]
        forms += ["[0, -1]", f"np.array([{i}])", f"np.arange({n}) == {i}", f"[{i}, {i}]"]
        if len(t.shape) > 1:
            forms += [":, 0", f"{i}, 0", ":, ::-1", "0, ..., -1", "[0, -1], [0, 0]", f"{i}, :1"]
        form = self.pick(forms)
        shape = eval(f"np.zeros({t.shape})[{form}]", {"np": np}).shape
        return form, shape

    def write(self, t: Array) -> list[str]:
        part, shape = self.part(t)
        e = self.value(t, shape)
        forms = [f"{t.name}[{part}] {sign} {e}" for sign in ("=", "+=", "*=", "-=")]
        forms.append(f"{t.name}[{part}] /= 2.5")
        if not t.complex:
            forms.append(f"{t.name}[{t.name} > 0.3] {self.pick(('=', '*=', '+='))} 0.5")
        forms.append(f"{t.name}[1:] += {t.name}[:-1]")
        forms.append(f"{t.name}[[0, -1]] = {t.name}[[-1, 0]]")
        forms.append(f"{t.name}[0], {t.name}[-1] = {t.name}[-1], {t.name}[0].copy()")
        return [self.pick(forms)]

    def update(self, t: Array) -> list[str]:
        e = self.value(t, t.shape)
        forms = [f"{t.name} {sign} {e}" for sign in ("+=", "*=", "-=")]
        forms += [f"{t.name} **= 2", f"{t.name} /= 2.5"]
        forms += [f"np.{f}({t.name}, {e}, out={t.name})" for f in ("multiply", "add", "subtract")]
        forms += [f"np.{f}({t.name}, out={t.name})" for f in ("sin", "negative", "square")]
        forms += [f"np.copyto({t.name}, {e})", f"{t.name}.fill(0.5)"]
        forms.append(f"np.add.at({t.name}, [0, 0, -1], {self.value(t, t.shape[1:])})")
        forms.append(f"np.multiply({t.name}, {e}, {t.name})")
        forms.append(f"np.put({t.name}, [0, -1], {self.value(t, (2,))})")
        if len(t.shape) > 1:
            forms.append(f"np.fill_diagonal({t.name}, 0.5)")
        if not t.complex:
            forms += [f"np.maximum({t.name}, -0.4, out={t.name})", f"{t.name}.sort(axis=0)"]
            forms.append(f"np.putmask({t.name}, {t.name} > 0.3, {e})")
        return [self.pick(forms)]

    def alias(self, t: Array) -> list[str]:
        """Another name, a view or a buffer."""
        name = self.fresh("v")
        forms = ["{0}", "{0}[1:]", "{0}.T", "{0}.reshape(-1)", "{0}.ravel()", "{0}[::-1]", "{0}[0]"]
        forms += ["{0}[..., 0]", "{0}.view()", "np.zeros_like({0})", "np.asarray({0})", "{0}[None]"]
        forms += ["np.array({0})", "{0}[...]", "[{0}, 1][0]", "{0}.swapaxes(0, -1)", "{0} * 1"]
        form = self.pick(forms)
        shape = eval(form.format("x"), {"np": np, "x": np.zeros(t.shape)}).shape
        self.arrays.append(Array(name, shape, t.complex))
        return [f"{name} = {form.format(t.name)}"]

    def loop_in_place(self, t: Array) -> list[str]:
        e = self.value(t, t.shape[1:])
        n = t.shape[0]
        forms: list[list[str]] = [
            [f"for i in range({n}):", f"    {t.name}[i] = {t.name}[i - 1] * {e}"],
            [f"for i in range(1, {n}):", f"    {t.name}[i] += {t.name}[i - 1]"],
            [f"for i in range({n}):", f"    if i % 2:\n        {t.name}[i] *= {e}"],
        ]
        if len(t.shape) > 1:
            forms.append([f"for r in {t.name}:", f"    r *= {e}"])
            forms.append([f"for i, r in enumerate({t.name}):", f"    r[0] += i * {t.name}[0, 0]"])
        name = self.fresh("v")
        added = [f"{name} = add_to({t.name}, {self.value(t, t.shape)})"]
        collected = [f"{name} = []", f"for r in {t.name}:", f"    {name}.append(r * 2)"]
        collected.append(f"{name}[0] += {name}[-1]")
        collected.append(f"{name} = sum({name})")
        forms += [added, collected]
        lines = self.pick(forms)
        if lines in (added, collected):
            self.arrays.append(Array(name, t.shape[1:], t.complex))
        return "\n".join(lines).split("\n")


class FreshWriter(InPlaceWriter):
    """Writes programs that change what they have just made, whatever it was made by, and hold it."""

    LETTERS = ("d", "d", "d", "f", "dD")
    LENGTH = 3  # what one of them does may leave the whole to the general path

    def operation(self) -> list[str]:
        form = self.pick(
            (self.change, self.change, self.hand_on, self.take_apart, self.put_together, None)
        )
        lines = None if form is None else form()
        return ArrayWriter.operation(self) if lines is None else lines

    def scalar(self, x: Array) -> str:
        n = math.prod(x.shape)
        if len(x.shape) > 1 and not x.complex and self.chance(3):
            return f"np.ravel({x.name}, order='K') @ np.arange({n}.0)"
        return super().scalar(x)

    def update(self, t: Array) -> list[str]:
        if self.chance(6):
            return super().update(t)
        e = self.value(t, t.shape)
        forms = [f"{t.name} {sign} {e}" for sign in ("+=", "*=", "-=")]
        return [self.pick((*forms, f"{t.name} /= 2.5", f"{t.name} /= 2 + ({e}) ** 2"))]

    def fresh_array(self) -> tuple[str, Shape, bool]:
        """An expression that makes an array, its shape, and whether it is complex."""
        x = self.pick([x for x in self.arrays if x.shape] or self.arrays)
        forms = ["np.exp(0.3 * {0})", "{0} * 1.0", "{0} + {0}", "np.array({0})", "{0}.copy()"]
        forms += ["{0}.T * 1.0", "np.zeros_like({0})", "np.stack([{0}, {0}])", "+{0}", "-{0}.T"]
        if x.shape:
            forms += ["{0}[::-1] * 2", "{0}[[0, -1]]", "np.concatenate([{0}, {0}])", "np.flip({0})"]
            forms += [
                "np.asfortranarray({0})",
                "np.sort({0}.real, axis=0)",
                "np.cumsum({0}, axis=0)",
            ]
        if len(x.shape) == 2:
            forms += ["{0} @ {0}.T", "{0}.T.dot({0})", "np.outer({0}[0], {0}[0])"]
        form = self.pick(forms)
        made = eval(form.format("x"), {"np": np, "x": np.zeros(x.shape)})
        return form.format(x.name), np.shape(made), x.complex and "real" not in form

    def change(self) -> list[str] | None:
        """A new array, perhaps held by something, and operators in place."""
        expression, shape, is_complex = self.fresh_array()
        if not shape or not 0 < math.prod(shape) <= 60:
            return None
        name, held = self.fresh("v"), self.fresh("h")
        t = Array(name, shape, is_complex)
        lines = [f"{name} = {expression}"]
        holding = self.pick(
            ("", "", "", "{0}", "{0}[0]", "{0}.T", "{0}[1:]", "[{0}][0]", "{0} * {0}")
        )
        if holding:
            lines.append(f"{held} = {holding.format(name)}")
            made = eval(holding.format("x"), {"x": np.zeros(shape)})
            self.arrays.append(Array(held, np.shape(made), is_complex))
        changes: list[str] = []
        for _ in range(1 + self.number(3)):
            changes += self.pick((self.update, self.write, self.update))(t)
        around = self.number(4)
        if around == 0:
            changes = [f"if {self.arrays[0].name}.real.sum() > 0:", *indented(changes)]
        elif around == 1:
            changes = ["for _ in range(2):", *indented(changes)]
        elif around == 2:
            changes = [
                "kept = []",
                "for _ in range(2):",
                *indented([*changes, f"kept.append({name})"]),
            ]
            changes.append(f"{name} = kept[0] * kept[-1]")
        self.arrays.append(t)
        return [*lines, *changes]

    def hand_on(self) -> list[str] | None:
        """A loop that hands arrays on from step to step, by methods and copies."""
        found = [x for x in self.arrays if x.shape and 0 < math.prod(x.shape) <= 60]
        if not found:
            return None
        x = self.pick(found[::-1])
        u, v = self.fresh("v"), self.fresh("v")
        e = self.value(x, x.shape)
        copies = [
            "{0}.copy()",
            "{0}",
            "{0} * 0.5",
            "{0}.reshape({0}.shape)",
            "{0}[:]",
            "{0}.T.copy().T",
        ]
        changes = [
            f"{v} += {e}",
            f"{v} *= 0.5",
            f"{v} -= {u}",
            f"{v}[0] = {u}[-1]",
            f"{v} = {v}.copy()",
        ]
        changes += [f"{v} = {v} * {u}", f"{v}[{v}.real > 0.4] = 0.1"]
        steps = [f"{v} = {self.pick(copies).format(u)}"]
        steps += [self.pick(changes) for _ in range(1 + self.number(3))]
        steps.append(self.pick((f"{u} = {v}", f"{u}, {v} = {v}, {u}", f"{u} = {v}.copy()")))
        self.arrays.append(Array(u, x.shape, x.complex))
        start = self.pick((f"{x.name} * 1.0", f"np.exp(0.1 * {x.name})", f"{x.name}.copy()"))
        return [f"{u} = {start}", "for _ in range(3):", *indented(steps)]

    def take_apart(self) -> list[str] | None:
        """`a, b = w`, and what is written to w or its parts behind it."""
        found = [x for x in self.arrays if x.name[0] == "v" and x.shape and 1 < x.shape[0] < 4]
        if not found:
            return None
        x = self.pick(found[::-1])
        names = [self.fresh("v") for _ in range(x.shape[0])]
        self.arrays += [Array(n, x.shape[1:], x.complex) for n in names]
        lines = [f"{', '.join(names)} = {x.name}"]
        if self.chance(2):
            lines += self.update(x)
        elif len(x.shape) > 1 and self.chance(2):
            lines += self.update(Array(names[0], x.shape[1:], x.complex))
        return lines

    def put_together(self) -> list[str] | None:
        """Arrays of numbers that a loop computes and takes apart again."""
        found = [x for x in self.arrays if len(x.shape) == 1 and x.shape[0] == 3]
        if not found:
            return None
        x = self.pick(found[::-1])
        y = self.fresh("v")
        steps = ["p, q, r = {0}", "{0} = np.array([p * q, q - r, 0.5 * {1}[0]])"]
        if self.chance(2):
            steps = ["{0} = np.array([{0}[1], {0}[0] * {1}[2], 1.0])"]
        if self.chance(2):
            steps.append(self.pick(("{0} += {1}", "{0}[1] = {1}[0]", "{0} = {0} * {1}")))
        self.arrays.append(Array(y, (3,), x.complex))
        lines = indented([s.format(y, x.name) for s in steps])
        return [f"{y} = {x.name} * 1.0", "for _ in range(2):", *lines]


@st.composite
def array_programs(draw: Any, writer: type[ArrayWriter] = ArrayWriter) -> ArrayProgram:
    """Programs of arrays."""
    return writer(draw).program()


# -- what is asked of a program --------------------------------------------------------------------


def check(program: ArrayProgram) -> bool:
    """Compare everything; was the function smooth enough for differences to say something?"""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        f = program.load()
        left = program.arguments()
        try:
            value = f(*left)
        except (IndexError, ValueError) as error:  # of empty and of read-only arrays
            for path in ("specialised", "general"):
                check_error(program, path, type(error))
            return False
        found = {}
        for path in ("specialised", "general"):
            with on_path(path):
                found[path] = check_path(program, path, value, left)
        compare(program, found["specialised"], found["general"])
        return check_differences(program, found["general"])


def fail(program: ArrayProgram, message: str) -> None:
    raise AssertionError(f"{message}{program}")


def check_error(program: ArrayProgram, path: str, expected: type) -> None:
    """Does the gradient raise what the plain call raises?"""
    try:
        with on_path(path):
            morula.gradient(program.load(), *program.arguments())
    except expected:
        return
    except Exception as error:
        raise AssertionError(f"{path}: {type(error).__name__}: {error}{program}") from error
    fail(program, f"{path}: {expected.__name__} is not raised")


def check_path(program: ArrayProgram, path: str, value: Any, left: list[Any]) -> tuple[Any, ...]:
    """The gradients on one path, after all that does not depend on their values.

    `left` is what the plain call has left in the arguments.
    """
    f, args = program.load(), program.arguments()
    try:
        y, gradients = morula.withgradient(f, *args)
    except Exception as error:
        raise AssertionError(f"{path}: {type(error).__name__}: {error}{program}") from error
    if type(y) is not type(value) or bits(y) != bits(value):
        fail(program, f"{path}: the value is {y!r}, the plain call's {value!r}")
    for x, expected in zip(args, left, strict=True):
        if bits(x) != bits(expected):
            fail(program, f"{path}: an argument is {x}, after the plain call {expected}")
    for x, x̄ in zip(args, gradients, strict=True):
        if type(x̄) is not type(x) or x̄.dtype != x.dtype or x̄.shape != x.shape:
            fail(program, f"{path}: the gradient for {x!r} is {x̄!r}")
        if isinstance(x̄, np.ndarray) and not x̄.flags.writeable:
            fail(program, f"{path}: a gradient is read-only")
    arrays = [x for x in (*args, *gradients) if isinstance(x, np.ndarray)]
    for a, b in itertools.combinations(arrays, 2):
        if np.shares_memory(a, b):
            fail(program, f"{path}: gradients share memory: {gradients}")
    again = morula.gradient(f, *program.arguments())
    if [bits(x) for x in again] != [bits(x) for x in gradients]:
        fail(program, f"{path}: the second call gives {again}, the first {gradients}")
    _, back = morula.pullback(f, *program.arguments())
    first, second = back(type(value)(1)), back(type(value)(1))
    if [bits(x) for x in first] != [bits(x) for x in second]:
        fail(program, f"{path}: back gives {first}, then {second}")
    return gradients  # type: ignore[no-any-return]


def bits(x: Any) -> Any:
    """Something that is equal for equal bits."""
    return struct.pack("d", x) if type(x) is float else (x.dtype, x.shape, x.tobytes())


def compare(program: ArrayProgram, a: Any, b: Any) -> None:
    """Do both paths give the same, to the precision of the program?"""
    rtol = 1e-4 if set(program.dtypes) & set("fF") else 1e-10
    for x, y, noise in zip(a, b, sensitivity(program, b), strict=True):
        if not np.all(close(x, y, rtol, noise)):
            fail(program, f"specialised {a}, general {b}")


def close(x: Any, y: Any, rtol: float, noise: Any) -> Any:
    """Equal, both NaN, or as near as the conditioning of the program allows."""
    scale = np.max(np.abs(np.where(np.isfinite(y), y, 0)), initial=1.0)
    near = np.abs(x - y) <= rtol * scale + 100 * noise
    return near | (x == y) | (np.isnan(x) & np.isnan(y)) | ~np.isfinite(noise)


def sensitivity(program: ArrayProgram, gradients: Any) -> list[Any]:
    """How far the gradients move when the arguments do in their last places."""
    args = program.arguments()
    eps = max(float(np.finfo(x.dtype).eps) for x in args)
    nudged = [
        np.asarray(x * (1 + 4 * eps), x.dtype)[() if isinstance(x, np.generic) else ...]
        for x in args
    ]
    with on_path("general"):
        moved = morula.gradient(program.load(), *nudged)
    return [np.abs(x - y) for x, y in zip(moved, gradients, strict=True)]


def check_differences(program: ArrayProgram, gradients: Any) -> bool:
    """Compare with differences along one random direction."""
    f = program.load()
    args = [np.asarray(x, WIDE[x.dtype.char])[()] for x in program.arguments()]
    args = [
        x if isinstance(old, np.ndarray) is False else np.asarray(x)
        for x, old in zip(args, program.arguments(), strict=True)
    ]
    rng = np.random.default_rng(program.seed + 1)
    directions = [rng.standard_normal(np.shape(x)) for x in args]
    directions = [
        v + 1j * rng.standard_normal(v.shape) if np.iscomplexobj(x) else v
        for x, v in zip(args, directions, strict=True)
    ]

    def at(t: float) -> float:
        return float(
            f(
                *[
                    type(x)(x + t * v) if not isinstance(x, np.ndarray) else np.asarray(x + t * v)
                    for x, v in zip(args, directions, strict=True)
                ]
            )
        )

    h = 1e-4
    y = at(0.0)
    slopes = [(at(h * s) - at(-h * s)) / (2 * h * s) for s in (1, 0.5, 0.25)]
    best = (4 * slopes[2] - slopes[1]) / 3
    size = 1 + abs(best)
    sides = [(at(h / 4) - y) / (h / 4), (y - at(-h / 4)) / (h / 4)]
    error = abs(slopes[1] - slopes[2]) + 1e-14 * abs(y) / h
    smooth = abs(slopes[0] - slopes[1]) < 1e-3 * size and abs(sides[0] - sides[1]) < 1e-2 * size
    if not (math.isfinite(best) and smooth and error < 1e-4 * size):
        return False
    found = sum(
        float(np.sum(np.conj(x̄) * v).real) for x̄, v in zip(gradients, directions, strict=True)
    )
    terms = sum(float(np.sum(np.abs(x̄ * v))) for x̄, v in zip(gradients, directions, strict=True))
    single = set(program.dtypes) & set("fF")
    bound = 4 * error + (3e-3 * (1 + terms) if single else 1e-7 * (1 + terms))
    if not abs(found - best) <= bound:
        fail(program, f"gradients {gradients}: {found} along the direction, difference {best}")
    return True


def check_forward(program: ArrayProgram) -> None:
    """Forward mode along a random direction, against the gradients; what it leaves in arguments."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = program.arguments()
        expected_value = program.load()(*plain)
        with on_path("general"):
            gradients = morula.gradient(program.load(), *program.arguments())
        rng = np.random.default_rng(program.seed + 2)
        args = program.arguments()
        directions = [rng.standard_normal(np.shape(x)) for x in args]
        directions = [
            v + 1j * rng.standard_normal(v.shape) if np.iscomplexobj(x) else v
            for x, v in zip(args, directions, strict=True)
        ]
        value, found = morula.jvp(program.load(), args, directions)
    expected = sum(
        float(np.sum(np.conj(x̄) * v).real) for x̄, v in zip(gradients, directions, strict=True)
    )
    terms = sum(float(np.sum(np.abs(x̄ * v))) for x̄, v in zip(gradients, directions, strict=True))
    if not (np.array_equal(value, expected_value, equal_nan=True)):
        fail(program, f"forward mode gives the value {value}, the plain call {expected_value}")
    for x, y in zip(args, plain, strict=True):
        if not np.array_equal(x, y, equal_nan=True):
            fail(program, f"forward mode leaves {x}, the plain call {y}")
    if not (np.isfinite(value) and math.isfinite(expected) and math.isfinite(terms)):
        return
    single = set(program.dtypes) & set("fF")
    if not abs(found - expected) <= (1e-3 if single else 1e-8) * (1 + terms):
        fail(program, f"forward mode gives {found}, the gradients {expected}")


def raises(program: ArrayProgram) -> bool:
    """Does the plain call raise?"""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            program.load()(*program.arguments())
        except Exception:
            return True
        return False


def main() -> int:
    """A long run; the exit status is 1 if anything was wrong."""
    parser = argparse.ArgumentParser("python -m tests.array_programs", description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--in-place", action="store_true", help="programs that write to arrays")
    parser.add_argument("--fresh", action="store_true", help="that write to what they have made")
    parser.add_argument("--forward", action="store_true", help="forward mode against the gradients")
    options = parser.parse_args()
    failures = 0
    for i in range(options.examples):
        writer = InPlaceWriter if options.in_place else ArrayWriter
        writer = FreshWriter if options.fresh else writer
        program = writer(random.Random(f"{options.seed} {i}")).program()
        if raises(program):
            continue
        try:
            (check_forward if options.forward else check)(program)
        except Exception as error:
            failures += 1
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        if (i + 1) % 100 == 0:
            print(f"{i + 1} programs, {failures} failures", file=sys.stderr, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
