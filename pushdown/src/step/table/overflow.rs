//! Arithmetic on whole numbers that fails where a result does not fit its type. DataFusion's turns such numbers round: rows
//! would be wrong, or be left out by a condition, and nobody would see.

mod sum;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::{
    arrow::compute::kernels::numeric,
    common::{DFSchema, ScalarValue, tree_node::Transformed},
    error::Result,
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ExprSchemable as _, LogicalPlan, Operator, ReturnFieldArgs,
        ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        type_coercion::binary::BinaryTypeCoercer,
    },
    physical_expr_common::datum,
};

use super::rewrite;
pub(super) use sum::with_checked_sum;

/// The plan with such arithmetic in place of what turns round. Columns keep their names and types.
pub(super) fn checked(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite::expressions(plan, in_place_of)
}

/// The quotient of two whole numbers of this type without its fraction.
pub(super) fn whole_quotient(left: Expr, right: Expr, data_type: DataType) -> Expr {
    Chain::then(left, data_type, Operation::Divide, Some(right))
}

/// What stands in place of an expression over the columns of `schema`.
fn in_place_of(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) => {
            let operation = match binary.op {
                Operator::Plus => Operation::Add,
                Operator::Minus => Operation::Subtract,
                Operator::Multiply => Operation::Multiply,
                // This fails as it is, and is taken into what was begun.
                Operator::Modulo if Chain::of(&binary.left).is_some() => Operation::Remainder,
                _ => return Ok(Transformed::no(Expr::BinaryExpr(binary))),
            };
            let left = match Chain::of(&binary.left) {
                Some(chain) => chain.data_type.clone(),
                None => binary.left.get_type(schema)?,
            };
            let right = binary.right.get_type(schema)?;
            let data_type = if left == right {
                left.clone()
            } else {
                BinaryTypeCoercer::new(&left, &binary.op, &right).get_result_type()?
            };
            if ![&left, &right, &data_type].iter().all(|found| found.is_integer()) {
                return Ok(Transformed::no(Expr::BinaryExpr(binary)));
            }
            let BinaryExpr {
                left: value,
                right: operand,
                ..
            } = binary;
            let value = if left == data_type {
                *value
            } else {
                value.cast_to(&data_type, schema)?
            };
            let operand = if right == data_type {
                *operand
            } else {
                operand.cast_to(&data_type, schema)?
            };
            Ok(Transformed::yes(Chain::then(
                value,
                data_type,
                operation,
                Some(operand),
            )))
        }
        Expr::Negative(value) => {
            let data_type = match Chain::of(&value) {
                Some(chain) => chain.data_type.clone(),
                None => value.get_type(schema)?,
            };
            if !data_type.is_signed_integer() {
                return Ok(Transformed::no(Expr::Negative(value)));
            }
            Ok(Transformed::yes(Chain::then(
                *value,
                data_type,
                Operation::Negate,
                None,
            )))
        }
        other => Ok(Transformed::no(other)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    /// The fraction is cut off.
    Divide,
    Remainder,
    /// Of no further operand.
    Negate,
}

/// One operation after the other on whole numbers of one type: the first argument, and for each operation but
/// [`Operation::Negate`] another one. A function inside the next for each would take planning the square of how many there
/// are, and its stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Chain {
    operations: Vec<Operation>,
    data_type: DataType,
    signature: Signature,
}

impl Chain {
    fn of(expr: &Expr) -> Option<&Self> {
        match expr {
            Expr::ScalarFunction(call) => call.func.inner().downcast_ref(),
            _ => None,
        }
    }

    /// `value`, which may be such a chain, with an operation behind it.
    fn then(value: Expr, data_type: DataType, operation: Operation, operand: Option<Expr>) -> Expr {
        let begun = Self::of(&value).cloned();
        let (mut chain, mut arguments) = match (begun, value) {
            (Some(chain), Expr::ScalarFunction(call)) => (chain, call.args),
            (_, value) => {
                let begun = Self {
                    operations: Vec::new(),
                    data_type,
                    signature: Signature::variadic_any(Volatility::Immutable),
                };
                (begun, vec![value])
            }
        };
        chain.operations.push(operation);
        arguments.extend(operand);
        ScalarUDF::new_from_impl(chain).call(arguments)
    }
}

impl ScalarUDFImpl for Chain {
    fn name(&self) -> &'static str {
        "arithmetic"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Field::new(self.name(), self.data_type.clone(), nullable).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut operands = args.args.into_iter();
        let lacks = || datafusion::common::internal_datafusion_err!("arithmetic lacks an operand");
        let mut value = operands.next().ok_or_else(lacks)?;
        for operation in &self.operations {
            let kernel = match operation {
                Operation::Add => numeric::add,
                Operation::Subtract => numeric::sub,
                Operation::Multiply => numeric::mul,
                Operation::Divide => numeric::div,
                Operation::Remainder => numeric::rem,
                Operation::Negate => {
                    let zero = ColumnarValue::Scalar(ScalarValue::new_zero(&self.data_type)?);
                    value = datum::apply(&zero, &value, numeric::sub)?;
                    continue;
                }
            };
            value = datum::apply(&value, &operands.next().ok_or_else(lacks)?, kernel)?;
        }
        Ok(value)
    }
}
