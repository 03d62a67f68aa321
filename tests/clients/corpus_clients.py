"""What clients do in the corpus: a function for each.

It gets an endpoint in front of a gateway, a bucket with photos and tables (`store_objects`), and an empty folder.
"""

import base64
import datetime
import hashlib
import http.client
import json
import pathlib
import random
import subprocess
import sys
import urllib.request
from urllib.parse import quote

import obstore
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from obstore.store import S3Store
from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client

from pipelines import SHORT, with_parameter, with_pipeline
from stores import ACCESS, REGION, ROOT, SECRET, Store, gateway_binary
from test_file_systems import pyarrow_file_system, s3fs_file_system

KEY = "folder/with space +:()!*'@,;=&$é%2F?#~.txt"
PHOTO = ROOT / "testkit/fixtures/photos/jpeg_grey.jpg"
BODY = b"0123456789"
PART_BYTES = 5 << 20
# Random requests of botocore.
RANDOM_REQUESTS = 40


def store_objects(client, bucket: str, folder: pathlib.Path) -> None:
    """Stores what the clients read."""
    pq.write_table(pa.table({"label": list(range(100))}), folder / "table.parquet")
    for index in range(3):
        client.upload_file(str(PHOTO), bucket, f"photos/{index} +é.jpg")
        client.upload_file(str(folder / "table.parquet"), bucket, f"tables/{index}.parquet")


def client_of(endpoint: str, **options):
    """A boto3 client."""
    return store_of(endpoint).client(**options)


def store_of(endpoint: str) -> Store:
    return Store("", endpoint, "", pathlib.Path())


def use_boto3(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    client = client_of(endpoint)
    place = {"Bucket": bucket, "Key": KEY}
    client.put_object(**place, Body=BODY, ContentType="text/x-test", Metadata={"label": "7", "note": "a  b"})
    client.put_object(**place, Body=BODY, ChecksumAlgorithm="SHA256", Tagging="split=train")
    client.put_object(**place, Body=BODY, ContentMD5=base64.b64encode(hashlib.md5(BODY).digest()).decode())
    client_of(endpoint, config={"s3": {"payload_signing_enabled": False}}).put_object(**place, Body=BODY)
    client.head_object(**place)
    assert client.get_object(**place, Range="bytes=2-5")["Body"].read() == b"2345"
    client.get_object(**place, ResponseContentType="text/plain", ChecksumMode="ENABLED")
    client.get_object_tagging(**place)
    client.put_object_tagging(**place, Tagging={"TagSet": [{"Key": "split", "Value": "test"}]})
    client.copy_object(Bucket=bucket, Key="copy +é", CopySource=place)
    client.list_buckets()
    client.head_bucket(Bucket=bucket)
    client.get_bucket_location(Bucket=bucket)
    client.list_objects(Bucket=bucket, Prefix="folder/", Delimiter="/")
    client.list_objects_v2(Bucket=bucket, Prefix="folder/with space +", MaxKeys=1, StartAfter="a b")
    client.list_object_versions(Bucket=bucket)
    upload = {"Bucket": bucket, "Key": "large"}
    upload["UploadId"] = client.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    part = client.upload_part(**upload, PartNumber=1, Body=bytes(PART_BYTES))
    client.list_parts(**upload)
    client.list_multipart_uploads(Bucket=bucket)
    parts = [{"ETag": part["ETag"], "PartNumber": 1}]
    client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    upload["UploadId"] = client.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    client.upload_part_copy(**upload, PartNumber=1, CopySource=place, CopySourceRange="bytes=0-4")
    client.abort_multipart_upload(**upload)
    with urllib.request.urlopen(client.generate_presigned_url("get_object", Params=place)) as answer:
        assert answer.read() == BODY
    link = client.generate_presigned_url("put_object", Params=place | {"ContentType": "text/plain", "Metadata": {"a": "b"}})
    headers = {"content-type": "text/plain", "x-amz-meta-a": "b"}
    with urllib.request.urlopen(urllib.request.Request(link, b"presigned", headers, method="PUT")) as answer:
        assert answer.status == 200
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "copy +é"}, {"Key": "large"}]})
    client.delete_object(**place)


def use_boto3_with_pipelines(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    place = {"Bucket": bucket, "Key": "photos/0 +é.jpg"}
    for add in (with_pipeline, with_parameter):
        client = client_of(endpoint)
        add(client, SHORT)
        client.head_object(**place)
        client.get_object(**place)["Body"].read()
    link = client_of(endpoint).generate_presigned_url("get_object", Params=place)
    path, query = link.removeprefix(endpoint).split("?")
    presign, signature = query.split("&X-Amz-Signature=")
    batch = {"pipeline": SHORT, "presign": presign, "samples": [{"path": path, "signature": signature}]}
    request = urllib.request.Request(f"{endpoint}/_pushdown/v1/batch", json.dumps(batch).encode())
    with urllib.request.urlopen(request) as answer, pa.ipc.open_stream(answer) as rows:
        assert rows.read_all()["error"].null_count == 1


def use_botocore(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    """The oracle: what botocore signs is accepted, whatever the key, the query and the headers are."""
    drawn = random.Random(34)
    credentials = Credentials(ACCESS, SECRET)
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"))

    def text(most: int) -> str:
        return "".join(drawn.choices("aZ0 -_~!*'()+,;=:@&$%?#[]|\"<>é日", k=drawn.randint(1, most)))

    for index in range(RANDOM_REQUESTS):
        key = "/".join(text(8) for _ in range(drawn.randint(1, 3)))
        # SeaweedFS does not sort encoded names, nor equal ones, as AWS does.
        query = "&".join(f"p{number}={quote(text(6), safe='')}" for number in range(drawn.randint(0, 3)))
        request = AWSRequest(
            drawn.choice(["GET", "HEAD", "PUT", "DELETE"]),
            f"{endpoint}/{bucket}/{quote(key, safe='/')}{'?' if query else ''}{query}",
            {f"x-amz-meta-{drawn.choice('abc')}": f"a  b{' ' * drawn.randint(0, 2)}{drawn.random()}"},
        )
        if request.method == "PUT":
            request.data = drawn.randbytes(10)
        signer = S3SigV4QueryAuth if index % 3 == 0 and request.method != "PUT" else S3SigV4Auth
        signer(credentials, "s3", REGION).add_auth(request)
        connection.request(request.method, request.url.removeprefix(endpoint), request.data, dict(request.headers))
        connection.getresponse().read()


def use_aws_cli(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    program = pathlib.Path(sys.executable).with_name("aws")

    def aws(*arguments: object) -> None:
        command = [sys.executable, str(program), "--endpoint-url", endpoint, *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)

    (folder / "files").mkdir()
    (folder / "files/a b+é.txt").write_bytes(b"small")
    (folder / "files/large").write_bytes(bytes(9 << 20))
    aws("s3", "sync", folder / "files", f"s3://{bucket}/a folder", "--no-progress")
    aws("s3", "cp", f"s3://{bucket}/a folder/large", folder / "back", "--no-progress")
    aws("s3", "mv", f"s3://{bucket}/a folder/a b+é.txt", f"s3://{bucket}/{KEY}")
    aws("s3", "ls", f"s3://{bucket}/", "--recursive")
    aws("s3api", "put-object", "--bucket", bucket, "--key", "k", "--body", folder / "files/a b+é.txt", "--metadata", "label=7")
    aws("s3api", "get-object", "--bucket", bucket, "--key", "k", "--range", "bytes=2-3", folder / "part")
    aws("s3", "rm", f"s3://{bucket}/", "--recursive")


def use_s3fs(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    files = s3fs_file_system(store_of(endpoint))
    files.pipe(f"{bucket}/{KEY}", BODY)
    assert files.cat_file(f"{bucket}/{KEY}", start=2, end=4) == b"23"
    files.find(bucket)
    files.mv(f"{bucket}/{KEY}", f"{bucket}/moved +é")
    with files.open(f"{bucket}/large", "wb") as file:
        file.write(bytes(2 * PART_BYTES))
    files.info(f"{bucket}/large")
    files.rm([f"{bucket}/large", f"{bucket}/moved +é"])


def use_pyarrow(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    files = pyarrow_file_system(store_of(endpoint))
    with files.open_output_stream(f"{bucket}/a folder/ü +.bin", metadata={"Content-Type": "text/x-test"}) as stream:
        stream.write(bytes(12 << 20))
    with files.open_input_file(f"{bucket}/a folder/ü +.bin") as file:
        file.seek(100)
        file.read(10)
    files.copy_file(f"{bucket}/a folder/ü +.bin", f"{bucket}/copy")
    files.get_file_info(pa.fs.FileSelector(bucket, recursive=True))
    table = pa.table({"label": [1, 2, 3], "text": ["a", "b", "c"]})
    partitioning = ds.partitioning(pa.schema([("label", pa.int64())]), flavor="hive")
    ds.write_dataset(table, f"{bucket}/set", format="parquet", partitioning=partitioning, filesystem=files, create_dir=False)
    assert ds.dataset(f"{bucket}/set", format="parquet", partitioning=partitioning, filesystem=files).to_table().num_rows == 3
    files.delete_file(f"{bucket}/copy")
    files.delete_dir(f"{bucket}/set")


def use_obstore(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    store = S3Store(
        bucket, endpoint=endpoint, region=REGION, access_key_id=ACCESS, secret_access_key=SECRET,
        virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip
    key = KEY.replace("?", "").replace("#", "")
    obstore.put(store, key, BODY, attributes={"Content-Type": "text/x-test", "label": "7"})
    assert obstore.get_range(store, key, start=2, end=5).to_bytes() == b"234"
    obstore.head(store, key)
    obstore.put(store, "large", bytes(11 << 20))
    obstore.list(store, "folder").collect()
    obstore.list_with_delimiter(store, "a b")
    obstore.copy(store, key, "copy +é")
    obstore.rename(store, "copy +é", "moved")
    link = obstore.sign(store, "GET", key, datetime.timedelta(minutes=5))
    with urllib.request.urlopen(link) as answer:
        assert answer.read() == BODY
    obstore.delete(store, [key, "moved", "large"])


def use_s3torchconnector(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    client = MountpointS3Client(REGION, endpoint=endpoint, force_path_style=True, part_size=PART_BYTES, max_attempts=1)
    for key, size in ((KEY, 10), ("large", 2 * PART_BYTES)):
        stream = client.put_object(bucket, key)
        stream.write(bytes(size))
        stream.close()
        client.head_object(bucket, key)
        assert sum(map(len, client.get_object(bucket, key))) == size
    assert b"".join(client.get_object(bucket, KEY, 2, 5)) == bytes(3)
    list(client.list_objects(bucket, "folder/with space +", "/"))
    # It sends the keys of a copy as they are, which must be a path.
    client.copy_object(bucket, "large", bucket, "copy")
    client.delete_object(bucket, KEY)


def use_pushdown(endpoint: str, bucket: str, folder: pathlib.Path) -> None:
    """The reader that is built together with the gateway."""

    def run(command: str, place: str, *arguments: object, fails: bool = False) -> None:
        program = gateway_binary().with_name("pushdown")
        line = [str(program), command, f"s3://{bucket}/{place}", "--endpoint-url", endpoint, *map(str, arguments)]
        ended = subprocess.run(line, capture_output=True, timeout=120, check=False)
        assert (ended.returncode != 0) == fails, ended.stderr.decode()

    pipeline = "decode | resize(8, 8) | to_float"
    run("get", "photos/0 +é.jpg", "-p", pipeline, "-o", folder / "value.npy")
    run("get", "tables/0.parquet", "-p", "select(limit=3)", "-o", folder / "rows.arrow")
    run("get", "tables/0.parquet", "-p", "select(limit=3)", "-o", folder / "rows.arrow", "--split", 0)
    run("get", "tables/", "-p", "select(limit=3)", "-o", folder / "rows.arrow")
    run("schema", "tables/0.parquet")
    run("read", "photos/", "-p", pipeline)
    run("read", "photos/", "-p", pipeline, "--plain")
    # The gateway lists its models, of which it has none.
    run("get", "photos/0 +é.jpg", "-p", f"{pipeline} | model(unknown)", "-o", folder / "value.npy", fails=True)


# Each client, with the number of requests that it sends at least.
CLIENTS = {
    "boto3": (use_boto3, 28),
    "boto3-pipelines": (use_boto3_with_pipelines, 5),
    "botocore": (use_botocore, RANDOM_REQUESTS),
    "aws-cli": (use_aws_cli, 18),
    "s3fs": (use_s3fs, 12),
    "pyarrow": (use_pyarrow, 20),
    "obstore": (use_obstore, 14),
    "s3torchconnector": (use_s3torchconnector, 15),
    "pushdown": (use_pushdown, 12),
}
