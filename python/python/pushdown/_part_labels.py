"""The labels of parts of data sets: one type and one value per object, as JSON."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from math import isfinite
from numbers import Integral, Real
from typing import Any

from ._label_columns import LabelValues
from ._labels import LabelSet
from ._source import DataSet
from .errors import ConfigError
from .labels import Column, LabelSource, Sidecar, StoredLabels
from .store import Connection

__all__ = ["part_labels"]

_EXACT_INTEGERS = 1 << 53
"""Up to here a float holds each whole number."""


def part_labels(source: LabelSource | None, data_set: DataSet, connection: Connection) -> dict[str, Any] | None:
    """The native setting of the labels of all objects: classes, whole numbers, floats or texts. `None` without labels.

    Raises `ConfigError` for an object without a label, for other values, and for labels that are read with the samples.
    """
    if isinstance(source, Column):
        raise ConfigError(
            f"invalid labels of parts: expected labels that are known without reading samples, found a Column; list the samples by "
            f"`pushdown.list(shards, columns=[{source.name!r}])`, and their members `.{source.name}` become members of the parts as they are"
        )
    if isinstance(source, Sidecar):
        raise ConfigError(
            "invalid labels of parts: expected labels that are known without reading an object each, found a Sidecar; pass a dict of keys, or a "
            "Manifest"
        )
    labels = LabelSet(source, data_set, connection)
    try:
        found = labels.get()
        return _setting(found.all, data_set) if isinstance(found, StoredLabels) else None
    finally:
        labels.close()


def _setting(labels: LabelValues, data_set: DataSet) -> dict[str, Any]:
    values = labels.values
    if labels.classes is not None:
        return {"class": {"names": list(labels.classes), "values": list(values)}}
    if not isinstance(values, list):
        return {"int": list(values)}
    is_text = all(isinstance(value, str) for value in values)
    return {"text": values} if is_text else {"float": _floats(values, data_set)}


def _floats(values: Sequence[Any], data_set: DataSet) -> list[float]:
    for index, value in enumerate(values):
        if not _is_float(value):
            raise ConfigError(
                f"invalid label of `{data_set.objects.paths()[index]}`: expected whole numbers of 64 bits, finite floats, or texts, of one type "
                f"for all objects, found {reprlib.repr(value)}"
            )
    return [float(value) for value in values]


def _is_float(value: Any) -> bool:
    """Whether a float holds the value."""
    if isinstance(value, Integral):
        return abs(int(value)) <= _EXACT_INTEGERS
    return isinstance(value, Real) and isfinite(value) and float(value) == value
