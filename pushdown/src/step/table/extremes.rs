//! `min` and `max` of floats by groups. DataFusion's begin at the largest and the smallest finite number, by which infinity and
//! NaN, which is greater than any number, are lost or put first.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::{
    error::Result,
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
        function::AccumulatorArgs, utils::AggregateOrderSensitivity,
    },
};

/// `functions` with these in place of DataFusion's.
pub(super) fn with_floats(functions: Vec<Arc<AggregateUDF>>) -> Vec<Arc<AggregateUDF>> {
    let ours = |function: Arc<AggregateUDF>| match function.name() {
        "min" | "max" => Arc::new(AggregateUDF::new_from_impl(Extreme(function))),
        _ => function,
    };
    functions.into_iter().map(ours).collect()
}

/// DataFusion's function, by whose accumulator for all rows each group of floats is computed: that one compares by the total
/// order.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme(Arc<AggregateUDF>);

impl AggregateUDFImpl for Extreme {
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
