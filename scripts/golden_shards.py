"""Writes pushdown/shard/tests/golden: small archives by Python's tarfile and zipfile, GNU tar and Info-ZIP.

`members.json` has what tarfile and zipfile read in each: name, offset, bytes of headers and size of each file. Archives that must
be refused have a part of the error instead. A content is its name and a bar, repeated and cut to its size.

It needs no packages of Python, but `tar` (GNU) and `zip` (Info-ZIP). Each run writes the same bytes, but for the process number in
two sparse archives of GNU tar.
"""

import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "pushdown/shard/tests/golden"
TIME = 1_000_000_000.25
SIZES = {
    "0001.jpg": 513,
    "0001.cls": 1,
    "0002.JPG": 512,
    "0002.seg.png": 1500,
    "empty.json": 0,
    "folder/inner/0003.txt": 20,
    "umläute/ö.txt": 9,
}
# For the limits of the fields: 100 bytes fit, 101 need a prefix or an extension, and so do parts that are too long for both.
LONG_SIZES = {
    "n" * 96 + ".jpg": 5,
    "p" * 90 + "/" + "n" * 96 + ".jpg": 6,
    "n" * 101 + ".jpg": 7,
    "p" * 156 + "/" + "n" * 96 + ".jpg": 8,
    "p" * 250 + "/" + "ö" * 120 + ".jpg": 9,
}
# What fits in a ustar header.
USTAR_SIZES = SIZES | dict(list(LONG_SIZES.items())[:2])
ALL_SIZES = SIZES | LONG_SIZES


def content(name: str, size: int) -> bytes:
    piece = f"{name}|".encode()
    return (piece * (size // len(piece) + 1))[:size]


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    refused = {}
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        python_tars(refused)
        gnu_tars(tree, refused)
        python_zips(refused)
        info_zips(tree, refused)
    cases = []
    for path in sorted(FOLDER.iterdir()):
        case: dict[str, object] = {"file": path.name}
        if path.name in refused:
            case["error"] = refused.pop(path.name)
        else:
            case["members"] = zip_members(path) if path.suffix == ".zip" else tar_members(path)
        cases.append(case)
    assert not refused, refused
    text = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (FOLDER / "members.json").write_text(f"[\n{text}\n]\n")
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(cases)} archives, {size} bytes")


def python_tars(refused: dict[str, str]) -> None:
    for name, form in ("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT):
        sizes = USTAR_SIZES if name == "ustar" else ALL_SIZES
        with tarfile.open(FOLDER / f"python_{name}.tar", "w", format=form) as tar:
            folder = tarfile.TarInfo("folder")
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
            for member, size in sizes.items():
                info = tarfile.TarInfo(member)
                info.size = size
                # A time with a fraction and a large number are in pax headers, or in base 256.
                info.mtime = TIME if form == tarfile.PAX_FORMAT else int(TIME)
                info.uid = 0 if form == tarfile.USTAR_FORMAT else 3_000_000
                tar.addfile(info, io.BytesIO(content(member, size)))
    # The header of `git archive`.
    comment = {"comment": "0123456789abcdef0123456789abcdef01234567"}
    for name, headers, error in (
        ("comment", comment, None),
        ("path", {"path": "x.jpg"}, "global pax header"),
        ("size", {"size": "7"}, "global pax header"),
    ):
        path = FOLDER / f"python_pax_global_{name}.tar"
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers=headers) as tar:
            info = tarfile.TarInfo("0001.jpg")
            info.size = 5
            tar.addfile(info, io.BytesIO(content("0001.jpg", 5)))
        if error is not None:
            refused[path.name] = error
    for kind, name in (
        (tarfile.LNKTYPE, "hard_link"),
        (tarfile.SYMTYPE, "symbolic_link"),
        (tarfile.CHRTYPE, "character_device"),
        (tarfile.BLKTYPE, "block_device"),
        (tarfile.FIFOTYPE, "named_pipe"),
    ):
        with tarfile.open(FOLDER / f"python_gnu_{name}.tar", "w", format=tarfile.GNU_FORMAT) as tar:
            info = tarfile.TarInfo("0001.jpg")
            info.type = kind
            info.linkname = "t" * 120 if kind == tarfile.SYMTYPE else "0000.jpg"
            tar.addfile(info)


def gnu_tars(tree: pathlib.Path, refused: dict[str, str]) -> None:
    def run(archive: str, *arguments: str) -> None:
        options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", f"--mtime=@{TIME}", "--mode=u=rw,go=r,a+X"]
        subprocess.run(["tar", "-C", tree, "-cf", FOLDER / archive, *options, *arguments], check=True)

    fill(tree, USTAR_SIZES)
    run("gnu_tar_v7.tar", "--format=v7", *(name for name in SIZES))
    run("gnu_tar_ustar.tar", "--format=ustar", *(path.name for path in sorted(tree.iterdir())))
    clear(tree)
    fill(tree, ALL_SIZES)
    run("gnu_tar_gnu.tar", "--format=gnu", ".")
    # Without the times that change with each run.
    run("gnu_tar_pax.tar", "--format=pax", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", ".")
    clear(tree)
    with open(tree / "0001.bin", "wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    for form, version in ("gnu", "0.0"), ("pax", "0.0"), ("pax", "0.1"), ("pax", "1.0"):
        options = [f"--format={form}", "-S", f"--sparse-version={version}"]
        if form == "pax":
            options.append("--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime")
        archive = f"gnu_tar_{form}_sparse_{version}.tar"
        run(archive, *options, "0001.bin")
        refused[archive] = "a sparse file"
    clear(tree)


def python_zips(refused: dict[str, str]) -> None:
    def write(
        archive: str, sizes: dict[str, int], *, comment: bytes = b"", method: int = zipfile.ZIP_STORED, **options: bool
    ) -> None:
        with zipfile.ZipFile(FOLDER / archive, "w", method) as file:
            file.writestr(zipfile.ZipInfo("folder/"), b"")
            file.comment = comment
            for name, size in sizes.items():
                info = zipfile.ZipInfo(name)
                info.compress_type = method
                with file.open(info, "w", **options) as entry:
                    entry.write(content(name, size))

    write("python.zip", ALL_SIZES)
    write("python_comment.zip", SIZES, comment=b"a comment")
    write("python_zip64_fields.zip", SIZES, force_zip64=True)
    write("python_deflated.zip", SIZES, method=zipfile.ZIP_DEFLATED)
    refused["python_deflated.zip"] = "compressed by method 8"
    with zipfile.ZipFile(FOLDER / "python_empty.zip", "w"):
        pass
    # A stream that cannot seek gets its sizes after the contents.
    stream = Stream()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(zipfile.ZipInfo("0001.jpg"), content("0001.jpg", 5))
    (FOLDER / "python_stream.zip").write_bytes(stream.getvalue())
    # Records of 64 bits at the end, as for more than 65,535 members.
    limit, zipfile.ZIP_FILECOUNT_LIMIT = zipfile.ZIP_FILECOUNT_LIMIT, 3
    write("python_zip64_end.zip", SIZES, comment=b"a comment")
    zipfile.ZIP_FILECOUNT_LIMIT = limit


def info_zips(tree: pathlib.Path, refused: dict[str, str]) -> None:
    def run(archive: str, *arguments: str) -> None:
        environment = os.environ | {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
        subprocess.run(["zip", "-q", "-0", FOLDER / archive, *arguments], check=True, cwd=tree, env=environment)

    fill(tree, SIZES)
    # Folders by name: a listing would change their times of access, which are in the archive.
    names = [name for name in SIZES if name.isascii()]
    run("info_zip.zip", "folder", "folder/inner", *names)
    run("info_zip_no_extra.zip", "-X", *names)
    run("info_zip_unmarked_name.zip", "-X", "umläute/ö.txt")
    refused["info_zip_unmarked_name.zip"] = "marked as UTF-8"
    os.symlink("0001.jpg", tree / "link.jpg")
    os.utime(tree / "link.jpg", (TIME, TIME), follow_symlinks=False)
    run("info_zip_link.zip", "-X", "-y", "link.jpg")
    refused["info_zip_link.zip"] = "a symbolic link"
    clear(tree)


class Stream(io.BytesIO):
    """A stream that cannot seek."""

    def seekable(self) -> bool:
        return False

    def seek(self, *arguments: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


def fill(tree: pathlib.Path, sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(name, size))
    for path in [*tree.rglob("*"), tree]:
        os.utime(path, (TIME, TIME))


def clear(tree: pathlib.Path) -> None:
    for path in tree.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def tar_members(path: pathlib.Path) -> list[list[object]]:
    with tarfile.open(path) as tar:
        return [[info.name, info.offset, info.offset_data - info.offset, info.size] for info in tar if info.isreg()]


def zip_members(path: pathlib.Path) -> list[list[object]]:
    file = path.read_bytes()
    members: list[list[object]] = []
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
            if not info.is_dir():
                name_bytes, extra_bytes = struct.unpack_from("<HH", file, info.header_offset + 26)
                members.append([info.filename, info.header_offset, 30 + name_bytes + extra_bytes, info.file_size])
    return members


if __name__ == "__main__":
    main()
