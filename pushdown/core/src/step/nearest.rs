//! Suggestions for mistyped names.

/// Maximum number of characters to compare. The sender chooses the length of a name.
const MAX_COMPARED_CHARS: usize = 100;
/// Minimum size of a name that counts as a prefix or a part of another.
const MIN_PART_BYTES: usize = 3;

/// Sorts names by similarity to `found`, nearest first: names of which one is a prefix of the other, then names of which one
/// contains the other, then all others. The edit distance orders each group. The sort is stable.
pub fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, found: &str) -> Vec<&'a str> {
    let found: String = found.chars().take(MAX_COMPARED_CHARS).collect();
    let found = found.to_lowercase();
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_cached_key(|name| {
        let name = name.to_lowercase();
        (match_rank(&name, &found), edit_distance(&name, &found))
    });
    names
}

/// 0 if one name is a prefix of the other, 1 if it is a part of it, 2 otherwise.
fn match_rank(a: &str, b: &str) -> u8 {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if short.len() < MIN_PART_BYTES {
        2
    } else if long.starts_with(short) {
        0
    } else {
        2 - u8::from(long.contains(short))
    }
}

/// The edit distance for hints. `usize::MAX` if the lengths differ by more than 2, since a typing error is unlikely then.
pub fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    edit_distance(a, b)
}

/// Levenshtein distance in bytes, computed one row of the matrix at a time.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replacement = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replacement.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_are_ranked() {
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
    fn hints_are_limited_to_likely_typing_errors() {
        assert_eq!(distance("resize", "resise"), 1);
        assert_eq!(distance("resize", "resizes!"), 2);
        assert_eq!(distance("feat", "features"), usize::MAX);
    }
}
