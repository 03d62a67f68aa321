"""Commands of a page, each with what it prints: read from the page, run, and compared.

In what is printed, `..` stands for any text within a line, and a line of `..` for any lines. Runs of spaces are one.
"""

import dataclasses
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator

TIMEOUT_SECONDS = 60
# Fences of blocks that are compared. Others, such as `sh` and `toml`, are remedies to read.
FENCES = ("console", "python", "text", "log")


@dataclasses.dataclass
class Section:
    """A heading of the page, the settings in the comment after it, and its blocks in order: fence and text."""

    title: str
    settings: str
    blocks: list[tuple[str, str]]

    @property
    def fences(self) -> set[str]:
        return {fence for fence, _ in self.blocks}


def sections(page: str) -> list[Section]:
    """The sections with a block that is compared."""
    parts = re.split(r"^###? (.+)$", page, flags=re.MULTILINE)
    found = []
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        comment = re.search(r"^<!-- test: (.*) -->$", text, re.MULTILINE)
        blocks = [block for block in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) if block[0] in FENCES]
        if blocks:
            found.append(Section(title, comment[1] if comment else "", blocks))
    return found


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, and what each one prints."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        command = [lines.pop(0)]
        while command[-1].endswith("\\\n"):
            command.append(lines.pop(0))
        yield "".join(command), "".join(lines)


def pattern(expected: str) -> re.Pattern[str]:
    """What a program may print where the page has this text."""
    lines = [
        "(?:.*\n)*?" if line == ".." else ".*".join(map(re.escape, line.rstrip().split(".."))) + " ?\n"
        for line in single_spaced(expected).splitlines()
    ]
    return re.compile("".join(lines))


def single_spaced(text: str) -> str:
    return re.sub(" +", " ", text)


def differs(expected: str, found: str) -> str | None:
    """Why a program did not print what the page has, if it did not."""
    if found and not found.endswith("\n"):
        found += "\n"
    return None if pattern(expected).fullmatch(single_spaced(found)) else f"expected\n{expected}\nfound\n{found}"


@dataclasses.dataclass
class Addresses:
    """Addresses of the page, and those that are used instead."""

    used: dict[str, str]

    def to_used(self, text: str) -> str:
        # The shell opens a connection by the path /dev/tcp/HOST/PORT.
        paths = {page.replace(":", "/"): used.replace(":", "/") for page, used in self.used.items()}
        return self._replace(text, self.used | paths)

    def to_page(self, text: str) -> str:
        return self._replace(text, {used: page for page, used in self.used.items()})

    def _replace(self, text: str, names: dict[str, str]) -> str:
        if not names:
            return text
        either = "|".join(map(re.escape, names))
        return re.sub(rf"({either})(?!\d)", lambda match: names[match[1]], text)


def run(command: list[str], folder: pathlib.Path, environment: dict[str, str], addresses: Addresses) -> str:
    """What a command prints on both streams, with the addresses of the page."""
    ended = subprocess.run(
        [addresses.to_used(argument) for argument in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    return addresses.to_page(ended.stdout.decode(errors="replace").replace("\r\n", "\n"))


def run_console(
    prelude: str, blocks: list[str], folder: pathlib.Path, environment: dict[str, str], addresses: Addresses
) -> list[tuple[str, str, str]]:
    """Runs the commands of console blocks in one shell. Returns each one, what it should print, and what it printed."""
    steps = [step for block in blocks for step in commands(block)]
    script = prelude + "".join(f"{command}printf '\\036'\n" for command, _ in steps)
    printed = run(["bash", "-c", script], folder, environment, addresses).split("\x1e")
    assert len(printed) == len(steps) + 1, printed
    return [(command, expected, found) for (command, expected), found in zip(steps, printed, strict=False)]


def photos_of_the_page(store: pathlib.Path, photos: pathlib.Path) -> None:
    """The objects of the page: photos by class, and a folder with a photo, another file and a hidden one."""
    for name, photo in {
        "train/cats/1.jpg": "jpeg_large.jpg",
        "train/cats/2.jpg": "jpeg_large_progressive.jpg",
        "train/dogs/1.jpg": "jpeg_large_grey.jpg",
        "train/dogs/2.jpg": "jpeg_portrait.jpg",
        "mixed/1.jpg": "jpeg_large.jpg",
    }.items():
        target = store / "photos" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((photos / photo).read_bytes())
    (store / "photos/mixed/2.jpg").write_text("<html>not a photo</html>\n")
    (store / "photos/mixed/.DS_Store").write_text("hidden")


def environment_of(folder: pathlib.Path, *programs: pathlib.Path) -> dict[str, str]:
    """The environment of the page's reader: nothing of the user's but the programs."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / "config").write_text("[default]\ns3 =\n  signature_version = s3v4\n")
    (home / "credentials").touch()
    return {
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "AWS_CONFIG_FILE": str(home / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
        # The default ports may be in use.
        "PUSHDOWN_LISTEN": "127.0.0.1:0",
        "PUSHDOWN_ADMIN_LISTEN": "127.0.0.1:0",
    }


def check_log(expected: str, log: Callable[[], str], addresses: Addresses) -> None:
    """Each line of the page is a line of the gateway's log."""
    lines = addresses.to_page(log()).splitlines(keepends=True)
    for line in expected.splitlines(keepends=True):
        assert any(pattern(line).fullmatch(single_spaced(found)) for found in lines), f"expected\n{line}in the log\n{''.join(lines)}"
