//! Limits on the size of an SQL text, checked on its tokens, since parsing and planning recurse.

use datafusion::sql::sqlparser::{
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan},
};

use pushdown_core::limits::{MAX_INNER_QUERIES, MAX_NESTED_QUERIES, MAX_QUERY_NAME_BYTES};

/// The first subquery over the limits on number and depth, with the error message.
pub(super) fn excess_subquery(tokens: &[TokenWithSpan]) -> Option<(&TokenWithSpan, String)> {
    let starts_query = |token: Option<&TokenWithSpan>| {
        let word = token.and_then(|token| match &token.token {
            Token::Word(word) => Some(word.keyword),
            _ => None,
        });
        matches!(
            word,
            Some(Keyword::SELECT | Keyword::FROM | Keyword::WITH | Keyword::VALUES)
        )
    };
    // For each open parenthesis, whether a query is inside.
    let (mut open, mut subqueries) = (Vec::new(), 0);
    for (index, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => {
                let is_query = starts_query(tokens.get(index + 1));
                open.push(is_query);
                subqueries += usize::from(is_query);
                if subqueries > MAX_INNER_QUERIES {
                    return Some((
                        token,
                        format!("the query has more than {MAX_INNER_QUERIES} subqueries"),
                    ));
                }
                if open.iter().filter(|is_query| **is_query).count() > MAX_NESTED_QUERIES {
                    let message = format!("the query has more than {MAX_NESTED_QUERIES} nested subqueries");
                    return Some((token, message));
                }
            }
            Token::RParen => {
                open.pop();
            }
            _ => {}
        }
    }
    None
}

/// The first name over the length limit, with the error message.
pub(super) fn excess_name(tokens: &[TokenWithSpan]) -> Option<(&TokenWithSpan, String)> {
    tokens.iter().find_map(|token| match &token.token {
        Token::Word(word) if word.value.len() > MAX_QUERY_NAME_BYTES => {
            let length = word.value.len();
            let message =
                format!("invalid name: expected at most {MAX_QUERY_NAME_BYTES} bytes, found {length}");
            Some((token, message))
        }
        _ => None,
    })
}

/// The number of `*` that select all columns, as opposed to products (with operands on both sides) and `count(*)`.
pub(super) fn count_wildcards(tokens: &[TokenWithSpan]) -> usize {
    let token_at = |index: Option<usize>| {
        index
            .and_then(|index| tokens.get(index))
            .map(|token| &token.token)
    };
    let can_precede = |token: Option<&Token>| match token {
        Some(Token::Comma | Token::Period) => true,
        Some(Token::Word(word)) => {
            matches!(word.keyword, Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL)
        }
        _ => false,
    };
    let can_follow = |token: Option<&Token>| match token {
        None | Some(Token::EOF | Token::Comma | Token::RParen | Token::SemiColon) => true,
        Some(Token::Word(word)) => word.quote_style.is_none() && word.keyword == Keyword::FROM,
        _ => false,
    };
    let is_wildcard = |index: &usize| {
        let (previous, next) = (token_at(index.checked_sub(1)), token_at(Some(index + 1)));
        let is_count = previous == Some(&Token::LParen) && next == Some(&Token::RParen);
        tokens[*index].token == Token::Mul && !is_count && (can_precede(previous) || can_follow(next))
    };
    (0..tokens.len()).filter(is_wildcard).count()
}

/// The tokens that can add depth to an expression: all except values, names and list separators.
pub(super) fn operators(tokens: &[TokenWithSpan]) -> impl Iterator<Item = &TokenWithSpan> {
    let is_operator = |index: &usize| {
        let token_before = |distance: usize| Some(&tokens[index.checked_sub(distance)?].token);
        match &tokens[*index].token {
            Token::EOF
            | Token::Comma
            | Token::LParen
            | Token::RParen
            | Token::SemiColon
            | Token::Number(..)
            | Token::SingleQuotedString(_) => false,
            Token::Word(word) => matches!(
                word.keyword,
                Keyword::AND
                    | Keyword::AT
                    | Keyword::BETWEEN
                    | Keyword::CASE
                    | Keyword::COLLATE
                    | Keyword::DIV
                    | Keyword::EXCEPT
                    | Keyword::ILIKE
                    | Keyword::IN
                    | Keyword::INTERSECT
                    | Keyword::IS
                    | Keyword::JOIN
                    | Keyword::LIKE
                    | Keyword::NOT
                    | Keyword::OR
                    | Keyword::REGEXP
                    | Keyword::RLIKE
                    | Keyword::SIMILAR
                    | Keyword::UNION
                    | Keyword::XOR
            ),
            // Exempt: a sign in a list, and the point between the names of a table and a column.
            Token::Minus => !matches!(token_before(1), Some(Token::Comma | Token::LParen)),
            Token::Period => token_before(2) == Some(&Token::Period),
            _ => true,
        }
    };
    (0..tokens.len()).filter(is_operator).map(|index| &tokens[index])
}
