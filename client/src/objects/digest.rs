//! The digest of a list, which identifies the data set.

use std::iter::once;

use pushdown::pipeline::Digest;

use super::{MemberRef, Objects};

/// The first part of the digest of a list with members. No bucket has this name.
const MEMBERS: &str = "\0members";

impl Objects {
    /// Identifies the data set: the SHA-256 of the bucket and of all keys in their order, as 64 lower-case hex digits. Each of them is
    /// hashed as UTF-8 after its number of bytes, a little-endian number of 64 bits. Sizes and ETags do not count.
    ///
    /// A list with members has these parts instead: a zero byte and `members`, the bucket, the number of further columns, their names, and for
    /// each sample its key, its member and the members of its columns. A member is `OFFSET HEADER_BYTES SIZE NAME`, and empty if there is
    /// none.
    pub fn digest(&self) -> &str {
        if let Some(digest) = self.0.digest.get() {
            return digest;
        }
        // Not inside of the cell: a process that forks meanwhile would wait for it forever.
        let digest = self.computed_digest();
        self.0.digest.get_or_init(|| digest)
    }

    /// The same, computed now: the digest of a loaded list is the one that its file states, and whoever wrote the file could state another.
    pub fn computed_digest(&self) -> String {
        let digest = if self.has_members() {
            self.members_digest()
        } else {
            let keys = (0..self.len()).map(|index| self.key(index));
            Digest::from_parts(once(self.bucket()).chain(keys))
        };
        digest.to_string()
    }

    fn members_digest(&self) -> Digest {
        let columns = self.columns();
        let head = [
            MEMBERS.to_owned(),
            self.bucket().to_owned(),
            columns.len().to_string(),
        ];
        let names = columns.iter().map(|name| String::from(&**name));
        let samples = (0..self.len()).flat_map(move |index| {
            let further = (0..columns.len()).map(move |column| text(self.column_member(index, column)));
            [self.key(index).to_owned(), text(self.member(index))]
                .into_iter()
                .chain(further)
        });
        Digest::from_parts(head.into_iter().chain(names).chain(samples))
    }
}

/// A member as a part of the digest.
fn text(member: Option<MemberRef<'_>>) -> String {
    let Some(MemberRef { name, range }) = member else {
        return String::new();
    };
    format!(
        "{} {} {} {name}",
        range.offset(),
        range.header_bytes(),
        range.size()
    )
}
