//! The interface of steps, and the conversion between typed operators and untyped samples.

use std::{fmt::Debug, ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{CellHost, Draws, InnerSteps, RowwiseStep, TableReader};
use crate::{
    BytesKind, Cancellation, Error, Family, Image, ImageKind, Kind, Limits, Result, Sample, Table, TableKind,
    Tensor, TensorKind,
    language::{Args, NamedModel, Normalization, Param, Value},
};

/// A pure function on the value of one sample. `apply` returns the same value on every host and in every batch.
pub trait Operator: Clone + PartialEq + Debug + Send + Sync {
    /// Type of the input.
    type Input: StageValue;
    /// Type of the output.
    type Output: StageValue;

    /// Name in a pipeline.
    const NAME: &'static str;
    /// One line of explanation.
    const SUMMARY: &'static str;
    /// The families whose versions the output depends on, without those of an inner pipeline. A change of the output raises the
    /// version of one of them. Empty if only the model runtime matters.
    const FAMILIES: &'static [Family];
    /// Parameters, in the order of positional arguments.
    const PARAMS: &'static [Param];
    /// Whether the step is random.
    const IS_RANDOM: bool = false;

    /// Parses the step from its arguments.
    fn parse(args: &Args<'_>) -> Result<Self>;

    /// The arguments that parse as this step, without those that have their default value.
    fn arguments(&self) -> Vec<(&'static str, Value)>;

    /// The kind of the output, or a message about the input: "takes ..., found ...".
    fn output(
        &self,
        input: &<Self::Input as StageValue>::Kind,
    ) -> Result<<Self::Output as StageValue>::Kind, String>;

    /// Scratch memory in bytes, in addition to input and output; `None` if unknown.
    fn scratch_bytes(&self, _input: &<Self::Input as StageValue>::Kind) -> Option<u64> {
        Some(0)
    }

    /// Whether this step is random.
    fn is_random(&self) -> bool {
        Self::IS_RANDOM
    }

    /// The seed argument of a random step, if any.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// The same step over a range of the rows of an object. `None` if the step does not read rows by number.
    fn with_rows(&self, _rows: Range<u64>) -> Option<Self> {
        None
    }

    /// A step that returns only the numbers of the rows that this step selects, in the column `column_name`. `None` if the step
    /// does not read rows by number.
    fn row_numbers(&self, _column_name: &str) -> Option<Self> {
        None
    }

    /// The same step as up to `max_cuts + 1` steps, cut where a split may pay off.
    fn refined(&self, _max_cuts: usize) -> Vec<Self> {
        vec![self.clone()]
    }

    /// This step and `next` as one step with bit-identical results, if there is one.
    fn joined(&self, _next: &Self) -> Option<Self> {
        None
    }

    /// Loads what the step needs to run. Its duration is not part of the duration of the step.
    ///
    /// # Errors
    /// The reason why the step cannot run.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Multiply-accumulate operations for one sample; 0 for steps other than `model`.
    fn macs(&self) -> u64 {
        0
    }

    /// The model that the step runs, if there is one.
    fn model(&self) -> Option<Arc<dyn NamedModel>> {
        None
    }

    /// What the input of the step has to be normalized with, if anything.
    fn input_normalization(&self) -> Option<Normalization> {
        None
    }

    /// Expected CPU time of [`prepare`](Self::prepare) for a step with a model; `None` if it is not known.
    fn expected_prepare_time(&self) -> Option<Duration> {
        None
    }

    /// The steps of a pipeline that the step runs over each of many values, if there is one.
    fn inner_steps(&self) -> Option<InnerSteps<'_>> {
        None
    }

    /// This step as two with the same results: the first one runs the inner pipeline up to `stage`, and the second one the rest.
    /// `None` if the step has no inner pipeline, or no value of that stage can be part of a table.
    fn cut(&self, _stage: usize) -> Option<(Self, Self)> {
        None
    }

    /// The step as one that reads a table from an object.
    fn table_reader(&self) -> Option<&dyn TableReader> {
        None
    }

    /// The step as one that processes the rows of a table in order.
    fn rowwise(&self) -> Option<&dyn RowwiseStep> {
        None
    }

    /// Computes the output. The caller has checked the size of the output against the limits, if `output` determines it.
    fn apply(&self, input: Self::Input, scope: &Scope<'_>) -> Result<Self::Output>;
}

/// Inputs of a step other than the value.
#[derive(Debug)]
pub struct Scope<'a> {
    /// Limits on pixels and bytes.
    pub limits: &'a Limits,
    /// Id of the sample. Its suffix may determine the format of the object.
    pub sample_id: &'a [u8],
    /// Random draws of this step for this sample.
    pub draws: Draws,
    /// Seed of the random steps of an inner pipeline.
    pub seed: Option<u64>,
    /// Epoch of the random steps of an inner pipeline.
    pub epoch: Option<u32>,
    /// Ends the step early if nobody waits for its output.
    pub cancellation: Cancellation<'a>,
    /// What computes values from the cells of the object.
    pub cells: Option<&'a Arc<dyn CellHost>>,
}

/// A type of values.
pub trait StageValue: Sized {
    /// The kind of such values.
    type Kind;
    /// The name in error messages.
    const NAME: &'static str;
    /// The kind, if it is one of this type.
    fn kind(kind: &Kind) -> Option<&Self::Kind>;
    /// Converts to an untyped kind.
    fn wrap_kind(kind: Self::Kind) -> Kind;
    /// The value, if it has this type.
    fn unwrap(sample: Sample) -> Option<Self>;
    /// Converts to an untyped sample.
    fn wrap(self) -> Sample;
}

macro_rules! stage_values {
    ($($stage:ident: $kind:ident),+) => {$(
        impl StageValue for $stage {
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

stage_values!(Bytes: BytesKind, Image: ImageKind, Tensor: TensorKind, Table: TableKind);

/// The input of a step that takes an image or a tensor.
#[derive(Debug)]
pub enum Pixels {
    /// Height x width x 3, u8.
    Image(Image),
    /// Of a dtype that the `output` of the step accepts.
    Tensor(Tensor),
}

impl StageValue for Pixels {
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

/// The kind of the output of `step` for any kind of input.
///
/// # Errors
/// A message with the expected input.
pub fn output<O: Operator>(step: &O, input: &Kind) -> Result<Kind, String> {
    let Some(kind) = O::Input::kind(input) else {
        return Err(format!("takes {}, found {input}", O::Input::NAME));
    };
    step.output(kind).map(O::Output::wrap_kind)
}

/// Bytes of scratch memory of `step` for any kind of input; `None` if unknown.
pub fn scratch_bytes<O: Operator>(step: &O, input: &Kind) -> Option<u64> {
    step.scratch_bytes(O::Input::kind(input)?)
}

/// Runs `step` on a sample of any type.
///
/// # Errors
/// Those of the step, and [`InvalidWire`](crate::ErrorKind::InvalidWire) for a sample of another type than its input.
pub fn apply<O: Operator>(step: &O, sample: Sample, scope: &Scope<'_>) -> Result<Sample> {
    let input = O::Input::unwrap(sample).ok_or_else(|| {
        Error::wire(format!(
            "`{}` takes {}, found another kind of value",
            O::NAME,
            O::Input::NAME
        ))
    })?;
    step.apply(input, scope).map(StageValue::wrap)
}
