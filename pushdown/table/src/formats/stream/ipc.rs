//! Arrow IPC files and streams. A file is a stream between its magic bytes and its footer, unless the footer has another order
//! of messages.

mod footer;
mod lz4;
mod messages;

use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use bytes::Bytes;

use crate::formats::arrow_schema::check_fields;
use footer::Footer;
pub(super) use footer::StoredFooter;
use messages::Messages;
use pushdown_core::{Error, ErrorKind, Result, language::excerpt, limits::TableLimits};
use pushdown_wire::{Message, MessageReader};

/// First bytes of a file, with their padding.
pub(crate) const FILE_MAGIC: &[u8] = b"ARROW1\0\0";
/// First bytes of a message.
pub(crate) const MESSAGE_MARKER: [u8; 4] = [0xff; 4];

/// The schema and the layout of an Arrow object.
#[derive(Debug, Clone)]
pub(super) struct ArrowTable {
    pub(super) schema: SchemaRef,
    /// Bytes before the first message.
    skip_bytes: usize,
    /// The footer of a file whose messages are not a valid stream.
    footer: Option<Footer>,
}

impl ArrowTable {
    /// Reads the schema at the start of an object, or in its footer if the start has none.
    pub(super) fn open(start: &[Bytes], footer: Option<&StoredFooter>, limits: &TableLimits) -> Result<Self> {
        let table = Self::read_start(start, limits);
        let Some(footer) = footer.map(|footer| Footer::new(footer, limits)) else {
            return table;
        };
        match (table, footer) {
            // A stream does not need its footer.
            (Ok(table), Err(_)) => Ok(table),
            (Ok(table), Ok(footer)) if footer.is_in_order => Ok(table),
            (Err(_), Err(error)) => Err(error),
            (table, Ok(footer)) => Ok(Self {
                schema: table.map_or_else(|_| SchemaRef::clone(&footer.schema), |table| table.schema),
                skip_bytes: 0,
                footer: Some(footer),
            }),
        }
    }

    /// The footer that defines the order of messages.
    pub(super) const fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// Reads the schema at the start of an object.
    fn read_start(start: &[Bytes], limits: &TableLimits) -> Result<Self> {
        let head = Bytes::from(start.concat());
        let skip_bytes = match head.strip_prefix(FILE_MAGIC) {
            Some(rest) => {
                // Some writers pad the magic bytes more than necessary.
                let padding = rest.iter().take_while(|byte| **byte == 0).count();
                // The length of a message without a marker may start with zeros.
                let is_marked = rest[padding..].starts_with(&MESSAGE_MARKER);
                FILE_MAGIC.len() + if is_marked { padding } else { 0 }
            }
            None => 0,
        };
        let mut rest = Buffer::from(head.slice(skip_bytes..));
        let message = MessageReader::new(limits.max_batch_bytes)
            .for_stored_object()
            .next(&mut rest)
            .map_err(undecodable_frame)?;
        let schema = message.as_ref().and_then(Message::schema);
        let schema = schema.ok_or_else(|| {
            Error::undecodable("malformed Arrow IPC: expected a schema in the first message, found none")
        })?;
        check_fields(&schema, limits.max_columns, limits.max_footer_bytes)?;
        let schema = Arc::new(fb_to_schema(schema));
        Ok(Self {
            schema,
            skip_bytes,
            footer: None,
        })
    }

    /// A decoder of `columns`.
    ///
    /// # Errors
    /// [`Unsuitable`](ErrorKind::Unsuitable) for a column that is or contains a union: queries have no type for it.
    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<Messages> {
        for column in columns {
            let projected = self.schema.project(&[*column]).map_err(malformed_arrow)?;
            let is_union = |field: &&Field| matches!(field.data_type(), DataType::Union(..));
            if projected.flattened_fields().iter().any(is_union) {
                return Err(Error::unsuitable(format!(
                    "unsupported column `{}`: it contains an Arrow union",
                    excerpt(projected.field(0).name(), 60)
                )));
            }
        }
        let counts_rows = columns.is_empty();
        let columns = if counts_rows {
            self.cheapest_column()
        } else {
            columns.to_vec()
        };
        Ok(Messages::new(self, columns, counts_rows, limits))
    }

    /// The column to read in order to count rows. A record batch claims a number of rows, but Arrow validates only the number of
    /// values in a column against its bytes.
    fn cheapest_column(&self) -> Vec<usize> {
        let fields = self.schema.fields();
        let primitive = fields.iter().position(|field| field.data_type().is_primitive());
        let first = (!fields.is_empty()).then_some(0);
        primitive.or(first).into_iter().collect()
    }
}

/// Turns a framing error into an error of the object.
fn undecodable_frame(error: Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidWire => Error::new(ErrorKind::Undecodable, error.to_string()),
        _ => error,
    }
}

fn malformed_footer(problem: &str) -> Error {
    Error::undecodable(format!("malformed Arrow IPC footer: {problem}"))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn malformed_arrow(error: ArrowError) -> Error {
    Error::undecodable(format!("malformed Arrow IPC: {error}"))
}
