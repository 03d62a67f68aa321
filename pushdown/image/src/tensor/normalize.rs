//! `normalize`: subtracts a mean and divides by a standard deviation.

use super::to_float::{to_planes, unit_float};
use pushdown_core::{
    DType, Error, Family, Image, Layout, Result, Tensor, TensorKind,
    language::{Args, Normalization, Param, Value},
    step::{Operator, Scope},
};

/// `normalize`: `(x - mean) / std`, rounded after each operation, as torchvision's `Normalize`.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalize {
    /// One value for all channels, or one per channel.
    mean: Vec<f32>,
    /// The same number of values as `mean`.
    std: Vec<f32>,
}

/// Mean of ImageNet's training set, as torchvision's weights use it.
const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
/// Standard deviation of ImageNet's training set, as torchvision's weights use it.
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

impl Operator for Normalize {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "normalize";
    const SUMMARY: &'static str = "(x - mean) / std";
    const FAMILIES: &'static [Family] = &[Family::Tensor];
    const PARAMS: &'static [Param] = &[
        Param::positional("preset", "imagenet", "mean and std of a known data set"),
        Param::named("model", "name", "mean and std that a model was trained with"),
        Param::named(
            "mean",
            "number or list",
            "what to subtract, for all channels or for each",
        ),
        Param::named(
            "std",
            "number or list",
            "what to divide by, for all channels or for each",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let preset = args.optional::<String>("preset")?;
        let mean = args.optional::<Vec<f32>>("mean")?;
        let std = args.optional::<Vec<f32>>("std")?;
        let preset = match args.optional::<String>("model")? {
            None => preset,
            Some(name) if preset.is_none() && mean.is_none() && std.is_none() => {
                return Self::from_model(args, &name);
            }
            Some(_) => return Err(args.fault("`normalize` takes no other argument with `model`")),
        };
        let (mean, std) = match (preset.as_deref(), mean, std) {
            (Some("imagenet"), None, None) => (IMAGENET_MEAN.to_vec(), IMAGENET_STD.to_vec()),
            (Some("imagenet"), ..) => {
                return Err(args.fault("`normalize` takes either `imagenet` or `mean` and `std`, found both"));
            }
            (Some(unknown), ..) => {
                return Err(args.fault(format!(
                    "unknown preset `{unknown}` of `normalize`, expected imagenet"
                )));
            }
            (None, Some(mean), Some(std)) => (mean, std),
            (None, ..) => return Err(args.fault("`normalize` needs `imagenet`, or both `mean` and `std`")),
        };
        let (mean, std) = match (mean.len(), std.len()) {
            (0, _) | (_, 0) => return Err(args.fault("`mean` and `std` need at least one number")),
            (means, stds) if means == stds => (mean, std),
            (1, stds) => (vec![mean[0]; stds], std),
            (means, 1) => (mean, vec![std[0]; means]),
            (means, stds) => {
                return Err(args.fault(format!(
                    "`mean` has {means} numbers and `std` has {stds}, expected the same number"
                )));
            }
        };
        if std.contains(&0.0) {
            return Err(args.fault("`std` contains 0, expected numbers other than 0"));
        }
        Ok(Self { mean, std })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        if self.mean == IMAGENET_MEAN && self.std == IMAGENET_STD {
            return vec![("preset", Value::Text("imagenet".to_owned()))];
        }
        let value = |numbers: &[f32]| match numbers {
            [number] => Value::from(*number),
            numbers => Value::List(numbers.iter().copied().map(Value::from).collect()),
        };
        vec![("mean", value(&self.mean)), ("std", value(&self.std))]
    }

    fn output(&self, input: &TensorKind) -> Result<TensorKind, String> {
        if input.dtype != DType::F32 {
            return Err(format!(
                "takes f32, found {}; put `to_float` or `cast(f32)` before it",
                input.dtype
            ));
        }
        let channels = channels(input.layout, &input.shape);
        match (self.mean.len(), channels) {
            (1, _) | (_, Some(None)) => Ok(input.clone()),
            (count, Some(Some(channels))) if count == channels => Ok(input.clone()),
            (count, Some(Some(1))) => Err(format!(
                "has {count} means, found a tensor of 1 channel, expected 1"
            )),
            (count, Some(Some(channels))) => Err(format!(
                "has {count} means, found a tensor of {channels} channels, expected 1 or {channels}"
            )),
            (count, None) => Err(format!(
                "has {count} means, found a tensor without channels, expected 1"
            )),
        }
    }

    fn apply(&self, input: Tensor, _: &Scope<'_>) -> Result<Tensor> {
        let (layout, shape) = (input.layout(), input.shape().to_vec());
        let mut values: Vec<f32> = input.into_values();
        match (self.mean.len(), layout) {
            (1, _) => values
                .iter_mut()
                .for_each(|value| *value = self.normalize_value(*value, 0)),
            (channels, Layout::Hwc) => {
                for pixel in values.chunks_exact_mut(channels) {
                    pixel
                        .iter_mut()
                        .enumerate()
                        .for_each(|(channel, value)| *value = self.normalize_value(*value, channel));
                }
            }
            (channels, _) => {
                let area = (values.len() / channels).max(1);
                for (channel, plane) in values.chunks_exact_mut(area).enumerate() {
                    for value in plane {
                        *value = self.normalize_value(*value, channel);
                    }
                }
            }
        }
        Ok(Tensor::from_values(layout, shape, values))
    }
}

impl Normalize {
    /// Whether mean and standard deviation equal those of the step within 1e-4.
    pub fn is_close_to(&self, required: &Normalization) -> bool {
        let are_close = |own: &[f32], other: &[f32]| {
            let channels = own.len().max(other.len());
            let value = |values: &[f32], channel: usize| values[channel.min(values.len() - 1)];
            let has_channels = |values: &[f32]| values.len() == 1 || values.len() == channels;
            let difference = |channel: usize| (value(own, channel) - value(other, channel)).abs();
            has_channels(own)
                && has_channels(other)
                && (0..channels).all(|channel| difference(channel) <= 1e-4)
        };
        are_close(&self.mean, &required.mean) && are_close(&self.std, &required.std)
    }

    /// The mean and the standard deviation on the card of a model.
    fn from_model(args: &Args<'_>, name: &str) -> Result<Self> {
        let Normalization { mean, std } = args.model(name)?.normalization().ok_or_else(|| {
            args.fault(format!(
                "the model `{name}` has no mean and std in its JSON file: pass `mean` and `std`"
            ))
        })?;
        Ok(Self { mean, std })
    }

    fn normalize_value(&self, value: f32, channel: usize) -> f32 {
        (value - self.mean[channel]) / self.std[channel]
    }
}

/// The size of the channel axis. `None` if there is no such axis.
fn channels<T: Copy>(layout: Layout, shape: &[T]) -> Option<T> {
    match layout {
        Layout::Chw => shape.first().copied(),
        Layout::Hwc => shape.last().copied(),
        Layout::Flat => None,
    }
}

/// `to_float` and `normalize` on pixels, as one lookup per value.
pub fn normalize_pixels(image: &Image, normalize: &Normalize) -> Result<Tensor> {
    let table =
        |channel: usize| std::array::from_fn(|value| normalize.normalize_value(unit_float(value), channel));
    match normalize.mean.len() {
        1 => Ok(to_planes(image, [&table(0); 3])),
        3 => Ok(to_planes(image, [&table(0), &table(1), &table(2)])),
        count => Err(Error::internal(format!(
            "unexpected number of means: expected 1 or 3, found {count}"
        ))),
    }
}
