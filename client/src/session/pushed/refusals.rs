//! Answers that are not a batch.

use std::sync::atomic::Ordering::Relaxed;

use pushdown::wire;

use super::Attempt;
use crate::{
    engine::check_engine,
    error::{Error, ErrorKind, Result},
    session::Session,
    transport::Refusal,
};

/// Returns an error of a whole answer, or falls back to plain reading if a plan allows that.
pub(super) fn fail_or_fall_back(session: &Session, refused: Result<Attempt>) -> Result<Attempt> {
    match refused {
        Err(error) if session.adapter.is_some() => Ok(fall_back(session, &error.to_string())),
        refused => refused,
    }
}

/// Classifies an answer that is an error as a whole.
pub(super) fn batch_refused(session: &Session, refusal: Refusal) -> Result<Attempt> {
    let retry_after = refusal.retry_after;
    if refusal.is_transient() {
        let error = refusal.into_error(&format!("the gateway {} is overloaded", session.store.endpoint()));
        return Ok(Attempt::Partial(error, retry_after));
    }
    // The codes with which a gateway refuses a whole batch. A plain store takes the path for that of an object, and has no
    // such bucket, or requires a signature or a form.
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

/// The error for an endpoint that serves no batches: a store, or something else.
pub(super) fn not_a_gateway(session: &Session, found: &str) -> Error {
    Error::new(
        ErrorKind::NotAGateway,
        format!(
            "{} does not serve {}: {found}; it seems to be a plain store: use plain mode, or set the gateway's URL as \
             the endpoint",
            session.store.endpoint(),
            wire::header::BATCH_PATH
        ),
    )
}

/// Compares the gateway's engine with this host's; `Some` if their values do not agree. If they agree only within the
/// tolerance of models, that is logged once.
pub(super) fn check_gateway_engine(session: &Session, engine: &str) -> Option<Attempt> {
    let host = &session.engine;
    match check_engine(host, engine) {
        Ok(gateway) => {
            if host.has_other_rounding(&gateway) && !session.rounding_warning_logged.swap(true, Relaxed) {
                tracing::info!(%gateway, %host, "models round differently at the gateway: values agree to within 1e-5 of the largest");
            }
            None
        }
        Err(why) => Some(fall_back(session, &why)),
    }
}

/// Reads everything plainly from now on. Logged once.
fn fall_back(session: &Session, why: &str) -> Attempt {
    if !session.fallen_back.swap(true, Relaxed) {
        tracing::warn!(
            why,
            "falling back to plain reading: the whole pipeline runs on this host"
        );
    }
    Attempt::FallBack
}
