//! Names like one that is not known, for those who mistype.

/// Characters of a name that are looked at: whoever sends it chooses how long it is.
const LOOKED_AT: usize = 100;
/// Characters from which on a part of a name tells which one is meant.
const TELLING: usize = 3;

/// The names from the nearest to the farthest: those that begin like `found`, or that it begins like, then those of which
/// either is a part of the other, then by the letters to change. Equal ones keep their order.
pub fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, found: &str) -> Vec<&'a str> {
    let found: String = found.chars().take(LOOKED_AT).collect();
    let found = found.to_lowercase();
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_cached_key(|name| {
        let name = name.to_lowercase();
        (kinship(&name, &found), edits(&name, &found))
    });
    names
}

/// 0 where one name begins like the other, 1 where it is a part of it, or else 2.
fn kinship(a: &str, b: &str) -> u8 {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if short.len() < TELLING {
        2
    } else if long.starts_with(short) {
        0
    } else {
        2 - u8::from(long.contains(short))
    }
}

/// Letters to change, for hints: any number where the lengths tell that it is more than one is likely to mistype.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    edits(a, b)
}

/// Levenshtein distance; one row of the matrix at a time.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_ranked_however_long_their_names() {
        const NAMES: [&str; 7] = [
            "stem",
            "blocks.1",
            "blocks.10",
            "blocks.15.depthwise",
            "head",
            "features",
            "logits",
        ];
        let first = |found: &str| nearest(NAMES, found)[..2].to_vec();
        assert_eq!(first("feat")[0], "features");
        assert_eq!(first("Features:0")[0], "features");
        assert_eq!(first("depthwise")[0], "blocks.15.depthwise");
        assert_eq!(first("block"), ["blocks.1", "blocks.10"]);
        assert_eq!(first("bocks.10"), ["blocks.10", "blocks.1"]);
        assert_eq!(first("loggits")[0], "logits");
        assert_eq!(nearest(NAMES, &"x".repeat(1 << 20)).len(), NAMES.len());
        assert!(nearest([], "any").is_empty());
    }

    #[test]
    fn hints_are_only_of_names_that_are_mistyped() {
        assert_eq!(distance("resize", "resise"), 1);
        assert_eq!(distance("resize", "resizes!"), 2);
        assert_eq!(distance("feat", "features"), usize::MAX);
    }
}
