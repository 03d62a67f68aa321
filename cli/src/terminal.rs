//! What a terminal may be sent: text in which names and errors of stores cannot control it.

use std::{
    fmt,
    io::{self, Write},
    mem, str,
};

use pushdown_client::internal::{Escaped, is_control};
use tracing_subscriber::{
    field::MakeExt as _,
    fmt::{
        FormatFields,
        format::{Writer, debug_fn},
    },
};

/// Writes a line to stderr: an error, a note, a warning, progress.
///
/// # Errors
/// If stderr is closed.
pub(crate) fn write_line(line: impl fmt::Display) -> io::Result<()> {
    writeln!(io::stderr(), "{}", Escaped(line))
}

/// The fields of events in the log, on one line.
pub(crate) fn log_fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(|writer: &mut Writer<'_>, field, value| {
        let value = Escaped(format_args!("{value:?}"));
        match field.name() {
            "message" => write!(writer, "{value}"),
            name => write!(writer, "{name}={value}"),
        }
    })
    .delimited(" ")
}

/// Passes text on with its control characters escaped, but for the ends of lines and tabs. Names that would break a line are [`Escaped`]
/// by who knows where they end.
pub(crate) struct Printable<W> {
    inner: W,
    escape: fn(char) -> String,
    /// The beginning of a character whose other bytes have not been written.
    partial: Vec<u8>,
}

impl<W: Write> Printable<W> {
    /// For people: escapes as in Rust.
    pub(crate) const fn text(inner: W) -> Self {
        Self::new(inner, |character| character.escape_default().to_string())
    }

    /// For JSON, which has such characters in strings alone: what a program reads from it is the same.
    pub(crate) const fn json(inner: W) -> Self {
        Self::new(inner, |character| format!("\\u{:04x}", u32::from(character)))
    }

    const fn new(inner: W, escape: fn(char) -> String) -> Self {
        Self {
            inner,
            escape,
            partial: Vec::new(),
        }
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let is_escaped = |character| is_control(character) && !matches!(character, '\n' | '\t');
        let mut rest = text;
        while let Some(at) = rest.find(is_escaped) {
            self.inner.write_all(&rest.as_bytes()[..at])?;
            let mut characters = rest[at..].chars();
            if let Some(character) = characters.next() {
                self.inner.write_all((self.escape)(character).as_bytes())?;
            }
            rest = characters.as_str();
        }
        self.inner.write_all(rest.as_bytes())
    }
}

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let text = if self.partial.is_empty() {
            bytes
        } else {
            joined = [&mem::take(&mut self.partial), bytes].concat();
            &joined
        };
        for chunk in text.utf8_chunks() {
            self.write_text(chunk.valid())?;
            let invalid = chunk.invalid();
            match str::from_utf8(invalid) {
                Err(error) if error.error_len().is_none() => self.partial = invalid.to_vec(),
                _ if invalid.is_empty() => {}
                _ => self.inner.write_all("\u{fffd}".as_bytes())?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_but_for_ends_of_lines_and_tabs() {
        let text = "é\t\u{1b}[2J\u{9b}1A\r\n\u{202e}犬\u{7f}\n";
        for size in 1..=text.len() {
            let mut printed = Vec::new();
            let mut printable = Printable::text(&mut printed);
            for piece in text.as_bytes().chunks(size) {
                printable.write_all(piece).unwrap();
            }
            assert_eq!(
                String::from_utf8(printed).unwrap(),
                "é\t\\u{1b}[2J\\u{9b}1A\\r\n\\u{202e}犬\\u{7f}\n",
                "pieces of {size} bytes"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut printed = Vec::new();
        Printable::text(&mut printed)
            .write_all(b"a\x9b31m\xffb\n")
            .unwrap();
        assert_eq!(String::from_utf8(printed).unwrap(), "a\u{fffd}31m\u{fffd}b\n");
    }

    #[test]
    fn json_is_the_same_for_programs() {
        let names = ["\u{1b}]0;x\u{7}", "\u{9b}\u{7f}", "a\nb\u{2028}\u{202e}", "dog é"];
        let mut printed = Vec::new();
        serde_json::to_writer_pretty(Printable::json(&mut printed), &names).unwrap();
        let text = str::from_utf8(&printed).unwrap();
        assert!(
            !text
                .chars()
                .any(|character| is_control(character) && character != '\n'),
            "{text:?}"
        );
        let read: Vec<String> = serde_json::from_slice(&printed).unwrap();
        assert_eq!(read, names);
    }
}
