//! Every limit on tables is a setting, and crossing it is an error that names the limit.

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};

use pushdown_testkit::Parquet;

use super::{Lab, SMALL, read_table};

/// One row group per row: its footer is longer than the first read at the end of an object.
const LONG_FOOTER: Parquet = Parquet {
    row_group: 1,
    ..SMALL
};

#[test]
fn every_table_limit_can_be_set_and_is_enforced() -> Result<()> {
    let rows: Vec<_> = (0..2000).map(|row| format!("{row},text {row}")).collect();
    let text = format!("n,text\n{}\n", rows.join("\n"));
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(text.as_bytes())?;
    let compressed = compressed.finish()?;
    let long = format!("n,text\n1,\"{}\"\n", "x".repeat(200_000));
    let sorted = "sql('select * from object order by text desc')";
    let cases = [
        ("--max-table-columns=2", "t.parquet", "select()"),
        ("--max-footer-bytes=10000", "groups.parquet", "select()"),
        ("--max-row-group-bytes=1000", "t.parquet", "select()"),
        ("--max-record-batch-bytes=100KiB", "long.csv", "select()"),
        ("--max-inflated-bytes=10KiB", "t.csv.gz", "select()"),
        ("--max-query-bytes=10KiB", "t.csv", sorted),
    ];
    let mut results = Vec::new();
    for (flag, key, pipeline) in cases {
        let lab = Lab::new(&[flag])?;
        lab.put("t.parquet", SMALL.write()?)?;
        lab.put("groups.parquet", LONG_FOOTER.write()?)?;
        lab.put("t.csv", text.clone())?;
        lab.put("t.csv.gz", compressed.clone())?;
        lab.put("long.csv", long.clone())?;
        let answer = lab.get(key, pipeline, &[])?;
        let (code, message) = (answer.element("Code"), answer.element("Message"));
        results.push(format!(
            "{flag}: {} {}: {}",
            answer.status,
            code.unwrap_or_default(),
            message.unwrap_or_default()
        ));
        // The gateway keeps working.
        assert_eq!(
            lab.get("t.csv", "select(columns=[n], limit=1)", &[])?.status,
            200,
            "{flag}"
        );
    }
    insta::assert_snapshot!(results.join("\n"));
    Ok(())
}

/// Memory for a first row of more than a MiB is reserved while it is read, compressed or not.
#[test]
fn a_long_first_row_is_read_within_the_memory_budget() -> Result<()> {
    let rows = |length| {
        let long = "A".repeat(length);
        format!("{{\"id\": 0, \"image\": \"{long}\"}}\n{{\"id\": 1, \"image\": \"\"}}\n")
    };
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(rows(40_000_000).as_bytes())?;
    let lab = Lab::new(&["--memory-budget=64MiB"])?;
    lab.put("a.jsonl", rows(1_500_000))?;
    lab.put("b.jsonl.gz", compressed.finish()?)?;
    let select = "select(columns=[id])";
    let answer = lab.get("a.jsonl", select, &[])?;
    assert_eq!(read_table(&answer)?.rows(), 2);
    let answer = lab.get("b.jsonl.gz", select, &[])?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (413, Some("EntityTooLarge")),
        "{}",
        answer.text()
    );
    assert!(lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}
