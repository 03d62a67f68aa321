//! The sample that is read: an object, or a member of a shard.

use std::path::PathBuf;

use clap::Args;
use pushdown_client::{
    shards::ShardIndex,
    store::{Objects, Store},
};

use super::Get;
use crate::{errors::Usage, location::Location};

/// The member of a shard, and where it is found.
#[derive(Debug, Args)]
pub(super) struct MemberOptions {
    /// Read this member of a tar or zip object instead of the whole object
    // A name may begin with a hyphen.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    member: Option<String>,
    /// With --member: list of `pushdown index` with this shard [default: read from the shard]
    #[arg(long, value_name = "FILE", requires = "member")]
    index: Option<PathBuf>,
}

impl MemberOptions {
    /// Refuses a member for a table.
    pub(super) fn check_table(&self) -> Result<(), Usage> {
        match &self.member {
            Some(_) => Err(Usage(
                "--member is not for tables: the result is a table".to_owned(),
            )),
            None => Ok(()),
        }
    }
}

impl Get {
    /// The sample to read, as a list of one.
    pub(super) async fn find_sample(&self, store: &Store) -> anyhow::Result<Objects> {
        let Location { bucket, key } = &self.object;
        let MemberOptions { member, index } = &self.member;
        let Some(name) = member else {
            return Ok(Objects::from_keys(bucket.as_str(), [key]));
        };
        let index = match index {
            Some(path) => ShardIndex::load(path),
            None => store.shard_members(bucket, key).await,
        };
        let found = index.and_then(|index| index.members().find_member(bucket, key, name));
        found.map_err(|error| self.wrap_error(error))
    }
}
