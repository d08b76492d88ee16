"""Columns to Arrow, pandas and polars; the libraries are only loaded when asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd
    import polars as pl


class Table(ABC):
    """Named integer columns of equal length."""

    @abstractmethod
    def columns(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """The columns by name."""

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``. ImportError names the missing extra."""
        arrow = load_extra("pyarrow", "arrow")
        return arrow.table(dict(self.columns()))

    def to_pandas(self) -> pd.DataFrame:
        """A ``pandas.DataFrame``. ImportError names the missing extra."""
        frame: pd.DataFrame = load_extra("pandas", "pandas").DataFrame(dict(self.columns()))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """A ``polars.DataFrame``. ImportError names the missing extra."""
        frame: pl.DataFrame = load_extra("polars", "polars").DataFrame(dict(self.columns()))
        return frame


def load_extra(module: str, extra: str) -> Any:
    """An optional library. ImportError names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{module} is not installed: pip install 'blklab[{extra}]'") from error
