//! Steps: their common interface, and the list of all steps.
//!
//! A new step is one file that implements [`Operator`] and one line in the list below.

use std::{fmt, ops::Range, sync::Arc, time::Duration};

pub use pushdown_core::step::{
    CachedCell, CellComputation, CellHost, CellMemory, CellValue, CellValues, InnerPipeline, InnerSteps,
    OpenTable, Operator, Pixels, RowProgress, RowSelection, RowTransform, RowwiseStep, Scope, StageValue,
    TOO_MUCH_MEMORY, TableReader, nearest,
};
pub use pushdown_image::{augment, image, tensor};
#[cfg(feature = "models")]
pub use pushdown_model as model;
#[cfg(feature = "tables")]
pub use pushdown_table as table;

use pushdown_core::{
    language::{Args, Call, NamedModel, Normalization, Param, Resolver, Value, excerpt},
    step::{distance, operator},
};

use crate::{Error, Family, Kind, Pipeline, Result, Sample};

/// Generates the [`Step`] enum and its dispatch from a list of operators.
macro_rules! steps {
    ($($(#[$feature:meta])? $name:ident: $operator:path),+ $(,)?) => {
        /// A step of a pipeline.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Step {
            $($(#[$feature])? #[doc = concat!("See [`", stringify!($operator), "`].")] $name($operator)),+
        }

        /// All steps, in the order of the documentation.
        pub const ALL: &[StepInfo] = &[$($(#[$feature])? StepInfo::new::<$operator>()),+];

        impl Step {
            /// Parses a step from its name and arguments, with models from `models`.
            pub(crate) fn parse(call: &Call, models: &dyn Resolver) -> Result<Self> {
                match call.name.as_str() {
                    $($(#[$feature])? <$operator>::NAME => {
                        let args = Args::bind(call, <$operator>::NAME, <$operator>::PARAMS, models, Pipeline::parse_inner)?;
                        <$operator>::parse(&args).map(Self::$name)
                    })+
                    unknown => Err(unknown_step(unknown, call.position)),
                }
            }

            /// Name in a pipeline.
            pub const fn name(&self) -> &'static str {
                match self { $($(#[$feature])? Self::$name(_) => <$operator>::NAME),+ }
            }

            /// The arguments by name, without those that have their default value: the canonical form.
            pub fn arguments(&self) -> Vec<(&'static str, Value)> {
                match self { $($(#[$feature])? Self::$name(step) => step.arguments()),+ }
            }

            /// The families that the step names itself.
            pub(crate) const fn own_families(&self) -> &'static [Family] {
                match self { $($(#[$feature])? Self::$name(_) => <$operator>::FAMILIES),+ }
            }

            /// Whether the step is random.
            pub fn is_random(&self) -> bool {
                match self { $($(#[$feature])? Self::$name(step) => step.is_random()),+ }
            }

            /// The seed argument of a random step, if any.
            pub fn seed(&self) -> Option<u64> {
                match self { $($(#[$feature])? Self::$name(step) => step.seed()),+ }
            }

            /// The steps of a pipeline that the step runs over each of many values, if there is one.
            pub fn inner_steps(&self) -> Option<InnerSteps<'_>> {
                match self { $($(#[$feature])? Self::$name(step) => step.inner_steps()),+ }
            }

            /// This step as two, cut at a stage of its inner pipeline. `None` if it cannot be cut there.
            pub(crate) fn cut(&self, stage: usize) -> Option<(Self, Self)> {
                match self {
                    $($(#[$feature])? Self::$name(step) => {
                        let (first, second) = step.cut(stage)?;
                        Some((Self::$name(first), Self::$name(second)))
                    })+
                }
            }

            /// The step as one that reads a table from an object.
            pub fn table_reader(&self) -> Option<&dyn TableReader> {
                match self { $($(#[$feature])? Self::$name(step) => step.table_reader()),+ }
            }

            /// The step as one that processes the rows of a table in order.
            pub fn rowwise(&self) -> Option<&dyn RowwiseStep> {
                match self { $($(#[$feature])? Self::$name(step) => step.rowwise()),+ }
            }

            /// The same step over a range of the rows of an object. `None` if it does not read rows by number.
            pub(crate) fn with_rows(&self, rows: Range<u64>) -> Option<Self> {
                match self { $($(#[$feature])? Self::$name(step) => step.with_rows(rows).map(Self::$name)),+ }
            }

            /// The step that returns only the numbers of the selected rows. `None` if it does not read rows by number.
            pub(crate) fn row_numbers(&self, column_name: &str) -> Option<Self> {
                match self { $($(#[$feature])? Self::$name(step) => step.row_numbers(column_name).map(Self::$name)),+ }
            }

            /// The same step as up to `max_cuts + 1` steps, cut where a split may pay off.
            pub(crate) fn refined(&self, max_cuts: usize) -> Vec<Self> {
                match self { $($(#[$feature])? Self::$name(step) => step.refined(max_cuts).into_iter().map(Self::$name).collect()),+ }
            }

            /// This step and `next` as one step with bit-identical results, if there is one.
            pub(crate) fn joined(&self, next: &Self) -> Option<Self> {
                match (self, next) {
                    $($(#[$feature])? (Self::$name(step), Self::$name(next)) => step.joined(next).map(Self::$name),)+
                    _ => None,
                }
            }

            /// Loads what the step needs to run.
            pub(crate) fn prepare(&self) -> Result<()> {
                match self { $($(#[$feature])? Self::$name(step) => step.prepare()),+ }
            }

            /// The model that the step itself runs, if there is one.
            pub(crate) fn own_model(&self) -> Option<Arc<dyn NamedModel>> {
                match self { $($(#[$feature])? Self::$name(step) => Operator::model(step)),+ }
            }

            /// The normalization that the input of the step has to have, if there is one.
            pub(crate) fn input_normalization(&self) -> Option<Normalization> {
                match self { $($(#[$feature])? Self::$name(step) => step.input_normalization()),+ }
            }

            /// Expected CPU time of [`prepare`](Self::prepare) for a step with a model; `None` if it is not known.
            pub(crate) fn expected_prepare_time(&self) -> Option<Duration> {
                match self { $($(#[$feature])? Self::$name(step) => step.expected_prepare_time()),+ }
            }

            /// Multiply-accumulate operations for one sample; 0 for steps other than `model`.
            pub fn macs(&self) -> u64 {
                match self { $($(#[$feature])? Self::$name(step) => step.macs()),+ }
            }

            /// The kind of the output for a kind of input, or a message with the expected input.
            pub(crate) fn output(&self, input: &Kind) -> Result<Kind, String> {
                match self { $($(#[$feature])? Self::$name(step) => operator::output(step, input)),+ }
            }

            /// Bytes of scratch memory that the step needs in addition to input and output; `None` if unknown.
            pub(crate) fn scratch_bytes(&self, input: &Kind) -> Option<u64> {
                match self { $($(#[$feature])? Self::$name(step) => operator::scratch_bytes(step, input)),+ }
            }

            /// Runs the step on one sample.
            pub(crate) fn apply(&self, sample: Sample, scope: &Scope<'_>) -> Result<Sample> {
                match self { $($(#[$feature])? Self::$name(step) => operator::apply(step, sample, scope)),+ }
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
    #[cfg(feature = "models")]
    Model: model::ModelStep,
    #[cfg(feature = "tables")]
    Select: table::Select,
    #[cfg(feature = "tables")]
    Sql: table::Sql,
    #[cfg(feature = "tables")]
    Sample: table::SampleRows,
    #[cfg(feature = "tables")]
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

/// The feature that the step `name` needs, if this build lacks it.
fn missing_feature(name: &str) -> Option<&'static str> {
    match name {
        "model" if cfg!(not(feature = "models")) => Some("models"),
        "select" | "sql" | "sample" | "each" if cfg!(not(feature = "tables")) => Some("tables"),
        _ => None,
    }
}

fn unknown_step(found: &str, position: usize) -> Error {
    if let Some(feature) = missing_feature(found) {
        return Error::pipeline(
            position,
            format!(
                "found the step `{found}`, which this program lacks: it was built without the feature `{feature}`"
            ),
        );
    }
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
