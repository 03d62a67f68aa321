//! The SQL dialect of queries: the parser's generic dialect with `DuckDB`'s operator precedence.

use std::{any::TypeId, cell::Cell};

use datafusion::sql::sqlparser::{
    ast::{Expr, UnaryOperator},
    dialect::{Dialect, GenericDialect, Precedence},
    parser::{Parser, ParserError},
    tokenizer::{Location, Token},
};

/// Above `*` and `/`, below `::`.
const POWER: u8 = 45;
const SIGN: u8 = 47;
/// Below `+` and `-`, above comparisons.
const SHIFT: u8 = 25;

/// Enables many clauses so that `grammar` can refuse them by name. The parser's errors for clauses it does not know are vague.
#[derive(Debug)]
pub(super) struct DuckDb {
    /// How many more expressions the parser may begin. If a keyword's own grammar does not match, it parses the same tokens again
    /// as a call, in time exponential in the nesting of such keywords.
    expressions: Cell<usize>,
    /// Where the number was exceeded.
    excess: Cell<Option<Location>>,
}

impl DuckDb {
    /// A dialect for one text, of which the parser may begin this number of expressions.
    pub(super) const fn new(max_expressions: usize) -> Self {
        Self {
            expressions: Cell::new(max_expressions),
            excess: Cell::new(None),
        }
    }

    /// Where the parser began too many expressions, if it did.
    pub(super) fn excess(&self) -> Option<Location> {
        self.excess.get()
    }
}

macro_rules! enable {
    ($($feature:ident)*) => {
        $(fn $feature(&self) -> bool {
            true
        })*
    };
}

impl Dialect for DuckDb {
    enable! {
        allow_extract_custom
        allow_extract_single_quotes
        support_map_literal_syntax
        supports_array_typedef_with_brackets
        supports_bitwise_shift_operators
        supports_comma_separated_trim
        supports_connect_by
        supports_dictionary_syntax
        supports_extract_comma_syntax
        supports_filter_during_aggregation
        supports_from_first_select
        supports_group_by_expr
        supports_group_by_with_modifier
        supports_interpolate
        supports_interval_options
        supports_lambda_functions
        supports_left_associative_joins_without_parens
        supports_limit_by
        supports_limit_comma
        supports_match_against
        supports_match_recognize
        supports_named_fn_args_with_assignment_operator
        supports_nested_comments
        supports_notnull_operator
        supports_numeric_literal_underscores
        supports_order_by_all
        supports_parens_around_table_factor
        supports_pipe_operator
        supports_prewhere
        supports_projection_trailing_commas
        supports_select_format
        supports_select_wildcard_except
        supports_select_wildcard_exclude
        supports_select_wildcard_ilike
        supports_select_wildcard_rename
        supports_select_wildcard_replace
        supports_settings
        supports_string_escape_constant
        supports_struct_literal
        supports_try_convert
        supports_values_as_table_factor
        supports_window_function_null_treatment_arg
        supports_with_fill
    }

    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || character == '_'
    }

    fn is_identifier_part(&self, character: char) -> bool {
        character.is_alphanumeric() || character == '_' || character == '$'
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Caret => POWER,
            other => GenericDialect.prec_value(other),
        }
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        matches!(
            parser.peek_token_ref().token,
            Token::ShiftLeft | Token::ShiftRight
        )
        .then_some(Ok(SHIFT))
    }

    /// A sign binds tighter than a power: `-2 ^ 2` is 4.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let Some(rest) = self.expressions.get().checked_sub(1) else {
            self.excess.set(Some(parser.peek_token_ref().span.start));
            // The only error after which the parser does not try another grammar.
            return Some(Err(ParserError::RecursionLimitExceeded));
        };
        self.expressions.set(rest);
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            _ => return None,
        };
        parser.advance_token();
        let operand = parser.parse_subexpr(SIGN);
        Some(operand.map(|expr| Expr::UnaryOp {
            op,
            expr: Box::new(expr),
        }))
    }
}
