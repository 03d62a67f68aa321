"""Writes the matrix of writers of text and Arrow IPC: small files by every writer and option, and their expected contents.

The expected contents are those that the writer's own library reads; each case checks them against the written rows.
"""

import json
import pathlib
import shutil

import pyarrow as pa

from writers_text_arrow_cases import arrow, compressed, csv_text, json_text

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "pushdown/tests/golden/writers_text_arrow"


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    answers: dict[bytes, str] = {}
    cases = []
    for module in (csv_text, json_text, compressed, arrow):
        for case in module.write(FOLDER):
            line = {"file": case.file, "pipeline": case.pipeline}
            if isinstance(case.expected, str):
                line["error"] = case.expected
            else:
                content = serialized(case.expected)
                # Most options do not change the contents.
                if content not in answers:
                    answers[content] = f"answer_{len(answers):02}.arrow"
                    (FOLDER / answers[content]).write_bytes(content)
                line["answer"] = answers[content]
            cases.append(line)
    text = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / "cases.json").write_text(f"[\n{text}\n]\n")
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(cases)} cases, {len(answers)} answers, {size} bytes")


def serialized(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    table = table.combine_chunks()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


if __name__ == "__main__":
    main()
