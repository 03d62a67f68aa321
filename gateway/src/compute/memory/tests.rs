use super::*;
use crate::compute::BodySize;

fn memory(total_bytes: u64, max_waiting: usize) -> Memory {
    Memory::build(
        total_bytes,
        UnverifiedBytes {
            small: total_bytes / 10,
            large: total_bytes * 2 / 5,
        },
        max_waiting,
        Duration::from_secs(5),
        Ledger::default(),
        Metrics::default(),
    )
}

async fn acquire(memory: &Memory, bytes: u64) -> Result<Permit> {
    memory.acquire(&Tenant::default(), bytes).await
}

#[tokio::test(start_paused = true)]
async fn a_full_budget_is_an_error_after_a_bounded_wait() {
    let memory = memory(10 * UNIT_BYTES, 4);
    let held = acquire(&memory, 8 * UNIT_BYTES).await.unwrap();
    let error = acquire(&memory, 4 * UNIT_BYTES).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SlowDown);
    drop(held);
    assert_eq!(
        acquire(&memory, 10 * UNIT_BYTES).await.unwrap().bytes(),
        10 * UNIT_BYTES
    );
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded() {
    let memory = memory(UNIT_BYTES, 0);
    let _held = acquire(&memory, UNIT_BYTES).await.unwrap();
    let started = tokio::time::Instant::now();
    assert_eq!(
        acquire(&memory, UNIT_BYTES).await.unwrap_err().kind(),
        ErrorKind::SlowDown
    );
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn more_than_the_whole_budget_is_too_large() {
    assert_eq!(
        acquire(&memory(UNIT_BYTES, 4), UNIT_BYTES + 1)
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::EntityTooLarge
    );
}

#[tokio::test]
async fn permits_grow_without_waiting_and_shrink() {
    let memory = memory(10 * UNIT_BYTES, 4);
    let mut permit = acquire(&memory, UNIT_BYTES).await.unwrap();
    memory.grow(&mut permit, 8 * UNIT_BYTES).unwrap();
    assert_eq!(permit.bytes(), 9 * UNIT_BYTES);
    assert_eq!(
        memory.grow(&mut permit, UNIT_BYTES + 1).unwrap_err().kind(),
        ErrorKind::EntityTooLarge
    );
    permit.shrink_to(1);
    let mut other = acquire(&memory, 9 * UNIT_BYTES).await.unwrap();
    assert_eq!(
        memory.grow(&mut permit, UNIT_BYTES).unwrap_err().kind(),
        ErrorKind::SlowDown
    );
    other.shrink_to(0);
    assert_eq!(
        acquire(&memory, 9 * UNIT_BYTES).await.unwrap().bytes(),
        9 * UNIT_BYTES
    );
}

/// The next permit goes to the next tenant, not to the oldest request.
#[tokio::test]
async fn memory_is_shared_round_robin_between_tenants() {
    let memory = memory(UNIT_BYTES, 100);
    let held = acquire(&memory, UNIT_BYTES).await.unwrap();
    let (many, one) = (
        Tenant::from_access_key(Some("many")),
        Tenant::from_access_key(Some("one")),
    );
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    for tenant in [vec![&many; 20], vec![&one]].concat() {
        let (memory, tenant, sender) = (memory.clone(), tenant.clone(), sender.clone());
        tokio::spawn(async move {
            let permit = memory.acquire(&tenant, UNIT_BYTES).await.unwrap();
            sender.send(tenant).unwrap();
            drop(permit);
        });
    }
    while memory.metrics.requests_queued() < 21 {
        tokio::task::yield_now().await;
    }
    drop((held, sender));
    let mut served = Vec::new();
    while let Some(tenant) = order.recv().await {
        served.push(tenant);
    }
    assert_eq!(served.len(), 21);
    assert!(served[..3].contains(&one), "{served:?}");
}

/// Unverified callers that have or await all of their budget delay nobody else.
#[tokio::test(start_paused = true)]
async fn unverified_callers_share_a_part_of_the_budget() {
    let (memory, stranger) = (memory(10 * UNIT_BYTES, 4), Tenant::unverified(BodySize::Large));
    let too_large = memory.acquire(&stranger, 5 * UNIT_BYTES).await.unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::EntityTooLarge);
    let mut held = memory.acquire(&stranger, 4 * UNIT_BYTES).await.unwrap();
    let refused = memory.acquire(&stranger, UNIT_BYTES).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SlowDown);

    let waiting = {
        let (memory, stranger) = (memory.clone(), stranger.clone());
        tokio::spawn(async move { memory.acquire(&stranger, UNIT_BYTES).await })
    };
    while memory.metrics.requests_queued() < 1 {
        tokio::task::yield_now().await;
    }
    assert!(memory.is_contended(&stranger));
    let started = tokio::time::Instant::now();
    let small = Tenant::unverified(BodySize::Small);
    let other = memory.acquire(&small, UNIT_BYTES).await.unwrap();
    let another = acquire(&memory, 5 * UNIT_BYTES).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(!memory.is_contended(&small));
    drop((other, another));
    held.shrink_to(3 * UNIT_BYTES);
    assert_eq!(waiting.await.unwrap().unwrap().bytes(), UNIT_BYTES);
    assert!(!memory.is_contended(&stranger));

    // A verified request leaves their budget, and still counts in the budget.
    held.mark_verified();
    let _more = memory.acquire(&stranger, 4 * UNIT_BYTES).await.unwrap();
    let refused = acquire(&memory, 4 * UNIT_BYTES).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SlowDown);
}

/// A request can be dropped at any moment of its wait.
#[tokio::test]
async fn dropped_waiters_do_not_block_others() {
    let memory = memory(UNIT_BYTES, 100);
    let held = acquire(&memory, UNIT_BYTES).await.unwrap();
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let memory = memory.clone();
            tokio::spawn(async move { acquire(&memory, UNIT_BYTES).await.map(drop) })
        })
        .collect();
    while memory.metrics.requests_queued() < 20 {
        tokio::task::yield_now().await;
    }
    waiting[..10].iter().for_each(tokio::task::JoinHandle::abort);
    drop(held);
    for (index, waiting) in waiting.into_iter().enumerate() {
        assert_eq!(waiting.await.is_ok(), index >= 10);
    }
    assert_eq!(acquire(&memory, UNIT_BYTES).await.unwrap().bytes(), UNIT_BYTES);
}
