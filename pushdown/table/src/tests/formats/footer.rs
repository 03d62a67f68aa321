//! Arrow files that are read in the order of their footer.

use std::fs;

use super::{arrow::with_numbers, *};

/// A file of Polars 2.1.0: three record batches of one row, followed by dictionaries.
fn polars() -> Bytes {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/writers_text_arrow");
    fs::read(format!("{folder}/polars_batches.arrow")).unwrap().into()
}

/// A source whose suffix reads return at most 100 bytes.
#[derive(Debug, Clone)]
struct ShortSuffixSource(Bytes);

impl Source for ShortSuffixSource {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        self.0.suffix(length.min(100))
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        self.0.ranges(ranges)
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        self.0.stream()
    }
}

#[test]
fn a_file_that_is_not_a_stream_is_read_by_its_footer() {
    let object = polars();
    for (text, rows) in [
        ("select", 3),
        ("select(columns=[category, n], where=\"n = 3\")", 1),
        ("sql(\"select category from object where enum = 'b'\")", 1),
        (
            "sql(\"select category, count(*) as c from object group by category\")",
            3,
        ),
    ] {
        let table = read("no name", text, object.clone()).unwrap();
        assert_eq!(table.rows(), rows, "{text}");
        let short = read_with("x", text, ShortSuffixSource(object.clone()), Limits::default()).unwrap();
        assert_eq!(short, table, "{text}");
    }
    let query = "sql(\"select count(*) as c from object\")";
    assert_eq!(int64s(&read("x", query, object).unwrap(), 0), [3]);
}

#[test]
fn a_footer_with_wrong_ranges_is_an_error() {
    let object = polars();
    // The offset of the second record batch is 3696, and its size 2304 bytes.
    for (from, to, kind, message) in [
        (3696, 1296, ErrorKind::Undecodable, "found overlapping ones"),
        (
            3696,
            1 << 40,
            ErrorKind::Undecodable,
            "expected the messages before the footer",
        ),
        (
            3696,
            -1,
            ErrorKind::Undecodable,
            "expected the messages before the footer",
        ),
        (
            2304,
            1 << 62,
            ErrorKind::Undecodable,
            "expected the messages before the footer",
        ),
        (3696, 3697, ErrorKind::Undecodable, "malformed Arrow IPC"),
        (3696, 3704, ErrorKind::Undecodable, ""),
    ] {
        let error = read_with("x", "select", with_numbers(&object, from, to), Limits::default()).unwrap_err();
        assert_eq!(error.kind(), kind, "{from} {to}: {error}");
        assert!(error.to_string().contains(message), "{from} {to}: {error}");
    }
    let tables = TableLimits {
        max_batch_bytes: 2000,
        ..TableLimits::default()
    };
    let limits = Limits {
        tables,
        ..Limits::default()
    };
    let error = read_with("x", "select", object.clone(), limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    // Without its footer, the file is not a valid stream.
    let truncated = object.slice(..object.len() - 1);
    let error = read_with("x", "select", truncated, Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
}

#[test]
fn a_column_of_unions_is_rejected_by_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/writers_text_arrow");
    for file in ["union_dense.arrow", "union_sparse.arrow"] {
        let object = Bytes::from(fs::read(format!("{folder}/{file}")).unwrap());
        let error = read_with("x", "select", object.clone(), Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsuitable, "{error}");
        assert!(
            error
                .to_string()
                .contains("unsupported column `either`: it contains an Arrow union"),
            "{error}"
        );
        let table = read("x", "select(columns=[n])", object).unwrap();
        assert_eq!(int64s(&table, 0), [1, 2]);
    }
}
