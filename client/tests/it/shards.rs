//! Shards of photos, packed in this process.

use pushdown::shard::{Member, TarWriter};

/// A tar of photos, each in a group with a label and, but for every third one, a description.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) key: String,
    pub(super) bytes: Vec<u8>,
    /// The members that are photos.
    pub(super) photos: Vec<Member>,
}

/// Packs photos into shards of `groups` groups.
pub(super) fn pack(photos: &[Vec<u8>], groups: usize) -> Vec<Shard> {
    let chunks = photos.chunks(groups).enumerate();
    chunks
        .map(|(number, photos)| {
            let mut tar = TarWriter::new(Vec::new());
            let mut members = Vec::new();
            for (nth, photo) in photos.iter().enumerate() {
                let sample = number * groups + nth;
                let mut append = |extension: &str, content: &[u8]| {
                    let name = format!("{number}/{nth:03}.{extension}");
                    let range = tar.append(&name, content).unwrap();
                    Member { name, range }
                };
                append("cls", sample.to_string().as_bytes());
                members.push(append("jpg", photo));
                if !sample.is_multiple_of(3) {
                    append("json", format!("{{\"number\": {sample}}}").as_bytes());
                }
            }
            Shard {
                key: format!("train-{number:06}.tar"),
                bytes: tar.finish().unwrap(),
                photos: members,
            }
        })
        .collect()
}
