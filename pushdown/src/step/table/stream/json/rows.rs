//! Where rows of JSON lines end: at the bracket that closes the first one, or, of what is no object, with the line.

/// Looks for the end of a row, in one piece of the text after the other.
#[derive(Debug, Default)]
pub(super) struct Rows {
    state: State,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// Before a row.
    #[default]
    Between,
    /// Inside of so many brackets.
    Inside(usize),
    /// In a string inside of so many brackets.
    Quoted(usize),
    /// After a backslash in a string.
    Escaped(usize),
    /// In what is no object.
    Line,
}

impl Rows {
    /// Whether the text so far ends between two rows.
    pub(super) const fn is_between(&self) -> bool {
        matches!(self.state, State::Between)
    }

    /// How many bytes of `text`, which goes on where the last one ended, belong to the row or are space before it, and
    /// whether the row ends with them.
    pub(super) fn next(&mut self, text: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            if let State::Quoted(depth) = self.state {
                let Some(place) = memchr::memchr2(b'"', b'\\', &text[at..]) else {
                    break;
                };
                let is_end = text[at + place] == b'"';
                at += place + 1;
                self.state = if is_end {
                    State::Inside(depth)
                } else {
                    State::Escaped(depth)
                };
                continue;
            }
            at += 1;
            self.state = match (self.state, byte) {
                (State::Between, b' ' | b'\t' | b'\r' | b'\n') => State::Between,
                (State::Between, b'{' | b'[') => State::Inside(1),
                (State::Between, _) => State::Line,
                (State::Inside(depth), b'"') | (State::Escaped(depth), _) => State::Quoted(depth),
                (State::Inside(depth), b'{' | b'[') => State::Inside(depth + 1),
                (State::Inside(1), b'}' | b']') | (State::Line, b'\n') => {
                    self.state = State::Between;
                    return (at, true);
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
    fn rows_end_at_their_brackets_in_pieces_of_any_length() {
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
            let (mut rows, mut found, mut row) = (Rows::default(), Vec::new(), Vec::new());
            for mut piece in text.chunks(length) {
                while !piece.is_empty() {
                    let (taken, is_end) = rows.next(piece);
                    row.extend_from_slice(&piece[..taken]);
                    piece = &piece[taken..];
                    if is_end {
                        found.push(String::from_utf8(std::mem::take(&mut row)).unwrap());
                    }
                }
            }
            assert!(!rows.is_between());
            found.push(String::from_utf8(row).unwrap());
            let found: Vec<_> = found.iter().map(|row| row.trim()).collect();
            assert_eq!(found, expected, "{length}");
        }
    }
}
