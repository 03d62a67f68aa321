//! Literals.

use datafusion::sql::sqlparser::ast::{Value, ValueWithSpan};

use super::{CheckResult, refuse};

pub(super) fn check_value(value: &ValueWithSpan) -> CheckResult {
    let ValueWithSpan { value, span } = value;
    match value {
        Value::Number(_, false)
        | Value::SingleQuotedString(_)
        | Value::EscapedStringLiteral(_)
        | Value::DollarQuotedString(_)
        | Value::Boolean(_)
        | Value::Null => Ok(()),
        Value::Placeholder(name) => refuse(&format!("the placeholder `{name}`"), *span),
        other => refuse(&format!("the literal `{other}`"), *span),
    }
}
