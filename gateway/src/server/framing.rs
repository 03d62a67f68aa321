//! Follows the requests in the bytes that a client sends: where each head ends, and where its body.
//!
//! hyper reads a request with both `Content-Length` and `Transfer-Encoding` as chunked, and drops the length before a handler can
//! see it. A proxy that goes by the length would see another request there (RFC 9112, section 6.1).

/// Bytes of a line that are looked at. A framing header that is longer is ambiguous.
const MAX_LINE_BYTES: usize = 128;

/// The requests of one connection, as far as they have arrived.
#[derive(Debug, Default)]
pub(super) struct Framing {
    position: Position,
    /// The beginning of the line that is arriving.
    line: Vec<u8>,
    head: Head,
    /// Heads that have arrived.
    heads: u64,
    first_ambiguous: Option<u64>,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Position {
    /// The empty lines that may precede a request line, or that line.
    #[default]
    RequestLine,
    Header,
    /// The number of bytes of the body that have not arrived.
    Body(u64),
    ChunkSize,
    /// The number of bytes of the chunk that have not arrived.
    Chunk(u64),
    ChunkEnd,
    Trailer,
    /// After bytes that are not HTTP, and after an ambiguous head.
    Unknown,
}

/// The framing headers of a head.
#[derive(Debug, Clone, Copy, Default)]
struct Head {
    has_encoding: bool,
    has_length: bool,
    /// Of its last `Content-Length`.
    length: u64,
    is_ambiguous: bool,
}

impl Framing {
    /// Follows the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match &mut self.position {
                Position::Unknown => return,
                Position::Body(left) | Position::Chunk(left) => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= count as u64;
                    let is_complete = *left == 0;
                    if is_complete {
                        self.position = match self.position {
                            Position::Chunk(_) => Position::ChunkEnd,
                            _ => Position::RequestLine,
                        };
                    }
                    &bytes[count..]
                }
                _ => self.feed_line(bytes),
            };
        }
    }

    /// Whether the body of the last request is incomplete.
    pub(super) fn is_in_body(&self) -> bool {
        !matches!(
            self.position,
            Position::RequestLine | Position::Header | Position::Unknown
        )
    }

    /// The number of requests before the first one whose end is ambiguous.
    pub(super) fn first_ambiguous(&self) -> Option<u64> {
        self.first_ambiguous
    }

    /// Takes a line, or the part of it that has arrived, and returns the bytes after it.
    fn feed_line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        let room = MAX_LINE_BYTES - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
        if end.is_none() {
            return rest;
        }
        let mut line = std::mem::take(&mut self.line);
        self.end_line(line.strip_suffix(b"\r").unwrap_or(&line));
        // Its memory is used again.
        line.clear();
        self.line = line;
        &rest[1..]
    }

    fn end_line(&mut self, line: &[u8]) {
        self.position = match self.position {
            Position::RequestLine | Position::Trailer if line.is_empty() => Position::RequestLine,
            Position::RequestLine => {
                self.head = Head::default();
                Position::Header
            }
            Position::Header if line.is_empty() => self.end_head(),
            Position::Header => {
                self.head.add(line);
                Position::Header
            }
            Position::ChunkSize => match chunk_size(line) {
                Some(0) => Position::Trailer,
                Some(size) => Position::Chunk(size),
                None => self.lose(),
            },
            Position::ChunkEnd if line.is_empty() => Position::ChunkSize,
            Position::Trailer => Position::Trailer,
            _ => self.lose(),
        };
    }

    fn end_head(&mut self) -> Position {
        let head = self.head;
        if head.is_ambiguous || (head.has_encoding && head.has_length) {
            return self.lose();
        }
        self.heads += 1;
        match head.length {
            _ if head.has_encoding => Position::ChunkSize,
            0 => Position::RequestLine,
            length => Position::Body(length),
        }
    }

    /// Gives up: the end of the next request, and so that of all later ones, is ambiguous.
    fn lose(&mut self) -> Position {
        self.first_ambiguous = Some(self.heads);
        Position::Unknown
    }
}

impl Head {
    /// Adds a header line.
    fn add(&mut self, line: &[u8]) {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.has_encoding = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let value = line.get(name.len() + 1..).unwrap_or_default();
            let length = number(value, 10).filter(|_| line.len() < MAX_LINE_BYTES);
            self.is_ambiguous |= self.has_length || length.is_none();
            self.has_length = true;
            self.length = length.unwrap_or_default();
        }
    }
}

/// The size in the line of a chunk, whose extensions do not matter.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    number(&line[..digits], 16)
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let digits = digits.trim_ascii();
    // `from_str_radix` would allow a sign.
    let is_number = digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u64::from_str_radix(text, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows these bytes in pieces of every size, which must not matter.
    fn follow(bytes: &str) -> Framing {
        let bytes = bytes.as_bytes();
        let mut framing = Framing::default();
        framing.feed(bytes);
        for size in 1..bytes.len() {
            let mut pieces = Framing::default();
            bytes.chunks(size).for_each(|piece| pieces.feed(piece));
            assert_eq!(
                (pieces.position, pieces.heads, pieces.first_ambiguous),
                (framing.position, framing.heads, framing.first_ambiguous),
                "in pieces of {size}"
            );
        }
        framing
    }

    #[test]
    fn the_end_of_each_body_is_found() {
        let framing = follow(
            "GET /a HTTP/1.1\r\nHost: g\r\n\r\n\
             PUT /b HTTP/1.1\r\ncontent-length:  5 \r\n\r\na\r\n\r\n\
             \r\n\r\nPUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
             a;size=1\r\nGET /\r\n\r\n1\r\n1\r\nx\r\n0\r\nContent-Length: 7\r\n\r\n\
             PUT /d HTTP/1.1\nContent-Length: 0\n\n\
             PUT /e HTTP/1.1\r\nContent-Length: 20\r\n\r\nContent-Length: 1\r\n",
        );
        assert_eq!((framing.heads, framing.first_ambiguous()), (5, None));
        assert_eq!(framing.position, Position::Body(1));
        assert!(framing.is_in_body());
    }

    #[test]
    fn a_request_waits_for_its_body_from_the_end_of_its_head() {
        for (bytes, is_in_body) in [
            ("", false),
            ("\r\n\r\n", false),
            ("PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r", false),
            ("PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", true),
            ("PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", false),
            ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", true),
            (
                "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
                true,
            ),
            (
                "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                false,
            ),
        ] {
            assert_eq!(follow(bytes).is_in_body(), is_in_body, "{bytes:?}");
        }
    }

    #[test]
    fn a_head_with_two_framings_is_ambiguous() {
        let length = "Content-Length: 5";
        let encoding = "Transfer-Encoding: chunked";
        for headers in [
            [length, encoding],
            [encoding, length],
            ["TRANSFER-ENCODING:chunked", "content-length:5"],
            [length, length],
            [length, "Content-Length: 6"],
            ["Content-Length: 5, 5", "Host: g"],
            ["Content-Length: +5", "Host: g"],
            ["Content-Length:", "Host: g"],
            ["Content-Length: 99999999999999999999", "Host: g"],
        ] {
            let [first, second] = headers;
            let request = format!("PUT / HTTP/1.1\r\n{first}\r\nA: b\r\n{second}\r\n\r\n");
            assert_eq!(follow(&request).first_ambiguous(), Some(0), "{headers:?}");
            let later = format!("GET / HTTP/1.1\r\n\r\n{request}{request}");
            assert_eq!(follow(&later).first_ambiguous(), Some(1), "{headers:?}");
        }
    }

    #[test]
    fn requests_after_bytes_that_are_no_chunk_are_ambiguous() {
        for chunks in ["x\r\n", "\r\n", "1\r\nxy\r\n", "11111111111111111\r\n"] {
            let request = format!("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
            let framing = follow(&request);
            assert_eq!(framing.first_ambiguous(), Some(1), "{chunks:?}");
            assert!(!framing.is_in_body());
        }
    }
}
