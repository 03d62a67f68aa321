//! Objects that are no samples: what desktops and consoles leave among photos.

use pushdown_s3::Escaped;

/// Whether a listing has hidden objects.
///
/// Hidden are files that desktops write into folders (`.DS_Store`, `Thumbs.db`, `desktop.ini`, and names that begin with `._`), and the empty
/// objects, with keys that end with `/`, that stand for folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HiddenObjects {
    /// They are left out, and a warning in the log counts them.
    #[default]
    LeftOut,
    /// They are listed as all others.
    Listed,
}

/// Names that Finder and Explorer give to their own files, in lower case: these systems do not distinguish it.
const NAMES: [&str; 3] = [".ds_store", "desktop.ini", "thumbs.db"];
/// Begins the names of files in which macOS stores the attributes of others.
const APPLE_DOUBLE: &str = "._";

impl HiddenObjects {
    /// Whether an object with this key and size is left out.
    pub(in crate::store) fn leave_out(self, key: &str, bytes: Option<u64>) -> bool {
        self == Self::LeftOut && is_hidden(key, bytes)
    }
}

fn is_hidden(key: &str, bytes: Option<u64>) -> bool {
    if key.ends_with('/') {
        return bytes == Some(0);
    }
    let name = key.rsplit('/').next().unwrap_or(key);
    name.starts_with(APPLE_DOUBLE) || NAMES.iter().any(|hidden| hidden.eq_ignore_ascii_case(name))
}

/// The hidden objects that a listing has left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct LeftOut {
    pub(in crate::store) count: usize,
    /// The key of one of them: the first in the order of keys.
    pub(in crate::store) first: Option<String>,
}

impl LeftOut {
    pub(in crate::store) fn add(&mut self, key: String) {
        self.merge(Self {
            count: 1,
            first: Some(key),
        });
    }

    pub(in crate::store) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.first = match (self.first.take(), other.first) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// Warns in the log of what was left out of the list of a prefix, if there is any.
    pub(in crate::store) fn warn(&self, bucket: &str, prefix: &str) {
        let Some(first) = &self.first else {
            return;
        };
        let objects = if self.count == 1 { "object" } else { "objects" };
        tracing::warn!(
            "s3://{}: left out {} hidden {objects}, such as `{}`: `--include-hidden`, in code `include_hidden`, keeps them",
            Escaped(format_args!("{bucket}/{prefix}")),
            self.count,
            Escaped(first)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_and_empty_folders_are_hidden() {
        for (key, bytes) in [
            (".DS_Store", 6148),
            ("a/b/.DS_Store", 6148),
            ("a/Thumbs.db", 5),
            ("a/thumbs.db", 5),
            ("a/desktop.ini", 5),
            ("a/Desktop.ini", 5),
            ("a/._cat.jpg", 4096),
            ("a/", 0),
            ("a//", 0),
        ] {
            assert!(is_hidden(key, Some(bytes)), "{key}");
            assert!(HiddenObjects::LeftOut.leave_out(key, Some(bytes)));
            assert!(!HiddenObjects::Listed.leave_out(key, Some(bytes)));
        }
        for (key, bytes) in [
            ("a/.cat.jpg", Some(5)),
            ("a/DS_Store", Some(5)),
            ("a/Thumbs.db/cat.jpg", Some(5)),
            ("a/my-thumbs.db", Some(5)),
            ("a/", Some(5)),
            ("a/", None),
            ("a/empty", Some(0)),
            ("_SUCCESS", Some(0)),
        ] {
            assert!(!is_hidden(key, bytes), "{key}");
        }
    }

    #[test]
    fn what_is_left_out_is_counted_with_the_first_key() {
        let mut all = LeftOut::default();
        for key in ["b", "a", "c"] {
            all.add(key.to_owned());
        }
        all.merge(LeftOut::default());
        let expected = LeftOut {
            count: 3,
            first: Some("a".to_owned()),
        };
        assert_eq!(all, expected);
    }
}
