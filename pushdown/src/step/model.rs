//! `model`: frozen layers of a model, read from ONNX, cut between layers, run by ONNX Runtime.

mod card;
mod data_file;
mod files;
mod folder;
mod graph;
mod identity;
mod loaded;
mod onnx_model;
mod outline;
mod probe;
mod provider;
mod resolver;
mod session;
mod trim;
mod weights;

use std::{sync::Arc, time::Duration};

pub use card::Card;
pub use data_file::DataFile;
pub use files::{Files, read_file};
pub use folder::Folder;
pub use graph::LeftOut;
pub use identity::Identity;
pub use onnx_model::{CutPoint, Description, Model, Place, Port};
pub use outline::MAX_MODEL_BYTES;
pub use provider::Provider;
pub use resolver::{ModelResolver, NoModels};
pub use session::Runtime;
pub use trim::give_back;
pub use weights::Weights;

use super::{Operator, Scope};
use crate::{
    DType, Layout, Result, Tensor, TensorKind,
    pipeline::{Args, Param, Value},
};

/// `model`: the layers of a model from its input, or from a cut, to a cut or its output. The batch axis is added and
/// stripped here.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStep {
    model: Arc<Model>,
    from: Place,
    until: usize,
}

impl Operator for ModelStep {
    type Input = Tensor;
    type Output = Tensor;

    const NAME: &'static str = "model";
    const SUMMARY: &'static str = "frozen layers of a model";
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
            "the cut point that the input is a value of: the rest of a model that was cut",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let text: String = args.required("network")?;
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text.as_str(), None),
        };
        let model = args.model(name)?;
        let found = &model.description().digest;
        if let Some(digest) = digest.filter(|digest| *digest != found) {
            return Err(args.fault(format!(
                "the model `{name}` has the digest {found}, expected {digest}"
            )));
        }
        let cut = |name: &str| {
            let place = args.optional::<String>(name)?;
            let found = place.map(|text| model.cut(&text).map_err(|reason| args.fault(reason)));
            found.transpose()
        };
        let (from, until) = (cut("from")?, cut("until")?.unwrap_or_else(|| model.end()));
        if from.is_some_and(|from| from >= until) {
            return Err(args.fault("`from` does not lie before `until`"));
        }
        Ok(Self {
            from: from.map_or(Place::Input, Place::Cut),
            until,
            model,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let description = self.model.description();
        let name = format!("{}@{}", description.name, description.digest);
        let tensor = |place| Value::Text(self.model.port(place).0.to_owned());
        let mut arguments = vec![("network", Value::Text(name))];
        if self.until != self.model.end() {
            arguments.push(("until", tensor(Place::Cut(self.until))));
        }
        if self.from != Place::Input {
            arguments.push(("from", tensor(self.from)));
        }
        arguments
    }

    fn output(&self, input: &TensorKind) -> Result<TensorKind, String> {
        let name = &self.model.description().name;
        let (tensor, shape) = self.model.port(self.from);
        let extents = |shape: &[Option<usize>]| {
            let extents = shape
                .iter()
                .map(|extent| extent.map_or("?".to_owned(), |extent| extent.to_string()));
            extents.collect::<Vec<_>>().join("x")
        };
        let expected: Vec<_> = shape.iter().copied().map(Some).collect();
        let fits = input.shape.len() == shape.len()
            && input
                .shape
                .iter()
                .zip(shape)
                .all(|(found, expected)| found.is_none_or(|found| found == *expected));
        if input.dtype != DType::F32 || !fits {
            return Err(format!(
                "takes f32 of {} for `{tensor}` of the model `{name}`, found {} of {}",
                extents(&expected),
                input.dtype,
                extents(&input.shape)
            ));
        }
        let layout = self
            .model
            .description()
            .card
            .as_ref()
            .and_then(|card| card.layout);
        match layout {
            Some(layout) if self.from == Place::Input && input.layout != layout => Err(format!(
                "takes the layout {layout} for the model `{name}`, found {}; put `layout({layout})` before it",
                input.layout
            )),
            _ => Ok(TensorKind {
                dtype: DType::F32,
                layout: Layout::Flat,
                shape: self
                    .model
                    .port(Place::Cut(self.until))
                    .1
                    .iter()
                    .copied()
                    .map(Some)
                    .collect(),
                quantized: false,
            }),
        }
    }

    fn scratch_bytes(&self, _: &TensorKind) -> Option<u64> {
        Some(self.model.description().working_bytes)
    }

    fn apply(&self, input: Tensor, _: &Scope<'_>) -> Result<Tensor> {
        self.run(input)
    }
}

impl ModelStep {
    /// The model that the layers are of.
    pub const fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// From where to where the layers reach.
    pub const fn reach(&self) -> (Place, usize) {
        (self.from, self.until)
    }

    /// The same layers in several steps, cut where a split may be worth while: at tensors with fewer bytes than the input
    /// and than every cut before them. At most `most` cuts, the last ones.
    pub(crate) fn refined(&self, most: usize) -> Vec<Self> {
        let cuts = &self.model.description().cut_points;
        let start = match self.from {
            Place::Input => 0,
            Place::Cut(index) => index + 1,
        };
        let mut smallest =
            self.model.port(self.from).1.iter().product::<usize>() as u64 * DType::F32.size() as u64;
        let mut places: Vec<usize> = (start..self.until)
            .filter(|cut| {
                let smaller = cuts[*cut].bytes < smallest;
                smallest = smallest.min(cuts[*cut].bytes);
                smaller
            })
            .collect();
        places.drain(..places.len().saturating_sub(most));
        places.push(self.until);
        let mut from = self.from;
        let part = |until: usize| {
            let layers = Self {
                model: Arc::clone(&self.model),
                from,
                until,
            };
            from = Place::Cut(until);
            layers
        };
        places.into_iter().map(part).collect()
    }

    /// What the model's card has of mean and deviation, where these layers start at its input.
    pub(crate) fn normalization(&self) -> Option<(Vec<f32>, Vec<f32>)> {
        let card = self.model.description().card.as_ref()?;
        card.normalization().filter(|_| self.from == Place::Input)
    }

    /// Multiplications of these layers, for one sample.
    pub fn macs(&self) -> u64 {
        let cuts = &self.model.description().cut_points;
        let before = match self.from {
            Place::Input => 0,
            Place::Cut(index) => cuts[index].macs,
        };
        cuts[self.until].macs.saturating_sub(before)
    }

    /// These layers and those of `next`, where it goes on at their end.
    pub(crate) fn joined(&self, next: &Self) -> Option<Self> {
        (self.model == next.model && next.from == Place::Cut(self.until)).then(|| Self {
            model: Arc::clone(&self.model),
            from: self.from,
            until: next.until,
        })
    }

    /// CPU time to have the layers in memory; see [`Model::making_time`].
    pub(crate) fn making_time(&self) -> Option<Duration> {
        self.model.making_time(self.from, self.until)
    }

    /// Has the layers in memory.
    pub(crate) fn make_ready(&self) -> Result<()> {
        self.model.make_ready(self.from, self.until)
    }

    /// Runs the layers on one value.
    pub(crate) fn run(&self, input: Tensor) -> Result<Tensor> {
        let outputs = self.model.run(self.from, self.until, &[input])?;
        outputs
            .into_iter()
            .next()
            .ok_or_else(|| crate::Error::internal("a model gave no value"))
    }
}
