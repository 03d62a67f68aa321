//! Many objects as one table.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use pushdown::{MergeRule, SchemaRule, Table, TableBuilder, wire::Compression};
use pushdown_testkit::{Raw, Response, eventually};

use super::{Lab, SMALL, WIDE, batch, expected_rows, read_table};

fn keys<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn ask(lab: &Lab, pipeline: &str, keys: &[String], rule: MergeRule, accept: &str) -> Result<Response> {
    let mut request = batch::request(lab, pipeline.parse()?, keys)?;
    request.table = Some(rule);
    let post = batch::post(lab, serde_json::to_vec(&request)?);
    post.header("accept", accept).send(lab.address())
}

const ARROW: &str = "application/vnd.apache.arrow.stream";
const SAME_SCHEMA: MergeRule = MergeRule {
    key: false,
    schema: SchemaRule::Same,
};
const UNION_WITH_KEY: MergeRule = MergeRule {
    key: true,
    schema: SchemaRule::Union,
};

fn wait_for_released_memory(lab: &Lab) -> Result<()> {
    eventually("the memory is released", Duration::from_secs(20), || {
        Ok((lab.gateway.metric("pushdown_memory_reserved_bytes")? < 1.0).then_some(()))
    })
}

/// Concatenates the rows of the tables.
fn concatenate(tables: &[Table]) -> Result<Table> {
    let mut all = TableBuilder::new(Arc::clone(tables[0].schema()), u64::MAX);
    for batch in tables.iter().flat_map(Table::batches) {
        all.push(batch.clone())?;
    }
    Ok(all.build())
}

#[test]
fn many_objects_are_one_table_in_the_requested_order() -> Result<()> {
    let lab = Lab::new(&[])?;
    let (small, wide) = (SMALL.write()?, WIDE.write()?);
    // More objects than the read-ahead covers, with large ones between small ones.
    let names: Vec<String> = (0..12).map(|index| format!("part-{index:02}.parquet")).collect();
    let object = |index: usize| if index % 5 == 2 { &wide } else { &small };
    for (index, name) in names.iter().enumerate() {
        lab.put(name, object(index).clone())?;
    }
    let pipeline = "select(columns=[n, c001], where='n < 60000')";
    let expected: Vec<_> = (0..12)
        .map(|index| expected_rows(object(index), pipeline))
        .collect::<Result<_>>()?;
    let answer = ask(&lab, pipeline, &names, SAME_SCHEMA, ARROW)?;
    assert_eq!(read_table(&answer)?, concatenate(&expected)?);
    let (read, stored) = answer
        .header("x-pushdown-source-bytes")
        .and_then(|value| value.split_once('/'))
        .unwrap_or_default();
    let all: usize = (0..12).map(|index| object(index).len()).sum();
    assert_eq!(stored.parse::<usize>()?, all);
    assert!(read.parse::<usize>()? < all / 4, "{read} of {all}");
    wait_for_released_memory(&lab)?;
    // LZ4 compression set by the request, and the format set by the Accept header.
    let mut request = batch::request(&lab, pipeline.parse()?, &names)?;
    request.table = Some(SAME_SCHEMA);
    request.compression = Compression::Lz4;
    let smaller = batch::send(&lab, &request)?;
    assert_eq!(read_table(&smaller)?, concatenate(&expected)?);
    assert!(smaller.body.len() < answer.body.len(), "{}", smaller.body.len());
    let csv = ask(
        &lab,
        "select(columns=[n], limit=2)",
        &names[..2],
        SAME_SCHEMA,
        "text/csv",
    )?;
    assert_eq!(csv.text(), "n\n0\n1\n0\n1\n");
    Ok(())
}

#[test]
fn a_key_column_names_the_object_and_missing_columns_are_null() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("a%20b.csv", "x,y\n1,one\n2,two\n")?;
    lab.put("c.ndjson", "{\"z\": true, \"x\": 3}\n")?;
    let keys = keys(["a%20b.csv", "c.ndjson"]);
    let answer = ask(&lab, "select()", &keys, UNION_WITH_KEY, "application/x-ndjson")?;
    assert_eq!(
        answer.text(),
        "{\"key\":\"a b.csv\",\"x\":1,\"y\":\"one\",\"z\":null}\n{\"key\":\"a b.csv\",\"x\":2,\"y\":\"two\",\"z\":null}\n\
         {\"key\":\"c.ndjson\",\"x\":3,\"y\":null,\"z\":true}\n"
    );
    let parquet = ask(
        &lab,
        "select()",
        &keys,
        UNION_WITH_KEY,
        "application/vnd.apache.parquet",
    )?;
    assert_eq!((parquet.status, &parquet.body[..4]), (200, &b"PAR1"[..]));
    Ok(())
}

#[test]
fn incompatible_objects_are_refused_before_the_first_row() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("a.csv", "x,y\n1,one\n")?;
    lab.put("b.csv", "x,y\n1,2\n")?;
    lab.put("photo.jpg", "no table")?;
    let ask = |pipeline: &str, names: &[&str], rule| -> Result<(u16, String)> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let answer = ask(&lab, pipeline, &names, rule, ARROW)?;
        Ok((answer.status, answer.element("Message").unwrap_or_default()))
    };
    let cases = [
        ask("select()", &["a.csv", "b.csv"], SAME_SCHEMA)?,
        ask("select()", &["a.csv", "b.csv"], UNION_WITH_KEY)?,
        ask("select(columns=[key])", &["a.csv"], SAME_SCHEMA)?,
        ask("sql(\"select x as key from object\")", &["a.csv"], UNION_WITH_KEY)?,
        ask("select()", &["a.csv", "missing.csv"], SAME_SCHEMA)?,
        ask("select()", &["a.csv", "photo.jpg"], SAME_SCHEMA)?,
        ask("decode | to_float", &["a.csv"], SAME_SCHEMA)?,
    ];
    let cases = cases.map(|(status, message)| format!("{status} {message}"));
    insta::assert_snapshot!(cases.join("\n"));
    wait_for_released_memory(&lab)?;
    Ok(())
}

#[test]
fn a_disconnect_stops_the_reads() -> Result<()> {
    let lab = Lab::new(&[])?;
    let wide = WIDE.write()?;
    let names: Vec<String> = (0..8).map(|index| format!("{index}.parquet")).collect();
    for name in &names {
        lab.put(name, wide.clone())?;
    }
    let mut request = batch::request(&lab, "select()".parse()?, &names)?;
    request.table = Some(SAME_SCHEMA);
    let post = batch::post(&lab, serde_json::to_vec(&request)?);
    let mut client = Raw::connect(lab.address())?;
    client.write(&[post.head(), post.body].concat())?;
    assert_eq!(client.begin("POST")?.head.status, 200);
    drop(client);
    wait_for_released_memory(&lab)?;
    let received = lab.gateway.metric("pushdown_store_received_bytes_total")?;
    #[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
    let all = (wide.len() * names.len()) as f64;
    assert!(received < all / 2.0, "{received} of {all}");
    Ok(())
}
