"""Models of pydantic in differentiated code."""

from typing import Optional

import numpy as np
import pytest

import morula
from morula import NoRuleError
from tests.modes import check_modes

pydantic = pytest.importorskip("pydantic")


class Model(pydantic.BaseModel):
    a: float
    b: float = 1.0

    @pydantic.computed_field
    @property
    def area(self) -> float:
        return self.a * self.b


class Frozen(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    a: float


class Nested(pydantic.BaseModel):
    m: Model
    w: list[float] = []  # noqa: RUF012
    t: tuple[float, float] = (1.0, 1.0)
    d: dict[str, float] = {}  # noqa: RUF012
    o: Optional[Model] = None


class Arrays(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    v: np.ndarray


class Aliased(pydantic.BaseModel):
    a: float = pydantic.Field(alias="A")
    b: float = 1.0


class Validated(pydantic.BaseModel):
    a: float

    @pydantic.field_validator("a")
    @classmethod
    def rounded(cls, v):
        return round(v, 1)


def assigned(x):
    m = Model(a=x)
    m.b = x * m.a
    return m.area * m.b


def whole(x):
    inner = Model(a=x, b=x * x)
    n = Nested(m=inner, w=[x, 2 * x], t=[x, 3.0], d={"q": x}, o={"a": x * 3})
    return n.m.area * n.w[1] + n.t[0] * n.d["q"] * n.o.a


def dumped(x):
    n = Nested(m={"a": x, "b": x * x}, w=(x, 2.0)).model_dump()
    return n["m"]["a"] * n["m"]["b"] * n["w"][0]


PROGRAMS = {
    "fields": lambda x: Model(a=x, b=x * x).area ** 2,
    "defaults": lambda x: Model(a=x).area * x,
    "frozen": lambda x: Frozen(a=x).a ** 2,
    "assigned": assigned,
    "copied": lambda x: Model(a=x).model_copy(update={"b": x * x}).area * x,
    "validated": lambda x: Model.model_validate({"a": x, "b": x}).area * x,
    "containers": whole,
    "dumped": dumped,
    "there and back": lambda x: Model(**Frozen(a=x).model_dump()).area ** 2,
    "arrays": lambda x: float((Arrays(v=np.array([x, x * x])).v * x).sum()),
    "numbers of numpy": lambda x: Model(a=np.float64(x) * 2).area * x,
    "another by its name": lambda x: Aliased(A=2.0, b=x * x).b * x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_models(name):
    check_modes(PROGRAMS[name], 0.7)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: Aliased(A=x).a,
        lambda x: Validated(a=x).a,
        lambda x: Model(a=x).model_dump()["area"],
    ],
)
def test_what_was_converted_is_refused(f):
    for derivative in (lambda: morula.grad(f)(0.7), lambda: morula.jvp(f, (0.7,), (1.0,))):
        with pytest.raises(NoRuleError, match="pydantic has converted"):
            derivative()
