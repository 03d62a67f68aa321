//! What the gateway can do, before a request is written for it.

use pushdown::wire::Features;

use super::{
    Attempted,
    refusals::{fail_or_fall_back, fall_back, not_a_gateway},
};
use crate::{
    error::Result,
    units::objects::{BatchJob, Session},
};

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

/// What the gateway can do, as far as it is known: for members of shards it must be known that the gateway reads them, and for samples that
/// are signed for the store that it fetches them there.
pub(super) async fn features(session: &Session, job: &BatchJob) -> Result<KnownFeatures> {
    let store = &session.store;
    if session.objects.has_members() || store.gateway_url().is_some() {
        let Some(known) = session.wait_for(store.known_features()).await? else {
            let error = not_a_gateway(session, "its answers list no features");
            return fail_or_fall_back(session, Err(error)).map(KnownFeatures::Ended);
        };
        return Ok(match lacking(session, &known)? {
            Some(ended) => KnownFeatures::Ended(ended),
            None => KnownFeatures::Usable(known),
        });
    }
    // What is read once more is worth caching from the first batch on.
    Ok(KnownFeatures::Usable(if session.epochs_left(job.epoch) > 1 {
        store.ask_for_features().await
    } else {
        store.features()
    }))
}

/// The end of the attempt if a gateway with these features does not fetch what is signed for the store, or samples are members of shards,
/// which it does not read. From then on all are read plainly.
///
/// # Errors
/// [`ErrorKind::NotAGateway`](crate::ErrorKind) for the first reason, without a plan that may read plainly.
pub(super) fn lacking(session: &Session, features: &Features) -> Result<Option<Attempted>> {
    if let Some(error) = session.store.lacks_stores(features) {
        return fail_or_fall_back(session, Err(error)).map(Some);
    }
    let is_too_old = session.objects.has_members() && !features.has(Features::MEMBERS);
    Ok(is_too_old.then(|| fall_back(session, NO_MEMBERS)))
}

/// Whether some of these slots are to be cropped, and a gateway with these features does not do that: one that was replaced since.
pub(super) fn lacks_crops(job: &BatchJob, slots: &[usize], features: &Features) -> bool {
    !features.has(Features::CROPPED_JPEG) && slots.iter().any(|slot| job.routes.get(*slot).is_cropped)
}
