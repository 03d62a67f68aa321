//! What an LZ4 frame inflates to at most, without inflating it: its reader goes on to the end of the frame, whatever the buffer
//! that it is of says (LZ4 frame format, 1.6).

/// What a frame starts with.
const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Flags of a frame: its blocks have a checksum,
const BLOCK_CHECKSUM: u8 = 0x10;
/// it tells its size,
const SIZE: u8 = 0x08;
/// it has a checksum,
const CHECKSUM: u8 = 0x04;
/// it needs a dictionary.
const DICTIONARY: u8 = 0x01;
/// In the length of a block: it is stored as it is.
const STORED: u32 = 1 << 31;

/// Bytes that a frame inflates to at most, and how many of them its last block may lack; `None` for what is no frame alone.
pub(super) fn most(frame: &[u8]) -> Option<(u64, u64)> {
    let mut bytes = frame.strip_prefix(&MAGIC)?;
    let [flags, sizes] = *take(&mut bytes)?;
    let block = match (sizes >> 4) & 7 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4_u64 << 20,
        _ => return None,
    };
    let has = |flag: u8| flags & flag != 0;
    let head = 1 + if has(SIZE) { 8 } else { 0 } + if has(DICTIONARY) { 4 } else { 0 };
    bytes = bytes.get(head..)?;
    let mut most = 0_u64;
    loop {
        let length = u32::from_le_bytes(*take(&mut bytes)?);
        if length == 0 {
            break;
        }
        let stored = usize::try_from(length & !STORED)
            .ok()
            .filter(|stored| *stored > 0)?;
        bytes = bytes.get(stored + if has(BLOCK_CHECKSUM) { 4 } else { 0 }..)?;
        let inflated = if length & STORED == 0 {
            block
        } else {
            stored as u64
        };
        most = most.saturating_add(inflated);
    }
    let padding = bytes.get(if has(CHECKSUM) { 4 } else { 0 }..)?;
    padding.iter().all(|byte| *byte == 0).then_some((most, block))
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of 64 KiB at most: one of two bytes, and one of three as they are.
    const FRAME: &[u8] = &[
        0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0, 2, 0, 0, 0, 1, 2, 3, 0, 0, 0x80, 1, 2, 3, 0, 0, 0, 0,
    ];

    #[test]
    fn a_frame_tells_what_it_inflates_to_at_most() {
        assert_eq!(most(FRAME), Some(((64 << 10) + 3, 64 << 10)));
        for length in 0..FRAME.len() {
            assert_eq!(most(&FRAME[..length]), None, "{length}");
        }
        assert_eq!(most(&[FRAME, &[0; 8]].concat()), most(FRAME), "padding");
        assert_eq!(most(&[FRAME, FRAME].concat()), None, "another one behind it");
        let nothing = [&FRAME[..7], &[0, 0, 0, 0x80], &FRAME[7..]].concat();
        assert_eq!(most(&nothing), None, "a block of nothing");
    }
}
