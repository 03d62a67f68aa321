"""s3fs and the S3 client of pyarrow: file systems and data sets of Parquet files."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
import s3fs

from stores import NO_TRAILERS, REGION

# pyarrow sends the checksums of what it writes in trailers.
PYARROW_WRITES = pytest.mark.store_lacks("ceph", NO_TRAILERS)


def s3fs_file_system(store):
    return s3fs.S3FileSystem(
        key=store.keys.access,
        secret=store.keys.secret,
        endpoint_url=store.endpoint,
        client_kwargs={"region_name": REGION},
        skip_instance_cache=True,
        use_listings_cache=False,
    )


def pyarrow_file_system(store):
    return pyarrow.fs.S3FileSystem(
        access_key=store.keys.access,
        secret_key=store.keys.secret,
        region=REGION,
        scheme="http",
        endpoint_override=store.endpoint.removeprefix("http://"),
        allow_bucket_creation=False,
    )


@pytest.fixture
def table() -> pa.Table:
    rows = 20_000
    return pa.table(
        {
            "user": pa.array(range(rows), pa.int64()),
            "label": pa.array([index % 3 for index in range(rows)], pa.int8()),
            "text": [f"row {index} ü" for index in range(rows)],
        }
    )


@pytest.mark.parametrize(
    "file_system",
    [pytest.param(s3fs_file_system, id="s3fs"), pytest.param(pyarrow_file_system, id="pyarrow", marks=PYARROW_WRITES)],
)
def test_a_data_set_of_parquet_files(store, bucket, table, file_system):
    files = file_system(store)
    partitioning = ds.partitioning(pa.schema([("label", pa.int8())]), flavor="hive")
    ds.write_dataset(
        table, f"{bucket}/set", format="parquet", partitioning=partitioning, filesystem=files, max_rows_per_group=1000,
        create_dir=False,
    )  # fmt: skip
    found = ds.dataset(f"{bucket}/set", format="parquet", partitioning=partitioning, filesystem=files)
    assert len(found.files) == 3
    assert found.count_rows() == table.num_rows
    condition = (pc.field("label") == 1) & (pc.field("user") >= 19_000)
    part = found.to_table(columns=["user", "text"], filter=condition).sort_by("user")
    assert part.equals(table.filter(condition).select(["user", "text"]))


@pytest.mark.parametrize("file_system", [s3fs_file_system, pyarrow_file_system], ids=["s3fs", "pyarrow"])
def test_one_column_of_one_parquet_file(store, s3, bucket, table, tmp_path, file_system):
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=1000)
    s3.upload_file(str(tmp_path / "table.parquet"), bucket, "table.parquet")
    read = pq.read_table(f"{bucket}/table.parquet", columns=["user"], filesystem=file_system(store))
    assert read["user"].equals(table["user"])


def test_s3fs_as_a_file_system(store, bucket):
    files = s3fs_file_system(store)
    with files.open(f"{bucket}/a folder/ü.txt", "wb") as file:
        file.write(b"line\n" * 100)
    assert files.ls(f"{bucket}/a folder") == [f"{bucket}/a folder/ü.txt"]
    assert files.info(f"{bucket}/a folder/ü.txt")["size"] == 500
    with files.open(f"{bucket}/a folder/ü.txt", "rb", block_size=64) as file:
        file.seek(495)
        assert file.read() == b"line\n"
    files.rm(f"{bucket}/a folder/ü.txt")
    assert not files.exists(f"{bucket}/a folder/ü.txt")


def test_s3fs_finds_by_pattern(store, bucket):
    files = s3fs_file_system(store)
    files.pipe(f"{bucket}/a folder/ü.txt", b"x")
    assert files.glob(f"{bucket}/**/*.txt") == [f"{bucket}/a folder/ü.txt"]
    files.mv(f"{bucket}/a folder/ü.txt", f"{bucket}/moved.txt")
    assert files.find(bucket) == [f"{bucket}/moved.txt"]


@PYARROW_WRITES
def test_pyarrow_as_a_file_system(store, bucket):
    files = pyarrow_file_system(store)
    with files.open_output_stream(f"{bucket}/folder/stream.bin", metadata={"Content-Type": "text/x-test"}) as stream:
        for _ in range(12):
            stream.write(b"x" * (1 << 20))
    info = files.get_file_info(f"{bucket}/folder/stream.bin")
    assert info.size == 12 << 20
    with files.open_input_file(f"{bucket}/folder/stream.bin") as file:
        file.seek((12 << 20) - 3)
        assert file.read() == b"xxx"
    listed = files.get_file_info(pyarrow.fs.FileSelector(f"{bucket}/folder", recursive=True))
    assert [entry.path for entry in listed if entry.is_file] == [f"{bucket}/folder/stream.bin"]
    files.delete_file(f"{bucket}/folder/stream.bin")
