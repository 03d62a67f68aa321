//! `pushdown schema`: shows the columns of a stored table.

use std::io::{self, Write};

use clap::Args;
use indicatif::HumanBytes;
use pushdown::{Description, Limits};
use pushdown_client::internal::Escaped;
use serde_json::json;

use crate::{
    Exit,
    connection::Connection,
    errors::{PipelineError, Usage},
    location::Location,
    print::Format,
};

/// Show the columns and the row count of a table
///
/// Reads no rows; for a Parquet file, only its footer.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The object
    #[arg(value_name = "s3://BUCKET/KEY")]
    object: Location,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

impl Schema {
    pub(crate) async fn run(&self) -> anyhow::Result<Exit> {
        let Location { bucket, key } = &self.object;
        if key.is_empty() {
            return Err(Usage(format!(
                "found the bucket {}, expected an object: s3://bucket/key",
                self.object
            ))
            .into());
        }
        let store = self.connection.store().build().await;
        let store = store.map_err(|error| PipelineError::wrap("", error))?;
        let described = store.table(bucket, key, &Limits::default()).describe().await?;
        self.format
            .print(|| as_json(&described), |out| text(out, &described))?;
        Ok(Exit::Success)
    }
}

fn text(out: &mut impl Write, described: &Description) -> io::Result<()> {
    let rows = described
        .rows
        .map_or_else(|| "?".to_owned(), |rows| rows.to_string());
    write!(out, "{}: {rows} rows", described.format.name())?;
    if let Some(groups) = &described.row_groups {
        write!(out, " in {} row groups", groups.len())?;
    }
    writeln!(
        out,
        ", {} bytes ({})",
        described.object_bytes,
        HumanBytes(described.object_bytes)
    )?;
    let fields = described.schema.fields();
    let names: Vec<String> = fields
        .iter()
        .map(|field| Escaped(field.name()).to_string())
        .collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or_default();
    for (field, name) in fields.iter().zip(names) {
        let null = if field.is_nullable() { "" } else { ", never null" };
        writeln!(out, "  {name:width$}  {}{null}", Escaped(field.data_type()))?;
    }
    Ok(())
}

fn as_json(described: &Description) -> serde_json::Value {
    let columns: Vec<_> = described
        .schema
        .fields()
        .iter()
        .map(|field| {
            json!({
                "name": field.name(), "type": field.data_type().to_string(), "nullable": field.is_nullable(),
            })
        })
        .collect();
    json!({
        "format": described.format.name(), "stored_bytes": described.object_bytes, "rows": described.rows,
        "row_groups": described.row_groups.as_ref().map(Vec::len), "columns": columns,
    })
}
