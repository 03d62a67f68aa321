//! A simulated reader of photos that may be cropped, while conditions change.

use super::*;
use crate::CropAnswer;

/// Bytes of a photo. Its pixels have 150 KB, its values 600 KB.
const PHOTO_BYTES: f64 = 110_000.0;
const MEGABIT: f64 = 1e6 / 8.0;
/// Of `decode | random_resized_crop(224)`, which run as one, on a whole object and on a crop, and of `to_float`.
const DECODE_SECONDS: f64 = 0.0015;
const DECODE_CROPPED_SECONDS: f64 = 0.0012;
const FLOAT_SECONDS: f64 = 0.0001;
/// Of a crop, and of a photo of which nothing can be cropped.
const CROP_SECONDS: f64 = 0.0014;
const WHOLE_SECONDS: f64 = 0.0001;

/// A world, with costs that are not those of the estimates.
fn classes(whole_ratio: f64) -> Vec<Class> {
    let candidate = |stage, bytes, gateway_seconds, host_seconds| Candidate {
        stage,
        bytes,
        gateway_seconds,
        host_seconds,
        weights_bytes: 0.0,
        loading: LoadingCost::default(),
        hits: CacheHits::default(),
    };
    let mix = |crop: f64, whole: f64| crop * (1.0 - whole_ratio) + whole * whole_ratio;
    vec![Class {
        fraction: 1.0,
        candidates: vec![
            candidate(Stage::Object, PHOTO_BYTES, 0.0, DECODE_SECONDS + FLOAT_SECONDS),
            candidate(
                Stage::CroppedJpeg,
                mix(0.53 * PHOTO_BYTES, PHOTO_BYTES),
                mix(CROP_SECONDS, WHOLE_SECONDS),
                mix(DECODE_CROPPED_SECONDS, DECODE_SECONDS) + FLOAT_SECONDS,
            ),
        ],
    }]
}

struct PhotoReader {
    replanner: Replanner,
    /// Plain and cropped.
    fractions: [f64; 2],
    batches: usize,
}

impl PhotoReader {
    fn new() -> Self {
        let steps = [None, Some(150_528), Some(602_112)].map(|output_bytes| StepCost {
            output_bytes,
            macs: 0,
            needs_model: false,
        });
        let mut replanner = Replanner::new(&steps, &[(1.0, PHOTO_BYTES)], 2.0);
        replanner.set_cropped_share(Some(0.47));
        Self {
            replanner,
            fractions: [0.5, 0.5],
            batches: 0,
        }
    }

    /// Reads a batch by the plan in force, with one trial in a hundred, and plans again.
    fn batch(&mut self, tiers: &Tiers, whole_ratio: f64) {
        let mut cropped_samples = 0.0;
        for sample in 0..64_u32 {
            let number = f64::from(u32::try_from(self.batches).unwrap() * 64 + sample);
            let noise = 0.85 + 0.3 * (number * 0.732_050_807_568_877).fract();
            let turn = (number * 0.414_213_562_373_095).fract();
            let point = (number * 0.618_033_988_749_895).fract();
            let is_cropped = if turn < 0.01 && self.batches >= 2 {
                turn < 0.005
            } else {
                point >= self.fractions[0]
            };
            if !is_cropped {
                self.replanner
                    .observe_host_seconds(0, 0, 2, DECODE_SECONDS * noise);
                self.replanner
                    .observe_host_seconds(0, 2, 1, FLOAT_SECONDS * noise);
                continue;
            }
            cropped_samples += 1.0;
            let is_object = (number * 0.236_067_977_499_790).fract() < whole_ratio;
            let (bytes, seconds) = if is_object {
                (PHOTO_BYTES, WHOLE_SECONDS)
            } else {
                (0.53 * PHOTO_BYTES, CROP_SECONDS)
            };
            self.replanner.observe_crop_answer(
                0,
                &CropAnswer {
                    object_bytes: Some(PHOTO_BYTES),
                    bytes: if is_object { bytes } else { bytes * noise },
                    gateway_seconds: seconds * noise,
                    is_object,
                },
            );
            if is_object {
                self.replanner
                    .observe_host_seconds(0, 0, 2, DECODE_SECONDS * noise);
            } else {
                self.replanner
                    .observe_cropped_host_seconds(0, 2, DECODE_CROPPED_SECONDS * noise);
            }
            self.replanner
                .observe_host_seconds(0, 2, 1, FLOAT_SECONDS * noise);
        }
        self.replanner.set_gateway_cores(tiers.gateway_cores);
        self.replanner.set_shared(tiers.shared);
        let cropped = cropped_samples / BATCH_SAMPLES;
        let classes = classes(whole_ratio);
        let load = Plan::from_fractions(tiers, &classes, vec![vec![1.0 - cropped, cropped]], &RULES).load;
        if load.bound() == Bound::Link {
            for _ in 0..16 {
                self.replanner.links_mut().observe_rate(MeasuredRate::Alone {
                    path: Path::Store,
                    bytes_per_second: tiers.link_bytes_per_second,
                });
            }
        } else {
            // Objects arrive as fast as the slowest tier takes them: a lower bound of the bandwidth.
            let rate = PHOTO_BYTES / load.seconds();
            self.replanner.links_mut().observe_throughput(rate, 0.0);
        }
        self.replanner
            .observe_interval(load.seconds() * BATCH_SAMPLES, &CpuUtilization::default());
        self.replanner.observe_trainer_seconds(tiers.trainer_seconds);
        self.batches += 1;
        let decision = self
            .replanner
            .next_batch(SetupCosts::default(), &RULES)
            .expect("a plan");
        if self.batches >= 2 {
            let found: Vec<_> = decision.classes[0]
                .candidates
                .iter()
                .zip(&decision.plan.fractions[0])
                .collect();
            let fraction = |stage| {
                let of_stage = found.iter().filter(|(split, _)| split.stage == stage);
                of_stage.map(|(_, fraction)| **fraction).sum::<f64>()
            };
            self.fractions = [fraction(Stage::Object), fraction(Stage::CroppedJpeg)];
            assert!(
                (self.fractions.iter().sum::<f64>() - 1.0).abs() < 1e-6,
                "pixels do not fit"
            );
        }
    }

    /// The cropped fraction after these batches. The plan is then within 5 % of the best one.
    #[track_caller]
    fn cropped_after(&mut self, batches: usize, tiers: &Tiers, whole_ratio: f64) -> f64 {
        for _ in 0..batches {
            self.batch(tiers, whole_ratio);
        }
        let classes = classes(whole_ratio);
        let plan = Plan::from_fractions(tiers, &classes, vec![self.fractions.to_vec()], &RULES);
        let best = Plan::best(tiers, &classes, &RULES).load.seconds();
        assert!(
            plan.load.seconds() <= 1.05 * best,
            "{} s, best {best} s: {plan:?}",
            plan.load.seconds()
        );
        self.fractions[1]
    }
}

fn link(megabits: f64, trainer_seconds: f64) -> Tiers {
    Tiers {
        trainer_seconds,
        ..World::new(2.0, megabits * MEGABIT, 2.0).tiers
    }
}

#[test]
fn a_thin_link_is_noticed_and_a_fast_one_as_well() {
    let (thin, fast) = (link(100.0, 0.0), link(1_000.0, 0.0015));
    for whole_ratio in [0.0, 0.3] {
        let mut reader = PhotoReader::new();
        assert!(reader.cropped_after(4, &thin, whole_ratio) > 0.9);
        assert!(reader.cropped_after(4, &fast, whole_ratio) < 0.05);
        assert!(reader.cropped_after(4, &thin, whole_ratio) > 0.9);
        let mut reader = PhotoReader::new();
        assert!(reader.cropped_after(4, &fast, whole_ratio) < 0.05);
    }
}

/// With nothing to crop, trials show that there is nothing to gain.
#[test]
fn photos_that_arrive_whole_are_read_plainly() {
    let mut reader = PhotoReader::new();
    assert!(reader.cropped_after(4, &link(100.0, 0.0), 1.0) < 0.05);
}

/// Gateway and host on the same cores, which are the bottleneck.
#[test]
fn shared_cores_are_not_spent_on_crops() {
    let shared = Tiers {
        shared: true,
        ..link(1_000.0, 0.0)
    };
    let mut slow_host = shared;
    slow_host.host_cores = 1.0;
    let mut reader = PhotoReader::new();
    reader.replanner = Replanner {
        host_cores: 1.0,
        ..reader.replanner
    };
    assert!(reader.cropped_after(4, &slow_host, 0.0) < 0.05);
}

/// A gateway was replaced by an older one.
#[test]
fn crops_that_are_not_allowed_any_more_end() {
    let mut reader = PhotoReader::new();
    assert!(reader.cropped_after(4, &link(100.0, 0.0), 0.0) > 0.9);
    reader.replanner.set_cropped_share(None);
    let decision = reader
        .replanner
        .next_batch(SetupCosts::default(), &RULES)
        .unwrap();
    let stages: Vec<_> = decision.classes[0]
        .candidates
        .iter()
        .map(|split| split.stage)
        .collect();
    assert!(!stages.contains(&Stage::CroppedJpeg), "{stages:?}");
    assert!((decision.plan.fractions[0][0] - 1.0).abs() < 1e-9, "{decision:?}");
}

/// A crop in flight takes the path from the gateway, and loads the layers that plain reading loads.
#[test]
fn a_crop_in_flight_is_not_a_plain_read() {
    let mut reader = PhotoReader::new();
    reader.cropped_after(3, &link(100.0, 0.0), 0.0);
    reader.replanner.observe_request(0, Stage::CroppedJpeg);
    reader.replanner.observe_request(0, Stage::Object);
    let in_flight = |reader: &mut PhotoReader| {
        let decision = reader
            .replanner
            .next_batch(SetupCosts::default(), &RULES)
            .unwrap();
        (decision.rules.in_flight, decision.classes[0].candidates.clone())
    };
    let (found, splits) = in_flight(&mut reader);
    assert!((found.gateway_bytes - splits[1].bytes).abs() < 1e-6, "{found:?}");
    assert!(
        (found.bytes - splits[0].bytes - splits[1].bytes).abs() < 1e-6,
        "{found:?}"
    );
    reader.replanner.observe_request_end(0, Stage::CroppedJpeg);
    reader.replanner.observe_request_end(0, Stage::Object);
    assert_eq!(in_flight(&mut reader).0, InFlight::default());
}
