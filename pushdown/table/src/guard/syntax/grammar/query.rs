//! Queries without their SELECT: WITH, set operations, VALUES, ORDER BY and LIMIT.

use datafusion::sql::sqlparser::ast::{
    Cte, LimitClause, Offset, OrderBy, OrderByKind, Parens, Query, SetExpr, SetOperator, SetQuantifier,
    Values, With,
};

use super::{
    CheckResult, GrammarChecker, expansion::NameKind, refuse, refuse_any, refuse_if, refuse_some, spans,
    table::table_alias,
};

impl<'a> GrammarChecker<'a> {
    pub(super) fn query(&mut self, query: &'a Query) -> CheckResult {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        let span = spans::body_span(body);
        refuse_some(fetch.as_ref(), "FETCH (write LIMIT)", span)?;
        refuse_any(locks, "FOR UPDATE or FOR SHARE", span)?;
        refuse_some(for_clause.as_ref(), "FOR XML, JSON or BROWSE", span)?;
        refuse_some(settings.as_ref(), "SETTINGS", span)?;
        refuse_some(format_clause.as_ref(), "FORMAT", span)?;
        refuse_any(pipe_operators, "`|>`", span)?;
        if let Some(With {
            with_token,
            recursive,
            cte_tables,
        }) = with
        {
            let span = with_token.0.span;
            refuse_if(*recursive, "a recursive query", span)?;
            let mut place = self.place;
            for table in cte_tables {
                let Cte {
                    alias,
                    query,
                    from,
                    // Changes how a query runs, not its result.
                    materialized: _,
                    closing_paren_token: _,
                } = table;
                table_alias(alias)?;
                refuse_some(from.as_ref(), "FROM after a WITH query", span)?;
                // It sees the queries before it, but not itself.
                let fragment = self.expansion.fragment(place);
                self.enter(fragment);
                self.queries.push(query);
                place = self
                    .expansion
                    .named(place, NameKind::Query, &alias.name, fragment);
            }
            self.enter(place);
        }
        self.bodies.push(body);
        if let Some(order_by) = order_by {
            let OrderBy { kind, interpolate } = order_by;
            refuse_some(interpolate.as_ref(), "INTERPOLATE", span)?;
            match kind {
                // `ALL` has options only.
                OrderByKind::All(_) => {}
                OrderByKind::Expressions(orders) => self.orders(orders)?,
            }
        }
        match limit_clause {
            None => {}
            Some(LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) => {
                refuse_any(limit_by, "LIMIT BY", span)?;
                self.expressions.extend(limit);
                if let Some(Offset { value, rows: _ }) = offset {
                    self.expressions.push(value);
                }
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                refuse("LIMIT with two numbers (write LIMIT and OFFSET)", span)?;
            }
        }
        Ok(())
    }

    pub(super) fn body(&mut self, body: &'a SetExpr) -> CheckResult {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => {
                self.queries.push(query);
                Ok(())
            }
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                let is_by_name = match set_quantifier {
                    SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None => false,
                    SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => true,
                };
                let (operation, is_known) = match op {
                    SetOperator::Union => ("UNION", true),
                    // The plan of these two has a join, and the plan guard refuses it.
                    SetOperator::Except => ("EXCEPT", true),
                    SetOperator::Intersect => ("INTERSECT", true),
                    SetOperator::Minus => ("MINUS", false),
                };
                refuse_if(!is_known, operation, spans::body_span(body))?;
                let by_name = format!("{operation} BY NAME");
                refuse_if(
                    is_by_name && *op != SetOperator::Union,
                    &by_name,
                    spans::body_span(body),
                )?;
                self.bodies.extend([left.as_ref(), right.as_ref()]);
                Ok(())
            }
            SetExpr::Values(Values {
                explicit_row,
                value_keyword,
                rows,
            }) => {
                refuse_if(*explicit_row, "VALUES ROW", spans::body_span(body))?;
                refuse_if(*value_keyword, "VALUE (write VALUES)", spans::body_span(body))?;
                self.expansion.add_select(self.place, spans::body_span(body));
                let columns = rows.first().map_or(0, |row| row.content.len());
                self.expansion.add_columns(self.place, columns, 0);
                for Parens {
                    opening_token: _,
                    content,
                    closing_token: _,
                } in rows
                {
                    self.expressions.extend(content);
                }
                Ok(())
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                refuse("a statement that changes tables", spans::body_span(body))
            }
            SetExpr::Table(_) => refuse("TABLE (write SELECT * FROM object)", spans::body_span(body)),
        }
    }
}
