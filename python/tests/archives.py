"""Archives of many programs and formats, which Python's tarfile, GNU tar and bsdtar read alike, and what is left out of each.

Each has the files of `FILES`. Those of `left_out` are in it as well, and no members for pushdown.
"""

from __future__ import annotations

import io
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

BLOCK = 512
END = bytes(2 * BLOCK)


def photo(value: int) -> bytes:
    body = io.BytesIO()
    Image.fromarray(np.full((4, 4, 3), value, np.uint8)).save(body, "PNG")
    return body.getvalue()


FILES: dict[str, bytes] = {
    "a/0.png": photo(10),
    "a/0.cls": b"0",
    "a/0.JSON": b'{"n": 0}',
    "a/1.cls": b"1",
    "a/1.png": photo(20),
    "a/README": b"no extension",
    "b.v2/2.png": photo(30),
    "b.v2/2.cls": b"",
}
LONG = {f"{'long' * 30}/{'n' * 120}.{end}": FILES[f"a/0.{end}"] for end in ("png", "cls")}
UNICODE = {"ü/ö.png": photo(40), "ü/ö.cls": b"4"}


@dataclass(frozen=True)
class Archive:
    name: str
    body: bytes
    files: dict[str, bytes]
    left_out: tuple[bytes, ...] = ()
    """Names of members that are left out, in order."""
    is_of_bsdtar: bool = True
    """Whether bsdtar finds the same regular files."""


def header(
    name: bytes, kind: bytes = b"0", size: int = 0, *, link: bytes = b"", magic: bytes = b"ustar\x0000"
) -> bytes:
    """A block with these fields, and its checksum."""
    block = bytearray(BLOCK)
    for place, field in (
        (0, name),
        (100, b"0000644\0"),
        (108, b"0000000\0"),
        (116, b"0000000\0"),
        (124, b"%011o\0" % size),
        (136, b"00000000000\0"),
        (148, b" " * 8),
        (156, kind),
        (157, link),
        (257, magic),
    ):
        block[place : place + len(field)] = field
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % BLOCK)


def entry(name: bytes, kind: bytes = b"0", content: bytes = b"", **fields: bytes) -> bytes:
    return header(name, kind, len(content), **fields) + padded(content)


def record(key: str, value: str) -> bytes:
    rest = f" {key}={value}\n".encode()
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return str(length).encode() + rest


def pax(*records: tuple[str, str], kind: bytes = b"x", more: bytes = b"") -> bytes:
    """A pax header with these records, and bytes after them."""
    return entry(b"pax", kind, b"".join(record(*pair) for pair in records) + more)


def entries(files: dict[str, bytes] = FILES, **fields: bytes) -> bytes:
    return b"".join(entry(name.encode(), content=content, **fields) for name, content in files.items())


def by_tarfile(
    format: int,
    files: dict[str, bytes],
    before: Callable[[tarfile.TarFile], None] = lambda tar: None,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=format, **options) as tar:
        before(tar)
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in (settings or {}).items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(content))
    return body.getvalue()


def special(*members: tuple[str, bytes]) -> Callable[[tarfile.TarFile], None]:
    """Adds members of these kinds."""

    def add(tar: tarfile.TarFile) -> None:
        for name, kind in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "a/0.png"
            tar.addfile(info)

    return add


def made_by_tarfile() -> Iterator[Archive]:
    ustar, gnu, form = tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT
    every = FILES | LONG | UNICODE
    yield Archive("ustar", by_tarfile(ustar, FILES), FILES)
    yield Archive("gnu", by_tarfile(gnu, every), every)
    yield Archive("pax", by_tarfile(form, every), every)
    yield Archive("pax-times", by_tarfile(form, every, settings={"mtime": 1e9 + 0.25, "uid": 3 << 20}), every)
    yield Archive("gnu-owners", by_tarfile(gnu, FILES, settings={"uid": 3 << 20, "uname": "ä"}), FILES)
    yield Archive(
        "pax-comment", by_tarfile(form, FILES, settings={"pax_headers": {"comment": "ö" * 35_000}}), FILES
    )
    yield Archive("pax-global", by_tarfile(form, FILES, pax_headers={"comment": "commit"}), FILES)
    folders = special(("a", tarfile.DIRTYPE), ("b.v2/", tarfile.DIRTYPE))
    yield Archive("folders", by_tarfile(gnu, FILES, folders), FILES)
    links = special(("link.png", tarfile.SYMTYPE), ("a/9.png", tarfile.LNKTYPE))
    yield Archive("links", by_tarfile(ustar, FILES, links), FILES, (b"link.png", b"a/9.png"))
    yield Archive("pax-links", by_tarfile(form, FILES, links), FILES, (b"link.png", b"a/9.png"))
    fifo = special(("pipe", tarfile.FIFOTYPE), ("tty", tarfile.CHRTYPE), ("disk", tarfile.BLKTYPE))
    yield Archive("devices", by_tarfile(gnu, FILES, fifo), FILES, (b"pipe", b"tty", b"disk"))
    dotted = {f"./{name}": content for name, content in FILES.items()}
    yield Archive("dotted", by_tarfile(gnu, dotted), dotted)
    contiguous = by_tarfile(ustar, FILES, settings={"type": tarfile.CONTTYPE})
    yield Archive("contiguous", contiguous, FILES)
    other = {"/etc/0.png": photo(1), "../0.png": photo(2), "a/../1.png": photo(3)}
    names = tuple(name.encode() for name in other)
    yield Archive("outside", by_tarfile(gnu, other | FILES), FILES, names)
    latin = by_tarfile(gnu, {"licence-française.txt": b"Latin-1"} | FILES, encoding="latin-1")
    yield Archive("latin-1", latin, FILES, ("licence-française.txt".encode("latin-1"),))


def made_by_hand() -> Iterator[Archive]:
    body = entries()
    yield Archive("v7", entries(magic=bytes(8)) + END, FILES)
    yield Archive("no-end", body, FILES)
    yield Archive("one-block-of-zeros", body + bytes(BLOCK), FILES)
    yield Archive("after-the-end", body + END + entry(b"c/3.png", content=photo(4)), FILES)
    yield Archive(
        "after-a-block-of-zeros", body + bytes(BLOCK) + entry(b"c/3.png", content=photo(4)) + END, FILES
    )
    # Of several headers, programs take the first or the last path.
    headers = pax(("mtime", "1")), pax(("path", "a/0.png"), ("mtime", "2"))
    yield Archive("two-pax-headers", b"".join(headers) + body + END, FILES, is_of_bsdtar=False)
    other = entries({"other": FILES["a/0.png"]})
    rest = entries({name: content for name, content in FILES.items() if name != "a/0.png"})
    for name, header_of in {
        "pax-path": pax(("path", "a/0.png")),
        "pax-of-solaris": pax(("path", "a/0.png"), kind=b"X"),
        "two-paths-in-pax": pax(("path", "x.png"), ("path", "a/0.png")),
        "pax-and-global": pax(("path", "a/0.png")) + pax(("comment", "a"), kind=b"g"),
        "pax-and-long-name": pax(("path", "a/0.png")) + entry(b"long", b"L", b"x.png\0"),
        "long-name-with-nuls": entry(b"long", b"L", b"a/0.png\0rest\0"),
    }.items():
        yield Archive(name, header_of + other + rest + END, FILES)
    padding = pax(("path", "a/0.png"), more=bytes(9)) + other + rest + END
    yield Archive("zeros-after-records", padding, FILES, is_of_bsdtar=False)
    yield Archive("folder-with-a-size", header(b"a", b"5", 4096) + body + END, FILES)
    link = header(b"a/9.png", b"1", 4096, link=b"a/0.png")
    yield Archive("hard-link-with-a-size", link + body + END, FILES, (b"a/9.png",), is_of_bsdtar=False)
    label = entry(b"label", b"V") + entry(b"more", b"V", b"text")
    yield Archive("volume-label", label + body + END, FILES, (b"label", b"more"), is_of_bsdtar=False)
    vendor = entry(b"acl", b"E", b"user::rw-") + body + END
    yield Archive("entry-of-a-vendor", vendor, FILES, (b"acl",), is_of_bsdtar=False)
    yield Archive("padding", body + END + bytes(BLOCK - 1), FILES)


def made_by(program: str, formats: tuple[str, ...]) -> Iterator[Archive]:
    """Archives of a folder by GNU tar or bsdtar."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, content in FILES.items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(content)
        (folder / "link.png").symlink_to("a/0.png")
        (folder / "hard.png").hardlink_to(folder / "a/0.png")
        for format in formats:
            command = [program, "-C", name, f"--format={format}", "-cf", "-", *FILES, "link.png", "hard.png"]
            left_out: tuple[bytes, ...] = (b"link.png", b"hard.png")
            if (program, format) == ("tar", "gnu"):
                command[1:1] = ["-V", "label"]
                left_out = (b"label", *left_out)
            body = subprocess.run(command, check=True, capture_output=True).stdout
            yield Archive(f"{program}-{format}", body, FILES, left_out)


def tars() -> list[Archive]:
    made = [*made_by_tarfile(), *made_by_hand()]
    for program, formats in (
        ("tar", ("v7", "ustar", "oldgnu", "gnu", "pax")),
        ("bsdtar", ("ustar", "pax", "gnutar")),
    ):
        if shutil.which(program):
            made += made_by(program, formats)
    return made


def zips() -> list[Archive]:
    def written(stream: Any, files: dict[str, bytes] = FILES, comment: bytes = b"") -> bytes:
        with zipfile.ZipFile(stream, "w") as archive:
            archive.comment = comment
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        body: bytes = stream.getvalue()
        return body

    plain = written(io.BytesIO())
    every = FILES | UNICODE
    return [
        Archive("zip", plain, FILES),
        Archive("zip-unicode", written(io.BytesIO(), every), every),
        Archive("zip-comment", written(io.BytesIO(), comment=b"a comment" * 1000), FILES),
        Archive("zip-prefix", b"#!/bin/sh\n" * 100 + plain, FILES),
        Archive("zip-stream", written(_Stream()), FILES),
    ]


class _Stream(io.BytesIO):
    """A stream that cannot seek, so that sizes follow the contents."""

    def seekable(self) -> bool:
        return False

    def seek(self, *arguments: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation
