//! Where parts of a query begin. Found without recursion, which an expression as deep as it has operators would control.

use datafusion::sql::sqlparser::{
    ast::{Expr, ObjectName, ObjectNamePart, SetExpr, TableFactor},
    tokenizer::Span,
};

/// Where an expression begins, if its first part has a place.
pub(super) fn of_expression(mut expr: &Expr) -> Span {
    loop {
        expr = match expr {
            Expr::Identifier(name) => return name.span,
            Expr::CompoundIdentifier(names) => {
                return names.first().map_or_else(Span::empty, |name| name.span);
            }
            Expr::Value(value) => return value.span,
            Expr::TypedString(text) => return text.value.span,
            Expr::Function(function) => return of_name(&function.name),
            Expr::Case { case_token, .. } => return case_token.0.span,
            Expr::BinaryOp { left, .. }
            | Expr::AnyOp { left, .. }
            | Expr::AllOp { left, .. }
            | Expr::IsDistinctFrom(left, _)
            | Expr::IsNotDistinctFrom(left, _) => left,
            Expr::CompoundFieldAccess { root, .. } => root,
            Expr::AtTimeZone { timestamp, .. } => timestamp,
            Expr::JsonAccess { value, .. } | Expr::Prefixed { value, .. } => value,
            Expr::UnaryOp { expr, .. }
            | Expr::Cast { expr, .. }
            | Expr::Collate { expr, .. }
            | Expr::Convert { expr, .. }
            | Expr::Extract { expr, .. }
            | Expr::Ceil { expr, .. }
            | Expr::Floor { expr, .. }
            | Expr::Trim { expr, .. }
            | Expr::Between { expr, .. }
            | Expr::InList { expr, .. }
            | Expr::InSubquery { expr, .. }
            | Expr::InUnnest { expr, .. }
            | Expr::IsNormalized { expr, .. }
            | Expr::Like { expr, .. }
            | Expr::ILike { expr, .. }
            | Expr::RLike { expr, .. }
            | Expr::SimilarTo { expr, .. }
            | Expr::Nested(expr) => expr,
            Expr::Tuple(values) => match values.first() {
                Some(first) => first,
                None => return Span::empty(),
            },
            _ => return Span::empty(),
        };
    }
}

/// Where a query without its WITH begins.
pub(super) fn of_body(mut body: &SetExpr) -> Span {
    loop {
        body = match body {
            SetExpr::Select(select) => return select.select_token.0.span,
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            _ => return Span::empty(),
        };
    }
}

/// Where a table begins, if it has a name.
pub(super) fn of_table(table: &TableFactor) -> Span {
    match table {
        TableFactor::Table { name, .. } => of_name(name),
        _ => Span::empty(),
    }
}

fn of_name(name: &ObjectName) -> Span {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(name)) => name.span,
        _ => Span::empty(),
    }
}
