//! How much of a data set the result cache of a gateway has, by stage.

use std::{collections::BTreeMap, convert::Infallible, fmt, str::FromStr};

use pushdown_core::language::Digest;

/// The most entries that are read from an answer, which is untrusted input.
const MAX_ENTRIES: usize = 64;

/// The ratio of a data set's objects whose values are cached, by stage. As text, `3=0.25, 5=1`.
///
/// Not any objects are cached, but those with the lowest [hashes](object_hash): an object is cached at a stage if the
/// [fraction](hash_fraction) of its hash is below the ratio. So a reader knows which ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CachedRatios(BTreeMap<u8, f64>);

impl CachedRatios {
    /// Whether no stage has an entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ratio of a stage, from 0 to 1; 0 without an entry.
    pub fn ratio(&self, stage: u8) -> f64 {
        self.0.get(&stage).copied().unwrap_or_default()
    }

    /// All stages with their ratios, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, f64)> {
        self.0.iter().map(|(stage, ratio)| (*stage, *ratio))
    }
}

/// Takes at most 64 entries, limits ratios to 0 and 1, and ignores NaN. Of two entries for a stage the second one counts.
impl FromIterator<(u8, f64)> for CachedRatios {
    fn from_iter<I: IntoIterator<Item = (u8, f64)>>(entries: I) -> Self {
        let entries = entries.into_iter().take(MAX_ENTRIES);
        let numbers = entries.filter(|(_, ratio)| !ratio.is_nan());
        Self(
            numbers
                .map(|(stage, ratio)| (stage, ratio.clamp(0.0, 1.0)))
                .collect(),
        )
    }
}

impl fmt::Display for CachedRatios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (stage, ratio)) in self.iter().enumerate() {
            write!(f, "{}{stage}={ratio}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Ignores entries that are not `stage=ratio`, so that a newer gateway may add others.
impl FromStr for CachedRatios {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let entry = |text: &str| {
            let (stage, ratio) = text.split_once('=')?;
            Some((stage.trim().parse().ok()?, ratio.trim().parse().ok()?))
        };
        Ok(text.split(',').take(MAX_ENTRIES).filter_map(entry).collect())
    }
}

/// The hash of an object: the first 8 bytes, big-endian, of the SHA-256 digest of `/bucket/key`, not percent-encoded. It decides which
/// objects a gateway caches, so it never changes.
pub fn object_hash(bucket: &str, key: &str) -> u64 {
    Digest::new(format!("/{bucket}/{key}").as_bytes()).first_u64()
}

/// The hash of a member of a shard, in place of that of an object: of `/bucket/key`, a NUL and the name of the member.
pub fn member_hash(bucket: &str, key: &str, member: &str) -> u64 {
    Digest::new(format!("/{bucket}/{key}\0{member}").as_bytes()).first_u64()
}

/// A hash as a fraction of all hashes, from 0 to less than 1, by its upper 32 bits.
pub fn hash_fraction(hash: u64) -> f64 {
    /// Number of different upper halves.
    const HALVES: f64 = 4_294_967_296.0;
    f64::from((hash >> 32) as u32) / HALVES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> CachedRatios {
        text.parse().unwrap_or_default()
    }

    #[test]
    fn ratios_are_parsed_leniently_and_within_bounds() {
        let ratios = parse("3=0.25, 5=1");
        assert_eq!(ratios.to_string(), "3=0.25, 5=1");
        let found = [3, 4, 5].map(|stage| ratios.ratio(stage).to_string());
        assert_eq!(found, ["0.25", "0", "1"]);
        assert_eq!(
            parse(" 5 = 7,3=-1,x=1,4,6=NaN,300=1,,3=0.5").to_string(),
            "3=0.5, 5=1"
        );
        assert!(parse("").is_empty() && parse("=,=").is_empty());
        let many: Vec<_> = (0..200).map(|stage| format!("{stage}=0.5")).collect();
        assert_eq!(parse(&many.join(",")).iter().count(), MAX_ENTRIES);
    }

    /// From Python: `int.from_bytes(hashlib.sha256(b"/photos/train/a b.jpg").digest()[:8], "big")`, and of
    /// `b"/photos/train.tar\0a b.jpg"`.
    #[test]
    fn the_hash_of_an_object_never_changes() {
        assert_eq!(object_hash("photos", "train/a b.jpg"), 3_279_401_458_526_573_458);
        assert_eq!(
            member_hash("photos", "train.tar", "a b.jpg"),
            9_614_998_234_527_879_186
        );
        let fractions = [0, u64::from(u32::MAX), 1 << 63].map(|hash| hash_fraction(hash).to_string());
        assert_eq!(fractions, ["0", "0", "0.5"]);
        assert!(hash_fraction(u64::MAX) < 1.0);
    }

    proptest! {
        #[test]
        fn ratios_parse_their_own_text(entries in prop::collection::vec((any::<u8>(), 0.0..=1.0_f64), 0..MAX_ENTRIES)) {
            let ratios: CachedRatios = entries.into_iter().collect();
            prop_assert_eq!(parse(&ratios.to_string()), ratios);
        }

        #[test]
        fn any_text_is_parsed(text in ".*") {
            prop_assert!(parse(&text).iter().all(|(_, ratio)| (0.0..=1.0).contains(&ratio)));
        }

        #[test]
        fn a_fraction_is_below_a_ratio_if_the_upper_bits_are_below_the_threshold(hash in any::<u64>(), threshold in any::<u32>()) {
            let ratio = f64::from(threshold) / 4_294_967_296.0;
            prop_assert_eq!(hash_fraction(hash) < ratio, hash >> 32 < u64::from(threshold));
        }
    }
}
