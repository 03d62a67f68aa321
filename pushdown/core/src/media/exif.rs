//! The orientation in an EXIF block. The block is a TIFF directory.

const ORIENTATION: u16 = 0x0112;
const PREFIX: &[u8] = b"Exif\0\0";
const ENTRY_BYTES: usize = 12;

/// The orientation in `block`, 1 to 8, with or without the block's prefix; 1 if there is none.
///
/// As in Pillow, whole numbers of any type count, except bytes (types 1, 2 and 7). Of several entries and of several values
/// the first counts.
pub fn orientation(block: &[u8]) -> u8 {
    let block = block.strip_prefix(PREFIX).unwrap_or(block);
    let block = block.strip_prefix(PREFIX).unwrap_or(block);
    ExifDirectory::new(block)
        .and_then(|directory| directory.number(ORIENTATION))
        .and_then(|number| u8::try_from(number).ok())
        .filter(|number| (1..=8).contains(number))
        .unwrap_or(1)
}

/// The first directory of a TIFF.
struct ExifDirectory<'a> {
    block: &'a [u8],
    is_big_endian: bool,
    entries: &'a [[u8; ENTRY_BYTES]],
}

impl<'a> ExifDirectory<'a> {
    fn new(block: &'a [u8]) -> Option<Self> {
        let is_big_endian = match block.first_chunk()? {
            b"II*\0" | b"II\0*" => false,
            b"MM\0*" | b"MM*\0" => true,
            _ => return None,
        };
        let mut directory = Self {
            block,
            is_big_endian,
            entries: &[],
        };
        let start = usize::try_from(directory.unsigned(block.get(4..8)?)).ok()?;
        let (count, entries) = block.get(start..)?.split_first_chunk::<2>()?;
        let count = usize::try_from(directory.unsigned(count)).ok()?;
        let entries = entries.as_chunks().0;
        directory.entries = &entries[..count.min(entries.len())];
        Some(directory)
    }

    /// The first value of `tag`, if it is a whole number.
    fn number(&self, tag: u16) -> Option<i64> {
        let entry = self
            .entries
            .iter()
            .find(|entry| self.unsigned(&entry[..2]) == u64::from(tag))?;
        let (kind, count) = (
            self.unsigned(&entry[2..4]),
            usize::try_from(self.unsigned(&entry[4..8])).ok()?,
        );
        let size = match kind {
            6 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16 => 8,
            _ => return None,
        };
        let length = size * count;
        let values = if length <= 4 {
            &entry[8..8 + length]
        } else {
            let offset = usize::try_from(self.unsigned(&entry[8..])).ok()?;
            self.block.get(offset..offset.checked_add(length)?)?
        };
        let value = values.get(..size)?;
        let whole = self.unsigned(value);
        Some(match kind {
            6 | 8 | 9 => self.signed(value),
            5 | 10 => {
                let (numerator, denominator) = value.split_at(4);
                let sign = |part| {
                    if kind == 5 {
                        i64::try_from(self.unsigned(part)).ok()
                    } else {
                        Some(self.signed(part))
                    }
                };
                let (numerator, denominator) = (sign(numerator)?, sign(denominator)?);
                (numerator.checked_rem(denominator)? == 0).then_some(numerator / denominator)?
            }
            11 => exact(f32::from_bits(u32::try_from(whole).ok()?).into())?,
            12 => exact(f64::from_bits(whole))?,
            _ => i64::try_from(whole).ok()?,
        })
    }

    /// Up to 8 bytes as an unsigned number.
    fn unsigned(&self, bytes: &[u8]) -> u64 {
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        if self.is_big_endian {
            bytes.iter().fold(0, add)
        } else {
            bytes.iter().rev().fold(0, add)
        }
    }

    fn signed(&self, bytes: &[u8]) -> i64 {
        let unused = 64 - 8 * bytes.len();
        self.unsigned(bytes).cast_signed() << unused >> unused
    }
}

/// A float as an integer, if it is a whole number from 1 to 8.
fn exact(number: f64) -> Option<i64> {
    (1..=8_u8)
        .find(|whole| f64::from(*whole).to_bits() == number.to_bits())
        .map(i64::from)
}
