"""Texts compressed by gzip, pigz, bgzip, zstd and pzstd, in one piece and several."""

import bz2
import gzip
import lzma
import pathlib
import subprocess

import pyarrow as pa

from .case import Case


def write(folder: pathlib.Path) -> list[Case]:
    # More than one block of pigz and three of bgzip.
    numbers = [n % 50 for n in range(18_000)]
    table = pa.table({"n": numbers, "text": [f"number {n}" for n in numbers]})
    text = ("n,text\n" + "".join(f"{n},number {n}\n" for n in numbers)).encode()
    middle = len(text) // 3
    one, other = text[:middle], text[middle:]
    contents = {
        "gzip.csv.gz": run("gzip -9c", text),
        "gzip_members.csv.gz": run("gzip -c", one) + run("gzip -c", b"") + run("gzip -1c", other),
        "gzip_python.csv.gz": gzip.compress(text, mtime=0),
        # Padding of tar and tapes: gzip skips zeros.
        "gzip_zeros.csv.gz": run("gzip -c", text) + bytes(512),
        "pigz.csv.gz": run("pigz -m -b 128 -p 2 -c", text),
        "pigz_independent.csv.gz": run("pigz -m -i -b 128 -p 2 -c", text),
        "bgzip.csv.gz": run("bgzip -c", text),
        "zstd.csv.zst": run("zstd -c", text),
        "zstd_long.csv.zst": run("zstd --long=25 --no-check -19 -c", text),
        "zstd_frames.csv.zst": run("zstd -c", one) + run("zstd -c", b"") + run("zstd -c", other),
        "zstd_skippable.csv.zst": skippable(b"note", 3) + run("zstd -c", one) + skippable(b"", 15) + run("zstd -c", other)
        + skippable(b"end", 0),
        "pzstd.csv.zst": run("pzstd -p 2 -c", text),
    }
    cases = []
    for file, content in contents.items():
        (folder / file).write_bytes(content)
        cases.append(Case(file, table))
    for file, content, name in (
        ("bzip2.csv.bz2", bz2.compress(text), "bzip2"),
        ("xz.csv.xz", lzma.compress(text), "xz"),
        ("lz4.csv.lz4", lz4(text), "LZ4"),
    ):
        (folder / file).write_bytes(content)
        cases.append(Case(file, f"compressed by {name}, expected gzip, zstd or none", "select(format=csv)"))
    return cases


def lz4(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as out:
        out.write(text)
    return sink.getvalue().to_pybytes()


def run(command: str, text: bytes) -> bytes:
    return subprocess.run(command.split(), input=text, stdout=subprocess.PIPE, check=True).stdout


def skippable(content: bytes, kind: int) -> bytes:
    """A skippable frame (RFC 8878, 3.1.2)."""
    return (0x184D2A50 + kind).to_bytes(4, "little") + len(content).to_bytes(4, "little") + content
