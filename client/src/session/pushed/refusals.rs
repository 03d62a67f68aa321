//! Answers that are no batch.

use std::sync::atomic::Ordering::Relaxed;

use pushdown::wire;

use super::Attempt;
use crate::{
    engine::beside,
    error::{Error, ErrorKind, Result},
    session::Session,
    transport::Refusal,
};

/// What becomes of an answer that is an error as a whole: where a plan is free to read plainly, it does.
pub(super) fn whole(session: &Session, refused: Result<Attempt>) -> Result<Attempt> {
    match refused {
        Err(error) if session.adapter.is_some() => Ok(fall_back(session, &error.to_string())),
        refused => refused,
    }
}

/// An answer that is an error as a whole.
pub(super) fn refused(session: &Session, refusal: Refusal) -> Result<Attempt> {
    let asked = refusal.retry_after;
    if refusal.is_transient() {
        let error = refusal.into_error(&format!("the gateway {} has no time", session.store.endpoint()));
        return Ok(Attempt::Partial(error, asked));
    }
    // What a gateway finds wrong with a batch as a whole. A plain store takes the path for an object's and knows no
    // such bucket, or wants a signature, or a form.
    let codes = [
        "InvalidPipeline",
        "InvalidRequest",
        "InvalidArgument",
        "EntityTooLarge",
    ];
    if !codes.contains(&refusal.code.as_str()) {
        return Err(not_a_gateway(session, &format!("it answered {refusal}")));
    }
    let error = refusal.into_error(&format!("{} refused the batch", session.store.endpoint()));
    Err(error)
}

/// What answered is a store, or something else: such an endpoint has no batches for anyone.
pub(super) fn not_a_gateway(session: &Session, found: &str) -> Error {
    Error::new(
        ErrorKind::NotAGateway,
        format!(
            "{} does not serve {}: {found}; it seems to be a plain store, so use plain mode, or give the \
             gateway's URL as the endpoint",
            session.store.endpoint(),
            wire::header::BATCH_PATH
        ),
    )
}

/// Whether the gateway's values may stand beside those computed here; `Some` where they may not. Where they only do within the
/// tolerance of models, that is said once.
pub(super) fn other_engine(session: &Session, engine: &str) -> Option<Attempt> {
    let here = &session.engine;
    match beside(here, engine) {
        Ok(gateway) => {
            if here.has_other_rounding(&gateway) && !session.told_of_rounding.swap(true, Relaxed) {
                tracing::info!(%gateway, %here, "models run otherwise there: values agree to within 1e-5 of the largest");
            }
            None
        }
        Err(why) => Some(fall_back(session, &why)),
    }
}

/// From here on everything is read plainly. Said once.
fn fall_back(session: &Session, why: &str) -> Attempt {
    if !session.fallen_back.swap(true, Relaxed) {
        tracing::warn!(why, "reading plainly: the whole pipeline runs here");
    }
    Attempt::Plainly
}
