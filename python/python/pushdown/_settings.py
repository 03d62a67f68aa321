"""How options are declared: the check of a value, its name in the native settings, and the sources to which it applies."""

from __future__ import annotations

import inspect
import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar

from ._checks import Check, any_value, of_type
from .errors import ConfigError

__all__ = [
    "Allowed",
    "Group",
    "SourceKind",
    "check_applies",
    "check_names",
    "does_not_apply",
    "native_members",
    "not_for",
    "one_of",
    "setting",
    "shows_options",
]

Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., Any])
_KEY = "pushdown"


class SourceKind(Enum):
    """What the samples of a reader are. The value is how messages call it."""

    OBJECTS = "objects"
    """Objects, and members of shards with an index."""
    SHARDS = "shards without an index"
    ROWS = "rows of Parquet objects"
    """Images in a column."""
    TABLE = "rows of a table"
    """Of `TableReader`."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values of an option that apply to a source, and how messages call them."""

    is_allowed: Callable[[Any], bool]
    expected: str


Limits = Mapping[SourceKind, Allowed | None]
"""By source: the values that apply; `None` if the option does not apply at all."""


@dataclass(frozen=True, slots=True)
class _Setting:
    check: Check
    native: str | None
    limits: Limits
    group: type | None
    former: str | None


def setting(
    default: Value,
    check: Check | None = None,
    *,
    native: str | None = None,
    limits: Limits | None = None,
    group: type | None = None,
    former: str | None = None,
) -> Value:
    """The declaration of an option: a field of a dataclass.

    `check`: by default every value is valid. `native`: the name in the native settings; without one the option is for Python alone.
    `limits`: the sources to which it applies only in part, or not at all. `group`: the class of a value that is a group of options.
    `former`: the argument that a member of a group was before it was one; by default its own name.
    """
    if check is None:
        check = any_value if group is None else of_type(group, expected=f"pushdown.{group.__name__}")
    made: Any = field(default=default, metadata={_KEY: _Setting(check, native, limits or {}, group, former)})
    return made  # type: ignore[no-any-return]


def not_for(*kinds: SourceKind) -> Limits:
    """The limits of an option that does not apply to these sources."""
    return dict.fromkeys(kinds)


def one_of(*choices: str) -> Allowed:
    """These choices alone."""
    quoted = [f'"{choice}"' for choice in choices]
    text = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    return Allowed(lambda value: value in choices, text)


class Group:
    """Options that belong together: a frozen dataclass, checked when it is made. `repr` has the options that are set."""

    def __post_init__(self) -> None:
        for declared, setting in _settings(self):
            setting.check(declared.name, getattr(self, declared.name))

    def __repr__(self) -> str:
        members = (
            f"{declared.name}={getattr(self, declared.name)!r}"
            for declared in fields(self)  # type: ignore[arg-type]
            if not _is_default(declared, getattr(self, declared.name))
        )
        return f"{type(self).__name__}({', '.join(members)})"

    def native(self) -> dict[str, Any]:
        """The native settings."""
        return native_members(self)


def native_members(group: object, without: type | None = None) -> dict[str, Any]:
    """The native settings in a group, and in the groups that it has; but for those that `without` declares."""
    members: dict[str, Any] = {}
    skipped = set() if without is None else {declared.name for declared in fields(without)}
    for declared, setting in _settings(group):
        if declared.name in skipped:
            continue
        value = getattr(group, declared.name)
        checked = setting.check(declared.name, value)
        if setting.native is not None:
            members[setting.native] = checked
        elif isinstance(value, Group):
            members |= value.native()
    return members


def check_applies(group: object, kind: SourceKind) -> None:
    """Raises `ConfigError` for an option that is set and does not apply to a source."""
    for declared, setting in _settings(group):
        value = getattr(group, declared.name)
        if isinstance(value, Group):
            check_applies(value, kind)
        if kind not in setting.limits or _is_default(declared, value):
            continue
        allowed = setting.limits[kind]
        if allowed is None:
            default = declared.default
            expected = "none" if default is None else f"{_text(default)}, the default"
            raise does_not_apply(declared.name, value, kind.value, expected)
        if not allowed.is_allowed(value):
            raise does_not_apply(declared.name, value, kind.value, allowed.expected)


def does_not_apply(name: str, value: object, source: str, expected: str) -> ConfigError:
    """The error of an option that does not apply to a source."""
    return ConfigError(f"{name}={_text(value)} does not apply to {source}: expected {expected}")


def check_names(given: Mapping[str, object], declaration: type) -> None:
    """Raises `TypeError` for arguments that the declaration does not have. The text says which group one of them is part of now."""
    known = [declared.name for declared, _ in _settings(declaration)]
    unknown = sorted(given.keys() - set(known))
    for name in unknown:
        for option, setting in _settings(declaration):
            member = None if setting.group is None else _member(setting.group, name)
            if member is not None and setting.group is not None:
                made = f"pushdown.{setting.group.__name__}({member}=..)"
                raise TypeError(f"{name} is now part of {option.name}=: {made}")
    if unknown:
        raise TypeError(f"unexpected argument {', '.join(unknown)}: expected one of {', '.join(known)}")


def shows_options(declaration: type, kind: SourceKind | None = None) -> Callable[[Function], Function]:
    """Makes `help()` and `inspect.signature` of a function show the options that it takes by `**`: those that apply to a source."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        options = [
            inspect.Parameter(
                declared.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=declared.default,
                annotation=declared.type,
            )
            for declared, setting in _settings(declaration)
            if kind is None or setting.limits.get(kind, ...) is not None
        ]
        setattr(function, "__signature__", signature.replace(parameters=[*own, *options]))  # noqa: B010
        return function

    return decorate


def _settings(group: object) -> list[tuple[Field[Any], _Setting]]:
    """The options of a declaration, or of an instance of one: groups after the others."""
    declared: Any = group
    found = [(each, each.metadata[_KEY]) for each in fields(declared) if _KEY in each.metadata]
    return sorted(found, key=lambda each: each[1].group is not None)


def _member(group: type, former: str) -> str | None:
    """The member of a group that was this argument."""
    members = ((each.name, setting.former or each.name) for each, setting in _settings(group))
    return next((name for name, known in members if known == former), None)


def _is_default(declared: Field[Any], value: object) -> bool:
    if value is declared.default:
        return True
    return isinstance(value, (str, int, float, Group)) and value == declared.default


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else reprlib.repr(value)
