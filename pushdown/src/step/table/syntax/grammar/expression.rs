//! Expressions.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DateTimeField, DictionaryField,
    Expr, ExtractSyntax, Interval, Map, MapEntry, Subscript, TypedString, UnaryOperator, Value,
    ValueWithSpan,
};

use super::{Checked, Pending, none, not, place, refused};

impl<'a> Pending<'a> {
    pub(super) fn expression(&mut self, expr: &'a Expr) -> Checked {
        let span = place::of_expression(expr);
        let no = |what: &str| refused(what, span);
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {}
            Expr::Value(value) => self::value(value)?,
            Expr::IsFalse(one)
            | Expr::IsNotFalse(one)
            | Expr::IsTrue(one)
            | Expr::IsNotTrue(one)
            | Expr::IsNull(one)
            | Expr::IsNotNull(one)
            | Expr::IsUnknown(one)
            | Expr::IsNotUnknown(one)
            | Expr::Nested(one) => self.expressions.push(one),
            Expr::IsDistinctFrom(one, other) | Expr::IsNotDistinctFrom(one, other) => {
                // The parser takes all that follows for the other side: `a IS DISTINCT FROM (b AND c)`.
                not(
                    is_condition(other),
                    "a condition after IS DISTINCT FROM (put the comparison in parentheses)",
                    span,
                )?;
                self.expressions.extend([one.as_ref(), other.as_ref()]);
            }
            Expr::UnaryOp { op, expr } => {
                let known = matches!(
                    op,
                    UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not
                );
                not(!known, &format!("the operator `{op}`"), span)?;
                self.expressions.push(expr);
            }
            Expr::BinaryOp { left, op, right } => {
                not(!is_known(op), &format!("the operator `{op}`"), span)?;
                self.expressions.extend([left.as_ref(), right.as_ref()]);
            }
            Expr::InList {
                expr,
                list,
                negated: _,
            } => {
                self.expressions.push(expr);
                self.expressions.extend(list);
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated: _,
            } => {
                self.expressions.push(expr);
                self.queries.push(subquery);
            }
            Expr::Between {
                expr,
                negated: _,
                low,
                high,
            } => self.expressions.extend([expr, low, high].map(AsRef::as_ref)),
            Expr::Like {
                negated: _,
                any,
                expr,
                pattern,
                escape_char: _,
            }
            | Expr::ILike {
                negated: _,
                any,
                expr,
                pattern,
                escape_char: _,
            } => {
                not(*any, "LIKE ANY", span)?;
                self.expressions.extend([expr.as_ref(), pattern.as_ref()]);
            }
            Expr::SimilarTo {
                negated: _,
                expr,
                pattern,
                escape_char,
            } => {
                none(escape_char.as_ref(), "ESCAPE after SIMILAR TO", span)?;
                self.expressions.extend([expr.as_ref(), pattern.as_ref()]);
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some: _,
            }
            | Expr::AllOp {
                left,
                compare_op,
                right,
            } => {
                not(
                    !is_known(compare_op),
                    &format!("the operator `{compare_op}`"),
                    span,
                )?;
                self.expressions.extend([left.as_ref(), right.as_ref()]);
            }
            Expr::Cast {
                kind,
                expr,
                // The planner refuses those that it does not know.
                data_type: _,
                array,
                format,
            } => {
                match kind {
                    CastKind::Cast | CastKind::TryCast | CastKind::DoubleColon => {}
                    CastKind::SafeCast => no("SAFE_CAST (write TRY_CAST)")?,
                }
                not(*array, "CAST to ARRAY", span)?;
                none(format.as_ref(), "CAST with FORMAT", span)?;
                self.expressions.push(expr);
            }
            Expr::TypedString(TypedString {
                data_type: _,
                value,
                uses_odbc_syntax,
            }) => {
                not(*uses_odbc_syntax, "a value in braces", span)?;
                self::value(value)?;
            }
            Expr::Interval(Interval {
                value,
                leading_field: _,
                leading_precision,
                last_field,
                fractional_seconds_precision,
            }) => {
                none(leading_precision.as_ref(), "INTERVAL with a precision", span)?;
                none(last_field.as_ref(), "INTERVAL with TO", span)?;
                none(
                    fractional_seconds_precision.as_ref(),
                    "INTERVAL with a precision",
                    span,
                )?;
                self.expressions.push(value);
            }
            Expr::Extract {
                field: _,
                syntax,
                expr,
            } => {
                not(
                    *syntax == ExtractSyntax::Comma,
                    "EXTRACT with a comma (write FROM)",
                    span,
                )?;
                self.expressions.push(expr);
            }
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => {
                let plain = matches!(field, CeilFloorKind::DateTimeField(DateTimeField::NoDateTime));
                not(!plain, "CEIL or FLOOR to a unit or a scale", span)?;
                self.expressions.push(expr);
            }
            Expr::Position { expr, r#in } => self.expressions.extend([expr.as_ref(), r#in.as_ref()]),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                // Ways to write it.
                special: _,
                shorthand: _,
            } => {
                self.expressions.push(expr);
                let bounds = [substring_from, substring_for].into_iter().flatten();
                self.expressions.extend(bounds.map(AsRef::as_ref));
            }
            Expr::Trim {
                trim_where: _,
                trim_what,
                expr,
                trim_characters,
            } => {
                let characters = trim_characters.iter().flatten();
                not(characters.clone().count() > 1, "TRIM of several arguments", span)?;
                self.expressions.push(expr);
                self.expressions.extend(trim_what.iter().map(AsRef::as_ref));
                self.expressions.extend(characters);
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                self.expressions
                    .extend([expr, overlay_what, overlay_from].map(AsRef::as_ref));
                self.expressions.extend(overlay_for.iter().map(AsRef::as_ref));
            }
            Expr::Function(function) => self.function(function, span)?,
            Expr::Case {
                case_token: _,
                end_token: _,
                operand,
                conditions,
                else_result,
            } => {
                self.expressions
                    .extend(operand.iter().chain(else_result).map(AsRef::as_ref));
                for CaseWhen { condition, result } in conditions {
                    self.expressions.extend([condition, result]);
                }
            }
            Expr::Exists { subquery, negated: _ } | Expr::Subquery(subquery) => self.queries.push(subquery),
            // The plan of these is refused.
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => {
                self.expressions.extend(sets.iter().flatten());
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expressions.push(root);
                for access in access_chain {
                    match access {
                        AccessExpr::Dot(expr) | AccessExpr::Subscript(Subscript::Index { index: expr }) => {
                            self.expressions.push(expr);
                        }
                        AccessExpr::Subscript(Subscript::Slice {
                            lower_bound,
                            upper_bound,
                            stride,
                        }) => {
                            none(stride.as_ref(), "a slice with a step", span)?;
                            self.expressions.extend(lower_bound.iter().chain(upper_bound));
                        }
                    }
                }
            }
            Expr::Array(Array { elem, named: _ }) => self.expressions.extend(elem),
            Expr::Dictionary(fields) => {
                for DictionaryField { key: _, value } in fields {
                    self.expressions.push(value);
                }
            }
            Expr::Map(Map { entries }) => {
                for MapEntry { key, value } in entries {
                    self.expressions.extend([key.as_ref(), value.as_ref()]);
                }
            }
            Expr::JsonAccess { .. } => no("access to JSON")?,
            Expr::IsNormalized { .. } => no("IS NORMALIZED")?,
            Expr::InUnnest { .. } => no("IN UNNEST")?,
            Expr::RLike { .. } => no("RLIKE or REGEXP (write `~`)")?,
            Expr::Convert { .. } => no("CONVERT (write CAST)")?,
            Expr::AtTimeZone { .. } => no("AT TIME ZONE")?,
            Expr::Collate { .. } => no("COLLATE")?,
            Expr::Prefixed { .. } => no("a text with a prefix")?,
            Expr::Tuple(_) => no("a row of several values")?,
            Expr::Struct { .. } => no("STRUCT (write {'name': value})")?,
            Expr::Named { .. } => no("a name inside of an expression")?,
            Expr::MatchAgainst { .. } => no("MATCH AGAINST")?,
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => no("`*` inside of an expression")?,
            Expr::OuterJoin(_) => no("`(+)`")?,
            Expr::Prior(_) => no("PRIOR")?,
            Expr::Lambda(_) => no("a function of functions")?,
            Expr::MemberOf(_) => no("MEMBER OF")?,
        }
        Ok(())
    }
}

fn value(value: &ValueWithSpan) -> Checked {
    let ValueWithSpan { value, span } = value;
    match value {
        Value::Number(_, false)
        | Value::SingleQuotedString(_)
        | Value::EscapedStringLiteral(_)
        | Value::DollarQuotedString(_)
        | Value::Boolean(_)
        | Value::Null => Ok(()),
        Value::Placeholder(name) => refused(&format!("the placeholder `{name}`"), *span),
        other => refused(&format!("the literal `{other}`"), *span),
    }
}

/// Whether an expression without parentheses binds less than a value.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOperator::And
                | BinaryOperator::Or
                | BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
        ),
        Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::Between { .. }
        | Expr::InList { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::UnaryOp {
            op: UnaryOperator::Not,
            ..
        } => true,
        _ => false,
    }
}

/// Whether an operator means here what it means in `DuckDB`. `^` is the power.
fn is_known(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::DuckIntegerDivide
            | BinaryOperator::Modulo
            | BinaryOperator::BitwiseXor
            // The plan says what to write in its place.
            | BinaryOperator::StringConcat
            | BinaryOperator::Gt
            | BinaryOperator::Lt
            | BinaryOperator::GtEq
            | BinaryOperator::LtEq
            | BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::And
            | BinaryOperator::Or
            | BinaryOperator::BitwiseOr
            | BinaryOperator::BitwiseAnd
            | BinaryOperator::PGBitwiseShiftRight
            | BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
            | BinaryOperator::PGLikeMatch
            | BinaryOperator::PGILikeMatch
            | BinaryOperator::PGNotLikeMatch
            | BinaryOperator::PGNotILikeMatch
    )
}
