//! How large a text of SQL is, by its tokens: parsing and planning recurse.

use datafusion::sql::sqlparser::{
    keywords::Keyword,
    tokenizer::{Token, TokenWithSpan},
};

use crate::limits::{MAX_INNER_QUERIES, MAX_NESTED_QUERIES, MAX_QUERY_NAME_BYTES};

/// The first query in parentheses that is one too many, or too deep.
pub(super) fn too_many_queries(tokens: &[TokenWithSpan]) -> Option<(&TokenWithSpan, String)> {
    let begins = |token: Option<&TokenWithSpan>| {
        let word = token.and_then(|token| match &token.token {
            Token::Word(word) => Some(word.keyword),
            _ => None,
        });
        matches!(word, Some(Keyword::SELECT | Keyword::WITH | Keyword::VALUES))
    };
    let (mut open, mut inner) = (Vec::new(), 0);
    for (index, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => {
                let query = begins(tokens.get(index + 1));
                open.push(query);
                inner += usize::from(query);
                if inner > MAX_INNER_QUERIES {
                    return Some((
                        token,
                        format!("found more than {MAX_INNER_QUERIES} queries inside the query"),
                    ));
                }
                if open.iter().filter(|query| **query).count() > MAX_NESTED_QUERIES {
                    let message = format!("found more than {MAX_NESTED_QUERIES} queries inside each other");
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

/// The first name that is too long.
pub(super) fn too_long_name(tokens: &[TokenWithSpan]) -> Option<(&TokenWithSpan, String)> {
    tokens.iter().find_map(|token| match &token.token {
        Token::Word(word) if word.value.len() > MAX_QUERY_NAME_BYTES => {
            let length = word.value.len();
            let message = format!("found a name of {length} bytes, expected at most {MAX_QUERY_NAME_BYTES}");
            Some((token, message))
        }
        _ => None,
    })
}

/// How many times `*` stands for all columns. A product has an operand on either side, and `count(*)` nothing but parentheses.
pub(super) fn wildcards(tokens: &[TokenWithSpan]) -> usize {
    let at = |index: Option<usize>| {
        index
            .and_then(|index| tokens.get(index))
            .map(|token| &token.token)
    };
    let begins = |token: Option<&Token>| match token {
        Some(Token::Comma | Token::Period) => true,
        Some(Token::Word(word)) => {
            matches!(word.keyword, Keyword::SELECT | Keyword::DISTINCT | Keyword::ALL)
        }
        _ => false,
    };
    let ends = |token: Option<&Token>| match token {
        None | Some(Token::EOF | Token::Comma | Token::RParen | Token::SemiColon) => true,
        Some(Token::Word(word)) => word.quote_style.is_none() && word.keyword == Keyword::FROM,
        _ => false,
    };
    let is_wildcard = |index: &usize| {
        let (before, behind) = (at(index.checked_sub(1)), at(Some(index + 1)));
        let counts = before == Some(&Token::LParen) && behind == Some(&Token::RParen);
        tokens[*index].token == Token::Mul && !counts && (begins(before) || ends(behind))
    };
    (0..tokens.len()).filter(is_wildcard).count()
}

/// The tokens that an expression may grow deeper by: all but values, names and what stands between the items of a list.
pub(super) fn operators(tokens: &[TokenWithSpan]) -> impl Iterator<Item = &TokenWithSpan> {
    let counts = |index: &usize| {
        let before = |places: usize| Some(&tokens[index.checked_sub(places)?].token);
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
            // A sign in a list, and the table's name before a column's.
            Token::Minus => !matches!(before(1), Some(Token::Comma | Token::LParen)),
            Token::Period => before(2) == Some(&Token::Period),
            _ => true,
        }
    };
    (0..tokens.len()).filter(counts).map(|index| &tokens[index])
}
