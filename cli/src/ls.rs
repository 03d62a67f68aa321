//! `pushdown ls`: lists objects, or the members of a shard.

use std::io::{self, Write};

use clap::Args;
use pushdown_client::{
    internal::Escaped,
    store::{HiddenObjects, MemberRef, Object, Objects, Store},
};
use serde_json::json;

use crate::{
    Exit,
    connection::Connection,
    errors::{PipelineError, Usage},
    location::Location,
    print::Format,
    progress::Listing,
};

const NAMES: &str = "Control characters in names are escaped, so that each has a line. Programs read exact names with --json.";

/// List the objects under a prefix, or the members of a shard
#[derive(Debug, Args)]
#[command(after_help = NAMES)]
pub(crate) struct Ls {
    /// The objects; with --members, one tar or zip object
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// List the members of a shard: where each begins, bytes of its headers and its content, name
    #[arg(long)]
    members: bool,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

impl Ls {
    pub(crate) async fn run(&self) -> anyhow::Result<Exit> {
        let Location { bucket, key } = &self.prefix;
        if self.members && (key.is_empty() || key.ends_with('/')) {
            let text = format!(
                "found the prefix {}, expected a shard: s3://bucket/key.tar",
                self.prefix
            );
            return Err(Usage(text).into());
        }
        let wrap = |error| PipelineError::wrap("", error);
        let store = self.connection.store().build().await.map_err(wrap)?;
        if self.members {
            let index = store.shard_members(bucket, key).await.map_err(wrap)?;
            let members = index.members();
            self.format.print(
                || members.iter().filter_map(member_as_json).collect::<Vec<_>>(),
                |out| print_members(out, members),
            )?;
        } else {
            let objects = self.objects(&store).await?;
            self.format.print(
                || objects.iter().map(object_as_json).collect::<Vec<_>>(),
                |out| print_objects(out, &objects),
            )?;
        }
        Ok(Exit::Success)
    }

    async fn objects(&self, store: &Store) -> anyhow::Result<Objects> {
        let Location { bucket, key } = &self.prefix;
        let listing = Listing::new(&self.prefix);
        let listed = store.list_objects_with(bucket, key, HiddenObjects::Listed, |objects| {
            listing.update(objects);
        });
        listed.await.map_err(|error| PipelineError::wrap("", error))
    }
}

fn object_as_json(object: Object<'_>) -> serde_json::Value {
    json!({"key": object.key, "bytes": object.bytes, "etag": object.etag})
}

fn member_as_json(object: Object<'_>) -> Option<serde_json::Value> {
    let member = object.member?;
    Some(json!({
        "name": member.name, "offset": member.range.offset(), "header_bytes": member.range.header_bytes(),
        "size": member.range.size(),
    }))
}

/// A line for each object: bytes and key.
fn print_objects(out: &mut impl Write, objects: &Objects) -> io::Result<()> {
    let bytes = |object: &Object<'_>| {
        object
            .bytes
            .map_or_else(|| "?".to_owned(), |bytes| bytes.to_string())
    };
    let width = objects.iter().map(|object| bytes(&object).len()).max();
    let width = width.unwrap_or_default();
    for object in objects.iter() {
        writeln!(out, "{:>width$}  {}", bytes(&object), Escaped(object.key))?;
    }
    Ok(())
}

/// A line for each member, below the names of the columns.
fn print_members(out: &mut impl Write, members: &Objects) -> io::Result<()> {
    let members = || members.iter().filter_map(|object| object.member);
    let digits = |largest: Option<u64>| largest.unwrap_or_default().to_string().len();
    let offset_width = digits(members().map(|member| member.range.offset()).max()).max("offset".len());
    let size_width = digits(members().map(|member| member.range.size()).max()).max("size".len());
    writeln!(
        out,
        "{:>offset_width$}  header_bytes  {:>size_width$}  name",
        "offset", "size"
    )?;
    for MemberRef { name, range } in members() {
        writeln!(
            out,
            "{:>offset_width$}  {:>12}  {:>size_width$}  {}",
            range.offset(),
            range.header_bytes(),
            range.size(),
            Escaped(name),
        )?;
    }
    Ok(())
}
