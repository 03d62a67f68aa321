"""Changes of a signed head, each of which the gateway must refuse, and the S3 codes of the refusal.

A change yields heads that differ from a signed one in one point. It yields none if it does not apply.
"""

import datetime
import re
from collections.abc import Callable, Iterator

from signed_heads import ALGORITHM, PAYLOAD, SIGNATURE_PARAMETERS, Head
from stores import OTHER_ACCESS

Change = Callable[[Head], Iterator[Head]]

# Every change by its name, with the codes that it may be refused with.
CHANGES: dict[str, tuple[Change, frozenset[str]]] = {}

MISMATCH, DENIED, ARGUMENT, REQUEST = "SignatureDoesNotMatch", "AccessDenied", "InvalidArgument", "InvalidRequest"
MALFORMED = ("AuthorizationHeaderMalformed", "AuthorizationQueryParametersError")
SKEWED, UNKNOWN_KEY, TOKEN = "RequestTimeTooSkewed", "InvalidAccessKeyId", "InvalidToken"

EMPTY_HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
TIME = "%Y%m%dT%H%M%SZ"


def refused_with(*codes: str) -> Callable[[Change], Change]:
    def add(change: Change) -> Change:
        CHANGES[change.__name__] = (change, frozenset(codes))
        return change

    return add


def changed(text: str) -> str:
    """The text with another last character. Digits stay digits."""
    if not text:
        return "x"
    last = text[-1]
    other = str((int(last) + 1) % 10) if last.isdecimal() else "y" if last == "x" else "x"
    return text[:-1] + other


# What is signed.


@refused_with(MISMATCH)
def another_method(head: Head) -> Iterator[Head]:
    for method in ("PUT" if head.method == "GET" else "GET", head.method.lower()):
        yield Head(method, head.target, head.headers)


@refused_with(MISMATCH)
def another_path(head: Head) -> Iterator[Head]:
    pieces = re.findall("%..|.", head.path[1:])
    if pieces:
        yield head.with_path("/" + "".join(["y" if pieces[0] == "x" else "x", *pieces[1:]]))
        yield head.with_path("/" + "".join([*pieces[:-1], "y" if pieces[-1] == "x" else "x"]))
    yield head.with_path(head.path + "/")


@refused_with(MISMATCH)
def another_query(head: Head) -> Iterator[Head]:
    for added in (("acl", ""), ("versionId", "null"), ("x-amz-acl", "public-read")):
        yield head.with_parameters([added, *head.parameters])
    for index, (name, value) in enumerate(head.parameters):
        if name not in SIGNATURE_PARAMETERS:
            before, after = head.parameters[:index], head.parameters[index + 1 :]
            yield head.with_parameters([*before, (name, value + "0"), *after])
            yield head.with_parameters([*before, *after])


@refused_with(MISMATCH)
def another_host(head: Head) -> Iterator[Head]:
    yield head.with_header("host", changed(head.header("host")))


@refused_with(MISMATCH)
def another_value_of_a_signed_header(head: Head) -> Iterator[Head]:
    for name in head.claim().header_names():
        # Host, time and payload have changes of their own. HTTP servers refuse another transfer coding by themselves.
        if name not in ("host", "x-amz-date", PAYLOAD, "transfer-encoding"):
            yield head.with_header(name, changed(head.header(name)))


@refused_with(MISMATCH)
def another_payload(head: Head) -> Iterator[Head]:
    payload = head.header(PAYLOAD)
    for other in ("UNSIGNED-PAYLOAD", EMPTY_HASH, "0" * 64):
        if payload is not None and payload != other:
            yield head.with_header(PAYLOAD, other)


@refused_with(*MALFORMED, DENIED, REQUEST)
def a_signed_header_is_missing(head: Head) -> Iterator[Head]:
    for name in head.claim().header_names():
        yield head.without(name)


@refused_with(*MALFORMED, MISMATCH, DENIED)
def a_header_is_no_longer_signed(head: Head) -> Iterator[Head]:
    names = head.claim().header_names()
    for left_out in names:
        yield head.with_claim(signed_headers=";".join(name for name in names if name != left_out))


@refused_with(MISMATCH, DENIED, ARGUMENT, REQUEST)
def a_signed_header_is_repeated(head: Head) -> Iterator[Head]:
    for name in head.claim().header_names():
        # Equal lengths are one length, to every HTTP server.
        if name != "content-length":
            yield head.with_added(name, head.header(name))


@refused_with(DENIED)
def an_unsigned_header_is_added(head: Head) -> Iterator[Head]:
    for name, value in (("acl", "public-read"), ("meta-extra", "1"), ("copy-source", "/another-bucket/secret"), ("new", "")):
        if head.header(f"x-amz-{name}") is None:
            yield head.with_added(f"x-amz-{name}", value)
    if head.header(PAYLOAD) is None:
        yield head.with_added(PAYLOAD, EMPTY_HASH)


@refused_with(TOKEN)
def a_session_token_is_added(head: Head) -> Iterator[Head]:
    yield head.with_added("x-amz-security-token", "token")
    yield head.with_parameters([("X-Amz-Security-Token", "token"), *head.parameters])


# When it is signed.


def signed_at(head: Head, timestamp: str) -> Head:
    """The head with another time of signing, and the date of that time in its scope."""
    access_key, _, scope = head.claim().credential.split("/", 2)
    return head.with_claim(timestamp=timestamp, credential=f"{access_key}/{timestamp[:8]}/{scope}")


@refused_with(SKEWED, DENIED)
def another_time(head: Head) -> Iterator[Head]:
    now = datetime.datetime.now(datetime.timezone.utc)
    # A presigned request is valid for a week at most.
    for minutes in (16, 24 * 60, -8 * 24 * 60):
        yield signed_at(head, (now + datetime.timedelta(minutes=minutes)).strftime(TIME))


@refused_with(MISMATCH)
def another_second(head: Head) -> Iterator[Head]:
    timestamp = head.claim().timestamp
    yield head.with_claim(timestamp=changed(timestamp[:-1]) + "Z")


@refused_with(*MALFORMED)
def another_day_in_one_place(head: Head) -> Iterator[Head]:
    claim = head.claim()
    day = datetime.datetime.strptime(claim.timestamp, TIME) + datetime.timedelta(days=1)
    yield head.with_claim(timestamp=day.strftime(TIME))
    yield head.with_claim(credential=signed_at(head, day.strftime(TIME)).claim().credential)


@refused_with(MISMATCH)
def another_validity(head: Head) -> Iterator[Head]:
    if head.claim().is_presigned:
        yield head.with_parameters(
            (name, str(int(value) - 1) if name == "X-Amz-Expires" else value) for name, value in head.parameters
        )


# The signature.


@refused_with(MISMATCH)
def another_signature(head: Head) -> Iterator[Head]:
    signature = head.claim().signature
    yield head.with_claim(signature=signature[:-1] + ("1" if signature[-1] == "0" else "0"))
    yield head.with_claim(signature=signature[::-1])


@refused_with(*MALFORMED)
def a_malformed_signature(head: Head) -> Iterator[Head]:
    signature = head.claim().signature
    for other in (signature.upper(), signature[:-1], signature + "0", "", f"{signature[:-1]}g"):
        yield head.with_claim(signature=other)


@refused_with(*MALFORMED)
def another_scope(head: Head) -> Iterator[Head]:
    access_key, date, *_ = head.claim().credential.split("/")
    for scope in ("eu-west-1/s3/aws4_request", "us-east-1/s3express/aws4_request", "us-east-1/s3/aws5_request", "us-east-1/s3"):
        yield head.with_claim(credential=f"{access_key}/{date}/{scope}")


@refused_with(MISMATCH)
def the_key_of_another_caller(head: Head) -> Iterator[Head]:
    _, scope = head.claim().credential.split("/", 1)
    yield head.with_claim(credential=f"{OTHER_ACCESS}/{scope}")


@refused_with(UNKNOWN_KEY)
def an_unknown_key(head: Head) -> Iterator[Head]:
    yield head.with_claim(credential=f"x{head.claim().credential}")


# Where the signature is.


@refused_with(MISMATCH, ARGUMENT)
def the_other_carrier(head: Head) -> Iterator[Head]:
    moved, claim = head.without_signature(), head.claim()
    if claim.is_presigned:
        moved = moved.with_added("authorization", head.authorization("x-amz-date")).with_added("x-amz-date", claim.timestamp)
        yield moved if moved.header(PAYLOAD) else moved.with_added(PAYLOAD, "UNSIGNED-PAYLOAD")
    else:
        yield moved.with_parameters([*moved.parameters, *head.presigned_parameters()])


@refused_with(ARGUMENT)
def both_carriers(head: Head) -> Iterator[Head]:
    if head.claim().is_presigned:
        yield head.with_added("authorization", head.authorization())
    else:
        yield head.with_parameters([*head.parameters, *head.presigned_parameters()])


@refused_with(ARGUMENT, *MALFORMED)
def two_signatures(head: Head) -> Iterator[Head]:
    if head.claim().is_presigned:
        yield head.with_parameters([*head.parameters, ("X-Amz-Signature", head.claim().signature)])
    else:
        yield head.with_added("authorization", head.header("authorization"))


@refused_with(DENIED)
def no_signature(head: Head) -> Iterator[Head]:
    yield head.without_signature()


@refused_with(REQUEST, ARGUMENT)
def another_scheme(head: Head) -> Iterator[Head]:
    plain, access_key = head.without_signature(), head.claim().credential.split("/")[0]
    for value in (f"AWS {access_key}:c2lnbmF0dXJl", "Bearer token", f"{ALGORITHM.lower()} {access_key}"):
        yield plain.with_added("authorization", value)
    version_2 = [("AWSAccessKeyId", access_key), ("Signature", "c2lnbmF0dXJl"), ("Expires", "4000000000")]
    yield plain.with_parameters([*plain.parameters, *version_2])
