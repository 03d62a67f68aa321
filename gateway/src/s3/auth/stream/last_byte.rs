//! Holds back the last byte of a body.

use std::collections::VecDeque;

use bytes::Bytes;

/// Passes bytes on, except the last one.
#[derive(Debug)]
pub(super) struct LastByte {
    /// Length of the body. If it is unknown, each byte can be the last one.
    total_bytes: Option<u64>,
    received_bytes: u64,
    held: Option<Bytes>,
}

impl LastByte {
    /// Holds back the last of `total_bytes`, or of all bytes received so far if the length is unknown or exceeded.
    pub(super) fn new(total_bytes: Option<u64>) -> Self {
        Self {
            total_bytes,
            received_bytes: 0,
            held: None,
        }
    }

    /// Passes on `data`, except the last byte.
    pub(super) fn push(&mut self, mut data: Bytes, output: &mut VecDeque<Bytes>) {
        if data.is_empty() {
            return;
        }
        output.extend(self.held.take());
        self.received_bytes = self.received_bytes.saturating_add(data.len() as u64);
        let has_more = self
            .total_bytes
            .is_some_and(|total_bytes| self.received_bytes < total_bytes);
        if !has_more {
            self.held = Some(data.split_off(data.len() - 1));
        }
        if !data.is_empty() {
            output.push_back(data);
        }
    }

    /// Passes on the last byte.
    pub(super) fn release(&mut self, output: &mut VecDeque<Bytes>) {
        output.extend(self.held.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_byte_is_held() {
        for total_bytes in [None, Some(6), Some(3), Some(4)] {
            let mut last = LastByte::new(total_bytes);
            let mut output = VecDeque::new();
            for piece in ["abc", "", "d", "ef"] {
                last.push(Bytes::from_static(piece.as_bytes()), &mut output);
            }
            assert_eq!(Vec::from(output.clone()).concat(), b"abcde", "{total_bytes:?}");
            last.release(&mut output);
            assert_eq!(Vec::from(output).concat(), b"abcdef");
        }
    }

    #[test]
    fn a_known_length_keeps_frames_whole() {
        let mut last = LastByte::new(Some(6));
        let mut output = VecDeque::new();
        last.push(Bytes::from_static(b"abc"), &mut output);
        assert_eq!(output, [Bytes::from_static(b"abc")]);
    }
}
