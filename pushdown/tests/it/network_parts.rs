//! Parts of networks, and what each holds.

use pushdown::step::model::Place;

use super::small_networks::network;

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
