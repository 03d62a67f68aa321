//! SELECT, without its tables.

use datafusion::sql::sqlparser::ast::{
    Distinct, GroupByExpr, NamedWindowDefinition, NamedWindowExpr, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use super::{
    CheckResult, GrammarChecker, expansion::NameKind, refuse, refuse_any, refuse_if, refuse_some, spans,
};

impl<'a> GrammarChecker<'a> {
    pub(super) fn select(&mut self, select: &'a Select) -> CheckResult {
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
            // The order of the two clauses does not change their meaning.
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        let span = select_token.0.span;
        self.expansion.add_select(self.place, span);
        let is_star =
            |item: &&SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        let stars = projection.iter().filter(is_star).count();
        self.expansion
            .add_columns(self.place, projection.len() - stars, stars);
        refuse_any(optimizer_hints, "a hint", span)?;
        refuse_some(select_modifiers.as_ref(), "a modifier of SELECT", span)?;
        refuse_some(top.as_ref(), "TOP (write LIMIT)", span)?;
        refuse_if(*top_before_distinct, "TOP (write LIMIT)", span)?;
        refuse_some(
            exclude.as_ref(),
            "EXCLUDE after the columns (write * EXCLUDE (...))",
            span,
        )?;
        refuse_some(into.as_ref(), "SELECT INTO", span)?;
        refuse_any(lateral_views, "LATERAL VIEW", span)?;
        refuse_some(prewhere.as_ref(), "PREWHERE (write WHERE)", span)?;
        refuse_any(connect_by, "CONNECT BY", span)?;
        refuse_any(cluster_by, "CLUSTER BY", span)?;
        refuse_any(distribute_by, "DISTRIBUTE BY", span)?;
        refuse_any(sort_by, "SORT BY (write ORDER BY)", span)?;
        refuse_some(value_table_mode.as_ref(), "SELECT AS STRUCT or AS VALUE", span)?;
        match flavor {
            SelectFlavor::Standard | SelectFlavor::FromFirst => {}
            SelectFlavor::FromFirstNoSelect => refuse("FROM without SELECT", span)?,
        }
        self.named_windows(named_window)?;
        match distinct {
            None | Some(Distinct::All | Distinct::Distinct) => {}
            Some(Distinct::On(expressions)) => self.expressions.extend(expressions),
        }
        for item in projection {
            self.item(item)?;
        }
        self.tables(from)?;
        self.expressions.extend(selection);
        match group_by {
            GroupByExpr::All(modifiers) => refuse_any(modifiers, "GROUP BY ALL WITH", span)?,
            GroupByExpr::Expressions(expressions, modifiers) => {
                refuse_any(modifiers, "GROUP BY WITH ROLLUP, CUBE or TOTALS", span)?;
                self.expressions.extend(expressions);
            }
        }
        self.expressions.extend(having);
        self.expressions.extend(qualify);
        Ok(())
    }

    /// The windows of a WINDOW clause, which the expressions that are added afterwards can name.
    fn named_windows(&mut self, windows: &'a [NamedWindowDefinition]) -> CheckResult {
        let outer = self.place;
        let mut place = outer;
        for NamedWindowDefinition(name, window) in windows {
            match window {
                NamedWindowExpr::NamedWindow(name) => {
                    refuse("a window that names another window", name.span)?;
                }
                NamedWindowExpr::WindowSpec(window) => {
                    let fragment = self.expansion.fragment(outer);
                    self.enter(fragment);
                    self.window(window)?;
                    place = self.expansion.named(place, NameKind::Window, name, fragment);
                }
            }
        }
        self.enter(place);
        Ok(())
    }

    fn item(&mut self, item: &'a SelectItem) -> CheckResult {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, alias: _ } => {
                self.expressions.push(expr);
                Ok(())
            }
            SelectItem::ExprWithAliases { expr, aliases: _ } => {
                refuse("several aliases of a column", spans::expression_span(expr))
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                refuse("`.*` after an expression", spans::expression_span(expr))
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options)
            | SelectItem::Wildcard(options) => self.wildcard(options),
        }
    }

    fn wildcard(&mut self, options: &'a WildcardAdditionalOptions) -> CheckResult {
        let WildcardAdditionalOptions {
            wildcard_token,
            opt_ilike,
            // Column names.
            opt_exclude: _,
            opt_except: _,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let span = wildcard_token.0.span;
        refuse_some(opt_ilike.as_ref(), "`* ILIKE`", span)?;
        refuse_some(opt_rename.as_ref(), "`* RENAME`", span)?;
        refuse_some(opt_alias.as_ref(), "an alias of `*`", span)?;
        let replaced = opt_replace.iter().flat_map(|replace| &replace.items);
        self.expressions.extend(replaced.map(|element| &element.expr));
        Ok(())
    }
}
