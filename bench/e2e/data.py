"""What lies in the store: photos, re-encoded photos, tables. Uploaded once for each stack."""

import io
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import programs
from PIL import Image
from programs import ROOT
from stack import BUCKET, Stack
from tqdm import tqdm

from . import many

PHOTOS = ROOT / ".cache/photos"
DERIVED = ROOT / ".cache/e2e"
TABLES = ROOT / ".cache/tables"


class Data:
    """What a stack's bucket holds by now."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.there: set[str] = set()

    def photos(self, name: str, count: int) -> str:
        """So many photos of a set, again and again where it has fewer. The prefix they are under."""
        return self.once(f"{slug(name)}-{count}", lambda: originals(name), count)

    def resized(self, name: str, count: int, short: int) -> str:
        """The same, re-encoded with that short side: another layout at rest."""
        return self.once(f"{slug(name)}-{short}-{count}", lambda: derived(name, short), count)

    def once(self, prefix: str, files: Callable[[], list[Path]], count: int) -> str:
        """Uploads these files, unless they are there."""
        if prefix not in self.there:
            some = itertools.islice(itertools.cycle(files()), count)
            self.stack.upload({f"{prefix}/{index:06}.jpg": file for index, file in enumerate(some)})
            self.there.add(prefix)
        return f"{prefix}/"

    def blobs(self, size: int, count: int) -> str:
        """Objects of one size that do not compress. The prefix they are under."""
        prefix = f"blobs-{size}"
        if f"{prefix}-{count}" not in self.there:
            noise = os.urandom(size)
            put = lambda index: self.stack.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{index}", Body=noise)
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(put, range(count)))
            self.there.add(f"{prefix}-{count}")
        return prefix

    def tiny(self, count: int, progress: tqdm) -> str:
        """So many keys of the same small photo. The prefix they are under."""
        prefix = f"keys-{count}"
        if prefix not in self.there:
            photo = io.BytesIO()
            Image.new("RGB", (16, 16), "gray").save(photo, "JPEG")
            body = photo.getvalue()
            # All of one length, as `many` needs them.
            digits = max(7, len(str(count - 1)))
            first, *others = (f"{index:0{digits}}.jpg" for index in range(count))
            put = lambda name: self.stack.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=body)
            progress.set_postfix_str(f"{count:,} keys")
            put(first)
            if "store" in self.stack.elsewhere:
                # Whatever store that is, all that is known of it is S3.
                with ThreadPoolExecutor(16) as pool:
                    list(pool.map(put, others))
            else:
                many.names(self.stack, prefix, first, others)
            self.there.add(prefix)
        return f"{prefix}/"

    def labelled(self, folder: Path) -> None:
        """Labelled photos."""
        if "labelled" not in self.there:
            names = [line.split(",")[0] for line in (folder / "labels.csv").read_text(encoding="utf-8").splitlines()]
            self.stack.upload({f"labelled/{name}": folder / "images" / name for name in names})
            self.there.add("labelled")

    def shards(self, name: str, count: int) -> str:
        """The same photos as tar shards: another layout at rest. The prefix they are under."""
        prefix = f"{slug(name)}-shards-{count}/"
        if prefix not in self.there:
            python, script = sys.executable, Path(__file__).parent / "peers/shards.py"
            where = ["--endpoint", self.stack.store, "--bucket", BUCKET, "--prefix", prefix]
            env = os.environ | programs.KEYS
            subprocess.run([python, script, self.folder(name, count), *where], check=True, env=env, capture_output=True)
            self.there.add(prefix)
        return prefix

    def folder(self, name: str, count: int) -> Path:
        """So many photos of a set on this side's disk."""
        place = DERIVED / f"{slug(name)}-files-{count}"
        place.mkdir(parents=True, exist_ok=True)
        for index, file in enumerate(itertools.islice(itertools.cycle(originals(name)), count)):
            if not (place / f"{index:06}.jpg").exists():
                (place / f"{index:06}.jpg").symlink_to(file.resolve())
        return place

    def tables(self) -> dict[str, str]:
        """`lineitem` of TPC-H at scale 1, as it is made and sorted by date: keys by what they are."""
        keys = {"as made": "lineitem.parquet", "sorted": "sorted.parquet"}
        if "tables" not in self.there:
            self.stack.upload({path.name: path for path in lineitem()})
            self.there.add("tables")
        return keys


def originals(name: str) -> list[Path]:
    """The photos of a set, or those that a pattern from the repository's root names."""
    if "/" in name:
        found = sorted(ROOT.glob(name))
    else:
        found = sorted((PHOTOS / name).glob("*.jpg"))
    if not found:
        raise FileNotFoundError(f"no photos of {name!r}: scripts/photos.sh all makes those under {PHOTOS}")
    return found


def slug(name: str) -> str:
    """A set's name, as a part of keys and of folders' names."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def derived(name: str, short: int) -> list[Path]:
    """The photos of a set with that short side, as JPEG of quality 90."""
    folder = DERIVED / f"{slug(name)}-{short}"
    folder.mkdir(parents=True, exist_ok=True)
    for file in originals(name):
        if not (folder / file.name).exists():
            photo = Image.open(file).convert("RGB")
            scale = short / min(photo.size)
            size = tuple(max(short, int(side * scale)) for side in photo.size)
            photo.resize(size, Image.Resampling.BILINEAR).save(folder / file.name, quality=90)
    return sorted(folder.glob("*.jpg"))


def lineitem() -> list[Path]:
    """The table, generated once."""
    made, ordered = TABLES / "lineitem.parquet", TABLES / "sorted.parquet"
    if not ordered.exists():
        TABLES.mkdir(parents=True, exist_ok=True)
        python = programs.ROOT / ".venv-e2e/bin/python"
        generate = [python.with_name("tpchgen-cli"), "parquet", "-s", "1", "--tables", "lineitem", "--output-dir", TABLES]
        subprocess.run(generate, check=True)
        sql = f"copy (select * from '{made}' order by l_shipdate) to '{ordered}.new' (format parquet)"
        subprocess.run([python, "-c", f"import duckdb; duckdb.sql({sql!r})"], check=True)
        Path(f"{ordered}.new").rename(ordered)
    return [made, ordered]
