"""CSV of pandas, Polars, DuckDB, pyarrow and Python's module, with their options."""

import csv
import io
import pathlib

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from .case import Case, rows, same, texts


def write(folder: pathlib.Path) -> list[Case]:
    table = rows()
    return [*by_pandas(folder, table), *by_polars(folder, table), *by_duckdb(folder, table), *by_pyarrow(folder, table),
            *by_python(folder)]


def frame(table: pa.Table) -> pd.DataFrame:
    """The rows as a pandas frame with nullable types."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def by_pandas(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    data = frame(table)
    cases = []

    def add(name: str, pipeline: str = "select", right: pa.Table | str = table, read: dict | None = None, **options) -> None:
        options = {"index": False} | options
        file = f"pandas_{name}.csv"
        data.to_csv(folder / file, **options)
        if read is not None:
            dates = {"parse_dates": ["at"]}
            back = pd.read_csv(folder / file, dtype_backend="pyarrow", **(dates | read))
            back["day"] = back["day"].map(lambda day: str(day)[:10] if pd.notna(day) else None)
            expected = table.set_column(4, "day", table["day"].cast(pa.string()))
            same(back.astype(object).where(back.notna(), None).to_dict("records"), expected)
        cases.append(Case(file, right, pipeline))

    add("plain", read={})
    add("quote_all", quoting=csv.QUOTE_ALL, read={})
    add("quote_words", quoting=csv.QUOTE_NONNUMERIC, read={})
    add("semicolon", 'select(delimiter=";")', sep=";", read={"sep": ";"})
    add("tabs", 'select(delimiter="\\u{9}")', sep="\t", read={"sep": "\t"})
    add("bars", 'select(delimiter="|")', sep="|", read={"sep": "|"})
    # A line break within a value does not end the line and stays unchanged.
    add("crlf", lineterminator="\r\n", read={})
    add("bom", encoding="utf-8-sig", read={})
    add("no_header", "select(header=false)", table.rename_columns([f"column_{n + 1}" for n in range(6)]), header=False)
    # pandas reads the index as `Unnamed: 0`.
    add("index", "select", table.add_column(0, "column_1", pa.array(range(4))), index=True)
    # Only an empty value is null.
    words = pa.table({
        "id": ["1", "-2", "NA", "9223372036854775807"],
        "ok": ["True", "NA", "False", "True"],
        "name": [value or "NA" for value in table["name"].to_pylist()],
    })
    add("null_spelled", "select(columns=[id, ok, name])", words, na_rep="NA")
    add("comma", 'select(columns=[x], delimiter=";")', pa.table({"x": ["0,1", None, "-1e+300", "2,0"]}), sep=";", decimal=",")
    add("rounded", "select(columns=[x])", pa.table({"x": [0.1, None, -1e300, 2.0]}), float_format="%.17g")
    days = pa.table({"day": ["29.02.2024", "31.12.1969", None, "31.12.9999"]})
    dated = pd.DataFrame({"day": days["day"].to_pylist()})
    dated.assign(n=[1, 2, 3, 4]).to_csv(folder / "pandas_dates.csv", index=False)
    cases.append(Case("pandas_dates.csv", days, "select(columns=[day])"))
    zoned = pd.DataFrame({"n": [1, 2], "at": pd.to_datetime(["2024-01-01T00:00:00.5+02:00", "2024-06-01T00:00:00.5+02:00"])})
    zoned.to_csv(folder / "pandas_zone.csv", index=False)
    back = pd.read_csv(folder / "pandas_zone.csv", parse_dates=["at"])
    times = pc.cast(pa.array(list(back["at"].dt.tz_convert("UTC"))), pa.timestamp("us", "UTC"))
    cases.append(Case("pandas_zone.csv", pa.table({"n": [1, 2], "at": times})))
    nanoseconds = pa.table({"n": [1, 2], "at": pa.array([1, None], pa.timestamp("ns"))})
    frame(nanoseconds).to_csv(folder / "pandas_ns.csv", index=False)
    cases.append(Case("pandas_ns.csv", nanoseconds))
    floats = pd.DataFrame({"n": [1, 2, 3], "x": [float("inf"), float("-inf"), 0.5]})
    floats.to_csv(folder / "pandas_inf.csv", index=False)
    same(pd.read_csv(folder / "pandas_inf.csv").to_dict("records"), pa.Table.from_pandas(floats, preserve_index=False))
    cases.append(Case("pandas_inf.csv", pa.Table.from_pandas(floats, preserve_index=False)))
    data.to_csv(folder / "pandas_utf16.csv", index=False, encoding="utf-16")
    cases.append(Case("pandas_utf16.csv", "UTF-8"))
    return cases


def by_polars(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    data = pl.from_arrow(table)
    cases = []

    def add(name: str, pipeline: str = "select", right: pa.Table | str = table, read: dict | None = None, suffix: str = "",
            **options) -> None:
        file = f"polars_{name}.csv{suffix}"
        data.write_csv(folder / file, **options)
        if read is not None:
            back = pl.read_csv(folder / file, try_parse_dates=True, **read)
            same(back.to_dicts(), right)
        cases.append(Case(file, right, pipeline))

    add("plain", read={})
    # Polars reads its own quoted values as strings.
    add("always", quote_style="always")
    add("non_numeric", quote_style="non_numeric", read={})
    add("semicolon", 'select(delimiter=";")', separator=";", read={"separator": ";"})
    add("bom", include_bom=True, read={})
    add("crlf", line_terminator="\r\n")
    add("no_header", "select(header=false)", table.rename_columns([f"column_{n + 1}" for n in range(6)]), include_header=False,
        read={"has_header": False, "new_columns": [f"column_{n + 1}" for n in range(6)]})
    add("scientific", float_scientific=True, read={})
    add("spaced", datetime_format="%Y-%m-%d %H:%M:%S%.6f", read={})
    add("gzip", compression="gzip", suffix=".gz", read={})
    add("zstd", compression="zstd", suffix=".zst", read={})
    words = texts(table.select(["name"]), name=[value or "NULL" for value in table["name"].to_pylist()])
    add("null_spelled", "select(columns=[name])", words, null_value="NULL")
    zoned = pl.DataFrame({"n": [1, 2], "at": ["2024-01-01T00:00:00.5", None]}).with_columns(
        pl.col("at").str.to_datetime(time_unit="us").dt.replace_time_zone("Europe/Berlin"))
    zoned.write_csv(folder / "polars_zone.csv")
    cases.append(Case("polars_zone.csv", zoned.with_columns(pl.col("at").dt.convert_time_zone("UTC")).to_arrow()))
    floats = pl.DataFrame({"n": [1, 2, 3], "x": [float("inf"), float("-inf"), float("nan")]})
    floats.write_csv(folder / "polars_nan.csv")
    same(pl.read_csv(folder / "polars_nan.csv").to_dicts(), floats.to_arrow())
    cases.append(Case("polars_nan.csv", floats.to_arrow()))
    return cases


def by_duckdb(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    connection = duckdb.connect()
    connection.register("written", table)
    cases = []

    def add(name: str, options: str, pipeline: str = "select", right: pa.Table = table, suffix: str = "", read: str = "") -> None:
        file = f"duckdb_{name}.csv{suffix}"
        connection.sql(f"copy written to '{folder / file}' (format csv{options})")
        back = connection.sql(f"from read_csv('{folder / file}'{read})")
        if pipeline == "select" or read:
            same([dict(zip(right.column_names, row)) for row in back.fetchall()], right)
        cases.append(Case(file, right, pipeline))

    add("plain", "")
    add("quoted", ", force_quote *")
    add("semicolon", ", delimiter ';'", 'select(delimiter=";")')
    add("no_header", ", header false", "select(header=false)", table.rename_columns([f"column_{n + 1}" for n in range(6)]))
    add("gzip", ", compression gzip", suffix=".gz")
    add("zstd", ", compression zstd", suffix=".zst")
    words = texts(table.select(["name"]), name=[value or "NULL" for value in table["name"].to_pylist()])
    add("null_spelled", ", nullstr 'NULL'", "select(columns=[name])", words)
    connection.sql("set TimeZone = 'UTC'")
    connection.sql(f"copy (select 1 as n, timestamptz '2024-01-01 00:00:00.5+02' as at, 'nan'::double as x union all "
                   f"select 2, null, '-inf'::double) to '{folder / 'duckdb_zone.csv'}' (format csv)")
    times = pa.array([1704060000500000, None], pa.timestamp("us", "UTC"))
    cases.append(Case("duckdb_zone.csv", pa.table({"n": [1, 2], "at": times, "x": [float("nan"), float("-inf")]})))
    return cases


def by_pyarrow(folder: pathlib.Path, table: pa.Table) -> list[Case]:
    cases = []

    def add(name: str, pipeline: str, right: pa.Table, written: pa.Table, **options) -> None:
        file = f"pyarrow_{name}.csv"
        pa.csv.write_csv(written, folder / file, pa.csv.WriteOptions(**options))
        cases.append(Case(file, right, pipeline))

    add("needed", "select", table, table)
    add("all_valid", "select", table, table, quoting_style="all_valid")
    plain = table.drop_columns(["name"])
    add("none", "select", plain, plain, quoting_style="none")
    add("semicolon", 'select(delimiter=";")', table, table, delimiter=";")
    add("no_header", "select(header=false)", table.rename_columns([f"column_{n + 1}" for n in range(6)]), table,
        include_header=False)
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    convert = pa.csv.ConvertOptions(strings_can_be_null=True)
    back = pa.csv.read_csv(folder / "pyarrow_needed.csv", parse_options=parse, convert_options=convert)
    same(back.to_pylist(), table)
    zoned = pa.table({"n": [1, 2], "at": pa.array([1704060000500, None], pa.timestamp("ms", "Europe/Berlin"))})
    add("zone", "select", zoned.set_column(1, "at", zoned["at"].cast(pa.timestamp("ms", "UTC"))), zoned)
    return cases


def by_python(folder: pathlib.Path) -> list[Case]:
    cases = []
    for dialect, delimiter in (("excel", None), ("excel-tab", "\\u{9}"), ("unix", None)):
        text = io.StringIO(newline="")
        writer = csv.writer(text, dialect)
        writer.writerow(["n", "name", "ok", "x"])
        writer.writerows([[1, "a\r\nb", True, 1e-7], [2, 'say "x"', False, float("nan")], [3, None, None, None]])
        file = f"python_{dialect}.csv"
        (folder / file).write_bytes(text.getvalue().encode())
        right = pa.table({"n": [1, 2, 3], "name": ["a\r\nb", 'say "x"', None], "ok": [True, False, None],
                          "x": pa.array([1e-7, float("nan"), None], from_pandas=False)})
        cases.append(Case(file, right, f'select(delimiter="{delimiter}")' if delimiter else "select"))
    return cases
