//! Checks the size of an Arrow schema before it is converted to Arrow's types. A schema of a few bytes can refer to one field a
//! hundred thousand times, and each reference becomes a copy of the field's name.

use arrow_ipc as fb;

use pushdown_core::{Error, Result};

/// Checks that a schema has at most `max_columns` columns, nested ones included, and `max_bytes` bytes of text.
///
/// Arrow has verified the bytes of the schema, so the recursion is bounded: the nesting depth is at most 64.
pub(crate) fn check_fields(schema: &fb::Schema<'_>, max_columns: usize, max_bytes: u64) -> Result<()> {
    let fields = schema
        .fields()
        .ok_or_else(|| Error::undecodable("malformed Arrow schema: missing fields"))?;
    let mut size = SchemaSize::default();
    size.add_pairs(schema.custom_metadata().into_iter().flatten());
    for field in fields {
        size.add(&field);
    }
    if size.columns > max_columns {
        return Err(Error::too_large(format!(
            "too many columns: expected at most {max_columns}, found {}",
            size.columns
        )));
    }
    if size.text_bytes > max_bytes {
        return Err(Error::too_large(format!(
            "column names and metadata too large: expected at most {max_bytes} bytes, found {}",
            size.text_bytes
        )));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct SchemaSize {
    columns: usize,
    /// Names, time zones and metadata.
    text_bytes: u64,
}

impl SchemaSize {
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
        self.text_bytes += text.map_or(0, str::len) as u64;
    }
}
