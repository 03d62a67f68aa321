//! Looks through an Arrow schema before Arrow's own types are made of it: in one of a few bytes the same field may stand in a
//! hundred thousand places, and each of them would get a copy of its name.

use arrow_ipc as fb;

use crate::{Error, Result};

/// Checks that a schema has at most `columns` columns, nested ones counted one by one, and `bytes` bytes of text.
///
/// It is one whose bytes Arrow has verified, so that going down into it ends: it is not nested deeper than 64.
pub(in crate::step::table) fn check_fields(
    schema: &fb::Schema<'_>,
    columns: usize,
    bytes: u64,
) -> Result<()> {
    let fields = schema
        .fields()
        .ok_or_else(|| Error::undecodable("found an Arrow schema without fields"))?;
    let mut found = Found::default();
    found.add_pairs(schema.custom_metadata().into_iter().flatten());
    for field in fields {
        found.add(&field);
    }
    if found.columns > columns {
        return Err(Error::too_large(format!(
            "the object has {} columns, more than the limit of {columns}",
            found.columns
        )));
    }
    if found.bytes > bytes {
        return Err(Error::too_large(format!(
            "the names and remarks of the object's columns have {} bytes, more than the limit of {bytes}",
            found.bytes
        )));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Found {
    columns: usize,
    bytes: u64,
}

impl Found {
    fn add(&mut self, field: &fb::Field<'_>) {
        self.columns += 1;
        self.add_text(field.name());
        self.add_text(field.type_as_timestamp().and_then(|time| time.timezone()));
        self.add_pairs(field.custom_metadata().into_iter().flatten());
        let children = field.children();
        children.into_iter().flatten().for_each(|child| self.add(&child));
    }

    fn add_pairs<'a>(&mut self, pairs: impl Iterator<Item = fb::KeyValue<'a>>) {
        for pair in pairs {
            self.add_text(pair.key());
            self.add_text(pair.value());
        }
    }

    fn add_text(&mut self, text: Option<&str>) {
        self.bytes += text.map_or(0, str::len) as u64;
    }
}
