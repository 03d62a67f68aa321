//! Parts of networks: where a plan may cut them, and what each part holds.

use pushdown::{
    Pipeline,
    step::model::{Folder, Place},
};

use super::{
    networks::{RUNTIME, models},
    small_networks::network,
};

/// Where every layer gives less than the one before, not all of them are worth looking at: the last ones are.
#[test]
fn networks_are_cut_in_as_many_places_as_are_asked_for() {
    let folder = Folder::open(&models().join("tiny"), Ok(RUNTIME.clone())).unwrap();
    let whole = Pipeline::parse_with("decode | to_float | model(falling) | cast(f16)", &folder).unwrap();
    let cuts = |most: usize| -> Vec<u64> {
        let refined = whole.refined(most);
        let inside = 3..refined.len() - 1;
        let bytes = refined.kinds()[inside].iter().map(|kind| kind.bytes().unwrap());
        bytes.map(|bytes| bytes / 4).collect()
    };
    let all: Vec<u64> = (9..=23).rev().map(|half| 2 * half).collect();
    assert_eq!(cuts(100), all);
    assert_eq!(cuts(12), all[3..]);
    assert_eq!(cuts(2), [20, 18]);
    assert!(cuts(0).is_empty());
}

/// Of the weights either part has its own, also where they are stored without their zeros.
#[test]
fn both_parts_together_hold_what_the_whole_does() {
    for (name, cut, weights) in [("falling", 8, 17_728 * 4), ("sparse_weights", 1, 500)] {
        let (network, _) = network(name);
        let held = |from: Place, to: usize| {
            network.release();
            network.make_ready(from, to).unwrap();
            network.held_bytes()
        };
        let whole = held(Place::Input, network.end());
        assert!(whole > weights, "{name}: {whole} bytes");
        let (before, behind) = (held(Place::Input, cut), held(Place::Cut(cut), network.end()));
        assert!(
            before + behind < whole * 3 / 2,
            "{name}: {before} and {behind} of {whole} bytes"
        );
    }
}
