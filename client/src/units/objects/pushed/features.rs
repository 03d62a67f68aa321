//! What the gateway can do, before a request is written for it.

use pushdown::wire::Features;

use super::{answer::Attempted, read::PushedRead, refusals::not_a_gateway};
use crate::{error::Result, units::objects::BatchJob};

/// Why everything is read plainly from a gateway without [`Features::MEMBERS`].
const NO_MEMBERS: &str =
    "the gateway is too old to read members of shards: it does not list the feature `members`";

/// What the gateway can do, before a request is written.
pub(super) enum KnownFeatures {
    /// A request can be written. None if the gateway has not answered yet.
    Usable(Features),
    /// No request is sent: the end of the attempt.
    Ended(Attempted),
}

impl PushedRead<'_> {
    /// What the replica can do, as far as it is known: for members of shards it must be known that it reads them, and for samples that are
    /// signed for the store that it fetches them there.
    pub(super) async fn features(&self) -> Result<KnownFeatures> {
        let (session, store) = (self.session, &self.session.store);
        if session.objects.has_members() || store.has_gateway_beside() || store.has_several_replicas() {
            let asked = self.wait_for(store.known_features(&self.replica));
            let Some(known) = asked.await? else {
                let error = not_a_gateway(session, "its answers list no features");
                return self.fail_or_fall_back(Err(error)).map(KnownFeatures::Ended);
            };
            return Ok(match self.lacking(&known)? {
                Some(ended) => KnownFeatures::Ended(ended),
                None => KnownFeatures::Usable(known),
            });
        }
        // What is read once more is worth caching from the first batch on.
        Ok(KnownFeatures::Usable(
            if session.epochs_left(self.job.epoch) > 1 {
                store.ask_for_features().await
            } else {
                store.features()
            },
        ))
    }

    /// The end of the attempt if a replica with these features does not fetch what is signed for the store, or samples are members of shards,
    /// which it does not read. From then on others are asked, or all are read plainly.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`](crate::ErrorKind) for the first reason, without a plan that may read plainly.
    pub(super) fn lacking(&self, features: &Features) -> Result<Option<Attempted>> {
        let session = self.session;
        if let Some(error) = session.store.lacks_stores(features) {
            return self.fail_or_fall_back(Err(error)).map(Some);
        }
        let is_too_old = session.objects.has_members() && !features.has(Features::MEMBERS);
        Ok(is_too_old.then(|| self.fall_back(NO_MEMBERS)))
    }

    /// The replica does not crop: another one that was asked before may, or the samples have another route.
    pub(super) fn without_crops(&self) -> Attempted {
        if self.has_usable_other() {
            let why = "the replica is too old for cropped JPEGs: it does not list the feature `cropped-jpeg`";
            self.session.limit_replica(&self.replica, usize::MAX, why);
        }
        Attempted::Limited
    }
}

/// Whether some of these slots are to be cropped, and a gateway with these features does not do that: one that was replaced since.
pub(super) fn lacks_crops(job: &BatchJob, slots: &[usize], features: &Features) -> bool {
    !features.has(Features::CROPPED_JPEG) && slots.iter().any(|slot| job.routes.get(*slot).is_cropped)
}
