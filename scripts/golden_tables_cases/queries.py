"""The queries: files, pipelines, and equivalents for DuckDB or pyarrow."""

TPCH = [
    ("lineitem", "select l_returnflag, l_linestatus, sum(l_quantity) as q, sum(l_extendedprice) as p, "
     "sum(l_extendedprice * (1 - l_discount)) as d, avg(l_quantity) as a, count(*) as c from object "
     "where l_shipdate <= date '1998-09-02' group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus"),
    ("lineitem", "select sum(l_extendedprice * l_discount) as revenue from object where l_shipdate >= date '1994-01-01' "
     "and l_shipdate < date '1995-01-01' and l_discount between 0.05 and 0.07 and l_quantity < 24"),
    ("lineitem", "select l_shipmode, count(*) as c, min(l_shipdate) as first, max(l_receiptdate) as last from object "
     "where l_receiptdate > l_commitdate group by l_shipmode order by l_shipmode"),
    ("lineitem", "select l_orderkey, l_linenumber, l_shipdate from object order by l_extendedprice desc, l_orderkey, "
     "l_linenumber limit 20"),
    ("lineitem", "select extract(year from l_shipdate) as y, count(distinct l_suppkey) as s from object group by y order by y"),
    ("lineitem", "select l_orderkey, sum(l_quantity) as q from object group by l_orderkey having sum(l_quantity) > 200 "
     "order by q desc, l_orderkey"),
    ("lineitem", "select count(*) as c from object where l_comment like '%express%' and l_shipinstruct in ('NONE', 'COLLECT COD')"),
    ("lineitem", "select l_shipmode, l_shipdate, row_number() over (partition by l_shipmode order by l_shipdate, l_orderkey, "
     "l_linenumber) as r from object where l_shipdate < date '1992-03-01' order by l_shipmode, r"),
    ("lineitem", "select case when l_discount > 0.05 then 'high' else 'low' end as band, avg(l_tax) as t from object "
     "group by band order by band"),
    ("lineitem", "select l_shipmode, count(*) as c from object where l_quantity > (select avg(l_quantity) from object) "
     "and l_linenumber < (select max(l_linenumber) from object) group by l_shipmode order by l_shipmode"),
    ("orders", "select o_orderpriority, count(*) as c from object where o_orderdate >= date '1993-07-01' and "
     "o_orderdate < date '1993-10-01' group by o_orderpriority order by o_orderpriority"),
    ("orders", "select o_orderkey, o_totalprice from object where o_totalprice > (select avg(o_totalprice) * 1.8 from object) "
     "order by o_orderkey"),
    ("orders", "select o_orderstatus, max(o_totalprice) as most, min(o_clerk) as clerk from object group by o_orderstatus "
     "order by o_orderstatus"),
    ("orders", "select date_trunc('month', o_orderdate) as m, count(*) as c from object group by m order by m limit 12"),
    ("orders", "with big as (select o_custkey, sum(o_totalprice) as s from object group by o_custkey) "
     "select o_custkey, s from big where s > 500000 order by o_custkey"),
    ("orders", "select upper(substr(o_comment, 1, 5)) as w, length(o_comment) as l from object order by o_orderkey limit 30"),
    ("customer", "select c_mktsegment, count(*) as c, sum(c_acctbal) as s from object where c_acctbal > 0 "
     "group by c_mktsegment order by c_mktsegment"),
    ("customer", "select c_name from object where c_phone like '2%' and c_nationkey not in (1, 2, 3) order by c_custkey limit 25"),
    ("part", "select p_brand, avg(p_retailprice) as p from object where p_size between 10 and 20 group by p_brand order by p_brand"),
    ("part", "select p_partkey from object where p_type like '%BRASS' or p_container = 'MED BOX' order by p_partkey"),
    ("part", "select distinct p_mfgr from object order by p_mfgr"),
]

TYPES = [
    ("types", "select sum(i8) as a, sum(i16) as b, sum(i32) as c, sum(u8) as d, count(u64) as e, avg(f64) as f from object"),
    ("types", "select n, dec * 2 as twice, wide + 1 as more from object where dec > -3.5 order by n"),
    ("types", "select flag, count(*) as c, min(text) as low, max(day) as high from object group by flag order by flag nulls last"),
    ("types", "select word, count(*) as c from object group by word order by word nulls first"),
    ("types", "select n, coalesce(text, 'none') as t, f64 is null as missing from object order by n"),
    ("types", "select n, us, us + interval '1 day' as later from object where us > timestamp '2024-03-05 00:00:00' order by n"),
    ("types", "select n from object where text = 'größe' or large like 'beta%' order by n"),
    ("types", "select n, exp(f64) as e, ln(f64 + 10) as l, sin(f64) as s, power(f64, 3) as p, sqrt(abs(f64)) as r from object order by n"),
    ("types", "select n, round(f64, 2) as r, floor(f64) as f, ceil(f64) as c, n % 7 as m from object order by n"),
    ("no_statistics", "select count(*) as c, sum(i32) as s from object where n >= 10 and n < 33"),
    ("version1", "select n, text, dec from object where i8 < 0 order by n"),
    ("no_schema", "select count(*) as c, min(us) as low, max(utc) as high from object"),
    ("int96", "select n, us from object where us >= timestamp '2024-03-01 00:00:00' order by n"),
    ("empty_groups", "select sum(n) as s, count(*) as c from object"),
    ("empty", "select count(*) as c, sum(n) as s from object"),
]

OTHERS = [
    ("orders.csv", "select o_orderpriority, count(*) as c, min(o_orderdate) as d from object group by o_orderpriority order by 1"),
    ("orders.csv.gz", "select o_orderkey, o_comment from object where o_totalprice > 200000 order by o_orderkey"),
    ("orders.jsonl.zst", "select o_orderstatus, count(*) as c from object group by o_orderstatus order by o_orderstatus"),
    ("quotes.csv", "select id, note, price, day from object order by id"),
    ("rows.jsonl", "select id, name, ok, late from object order by id"),
]

# File, columns, condition of the pipeline, the condition as a pyarrow expression, limit.
SELECTS = [
    ("lineitem.parquet", ["l_orderkey", "l_shipdate", "l_extendedprice"], "l_shipdate >= '1997-06-01' and l_shipdate < '1997-09-01'",
     "(field('l_shipdate') >= date(1997, 6, 1)) & (field('l_shipdate') < date(1997, 9, 1))", None),
    ("lineitem.parquet", ["l_comment", "l_quantity"], "l_quantity = 50", "field('l_quantity').cast('float64') == 50", 40),
    ("lineitem.parquet", ["l_shipmode"], None, None, 25),
    ("orders.parquet", None, "o_orderkey in (1, 7, 64, 5000)", "field('o_orderkey').isin([1, 7, 64, 5000])", None),
    ("customer.parquet", ["c_custkey", "c_acctbal"], "c_acctbal < 0 and c_mktsegment = 'BUILDING'",
     "(field('c_acctbal').cast('float64') < 0) & (field('c_mktsegment') == 'BUILDING')", None),
    ("types.parquet", None, None, None, None),
    ("types.parquet", ["word", "large", "fixed", "f16"], "n >= 17 and n <= 34", "(field('n') >= 17) & (field('n') <= 34)", None),
    ("types.parquet", ["utc", "berlin", "ns", "time64"], "flag", "field('flag')", None),
    ("types.parquet", ["n"], "f64 > 1 or f64 is null", "(field('f64') > 1) | field('f64').is_null()", None),
    ("types.parquet", ["n", "dec"], "dec <= 10.01", "field('dec').cast('float64') <= 10.01", None),
    ("types.parquet", ["n"], "word = 'beta'", "field('word') == 'beta'", None),
    ("types.parquet", ["u8", "u16", "u32", "u64"], "u8 > 100", "field('u8') > 100", None),
    ("no_statistics.parquet", None, "n > 40", "field('n') > 40", None),
    ("version1.parquet", ["n", "s", "ms", "us"], None, None, None),
    ("no_schema.parquet", ["n", "text", "utc", "day"], "n < 9", "field('n') < 9", None),
    ("int96.parquet", None, None, None, None),
    ("empty_groups.parquet", None, None, None, None),
    ("empty.parquet", ["n", "text"], None, None, None),
    ("nested.parquet", None, None, None, None),
    ("nested.parquet", ["points", "n"], "n >= 5 and n < 15", "(field('n') >= 5) & (field('n') < 15)", None),
    ("nested.parquet", ["map", "deep"], None, None, 12),
    ("nested.parquet", ["image"], "n > 20", "field('n') > 20", None),
    ("types.arrow", None, None, None, None),
    ("types.arrow", ["text", "n"], "n >= 15 and n < 45", "(field('n') >= 15) & (field('n') < 45)", None),
    ("types.arrows", ["word", "dec", "berlin"], None, None, 33),
    ("orders.csv", ["o_orderkey", "o_orderdate", "o_comment"], "o_orderkey < 100", "field('o_orderkey') < 100", None),
    ("rows.jsonl", ["id", "tags", "point"], None, None, None),
]
