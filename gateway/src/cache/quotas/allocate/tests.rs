use proptest::prelude::*;

use super::*;

/// Differences up to this ratio are rounding errors.
const ROUNDING_RATIO: f64 = 1e-9;

/// Sets with whole gains and bytes, each of some of `tenants`.
fn demands(sets: std::ops::Range<usize>, tenants: usize) -> impl Strategy<Value = Vec<Demand>> {
    let used_by = prop::collection::btree_set(0..tenants, 1..=tenants.min(3));
    let one = (0_u8..8, 0_u8..7, used_by);
    prop::collection::vec(one, sets).prop_map(|sets| {
        let numbered = (0_u8..).zip(sets);
        let demand =
            |(number, (gain, bytes, tenants)): (u8, (u8, u8, std::collections::BTreeSet<usize>))| Demand {
                set: SetId([number; 16]),
                gain_per_byte: f64::from(gain),
                is_held: false,
                max_bytes: f64::from(bytes),
                tenants: tenants.into_iter().collect(),
            };
        numbered.map(demand).collect()
    })
}

fn gain(demands: &[Demand], bytes: &[f64]) -> f64 {
    demands
        .iter()
        .zip(bytes)
        .map(|(demand, bytes)| demand.gain_per_byte * bytes)
        .sum()
}

/// The maximum gain over all divisions into whole bytes. No division into parts of bytes gains more, since capacity and demands
/// are whole.
fn max_gain(free_bytes: u8, demands: &[Demand]) -> f64 {
    let Some((demand, others)) = demands.split_first() else {
        return 0.0;
    };
    let is_possible = |bytes: &u8| f64::from(*bytes) <= demand.max_bytes;
    (0..=free_bytes)
        .take_while(is_possible)
        .map(|bytes| demand.gain_per_byte * f64::from(bytes) + max_gain(free_bytes - bytes, others))
        .fold(0.0, f64::max)
}

/// The bytes charged to each tenant, by number.
fn charges(demands: &[Demand], bytes: &[f64], tenants: usize) -> Vec<f64> {
    let mut charged = vec![0.0; tenants];
    for (demand, bytes) in demands.iter().zip(bytes) {
        for tenant in &demand.tenants {
            charged[*tenant] += bytes / float(demand.tenants.len() as u64);
        }
    }
    charged
}

fn demand(number: u8, gain_per_byte: f64, max_bytes: f64, tenants: &[usize]) -> Demand {
    Demand {
        set: SetId([number; 16]),
        gain_per_byte,
        is_held: false,
        max_bytes,
        tenants: tenants.to_vec(),
    }
}

#[test]
fn a_tenant_gets_what_the_others_leave() {
    let greedy = demand(0, 9.0, 100.0, &[0]);
    let modest = demand(1, 1.0, 20.0, &[1]);
    let other = demand(2, 2.0, 100.0, &[1]);
    assert_eq!(allocate(60.0, std::slice::from_ref(&greedy)), [60.0]);
    assert_eq!(allocate(60.0, &[greedy.clone(), modest]), [40.0, 20.0]);
    assert_eq!(allocate(60.0, &[greedy, other]), [30.0, 30.0]);
}

#[test]
fn a_shared_set_is_charged_in_equal_parts() {
    let shared = demand(0, 9.0, 40.0, &[0, 1]);
    let own = [demand(1, 5.0, 100.0, &[0]), demand(2, 3.0, 100.0, &[1])];
    let sets = [&[shared], &own[..]].concat();
    assert_eq!(allocate(100.0, &sets), [40.0, 30.0, 30.0]);
}

#[test]
fn without_tenants_a_set_gets_only_what_is_left() {
    let idle = demand(0, 9.0, 50.0, &[]);
    let used = demand(1, 1.0, 70.0, &[3]);
    assert_eq!(allocate(100.0, &[idle.clone(), used]), [30.0, 70.0]);
    assert_eq!(allocate(100.0, &[idle]), [50.0]);
}

/// Within the fair part of its tenant.
#[test]
fn what_a_set_has_comes_before_what_another_one_lacks() {
    let held = |demand| Demand {
        is_held: true,
        ..demand
    };
    let (old, new) = (held(demand(0, 1.0, 80.0, &[0])), demand(1, 9.0, 80.0, &[0]));
    assert_eq!(allocate(100.0, &[old, new]), [80.0, 20.0]);
    let (old, new) = (held(demand(0, 1.0, 80.0, &[0])), demand(1, 9.0, 80.0, &[1]));
    assert_eq!(allocate(100.0, &[old, new]), [50.0, 50.0]);
}

#[test]
fn nothing_is_given_for_no_gain() {
    let sets = [0.0, -1.0, f64::NAN].map(|gain| demand(0, gain, 10.0, &[0]));
    assert_eq!(allocate(100.0, &sets), [0.0; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2 * ProptestConfig::default().cases))]

    #[test]
    fn without_a_bound_for_tenants_no_division_gains_more(demands in demands(0..5, 1), capacity in 0_u8..16) {
        let bytes = allocate(f64::from(capacity), &demands);
        let (found, expected) = (gain(&demands, &bytes), max_gain(capacity, &demands));
        prop_assert!((found - expected).abs() <= ROUNDING_RATIO * expected, "expected {expected}, found {found}");
    }

    /// All of the capacity is used, if the sets with a gain can use it, and no more.
    #[test]
    fn the_capacity_is_used_and_never_exceeded(demands in demands(0..9, 4), capacity in 0_u8..40) {
        let bytes = allocate(f64::from(capacity), &demands);
        let useful = demands.iter().filter(|demand| demand.gain_per_byte > 0.0);
        let expected = useful.map(|demand| demand.max_bytes).sum::<f64>().min(f64::from(capacity));
        let found: f64 = bytes.iter().sum();
        prop_assert!((found - expected).abs() <= ROUNDING_RATIO * expected, "expected {expected}, found {found}");
        for (demand, bytes) in demands.iter().zip(bytes) {
            prop_assert!((0.0..=demand.max_bytes).contains(&bytes), "{demand:?}: {bytes}");
            prop_assert!(demand.gain_per_byte > 0.0 || bytes == 0.0, "{demand:?}: {bytes}");
        }
    }

    /// If a tenant exceeds its fair part, each set that gets less than it can use has a tenant which has its own.
    #[test]
    fn no_tenant_exceeds_its_fair_part_at_the_expense_of_another(demands in demands(1..9, 4), capacity in 1_u8..40) {
        let demands: Vec<Demand> = demands.into_iter().filter(|demand| demand.gain_per_byte > 0.0).collect();
        let active: std::collections::BTreeSet<usize> = demands
            .iter()
            .filter(|demand| demand.max_bytes > 0.0)
            .flat_map(|demand| demand.tenants.iter().copied())
            .collect();
        let fair = f64::from(capacity) / float(active.len().max(1) as u64);
        let bytes = allocate(f64::from(capacity), &demands);
        let charged = charges(&demands, &bytes, 4);
        let exceeds = charged.iter().any(|bytes| *bytes > fair * (1.0 + ROUNDING_RATIO));
        for (demand, bytes) in demands.iter().zip(&bytes) {
            let is_served = *bytes >= demand.max_bytes * (1.0 - ROUNDING_RATIO);
            let has_fair_part = |tenant: &usize| charged[*tenant] >= fair * (1.0 - ROUNDING_RATIO);
            prop_assert!(
                !exceeds || is_served || demand.tenants.iter().any(has_fair_part),
                "{demand:?} has {bytes}, {charged:?}, fair part {fair}"
            );
        }
    }

    #[test]
    fn the_order_of_the_sets_does_not_matter(
        (demands, shuffled) in demands(0..9, 4).prop_flat_map(|demands| {
            (Just(demands.clone()), Just(demands).prop_shuffle())
        }),
        capacity in 0_u8..40,
    ) {
        let by_set = |demands: &[Demand]| {
            let bytes = allocate(f64::from(capacity), demands);
            let sets = demands.iter().map(|demand| demand.set);
            sets.zip(bytes.into_iter().map(f64::to_bits)).collect::<std::collections::BTreeMap<_, _>>()
        };
        prop_assert_eq!(by_set(&demands), by_set(&shuffled));
    }
}
