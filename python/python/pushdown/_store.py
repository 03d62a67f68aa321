"""Single objects by their keys: labels in sidecar objects, manifests in a bucket, and `get`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from . import _native
from ._fork import Handle
from ._onnx import provide_onnx_runtime
from ._url import parse_url
from .errors import Error, native_errors
from .store import Connection

__all__ = ["CONCURRENT_GETS", "StoreReader", "open_store", "read_all"]

CONCURRENT_GETS = 32

Item = TypeVar("Item")
Result = TypeVar("Result")


class StoreReader:
    """Reads objects. Threads start with the first read and end with `close`, or before a fork."""

    __slots__ = ("_connection", "_handle")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._handle: Handle[_native.Store] | None = None

    def read_url(self, url: str) -> bytes:
        """The object at `s3://bucket/key`, as stored."""
        location = parse_url(url)
        return self.read(location.bucket, [location.key])[0]

    def read(self, bucket: str, keys: Sequence[str]) -> list[bytes]:
        """The objects with these keys, as stored, in this order. Raises `Error` with the key of an object that fails."""
        return self.map(lambda store, key: store.get(bucket, key), keys)

    def map(self, function: Callable[[_native.Store, Item], Result], items: Sequence[Item]) -> list[Result]:
        """The results of `function` for all items, in order, computed concurrently."""
        while True:
            handle = self._handle
            if handle is None or not handle.is_open:
                provide_onnx_runtime()
                with native_errors():
                    handle = Handle(open_store(self._connection), closes_at_fork=True)
                self._handle = handle
            with handle.lock:
                # A fork in another thread may have closed it a moment ago.
                if handle.is_open:
                    return read_all(partial(function, handle.native()), items, handle.close)

    def close(self) -> None:
        """Ends all threads."""
        if self._handle is not None:
            self._handle.close()


def open_store(connection: Connection) -> _native.Store:
    """A native store. Its threads live until `close`."""
    return _native.Store(connection.to_json(), connection.keys)


def read_all(
    function: Callable[[Item], Result], items: Sequence[Item], stop: Callable[[], None]
) -> list[Result]:
    """The results of `function`, which waits for the network, for all items in order. `stop` ends calls that run, if one fails."""

    def call(item: Item) -> Result:
        try:
            with native_errors():
                return function(item)
        except Error as error:
            error.add_note(_native.escape(f"while reading `{item}`"))
            raise

    if len(items) == 1:
        return [call(items[0])]
    executor = ThreadPoolExecutor(CONCURRENT_GETS, "pushdown-get")
    try:
        return list(executor.map(call, items))
    except BaseException:
        # Ends the reads that run: their threads see no Ctrl-C.
        stop()
        raise
    finally:
        executor.shutdown(cancel_futures=True)
