//! A simulated reader with a path from the store and another one from the gateway.

use super::*;

/// Rates are measured from this ratio of the time on.
const MIN_MEASURED_RATIO: f64 = 0.01;

impl World {
    /// The gateway's path and the link, as multiples of the bandwidth so far, which is that of the store's path.
    fn with_paths(mut self, gateway: f64, link: f64) -> Self {
        let bandwidth = self.tiers.link_bytes_per_second;
        self.tiers.paths = Some(Paths {
            store_bytes_per_second: bandwidth,
            gateway_bytes_per_second: bandwidth * gateway,
        });
        self.tiers.link_bytes_per_second = bandwidth * link;
        self
    }

    fn paths_mut(&mut self) -> &mut Paths {
        self.tiers.paths.as_mut().unwrap()
    }
}

impl Reader {
    /// Paths are busy at times that do not depend on each other. Over a saturated link both always are, and share it.
    pub(super) fn observe_paths(&mut self, world: &World, paths: Paths, load: &Load, noises: &[Vec<f64>; 2]) {
        let link = world.tiers.link_bytes_per_second;
        let (seconds, bound) = (load.seconds(), load.bound());
        let path_seconds = [load.store_path_seconds, load.gateway_path_seconds];
        let bandwidths = [paths.store_bytes_per_second, paths.gateway_bytes_per_second];
        let busy = path_seconds.map(|path| match path {
            path if path > 0.0 && bound == Bound::Link => 1.0,
            path => path / seconds,
        });
        // What arrives while both are busy.
        let delivered: [f64; 2] = if bound == Bound::Link {
            [0, 1].map(|path| path_seconds[path] * bandwidths[path] / seconds)
        } else {
            let factor = (link / bandwidths.iter().sum::<f64>()).min(1.0);
            bandwidths.map(|bandwidth| bandwidth * factor)
        };
        for (path, (bottleneck, other)) in [
            (Path::Store, (Bound::StorePath, 1)),
            (Path::Gateway, (Bound::GatewayPath, 0)),
        ] {
            let number = usize::from(path == Path::Gateway);
            if busy[number] * (1.0 - busy[other]) < MIN_MEASURED_RATIO {
                continue;
            }
            let bandwidth = bandwidths[number].min(link);
            // If another tier is the bottleneck, bytes arrive late.
            let rate = if [bottleneck, Bound::Link].contains(&bound) {
                bandwidth
            } else {
                f64::max(0.4 * bandwidth, bandwidth.min(25e6))
            };
            for noise in &noises[number] {
                self.replanner.links_mut().observe_rate(MeasuredRate::Alone {
                    path,
                    bytes_per_second: rate * noise,
                });
            }
        }
        if busy[0] * busy[1] >= MIN_MEASURED_RATIO {
            for noise in noises.iter().flatten() {
                self.replanner.links_mut().observe_rate(MeasuredRate::Together {
                    store_bytes_per_second: delivered[0] * noise,
                    gateway_bytes_per_second: delivered[1] * noise,
                });
            }
        }
    }
}

/// Store's path, gateway's path, link.
const BANDWIDTH_CHANGES: [fn(&mut World); 5] = [
    |world| world.paths_mut().store_bytes_per_second *= 0.1,
    |world| world.paths_mut().store_bytes_per_second *= 10.0,
    |world| world.paths_mut().gateway_bytes_per_second *= 0.1,
    |world| world.paths_mut().gateway_bytes_per_second *= 10.0,
    |world| {
        let link = world.tiers.link_bytes_per_second;
        let store = world.paths_mut().store_bytes_per_second;
        world.tiers.link_bytes_per_second = link.min(store) * 0.3;
    },
];

/// Cores, loads, trainer.
const OTHER_CHANGES: [fn(&mut World); 5] = [
    |world| world.tiers.gateway_cores *= 0.25,
    |world| world.tiers.gateway_cores *= 4.0,
    |world| world.host_load = 3.0,
    |world| world.gateway_load = 3.0,
    |world| world.tiers.trainer_seconds = 0.2,
];

/// Jumps of the conditions, in both directions, if the steps take these seconds.
fn outcomes(changes: &[fn(&mut World); 5], works: &[[f64; 5]]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for seconds in works {
        let crossover = OBJECT_BYTES * 2.0 / seconds.iter().sum::<f64>();
        for (gateway_cores, bandwidth) in [(1.0, 0.1), (2.0, 0.5), (4.0, 1.0), (2.0, 3.0), (8.0, 10.0)] {
            for (gateway, link) in [
                (1.0, f64::INFINITY),
                (1.0, 1.0),
                (0.1, 1.0),
                (0.3, f64::INFINITY),
                (4.0, 1.5),
            ] {
                let world = World::new(gateway_cores, crossover * bandwidth, 2.0).with_paths(gateway, link);
                for change in changes {
                    let mut other = world;
                    change(&mut other);
                    for change in [(world, other), (other, world)] {
                        let replanner = Replanner::new(&steps(), &[(1.0, OBJECT_BYTES)], 2.0);
                        outcomes.add(Reader::of(replanner.with_two_paths()), change, seconds);
                    }
                }
            }
        }
    }
    outcomes
}

#[test]
fn plans_over_two_paths_are_good_three_batches_after_a_change() {
    outcomes(&BANDWIDTH_CHANGES, &WORKS[..1]).check(250);
    outcomes(&OTHER_CHANGES, &WORKS[1..2]).check(250);
}

#[test]
#[ignore = "1,500 changes: make test-full"]
fn plans_over_two_paths_are_good_three_batches_after_every_change() {
    outcomes(&BANDWIDTH_CHANGES, &WORKS).check(750);
    outcomes(&OTHER_CHANGES, &WORKS).check(750);
}
