//! Positions of parts of a query. Without recursion, since an expression can be as deep as it has operators.

use datafusion::sql::sqlparser::{
    ast::{Expr, ObjectName, ObjectNamePart, SetExpr, TableFactor},
    tokenizer::Span,
};

/// The span of an expression's first part; empty if unknown.
pub(super) fn expression_span(mut expr: &Expr) -> Span {
    loop {
        expr = match expr {
            Expr::Identifier(name) => return name.span,
            Expr::CompoundIdentifier(names) => {
                return names.first().map_or_else(Span::empty, |name| name.span);
            }
            Expr::Value(value) => return value.span,
            Expr::TypedString(text) => return text.value.span,
            Expr::Function(function) => return name_span(&function.name),
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

/// The span of a query's first keyword, without WITH; empty if unknown.
pub(super) fn body_span(mut body: &SetExpr) -> Span {
    loop {
        body = match body {
            SetExpr::Select(select) => return select.select_token.0.span,
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            _ => return Span::empty(),
        };
    }
}

/// The span of a table's name; empty if it has none.
pub(super) fn table_span(table: &TableFactor) -> Span {
    match table {
        TableFactor::Table { name, .. } => name_span(name),
        _ => Span::empty(),
    }
}

fn name_span(name: &ObjectName) -> Span {
    match name.0.first() {
        Some(ObjectNamePart::Identifier(name)) => name.span,
        _ => Span::empty(),
    }
}
