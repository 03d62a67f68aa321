//! Arrow IPC, files and streams: a file is a stream between its magic bytes and its footer, unless the footer says otherwise.

mod fields;
mod footer;
mod lz4;
mod messages;

use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use bytes::Bytes;

use crate::{
    Error, ErrorKind, Result,
    limits::TableLimits,
    pipeline::excerpt,
    wire::{Message, MessageReader},
};
pub(in crate::step::table) use fields::check_fields;
use footer::Footer;
pub(super) use footer::Stored as StoredFooter;
use messages::Messages;

/// What a file starts with, its padding behind it.
pub(in crate::step::table) const FILE: &[u8] = b"ARROW1\0\0";
/// What a message starts with.
pub(in crate::step::table) const MESSAGE: [u8; 4] = [0xff; 4];

/// What the start of an object tells of it.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: SchemaRef,
    /// Bytes before the first message.
    skip: usize,
    /// The file's footer, if its messages are no stream.
    footer: Option<Footer>,
}

impl Table {
    /// Reads the schema at the start of an object, or in the footer of a file that has none there.
    pub(super) fn open(seen: &[Bytes], footer: Option<&StoredFooter>, limits: &TableLimits) -> Result<Self> {
        let table = Self::read(seen, limits);
        let Some(footer) = footer.map(|footer| Footer::new(footer, limits)) else {
            return table;
        };
        match (table, footer) {
            // A stream needs no footer.
            (Ok(table), Err(_)) => Ok(table),
            (Ok(table), Ok(footer)) if footer.is_in_order => Ok(table),
            (Err(_), Err(error)) => Err(error),
            (table, Ok(footer)) => Ok(Self {
                schema: table.map_or_else(|_| SchemaRef::clone(&footer.schema), |table| table.schema),
                skip: 0,
                footer: Some(footer),
            }),
        }
    }

    /// The footer by which the object has to be read.
    pub(super) const fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// Reads the schema at the start.
    fn read(seen: &[Bytes], limits: &TableLimits) -> Result<Self> {
        let head = Bytes::from(seen.concat());
        // Some writers pad the magic bytes to more than they have to.
        let padding = |head: &[u8]| head.iter().take_while(|byte| **byte == 0).count();
        let skip = match head.strip_prefix(FILE) {
            Some(rest) => {
                let padding = padding(rest);
                // The length of a message without a marker may start with zeros.
                let is_marked = rest[padding..].starts_with(&MESSAGE);
                FILE.len() + if is_marked { padding } else { 0 }
            }
            None => 0,
        };
        let mut rest = Buffer::from(head.slice(skip..));
        let message = MessageReader::new(limits.max_batch_bytes)
            .for_stored_object()
            .next(&mut rest)
            .map_err(malformed)?;
        let schema = message.as_ref().and_then(Message::schema);
        let schema =
            schema.ok_or_else(|| Error::undecodable("found malformed Arrow IPC: no schema at its start"))?;
        check_fields(&schema, limits.max_columns, limits.max_footer_bytes)?;
        let schema = Arc::new(fb_to_schema(schema));
        Ok(Self {
            schema,
            skip,
            footer: None,
        })
    }

    /// Reads some columns.
    ///
    /// # Errors
    /// [`Unsuitable`](ErrorKind::Unsuitable) for a column of unions, or with unions inside: no query has a type for them.
    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<Messages> {
        for column in columns {
            let alone = self.schema.project(&[*column]).map_err(broken)?;
            let is_union = |field: &&Field| matches!(field.data_type(), DataType::Union(..));
            if alone.flattened_fields().iter().any(is_union) {
                return Err(Error::unsuitable(format!(
                    "the column `{}` has an Arrow union, which is not read",
                    excerpt(alone.field(0).name(), 60)
                )));
            }
        }
        let is_counted = columns.is_empty();
        let columns = if is_counted {
            self.counted()
        } else {
            columns.to_vec()
        };
        Ok(Messages::new(self, columns, is_counted, limits))
    }

    /// The column that is read where only the number of rows is asked for: what a record batch says of itself is no more than
    /// a claim, and Arrow holds a column's against its bytes.
    fn counted(&self) -> Vec<usize> {
        let fields = self.schema.fields();
        let cheap = fields.iter().position(|field| field.data_type().is_primitive());
        let any = (!fields.is_empty()).then_some(0);
        cheap.or(any).into_iter().collect()
    }
}

/// What the framing finds wrong is wrong with the object here.
fn malformed(error: Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidWire => Error::new(ErrorKind::Undecodable, error.to_string()),
        _ => error,
    }
}

fn malformed_footer(found: &str) -> Error {
    Error::undecodable(format!("found malformed Arrow IPC: a footer with {found}"))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn broken(error: ArrowError) -> Error {
    Error::undecodable(format!("found malformed Arrow IPC: {error}"))
}
