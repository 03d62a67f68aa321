//! Answers that are not a batch.

use std::sync::atomic::Ordering::Relaxed;

use pushdown::{Engine, Family, available_engine, wire};

use super::{answer::Attempted, read::PushedRead};
use crate::{
    engine::{Disagreement, check_steps, parse_engine},
    error::{Error, ErrorKind, Result},
    planning::Adapter,
    transport::Refusal,
    units::objects::Session,
};

impl PushedRead<'_> {
    /// Returns an error of a whole answer, or lets others take over: another replica, or this host if a plan allows that.
    pub(super) fn fail_or_fall_back(&self, refused: Result<Attempted>) -> Result<Attempted> {
        match refused {
            Err(error) if self.session.adapter.is_some() || self.has_usable_other() => {
                Ok(self.fall_back(&error.to_string()))
            }
            refused => refused,
        }
    }

    /// Reads nothing from this replica from now on. Logged once.
    pub(super) fn fall_back(&self, why: &str) -> Attempted {
        self.session.limit_replica(&self.replica, 0, why);
        Attempted::Limited
    }

    /// Compares the replica's engine with this host's, over the steps that it ran for these slots. Whether their values do not agree: from
    /// now on it runs only the steps before, if no other replica takes over. If they agree only within the tolerance of models, that is
    /// logged once.
    pub(super) fn is_limited_by_engine(&self, slots: &[usize], engine: &str) -> bool {
        let (session, job) = (self.session, self.job);
        let host = &session.engine;
        let gateway = match parse_engine(host, engine) {
            Ok(gateway) => gateway,
            Err(reason) => {
                session.limit_replica(&self.replica, 0, &reason);
                return true;
            }
        };
        let crop_steps = session.adapter.as_ref().and_then(Adapter::crop_steps);
        let last_stage = job.routes.last_stage(slots, session.pipeline.len(), crop_steps);
        let steps = &session.pipeline.steps()[..last_stage];
        let Err(Disagreement { stage, reason }) = check_steps(steps, host, &gateway) else {
            if host.has_other_rounding(&gateway) && !session.rounding_warning_logged.swap(true, Relaxed) {
                tracing::info!(%gateway, %host, "models round differently at the gateway: values agree to within 1e-5 of the largest");
            }
            return false;
        };
        // This host runs the steps after that one, and may not have meant to run a model: then it counts as well.
        let runtime = available_engine(&session.pipeline.steps()[stage..])
            .runtime()
            .cloned();
        let host = Engine::new(Family::ALL, runtime);
        match check_steps(&steps[..stage], &host, &gateway) {
            Ok(()) => session.limit_replica(&self.replica, stage, &reason),
            Err(earlier) => session.limit_replica(&self.replica, earlier.stage, &earlier.reason),
        }
        true
    }
}

/// Whether an error says that the gateway has no time, and a plan allows to read plainly.
pub(super) fn is_overload(session: &Session, error: &Error) -> bool {
    session.adapter.is_some() && error.kind() == ErrorKind::Unavailable
}

/// Whether the error of a row says that the store refuses it to its reader, or to the address that it is read from.
pub(super) fn is_forbidden(code: &str) -> bool {
    matches!(code, "AccessDenied" | "Http403")
}

/// Classifies an answer that is an error as a whole. `is_gateway` if the answer is certainly a gateway's.
pub(super) fn batch_refused(session: &Session, refusal: Refusal, is_gateway: bool) -> Result<Attempted> {
    let retry_after = refusal.retry_after;
    if refusal.is_transient() {
        let error = refusal.into_error(&format!(
            "the gateway {} is overloaded",
            session.store.gateway_name()
        ));
        // A proxy in front of a gateway that has ended answers in its place.
        let is_replaceable = session.is_gateway_dispensable() || session.store.has_several_replicas();
        let error = if is_replaceable && !is_gateway {
            Error::new(ErrorKind::Unreachable, error.to_string()).with_source(error)
        } else {
            error
        };
        return Ok(Attempted::Partial(error, retry_after));
    }
    // The codes with which a gateway refuses a whole batch. A plain store takes the path for that of an object, and has no
    // such bucket, or requires a signature or a form.
    let codes = [
        "InvalidPipeline",
        "InvalidRequest",
        "InvalidArgument",
        "EntityTooLarge",
    ];
    if !is_gateway && !codes.contains(&refusal.code.as_str()) {
        // It was one before: something in front of it answers while it starts again.
        let was_gateway = session.store.features() != wire::Features::default();
        if was_gateway && (session.is_gateway_dispensable() || session.store.has_several_replicas()) {
            let error = refusal.into_error(&format!("{} is not reached", session.store.gateway_name()));
            let text = error.to_string();
            let error = Error::new(ErrorKind::Unreachable, text).with_source(error);
            return Ok(Attempted::Partial(error, retry_after));
        }
        return Err(not_a_gateway(session, &format!("it answered {refusal}")));
    }
    let error = refusal.into_error(&format!("{} refused the batch", session.store.gateway_name()));
    Err(error)
}

/// The error for an endpoint that serves no batches: a store, or something else.
pub(super) fn not_a_gateway(session: &Session, found: &str) -> Error {
    Error::new(
        ErrorKind::NotAGateway,
        format!(
            "{} does not serve {}: {found}; it seems to be a plain store: use plain mode, or set {}",
            session.store.gateway_name(),
            wire::header::BATCH_PATH,
            session.store.gateway_setting()
        ),
    )
}

/// Checks that rows have the further columns that were requested.
pub(super) fn check_columns(session: &Session, found: &[String]) -> Result<()> {
    let expected = session.objects.columns();
    let names = expected.iter().map(|name| &**name);
    if found.iter().map(String::as_str).eq(names) {
        return Ok(());
    }
    Err(Error::protocol(format!(
        "invalid rows from the gateway: expected the further columns {expected:?}, found {found:?}"
    )))
}
