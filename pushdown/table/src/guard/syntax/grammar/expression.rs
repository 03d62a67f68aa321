//! Expressions, except calls.

use datafusion::sql::sqlparser::ast::{
    Array, CaseWhen, CeilFloorKind, DateTimeField, DictionaryField, Expr, ExtractSyntax, Map, MapEntry,
    TypedString, UnaryOperator,
};

use super::{
    CheckResult, GrammarChecker,
    operator::{is_condition, is_supported},
    refuse, refuse_if, refuse_some, spans,
    value::check_value,
};

impl<'a> GrammarChecker<'a> {
    pub(super) fn expression(&mut self, expr: &'a Expr) -> CheckResult {
        let span = spans::expression_span(expr);
        let unsupported = |syntax: &str| refuse(syntax, span);
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {}
            Expr::Value(value) => check_value(value)?,
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
                // The parser reads all that follows as the right side: `a IS DISTINCT FROM (b AND c)`.
                refuse_if(
                    is_condition(other),
                    "a condition after IS DISTINCT FROM (put the comparison in parentheses)",
                    span,
                )?;
                self.expressions.extend([one.as_ref(), other.as_ref()]);
            }
            Expr::UnaryOp { op, expr } => {
                let is_supported = matches!(
                    op,
                    UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not
                );
                refuse_if(!is_supported, &format!("the operator `{op}`"), span)?;
                self.expressions.push(expr);
            }
            Expr::BinaryOp { left, op, right } => {
                refuse_if(!is_supported(op), &format!("the operator `{op}`"), span)?;
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
                refuse_if(*any, "LIKE ANY", span)?;
                self.expressions.extend([expr.as_ref(), pattern.as_ref()]);
            }
            Expr::SimilarTo {
                negated: _,
                expr,
                pattern,
                escape_char,
            } => {
                refuse_some(escape_char.as_ref(), "ESCAPE after SIMILAR TO", span)?;
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
                refuse_if(
                    !is_supported(compare_op),
                    &format!("the operator `{compare_op}`"),
                    span,
                )?;
                self.expressions.extend([left.as_ref(), right.as_ref()]);
            }
            Expr::Cast {
                kind,
                expr,
                // The planner refuses unknown types.
                data_type,
                array,
                format,
            } => {
                self.cast(kind, expr, data_type, *array, span)?;
                refuse_some(format.as_ref(), "CAST with FORMAT", span)?;
            }
            Expr::TypedString(TypedString {
                data_type: _,
                value,
                uses_odbc_syntax,
            }) => {
                refuse_if(*uses_odbc_syntax, "a value in braces", span)?;
                check_value(value)?;
            }
            Expr::Interval(interval) => self.interval(interval, span)?,
            Expr::Extract {
                field: _,
                syntax,
                expr,
            } => {
                refuse_if(
                    *syntax == ExtractSyntax::Comma,
                    "EXTRACT with a comma (write FROM)",
                    span,
                )?;
                self.expressions.push(expr);
            }
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => {
                let has_no_unit = matches!(field, CeilFloorKind::DateTimeField(DateTimeField::NoDateTime));
                refuse_if(!has_no_unit, "CEIL or FLOOR to a unit or a scale", span)?;
                self.expressions.push(expr);
            }
            Expr::Position { expr, r#in } => self.expressions.extend([expr.as_ref(), r#in.as_ref()]),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                // Notation only.
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
                refuse_if(characters.clone().count() > 1, "TRIM of several arguments", span)?;
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
            // The planner would enumerate their combinations, whose number is exponential in the length of the text.
            Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => {
                unsupported("grouping by several sets of columns")?;
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expressions.push(root);
                self.access_chain(access_chain, span)?;
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
            Expr::JsonAccess { .. } => unsupported("access to JSON")?,
            Expr::IsNormalized { .. } => unsupported("IS NORMALIZED")?,
            Expr::InUnnest { .. } => unsupported("IN UNNEST")?,
            Expr::RLike { .. } => unsupported("RLIKE or REGEXP (write `~`)")?,
            Expr::Convert { .. } => unsupported("CONVERT (write CAST)")?,
            Expr::AtTimeZone { .. } => unsupported("AT TIME ZONE")?,
            Expr::Collate { .. } => unsupported("COLLATE")?,
            Expr::Prefixed { .. } => unsupported("a text with a prefix")?,
            Expr::Tuple(_) => unsupported("a row of several values")?,
            Expr::Struct { .. } => unsupported("STRUCT (write {'name': value})")?,
            Expr::Named { .. } => unsupported("a name inside an expression")?,
            Expr::MatchAgainst { .. } => unsupported("MATCH AGAINST")?,
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => unsupported("`*` inside an expression")?,
            Expr::OuterJoin(_) => unsupported("`(+)`")?,
            Expr::Prior(_) => unsupported("PRIOR")?,
            Expr::Lambda(_) => unsupported("a lambda function")?,
            Expr::MemberOf(_) => unsupported("MEMBER OF")?,
        }
        Ok(())
    }
}
