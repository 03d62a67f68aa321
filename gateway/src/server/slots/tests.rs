use super::*;

fn slots(max_connections: usize, max_per_client: usize, proxies: &[&str]) -> Arc<Slots> {
    let proxies = proxies.iter().map(|proxy| proxy.parse().unwrap()).collect();
    Arc::new(Slots::new(
        max_connections,
        max_per_client,
        proxies,
        Metrics::default(),
    ))
}

fn slot(slots: &Arc<Slots>, address: &str) -> Option<Slot> {
    match slots.try_admit(address.parse().unwrap(), false) {
        Admission::Slot(slot) => Some(slot),
        Admission::Refused => None,
        Admission::Full(_) => panic!("all slots are taken"),
    }
}

/// A connection of this address that waits for a head.
fn silent(slots: &Arc<Slots>, address: &str) -> Slot {
    let slot = slot(slots, address).unwrap();
    assert!(slot.set_wait(Some(Wait::Head)));
    slot
}

fn is_full(slots: &Arc<Slots>, address: &str) -> bool {
    matches!(
        slots.try_admit(address.parse().unwrap(), false),
        Admission::Full(_)
    )
}

/// Which of these have lost their slots, by index.
fn evicted(connections: &[Slot]) -> Vec<usize> {
    let is_evicted = |index: &usize| connections[*index].evicted.is_cancelled();
    (0..connections.len()).filter(is_evicted).collect()
}

#[test]
fn a_client_at_its_limit_replaces_its_own_connections() {
    let slots = slots(100, 2, &[]);
    let mut connections = vec![silent(&slots, "10.0.0.2"), silent(&slots, "10.0.0.1")];
    connections.push(silent(&slots, "10.0.0.1"));
    connections.push(silent(&slots, "10.0.0.1"));
    assert_eq!(evicted(&connections), [1]);
    // One that is given a request keeps its slot, whatever its age.
    assert!(connections[2].set_wait(None));
    connections.push(silent(&slots, "10.0.0.1"));
    assert_eq!(evicted(&connections), [1, 3]);
    assert!(connections[4].set_wait(None));
    assert!(slot(&slots, "10.0.0.1").is_none());
    assert!(!connections[1].set_wait(None), "the connection begins a request");
    // An idle connection has waited since its last request.
    connections[2].set_wait(Some(Wait::Head));
    connections.push(slot(&slots, "10.0.0.1").unwrap());
    assert_eq!(evicted(&connections), [1, 2, 3]);
    assert_eq!(slots.metrics.connections_evicted.get(), 3);
}

#[test]
fn the_client_with_the_most_connections_makes_room() {
    let slots = slots(6, 6, &[]);
    let mut connections = vec![silent(&slots, "10.0.0.1"), silent(&slots, "10.0.0.2")];
    connections.extend((0..4).map(|_| silent(&slots, "10.0.0.3")));
    for expected in [&[2][..], &[2, 3], &[2, 3, 6]] {
        connections.push(silent(&slots, "10.0.0.4"));
        assert_eq!(evicted(&connections), expected);
    }
    // With requests in flight on all its connections, it displaces those of clients with as many, and not of those with fewer.
    assert!(connections[7..].iter().all(|slot| slot.set_wait(None)));
    connections.push(slot(&slots, "10.0.0.4").unwrap());
    assert_eq!(evicted(&connections), [2, 3, 4, 6]);
    assert!(slot(&slots, "10.0.0.4").is_none());
    connections.push(silent(&slots, "10.0.0.5"));
    assert_eq!(evicted(&connections), [0, 2, 3, 4, 6]);
}

#[test]
fn silent_connections_of_many_clients_leave_each_client_its_slots() {
    let slots = slots(1024, 256, &[]);
    let mut attack: Vec<_> = (0..10_000)
        .map(|index| silent(&slots, &format!("10.0.0.{}", index % 40)))
        .collect();
    let victim: Vec<_> = (0..20).map(|_| silent(&slots, "10.1.0.1")).collect();
    attack.extend((0..10_000).map(|index| silent(&slots, &format!("10.0.0.{}", index % 40))));
    assert_eq!(evicted(&victim), [0; 0]);
    let state = slots.state.lock();
    assert_eq!((state.connections.len(), state.clients.len()), (1024, 41));
}

#[tokio::test(start_paused = true)]
async fn a_silent_body_makes_room_after_a_second() {
    let slots = slots(3, 3, &[]);
    let connections: Vec<_> = (0..3).map(|_| slot(&slots, "10.0.0.1").unwrap()).collect();
    assert!(is_full(&slots, "10.0.0.2"));
    connections[2].set_wait(Some(Wait::Body));
    tokio::time::advance(Duration::from_millis(500)).await;
    connections[1].set_wait(Some(Wait::Body));
    assert!(is_full(&slots, "10.0.0.2") && slot(&slots, "10.0.0.1").is_none());
    let start = Instant::now();
    let address = "10.0.0.2".parse().unwrap();
    let newcomers = [slots.admit(address).await, slots.admit(address).await];
    assert!(newcomers.iter().all(Option::is_some));
    assert_eq!(
        (start.elapsed().as_secs(), evicted(&connections)),
        (1, vec![1, 2])
    );
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_waits_while_requests_are_in_flight_on_all_connections() {
    let slots = slots(1, 1, &[]);
    let first = slot(&slots, "10.0.0.1").unwrap();
    let waiting = tokio::spawn({
        let slots = Arc::clone(&slots);
        async move { slots.admit("10.0.0.2".parse().unwrap()).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    first.set_wait(Some(Wait::Head));
    assert!(waiting.await.unwrap().is_some());
    first.evicted().await;
    drop(first);
    assert!(slots.admit("10.0.0.2".parse().unwrap()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_overtake_those_who_wait() {
    let slots = slots(2, 2, &[]);
    let mut taken: Vec<_> = (0..2).map(|_| slot(&slots, "10.0.0.1").unwrap()).collect();
    let wait = || {
        let slots = Arc::clone(&slots);
        tokio::spawn(async move { slots.admit("10.0.0.2".parse().unwrap()).await })
    };
    let (first, second) = (wait(), wait());
    tokio::task::yield_now().await;
    taken.pop();
    // The slot is free, and the first one has not run yet.
    let address = "10.0.0.3".parse().unwrap();
    assert!(matches!(slots.try_admit(address, true), Admission::Full(_)));
    let newcomer = slots.admit_now(address).await;
    assert!(matches!(newcomer, Admission::Full(_)), "{newcomer:?}");
    let first = first.await.unwrap();
    assert!(first.is_some() && !second.is_finished());
    drop(taken);
    assert!(second.await.unwrap().is_some());
    assert!(matches!(slots.admit_now(address).await, Admission::Slot(_)));
}

#[test]
fn proxies_have_no_limit_of_their_own_and_make_room_last() {
    let slots = slots(6, 1, &["10.0.0.0/24", "fd00::1"]);
    let mut connections: Vec<_> = (0..4).map(|_| silent(&slots, "10.0.0.1")).collect();
    connections.push(silent(&slots, "fd00::2"));
    connections.push(silent(&slots, "10.1.0.1"));
    connections.push(silent(&slots, "fd00::1"));
    assert_eq!(
        evicted(&connections),
        [4],
        "an ordinary client in the /64 of a proxy"
    );
    connections.push(silent(&slots, "fd00::1"));
    assert_eq!(evicted(&connections), [4, 5]);
    connections.push(silent(&slots, "10.1.0.1"));
    assert_eq!(evicted(&connections), [0, 4, 5]);
}

#[test]
fn nothing_is_left_of_connections_that_have_ended() {
    let slots = slots(8, 4, &["10.0.0.1"]);
    for address in ["10.0.0.1", "10.0.0.2", "2001:db8::1"] {
        let connections: Vec<_> = (0..9).map(|_| silent(&slots, address)).collect();
        connections[8].set_wait(Some(Wait::Body));
    }
    let state = slots.state.lock();
    assert!(state.connections.is_empty() && state.clients.is_empty());
    assert!(state.heads.is_empty() && state.bodies.is_empty());
}

#[test]
fn a_lack_of_file_descriptors_reduces_the_slots() {
    let slots = slots(1024, 256, &[]);
    let connections: Vec<_> = (0..100).map(|_| silent(&slots, "10.0.0.1")).collect();
    connections[0].set_wait(None);
    assert_eq!((slots.reduce(), evicted(&connections).len()), (75, 25));
    let other = silent(&slots, "10.0.0.2");
    assert_eq!(evicted(&connections), (1..=26).collect::<Vec<_>>());
    drop((other, connections));
    assert_eq!(slots.reduce(), 16);
}

#[test]
fn among_clients_with_as_many_connections_the_longest_wait_ends() {
    let slots = slots(100, 25, &[]);
    let silent_client = |index: u8| silent(&slots, &format!("10.0.0.{index}"));
    let mut attack: Vec<_> = (0..150).map(silent_client).collect();
    let victims = [silent(&slots, "1.1.1.1"), silent(&slots, "203.0.113.1")];
    attack.extend((150..240).map(silent_client));
    assert_eq!(evicted(&victims), [0; 0]);
    assert_eq!(evicted(&attack), (0..142).collect::<Vec<_>>());
}
