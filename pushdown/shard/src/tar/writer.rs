//! Writes tars that depend on names and contents alone.

use std::io;

use super::{
    BLOCK,
    header::{MAX_OCTAL_SIZE, NewHeader, split_ustar_name},
    pax::write_record,
};
use crate::{MemberRange, ShardError, limits::ShardLimits, name::check_name, names::Names};

/// Bytes of a name that a header holds if the whole one is in a pax header.
const SHORT_NAME_BYTES: usize = 100;

/// Writes a tar. Equal names and contents in equal order give equal bytes: headers have no time and no owner.
///
/// Headers are ustar. A pax header is added for a name that does not fit, and for a size from 8 GiB. A tar without [`finish`] is
/// truncated. After an error of the writer underneath, the tar is of no further use.
///
/// [`finish`]: TarWriter::finish
#[derive(Debug)]
pub struct TarWriter<W> {
    inner: W,
    position: u64,
    /// Bytes of the content in progress that are not written.
    left: u64,
    names: Names,
}

impl<W: io::Write> TarWriter<W> {
    /// A writer of a tar to `inner`, which it calls for each block: a buffer helps.
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            position: 0,
            left: 0,
            names: Names::new(ShardLimits::default()),
        }
    }

    /// Number of bytes written.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Writes a member. Returns where it is.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn append(&mut self, name: &str, content: &[u8]) -> io::Result<MemberRange> {
        let range = self.start(name, content.len() as u64)?;
        self.write_content(content)?;
        Ok(range)
    }

    /// Writes the header of a member, whose content of `size` bytes is to follow by [`write_content`](Self::write_content).
    /// Returns where it is.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] with a [`ShardError`] if a member cannot have this name or another one has it, or if the
    /// content of the last member is not complete. Nothing has been written then. Other errors are those of the writer
    /// underneath.
    pub fn start(&mut self, name: &str, size: u64) -> io::Result<MemberRange> {
        self.check_complete()?;
        check_name(name).map_err(invalid_input)?;
        let mut records = Vec::new();
        let parts = split_ustar_name(name);
        if parts.is_none() {
            write_record(&mut records, "path", name);
        }
        if size > MAX_OCTAL_SIZE {
            write_record(&mut records, "size", &size.to_string());
        }
        let (prefix, short_name) = parts.unwrap_or_else(|| {
            let end = name.floor_char_boundary(SHORT_NAME_BYTES);
            (&[], &name.as_bytes()[..end])
        });
        let mut headers = Vec::new();
        if !records.is_empty() {
            let header = NewHeader {
                prefix: &[],
                name: b"././@PaxHeader",
                kind: b'x',
                size: records.len() as u64,
            };
            headers.extend(header.to_block());
            headers.extend(records);
            headers.resize(headers.len().next_multiple_of(BLOCK), 0);
        }
        let header = NewHeader {
            prefix,
            name: short_name,
            kind: b'0',
            size: if size > MAX_OCTAL_SIZE { 0 } else { size },
        };
        headers.extend(header.to_block());
        let header_bytes = u32::try_from(headers.len()).unwrap_or(u32::MAX);
        let range = MemberRange::new(self.position, header_bytes, size).map_err(invalid_input)?;
        self.names.insert(name, self.position).map_err(invalid_input)?;
        self.write(&headers)?;
        self.left = size;
        Ok(range)
    }

    /// Writes the next bytes of the content of the member that was started last.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for more bytes than were announced, of which none has been written then. Other errors are
    /// those of the writer underneath.
    pub fn write_content(&mut self, bytes: &[u8]) -> io::Result<()> {
        let left = self.left.checked_sub(bytes.len() as u64);
        let left = left.ok_or_else(|| {
            invalid_input(ShardError::WrongLength {
                expected: self.left,
                found: bytes.len() as u64,
            })
        })?;
        self.write(bytes)?;
        self.left = left;
        if left == 0 && !bytes.is_empty() {
            let end = usize::try_from(self.position % BLOCK as u64).unwrap_or_default();
            self.write(&[0; BLOCK][..(BLOCK - end) % BLOCK])?;
        }
        Ok(())
    }

    /// Writes the end marker, flushes, and returns the writer underneath.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the content of the last member is not complete. Other errors are those of the writer
    /// underneath.
    pub fn finish(mut self) -> io::Result<W> {
        self.check_complete()?;
        self.write(&[0; 2 * BLOCK])?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    fn check_complete(&self) -> io::Result<()> {
        match self.left {
            0 => Ok(()),
            left => Err(invalid_input(ShardError::WrongLength {
                expected: left,
                found: 0,
            })),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}

fn invalid_input(error: ShardError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(error: &io::Error) -> String {
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        error.to_string()
    }

    #[test]
    fn contents_may_be_written_in_pieces() {
        let mut whole = TarWriter::new(Vec::new());
        let mut pieces = TarWriter::new(Vec::new());
        for size in [0, 1, 511, 512, 513, 2000] {
            let (name, content) = (format!("{size}.bin"), vec![7; size]);
            let range = whole.append(&name, &content).unwrap();
            assert_eq!(pieces.start(&name, size as u64).unwrap(), range);
            for piece in content.chunks(300) {
                pieces.write_content(piece).unwrap();
            }
            pieces.write_content(&[]).unwrap();
            assert_eq!(pieces.position(), whole.position());
            assert_eq!(whole.position() % 512, 0);
        }
        assert_eq!(whole.finish().unwrap(), pieces.finish().unwrap());
    }

    #[test]
    fn wrong_lengths_and_names_are_refused() {
        let mut writer = TarWriter::new(Vec::new());
        writer.start("a", 3).unwrap();
        writer.write_content(b"12").unwrap();
        assert_eq!(
            reason(&writer.start("b", 0).unwrap_err()),
            "wrong number of bytes: expected 1, found 0"
        );
        assert_eq!(
            reason(&writer.write_content(b"34").unwrap_err()),
            "wrong number of bytes: expected 1, found 2"
        );
        writer.write_content(b"3").unwrap();
        let written = writer.position();
        for name in ["a", "/b", "../b", ""] {
            reason(&writer.append(name, b"").unwrap_err());
        }
        assert_eq!(writer.position(), written);
        writer.start("b", 1).unwrap();
        reason(&writer.finish().unwrap_err());
    }

    #[test]
    fn a_size_from_8_gib_is_in_a_pax_header() {
        let mut writer = TarWriter::new(Vec::new());
        let range = writer.start("a", MAX_OCTAL_SIZE).unwrap();
        assert_eq!((range.header_bytes(), range.size()), (512, MAX_OCTAL_SIZE));
        let mut writer = TarWriter::new(Vec::new());
        let range = writer.start("a", MAX_OCTAL_SIZE + 1).unwrap();
        assert_eq!((range.header_bytes(), range.size()), (1536, MAX_OCTAL_SIZE + 1));
        assert!(writer.inner[512..].starts_with(b"19 size=8589934592\n"));
    }
}
