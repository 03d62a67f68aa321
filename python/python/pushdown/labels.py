"""Labels: from the `labels=` argument of a reader to the `y` of its batches."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard

from . import _native
from ._content import invalid_content, parse_content
from ._label_columns import LabelValues, by_folder, by_function, by_index, by_key, by_pattern, by_row_or_key
from ._native import Objects, Tensor
from .errors import ConfigError, SampleError
from .manifest import Manifest, ReadUrl

__all__ = ["Column", "LabelSource", "Labels", "Sidecar", "StoredLabels", "integers", "resolve"]

_POSSIBLE = (
    'expected "dir", a regular expression with one group, a function of the key, a dict of keys, '
    "a sequence with one label per object, a Manifest, a Sidecar or a Column"
)

ReadKeys: TypeAlias = Callable[[Sequence[str]], list[bytes]]
"""Reads objects of the data set's bucket by their keys, in order."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Labels in objects of their own: `a/1.jpg` has its label in `a/1.cls`. One more GET per sample.

    `parse`: "int" gives an int64 tensor, "text" and "json" give lists.
    """

    suffix: str
    parse: Literal["int", "text", "json"] = "int"

    def __post_init__(self) -> None:
        if self.parse not in ("int", "text", "json"):
            raise ConfigError(
                f'invalid `parse` of Sidecar: expected "int", "text" or "json", found {self.parse!r}'
            )

    def key(self, key: str) -> str:
        """The key of the label of a sample: the extension is replaced by `suffix`."""
        folder, slash, name = key.rpartition("/")
        stem, dot, _ = name.rpartition(".")
        return f"{folder}{slash}{stem if dot else name}{self.suffix}"

    def value(self, key: str, data: bytes) -> object:
        """The label in `data`. Raises `SampleError` with the key of the sample."""
        try:
            value = parse_content(self.parse, data)
        except ValueError as error:
            message = invalid_content(self.parse, self.key(key), data)
            raise SampleError(key, "InvalidLabel", message) from error
        return value.strip() if self.parse == "text" else value


@dataclass(frozen=True, slots=True)
class Column:
    """Labels in a further column of samples in shards. They are read with the samples.

        pushdown.Column("cls")                                        # the number in `0001.cls` is the label of `0001.jpg`
        pushdown.Column("json", "label", parse="text", classes=["cat", "dog"])     # the text at "label" of the object in `0001.json`

    - `name`: extension of the members. The reader requests them; its `columns` need not name them.
    - `field`: the members are JSON objects, and the label is there. Dots lead into objects: "person.age".
    - `parse`: "int" gives an int64 tensor; "text" without white space around it, and "json", give lists.
    - `classes`: names of the classes, in the order of their numbers. A label is a number below their count or, with `parse="text"`, one of
      the names, whose number is in the tensor.

    A label that is missing or invalid is an error of its sample, with the code `InvalidLabel`: `on_error` says what becomes of it.
    """

    name: str
    field: str | None = None
    parse: Literal["int", "text", "json"] = "int"
    classes: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.parse not in ("int", "text", "json"):
            raise ConfigError(
                f'invalid `parse` of Column: expected "int", "text" or "json", found {self.parse!r}'
            )
        if self.classes is None:
            return
        object.__setattr__(self, "classes", tuple(self.classes))
        if self.parse == "json":
            raise ConfigError(
                'invalid `parse` of Column: expected "int" or "text" with classes, found "json"'
            )
        if len(set(self.classes)) < len(self.classes):
            raise ConfigError("invalid `classes` of Column: expected each name once")


class Indexed(Protocol):
    """A list, an array of NumPy, a tensor of torch: anything with a length and indices."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


LabelSource: TypeAlias = (
    str
    | re.Pattern[str]
    | Callable[[str], object]
    | Mapping[str, object]
    | Indexed
    | Tensor
    | Manifest
    | Sidecar
    | Column
)


class Labels(ABC):
    """The labels of a data set."""

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes: label `i` is `classes[i]`. `None` if labels are not names of classes."""
        return None

    @abstractmethod
    def batch(self, indices: Sequence[int], keys: Sequence[str]) -> Tensor | list[object]:
        """The labels of the objects with these indices and keys: an int64 tensor `[n]`, or a list."""


def resolve(
    labels: LabelSource | LabelValues | None,
    objects: Objects,
    prefix: str,
    *,
    read: ReadKeys | None = None,
    read_url: ReadUrl | None = None,
) -> Labels | None:
    """The labels that `labels` describes, computed once, at first use.

    - "dir": the first folder after `prefix` is the class, as in torchvision's ImageFolder; sorted
    - a regular expression with one group, searched in the key: the group is the class; sorted
    - a function of the key
    - a dict by key, or by the part of the key after `prefix`
    - a sequence with one label per object: a list, an array, a NumPy array, a tensor
    - a `Manifest`, read with `read_url`: by row if its keys are those of the data set, otherwise by key
    - a `Sidecar`, read with `read`
    - labels that were computed before

    Of a member of a shard, the key is its name in the shard. A `Column` is read with the samples instead. Integers and classes become int64 tensors, other labels stay lists. Raises `ConfigError`; for an object
    without a label at first use, with its key.
    """
    root = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
    match labels:
        case None:
            return None
        case LabelValues():
            values = labels
            return StoredLabels(lambda: values)
        case str() if labels == "dir":
            return StoredLabels(lambda: by_folder(objects, root))
        case str() | re.Pattern():
            pattern = _pattern(labels)
            return StoredLabels(lambda: by_pattern(pattern, objects))
        case Sidecar():
            if objects.has_members:
                raise ConfigError(
                    "invalid `labels` of samples in shards: expected a Column, found a Sidecar, which names objects: "
                    f"use `labels=pushdown.Column({labels.suffix.lstrip('.')!r})`"
                )
            if read is None:
                raise ConfigError(
                    "a Sidecar needs a store to read from: pass `labels=Sidecar(..)` to a reader"
                )
            return _Read(labels, read)
        case Manifest():
            manifest = labels
            return StoredLabels(lambda: by_row_or_key(manifest, objects, root, read_url))
        case Mapping():
            mapping = labels
            return StoredLabels(lambda: by_key(mapping, objects, root))
        case _ if callable(labels):
            function = labels
            return StoredLabels(lambda: by_function(function, objects))
        case _ if _is_sequence(labels):
            sequence = labels
            _check_length(len(sequence), objects)
            return StoredLabels(lambda: by_index(sequence))
    raise ConfigError(f"invalid `labels`: {_POSSIBLE}, found {type(labels).__name__}")


class StoredLabels(Labels):
    """Labels that are computed for all objects at once."""

    def __init__(self, compute: Callable[[], LabelValues]) -> None:
        self._compute = compute

    @cached_property
    def all(self) -> LabelValues:
        """The labels of all objects."""
        return self._compute()

    @property
    def classes(self) -> tuple[str, ...] | None:
        return self.all.classes

    def batch(self, indices: Sequence[int], keys: Sequence[str]) -> Tensor | list[object]:
        values = self.all.values
        selected = [values[index] for index in indices]
        return selected if isinstance(values, list) else integers(selected)


class _Read(Labels):
    """Labels that are read with each batch."""

    def __init__(self, sidecar: Sidecar, read: ReadKeys) -> None:
        self._sidecar, self._read = sidecar, read

    def batch(self, indices: Sequence[int], keys: Sequence[str]) -> Tensor | list[object]:
        data = self._read([self._sidecar.key(key) for key in keys])
        values = [self._sidecar.value(*pair) for pair in zip(keys, data, strict=True)]
        return integers(values) if self._sidecar.parse == "int" else values


def integers(values: Iterable[Any]) -> Tensor:
    """An int64 tensor of shape `[n]`."""
    numbers = array("q", values)
    return _native.Tensor("i64", [len(numbers)], numbers)


def _pattern(labels: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        pattern = re.compile(labels)
    except re.error as error:
        raise ConfigError(
            f"invalid `labels`: {labels!r} is no regular expression ({error}); {_POSSIBLE}"
        ) from error
    if not isinstance(pattern.pattern, str) or pattern.groups != 1:
        found = f"{pattern.groups} groups" if isinstance(pattern.pattern, str) else "a pattern of bytes"
        raise ConfigError(f"invalid `labels`: {_POSSIBLE}, found {pattern.pattern!r} with {found}")
    return pattern


def _is_sequence(labels: object) -> TypeGuard[Sequence[object]]:
    is_indexed = hasattr(labels, "__len__") and hasattr(labels, "__getitem__")
    return isinstance(labels, _native.Tensor) or (is_indexed and not isinstance(labels, bytes))


def _check_length(found: int, objects: Objects) -> None:
    if found != len(objects):
        raise ConfigError(
            f"invalid `labels`: expected one label for each of {len(objects)} objects, found {found}"
        )
