//! Members of shards in a batch request: a sample, and the further columns of a sample.

use std::collections::HashSet;

use pushdown_core::{Error, Result};
use pushdown_s3::{Address, StoreEndpoint};
use pushdown_shard::{MemberRange, ShardFormat, check_name};
use serde::{Deserialize, Serialize};

use super::BatchSample;

/// Bytes before the content of a plain tar entry: one block.
pub const PLAIN_HEADER_BYTES: u32 = 512;
/// Maximum number of further columns of a batch.
pub const MAX_COLUMNS: usize = 16;
/// Maximum bytes of the further columns of one sample, together.
pub const MAX_COLUMN_BYTES: u64 = 1 << 20;

/// A member whose content is a further column of a sample. It is in the shard of the sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnMember {
    /// Its name.
    pub member: String,
    /// Offset of the first byte of its entry in the shard.
    pub offset: u64,
    /// Bytes of its content.
    pub size: u64,
    /// Bytes of its entry before the content. Default [`PLAIN_HEADER_BYTES`].
    #[serde(default = "plain_header_bytes", skip_serializing_if = "is_plain")]
    pub header_size: u32,
}

pub(super) const fn plain_header_bytes() -> u32 {
    PLAIN_HEADER_BYTES
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
pub(super) const fn is_plain(header_size: &u32) -> bool {
    *header_size == PLAIN_HEADER_BYTES
}

impl ColumnMember {
    /// The member with this name at this place.
    pub fn new(member: impl Into<String>, range: &MemberRange) -> Self {
        Self {
            member: member.into(),
            offset: range.offset(),
            size: range.size(),
            header_size: range.header_bytes(),
        }
    }

    /// Where it is in the shard. `None` if no member can be there.
    pub fn range(&self) -> Option<MemberRange> {
        MemberRange::new(self.offset, self.header_size, self.size).ok()
    }
}

impl BatchSample {
    /// The same for a member of the object, which is a shard at the version `etag`.
    #[must_use]
    pub fn with_member(
        self,
        member: impl Into<String>,
        range: &MemberRange,
        etag: impl Into<String>,
    ) -> Self {
        Self {
            member: Some(member.into()),
            offset: Some(range.offset()),
            size: Some(range.size()),
            header_size: range.header_bytes(),
            etag: Some(etag.into()),
            ..self
        }
    }

    /// Where the member is in its shard. `None` for a whole object, and if no member can be there.
    pub fn member_range(&self) -> Option<MemberRange> {
        self.member.as_ref()?;
        MemberRange::new(self.offset?, self.header_size, self.size?).ok()
    }

    /// The format of the shard, by the key of the object in a request that states this `store`. `None` if it is none that has members.
    pub fn shard_format(&self, store: Option<&StoreEndpoint>) -> Option<ShardFormat> {
        let address = Address::new(store, &self.path)?;
        ShardFormat::from_key(&String::from_utf8_lossy(&address.key))
    }

    /// Checks the fields of a member.
    pub(super) fn check_member(&self, store: Option<&StoreEndpoint>) -> Result<()> {
        let Some(member) = &self.member else {
            let is_plain = is_plain(&self.header_size) && self.columns.is_empty();
            if self.offset.is_none() && self.size.is_none() && is_plain {
                return Ok(());
            }
            return Err(Error::wire(
                "unexpected `offset`, `size`, `header_size` or `columns`: expected them with a `member` only",
            ));
        };
        let (Some(offset), Some(size), Some(_etag)) = (self.offset, self.size, &self.etag) else {
            return Err(Error::wire(
                "invalid member: expected `offset`, `size`, and the shard's `etag`; `pushdown index` lists them",
            ));
        };
        if self.shard_format(store).is_none() {
            return Err(Error::wire(
                "invalid member: expected an object whose key ends in `.tar` or `.zip`",
            ));
        }
        check_place(member, offset, self.header_size, size)?;
        let mut column_bytes = 0_u64;
        for column in self.columns.iter().flatten() {
            check_place(&column.member, column.offset, column.header_size, column.size)?;
            column_bytes = column_bytes.saturating_add(column.size);
        }
        if column_bytes > MAX_COLUMN_BYTES {
            return Err(Error::wire(format!(
                "invalid columns: expected at most {MAX_COLUMN_BYTES} bytes together, found {column_bytes}"
            )));
        }
        Ok(())
    }
}

/// Checks the name of a member and its place.
fn check_place(member: &str, offset: u64, header_size: u32, size: u64) -> Result<()> {
    check_name(member)
        .and_then(|()| MemberRange::new(offset, header_size, size))
        .map(drop)
        .map_err(|error| Error::wire(format!("invalid member {member:?}: {error}")))
}

/// Checks the names of the further columns of a batch.
pub fn check_columns(names: &[String]) -> Result<()> {
    if names.len() > MAX_COLUMNS {
        return Err(Error::wire(format!(
            "invalid columns: expected at most {MAX_COLUMNS}, found {}",
            names.len()
        )));
    }
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(Error::wire(format!(
            "invalid columns: expected names of visible ASCII, found {name:?}"
        )));
    }
    let mut known = HashSet::new();
    match names.iter().find(|name| !known.insert(name.as_str())) {
        Some(name) => Err(Error::wire(format!("invalid columns: repeated {name:?}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut BatchSample);

    fn range(offset: u64, size: u64) -> MemberRange {
        MemberRange::new(offset, PLAIN_HEADER_BYTES, size).unwrap()
    }

    fn sample() -> BatchSample {
        let sample = BatchSample::for_signed_batch("/bucket/train%2D1.tar");
        BatchSample {
            columns: vec![None, Some(ColumnMember::new("a.cls", &range(0, 3)))],
            ..sample.with_member("a.jpg", &range(1024, 7000), "\"e\"")
        }
    }

    #[test]
    fn a_member_has_its_place_and_its_format() {
        sample().check(None).unwrap();
        assert_eq!(sample().member_range(), Some(range(1024, 7000)));
        assert_eq!(sample().shard_format(None), Some(ShardFormat::Tar));
        assert_eq!(sample().id(None), b"train-1.tar\0a.jpg");
        assert_eq!(
            sample().columns[1].as_ref().and_then(ColumnMember::range),
            Some(range(0, 3))
        );
        let whole = BatchSample::for_signed_batch("/bucket/train.tar");
        whole.check(None).unwrap();
        assert_eq!(whole.member_range(), None);
    }

    #[test]
    fn plain_headers_and_absent_fields_are_not_written() {
        let json = serde_json::to_string(&sample()).unwrap();
        let expected = r#"{"path":"/bucket/train%2D1.tar","member":"a.jpg","offset":1024,"size":7000,"columns":[null,{"member":"a.cls","offset":0,"size":3}],"etag":"\"e\""}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<BatchSample>(&json).unwrap(), sample());
        let long = BatchSample {
            header_size: 1536,
            ..sample()
        };
        let json = serde_json::to_string(&long).unwrap();
        assert!(
            json.contains(r#""size":7000,"header_size":1536,"columns""#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<BatchSample>(&json).unwrap(), long);
    }

    #[test]
    fn members_are_checked() {
        let faults: [(Change, &str); 14] = [
            (|sample| sample.member = None, "with a `member` only"),
            (|sample| sample.offset = None, "expected `offset`, `size`"),
            (|sample| sample.size = None, "expected `offset`, `size`"),
            (|sample| sample.etag = None, "the shard's `etag`"),
            (|sample| sample.path = "/b/a.jpg".to_owned(), "`.tar` or `.zip`"),
            (
                |sample| sample.path = "/b/1.tar.gz".to_owned(),
                "`.tar` or `.zip`",
            ),
            (
                |sample| sample.member = Some(String::new()),
                "invalid member \"\"",
            ),
            (
                |sample| sample.member = Some("../a.jpg".to_owned()),
                "\"../a.jpg\"",
            ),
            (|sample| sample.member = Some("/a.jpg".to_owned()), "\"/a.jpg\""),
            (|sample| sample.member = Some("a\0".to_owned()), "\"a\\0\""),
            (|sample| sample.header_size = 0, "invalid member \"a.jpg\""),
            (
                |sample| sample.offset = Some(u64::MAX),
                "invalid member \"a.jpg\"",
            ),
            (
                |sample| sample.columns = vec![Some(ColumnMember::new("..", &range(0, 1)))],
                "\"..\"",
            ),
            (
                |sample| sample.columns = vec![Some(ColumnMember::new("a.txt", &range(0, 1 << 19))); 3],
                "expected at most 1048576 bytes together, found 1572864",
            ),
        ];
        for (index, (change, expected)) in faults.into_iter().enumerate() {
            let mut sample = sample();
            change(&mut sample);
            let error = sample.check(None).unwrap_err();
            assert_eq!(error.kind(), pushdown_core::ErrorKind::InvalidWire, "{index}");
            assert!(error.to_string().contains(expected), "{index}: {error}");
        }
        let mut whole = BatchSample::for_signed_batch("/b/1.tar");
        whole.header_size = 1024;
        assert!(whole.check(None).is_err());
    }

    #[test]
    fn names_of_columns_are_checked() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        check_columns(&[]).unwrap();
        check_columns(&names(&["cls", "seg.png"])).unwrap();
        for (wrong, expected) in [
            (names(&[""]), "found \"\""),
            (names(&["a b"]), "found \"a b\""),
            (names(&["\u{e9}"]), "visible ASCII"),
            (names(&["cls", "json", "cls"]), "repeated \"cls\""),
            (vec!["c".to_owned(); 17], "at most 16, found 17"),
        ] {
            let error = check_columns(&wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
