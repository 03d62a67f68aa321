//! Base names of the members of samples in a tar.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use pushdown_shard::MAX_NAME_BYTES;
use sha2::{Digest as _, Sha256};

use crate::extension::split;

/// Most bytes of the extension of a member.
pub(crate) const MAX_EXTENSION_BYTES: usize = 64;
/// Most bytes of a base name: a dot and an extension follow.
const MAX_BYTES: usize = MAX_NAME_BYTES - 1 - MAX_EXTENSION_BYTES;
/// Between the start of a name that is too long and its digest. In an escaped name, hex digits follow each `%`.
const CUT: &str = "%~";
/// Bytes of the digest of a name that is too long.
const DIGEST_BYTES: usize = 16;

/// The base name of each sample: its name without the extension, or with it if another sample has that base or that name. Escaped,
/// so that different samples have different bases, and all readers of the tar agree on them.
///
/// `names` have to differ. A base depends on all of them, and not on which samples are written.
pub(crate) fn bases(names: &[String]) -> Vec<String> {
    let mut counts = HashMap::<&str, usize>::new();
    for name in names {
        *counts.entry(split(name).0).or_default() += 1;
    }
    let whole: HashSet<&str> = names.iter().map(String::as_str).collect();
    let base = |name: &String| {
        let (stem, _) = split(name);
        let is_free = counts.get(stem) == Some(&1) && !whole.contains(stem);
        escape(if is_free { stem } else { name })
    };
    names.iter().map(base).collect()
}

/// Escapes a name as a base: `%XX` for each byte of a character that a reader would take for another thing, and for `%`.
///
/// These are control characters, each dot of the file name (its extension begins at the first one), folders `.` and `..`, slashes at
/// either end and after another, and `__` at the start, which `WebDataset` skips. A longer name is cut, and its digest follows.
fn escape(name: &str) -> String {
    let mut base = String::with_capacity(name.len());
    if push_escaped(&mut base, name, MAX_BYTES, false) {
        return base;
    }
    base.clear();
    // Where it is cut, a folder becomes the file name.
    push_escaped(&mut base, name, MAX_BYTES - CUT.len() - 2 * DIGEST_BYTES, true);
    let digest = Sha256::digest(name);
    base.push_str(CUT);
    base.push_str(&hex::encode(&digest[..DIGEST_BYTES]));
    base
}

/// Appends the escaped name up to `max_bytes`. `false` if more follows.
fn push_escaped(base: &mut String, name: &str, max_bytes: usize, every_dot: bool) -> bool {
    let file = name.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
    let mut previous = '/';
    for (at, character) in name.char_indices() {
        let is_escaped = match character {
            '%' => true,
            '/' => previous == '/' || at + 1 == name.len(),
            '.' => every_dot || at >= file || is_dots(name, at),
            '_' => at == 0 && name.starts_with("__"),
            other => other.is_control(),
        };
        let bytes = character.len_utf8() * if is_escaped { 3 } else { 1 };
        if base.len() + bytes > max_bytes {
            return false;
        }
        if is_escaped {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string does not fail.
                write!(base, "%{byte:02X}").unwrap_or_default();
            }
        } else {
            base.push(character);
        }
        previous = character;
    }
    true
}

/// Whether the dot at byte `at` is of a folder `.` or `..`.
fn is_dots(name: &str, at: usize) -> bool {
    let start = name[..at].rfind('/').map_or(0, |slash| slash + 1);
    let end = name[at..].find('/').map_or(name.len(), |slash| at + slash);
    matches!(&name[start..end], "." | "..")
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use pushdown_shard::{check_name, split_name};

    use super::*;

    /// Names with all that is escaped, and such that differ only a little.
    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            8 => "[ab./%_]{1,6}",
            4 => "[ab]{1,2}(\\.(jpg|png|b)){0,3}",
            2 => "\\PC{1,12}",
            1 => any::<String>().prop_filter("not empty", |name| !name.is_empty()),
            1 => "[a./\n]{300,1100}",
        ]
    }

    fn unescape(base: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = base.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            (bytes, rest) = if *first == b'%' {
                bytes.extend(hex::decode(&after[..2]).unwrap());
                (bytes, &after[2..])
            } else {
                bytes.push(*first);
                (bytes, after)
            };
        }
        String::from_utf8(bytes).unwrap()
    }

    fn found(names: &[&str]) -> Vec<String> {
        bases(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn bases_are_names_without_extension() {
        for (name, base) in [
            ("photos/cat.jpg", "photos/cat"),
            ("a.b/c.d.JPG", "a.b/c%2Ed"),
            ("a", "a"),
            ("ä ö.png", "ä ö"),
            (".hidden", "%2Ehidden"),
            ("100%.png", "100%25"),
            ("/a/b.png", "%2Fa/b"),
            ("a//b.png", "a/%2Fb"),
            ("a///b", "a/%2F%2Fb"),
            ("a.b/", "a%2Eb%2F"),
            ("a.b//", "a%2Eb/%2F"),
            ("/", "%2F"),
            ("../a.png", "%2E%2E/a"),
            ("./a/../...b/.", "%2E/a/%2E%2E/...b/%2E"),
            ("__meta__/a.png", "%5F_meta__/a"),
            ("a/__b__.png", "a/__b__"),
            ("a\n\u{85}b.png", "a%0A%C2%85b"),
        ] {
            assert_eq!(found(&[name]), [base], "{name}");
        }
    }

    #[test]
    fn equal_bases_have_their_extension() {
        assert_eq!(found(&["a.jpg", "a.png", "b.jpg"]), ["a%2Ejpg", "a%2Epng", "b"]);
        assert_eq!(found(&["a", "a.jpg"]), ["a", "a%2Ejpg"]);
        // The name of one is the base of the other.
        assert_eq!(found(&["a.jpg", "a.jpg.png"]), ["a", "a%2Ejpg%2Epng"]);
        assert_eq!(found(&["a.jpg", "A.jpg"]), ["a", "A"]);
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_before_its_digest() {
        let fits = "ä".repeat(MAX_BYTES / 2);
        assert_eq!(found(&[&fits]), [fits.as_str()]);
        let folder = format!("x.y{}/", "ä".repeat(500));
        let bases = found(&[&format!("{folder}a.jpg"), &format!("{folder}b.jpg")]);
        assert_eq!(bases[0][..bases[0].len() - 32], bases[1][..bases[1].len() - 32]);
        assert_ne!(bases[0], bases[1]);
        for base in bases {
            assert!(base.len() <= MAX_BYTES && base.starts_with("x%2Eyä"), "{base}");
            assert_eq!(base.find(CUT), Some(base.len() - 34), "{base}");
        }
    }

    proptest! {
        #[test]
        fn bases_differ_and_stand_for_one_name(names in vec(name(), 1..8)) {
            let names: Vec<String> = names.into_iter().collect::<HashSet<_>>().into_iter().collect();
            let bases = bases(&names);
            prop_assert_eq!(bases.iter().collect::<HashSet<_>>().len(), names.len());
            for (name, base) in names.iter().zip(&bases) {
                let member = format!("{base}.jpg");
                prop_assert!(check_name(&member).is_ok(), "{}", member);
                let split_member = split_name(&member);
                prop_assert_eq!(split_member, Some((base.as_str(), "jpg".into())));
                prop_assert!(!base.chars().any(char::is_control) && !base.starts_with("__"));
                if !base.contains(CUT) {
                    let original = unescape(base);
                    prop_assert!(original == *name || original == split(name).0);
                }
            }
        }
    }
}
