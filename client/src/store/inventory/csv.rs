//! Data files in CSV: compressed by gzip, without a header, with URL-encoded keys.

use std::io::{self, Read};

use ::csv::{ByteRecord, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use super::{
    fault::Fault,
    rows::{InventoryRow, InventoryRows},
};
use crate::store::aws::Names;

/// The largest row in bytes. A key of 1,024 bytes has at most 3,072 as it is encoded.
const MAX_ROW_BYTES: usize = 64 << 10;

/// Where the columns are that are read, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CsvColumns {
    /// Number of all columns.
    count: usize,
    key: usize,
    size: usize,
    etag: Option<usize>,
    is_latest: Option<usize>,
    is_delete_marker: Option<usize>,
}

impl CsvColumns {
    /// Reads the schema of a manifest, such as `Bucket, Key, Size, ETag`.
    ///
    /// # Errors
    /// [`Fault::MissingColumn`] without `Key` or `Size`.
    pub(super) fn parse(schema: &str) -> Result<Self, Fault> {
        let names = schema.split(',').map(str::trim);
        let find = |column: &str| names.clone().position(|name| name == column);
        let require = |column: &'static str| {
            let missing = || Fault::MissingColumn {
                column,
                found: schema.to_owned(),
            };
            find(column).ok_or_else(missing)
        };
        Ok(Self {
            count: names.clone().count(),
            key: require("Key")?,
            size: require("Size")?,
            etag: find("ETag"),
            is_latest: find("IsLatest"),
            is_delete_marker: find("IsDeleteMarker"),
        })
    }

    /// The row of a record.
    fn row<'a>(&self, record: &'a ByteRecord, key: &'a str) -> Result<InventoryRow<'a>, String> {
        let field = |column: usize| text(&record[column]);
        let flag = |column: Option<usize>, default| match column.map(field).transpose()? {
            None | Some("") => Ok(default),
            Some(flag) if flag.eq_ignore_ascii_case("true") => Ok(true),
            Some(flag) if flag.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(format!("expected true or false, found `{other}`")),
        };
        let size = field(self.size)?;
        let bytes = match size.parse() {
            Ok(bytes) => Some(bytes),
            Err(_) if size.is_empty() => None,
            Err(_) => return Err(format!("expected a size in bytes, found `{size}`")),
        };
        Ok(InventoryRow {
            key,
            bytes,
            etag: self.etag.map(field).transpose()?,
            is_latest: flag(self.is_latest, true)?,
            is_delete_marker: flag(self.is_delete_marker, false)?,
        })
    }
}

/// Reads a file, and adds its objects to `rows`. Holds one row in memory.
///
/// # Errors
/// If the file is invalid.
pub(super) fn read(file: impl Read, columns: &CsvColumns, rows: &mut InventoryRows) -> Result<(), Fault> {
    let file = RowLimit {
        file: MultiGzDecoder::new(file),
        left_bytes: 0,
    };
    // Numbers of fields are compared with the schema below, and not with the first row.
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(file);
    let mut record = ByteRecord::new();
    loop {
        reader.get_mut().left_bytes = MAX_ROW_BYTES;
        let more = reader.read_byte_record(&mut record);
        let invalid = |text: String| {
            let number = record.position().map_or(0, |position| position.record() + 1);
            Fault::Damaged(format!("row {number}: {text}"))
        };
        if !more.map_err(|error| Fault::Damaged(error.to_string()))? {
            return Ok(());
        }
        if record.len() != columns.count {
            let text = format!("expected {} fields, found {}", columns.count, record.len());
            return Err(invalid(text));
        }
        // AWS encodes as in the query of a form, as it does in listings: `+` is a space.
        let key = text(&record[columns.key]).map_err(invalid)?.to_owned();
        let key = Names::Url.read(key).map_err(|error| invalid(error.to_string()))?;
        rows.push(columns.row(&record, &key).map_err(invalid)?)?;
    }
}

fn text(field: &[u8]) -> Result<&str, String> {
    str::from_utf8(field).map_err(|_| format!("expected text in UTF-8, found `{}`", field.escape_ascii()))
}

/// A file whose rows have a limit of bytes.
struct RowLimit<R> {
    file: R,
    /// Bytes that may be read until the row ends.
    left_bytes: usize,
}

impl<R: Read> Read for RowLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left_bytes == 0 {
            let text = format!("expected rows of at most {MAX_ROW_BYTES} bytes, found a longer one");
            return Err(io::Error::other(text));
        }
        let most = self.left_bytes.min(buffer.len());
        let read = self.file.read(&mut buffer[..most])?;
        self.left_bytes -= read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, sync::Arc};

    use flate2::{Compression, write::GzEncoder};

    use super::*;
    use crate::{objects::Objects, store::HiddenObjects};

    const SCHEMA: &str = "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, ETag";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(file: &[u8], schema: &str) -> Result<Objects, Fault> {
        let mut rows = InventoryRows::new("", HiddenObjects::LeftOut, Arc::default());
        read(file, &CsvColumns::parse(schema)?, &mut rows)?;
        Ok(rows.finish("photos").0)
    }

    #[test]
    fn rows_are_read_by_the_schema() {
        let text = "\"photos\",\"a%2Bb/c+d%C3%A9%22%0A.jpg\",\"v2\",\"true\",\"false\",\"5\",\"e\"\n\
                    \"photos\",\"former\",\"v1\",\"false\",\"false\",\"6\",\"e\"\n\
                    \"photos\",\"deleted\",\"v3\",\"True\",\"True\",\"\",\"\"\n\n\n";
        let objects = decode(&gzip(text.as_bytes()), SCHEMA).unwrap();
        let found: Vec<_> = objects
            .iter()
            .map(|object| (object.key, object.bytes, object.etag))
            .collect();
        assert_eq!(found, [("a+b/c d\u{e9}\"\n.jpg", Some(5), Some("\"e\""))]);
        let objects = decode(&gzip(b"7,k"), "Size,Key").unwrap();
        let object = objects.object(0);
        assert_eq!((object.key, object.bytes, object.etag), ("k", Some(7), None));
    }

    /// The documentation of AWS says that keys in CSV are URL-encoded and must be decoded. It does not say how a space is written: inventories
    /// have `+`, as the answers to listings (cloud-custodian, issue 1997). So a `+` of a key is `%2B`, and both forms of a space are read.
    #[test]
    fn keys_are_decoded_as_forms() {
        for (encoded, key) in [
            ("a+b", "a b"),
            ("a%20b", "a b"),
            ("a%2Bb", "a+b"),
            ("a%2fb", "a/b"),
            ("100%25", "100%"),
            ("%2541", "%41"),
            ("%E2%82%AC", "\u{20ac}"),
            ("\u{e9}", "\u{e9}"),
            ("\"a,b\"", "a,b"),
        ] {
            let objects = decode(&gzip(format!("{encoded},1").as_bytes()), "Key,Size").unwrap();
            assert_eq!(objects.key(0), key, "{encoded}");
        }
    }

    /// A multi-member file is one file.
    #[test]
    fn members_of_gzip_are_read_one_after_the_other() {
        let file = [gzip(b"a,1\nb,"), gzip(b"2\n")].concat();
        assert_eq!(decode(&file, "Key,Size").unwrap().len(), 2);
        assert_eq!(decode(&gzip(b""), "Key,Size").unwrap().len(), 0);
    }

    #[test]
    fn invalid_files_are_refused() {
        let long = [b"a,1\n\"", vec![b'k'; 2 * MAX_ROW_BYTES].as_slice()].concat();
        for (file, expected) in [
            (gzip(b"a,1\nb,1,2\n"), "row 2: expected 2 fields, found 3"),
            (gzip(b"a,x\n"), "row 1: expected a size in bytes, found `x`"),
            (gzip(b"a,-1\n"), "row 1: expected a size in bytes, found `-1`"),
            (
                gzip(b"a,\n"),
                "expected a size of each object, found none for `a`",
            ),
            (gzip(b"%FF,1\n"), "row 1: expected names in UTF-8, found `%FF`"),
            (gzip(b"\xff,1\n"), "row 1: expected text in UTF-8, found `\\xff`"),
            (
                gzip(&long),
                "expected rows of at most 65536 bytes, found a longer one",
            ),
            (b"a,1\n".repeat(8), "invalid gzip header"),
            (gzip(&[b'a'; 100])[..20].to_vec(), ""),
        ] {
            let fault = decode(&file, "Key,Size").unwrap_err().to_string();
            assert!(
                fault.starts_with("invalid data file: ") && fault.ends_with(expected),
                "{fault}"
            );
        }
        let fault = decode(&gzip(b"b,k,v,maybe,false,1,e"), SCHEMA)
            .unwrap_err()
            .to_string();
        assert!(
            fault.ends_with("row 1: expected true or false, found `maybe`"),
            "{fault}"
        );
    }
}
