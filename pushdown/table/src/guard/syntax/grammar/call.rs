//! Parts of expressions with their own syntax: casts, intervals, and access to fields and elements.

use datafusion::sql::sqlparser::{
    ast::{AccessExpr, CastKind, DataType, Expr, Interval, Subscript},
    tokenizer::Span,
};

use super::{CheckResult, GrammarChecker, UnsupportedSyntax, refuse, refuse_if, refuse_some};
use pushdown_core::limits::MAX_NESTED_CASTS;

impl<'a> GrammarChecker<'a> {
    pub(super) fn cast(
        &mut self,
        kind: &CastKind,
        expr: &'a Expr,
        data_type: &DataType,
        is_array: bool,
        span: Span,
    ) -> CheckResult {
        match kind {
            CastKind::Cast | CastKind::TryCast | CastKind::DoubleColon => {}
            CastKind::SafeCast => refuse("SAFE_CAST (write TRY_CAST)", span)?,
        }
        refuse_if(is_array, "CAST to ARRAY", span)?;
        let (mut changes, mut inner, mut outer_type) = (1, expr, data_type);
        loop {
            inner = match inner {
                Expr::Nested(expr) => expr,
                Expr::Cast {
                    expr, data_type: ty, ..
                } => {
                    changes += usize::from(ty != outer_type);
                    outer_type = ty;
                    expr
                }
                _ => break,
            };
        }
        if changes > MAX_NESTED_CASTS {
            return Err(UnsupportedSyntax {
                message: format!(
                    "the text has more than {MAX_NESTED_CASTS} casts to other types in each other"
                ),
                span,
            });
        }
        self.expressions.push(expr);
        Ok(())
    }

    pub(super) fn interval(&mut self, interval: &'a Interval, span: Span) -> CheckResult {
        let Interval {
            value,
            leading_field: _,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        refuse_some(leading_precision.as_ref(), "INTERVAL with a precision", span)?;
        refuse_some(last_field.as_ref(), "INTERVAL with TO", span)?;
        refuse_some(
            fractional_seconds_precision.as_ref(),
            "INTERVAL with a precision",
            span,
        )?;
        self.expressions.push(value);
        Ok(())
    }

    pub(super) fn access_chain(&mut self, chain: &'a [AccessExpr], span: Span) -> CheckResult {
        for access in chain {
            match access {
                AccessExpr::Dot(expr) | AccessExpr::Subscript(Subscript::Index { index: expr }) => {
                    self.expressions.push(expr);
                }
                AccessExpr::Subscript(Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride,
                }) => {
                    refuse_some(stride.as_ref(), "a slice with a step", span)?;
                    self.expressions.extend(lower_bound.iter().chain(upper_bound));
                }
            }
        }
        Ok(())
    }
}
