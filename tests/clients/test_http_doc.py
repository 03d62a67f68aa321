"""docs/HTTP.md: its Python client works, and its table of types matches the answers."""

import io
import json
import re

import numpy as np
import pyarrow as pa
import pytest
import urllib3
from PIL import Image

from pipelines import SHORT, assert_within, reference
from stores import ROOT
from test_batches import presigned, read_batches

DOCUMENT = (ROOT / "docs/HTTP.md").read_text()
NAMES = ["jpeg_large.jpg", "jpeg_grey.jpg", "png_rgb.png", "webp_lossless.webp"]


@pytest.fixture(scope="module")
def read():
    """The function `read` of the only Python code in the document."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(code.splitlines()) < 32, "expected a short example"
    names = {}
    exec(compile(code, "docs/HTTP.md", "exec"), names)
    return names["read"]


@pytest.fixture
def keys(s3, bucket, photos):
    """Four photos with keys that need percent-encoding."""
    keys = {f"Z\u00fcrich/{index} +%2F.jpg": photos / name for index, name in enumerate(NAMES)}
    for key, path in keys.items():
        s3.upload_file(str(path), bucket, key)
    return keys


def test_the_client_reads_arrays_and_names_failed_samples(store, s3, bucket, keys, read):
    s3.put_object(Bucket=bucket, Key="none.jpg", Body=b"no photo")
    requested = [*list(keys)[:2], "none.jpg", *list(keys)[2:], "missing.jpg"]
    rows = {key: (error, value) for key, error, value in read(store.endpoint, bucket, requested, SHORT)}
    assert set(rows) == set(requested)
    for key, path in keys.items():
        error, value = rows[key]
        assert error is None
        assert_within(value, reference(path))
    for key, code in [("none.jpg", "UndecodableObject"), ("missing.jpg", "NoSuchKey")]:
        error, value = rows[key]
        assert error.startswith(code) and value is None


def test_the_client_reads_bytes(store, s3, bucket, keys, read):
    for key, error, value in read(store.endpoint, bucket, list(keys), f"{SHORT} | encode(png)"):
        assert error is None
        assert_within(np.asarray(Image.open(io.BytesIO(value))), reference(keys[key]))


def test_the_client_reads_half_precision(store, s3, bucket, keys, read):
    for key, error, value in read(store.endpoint, bucket, list(keys), f"{SHORT} | to_float | cast(f16)"):
        assert (error, value.dtype, value.shape) == (None, np.float16, (3, 48, 48))
        pixels = np.rint(value.astype(np.float32) * 255).astype(np.uint8)
        assert_within(pixels.transpose(1, 2, 0), reference(keys[key]))


def test_the_client_detects_a_truncated_answer(store, s3, bucket, keys, read, monkeypatch):
    def truncate(request):
        answer = urllib3.request("POST", request.full_url, body=request.data)
        # Keeps only the schema. pyarrow accepts a stream without an end marker, so the client has to count the rows.
        return io.BytesIO(answer.data[: schema_length(answer.data)])

    monkeypatch.setattr("urllib.request.urlopen", truncate)
    with pytest.raises(OSError, match="4 rows are missing"):
        list(read(store.endpoint, bucket, list(keys), SHORT))


def schema_length(stream: bytes) -> int:
    """Length in bytes of the first message of an Arrow stream: a marker, the length of its metadata, the metadata."""
    return 8 + int.from_bytes(stream[4:8], "little")


def types() -> list[tuple[str, str]]:
    """The rows with an example in the table of types of the document: pipeline and type."""
    rows = [line.split(" | ") for line in DOCUMENT.replace("\\|", "\\").splitlines() if line.startswith("| ")]
    rows = [[cell.strip("| `").replace("\\", "|") for cell in row] for row in rows if len(row) == 3]
    found = [(pipeline, kind) for _, pipeline, kind in rows if kind.split("[")[0] in ("fixed_shape_tensor", "large_binary", "struct")]
    assert len(found) >= 12
    return [(pipeline, kind) for pipeline, kind in found if pipeline]


def type_name(kind: pa.DataType) -> str:
    """An Arrow type as written in the document."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return f"fixed_shape_tensor[{kind.value_type}, {list(kind.shape)}]"
    return "struct" if pa.types.is_struct(kind) else str(kind)


def request_batch(store, s3, bucket, keys, pipeline: str, **more) -> tuple[pa.Schema, list[dict]]:
    presign, samples = presigned(s3, bucket, keys)
    request = {"pipeline": pipeline, "presign": presign, "samples": samples} | more
    answer = urllib3.request(
        "POST", f"{store.endpoint}/_pushdown/v1/batch", body=json.dumps(request), preload_content=False, retries=False
    )
    batches = read_batches(answer)
    assert all(batch["error"].null_count == len(batch) for batch in batches), batches[0]["error"]
    return batches[0].schema, [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize(("pipeline", "kind"), types())
def test_values_have_the_types_of_the_table(store, s3, bucket, keys, pipeline, kind):
    requested = list(keys)
    if pipeline.startswith("select"):
        s3.put_object(Bucket=bucket, Key="t.csv", Body=b"n,text\n1,a\n2,b\n")
        requested = ["t.csv"]
    schema, rows = request_batch(store, s3, bucket, requested, pipeline)
    field = schema.field("value")
    assert type_name(field.type) == kind
    assert ("scale" in schema.names) == ("quantize" in pipeline)
    if "quantize" in pipeline:
        assert schema.field("scale").type == pa.float32()
    if "bf16" in pipeline:
        assert field.metadata[b"pushdown.dtype"] == b"bf16"
    if kind == "struct":
        fields = {name: str(field.type.field(name).type) for name in ("kind", "dtype", "shape", "layout", "scale", "data")}
        expected = ["string", "string", "list<item: int64>", "string", "float", "large_binary"]
        assert list(fields.values()) == expected and field.type.num_fields == len(fields)
    if pipeline.startswith("select"):
        (row,) = rows
        assert row["value"]["kind"] == "table"
        assert pa.ipc.open_stream(row["value"]["data"]).read_all().to_pydict() == {"n": [1, 2]}


@pytest.mark.parametrize("split", ["smallest", 0, 1])
def test_the_value_type_depends_on_the_split(store, s3, bucket, keys, split):
    schema, _ = request_batch(store, s3, bucket, list(keys), "decode | resize(8, 6)", split=split)
    assert type_name(schema.field("value").type) == {"smallest": "struct", 0: "large_binary", 1: "struct"}[split]
