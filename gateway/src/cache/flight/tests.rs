//! Leaders, followers and waiters, under a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::poll;
use http::{HeaderMap, StatusCode, Uri, header};
use pushdown::pipeline::Digest;

use super::*;
use crate::origin::OriginObject;

type TestFlights = Flights<&'static str, usize>;

fn object() -> ObjectId {
    ObjectId::new(None, &Uri::from_static("/b/k"))
}

fn authorization(etag: &'static str) -> Authorization {
    let answer = OriginObject::for_test(
        StatusCode::OK,
        HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static(etag))]),
    );
    Authorization::from_answer(object(), &answer).unwrap()
}

fn source(etag: &'static str) -> Arc<SourceHead> {
    let answer = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static(etag))]);
    Arc::new(SourceHead::new(5, pushdown::BytesKind::default(), &answer).unwrap())
}

fn key() -> ValueKey {
    ValueKey::from(Digest::new(b"value"))
}

async fn leader(flights: &TestFlights) -> Leader<&'static str, usize> {
    match flights.enter(key(), object(), LeaderWait::Short).await {
        Role::Leader(leader) => leader,
        Role::Follower(_) | Role::Single => panic!("expected to lead"),
    }
}

async fn follower(flights: &TestFlights) -> Follower<&'static str, usize> {
    match flights.enter(key(), object(), LeaderWait::Short).await {
        Role::Follower(follower) => follower,
        Role::Leader(_) | Role::Single => panic!("expected to follow"),
    }
}

fn tenant() -> Tenant {
    Tenant::default()
}

/// Starts the computation, which takes the length of the object.
fn start(waiter: &Waiter<&'static str, usize>) -> bool {
    waiter.start(|_| true, |opened, _| async move { opened.len() })
}

#[tokio::test(start_paused = true)]
async fn a_value_is_computed_once_for_all_members() {
    let (flights, computed) = (TestFlights::default(), Arc::new(AtomicUsize::new(0)));
    let first = leader(&flights)
        .await
        .publish(source("\"1\""), "object", &tenant());
    let mut waiters = vec![first];
    for _ in 0..200 {
        let follower = follower(&flights).await;
        assert_eq!(follower.etag(), "\"1\"");
        waiters.push(
            follower
                .join(&object(), &authorization("\"1\""), &tenant())
                .unwrap(),
        );
    }
    let mut started = 0;
    for waiter in &waiters {
        let computed = Arc::clone(&computed);
        let compute = |opened: &'static str, waiters: waiters::Waiters<_, _>| async move {
            computed.fetch_add(1, Ordering::Relaxed);
            assert_eq!(waiters.tenants().len(), 201);
            opened.len()
        };
        started += usize::from(waiter.start(|_| true, compute));
    }
    assert_eq!(started, 1);
    let mut results = Vec::new();
    for pending in waiters
        .iter()
        .map(|waiter| waiter.pending_result().unwrap())
        .collect::<Vec<_>>()
    {
        results.push(pending.result().await.unwrap());
    }
    assert!(results.iter().all(|result| **result == 6));
    assert_eq!(computed.load(Ordering::Relaxed), 1);
    // It can be joined as long as somebody has the value.
    results.truncate(1);
    let late = follower(&flights)
        .await
        .join(&object(), &authorization("\"1\""), &tenant())
        .unwrap();
    assert_eq!(late.pending_result().unwrap().result().await.as_deref(), Some(&6));
    drop((waiters, late));
    assert_eq!(flights.len(), 0);
}

/// A row that is not allowed to reserve memory yet must hold none.
#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_wait_holds_no_result() {
    let flights = TestFlights::default();
    let first = leader(&flights)
        .await
        .publish(source("\"1\""), "object", &tenant());
    let second = follower(&flights)
        .await
        .join(&object(), &authorization("\"1\""), &tenant())
        .unwrap();
    assert!(start(&first));
    let result = first.pending_result().unwrap().result().await.unwrap();
    assert_eq!(Arc::strong_count(&result), 1, "only of those who waited");
    drop(result);
    assert!(
        second.pending_result().is_none(),
        "the result has gone: it reads the object itself"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bad_result_is_only_for_those_who_wait() {
    let flights = TestFlights::default();
    let first = leader(&flights)
        .await
        .publish(source("\"1\""), "object", &tenant());
    let pending = first.pending_result().unwrap();
    assert!(first.start(|_| false, |opened, _| async move { opened.len() }));
    let result = pending.result().await;
    assert!(result.is_some());
    drop(leader(&flights).await);
}

#[tokio::test(start_paused = true)]
async fn only_an_authorization_for_the_version_joins() {
    let flights = TestFlights::default();
    let _leader = leader(&flights)
        .await
        .publish(source("\"1\""), "object", &tenant());
    let other = ObjectId::new(None, &Uri::from_static("/b/l"));
    for (object, etag, joins) in [
        (object(), "\"2\"", false),
        (other, "\"1\"", false),
        (object(), "\"1\"", true),
    ] {
        let joined = follower(&flights)
            .await
            .join(&object, &authorization(etag), &tenant());
        assert_eq!(joined.is_some(), joins, "{etag}");
    }
}

/// The leader's request may be refused, or its connection cut: otherwise a caller without rights could undo single flight.
#[tokio::test(start_paused = true)]
async fn the_next_one_leads_if_the_leader_fails() {
    let flights = TestFlights::default();
    let first = leader(&flights).await;
    let (second, third) = (
        flights.enter(key(), object(), LeaderWait::Short),
        flights.enter(key(), object(), LeaderWait::Short),
    );
    tokio::pin!(second, third);
    assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
    drop(first);
    let Role::Leader(second) = second.await else {
        panic!("expected a leader");
    };
    let _member = second.publish(source("\"1\""), "object", &tenant());
    assert!(matches!(third.await, Role::Follower(_)));
}

/// Refused leaders, one after the other, delay nobody for longer than one that hangs.
#[tokio::test(start_paused = true)]
async fn the_wait_for_leaders_is_bounded() {
    let flights = TestFlights::default();
    let started = Instant::now();
    let mut leading = leader(&flights).await;
    let waiting = flights.enter(key(), object(), LeaderWait::Short);
    tokio::pin!(waiting);
    while poll!(&mut waiting).is_pending() {
        tokio::time::advance(MAX_LEADER_WAIT / 3).await;
        drop(leading);
        leading = leader(&flights).await;
    }
    assert!(started.elapsed() <= MAX_LEADER_WAIT * 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_long_for_a_leader_that_hangs() {
    let flights = TestFlights::default();
    let _hanging = leader(&flights).await;
    for (wait, time) in [
        (LeaderWait::Short, MAX_LEADER_WAIT),
        (LeaderWait::None, Duration::ZERO),
    ] {
        let started = Instant::now();
        assert!(matches!(flights.enter(key(), object(), wait).await, Role::Single));
        assert_eq!(started.elapsed(), time);
    }
}

/// The leader's client may disconnect while others wait.
#[tokio::test(start_paused = true)]
async fn the_computation_runs_as_long_as_there_is_a_member() {
    let flights = TestFlights::default();
    let first = leader(&flights)
        .await
        .publish(source("\"1\""), "object", &tenant());
    let second = follower(&flights)
        .await
        .join(&object(), &authorization("\"1\""), &tenant())
        .unwrap();
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let compute = |opened: &'static str, _| async move {
        drop(finished.await);
        opened.len()
    };
    assert!(first.start(|_| true, compute));
    drop(first);
    second.started().await;
    {
        let result = second.pending_result().unwrap().result();
        tokio::pin!(result);
        assert!(poll!(&mut result).is_pending());
    }
    assert!(!finish.is_closed());
    drop(second);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(finish.is_closed(), "nobody waits any more");
    assert_eq!(flights.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_flight_without_a_result() {
    let flights = TestFlights::default();
    let waiter = leader(&flights)
        .await
        .publish(source("\"1\""), "object", &tenant());
    let pending = waiter.pending_result().unwrap();
    assert!(waiter.start(|_| true, |_, _| async { panic!("a bug") }));
    assert_eq!(pending.result().await, None);
    assert!(waiter.pending_result().is_none());
    drop(leader(&flights).await);
}

fn join(follower: Option<Follower<&'static str, usize>>) -> Waiter<&'static str, usize> {
    let joined = follower.and_then(|follower| follower.join(&object(), &authorization("\"1\""), &tenant()));
    joined.unwrap()
}

#[tokio::test]
async fn whoever_waits_gets_the_value_and_an_error_leaves_none() {
    let flights = TestFlights::default();
    assert!(flights.find(&key()).is_none());
    let leader = flights.lead(key(), object()).unwrap();
    assert!(flights.find(&key()).is_none(), "the version is not known");
    let computation = leader.begin(source("\"1\""));
    assert!(flights.lead(key(), object()).is_none());
    let refused = flights.find(&key()).unwrap();
    assert!(
        refused
            .join(&object(), &authorization("\"2\""), &tenant())
            .is_none()
    );
    let waiter = join(flights.find(&key()));
    let waiting = waiter.pending_result().unwrap();
    computation.finish(5);
    assert_eq!(waiting.result().await.as_deref(), Some(&5));
    drop(waiter);
    assert!(flights.find(&key()).is_none());

    let computation = flights.lead(key(), object()).unwrap().begin(source("\"1\""));
    let waiter = join(flights.find(&key()));
    let waiting = waiter.pending_result().unwrap();
    drop(computation);
    assert_eq!(waiting.result().await, None);
    assert!(flights.lead(key(), object()).is_some());
}
