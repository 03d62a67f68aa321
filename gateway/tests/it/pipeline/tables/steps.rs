//! Steps after the scan, and objects that are read from their start.

use anyhow::Result;
use pushdown_testkit::Parquet;

use super::{Lab, SMALL, expected_rows, read_table};

#[test]
fn all_steps_of_a_prefix_run() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = SMALL.write()?;
    lab.put("t.parquet", object.clone())?;
    let pipeline = "select(columns=[n]) | sample(0.5, 7)";
    let few = expected_rows(&object, pipeline)?;
    assert!((300..700).contains(&few.rows()), "{} of 1000 rows", few.rows());
    for (split, stage, prefix) in [
        ("1", "1", "select(columns=[n])"),
        ("2", "2", pipeline),
        ("full", "2", pipeline),
    ] {
        let answer = lab.get("t.parquet", pipeline, &[("x-pushdown-split", split)])?;
        assert_eq!(answer.header("x-pushdown-stage"), Some(stage));
        assert_eq!(read_table(&answer)?, expected_rows(&object, prefix)?, "{split}");
    }
    Ok(())
}

#[test]
fn csv_objects_are_tables() -> Result<()> {
    let lab = Lab::new(&[])?;
    let lines = (0..3000).map(|row| format!("{row},name {row}\n"));
    let object = format!("n,name\n{}", lines.collect::<String>());
    lab.put("t.csv", object.clone())?;
    let answer = lab.get("t.csv", "select(columns=[name], where='n >= 2990')", &[])?;
    let with_format = "select(columns=[name], where='n >= 2990', format=csv)";
    assert_eq!(
        read_table(&answer)?,
        expected_rows(object.as_bytes(), with_format)?
    );
    let accept = [("accept", "text/csv")];
    let answer = lab.get("t.csv", "select(where='n < 2')", &accept)?;
    assert_eq!(answer.text(), "n,name\n0,name 0\n1,name 1\n");
    Ok(())
}

#[test]
fn arrow_buffers_are_compressed_on_request() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("t.parquet", SMALL.write()?)?;
    let get = |accept: &str| lab.get("t.parquet", "select(columns=[text])", &[("accept", accept)]);
    let plain = get("application/vnd.apache.arrow.stream")?;
    let mut etags = vec![plain.header("etag").map(str::to_owned)];
    for codec in ["LZ4", "zstd"] {
        let accept = format!("text/html, application/vnd.apache.arrow.stream; compression={codec}");
        let compressed = get(&accept)?;
        assert_eq!(read_table(&plain)?, read_table(&compressed)?);
        assert!(compressed.body.len() * 2 < plain.body.len(), "{codec}");
        assert_eq!(compressed.header("content-type"), plain.header("content-type"));
        let etag = compressed.header("etag").map(str::to_owned);
        assert!(!etags.contains(&etag), "{codec}");
        etags.push(etag);
    }
    let other = get("application/vnd.apache.arrow.stream; compression=zip")?;
    assert_eq!(other.body, plain.body);
    Ok(())
}

#[test]
fn each_runs_a_pipeline_over_a_column_of_images() -> Result<()> {
    // A BMP image of one pixel.
    let mut image = b"BM".to_vec();
    for word in [
        58_u32,
        0,
        54,
        40,
        1,
        1,
        0x0018_0001,
        0,
        4,
        2835,
        2835,
        0,
        0,
        0x00c0_8040,
    ] {
        image.extend(word.to_le_bytes());
    }
    let object = Parquet::of_photos(&[&image, b"no image", &image], 2)?;
    let lab = Lab::new(&[])?;
    lab.put("t.parquet", object.clone())?;
    let pipeline = "select | each(photo: decode | resize(64, 64) | to_float)";
    let answer = lab.get("t.parquet", pipeline, &[])?;
    let found = read_table(&answer)?;
    assert_eq!((found.rows(), &found), (3, &expected_rows(&object, pipeline)?));
    assert_eq!(answer.header("x-pushdown-stage"), Some("2"));
    Ok(())
}
