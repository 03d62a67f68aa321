use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use proptest::prelude::*;
use pushdown_testkit::jain;
use tokio::time::advance;

use super::*;

const MILLISECOND: u64 = 1_000_000;

fn tenant(index: usize) -> Tenant {
    Tenant::from_access_key(Some(&format!("tenant {index}")))
}

/// A simulated CPU pool: threads take an item from the queue when they are free. Each tenant always has more work, at a
/// constant cost in nanoseconds per item.
struct Simulation {
    ledger: Ledger,
    queue: FairQueue<usize>,
    costs: Vec<u64>,
    /// Entries of waiting items. They are kept, since only `start` removes items.
    entries: Vec<QueueEntry<usize>>,
    /// For each running item, its end time and its tenant.
    running: BinaryHeap<Reverse<(u64, usize)>>,
    used: Vec<u64>,
    now: u64,
}

impl Simulation {
    fn new(costs: &[u64], threads: usize) -> Self {
        let ledger = Ledger::default();
        let mut simulation = Self {
            queue: FairQueue::new(ledger.clone()),
            ledger,
            costs: costs.to_vec(),
            entries: Vec::new(),
            running: BinaryHeap::new(),
            used: vec![0; costs.len()],
            now: 0,
        };
        for index in 0..costs.len() {
            for _ in 0..=threads {
                simulation.add(index);
            }
        }
        for _ in 0..threads {
            simulation.start();
        }
        simulation
    }

    fn add(&mut self, index: usize) {
        self.entries
            .push(self.queue.push(&tenant(index).position_now(), index));
    }

    fn start(&mut self) -> Option<usize> {
        let index = self.queue.pop()?;
        self.running.push(Reverse((self.now + self.costs[index], index)));
        Some(index)
    }

    /// Ends one item, starts the next, and returns the tenant of the started item.
    fn step(&mut self) -> Option<usize> {
        let Reverse((now, index)) = self.running.pop()?;
        self.now = now;
        self.used[index] += self.costs[index];
        self.ledger
            .charge(&tenant(index), Duration::from_nanos(self.costs[index]));
        self.add(index);
        self.start()
    }

    fn run_until(&mut self, time: u64) {
        while self.now < time {
            self.step();
        }
    }
}

#[test]
fn a_queue_removes_only_its_own_items() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let (first, second) = (
        queue.push(&tenant(0).position_now(), 'a'),
        queue.push(&tenant(0).position_now(), 'b'),
    );
    let third = queue.push(&tenant(1).position_now(), 'c');
    ledger.charge(&tenant(0), Duration::from_millis(5));
    assert_eq!((queue.len(), ledger.account_count()), (3, 1));
    drop(first);
    assert_eq!(queue.pop(), Some('c'));
    assert_eq!(queue.pop(), Some('b'));
    assert_eq!((queue.pop(), queue.len()), (None, 0));
    drop((second, third));
    // Nothing waits, so no tenant has delayed another.
    ledger.charge(&tenant(0), Duration::from_secs(1));
    assert_eq!(ledger.account_count(), 0);
}

/// Items are ordered by the time of their request, not by when they were queued: a sample that waits for its model keeps
/// the position of its request.
#[tokio::test(start_paused = true)]
async fn older_requests_go_first() {
    let queue = FairQueue::new(Ledger::default());
    let first = tenant(0).position_now();
    advance(Duration::from_millis(1)).await;
    let second = tenant(0).position_now();
    let push = |position, item| queue.push(position, item);
    let (_b, _c) = (push(&second, 'c'), push(&second, 'd'));
    let (removed, _a) = (push(&first, 'x'), push(&first, 'a'));
    let _d = push(&first.renewed(), 'b');
    drop(removed);
    let order: String = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(order, "abcd");
}

#[test]
fn a_debt_survives_leaving_the_queue() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let entries: Vec<_> = (0..200)
        .map(|_| queue.push(&tenant(0).position_now(), 0))
        .collect();
    // The other tenant leaves after its work, and returns.
    ledger.charge(&tenant(1), Duration::from_millis(100));
    let _again = queue.push(&tenant(1).position_now(), 1);
    let mut before = 0;
    while queue.pop() == Some(0) {
        ledger.charge(&tenant(0), Duration::from_millis(1));
        before += 1;
    }
    assert!((99..=101).contains(&before), "{before}");
    drop(entries);
}

/// Hours of debt are skipped as fast as milliseconds.
#[test]
fn rounds_without_credit_are_skipped_at_once() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let _entries = [
        queue.push(&tenant(0).position_now(), 0),
        queue.push(&tenant(1).position_now(), 1),
    ];
    ledger.charge(&tenant(0), Duration::MAX);
    ledger.charge(&tenant(1), Duration::from_hours(1000));
    assert_eq!([queue.pop(), queue.pop()], [Some(1), Some(0)]);
}

/// Queues of one ledger share credit: CPU time charged through one queue delays the tenant in the other.
#[test]
fn a_debt_counts_in_every_queue_of_a_ledger() {
    let ledger = Ledger::default();
    let (queue, other) = (FairQueue::new(ledger.clone()), FairQueue::new(ledger.clone()));
    let _waiting = queue.push(&tenant(0).position_now(), 0);
    ledger.charge(&tenant(0), Duration::from_secs(1));
    let _entries = [
        other.push(&tenant(0).position_now(), 0),
        other.push(&tenant(1).position_now(), 1),
    ];
    assert_eq!(other.pop(), Some(1));
}

#[test]
fn the_number_of_accounts_is_bounded() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let busy = queue.push(&tenant(0).position_now(), 0);
    for index in 1..10_000 {
        let _visitor = queue.push(&tenant(index).position_now(), index);
        queue.pop();
        ledger.charge(&tenant(index), Duration::from_secs(1));
        assert!(ledger.account_count() <= 4096);
    }
    drop(busy);
    assert_eq!(queue.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    /// All tenants get the same CPU time, independent of the cost of their items.
    #[test]
    fn cpu_time_is_shared_equally(
        costs in prop::collection::vec(MILLISECOND / 2..200 * MILLISECOND, 2..12),
        threads in 1_usize..9,
    ) {
        // With more threads than tenants, no tenant waits.
        prop_assume!(threads <= costs.len());
        let mut simulation = Simulation::new(&costs, threads);
        simulation.run_until(20_000 * MILLISECOND);
        let index = jain(&simulation.used);
        prop_assert!(index >= 0.99, "{index}: {:?}", simulation.used);
    }

    /// A new tenant with one item waits for at most two items of each other tenant.
    #[test]
    fn a_new_tenant_waits_at_most_two_rounds(
        costs in prop::collection::vec(MILLISECOND / 2..200 * MILLISECOND, 1..12),
        threads in 1_usize..9,
        steps in 0_usize..500,
    ) {
        let mut simulation = Simulation::new(&costs, threads);
        for _ in 0..steps {
            simulation.step();
        }
        let new = costs.len();
        simulation.costs.push(MILLISECOND);
        simulation.used.push(0);
        simulation.add(new);
        let mut items = 0;
        while simulation.step() != Some(new) {
            items += 1;
            prop_assert!(items <= 2 * costs.len(), "{items} items of {} tenants", costs.len());
        }
    }
}
