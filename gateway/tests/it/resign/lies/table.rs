//! What can be wrong with the body of an upload.

use pushdown_testkit::Payload;

/// Changes the encoded body of a signed request. `None` if there is nothing to change.
pub(super) type Change = fn(&mut [u8]) -> Option<()>;

/// A body that is not what was signed, and its answer.
pub(super) struct Lie {
    pub(super) name: &'static str,
    pub(super) payload: Payload,
    pub(super) change: Change,
    pub(super) status: u16,
    /// Empty if only the store can tell, by a code of its own.
    pub(super) code: &'static str,
}

pub(super) const LIES: [Lie; 16] = [
    Lie {
        name: "another last byte",
        payload: Payload::Signed,
        change: |body| {
            let end = body.len();
            change_before(body, end)
        },
        status: 400,
        code: "XAmzContentSHA256Mismatch",
    },
    Lie {
        name: "another body",
        payload: Payload::Signed,
        change: |body| {
            body.fill(7);
            Some(())
        },
        status: 400,
        code: "XAmzContentSHA256Mismatch",
    },
    chunk_lie("another last byte", Payload::Chunks, change_last_byte),
    chunk_lie("another last byte", Payload::ChunksAndTrailer, change_last_byte),
    chunk_lie("another first byte", Payload::Chunks, change_first_byte),
    chunk_lie("another first byte", Payload::ChunksAndTrailer, change_first_byte),
    chunk_lie("another signature of the final chunk", Payload::Chunks, |body| {
        change_digit(body, ";chunk-signature=")
    }),
    chunk_lie(
        "another signature of the final chunk",
        Payload::ChunksAndTrailer,
        |body| change_digit(body, ";chunk-signature="),
    ),
    chunk_lie("another trailer", Payload::ChunksAndTrailer, change_trailer),
    chunk_lie(
        "another signature of the trailer",
        Payload::ChunksAndTrailer,
        |body| change_digit(body, "x-amz-trailer-signature:"),
    ),
    Lie {
        name: "another trailer",
        payload: Payload::Trailer,
        change: change_trailer,
        status: 400,
        code: "",
    },
    trailer_name_lie(Payload::ChunksAndTrailer),
    trailer_name_lie(Payload::Trailer),
    cut_lie(Payload::Chunks),
    cut_lie(Payload::ChunksAndTrailer),
    cut_lie(Payload::Trailer),
];

/// A lie that breaks the signature of a chunk or of the trailer.
const fn chunk_lie(name: &'static str, payload: Payload, change: Change) -> Lie {
    Lie {
        name,
        payload,
        change,
        status: 403,
        code: "SignatureDoesNotMatch",
    }
}

const fn trailer_name_lie(payload: Payload) -> Lie {
    Lie {
        name: "a trailer that the head does not declare",
        payload,
        change: |body| {
            let end = end_of(body, "x-amz-checksum-crc32:")?;
            *body.get_mut(end - 2)? = b'3';
            Some(())
        },
        status: 400,
        code: "MalformedTrailerError",
    }
}

/// The last chunk declares more bytes than follow.
const fn cut_lie(payload: Payload) -> Lie {
    Lie {
        name: "a body cut short within its last chunk",
        payload,
        change: |body| {
            let end = end_of(body, "\r\n1171")?;
            body.get_mut(end - 4..end)?.copy_from_slice(b"ffff");
            Some(())
        },
        status: 400,
        code: "IncompleteBody",
    }
}

/// The position after the last occurrence of `mark`.
fn end_of(body: &[u8], mark: &str) -> Option<usize> {
    let start = body
        .windows(mark.len())
        .rposition(|window| window == mark.as_bytes())?;
    Some(start + mark.len())
}

/// Changes the byte before `end`.
fn change_before(body: &mut [u8], end: usize) -> Option<()> {
    *body.get_mut(end.checked_sub(1)?)? ^= 1;
    Some(())
}

/// Changes the last byte of data in a chunked body.
fn change_last_byte(body: &mut [u8]) -> Option<()> {
    let mark = "\r\n0;chunk-signature=";
    let end = end_of(body, mark)?;
    change_before(body, end - mark.len())
}

/// Changes the first byte of data in a body of signed chunks: its first line ends with 64 digits, CR and LF.
fn change_first_byte(body: &mut [u8]) -> Option<()> {
    let start = "2000;chunk-signature=".len() + 66;
    change_before(body, start + 1)
}

fn change_trailer(body: &mut [u8]) -> Option<()> {
    change_digit(body, "x-amz-checksum-crc32:")
}

/// Replaces the first digit after `mark`, of a number in hex or base64.
fn change_digit(body: &mut [u8], mark: &str) -> Option<()> {
    let at = end_of(body, mark)?;
    let digit = body.get_mut(at)?;
    *digit = if *digit == b'0' { b'1' } else { b'0' };
    Some(())
}
