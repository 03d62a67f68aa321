//! Windows, and ORDER BY of windows, functions and queries.

use datafusion::sql::sqlparser::ast::{
    OrderByExpr, OrderByOptions, WindowFrame, WindowFrameBound, WindowSpec,
};

use super::{CheckResult, GrammarChecker, UnsupportedSyntax, refuse, refuse_some, spans};
use pushdown_core::limits::MAX_SORT_KEYS;

impl<'a> GrammarChecker<'a> {
    pub(super) fn orders(&mut self, orders: &'a [OrderByExpr]) -> CheckResult {
        if let Some(excess) = orders.get(MAX_SORT_KEYS) {
            return Err(UnsupportedSyntax {
                message: format!("ORDER BY has more than {MAX_SORT_KEYS} expressions"),
                span: spans::expression_span(&excess.expr),
            });
        }
        for order in orders {
            let OrderByExpr {
                expr,
                options,
                with_fill,
            } = order;
            let OrderByOptions {
                asc: _,
                nulls_first: _,
            } = options;
            refuse_some(with_fill.as_ref(), "WITH FILL", spans::expression_span(expr))?;
            self.expressions.push(expr);
        }
        Ok(())
    }

    fn frame(&mut self, frame: &'a WindowFrame) {
        let WindowFrame {
            units: _,
            start_bound,
            end_bound,
        } = frame;
        for bound in [Some(start_bound), end_bound.as_ref()].into_iter().flatten() {
            match bound {
                WindowFrameBound::CurrentRow => {}
                WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
                    self.expressions.extend(distance.as_deref());
                }
            }
        }
    }

    pub(super) fn window(&mut self, window: &'a WindowSpec) -> CheckResult {
        let WindowSpec {
            window_name,
            partition_by,
            order_by,
            window_frame,
        } = window;
        if let Some(frame) = window_frame {
            self.frame(frame);
        }
        if let Some(name) = window_name {
            refuse(
                "a window that extends another one (write OVER name, without parentheses)",
                name.span,
            )?;
        }
        self.expressions.extend(partition_by);
        self.orders(order_by)
    }
}
