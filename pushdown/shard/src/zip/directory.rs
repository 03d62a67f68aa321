//! Finds the members of a zip by its directory.

use std::{mem, ops::Range};

use super::{
    end::{DirectoryPlace, END_BYTES, End, MAX_TAIL_BYTES},
    entries::Entries,
    locals::Locals,
};
use crate::{Member, ShardError, ShardLimits};

/// Most bytes that are needed at once.
pub(super) const MAX_NEEDED_BYTES: u64 = 1 << 20;

/// Finds the members of a zip: it reads the records at the end, the directory, and the header in front of each content.
///
/// Folders are passed over. Members that are compressed, encrypted or links are refused. After an error it is of no further use.
///
/// ```
/// use pushdown_shard::{ShardLimits, ZipDirectory};
///
/// # let shard = [&b"PK\x05\x06"[..], &[0; 18]].concat();
/// let mut directory = ZipDirectory::new(shard.len() as u64, ShardLimits::default())?;
/// while let Some(range) = directory.needs() {
///     // Stands for a range request.
///     directory.push(&shard[range.start as usize..range.end as usize])?;
/// }
/// let members = directory.finish()?;
/// # assert!(members.is_empty());
/// # Ok::<(), pushdown_shard::ShardError>(())
/// ```
#[derive(Debug)]
pub struct ZipDirectory {
    object_bytes: u64,
    limits: ShardLimits,
    state: State,
}

/// What is read next.
#[derive(Debug)]
enum State {
    /// The last bytes.
    Tail,
    /// The zip64 end record, at a range.
    Zip64 { end: End, range: Range<u64> },
    /// The directory.
    Entries(Entries),
    /// The local headers, or nothing.
    Locals(Locals),
}

impl ZipDirectory {
    /// The directory of a zip of `object_bytes` bytes.
    ///
    /// # Errors
    /// [`ShardError::Truncated`] if it is too short for a zip.
    pub fn new(object_bytes: u64, limits: ShardLimits) -> Result<Self, ShardError> {
        if object_bytes < END_BYTES as u64 {
            return Err(ShardError::Truncated {
                expected: "the end record of a zip",
                position: object_bytes,
            });
        }
        Ok(Self {
            object_bytes,
            limits,
            state: State::Tail,
        })
    }

    /// The range to read next: never empty, and of at most 1 MiB. `None` if all members are found.
    pub fn needs(&self) -> Option<Range<u64>> {
        match &self.state {
            State::Tail => Some(self.object_bytes.saturating_sub(MAX_TAIL_BYTES)..self.object_bytes),
            State::Zip64 { range, .. } => Some(range.clone()),
            State::Entries(entries) => entries.needs(),
            State::Locals(locals) => locals.needs(),
        }
    }

    /// Reads the bytes of [`needs`](Self::needs). More bytes, which follow them in the shard, may save requests for later ones.
    ///
    /// # Errors
    /// [`ShardError::WrongLength`] for fewer bytes, and others if the zip is refused.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ShardError> {
        let range = self.needs().unwrap_or_default();
        let found = bytes.len() as u64;
        let expected = range.end - range.start;
        let needed = usize::try_from(expected)
            .ok()
            .and_then(|needed| bytes.get(..needed));
        let needed = needed.ok_or(ShardError::WrongLength { expected, found })?;
        self.state = match mem::replace(&mut self.state, State::Tail) {
            State::Tail => {
                let end = End::find(needed, range.start)?;
                match end.zip64_range()? {
                    Some(range) => State::Zip64 { end, range },
                    None => self.read_entries(end.directory()?)?,
                }
            }
            State::Zip64 { end, range } => self.read_entries(end.zip64_directory(needed, range.start)?)?,
            State::Entries(mut entries) => {
                entries.push(bytes)?;
                State::after_entries(entries)?
            }
            State::Locals(mut locals) => {
                locals.push(bytes)?;
                State::Locals(locals)
            }
        };
        Ok(())
    }

    /// The members, in the order of the shard.
    ///
    /// # Errors
    /// [`ShardError::Truncated`] while bytes are needed.
    pub fn finish(self) -> Result<Vec<Member>, ShardError> {
        let position = self.needs().map_or(self.object_bytes, |range| range.start);
        let members = match self.state {
            State::Locals(locals) => locals.finish(),
            _ => None,
        };
        members.ok_or(ShardError::Truncated {
            expected: "all headers of a zip",
            position,
        })
    }

    fn read_entries(&self, place: DirectoryPlace) -> Result<State, ShardError> {
        State::after_entries(Entries::new(place, self.limits))
    }
}

impl State {
    /// The rest of the directory, or the local headers.
    fn after_entries(entries: Entries) -> Result<Self, ShardError> {
        if entries.needs().is_some() {
            return Ok(Self::Entries(entries));
        }
        let directory_offset = entries.start();
        Ok(Self::Locals(Locals::new(entries.finish()?, directory_offset)))
    }
}
