"""How a store is reached: its endpoint, credentials, timeouts and retries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NoReturn, Self, TypeAlias, TypedDict

from ._checks import choice_of, of_type, set_members
from ._settings import Group, check_names, setting
from .errors import ConfigError

__all__ = ["Connection", "ConnectionOptions", "Credentials", "Keys", "Retry", "Store", "Timeouts", "connect"]

Keys: TypeAlias = tuple[str, str, str | None]
"""Access key, secret key, and session token or `None`."""

AddressingStyle: TypeAlias = Literal["auto", "path", "virtual"]

_text = of_type(str, expected="a str or None", optional=True)


def _address(name: str, value: Any) -> Any:
    _text(name, value)
    # An address has no path. So there is no other place for the character, even where the scheme is missing or misspelt.
    if value is not None and "@" in value:
        # Not even the native module shows it, which refuses it as well.
        raise ConfigError(f"invalid {name}: expected scheme, host and port, found a user name or password")
    return value


def _addresses(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return _address(name, value)
    if not isinstance(value, Sequence) or not all(isinstance(url, str) for url in value):
        raise ConfigError(f"invalid {name}: expected a str, a sequence of str, or None, found {type(value).__name__}")
    for url in value:
        _address(name, url)
    return value


class Credentials:
    """An access key, its secret key, and a session token if it is temporary: `Store(credentials=Credentials("AKIA..", ".."))`.

    Nothing shows or passes on the keys: a copy or a pickle has none. What receives one, such as a worker process, takes its keys from the
    environment or the profile, as if there were no `credentials`.
    """

    __slots__ = ("_keys",)

    def __init__(self, access_key: str, secret_key: str, session_token: str | None = None) -> None:
        of_str = isinstance(access_key, str) and isinstance(secret_key, str)
        if not of_str or not (session_token is None or isinstance(session_token, str)):
            raise ConfigError(
                "invalid credentials: expected an access key, a secret key, and a session token or None, each a str"
            )
        self._keys: Keys | None = (access_key, secret_key, session_token)

    @property
    def keys(self) -> Keys | None:
        """Access key, secret key and session token; `None` in a copy or in another process."""
        return self._keys

    def __repr__(self) -> str:
        return "Credentials(hidden)" if self._keys is not None else "Credentials(not passed on)"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_without_keys, ())

    def __copy__(self) -> Credentials:
        return _without_keys()

    def __deepcopy__(self, _memo: Any) -> Credentials:
        return _without_keys()


def _without_keys() -> Credentials:
    made = Credentials.__new__(Credentials)
    made._keys = None
    return made


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for the endpoint before an attempt fails."""

    connect_seconds: float = 5.0
    """Until a TCP connection is established."""
    first_byte_seconds: float = 60.0
    """From a request to the head of its answer, including connecting."""
    idle_seconds: float = 60.0
    """Between any two pieces of an answer."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When to retry: the pause after the n-th consecutive failure is random, at most `base_seconds * 2**(n - 1)`."""

    attempts: int = 10
    """Consecutive attempts before giving up, including the first one."""
    base_seconds: float = 0.1
    """Longest pause after the first failure."""
    cap_seconds: float = 20.0
    """Longest pause after any failure, unless the endpoint asks for more."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Store(Group):
    """An S3 store or a gateway, and how to reach it. What is `None`, the default of all members, is as in the AWS tools.

        store = pushdown.Store(endpoint="http://gateway:9900", retry=pushdown.Retry(attempts=3))

    - `endpoint`: URL of any S3 store, or of a gateway in its place. By default `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, or that of the
      profile; without one AWS.
    - `addressing_style`: where requests name the bucket, "path" or "virtual", in the host; "auto" is virtual for AWS, and path for another
      `endpoint`. By default that of the profile, then "auto"; of an `endpoint` without a `gateway` beside it, which may be a gateway itself, the
      latter at once.
    - `region`: to sign for. By default that of the environment or the profile, then `us-east-1`. If the store's answers name another one of a
      bucket, that is signed for.
    - `profile`: of the AWS configuration files. By default `AWS_PROFILE`, then `default`.
    - `credentials`: `Credentials`, or a tuple of access key, secret key, and session token or `None`. By default the chain of the AWS tools.
      Nothing shows or passes on the keys: a copy or a pickle of a store has none.
    - `hosts_file`: a file like `/etc/hosts` with addresses that no name server has, read at each look-up. By default `PUSHDOWN_HOSTS_FILE`.
    - `retry`: `Retry`, by default 10 attempts. `timeouts`: `Timeouts`, by default 5 s to connect, and 60 s without any data.

    Raises `ConfigError`.
    """

    endpoint: str | None = setting(None, _address, native="endpoint")
    addressing_style: AddressingStyle | None = setting(
        None, choice_of(AddressingStyle | None), native="addressing_style"
    )
    region: str | None = setting(None, _text, native="region")
    profile: str | None = setting(None, _text, native="profile")
    credentials: Credentials | Keys | tuple[str, str] | None = setting(None)
    hosts_file: str | None = setting(None, _text, native="hosts_file")
    retry: Retry | None = setting(None, of_type(Retry, expected="pushdown.Retry", optional=True))
    timeouts: Timeouts | None = setting(None, of_type(Timeouts, expected="pushdown.Timeouts", optional=True))

    def __post_init__(self) -> None:
        given: Any = self.credentials
        if given is not None and not isinstance(given, Credentials):
            # A tuple would be shown by `repr`, and passed on by copies.
            hidden = Credentials(*given) if _is_keys(given) else _refuse(given)
            object.__setattr__(self, "credentials", hidden)
        super().__post_init__()

    def __copy__(self) -> Self:
        return replace(self, credentials=copy(self.credentials))

    def native(self) -> dict[str, Any]:
        """The native settings, without credentials."""
        retry = None if self.retry is None else asdict(self.retry)
        timeouts = None if self.timeouts is None else asdict(self.timeouts)
        return set_members({**super().native(), "retry": retry, "timeouts": timeouts})


@dataclass(frozen=True, kw_only=True, repr=False)
class Connection(Group):
    """What every call and every reader needs to reach objects."""

    store: Store = setting(Store(), group=Store)
    gateway: str | Sequence[str] | None = setting(None, _addresses, native="gateway")

    def native(self) -> dict[str, Any]:
        """The native settings, without credentials."""
        members = super().native()
        if self.gateway is not None and not isinstance(self.gateway, str):
            members["gateway"] = ",".join(self.gateway)
        return set_members(members)

    @property
    def keys(self) -> Keys | None:
        """Explicit credentials, which never become part of the native settings."""
        credentials = self.store.credentials
        return credentials.keys if isinstance(credentials, Credentials) else None

    @property
    def has_lost_keys(self) -> bool:
        """Whether there were explicit credentials in the process or the object that this is a copy of."""
        return self.store.credentials is not None and self.keys is None

    def to_json(self) -> str:
        """The document that the native module takes as `store_json`."""
        return json.dumps(self.native(), separators=(",", ":"))


class ConnectionOptions(TypedDict, total=False):
    """The keyword arguments of `Connection`, which every call and every reader takes."""

    store: Store
    gateway: str | Sequence[str] | None


def connect(options: ConnectionOptions) -> Connection:
    """The connection of a call. Raises `TypeError` for other arguments, and `ConfigError`."""
    check_names(options, Connection)
    return Connection(**options)


def _is_keys(given: object) -> bool:
    return isinstance(given, (tuple, list)) and len(given) in (2, 3)


def _refuse(given: object) -> NoReturn:
    raise ConfigError(
        "invalid credentials: expected pushdown.Credentials, or a tuple of access key, secret key, and session token or None, "
        f"found {type(given).__name__}"
    )
