//! An entry of the result cache: a value in its stored form, with the head of its object.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use pushdown::{Kind, Limits, Sample, wire::stored};

use super::SourceHead;

/// Maximum bytes of an entry. Larger values take longer to read from a disk than most take to compute.
pub const MAX_ENTRY_BYTES: usize = 8 << 20;

/// Maximum bytes of a value that is cached: an entry also has the head of its object, of which a store allows some kilobytes.
pub(super) const MAX_VALUE_BYTES: u64 = MAX_ENTRY_BYTES as u64 - (64 << 10);

/// Bytes before the head: its length, little-endian.
const PREFIX_BYTES: usize = 4;
/// The value begins at a multiple of this, so that elements are aligned.
const ALIGNMENT: usize = 64;

/// An entry as bytes: the length of the head, the head as JSON, padding, and the value. Clones share the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(Bytes);

impl Entry {
    /// The entry of a value of the object `source`. Copies the value, whose buffer may be part of a larger one. `None` for a
    /// value that is not cached: a table, or one of more than [`MAX_ENTRY_BYTES`]. `cost` is the time that it took from the object.
    pub fn new(source: &SourceHead, value: &Sample, cost: Duration) -> Option<Self> {
        let parts = stored::encode(value).ok()?;
        let head = source.to_json(cost);
        let head_bytes = u32::try_from(head.len()).ok()?;
        let value_at = (PREFIX_BYTES + head.len()).next_multiple_of(ALIGNMENT);
        let bytes = value_at + parts.iter().map(Bytes::len).sum::<usize>();
        if bytes > MAX_ENTRY_BYTES {
            return None;
        }
        let mut entry = BytesMut::with_capacity(bytes);
        entry.put_u32_le(head_bytes);
        entry.put_slice(&head);
        entry.put_bytes(0, value_at - entry.len());
        for part in &parts {
            entry.put_slice(part);
        }
        Some(Self(entry.freeze()))
    }

    /// The head of the object, and the time that the value took from it, if it is known; `None` if the entry is damaged.
    pub fn source(&self) -> Option<(SourceHead, Option<Duration>)> {
        let head = self.0.get(PREFIX_BYTES..)?.get(..self.head_bytes()?)?;
        SourceHead::from_json(head)
    }

    /// The value, of the type of `kind`; `None` if the entry is damaged or exceeds `limits`. Shares the bytes of the entry.
    pub fn value(&self, kind: &Kind, limits: &Limits) -> Option<Sample> {
        let value_at = (PREFIX_BYTES + self.head_bytes()?).next_multiple_of(ALIGNMENT);
        if value_at > self.0.len() {
            return None;
        }
        stored::decode(kind, self.0.slice(value_at..), limits).ok()
    }

    /// All bytes of the entry.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    fn head_bytes(&self) -> Option<usize> {
        let length = self.0.first_chunk::<PREFIX_BYTES>()?;
        let head_bytes = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        (head_bytes <= self.0.len() - PREFIX_BYTES).then_some(head_bytes)
    }
}

impl From<Bytes> for Entry {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};
    use proptest::prelude::*;
    use pushdown::{BytesKind, DType, Layout, Tensor};

    use super::*;

    const COST: Duration = Duration::from_millis(3);

    fn source() -> SourceHead {
        let answer = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"e\""))]);
        SourceHead::new(5, BytesKind::default(), &answer).unwrap()
    }

    fn tensor(length: usize) -> Sample {
        let elements = vec![7_u8; length];
        let tensor = Tensor::new(DType::U8, Layout::Flat, vec![length], elements.into());
        Sample::Tensor(tensor.unwrap())
    }

    #[test]
    fn an_entry_has_the_head_and_the_value() {
        for value in [tensor(300), Sample::Bytes(Bytes::from_static(b"jpeg"))] {
            let entry = Entry::new(&source(), &value, COST).unwrap();
            assert_eq!(entry.source(), Some((source(), Some(COST))));
            assert_eq!(entry.value(&Kind::from(&value), &Limits::default()), Some(value));
        }
    }

    #[test]
    fn the_size_is_bounded() {
        assert!(Entry::new(&source(), &tensor(MAX_ENTRY_BYTES - 4096), COST).is_some());
        assert_eq!(Entry::new(&source(), &tensor(MAX_ENTRY_BYTES), COST), None);
        let limits = Limits {
            max_value_bytes: 299,
            ..Limits::default()
        };
        let entry = Entry::new(&source(), &tensor(300), COST).unwrap();
        assert_eq!(entry.value(&Kind::from(&tensor(300)), &limits), None);
    }

    proptest! {
        #[test]
        fn damaged_entries_never_panic(
            length in 0_usize..400,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let value = tensor(200);
            let mut bytes = Entry::new(&source(), &value, COST).unwrap().as_bytes().to_vec();
            bytes.truncate(length);
            for (index, byte) in changes {
                if !bytes.is_empty() {
                    let index = index.index(bytes.len());
                    bytes[index] = byte;
                }
            }
            let entry = Entry::from(Bytes::from(bytes));
            drop(entry.source());
            drop(entry.value(&Kind::from(&value), &Limits::default()));
        }
    }
}
