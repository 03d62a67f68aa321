//! Integer arithmetic that fails on overflow. DataFusion's wraps around: rows would silently be wrong, or be dropped by a
//! condition.

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

use crate::guard::rewrite::rewrite_expressions;
pub(crate) use sum::with_checked_sum;

/// Replaces wrapping integer arithmetic in a plan by checked arithmetic. Columns keep their names and types.
pub(crate) fn check_overflow(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_expressions(plan, checked)
}

/// The quotient of two integers of this type, truncated.
pub(crate) fn integer_quotient(left: Expr, right: Expr, data_type: DataType) -> Expr {
    ArithmeticChain::append(left, data_type, ArithmeticOp::Divide, Some(right))
}

/// Replaces an expression over the columns of `schema` by its checked form.
fn checked(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(binary) => {
            let operation = match binary.op {
                Operator::Plus => ArithmeticOp::Add,
                Operator::Minus => ArithmeticOp::Subtract,
                Operator::Multiply => ArithmeticOp::Multiply,
                // The remainder cannot overflow; it is appended to a chain that already exists.
                Operator::Modulo if ArithmeticChain::from_expr(&binary.left).is_some() => {
                    ArithmeticOp::Remainder
                }
                _ => return Ok(Transformed::no(Expr::BinaryExpr(binary))),
            };
            let left = match ArithmeticChain::from_expr(&binary.left) {
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
            Ok(Transformed::yes(ArithmeticChain::append(
                value,
                data_type,
                operation,
                Some(operand),
            )))
        }
        Expr::Negative(value) => {
            let data_type = match ArithmeticChain::from_expr(&value) {
                Some(chain) => chain.data_type.clone(),
                None => value.get_type(schema)?,
            };
            if !data_type.is_signed_integer() {
                return Ok(Transformed::no(Expr::Negative(value)));
            }
            Ok(Transformed::yes(ArithmeticChain::append(
                *value,
                data_type,
                ArithmeticOp::Negate,
                None,
            )))
        }
        other => Ok(Transformed::no(other)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    /// Truncates.
    Divide,
    Remainder,
    /// Unary.
    Negate,
}

/// A chain of operations on integers of one type. The arguments are the first operand, and one more operand for each operation
/// except [`ArithmeticOp::Negate`]. One flat function instead of nested ones: planning nested functions takes quadratic time and
/// deep recursion.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ArithmeticChain {
    operations: Vec<ArithmeticOp>,
    data_type: DataType,
    signature: Signature,
}

impl ArithmeticChain {
    fn from_expr(expr: &Expr) -> Option<&Self> {
        match expr {
            Expr::ScalarFunction(call) => call.func.inner().downcast_ref(),
            _ => None,
        }
    }

    /// Appends an operation to `value`, which may be a chain already.
    fn append(value: Expr, data_type: DataType, operation: ArithmeticOp, operand: Option<Expr>) -> Expr {
        let existing = Self::from_expr(&value).cloned();
        let (mut chain, mut arguments) = match (existing, value) {
            (Some(chain), Expr::ScalarFunction(call)) => (chain, call.args),
            (_, value) => {
                let empty = Self {
                    operations: Vec::new(),
                    data_type,
                    signature: Signature::variadic_any(Volatility::Immutable),
                };
                (empty, vec![value])
            }
        };
        chain.operations.push(operation);
        arguments.extend(operand);
        ScalarUDF::new_from_impl(chain).call(arguments)
    }
}

impl ScalarUDFImpl for ArithmeticChain {
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
        let missing_operand =
            || datafusion::common::internal_datafusion_err!("an arithmetic operand is missing");
        let mut value = operands.next().ok_or_else(missing_operand)?;
        for operation in &self.operations {
            let kernel = match operation {
                ArithmeticOp::Add => numeric::add,
                ArithmeticOp::Subtract => numeric::sub,
                ArithmeticOp::Multiply => numeric::mul,
                ArithmeticOp::Divide => numeric::div,
                ArithmeticOp::Remainder => numeric::rem,
                ArithmeticOp::Negate => {
                    let zero = ColumnarValue::Scalar(ScalarValue::new_zero(&self.data_type)?);
                    value = datum::apply(&zero, &value, numeric::sub)?;
                    continue;
                }
            };
            value = datum::apply(&value, &operands.next().ok_or_else(missing_operand)?, kernel)?;
        }
        Ok(value)
    }
}
