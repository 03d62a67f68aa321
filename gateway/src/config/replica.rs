//! The id of a gateway among its replicas.

use std::{fmt, net::SocketAddr, str::FromStr, sync::Arc};

use serde::{Serialize, Serializer};

/// Maximum length of an id, in characters.
const MAX_CHARACTERS: usize = 128;

/// The id of a gateway among its replicas, by which readers place samples: 1 to 128 characters of visible ASCII. Without commas, quotes
/// and backslashes it is the same text in a header, in `Server-Timing` and in a label of a metric. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaId(Arc<str>);

impl ReplicaId {
    /// A new id that no other gateway has: 32 hex digits.
    pub fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An address, which has no forbidden characters.
impl From<SocketAddr> for ReplicaId {
    fn from(address: SocketAddr) -> Self {
        Self(address.to_string().into())
    }
}

impl FromStr for ReplicaId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_invalid =
            |character: &char| !character.is_ascii_graphic() || matches!(character, ',' | '"' | '\'' | '\\');
        if let Some(found) = text.chars().find(is_invalid) {
            return Err(format!(
                "expected visible ASCII without spaces, commas, quotes and backslashes, found `{}`",
                found.escape_default()
            ));
        }
        match text.len() {
            1..=MAX_CHARACTERS => Ok(Self(text.into())),
            length => Err(format!(
                "expected 1 to {MAX_CHARACTERS} characters, found {length}"
            )),
        }
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ReplicaId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_texts_of_visible_characters() {
        for text in ["pushdown-0", "a", "[::1]:9900", "{;=}", &"x".repeat(128)] {
            assert_eq!(text.parse::<ReplicaId>().unwrap().as_str(), text);
        }
        for wrong in ["a b", "a,b", "\"a\"", "a'b", "a\\b", "a\n", "caf\u{e9}"] {
            let fault = wrong.parse::<ReplicaId>().unwrap_err();
            assert!(
                fault.starts_with("expected visible ASCII without spaces"),
                "{fault}"
            );
            assert!(fault.is_ascii() && !fault.contains('\n'), "{fault:?}");
        }
        for (wrong, length) in [(String::new(), 0), ("x".repeat(129), 129)] {
            let fault = wrong.parse::<ReplicaId>().unwrap_err();
            assert_eq!(fault, format!("expected 1 to 128 characters, found {length}"));
        }
    }

    #[test]
    fn random_ids_are_valid_and_differ() {
        let (one, other) = (ReplicaId::random(), ReplicaId::random());
        assert_ne!(one, other);
        assert_eq!(one.as_str().parse(), Ok(one.clone()));
    }
}
