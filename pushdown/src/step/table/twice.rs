//! Names that stand twice where each has to be another.

/// The first of the names, by their letters, that stands there twice.
pub(super) fn twice<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut sorted: Vec<_> = names.into_iter().collect();
    sorted.sort_unstable();
    let pair = sorted.array_windows().find(|[one, next]| one == next);
    pair.map(|[one, _]| *one)
}
