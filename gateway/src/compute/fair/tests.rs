use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use proptest::prelude::*;
use pushdown_testkit::jain;
use tokio::time::advance;

use super::*;

const MILLISECOND: u64 = 1_000_000;

fn tenant(index: usize) -> Tenant {
    Tenant::of(Some(&format!("tenant {index}")))
}

/// A machine without a clock: threads that take from the queue whenever they are free, and tenants whose work, which
/// never ends, costs so many nanoseconds a piece.
struct Machine {
    ledger: Ledger,
    queue: FairQueue<usize>,
    costs: Vec<u64>,
    /// Places of what waits: the machine takes it out, not they.
    places: Vec<Place<usize>>,
    /// When a thread ends what it runs, and whose it is.
    running: BinaryHeap<Reverse<(u64, usize)>>,
    used: Vec<u64>,
    now: u64,
}

impl Machine {
    fn new(costs: &[u64], threads: usize) -> Self {
        let ledger = Ledger::default();
        let mut machine = Self {
            queue: FairQueue::new(ledger.clone()),
            ledger,
            costs: costs.to_vec(),
            places: Vec::new(),
            running: BinaryHeap::new(),
            used: vec![0; costs.len()],
            now: 0,
        };
        for index in 0..costs.len() {
            for _ in 0..=threads {
                machine.add(index);
            }
        }
        for _ in 0..threads {
            machine.start();
        }
        machine
    }

    fn add(&mut self, index: usize) {
        self.places.push(self.queue.push(&tenant(index).now(), index));
    }

    fn start(&mut self) -> Option<usize> {
        let index = self.queue.pop()?;
        self.running.push(Reverse((self.now + self.costs[index], index)));
        Some(index)
    }

    /// Ends one piece of work, and starts the next, whose owner it tells.
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
fn what_is_left_in_a_queue_is_its_own() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let (first, second) = (
        queue.push(&tenant(0).now(), 'a'),
        queue.push(&tenant(0).now(), 'b'),
    );
    let third = queue.push(&tenant(1).now(), 'c');
    ledger.charge(&tenant(0), Duration::from_millis(5));
    assert_eq!((queue.len(), ledger.remembered()), (3, 1));
    drop(first);
    assert_eq!(queue.pop(), Some('c'));
    assert_eq!(queue.pop(), Some('b'));
    assert_eq!((queue.pop(), queue.len()), (None, 0));
    drop((second, third));
    // Nothing waits, so nobody has taken anything from anyone.
    ledger.charge(&tenant(0), Duration::from_secs(1));
    assert_eq!(ledger.remembered(), 0);
}

/// What came first goes first, whenever it was queued: a sample that waits for its model stands where its request does.
#[tokio::test(start_paused = true)]
async fn older_requests_go_first() {
    let queue = FairQueue::new(Ledger::default());
    let first = tenant(0).now();
    advance(Duration::from_millis(1)).await;
    let second = tenant(0).now();
    let push = |standing, item| queue.push(standing, item);
    let (_b, _c) = (push(&second, 'c'), push(&second, 'd'));
    let (gone, _a) = (push(&first, 'x'), push(&first, 'a'));
    let _d = push(&first.again(), 'b');
    drop(gone);
    let order: String = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(order, "abcd");
}

#[test]
fn a_debt_is_sat_out_and_not_left_behind() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let places: Vec<_> = (0..200).map(|_| queue.push(&tenant(0).now(), 0)).collect();
    // The other one leaves after its work, and comes again.
    ledger.charge(&tenant(1), Duration::from_millis(100));
    let _again = queue.push(&tenant(1).now(), 1);
    let mut before = 0;
    while queue.pop() == Some(0) {
        ledger.charge(&tenant(0), Duration::from_millis(1));
        before += 1;
    }
    assert!((99..=101).contains(&before), "{before}");
    drop(places);
}

/// Hours of debt take no longer to pass than milliseconds.
#[test]
fn rounds_in_which_nobody_may_run_pass_at_once() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let _places = [queue.push(&tenant(0).now(), 0), queue.push(&tenant(1).now(), 1)];
    ledger.charge(&tenant(0), Duration::MAX);
    ledger.charge(&tenant(1), Duration::from_hours(1000));
    assert_eq!([queue.pop(), queue.pop()], [Some(1), Some(0)]);
}

/// Queues of one ledger share the turns: who used the CPU much by one of them is later in the other.
#[test]
fn a_debt_holds_in_every_queue_of_a_ledger() {
    let ledger = Ledger::default();
    let (queue, other) = (FairQueue::new(ledger.clone()), FairQueue::new(ledger.clone()));
    let _waiting = queue.push(&tenant(0).now(), 0);
    ledger.charge(&tenant(0), Duration::from_secs(1));
    let _places = [other.push(&tenant(0).now(), 0), other.push(&tenant(1).now(), 1)];
    assert_eq!(other.pop(), Some(1));
}

#[test]
fn tenants_who_come_and_go_are_forgotten() {
    let ledger = Ledger::default();
    let queue = FairQueue::new(ledger.clone());
    let busy = queue.push(&tenant(0).now(), 0);
    for index in 1..10_000 {
        let _visitor = queue.push(&tenant(index).now(), index);
        queue.pop();
        ledger.charge(&tenant(index), Duration::from_secs(1));
        assert!(ledger.remembered() <= 4096);
    }
    drop(busy);
    assert_eq!(queue.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a piece of a tenant's work costs, all get the same CPU time.
    #[test]
    fn cpu_time_is_shared_equally(
        costs in prop::collection::vec(MILLISECOND / 2..200 * MILLISECOND, 2..12),
        threads in 1_usize..9,
    ) {
        // Where there are more threads than tenants, nobody wants for anything.
        prop_assume!(threads <= costs.len());
        let mut machine = Machine::new(&costs, threads);
        machine.run_until(20_000 * MILLISECOND);
        let index = jain(&machine.used);
        prop_assert!(index >= 0.99, "{index}: {:?}", machine.used);
    }

    /// Whoever comes late with one piece of work waits for at most two of each other tenant.
    #[test]
    fn a_late_tenant_waits_at_most_two_turns(
        costs in prop::collection::vec(MILLISECOND / 2..200 * MILLISECOND, 1..12),
        threads in 1_usize..9,
        steps in 0_usize..500,
    ) {
        let mut machine = Machine::new(&costs, threads);
        for _ in 0..steps {
            machine.step();
        }
        let late = costs.len();
        machine.costs.push(MILLISECOND);
        machine.used.push(0);
        machine.add(late);
        let mut turns = 0;
        while machine.step() != Some(late) {
            turns += 1;
            prop_assert!(turns <= 2 * costs.len(), "{turns} turns of {} tenants", costs.len());
        }
    }
}
