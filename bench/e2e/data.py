"""The objects of the store: photos, re-encoded photos, tables. Uploaded once per stack."""

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

from . import key_cloning

PHOTOS = ROOT / ".cache/photos"
DERIVED = ROOT / ".cache/e2e"
TABLES = ROOT / ".cache/tables"


class StoredData:
    """The data sets in the bucket of a stack. Methods upload a set if it is missing, and return its prefix."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.uploaded: set[str] = set()

    def photos(self, name: str, count: int) -> str:
        """`count` photos of a set; they repeat if the set has fewer."""
        return self.upload_once(f"{slug(name)}-{count}", lambda: originals(name), count)

    def resized(self, name: str, count: int, short: int) -> str:
        """The same photos re-encoded with that short side."""
        return self.upload_once(f"{slug(name)}-{short}-{count}", lambda: resized_photos(name, short), count)

    def upload_once(self, prefix: str, files: Callable[[], list[Path]], count: int) -> str:
        """Uploads `count` files under the prefix, unless they are uploaded."""
        if prefix not in self.uploaded:
            some = itertools.islice(itertools.cycle(files()), count)
            self.stack.upload({f"{prefix}/{index:06}.jpg": file for index, file in enumerate(some)})
            self.uploaded.add(prefix)
        return f"{prefix}/"

    def blobs(self, size: int, count: int) -> str:
        """Incompressible objects of one size in bytes."""
        prefix = f"blobs-{size}"
        if f"{prefix}-{count}" not in self.uploaded:
            noise = os.urandom(size)
            put = lambda index: self.stack.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{index}", Body=noise)
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(put, range(count)))
            self.uploaded.add(f"{prefix}-{count}")
        return prefix

    def tiny(self, count: int, progress: tqdm) -> str:
        """`count` keys of one small photo."""
        prefix = f"keys-{count}"
        if prefix not in self.uploaded:
            photo = io.BytesIO()
            Image.new("RGB", (16, 16), "gray").save(photo, "JPEG")
            body = photo.getvalue()
            # `key_cloning` requires names of one length.
            digits = max(7, len(str(count - 1)))
            first, *others = (f"{index:0{digits}}.jpg" for index in range(count))
            put = lambda name: self.stack.client.put_object(Bucket=BUCKET, Key=f"{prefix}/{name}", Body=body)
            progress.set_postfix_str(f"{count:,} keys")
            put(first)
            if "store" in self.stack.external_tiers:
                # An external store is only known to speak S3.
                with ThreadPoolExecutor(16) as pool:
                    list(pool.map(put, others))
            else:
                key_cloning.clone_keys(self.stack, prefix, first, others)
            self.uploaded.add(prefix)
        return f"{prefix}/"

    def labelled(self, folder: Path) -> None:
        """Labelled photos."""
        if "labelled" not in self.uploaded:
            names = [line.split(",")[0] for line in (folder / "labels.csv").read_text(encoding="utf-8").splitlines()]
            self.stack.upload({f"labelled/{name}": folder / "images" / name for name in names})
            self.uploaded.add("labelled")

    def shards(self, name: str, count: int) -> str:
        """The same photos as tar shards."""
        return self.upload_shards(f"{slug(name)}-shards-{count}/", name, count)

    def upload_shards(self, prefix: str, name: str, count: int, *options: object) -> str:
        """Uploads `count` photos of a set as tar shards under the prefix, unless they are uploaded."""
        if prefix not in self.uploaded:
            script, target = Path(__file__).parent / "peers/shards.py", ["--endpoint", self.stack.store, "--bucket", BUCKET]
            command = [sys.executable, script, self.local_folder(name, count), *target, "--prefix", prefix, *map(str, options)]
            subprocess.run(command, check=True, env=os.environ | programs.KEYS, capture_output=True)
            self.uploaded.add(prefix)
        return prefix

    def local_folder(self, name: str, count: int) -> Path:
        """`count` photos of a set on the trainer's disk."""
        folder = DERIVED / f"{slug(name)}-files-{count}"
        folder.mkdir(parents=True, exist_ok=True)
        for index, file in enumerate(itertools.islice(itertools.cycle(originals(name)), count)):
            link = folder / f"{index:06}.jpg"
            if not link.exists():
                # A link into a repository that has moved is broken.
                link.unlink(missing_ok=True)
                link.symlink_to(file.resolve())
        return folder

    def tables(self) -> dict[str, str]:
        """The keys of TPC-H's `lineitem` at scale 1, as generated and sorted by date."""
        keys = {"as generated": "lineitem.parquet", "sorted": "sorted.parquet"}
        if "tables" not in self.uploaded:
            self.stack.upload({path.name: path for path in lineitem()})
            self.uploaded.add("tables")
        return keys


def originals(name: str) -> list[Path]:
    """The photos of a set, or the matches of a pattern from the repository's root."""
    if "/" in name:
        files = sorted(ROOT.glob(name))
    else:
        files = sorted((PHOTOS / name).glob("*.jpg"))
    if not files:
        raise FileNotFoundError(f"no photos of {name!r}: `scripts/photos.sh all` creates those under {PHOTOS}")
    return files


def slug(name: str) -> str:
    """A set's name as part of keys and folder names."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def resized_photos(name: str, short: int) -> list[Path]:
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
    """The table files, generated once."""
    generated, ordered = TABLES / "lineitem.parquet", TABLES / "sorted.parquet"
    if not ordered.exists():
        TABLES.mkdir(parents=True, exist_ok=True)
        python = programs.ROOT / ".venv-e2e/bin/python"
        generate = [python.with_name("tpchgen-cli"), "parquet", "-s", "1", "--tables", "lineitem", "--output-dir", TABLES]
        subprocess.run(generate, check=True)
        sql = f"copy (select * from '{generated}' order by l_shipdate) to '{ordered}.new' (format parquet)"
        subprocess.run([python, "-c", f"import duckdb; duckdb.sql({sql!r})"], check=True)
        Path(f"{ordered}.new").rename(ordered)
    return [generated, ordered]
