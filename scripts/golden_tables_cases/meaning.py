"""Expressions over `types.parquet` on which engines disagree, and conditions. DuckDB's answer is the expected one."""

# A list is the columns of one query.
EXPRESSIONS = [
    # Division and powers.
    ["n / 2", "i32 / 7", "u8 / 2", "u64 / 3", "dec / 3", "wide / 2", "f64 / 2", "f32 / 2", "(n + 1) / (f64 + 10)", "1 / (n + 1)"],
    ["n // 7", "i8 // 2", "u8 // 2", "-n // 7", "100 // 7 // 2", "7 // 2 * 2", "7 / 2 * 2", "100 / 10 / 4"],
    ["n % 7", "i8 % 4", "-n % 7", "dec % 2", "i8 % -4", "f64 % 2"],
    ["n ^ 2", "2 ^ 3", "2 ** 3", "-2 ^ 2", "2 * 3 ^ 2", "2 ^ 3 ^ 2", "2 + 3 ** 2 * 2", "i8 ** 2", "dec ^ 2", "4 ^ 0.5"],
    ["0.1 + 0.2 = 0.3", "1.5 * 2", "dec * 1.1", "dec + 0.1", "f64 * 1.5", "1e3", "1.5e-3", "1_000", "n * 0.5", ".5", "-1.50"],
    ["f64 > 0.1", "f32 > 0.1", "f32 = 0.1", "dec = 1.011", "n > 2.5", "f64 between 0.5 and 1.5", "f64 in (1.0, 0.0, 2.5)", "i32 = 70000.0"],
    # Casts.
    ["cast(f64 as int)", "cast(f64 * 3.5 as bigint)", "cast(f32 as smallint)", "cast(dec as int)", "cast(dec as bigint)", "cast(wide / 3 as bigint)"],
    ["cast(2.5 as int)", "cast(-1.5 as int)", "cast(3.5 as int)", "cast(2.5::double as int)", "cast(3.5::double as int)", "cast(0.5::float as int)"],
    ["cast('2.5' as int)", "cast('1e3' as int)", "cast(' 12 ' as int)", "cast('-0.5' as int)", "cast('1_000' as int)", "cast('1e2' as decimal(10, 2))"],
    ["try_cast(text as int)", "try_cast('300' as tinyint)", "try_cast(f64 * 100 as tinyint)", "try_cast('x' as boolean)", "cast('yes' as boolean)"],
    ["cast(dec as decimal(10, 1))", "cast(f64 as decimal(10, 2))", "cast(dec as double)", "cast(flag as int)", "cast(n as boolean)", "cast(n as decimal)"],
    ["cast(f64 as varchar)", "cast(f32 as varchar)", "cast(f64 * 1e20 as varchar)", "cast(f64 / 1e6 as varchar)", "cast(n / 1 as varchar)"],
    ["1e15::varchar", "1e16::varchar", "1e20::varchar", "1e-4::varchar", "1e-5::varchar", "'nan'::double::varchar", "(-'inf'::double)::varchar"],
    ["cast(s as varchar)", "cast(ms as varchar)", "cast(us as varchar)", "cast(ns as varchar)", "cast(utc as varchar)", "cast(berlin as varchar)"],
    ["cast(day as varchar)", "cast(time64 as varchar)", "cast(dec as varchar)", "cast(flag as varchar)", "cast(i8 as varchar)", "cast(wide as varchar)"],
    ["cast(interval '14 months' as varchar)", "cast(interval '-1 day' as varchar)", "cast(interval '90 minutes' as varchar)",
     "cast(interval '0 days' as varchar)", "cast(us - timestamp '2024-01-01 00:00:00' as varchar)"],
    ["concat(f64, '|', us, '|', text)", "concat_ws(',', f32, day, flag)", "concat(text, null)", "concat(1.0::double)"],
    # Times.
    ["day + interval '1 month'", "day + interval '1 hour'", "day - interval '1 day'", "day + 1", "us + interval '1 month'"],
    ["us > '2024-03-05'", "us < timestamp '9999-12-31 00:00:00'", "us > timestamp '0001-01-01 00:00:00'", "day > date '2024-03-05'"],
    ["extract(dow from day)", "extract(isodow from day)", "extract(week from day)", "extract(epoch from us)", "extract(second from us)",
     "extract(millisecond from us)", "extract(quarter from day)", "extract(doy from day)", "date_part('isoyear', day)", "extract(hour from time64)"],
    ["date_trunc('month', us)", "date_trunc('week', us)", "date_trunc('month', day)", "date_trunc('hour', us)", "date_trunc('quarter', us)"],
    # Texts.
    ["substr(text, 2)", "substr(text, 0)", "substr(text, 0, 2)", "substr(text, -2)", "substr(text, -2, 1)", "substr(text, -10, 7)",
     "substr(text, 2, -1)", "substring(text from -3)", "substring(text from 2 for 3)", "substring(text, i8::bigint, 2)"],
    ["left(text, 2)", "left(text, -2)", "right(text, 2)", "right(text, -2)", "length(text)", "strpos(text, 'e')", "position('e' in text)",
     "split_part(text, 'a', 2)", "split_part(text, 'a', -1)", "reverse(text)", "replace(text, 'a', 'o')", "trim(text, 'a')"],
    ["text like '%a'", "text like 'größ_'", "text ilike 'ALPHA'", "text like 'a\\%'", "text like 'al!pha' escape '!'", "text like '%,!%%' escape '!'",
     "text not like '%a%'", "text similar to 'alpha|beta'", "text similar to 'alph'", "text not similar to '.*a'", "text ~ 'lph'", "text !~* 'ALPH'"],
    ["regexp_replace(text, 'a', 'x')", "regexp_replace(text, 'a', 'x', 'g')", "regexp_replace(text, '(a)(l)', '\\2\\1')"],
    # Null and NaN.
    ["coalesce(f64, 0.5)", "nullif(n, 3)", "greatest(n, null, 20)", "least(f64, 0.5)", "greatest(i8, 1.5)", "ifnull(text, 'none')"],
    ["n in (1, null)", "n not in (1, null)", "null = null", "i8 is distinct from null", "i8 between null and 7", "null and false", "flag is not true"],
    ["case when f64 > 0 then f64 else 0.5 end", "case i8 when 1 then 'a' when null then 'b' else 'c' end", "case when null then 1 else 2 end"],
    ["'nan'::double = 'nan'::double", "'nan'::double > 'inf'::double", "0.0::double = -0.0::double", "'nan'::double < 1"],
    ["round(2.5)", "round(-2.5)", "round(2.5::double)", "round(2.345, 2)", "round(f64, 1)", "round(dec, 1)", "round(1234, -2)", "ceil(dec)", "trunc(f64)"],
]

# Whole queries.
QUERIES = [
    "select n, i8 from object order by i8 desc, n",
    "select n, i8 from object order by i8, n",
    "select n, text from object order by text desc, n limit 12",
    "select n, f64 from object order by f64 desc nulls first, n limit 20",
    "select n, row_number() over (order by i32 desc, n) as r from object order by n",
    "select n, rank() over (order by i32) as r, sum(n) over (order by i32 desc) as s from object order by n",
    "select n, lag(i8) over (order by n) as v, first_value(i8) over (order by i8 desc, n) as w from object order by n",
    "select word, avg(dec) as a, sum(dec) as s, min(f32) as low, max(f32) as high, avg(i8) as m from object group by word order by word",
    "select word, avg(dec) as a from object group by word having avg(dec) > 9.5 order by a desc",
    "select avg(dec) as a, avg(i32) as b, avg(dec / 2) as c, sum(n / 2) as d, count(distinct word) as e, min(text) as f from object",
    "select n // 10 as g, sum(i32) / count(*) as m from object group by g order by g",
    "select n / 10 > 2.5 as g, count(*) as c from object group by 1 order by 1",
    "select k, v from (values ('a', 7 / 2), ('b', 1), (null, 2)) t(k, v) order by k desc",
    "select n from (select n from object order by n desc) limit 5",
    "select distinct on (word) word, n from object order by word, n desc",
    "select n from object qualify row_number() over (partition by word order by n) = 2 order by n",
    "select * exclude (\"binary\", fixed, berlin, utc, time64, f16, duration) replace (n / 2 as n) from object where n < 3 order by 1",
    "select string_agg(word, '-' order by n desc) as a, array_agg(i8 order by i8 desc) as b from object where n < 9",
]

# Conditions of `select(where=)`.
CONDITIONS = [
    "n / 2 > 20.4",
    "n // 2 = 3",
    "n ^ 2 > 2000",
    "7 / 2 > 3 and n < 2",
    "cast(f64 as int) = 2",
    "cast(dec as int) = 3",
    "f64 > 2.5",
    "f32 >= 15.5",
    "n > 46.5",
    "dec between 3.5 and 5.01",
    "substr(text, -2) = 'ha'",
    "text like 'gr__e'",
    "text similar to 'b.*|g.*'",
    "cast(us as varchar) like '2024-03-0%'",
    "cast(f64 as varchar) = '1.0'",
    "us > timestamp '2024-03-10 00:00:00' and us < timestamp '9999-12-31 00:00:00'",
    "day + interval '1 hour' > timestamp '2024-04-10 00:30:00'",
    "(i8 is distinct from null) and i8 > -2 ** 2",
]
