//! Pages of the codec LZ4 as Hadoop writes them: blocks of one or more chunks, each of which is an LZ4 block.
//!
//! Parquet's decoder fails on most pages of several chunks (`try_decompress_hadoop` stops if no more bytes are left than the
//! previous chunk had). So their chunks are merged into one before the decoder reads them. A page keeps its offset and its
//! length, since the page index and the footer contain them: an unknown field in its header fills the saved bytes.

use std::ops::Range;

use super::thrift::BINARY;

/// Size of the prefix of a block of one chunk: the decompressed size and the stored size.
const PREFIX_BYTES: usize = 8;
/// Upper bound (exclusive) of the filler in a header: its length is a varint of three bytes.
const FILLER_LIMIT_BYTES: usize = 1 << 21;
/// Header of a binary field whose id is 15 more than the last one, so beyond the eight fields of a page header.
const FILLER: u8 = 15 << 4 | BINARY;
/// Shortest match of LZ4. The stored length of a match is the excess over it.
const MIN_MATCH: usize = 4;
/// Value of half a token when further bytes of the length follow.
const LONG_LENGTH: usize = 15;

/// A page and the layout of its parts.
#[derive(Debug)]
pub(super) struct Lz4Page<'a> {
    /// The whole page, with its header.
    pub(super) bytes: &'a [u8],
    /// Range of the header's field that has the stored size of the page without its header.
    pub(super) stored_bytes_field: Range<usize>,
    pub(super) header_bytes: usize,
    /// Size of the uncompressed levels before the chunks.
    pub(super) levels_bytes: usize,
    /// Decompressed size of the chunks.
    pub(super) values_bytes: usize,
}

impl Lz4Page<'_> {
    /// The page with its chunks merged into one.
    ///
    /// `None` if it has one chunk or is not in Hadoop's format: the decoder reads or rejects it.
    pub(super) fn merge_chunks(&self) -> Option<Vec<u8>> {
        let compressed = self
            .bytes
            .get(self.header_bytes.checked_add(self.levels_bytes)?..)?;
        let chunk = merge(compressed, self.values_bytes)?;
        let saved = compressed.len().checked_sub(PREFIX_BYTES + chunk.len())?;
        // The filler's field header takes one byte, and its length three.
        let filler = saved
            .checked_sub(4)
            .filter(|filler| *filler < FILLER_LIMIT_BYTES)?;
        let stored_bytes = u64::try_from(self.bytes.len() - self.header_bytes - saved).ok()?;
        let mut page = Vec::with_capacity(self.bytes.len());
        page.extend_from_slice(self.bytes.get(..self.stored_bytes_field.start)?);
        // Zigzag encoding has the sign in the lowest bit.
        write_varint(&mut page, stored_bytes << 1, self.stored_bytes_field.len())?;
        let end = self.header_bytes.checked_sub(1)?;
        page.extend_from_slice(self.bytes.get(self.stored_bytes_field.end..end)?);
        page.push(FILLER);
        write_varint(&mut page, u64::try_from(filler).ok()?, 3)?;
        page.resize(page.len() + filler, 0);
        page.push(0);
        let levels = self.header_bytes..self.header_bytes + self.levels_bytes;
        page.extend_from_slice(self.bytes.get(levels)?);
        page.extend_from_slice(&u32::try_from(self.values_bytes).ok()?.to_be_bytes());
        page.extend_from_slice(&u32::try_from(chunk.len()).ok()?.to_be_bytes());
        page.extend_from_slice(&chunk);
        (page.len() == self.bytes.len()).then_some(page)
    }
}

/// Writes a number as a varint of exactly `bytes` bytes, even if it requires fewer.
fn write_varint(out: &mut Vec<u8>, mut number: u64, bytes: usize) -> Option<()> {
    for position in 1..=bytes {
        let continuation = if position < bytes { 0x80 } else { 0 };
        out.push(u8::try_from(number & 0x7f).ok()? | continuation);
        number >>= 7;
    }
    (number == 0).then_some(())
}

/// Merges the chunks of all blocks into one. `None` if there is one chunk, or if the chunks do not decompress to exactly
/// `uncompressed_bytes`.
fn merge(mut blocks: &[u8], uncompressed_bytes: usize) -> Option<Vec<u8>> {
    let first_chunk_bytes = blocks.get(4..8).and_then(big_endian)?;
    if first_chunk_bytes.checked_add(PREFIX_BYTES)? >= blocks.len() {
        return None;
    }
    let (mut merged, mut literals) = (Vec::with_capacity(blocks.len()), Vec::new());
    let mut total = 0_usize;
    while !blocks.is_empty() {
        let (block_bytes, mut rest) = split_length(blocks)?;
        let mut produced = 0;
        while produced < block_bytes {
            let (length, chunks) = split_length(rest)?;
            let chunk = chunks.get(..length)?;
            rest = &chunks[length..];
            produced += append_chunk(chunk, block_bytes - produced, &mut literals, &mut merged)?;
        }
        total = total
            .checked_add(produced)
            .filter(|total| *total <= uncompressed_bytes)?;
        blocks = rest;
    }
    write_sequence(&literals, None, &mut merged);
    (total == uncompressed_bytes).then_some(merged)
}

/// The number in the first four bytes, and the rest.
fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_at_checked(4)?;
    Some((big_endian(first)?, rest))
}

fn big_endian(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(bytes.try_into().ok()?)).ok()
}

/// Appends the sequences of a chunk to `out`. The first one begins with `literals`, the last literals of the previous chunk;
/// the last literals of this chunk are left in it. Returns the decompressed size of the chunk, at most `max_bytes`.
fn append_chunk(
    mut chunk: &[u8],
    max_bytes: usize,
    literals: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let mut produced = 0_usize;
    while let Some((token, rest)) = chunk.split_first() {
        let (length, rest) = read_length(usize::from(token >> 4), rest)?;
        let (copied, rest) = rest.split_at_checked(length)?;
        literals.extend_from_slice(copied);
        produced = produced.checked_add(length)?;
        chunk = rest;
        if !rest.is_empty() {
            let (offset, rest) = rest.split_first_chunk::<2>()?;
            let (length, rest) = read_length(usize::from(token & 0x0f), rest)?;
            let distance = usize::from(u16::from_le_bytes(*offset));
            // A match refers to the output of the same chunk.
            (1..=produced).contains(&distance).then_some(())?;
            write_sequence(
                literals,
                Some(Match {
                    offset: *offset,
                    length,
                }),
                out,
            );
            literals.clear();
            produced = produced.checked_add(length)?.checked_add(MIN_MATCH)?;
            chunk = rest;
        }
        (produced <= max_bytes).then_some(())?;
    }
    (produced > 0).then_some(produced)
}

/// Reads a length whose first part, `first`, is half a token.
fn read_length(first: usize, mut bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = first;
    if first == LONG_LENGTH {
        loop {
            let (next, rest) = bytes.split_first()?;
            length = length.checked_add(usize::from(*next))?;
            bytes = rest;
            if *next < u8::MAX {
                break;
            }
        }
    }
    Some((length, bytes))
}

/// A match of LZ4.
#[derive(Clone, Copy)]
struct Match {
    /// Distance to the repeated bytes, little-endian.
    offset: [u8; 2],
    /// Length in excess of `MIN_MATCH`.
    length: usize,
}

/// Writes literals and the match after them.
fn write_sequence(literals: &[u8], repeated: Option<Match>, out: &mut Vec<u8>) {
    let half_token = |length: usize| u8::try_from(length.min(LONG_LENGTH)).unwrap_or_default();
    let write_rest = |length: usize, out: &mut Vec<u8>| {
        if let Some(mut rest) = length.checked_sub(LONG_LENGTH) {
            while rest >= 255 {
                out.push(255);
                rest -= 255;
            }
            out.push(u8::try_from(rest).unwrap_or_default());
        }
    };
    let match_half = repeated.map_or(0, |repeated| half_token(repeated.length));
    out.push(half_token(literals.len()) << 4 | match_half);
    write_rest(literals.len(), out);
    out.extend_from_slice(literals);
    if let Some(Match { offset, length }) = repeated {
        out.extend_from_slice(&offset);
        write_rest(length, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompress(chunk: &[u8]) -> Vec<u8> {
        let (mut rest, mut out) = (chunk, Vec::new());
        while let Some((token, after)) = rest.split_first() {
            let (literals, after) = read_length(usize::from(token >> 4), after).unwrap();
            out.extend_from_slice(&after[..literals]);
            rest = &after[literals..];
            if let Some((offset, after)) = rest.split_first_chunk::<2>() {
                let (more, after) = read_length(usize::from(token & 15), after).unwrap();
                let from = out.len() - usize::from(u16::from_le_bytes(*offset));
                (from..from + more + MIN_MATCH).for_each(|place| out.push(out[place]));
                rest = after;
            }
        }
        out
    }

    /// A chunk of `literals` literals, the last four of which it repeats `repeats` times.
    fn chunk(literals: usize, repeats: usize) -> Vec<u8> {
        let bytes: Vec<_> = (0..literals)
            .map(|byte| u8::try_from(byte % 251).unwrap())
            .collect();
        let mut chunk = Vec::new();
        if repeats > 0 {
            let repeated = Match {
                offset: [u8::try_from(literals.min(4)).unwrap(), 0],
                length: repeats * 4 - MIN_MATCH,
            };
            write_sequence(&bytes, Some(repeated), &mut chunk);
            write_sequence(b"end", None, &mut chunk);
        } else {
            write_sequence(&bytes, None, &mut chunk);
        }
        chunk
    }

    fn big_endian_bytes(number: usize) -> [u8; 4] {
        u32::try_from(number).unwrap().to_be_bytes()
    }

    fn block(chunks: &[Vec<u8>]) -> Vec<u8> {
        let size: usize = chunks.iter().map(|chunk| decompress(chunk).len()).sum();
        let chunks = chunks
            .iter()
            .flat_map(|chunk| [&big_endian_bytes(chunk.len())[..], chunk].concat());
        big_endian_bytes(size).into_iter().chain(chunks).collect()
    }

    #[test]
    fn merged_chunks_take_no_more_bytes() {
        for first in [1, 14, 15, 16, 269, 270, 271, 1000] {
            for (repeats, second) in [(0, 1), (0, 254), (1, 15), (5, 270), (400, 600), (0, 15)] {
                let chunks = [chunk(first, repeats), chunk(second, 3), chunk(4, 0)];
                let expected: Vec<_> = chunks.iter().flat_map(|chunk| decompress(chunk)).collect();
                for blocks in [
                    chunks
                        .each_ref()
                        .map(|chunk| block(std::slice::from_ref(chunk)))
                        .concat(),
                    block(&chunks),
                ] {
                    let merged = merge(&blocks, expected.len()).unwrap();
                    assert_eq!(decompress(&merged), expected, "{first} {repeats} {second}");
                    assert!(merged.len() + PREFIX_BYTES + 4 <= blocks.len());
                    assert_eq!(merge(&blocks, expected.len() + 1), None);
                    assert_eq!(merge(&blocks, expected.len() - 1), None);
                    for cut in 0..blocks.len() {
                        assert_eq!(merge(&blocks[..cut], expected.len()), None, "cut at {cut}");
                    }
                }
            }
        }
    }

    #[test]
    fn matches_beyond_their_chunk_are_rejected() {
        let mut far = Vec::new();
        let repeated = Match {
            offset: [5, 0],
            length: 0,
        };
        write_sequence(b"abcd", Some(repeated), &mut far);
        write_sequence(b"end", None, &mut far);
        let mut blocks = block(&[chunk(40, 0)]);
        blocks.extend([&big_endian_bytes(11), &big_endian_bytes(far.len()), &far[..]].concat());
        assert_eq!(merge(&blocks, 51), None);
        let near = far
            .iter()
            .map(|byte| if *byte == 5 { 4 } else { *byte })
            .collect::<Vec<_>>();
        let blocks = [block(&[chunk(40, 0)]), block(&[near])].concat();
        assert!(merge(&blocks, 51).is_some());
    }

    #[test]
    fn a_page_keeps_its_length() {
        let chunks = [block(&[chunk(300, 0)]), block(&[chunk(20, 2)])].concat();
        let size = 300 + 31;
        // The kind, the decompressed size, the stored size and an unknown field.
        let mut header = vec![0x15, 0, 0x15];
        write_varint(&mut header, 2 * (size + 2), 2).unwrap();
        header.push(0x15);
        let stored_bytes_field = header.len()..header.len() + 2;
        write_varint(&mut header, 2 * u64::try_from(chunks.len() + 2).unwrap(), 2).unwrap();
        header.extend([0x18, 1, b'x', 0]);
        let bytes = [&header[..], b"lv", &chunks].concat();
        let page = Lz4Page {
            bytes: &bytes,
            stored_bytes_field,
            header_bytes: header.len(),
            levels_bytes: 2,
            values_bytes: usize::try_from(size).unwrap(),
        };
        let merged = page.merge_chunks().unwrap();
        assert_eq!(merged.len(), bytes.len());
        let body = merged.windows(2).position(|pair| pair == b"lv").unwrap() + 2;
        let (length, chunk) = split_length(&merged[body + 4..]).unwrap();
        assert_eq!(length, chunk.len());
        assert_eq!(decompress(chunk).len(), 331);
    }
}
