//! Writes tars and zips byte by byte, with any value in any field.

/// What ends a tar.
pub(crate) const END: [u8; 1024] = [0; 1024];

/// A ustar header.
pub(crate) fn tar_header(name: &[u8], kind: u8, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_mode(0o644);
    header.set_size(size);
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_cksum();
    header
}

/// A header with other bytes from `offset` on, and the checksum for them.
pub(crate) fn changed(mut header: tar::Header, offset: usize, bytes: &[u8]) -> tar::Header {
    header.as_mut_bytes()[offset..offset + bytes.len()].copy_from_slice(bytes);
    header.set_cksum();
    header
}

/// An entry with a ustar header.
pub(crate) fn tar_entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    with_content(&tar_header(name.as_bytes(), kind, content.len() as u64), content)
}

/// A header, and a content with its padding.
pub(crate) fn with_content(header: &tar::Header, content: &[u8]) -> Vec<u8> {
    let mut entry = header.as_bytes().to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

/// A pax header with these records.
pub(crate) fn pax(kind: u8, records: &[(&str, &str)]) -> Vec<u8> {
    let records = records.iter().map(|(key, value)| {
        let others = key.len() + value.len() + 3;
        let length = (others..others + 32).find(|length| others + length.to_string().len() == *length);
        format!("{} {key}={value}\n", length.unwrap())
    });
    tar_entry("pax", kind, records.collect::<Vec<_>>().concat().as_bytes())
}

/// A file of a zip. Directory entry and local header are written from the same fields, unless they are changed afterwards.
#[derive(Debug, Clone, Default)]
pub(crate) struct ZipFile {
    pub(crate) name: Vec<u8>,
    pub(crate) content: Vec<u8>,
    pub(crate) flags: u16,
    pub(crate) method: u16,
    pub(crate) mode: u32,
    pub(crate) extra: Vec<u8>,
    /// Offset in the directory, if it is not that of the local header.
    pub(crate) offset: Option<u32>,
}

/// Bytes of a zip, and where its records are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Zip {
    pub(crate) bytes: Vec<u8>,
    /// Where the local headers begin.
    pub(crate) locals: Vec<usize>,
    /// Where the entries of the directory begin.
    pub(crate) entries: Vec<usize>,
    /// Where the end record begins.
    pub(crate) end: usize,
}

impl ZipFile {
    pub(crate) fn new(name: &str, content: &[u8]) -> Self {
        Self {
            name: name.as_bytes().to_vec(),
            content: content.to_vec(),
            ..Self::default()
        }
    }
}

impl Zip {
    pub(crate) fn new(files: &[ZipFile]) -> Self {
        let mut zip = Self::default();
        for file in files {
            zip.locals.push(zip.bytes.len());
            zip.put(b"PK\x03\x04");
            zip.put_common(file);
            zip.put(&file.name);
            zip.put(&file.extra);
            zip.put(&file.content);
        }
        let directory = zip.bytes.len();
        for (file, local) in files.iter().zip(zip.locals.clone()) {
            zip.entries.push(zip.bytes.len());
            // Made by version 2.0, on Unix.
            zip.put(b"PK\x01\x02\x14\x03");
            zip.put_common(file);
            // Comment, disk and internal attributes.
            zip.put(&[0; 6]);
            zip.put(&(file.mode << 16).to_le_bytes());
            let offset = file.offset.unwrap_or_else(|| u32::try_from(local).unwrap());
            zip.put(&offset.to_le_bytes());
            zip.put(&file.name);
            zip.put(&file.extra);
        }
        zip.end = zip.bytes.len();
        let entries = u16::try_from(files.len()).unwrap().to_le_bytes();
        zip.put(b"PK\x05\x06\0\0\0\0");
        zip.put(&entries);
        zip.put(&entries);
        zip.put(&u32::try_from(zip.end - directory).unwrap().to_le_bytes());
        zip.put(&u32::try_from(directory).unwrap().to_le_bytes());
        zip.put(&[0; 2]);
        zip
    }

    /// Other bytes at `offset`.
    pub(crate) fn changed(mut self, offset: usize, bytes: &[u8]) -> Vec<u8> {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.bytes
    }

    /// The fields from the needed version to the length of the extra fields.
    fn put_common(&mut self, file: &ZipFile) {
        let size = u32::try_from(file.content.len()).unwrap().to_le_bytes();
        self.put(&20_u16.to_le_bytes());
        self.put(&file.flags.to_le_bytes());
        self.put(&file.method.to_le_bytes());
        // Time, date and checksum.
        self.put(&[0; 8]);
        self.put(&size);
        self.put(&size);
        self.put(&u16::try_from(file.name.len()).unwrap().to_le_bytes());
        self.put(&u16::try_from(file.extra.len()).unwrap().to_le_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}
