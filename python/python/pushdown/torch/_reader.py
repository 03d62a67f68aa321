"""The reader that a source needs: of objects, or of rows of Parquet objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..errors import ConfigError
from ..parquet import Parquet, is_parquet_url
from ..reader import Reader
from ..rows import RowReader

if TYPE_CHECKING:
    from .._source import Source
    from ..pipeline import PipelineLike
    from ._options import ReaderOptions

# Options of `Reader` that do not apply to rows.
_OF_OBJECTS = (
    "index",
    "column",
    "columns",
    "order",
    "buffer",
    "epochs",
    "max_expand",
    "value_cache",
    "value_cache_bytes",
)


def open_reader(
    source: Source | Parquet, pipeline: PipelineLike | None, options: ReaderOptions
) -> Reader | RowReader:
    """A `RowReader` for `Parquet` and for URLs that end in `.parquet`, and a `Reader` otherwise."""
    if not isinstance(source, Parquet) and not is_parquet_url(source):
        return Reader(source, pipeline, **options)
    unsuitable = [name for name in _OF_OBJECTS if name in options]
    if unsuitable:
        raise ConfigError(
            f"invalid option {', '.join(unsuitable)}: it applies to readers of objects, and the samples of {source} are rows"
        )
    if pipeline is None:
        raise ConfigError(f"a pipeline is missing: the samples of {source} are rows")
    return RowReader(cast(Any, source), pipeline, **cast(Any, options))
