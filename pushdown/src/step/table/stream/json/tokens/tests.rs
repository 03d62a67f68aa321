//! Texts are read as `serde_json` reads them, but for three numbers more.

use proptest::prelude::*;
use serde_json::Value as Tree;

use super::*;

/// The tree of a text, of the three numbers more the words.
fn tree(tokens: &mut Tokens<'_>) -> Result<Tree, Fault> {
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
    let found = tree(&mut tokens).map_err(|fault| fault.to_string())?;
    let mut skipping = Tokens::new(text);
    let skipped = skipping.value().and_then(|value| skipping.skip(&value));
    assert!(skipped.is_ok() && skipping.at == tokens.at, "{text}");
    match tokens.peek() {
        None => Ok(found),
        Some(_) => Err("more".to_owned()),
    }
}

#[test]
fn numbers_that_are_none_are_read_as_python_writes_them() {
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
fn what_is_nested_too_deep_to_pass_over_is_a_fault() {
    let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
    let skip = |text: &str| {
        let mut tokens = Tokens::new(text);
        let value = tokens.value().unwrap();
        tokens.skip(&value).map_err(|fault| fault.to_string())
    };
    assert_eq!(skip(&nested(MAX_DEPTH + 1)), Ok(()));
    assert_eq!(
        skip(&nested(100_000)).unwrap_err(),
        "lists and objects are nested deeper than 128"
    );
}

proptest! {
    /// What serde_json reads is read alike, and what it refuses is refused, but for the three numbers.
    #[test]
    fn texts_are_read_as_serde_json_reads_them(
        text in "([ \\[\\]{},:]|\"([a\u{e9}\\\\]|\\\\n|\\\\u00e9)?\"|true|null|-?[0-9]{1,2}|[.]5|e[+-]?1){0,12}"
    ) {
        match serde_json::from_str::<Tree>(&text) {
            Ok(expected) => prop_assert_eq!(parsed(&text), Ok(expected)),
            // A number that is too large is one all the same.
            Err(error) => prop_assert!(parsed(&text).is_err() || error.to_string().contains("out of range"), "{}", text),
        }
    }

    #[test]
    fn pieces_of_json_are_read_as_serde_json_reads_them(seed in "[a-c\\[{\"1]{0,10}") {
        let text = format!("{{\"k\": [{}, \"{}\", {{\"{}\": {}.5e1}}]}}", seed.len(), seed.replace('"', "\\\""), seed.replace('"', ""), seed.len());
        prop_assert_eq!(parsed(&text).ok(), serde_json::from_str::<Tree>(&text).ok());
    }
}
