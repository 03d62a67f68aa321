//! Parts as shards for `WebDataset`.

use std::io;

use bytes::Bytes;
use pushdown_core::{Error, Kind, Result, Sample};
use pushdown_shard::TarWriter;
use pushdown_wire::encode;

use crate::{
    PartNote, PartRow, PartSpec,
    base::bases,
    extension,
    label::{Label, LabelType},
    notes,
};

/// Bytes after the last member.
const END_BYTES: u64 = 1024;

/// Writes the rows of a part as members of a tar.
#[derive(Debug)]
pub(crate) struct TarPart {
    writer: TarWriter<Vec<u8>>,
    bases: Vec<String>,
    /// Extensions of the further columns.
    columns: Vec<String>,
}

/// The extension of labels of a type: that of a default decoder of `WebDataset`.
pub(crate) const fn label_extension(label: &LabelType) -> &'static str {
    match label {
        LabelType::Class { .. } | LabelType::Int => "cls",
        LabelType::Float => "json",
        LabelType::Text => "txt",
    }
}

impl TarPart {
    pub(crate) fn new(spec: &PartSpec, names: &[String]) -> Self {
        Self {
            writer: TarWriter::new(Vec::new()),
            bases: bases(names),
            columns: spec.columns.iter().map(|name| name.to_lowercase()).collect(),
        }
    }

    /// Writes the members of a sample: its value, its label, its further columns.
    pub(crate) fn push(
        &mut self,
        spec: &PartSpec,
        name: &str,
        label: Option<&Label>,
        row: &PartRow<'_>,
    ) -> Result<()> {
        let label = spec
            .label
            .as_ref()
            .map(label_extension)
            .zip(label.map(label_content));
        let (extension, value) = self.value(spec, name, row.value)?;
        let base = self
            .bases
            .get(row.index)
            .ok_or_else(|| Error::internal("the sample has no base name"))?;
        append(&mut self.writer, base, &extension, &value)?;
        if let Some((extension, content)) = label {
            append(&mut self.writer, base, extension, &[content])?;
        }
        for (extension, content) in self.columns.iter().zip(&row.columns) {
            if let Some(content) = content {
                append(&mut self.writer, base, extension, std::slice::from_ref(content))?;
            }
        }
        Ok(())
    }

    /// Bytes of the part if it ended here.
    pub(crate) const fn bytes(&self) -> u64 {
        self.writer.position() + END_BYTES
    }

    /// Ends the tar. Notes are a header before the first member; a tar without members has none, since some readers expect a member after
    /// it.
    pub(crate) fn finish(self, notes: &[PartNote]) -> Result<Vec<u8>> {
        let is_empty = self.writer.position() == 0;
        let tar = self.writer.finish().map_err(unwritable)?;
        let mut whole = if is_empty {
            Vec::new()
        } else {
            notes::comment(notes)?
        };
        if whole.is_empty() {
            return Ok(tar);
        }
        whole.extend(tar);
        Ok(whole)
    }

    /// The extension and the content of a value.
    fn value(&self, spec: &PartSpec, name: &str, value: &Sample) -> Result<(String, Vec<Bytes>)> {
        let (Kind::Bytes(kind), Sample::Bytes(bytes)) = (&spec.kind, value) else {
            let (form, extension) = extension::of_array(&spec.kind);
            let parts = encode(value.clone(), form, &spec.kind)?.parts;
            return Ok((extension.to_owned(), parts));
        };
        let extension = extension::of_bytes(kind, bytes, name);
        let label = spec.label.as_ref().map(label_extension);
        let is_used = |name: &str| label == Some(name) || self.columns.iter().any(|column| column == name);
        if is_used(&extension) {
            return Err(Error::wire(format!(
                "cannot write sample {name:?}: expected a value whose extension no label and no column has, found {extension:?}; leave \
                 out that column"
            )));
        }
        Ok((extension, vec![bytes.clone()]))
    }
}

fn append(writer: &mut TarWriter<Vec<u8>>, base: &str, extension: &str, content: &[Bytes]) -> Result<()> {
    let bytes = content.iter().map(|piece| piece.len() as u64).sum();
    writer
        .start(&format!("{base}.{extension}"), bytes)
        .map_err(unwritable)?;
    for piece in content {
        writer.write_content(piece).map_err(unwritable)?;
    }
    Ok(())
}

/// A label as the decoder of its extension reads it.
fn label_content(label: &Label) -> Bytes {
    match label {
        Label::Int(number) => number.to_string().into(),
        // The shortest text that reads back as the same number, with a dot or an exponent.
        Label::Float(number) => format!("{number:?}").into(),
        Label::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
    }
}

/// Names are escaped and differ, and a vector takes all bytes.
#[expect(clippy::needless_pass_by_value, reason = "required by map_err")]
fn unwritable(error: io::Error) -> Error {
    Error::internal(format!("cannot write a member: {error}"))
}
