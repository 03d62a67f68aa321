//! `min` and `max` of floats per group. DataFusion starts from the largest and the smallest finite number, so that it loses
//! infinities and orders NaN wrongly; NaN is greater than any number.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::{
    error::Result,
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
        function::AccumulatorArgs, utils::AggregateOrderSensitivity,
    },
};

/// Replaces DataFusion's `min` and `max` in `functions`.
pub(crate) fn with_total_order(functions: Vec<Arc<AggregateUDF>>) -> Vec<Arc<AggregateUDF>> {
    let replaced = |function: Arc<AggregateUDF>| match function.name() {
        "min" | "max" => Arc::new(AggregateUDF::new_from_impl(TotalOrderExtreme(function))),
        _ => function,
    };
    functions.into_iter().map(replaced).collect()
}

/// Wraps DataFusion's function. For groups of floats it uses the ungrouped accumulator, because that one compares by the total
/// order.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TotalOrderExtreme(Arc<AggregateUDF>);

impl AggregateUDFImpl for TotalOrderExtreme {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.0.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.return_type().is_floating() && self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.0.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.0.create_sliding_accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_udf()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn is_descending(&self) -> Option<bool> {
        self.0.is_descending()
    }
}
