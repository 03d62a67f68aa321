//! Records of pax headers: `LENGTH KEY=VALUE` and a line break, where the length is that of the whole record.

use crate::ShardError;

/// What pax records say about the place of an entry. Other records, of times and owners, are ignored.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// The content is a map of a sparse file and its pieces.
    pub(super) is_sparse: bool,
}

/// A record, and what follows.
struct Record<'a> {
    key: &'a [u8],
    value: &'a [u8],
    rest: &'a [u8],
}

impl Pax {
    /// Reads the content of a pax header, which begins at byte `offset`.
    pub(super) fn parse(mut records: &[u8], offset: u64) -> Result<Self, ShardError> {
        let invalid = |reason: &str| ShardError::InvalidHeader {
            offset,
            reason: reason.to_owned(),
        };
        let mut pax = Self::default();
        // Some programs fill the rest of the header with zeros.
        while records.first().is_some_and(|byte| *byte != 0) {
            let record = Record::first(records)
                .ok_or_else(|| invalid("expected pax records `LENGTH KEY=VALUE`, found other bytes"))?;
            records = record.rest;
            match record.key {
                // Of several paths the last one counts.
                b"path" => pax.path = Some(record.value.to_vec()),
                b"size" => {
                    let size = decimal(record.value).ok_or_else(|| {
                        invalid("expected a size in decimal digits, below 2^64, in the pax record")
                    })?;
                    if pax.size.replace(size).is_some_and(|other| other != size) {
                        return Err(invalid("expected one size in the pax records, found two"));
                    }
                }
                b"SCHILY.realsize" => pax.is_sparse = true,
                key => pax.is_sparse |= key.starts_with(b"GNU.sparse."),
            }
        }
        Ok(pax)
    }
}

impl<'a> Record<'a> {
    fn first(records: &'a [u8]) -> Option<Self> {
        let space = records.iter().position(|byte| *byte == b' ')?;
        let length = usize::try_from(decimal(&records[..space])?).ok()?;
        let record = records.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        (equals > 0).then(|| Self {
            key: &record[..equals],
            value: &record[equals + 1..],
            rest: &records[length..],
        })
    }
}

/// The value of the first record with this key.
pub(super) fn first_value<'a>(mut records: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    while let Some(record) = Record::first(records) {
        if record.key == key {
            return Some(record.value);
        }
        records = record.rest;
    }
    None
}

/// Appends a record.
pub(super) fn write_record(records: &mut Vec<u8>, key: &str, value: &str) {
    // The space, the equals sign and the line break.
    let others = key.len() + value.len() + 3;
    let mut length = others;
    while others + decimal_digits(length) != length {
        length = others + decimal_digits(length);
    }
    records.extend_from_slice(format!("{length} {key}={value}\n").as_bytes());
}

fn decimal_digits(number: usize) -> usize {
    number.to_string().len()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(records: &[u8]) -> Option<Pax> {
        Pax::parse(records, 0).ok()
    }

    #[test]
    fn records_of_path_and_size_are_read() {
        let pax = parse(b"16 path=a b=c\nd\n30 mtime=1350244992.023960108\n10 size=5\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"a b=c\nd"[..]));
        assert_eq!((pax.size, pax.is_sparse), (Some(5), false));
        assert_eq!(parse(b""), Some(Pax::default()));
        let pax = parse(b"9 path=a\n9 path=b\n10 size=5\n10 size=5\n\0\0x").unwrap();
        assert_eq!((pax.path.as_deref(), pax.size), (Some(&b"b"[..]), Some(5)));
        for sparse in [&b"22 GNU.sparse.major=1\n"[..], b"21 SCHILY.realsize=9\n"] {
            assert!(parse(sparse).unwrap().is_sparse);
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for records in [
            &b"10 size=5"[..],
            b"11 size=5\n",
            b"8 size=5\n",
            b"size=5\n",
            b"10 size=x\n",
            b"10 size=-\n",
            b"8 size=\n",
            b"5 =5\n",
            b"4 a\n",
            b" size=5\n",
            b"0 \n",
            b"1 \n",
            b"99999999999999999999 a=b\n",
            b"10 size=5\n10 size=6\n",
            b"29 size=99999999999999999999\n",
        ] {
            assert_eq!(parse(records), None, "{}", records.escape_ascii());
        }
    }

    #[test]
    fn written_records_are_read() {
        for length in [1, 90, 91, 92, 93, 94, 990, 991, 992, 993, 1024] {
            let path = "p".repeat(length);
            let mut records = Vec::new();
            write_record(&mut records, "path", &path);
            write_record(&mut records, "size", "8589934592");
            let pax = parse(&records).unwrap();
            assert_eq!((pax.path, pax.size), (Some(path.into_bytes()), Some(1 << 33)));
        }
    }
}
