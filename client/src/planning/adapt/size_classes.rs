//! Objects of a data set, classified by size.

use super::float;
use crate::objects::Objects;

/// Number of classes.
const CLASSES: usize = 4;

/// Objects of about the same size.
pub(super) struct SizeClass {
    pub(super) fraction: f64,
    pub(super) mean_bytes: f64,
    /// The most bytes of an object; any number for the last class.
    pub(super) max_bytes: u64,
}

/// Classes of equally many objects, from the smallest to the largest. One class if sizes are not known.
pub(super) fn size_classes(objects: &Objects) -> Vec<SizeClass> {
    /// About the mean of a photo data set.
    const DEFAULT_BYTES: f64 = 128.0 * 1024.0;
    let sizes: Option<Vec<u64>> = objects.iter().map(|object| object.bytes).collect();
    let mut sizes = sizes.unwrap_or_default();
    sizes.sort_unstable();
    let all = sizes.len();
    let mut classes: Vec<SizeClass> = Vec::new();
    for chunk in sizes.chunks(all.div_ceil(CLASSES).max(1)) {
        let mean_bytes = chunk.iter().copied().map(float).sum::<f64>() / float(chunk.len() as u64);
        let fraction = float(chunk.len() as u64) / float(all as u64);
        let max_bytes = chunk.last().copied().unwrap_or(u64::MAX);
        match classes.last_mut() {
            // All of the same size: one class.
            Some(last) if last.max_bytes == max_bytes => {
                last.mean_bytes =
                    (last.mean_bytes * last.fraction + mean_bytes * fraction) / (last.fraction + fraction);
                last.fraction += fraction;
            }
            _ => classes.push(SizeClass {
                fraction,
                mean_bytes,
                max_bytes,
            }),
        }
    }
    match classes.last_mut() {
        Some(last) => last.max_bytes = u64::MAX,
        None => classes.push(SizeClass {
            fraction: 1.0,
            mean_bytes: DEFAULT_BYTES,
            max_bytes: u64::MAX,
        }),
    }
    classes
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::objects::Object;

    pub(crate) fn objects(sizes: &[u64]) -> Objects {
        let object = |bytes: &u64| Object {
            key: "k",
            bytes: Some(*bytes),
            etag: None,
            member: None,
        };
        Objects::from_objects("b", sizes.iter().map(object))
    }

    #[test]
    fn objects_are_classified_by_size() {
        let found = size_classes(&objects(&[5, 1, 4, 2, 3, 8, 7, 6]));
        let found: Vec<_> = found
            .iter()
            .map(|class| (class.fraction, class.mean_bytes, class.max_bytes))
            .collect();
        let expected = [
            (0.25, 1.5, 2),
            (0.25, 3.5, 4),
            (0.25, 5.5, 6),
            (0.25, 7.5, u64::MAX),
        ];
        assert_eq!(found, expected);
        let same = size_classes(&objects(&[9; 100]));
        assert_eq!(same.len(), 1);
        assert!((same[0].fraction - 1.0).abs() < 1e-9);
        assert_eq!(size_classes(&objects(&[])).len(), 1);
        let listed = objects(&[1, 2]);
        let unlisted = Objects::from_keys("b", ["k"]);
        let some = Objects::from_objects("b", unlisted.iter().chain(listed.iter()));
        assert_eq!(size_classes(&some).len(), 1);
    }
}
