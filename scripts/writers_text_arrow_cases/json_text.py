"""JSON lines of Python's json, pandas, Polars and DuckDB, with their options."""

import json
import pathlib

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

from .case import Case, rows, same

NAN = float("nan")
INFINITY = float("inf")


def written() -> list[dict]:
    """Rows with values that JSON can represent."""
    return [
        {"n": 1, "x": 0.5, "name": "a \"b\" \\ \n é \U0001f600", "ok": True, "tags": ["a", None], "at": {"x": 1, "y": [1.5]}},
        {"n": None, "x": None, "name": None, "ok": None, "tags": None, "at": None},
        {"n": -9007199254740993, "x": -1e300, "name": "", "ok": False, "tags": [], "at": {"x": None, "y": None}},
    ]


def schema() -> pa.Schema:
    point = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.float64()))])
    return pa.schema([("n", pa.int64()), ("x", pa.float64()), ("name", pa.string()), ("ok", pa.bool_()),
                      ("tags", pa.list_(pa.string())), ("at", point)])


def write(folder: pathlib.Path) -> list[Case]:
    table = pa.Table.from_pylist(written(), schema())
    return [*by_python(folder, table), *by_pandas(folder, table), *by_polars(folder, table), *by_duckdb(folder, table)]


def by_python(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    cases = []
    for name, options in {
        "plain": {}, "unicode": {"ensure_ascii": False}, "compact": {"separators": (",", ":")}, "sorted": {"sort_keys": True},
        "indented": {"indent": 2},
    }.items():
        file = f"python_{name}.jsonl"
        (folder / file).write_text("".join(json.dumps(row, **options) + "\n" for row in written()))
        order = sorted(table.column_names) if name == "sorted" else table.column_names
        cases.append(Case(file, table.select(order)))
    numbers = [
        {"n": 1, "x": NAN, "list": [INFINITY, 1], "at": {"y": -INFINITY}},
        {"n": 2, "x": 0.5, "list": [NAN], "at": {"y": 1}},
        {"n": 3, "x": -INFINITY, "list": [], "at": {"y": NAN}},
    ]
    (folder / "python_nan.jsonl").write_text("".join(json.dumps(row) + "\n" for row in numbers))
    point = pa.struct([("y", pa.float64())])
    types = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("list", pa.list_(pa.float64())), ("at", point)])
    cases.append(Case("python_nan.jsonl", pa.Table.from_pylist(numbers, types)))
    (folder / "python_crlf.ndjson").write_text("".join(json.dumps(row) + "\r\n" for row in written()), newline="")
    cases.append(Case("python_crlf.ndjson", table))
    (folder / "python_bom.json").write_text("".join(json.dumps(row) + "\n" for row in written()), encoding="utf-8-sig")
    cases.append(Case("python_bom.json", table))
    (folder / "python_array.json").write_text(json.dumps(written()))
    cases.append(Case("python_array.json", "expected an object in each line"))
    large = [{"n": 2**63}, {"n": 2**64 - 1}]
    (folder / "python_large.jsonl").write_text("".join(json.dumps(row) + "\n" for row in large))
    cases.append(Case("python_large.jsonl", pa.table({"n": pa.array([2**63, 2**64 - 1], pa.uint64())})))
    return cases


def by_pandas(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    cases = []
    # pandas reads integers as floats.
    right = table.select(["n", "x", "name", "ok"]).set_column(0, "n", pa.array([1, None, -7]))
    data = right.to_pandas(types_mapper=pd.ArrowDtype)
    for name, options in {"plain": {}, "unicode": {"force_ascii": False}, "gzip": {"compression": {"method": "gzip", "mtime": 0}}}.items():
        file = f"pandas_{name}.jsonl" + (".gz" if name == "gzip" else "")
        data.to_json(folder / file, orient="records", lines=True, double_precision=15, **options)
        back = pd.read_json(folder / file, lines=True, dtype_backend="pyarrow")
        same(back.astype(object).where(back.notna(), None).to_dict("records"), right)
        cases.append(Case(file, right))
    dated = rows().select(["id", "at"]).to_pandas()
    dated.to_json(folder / "pandas_iso.jsonl", orient="records", lines=True, date_format="iso")
    times = [None if value is None else json.loads(line)["at"] for value, line in zip(
        rows()["at"].to_pylist(), (folder / "pandas_iso.jsonl").read_text().splitlines())]
    # Times are strings in JSON.
    cases.append(Case("pandas_iso.jsonl", pa.table({"at": pa.array(times, pa.string())}), "select(columns=[at])"))
    return cases


def by_polars(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    cases = []
    data = pl.from_arrow(table)
    for name, suffix, options in (("plain", "", {}), ("gzip", ".gz", {"compression": "gzip"}),
                                  ("zstd", ".zst", {"compression": "zstd"})):
        file = f"polars_{name}.ndjson{suffix}"
        data.write_ndjson(folder / file, **options)
        same(pl.read_ndjson(folder / file).to_dicts(), table)
        cases.append(Case(file, table))
    return cases


def by_duckdb(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    cases = []
    connection = duckdb.connect()
    connection.register("written", table)
    for name, suffix, options in (("plain", "", ""), ("gzip", ".gz", ", compression gzip"), ("zstd", ".zst", ", compression zstd")):
        file = f"duckdb_{name}.json{suffix}"
        connection.sql(f"copy written to '{folder / file}' (format json{options})")
        names = table.column_names
        same([dict(zip(names, row)) for row in connection.sql(f"from read_json('{folder / file}')").fetchall()], table)
        cases.append(Case(file, table))
    connection.sql(f"copy written to '{folder / 'duckdb_array.json'}' (format json, array true)")
    cases.append(Case("duckdb_array.json", "expected an object in each line"))
    return cases
