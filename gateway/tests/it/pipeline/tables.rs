//! Tables: read by ranges, answered as a stream of rows.

mod cells;
mod limits;
mod many_objects;
mod planning;
mod steps;
mod store_faults;
mod streaming;

use anyhow::{Result, ensure};
use pushdown::{Context, Limits, Pipeline, Sample, Table, wire};
use pushdown_testkit::{Backend, Gateway, Keys, Parquet, Payload, Request, Response, Store};

use super::{Lab, batch};
use crate::it::binary;

const FILTER: &str = "select(columns=[n, c001], where='n < 60000')";

/// 24 columns of 1.6 MB each, in ten row groups.
const WIDE: Parquet = Parquet {
    rows: 200_000,
    noise: 22,
    row_group: 20_000,
};

const SMALL: Parquet = Parquet {
    rows: 1000,
    noise: 2,
    row_group: 300,
};

/// Runs a pipeline on the object `t.parquet` in this process and returns the table.
fn expected_rows(object: &[u8], pipeline: &str) -> Result<Table> {
    let pipeline: Pipeline = pipeline.parse()?;
    let object = Sample::Bytes(object.to_vec().into());
    match pipeline.run(0..pipeline.len(), object, &Context::new(b"t.parquet"))? {
        Sample::Table(table) => Ok(table),
        other => anyhow::bail!("{other:?}"),
    }
}

/// Decodes the table of an answer.
fn read_table(answer: &Response) -> Result<Table> {
    ensure!(answer.status == 200, "{}", answer.text());
    let content_type = answer.header("content-type").unwrap_or_default();
    let body = answer.body.clone().into();
    match wire::decode(content_type, |name| answer.header(name), body, &Limits::default())? {
        Sample::Table(table) => Ok(table),
        other => anyhow::bail!("{other:?}"),
    }
}

/// An unsigned GET with a pipeline.
fn get(gateway: &Gateway, pipeline: &str) -> Request {
    Request::new("GET", "/tables/t.parquet")
        .header("Host", &gateway.listen().to_string())
        .header("x-pushdown-pipeline", pipeline)
}

fn put(store: &Store, target: &str, body: Vec<u8>) -> Result<()> {
    let request = Request::new("PUT", target)
        .header("Host", &store.gateway.listen().to_string())
        .body(body);
    let answer = store
        .keys
        .sign(request, Payload::Signed)?
        .send(store.gateway.listen())?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(())
}

fn send_signed(store: &Store, keys: &Keys, pipeline: &str) -> Result<Response> {
    keys.sign(get(&store.gateway, pipeline), Payload::Signed)?
        .send(store.gateway.listen())
}

#[test]
fn a_filtered_scan_returns_the_right_rows_and_reads_few_bytes() -> Result<()> {
    check_filtered_scan(Backend::SeaweedFs)
}

#[test]
#[ignore = "a second store: make test-full"]
fn a_filtered_scan_of_the_embedded_store_returns_the_right_rows_and_reads_few_bytes() -> Result<()> {
    check_filtered_scan(Backend::Embedded)
}

fn check_filtered_scan(backend: Backend) -> Result<()> {
    if !backend.is_enabled()? {
        return Ok(());
    }
    let object = WIDE.write()?;
    let store = backend.start(binary())?;
    put(&store, "/tables", Vec::new())?;
    put(&store, "/tables/t.parquet", object.clone())?;
    let before = store.gateway.metric("pushdown_store_received_bytes_total")?;
    let answer = send_signed(&store, &store.keys, FILTER)?;
    assert_eq!(read_table(&answer)?, expected_rows(&object, FILTER)?, "{backend}");
    let read = store.gateway.metric("pushdown_store_received_bytes_total")? - before;
    // Three row groups of two columns, of 20,000 rows of 8 bytes each.
    let needed = 3.0 * 2.0 * 160_000.0;
    assert!(read <= 1.15 * needed, "{backend}: {read} of {needed}");
    let (source_bytes, stored) = answer
        .header("x-pushdown-source-bytes")
        .and_then(|value| value.split_once('/'))
        .unwrap_or_default();
    assert_eq!(stored.parse::<usize>()?, object.len());
    assert!(
        (source_bytes.parse::<f64>()? - read).abs() < 1.0,
        "{source_bytes} in the header, {read} read"
    );

    let stranger = Keys::new(&store.keys.access, "anothersecret");
    let refused = send_signed(&store, &stranger, FILTER)?;
    assert_eq!(
        (refused.status, refused.element("Code").as_deref()),
        (403, Some("SignatureDoesNotMatch"))
    );
    assert_eq!(refused.header("x-pushdown-stage"), None);
    assert!(store.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}

#[test]
fn response_headers_describe_the_table() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = SMALL.write()?;
    lab.put("t.parquet", object.clone())?;
    let answer = lab.get("t.parquet", FILTER, &[("range", "bytes=0-9")])?;
    assert_eq!(
        read_table(&answer)?,
        expected_rows(&object, FILTER)?,
        "the range is ignored"
    );
    let stored = object.len();
    for (name, value) in [
        ("content-type", "application/vnd.apache.arrow.stream"),
        ("accept-ranges", "none"),
        ("x-pushdown-kind", "table"),
        ("x-pushdown-stage", "1"),
        ("x-pushdown-engine", "table=4"),
        ("x-pushdown-source-bytes", &format!("{stored}/{stored}")),
        ("cache-control", "private, no-cache"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(answer.header("content-length"), None);
    let timing = answer.header("server-timing").unwrap_or_default();
    for metric in ["origin;dur=", "plan;dur=", "queue;dur=", "select;dur="] {
        assert!(timing.contains(metric), "{metric} in {timing}");
    }
    let etag = answer.header("etag").unwrap_or_default().to_owned();
    assert!(etag.starts_with("W/\""), "{etag}");
    let cached = lab.get("t.parquet", FILTER, &[("if-none-match", &etag)])?;
    assert_eq!((cached.status, cached.body.len()), (304, 0));
    let head = lab.send("HEAD", "t.parquet", FILTER, &[])?;
    assert_eq!((head.status, head.header("etag")), (200, Some(etag.as_str())));
    assert_eq!(head.header("content-type"), answer.header("content-type"));
    let npy = lab.get("t.parquet", FILTER, &[("accept", "application/x-npy")])?;
    assert_eq!(
        (npy.status, npy.element("Code").as_deref()),
        (406, Some("NotAcceptable"))
    );
    Ok(())
}

#[test]
fn every_split_returns_the_same_rows() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = SMALL.write()?;
    lab.put("t.parquet", object.clone())?;
    for pipeline in [
        "select(columns=[text, n], where=\"n >= 100 and text like '%7'\", limit=50)",
        "sql('select sum(c000) as s, n % 3 as m from object group by n % 3 order by m')",
        "sql('select n from object where n < 5 union all select n from object where n > 994')",
        "select(where='n > 100000')",
    ] {
        let stored = lab.get("t.parquet", pipeline, &[("x-pushdown-split", "0")])?;
        assert!(stored.body == object, "{pipeline}");
        for split in ["1", "full"] {
            let answer = lab.get("t.parquet", pipeline, &[("x-pushdown-split", split)])?;
            assert_eq!(
                read_table(&answer)?,
                expected_rows(&stored.body, pipeline)?,
                "{pipeline}"
            );
        }
    }
    Ok(())
}

#[test]
fn split_smallest_returns_the_object_if_the_rows_are_larger() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = SMALL.write()?;
    lab.put("t.parquet", object.clone())?;
    let smallest = [("x-pushdown-split", "smallest")];
    let few = lab.get("t.parquet", "select(columns=[n], limit=10)", &smallest)?;
    assert_eq!(few.header("x-pushdown-stage"), Some("1"));
    assert_eq!(read_table(&few)?.rows(), 10);
    let duplicated_columns = "sql('select n, n as m, text, text as t, c000, c001 from object')";
    let all = lab.get("t.parquet", duplicated_columns, &smallest)?;
    assert_eq!(all.header("x-pushdown-stage"), Some("0"));
    assert!(all.body == object, "the stored object");
    // Incompressible numbers have three times as many decimal digits as bytes.
    let noise = "select(columns=[c000, c001])";
    for (accept, stage) in [
        ("application/vnd.apache.arrow.stream", "1"),
        ("text/csv, */*;q=0.1", "0"),
        ("application/x-ndjson, */*;q=0.1", "0"),
    ] {
        let answer = lab.get("t.parquet", noise, &[smallest[0], ("accept", accept)])?;
        assert_eq!(answer.header("x-pushdown-stage"), Some(stage), "{accept}");
    }
    Ok(())
}

#[test]
fn unreadable_tables_are_refused_with_the_reason() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = SMALL.write()?;
    lab.put("t.parquet", object.clone())?;
    lab.put("cut.parquet", &object[..object.len() / 2])?;
    lab.put(
        "lying.parquet",
        [&object[..200], b"\xff\xff\xff\x7fPAR1"].concat(),
    )?;
    lab.put("empty.parquet", "")?;
    for (key, pipeline, status, code, text) in [
        ("missing.parquet", FILTER, 404, "NoSuchKey", ""),
        (
            "cut.parquet",
            FILTER,
            422,
            "UndecodableObject",
            "expected `PAR1` at the end of the object",
        ),
        ("lying.parquet", FILTER, 422, "UndecodableObject", ""),
        ("empty.parquet", FILTER, 422, "UndecodableObject", ""),
        (
            "t.parquet",
            "select(columns=[txt])",
            422,
            "UnsuitableObject",
            "did you mean `text`?",
        ),
        (
            "t.parquet",
            "sql('select n fro object')",
            400,
            "InvalidPipeline",
            "",
        ),
        (
            "t.parquet",
            "sql('select random() from object')",
            400,
            "InvalidPipeline",
            "",
        ),
        (
            "t.parquet",
            r#"select(where="regexp_replace(text, '(\\w{100}){100}', '') = ''")"#,
            400,
            "InvalidPipeline",
            "compiles to more than",
        ),
    ] {
        let answer = lab.get(key, pipeline, &[])?;
        let found = (answer.status, answer.element("Code").unwrap_or_default());
        assert_eq!(
            found,
            (status, code.to_owned()),
            "{key} {pipeline}: {}",
            answer.text()
        );
        let message = answer
            .element("Message")
            .unwrap_or_default()
            .replace("&apos;", "'");
        assert!(message.contains(text), "{message}");
    }
    assert!(lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}

#[test]
fn a_bad_table_in_a_batch_fails_alone() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = SMALL.write()?;
    let keys: Vec<String> = (0..6).map(|index| format!("{index}.parquet")).collect();
    for (index, key) in keys.iter().enumerate() {
        match index {
            3 => lab.put(key, "no table")?,
            _ => lab.put(key, object.clone())?,
        }
    }
    let request = batch::request(&lab, FILTER.parse()?, &keys)?;
    let rows = batch::rows(batch::send(&lab, &request)?)?;
    assert_eq!(rows.len(), 6);
    for row in rows {
        match (row.row, row.value) {
            (3, Err(error)) => assert_eq!(error.code, "UndecodableObject"),
            (index, value) => {
                let value = value.map_err(|error| anyhow::anyhow!("{index}: {error}"))?;
                assert_eq!(value, Sample::Table(expected_rows(&object, FILTER)?), "{index}");
            }
        }
    }
    assert!(lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}

#[test]
fn memory_is_reserved_before_rows_are_streamed() -> Result<()> {
    let lab = Lab::new(&["--memory-budget=16MiB"])?;
    let one_group = Parquet {
        rows: 100_000,
        noise: 12,
        row_group: 100_000,
    };
    lab.put("t.parquet", one_group.write()?)?;
    let few = lab.get("t.parquet", FILTER, &[])?;
    assert_eq!(read_table(&few)?.rows(), 60_000);
    let answer = lab.get("t.parquet", "select()", &[])?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (413, Some("EntityTooLarge")),
        "{}",
        answer.text()
    );
    assert!(lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}
