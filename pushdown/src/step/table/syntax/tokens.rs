//! Tokens that the parser would read otherwise than `DuckDB`.

use datafusion::sql::sqlparser::{
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan, Word},
};

/// The digits that a decimal may have.
const MAX_DIGITS: usize = 38;

/// `**` is `^`, and a number with an exponent, or with more digits than a decimal has, is a double: `1e3` becomes
/// `('1e3'::double)`.
pub(super) fn as_in_duckdb(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut changed: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        match &token.token {
            Token::Mul if follows_star(changed.last(), &token) => {
                if let Some(star) = changed.last_mut() {
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
                changed.extend(parts.map(|part| TokenWithSpan::new(part, token.span)));
            }
            _ => changed.push(token),
        }
    }
    changed
}

fn follows_star(before: Option<&TokenWithSpan>, token: &TokenWithSpan) -> bool {
    before.is_some_and(|before| before.token == Token::Mul && before.span.end == token.span.start)
}

fn is_double(digits: &str) -> bool {
    let has_point = digits.contains('.');
    let count = digits.bytes().filter(u8::is_ascii_digit).count();
    digits.contains(['e', 'E']) || has_point && count > MAX_DIGITS
}
