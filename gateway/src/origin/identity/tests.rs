use std::thread;

use aws_credential_types::Credentials;

use super::scripted_source::{ScriptedSource, temporary};
use super::*;

fn identity(results: impl IntoIterator<Item = Option<Credentials>>) -> StoreIdentity {
    ScriptedSource::new(results).identity()
}

#[tokio::test(start_paused = true)]
async fn a_failed_fetch_keeps_the_credentials_until_they_expire() {
    // Of the clock of the system, which is not paused.
    let life = Duration::from_secs(1);
    let identity = identity([Some(temporary("first", Some(life))), None]);
    assert_eq!(identity.current().unwrap_err().kind(), ErrorKind::SlowDown);
    identity.refresh().await.unwrap();
    thread::sleep(life * 3 / 5);
    assert!(matches!(identity.refresh().await, Err(FetchFailure::NoSource)));
    assert_eq!(identity.access_key().as_deref(), Some("first"));
    assert!(identity.current().is_ok());
    thread::sleep(life);
    assert_eq!(identity.current().unwrap_err().kind(), ErrorKind::SlowDown);
}

#[tokio::test]
async fn expired_credentials_of_the_source_are_a_failure() {
    let expired = Credentials::new("old", "secret", None, Some(SystemTime::UNIX_EPOCH), "test");
    let identity = identity([Some(expired)]);
    assert!(matches!(identity.refresh().await, Err(FetchFailure::Expired)));
    assert!(identity.current().is_err());
}

/// Clients retry the one error, and not the other.
#[tokio::test]
async fn a_missing_identity_is_final_if_its_source_never_changes() {
    for (is_fixed, kind) in [(true, ErrorKind::InvalidIdentity), (false, ErrorKind::SlowDown)] {
        let source = ScriptedSource::new([]);
        let identity = if is_fixed {
            source.fixed_identity()
        } else {
            source.identity()
        };
        let error = identity.current().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SlowDown, "the source was not asked yet");
        assert!(matches!(identity.refresh().await, Err(FetchFailure::NoSource)));
        let error = identity.current().unwrap_err();
        assert_eq!(error.kind(), kind);
        assert_eq!(error.retry_after().is_some(), kind == ErrorKind::SlowDown);
    }
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_replaced_once_for_all_requests() {
    let names = ["first", "second", "second", "third"];
    let identity = identity(names.map(|name| Some(temporary(name, None))));
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

#[tokio::test(start_paused = true)]
async fn a_refusal_and_a_refresh_share_one_fetch() {
    let life = Duration::from_millis(200);
    let source = ScriptedSource::new([
        Some(temporary("first", Some(life))),
        Some(temporary("second", None)),
        Some(temporary("third", None)),
    ]);
    let identity = source.identity();
    identity.refresh().await.unwrap();
    // Now a refresh is due, too.
    thread::sleep(life);
    let start = Instant::now();
    let (is_replaced, refreshed) = tokio::join!(identity.replace("first"), identity.refresh());
    assert!(is_replaced && refreshed.is_ok());
    assert_eq!(source.fetches(), 2);
    assert_eq!(start.elapsed(), MIN_FETCH_INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn refusals_without_a_reason_ask_the_source_rarely() {
    let names = ["first", "second", "third"];
    let source = ScriptedSource::new(names.map(|name| Some(temporary(name, None))));
    let identity = source.identity();
    identity.refresh().await.unwrap();
    assert!(identity.replace_unconfirmed("first").await);
    // Another request was signed before.
    assert!(identity.replace_unconfirmed("first").await);
    assert!(!identity.replace_unconfirmed("second").await);
    assert_eq!(source.fetches(), 2);
    tokio::time::advance(MIN_UNCONFIRMED_INTERVAL).await;
    assert!(identity.replace_unconfirmed("second").await);
    assert_eq!(identity.access_key().as_deref(), Some("third"));
}

#[tokio::test]
async fn the_task_fetches_when_a_request_needs_credentials() {
    let identity = identity([Some(temporary("first", None))]);
    let _refresher = identity.start(false).await;
    tokio::task::yield_now().await;
    assert_eq!(identity.access_key(), None);
    assert!(identity.current().is_err());
    while identity.access_key().is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_the_pause_after_failures() {
    let source = ScriptedSource::new([]);
    let identity = source.identity();
    let _refresher = identity.start(true).await;
    // The pauses have become long, and one begins.
    tokio::time::sleep(Duration::from_mins(5)).await;
    let fetches = source.fetches();
    while source.fetches() == fetches {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    source.push(temporary("first", None));
    let start = Instant::now();
    while identity.current().is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(start.elapsed() <= Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn requests_do_not_ask_a_failing_source_all_the_time() {
    let source = ScriptedSource::new([]);
    let identity = source.identity();
    let _refresher = identity.start(true).await;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        assert!(identity.current().is_err());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // There is a pause of one second at least.
    let fetches = source.fetches();
    assert!((5..=12).contains(&fetches), "{fetches}");
}

#[tokio::test]
async fn debug_output_shows_no_secret() {
    let identity = identity([Some(temporary("first", None))]);
    identity.refresh().await.unwrap();
    let shown = format!("{identity:?}");
    assert!(!shown.contains("secret") && !shown.contains("token"), "{shown}");
}
