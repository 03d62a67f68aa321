//! Rewrites tokens that the parser and `DuckDB` read differently.

use datafusion::sql::sqlparser::{
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan, Word},
};

/// Maximum number of digits of a decimal.
const MAX_DIGITS: usize = 38;

/// Rewrites `**` to `^`, and a number with an exponent or with too many digits for a decimal to a double: `1e3` becomes
/// `('1e3'::double)`.
pub(super) fn rewrite_for_duckdb(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut rewritten: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        match &token.token {
            Token::Mul if follows_star(rewritten.last(), &token) => {
                if let Some(star) = rewritten.last_mut() {
                    star.token = Token::Caret;
                    star.span = star.span.union(&token.span);
                }
            }
            Token::Number(digits, false) if is_double(digits) => {
                let text = Token::SingleQuotedString(digits.replace('_', ""));
                let double = Token::Word(Word {
                    value: "double".to_owned(),
                    quote_style: None,
                    keyword: Keyword::DOUBLE,
                });
                let parts = [Token::LParen, text, Token::DoubleColon, double, Token::RParen];
                rewritten.extend(parts.map(|part| TokenWithSpan::new(part, token.span)));
            }
            _ => rewritten.push(token),
        }
    }
    rewritten
}

fn follows_star(previous: Option<&TokenWithSpan>, token: &TokenWithSpan) -> bool {
    previous.is_some_and(|previous| previous.token == Token::Mul && previous.span.end == token.span.start)
}

fn is_double(digits: &str) -> bool {
    let has_point = digits.contains('.');
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    digits.contains(['e', 'E']) || has_point && count > MAX_DIGITS
}
