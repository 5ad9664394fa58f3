"""Series and data frames of pandas in differentiated code; see labelled.py."""

from typing import Any

import pandas

from morula.interop.labelled import follow


def like(values: Any, x: Any) -> Any:
    """Values with the labels of a series or a frame."""
    if isinstance(x, pandas.Series):
        return pandas.Series(values, index=x.index, name=x.name)
    return pandas.DataFrame(values, index=x.index, columns=x.columns)


follow("pandas", (pandas.Series, pandas.DataFrame), like)
