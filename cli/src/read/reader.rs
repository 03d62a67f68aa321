//! The reader of the command: of objects and indexed members, or of whole shards.

use futures::TryStreamExt as _;
use pushdown_client::{
    Error,
    reader::{Batch, Mode, PlanReport, PushdownReader, Stats},
    shards::ShardReader,
};

use crate::report::{Addresses, ReplicaFigures};

/// Reads samples.
#[derive(Debug)]
pub(super) enum SampleReader {
    Objects(Box<PushdownReader>),
    Shards(Box<ShardReader>),
}

impl SampleReader {
    /// Samples of an epoch; `None` if only reading shows it.
    pub(super) fn samples(&self) -> Option<usize> {
        match self {
            Self::Objects(reader) => Some(reader.len()),
            Self::Shards(_) => None,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Batch>, Error> {
        match self {
            Self::Objects(reader) => reader.try_next().await,
            Self::Shards(reader) => reader.try_next().await,
        }
    }

    pub(super) fn set_epoch(&mut self, epoch: u32) {
        match self {
            Self::Objects(reader) => reader.set_epoch(epoch),
            Self::Shards(reader) => reader.set_epoch(epoch),
        }
    }

    pub(super) fn stats(&self) -> Stats {
        match self {
            Self::Objects(reader) => reader.stats(),
            Self::Shards(reader) => reader.stats(),
        }
    }

    pub(super) fn addresses(&self) -> Addresses {
        let monitor = match self {
            Self::Objects(reader) => reader.monitor(),
            Self::Shards(reader) => reader.monitor(),
        };
        let replicas = monitor.replicas();
        Addresses {
            endpoint: monitor.endpoint(),
            gateway: monitor.gateway_url(),
            replicas: if replicas.len() > 1 {
                replicas.into_iter().map(ReplicaFigures::from).collect()
            } else {
                Vec::new()
            },
        }
    }

    pub(super) fn mode(&self) -> Mode {
        match self {
            Self::Objects(reader) => reader.mode(),
            Self::Shards(_) => Mode::Plain,
        }
    }

    pub(super) fn plan(&self) -> Option<PlanReport> {
        match self {
            Self::Objects(reader) => reader.plan(),
            Self::Shards(_) => None,
        }
    }
}
