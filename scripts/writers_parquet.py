"""Writes the matrix of Parquet writers: small files by every writer and option, with the contents that the writers read."""

import json
import pathlib
import shutil

import pyarrow as pa

from writers_parquet_cases import by_hand, comparisons, libraries

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "pushdown/tests/golden/writers_parquet"


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    answers: dict[bytes, str] = {}
    cases = []
    for name, read in by_hand.write(FOLDER) + libraries.write(FOLDER):
        content = serialized(storage(read))
        # Most options do not change the contents.
        if content not in answers:
            answers[content] = f"{len(answers):02}.arrow"
            (FOLDER / answers[content]).write_bytes(content)
        cases.append({"file": name, "answer": answers[content]})
    (FOLDER / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    # One condition per line, for readable diffs.
    found = ",\n".join(json.dumps(one) for one in comparisons.write(FOLDER))
    (FOLDER / "comparisons.json").write_text(f"[\n{found}\n]\n")
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(cases)} files, {len(answers)} answers, {size} bytes")


def storage(table: pa.Table) -> pa.Table:
    """The rows without extension types and without metadata of the library."""
    def plain(array: pa.Array) -> pa.Array:
        if isinstance(array.type, pa.BaseExtensionType):
            return plain(array.storage)
        if pa.types.is_struct(array.type):
            inner = [plain(array.field(index)) for index in range(array.type.num_fields)]
            return pa.StructArray.from_arrays(inner, [field.name for field in array.type], mask=array.is_null())
        return array
    columns = [plain(column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)) for column in table.columns]
    return pa.table(columns, names=table.schema.names)


def serialized(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


if __name__ == "__main__":
    main()
