"""Photos in an image column, as Hugging Face `datasets` stores them: Parquet with structs of `bytes` and `path`, and labels."""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
# What `datasets` reads its features from.
FEATURES = {"image": {"_type": "Image"}, "label": {"dtype": "int64", "_type": "Value"}}
SCHEMA = pa.schema(
    {"image": IMAGE, "label": pa.int64()}, metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})}
)
# Photos of a file, and of a row group, which in image sets of `datasets` has 100.
FILE_ROWS, ROW_GROUP_ROWS = 200, 100


def files(photos: Sequence[Path], labels: Sequence[int]) -> Iterator[bytes]:
    """The files, one at a time."""
    for start in range(0, len(photos), FILE_ROWS):
        some = photos[start : start + FILE_ROWS]
        images = [{"bytes": photo.read_bytes(), "path": photo.name} for photo in some]
        table = pa.table({"image": images, "label": labels[start : start + FILE_ROWS]}, schema=SCHEMA)
        out = io.BytesIO()
        pq.write_table(table, out, row_group_size=ROW_GROUP_ROWS)
        yield out.getvalue()
