//! Takes observations.

use std::sync::Arc;

use pushdown::{
    StepTiming,
    plan::{CropAnswer, MeasuredRate, Path, Stage},
    wire::CacheStatus,
};

use super::{
    Adapter, State,
    event::{Event, Moment, ReceivedValue, RequestedStage},
    float,
};
use crate::{
    measure::{GatewayCpus, ReceivedBytes},
    planning::EXPLORATION_BATCHES,
    store::SampleProfile,
};

impl Adapter {
    /// Records an event. At the end of a batch, plans again for the samples of the epoch that have not begun.
    pub(crate) fn observe(&self, event: Event) {
        let mut state = self.state.lock();
        #[cfg(test)]
        state.trace.push(event.clone());
        match event {
            Event::Profiled {
                samples,
                link_bytes_per_second,
                gateway_cores,
                left,
                setup,
            } => {
                self.observe_profile(&mut state, &samples);
                if let Some(rate) = link_bytes_per_second {
                    let links = state.planner.replanner.links_mut();
                    links.observe_bandwidth(Path::Store, rate);
                }
                if let Some(cores) = gateway_cores {
                    state.planner.replanner.set_gateway_cores(cores);
                }
                state.batches = EXPLORATION_BATCHES;
                self.plan(&mut state, left, setup);
            }
            Event::CropsAllowed(is_allowed) => {
                Arc::make_mut(&mut state.assignment).may_crop = is_allowed;
                let cropped = self.context.cropped.filter(|_| is_allowed);
                let share = cropped.map(|cropped| cropped.share);
                state.planner.replanner.set_cropped_share(share);
            }
            Event::ReadingBegan(usage) => state.begin_interval(usage),
            Event::SamplesBegan(routes) => {
                state.begun_samples += routes.len();
                for route in routes {
                    state.planner.replanner.observe_request(route.class, route.stage);
                }
            }
            Event::SampleRerouted { from, to } => {
                state.end_request(from);
                state.planner.replanner.observe_request(to.class, to.stage);
            }
            Event::SampleEnded(route) => state.end_request(route),
            Event::SamplesReleased { samples, unfinished } => {
                state.begun_samples -= samples;
                for route in unfinished {
                    state.end_request(route);
                }
            }
            Event::ReadBegan(moment) => {
                let Moment { at, received } = state.advance(moment);
                state.meters.on_request(self.began + at, received);
            }
            Event::ReadAnswered { object_bytes, moment } => {
                let Moment { at, received } = state.advance(moment);
                state.meters.on_headers(object_bytes, self.began + at, received);
            }
            Event::ReadEnded { object_bytes, moment } => {
                let Moment { at, received } = state.advance(moment);
                let rates = state.meters.on_end(object_bytes, self.began + at, received);
                state.observe_rates(rates);
            }
            Event::ValueBegan(moment) => {
                let Moment { at, received } = state.advance(moment);
                state.meters.on_value_begin(self.began + at, received);
            }
            Event::ValueEnded(moment) => {
                let Moment { at, received } = state.advance(moment);
                let rates = state.meters.on_value_end(self.began + at, received);
                state.observe_rates(rates);
            }
            Event::RequestBegan => state.pending_batches += 1,
            Event::RequestAnswered(cpus) => state.observe_gateway_cpus(&cpus),
            Event::CachedRatiosAnnounced(ratios) => {
                let ratios = ratios.iter().map(|(stage, ratio)| (stage.into(), ratio));
                state.planner.replanner.set_cached_ratios(ratios);
            }
            Event::GatewayChanged { left, setup } => {
                if state.planner.decision().is_some() {
                    self.plan(&mut state, left, setup);
                }
            }
            Event::RequestEnded => state.pending_batches -= 1,
            Event::ValueReceived {
                stored,
                requested,
                value,
                hash_fraction,
            } => self.observe_value(&mut state, (stored, hash_fraction), requested, value),
            Event::HostStepsRan {
                stored,
                is_cropped,
                ran,
            } => {
                let ran = if is_cropped {
                    self.observe_cropped_host_steps(&mut state, stored, &ran)
                } else {
                    &ran
                };
                self.observe_host_steps(&mut state, stored, ran);
            }
            Event::BatchConsumed { time, samples } => {
                if samples > 0 {
                    let seconds = time.as_secs_f64() / float(samples as u64);
                    state.planner.replanner.observe_trainer_seconds(seconds);
                }
            }
            Event::BatchEnded { left, usage, setup } => {
                state.observe_interval(usage);
                state.batches += 1;
                if left.samples == 0 {
                    state
                        .planner
                        .replanner
                        .next_epoch(float(self.epoch_samples as u64));
                }
                if state.batches >= EXPLORATION_BATCHES || left.samples == 0 {
                    self.plan(&mut state, left, setup);
                }
            }
        }
    }

    fn observe_host_steps(&self, state: &mut State, stored: Option<u64>, ran: &[StepTiming]) {
        let class = self.context.class(stored);
        for StepTiming { steps, time } in ran {
            state
                .planner
                .replanner
                .observe_host_seconds(class, steps.start, steps.len(), time.as_secs_f64());
        }
        if let Some(stored) = stored.filter(|_| !self.has_all_sizes) {
            state.observe_size(class, stored);
        }
    }

    /// Takes the times of the steps that read a cropped JPEG. Returns the other ones, which depend on no blocks.
    fn observe_cropped_host_steps<'a>(
        &self,
        state: &mut State,
        stored: Option<u64>,
        ran: &'a [StepTiming],
    ) -> &'a [StepTiming] {
        let crop_steps = self.context.cropped.map_or(0, |cropped| cropped.steps);
        let (of_crop, rest) = ran.split_at(ran.partition_point(|timing| timing.steps.start < crop_steps));
        if let Some(last) = of_crop.last() {
            let seconds = of_crop.iter().map(|timing| timing.time.as_secs_f64()).sum();
            state.planner.replanner.observe_cropped_host_seconds(
                self.context.class(stored),
                last.steps.end,
                seconds,
            );
        }
        rest
    }

    fn observe_value(
        &self,
        state: &mut State,
        (stored, hash_fraction): (Option<u64>, f64),
        requested: Stage,
        received: ReceivedValue,
    ) {
        let class = self.context.class(stored);
        // The gateway sends the object itself if the value would be too large, or if nothing can be cropped.
        let is_object = received.stage.is_plain();
        let (bytes, seconds) = (float(received.bytes), f64::from(received.seconds));
        if requested == Stage::CroppedJpeg {
            let answer = CropAnswer {
                object_bytes: stored.map(float),
                bytes,
                gateway_seconds: seconds,
                is_object,
            };
            state.planner.replanner.observe_crop_answer(class, &answer);
            return;
        }
        let stage = if is_object { requested } else { received.stage };
        let stage = stage.steps();
        if received.cache != CacheStatus::Computed {
            state
                .planner
                .replanner
                .observe_cache_hit(stage, hash_fraction, seconds);
        } else if seconds > 0.0 {
            state
                .planner
                .replanner
                .observe_gateway_seconds(class, stage, seconds);
            state.planner.replanner.observe_cache_miss(stage, hash_fraction);
        }
        state
            .planner
            .replanner
            .observe_value_bytes(class, stage, bytes, is_object);
    }

    fn observe_profile(&self, state: &mut State, samples: &[SampleProfile]) {
        for sample in samples {
            let stored = sample.candidates.first().map(|candidate| bytes(candidate.bytes));
            let class = self.context.class(stored);
            if let Some(stored) = stored.filter(|_| !self.has_all_sizes) {
                state.observe_size(class, stored);
            }
            let replanner = &mut state.planner.replanner;
            let candidates: Vec<_> = sample
                .candidates
                .iter()
                .filter(|candidate| candidate.stage != Stage::CroppedJpeg)
                .collect();
            for pair in candidates.windows(2) {
                let [candidate, next] = pair else { continue };
                let (first, seconds) = (
                    candidate.stage.steps(),
                    candidate.host_seconds - next.host_seconds,
                );
                replanner.observe_host_seconds(class, first, next.stage.steps() - first, seconds);
            }
            if let Some(last) = candidates.last() {
                let first = last.stage.steps();
                replanner.observe_host_seconds(class, first, self.pipeline.len() - first, last.host_seconds);
            }
            let mut of_samples = sample.candidates.iter();
            if let Some(crop) = of_samples.find(|candidate| candidate.stage == Stage::CroppedJpeg)
                && let [object, first, ..] = candidates[..]
            {
                let answer = CropAnswer {
                    object_bytes: Some(object.bytes),
                    bytes: crop.bytes,
                    gateway_seconds: crop.gateway_seconds,
                    is_object: crop.bytes >= object.bytes,
                };
                replanner.observe_crop_answer(class, &answer);
                if !answer.is_object {
                    let seconds = (crop.host_seconds - first.host_seconds).max(0.0);
                    replanner.observe_cropped_host_seconds(class, first.stage.steps(), seconds);
                }
            }
            for candidate in candidates.iter().skip(1) {
                let steps = candidate.stage.steps();
                replanner.observe_gateway_seconds(class, steps, candidate.gateway_seconds);
                let stored = stored.map_or(f64::INFINITY, float);
                let is_object = candidate.bytes > stored * self.context.max_expand;
                replanner.observe_value_bytes(
                    class,
                    steps,
                    if is_object { stored } else { candidate.bytes },
                    is_object,
                );
            }
        }
    }
}

impl State {
    /// The moment, or the latest one so far: threads take their times before they wait for their turn.
    pub(super) fn advance(&mut self, moment: Moment) -> Moment {
        let (latest, now) = (self.latest.received, moment.received);
        self.latest = Moment {
            at: self.latest.at.max(moment.at),
            received: ReceivedBytes {
                store: latest.store.max(now.store),
                gateway: latest.gateway.max(now.gateway),
            },
        };
        self.latest
    }

    fn observe_rates(&mut self, rates: impl Iterator<Item = MeasuredRate>) {
        let links = self.planner.replanner.links_mut();
        rates.for_each(|rate| links.observe_rate(rate));
    }

    fn observe_gateway_cpus(&mut self, cpus: &GatewayCpus) {
        let own = float(self.pending_batches.max(1) as u64);
        let part = cpus.batches.map_or(1.0, |all| own / all.max(own));
        self.planner.observe_gateway_cpus(cpus, part);
        if let Some(time) = cpus.time {
            self.gateway_cpu = Some(time);
            if let Some(interval) = &mut self.interval {
                interval.gateway_cpu.get_or_insert(time);
            }
        }
    }

    fn end_request(&mut self, route: RequestedStage) {
        self.planner
            .replanner
            .observe_request_end(route.class, route.stage);
    }

    /// Records the stored size of an object without a listed size. Earlier assignments keep their routes.
    fn observe_size(&mut self, class: usize, stored: u64) {
        self.unlisted.observe(stored);
        self.planner
            .replanner
            .set_object_bytes(class, self.unlisted.mean_bytes());
        let min_bytes = self.unlisted.min_bytes();
        if self.assignment.unlisted_bytes != min_bytes {
            Arc::make_mut(&mut self.assignment).unlisted_bytes = min_bytes;
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size that was a whole number"
)]
const fn bytes(size: f64) -> u64 {
    size as u64
}
