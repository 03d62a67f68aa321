//! What is kept of the tensors of a run, and whether a batch has in it what its samples have alone.

use crate::step::model::session::Value;

/// How far an element of a batch may be from the same one alone, relative to the largest of its sample. It is that of law 1:
/// where a batch gives more than this, the results of a pipeline would depend on who else asks. ONNX Runtime itself comes
/// nowhere near it: its matrix products go by the number of rows, which makes 1e-6 in the deepest models of the tests.
const TOLERANCE: f32 = 1e-5;

/// Elements that are kept of a tensor that is never handed on.
const KEPT: usize = 1 << 9;

/// What is kept of a tensor. All of them together would be many times what a run needs.
#[derive(Debug)]
pub(super) enum Seen<T> {
    /// The extents, and what was made of the elements.
    Floats(Vec<usize>, T),
    Integers(Vec<usize>, Vec<i64>),
    Other,
}

/// A tensor of one sample.
#[derive(Debug)]
pub(super) struct Row {
    finite: bool,
    /// The magnitude of the largest element.
    largest: f32,
    /// Elements all over the tensor, each so many behind the one before; or all of them.
    some: Vec<f32>,
    stride: usize,
}

impl<T> Seen<T> {
    pub(super) fn of(value: &Value<'_>, look: impl FnOnce(&[usize], &[f32]) -> T) -> Self {
        match value {
            Value::Floats(extents, elements) => Self::Floats(extents.clone(), look(extents, elements)),
            Value::Integers(extents, elements) => Self::Integers(extents.clone(), elements.to_vec()),
            Value::Other => Self::Other,
        }
    }

    /// How long the first axis is, of floats.
    pub(super) fn first_extent(&self) -> Option<usize> {
        match self {
            Self::Floats(extents, _) => extents.first().copied(),
            Self::Integers(..) | Self::Other => None,
        }
    }
}

impl Seen<Row> {
    /// Whether this is a batch of one with this shape behind it, and about these elements.
    fn is_close(&self, shape: &[usize], elements: &[f32]) -> bool {
        match self {
            Self::Floats(extents, row) => {
                extents.split_first() == Some((&1, shape)) && row.is_close(elements)
            }
            Self::Integers(..) | Self::Other => false,
        }
    }
}

/// Whether a tensor is a batch of these two samples.
pub(super) fn is_pair(extents: &[usize], elements: &[f32], [one, other]: [&Seen<Row>; 2]) -> bool {
    let (first, second) = elements.split_at(elements.len() / 2);
    match extents {
        [2, shape @ ..] => !first.is_empty() && one.is_close(shape, first) && other.is_close(shape, second),
        _ => false,
    }
}

impl Row {
    /// Keeps all elements of what is looked at as a `whole`.
    pub(super) fn of(elements: &[f32], whole: bool) -> Self {
        let largest = |largest: f32, element: &f32| largest.max(element.abs());
        // Odd, so that it walks through the columns of an image.
        let stride = if whole {
            1
        } else {
            elements.len().div_ceil(KEPT) | 1
        };
        Self {
            finite: elements.iter().all(|element| element.is_finite()),
            largest: elements.iter().fold(0_f32, largest),
            some: elements.iter().copied().step_by(stride).collect(),
            stride,
        }
    }

    pub(super) const fn is_finite(&self) -> bool {
        self.finite
    }

    fn is_close(&self, elements: &[f32]) -> bool {
        let found = elements.iter().step_by(self.stride);
        // A NaN is close to nothing.
        found
            .zip(&self.some)
            .all(|(found, expected)| (found - expected).abs() <= TOLERANCE * self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(elements: &[f32], whole: bool) -> Seen<Row> {
        Seen::Floats(vec![1, elements.len()], Row::of(elements, whole))
    }

    #[test]
    fn a_batch_of_two_is_one_behind_the_other() {
        let (one, other) = (alone(&[1.0, -2.0], true), alone(&[3.0, 0.5], true));
        let rows = [&one, &other];
        assert!(is_pair(&[2, 2], &[1.0, -2.0, 3.0, 0.5], rows));
        assert!(is_pair(&[2, 2], &[1.000_01, -2.0, 3.0, 0.5], rows));
        for (extents, elements) in [
            (&[2, 2][..], [1.0, -2.0, 3.0, 0.500_06]),
            (&[2, 2], [1.0, -2.0, 3.0, f32::NAN]),
            (&[2, 2], [3.0, 0.5, 1.0, -2.0]),
            (&[2, 2, 1], [1.0, -2.0, 3.0, 0.5]),
            (&[4], [1.0, -2.0, 3.0, 0.5]),
            (&[1, 4], [1.0, -2.0, 3.0, 0.5]),
        ] {
            assert!(!is_pair(extents, &elements, rows), "{extents:?}: {elements:?}");
        }
        let nothing = alone(&[], true);
        assert!(!is_pair(&[2, 0], &[], [&nothing, &nothing]));
        let integers = Seen::Integers(vec![1, 2], vec![1, 2]);
        assert!(!is_pair(&[2, 2], &[1.0, -2.0, 1.0, 2.0], [&one, &integers]));
    }

    /// What is handed on is compared as a whole: one element may be all that a batch changes.
    #[test]
    fn of_what_is_never_handed_on_some_elements_are_kept() {
        let mut elements = vec![1.0; 4 * KEPT];
        let (whole, some) = (Row::of(&elements, true), Row::of(&elements, false));
        assert_eq!(whole.some.len(), elements.len());
        assert!(some.some.len() <= KEPT);
        assert!(whole.is_close(&elements) && some.is_close(&elements));
        elements[1] = 2.0;
        assert!(!whole.is_close(&elements));
        elements[1] = 1.0;
        elements[some.stride] = 2.0;
        assert!(!some.is_close(&elements));
    }
}
