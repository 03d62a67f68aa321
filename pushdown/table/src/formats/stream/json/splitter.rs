//! Splits JSON lines into rows. A row ends at the bracket that closes its first one, or at the end of the line if it has none.

/// Finds the ends of rows in a text that is read in pieces.
#[derive(Debug, Default)]
pub(super) struct RowSplitter {
    state: State,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    BetweenRows,
    /// Inside of this number of brackets.
    Inside(usize),
    /// In a string inside of this number of brackets.
    Quoted(usize),
    /// After a backslash in a string inside of this number of brackets.
    Escaped(usize),
    /// In a row that does not start with a bracket.
    Line,
}

impl RowSplitter {
    /// Whether the text so far ends between two rows.
    pub(super) const fn is_between_rows(&self) -> bool {
        matches!(self.state, State::BetweenRows)
    }

    /// Reads the next piece of the text. Returns the number of its bytes that belong to the row or are space before it, and
    /// whether the row ends with them.
    pub(super) fn next(&mut self, text: &[u8]) -> (usize, bool) {
        let mut position = 0;
        while let Some(byte) = text.get(position) {
            if let State::Quoted(depth) = self.state {
                let Some(offset) = memchr::memchr2(b'"', b'\\', &text[position..]) else {
                    break;
                };
                let is_quote = text[position + offset] == b'"';
                position += offset + 1;
                self.state = if is_quote {
                    State::Inside(depth)
                } else {
                    State::Escaped(depth)
                };
                continue;
            }
            position += 1;
            self.state = match (self.state, byte) {
                (State::BetweenRows, b' ' | b'\t' | b'\r' | b'\n') => State::BetweenRows,
                (State::BetweenRows, b'{' | b'[') => State::Inside(1),
                (State::BetweenRows, _) => State::Line,
                (State::Inside(depth), b'"') | (State::Escaped(depth), _) => State::Quoted(depth),
                (State::Inside(depth), b'{' | b'[') => State::Inside(depth + 1),
                (State::Inside(1), b'}' | b']') | (State::Line, b'\n') => {
                    self.state = State::BetweenRows;
                    return (position, true);
                }
                (State::Inside(depth), b'}' | b']') => State::Inside(depth - 1),
                (state, _) => state,
            };
        }
        (text.len(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_at_their_closing_bracket_in_pieces_of_any_length() {
        let text = br#" {"a": "}\"]\\", "b": [{}, [1]]}{}
            nonsense {
            {"a": {
        "#;
        let expected = [
            "{\"a\": \"}\\\"]\\\\\", \"b\": [{}, [1]]}",
            "{}",
            "nonsense {",
            "{\"a\": {",
        ];
        for length in 1..=text.len() {
            let (mut splitter, mut rows, mut row) = (RowSplitter::default(), Vec::new(), Vec::new());
            for mut piece in text.chunks(length) {
                while !piece.is_empty() {
                    let (consumed, is_row_end) = splitter.next(piece);
                    row.extend_from_slice(&piece[..consumed]);
                    piece = &piece[consumed..];
                    if is_row_end {
                        rows.push(String::from_utf8(std::mem::take(&mut row)).unwrap());
                    }
                }
            }
            assert!(!splitter.is_between_rows());
            rows.push(String::from_utf8(row).unwrap());
            let rows: Vec<_> = rows.iter().map(|row| row.trim()).collect();
            assert_eq!(rows, expected, "{length}");
        }
    }
}
