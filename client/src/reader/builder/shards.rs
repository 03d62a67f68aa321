//! Builds a reader of shards from its settings.

use std::sync::Arc;

use pushdown::shard::{Compression, ShardFormat, shard_kind};

use super::{DataSetKeys, PushdownReaderBuilder, applies::SampleKind, open::OpenedDataSet};
use crate::{
    cpu::CpuPool,
    epoch::{
        Rank, Worker,
        order::{CheckedRank, SampleOrder},
    },
    error::{Error, Result},
    error_policy::ErrorPolicy,
    objects::Objects,
    shards::check_distinct,
    stats::Counters,
    units::shards::{ShardReader, ShardSession, ShardsRead},
    weights::preload,
};

impl PushdownReaderBuilder {
    /// A reader of the samples in tar shards, without an index. Checks the settings, and lists the prefix.
    ///
    /// The objects of the data set are the shards. Under a prefix they are those whose keys end in `.tar`, `.tar.gz`, `.tgz` or `.tar.zst`.
    /// [`columns`](Self::columns) selects the members of their samples. Shuffling requires an [`order`](Self::order) of shards, since a
    /// shuffle of all samples has to know them: with an [index](crate::shards::ShardIndex) they can be [read](Self::build) so.
    ///
    /// All steps run on this host, whatever [`mode`](Self::mode), [`split`](Self::split) and [`max_expand`](Self::max_expand) are.
    /// [`requests`](Self::requests) is the number of shards that are read at a time; a quarter of
    /// [`prefetch_bytes`](Self::prefetch_bytes) is for their samples. [`start_position`](Self::start_position),
    /// [`start_at`](Self::start_at), [`value_cache`](Self::value_cache) and all tails but [`Tail::Short`](crate::reader::Tail::Short) are refused:
    /// [`shards_read`](Self::shards_read) resumes in any world.
    ///
    /// # Errors
    /// As [`build`](Self::build); [`ErrorKind::Config`](crate::ErrorKind) for these settings, keys that are no tar shards or repeated, and
    /// an invalid [`shards_read`](Self::shards_read).
    pub async fn build_shards(mut self) -> Result<ShardReader> {
        self.check_for_shards()?;
        let columns = self.spec.columns.matcher()?;
        let is_listed = matches!(self.keys, DataSetKeys::Prefix(_));
        let cpu = CpuPool::build(self.spec.threads, self.spec.local_ranks)?;
        let OpenedDataSet {
            plan,
            store,
            pipeline,
            objects,
        } = self.open(SampleKind::Shards).await?;
        let shards = tar_shards(objects, is_listed)?;
        let state = self.resumed_shards(plan.rank, shards.len())?;
        preload(pipeline.steps());
        let session = ShardSession {
            store,
            shards,
            pipeline,
            columns: Arc::new(columns),
            limits: self.limits,
            seed: self.spec.seed,
            error_policy: ErrorPolicy::new(self.spec.on_error, None, None)?,
            cpu,
            counters: Counters::default(),
        };
        Ok(ShardReader::new(session, plan, state))
    }

    /// The state of a [reader of these shards](Self::build_shards) before its first batch: the beginning of the epoch, or what is left of
    /// it after [`shards_read`](Self::shards_read). It checks the settings, and contacts no endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) as [`build_shards`](Self::build_shards).
    pub fn initial_shards_read(&self, shards: &Objects) -> Result<ShardsRead> {
        let rank = self.check()?;
        self.spec.columns.matcher()?;
        self.resumed_shards(rank, tar_shards(shards.clone(), false)?.len())
    }

    /// The state from which the reader of a rank goes on, of this number of shards.
    fn resumed_shards(&self, rank: CheckedRank, shards: usize) -> Result<ShardsRead> {
        let spec = &self.spec;
        let buffer = self.check_for_shards()?;
        let rank = Rank {
            index: rank.index(),
            world: rank.world(),
        };
        let worker = Worker {
            index: spec.worker,
            count: spec.workers,
        };
        ShardsRead::resume(&spec.shards_read, rank, worker, buffer, shards)
    }

    /// Refuses what does not apply to readers of shards. Returns the number of samples in the buffer.
    fn check_for_shards(&self) -> Result<usize> {
        self.check_applies(SampleKind::Shards)?;
        Ok(match self.spec.order {
            SampleOrder::Shards { buffer } if self.is_shuffled() => buffer,
            SampleOrder::Shards { .. } | SampleOrder::Global => 1,
        })
    }
}

/// The tars among objects that were listed, or all objects, which must be tars.
fn tar_shards(objects: Objects, is_listed: bool) -> Result<Objects> {
    let bucket = objects.bucket();
    if objects.has_members() {
        return Err(Error::config(
            "a reader of shards reads whole tars: found a list with members, which is read with its index",
        ));
    }
    let is_tar = |index: &usize| matches!(shard_kind(objects.key(*index)), Some((ShardFormat::Tar, _)));
    let tars: Vec<usize> = (0..objects.len()).filter(is_tar).collect();
    check_distinct(bucket, tars.iter().map(|index| objects.key(*index)))?;
    let is_unsupported = |index: &usize| {
        let compression = shard_kind(objects.key(*index)).map(|(_, compression)| compression);
        matches!(compression, Some(Compression::Bzip2 | Compression::Xz))
    };
    if let Some(index) = tars.iter().copied().find(is_unsupported) {
        return Err(Error::config(format!(
            "cannot read s3://{bucket}/{}: tars that are compressed by bzip2 or xz are not supported: store it without compression, or \
             compress it by gzip or zstd",
            objects.key(index)
        )));
    }
    if tars.len() == objects.len() && !tars.is_empty() {
        return Ok(objects);
    }
    let other = (0..objects.len()).find(|index| !is_tar(index));
    let zip =
        (0..objects.len()).find(|index| ShardFormat::from_key(objects.key(*index)) == Some(ShardFormat::Zip));
    match (zip, other) {
        (Some(zip), _) => Err(Error::config(format!(
            "cannot stream s3://{bucket}/{}: the directory of a zip is at its end: run `pushdown index`, and read the samples of its list",
            objects.key(zip)
        ))),
        (None, Some(other)) if !is_listed => Err(Error::config(format!(
            "expected shards whose keys end in .tar, .tar.gz, .tgz or .tar.zst, found s3://{bucket}/{}",
            objects.key(other)
        ))),
        _ if tars.is_empty() => Err(Error::config(format!(
            "found no shards in s3://{bucket}: expected keys that end in .tar, .tar.gz, .tgz or .tar.zst"
        ))),
        _ => Ok(objects.select(tars)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{epoch::order::Tail, planning::Mode, reader::PushdownReader, shards::ColumnSelection};

    fn builder() -> PushdownReaderBuilder {
        let builder = PushdownReader::builder().bucket("b").pipeline("decode").seed(7);
        builder.order(SampleOrder::Shards { buffer: 9 })
    }

    fn refused(builder: &PushdownReaderBuilder) -> String {
        builder.check_for_shards().unwrap_err().to_string()
    }

    #[test]
    fn settings_that_do_not_apply_are_refused() {
        assert_eq!(builder().mode(Mode::Auto).check_for_shards().unwrap(), 9);
        let global = builder().order(SampleOrder::Global);
        assert_eq!(global.clone().shuffle(false).check_for_shards().unwrap(), 1);
        assert!(refused(&global).contains("`pushdown index`"));
        for (builder, expected) in [
            (
                builder().start_position(1),
                "start_position=1 does not apply to shards without an index: expected 0",
            ),
            (builder().start_at(1), "start_at=1 does not apply to shards"),
            (
                builder().value_cache("folder"),
                "value_cache does not apply to shards",
            ),
            (
                builder().tail(Tail::Even),
                "tail=even does not apply to shards without an index: expected short",
            ),
        ] {
            assert!(refused(&builder).contains(expected), "{expected}");
        }
        let columns = ColumnSelection {
            value: Some("gif".to_owned()),
            ..ColumnSelection::default()
        };
        let builder = builder().columns(columns);
        assert_eq!(builder.check_for_shards().unwrap(), 9);
        let refused = builder
            .check_applies(SampleKind::Objects)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("columns does not apply to objects: expected none"),
            "{refused}"
        );
    }

    #[test]
    fn the_first_state_needs_no_endpoint() {
        let shards = Objects::from_keys("b", ["0.tar", "1.tar"]);
        let rank = |index| builder().rank(Rank { index, world: 2 });
        let states = [0, 1].map(|number| rank(number).initial_shards_read(&shards).unwrap());
        let own = rank(1).shards_read(vec![states[1].clone()]);
        assert_eq!(own.initial_shards_read(&shards).unwrap(), states[1]);
        let other = builder().shards_read(vec![states[1].clone()]);
        let refused = other.initial_shards_read(&shards).unwrap_err().to_string();
        assert!(
            refused.contains("the state of rank 0 of 2 is missing"),
            "{refused}"
        );
        let other = builder().shards_read(states.to_vec());
        assert_ne!(other.initial_shards_read(&shards).unwrap(), states[0]);
        let zip = Objects::from_keys("b", ["0.zip"]);
        let refused = builder().initial_shards_read(&zip).unwrap_err().to_string();
        assert!(refused.contains("cannot stream s3://b/0.zip"), "{refused}");
    }

    #[test]
    fn only_tars_are_streamed() {
        let shards = |keys: &[&str], is_listed| {
            let objects = tar_shards(Objects::from_keys("b", keys), is_listed);
            let keys = objects.map(|objects| {
                let keys = (0..objects.len()).map(|index| objects.key(index).to_owned());
                keys.collect::<Vec<String>>()
            });
            keys.map_err(|error| error.to_string())
        };
        let tars = ["0.tar", "1.tar.gz", "2.TGZ", "3.tar.zst"];
        assert_eq!(shards(&tars, false).unwrap(), tars);
        let mixed = ["0.tar", "README.md", "1.tar"];
        assert_eq!(shards(&mixed, true).unwrap(), ["0.tar", "1.tar"]);
        for (keys, is_listed, expected) in [
            (&mixed[..], false, "found s3://b/README.md"),
            (&["0.tar", "1.zip"], true, "cannot stream s3://b/1.zip"),
            (&["0.tar", "0.tar"], false, "named twice"),
            (
                &["0.tar", "1.tar.bz2"],
                true,
                "s3://b/1.tar.bz2: tars that are compressed by bzip2",
            ),
            (
                &["0.txz"],
                false,
                "s3://b/0.txz: tars that are compressed by bzip2 or xz",
            ),
            (&["README.md"], true, "found no shards in s3://b"),
            (&[], false, "found no shards in s3://b"),
        ] {
            let refused = shards(keys, is_listed).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
