//! Memory limits for functions whose result can be longer than their arguments: a call reserves an upper bound of its result
//! in the query's memory pool before it runs.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow_array::cast::AsArray as _;
use arrow_schema::{DataType, FieldRef};
use datafusion::{
    common::tree_node::{Transformed, TreeNode as _},
    error::Result,
    execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation},
    logical_expr::{
        ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature,
    },
};
use parking_lot::Mutex;

use pushdown_core::{limits::BATCH_ROWS, table::array_bytes};

/// Upper bound of the size of a result.
#[derive(Debug, Clone, Copy)]
enum Growth {
    /// This multiple of the size of all arguments.
    Sum(usize),
    /// The first argument with each character replaced by the third argument.
    Replaced,
}

const GROWING_FUNCTIONS: [(&str, Growth); 18] = [
    ("array_append", Growth::Sum(1)),
    ("array_concat", Growth::Sum(1)),
    ("array_insert", Growth::Sum(1)),
    ("array_prepend", Growth::Sum(1)),
    ("array_union", Growth::Sum(1)),
    ("arrays_zip", Growth::Sum(1)),
    ("concat", Growth::Sum(1)),
    // One separator per argument.
    ("concat_ws", Growth::Sum(50)),
    ("encode", Growth::Sum(2)),
    ("make_array", Growth::Sum(1)),
    ("map", Growth::Sum(1)),
    ("named_struct", Growth::Sum(1)),
    ("overlay", Growth::Sum(1)),
    ("regexp_replace", Growth::Replaced),
    ("replace", Growth::Replaced),
    // An offset per character.
    ("string_to_array", Growth::Sum(16)),
    ("struct", Growth::Sum(1)),
    // A letter of the format becomes a number in the text.
    ("to_char", Growth::Sum(16)),
];

/// Wraps the calls of such functions, so that they reserve memory in `pool`.
pub(crate) fn limit_function_memory(plan: LogicalPlan, pool: &Arc<dyn MemoryPool>) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        plan.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarFunction(mut call) => {
                    let Some((_, growth)) = GROWING_FUNCTIONS
                        .iter()
                        .find(|(name, _)| *name == call.func.name())
                    else {
                        return Ok(Transformed::no(Expr::ScalarFunction(call)));
                    };
                    let reservation = MemoryConsumer::new(call.func.name()).register(pool);
                    call.func = Arc::new(ScalarUDF::new_from_impl(MemoryLimitedFunction {
                        function: Arc::clone(&call.func),
                        growth: *growth,
                        reservation: Mutex::new(reservation),
                    }));
                    Ok(Transformed::yes(Expr::ScalarFunction(call)))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    })?;
    Ok(plan.data)
}

/// A function that reserves memory for its result. It is not simplified: the replacement would not reserve memory.
#[derive(Debug)]
struct MemoryLimitedFunction {
    function: Arc<ScalarUDF>,
    growth: Growth,
    /// Memory of the result of the last call.
    reservation: Mutex<MemoryReservation>,
}

/// Reservations do not count.
impl PartialEq for MemoryLimitedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl Eq for MemoryLimitedFunction {}

impl Hash for MemoryLimitedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl MemoryLimitedFunction {
    /// Upper bound of the bytes of a call's result. The result of a call with literal arguments only is repeated in every row.
    fn max_result_bytes(&self, args: &ScalarFunctionArgs) -> Result<usize> {
        let is_literal = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let rows = if args.args.iter().all(is_literal) {
            BATCH_ROWS
        } else {
            args.number_rows
        };
        let bytes = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => usize::try_from(array_bytes(array)).unwrap_or(usize::MAX),
            ColumnarValue::Scalar(scalar) => scalar.size().saturating_mul(rows),
        };
        Ok(match self.growth {
            Growth::Sum(times) => {
                let sum = args.args.iter().map(bytes).fold(0, usize::saturating_add);
                sum.saturating_mul(times)
            }
            Growth::Replaced => {
                let text = args.args.first().map_or(0, bytes).saturating_add(rows);
                let replacement = args.args.get(2).map(max_text_bytes).transpose()?;
                text.saturating_mul(replacement.unwrap_or_default().saturating_add(1))
            }
        })
    }
}

/// Size of the longest text.
fn max_text_bytes(value: &ColumnarValue) -> Result<usize> {
    let array = value.to_array(1)?;
    let lengths: &mut dyn Iterator<Item = usize> = match array.data_type() {
        DataType::Utf8 => &mut array.as_string::<i32>().iter().flatten().map(str::len),
        DataType::LargeUtf8 => &mut array.as_string::<i64>().iter().flatten().map(str::len),
        DataType::Utf8View => &mut array.as_string_view().iter().flatten().map(str::len),
        _ => return Ok(usize::try_from(array_bytes(&array)).unwrap_or(usize::MAX)),
    };
    Ok(lengths.max().unwrap_or_default())
}

impl ScalarUDFImpl for MemoryLimitedFunction {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.function.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.reservation
            .lock()
            .try_resize(self.max_result_bytes(&args)?)?;
        self.function.invoke_with_args(args)
    }
}
