//! Functions that make longer texts and lists of their arguments: what a call may make is taken from the memory of the query
//! before it is made.

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

use crate::{limits::BATCH_ROWS, table::array_bytes};

/// How long a result may be.
#[derive(Debug, Clone, Copy)]
enum Growth {
    /// As all arguments together, a few times.
    Sum(usize),
    /// As the first argument with each of its characters replaced by the third one.
    Replaced,
}

const GROWING: [(&str, Growth); 18] = [
    ("array_append", Growth::Sum(1)),
    ("array_concat", Growth::Sum(1)),
    ("array_insert", Growth::Sum(1)),
    ("array_prepend", Growth::Sum(1)),
    ("array_union", Growth::Sum(1)),
    ("arrays_zip", Growth::Sum(1)),
    ("concat", Growth::Sum(1)),
    // The separator, once behind each argument.
    ("concat_ws", Growth::Sum(50)),
    ("encode", Growth::Sum(2)),
    ("make_array", Growth::Sum(1)),
    ("map", Growth::Sum(1)),
    ("named_struct", Growth::Sum(1)),
    ("overlay", Growth::Sum(1)),
    ("regexp_replace", Growth::Replaced),
    ("replace", Growth::Replaced),
    // Offsets of one character each.
    ("string_to_array", Growth::Sum(16)),
    ("struct", Growth::Sum(1)),
    // A letter of the format is a number in the text.
    ("to_char", Growth::Sum(16)),
];

/// The plan with such calls held to the memory of `pool`.
pub(super) fn bounded(plan: LogicalPlan, pool: &Arc<dyn MemoryPool>) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        plan.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarFunction(mut call) => {
                    let Some((_, growth)) = GROWING.iter().find(|(name, _)| *name == call.func.name()) else {
                        return Ok(Transformed::no(Expr::ScalarFunction(call)));
                    };
                    let held = MemoryConsumer::new(call.func.name()).register(pool);
                    call.func = Arc::new(ScalarUDF::new_from_impl(Bounded {
                        function: Arc::clone(&call.func),
                        growth: *growth,
                        held: Mutex::new(held),
                    }));
                    Ok(Transformed::yes(Expr::ScalarFunction(call)))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    })?;
    Ok(plan.data)
}

/// A function at one place of a query. It is not simplified: what would take its place had no bound.
#[derive(Debug)]
struct Bounded {
    function: Arc<ScalarUDF>,
    growth: Growth,
    /// For the result of the last call.
    held: Mutex<MemoryReservation>,
}

/// Two places are alike where their functions are.
impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl Bounded {
    /// The most bytes that a call makes. What is computed of literals alone stands in every row.
    fn most(&self, args: &ScalarFunctionArgs) -> Result<usize> {
        let literal = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let rows = if args.args.iter().all(literal) {
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
                let by = args.args.get(2).map(longest).transpose()?;
                text.saturating_mul(by.unwrap_or_default().saturating_add(1))
            }
        })
    }
}

/// Bytes of the longest text.
fn longest(value: &ColumnarValue) -> Result<usize> {
    let array = value.to_array(1)?;
    let lengths: &mut dyn Iterator<Item = usize> = match array.data_type() {
        DataType::Utf8 => &mut array.as_string::<i32>().iter().flatten().map(str::len),
        DataType::LargeUtf8 => &mut array.as_string::<i64>().iter().flatten().map(str::len),
        DataType::Utf8View => &mut array.as_string_view().iter().flatten().map(str::len),
        _ => return Ok(usize::try_from(array_bytes(&array)).unwrap_or(usize::MAX)),
    };
    Ok(lengths.max().unwrap_or_default())
}

impl ScalarUDFImpl for Bounded {
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
        self.held.lock().try_resize(self.most(&args)?)?;
        self.function.invoke_with_args(args)
    }
}
