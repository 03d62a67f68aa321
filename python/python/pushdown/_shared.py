"""Files through which a process hands large things to its worker processes, instead of through their pipes."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable

__all__ = ["SharedPath", "shared_file"]

_paths: dict[str, SharedPath] = {}
_folder: str | None = None


class SharedPath(str):
    """The path of a shared file. A pickle that leaves this host has to carry the file, too."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What identifies the content."""
        return os.path.basename(self)


def shared_file(name: str, write: Callable[[str], object]) -> SharedPath:
    """Path of the file `name`, which `write` writes the first time. `name` identifies the content.

    The file is removed when the process that wrote it exits.
    """
    path = _paths.get(name)
    if path is None or not os.path.exists(path):
        path = SharedPath(os.path.join(_own_folder(), name))
        write(path)
        _paths[name] = path
    return path


def _own_folder() -> str:
    global _folder
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix="pushdown-")
        atexit.register(_remove, _folder, os.getpid())
    return _folder


def _remove(folder: str, process: int) -> None:
    # A forked child inherits this call, and must not take the files from its parent.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _forget_folder() -> None:
    # A child reads the files of its parent, and writes to another folder.
    global _folder
    _folder = None


os.register_at_fork(after_in_child=_forget_folder)
