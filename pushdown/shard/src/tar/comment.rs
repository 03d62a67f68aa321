//! A comment on a whole tar: a global pax header before its first member, as `git archive` writes one. Readers of members skip it.

use super::{
    BLOCK,
    header::{Extension, Header, Kind, NewHeader},
    pax::{first_value, write_record},
};
use crate::{ShardError, limits::MAX_EXTENSION_BYTES};

/// Key of the record.
const COMMENT: &str = "comment";

/// What the first bytes of a tar say about its comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TarComment {
    /// It begins with a member, or has none.
    None,
    /// This many bytes have the whole comment.
    Needs(u64),
    /// Its text.
    Text(String),
}

/// The bytes of a comment. A tar follows.
///
/// # Errors
/// [`ShardError::InvalidHeader`] for a text of about 1 MiB or more.
pub fn tar_comment(text: &str) -> Result<Vec<u8>, ShardError> {
    let mut records = Vec::new();
    write_record(&mut records, COMMENT, text);
    if records.len() as u64 > MAX_EXTENSION_BYTES.into() {
        return Err(ShardError::InvalidHeader {
            offset: 0,
            reason: format!(
                "expected a comment of at most {MAX_EXTENSION_BYTES} bytes, found {}",
                records.len()
            ),
        });
    }
    let header = NewHeader {
        prefix: &[],
        name: b"pax_global_header",
        kind: b'g',
        size: records.len() as u64,
    };
    let mut bytes = header.to_block().to_vec();
    bytes.extend(records);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    Ok(bytes)
}

/// Reads the comment in the first bytes of a tar.
pub fn read_tar_comment(bytes: &[u8]) -> TarComment {
    let Some(block) = bytes.first_chunk::<BLOCK>() else {
        return TarComment::Needs(BLOCK as u64);
    };
    let header = Header::parse(block, 0).ok();
    let header = header.filter(|header| header.kind() == Kind::Extension(Extension::GlobalPax));
    let size = header.and_then(|header| header.size().ok().flatten());
    let Some(size) = size.filter(|size| *size <= MAX_EXTENSION_BYTES.into()) else {
        return TarComment::None;
    };
    let end = BLOCK as u64 + size;
    let records = usize::try_from(end).ok().and_then(|end| bytes.get(BLOCK..end));
    let Some(records) = records else {
        return TarComment::Needs(end);
    };
    let text =
        first_value(records, COMMENT.as_bytes()).and_then(|value| String::from_utf8(value.to_vec()).ok());
    text.map_or(TarComment::None, TarComment::Text)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{EntryCursor, ShardLimits, TarWriter};

    #[test]
    fn a_comment_is_no_member() {
        let mut writer = TarWriter::new(tar_comment("two bad samples\n").unwrap());
        writer.append("a.jpg", b"1").unwrap();
        let tar = writer.finish().unwrap();
        assert_eq!(
            read_tar_comment(&tar),
            TarComment::Text("two bad samples\n".to_owned())
        );
        let mut walk = EntryCursor::walk(ShardLimits::default());
        walk.push(Bytes::from(tar));
        assert_eq!(walk.next_member().unwrap().unwrap().name, "a.jpg");
        assert_eq!(walk.next_member().unwrap(), None);
    }

    #[test]
    fn a_comment_is_read_from_as_few_bytes_as_it_has() {
        let text = "x".repeat(2000);
        let bytes = tar_comment(&text).unwrap();
        assert_eq!(read_tar_comment(&bytes[..100]), TarComment::Needs(512));
        let TarComment::Needs(end) = read_tar_comment(&bytes[..600]) else {
            panic!("expected a need for more bytes")
        };
        let end = usize::try_from(end).unwrap();
        assert!(end <= bytes.len());
        assert_eq!(read_tar_comment(&bytes[..end]), TarComment::Text(text));
        let mut writer = TarWriter::new(Vec::new());
        writer.append("a.jpg", b"1").unwrap();
        assert_eq!(read_tar_comment(&writer.finish().unwrap()), TarComment::None);
        assert_eq!(read_tar_comment(&[0; 1024]), TarComment::None);
        assert!(tar_comment(&"x".repeat(1 << 20)).is_err());
    }
}
