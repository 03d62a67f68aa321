"""Exceptions of the package. All pickle, so that they cross process boundaries, and all derive from `Error`."""

from __future__ import annotations

from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from . import _native

__all__ = [
    "ClosedError",
    "ConfigError",
    "CredentialsError",
    "Error",
    "ForkedReaderError",
    "InternalError",
    "NotAGatewayError",
    "PipelineError",
    "ProtocolError",
    "RefusedError",
    "SampleError",
    "StateError",
    "UnavailableError",
    "native_errors",
]


class Error(Exception):
    """An error of pushdown. `retryable` says whether the same call may succeed later; the reader has retried it already.

    Its text has no control characters: those in names and messages of a store are escaped, as in `a\\nb`. Its attributes are exact.
    """

    retryable = False

    def __str__(self) -> str:
        return _native.escape(self._text())

    def _text(self) -> str:
        return super().__str__()


class ConfigError(Error):
    """A setting is missing or invalid."""


class PipelineError(Error):
    """A pipeline is invalid.

    `text` is the pipeline, if it is known. `position` is the byte offset of the fault in its UTF-8 text, or `None`.
    """

    def __init__(self, message: str, text: str | None = None, position: int | None = None) -> None:
        super().__init__(message, text, position)
        self.message = message
        self.text = text
        self.position = position

    def __str__(self) -> str:
        message = super().__str__()
        if self.text is None or self.position is None:
            return message
        before = self.text.encode()[: self.position].decode(errors="ignore")
        line_start = before.rfind("\n") + 1
        line = self.text[line_start:].split("\n", 1)[0]
        return f"{message}\n  {line}\n  {' ' * (len(before) - line_start)}^"

    def _text(self) -> str:
        return self.message


class CredentialsError(Error):
    """No credentials were found, or their provider failed."""


class NotAGatewayError(Error):
    """The endpoint is no pushdown gateway. `mode="auto"` and `mode="plain"` read from any S3 endpoint."""


class RefusedError(Error):
    """The endpoint refused the request. The text contains its code and message."""


class UnavailableError(Error):
    """The endpoint cannot be reached, is overloaded, or stopped answering, and retries did not help."""

    retryable = True


class SampleError(Error):
    """A sample has no value.

    `key`: key of the object, or of its shard; `member`: name of the member in the shard, or `None`; `code`: machine-readable reason, such
    as `NoSuchKey`; `position`: position in the order of the epoch over all ranks, or in the list of `take`; `row`: row in its batch, or
    `None` if it is in no batch.
    """

    def __init__(
        self,
        key: str,
        code: str,
        message: str,
        position: int | None = None,
        row: int | None = None,
        member: str | None = None,
    ) -> None:
        super().__init__(key, code, message, position, row, member)
        self.key = key
        self.code = code
        self.message = message
        self.position = position
        self.row = row
        self.member = member

    def _text(self) -> str:
        name = self.key if self.member is None else f"{self.key} member {self.member}"
        place = "" if self.position is None else f" at position {self.position}"
        return f"sample `{name}`{place} failed: {self.code}: {self.message}"


class ProtocolError(Error):
    """An answer of the endpoint is invalid."""


class InternalError(Error):
    """A bug in pushdown. Please report it with the text of the error."""


class ForkedReaderError(Error):
    """An iterator or a reader's threads were inherited by a forked process, where they do not run.

    The `Reader` itself works there: iterate over it again.
    """


class ClosedError(Error):
    """The iterator is closed: by `close`, by an error, or because another iteration of its reader began."""


class StateError(Error):
    """A state belongs to another data set, pipeline or seed, or is no state at all.

    `expected` and `found` are the two digests or values that differ.
    """

    def __init__(self, what: str, expected: object, found: object, advice: str) -> None:
        super().__init__(what, expected, found, advice)
        self.what = what
        self.expected = expected
        self.found = found
        self.advice = advice

    def _text(self) -> str:
        return (
            f"cannot load the state: expected {self.what} {self.expected}, found {self.found}: {self.advice}"
        )


_KINDS: dict[str, type[Error]] = {
    "closed": ClosedError,
    "config": ConfigError,
    "credentials": CredentialsError,
    "forked": ForkedReaderError,
    "interrupted": UnavailableError,
    "not_a_gateway": NotAGatewayError,
    "protocol": ProtocolError,
    "refused": RefusedError,
    "timeout": UnavailableError,
    "unavailable": UnavailableError,
    "unreachable": UnavailableError,
}


def _convert(error: BaseException, text: str | None) -> Error:
    kind, message, position = error.args
    if kind == "pipeline":
        return PipelineError(message, text, position)
    if kind == "sample":
        # An error of a whole object outside batches; its message names the object.
        return Error(message)
    return _KINDS.get(kind, InternalError)(message)


def _sample_error(error: BaseException) -> SampleError:
    sample, note = error.args
    converted = SampleError(*sample)
    if note is not None:
        converted.add_note(note)
    return converted


class native_errors(ContextDecorator):
    """Turns an error of the native module into an exception of this package, in a `with` block or a decorated function.

    `text` is the pipeline in use: an error in it then shows the place.
    """

    __slots__ = ("text",)

    def __init__(self, text: str | None = None) -> None:
        self.text = text

    def __enter__(self) -> native_errors:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: TracebackType | None) -> None:
        if isinstance(error, _native.NativeError):
            raise _convert(error, self.text) from None
        if isinstance(error, _native.NativeSampleError):
            raise _sample_error(error) from None
