"""The labels of all samples of a data set, computed at once: by folder, by pattern, by key, by row.

Of a member of a shard, the key is its name in the shard.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _native
from ._native import Objects
from .errors import ConfigError, native_errors
from .manifest import Manifest, ReadUrl


@dataclass(frozen=True, slots=True)
class LabelValues:
    """One label per object."""

    values: array[int] | memoryview | list[object]
    classes: tuple[str, ...] | None = None


def values_of(values: Iterable[Any]) -> LabelValues:
    """A label per object, in order: integers as an array, all else as a list."""
    labels = list(values)
    try:
        return LabelValues(array("q", labels))
    except (TypeError, OverflowError):
        return LabelValues(labels)


def by_folder(objects: Objects, root: str) -> LabelValues:
    """The number of the class of each object: the first folder after `root`. No loop over keys in Python."""
    with native_errors():
        classes, numbers = objects.folders(root)
    values = memoryview(numbers)
    if -1 in values:
        key = objects.paths()[next(index for index, number in enumerate(values) if number < 0)]
        raise ConfigError(
            f'labels="dir": expected all objects in folders of classes, `{root}<class>/`, found `{key}`; '
            "move it, or list its keys without it"
        )
    return LabelValues(values, tuple(classes))


def by_pattern(pattern: re.Pattern[str], objects: Objects) -> LabelValues:
    """The number of the class of each object: what the group of `pattern` matches in its key."""
    names = []
    keys = objects.paths()
    for key in keys:
        found = pattern.search(key)
        name = found[1] if found else None
        if name is None:
            raise ConfigError(f"no label for `{key}`: expected a match of {pattern.pattern!r}, found none")
        names.append(name)
    classes = tuple(sorted(set(names)))
    numbers = {name: number for number, name in enumerate(classes)}
    return LabelValues(array("q", map(numbers.__getitem__, names)), classes)


def by_index(sequence: Any) -> LabelValues:
    """A label per object from a sequence, an array or a tensor of the same length."""
    convert: Any = getattr(sequence, "tolist", None)
    if convert is not None:
        return values_of(convert())
    return values_of(memoryview(sequence) if isinstance(sequence, _native.Tensor) else sequence)


def by_function(function: Callable[[str], Any], objects: Objects) -> LabelValues:
    """The labels that `function` returns for the keys."""
    values = []
    keys = objects.paths()
    for key in keys:
        try:
            value = function(key)
        except Exception as error:
            error.add_note(_native.escape(f"in the function of `labels`, for the key `{key}`"))
            raise
        if value is None:
            raise ConfigError(
                f"no label for `{key}`: expected a value of the function of `labels`, found None"
            )
        values.append(value)
    return values_of(values)


def by_key(mapping: Mapping[str, Any], objects: Objects, root: str) -> LabelValues:
    """The labels in a mapping by key, or by the part of the key after `root`."""
    values = []
    keys = objects.paths()
    for key in keys:
        value = mapping.get(key)
        if value is None and key.startswith(root):
            value = mapping.get(key[len(root) :])
        if value is None:
            raise ConfigError(f"no label for `{key}`: expected this key, or what follows `{root}` in it")
        values.append(value)
    return values_of(values)


def by_row_or_key(manifest: Manifest, objects: Objects, root: str, read_url: ReadUrl | None) -> LabelValues:
    """The labels of a manifest: by row if its keys are those of the data set in order, otherwise by key.

    `read_url` reads a manifest that is in a bucket.
    """
    rows = manifest.load(read_url)
    values = manifest.labels(rows)
    if rows.keys == objects.paths():
        return values_of(values)
    mapping: dict[str, Any] = {}
    for key, value in zip(rows.keys, values, strict=True):
        if mapping.setdefault(key, value) != value:
            labels = f"{mapping[key]!r} and {value!r}"
            raise ConfigError(f"{manifest}: expected one label for `{key}`, found {labels}")
    return by_key(mapping, objects, root)
