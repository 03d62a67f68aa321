//! The further columns of a sample after its value in a file: their contents, then the length of each.

use bytes::Bytes;

/// The length of a column that the sample lacks.
const MISSING: u64 = u64::MAX;
/// Bytes of a length.
const LENGTH_BYTES: usize = size_of::<u64>();

/// The bytes of these columns: none without columns.
pub(super) fn encode(columns: &[Option<Bytes>]) -> impl Iterator<Item = Bytes> {
    let lengths: Vec<u8> = columns
        .iter()
        .map(|column| column.as_ref().map_or(MISSING, |content| content.len() as u64))
        .flat_map(u64::to_le_bytes)
        .collect();
    let contents = columns.iter().flatten().cloned();
    contents.chain([Bytes::from(lengths)])
}

/// Removes `count` columns from the end of a file; `None` if it does not have them.
pub(super) fn split_off(file: &mut Bytes, count: usize) -> Option<Vec<Option<Bytes>>> {
    let lengths = file.split_off(file.len().checked_sub(count.checked_mul(LENGTH_BYTES)?)?);
    let mut columns = vec![None; count];
    for (column, length) in columns.iter_mut().zip(lengths.chunks_exact(LENGTH_BYTES)).rev() {
        let length = u64::from_le_bytes(length.try_into().ok()?);
        if length != MISSING {
            let length = usize::try_from(length).ok()?;
            *column = Some(file.split_off(file.len().checked_sub(length)?));
        }
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_the_value() {
        let bytes = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
        for columns in [vec![], vec![None], vec![bytes("7"), None, bytes(""), bytes("{}")]] {
            let parts = [Bytes::from_static(b"value")].into_iter().chain(encode(&columns));
            let mut file = Bytes::from(parts.collect::<Vec<_>>().concat());
            assert_eq!(split_off(&mut file, columns.len()), Some(columns));
            assert_eq!(file, "value");
        }
    }

    #[test]
    fn a_file_without_the_columns_is_not_read() {
        let columns = [Some(Bytes::from_static(b"label"))];
        let whole = encode(&columns).collect::<Vec<_>>().concat();
        for end in [0, 7, 12] {
            let mut file = Bytes::copy_from_slice(&whole[whole.len() - end..]);
            assert_eq!(split_off(&mut file, 1), None, "{end}");
        }
        assert_eq!(split_off(&mut Bytes::from(whole), usize::MAX), None);
    }
}
