//! The samples of shards in their order, some shards read ahead.

use std::{collections::VecDeque, sync::Arc, vec};

use pushdown_exec::sync::Mutex;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::{
    ShardSession,
    group::GroupCounts,
    source::{ArrivedSample, ShardSource},
    state::ShardTask,
};
use crate::error::{Error, Result};

/// The samples of shards, one shard after the other. Dropping it cancels all reads.
#[derive(Debug)]
pub(super) struct ShardSequence {
    session: Arc<ShardSession>,
    /// The index of each shard in the data set, by its position in the epoch.
    order: Vec<u32>,
    tasks: vec::IntoIter<ShardTask>,
    reads: VecDeque<ShardRead>,
    /// Shards that are read at a time.
    concurrency: usize,
    /// KiB of samples of a shard that arrive before they are taken.
    window_kib: u32,
    counts: Arc<Mutex<GroupCounts>>,
}

/// What is next in the sequence.
#[derive(Debug)]
pub(super) enum Next {
    Sample {
        /// Number of the shard among those of the reader.
        task: usize,
        arrived: ArrivedSample,
    },
    /// All samples of a shard have been taken.
    EndOfShard { task: usize },
}

/// A shard that is read.
#[derive(Debug)]
struct ShardRead {
    number: usize,
    samples: mpsc::UnboundedReceiver<ArrivedSample>,
    task: AbortOnDropHandle<Result<()>>,
}

impl ShardSequence {
    /// Reads these shards, `concurrency` of them at a time. At most `ahead_bytes` of their samples, and one more sample of each, arrive
    /// before they are taken.
    pub(super) fn new(
        session: Arc<ShardSession>,
        order: Vec<u32>,
        tasks: Vec<ShardTask>,
        (concurrency, ahead_bytes): (usize, u64),
    ) -> Self {
        let window_kib = (ahead_bytes / concurrency as u64) >> 10;
        let max_kib = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        Self {
            session,
            order,
            tasks: tasks.into_iter(),
            reads: VecDeque::new(),
            concurrency,
            window_kib: u32::try_from(window_kib).unwrap_or(max_kib).clamp(1, max_kib),
            counts: Arc::default(),
        }
    }

    /// What was found in the shards that have ended.
    pub(super) fn counts(&self) -> GroupCounts {
        self.counts.lock().clone()
    }

    /// What is next; `None` after the last shard.
    ///
    /// # Errors
    /// If the shard cannot be read, and others could not either.
    pub(super) async fn next(&mut self) -> Result<Option<Next>> {
        while self.reads.len() < self.concurrency
            && let Some(task) = self.tasks.next()
        {
            let read = self.start(task);
            self.reads.push_back(read);
        }
        let Some(read) = self.reads.front_mut() else {
            return Ok(None);
        };
        let task = read.number;
        if let Some(arrived) = read.samples.recv().await {
            return Ok(Some(Next::Sample { task, arrived }));
        }
        let failed = |error| Err(Error::internal("the task of a shard failed").with_source(error));
        (&mut read.task).await.unwrap_or_else(failed)?;
        self.reads.pop_front();
        Ok(Some(Next::EndOfShard { task }))
    }

    fn start(&self, task: ShardTask) -> ShardRead {
        // The window bounds the number of entries.
        let (sender, samples) = mpsc::unbounded_channel();
        let number = task.number;
        // Each position of an epoch has a shard.
        let index = self
            .order
            .get(task.shard.position as usize)
            .copied()
            .unwrap_or_default();
        let source = ShardSource {
            session: Arc::clone(&self.session),
            task,
            index: index as usize,
            window: Arc::new(Semaphore::new(self.window_kib as usize)),
            window_kib: self.window_kib,
            samples: sender,
            counts: Arc::clone(&self.counts),
            next: 0,
            etag: None,
        };
        ShardRead {
            number,
            samples,
            task: AbortOnDropHandle::new(tokio::spawn(source.read())),
        }
    }
}
