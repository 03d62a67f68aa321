//! What a gateway can do beyond version 0.1.0, by name.

use std::{collections::BTreeSet, fmt};

/// The most names that are read from an answer, which is untrusted input.
const MAX_NAMES: usize = 256;

/// Names of abilities, and of fields of a batch request, that are newer than version 0.1.0. A gateway lists its own in each answer, as
/// text `families, other`. A reader uses one only after it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Features(BTreeSet<String>);

impl Features {
    /// A batch request may have [`CacheHints`](crate::CacheHints), which add the column `cache` to its answer, and ETags of its samples.
    pub const CACHE: &'static str = "cache";
    /// A sample of a batch, and a GET with a pipeline, may ask for the stored object as a [cropped JPEG](crate::ObjectForm::CroppedJpeg).
    pub const CROPPED_JPEG: &'static str = "cropped-jpeg";
    /// A batch request may have `deliver: false`: its values are computed and cached, and not sent. Then it may have a
    /// [`Pin`](crate::Pin), too.
    pub const DELIVER: &'static str = "deliver";
    /// A batch request may have the [`Demand`](crate::Demand) of its reader.
    pub const DEMAND: &'static str = "demand";
    /// An `each` of a pipeline may have the arguments `until` and `from`, so that it is a part of one.
    pub const EACH_PARTS: &'static str = "each-parts";
    /// The engine states a version for each step family.
    pub const FAMILIES: &'static str = "families";
    /// Samples of a batch request may be members of shards, with further columns. A GET with a pipeline may name a member, too.
    pub const MEMBERS: &'static str = "members";
    /// A batch request may ask for one object with all its values, written to a store, instead of an answer with them: a *part* of a data set.
    pub const PARTS: &'static str = "parts";
    /// A batch request may be signed itself, with samples that have no signatures: a *signed batch*. The rights of the key that
    /// signed decide on each sample.
    pub const SIGNED_BATCHES: &'static str = "signed-batches";
    /// A batch request, and a GET with a pipeline, may state the store that its presigned paths are for: a
    /// [`StoreEndpoint`](crate::StoreEndpoint) other than the gateway's own store.
    pub const STORES: &'static str = "stores";

    /// The features of this build.
    pub fn all() -> Self {
        let names = [
            Self::CACHE,
            Self::CROPPED_JPEG,
            Self::DELIVER,
            Self::DEMAND,
            Self::EACH_PARTS,
            Self::FAMILIES,
            Self::MEMBERS,
            Self::PARTS,
            Self::SIGNED_BATCHES,
            Self::STORES,
        ];
        Self(BTreeSet::from(names.map(str::to_owned)))
    }

    /// The others.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// Those that both have.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// The features in the text of an answer. Unknown names are retained; beyond 256 they are ignored.
    pub fn parse(text: &str) -> Self {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Self(names.take(MAX_NAMES).map(str::to_owned).collect())
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether a feature is listed.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            write!(f, "{}{name}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_parse_their_own_text() {
        let all = Features::all();
        assert_eq!(Features::parse(&all.to_string()), all);
        assert!(all.has(Features::CACHE) && all.has(Features::FAMILIES) && !all.has("families, other"));
        assert!(!all.without(Features::CACHE).has(Features::CACHE));
        assert_eq!(
            Features::parse("a, b, c").intersection(&Features::parse("c, d, a")),
            Features::parse("a, c")
        );
        assert_eq!(Features::parse("b,  a,,b").to_string(), "a, b");
        assert!(Features::parse("b,  a,,b").names().eq(["a", "b"]));
        assert_eq!(Features::parse(""), Features::default());
        let many: Vec<_> = (0..1000).map(|number| number.to_string()).collect();
        assert_eq!(Features::parse(&many.join(",")).0.len(), MAX_NAMES);
    }
}
