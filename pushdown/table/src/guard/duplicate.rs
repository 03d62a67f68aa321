//! Duplicate names.

/// The first name, in alphabetical order, that occurs more than once.
pub(crate) fn first_duplicate<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut sorted: Vec<_> = names.into_iter().collect();
    sorted.sort_unstable();
    let pair = sorted.array_windows().find(|[one, next]| one == next);
    pair.map(|[one, _]| *one)
}
