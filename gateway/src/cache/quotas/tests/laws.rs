//! Laws that hold for any sequence of observations.

use proptest::prelude::*;

use super::*;

const SETS: u8 = 4;
const OBJECTS: u64 = 300;
const MEMORY_BYTES: u64 = 1_000_000;
const DISK_BYTES: u64 = 4_000_000;

#[derive(Debug, Clone)]
enum Event {
    Request {
        set: u8,
        tenant: u8,
        object: u64,
        hints: Option<Hints>,
    },
    Value {
        set: u8,
        object: u64,
        bytes: u64,
        saved_seconds: f64,
    },
    Hit {
        set: u8,
        object: u64,
    },
    Pin {
        set: u8,
        tenant: u8,
        keep_seconds: u64,
    },
    Reallocate {
        seconds: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let samples = prop_oneof![Just(0), Just(OBJECTS), Just(1_000_000), Just(u64::MAX)];
    let hints = prop::option::of((0_u32..4, samples).prop_map(|(epochs, samples)| Hints { epochs, samples }));
    let (sets, objects) = (|| 0..SETS, || 0..OBJECTS);
    prop_oneof![
        12 => (sets(), 0_u8..3, objects(), hints).prop_map(|(set, tenant, object, hints)| Event::Request {
            set, tenant, object, hints,
        }),
        6 => (sets(), objects(), 1_u64..100_000, -0.01..0.1_f64).prop_map(|(set, object, bytes, saved_seconds)| {
            Event::Value { set, object, bytes, saved_seconds }
        }),
        2 => (sets(), objects()).prop_map(|(set, object)| Event::Hit { set, object }),
        1 => (sets(), 0_u8..3, 1_u64..9_000).prop_map(|(set, tenant, keep_seconds)| Event::Pin {
            set, tenant, keep_seconds,
        }),
        1 => prop_oneof![0_u64..60, 0_u64..9_000].prop_map(|seconds| Event::Reallocate { seconds }),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(), 1..400)
}

fn tenant_of(number: u8) -> Tenant {
    Tenant::from_access_key(Some(&format!("tenant {number}")))
}

/// Applies an event, and returns the time after it.
fn apply(quotas: &mut Quotas, event: &Event, now: Duration) -> Duration {
    match *event {
        Event::Request {
            set,
            tenant,
            object,
            hints,
        } => {
            let tenant = tenant_of(tenant);
            quotas.observe_request(set_id(set), &tenant, object_hash(object), hints, now);
        }
        Event::Value {
            set,
            object,
            bytes,
            saved_seconds,
        } => quotas.observe_value(set_id(set), object_hash(object), bytes, saved_seconds),
        Event::Hit { set, object } => {
            quotas.observe_hit(set_id(set), object_hash(object));
        }
        Event::Pin {
            set,
            tenant,
            keep_seconds,
        } => quotas.pin(
            set_id(set),
            &tenant_of(tenant),
            Duration::from_secs(keep_seconds),
            now,
        ),
        Event::Reallocate { seconds } => {
            quotas.reallocate(now + Duration::from_secs(seconds));
            return now + Duration::from_secs(seconds);
        }
    }
    now + Duration::from_millis(100)
}

/// The levels of all objects of a set, in the order of their hashes.
fn placements(quotas: &Quotas, set: u8) -> Vec<Option<CacheLevel>> {
    let mut hashes: Vec<u64> = (0..OBJECTS).map(object_hash).collect();
    hashes.sort_unstable();
    hashes
        .into_iter()
        .map(|hash| quotas.placement(set_id(set), hash))
        .collect()
}

fn used(quotas: &Quotas) -> BTreeMap<SetId, LevelBytes> {
    quotas
        .sets
        .iter()
        .map(|(id, set)| (*id, set.used_bytes()))
        .collect()
}

/// Events of sets of which all values fit into the cache.
fn events_that_fit() -> impl Strategy<Value = Vec<(u8, u64, u64, Option<u64>)>> {
    let bytes = 1..(9 * (MEMORY_BYTES + DISK_BYTES) / 10 / (u64::from(SETS) * OBJECTS));
    let samples = prop::option::of(1..=OBJECTS);
    prop::collection::vec((0..SETS, 0..OBJECTS, bytes, samples), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    /// So a lower threshold only removes objects, a higher one only adds some.
    #[test]
    fn what_is_admitted_is_a_prefix_in_the_order_of_the_hashes(events in events()) {
        let mut quotas = Quotas::new(MEMORY_BYTES, DISK_BYTES, DAY, PIN_RATIO);
        let mut now = HOUR;
        for event in events {
            now = apply(&mut quotas, &event, now);
        }
        for set in 0..SETS {
            let order = |level: &Option<CacheLevel>| match level {
                Some(CacheLevel::Memory) => 0,
                Some(CacheLevel::Disk) => 1,
                None => 2,
            };
            prop_assert!(placements(&quotas, set).is_sorted_by_key(order));
        }
    }

    #[test]
    fn quotas_never_exceed_the_capacity(events in events()) {
        let mut quotas = Quotas::new(MEMORY_BYTES, DISK_BYTES, DAY, PIN_RATIO);
        let mut now = HOUR;
        for event in events {
            now = apply(&mut quotas, &event, now);
            let sets = used(&quotas);
            let memory: f64 = sets.values().map(|bytes| bytes.memory).sum();
            let disk: f64 = sets.values().map(|bytes| bytes.disk).sum();
            prop_assert!(memory <= 0.9 * float(MEMORY_BYTES) * (1.0 + 1e-6), "{memory} after {event:?}");
            prop_assert!(disk <= 0.9 * float(DISK_BYTES) * (1.0 + 1e-6), "{disk} after {event:?}");
        }
    }

    /// What a tenant pins is a part of its level, and what is pinned is in the quotas.
    #[test]
    fn no_tenant_pins_more_than_its_part(events in events(), memory in prop_oneof![Just(0), Just(MEMORY_BYTES)]) {
        for disk in [0, DISK_BYTES] {
            let mut quotas = Quotas::new(memory, disk, DAY, PIN_RATIO);
            let space = 0.9 * float(if disk > 0 { disk } else { memory });
            let mut now = HOUR;
            for event in &events {
                now = apply(&mut quotas, event, now);
                for tenant in 0..3 {
                    let leases = quotas.sets.values().map(|set| set.leases.bytes_of(&tenant_of(tenant)));
                    let pinned: f64 = leases.sum();
                    prop_assert!(pinned <= PIN_RATIO * space * (1.0 + 1e-6), "{pinned} after {event:?}");
                }
                for set in quotas.sets.values() {
                    let (pinned, quota) = (set.leases.bytes(), set.quota.bytes().times(quotas.pin_level()));
                    prop_assert!(pinned <= quota.total() * (1.0 + 1e-6), "{pinned} of {quota:?} after {event:?}");
                }
                prop_assert!(quotas.pinned_bytes() <= space * (1.0 + 1e-6));
            }
        }
    }

    /// Whether anybody asks again, and whatever is announced.
    #[test]
    fn what_fits_is_admitted_at_its_first_computation(events in events_that_fit(), pauses in prop::collection::vec(0_u64..60, 400)) {
        let mut quotas = Quotas::new(MEMORY_BYTES, DISK_BYTES, DAY, PIN_RATIO);
        let mut now = HOUR;
        for ((set, object, bytes, samples), pause) in events.into_iter().zip(pauses) {
            let hints = samples.map(|samples| Hints { epochs: 1, samples });
            now = apply(&mut quotas, &Event::Request { set, tenant: 0, object, hints }, now);
            now = apply(&mut quotas, &Event::Value { set, object, bytes, saved_seconds: 0.01 }, now);
            prop_assert!(quotas.placement(set_id(set), object_hash(object)).is_some());
            if pause > 50 {
                now = apply(&mut quotas, &Event::Reallocate { seconds: pause }, now);
            }
        }
    }

    /// What is saved, and loaded into a cache of another size, is within its capacity.
    #[test]
    fn a_restart_never_exceeds_the_capacity(events in events(), memory in 0..MEMORY_BYTES, disk in 0..2 * DISK_BYTES) {
        let mut quotas = Quotas::new(MEMORY_BYTES, DISK_BYTES, DAY, PIN_RATIO);
        let now = events.iter().fold(HOUR, |now, event| apply(&mut quotas, event, now));
        let saved = quotas.save(now, std::time::SystemTime::now()).to_json().unwrap();
        let saved = SavedQuotas::from_json(&saved).unwrap();
        let mut resumed = Quotas::new(memory, disk, DAY, PIN_RATIO);
        resumed.resume(saved, now);
        let sets = used(&resumed);
        let (memory_used, disk_used) = sets.values().fold((0.0, 0.0), |(memory, disk), bytes| {
            (memory + bytes.memory, disk + bytes.disk)
        });
        prop_assert!(memory_used <= 0.9 * float(memory) * (1.0 + 1e-6), "{memory_used}");
        prop_assert!(disk_used <= 0.9 * float(disk) * (1.0 + 1e-6), "{disk_used}");
        // All laws hold for what follows.
        let mut now = now;
        for event in &events {
            now = apply(&mut resumed, event, now);
            let total: f64 = used(&resumed).values().map(|bytes| bytes.total()).sum();
            prop_assert!(total <= 0.9 * float(memory + disk) * (1.0 + 1e-6), "{total} after {event:?}");
        }
    }

    #[test]
    fn a_quota_falls_by_at_most_half_per_interval(events in events()) {
        let mut quotas = Quotas::new(MEMORY_BYTES, DISK_BYTES, Duration::MAX, PIN_RATIO);
        let mut now = HOUR;
        for event in events {
            let (before, reallocated_at) = (used(&quotas), quotas.reallocated_at);
            now = apply(&mut quotas, &event, now);
            let Event::Reallocate { .. } = event else { continue };
            let elapsed = reallocated_at.map_or(REALLOCATION_INTERVAL, |before| now.saturating_sub(before));
            let ratio = 0.5_f64.powf(elapsed.div_duration_f64(REALLOCATION_INTERVAL));
            let after = used(&quotas);
            for (id, before) in before {
                let after = after[&id];
                // What moves from disk to memory is not lost.
                for (before, after, capacity) in [
                    (before.memory, after.memory, MEMORY_BYTES),
                    (before.total(), after.total(), MEMORY_BYTES + DISK_BYTES),
                ] {
                    let lowest = before * ratio - 0.001 * float(capacity);
                    prop_assert!(after >= lowest, "{before} to {after} in {elapsed:?}");
                }
            }
        }
    }

    #[test]
    fn the_same_events_give_the_same_quotas(events in events()) {
        let run = || {
            let mut quotas = Quotas::new(MEMORY_BYTES, DISK_BYTES, DAY, PIN_RATIO);
            let now = events.iter().fold(HOUR, |now, event| apply(&mut quotas, event, now));
            quotas.snapshot(now)
        };
        prop_assert_eq!(run(), run());
    }
}
