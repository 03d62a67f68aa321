//! What of the grammar a query may have. Every struct of the syntax tree that is accepted is taken apart field by field, so that
//! a clause which the parser learns does not compile before it is accepted or refused here, by name.

mod expression;
mod function;
mod place;
mod window;

use datafusion::sql::sqlparser::{
    ast::{
        Cte, Distinct, Expr, GroupByExpr, LimitClause, NamedWindowExpr, Offset, OrderBy, OrderByKind, Parens,
        Query, Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator,
        SetQuantifier, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Values,
        WildcardAdditionalOptions, With,
    },
    tokenizer::Span,
};

/// What is refused, and where.
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) span: Span,
}

type Checked = Result<(), Refused>;

/// What is still to be looked at. A list in place of recursion: an expression is as deep as it has operators.
#[derive(Default)]
struct Pending<'a> {
    queries: Vec<&'a Query>,
    bodies: Vec<&'a SetExpr>,
    expressions: Vec<&'a Expr>,
}

/// Checks a query.
pub(super) fn check_query(query: &Query) -> Checked {
    let mut pending = Pending::default();
    pending.queries.push(query);
    pending.check()
}

/// Checks an expression.
pub(super) fn check_expression(expr: &Expr) -> Checked {
    let mut pending = Pending::default();
    pending.expressions.push(expr);
    pending.check()
}

fn refused(what: &str, span: Span) -> Checked {
    Err(Refused {
        message: format!("{what} is not offered"),
        span,
    })
}

/// Refuses `what` where there is one.
fn none<T>(found: Option<&T>, what: &str, span: Span) -> Checked {
    empty(found.as_slice(), what, span)
}

fn empty<T>(found: &[T], what: &str, span: Span) -> Checked {
    if found.is_empty() {
        Ok(())
    } else {
        refused(what, span)
    }
}

fn not(found: bool, what: &str, span: Span) -> Checked {
    if found { refused(what, span) } else { Ok(()) }
}

impl<'a> Pending<'a> {
    fn check(&mut self) -> Checked {
        loop {
            if let Some(expr) = self.expressions.pop() {
                self.expression(expr)?;
            } else if let Some(body) = self.bodies.pop() {
                self.body(body)?;
            } else if let Some(query) = self.queries.pop() {
                self.query(query)?;
            } else {
                return Ok(());
            }
        }
    }

    fn query(&mut self, query: &'a Query) -> Checked {
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
        let span = place::of_body(body);
        none(fetch.as_ref(), "FETCH (write LIMIT)", span)?;
        empty(locks, "FOR UPDATE or FOR SHARE", span)?;
        none(for_clause.as_ref(), "FOR XML, JSON or BROWSE", span)?;
        none(settings.as_ref(), "SETTINGS", span)?;
        none(format_clause.as_ref(), "FORMAT", span)?;
        empty(pipe_operators, "`|>`", span)?;
        if let Some(With {
            with_token,
            recursive,
            cte_tables,
        }) = with
        {
            let span = with_token.0.span;
            not(*recursive, "a recursive query, which has no bound,", span)?;
            for table in cte_tables {
                let Cte {
                    alias,
                    query,
                    from,
                    // Says how to compute, not what.
                    materialized: _,
                    closing_paren_token: _,
                } = table;
                table_alias(alias)?;
                none(from.as_ref(), "FROM after a query of WITH", span)?;
                self.queries.push(query);
            }
        }
        self.bodies.push(body);
        if let Some(order_by) = order_by {
            let OrderBy { kind, interpolate } = order_by;
            none(interpolate.as_ref(), "INTERPOLATE", span)?;
            match kind {
                // What it has are options.
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
                empty(limit_by, "LIMIT BY", span)?;
                self.expressions.extend(limit);
                if let Some(Offset { value, rows: _ }) = offset {
                    self.expressions.push(value);
                }
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                refused("LIMIT with two numbers (write LIMIT and OFFSET)", span)?;
            }
        }
        Ok(())
    }

    fn body(&mut self, body: &'a SetExpr) -> Checked {
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
                let named = match set_quantifier {
                    SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None => false,
                    SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => true,
                };
                let (operation, known) = match op {
                    SetOperator::Union => ("UNION", true),
                    // The plan of these two has a join, which is refused there.
                    SetOperator::Except => ("EXCEPT", true),
                    SetOperator::Intersect => ("INTERSECT", true),
                    SetOperator::Minus => ("MINUS", false),
                };
                not(!known, operation, place::of_body(body))?;
                let by_name = format!("{operation} BY NAME");
                not(named && *op != SetOperator::Union, &by_name, place::of_body(body))?;
                self.bodies.extend([left.as_ref(), right.as_ref()]);
                Ok(())
            }
            SetExpr::Values(Values {
                explicit_row,
                value_keyword,
                rows,
            }) => {
                not(*explicit_row, "VALUES ROW", place::of_body(body))?;
                not(*value_keyword, "VALUE (write VALUES)", place::of_body(body))?;
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
                refused("a statement that changes tables", place::of_body(body))
            }
            SetExpr::Table(_) => refused("TABLE (write SELECT * FROM object)", place::of_body(body)),
        }
    }

    fn select(&mut self, select: &'a Select) -> Checked {
        let Select {
            select_token,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            // The order of two clauses, which mean the same either way.
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        let span = select_token.0.span;
        empty(optimizer_hints, "a hint", span)?;
        none(select_modifiers.as_ref(), "a modifier of SELECT", span)?;
        none(top.as_ref(), "TOP (write LIMIT)", span)?;
        not(*top_before_distinct, "TOP (write LIMIT)", span)?;
        none(
            exclude.as_ref(),
            "EXCLUDE after the columns (write * EXCLUDE (...))",
            span,
        )?;
        none(into.as_ref(), "SELECT INTO", span)?;
        empty(lateral_views, "LATERAL VIEW", span)?;
        none(prewhere.as_ref(), "PREWHERE (write WHERE)", span)?;
        empty(connect_by, "CONNECT BY", span)?;
        empty(cluster_by, "CLUSTER BY", span)?;
        empty(distribute_by, "DISTRIBUTE BY", span)?;
        empty(sort_by, "SORT BY (write ORDER BY)", span)?;
        none(value_table_mode.as_ref(), "SELECT AS STRUCT or AS VALUE", span)?;
        match flavor {
            SelectFlavor::Standard | SelectFlavor::FromFirst => {}
            SelectFlavor::FromFirstNoSelect => refused("FROM without SELECT", span)?,
        }
        match distinct {
            None | Some(Distinct::All | Distinct::Distinct) => {}
            Some(Distinct::On(expressions)) => self.expressions.extend(expressions),
        }
        for item in projection {
            self.item(item)?;
        }
        for TableWithJoins { relation, joins } in from {
            self.table(relation)?;
            // The plan of each has a join, which is refused there.
            for join in joins {
                self.table(&join.relation)?;
            }
        }
        self.expressions.extend(selection);
        match group_by {
            GroupByExpr::All(modifiers) => empty(modifiers, "GROUP BY ALL WITH", span)?,
            GroupByExpr::Expressions(expressions, modifiers) => {
                empty(modifiers, "GROUP BY WITH ROLLUP, CUBE or TOTALS", span)?;
                self.expressions.extend(expressions);
            }
        }
        self.expressions.extend(having);
        for window in named_window {
            match &window.1 {
                NamedWindowExpr::NamedWindow(name) => {
                    refused("a window with the name of another one", name.span)?;
                }
                NamedWindowExpr::WindowSpec(window) => self.window(window)?,
            }
        }
        self.expressions.extend(qualify);
        Ok(())
    }

    fn item(&mut self, item: &'a SelectItem) -> Checked {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, alias: _ } => {
                self.expressions.push(expr);
                Ok(())
            }
            SelectItem::ExprWithAliases { expr, aliases: _ } => {
                refused("several names for a column", place::of_expression(expr))
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                refused("`.*` after an expression", place::of_expression(expr))
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options)
            | SelectItem::Wildcard(options) => self.wildcard(options),
        }
    }

    fn wildcard(&mut self, options: &'a WildcardAdditionalOptions) -> Checked {
        let WildcardAdditionalOptions {
            wildcard_token,
            opt_ilike,
            // Names of columns.
            opt_exclude: _,
            opt_except: _,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let span = wildcard_token.0.span;
        none(opt_ilike.as_ref(), "`* ILIKE`", span)?;
        none(opt_rename.as_ref(), "`* RENAME`", span)?;
        none(opt_alias.as_ref(), "a name for `*`", span)?;
        let replaced = opt_replace.iter().flat_map(|replace| &replace.items);
        self.expressions.extend(replaced.map(|element| &element.expr));
        Ok(())
    }

    fn table(&mut self, table: &'a TableFactor) -> Checked {
        let span = place::of_table(table);
        match table {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                let function = format!("the table function `{name}`");
                none(args.as_ref(), &function, span)?;
                empty(with_hints, "a hint for a table", span)?;
                none(version.as_ref(), "a version of a table (AS OF)", span)?;
                not(*with_ordinality, "WITH ORDINALITY (give `row_number=`)", span)?;
                empty(partitions, "PARTITION", span)?;
                none(json_path.as_ref(), "a path into a table", span)?;
                none(sample.as_ref(), SAMPLE, span)?;
                empty(index_hints, "a hint for an index", span)?;
                alias.as_ref().map_or(Ok(()), table_alias)
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample,
            } => {
                not(*lateral, "LATERAL", span)?;
                none(sample.as_ref(), SAMPLE, span)?;
                self.queries.push(subquery);
                alias.as_ref().map_or(Ok(()), table_alias)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                // The parser bounds how deep these are.
                self.table(&table_with_joins.relation)?;
                alias.as_ref().map_or(Ok(()), table_alias)
            }
            TableFactor::TableFunction { .. } | TableFactor::Function { .. } => {
                refused("a table function", span)
            }
            TableFactor::UNNEST { .. } => refused("a table of UNNEST", span),
            TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
                refused("a table of JSON", span)
            }
            TableFactor::Pivot { .. } => refused("PIVOT", span),
            TableFactor::Unpivot { .. } => refused("UNPIVOT", span),
            TableFactor::MatchRecognize { .. } => refused("MATCH_RECOGNIZE", span),
            TableFactor::XmlTable { .. } => refused("a table of XML", span),
            TableFactor::SemanticView { .. } => refused("SEMANTIC_VIEW", span),
        }
    }
}

const SAMPLE: &str = "TABLESAMPLE (append the step `sample(fraction, seed)`)";

fn table_alias(alias: &TableAlias) -> Checked {
    let TableAlias {
        explicit: _,
        name,
        columns,
        at,
    } = alias;
    none(at.as_ref(), "AT after a table", name.span)?;
    for TableAliasColumnDef { name, data_type } in columns {
        none(
            data_type.as_ref(),
            "a type for a column of a table's alias",
            name.span,
        )?;
    }
    Ok(())
}
