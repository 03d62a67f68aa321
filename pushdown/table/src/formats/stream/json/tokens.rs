//! Tokenizes a row of JSON (RFC 8259), and the three additional numbers that Python's `json.dumps` writes: `NaN`, `Infinity` and
//! `-Infinity`. Numbers keep their text, so that no digit is lost before the type of their column is known.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::row_error::RowError;
use pushdown_core::language::excerpt;

/// Maximum nesting depth of lists and objects, as in `serde_json`.
pub(super) const MAX_DEPTH: usize = 128;

/// Reads the tokens of a row in order.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    /// Offset of the next byte.
    position: usize,
}

/// A value. For a list or an object, only the opening bracket has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    List,
    Object,
}

impl Value<'_> {
    /// The value in errors.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => format!("`{value}`"),
            Self::Number(text) => format!("`{}`", excerpt(text, 60)),
            Self::Text(text) => format!("`\"{}\"`", excerpt(text, 60)),
            Self::List => "a list".to_owned(),
            Self::Object => "an object".to_owned(),
        }
    }
}

impl<'a> Tokens<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, position: 0 }
    }

    /// The next value.
    pub(super) fn value(&mut self) -> Result<Value<'a>, RowError> {
        let Some(first) = self.peek() else {
            return Err(RowError::syntax("expected a value, found the end of the row"));
        };
        match first {
            b'"' => self.string().map(Value::Text),
            b'{' | b'[' => {
                self.position += 1;
                Ok(if first == b'{' { Value::Object } else { Value::List })
            }
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'N' => self.word("NaN", Value::Number("NaN")),
            b'I' => self.word("Infinity", Value::Number("Infinity")),
            b'-' if self.rest().starts_with("-I") => self.word("-Infinity", Value::Number("-Infinity")),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Whether a list has another item. Consumes the comma before the item, or the bracket that closes the list.
    pub(super) fn has_item(&mut self, is_first: bool) -> Result<bool, RowError> {
        self.has_more(b']', is_first)
    }

    /// The name of an object's next member. Consumes the comma before it and the colon, or the bracket that closes the object.
    pub(super) fn member(&mut self, is_first: bool) -> Result<Option<Cow<'a, str>>, RowError> {
        if !self.has_more(b'}', is_first)? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a name in quotes"));
        }
        let name = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.position += 1;
        Ok(Some(name))
    }

    /// Skips the items of a list or the members of an object.
    pub(super) fn skip(&mut self, value: &Value<'_>) -> Result<(), RowError> {
        let mut outer_values = Vec::new();
        let (mut is_object, mut is_first) = match value {
            Value::List => (false, true),
            Value::Object => (true, true),
            _ => return Ok(()),
        };
        loop {
            let has_more = if is_object {
                self.member(is_first)?.is_some()
            } else {
                self.has_item(is_first)?
            };
            is_first = false;
            if !has_more {
                match outer_values.pop() {
                    Some(is_outer_object) => is_object = is_outer_object,
                    None => return Ok(()),
                }
                continue;
            }
            let value = self.value()?;
            if matches!(value, Value::List | Value::Object) {
                if outer_values.len() == MAX_DEPTH {
                    return Err(too_deep());
                }
                outer_values.push(is_object);
                (is_object, is_first) = (value == Value::Object, true);
            }
        }
    }

    fn has_more(&mut self, close: u8, is_first: bool) -> Result<bool, RowError> {
        match self.peek() {
            Some(byte) if byte == close => {
                self.position += 1;
                Ok(false)
            }
            Some(_) if is_first => Ok(true),
            Some(b',') => {
                self.position += 1;
                Ok(true)
            }
            _ => Err(self.unexpected(&format!("`,` or `{}`", char::from(close)))),
        }
    }

    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.position) {
            if !b" \t\r\n".contains(byte) {
                return Some(*byte);
            }
            self.position += 1;
        }
        None
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, RowError> {
        let rest = self.rest().strip_prefix(word);
        if rest.is_none_or(|rest| rest.starts_with(|next: char| next.is_alphanumeric())) {
            return Err(self.unexpected("a value"));
        }
        self.position += word.len();
        Ok(value)
    }

    /// Reads `-`, digits without a leading zero, a fraction and an exponent.
    fn number(&mut self) -> Result<Value<'a>, RowError> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let digits = |from: usize| {
            bytes
                .iter()
                .skip(from)
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        };
        let sign = usize::from(bytes.first() == Some(&b'-'));
        let whole = match bytes.get(sign) {
            Some(b'0') => 1,
            _ => digits(sign),
        };
        let mut end = sign + whole;
        let mut is_number = whole > 0;
        if bytes.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            is_number &= fraction > 0;
            end += 1 + fraction;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            is_number &= exponent > 0;
            end += 1 + sign + exponent;
        }
        let is_end = rest
            .get(end..)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()));
        if !is_number || !is_end {
            return Err(self.unexpected("a number"));
        }
        self.position += end;
        Ok(Value::Number(&rest[..end]))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, RowError> {
        let rest = self.rest();
        let content = rest.get(1..).unwrap_or_default().as_bytes();
        let (mut end, mut is_escaped) = (0, false);
        loop {
            match memchr::memchr2(b'"', b'\\', content.get(end..).unwrap_or_default()) {
                Some(offset) if content[end + offset] == b'\\' => {
                    is_escaped = true;
                    end += offset + 2;
                }
                Some(offset) => {
                    end += offset;
                    break;
                }
                None => return Err(RowError::syntax("expected `\"`, found the end of the row")),
            }
        }
        self.position += end + 2;
        let quoted = &rest[..end + 2];
        let text = &quoted[1..=end];
        if !is_escaped && !text.bytes().any(|byte| byte < b' ') {
            return Ok(Cow::Borrowed(text));
        }
        let text = serde_json::from_str::<String>(quoted);
        text.map(Cow::Owned).map_err(|error| {
            let error = error.to_string();
            RowError::syntax(error.split(" at line ").next().unwrap_or_default())
        })
    }

    fn unexpected(&self, expected: &str) -> RowError {
        let found = self.rest();
        if found.is_empty() {
            return RowError::syntax(format!("expected {expected}, found the end of the row"));
        }
        let end = found.find(|next: char| next.is_whitespace() || ",:]}".contains(next));
        let end = end
            .filter(|end| *end > 0)
            .or_else(|| found.chars().next().map(char::len_utf8));
        let found = &found[..end.unwrap_or_default()];
        RowError::syntax(format!("expected {expected}, found `{}`", excerpt(found, 60)))
    }
}

pub(super) fn too_deep() -> RowError {
    RowError::syntax(format!(
        "expected lists and objects at most {MAX_DEPTH} deep, found deeper ones"
    ))
}
