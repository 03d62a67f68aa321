"""Reads a table in Python, once per line on standard input. Usage: METHOD ENDPOINT BUCKET KEY

The method `pushed` GETs from a gateway with a pipeline header; others read from the store.

Prints a line of JSON per read: CPU seconds, seconds, rows, and bytes of the answer as Arrow. Imports and the first connection
are not included. The keys are those of the environment.
"""

import datetime
import io
import json
import os
import pathlib
import sys
import time
from collections.abc import Callable

import boto3
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
from botocore.config import Config

from e2e.query import COLUMNS, FROM, PIPELINE, TO

METHOD, ENDPOINT, BUCKET, KEY = sys.argv[1:]
ACCESS = {"access_key": os.environ["AWS_ACCESS_KEY_ID"], "secret_key": os.environ["AWS_SECRET_ACCESS_KEY"]}
REGION = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
SCHEME, _, HOST = ENDPOINT.partition("://")
day = lambda text: datetime.date.fromisoformat(text)
SQL = f"select {', '.join(COLUMNS)} from {{}} where l_shipdate >= date '{FROM}' and l_shipdate < date '{TO}'"
FILTER = (pc.field("l_shipdate") >= day(FROM)) & (pc.field("l_shipdate") < day(TO))


def files() -> pyarrow.fs.S3FileSystem:
    return pyarrow.fs.S3FileSystem(endpoint_override=HOST, scheme=SCHEME, region=REGION, **ACCESS)


def by_pyarrow() -> pa.Table:
    dataset = ds.dataset(f"{BUCKET}/{KEY}", filesystem=files(), format="parquet")
    return dataset.to_table(columns=COLUMNS, filter=FILTER)


def by_duckdb() -> pa.Table:
    """DuckDB over a pyarrow dataset, with projection and filter pushed down: its wheel has no reader of objects."""
    object_ = ds.dataset(f"{BUCKET}/{KEY}", filesystem=files(), format="parquet")  # noqa: F841
    return duckdb.sql(SQL.format("object_")).to_arrow_table()


def by_duckdb_httpfs() -> Callable[[], pa.Table]:
    """DuckDB's reader of S3 and Parquet: one database for all rounds, without an object cache."""
    import duckdb_extension_httpfs

    (extension,) = pathlib.Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension")
    database = duckdb.connect(config={"autoinstall_known_extensions": False, "enable_external_file_cache": False})
    # By path: no search on the network, and no installation below the user's home.
    database.load_extension(str(extension))
    settings = {"key_id": ACCESS["access_key"], "secret": ACCESS["secret_key"], "region": REGION, "endpoint": HOST}
    settings |= {"url_style": "path", "use_ssl": str(SCHEME == "https").lower()}
    quoted = (f"{name} '{value.replace(chr(39), chr(39) * 2)}'" for name, value in settings.items())
    database.execute(f"create secret (type s3, {', '.join(quoted)})")

    def read() -> pa.Table:
        return database.execute(SQL.format("read_parquet(?)"), [f"s3://{BUCKET}/{KEY}"]).to_arrow_table()

    return read


def client():
    return boto3.client(
        "s3",
        endpoint_url=ENDPOINT,
        aws_access_key_id=ACCESS["access_key"],
        aws_secret_access_key=ACCESS["secret_key"],
        region_name=REGION,
        # A bucket's name in front of the host name usually does not resolve.
        config=Config(s3={"addressing_style": "path"}),
    )


def by_download() -> pa.Table:
    whole = io.BytesIO()
    client().download_fileobj(BUCKET, KEY, whole)
    return pq.read_table(whole, columns=COLUMNS, filters=FILTER)


def pushed() -> Callable[[], pa.Table]:
    """One client for all rounds, as pyarrow has one pool of connections."""
    gateway = client()
    add_pipeline = lambda request, **_: request.headers.add_header("x-pushdown-pipeline", PIPELINE)
    gateway.meta.events.register("before-sign.s3.GetObject", add_pipeline)

    def read() -> pa.Table:
        body = gateway.get_object(Bucket=BUCKET, Key=KEY)["Body"].read()
        return pa.ipc.open_stream(body).read_all()

    return read


# Methods with a set-up before the first round.
PREPARED = {"pushed": pushed, "duckdb-httpfs": by_duckdb_httpfs}
METHODS = {"pyarrow": by_pyarrow, "duckdb": by_duckdb, "download": by_download}
read = PREPARED[METHOD]() if METHOD in PREPARED else METHODS[METHOD]
for _ in sys.stdin:
    cpu, clock = time.process_time(), time.monotonic()
    table = read()
    figures = {"cpu": time.process_time() - cpu, "seconds": time.monotonic() - clock}
    print(json.dumps(figures | {"rows": table.num_rows, "bytes": table.nbytes}), flush=True)
# Library threads that run at interpreter exit have aborted the process.
os._exit(0)
