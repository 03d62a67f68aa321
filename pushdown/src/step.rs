//! Steps: their common interface, and the list of all steps.
//!
//! A new step is one file that implements [`Operator`] and one line in the list below.

pub mod augment;
pub mod image;
pub mod model;
mod nearest;
mod operator;
pub mod table;
mod table_step;
pub mod tensor;

use std::{fmt, ops::Range, sync::Arc};

pub(crate) use nearest::distance;
pub use nearest::nearest;
pub use operator::{Operator, Pixels, Scope, StageValue};
pub use table_step::{OpenTable, RowSelection, RowTransform, RowwiseStep, TableReader};

use model::Model;

use crate::{
    Error, Kind, Result, Sample,
    pipeline::{Args, Call, Param, Pipeline, Resolver, Value, excerpt},
};

/// Generates the [`Step`] enum and its dispatch from a list of operators.
macro_rules! steps {
    ($($name:ident: $operator:path),+ $(,)?) => {
        /// A step of a pipeline.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Step {
            $(#[doc = concat!("See [`", stringify!($operator), "`].")] $name($operator)),+
        }

        /// All steps, in the order of the documentation.
        pub const ALL: &[StepInfo] = &[$(StepInfo::new::<$operator>()),+];

        impl Step {
            /// Parses a step from its name and arguments, with models from `models`.
            pub(crate) fn parse(call: &Call, models: &dyn Resolver) -> Result<Self> {
                match call.name.as_str() {
                    $(<$operator>::NAME => {
                        let args = Args::bind(call, <$operator>::NAME, <$operator>::PARAMS, models)?;
                        <$operator>::parse(&args).map(Self::$name)
                    })+
                    unknown => Err(unknown_step(unknown, call.position)),
                }
            }

            /// Name in a pipeline.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => <$operator>::NAME),+ }
            }

            /// The arguments by name, without those that have their default value: the canonical form.
            pub fn arguments(&self) -> Vec<(&'static str, Value)> {
                match self { $(Self::$name(step) => step.arguments()),+ }
            }

            /// Whether the step is random.
            pub fn is_random(&self) -> bool {
                match self { $(Self::$name(step) => step.is_random()),+ }
            }

            /// The seed argument of a random step, if any.
            pub fn seed(&self) -> Option<u64> {
                match self { $(Self::$name(step) => step.seed()),+ }
            }

            /// The pipeline that the step runs over each of many values, if there is one.
            pub fn inner_pipeline(&self) -> Option<&Pipeline> {
                match self { $(Self::$name(step) => step.inner_pipeline()),+ }
            }

            /// The step as one that reads a table from an object.
            pub fn table_reader(&self) -> Option<&dyn TableReader> {
                match self { $(Self::$name(step) => step.table_reader()),+ }
            }

            /// The step as one that processes the rows of a table in order.
            pub fn rowwise(&self) -> Option<&dyn RowwiseStep> {
                match self { $(Self::$name(step) => step.rowwise()),+ }
            }

            /// The same step over a range of the rows of an object. `None` if it does not read rows by number.
            pub(crate) fn with_rows(&self, rows: Range<u64>) -> Option<Self> {
                match self { $(Self::$name(step) => step.with_rows(rows).map(Self::$name)),+ }
            }

            /// The step that returns only the numbers of the selected rows. `None` if it does not read rows by number.
            pub(crate) fn row_numbers(&self, column_name: &str) -> Option<Self> {
                match self { $(Self::$name(step) => step.row_numbers(column_name).map(Self::$name)),+ }
            }

            /// The same step as up to `max_cuts + 1` steps, cut where a split may pay off.
            pub(crate) fn refined(&self, max_cuts: usize) -> Vec<Self> {
                match self { $(Self::$name(step) => step.refined(max_cuts).into_iter().map(Self::$name).collect()),+ }
            }

            /// The kind of the output for a kind of input, or a message with the expected input.
            pub(crate) fn output(&self, input: &Kind) -> Result<Kind, String> {
                match self { $(Self::$name(step) => operator::output(step, input)),+ }
            }

            /// Bytes of scratch memory that the step needs in addition to input and output; `None` if unknown.
            pub(crate) fn scratch_bytes(&self, input: &Kind) -> Option<u64> {
                match self { $(Self::$name(step) => operator::scratch_bytes(step, input)),+ }
            }

            /// Runs the step on one sample.
            pub(crate) fn apply(&self, sample: Sample, scope: &Scope<'_>) -> Result<Sample> {
                match self { $(Self::$name(step) => operator::apply(step, sample, scope)),+ }
            }
        }
    };
}

steps! {
    Decode: image::Decode,
    Resize: image::Resize,
    Crop: image::Crop,
    CenterCrop: image::CenterCrop,
    Encode: image::Encode,
    ToFloat: tensor::ToFloat,
    ToTensor: tensor::ToTensor,
    Grayscale: tensor::Grayscale,
    Normalize: tensor::Normalize,
    Layout: tensor::SetLayout,
    Cast: tensor::Cast,
    Quantize: tensor::Quantize,
    Dequantize: tensor::Dequantize,
    RandomResizedCrop: augment::RandomResizedCrop,
    RandomCrop: augment::RandomCrop,
    FlipH: augment::FlipH,
    ColorJitter: augment::ColorJitter,
    Model: model::ModelStep,
    Select: table::Select,
    Sql: table::Sql,
    Sample: table::SampleRows,
    Each: table::Each,
}

/// The documentation of a step.
#[derive(Debug, Clone, Copy)]
pub struct StepInfo {
    /// Name in a pipeline.
    pub name: &'static str,
    /// One line of explanation.
    pub summary: &'static str,
    /// Kind of the input.
    pub input: &'static str,
    /// Kind of the output.
    pub output: &'static str,
    /// Parameters, in the order of positional arguments.
    pub params: &'static [Param],
    /// Whether the step is random.
    pub is_random: bool,
}

impl StepInfo {
    const fn new<O: Operator>() -> Self {
        Self {
            name: O::NAME,
            summary: O::SUMMARY,
            input: <O::Input as StageValue>::NAME,
            output: <O::Output as StageValue>::NAME,
            params: O::PARAMS,
            is_random: O::IS_RANDOM,
        }
    }
}

impl Step {
    /// The models that the step runs, including those of an inner pipeline.
    pub fn models(&self) -> Box<dyn Iterator<Item = &Arc<Model>> + '_> {
        let own = match self {
            Self::Model(model) => Some(model.model()),
            _ => None,
        };
        let inner = self.inner_pipeline().into_iter().flat_map(Pipeline::steps);
        Box::new(own.into_iter().chain(inner.flat_map(Self::models)))
    }
}

/// The canonical text of the step.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments = self.arguments();
        f.write_str(self.name())?;
        for (index, (name, value)) in arguments.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { "(" } else { ", " })?;
        }
        f.write_str(if arguments.is_empty() { "" } else { ")" })
    }
}

fn unknown_step(found: &str, position: usize) -> Error {
    let names = ALL.iter().map(|info| info.name);
    let nearest = names
        .clone()
        .min_by_key(|name| distance(name, found))
        .filter(|name| distance(name, found) <= 2);
    let hint = nearest
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default();
    let names = names.collect::<Vec<_>>().join(", ");
    let found = excerpt(found, 40);
    Error::pipeline(
        position,
        format!("found the unknown step `{found}`, expected one of {names}{hint}"),
    )
}
