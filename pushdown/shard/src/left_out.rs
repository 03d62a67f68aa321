//! What is left out of a shard.

use std::fmt;

use crate::name::quoted;

/// Most members that are named.
const MAX_NAMED: usize = 10;

/// The members that are left out of a shard, or of several: what is no regular file, and files with a name that is not UTF-8, absolute or
/// with a part `..`. Folders are not counted.
///
/// All are counted, and the first ten are named. Displayed it is a text such as ``2 members: `a` (a symbolic link), `/b` (an absolute
/// name)``, whose names are escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    count: u64,
    named: Vec<String>,
}

impl LeftOut {
    /// Number of members.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing is left out.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds those of another shard, whose names follow `prefix`.
    pub fn extend(&mut self, prefix: &str, other: &Self) {
        self.count += other.count;
        let free = MAX_NAMED - self.named.len();
        let named = other.named.iter().take(free);
        self.named.extend(named.map(|named| format!("{prefix}{named}")));
    }

    /// Adds a member, with the reason.
    pub(crate) fn add(&mut self, name: &[u8], reason: &str) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("`{}` ({reason})", quoted(name)));
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = if self.count == 1 { "member" } else { "members" };
        write!(f, "{} {members}: {}", self.count, self.named.join(", "))?;
        match self.count - self.named.len() as u64 {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_counted_and_the_first_ones_are_named() {
        let mut left_out = LeftOut::default();
        assert!(left_out.is_empty());
        left_out.add(b"a\n\xe7", "a symbolic link");
        assert_eq!(left_out.to_string(), "1 member: `a\\n\\xe7` (a symbolic link)");
        let mut all = LeftOut::default();
        for shard in 0..6 {
            let mut left_out = LeftOut::default();
            left_out.add(b"/b", "an absolute name");
            left_out.add(b"c", "a named pipe");
            all.extend(&format!("{shard}.tar "), &left_out);
        }
        assert_eq!((all.count(), all.named.len()), (12, MAX_NAMED));
        let text = all.to_string();
        assert!(
            text.starts_with("12 members: 0.tar `/b` (an absolute name), 0.tar `c` (a named pipe), 1.tar")
                && text.ends_with("4.tar `c` (a named pipe) and 2 more"),
            "{text}"
        );
    }
}
