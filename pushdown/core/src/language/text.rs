//! Parses text to calls: `name(arg, name=arg) | name ...`. Checks the grammar only, not the steps.
//!
//! ```text
//! pipeline = step *( "|" step )
//! step     = name [ "(" [ arg *( "," arg ) ] ")" ]
//! arg      = [ name "=" ] value | value ":" pipeline
//! value    = number | name | string | "[" [ value *( "," value ) ] "]"
//! string   = double or single quotes; \\ \" \' and \u{hex} inside
//! ```

use super::{
    call::{Argument, Call},
    value::{Value, excerpt, is_plain},
};
use crate::{Error, Result, limits};

/// Maximum nesting depth of lists and of pipelines. No step needs more, and the parser recurses.
const MAX_DEPTH: usize = 4;

/// Parses the text of a pipeline into calls, with the byte offset of each part.
pub fn parse(text: &str) -> Result<Vec<Call>> {
    if text.len() > limits::MAX_PIPELINE_BYTES {
        return Err(Error::pipeline(
            limits::MAX_PIPELINE_BYTES,
            format!(
                "the pipeline has {} bytes, expected at most {}",
                text.len(),
                limits::MAX_PIPELINE_BYTES
            ),
        ));
    }
    let mut parser = Parser {
        text,
        position: 0,
        depth: 0,
    };
    let calls = parser.calls()?;
    match parser.peek() {
        None => Ok(calls),
        Some(_) => Err(parser.unexpected("`|` or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    /// Number of pipelines around the position.
    depth: usize,
}

impl Parser<'_> {
    fn calls(&mut self) -> Result<Vec<Call>> {
        let mut calls = vec![self.call()?];
        while self.eat('|') {
            calls.push(self.call()?);
        }
        Ok(calls)
    }

    fn rest(&self) -> &str {
        &self.text[self.position..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.position += expected.len_utf8();
        }
        found
    }

    fn unexpected(&mut self, expected: &str) -> Error {
        match self.peek() {
            Some(found) => Error::pipeline(
                self.position,
                format!("found `{}`, expected {expected}", found.escape_default()),
            ),
            None => Error::pipeline(self.position, format!("found the end, expected {expected}")),
        }
    }

    fn name(&mut self, expected: &str) -> Result<String> {
        self.skip_space();
        let rest = self.rest();
        let end = rest
            .find(|char: char| !char.is_ascii_alphanumeric() && char != '_')
            .unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|char: char| char.is_ascii_digit()) {
            return Err(self.unexpected(expected));
        }
        let name = rest[..end].to_owned();
        self.position += end;
        Ok(name)
    }

    fn call(&mut self) -> Result<Call> {
        self.skip_space();
        let position = self.position;
        let name = self.name("the name of a step")?;
        let mut arguments = Vec::new();
        if self.eat('(') && !self.eat(')') {
            loop {
                arguments.push(self.argument()?);
                if self.eat(':') {
                    arguments.push(self.inner_pipeline()?);
                }
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.unexpected("`,` or `)`"));
                }
            }
        }
        Ok(Call {
            name,
            position,
            arguments,
        })
    }

    fn argument(&mut self) -> Result<Argument> {
        self.skip_space();
        let position = self.position;
        let value = self.value(0)?;
        let (name, start, value) = match value {
            Value::Text(name) if is_plain(&self.text[position..self.position]) && self.eat('=') => {
                self.skip_space();
                (Some(name), self.position, self.value(0)?)
            }
            value => (None, position, value),
        };
        let written = &self.text[start..self.position];
        Ok(Argument {
            name,
            position,
            value,
            value_position: start + usize::from(written.starts_with(['"', '\''])),
            is_verbatim: !written.contains('\\'),
        })
    }

    /// A pipeline as an argument. The value is its text, which the step parses again.
    fn inner_pipeline(&mut self) -> Result<Argument> {
        self.skip_space();
        let position = self.position;
        if self.depth == MAX_DEPTH {
            return Err(self.unexpected("at most 4 nested pipelines"));
        }
        self.depth += 1;
        self.calls()?;
        self.depth -= 1;
        let text = self.text[position..self.position].trim_end();
        Ok(Argument {
            name: None,
            position,
            value: Value::Text(text.to_owned()),
            value_position: position,
            is_verbatim: true,
        })
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        match self.peek() {
            Some('[') if depth < MAX_DEPTH => self.list(depth),
            Some('"' | '\'') => self.string(),
            Some('0'..='9' | '-' | '+' | '.') => self.number(),
            Some('a'..='z' | 'A'..='Z' | '_') => Ok(Value::Text(self.word()?)),
            _ => Err(self.unexpected("a number, a name, a string or a list")),
        }
    }

    /// A name, or several names joined by `.`, `/`, `:`, `@` or `-` without spaces, so that names of tensors and digests need no
    /// quotes.
    fn word(&mut self) -> Result<String> {
        let mut word = self.name("a name")?;
        while let Some(join) = self.rest().chars().next().filter(|char| ".:/@-".contains(*char)) {
            let following = &self.rest()[1..];
            let end = following
                .find(|char: char| !char.is_ascii_alphanumeric() && char != '_')
                .unwrap_or(following.len());
            if end == 0 {
                break;
            }
            word.push(join);
            word.push_str(&following[..end]);
            self.position += 1 + end;
        }
        Ok(word)
    }

    fn list(&mut self, depth: usize) -> Result<Value> {
        self.position += 1;
        let mut values = Vec::new();
        if !self.eat(']') {
            loop {
                values.push(self.value(depth + 1)?);
                if self.eat(']') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.unexpected("`,` or `]`"));
                }
            }
        }
        Ok(Value::List(values))
    }

    fn number(&mut self) -> Result<Value> {
        let rest = self.rest();
        let end = rest
            .find(|char: char| !char.is_ascii_alphanumeric() && !matches!(char, '.' | '-' | '+'))
            .unwrap_or(rest.len());
        let (start, text) = (self.position, rest[..end].to_owned());
        self.position += end;
        let whole = text.parse::<i64>().ok().map(Value::Int);
        let number = || {
            text.parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .map(Value::Float)
        };
        whole.or_else(number).ok_or_else(|| {
            Error::pipeline(
                start,
                format!("found `{}`, expected a number", excerpt(&text, 40)),
            )
        })
    }

    fn string(&mut self) -> Result<Value> {
        let start = self.position;
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map(|(_, quote)| quote);
        let mut text = String::new();
        while let Some((offset, char)) = chars.next() {
            match char {
                char if Some(char) == quote => {
                    self.position = start + offset + char.len_utf8();
                    return Ok(Value::Text(text));
                }
                '\\' => match chars.next() {
                    Some((_, escaped @ ('\\' | '"' | '\''))) => text.push(escaped),
                    Some((_, 'u')) => text.push(unicode(&mut chars).ok_or_else(|| {
                        Error::pipeline(
                            start + offset,
                            "found a broken escape, expected `\\u{..}` with a code point",
                        )
                    })?),
                    _ => {
                        return Err(Error::pipeline(
                            start + offset,
                            "found an unknown escape, expected `\\\\`, `\\\"`, `\\'` or `\\u{..}`",
                        ));
                    }
                },
                char => text.push(char),
            }
        }
        Err(Error::pipeline(start, "found a string without a closing quote"))
    }
}

/// Parses the `{hex}` of a `\u{hex}`.
fn unicode(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    (chars.next()?.1 == '{').then_some(())?;
    let mut code = 0_u32;
    for (_, char) in chars.by_ref() {
        match char {
            '}' => return char::from_u32(code),
            digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
        }
    }
    None
}
