"""Series and data frames of pandas in differentiated code; see labelled.py."""

from typing import Any

import pandas

from morula.interop.labelled import follow


def like(values: Any, x: Any) -> Any:
    """Values with the labels of a series or a frame."""
    if isinstance(x, pandas.Series):
        return pandas.Series(values, index=x.index, name=x.name)
    found = pandas.DataFrame(values, index=x.index, columns=x.columns)
    dtypes = dict(x.dtypes)
    if len({*dtypes.values()}) == 1 or not x.columns.is_unique:
        return found
    return found.astype({name: t for name, t in dtypes.items() if t.kind in "fc"})


def same_labels(x: Any, other: Any) -> bool:
    """Have two series, or two frames, the same labels in the same order?"""
    return len(x.axes) == len(other.axes) and all(
        a.equals(b) for a, b in zip(x.axes, other.axes, strict=True)
    )


follow("pandas", (pandas.Series, pandas.DataFrame), like, same_labels)
