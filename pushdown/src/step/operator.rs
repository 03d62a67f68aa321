//! What a step has to say of itself, and the glue between typed operators and untyped samples.

use std::fmt::Debug;

use bytes::Bytes;

use super::augment::Draws;
use crate::{
    BytesKind, Cancellation, Error, Image, ImageKind, Kind, Limits, Result, Sample, Table, TableKind, Tensor,
    TensorKind,
    pipeline::{Args, Param, Value},
};

/// A pure function on one sample's value. `apply` computes the same on every host and in every company.
pub trait Operator: Clone + PartialEq + Debug + Send + Sync {
    /// What the step takes.
    type Input: Stage;
    /// What the step gives.
    type Output: Stage;

    /// Name in a pipeline.
    const NAME: &'static str;
    /// One line of explanation.
    const SUMMARY: &'static str;
    /// Parameters, in the order of positional arguments.
    const PARAMS: &'static [Param];
    /// Whether the step is random.
    const IS_RANDOM: bool = false;

    /// Reads the step from its arguments.
    fn parse(args: &Args<'_>) -> Result<Self>;

    /// The arguments that `parse` would read back to this step, those with their default value left out.
    fn arguments(&self) -> Vec<(&'static str, Value)>;

    /// The kind of the output, or what is wrong with the input: "takes ..., found ...".
    fn output(&self, input: &<Self::Input as Stage>::Kind) -> Result<<Self::Output as Stage>::Kind, String>;

    /// Bytes needed beside input and output; `None` where they cannot be told.
    fn scratch_bytes(&self, _input: &<Self::Input as Stage>::Kind) -> Option<u64> {
        Some(0)
    }

    /// Whether this one is random.
    fn is_random(&self) -> bool {
        Self::IS_RANDOM
    }

    /// A random step's own seed.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// Computes the output. The size of the output has been held against the limits wherever `output` knows it.
    fn apply(&self, input: Self::Input, scope: &Scope<'_>) -> Result<Self::Output>;
}

/// What a step may look at beside its input.
#[derive(Debug)]
pub struct Scope<'a> {
    /// Limits on pixels and bytes.
    pub limits: &'a Limits,
    /// The sample's id; its suffix may tell what the object's bytes are.
    pub sample_id: &'a [u8],
    /// The random draws of this step for this sample.
    pub draws: Draws,
    /// Seed of the random steps inside of this one.
    pub seed: Option<u64>,
    /// Epoch, for them.
    pub epoch: Option<u32>,
    /// Ends the step early if nobody waits for its output.
    pub cancellation: Cancellation<'a>,
}

/// A type that values have at a stage.
pub trait Stage: Sized {
    /// What can be known of such a value beforehand.
    type Kind;
    /// One word for error texts.
    const NAME: &'static str;
    /// This stage's part of a kind.
    fn kind(kind: &Kind) -> Option<&Self::Kind>;
    /// As a kind.
    fn wrap_kind(kind: Self::Kind) -> Kind;
    /// This stage's value.
    fn unwrap(sample: Sample) -> Option<Self>;
    /// As a sample.
    fn wrap(self) -> Sample;
}

macro_rules! stages {
    ($($stage:ident: $kind:ident),+) => {$(
        impl Stage for $stage {
            type Kind = $kind;
            const NAME: &'static str = stringify!($stage);

            fn kind(kind: &Kind) -> Option<&$kind> {
                match kind { Kind::$stage(kind) => Some(kind), _ => None }
            }
            fn wrap_kind(kind: $kind) -> Kind {
                Kind::$stage(kind)
            }
            fn unwrap(sample: Sample) -> Option<Self> {
                match sample { Sample::$stage(value) => Some(value), _ => None }
            }
            fn wrap(self) -> Sample {
                Sample::$stage(self)
            }
        }
    )+};
}

stages!(Bytes: BytesKind, Image: ImageKind, Tensor: TensorKind, Table: TableKind);

/// The input of a step that takes an image or a tensor.
#[derive(Debug)]
pub enum Pixels {
    /// Height x width x 3, u8.
    Image(Image),
    /// Of the dtype that the step's `output` accepts.
    Tensor(Tensor),
}

impl Stage for Pixels {
    type Kind = Kind;
    const NAME: &'static str = "Image or Tensor";

    fn kind(kind: &Kind) -> Option<&Kind> {
        matches!(kind, Kind::Image(_) | Kind::Tensor(_)).then_some(kind)
    }
    fn wrap_kind(kind: Kind) -> Kind {
        kind
    }
    fn unwrap(sample: Sample) -> Option<Self> {
        match sample {
            Sample::Image(image) => Some(Self::Image(image)),
            Sample::Tensor(tensor) => Some(Self::Tensor(tensor)),
            _ => None,
        }
    }
    fn wrap(self) -> Sample {
        match self {
            Self::Image(image) => Sample::Image(image),
            Self::Tensor(tensor) => Sample::Tensor(tensor),
        }
    }
}

pub(super) fn output<O: Operator>(step: &O, input: &Kind) -> Result<Kind, String> {
    let Some(kind) = O::Input::kind(input) else {
        return Err(format!("takes {}, found {input}", O::Input::NAME));
    };
    step.output(kind).map(O::Output::wrap_kind)
}

pub(super) fn scratch_bytes<O: Operator>(step: &O, input: &Kind) -> Option<u64> {
    step.scratch_bytes(O::Input::kind(input)?)
}

pub(super) fn apply<O: Operator>(step: &O, sample: Sample, scope: &Scope<'_>) -> Result<Sample> {
    let input = O::Input::unwrap(sample).ok_or_else(|| {
        Error::wire(format!(
            "`{}` takes {}, found another kind of value",
            O::NAME,
            O::Input::NAME
        ))
    })?;
    step.apply(input, scope).map(Stage::wrap)
}
