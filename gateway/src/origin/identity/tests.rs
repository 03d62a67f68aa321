use std::collections::VecDeque;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{self, error::CredentialsError, future};

use super::*;

/// A source that returns scripted results in order, and then fails.
#[derive(Debug)]
struct Script(parking_lot::Mutex<VecDeque<Option<Credentials>>>);

impl ProvideCredentials for Script {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let next: provider::Result = match self.0.lock().pop_front().flatten() {
            Some(credentials) => Ok(credentials),
            None => Err(CredentialsError::not_loaded("the source has none")),
        };
        future::ProvideCredentials::ready(next)
    }
}

fn credentials(name: &str, life: Option<Duration>) -> Credentials {
    let expiry = life.map(|life| SystemTime::now() + life);
    Credentials::new(name, "secret", Some("token".to_owned()), expiry, "test")
}

fn identity(answers: impl IntoIterator<Item = Option<Credentials>>) -> StoreIdentity {
    let script = Script(parking_lot::Mutex::new(answers.into_iter().collect()));
    StoreIdentity::with_provider(SharedCredentialsProvider::new(script))
}

#[tokio::test]
async fn a_failed_fetch_keeps_the_credentials_until_they_expire() {
    let life = Duration::from_millis(200);
    let identity = identity([Some(credentials("first", Some(life))), None]);
    assert_eq!(identity.current().unwrap_err().kind(), ErrorKind::SlowDown);
    identity.refresh().await.unwrap();
    assert!(identity.refresh().await.is_err());
    assert_eq!(identity.access_key().as_deref(), Some("first"));
    assert!(identity.current().is_ok());
    std::thread::sleep(life);
    assert_eq!(identity.current().unwrap_err().kind(), ErrorKind::SlowDown);
}

#[tokio::test]
async fn expired_credentials_of_the_source_are_a_failure() {
    let expired = Credentials::new("old", "secret", None, Some(SystemTime::UNIX_EPOCH), "test");
    let identity = identity([Some(expired)]);
    assert!(matches!(identity.refresh().await, Err(FetchFailure::Expired)));
    assert!(identity.current().is_err());
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_replaced_once_for_all_requests() {
    let names = ["first", "second", "second", "third"];
    let identity = identity(names.map(|name| Some(credentials(name, None))));
    identity.refresh().await.unwrap();
    let (one, other) = tokio::join!(identity.replace("first"), identity.replace("first"));
    assert!(one && other);
    assert_eq!(identity.access_key().as_deref(), Some("second"));
    // The source has no others yet. It is asked once for both requests.
    let (one, other) = tokio::join!(identity.replace("second"), identity.replace("second"));
    assert!(!one && !other);
    assert!(identity.replace("second").await);
    assert_eq!(identity.access_key().as_deref(), Some("third"));
}

#[tokio::test]
async fn the_task_fetches_when_a_request_needs_credentials() {
    let identity = identity([Some(credentials("first", None))]);
    let _refresher = identity.start(false).await;
    tokio::task::yield_now().await;
    assert_eq!(identity.access_key(), None);
    assert!(identity.current().is_err());
    while identity.access_key().is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn debug_output_shows_no_secret() {
    let identity = identity([Some(credentials("first", None))]);
    identity.refresh().await.unwrap();
    let shown = format!("{identity:?}");
    assert!(!shown.contains("secret") && !shown.contains("token"), "{shown}");
}
