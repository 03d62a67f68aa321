"""Writes the golden tables: small files, and the answers of DuckDB and pyarrow to queries over them."""

import datetime
import json
import pathlib
import shutil

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json
import pyarrow.parquet as pq

from golden_tables_cases import files, meaning, queries

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = ROOT / "testkit/fixtures/tables"
ANSWERS = ROOT / "pushdown/tests/golden/tables"


def main() -> None:
    files.write(TABLES)
    shutil.rmtree(ANSWERS, ignore_errors=True)
    ANSWERS.mkdir(parents=True)
    cases = []

    def add(name: str, pipeline: str, answer: pa.Table, types: bool) -> None:
        file = f"{len(cases):02}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(str(ANSWERS / file), answer.schema, options=options) as out:
            out.write_table(answer.combine_chunks())
        cases.append({"file": name, "pipeline": pipeline, "answer": file, "types": types})

    for table, sql in queries.TPCH + queries.TYPES:
        add(f"{table}.parquet", f"sql({json.dumps(sql, ensure_ascii=False)})", ask(f"{table}.parquet", sql), False)
    for name, sql in queries.OTHERS:
        add(name, f"sql({json.dumps(sql, ensure_ascii=False)})", ask(name, sql), False)
    for name, columns, where, condition, limit in queries.SELECTS:
        arguments = []
        if columns:
            arguments.append(f"columns=[{', '.join(columns)}]")
        if where:
            arguments.append(f"where={json.dumps(where)}")
        if limit:
            arguments.append(f"limit={limit}")
        # Each reader infers its own types from text.
        types = not name.endswith((".csv", ".jsonl"))
        add(name, f"select({', '.join(arguments)})", select(name, columns, condition, limit), types)
    for pipeline, sql in equivalents():
        add("types.parquet", pipeline, ask("types.parquet", sql), False)
    (ANSWERS / "cases.json").write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")
    size = sum(path.stat().st_size for folder in (TABLES, ANSWERS) for path in folder.iterdir())
    print(f"{len(cases)} cases, {size} bytes")


def equivalents() -> list[tuple[str, str]]:
    """Pipelines over `types.parquet`, with equivalent queries."""
    columns = [[f"{expression} as v{place}" for place, expression in enumerate(group)] for group in meaning.EXPRESSIONS]
    sql = [f"select n, {', '.join(group)} from object order by n" for group in columns] + meaning.QUERIES
    pairs = [(f"sql({json.dumps(query, ensure_ascii=False)})", query) for query in sql]
    for condition in meaning.CONDITIONS:
        where = json.dumps(condition, ensure_ascii=False)
        pairs.append((f"select(columns=[n], where={where})", f"select n from object where {condition}"))
    return pairs


def ask(name: str, sql: str) -> pa.Table:
    """DuckDB's answer."""
    path = TABLES / name
    read = {".parquet": "read_parquet", ".csv": "read_csv", ".gz": "read_csv"}.get(path.suffix, "read_json")
    connection = duckdb.connect()
    connection.sql("set TimeZone = 'UTC'")
    connection.sql(f"create view object as select * from {read}('{path}')")
    answer = connection.sql(sql)
    table = answer.to_arrow_table() if hasattr(answer, "to_arrow_table") else answer.arrow()
    return table if isinstance(table, pa.Table) else table.read_all()


def select(name: str, columns: list[str] | None, condition: str | None, limit: int | None) -> pa.Table:
    """pyarrow's answer."""
    path = TABLES / name
    if path.suffix == ".parquet":
        table = pq.read_table(path, coerce_int96_timestamp_unit="us")
    elif path.suffix == ".csv":
        table = pa.csv.read_csv(path)
    elif path.suffix == ".jsonl":
        table = pa.json.read_json(path)
    elif path.suffix == ".arrow":
        table = pa.ipc.open_file(str(path)).read_all()
    else:
        table = pa.ipc.open_stream(str(path)).read_all()
    if condition:
        names = {"field": pc.field, "date": datetime.date}
        table = table.filter(eval(condition, names))  # noqa: S307, the conditions are ours
    if columns:
        table = table.select(columns)
    return table.slice(0, limit) if limit else table


if __name__ == "__main__":
    main()
