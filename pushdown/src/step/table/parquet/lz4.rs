//! Pages of the codec LZ4 as Hadoop writes them: blocks of one chunk or more, each an LZ4 block of its own.
//!
//! Parquet's decoder gives up on most pages of several chunks (`try_decompress_hadoop` stops where no more bytes are left than
//! the chunk before had). So their chunks are joined to one before it sees them. A page keeps its place and its length, which
//! the page index and the footer name: what joining saves is filled by a field of its header that no reader knows.

use std::ops::Range;

use super::thrift::BINARY;

/// What a chunk that is alone in its block starts with: the bytes that it inflates to, and its length.
const PREFIX: usize = 8;
/// The most bytes that fill a header: their number takes three bytes of seven bits.
const MOST_FILLED: usize = 1 << 21;
/// A field of bytes whose number is 15 more than that of the last one, beyond the eight that a header has.
const FILLER: u8 = 15 << 4 | BINARY;
/// The shortest match of LZ4: what is stored of a length is what goes beyond it.
const MIN_MATCH: usize = 4;
/// What a half of a token holds of a length, where more bytes of it follow.
const MORE: usize = 15;

/// Where the parts of a page are that joining its chunks changes.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// The whole page, with its header.
    pub(super) bytes: &'a [u8],
    /// The header's field of the length of what follows the header.
    pub(super) stored: Range<usize>,
    /// Where the header ends.
    pub(super) header: usize,
    /// Levels before the chunks, which are stored as they are.
    pub(super) levels: usize,
    /// Bytes that the chunks inflate to.
    pub(super) inflated: usize,
}

impl Page<'_> {
    /// The same page of one chunk, where it has several.
    ///
    /// `None` where it has one or is no page of Hadoop's: the decoder reads it, or tells what is wrong with it.
    pub(super) fn joined(&self) -> Option<Vec<u8>> {
        let compressed = self.bytes.get(self.header.checked_add(self.levels)?..)?;
        let chunk = join(compressed, self.inflated)?;
        let filled = compressed.len().checked_sub(PREFIX + chunk.len())?;
        // A field's kind, and three bytes of its length.
        let filler = filled.checked_sub(4).filter(|filler| *filler < MOST_FILLED)?;
        let stored = u64::try_from(self.bytes.len() - self.header - filled).ok()?;
        let mut page = Vec::with_capacity(self.bytes.len());
        page.extend_from_slice(self.bytes.get(..self.stored.start)?);
        // Its sign is in the lowest bit.
        varint(&mut page, stored << 1, self.stored.len())?;
        let end = self.header.checked_sub(1)?;
        page.extend_from_slice(self.bytes.get(self.stored.end..end)?);
        page.push(FILLER);
        varint(&mut page, u64::try_from(filler).ok()?, 3)?;
        page.resize(page.len() + filler, 0);
        page.push(0);
        page.extend_from_slice(self.bytes.get(self.header..self.header + self.levels)?);
        page.extend_from_slice(&u32::try_from(self.inflated).ok()?.to_be_bytes());
        page.extend_from_slice(&u32::try_from(chunk.len()).ok()?.to_be_bytes());
        page.extend_from_slice(&chunk);
        (page.len() == self.bytes.len()).then_some(page)
    }
}

/// A number in so many bytes, be they more than it takes.
fn varint(out: &mut Vec<u8>, mut number: u64, bytes: usize) -> Option<()> {
    for place in 1..=bytes {
        let more = if place < bytes { 0x80 } else { 0 };
        out.push(u8::try_from(number & 0x7f).ok()? | more);
        number >>= 7;
    }
    (number == 0).then_some(())
}

/// The chunks of all blocks as one, where there are several and they inflate to so many bytes together.
fn join(mut blocks: &[u8], inflated: usize) -> Option<Vec<u8>> {
    let first = blocks.get(4..8).and_then(number)?;
    if first.checked_add(PREFIX)? >= blocks.len() {
        return None;
    }
    let (mut joined, mut literals) = (Vec::with_capacity(blocks.len()), Vec::new());
    let mut all = 0_usize;
    while !blocks.is_empty() {
        let (size, mut rest) = cut(blocks)?;
        let mut made = 0;
        while made < size {
            let (length, chunks) = cut(rest)?;
            let chunk = chunks.get(..length)?;
            rest = &chunks[length..];
            made += sequences(chunk, size - made, &mut literals, &mut joined)?;
        }
        all = all.checked_add(made).filter(|all| *all <= inflated)?;
        blocks = rest;
    }
    sequence(&literals, None, &mut joined);
    (all == inflated).then_some(joined)
}

/// The number in the first four bytes, and what follows.
fn cut(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_at_checked(4)?;
    Some((number(first)?, rest))
}

fn number(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(bytes.try_into().ok()?)).ok()
}

/// Appends the sequences of a chunk, which begin with those `literals` that are left of the chunk before, and leaves its own
/// last ones. Gives the bytes that it inflates to, at most so many.
fn sequences(mut chunk: &[u8], most: usize, literals: &mut Vec<u8>, out: &mut Vec<u8>) -> Option<usize> {
    let mut made = 0_usize;
    while let Some((token, rest)) = chunk.split_first() {
        let (length, rest) = length(usize::from(token >> 4), rest)?;
        let (copied, rest) = rest.split_at_checked(length)?;
        literals.extend_from_slice(copied);
        made = made.checked_add(length)?;
        chunk = rest;
        if !rest.is_empty() {
            let (offset, rest) = rest.split_first_chunk::<2>()?;
            let (length, rest) = self::length(usize::from(token & 0x0f), rest)?;
            let distance = usize::from(u16::from_le_bytes(*offset));
            // It repeats what the same chunk has made.
            (1..=made).contains(&distance).then_some(())?;
            sequence(literals, Some((*offset, length)), out);
            literals.clear();
            made = made.checked_add(length)?.checked_add(MIN_MATCH)?;
            chunk = rest;
        }
        (made <= most).then_some(())?;
    }
    (made > 0).then_some(made)
}

/// A length that begins in half a token.
fn length(first: usize, mut bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = first;
    if first == MORE {
        loop {
            let (more, rest) = bytes.split_first()?;
            length = length.checked_add(usize::from(*more))?;
            bytes = rest;
            if *more < u8::MAX {
                break;
            }
        }
    }
    Some((length, bytes))
}

/// Appends literals, and what is repeated after them: from where, and how much beyond the least.
fn sequence(literals: &[u8], repeated: Option<([u8; 2], usize)>, out: &mut Vec<u8>) {
    let half = |length: usize| u8::try_from(length.min(MORE)).unwrap_or_default();
    let more = |length: usize, out: &mut Vec<u8>| {
        if let Some(mut more) = length.checked_sub(MORE) {
            while more >= 255 {
                out.push(255);
                more -= 255;
            }
            out.push(u8::try_from(more).unwrap_or_default());
        }
    };
    let repeats = repeated.map_or(0, |(_, length)| half(length));
    out.push(half(literals.len()) << 4 | repeats);
    more(literals.len(), out);
    out.extend_from_slice(literals);
    if let Some((offset, length)) = repeated {
        out.extend_from_slice(&offset);
        more(length, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a chunk inflates to.
    fn inflated(chunk: &[u8]) -> Vec<u8> {
        let (mut rest, mut out) = (chunk, Vec::new());
        while let Some((token, after)) = rest.split_first() {
            let (literals, after) = length(usize::from(token >> 4), after).unwrap();
            out.extend_from_slice(&after[..literals]);
            rest = &after[literals..];
            if let Some((offset, after)) = rest.split_first_chunk::<2>() {
                let (more, after) = length(usize::from(token & 15), after).unwrap();
                let from = out.len() - usize::from(u16::from_le_bytes(*offset));
                (from..from + more + MIN_MATCH).for_each(|place| out.push(out[place]));
                rest = after;
            }
        }
        out
    }

    /// A chunk of so many literals, the last four repeated so often.
    fn chunk(literals: usize, repeated: usize) -> Vec<u8> {
        let bytes: Vec<_> = (0..literals)
            .map(|byte| u8::try_from(byte % 251).unwrap())
            .collect();
        let mut chunk = Vec::new();
        if repeated > 0 {
            let offset = u8::try_from(literals.min(4)).unwrap();
            sequence(&bytes, Some(([offset, 0], repeated * 4 - MIN_MATCH)), &mut chunk);
            sequence(b"end", None, &mut chunk);
        } else {
            sequence(&bytes, None, &mut chunk);
        }
        chunk
    }

    fn big(number: usize) -> [u8; 4] {
        u32::try_from(number).unwrap().to_be_bytes()
    }

    fn block(chunks: &[Vec<u8>]) -> Vec<u8> {
        let size: usize = chunks.iter().map(|chunk| inflated(chunk).len()).sum();
        let chunks = chunks
            .iter()
            .flat_map(|chunk| [&big(chunk.len())[..], chunk].concat());
        big(size).into_iter().chain(chunks).collect()
    }

    #[test]
    fn chunks_become_one_that_takes_no_more() {
        for first in [1, 14, 15, 16, 269, 270, 271, 1000] {
            for (repeated, second) in [(0, 1), (0, 254), (1, 15), (5, 270), (400, 600), (0, 15)] {
                let chunks = [chunk(first, repeated), chunk(second, 3), chunk(4, 0)];
                let expected: Vec<_> = chunks.iter().flat_map(|chunk| inflated(chunk)).collect();
                for blocks in [
                    chunks
                        .each_ref()
                        .map(|chunk| block(std::slice::from_ref(chunk)))
                        .concat(),
                    block(&chunks),
                ] {
                    let joined = join(&blocks, expected.len()).unwrap();
                    assert_eq!(inflated(&joined), expected, "{first} {repeated} {second}");
                    assert!(joined.len() + PREFIX + 4 <= blocks.len());
                    assert_eq!(join(&blocks, expected.len() + 1), None);
                    assert_eq!(join(&blocks, expected.len() - 1), None);
                    for cut in 0..blocks.len() {
                        assert_eq!(join(&blocks[..cut], expected.len()), None, "cut at {cut}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_no_chunk_has_made_is_not_repeated() {
        let mut far = Vec::new();
        sequence(b"abcd", Some(([5, 0], 0)), &mut far);
        sequence(b"end", None, &mut far);
        let mut blocks = block(&[chunk(40, 0)]);
        blocks.extend([&big(11), &big(far.len()), &far[..]].concat());
        assert_eq!(join(&blocks, 51), None);
        let near = far
            .iter()
            .map(|byte| if *byte == 5 { 4 } else { *byte })
            .collect::<Vec<_>>();
        let blocks = [block(&[chunk(40, 0)]), block(&[near])].concat();
        assert!(join(&blocks, 51).is_some());
    }

    #[test]
    fn a_page_keeps_its_length() {
        let chunks = [block(&[chunk(300, 0)]), block(&[chunk(20, 2)])].concat();
        let size = 300 + 31;
        // Its kind, the bytes that it inflates to, the length of what follows, and a field that is passed over.
        let mut header = vec![0x15, 0, 0x15];
        varint(&mut header, 2 * (size + 2), 2).unwrap();
        header.push(0x15);
        let stored = header.len()..header.len() + 2;
        varint(&mut header, 2 * u64::try_from(chunks.len() + 2).unwrap(), 2).unwrap();
        header.extend([0x18, 1, b'x', 0]);
        let bytes = [&header[..], b"lv", &chunks].concat();
        let page = Page {
            bytes: &bytes,
            stored,
            header: header.len(),
            levels: 2,
            inflated: usize::try_from(size).unwrap(),
        };
        let joined = page.joined().unwrap();
        assert_eq!(joined.len(), bytes.len());
        let body = joined.windows(2).position(|pair| pair == b"lv").unwrap() + 2;
        let (length, chunk) = cut(&joined[body + 4..]).unwrap();
        assert_eq!(length, chunk.len());
        assert_eq!(inflated(chunk).len(), 331);
    }
}
