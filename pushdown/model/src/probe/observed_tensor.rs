//! Summaries of the tensors of a run, and the comparison of a batch with single runs.

use crate::session::TensorView;

/// Maximum difference between an element of a batch and the same element of a single run, relative to the largest element of
/// the sample. This is the tolerance of law 1: with a larger difference, results would depend on concurrent requests. ONNX
/// Runtime stays well below it. Its matrix products depend on the number of rows, which amounts to 1e-6 in the deepest
/// models of the tests.
const TOLERANCE: f32 = 1e-5;

/// Maximum elements stored of a tensor that cannot be a cut point.
const MAX_SAMPLED_ELEMENTS: usize = 1 << 9;

/// A tensor of a run, without all its elements: the elements of all tensors would take many times the memory of a run.
#[derive(Debug)]
pub(super) enum ObservedTensor<T> {
    /// The extents, and a summary of the elements.
    Floats(Vec<usize>, T),
    Integers(Vec<usize>, Vec<i64>),
    Other,
}

/// A summary of the elements of one sample.
#[derive(Debug)]
pub(super) struct TensorSummary {
    is_finite: bool,
    /// The magnitude of the largest element.
    largest: f32,
    /// Every `stride`th element.
    elements: Vec<f32>,
    stride: usize,
}

impl<T> ObservedTensor<T> {
    pub(super) fn new(value: &TensorView<'_>, summarize: impl FnOnce(&[usize], &[f32]) -> T) -> Self {
        match value {
            TensorView::Floats(extents, elements) => {
                Self::Floats(extents.clone(), summarize(extents, elements))
            }
            TensorView::Integers(extents, elements) => Self::Integers(extents.clone(), elements.to_vec()),
            TensorView::Other => Self::Other,
        }
    }

    /// The first extent of a tensor of floats.
    pub(super) fn first_extent(&self) -> Option<usize> {
        match self {
            Self::Floats(extents, _) => extents.first().copied(),
            Self::Integers(..) | Self::Other => None,
        }
    }
}

impl ObservedTensor<TensorSummary> {
    /// Whether this tensor is a batch of one sample with this shape and approximately these elements.
    fn is_close(&self, shape: &[usize], elements: &[f32]) -> bool {
        match self {
            Self::Floats(extents, summary) => {
                extents.split_first() == Some((&1, shape)) && summary.is_close(elements)
            }
            Self::Integers(..) | Self::Other => false,
        }
    }
}

/// Whether a tensor is the concatenation of these two tensors along the batch axis.
pub(super) fn is_concatenation(
    extents: &[usize],
    elements: &[f32],
    [one, other]: [&ObservedTensor<TensorSummary>; 2],
) -> bool {
    let (first, second) = elements.split_at(elements.len() / 2);
    match extents {
        [2, shape @ ..] => !first.is_empty() && one.is_close(shape, first) && other.is_close(shape, second),
        _ => false,
    }
}

impl TensorSummary {
    /// Stores all elements if `all` is set.
    pub(super) fn new(elements: &[f32], all: bool) -> Self {
        let largest = |largest: f32, element: &f32| largest.max(element.abs());
        // Odd, so that the stored elements are not all from the same columns of an image.
        let stride = if all {
            1
        } else {
            elements.len().div_ceil(MAX_SAMPLED_ELEMENTS) | 1
        };
        Self {
            is_finite: elements.iter().all(|element| element.is_finite()),
            largest: elements.iter().fold(0_f32, largest),
            elements: elements.iter().copied().step_by(stride).collect(),
            stride,
        }
    }

    pub(super) const fn is_finite(&self) -> bool {
        self.is_finite
    }

    fn is_close(&self, elements: &[f32]) -> bool {
        let found = elements.iter().step_by(self.stride);
        // A NaN compares as not close.
        found
            .zip(&self.elements)
            .all(|(found, expected)| (found - expected).abs() <= TOLERANCE * self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(elements: &[f32], all: bool) -> ObservedTensor<TensorSummary> {
        ObservedTensor::Floats(vec![1, elements.len()], TensorSummary::new(elements, all))
    }

    #[test]
    fn a_batch_of_two_is_a_concatenation() {
        let (one, other) = (single(&[1.0, -2.0], true), single(&[3.0, 0.5], true));
        let singles = [&one, &other];
        assert!(is_concatenation(&[2, 2], &[1.0, -2.0, 3.0, 0.5], singles));
        assert!(is_concatenation(&[2, 2], &[1.000_01, -2.0, 3.0, 0.5], singles));
        for (extents, elements) in [
            (&[2, 2][..], [1.0, -2.0, 3.0, 0.500_06]),
            (&[2, 2], [1.0, -2.0, 3.0, f32::NAN]),
            (&[2, 2], [3.0, 0.5, 1.0, -2.0]),
            (&[2, 2, 1], [1.0, -2.0, 3.0, 0.5]),
            (&[4], [1.0, -2.0, 3.0, 0.5]),
            (&[1, 4], [1.0, -2.0, 3.0, 0.5]),
        ] {
            assert!(
                !is_concatenation(extents, &elements, singles),
                "{extents:?}: {elements:?}"
            );
        }
        let empty = single(&[], true);
        assert!(!is_concatenation(&[2, 0], &[], [&empty, &empty]));
        let integers = ObservedTensor::Integers(vec![1, 2], vec![1, 2]);
        assert!(!is_concatenation(
            &[2, 2],
            &[1.0, -2.0, 1.0, 2.0],
            [&one, &integers]
        ));
    }

    /// Possible cut points are compared in every element: a batch may change a single one.
    #[test]
    fn only_possible_cut_points_store_all_elements() {
        let mut elements = vec![1.0; 4 * MAX_SAMPLED_ELEMENTS];
        let (all, some) = (
            TensorSummary::new(&elements, true),
            TensorSummary::new(&elements, false),
        );
        assert_eq!(all.elements.len(), elements.len());
        assert!(some.elements.len() <= MAX_SAMPLED_ELEMENTS);
        assert!(all.is_close(&elements) && some.is_close(&elements));
        elements[1] = 2.0;
        assert!(!all.is_close(&elements));
        elements[1] = 1.0;
        elements[some.stride] = 2.0;
        assert!(!some.is_close(&elements));
    }
}
