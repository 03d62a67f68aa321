//! Comparison with `serde_json`, except for the three additional numbers.

use proptest::prelude::*;
use serde_json::Value as Tree;

use super::*;

/// The tree of a text. The three additional numbers become strings.
fn tree(tokens: &mut Tokens<'_>) -> Result<Tree, RowError> {
    Ok(match tokens.value()? {
        Value::Null => Tree::Null,
        Value::Bool(value) => value.into(),
        Value::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        Value::Text(text) => text.into(),
        Value::List => {
            let mut items = Vec::new();
            while tokens.has_item(items.is_empty())? {
                items.push(tree(tokens)?);
            }
            items.into()
        }
        Value::Object => {
            let mut members = serde_json::Map::new();
            let mut is_first = true;
            while let Some(name) = tokens.member(is_first)? {
                is_first = false;
                members.insert(name.into_owned(), tree(tokens)?);
            }
            members.into()
        }
    })
}

fn parsed(text: &str) -> Result<Tree, String> {
    let mut tokens = Tokens::new(text);
    let found = tree(&mut tokens).map_err(|error| error.to_string())?;
    let mut skipped_tokens = Tokens::new(text);
    let skipped = skipped_tokens
        .value()
        .and_then(|value| skipped_tokens.skip(&value));
    assert!(
        skipped.is_ok() && skipped_tokens.position == tokens.position,
        "{text}"
    );
    match tokens.peek() {
        None => Ok(found),
        Some(_) => Err("trailing text".to_owned()),
    }
}

#[test]
fn python_s_nan_and_infinity_are_read() {
    let text = r#"{"a": [NaN, Infinity , -Infinity], "NaN": "-Infinity"}"#;
    let expected = serde_json::json!({"a": ["NaN", "Infinity", "-Infinity"], "NaN": "-Infinity"});
    assert_eq!(parsed(text), Ok(expected));
    for text in [
        "nan",
        "+Infinity",
        "inf",
        "-inf",
        "Inf",
        "INFINITY",
        "NAN",
        "-NaN",
        "NaNs",
        "Infinity1",
        "- Infinity",
        "+1",
        "01",
        "1.",
        ".5",
        "-",
        "1e",
        "0x1",
        "1_0",
        "truer",
        "nul",
        "'a'",
        "1 2",
        "[1,]",
        "{\"a\":1,}",
        "{a: 1}",
        "{\"a\" 1}",
        "[1 2]",
        "\"a",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\t\"",
        "[",
        "{",
        "{\"a\":",
        "",
    ] {
        assert!(parsed(text).is_err(), "{text}");
    }
}

#[test]
fn skipped_values_nested_too_deep_are_errors() {
    let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
    let skip = |text: &str| {
        let mut tokens = Tokens::new(text);
        let value = tokens.value().unwrap();
        tokens.skip(&value).map_err(|error| error.to_string())
    };
    assert_eq!(skip(&nested(MAX_DEPTH + 1)), Ok(()));
    assert_eq!(
        skip(&nested(100_000)).unwrap_err(),
        "expected lists and objects at most 128 deep, found deeper ones"
    );
}

proptest! {
    /// Texts that serde_json accepts have the same tree, and texts that it rejects are rejected.
    #[test]
    fn texts_are_read_as_serde_json_reads_them(
        text in "([ \\[\\]{},:]|\"([a\u{e9}\\\\]|\\\\n|\\\\u00e9)?\"|true|null|-?[0-9]{1,2}|[.]5|e[+-]?1){0,12}"
    ) {
        match serde_json::from_str::<Tree>(&text) {
            Ok(expected) => prop_assert_eq!(parsed(&text), Ok(expected)),
            // A number out of serde_json's range is still a token.
            Err(error) => prop_assert!(parsed(&text).is_err() || error.to_string().contains("out of range"), "{}", text),
        }
    }

    #[test]
    fn nested_texts_are_read_as_serde_json_reads_them(seed in "[a-c\\[{\"1]{0,10}") {
        let text = format!("{{\"k\": [{}, \"{}\", {{\"{}\": {}.5e1}}]}}", seed.len(), seed.replace('"', "\\\""), seed.replace('"', ""), seed.len());
        prop_assert_eq!(parsed(&text).ok(), serde_json::from_str::<Tree>(&text).ok());
    }
}
