//! UUIDs in tables: fixed-size binary values of 16 bytes, marked by an Arrow extension type.

use arrow_schema::{DataType, Field};

/// The name of the extension type.
pub const NAME: &str = "arrow.uuid";
/// Bytes of a UUID.
pub const BYTES: i32 = 16;
/// Characters of the text of a UUID.
pub const TEXT_LENGTH: u64 = 36;

/// Whether the values of a column are UUIDs.
pub fn is_uuid(field: &Field) -> bool {
    *field.data_type() == DataType::FixedSizeBinary(BYTES) && field.extension_type_name() == Some(NAME)
}

/// The text of a UUID: `550e8400-e29b-41d4-a716-446655440000`.
pub fn to_text(uuid: &[u8]) -> String {
    let mut digits = hex::encode(uuid);
    for index in [20, 16, 12, 8] {
        if index < digits.len() {
            digits.insert(index, '-');
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_hyphens() {
        let bytes: Vec<u8> = (0..16).map(|byte| byte * 17).collect();
        let text = to_text(&bytes);
        assert_eq!(text, "00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(text.len() as u64, TEXT_LENGTH);
    }
}
