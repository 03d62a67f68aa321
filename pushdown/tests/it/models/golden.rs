//! What ONNX Runtime's own Python makes of models (`scripts/models_golden.py`), and how far values are from it.

use std::{collections::HashMap, fs};

use pushdown::{DType, Layout, Tensor};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::models;

pub(crate) const TOLERANCE: f32 = 1e-5;

/// Two inputs and what ONNX Runtime's Python makes of them.
pub(crate) struct Golden {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Vec<f32>>,
    /// The tensors inside of the model, by their names.
    inside: HashMap<String, Inside>,
}

/// A tensor inside of a model.
struct Inside {
    /// Without the batch axis.
    shape: Vec<usize>,
    /// What is kept of it, for each input.
    kept: Vec<Kept>,
}

/// What is kept of a tensor: all values of a small one, evenly spread ones of a large one.
struct Kept {
    largest: f32,
    mean: f32,
    values: Vec<f32>,
}

pub(crate) fn golden(name: &str) -> Golden {
    let file = |kind: &str| {
        let path = models().join(format!("{name}.{kind}.safetensors"));
        fs::read(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; scripts/models.sh makes it", path.display()))
    };
    let (outside, layers) = (file("golden"), file("layers"));
    let outside = SafeTensors::deserialize(&outside).unwrap();
    let input = outside.tensor("input").unwrap();
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
        outputs: rows(&outside.tensor("output").unwrap()),
        inside: inside(&layers),
    }
}

fn inside(file: &[u8]) -> HashMap<String, Inside> {
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let shapes = header.metadata().as_ref().unwrap();
    let stored = SafeTensors::deserialize(file).unwrap();
    let tensors = stored.iter().map(|(name, tensor)| {
        let kept = rows(&tensor).into_iter().map(|row| Kept {
            largest: row[0],
            mean: row[1],
            values: row[2..].to_vec(),
        });
        let inside = Inside {
            shape: serde_json::from_str(&shapes[name]).unwrap(),
            kept: kept.collect(),
        };
        (name.to_owned(), inside)
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
    /// Holds values of a tensor inside of the model against Python's: the first one that of the input with the number
    /// `first`, the others those of the inputs behind it, round and round.
    #[track_caller]
    pub(crate) fn check_inside(&self, tensor: &str, first: usize, values: &[Tensor]) {
        let Some(inside) = self.inside.get(tensor) else {
            panic!("Python knows of no tensor `{tensor}`");
        };
        for (value, expected) in values.iter().zip(inside.kept.iter().cycle().skip(first)) {
            assert_eq!(value.shape(), inside.shape, "{tensor}");
            let far = expected.distance(&floats(value));
            assert!(
                far <= f64::from(TOLERANCE),
                "the value of {tensor}, {} at once: {far}",
                values.len()
            );
        }
    }
}

impl Kept {
    /// `max |a - b| / max |b|` over the values that are kept. Between them nothing may be amiss either: the largest and the
    /// mean magnitude of the whole tensor differ by no more, or by how much they do is the distance.
    fn distance(&self, found: &[f32]) -> f64 {
        let last = self.values.len() - 1;
        let spread = (0..=last).map(|place| found[place * (found.len() - 1) / last.max(1)]);
        let magnitudes = found.iter().map(|element| f64::from(element.abs()));
        let largest = magnitudes.clone().max_by(f64::total_cmp).unwrap_or_default();
        let mean = magnitudes.sum::<f64>() / f64::from(u32::try_from(found.len()).unwrap());
        let pairs = spread.map(f64::from).zip(self.values.iter().copied());
        let differences = pairs
            .chain([(largest, self.largest), (mean, self.mean)])
            .map(|(a, b)| (a - f64::from(b)).abs());
        // By the total order a NaN without its sign is the largest.
        match differences.max_by(f64::total_cmp).unwrap_or_default() {
            // Of a tensor of zeros, too.
            0.0 => 0.0,
            farthest => farthest / f64::from(self.largest),
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

/// `max |a - b| / max |b|`; NaN, which is within no tolerance, where one of them is NaN.
pub(crate) fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    if found == expected {
        return 0.0;
    }
    // By the total order a NaN without its sign is the largest; `f32::max` would drop it.
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let farthest = differences.max_by(f32::total_cmp).unwrap_or_default();
    let largest = expected.iter().map(|element| element.abs());
    farthest / largest.max_by(f32::total_cmp).unwrap_or_default()
}

#[test]
fn what_is_no_number_is_within_no_tolerance() {
    for nan in [f32::NAN, -f32::NAN] {
        assert!(distance(&[nan, 1.0], &[1.0, 1.0]).is_nan());
        assert!(distance(&[1.0, 1.0], &[nan, 1.0]).is_nan());
        let kept = Kept {
            largest: 1.0,
            mean: 1.0,
            values: vec![1.0, 1.0],
        };
        assert!(kept.distance(&[1.0, nan, 1.0]).is_nan(), "it is not kept itself");
    }
    assert!(distance(&[1.0, 1.0], &[1.0, 1.0]) <= TOLERANCE);
}

#[test]
fn a_tensor_of_which_few_values_are_kept_is_held_as_a_whole() {
    let kept = Kept {
        largest: 4.0,
        mean: 2.0,
        values: vec![1.0, -4.0],
    };
    let near = |found: &[f32]| kept.distance(found) <= f64::from(TOLERANCE);
    assert!(near(&[1.0, -1.0, -4.0]));
    assert!(!near(&[1.0, -1.001, -4.0]), "the mean is another");
    assert!(!near(&[1.0, -5.0, -4.0]), "the largest is another");
    assert!(!near(&[-1.0, 1.0, -4.0]), "a value that is kept is another");
}
