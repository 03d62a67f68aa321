//! `sum` of integers, accumulated in 128 bits.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use datafusion::{
    arrow::compute::{CastOptions, cast, cast_with_options},
    common::ScalarValue,
    error::{DataFusionError, Result},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::AggregateOrderSensitivity,
    },
};

const NAME: &str = "sum";
/// Wide enough for the sum of any number of 64-bit values that an object can contain.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// Replaces DataFusion's `sum` in `functions`.
pub(crate) fn with_checked_sum(functions: Vec<Arc<AggregateUDF>>) -> Vec<Arc<AggregateUDF>> {
    let checked = |function: Arc<AggregateUDF>| match function.name() {
        NAME => Arc::new(AggregateUDF::new_from_impl(CheckedSum(function))),
        _ => function,
    };
    functions.into_iter().map(checked).collect()
}

/// Wraps DataFusion's `sum` and passes it widened integers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedSum(Arc<AggregateUDF>);

/// Sums integers of up to 64 bits.
#[derive(Debug)]
struct CheckedSumAccumulator {
    wide: Box<dyn Accumulator>,
    data_type: DataType,
}

/// Sums integers of up to 64 bits per group.
struct CheckedSumGroups {
    wide: Box<dyn GroupsAccumulator>,
    data_type: DataType,
}

fn is_integer_sum(args: &AccumulatorArgs<'_>) -> bool {
    args.return_type().is_integer()
}

/// The arguments for the wrapped function.
fn widened<'a>(args: &AccumulatorArgs<'a>) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: wide_field(&args.return_field),
        ..args.clone()
    }
}

fn wide_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(WIDE))
}

fn wide(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    values.iter().map(|values| Ok(cast(values, &WIDE)?)).collect()
}

fn narrow(sums: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(sums, data_type, &options).map_err(|_| {
        let message = format!("a sum overflows {data_type}");
        DataFusionError::from(ArrowError::ArithmeticOverflow(message))
    })
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !is_integer_sum(&args) {
            return self.0.accumulator(args);
        }
        let wide = self.0.accumulator(widened(&args))?;
        Ok(Box::new(CheckedSumAccumulator::new(wide, &args)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !args.return_type().is_integer() {
            return self.0.state_fields(args);
        }
        let return_field = wide_field(&args.return_field);
        self.0.state_fields(StateFieldsArgs { return_field, ..args })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        if !is_integer_sum(&args) {
            return self.0.create_groups_accumulator(args);
        }
        Ok(Box::new(CheckedSumGroups {
            wide: self.0.create_groups_accumulator(widened(&args))?,
            data_type: args.return_type().clone(),
        }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !is_integer_sum(&args) {
            return self.0.create_sliding_accumulator(args);
        }
        let wide = self.0.create_sliding_accumulator(widened(&args))?;
        Ok(Box::new(CheckedSumAccumulator::new(wide, &args)))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_udf()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }
}

impl CheckedSumAccumulator {
    fn new(wide: Box<dyn Accumulator>, args: &AccumulatorArgs<'_>) -> Self {
        Self {
            wide,
            data_type: args.return_type().clone(),
        }
    }
}

impl Accumulator for CheckedSumAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.wide.update_batch(&wide(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = narrow(&self.wide.evaluate()?.to_array()?, &self.data_type)?;
        ScalarValue::try_from_array(&sum, 0)
    }

    fn size(&self) -> usize {
        self.wide.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.wide.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.wide.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.wide.retract_batch(&wide(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.wide.supports_retract_batch()
    }
}

impl GroupsAccumulator for CheckedSumGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.wide.update_batch(&wide(values)?, groups, filter, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        narrow(&self.wide.evaluate(emit)?, &self.data_type)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        self.wide.state(emit)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.wide.merge_batch(states, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.wide.convert_to_state(&wide(values)?, filter)
    }

    fn size(&self) -> usize {
        self.wide.size()
    }
}
