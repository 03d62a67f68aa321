"""Heads of signed requests: read, changed and written again."""

import dataclasses
from collections.abc import Iterable
from urllib.parse import quote, unquote

ALGORITHM = "AWS4-HMAC-SHA256"
SIGNATURE_PARAMETERS = tuple(
    f"X-Amz-{name}" for name in ("Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature")
)
PAYLOAD = "x-amz-content-sha256"


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a request says about its signature."""

    is_presigned: bool
    # KEY/date/region/s3/aws4_request.
    credential: str
    timestamp: str
    signed_headers: str
    signature: str

    def header_names(self) -> list[str]:
        return self.signed_headers.split(";")


@dataclasses.dataclass(frozen=True)
class Head:
    """The request line and the headers, in their order. Methods for changes return another head."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, data: bytes) -> "Head":
        request_line, *lines = data.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, version = request_line.split(" ")
        assert version == "HTTP/1.1", request_line
        pairs = (line.split(":", 1) for line in lines)
        return cls(method, target, tuple((name, value.strip(" \t")) for name, value in pairs))

    def __bytes__(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")

    # Headers. Names are in lower case.

    def header(self, name: str) -> str | None:
        return next((value for found, value in self.headers if found.lower() == name), None)

    def with_added(self, name: str, value: str) -> "Head":
        return dataclasses.replace(self, headers=(*self.headers, (name, value)))

    def with_header(self, name: str, value: str) -> "Head":
        """Replaces the value of a header, in its place."""
        headers = ((found, value if found.lower() == name else old) for found, old in self.headers)
        return dataclasses.replace(self, headers=tuple(headers))

    def without(self, name: str) -> "Head":
        return dataclasses.replace(self, headers=tuple(pair for pair in self.headers if pair[0].lower() != name))

    # The target.

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Names and values as sent, in their order. A parameter without `=` has an empty value."""
        pairs = (pair.partition("=") for pair in self.target.partition("?")[2].split("&") if pair)
        return [(name, value) for name, _, value in pairs]

    def with_path(self, path: str) -> "Head":
        _, question, query = self.target.partition("?")
        return dataclasses.replace(self, target=path + question + query)

    def with_parameters(self, parameters: Iterable[tuple[str, str]]) -> "Head":
        query = "&".join(f"{name}={value}" for name, value in parameters)
        return dataclasses.replace(self, target=f"{self.path}?{query}" if query else self.path)

    # The signature.

    def claim(self) -> Claim | None:
        """The signature of version 4, in the query or in a header. `None` without one."""
        parameters = dict(self.parameters)
        if "X-Amz-Signature" in parameters:
            names = ("Credential", "Date", "SignedHeaders", "Signature")
            return Claim(True, *(unquote(parameters[f"X-Amz-{name}"]) for name in names))
        scheme, _, fields = (self.header("authorization") or "").partition(" ")
        if scheme != ALGORITHM:
            return None
        found = dict(field.strip().split("=", 1) for field in fields.split(","))
        timestamp = self.header("x-amz-date")
        return Claim(False, found["Credential"], timestamp, found["SignedHeaders"], found["Signature"])

    def as_verified(self) -> "Head":
        """The head without the headers that say nothing about its signature."""
        names = {"authorization", *self.claim().header_names()}
        kept = (pair for pair in self.headers if pair[0].lower() in names or pair[0].lower().startswith("x-amz-"))
        return dataclasses.replace(self, headers=tuple(kept))

    def with_claim(self, **changes: str) -> "Head":
        """Changes what the request says about its signature, without signing it again."""
        claim = dataclasses.replace(self.claim(), **changes)
        if claim.is_presigned:
            values = (claim.credential, claim.timestamp, claim.signed_headers, claim.signature)
            names = ("Credential", "Date", "SignedHeaders", "Signature")
            replaced = {f"X-Amz-{name}": quote(value, safe="") for name, value in zip(names, values, strict=True)}
            return self.with_parameters((name, replaced.get(name, value)) for name, value in self.parameters)
        authorization = (
            f"{ALGORITHM} Credential={claim.credential}, SignedHeaders={claim.signed_headers}, Signature={claim.signature}"
        )
        return self.with_header("authorization", authorization).with_header("x-amz-date", claim.timestamp)

    def without_signature(self) -> "Head":
        others = [pair for pair in self.parameters if pair[0] not in SIGNATURE_PARAMETERS]
        return self.with_parameters(others).without("authorization")

    def presigned_parameters(self) -> list[tuple[str, str]]:
        """The parameters of a query with the signature of a header."""
        claim = self.claim()
        values = (ALGORITHM, claim.credential, claim.timestamp, "300", claim.signed_headers, claim.signature)
        return [(name, quote(value, safe="")) for name, value in zip(SIGNATURE_PARAMETERS, values, strict=True)]

    def authorization(self, *added: str) -> str:
        """The value of a header with the signature of a query."""
        claim = self.claim()
        names = ";".join(sorted({*claim.header_names(), *added}))
        return f"{ALGORITHM} Credential={claim.credential}, SignedHeaders={names}, Signature={claim.signature}"
