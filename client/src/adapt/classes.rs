//! Objects of a data set by size.

use super::float;
use crate::store::Object;

/// Classes that are told apart.
const CLASSES: usize = 4;

/// Objects of about the same size.
pub(super) struct Class {
    pub(super) share: f64,
    /// Mean.
    pub(super) bytes: f64,
    /// The most; any number for the last class.
    pub(super) up_to: u64,
}

/// As many objects in each class, from the smallest to the largest. One class where sizes are not known.
pub(super) fn classes(objects: &[Object]) -> Vec<Class> {
    /// About the mean of a photo data set.
    const USUAL: f64 = 128.0 * 1024.0;
    let sizes: Option<Vec<u64>> = objects.iter().map(|object| object.bytes).collect();
    let mut sizes = sizes.unwrap_or_default();
    sizes.sort_unstable();
    let all = sizes.len();
    let mut classes: Vec<Class> = Vec::new();
    for chunk in sizes.chunks(all.div_ceil(CLASSES).max(1)) {
        let bytes = chunk.iter().copied().map(float).sum::<f64>() / float(chunk.len() as u64);
        let share = float(chunk.len() as u64) / float(all as u64);
        let up_to = chunk.last().copied().unwrap_or(u64::MAX);
        match classes.last_mut() {
            // All of the same size: one class.
            Some(last) if last.up_to == up_to => {
                last.bytes = (last.bytes * last.share + bytes * share) / (last.share + share);
                last.share += share;
            }
            _ => classes.push(Class { share, bytes, up_to }),
        }
    }
    match classes.last_mut() {
        Some(last) => last.up_to = u64::MAX,
        None => classes.push(Class {
            share: 1.0,
            bytes: USUAL,
            up_to: u64::MAX,
        }),
    }
    classes
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn objects(sizes: &[u64]) -> Vec<Object> {
        let object = |bytes: &u64| Object {
            key: "k".into(),
            bytes: Some(*bytes),
            etag: None,
        };
        sizes.iter().map(object).collect()
    }

    #[test]
    fn objects_are_told_apart_by_size() {
        let found = classes(&objects(&[5, 1, 4, 2, 3, 8, 7, 6]));
        let found: Vec<_> = found
            .iter()
            .map(|class| (class.share, class.bytes, class.up_to))
            .collect();
        let expected = [
            (0.25, 1.5, 2),
            (0.25, 3.5, 4),
            (0.25, 5.5, 6),
            (0.25, 7.5, u64::MAX),
        ];
        assert_eq!(found, expected);
        let same = classes(&objects(&[9; 100]));
        assert_eq!(same.len(), 1);
        assert!((same[0].share - 1.0).abs() < 1e-9);
        assert_eq!(classes(&[]).len(), 1);
        let mut unknown = objects(&[1, 2]);
        unknown[0].bytes = None;
        assert_eq!(classes(&unknown).len(), 1);
    }
}
