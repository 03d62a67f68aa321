//! Compares the header before a content with the member that it should be of.

use bytes::Bytes;

use crate::{EntryCursor, Member, MemberRange, ShardError, ShardFormat, ShardLimits, name::quoted, zip};

/// Checks the bytes before a content: `header` are the first [`MemberRange::header_bytes`] bytes of a member's entry. They have
/// to be complete, valid headers of a stored file with this name and size, and no more. The header of a member of a zip may lack its size.
///
/// # Errors
/// [`ShardError::Mismatch`] for another member or other headers, [`ShardError::WrongLength`] if `header` is shorter or longer,
/// and the error of the header itself if it is refused.
pub fn check_entry(
    format: ShardFormat,
    header: &[u8],
    name: &str,
    range: &MemberRange,
) -> Result<(), ShardError> {
    let (expected, length) = (u64::from(range.header_bytes()), header.len() as u64);
    if length != expected {
        return Err(ShardError::WrongLength {
            expected,
            found: length,
        });
    }
    let found = match format {
        ShardFormat::Tar => first_of_tar(header, range.offset())?,
        ShardFormat::Zip => zip::read_entry(header, range.offset(), range.size())?,
    };
    match found {
        Some(member) if member.name == name && member.range == *range => Ok(()),
        Some(member) => Err(ShardError::Mismatch {
            expected: describe(name, range),
            found: describe(&member.name, &member.range),
        }),
        None => Err(ShardError::Mismatch {
            expected: describe(name, range),
            found: format!("{length} bytes without a complete header of a file"),
        }),
    }
}

/// The first member in `header`, which are bytes of a tar from byte `offset` on. `None` if no header of a file is complete.
fn first_of_tar(header: &[u8], offset: u64) -> Result<Option<Member>, ShardError> {
    let mut cursor = EntryCursor::walk_from(offset, ShardLimits::default());
    cursor.push(Bytes::copy_from_slice(header));
    let first = cursor.next_member()?;
    // What follows is refused like any tar.
    while cursor.next_member()?.is_some() {}
    Ok(first)
}

fn describe(name: &str, range: &MemberRange) -> String {
    format!(
        "`{}` at byte {} with a header of {} bytes and a content of {} bytes",
        quoted(name.as_bytes()),
        range.offset(),
        range.header_bytes(),
        range.size()
    )
}
