"""Parquet files byte by byte: forms of old writers that no current library writes."""

import struct

import pyarrow as pa

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)
REQUIRED, OPTIONAL, REPEATED = range(3)
UTF8, MAP, MAP_KEY_VALUE, LISTS, ENUM, DECIMAL, DATE = range(7)
TIMESTAMP_MILLIS, INTERVAL = 9, 21
PLAIN, DICTIONARY, RLE = 0, 2, 3
UNCOMPRESSED, LZ4 = 0, 5


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 ^ number >> 63)


def value(kind: int, of) -> bytes:
    if kind in (I32, I64):
        return zigzag(of)
    if kind == BINARY:
        of = of.encode() if isinstance(of, str) else of
        return varint(len(of)) + of
    if kind == LIST:
        inner, elements = of
        length = len(elements)
        head = bytes([length << 4 | inner]) if length < 15 else bytes([0xF0 | inner]) + varint(length)
        return head + b"".join(value(inner, element) for element in elements)
    return fields(of)


def fields(of: list) -> bytes:
    """A structure of (number, kind, value). Fields with the value None are omitted. The kind bool encodes its value in the header."""
    out, last = bytearray(), 0
    for number, kind, content in of:
        if content is None:
            continue
        if kind is bool:
            out += bytes([(number - last) << 4 | (1 if content else 2)])
        else:
            out += bytes([(number - last) << 4 | kind]) + value(kind, content)
        last = number
    return bytes(out) + b"\0"


def element(name: str, repetition: int | None = None, kind: int | None = None, children: int | None = None,
            converted: int | None = None, length: int | None = None, precision: int | None = None,
            scale: int | None = None) -> list:
    """A `SchemaElement`."""
    return [(1, I32, kind), (2, I32, length), (3, I32, repetition), (4, BINARY, name), (5, I32, children),
            (6, I32, converted), (7, I32, scale), (8, I32, precision)]


def levels(of: list[int], most: int) -> bytes:
    """Levels as runs with their length in front; empty if the maximum is 0."""
    if most == 0:
        return b""
    runs = b"".join(varint(1 << 1) + bytes([level]) for level in of)
    return struct.pack("<I", len(runs)) + runs


def plain(kind: int, values: list) -> bytes:
    if kind == INT96:
        return b"".join(struct.pack("<QI", nanoseconds, day) for day, nanoseconds in values)
    if kind == BYTES:
        return b"".join(struct.pack("<I", len(one)) + one for one in values)
    if kind == FIXED:
        return b"".join(values)
    return struct.pack("<" + {INT32: "i", INT64: "q", FLOAT: "f", DOUBLE: "d"}[kind] * len(values), *values)


def hadoop(body: bytes, block: int, chunk: int) -> bytes:
    """LZ4 in the form of Hadoop's streams: blocks of `block` bytes, each of separately compressed chunks."""
    out = bytearray()
    for start in range(0, len(body), block):
        of = body[start : start + block]
        out += struct.pack(">I", len(of))
        for place in range(0, len(of), chunk):
            one = pa.Codec("lz4_raw").compress(of[place : place + chunk], asbytes=True)
            out += struct.pack(">I", len(one)) + one
    return bytes(out)


class Column:
    """A leaf column: its path in the schema, its levels, its values, and further fields of its chunk."""

    def __init__(self, path: list[str], kind: int, values: list, definitions: list[int] | None = None, most: int = 0,
                 repetitions: list[int] | None = None, repeated: int = 0, statistics: list | None = None,
                 version: int = 1, compress=None, dictionary: bool = False):
        self.path, self.kind, self.values = path, kind, values
        self.definitions = definitions if definitions is not None else [0] * len(values)
        self.repetitions = repetitions if repetitions is not None else [0] * len(self.definitions)
        self.most, self.repeated, self.statistics = most, repeated, statistics
        self.version, self.compress, self.dictionary = version, compress, dictionary

    def page(self, kind: int, body: bytes, header: list) -> tuple[bytes, int]:
        """A page, and its decompressed size with the header."""
        stored = self.compress(body) if self.compress else body
        head = fields([(1, I32, kind), (2, I32, len(body)), (3, I32, len(stored)), *header])
        return head + stored, len(head) + len(body)

    def chunk(self, start: int) -> tuple[bytes, list]:
        """The pages, and the `ColumnChunk` for their start."""
        pages, encoding, values = [], PLAIN, plain(self.kind, self.values)
        count = len(self.definitions)
        if self.dictionary:
            distinct = sorted(set(self.values))
            head = (7, STRUCT, [(1, I32, len(distinct)), (2, I32, PLAIN)])
            pages.append(self.page(2, plain(self.kind, distinct), [head]))
            width = max((len(distinct) - 1).bit_length(), 1)
            # One run per index.
            size = (width + 7) // 8
            runs = b"".join(varint(2) + distinct.index(one).to_bytes(size, "little") for one in self.values)
            encoding, values = DICTIONARY, bytes([width]) + runs
        before = sum(len(page) for page, _ in pages)
        repeated, defined = levels(self.repetitions, self.repeated), levels(self.definitions, self.most)
        if self.version == 1:
            head = (5, STRUCT, [(1, I32, count), (2, I32, encoding), (3, I32, RLE), (4, I32, RLE)])
            pages.append(self.page(0, repeated + defined + values, [head]))
        else:
            repeated, defined = repeated[4:], defined[4:]
            stored = self.compress(values) if self.compress else values
            rows = sum(level == 0 for level in self.repetitions)
            nulls = count - len(self.values)
            data = [(1, I32, count), (2, I32, nulls), (3, I32, rows), (4, I32, encoding), (5, I32, len(defined)),
                    (6, I32, len(repeated)), (7, bool, self.compress is not None)]
            body = repeated + defined + stored
            head = fields([(1, I32, 3), (2, I32, len(repeated + defined + values)), (3, I32, len(body)), (8, STRUCT, data)])
            pages.append((head + body, len(head) + len(repeated + defined + values)))
        stored = b"".join(page for page, _ in pages)
        metadata = [
            (1, I32, self.kind), (2, LIST, (I32, [encoding, RLE])), (3, LIST, (BINARY, self.path)),
            (4, I32, LZ4 if self.compress else UNCOMPRESSED), (5, I64, count),
            (6, I64, sum(size for _, size in pages)), (7, I64, len(stored)), (9, I64, start + before),
            (11, I64, start if self.dictionary else None), (12, STRUCT, self.statistics),
        ]
        return stored, [(2, I64, start), (3, STRUCT, metadata)]


def file(schema: list[list], columns: list[Column], rows: int, made_by: str, metadata: dict[str, str] | None = None) -> bytes:
    """A whole file of one row group."""
    out, chunks = bytearray(b"PAR1"), []
    for column in columns:
        stored, chunk = column.chunk(len(out))
        out += stored
        chunks.append(chunk)
    pairs = [[(1, BINARY, key), (2, BINARY, text)] for key, text in (metadata or {}).items()]
    group = [(1, LIST, (STRUCT, chunks)), (2, I64, len(out) - 4), (3, I64, rows)]
    footer = fields([
        (1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, rows), (4, LIST, (STRUCT, [group])),
        (5, LIST, (STRUCT, pairs) if pairs else None), (6, BINARY, made_by),
    ])
    return bytes(out) + footer + struct.pack("<I", len(footer)) + b"PAR1"
