//! The footer of a saved list.

use arrow_ipc::{reader::read_footer_length, root_as_footer};

use super::{CHECKSUM, Fault, MEMBERS_VERSION, VERSION, VERSION_NAME};

/// Bytes of the marker between the record batch and the footer.
const END_MARKER_BYTES: usize = 8;
/// Bytes of the footer's length and of the magic bytes that follow.
const TAIL_BYTES: usize = 10;

/// What the footer says about the bytes before it.
#[derive(Debug)]
pub(super) struct Footer {
    /// Number of bytes that the checksum covers: all before the end marker.
    pub(super) content_bytes: usize,
    /// Their checksum.
    pub(super) expected: String,
    /// Whether the file has the columns of a list with members.
    pub(super) has_members: bool,
}

impl Footer {
    /// Reads the footer at the end of an Arrow IPC file.
    ///
    /// # Errors
    /// If the file ends early, is no saved list, or has another version of the format.
    pub(super) fn read(file: &[u8]) -> Result<Self, Fault> {
        let damaged = |fault: &str| Fault::Damaged(fault.to_owned());
        let (rest, tail) = file
            .split_last_chunk::<TAIL_BYTES>()
            .ok_or_else(|| damaged("it ends early"))?;
        let length = read_footer_length(*tail).map_err(|_| damaged("it ends early"))?;
        let start = rest.len().checked_sub(length);
        let content_bytes = start.and_then(|start| start.checked_sub(END_MARKER_BYTES));
        let (Some(start), Some(content_bytes)) = (start, content_bytes) else {
            return Err(damaged("its footer is longer than the file"));
        };
        // A copy, since the footer may stand at any address.
        let bytes = rest[start..].to_vec();
        let footer = root_as_footer(&bytes).map_err(|_| damaged("its footer is malformed"))?;
        let value = |name: &str| {
            let mut metadata = footer.custom_metadata().into_iter().flatten();
            let found = metadata.find(|entry| entry.key() == Some(name))?;
            found.value().map(str::to_owned)
        };
        match (value(VERSION_NAME), value(CHECKSUM)) {
            (Some(version), _) if version != VERSION && version != MEMBERS_VERSION => {
                Err(Fault::OtherVersion(version))
            }
            (Some(version), Some(expected)) => Ok(Self {
                content_bytes,
                expected,
                has_members: version == MEMBERS_VERSION,
            }),
            _ => Err(Fault::Foreign("another Arrow file")),
        }
    }
}
