//! Tiers and objects for which plans are compared with an exhaustive search.

use super::*;

/// Profiles of models on one core: the costs of the object, of pixels, of cuts within the model, and of its output.
pub(super) fn profiles() -> Vec<(&'static str, Vec<Candidate>)> {
    let model = |seconds: f64, cuts: &[(f64, f64)]| {
        let decode = 0.0012;
        let mut splits = vec![
            split(0, 107_000.0, 0.0, decode + seconds),
            split(3, 150_528.0, decode, seconds),
        ];
        splits.extend(cuts.iter().enumerate().map(|(index, (bytes, part))| {
            split(4 + index, *bytes, decode + seconds * part, seconds * (1.0 - part))
        }));
        splits
    };
    vec![
        (
            "pixels",
            vec![split(0, 107_000.0, 0.0, 0.0012), split(3, 60_000.0, 0.0012, 0.0)],
        ),
        (
            "lite0",
            model(0.0125, &[(75_264.0, 0.35), (37_632.0, 0.6), (2_560.0, 1.0)]),
        ),
        (
            "alexnet",
            model(0.040, &[(93_312.0, 0.5), (18_432.0, 0.8), (8_192.0, 1.0)]),
        ),
        ("resnet50", model(0.110, &[(100_352.0, 0.9), (4_096.0, 1.0)])),
        ("vgg19", model(0.500, &[(50_176.0, 0.95), (8_192.0, 1.0)])),
    ]
}

/// Photos of one size, and a mixture of equally many of a fifth and of twice that size. Their pixels and features have equal
/// costs; decoding does not.
pub(super) fn sizes(candidates: &[Candidate]) -> [Vec<Class>; 2] {
    let decode = 0.0012;
    let resized_candidates = |factor: f64| -> Vec<Candidate> {
        let more = decode * (factor - 1.0);
        let resized = |split: &Candidate| match split.stage {
            Stage::Object => Candidate {
                bytes: split.bytes * factor,
                host_seconds: split.host_seconds + more,
                ..*split
            },
            Stage::CroppedJpeg => Candidate {
                bytes: split.bytes * factor,
                gateway_seconds: split.gateway_seconds * factor,
                host_seconds: split.host_seconds + 0.75 * more,
                ..*split
            },
            Stage::After(_) => Candidate {
                gateway_seconds: split.gateway_seconds + more,
                ..*split
            },
        };
        candidates.iter().map(resized).collect()
    };
    let mixed = [0.2, 2.0].map(|factor| Class {
        fraction: 0.5,
        candidates: resized_candidates(factor),
    });
    [one_class(candidates.to_vec()), mixed.into()]
}

/// The fastest of all plans that mix two splits per class, in steps of 5 %.
pub(super) fn exhaustive(tiers: &Tiers, classes: &[Class], rules: &Rules) -> f64 {
    const STEPS: u32 = 20;
    let class_loads = |class: &Class| -> Vec<Load> {
        let splits = class.candidates.iter();
        let allowed = splits.filter(|split| {
            split.stage.is_plain() || split.bytes <= rules.max_expand * class.candidates[0].bytes
        });
        let loads: Vec<Load> = allowed.map(|split| tiers.load(split)).collect();
        let pairs = loads
            .iter()
            .flat_map(|first| loads.iter().map(move |second| (first, second)));
        let mixed = |((first, second), part): ((&Load, &Load), u32)| {
            let part = f64::from(part) / f64::from(STEPS);
            let mix =
                |tier: fn(&Load) -> f64| class.fraction * (part * tier(first) + (1.0 - part) * tier(second));
            Load {
                gateway_seconds: mix(|load| load.gateway_seconds),
                gateway_path_seconds: mix(|load| load.gateway_path_seconds),
                store_path_seconds: mix(|load| load.store_path_seconds),
                link_seconds: mix(|load| load.link_seconds),
                host_seconds: mix(|load| load.host_seconds),
                trainer_seconds: tiers.trainer_seconds,
            }
        };
        pairs
            .flat_map(|pair| (0..=STEPS).map(move |part| (pair, part)))
            .map(mixed)
            .collect()
    };
    let nothing = Load {
        trainer_seconds: tiers.trainer_seconds,
        ..Load::default()
    };
    let sums = classes
        .iter()
        .map(class_loads)
        .fold(vec![nothing], |sums, loads| {
            let add = |(a, b): (&Load, &Load)| Load {
                gateway_seconds: a.gateway_seconds + b.gateway_seconds,
                gateway_path_seconds: a.gateway_path_seconds + b.gateway_path_seconds,
                store_path_seconds: a.store_path_seconds + b.store_path_seconds,
                link_seconds: a.link_seconds + b.link_seconds,
                host_seconds: a.host_seconds + b.host_seconds,
                ..*a
            };
            sums.iter()
                .flat_map(|a| loads.iter().map(move |b| add((a, b))))
                .collect()
        });
    sums.iter().map(Load::seconds).fold(f64::INFINITY, f64::min)
}

/// A combination of conditions.
pub(super) struct Cell {
    pub(super) name: String,
    pub(super) tiers: Tiers,
    pub(super) classes: Vec<Class>,
}

/// Models x size mixtures x bandwidths x numbers and loads of cores x a trainer.
pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (name, candidates) in profiles() {
        let (bytes, host) = (candidates[0].bytes, candidates[0].host_seconds);
        for classes in sizes(&candidates) {
            for host_cores in [1.0, 4.0] {
                // The bandwidth at which the link takes as long per object as the host.
                let crossover = bytes * host_cores / host;
                for bandwidth in [0.1, 0.3, 0.7, 1.0, 1.5, 3.0, 10.0, f64::INFINITY] {
                    // An eighth of a core is a core shared with seven other loads. The last gateway is the host itself.
                    let gateways = [0.125, 0.5, 1.0, 2.0, 8.0].map(|cores| (cores, false));
                    for (gateway_cores, shared) in gateways.into_iter().chain([(host_cores, true)]) {
                        for trainer in [0.0, host / host_cores * 0.6] {
                            let name = format!(
                                "{name}, {} sizes, {host_cores} + {gateway_cores} cores (shared: {shared}), {bandwidth} of the crossover",
                                classes.len()
                            );
                            cells.push(Cell {
                                name,
                                tiers: Tiers {
                                    trainer_seconds: trainer,
                                    shared,
                                    ..tiers(gateway_cores, crossover * bandwidth, host_cores)
                                },
                                classes: classes.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cells.len(), 1920);
    cells
}

/// The same cells with two paths: equal ones, with and without a link that is as slow, and unequal ones. The bandwidth of a cell is that of
/// the store's path.
pub(super) fn cells_with_two_paths() -> Vec<Cell> {
    // The path from the gateway and the link, as multiples of the path from the store.
    let paths = [
        (1.0, f64::INFINITY),
        (1.0, 1.0),
        (0.1, f64::INFINITY),
        (0.3, 1.1),
        (4.0, f64::INFINITY),
        (4.0, 1.5),
    ];
    let with_paths = |cell: Cell| {
        paths.map(|(gateway, link)| {
            let bandwidth = cell.tiers.link_bytes_per_second;
            Cell {
                name: format!("{}, {gateway} of it from the gateway, {link} in all", cell.name),
                tiers: Tiers {
                    link_bytes_per_second: bandwidth * link,
                    paths: Some(Paths {
                        store_bytes_per_second: bandwidth,
                        gateway_bytes_per_second: bandwidth * gateway,
                    }),
                    ..cell.tiers
                },
                classes: cell.classes.clone(),
            }
        })
    };
    cells().into_iter().flat_map(with_paths).collect()
}
