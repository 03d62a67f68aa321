//! Measures the paths from store and gateway while they are the bottleneck.

use pushdown::plan::{MeasuredRate, Path};
use tokio::time::Instant;

use super::{
    float,
    link_meter::{ReadsInFlight, Window, is_long},
};

/// Bytes received so far, by the end that sent them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReceivedBytes {
    /// From the store; with one address, from there.
    pub(crate) store: u64,
    /// From a gateway beside the store.
    pub(crate) gateway: u64,
}

/// Measures the bytes that each end sent while it kept its path busy, and what both sent while both did.
///
/// The path of the store is busy while enough stored objects are in flight. That of the gateway is busy while a value of an answer has
/// arrived in part: a gateway sends what it has computed at once, so only the path delays the rest. Without such values there is one
/// path.
#[derive(Debug, Default)]
pub(crate) struct PathMeters {
    objects: ReadsInFlight,
    /// Values that have arrived in part.
    values: usize,
    since: Option<(Instant, ReceivedBytes)>,
    store_alone: Window,
    gateway_alone: Window,
    /// All bytes while both paths were busy,
    together: Window,
    /// and those of them from the gateway.
    together_gateway_bytes: u64,
}

impl PathMeters {
    /// A stored object was requested.
    pub(crate) fn on_request(&mut self, now: Instant, received: ReceivedBytes) {
        self.advance(now, received);
        self.objects.on_request();
    }

    /// The head of an answer states the object's length.
    pub(crate) fn on_headers(&mut self, length: Option<u64>, now: Instant, received: ReceivedBytes) {
        self.advance(now, received);
        self.objects.on_headers(is_long(length));
    }

    /// An object of this length has arrived, or failed. Returns what there is enough of to measure.
    pub(crate) fn on_end(
        &mut self,
        length: Option<u64>,
        now: Instant,
        received: ReceivedBytes,
    ) -> impl Iterator<Item = MeasuredRate> + use<> {
        self.advance(now, received);
        self.objects.on_end(is_long(length));
        self.take_rates()
    }

    /// A value has arrived in part.
    pub(crate) fn on_value_begin(&mut self, now: Instant, received: ReceivedBytes) {
        self.advance(now, received);
        self.values += 1;
    }

    /// Its rest has arrived, or will not. Returns what there is enough of to measure.
    pub(crate) fn on_value_end(
        &mut self,
        now: Instant,
        received: ReceivedBytes,
    ) -> impl Iterator<Item = MeasuredRate> + use<> {
        self.advance(now, received);
        self.values = self.values.saturating_sub(1);
        self.take_rates()
    }

    /// Counts what has arrived since the last call, in the state until now.
    fn advance(&mut self, now: Instant, received: ReceivedBytes) {
        if let Some((since, before)) = self.since.replace((now, received)) {
            let time = now.saturating_duration_since(since);
            let store_bytes = received.store.saturating_sub(before.store);
            let gateway_bytes = received.gateway.saturating_sub(before.gateway);
            match (self.objects.is_busy(), self.values > 0) {
                (true, false) => self.store_alone.add(time, store_bytes),
                (false, true) => self.gateway_alone.add(time, gateway_bytes),
                (true, true) => {
                    self.together.add(time, store_bytes + gateway_bytes);
                    self.together_gateway_bytes += gateway_bytes;
                }
                (false, false) => {}
            }
        }
    }

    fn take_rates(&mut self) -> impl Iterator<Item = MeasuredRate> + use<> {
        let alone = |path, window: &mut Window| {
            let bytes_per_second = window.take_rate()?;
            Some(MeasuredRate::Alone {
                path,
                bytes_per_second,
            })
        };
        let together_bytes = self.together.bytes();
        let together = self.together.take_rate().map(|bytes_per_second| {
            let gateway_bytes = std::mem::take(&mut self.together_gateway_bytes);
            let gateway_bytes_per_second = bytes_per_second * float(gateway_bytes) / float(together_bytes);
            MeasuredRate::Together {
                store_bytes_per_second: bytes_per_second - gateway_bytes_per_second,
                gateway_bytes_per_second,
            }
        });
        [
            alone(Path::Store, &mut self.store_alone),
            alone(Path::Gateway, &mut self.gateway_alone),
            together,
        ]
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LONG: Option<u64> = Some(1 << 20);

    /// A clock, and what has arrived from store and gateway.
    struct World {
        now: Instant,
        received: ReceivedBytes,
        meters: PathMeters,
    }

    impl World {
        fn new() -> Self {
            Self {
                now: Instant::now(),
                received: ReceivedBytes::default(),
                meters: PathMeters::default(),
            }
        }

        /// This much arrives from store and gateway.
        fn receive(&mut self, milliseconds: u64, store: u64, gateway: u64) {
            self.now += Duration::from_millis(milliseconds);
            self.received.store += store;
            self.received.gateway += gateway;
        }

        fn begin_object(&mut self, length: Option<u64>) {
            self.meters.on_request(self.now, self.received);
            self.meters.on_headers(length, self.now, self.received);
        }

        fn end_object(&mut self, length: Option<u64>) -> Vec<MeasuredRate> {
            self.meters.on_end(length, self.now, self.received).collect()
        }

        fn begin_value(&mut self) {
            self.meters.on_value_begin(self.now, self.received);
        }

        fn end_value(&mut self) -> Vec<MeasuredRate> {
            self.meters.on_value_end(self.now, self.received).collect()
        }
    }

    const fn alone(path: Path, bytes_per_second: f64) -> MeasuredRate {
        MeasuredRate::Alone {
            path,
            bytes_per_second,
        }
    }

    #[test]
    fn each_path_is_measured_by_its_own_bytes() {
        let mut world = World::new();
        world.begin_object(LONG);
        world.receive(20, 400_000, 100_000);
        assert_eq!(world.end_object(LONG), [alone(Path::Store, 20e6)]);
        world.receive(500, 900_000, 900_000);
        world.begin_value();
        world.receive(40, 300_000, 400_000);
        assert_eq!(world.end_value(), [alone(Path::Gateway, 10e6)]);
    }

    #[test]
    fn both_paths_are_measured_while_both_are_busy() {
        let mut world = World::new();
        world.begin_object(LONG);
        world.receive(5, 100_000, 0);
        world.begin_value();
        world.receive(20, 400_000, 200_000);
        let expected = MeasuredRate::Together {
            store_bytes_per_second: 20e6,
            gateway_bytes_per_second: 10e6,
        };
        assert_eq!(world.end_value(), [expected]);
        // The time before and after was the store's.
        world.receive(15, 300_000, 0);
        assert_eq!(world.end_object(LONG), [alone(Path::Store, 20e6)]);
    }

    /// Parts of many values add up, and a value keeps the path busy even if it is short.
    #[test]
    fn short_values_measure_a_slow_path_together() {
        let mut world = World::new();
        let mut rates = Vec::new();
        for _ in 0..30 {
            world.begin_value();
            world.receive(10, 0, 10_000);
            rates.extend(world.end_value());
            // The gateway computes the next one.
            world.receive(90, 0, 0);
        }
        let [
            MeasuredRate::Alone {
                path: Path::Gateway,
                bytes_per_second,
            },
        ] = rates[..]
        else {
            panic!("expected one rate of the gateway's path, found {rates:?}")
        };
        assert!((bytes_per_second - 1e6).abs() < 1e-3, "{bytes_per_second}");
    }

    /// Short objects are in flight: their number decides, as over a single link.
    #[test]
    fn a_few_short_objects_do_not_measure_a_path() {
        let mut world = World::new();
        world.begin_object(Some(1_000));
        world.receive(400, 900_000, 0);
        assert_eq!(world.end_object(Some(1_000)), []);
        world.begin_value();
        assert_eq!(world.end_value(), []);
    }
}
