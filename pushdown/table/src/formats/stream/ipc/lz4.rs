//! Bounds the decompressed size of an LZ4 frame without decompressing it (LZ4 frame format, 1.6). Arrow's reader decompresses the
//! whole frame, even if the buffer announces fewer bytes.

/// First bytes of a frame.
const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Flag of a frame: each block has a checksum.
const BLOCK_CHECKSUM: u8 = 0x10;
/// Flag of a frame: the header has the content size.
const CONTENT_SIZE: u8 = 0x08;
/// Flag of a frame: it ends with a checksum.
const CONTENT_CHECKSUM: u8 = 0x04;
/// Flag of a frame: the header has the id of a dictionary.
const DICTIONARY_ID: u8 = 0x01;
/// Bit of a block's length: the block is not compressed.
const UNCOMPRESSED: u32 = 1 << 31;

/// Bounds of a frame's decompressed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameSize {
    pub(super) max_bytes: u64,
    /// Maximum size of a block. The last block may be smaller than it.
    pub(super) block_bytes: u64,
}

/// The size of a frame. `None` if the bytes are not exactly one frame.
pub(super) fn frame_size(frame: &[u8]) -> Option<FrameSize> {
    let mut bytes = frame.strip_prefix(&MAGIC)?;
    let [flags, sizes] = *take(&mut bytes)?;
    let block_bytes = match (sizes >> 4) & 7 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4_u64 << 20,
        _ => return None,
    };
    let has = |flag: u8| flags & flag != 0;
    let header_bytes = 1 + if has(CONTENT_SIZE) { 8 } else { 0 } + if has(DICTIONARY_ID) { 4 } else { 0 };
    bytes = bytes.get(header_bytes..)?;
    let mut max_bytes = 0_u64;
    loop {
        let length = u32::from_le_bytes(*take(&mut bytes)?);
        if length == 0 {
            break;
        }
        let stored = usize::try_from(length & !UNCOMPRESSED)
            .ok()
            .filter(|stored| *stored > 0)?;
        bytes = bytes.get(stored + if has(BLOCK_CHECKSUM) { 4 } else { 0 }..)?;
        let decompressed = if length & UNCOMPRESSED == 0 {
            block_bytes
        } else {
            stored as u64
        };
        max_bytes = max_bytes.saturating_add(decompressed);
    }
    let padding = bytes.get(if has(CONTENT_CHECKSUM) { 4 } else { 0 }..)?;
    padding.iter().all(|byte| *byte == 0).then_some(FrameSize {
        max_bytes,
        block_bytes,
    })
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of at most 64 KiB: a compressed one of two bytes, and an uncompressed one of three.
    const FRAME: &[u8] = &[
        0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0, 2, 0, 0, 0, 1, 2, 3, 0, 0, 0x80, 1, 2, 3, 0, 0, 0, 0,
    ];

    #[test]
    fn the_decompressed_size_of_a_frame_is_bounded() {
        let size = FrameSize {
            max_bytes: (64 << 10) + 3,
            block_bytes: 64 << 10,
        };
        assert_eq!(frame_size(FRAME), Some(size));
        for length in 0..FRAME.len() {
            assert_eq!(frame_size(&FRAME[..length]), None, "{length}");
        }
        assert_eq!(
            frame_size(&[FRAME, &[0; 8]].concat()),
            frame_size(FRAME),
            "padding"
        );
        assert_eq!(frame_size(&[FRAME, FRAME].concat()), None, "a second frame");
        let empty_block = [&FRAME[..7], &[0, 0, 0, 0x80], &FRAME[7..]].concat();
        assert_eq!(frame_size(&empty_block), None, "an empty block");
    }
}
