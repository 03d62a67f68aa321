//! Members that arrive by the streams of their shards.

use std::sync::Arc;

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::oneshot;

use super::{assembly::Assembly, part::Part, queue::PlainQueue};
use crate::{
    error::Result,
    units::objects::{
        BatchJob, Session,
        shard_streams::{Content, Requested},
    },
};

/// Parts of a batch that streams will receive.
#[derive(Debug, Default)]
pub(super) struct StreamedParts(Vec<(Part, oneshot::Receiver<Content>)>);

impl StreamedParts {
    /// Requests the parts in the queue, and leaves there those that no stream has. None are requested if there are no streams, or if the
    /// batch tries both routes: it measures single reads.
    pub(super) async fn request(
        session: &Arc<Session>,
        job: &BatchJob,
        assembly: &Assembly<'_>,
        queue: &PlainQueue<'_>,
    ) -> Result<Self> {
        let streams = job.shard_streams.as_ref();
        let Some(streams) = streams.filter(|_| !job.routes.is_exploring()) else {
            return Ok(Self::default());
        };
        if let Some(charge) = &job.charge {
            charge.wait_for_room().await;
        }
        let mut streamed = Self::default();
        let mut passed = Vec::new();
        for part in queue.take_parts() {
            match streams.request(session, job.number, &part).await {
                Requested::Arrived(content) => {
                    job.progress.mark_answered();
                    assembly.take(part, content)?;
                }
                Requested::Awaited(content) => streamed.0.push((part, content)),
                Requested::Passed => passed.push(part),
            }
        }
        queue.put_back_parts(passed);
        Ok(streamed)
    }

    /// Takes the parts as they arrive. Returns those whose streams ended before.
    pub(super) async fn receive(self, job: &BatchJob, assembly: &Assembly<'_>) -> Result<Vec<Part>> {
        let receive =
            |(part, content): (Part, oneshot::Receiver<Content>)| async move { (part, content.await) };
        let mut arriving: FuturesUnordered<_> = self.0.into_iter().map(receive).collect();
        let mut passed = Vec::new();
        while let Some((part, content)) = arriving.next().await {
            match content {
                Ok(content) => {
                    job.progress.mark_answered();
                    assembly.take(part, content)?;
                }
                Err(_ended) => passed.push(part),
            }
        }
        Ok(passed)
    }
}
