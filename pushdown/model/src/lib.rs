//! The `model` step: frozen layers of an ONNX model, run by ONNX Runtime. Models can be cut between layers.

mod card;
mod data_file;
mod description;
mod files;
mod folder;
mod graph;
mod identity;
mod layer_range;
mod loaded_model;
mod onnx_model;
mod outline;
mod probe;
mod provider;
mod session;
mod trim;
mod weight_source;

use std::{sync::Arc, time::Duration};

pub use card::ModelCard;
pub use data_file::DataFile;
pub use description::{CutPoint, ModelDescription, TensorSpec};
pub use files::{ModelFiles, read_file};
pub use folder::ModelFolder;
pub use graph::ExcludedTensor;
pub use layer_range::{Boundary, LayerRange};
pub use onnx_model::Model;
pub use outline::MAX_MODEL_BYTES;
pub use provider::Provider;
pub use pushdown_core::RuntimeIdentity;
pub use session::{Concurrency, Runtime};
pub use trim::trim_heap;
pub use weight_source::WeightSource;

use pushdown_core::step::{Operator, Scope};
use pushdown_core::{
    DType, Family, Layout, Result, Tensor, TensorKind,
    language::{Args, NamedModel, Normalization, Param, Value},
};

/// `model`: the layers of a model between its input, or a cut point, and a cut point or its output. The step adds the batch
/// axis before the layers and removes it after them.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStep {
    model: Arc<Model>,
    range: LayerRange,
}

impl Operator for ModelStep {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "model";
    const SUMMARY: &'static str = "frozen layers of a model";
    // The runtime has a version of its own.
    const FAMILIES: &'static [Family] = &[];
    const PARAMS: &'static [Param] = &[
        Param::positional(
            "network",
            "name or name@digest",
            "one of the models of the gateway",
        ),
        Param::named(
            "until",
            "tensor or cut:K = the output",
            "the last tensor to compute, one of the model's cut points",
        ),
        Param::named(
            "from",
            "tensor or cut:K = the input",
            "the cut point of the input value, to run the rest of a model that was cut",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let text: String = args.required("network")?;
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text.as_str(), None),
        };
        let model = Model::downcast(args.model(name)?).map_err(|reason| args.fault(reason))?;
        let found = &model.description().digest;
        if let Some(digest) = digest.filter(|digest| *digest != found) {
            return Err(args.fault(format!(
                "the model `{name}` has the digest {found}, expected {digest}"
            )));
        }
        let cut = |name: &str| {
            let text = args.optional::<String>(name)?;
            let index = text.map(|text| {
                model
                    .description()
                    .find_cut(&text)
                    .map_err(|reason| args.fault(reason))
            });
            index.transpose()
        };
        let (from, to) = (cut("from")?, cut("until")?.unwrap_or_else(|| model.end()));
        if from.is_some_and(|from| from >= to) {
            return Err(args.fault("`from` is not before `until`"));
        }
        let from = from.map_or(Boundary::Input, Boundary::Cut);
        Ok(Self {
            model,
            range: LayerRange { from, to },
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let LayerRange { from, to } = self.range;
        let description = self.model.description();
        let name = format!("{}@{}", description.name, description.digest);
        let tensor = |boundary| Value::Text(self.model.tensor(boundary).0.to_owned());
        let mut arguments = vec![("network", Value::Text(name))];
        if to != self.model.end() {
            arguments.push(("until", tensor(Boundary::Cut(to))));
        }
        if from != Boundary::Input {
            arguments.push(("from", tensor(from)));
        }
        arguments
    }

    fn output(&self, input: &TensorKind) -> Result<TensorKind, String> {
        let name = &self.model.description().name;
        let (tensor, shape) = self.model.tensor(self.range.from);
        let fits = input.shape.len() == shape.len()
            && input
                .shape
                .iter()
                .zip(shape)
                .all(|(found, expected)| found.is_none_or(|found| found == *expected));
        if input.dtype != DType::F32 || !fits {
            return Err(format!(
                "takes f32 of {} for `{tensor}` of the model `{name}`, found {} of {}",
                extents(&known(shape)),
                input.dtype,
                extents(&input.shape)
            ));
        }
        let card = self.model.description().card.as_ref();
        match card.and_then(|card| card.layout) {
            Some(layout) if self.range.from == Boundary::Input && input.layout != layout => Err(format!(
                "takes the layout {layout} for the model `{name}`, found {}; put `layout({layout})` before it",
                input.layout
            )),
            _ => Ok(TensorKind {
                dtype: DType::F32,
                layout: Layout::Flat,
                shape: known(self.model.tensor(Boundary::Cut(self.range.to)).1),
                quantized: false,
            }),
        }
    }

    fn scratch_bytes(&self, _: &TensorKind) -> Option<u64> {
        Some(self.model.description().working_bytes)
    }

    /// Cuts at tensors with fewer bytes than the input and than every earlier cut. Uses the last `max_cuts` of those.
    fn refined(&self, max_cuts: usize) -> Vec<Self> {
        let cuts = &self.model.description().cut_points;
        let start = match self.range.from {
            Boundary::Input => 0,
            Boundary::Cut(index) => index + 1,
        };
        let input_elements: usize = self.model.tensor(self.range.from).1.iter().product();
        let mut smallest = input_elements as u64 * DType::F32.size() as u64;
        let mut ends: Vec<usize> = (start..self.range.to)
            .filter(|cut| {
                let is_smaller = cuts[*cut].bytes < smallest;
                smallest = smallest.min(cuts[*cut].bytes);
                is_smaller
            })
            .collect();
        ends.drain(..ends.len().saturating_sub(max_cuts));
        ends.push(self.range.to);
        let mut from = self.range.from;
        let part = |to: usize| {
            let part = self.with_range(LayerRange { from, to });
            from = Boundary::Cut(to);
            part
        };
        ends.into_iter().map(part).collect()
    }

    /// These layers and those of `next` as one step, if `next` starts where these end.
    fn joined(&self, next: &Self) -> Option<Self> {
        let is_adjacent = self.model == next.model && next.range.from == Boundary::Cut(self.range.to);
        is_adjacent.then(|| {
            self.with_range(LayerRange {
                from: self.range.from,
                to: next.range.to,
            })
        })
    }

    /// Loads the layers.
    fn prepare(&self) -> Result<()> {
        self.model.load_layers(self.range.from, self.range.to)
    }

    fn model(&self) -> Option<Arc<dyn NamedModel>> {
        let model: Arc<dyn NamedModel> = Arc::<Model>::clone(&self.model);
        Some(model)
    }

    /// From the card of the model, if these layers start at its input.
    fn input_normalization(&self) -> Option<Normalization> {
        self.model
            .normalization()
            .filter(|_| self.range.from == Boundary::Input)
    }

    fn expected_prepare_time(&self) -> Option<Duration> {
        self.model.expected_load_time(self.range.from, self.range.to)
    }

    /// Multiply-accumulate operations of these layers, for one sample.
    fn macs(&self) -> u64 {
        let cuts = &self.model.description().cut_points;
        let before = match self.range.from {
            Boundary::Input => 0,
            Boundary::Cut(index) => cuts[index].macs,
        };
        cuts[self.range.to].macs.saturating_sub(before)
    }

    fn apply(&self, input: Tensor, _: &Scope<'_>) -> Result<Tensor> {
        self.run(input)
    }
}

impl ModelStep {
    /// The model of the layers.
    pub const fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The layers that the step runs.
    pub const fn range(&self) -> LayerRange {
        self.range
    }

    /// Runs the layers on one value.
    fn run(&self, input: Tensor) -> Result<Tensor> {
        let outputs = self.model.run(self.range.from, self.range.to, &[input])?;
        outputs
            .into_iter()
            .next()
            .ok_or_else(|| pushdown_core::Error::internal("a model returned no value"))
    }

    fn with_range(&self, range: LayerRange) -> Self {
        Self {
            model: Arc::clone(&self.model),
            range,
        }
    }
}

/// A shape of which every extent is known.
fn known(shape: &[usize]) -> Vec<Option<usize>> {
    shape.iter().copied().map(Some).collect()
}

/// A shape as text: `3x?x224`.
fn extents(shape: &[Option<usize>]) -> String {
    let extents = shape
        .iter()
        .map(|extent| extent.map_or("?".to_owned(), |extent| extent.to_string()));
    extents.collect::<Vec<_>>().join("x")
}
