//! Text of others, made safe for a terminal and for a log.

use std::fmt::{self, Write as _};

/// Text on one line, with all non-printable characters escaped.
///
/// Names, headers and error documents come from stores, gateways and callers. Characters that end a line, control a terminal or reorder text
/// are escaped as in Rust, so that they cannot forge lines or hide text. All others stay, and escaping twice changes nothing.
#[derive(Debug)]
pub struct Escaped<T>(pub T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaper(f), "{}", self.0)
    }
}

struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_control) {
            self.0.write_str(&rest[..at])?;
            let mut characters = rest[at..].chars();
            if let Some(character) = characters.next() {
                write!(self.0, "{}", character.escape_default())?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

/// Whether a character is a control character, a Unicode line or paragraph separator, or a Unicode mark of text direction. All of them have
/// at most 16 bits.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_are_escaped() {
        for (text, escaped) in [
            ("train/dog é 犬 👩‍🚀.jpg", "train/dog é 犬 👩‍🚀.jpg"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("a\r\n\tb\0\u{7f}", r"a\r\n\tb\u{0}\u{7f}"),
            ("\u{80}\u{9b}31m\u{9f}\u{a0}", "\\u{80}\\u{9b}31m\\u{9f}\u{a0}"),
            (
                "\u{202a}\u{202e}\u{2066}\u{2069}",
                r"\u{202a}\u{202e}\u{2066}\u{2069}",
            ),
            (
                "\u{2028}\u{2029}\u{61c}\u{200f}",
                r"\u{2028}\u{2029}\u{61c}\u{200f}",
            ),
            ("C:\\x \\u{1b}", "C:\\x \\u{1b}"),
        ] {
            assert_eq!(Escaped(text).to_string(), escaped);
            assert_eq!(Escaped(Escaped(text)).to_string(), escaped);
        }
    }
}
