//! Results of ONNX Runtime's Python API (`scripts/models_golden.py`), and the distance of values from them.

use std::{collections::HashMap, fs};

use pushdown::{DType, Layout, Tensor};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::models;

pub(crate) const TOLERANCE: f32 = 1e-5;

/// Inputs and their results.
pub(crate) struct Golden {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Vec<f32>>,
    /// The tensors inside the model by name.
    inner: HashMap<String, InnerTensor>,
}

/// A tensor inside a model.
struct InnerTensor {
    /// Without the batch axis.
    shape: Vec<usize>,
    /// A summary for each input.
    summaries: Vec<Summary>,
}

/// A summary of a tensor: all values of a small one, evenly spaced values of a large one.
struct Summary {
    largest: f32,
    mean: f32,
    values: Vec<f32>,
}

pub(crate) fn golden(name: &str) -> Golden {
    let file = |kind: &str| {
        let path = models().join(format!("{name}.{kind}.safetensors"));
        fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; scripts/models.sh creates it", path.display()))
    };
    let (whole, layers) = (file("golden"), file("layers"));
    let whole = SafeTensors::deserialize(&whole).unwrap();
    let input = whole.tensor("input").unwrap();
    let (samples, shape) = (input.shape()[0], &input.shape()[1..]);
    let layout = if shape.len() == 3 {
        Layout::Chw
    } else {
        Layout::Flat
    };
    let inputs = input.data().chunks_exact(input.data().len() / samples);
    let inputs =
        inputs.map(|input| Tensor::new(DType::F32, layout, shape.to_vec(), input.to_vec().into()).unwrap());
    Golden {
        inputs: inputs.collect(),
        outputs: rows(&whole.tensor("output").unwrap()),
        inner: inner_tensors(&layers),
    }
}

fn inner_tensors(file: &[u8]) -> HashMap<String, InnerTensor> {
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let shapes = header.metadata().as_ref().unwrap();
    let stored = SafeTensors::deserialize(file).unwrap();
    let tensors = stored.iter().map(|(name, tensor)| {
        let summaries = rows(&tensor).into_iter().map(|row| Summary {
            largest: row[0],
            mean: row[1],
            values: row[2..].to_vec(),
        });
        let inner = InnerTensor {
            shape: serde_json::from_str(&shapes[name]).unwrap(),
            summaries: summaries.collect(),
        };
        (name.to_owned(), inner)
    });
    tensors.collect()
}

/// The values of each sample.
fn rows(tensor: &TensorView<'_>) -> Vec<Vec<f32>> {
    assert_eq!(tensor.dtype(), Dtype::F32);
    let elements: Vec<f32> = bytemuck::pod_collect_to_vec(tensor.data());
    let rows = elements.chunks_exact(elements.len() / tensor.shape()[0]);
    rows.map(<[f32]>::to_vec).collect()
}

impl Golden {
    /// Compares values of a tensor inside the model with the golden ones. The first value belongs to the input `first`, the
    /// others to the following inputs, cyclically.
    #[track_caller]
    pub(crate) fn check_inner(&self, tensor: &str, first: usize, values: &[Tensor]) {
        let Some(inner) = self.inner.get(tensor) else {
            panic!("no golden values for the tensor `{tensor}`");
        };
        for (value, expected) in values.iter().zip(inner.summaries.iter().cycle().skip(first)) {
            assert_eq!(value.shape(), inner.shape, "{tensor}");
            let error = expected.distance(&floats(value));
            assert!(
                error <= f64::from(TOLERANCE),
                "the value of {tensor}, batch of {}: {error}",
                values.len()
            );
        }
    }
}

impl Summary {
    /// `max |a - b| / max |b|` over the stored values, and over the largest and the mean magnitude of the whole tensor, which
    /// cover the values in between.
    fn distance(&self, found: &[f32]) -> f64 {
        let last = self.values.len() - 1;
        let sampled = (0..=last).map(|index| found[index * (found.len() - 1) / last.max(1)]);
        let magnitudes = found.iter().map(|element| f64::from(element.abs()));
        let largest = magnitudes.clone().max_by(f64::total_cmp).unwrap_or_default();
        let mean = magnitudes.sum::<f64>() / f64::from(u32::try_from(found.len()).unwrap());
        let pairs = sampled.map(f64::from).zip(self.values.iter().copied());
        let differences = pairs
            .chain([(largest, self.largest), (mean, self.mean)])
            .map(|(a, b)| (a - f64::from(b)).abs());
        // In the total order a positive NaN is the largest.
        match differences.max_by(f64::total_cmp).unwrap_or_default() {
            // Also for a tensor of zeros.
            0.0 => 0.0,
            largest_difference => largest_difference / f64::from(self.largest),
        }
    }
}

pub(crate) fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor
        .data()
        .chunks_exact(4)
        .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// `max |a - b| / max |b|`. If any value is NaN, the result is NaN and exceeds every tolerance.
pub(crate) fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    if found == expected {
        return 0.0;
    }
    // In the total order a positive NaN is the largest. `f32::max` would ignore it.
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let largest_difference = differences.max_by(f32::total_cmp).unwrap_or_default();
    let largest = expected.iter().map(|element| element.abs());
    largest_difference / largest.max_by(f32::total_cmp).unwrap_or_default()
}

#[test]
fn nan_exceeds_every_tolerance() {
    for nan in [f32::NAN, -f32::NAN] {
        assert!(distance(&[nan, 1.0], &[1.0, 1.0]).is_nan());
        assert!(distance(&[1.0, 1.0], &[nan, 1.0]).is_nan());
        let summary = Summary {
            largest: 1.0,
            mean: 1.0,
            values: vec![1.0, 1.0],
        };
        assert!(
            summary.distance(&[1.0, nan, 1.0]).is_nan(),
            "a NaN between the stored values"
        );
    }
    assert!(distance(&[1.0, 1.0], &[1.0, 1.0]) <= TOLERANCE);
}

#[test]
fn summaries_cover_the_whole_tensor() {
    let summary = Summary {
        largest: 4.0,
        mean: 2.0,
        values: vec![1.0, -4.0],
    };
    let near = |found: &[f32]| summary.distance(found) <= f64::from(TOLERANCE);
    assert!(near(&[1.0, -1.0, -4.0]));
    assert!(!near(&[1.0, -1.001, -4.0]), "another mean");
    assert!(!near(&[1.0, -5.0, -4.0]), "another largest value");
    assert!(!near(&[-1.0, 1.0, -4.0]), "another stored value");
}
