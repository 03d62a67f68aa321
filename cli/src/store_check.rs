//! `pushdown store-check`: whether a store authorizes a request before it compares ETags.
//!
//! The result cache sends a value after the store has answered the caller's own GET with 304. That is an authorization only
//! if the store checks signature and rights first. None of the requests has a `Range`, as those of the result cache.

mod judge;
mod report;

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use pushdown_client::{
    internal::{ConditionalAnswer, ConditionalGet, Signature},
    store::{Credentials, Store},
};

use crate::{
    Exit,
    connection::Connection,
    errors::{PipelineError, Usage},
    location::Location,
    print::Format,
};
use judge::Expectation;
use report::{Answered, Check, StoreReport};

/// The most bytes of the object: it is read several times.
const MAX_OBJECT_BYTES: u64 = 64 << 20;
/// An ETag that no object has: not a digest.
const OTHER_ETAG: &str = "\"pushdown-store-check\"";

/// Check whether a store authorizes requests before it compares ETags, as the result cache requires
///
/// Sends GETs of one object with If-None-Match, signed rightly and not. Changes nothing.
#[derive(Debug, Args)]
pub(crate) struct StoreCheck {
    /// A small object that only signed requests may read
    #[arg(value_name = "s3://BUCKET/KEY")]
    object: Location,
    /// Profile with valid credentials that may not read the object; without it, one check is skipped
    #[arg(long, value_name = "NAME")]
    other_profile: Option<String>,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// The object that is checked.
struct Subject {
    store: Store,
    location: Location,
    etag: String,
    answer: ConditionalAnswer,
}

impl StoreCheck {
    pub(crate) async fn run(&self) -> anyhow::Result<Exit> {
        if self.object.key.is_empty() {
            let text = format!(
                "found the bucket {}, expected an object: s3://bucket/key",
                self.object
            );
            return Err(Usage(text).into());
        }
        let wrap = |error| PipelineError::wrap("", error);
        let store = self.connection.store().build().await.map_err(wrap)?;
        let other = match &self.other_profile {
            Some(profile) => {
                let credentials = Credentials::from_profile(profile).await?;
                let other = self.connection.store().credentials(credentials);
                Some(other.build().await.map_err(wrap)?)
            }
            None => None,
        };
        let subject = Subject::read(store, self.object.clone()).await?;
        let report = StoreReport::new(&subject, subject.checks(other.as_ref()).await?);
        self.format.report(&report)?;
        Ok(if report.is_safe() {
            Exit::Success
        } else {
            Exit::Failure
        })
    }
}

impl Subject {
    /// Reads the object.
    async fn read(store: Store, location: Location) -> anyhow::Result<Self> {
        let answer = get(&store, &location, Signature::Right, None).await?;
        anyhow::ensure!(
            answer.status == 200,
            "cannot read {location}: expected 200, found {}",
            Answered(&answer)
        );
        let etag = answer.etag.clone().ok_or_else(|| {
            anyhow::anyhow!("{location} has no ETag: the result cache stores nothing of such objects")
        })?;
        Ok(Self {
            store,
            location,
            etag,
            answer,
        })
    }

    async fn checks(&self, other: Option<&Store>) -> anyhow::Result<Vec<Check>> {
        let Self { store, etag, .. } = self;
        let object = &self.answer;
        let mut checks = vec![
            self.check(
                "right signature",
                store,
                Signature::Right,
                etag,
                Expectation::NotModified(object),
            )
            .await?,
            self.check(
                "right signature, other ETag",
                store,
                Signature::Right,
                OTHER_ETAG,
                Expectation::Object(object),
            )
            .await?,
        ];
        for (name, signature) in [
            ("wrong signature", Signature::Wrong),
            ("expired signature", Signature::Expired),
        ] {
            let check = self.check(name, store, signature, etag, Expectation::Refusal);
            checks.push(check.await?);
        }
        let name = "no signature";
        checks.push(if self.is_readable(store, Signature::Missing).await? {
            Check::skipped(name, "anyone may read the object: use a private one")
        } else {
            self.check(name, store, Signature::Missing, etag, Expectation::Refusal)
                .await?
        });
        let name = "credentials without the right";
        checks.push(match other {
            None => Check::skipped(name, "--other-profile is not set"),
            Some(other) if self.is_readable(other, Signature::Right).await? => Check::skipped(
                name,
                "the other profile may read the object: use one that may not",
            ),
            Some(other) => {
                self.check(name, other, Signature::Right, etag, Expectation::Refusal)
                    .await?
            }
        });
        checks.push(self.missing_key().await?);
        Ok(checks)
    }

    /// Sends a GET with a condition, and judges the answer.
    async fn check(
        &self,
        name: &'static str,
        store: &Store,
        signature: Signature,
        etag: &str,
        expected: Expectation<'_>,
    ) -> anyhow::Result<Check> {
        let answer = get(store, &self.location, signature, Some(etag)).await?;
        Check::new(name, expected, answer)
    }

    async fn missing_key(&self) -> anyhow::Result<Check> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut location = self.location.clone();
        location.key = format!("{}.store-check-{:x}", location.key, now.as_nanos());
        let answer = get(&self.store, &location, Signature::Right, Some(&self.etag)).await?;
        Check::new("missing key", Expectation::Refusal, answer)
    }

    /// Whether the object is sent without a condition.
    async fn is_readable(&self, store: &Store, signature: Signature) -> anyhow::Result<bool> {
        let answer = get(store, &self.location, signature, None).await?;
        judge::check_is_final(&answer)?;
        Ok((200..300).contains(&answer.status))
    }
}

async fn get(
    store: &Store,
    location: &Location,
    signature: Signature,
    if_none_match: Option<&str>,
) -> anyhow::Result<ConditionalAnswer> {
    let get = ConditionalGet {
        bucket: &location.bucket,
        key: &location.key,
        if_none_match,
        signature,
    };
    Ok(store.get_conditionally(&get, MAX_OBJECT_BYTES).await?)
}
