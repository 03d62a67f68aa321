//! A model as pipelines know it: a name, a digest, shapes, and weights that come when they are needed.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{
    Card, DataFile, Files, LeftOut, Provider, Runtime, Weights,
    data_file::{check_list, is_digest},
    files::Digests,
    loaded::Loaded,
    outline::Outline,
    weights::turn,
};
use crate::{DType, Error, Result, Tensor, step::nearest};

/// How many near names an error tells.
const NEAREST: usize = 3;

/// What a model is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Name in pipelines.
    pub name: String,
    /// SHA-256 of the ONNX file, with those of the files beside it and of the card where there are any, in hex.
    pub digest: String,
    /// Size of the ONNX file and of the files beside it.
    pub bytes: u64,
    /// Files beside the ONNX file that have weights, by name. Each can be fetched by its own digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DataFile>,
    /// The one input.
    pub inputs: Vec<Port>,
    /// The output.
    pub outputs: Vec<Port>,
    /// Where the model can be cut, in the order of the layers; the last one is its output.
    pub cut_points: Vec<CutPoint>,
    /// Tensors that separate input and output and are no cuts, each with the reason.
    pub left_out: Vec<LeftOut>,
    /// Whether several samples run at once. Otherwise they run one by one.
    pub batched: bool,
    /// Bytes of the values that live at once while one sample runs, at most.
    pub working_bytes: u64,
    /// How to prepare an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
}

/// A tensor at an end of a model, f32.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Name of the tensor.
    pub tensor: String,
    /// Its shape, without the batch axis.
    pub shape: Vec<usize>,
}

/// A place at which a model can be cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutPoint {
    /// Name of the tensor.
    pub tensor: String,
    /// Its shape, without the batch axis.
    pub shape: Vec<usize>,
    /// Its size in bytes, as f32.
    pub bytes: u64,
    /// Weights up to here.
    pub parameters: u64,
    /// Multiplications with addition up to here, for one sample.
    pub macs: u64,
}

/// Where a value of a model stands: at its input, or at a cut point by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The input.
    Input,
    /// A cut point.
    Cut(usize),
}

/// A model. It compares by its digest.
#[derive(Debug)]
pub struct Model {
    description: Description,
    weights: Box<dyn Weights>,
    /// What a look at the weights shows: they have to be looked at once, however often they come.
    outline: OnceLock<Arc<Outline>>,
    /// Never held for long: whoever only asks whether weights are here does not wait for them.
    loaded: Mutex<Option<Arc<Loaded>>>,
    /// Held while weights come.
    loading: Mutex<()>,
}

impl Model {
    /// Looks at the weights: reads them, and runs the model on noise to see shapes and whether batches are safe.
    /// They are let go again.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) with what is wrong; [`TooLarge`](crate::ErrorKind::TooLarge)
    /// beyond [`MAX_MODEL_BYTES`](super::MAX_MODEL_BYTES); [`ModelRuntime`](crate::ErrorKind::ModelRuntime).
    pub fn look(name: &str, card: Option<Card>, weights: impl Weights + 'static) -> Result<Self> {
        let _turn = turn();
        let files = weights.fetch()?;
        let (outline, facts) = Outline::look(&weights.runtime()?, &files)?;
        let digests = Digests::of(&files);
        let description = Description {
            name: name.to_owned(),
            digest: digests.whole(card.as_ref())?,
            bytes: files.bytes(),
            files: digests.data_files(&files),
            inputs: vec![facts.input],
            outputs: facts.output.into_iter().collect(),
            cut_points: facts.cut_points,
            left_out: facts.left_out,
            batched: facts.batched,
            working_bytes: facts.working_bytes,
            card,
        };
        Ok(Self {
            outline: Arc::new(outline).into(),
            ..Self::described(description, weights)?
        })
    }

    /// A model of which the description is known, from a gateway.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a description that no model has.
    pub fn described(description: Description, weights: impl Weights + 'static) -> Result<Self> {
        if description.inputs.len() != 1 || description.cut_points.is_empty() {
            return Err(Error::model(format!(
                "the model `{}` has {} inputs and {} cut points, expected one input and its output",
                description.name,
                description.inputs.len(),
                description.cut_points.len()
            )));
        }
        // What comes from elsewhere becomes a file's name, and sizes: neither may be anything.
        if !is_digest(&description.digest) {
            return Err(Error::model(format!(
                "the model `{}` has a digest that is none: expected 64 hex digits",
                description.name
            )));
        }
        check_list(&description.files, description.bytes)
            .map_err(|fault| Error::model(format!("the model `{}` has {fault}", description.name)))?;
        let shapes = description.inputs.iter().map(|port| &port.shape);
        let mut shapes = shapes.chain(description.cut_points.iter().map(|cut| &cut.shape));
        if let Some(shape) = shapes.find(|shape| !has_a_size(shape)) {
            return Err(Error::model(format!(
                "the model `{}` has a tensor of the shape {shape:?}, more than any value may have",
                description.name
            )));
        }
        Ok(Self {
            description,
            weights: Box::new(weights),
            outline: OnceLock::new(),
            loaded: Mutex::default(),
            loading: Mutex::default(),
        })
    }

    /// What the model is.
    pub const fn description(&self) -> &Description {
        &self.description
    }

    /// The model's files, unless they have changed.
    fn files(&self) -> Result<Files> {
        let files = self.weights.fetch()?;
        self.description.check(&files)?;
        Ok(files)
    }

    /// An error that says whose it is: a pipeline may run several models, a gateway many.
    fn named(&self, error: &Error) -> Error {
        let text = format!("the model `{}`: {error}", self.description.name);
        Error::new(error.kind(), text)
    }

    /// Gets all ready but the weights of the layers that will run, which is not known here: fetches the files and looks at
    /// them, if nobody has.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn load(&self) -> Result<()> {
        self.loaded().map(drop).map_err(|error| self.named(&error))
    }

    /// Whether weights are in memory.
    pub fn is_loaded(&self) -> bool {
        self.held_bytes() > 0
    }

    /// Whether weights are in memory, or can be had without asking anybody.
    pub fn is_near(&self) -> bool {
        self.is_loaded() || self.weights.is_near()
    }

    /// Bytes of memory that its weights take, in all the copies that run beside one another; 0 where they are not in
    /// memory, or on their way there.
    pub fn held_bytes(&self) -> u64 {
        let loaded = self.loaded.lock().clone();
        loaded.map_or(0, |loaded| loaded.held_bytes() as u64)
    }

    /// Lets the weights go; they come again with the next run.
    pub fn release(&self) {
        self.loaded.lock().take();
    }

    /// The last cut point: the output.
    pub fn end(&self) -> usize {
        self.description.cut_points.len() - 1
    }

    /// Name and shape of the tensor at a place.
    pub fn port(&self, place: Place) -> (&str, &[usize]) {
        match place {
            Place::Input => {
                let input = &self.description.inputs[0];
                (&input.tensor, &input.shape)
            }
            Place::Cut(index) => {
                let cut = &self.description.cut_points[index];
                (&cut.tensor, &cut.shape)
            }
        }
    }

    /// The cut point that `text` names: a tensor, or `cut:K` counted from 0.
    ///
    /// # Errors
    /// With the nearest names, and the reason where it separates the model and is still no cut.
    pub(crate) fn cut(&self, text: &str) -> Result<usize, String> {
        let cuts = &self.description.cut_points;
        let digits = |number: &&str| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        let number = text.strip_prefix("cut:").filter(digits);
        let place = match number {
            Some(number) => number.parse::<usize>().ok().filter(|index| *index < cuts.len()),
            None => cuts.iter().position(|cut| cut.tensor == text),
        };
        place.ok_or_else(|| {
            let mut left_out = self.description.left_out.iter();
            let reason = left_out
                .find(|left| left.tensor == text)
                .map(|left| format!(" ({})", left.reason))
                .unwrap_or_default();
            let names = cuts.iter().map(|cut| cut.tensor.as_str());
            // Too large a number: the last ones.
            let near: Vec<String> = if number.is_some() {
                let last = names.enumerate().rev().take(NEAREST);
                last.map(|(index, name)| format!("cut:{index} ({name})"))
                    .collect()
            } else {
                let near = nearest(names, text).into_iter().take(NEAREST);
                near.map(str::to_owned).collect()
            };
            format!(
                "`{text}` is no cut of the model `{}`{reason}; the nearest of its {} are {}",
                self.description.name,
                cuts.len(),
                near.join(", ")
            )
        })
    }

    /// What runs it.
    ///
    /// # Errors
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why nothing does.
    pub fn runtime(&self) -> Result<Runtime> {
        self.weights.runtime()
    }

    /// What computes it: the processor where nothing does.
    pub fn provider(&self) -> Provider {
        self.runtime()
            .map_or_else(|_none| Provider::default(), |runtime| runtime.provider())
    }

    /// How many runs of the layers between two places go on beside one another, and how many threads each takes.
    pub fn concurrency(&self, from: Place, to: usize) -> (usize, usize) {
        let weights = weights_between(&self.description.cut_points, from, to);
        self.runtime()
            .map_or((1, 1), |runtime| runtime.concurrency(weights))
    }

    /// Has the layers between two places in memory. [`run`](Self::run) does so by itself, but whoever times it takes what comes
    /// once, seconds for large weights, for what a sample costs.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn make_ready(&self, from: Place, to: usize) -> Result<()> {
        let ready = |loaded: Arc<Loaded>| loaded.make_ready((from, to), || self.files());
        self.loaded().and_then(ready).map_err(|error| self.named(&error))
    }

    /// CPU time that it takes here to have the layers between two places in memory, by those that were made last; none where
    /// none were.
    pub fn making_time(&self, from: Place, to: usize) -> Option<Duration> {
        let loaded = self.loaded.lock().clone();
        loaded?.making_time(from, to)
    }

    /// Runs the layers between two places on values of the first, one per sample.
    ///
    /// A batch gives what its samples give alone, to within `1e-5` of the largest element.
    ///
    /// # Errors
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) for a value of another type or shape;
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) when the weights cannot be had, or ONNX Runtime fails.
    pub fn run(&self, from: Place, to: usize, batch: &[Tensor]) -> Result<Vec<Tensor>> {
        let run = |loaded: Arc<Loaded>| loaded.run((from, to), batch, || self.files());
        self.loaded().and_then(run).map_err(|error| self.named(&error))
    }

    /// The model, ready for parts of it to be made. Others wait while it is looked at.
    fn loaded(&self) -> Result<Arc<Loaded>> {
        let here = || self.loaded.lock().clone();
        if let Some(loaded) = here() {
            return Ok(loaded);
        }
        let _loading = self.loading.lock();
        if let Some(loaded) = here() {
            return Ok(loaded);
        }
        let outline = if let Some(outline) = self.outline.get() {
            Arc::clone(outline)
        } else {
            if !self.weights.is_near() {
                // That takes as long as a link makes it: no other model waits for it.
                drop(self.weights.fetch()?);
            }
            let _turn = turn();
            let files = self.files()?;
            let (outline, _) = Outline::look(&self.weights.runtime()?, &files)?;
            Arc::clone(self.outline.get_or_init(|| Arc::new(outline)))
        };
        let loaded = Loaded::new(outline, self.weights.runtime()?);
        Ok(Arc::clone(self.loaded.lock().insert(Arc::new(loaded))))
    }
}

impl Description {
    /// Holds the files of a model against the digests.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) when they are others.
    pub fn check(&self, files: &Files) -> Result<()> {
        let digests = Digests::of(files);
        digests.check(&self.files)?;
        let found = digests.whole(self.card.as_ref())?;
        if found == self.digest {
            return Ok(());
        }
        Err(Error::model(format!(
            "the weights have the digest {found}, expected {}: have they been replaced?",
            self.digest
        )))
    }
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.description.digest == other.description.digest
    }
}

/// Bytes of the weights between two places, about: what each copy of these layers takes.
pub(super) fn weights_between(cuts: &[CutPoint], from: Place, to: usize) -> u64 {
    let up_to = |cut: usize| cuts.get(cut).map_or(0, |cut| cut.parameters);
    let before = match from {
        Place::Input => 0,
        Place::Cut(cut) => up_to(cut),
    };
    let weights = up_to(to).saturating_sub(before);
    weights.saturating_mul(DType::F32.size() as u64)
}

/// Whether the bytes of a tensor of f32 can be counted.
fn has_a_size(shape: &[usize]) -> bool {
    let bytes = shape
        .iter()
        .try_fold(DType::F32.size(), |bytes, extent| bytes.checked_mul(*extent));
    bytes.is_some()
}

#[cfg(test)]
mod tests;
